"""Fitted hash functions as ONNX files: rows or images in, packed codes out."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import bittern
from bittern.checks import check_choice
from bittern.codes import BitOrder, check_bitorder
from bittern.extras import import_extra
from bittern.io.files import atomic_write
from bittern.io.onnx_graph import OnnxGraph, Port

PRECISIONS = ("float32", "float64")  # of rows
Draw = Callable[[OnnxGraph, str], str]  # adds a function of rows to a graph


class HashFunctionGraph(NamedTuple):
    """A fitted hash function as it is drawn into a graph."""

    name: str  # of the method
    title: str  # in messages
    n_bits: int
    rows: Port  # the input
    draw: Draw  # bits, or logits if these are asked for
    is_logits: bool


def rows_port(name: str, dim: int, dtype: str, title: str) -> Port:
    """The input of a graph that takes vectors."""
    check_choice(dtype, f"{title}: dtype", PRECISIONS)
    return Port(name, np.dtype(dtype), ("n", dim))


def write_onnx(
    function: HashFunctionGraph, path: str | os.PathLike[str], bitorder: BitOrder
) -> None:
    """Write a graph with the output ``codes``, and ``logits`` of the type of the rows if asked."""
    check_bitorder(bitorder)
    import_extra("onnx", f"{function.title}: to_onnx()")
    graph, rows = OnnxGraph(), function.rows
    is_vectors = np.dtype(rows.dtype).kind == "f"
    drawn = function.draw(graph, graph.cast(rows.name, np.float64) if is_vectors else rows.name)
    bits = drawn
    if function.is_logits:
        bits = graph.add("Greater", drawn, np.float64(0) if is_vectors else np.float32(0))
    n_bytes = -(-function.n_bits // 8)
    codes = _packed(graph, bits, function.n_bits, bitorder)
    outputs = {codes: Port("codes", np.uint8, ("n", n_bytes))}
    if function.is_logits:
        dtype = rows.dtype if is_vectors else np.float32
        outputs[graph.cast(drawn, dtype)] = Port("logits", dtype, ("n", function.n_bits))
    about = {
        "hasher": function.name,
        "n_bits": str(function.n_bits),
        "bitorder": bitorder,
        "bittern": bittern.__version__,
    }
    content = graph.content(f"bittern-{function.name}", [rows], outputs, about)
    with atomic_write(path) as file:
        file.write(content)


def _packed(graph: OnnxGraph, bits: str, n_bits: int, bitorder: BitOrder) -> str:
    """Booleans ``(n, n_bits)`` as bytes, filled with zeros at the end."""
    n_bytes = -(-n_bits // 8)
    digits = graph.cast(bits, np.int32)
    if missing := 8 * n_bytes - n_bits:
        digits = graph.add("Pad", digits, np.array([0, 0, 0, missing]), np.int32(0))
    places = 1 << np.arange(8, dtype=np.int32)
    digits = graph.add("Reshape", digits, np.array([0, n_bytes, 8]))
    digits = graph.add("Mul", digits, places[::-1] if bitorder == "big" else places)
    return graph.cast(graph.add("ReduceSum", digits, np.array([2]), keepdims=0), np.uint8)
