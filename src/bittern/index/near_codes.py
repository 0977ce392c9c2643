"""Different codes and the pairs of them within a radius, to which more can be added; and groups."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from bittern.checks import check_choice, check_count, check_type
from bittern.codes import Codes
from bittern.errors import InputError
from bittern.index.join_keys import Words
from bittern.index.pairs import DistinctCodes, Found, Rows, join
from bittern.parallel import available_threads

Link = Literal["complete", "connected"]
LINKS = get_args(Link)


def groups_within(
    codes: Codes, radius: int, *, link: Link = "complete", n_threads: int | None = None
) -> list[Rows]:
    """Rows of each group of near codes, of two rows or more, in order of the first row.

    ``"connected"`` puts two codes into one group if a chain of pairs within the radius leads from
    one to the other.  ``"complete"`` makes groups in which every two codes are within the radius,
    so that a chain does not bring strangers together: it is complete-linkage clustering, cut at the
    radius, with equal distances in order of the codes.

    >>> import bittern as bt
    >>> codes = bt.Codes.from_bits([[0, 0, 0], [0, 0, 1], [0, 1, 1], [0, 0, 0]])
    >>> [rows.tolist() for rows in bt.index.groups_within(codes, 1)]
    [[0, 1, 3]]
    >>> [rows.tolist() for rows in bt.index.groups_within(codes, 1, link="connected")]
    [[0, 1, 2, 3]]
    """
    return NearCodes.of(codes, radius, n_threads=n_threads).groups(codes, link)


@dataclass(frozen=True, slots=True, eq=False)
class NearCodes:
    """Different codes, and all pairs of them within the radius.

    :meth:`extended` compares only codes that are not here yet, so that a collection that grows is
    never compared with itself again.
    """

    words: Words  # (n, n_words)
    n_bits: int
    radius: int
    pairs: Found  # (n_pairs, 3): numbers of two codes, and their distance

    @classmethod
    def of(cls, codes: Codes, radius: int, *, n_threads: int | None = None) -> NearCodes:
        """The codes of some items."""
        check_type(codes, Codes, "groups: codes")
        radius = min(check_count(radius, "groups: radius", least=0), codes.n_bits)
        none = cls(codes.words[:0], codes.n_bits, radius, np.empty((0, 3), np.int64))
        return none.extended(codes, n_threads=n_threads)

    def __len__(self) -> int:
        return len(self.words)

    def extended(self, codes: Codes, *, n_threads: int | None = None) -> NearCodes:
        """These codes and those of more items."""
        new = DistinctCodes.of(codes.words[self.numbers(codes) < 0]).words
        joined = join(
            self.words, new, self.radius, self.n_bits, available_threads(n_threads), is_among=True
        )
        pairs = np.concatenate([self.pairs, *(found.copy() for found in joined)])
        words = np.concatenate([self.words, new])
        order = np.lexsort((pairs[:, 1], pairs[:, 0], pairs[:, 2]))
        return NearCodes(words, self.n_bits, self.radius, pairs[order])

    def numbers(self, codes: Codes) -> Rows:
        """The number of the code of each item; -1 if it is not here."""
        if codes.n_bits != self.n_bits:
            raise InputError(f"groups: codes must have {self.n_bits} bits, got {codes.n_bits}.")
        n = len(self.words)
        joint = DistinctCodes.of(np.concatenate([self.words, codes.words])).numbers()
        known = np.full(len(joint), -1)
        known[joint[:n]] = np.arange(n)
        return known[joint[n:]]

    def groups(
        self, codes: Codes, link: Link = "complete", *, radius: int | None = None
    ) -> list[Rows]:
        """Groups of items with these codes, as :func:`groups_within` says.

        ``radius`` may be smaller than the one the pairs were found for.
        """
        check_choice(link, "groups: link", LINKS)
        if radius is not None and radius > self.radius:
            raise InputError(
                f"groups: the pairs are those within {self.radius}, not within {radius}."
            )
        numbers = self.numbers(codes)
        is_there = np.zeros(len(self), np.bool_)
        is_there[numbers] = True
        near = self.pairs[is_there[self.pairs[:, :2]].all(axis=1)]
        if radius is not None:
            near = near[near[:, 2] <= radius]
        label = _connected if link == "connected" else _complete
        return _rows_of_groups(label(len(self), near)[numbers])


def _rows_of_groups(labels: Rows) -> list[Rows]:
    """Rows with the same label, if there are several."""
    order = np.argsort(labels, kind="stable")
    edges = np.flatnonzero(np.diff(labels[order])) + 1
    groups = [rows for rows in np.split(order, edges) if len(rows) > 1]
    return sorted(groups, key=lambda rows: int(rows[0]))


def _connected(n: int, pairs: Found) -> Rows:
    """A label for each code, the same if a chain of pairs connects them."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    links = coo_array((np.ones(len(pairs), np.int8), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    return connected_components(links, directed=False)[1].astype(np.int64)


def _complete(n: int, pairs: Found) -> Rows:
    """A label for each code; all pairs within a label are given, by complete linkage.

    Pairs come nearest first.  Two groups become one with the last pair between them: its distance
    is the largest between the two, and no other two groups were complete before.
    """
    labels, members = np.arange(n), dict[int, list[int]]()
    seen: defaultdict[int, dict[int, int]] = defaultdict(dict)  # pairs between two groups
    for first, second in pairs[:, :2].tolist():
        a, b = int(labels[first]), int(labels[second])
        seen[a][b] = seen[b][a] = seen[a].get(b, 0) + 1
        of_a, of_b = members.get(a, [a]), members.get(b, [b])
        if seen[a][b] < len(of_a) * len(of_b):
            continue
        members[a] = of_a + of_b
        labels[of_b] = a
        members.pop(b, None)
        for other, count in seen.pop(b).items():
            del seen[other][b]
            if other != a:
                seen[a][other] = seen[other][a] = seen[a].get(other, 0) + count
    return labels
