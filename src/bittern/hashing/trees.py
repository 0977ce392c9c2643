"""Boosted decision trees: LightGBM learns them, flat arrays evaluate them without it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bittern.checks import Float64Array
from bittern.errors import InputError
from bittern.hashing.base import Rows
from bittern.io.onnx_graph import ML, OnnxGraph

Ints = NDArray[np.int32]
Signs = NDArray[np.int8]  # -1 and 1
TILE = 64  # rows that descend a tree together
BINS = 63  # of a column's values; trees split between bins
LEAF = 20  # training rows at a leaf, at least; fewer if there are fewer than LEAF * SHARE rows
SHARE = 250
RATE = 0.2  # learning rate of boosting


@dataclass(frozen=True, eq=False)
class Forest:
    """One or more sums of binary decision trees.

    From node m a row x goes to node ``left[m]`` if ``x[feature[m]] <= threshold[m]``, compared in
    double precision, and otherwise to ``right[m]``; both come after m.  At a leaf both are m
    itself, and the tree's value is ``value[m]``.  The roots of the trees of sum k are
    ``roots[first[k]:first[k + 1]]``.
    """

    feature: Ints  # (n_nodes,)
    threshold: Float64Array  # (n_nodes,)
    left: Ints  # (n_nodes,)
    right: Ints  # (n_nodes,)
    value: Float64Array  # (n_nodes,)
    roots: Ints  # (n_trees,)
    first: Ints  # (n_sums + 1,)

    def __post_init__(self) -> None:
        n_nodes, n_trees = len(self.feature), len(self.roots)
        lengths = {len(a) for a in (self.threshold, self.left, self.right, self.value)}
        is_valid = lengths == {n_nodes} and bool((self.feature >= 0).all())
        if is_valid:
            both, here = np.stack([self.left, self.right]), np.arange(n_nodes)
            inner = ((both > here) & (both < n_nodes)).all(axis=0)
            is_valid = bool((inner | (both == here).all(axis=0)).all())
            is_valid &= bool(((self.roots >= 0) & (self.roots < n_nodes)).all())
            is_valid &= bool((np.diff(self.first, prepend=0, append=n_trees) >= 0).all())
        if not is_valid:
            raise InputError("Forest: the arrays are not those of decision trees.")

    @classmethod
    def constant(cls, value: float) -> Forest:
        """A single sum, with the same value for every row."""
        return _make_tree([], [], [], [], [value])

    @classmethod
    def from_booster(cls, booster: Any) -> Forest:
        """The sum of a LightGBM model of rows without categories or missing values."""
        text = booster.model_to_string(num_iteration=-1)
        trees = [_parse_tree(table) for table in _tree_tables(text)]
        if not trees:
            return cls.constant(0.0)
        return replace(cls.joined(trees), first=np.array([0, len(trees)], np.int32))

    @classmethod
    def joined(cls, forests: Iterable[Forest]) -> Forest:
        """The sums of all forests, side by side."""
        n_nodes = n_trees = 0
        shifted: list[dict[str, NDArray[Any]]] = []
        for forest in forests:
            arrays = forest.arrays()
            for name in ("left", "right", "roots"):
                arrays[name] = arrays[name] + np.int32(n_nodes)
            arrays["first"] = forest.first[bool(shifted) :] + np.int32(n_trees)
            n_nodes, n_trees = n_nodes + len(forest.feature), n_trees + len(forest.roots)
            shifted.append(arrays)
        names = (field.name for field in fields(cls))
        return cls(**{name: np.concatenate([one[name] for one in shifted]) for name in names})

    @classmethod
    def complete(cls, feature: Ints, threshold: Float64Array, leaves: Float64Array) -> Forest:
        """A single tree in which the children of inner node m are nodes 2m + 1 and 2m + 2."""
        n = len(feature)
        child = np.arange(1, 2 * n + 1)
        child = np.where(child < n, child, n - 1 - child)
        return _make_tree(feature, threshold, child[::2], child[1::2], leaves)

    @classmethod
    def of(cls, hasher: Any) -> Forest:
        """The forest that a hasher keeps as :meth:`attributes`."""
        return cls(**{field.name: getattr(hasher, f"{field.name}_") for field in fields(cls)})

    def attributes(self) -> dict[str, NDArray[Any]]:
        """The fields by name, as learned attributes of a hasher."""
        return {f"{name}_": array for name, array in self.arrays().items()}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The fields by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def sums(self, X: Rows) -> Float64Array:
        """The sums of rows, ``(n, n_sums)``, added in the order of the trees."""
        least = int(self.feature.max()) + 1
        if X.shape[1] < least:
            raise InputError(f"Forest: rows must have {least} columns or more, got {X.shape[1]}.")
        out = np.zeros((len(X), len(self.first) - 1))
        X = np.require(X, requirements=["C", "W"])  # so that only one memory layout is compiled
        _add_trees(X, *self.arrays().values(), _heights(self.left, self.right), out)
        return out

    def onnx_sums(self, graph: OnnxGraph, rows: str) -> str:
        """The sums of rows in double precision, in an ONNX graph, rounded to single.

        The tree of a node is the last one whose root is not after it.
        """
        from onnx.numpy_helper import from_array

        here = np.arange(len(self.feature))
        tree = np.searchsorted(self.roots, here, side="right") - 1
        start, is_leaf = self.roots[tree], self.left == here
        leaves, sums = np.flatnonzero(is_leaf), len(self.first) - 1
        found = graph.add(
            "TreeEnsembleRegressor",
            rows,
            domain=ML,
            n_targets=sums,
            nodes_treeids=tree,
            nodes_nodeids=here - start,
            nodes_featureids=self.feature,
            nodes_values_as_tensor=from_array(self.threshold),
            nodes_modes=np.where(is_leaf, "LEAF", "BRANCH_LEQ").tolist(),
            nodes_truenodeids=np.where(is_leaf, 0, self.left - start),
            nodes_falsenodeids=np.where(is_leaf, 0, self.right - start),
            target_treeids=tree[leaves],
            target_nodeids=(here - start)[leaves],
            target_ids=np.repeat(np.arange(sums), np.diff(self.first))[tree[leaves]],
            target_weights_as_tensor=from_array(self.value[leaves]),
        )
        return graph.cast(found, np.float64)


class BoostedTrees:
    """LightGBM on rows whose values are binned once for all bits."""

    def __init__(self, X: Rows, n_trees: int, depth: int, n_features: int):
        import lightgbm

        self._n_trees = n_trees
        self._parameters = {
            "objective": "binary",
            "learning_rate": RATE,
            "max_depth": depth,
            "num_leaves": 2**depth,
            "feature_fraction": min(1.0, n_features / X.shape[1]),
            "min_data_in_leaf": min(LEAF, max(1, len(X) // SHARE)),
            "max_bin": BINS,
            "min_data_in_bin": 1,
            "feature_pre_filter": False,
            "enable_bundle": False,
            "use_missing": False,
            "deterministic": True,
            "force_col_wise": True,
            "num_threads": 1,
            "verbosity": -1,
        }
        unset = np.zeros(len(X))
        self._rows: Any = lightgbm.Dataset(X, unset, params=self._parameters).construct()

    def fit(self, bit: Signs, weights: Float64Array, seed: int) -> Forest:
        """Trees whose sum is above 0 where the bit is 1, by weighted logistic loss."""
        import lightgbm

        if (bit == bit[0]).all():
            return Forest.constant(float(bit[0]))
        self._rows.set_label(bit > 0).set_weight(weights / weights.mean())
        booster = lightgbm.train({**self._parameters, "seed": seed}, self._rows, self._n_trees)
        return Forest.from_booster(booster)


def _tree_tables(text: str) -> Iterator[dict[str, str]]:
    """The trees in a model's text, each as a table of its ``name=value`` lines."""
    for part in text.partition("end of trees")[0].split("\nTree=")[1:]:
        yield dict(line.split("=", 1) for line in part.split("\n")[1:] if "=" in line)


def _parse_tree(table: dict[str, str]) -> Forest:
    names = "split_feature", "threshold", "left_child", "right_child", "leaf_value"
    return _make_tree(*(np.array(table[name].split(), float) for name in names))


def _make_tree(feature: Any, threshold: Any, left: Any, right: Any, leaves: Any) -> Forest:
    """One tree from inner nodes and leaves, where child ``-1 - k`` is leaf k, as in LightGBM.

    In the result, leaves come after the inner nodes.
    """
    n_inner, n_leaves = len(threshold), len(leaves)
    zeros, leaf = np.zeros(n_leaves), np.arange(n_inner, n_inner + n_leaves)

    def child(to: Any) -> Ints:
        to = np.asarray(to, np.int32)
        return np.append(np.where(to < 0, n_inner - 1 - to, to), leaf).astype(np.int32)

    return Forest(
        np.append(feature, zeros).astype(np.int32),
        np.append(threshold, zeros),
        child(left),
        child(right),
        np.append(np.zeros(n_inner), leaves),
        np.zeros(1, np.int32),
        np.array([0, 1], np.int32),
    )


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _heights(left: Ints, right: Ints) -> Ints:
    """The number of steps from each node to its farthest leaf."""
    height = np.zeros(left.shape[0], np.int32)
    for m in range(left.shape[0] - 1, -1, -1):
        if left[m] != m:
            height[m] = 1 + max(height[left[m]], height[right[m]])
    return height


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _add_trees(
    X: Rows,
    feature: Ints,
    threshold: Float64Array,
    left: Ints,
    right: Ints,
    value: Float64Array,
    roots: Ints,
    first: Ints,
    height: Ints,
    out: Float64Array,
) -> None:
    """Add the sums of rows to ``out``; the rows of a tile descend together."""
    columns = np.zeros((X.shape[1], TILE), X.dtype)
    at = np.empty(TILE, np.int32)
    for start in range(0, X.shape[0], TILE):
        n = min(TILE, X.shape[0] - start)
        for i in range(n):
            for j in range(X.shape[1]):
                columns[j, i] = X[start + i, j]
        for k in range(first.shape[0] - 1):
            for t in range(first[k], first[k + 1]):
                for i in range(TILE):
                    at[i] = roots[t]
                for _ in range(height[roots[t]]):
                    for i in range(TILE):
                        m = at[i]
                        at[i] = left[m] if columns[feature[m], i] <= threshold[m] else right[m]
                for i in range(n):
                    out[start + i, k] += value[at[i]]
