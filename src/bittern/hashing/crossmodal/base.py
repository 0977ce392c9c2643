"""The base class of cross-modal hashers: images and texts in one space of codes."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal, Self, TypeVar

import numpy as np

from bittern.checks import check_choice
from bittern.codes import BitOrder, Codes
from bittern.data.steps import check_matrix, refuse_tiny
from bittern.errors import InputError
from bittern.hashing.base import Bits, CodeLearner, Rows, no_graph, no_logits
from bittern.hashing.targets import Targets
from bittern.io.onnx_graph import OnnxGraph, Port

Modality = Literal["images", "texts"]
MODALITIES: tuple[Modality, Modality] = ("images", "texts")
T = TypeVar("T")


class CrossModalHasher(CodeLearner):
    """Turns images and texts into codes of ``n_bits`` bits that can be compared with each other.

    ``fit(images, texts, y)`` takes paired rows: vectors of images ``(n, p)`` and of texts
    ``(n, q)``, dense or sparse.  ``y`` can be class labels, multi-hot tags, or a square
    :class:`~bittern.Relevance` of the pairs; methods that need no ``y`` ignore it.

    Each method is a class in its own file: :meth:`_fit` learns from checked rows and calls
    :meth:`_keep`; :meth:`_logits` computes the numbers whose signs are the bits of rows of one
    modality, or :meth:`_bits` the bits.  A method that chooses
    codes of the training pairs before it learns functions keeps them in ``training_bits_``.  They
    depend on the labels of these pairs, so a search among them does not measure the functions.
    """

    image_dim_: int
    text_dim_: int

    def fit(self, images: Any, texts: Any, y: Any = None) -> Self:
        """Learn both hash functions from training pairs."""
        self._require_extras()
        rows = {"images": self._checked(images, "images"), "texts": self._checked(texts, "texts")}
        for modality, part in rows.items():
            if isinstance(part, np.ndarray):  # not paths of images, or sentences
                refuse_tiny(part, f"{self._title}: {modality}")
        n_images, n_texts = (len(part) for part in rows.values())
        if n_images != n_texts:
            raise InputError(
                f"{self._title}: images and texts must come in pairs, "
                f"got {n_images:,} images and {n_texts:,} texts."
            )
        targets = self._targets(y, n_images)
        self._learn_anew(lambda: self._fit_pairs(rows["images"], rows["texts"], targets))
        return self

    def encode(self, *, images: Any = None, texts: Any = None) -> Codes:
        """The codes of images, or of texts; rows on disk may be larger than memory."""
        parts = self._by_block(self._bits, images, texts)
        return Codes.concatenate(Codes.from_bits(bits) for bits in parts)

    def transform(self, *, images: Any = None, texts: Any = None) -> Bits:
        """The bits of images, or of texts: ``(n, n_bits)`` booleans."""
        return np.concatenate(list(self._by_block(self._bits, images, texts)))

    def logits(self, *, images: Any = None, texts: Any = None) -> Rows:
        """The real numbers ``(n, n_bits)`` whose signs are the bits: 1 if above 0, else 0.

        InputError if the bits of this method are not the signs of numbers.
        """
        return np.concatenate(list(self._by_block(self._logits, images, texts)))

    def to_onnx(
        self,
        path: str | os.PathLike[str],
        modality: Modality,
        *,
        bitorder: BitOrder = "big",
        logits: bool = False,
        dtype: str = "float32",
    ) -> None:
        """Write the hash function of ``"images"`` or of ``"texts"`` as an ONNX graph.

        Its input has the name of the modality; else all is as in
        :meth:`Hasher.to_onnx() <bittern.hashing.Hasher.to_onnx>`.
        """
        from bittern.hashing.onnx_files import HashFunctionGraph, write_onnx

        self._check_fitted()
        check_choice(modality, f"{self._title}: modality", MODALITIES)
        if logits:
            self._logits(self._blank(modality), modality)  # says so if the bits are not signs
        drawn = self._onnx_logits if logits else self._onnx_bits
        port = self._onnx_rows(modality, dtype)
        function = HashFunctionGraph(
            f"{self.name}-{modality}",
            self._title,
            self.n_stored_bits,
            port,
            partial(drawn, modality=modality),
            logits,
        )
        write_onnx(function, path, bitorder)

    @abstractmethod
    def _fit(self, images: Rows, texts: Rows, targets: Targets | None) -> None:
        """Learn from checked pairs, and call :meth:`_keep`."""

    def _bits(self, rows: Rows, modality: Modality) -> Bits:
        """Bits ``(n, n_bits)`` of a block of checked rows of one modality."""
        return self._logits(rows, modality) > 0

    def _logits(self, rows: Rows, modality: Modality) -> Rows:
        """Numbers ``(n, n_bits)`` of such a block, whose signs are the bits."""
        raise InputError(no_logits(self._title))

    def _onnx_bits(self, graph: OnnxGraph, rows: str, modality: Modality) -> str:
        """The bits of rows in double precision, as :meth:`_bits`, in an ONNX graph."""
        return graph.add("Greater", self._onnx_logits(graph, rows, modality), np.float64(0))

    def _onnx_logits(self, graph: OnnxGraph, rows: str, modality: Modality) -> str:
        """The logits of rows in double precision, as :meth:`_logits`, in an ONNX graph."""
        raise InputError(no_graph(self._title))

    def _onnx_rows(self, modality: Modality, dtype: str) -> Port:
        """The input of the graph."""
        from bittern.hashing.onnx_files import rows_port

        return rows_port(modality, self._dim(modality), dtype, self._title)

    def _checked(self, rows: Any, modality: Modality) -> Any:
        """Dense rows of one modality; sparse rows become dense."""
        checked = check_matrix(rows, f"{self._title}: {modality}")
        return checked.toarray() if hasattr(checked, "toarray") else checked

    def _blank(self, modality: Modality) -> Any:
        """One row of zeros of a modality, to test a loaded model."""
        return np.zeros((1, self._dim(modality)))

    def _check_learned(self) -> None:
        for name in ("image_dim_", "text_dim_"):
            if not isinstance(getattr(self, name, None), int):
                raise ValueError(f"{name} is missing, or no whole number")

    def _blank_bits(self) -> list[Bits]:
        return [self._bits(self._blank(modality), modality) for modality in ("images", "texts")]

    def _fit_pairs(self, images: Any, texts: Any, targets: Targets | None) -> None:
        self.image_dim_ = int(np.prod(images.shape[1:]))
        self.text_dim_ = int(np.prod(texts.shape[1:]))
        self._fit(images, texts, targets)

    def _dim(self, modality: Modality) -> int:
        return self.image_dim_ if modality == "images" else self.text_dim_

    def _by_block(
        self, compute: Callable[[Rows, Modality], T], images: Any, texts: Any
    ) -> Iterator[T]:
        """What a function gives for the rows of one modality, in blocks if they can be sliced."""
        self._check_fitted()
        if (images is None) == (texts is None):
            raise InputError(f"{self._title}: give either images=… or texts=…, and not both.")
        modality: Modality = "images" if texts is None else "texts"
        rows = images if texts is None else texts
        for part in self._blocks(rows, self._dim(modality)):
            yield compute(self._ready(part, modality), modality)

    def _ready(self, part: Any, modality: Modality) -> Any:
        """Checked rows in double precision, in which bits are decided."""
        return self._fitting(part, modality).astype(np.float64, copy=False)

    def _fitting(self, part: Any, modality: Modality) -> Any:
        """Checked rows of the dimension that the method was fitted on."""
        rows, dim = self._checked(part, modality), self._dim(modality)
        if (found := int(np.prod(rows.shape[1:]))) != dim:
            raise InputError(
                f"{self._title}: {modality} must have the {dim:,} columns that it was fitted on, "
                f"got {found:,}."
            )
        return rows
