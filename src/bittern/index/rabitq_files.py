"""RaBitQ to and from FAISS: the items of a :class:`QuantisedIndex` as a ``faiss.IndexRaBitQ``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern.checks import Float32Array, check_type
from bittern.errors import FileError, InputError
from bittern.index.quantised_index import QuantisedIndex
from bittern.io.exchange import faiss_files
from bittern.io.exchange.items import are_positions
from bittern.quantise import QuantisedCodes, Quantiser
from bittern.quantise.correction import N_BYTES, from_bytes, scales, squared_residuals
from bittern.quantise.rabitq import RaBitQ

INNER_PRODUCT = "inner-product"
N_VALUES = 256  # of a byte


def write_faiss_rabitq(path: str | os.PathLike[str], index: QuantisedIndex) -> None:
    r"""Write a FAISS index that searches the same bits with the same estimates.

    FAISS centres, rotates and takes signs as RaBitQ with one bit a dimension does, and keeps two
    numbers of 32 bits where we keep two bytes: with length l and cosine f of the bytes, they are
    the squared length of the residual and :math:`l f^{\gamma}`.  So its estimates are ours up to
    rounding, for queries that are not quantised (``qb = 0``, as in the file), except that FAISS
    gives 0 for a squared distance whose estimate is below 0.  If principal components come first,
    its estimates lack what all items have in common, the part of the query outside these
    components.  For cosine it gives the squared distance of unit vectors, which is twice ours, and
    for inner products the product itself.

    The file has an ``IndexPreTransform`` over an ``IndexRaBitQ``, inside an ``IndexIDMap`` if ids
    are not 0, 1, 2, ….
    """
    faiss = faiss_files.library()
    check_type(index, QuantisedIndex, "write_faiss_rabitq: index")
    quantiser = _checked(index.quantiser)
    bits = faiss.IndexRaBitQ(quantiser.axes_.shape[1], _metric(faiss, quantiser), 1)
    bits.qb = 0
    faiss.copy_array_to_vector(_centre(quantiser), bits.center)
    faiss.copy_array_to_vector(_rows(quantiser, index.stored.bytes).ravel(), bits.codes)
    layers = [bits, _transformed(faiss, quantiser, bits)]
    if not are_positions(index.ids):
        layers.append(faiss.IndexIDMap(layers[-1]))
        faiss.copy_array_to_vector(index.ids, layers[-1].id_map)
    for layer in layers:  # last, because FAISS joins only empty ones
        layer.is_trained, layer.ntotal = True, len(index)
    faiss_files.write_index(Path(path), layers[-1])


def read_faiss_rabitq(path: str | os.PathLike[str], quantiser: Quantiser) -> QuantisedIndex:
    """The items of a file that :func:`write_faiss_rabitq` wrote, with the quantiser that made them.

    Every byte is as before.  For inner products there is no way back: the two numbers of FAISS
    are then not enough to find length and cosine.
    """
    faiss, rabitq = faiss_files.library(), _checked(quantiser)
    if rabitq.metric == INNER_PRODUCT:
        raise InputError(
            "read_faiss_rabitq: FAISS keeps too little for inner products to read the bytes again."
        )
    whole = faiss_files.read_index(Path(path))  # owns the layers below
    has_ids = isinstance(whole, faiss.IndexIDMap)
    layer = faiss.downcast_index(whole.index) if has_ids else whole
    inner = faiss.downcast_index(layer.index) if isinstance(layer, faiss.IndexPreTransform) else 0
    if not isinstance(inner, faiss.IndexRaBitQ) or inner.d != rabitq.axes_.shape[1]:
        raise FileError(f"{path}: holds no IndexRaBitQ of this quantiser.")
    if not np.array_equal(faiss.vector_to_array(inner.center), _centre(rabitq)):
        raise FileError(f"{path}: was written with another quantiser.")
    rows = faiss.vector_to_array(inner.codes).reshape(inner.ntotal, inner.code_size)
    stored = QuantisedCodes(_bytes(path, rabitq, rows), rabitq.fingerprint)
    ids = faiss.vector_to_array(whole.id_map) if has_ids else None
    try:
        return QuantisedIndex(rabitq, stored, ids=ids)
    except InputError as error:  # FAISS allows ids that are negative, or not distinct
        raise FileError(f"{path}: {error}") from None


def _checked(quantiser: Quantiser) -> RaBitQ:
    """The quantiser, if FAISS has its like."""
    if not isinstance(quantiser, RaBitQ):
        raise InputError(f"FAISS has no {type(quantiser).__name__} like ours; export RaBitQ.")
    quantiser._check_fitted()
    if quantiser.bits != 1 or len(quantiser.centres_) > 1:
        raise InputError(
            "FAISS's IndexRaBitQ has one centre, and factors like ours for one bit a dimension; "
            "fit RaBitQ with bits=1 and centres=False."
        )
    return quantiser


def _metric(faiss: Any, quantiser: RaBitQ) -> int:
    is_product = quantiser.metric == INNER_PRODUCT
    return int(faiss.METRIC_INNER_PRODUCT if is_product else faiss.METRIC_L2)


def _centre(quantiser: RaBitQ) -> Float32Array:
    return np.ascontiguousarray(quantiser._projected(quantiser.centres_)[0])


def _transformed(faiss: Any, quantiser: RaBitQ, bits: Any) -> Any:
    """The index behind the projection; for cosine, vectors get the length 1 before."""
    dim, k = quantiser.axes_.shape
    rotation = faiss.LinearTransform(dim, k, False)
    faiss.copy_array_to_vector(np.ascontiguousarray(quantiser.axes_.T).ravel(), rotation.A)
    rotation.is_trained = True
    whole = faiss.IndexPreTransform(rotation, bits)
    if quantiser.metric == "cosine":
        whole.prepend_transform(faiss.NormalizationTransform(dim, 2.0))
    return whole


def _rows(quantiser: RaBitQ, rows: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The rows of FAISS: bits, the lowest of a byte first, then two float32."""
    payload, k = rows[:, :-N_BYTES], quantiser.axes_.shape[1]
    bits = np.unpackbits(payload, axis=1, count=k)
    factors = _factors(quantiser, rows[:, -N_BYTES:])
    if quantiser.metric == INNER_PRODUCT:
        centre = _centre(quantiser)
        along = (bits.astype(np.float32) * 2 - 1) @ centre / np.float32(np.sqrt(k))
        factors[:, 0] = -centre @ centre - 2 * factors[:, 1] * along
    packed = np.packbits(bits, axis=1, bitorder="little")
    return np.hstack([packed, factors.view(np.uint8)])


def _factors(quantiser: RaBitQ, correction: NDArray[np.uint8]) -> Float32Array:
    """The squared length of each residual, and the length times a power of the cosine."""
    found = from_bytes(correction, quantiser.bounds_)
    own = np.full(len(correction), quantiser.axes_.shape[1] / 4, np.float32)  # numbers are ±1/2
    squared = squared_residuals(found, own, quantiser.share_)
    scale = np.sqrt(own) * scales(found, quantiser.power_)
    return np.stack([squared, scale], axis=1).astype("<f4")


def _bytes(
    path: str | os.PathLike[str], quantiser: RaBitQ, rows: NDArray[np.uint8]
) -> NDArray[np.uint8]:
    """Our rows from those of FAISS: the two bytes are looked up among all that there can be."""
    k = quantiser.axes_.shape[1]
    n_packed = -(-k // 8)
    bits = np.unpackbits(rows[:, :n_packed], axis=1, count=k, bitorder="little")
    every = np.indices((N_VALUES, N_VALUES)).reshape(2, -1).T.astype(np.uint8)
    known = _factors(quantiser, every).view(np.uint64)[:, 0]
    order = np.argsort(known, kind="stable")  # of equal ones, the largest cosine is the last
    wanted = np.ascontiguousarray(rows[:, n_packed:]).view(np.uint64)[:, 0]
    place = np.searchsorted(known[order], wanted, side="right") - 1
    if (known[order[place]] != wanted).any():
        raise FileError(f"{path}: has factors that this quantiser did not write.")
    return np.hstack([np.packbits(bits, axis=1), every[order[place]]])
