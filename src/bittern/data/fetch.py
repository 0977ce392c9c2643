"""Download datasets from their publishers."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bittern.data.catalogue import data_root
from bittern.data.dataset import DatasetSpec, RemoteFile
from bittern.errors import BitternError, FileError
from bittern.io.archives import unpack
from bittern.io.files import make_folder, reason_of

CHUNK = 1 << 18
TIMEOUT = 30.0  # seconds without an answer

Progress = Callable[[str, int, int | None], None]  # file name, bytes so far, total bytes if known


def fetch(
    spec: DatasetSpec,
    root: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> list[Path]:
    """Download the files of a dataset into its folder below the root, except those already there.

    A file gets its final name once it is complete and its checksum is right.  An interrupted
    download continues where it stopped if there is a checksum to verify the result.
    """
    if not spec.needs_files:
        return []
    folder = data_root(root) / spec.folder
    if not spec.sources:
        raise FileError(
            f"{folder}: {spec.name} cannot be downloaded; put these files there: {spec.layout}."
        )
    make_folder(folder)
    fetched = []
    for source in spec.sources:
        fetched.append(_retrieve(spec, source, folder, progress))
        fetched += _unpacked(source, folder)
    return fetched


def _retrieve(
    spec: DatasetSpec, source: RemoteFile, folder: Path, progress: Progress | None
) -> Path:
    """The verified file; if the download fails, the error says which file to put where."""
    import pooch

    target = folder / source.filename
    is_ftp = source.url.startswith("ftp:")
    downloader = pooch.FTPDownloader() if is_ftp else _ResumingDownloader(source, target, progress)
    try:
        with _quiet(pooch.get_logger()):
            pooch.retrieve(
                source.url, source.sha256, target.name, target.parent, downloader=downloader
            )
    except BitternError:
        raise
    except Exception as error:  # requests, ftplib, sockets and pooch raise many kinds
        checksum = f", with the checksum {source.sha256}" if source.sha256 else ""
        raise FileError(
            f"{target}: {spec.name} could not be downloaded ({reason_of(error)[:200]}); "
            f"get {source.url} another way and put it there{checksum}."
        ) from error
    return target


def _unpacked(source: RemoteFile, folder: Path) -> list[Path]:
    """The members to extract beside the archive; extracted once."""
    paths = [folder / name for name, _ in source.unpack]
    if not all(path.exists() for path in paths):
        unpack(folder / source.filename, dict(source.unpack), folder)
    return paths


class _ResumingDownloader:
    """Pooch's downloader for HTTP that continues ``<name>.part``."""

    def __init__(self, source: RemoteFile, target: Path, progress: Progress | None) -> None:
        self.source = source
        self.target = target
        self.partial = target.with_name(target.name + ".part")
        self.progress = progress or (lambda name, done, total: None)

    def __call__(self, url: str, output_file: Any, pooch: Any) -> None:
        """Fill the partial file for pooch, which verifies and renames it."""
        import requests

        if self.source.sha256 is None:  # nothing could verify that the parts belong together
            self.partial.unlink(missing_ok=True)
        have = self.partial.stat().st_size if self.partial.exists() else 0
        headers = {"Accept-Encoding": "identity", "User-Agent": "bittern"}
        if have:
            headers["Range"] = f"bytes={have}-"
        with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT) as answer:
            if have and answer.status_code == 416:  # no more bytes: complete, or another file
                self.progress(self.target.name, have, have)
            else:
                answer.raise_for_status()
                self._receive(answer, have if answer.status_code == 206 else 0)
        self.partial.replace(output_file)

    def _receive(self, answer: Any, start: int) -> None:
        length = answer.headers.get("Content-Length")
        total = start + int(length) if length is not None else None
        done = start
        with self.partial.open("ab" if start else "wb") as file:
            for chunk in answer.iter_content(CHUNK):
                file.write(chunk)
                done += len(chunk)
                self.progress(self.target.name, done, total)
        if total is not None and done != total:
            raise OSError(f"the connection ended after {done} of {total} bytes")


@contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    """Keep pooch from writing to the terminal."""
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
