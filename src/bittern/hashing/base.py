"""The base classes of every hasher: what all that learn codes share, and one modality."""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from bittern.checks import check_count, row_blocks
from bittern.codes import MAX_BITS, BitOrder, Codes
from bittern.data.steps import MEMORY, check_rows, is_lazy, refuse_tiny
from bittern.errors import InputError, NotFittedError
from bittern.extras import require
from bittern.hashing.targets import Targets
from bittern.io.onnx_graph import OnnxGraph, Port
from bittern.progress import track

Rows = NDArray[np.floating[Any]]
Bits = NDArray[np.bool_]
LONG = 1024  # bits; up to here no fit is absurd
BITS_PER_ROW = 4  # of longer codes
USUAL = 64  # bits


class CodeLearner(BaseEstimator, ABC):
    """What everything that learns codes of ``n_bits`` bits shares; a scikit-learn estimator.

    The constructor stores the hyper-parameters unchanged.  Learned attributes are arrays, numbers,
    strings, or other hashers, and their names end with an underscore.  Training passes them to
    :meth:`_keep` whenever they are a usable model; if the user stops it with Ctrl-C, the last one
    stays.
    """

    name: ClassVar[str]
    needs_y: ClassVar[bool] = False
    is_nested: ClassVar[bool] = False  # whether the first bits of a longer code are a shorter code
    # The power of n_bits by which fitting takes longer; None if long codes are no trouble.
    cost_power: ClassVar[int | None] = None

    n_bits: int
    random_state: int | None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file of arrays and JSON, which :func:`load` reads."""
        from bittern.hashing.storage import save

        self._check_fitted()
        save(self, path)

    @abstractmethod
    def _blank_bits(self) -> list[Bits]:
        """Bits of a row of zeros, for each kind of input; fails if the arrays do not fit."""

    def _check_learned(self) -> None:
        """Raise ValueError if learned arrays, read from a file, do not fit together.

        Only for what a row of zeros does not show.
        """

    def _targets(self, y: Any, n: int) -> Targets | None:
        """The targets of n rows, if the method uses them; also checks what all methods have."""
        check_count(self.n_bits, f"{self._title}: n_bits", 1, MAX_BITS)
        self._generator()  # checks random_state, even if the method draws nothing
        if self.needs_y or (y is not None and self._takes_y):
            return Targets.of(y, n, self._title)
        return None

    def _check_cost(self, n: int) -> None:
        """Refuse more bits than n rows can teach; say what very long codes will cost."""
        if self.cost_power is None or self.n_bits <= LONG:
            return
        most = max(LONG, BITS_PER_ROW * n)
        if self.n_bits > most:
            raise InputError(
                f"{self._title}: {self.n_bits:,} bits are more than {n:,} training rows can teach; "
                f"take at most {most:,}, more rows, or bits drawn at random (lsh, sklsh)."
            )
        warnings.warn(
            f"{self._title}: learning {self.n_bits:,} bits takes some "
            f"{(self.n_bits / USUAL) ** self.cost_power:,.0f} times as long as {USUAL}; Ctrl-C "
            "stops it.",
            stacklevel=3,
        )

    def _learn_anew(self, fit: Callable[[], None]) -> None:
        """Forget the last model and call ``fit``; after Ctrl-C, the last usable one stays."""
        self._forget()
        try:
            fit()
        except KeyboardInterrupt:
            if not self._kept():
                raise KeyboardInterrupt(
                    f"{self._title}: stopped before there was a model; not fitted."
                ) from None
            self.stopped_early_ = True
            warnings.warn(
                f"{self._title}: stopped early; the model is the one learned so far."
                f"{self._resume_hint}",
                stacklevel=3,
            )

    @property
    def needs_modules(self) -> tuple[str, ...]:
        """The optional modules that :meth:`fit` needs with these parameters."""
        return ()

    def _require_extras(self) -> None:
        """Raise an error that names all missing modules at once."""
        require({self._title: self.needs_modules})

    @property
    def n_stored_bits(self) -> int:
        """The length of the codes: ``n_bits``, or more if they are thermometers."""
        return int(self.n_bits)  # arithmetic in 8 bits would overflow

    @property
    def _resume_hint(self) -> str:
        """What to do after an early stop, as a sentence; empty if nothing."""
        return ""

    @property
    def _title(self) -> str:
        return type(self).__name__

    @property
    def _takes_y(self) -> bool:
        """Whether the method uses ``y`` if it is given."""
        return self.needs_y

    def _keep(self, **learned: Any) -> None:
        """Set attributes that together form a usable model."""
        for name, value in learned.items():
            setattr(self, name, value)
        self.stopped_early_ = False

    def _forget(self) -> None:
        for name in [name for name in vars(self) if _is_learned(name)]:
            delattr(self, name)

    def _kept(self) -> bool:
        return "stopped_early_" in vars(self)

    def _check_fitted(self) -> None:
        if not self._kept():
            raise _not_fitted(f"{self._title}: call fit() before encode(), transform() or save().")

    def _generator(self) -> np.random.Generator:
        """The random number generator for ``random_state``."""
        if isinstance(self.random_state, np.random.Generator):
            return self.random_state
        if self.random_state is not None:
            check_count(self.random_state, f"{self._title}: random_state", 0)
        return np.random.default_rng(self.random_state)

    def _blocks(self, X: Any, dim: int) -> Iterator[Any]:
        """The rows block by block, if X can be sliced."""
        blocks = [slice(None)]
        if is_lazy(X) or (isinstance(X, np.ndarray) and X.ndim >= 2):
            row_bytes = 4 * (dim + 4 * self.n_stored_bits)
            blocks = row_blocks(len(X), row_bytes, MEMORY) or blocks
        for some in track(blocks, f"{self._title}: encoding"):
            yield X if some == slice(None) else X[some]

    def __sklearn_is_fitted__(self) -> bool:
        return self._kept()


class Hasher(TransformerMixin, CodeLearner):
    """Turns vectors into codes of ``n_bits`` bits; a scikit-learn estimator.

    ``fit(X, y)`` takes ``(n, dim)`` rows; ``y`` can be class labels, multi-hot tags, or a square
    :class:`~bittern.Relevance` of the rows (see :class:`~bittern.hashing.Targets`).  Unsupervised
    methods ignore ``y``.

    Each method is a class in its own file.  Its constructor takes the hyper-parameters, first
    ``n_bits``, and stores them unchanged; :meth:`_fit` learns; :meth:`_logits` computes the numbers
    whose signs are the bits or, if there are none, :meth:`_bits` the bits.  Methods outside the
    package extend :class:`~bittern.hashing.CustomHasher`.
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the hash functions from training rows."""
        self._require_extras()
        rows = self._checked(X, reset=True)
        if isinstance(rows, np.ndarray):  # not paths of images
            refuse_tiny(rows, self._title)
        targets = self._targets(y, len(rows))
        self._check_cost(len(rows))
        self._learn_anew(lambda: self._fit(rows, targets))
        return self

    def encode(self, X: Any) -> Codes:
        """The codes of rows; rows on disk may be larger than memory."""
        self._check_fitted()
        return Codes.concatenate(Codes.from_bits(bits) for bits in self._all_bits(X))

    def transform(self, X: Any) -> Bits:
        """The bits of rows, ``(n, n_stored_bits)`` booleans."""
        self._check_fitted()
        return np.concatenate(list(self._all_bits(X)))

    def logits(self, X: Any) -> Rows:
        """The real numbers ``(n, n_stored_bits)`` whose signs are the bits: 1 if above 0, else 0.

        A number near 0 means that the bit was decided narrowly, which
        :func:`~bittern.index.rerank_asymmetric` uses.  InputError if the bits of this method are
        not the signs of numbers, as those of several thresholds per direction.
        """
        self._check_fitted()
        blocks = self._blocks(X, self.n_features_in_)
        return np.concatenate([self._logits(self._ready(block)) for block in blocks])

    def to_onnx(
        self,
        path: str | os.PathLike[str],
        *,
        bitorder: BitOrder = "big",
        logits: bool = False,
        dtype: str = "float32",
    ) -> None:
        """Write the hash function as an ONNX graph, for runtimes without Python.

        Its input is ``vectors`` ``(n, dim)`` of ``dtype``, float32 or float64, or ``images``
        ``(n, height, width[, channels])`` of uint8; its output ``codes``, the bytes of
        ``encode(X).to_packed(bitorder)``.  With ``logits=True`` it also has the output ``logits``.
        The graph does not check its input: rows must be finite.  Needs the extra ``features``.
        """
        from bittern.hashing.onnx_files import HashFunctionGraph, write_onnx

        self._check_fitted()
        if logits:
            self._logits(self._blank())  # says so if the bits are not signs
        draw = self._onnx_logits if logits else self._onnx_bits
        port = self._onnx_rows("vectors", dtype)
        write_onnx(
            HashFunctionGraph(self.name, self._title, self.n_stored_bits, port, draw, logits),
            path,
            bitorder,
        )

    @abstractmethod
    def _fit(self, X: Rows, targets: Targets | None) -> None:
        """Learn from checked rows, and call :meth:`_keep`."""

    def _bits(self, X: Rows) -> Bits:
        """Bits ``(n, n_stored_bits)`` of a block of checked rows."""
        return self._logits(X) > 0

    def _logits(self, X: Rows) -> Rows:
        """Numbers ``(n, n_stored_bits)`` of a block of checked rows, whose signs are the bits."""
        raise InputError(no_logits(self._title))

    def _onnx_bits(self, graph: OnnxGraph, rows: str) -> str:
        """The bits of rows in double precision, as :meth:`_bits`, in an ONNX graph."""
        return graph.add("Greater", self._onnx_logits(graph, rows), np.float64(0))

    def _onnx_logits(self, graph: OnnxGraph, rows: str) -> str:
        """The logits of rows in double precision, as :meth:`_logits`, in an ONNX graph."""
        raise InputError(no_graph(self._title))

    def _onnx_rows(self, name: str, dtype: str) -> Port:
        """The input of the graph."""
        from bittern.hashing.onnx_files import rows_port

        return rows_port(name, self.n_features_in_, dtype, self._title)

    def _checked_bits(self, X: Any) -> Bits:
        """Bits of a block of rows that are not checked yet."""
        return self._bits(self._ready(X))

    def _ready(self, X: Any) -> Any:
        """Checked rows in double precision, in which bits are decided whatever the rows' own is.

        Sums in single precision depend on the order of their terms, and so on the library, the
        processor and the number of rows; in double precision no bit does in practice.
        """
        return self._checked(X).astype(np.float64, copy=False)

    def _checked(self, X: Any, reset: bool = False) -> Any:
        """Rows in the method's input format, with the shape it was fitted on."""
        return check_rows(self, X, reset=reset, sparse=False)

    def _blank(self) -> NDArray[Any]:
        """One row of zeros, to test a loaded model."""
        return np.zeros((1, self.n_features_in_))

    def _blank_bits(self) -> list[Bits]:
        return [self._bits(self._blank())]

    def _all_bits(self, X: Any) -> Iterator[Bits]:
        """The bits of all rows, block by block if X can be sliced."""
        return map(self._checked_bits, self._blocks(X, self.n_features_in_))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.needs_y
        tags.transformer_tags.preserves_dtype = []
        return tags

    @property
    def _n_features_out(self) -> int:
        return self.n_stored_bits


def no_logits(title: str) -> str:
    """The error of a method whose bits are not signs."""
    return f"{title}: has no logits, because its bits are not the signs of real numbers."


def no_graph(title: str) -> str:
    """The error of a method that has no graph."""
    return f"{title}: has no ONNX graph, because its bits are computed by Python code of its own."


def _is_learned(name: str) -> bool:
    about_inputs = name in ("n_features_in_", "feature_names_in_", "shape_in_")
    return name.endswith("_") and not name.startswith("_") and not about_inputs


def _not_fitted(sentence: str) -> Exception:
    """An error that is also scikit-learn's, because its tools catch their own."""
    from sklearn.exceptions import NotFittedError as TheirNotFittedError

    class NotFitted(NotFittedError, TheirNotFittedError):
        pass

    NotFitted.__name__ = NotFitted.__qualname__ = "NotFittedError"
    return NotFitted(sentence)
