"""The writer: the one process that has the collection open, and keeps the shared files."""

from __future__ import annotations

import json
import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bittern import store
from bittern.codes import Codes
from bittern.errors import FileError, InputError
from bittern.io.files import atomic_create
from bittern.io.metadata import Metadata
from bittern.store.embedded import EmbeddedCollection
from bittern.web.found import Ids
from bittern.web.refusal import Refusal, log
from bittern.web.shared import generation, tail
from bittern.web.shared.generation import Generation, SharedNumbers
from bittern.web.shared.source import GENERATION, N_STATE, STATE, About, SharedFiles
from bittern.web.shared.tail import Change
from bittern.web.shared.view import View
from bittern.web.source import CollectionSource

PATIENCE = 10.0  # seconds that a condition may take, and that one waits for another
TEXT_ROOM = 2  # metadata as we write it may be longer than as they came
FEWEST, SHARE = 4096, 64  # changes, or one in SHARE items, after which a generation is made anew


class Writer:
    """A collection open for writing, and the files from which others read it."""

    def __init__(self, place: str, root: Path, run: Path, *, read_only: bool) -> None:
        opened = store.open(place, read_only=read_only)
        if not isinstance(opened, EmbeddedCollection):
            raise InputError(f"{place}: is served by another server, and needs no writer of ours.")
        self.collection = opened
        self._root, self._run, self._lock = root, run, threading.RLock()
        self._source = CollectionSource(self.collection)
        self._read, self._reading = self.collection.condition_reader(PATIENCE), threading.Lock()
        self._compacting: threading.Thread | None = None
        self._write_about()
        self._state = SharedNumbers(run / STATE, N_STATE)
        self._publish(self._valid() or self._exported())
        self._files = SharedFiles(root, run)

    def add(self, words: NDArray[Any], ids: Ids | None, metadata: Metadata, replace: bool) -> Ids:
        """Add items, or ``replace`` those with the same ids, and let everyone see them."""
        codes = Codes(np.ascontiguousarray(words), self.collection.n_bits)
        with self._lock:
            old = np.empty(0, np.int64)
            if replace and ids is not None:
                old = ids[self.collection._which_exist(ids)]
            self._reserve(len(codes), metadata)
            self._generation.remove_stamp()
            new = self._source.add(codes, ids, metadata, replace=replace)
            self._append(old, new, codes)
        self._compact_if_long()
        return new

    def delete(self, ids: Ids | None, where: str | None) -> int:
        """Delete items, and let everyone see that they are gone."""
        with self._lock:
            found = self.matching(where) if where is not None else ids
            found = np.empty(0, np.int64) if found is None else np.asarray(found, np.int64)
            if len(found) == 0:
                return 0
            self._reserve(len(found), None)
            self._generation.remove_stamp()
            n = self._source.delete(found, None)
            none = np.empty((0, -(-self.collection.n_bits // 64)), np.uint64)
            self._append(found, np.empty(0, np.int64), Codes(none, self.collection.n_bits))
        self._compact_if_long()
        return n

    def matching(self, where: str) -> Ids:
        """The ids of the items that meet a condition; waits for no write."""
        if not self._reading.acquire(timeout=PATIENCE):
            raise Refusal(503, "Other conditions take all the time; try again in a moment.")
        try:
            return self._read(where)
        except KeyboardInterrupt:  # :meth:`close` interrupts it
            raise Refusal(503, "The server is ending.") from None
        finally:
            self._reading.release()

    def info(self) -> dict[str, Any]:
        """What the collection says about itself."""
        with self._lock:
            return self.collection.info()

    def close(self) -> None:
        """Leave files that the next start can use at once."""
        if self._compacting is not None:
            self._compacting.join()
        with self._lock:
            if not self.collection.read_only:
                with suppress(OSError, FileError):  # without one, they are made again
                    self._generation.write_stamp(self.collection.fingerprint())
            self.collection.close()

    def _reserve(self, n: int, metadata: Metadata) -> None:
        """Refuse a change that could be stored, but not be shown, because the disk is full."""
        now = self._generation
        n_text = TEXT_ROOM * len(json.dumps(metadata, default=str))
        n_words = -(-self.collection.n_bits // 64)
        try:
            tail.reserve(now.tail, now.committed[0], n, n_words, n_text)
        except OSError as error:
            raise Refusal(503, f"Nothing was stored: {error.strerror or error}.") from None

    def _append(self, removed: Ids, added: Ids, codes: Codes) -> None:
        """Show a committed change to the readers; if that fails, all is exported at a new start."""
        try:
            texts = self.collection.metadata_json(added) if len(added) else []
            change = Change(removed, added, codes.words, [text.encode() for text in texts])
            now = self._generation
            stop = tail.append(now.tail, now.committed[0], tail.to_bytes(change))
            now.committed[0] = stop
        except BaseException as error:
            log.critical("the shared files cannot be written", exc_info=error)
            os._exit(1)  # the supervisor starts another writer

    def _compact_if_long(self) -> None:
        """Make a new generation in the background if there were many changes."""
        with self._lock:
            view = self._files.now()
            is_long = view.n_changes > max(FEWEST, view.n_first // SHARE)
            is_running = self._compacting is not None and self._compacting.is_alive()
            if is_long and not is_running:
                self._compacting = threading.Thread(target=self._try_to_compact, args=(view,))
                self._compacting.start()

    def _try_to_compact(self, view: View) -> None:
        try:
            self._compact(view)
        except (OSError, FileError) as error:  # the disk is full; after the next write then
            log.warning("the shared files stay long: %s", error)
            generation.remove_others(self._root, self._generation.number)

    def _compact(self, view: View) -> None:
        """Write the items of a view as a generation, then the changes since, then publish it."""
        number = view.generation.number + 1
        rows = view.rows()
        texts, ends = _texts_of(view)
        generation.write(self._root, number, view.codes(rows), view.ids_at(rows), texts, ends)
        made = Generation.open(self._root, number)
        with self._lock:
            old = self._generation
            missing = tail.read_between(old.tail, view.committed, old.committed[0])
            made.committed[0] = tail.append(made.tail, 0, missing)
            self._publish(made)

    def _valid(self) -> Generation | None:
        """The newest generation, if it is that of the collection as it is."""
        number, stamp = generation.newest(self._root)
        if stamp is None or stamp["fingerprint"] != self.collection.fingerprint():
            return None
        try:
            found = Generation.open(self._root, number)
        except (OSError, ValueError, FileError):
            return None
        return found if found.committed[0] == stamp["committed"] else None

    def _exported(self) -> Generation:
        """A new generation of the collection as it is."""
        number = generation.newest(self._root)[0] + 1
        index = self.collection._current_index()
        empty = Codes(
            np.empty((0, -(-self.collection.n_bits // 64)), np.uint64), self.collection.n_bits
        )
        codes = index.codes if len(index) else empty
        texts = generation.joined(self.collection.metadata_json())
        generation.write(self._root, number, codes, index.ids, *texts)
        made = Generation.open(self._root, number)
        made.write_stamp(self.collection.fingerprint())
        return made

    def _publish(self, made: Generation) -> None:
        self._generation = made
        self._state[GENERATION] = made.number
        generation.remove_others(self._root, made.number)

    def _write_about(self) -> None:
        source, info = self._source, self.collection.info()
        about = About(
            str(Path(source.place).absolute()),
            source.n_bits,
            source.read_only,
            "modality" in info["metadata"] and _is_crossmodal(info["hasher"]),
            str(source.folder),
            None if source.uploads is None else str(source.uploads),
            tuple(map(str, source.roots)),
        )
        folder = self._run / "recipe"
        if not folder.exists():  # it is there if another writer was killed
            with atomic_create(folder) as made:
                made.mkdir()
                for name, content in self.collection.recipe_files().items():
                    (made / f"{name}.npz").write_bytes(content)
        about.write(self._run)


def _is_crossmodal(hasher: str | None) -> bool:
    from bittern.hashing.crossmodal import CROSSMODAL

    return hasher in CROSSMODAL


def shared_folder(place: str) -> Path:
    """The hidden folder of shared files, beside the collection."""
    file = Path(os.path.realpath(place))
    folder = file.with_name(f".{file.name}.serve")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise FileError(
            f"{folder}: cannot be created ({error.strerror}); serve with --read-only."
        ) from None
    return folder


def _texts_of(view: View) -> tuple[bytes, Ids]:
    """The metadata of all items of a view, one after another, and where each ends."""
    offsets, blob = view.generation.offsets, view.generation.blob
    lengths = np.diff(offsets)
    parts: list[Any] = [blob]
    if view.alive is not None:
        gone = np.flatnonzero(~view.alive)
        begins = np.concatenate([[0], offsets[gone + 1]]).tolist()
        ends = np.concatenate([offsets[gone], offsets[-1:]]).tolist()
        parts = [blob[a:b] for a, b in zip(begins, ends, strict=True)]
        lengths = lengths[view.alive]
    late = [view.late_metadata[row] for row in np.flatnonzero(view.late_alive).tolist()]
    sizes = np.fromiter(map(len, late), np.int64, len(late))
    return b"".join([*parts, *late]), np.cumsum(np.concatenate([lengths, sizes]))
