"""What a file is, by its first bytes: files of arrays, and what users give by mistake instead."""

from __future__ import annotations

import zipfile
from pathlib import Path

from bittern.errors import FileError
from bittern.io.files import existing_file, reading
from bittern.io.hdf5 import is_hdf5
from bittern.io.matlab import matlab_version
from bittern.io.npz import NPY, ZIP

START = 2048  # bytes that are looked at
PARQUET = b"PAR1"
OLD_TORCH = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."  # before PyTorch 1.6
CSV_ENDINGS = (".csv", ".tsv")

# Files that hold no arrays, by how they start.
OTHERS: dict[bytes, str] = {
    b"\x89PNG": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"GIF8": "a GIF image",
    b"BM": "a BMP image",
    b"II*\x00": "a TIFF image",
    b"MM\x00*": "a TIFF image",
    b"%PDF": "a PDF document",
    b"\x1f\x8b": "a gzip archive",
    b"BZh": "a bzip2 archive",
    b"\xfd7zXZ": "an xz archive",
    b"7z\xbc\xaf": "a 7z archive",
    b"Rar!": "a RAR archive",
    b"SQLite format 3": "an SQLite database",
    b"ARROW1": "an Arrow file",
    b"FEA1": "a Feather file",
    b"IBxF": "a FAISS index",
    b"IBM2": "a FAISS index",
    b"IxFI": "a FAISS index",
    b"IxF2": "a FAISS index",
}
TEXTS: dict[bytes, str] = {
    b"<!doctype html": "an HTML page",
    b"<html": "an HTML page",
    b"<?xml": "XML",
    b"version https://git-lfs": "a pointer of Git LFS, not the file itself",
    b"%pdf": "a PDF document",
    b"{": "JSON",
    b"[": "JSON",
}
TEXT, UNKNOWN = "text", "of no kind that is known"
ARTICLES = {
    ".npy": "an .npy file",
    ".npz": "an .npz file",
    "PyTorch": "a PyTorch file",
    "Parquet": "a Parquet file",
    "HDF5": "an HDF5 file",
    "MATLAB": "a MATLAB file",
    "CSV": "a CSV file",
}
READ = ".npy, .npz, .pt, .mat, .csv, .tsv, .parquet, .h5"


def array_kind(path: Path) -> str:
    """Which of ``ARTICLES`` a file of arrays is; for any other file, an error says what it is."""
    source = existing_file(path)
    kind = find_kind(source)
    if kind is not None:
        return kind
    what = describe(source)
    advice = (
        "which could run code and is not read; save the array with np.save"
        if what == "a pickle"
        else f"not a file of arrays ({READ})"
    )
    raise FileError(f"{source}: is {what}, {advice}.")


def find_kind(source: Path) -> str | None:
    """Which of ``ARTICLES`` a file is; None if it is no file of arrays."""
    start = _start(source)
    if start.startswith(NPY):
        return ".npy"
    if start.startswith(ZIP) and zipfile.is_zipfile(source):
        return _zip_kind(source)
    if start.startswith(PARQUET):
        return "Parquet"
    if matlab_version(source) is not None:
        return "MATLAB"
    if is_hdf5(source):
        return "HDF5"
    if start.startswith(OLD_TORCH):
        return "PyTorch"
    return "CSV" if source.suffix.lower() in CSV_ENDINGS and _is_plain_text(start) else None


def describe(path: Path) -> str:
    """What a file without arrays is, in words."""
    start = _start(path)
    if not start:
        return "empty"
    if _is_text(start):
        return _kind_of_text(start)
    if start.startswith(ZIP):
        return _zip_content(path)
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return "a WebP image"
    if start[8:12] == b"DUCK":
        return "a DuckDB file, such as a collection"
    if start[257:262] == b"ustar":
        return "a tar archive"
    if start[8:10] == b'{"' and start[3:8] == bytes(5):
        return "a safetensors file"
    if start[0] == 0x80 and 2 <= start[1] <= 5:
        return "a pickle"
    found = (what for prefix, what in OTHERS.items() if start.startswith(prefix))
    return next(found, UNKNOWN)


def _start(source: Path) -> bytes:
    with reading(source, "file"), source.open("rb") as file:
        return file.read(START)


def _zip_kind(source: Path) -> str | None:
    names = _members(source)
    if not names or any(name.endswith(".npy") for name in names):
        return ".npz"
    return "PyTorch" if any(name.endswith("/data.pkl") for name in names) else None


def _members(source: Path) -> list[str]:
    with reading(source, "zip file"), zipfile.ZipFile(source) as archive:
        return archive.namelist()


def _zip_content(path: Path) -> str:
    if not zipfile.is_zipfile(path):
        return "a damaged .npz or zip file"
    names = _members(path)
    if "xl/workbook.xml" in names:
        return "an Excel workbook"
    return "a zip archive of other files"


def _kind_of_text(start: bytes) -> str:
    text = start.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return next((what for prefix, what in TEXTS.items() if text.startswith(prefix)), TEXT)


def _is_plain_text(start: bytes) -> bool:
    return bool(start) and _is_text(start) and _kind_of_text(start) == TEXT


def _is_text(start: bytes) -> bool:
    """UTF-8 without a NUL; the last character may be cut."""
    try:
        (start[:-4] if len(start) == START else start).decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in start
