"""What a file is, by its first bytes: files of arrays, and what users give by mistake instead."""

from __future__ import annotations

import zipfile
from pathlib import Path

from bittern.errors import FileError
from bittern.io.files import existing_file, is_zip, reading

NPY = b"\x93NUMPY"
ZIP = (b"PK\x03\x04", b"PK\x05\x06")
HDF5 = b"\x89HDF\r\n\x1a\n"  # at byte 0, 512, 1024, 2048, …
HDF5_PLACES = (0, 512, 1024, 2048)
OLD_TORCH = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."  # before PyTorch 1.6
MATLAB_VERSIONS = {b"\x00\x01IM": 5, b"\x01\x00MI": 5, b"\x00\x02IM": 7, b"\x02\x00MI": 7}
MATLAB_PLACE = 124
START = HDF5_PLACES[-1] + len(HDF5)  # bytes that are looked at

IS_NPY, IS_NPZ, IS_TORCH = "an .npy file", "an .npz file", "a PyTorch file"
IS_PARQUET, IS_HDF5, IS_MATLAB = "a Parquet file", "an HDF5 file", "a MATLAB file"
IS_CSV, IS_TEXT, IS_UNKNOWN = "a CSV file", "text", "of no kind that is known"
IS_DUCKDB = "a DuckDB file, such as a collection"
ARRAYS = (IS_NPY, IS_NPZ, IS_TORCH, IS_PARQUET, IS_HDF5, IS_MATLAB, IS_CSV)
READ = ".npy, .npz, .pt, .mat, .csv, .tsv, .parquet or .h5"
CSV_ENDINGS = (".csv", ".tsv")
PICKLE = "a pickle, which could run code and is not read; save the array with np.save"

BINARY: dict[bytes, str] = {
    NPY: IS_NPY,
    b"PAR1": IS_PARQUET,
    OLD_TORCH: IS_TORCH,
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
    b"IxPT": "a FAISS index",
    b"IxMp": "a FAISS index",
    b"usearch": "a usearch index",
    b"PGCOPY\n": "a binary COPY file of PostgreSQL",
}
AT_PLACES: tuple[tuple[int, bytes, str], ...] = (
    *((place, HDF5, IS_HDF5) for place in HDF5_PLACES),
    (8, b"WEBP", "a WebP image"),
    (8, b"DUCK", IS_DUCKDB),
    (257, b"ustar", "a tar archive"),
    (8, b'{"', "a safetensors file"),
)
TEXTS: dict[bytes, str] = {
    b"<!doctype html": "an HTML page",
    b"<html": "an HTML page",
    b"<?xml": "XML",
    b"version https://git-lfs": "a pointer of Git LFS instead of the file",
    b"%pdf": "a PDF document",
    b"{": "JSON",
    b"[": "JSON",
}


def array_kind(path: Path) -> str:
    """Which of ``ARRAYS`` a file is; for any other file, an error says what it is."""
    what = describe(path)
    if what in ARRAYS:
        return what
    advice = "" if what == PICKLE else f"; give arrays as {READ}"
    raise FileError(f"{path}: is {what}{advice}.")


def describe(path: Path) -> str:
    """What a file is, in words."""
    with reading(path, "file"), existing_file(path).open("rb") as file:
        start = file.read(START)
    if not start:
        return "empty"
    if start[MATLAB_PLACE : MATLAB_PLACE + 4] in MATLAB_VERSIONS:
        return IS_MATLAB
    is_csv = path.suffix.lower() in CSV_ENDINGS
    found = _kind_of_text(start) if _is_text(start) else _kind_of_binary(path, start)
    return IS_CSV if is_csv and found in (IS_TEXT, IS_UNKNOWN) else found


def is_collection(path: Path) -> bool:
    """Whether a file is of DuckDB, and so may be a collection."""
    try:
        return describe(path) == IS_DUCKDB
    except FileError:  # it cannot be read
        return False


def _kind_of_text(start: bytes) -> str:
    text = start.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return next((what for prefix, what in TEXTS.items() if text.startswith(prefix)), IS_TEXT)


def _kind_of_binary(path: Path, start: bytes) -> str:
    if start.startswith(ZIP):
        return _kind_of_zip(path)
    for place, mark, what in AT_PLACES:
        if start[place : place + len(mark)] == mark:
            return what
    found = next((what for prefix, what in BINARY.items() if start.startswith(prefix)), None)
    is_pickle = start[:1] == b"\x80" and start[1:2] in (b"\2", b"\3", b"\4", b"\5")
    return found or (PICKLE if is_pickle else IS_UNKNOWN)


def _kind_of_zip(path: Path) -> str:
    if not is_zip(path):
        return "a damaged .npz or zip file"
    with reading(path, "zip file"), zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    if not names or any(name.endswith(".npy") for name in names):
        return IS_NPZ
    if any(name.endswith("/data.pkl") for name in names):
        return IS_TORCH
    return "an Excel workbook" if "xl/workbook.xml" in names else "a zip archive of other files"


def _is_text(start: bytes) -> bool:
    """UTF-8 without a NUL; the last character may be cut."""
    try:
        (start[:-4] if len(start) == START else start).decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in start
