"""Tensors of PyTorch files (``torch.save``), read without running any code in them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from bittern.errors import FileError
from bittern.extras import import_extra
from bittern.io.files import existing_file, refuse_excess


def read_tensors(path: Path) -> dict[str, NDArray[Any]]:
    """The tensors of a file by name: one tensor, or a dict, list or tuple of tensors.

    A single tensor has the name of the file, and those of a list their positions.
    """
    torch = import_extra("torch", f"{path}: a PyTorch file")
    source = existing_file(path)
    try:
        content = torch.load(source, map_location="cpu", weights_only=True)
    except Exception as error:  # PyTorch raises anything on a damaged file, with pages of advice
        if "weights" in str(error).lower():
            raise FileError(
                f"{source}: is a PyTorch file with more than tensors, which could run code and is "
                "not read; save the tensor alone with torch.save, or the array with np.save."
            ) from None
        raise FileError(f"{source}: is a damaged PyTorch file.") from error
    if isinstance(content, torch.Tensor):
        content = {source.stem: content}
    elif isinstance(content, list | tuple):
        content = dict(enumerate(content))
    tensors = content if isinstance(content, Mapping) else {}
    found = {
        str(n): _to_array(source, str(n), t)
        for n, t in tensors.items()
        if isinstance(t, torch.Tensor)
    }
    if not found:
        raise FileError(f"{source}: is a PyTorch file without tensors; save the tensor itself.")
    return found


def _to_array(source: Path, name: str, tensor: Any) -> NDArray[Any]:
    """A tensor as an array; bfloat16, which NumPy lacks, becomes float32."""
    import torch

    try:
        promised = tensor.numel() * tensor.element_size()
        refuse_excess(source, promised, source.stat().st_size, f"the tensor '{name}'")
        dense = tensor if tensor.layout is torch.strided else tensor.to_dense()
        plain = dense.detach().resolve_conj().resolve_neg()
        found: NDArray[Any] = (plain.float() if plain.dtype == torch.bfloat16 else plain).numpy()
    except (RuntimeError, TypeError):  # it is quantised, nested, or of a type that NumPy lacks
        raise FileError(
            f"{source}: the tensor '{name}' is of a kind that NumPy lacks; save dense numbers, "
            "with tensor.float()."
        ) from None
    return found
