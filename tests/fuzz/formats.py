"""Every kind of file that the package reads: how to make a small one, and what to do with it.

A reader goes as far as a user would: it loads, and then uses what was loaded.  It returns what it
found, so that damage that changes an answer without a word is noticed.
"""

import hashlib
import io
import json
import shutil
import tarfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import bittern as bt

N, DIM, BITS = 24, 6, 12
_rng = np.random.default_rng(0)
X = np.round(_rng.standard_normal((N, DIM)) + 3 * (np.arange(N) % 3)[:, None], 3).astype(np.float32)
Y = np.arange(N) % 3
CODES = bt.Codes.from_bits(_rng.random((N, BITS)) < 0.5)
TAGS = (np.arange(N)[:, None] % np.arange(2, 6) == 0).astype(np.uint8)
GAINS = _rng.integers(0, 3, (6, N)) * (_rng.random((6, N)) < 0.3)
METRICS = ["ap", "ap@5", "ndcg@5", "precision@r2", "auprc", "rr", "interpolated-ap"]


@dataclass(frozen=True)
class Format:
    """A kind of file."""

    name: str
    inside: str  # how its inside is changed; "" if only as bytes
    ending: str
    make: Callable[[Path], Any]
    read: Callable[[Path], Any]
    is_ours: bool = False  # whether it carries checksums, so that no bit may change unnoticed
    short: bool = True  # whether the short run of the default tests has it


FORMATS: dict[str, Format] = {}


def add(name, inside, ending, make, read, **more):
    FORMATS[name] = Format(name, inside, ending, make, read, **more)


def digest(value):
    """A short text that is equal for equal contents."""
    h = hashlib.sha256()
    _feed(h, value)
    return h.hexdigest()[:16]


def _feed(h, value):
    if isinstance(value, bt.Codes):
        value = (value.n_bits, np.asarray(value.words))
    if isinstance(value, np.ndarray):
        h.update(f"{value.dtype}{value.shape}".encode())
        h.update(repr(value.tolist()).encode() if value.dtype == object else value.tobytes())
    elif isinstance(value, dict):
        for key in value:
            _feed(h, key)
            _feed(h, value[key])
    elif isinstance(value, list | tuple):
        for one in value:
            _feed(h, one)
    elif hasattr(value, "tocsr"):
        made = value.tocsr()  # as rows of numbers it could fill the memory
        _feed(h, (made.shape, made.indptr, made.indices, made.data))
    else:
        h.update(repr(value).encode("utf-8", "surrogatepass"))


def scores_of(profile):
    found = bt.evaluate(profile, METRICS)
    return {name: (found[name].mean, found[name].undefined) for name in METRICS if name in found}


# Codes, vectors, labels and ground truth.


def _read_any_codes(path):
    from bittern import inputs

    codes = inputs.read_codes(path)
    return codes, bt.FlatIndex(codes).search(codes[:3], k=2).ids


add("codes.npz", "npz", ".npz", lambda p: CODES.save(p), bt.Codes.load, is_ours=True)
add("codes.npy", "npy", ".npy", lambda p: CODES.save(p), bt.Codes.load)
add("codes mapped", "npz", ".npz", CODES.save, lambda p: bt.Codes.load(p, mmap=True)[:].to_bits())
add(
    "bits.npz",
    "npz",
    ".npz",
    lambda p: np.savez(p, codes=CODES.to_bits(), labels=Y),
    _read_any_codes,
)
add("bits.npy", "npy", ".npy", lambda p: np.save(p, CODES.to_packed()), _read_any_codes)


def _use_vectors(path):
    from bittern import inputs

    found = inputs.read_vectors(path)
    return found[:], found.rows.columns(), found.rows.labels, found.rows.tags, found.rows.to_keep()


def _write_csv(path):
    rows = [
        ",".join(map(str, row)) + f",{y},name{i}"
        for i, (row, y) in enumerate(zip(X, Y, strict=True))
    ]
    head = ",".join(f"x{i}" for i in range(DIM)) + ",label,id"
    path.write_text("\n".join([head, *rows]) + "\n")


def _write_h5(path):
    import h5py

    with h5py.File(path, "w") as file:
        file["vectors"], file["labels"] = X, Y
        file.create_dataset("packed", data=X, compression="gzip", chunks=(8, 3))
        file["names"] = np.array([f"n{i}" for i in range(N)], "S4")


def _write_parquet(path):
    import pyarrow
    import pyarrow.parquet

    columns = {f"x{i}": X[:, i] for i in range(DIM)} | {
        "label": Y,
        "id": [f"n{i}" for i in range(N)],
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), path)


def _write_mat(path):
    import scipy.io

    scipy.io.savemat(path, {"X": X, "labels": Y}, do_compression=True)


def _write_torch(path, **options):
    import torch

    torch.save({"embeddings": torch.from_numpy(X), "labels": torch.from_numpy(Y)}, path, **options)


def _about_vectors(path):
    np.savez(path, vectors=X, labels=np.array(["a", "b", "c"])[Y], tags=TAGS, ids=np.arange(N))


def _sparse_vectors(path):
    import scipy.sparse

    scipy.sparse.save_npz(path, scipy.sparse.csr_array(X * (X > 3)))


add("vectors.npz", "npz", ".npz", _about_vectors, _use_vectors)
add("vectors.npy", "npy", ".npy", lambda p: np.save(p, X), _use_vectors)
add("vectors.csv", "text", ".csv", _write_csv, _use_vectors)
add("vectors.h5", "", ".h5", _write_h5, _use_vectors)
add("vectors.parquet", "", ".parquet", _write_parquet, _use_vectors)
add("vectors.mat", "", ".mat", _write_mat, _use_vectors)
add("vectors.pt", "npz", ".pt", _write_torch, _use_vectors, short=False)
add(
    "vectors.pt (old)", "", ".pt",
    lambda p: _write_torch(p, _use_new_zipfile_serialization=False), _use_vectors, short=False,
)  # fmt: skip
add("sparse vectors", "npz", ".npz", _sparse_vectors, _use_vectors)


def _use_dataset(path):
    dataset = bt.data.load("arrays", root=path)
    from bittern.data.catalogue import spec_of
    from bittern.data.describe import describe

    return repr(dataset), describe(spec_of("arrays"), dataset), dataset.labels, dataset.tags


def _dataset_file(path):
    np.savez(
        path, vectors=X, labels=np.array(["a", "b", "c"])[Y], tags=TAGS,
        ids=[f"n{i}" for i in range(N)], texts=[f"text {i}" for i in range(N)],
        tag_names=list("abcd"),
    )  # fmt: skip


add("dataset.npz", "npz", ".npz", _dataset_file, _use_dataset)
add("dataset.parquet", "", ".parquet", _write_parquet, _use_dataset)


def _sparse_gains(form):
    def write(path):
        import scipy.sparse

        scipy.sparse.save_npz(path, scipy.sparse.coo_array(GAINS).asformat(form))

    return write


def _use_gains(path):
    from bittern import inputs

    relevance = bt.Relevance.from_matrix(inputs.read_gains(path))
    totals = relevance.totals()
    if (relevance.n_queries, relevance.n_database) == GAINS.shape:
        return totals, scores_of(bt.TieProfile.from_codes(CODES[:6], CODES, relevance))
    return totals


def _use_tags(path):
    from bittern import inputs

    tags = inputs.read_tags(path)
    return bt.Relevance.from_tags(tags, tags, graded=True).totals()


for form in ("csr", "csc", "coo", "bsr", "dia"):
    add(f"gains ({form})", "npz", ".npz", _sparse_gains(form), _use_gains)
add("gains.npy", "npy", ".npy", lambda p: np.save(p, GAINS), _use_gains)
add("tags (sparse)", "npz", ".npz", lambda p: _sparse_of(p, TAGS), _use_tags)
add("tags.npz", "npz", ".npz", lambda p: np.savez(p, tags=TAGS), _use_tags)


def _sparse_of(path, matrix):
    import scipy.sparse

    scipy.sparse.save_npz(path, scipy.sparse.csr_matrix(matrix))


def _use_labels(path):
    from bittern import inputs

    y = inputs.read_classes(path, "--tags")
    return bt.Relevance.from_classes(y[:4], y).totals()


add("labels.txt", "text", ".txt", lambda p: p.write_text("\n".join(map(str, Y))), _use_labels)
add("labels.npy", "npy", ".npy", lambda p: np.save(p, np.array(["a", "b", "é"])[Y]), _use_labels)


def _write_run(path):
    lines = [f"q{q} Q0 d{d} {r} {10 - r} tag" for q in range(4) for r, d in enumerate((3, 1, 4, 2))]
    path.write_text("\n".join(lines) + "\n")
    path.with_name("qrels").write_text(
        "\n".join(f"q{q} 0 d{q % 5} {q % 3}" for q in range(5)) + "\n"
    )


def _use_run(path):
    return scores_of(bt.TieProfile.from_trec(path, path.with_name("qrels")))


def _write_qrels(path):
    _write_run(path.with_name("run"))
    path.with_name("qrels").rename(path)


add("TREC run", "text", ".run", _write_run, _use_run)
add("TREC qrels", "text", ".qrels", _write_qrels,
    lambda p: scores_of(bt.TieProfile.from_trec(p.with_name("run"), p)))  # fmt: skip

# Profiles, indexes, models.


def _profile():
    return bt.TieProfile.from_codes(CODES[:6], CODES, bt.Relevance.from_matrix(GAINS))


def _real_profile():
    distances = _rng.random((6, N)).round(1)
    return bt.TieProfile.from_distances(distances, bt.Relevance.from_matrix(GAINS))


def _use_profile(path):
    found = bt.TieProfile.load(path)
    metrics = [name for name in METRICS if found.distances is None or "@r" not in name]
    scores = bt.evaluate(found, metrics)
    return found.counts, found.distances, [scores[name].mean for name in metrics]


add("profile", "npz", ".npz", lambda p: _profile().save(p), _use_profile, is_ours=True)
add(
    "profile of distances",
    "npz",
    ".npz",
    lambda p: _real_profile().save(p),
    _use_profile,
    is_ours=True,
)


def _index_formats():
    for name, kind in (("flat", bt.FlatIndex), ("multi", bt.MultiIndex), ("table", bt.TableIndex)):

        def make(path, kind=kind):
            kind(CODES).save(path)

        def use(path, mmap=False, kind=kind):
            found = kind.load(path, mmap=mmap)
            queries = bt.Codes.from_bits(np.arange(3 * found.n_bits).reshape(3, -1) % 3 == 0)
            hits, near = found.search(queries, k=5), found.within(queries, radius=3)
            return hits.ids, hits.distances, near.ids, near.distances

        add(f"index ({name})", "npz", ".npz", make, use, is_ours=True)
        add(f"index ({name}, mapped)", "npz", ".npz", make, lambda p, use=use: use(p, mmap=True))


_index_formats()

QUICK = {
    **{name: {"n_epochs": 1} for name in ("dpsh", "dtsh", "csq", "talr")},
    "bre": {"n_sweeps": 1, "n_landmarks": 6, "n_pairs": 8},
    "ksh": {"n_steps": 5},
    "fasthash": {"n_sweeps": 1, "n_trees": 3},
    "structhash": {"n_queries": 10, "n_relevant": 3, "n_irrelevant": 3},
}


def _use_hasher(path):
    found = bt.hashing.load(path)
    rows = np.resize(X, (5, found.n_features_in_)).astype(np.float32)
    return found.encode(rows)


def _use_pairs(path):
    return bt.hashing.load(path).encode(images=X[:5])


def _hasher_formats():
    from bittern.hashing import HASHERS

    for name, kind in HASHERS.items():

        def make(path, name=name, kind=kind):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                kind(n_bits=4, random_state=0, **QUICK.get(name, {})).fit(X, Y).save(path)

        add(f"model ({name})", "npz", ".npz", make, _use_hasher, is_ours=True,
            short=name in ("lsh", "itq", "agh", "npq"))  # fmt: skip
    from bittern.hashing.crossmodal import CROSSMODAL

    for name in ("cca-itq", "cmfh", "cm-talr"):

        def make_pairs(path, kind=CROSSMODAL[name]):
            kind(n_bits=4, random_state=0).fit(X, X[:, ::-1].copy(), Y).save(path)

        add(f"model ({name})", "npz", ".npz", make_pairs,
            _use_pairs, is_ours=True, short=False)  # fmt: skip


_hasher_formats()


def _quantiser_formats():
    from bittern.quantise import QUANTISERS

    sizes = {"int8": {}, "pq": {"n_bytes": 3}, "opq": {"n_bytes": 3}}
    wide = np.random.default_rng(3).standard_normal((300, 16)).astype(np.float32)
    for name, kind in QUANTISERS.items():

        def make(path, name=name, kind=kind):
            from bittern.quantise import product

            product.N_ITERATIONS, product.N_ROTATIONS = 2, 1
            options = {} if name == "int8" else {"n_bytes": sizes.get(name, {}).get("n_bytes", 4)}
            try:
                made = kind(**options)
                made.fit(wide)
            except (TypeError, bt.errors.InputError):
                made = kind().fit(wide)
            made.save(path)

        def use(path):
            from bittern.quantise.storage import load

            found = load(path)
            rows = np.resize(wide, (4, found.n_features_in_)).astype(np.float32)
            stored = found.encode(rows)
            return stored.bytes, found.distances(rows, stored)

        short = name in ("rabitq", "sign", "tcq")
        add(f"quantiser ({name})", "npz", ".npz", make, use, is_ours=True, short=short)


_quantiser_formats()


def _quantised(path):
    quantiser = bt.quantise.QUANTISERS["int8"]().fit(X)
    quantiser.save(path.with_name("quantiser.npz"))
    bt.QuantisedIndex(quantiser, quantiser.encode(X)).save(path)


def _use_quantised(path):
    from bittern.quantise.storage import load

    found = bt.QuantisedIndex.load(path, load(path.with_name("quantiser.npz")))
    return found.search(X[:3], k=4).ids


add("quantised index", "npz", ".npz", _quantised, _use_quantised, is_ours=True)


def _rabitq(path):
    quantiser = bt.quantise.QUANTISERS["rabitq"](centres=False, bits=1).fit(X)
    quantiser.save(path.with_name("quantiser.npz"))
    from bittern.index.rabitq_files import write_faiss_rabitq

    write_faiss_rabitq(
        path, bt.QuantisedIndex(quantiser, quantiser.encode(X), ids=np.arange(N) * 3)
    )


def _use_rabitq(path):
    from bittern.index.rabitq_files import read_faiss_rabitq
    from bittern.quantise.storage import load

    found = read_faiss_rabitq(path, load(path.with_name("quantiser.npz")))
    return found.ids, found.stored.bytes, found.search(X[:3], k=4).ids


add("FAISS RaBitQ", "", ".faiss", _rabitq, _use_rabitq)


def _exchange_formats():
    endings = {
        "faiss": "",
        "pgvector": "text",
        "pgvector-copy": "",
        "sqlite-vec": "",
        "usearch": "",
    }
    endings |= {"vespa": "jsonl", "parquet": "", "arrow": "", "ubinary": "npy", "binary": "npy"}
    for kind, inside in endings.items():
        has_ids = kind not in ("ubinary", "binary")

        def make(path, kind=kind, has_ids=has_ids):
            CODES.to(kind, path, ids=np.arange(N) * 2 if has_ids else None)

        def use(path, kind=kind):
            found = bt.store.read_items(kind, path, n_bits=BITS)
            return found.codes, found.ids, repr(found.metadata)

        slow = kind in ("sqlite-vec", "usearch")
        ending = {"npy": ".npy", "text": ".csv", "jsonl": ".jsonl"}.get(inside, f".{kind}")
        add(f"for {kind}", inside, ending, make, use, short=not slow)


_exchange_formats()

# Features, images, networks.


def _extracted(path):
    from bittern.features.extracted import write_features

    others = {
        "paths": [f"a/{i}.png" for i in range(5)],
        "labels": np.array([0, 1, -1, 0, 1]),
        "class_names": ["x", "y"],
        "skipped": ["b.png"],
        "skipped_reasons": ["it is empty"],
        "fitted_on": [],
    }
    write_features(path, others, {"colour": [X[:5]]}, {"colour": {"n_bins": "4"}})


def _use_extracted(path):
    found = bt.features.load_features(path)
    rows = {name: found[name] for name in found.features}
    return rows, found.paths, found.labels, found.class_names, found.skipped, found.fitted_on


add("features", "npz", ".npz", _extracted, _use_extracted, is_ours=True)


def _feature(path):
    images = _rng.integers(0, 255, (6, 20, 20, 3)).astype(np.uint8)
    bt.features.FEATURES["bag-of-words"]().fit([f"cat dog {i}" for i in range(9)]).save(path)
    return images


def _use_feature(path):
    from bittern.features.storage import load

    return load(path).transform(["cat dog", "3 dog"])


add("feature (bag of words)", "npz", ".npz", _feature, _use_feature, is_ours=True)


def _png(path):
    from PIL import Image

    Image.fromarray(_rng.integers(0, 255, (9, 11, 3)).astype(np.uint8)).save(path)


def _use_image(path):
    from bittern.data.exif import read_facts
    from bittern.data.images import read_image

    return read_image(path), read_facts(path)


def _jpeg(path):
    from PIL import Image

    image = Image.fromarray(_rng.integers(0, 255, (16, 24, 3)).astype(np.uint8))
    exif = image.getexif()
    exif[306], exif[271], exif[274] = "2020:01:02 03:04:05", "Maker", 6
    image.save(path, exif=exif)


def _picture(path):
    from PIL import Image

    Image.fromarray(np.random.default_rng(4).integers(0, 255, (9, 11, 3)).astype(np.uint8)).save(
        path
    )


for ending in (".gif", ".tif", ".webp", ".bmp", ".ppm"):
    add(f"image{ending}", "", ending, _picture, _use_image)
add("image.png", "png", ".png", _png, _use_image)
add("image.jpg", "", ".jpg", _jpeg, _use_image)


def _onnx(path):
    import onnx
    from onnx import TensorProto, helper

    shape = ["n", 3, 8, 8]
    pool = helper.make_node("GlobalAveragePool", ["images"], ["features"])
    graph = helper.make_graph(
        [pool], "g",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, ["n", 3, 1, 1])],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    onnx.checker.check_model(model)


def _use_onnx(path):
    images = (np.arange(2 * 8 * 8 * 3) % 251).reshape(2, 8, 8, 3).astype(np.uint8)
    return bt.features.FEATURES["deep"](model=str(path)).fit(images).transform(images)


add("network.onnx", "", ".onnx", _onnx, _use_onnx, short=False)

# Datasets as they are published.


def _idx(path):
    images = _rng.integers(0, 255, (5, 4, 4)).astype(np.uint8)
    path.write_bytes(b"\0\0\x08\x03" + np.array(images.shape, ">u4").tobytes() + images.tobytes())


def _use_idx(path):
    from bittern.data.readers.mnist import read_idx

    return read_idx(path)


def _fvecs(path):
    rows = np.hstack([np.full((N, 1), DIM, "<i4").view("<f4"), X.astype("<f4")])
    path.write_bytes(rows.tobytes())


def _use_fvecs(path):
    from bittern.data.readers.sift1m import read_vectors

    return read_vectors(path)


def _pickle(path):
    import pickle

    path.write_bytes(pickle.dumps({b"data": X.astype(np.uint8), b"labels": Y.tolist()}, protocol=2))


def _use_pickle(path):
    from bittern.io.pickles import read_pickle

    return read_pickle(path.read_bytes(), path.name)


def _tar(path):
    with tarfile.open(path, "w:gz") as archive:
        for name, content in (("d/a.txt", b"hello" * 50), ("d/b.txt", b"world")):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))


def _use_archive(path):
    from bittern.io.archives import read_members

    return dict(read_members(path, {"d/a.txt": 1000, "d/b.txt": 1000}))


def _split(path):
    from bittern.data.splits.base import Split

    kept = np.arange(N)
    Split(name="s", n_items=N, train=kept[:8], queries=kept[8:12], database=kept[12:]).save(path)


def _use_split(path):
    from bittern.data.splits.base import Split

    found = Split.load(path)
    return str(found), dict(found.sets)


def _manifest(path):
    (path.parent / "a.png").write_bytes(b"x")
    (path.parent / "b.png").write_bytes(b"y")
    path.write_text('path,label,tags,text\na.png,cat,big;red,one cat\nb.png,dog,small,"a, dog"\n')


def _use_manifest(path):
    from bittern.data.manifest import read_manifest

    return repr(read_manifest(path, path.parent))


def _metadata(path):
    rows = [{"file": f"{i}.png", "year": 2000 + i, "who": "me", "ok": True} for i in range(5)]
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")


def _use_metadata(path):
    from bittern.data.metadata_files import read_metadata

    found = read_metadata(path, path.parent, [f"{i}.png" for i in range(5)])
    return repr(found.rows), found.columns, found.unmatched


def _captions(path):
    path.write_text('image,caption\na.png,one cat\nb.png,"a, dog"\na.png,again\n')


def _use_captions(path):
    from bittern.data.caption_files import captions_of_images

    return repr(captions_of_images(path, path.parent, ["a.png", "b.png"], is_partial=True))


def _old_torch(path):
    import torch

    tensors = {"weight": torch.from_numpy(X), "n": torch.arange(3)}
    torch.save(tensors, path, _use_new_zipfile_serialization=False)


def _use_old_torch(path):
    from bittern.io.old_torch import read_tensors

    return read_tensors(path)


def _hits(path):
    rows = np.repeat(np.arange(3), 4)
    found = {"query": rows, "id": np.arange(12) % 7, "distance": np.arange(12) / 4}
    if path.suffix == ".npz":
        np.savez(path, **found)
    else:
        lines = [",".join(map(str, row)) for row in zip(*found.values(), strict=True)]
        path.write_text("\n".join([",".join(found), *lines]) + "\n")


def _use_hits(path):
    from bittern.engines.hit_files import read_hits

    found = read_hits(path, 3)
    return found.ids, found.distances, found.offsets


add("captions.csv", "text", ".csv", _captions, _use_captions)
add("captions.jsonl", "jsonl", ".jsonl", lambda p: p.write_text(
    '{"image": "a.png", "caption": "one cat"}\n{"image": "b.png", "caption": "a dog"}\n'
), _use_captions)  # fmt: skip
add("weights (old PyTorch)", "", ".pth", _old_torch, _use_old_torch, short=False)
add("hits.npz", "npz", ".npz", _hits, _use_hits)
add("hits.csv", "text", ".csv", _hits, _use_hits)
add("idx images", "", ".idx", _idx, _use_idx)
add("fvecs", "", ".fvecs", _fvecs, _use_fvecs)
add("pickled batch", "", ".pkl", _pickle, _use_pickle)
add("tar archive", "", ".tar.gz", _tar, _use_archive)
add("split", "npz", ".npz", _split, _use_split, is_ours=True)
add("manifest", "text", ".csv", _manifest, _use_manifest)
add("metadata.jsonl", "jsonl", ".jsonl", _metadata, _use_metadata)

# Experiments.

PROTOCOL = """
title = "Three classes"
n_bits = [4, 8]
runs = 2
metrics = ["ap", "precision@5", "auprc"]

[dataset]
name = "arrays"
path = "data.npz"

[split]
name = "improved"
sizes = { train = 20, queries = 8, validation_queries = 6, validation_database = 10 }

[[method]]
name = "exact"
label = "float ranking"

[[method]]
name = "lsh"

[[method]]
name = "itq"
grid = { n_iter = [1, 5] }

[search]
repeats = 2
"""


def _use_protocol(path):
    from bittern.experiments import Protocol, cells_of, trials_of

    found = Protocol.load(path)
    cells = cells_of(found)[:50]
    return repr(found), [cell.fingerprint for cell in cells], len(trials_of(found))


def _experiment(path):
    """The folder of an experiment that was run; ``path`` is one of its records."""
    from bittern.experiments import run

    folder = path.parent
    rng = np.random.default_rng(5)
    y = np.arange(90) % 3
    np.savez(folder / "data.npz", vectors=rng.standard_normal((90, 5)) + y[:, None], labels=y)
    text = PROTOCOL.partition("[search]")[0].replace("grid = { n_iter = [1, 5] }", "")
    plain = text.replace('"data.npz"', f'"{folder / "data.npz"}"')
    (folder / "p.toml").write_text(plain.replace("n_bits = [4, 8]", "n_bits = [8]"))
    run(folder / "p.toml", folder / "found", jobs=1)
    chosen = sorted((folder / "found" / "cells").glob("**/lsh*"))[0]
    (folder / "place").write_text(str(chosen.relative_to(folder)))
    shutil.copyfile(chosen, path)


def _use_record(path):
    from bittern.experiments import Record

    found = Record.load(path)
    return repr(found.values), found.n_relevant, repr(found.curves), found.seconds, found.split


def _use_experiment(path):
    from bittern.analysis import analyse
    from bittern.experiments import Records
    from bittern.report import to_csv, to_latex, to_markdown, to_text
    from bittern.report.page import page_of

    folder = path.parent
    shutil.copyfile(path, folder / (folder / "place").read_text())
    records = Records.read(folder / "found")
    analysis = analyse(records)
    texts = [form(analysis) for form in (to_text, to_csv, to_latex, to_markdown)]
    rows = records.rows(), records.per_query_rows()
    return texts, repr(rows), len(page_of(analysis))


add("protocol", "text", ".toml", lambda p: p.write_text(PROTOCOL), _use_protocol)
add("record", "json.gz", ".json.gz", _experiment, _use_record, is_ours=True)
add("experiment", "json.gz", ".json.gz", _experiment, _use_experiment, is_ours=True, short=False)

# Shards, collections, and what is stored beside them.


def _known_pairs(path):
    from bittern.index.near_codes import NearCodes
    from bittern.store.coded_images import CodedImages
    from bittern.store.known_pairs import write_known
    from bittern.store.recipe import Recipe

    names = tuple(f"{i}.png" for i in range(N))
    items = CodedImages("place", names, (None,) * N, CODES, Recipe(), tuple("1 2" for _ in names))
    write_known(path, items, NearCodes.of(CODES, 4))


def _use_known_pairs(path):
    from bittern.store.known_pairs import read_known

    found = read_known(path)
    return found.near.words, found.near.pairs, list(found.images), found.hash_name


def _decisions(path):
    from bittern.store.decisions import FORMAT, VERSION

    known = {"1": "keep", "5": "reject"}
    path.write_text(json.dumps({"format": FORMAT, "version": VERSION, "decisions": known}))


def _use_decisions(path):
    from types import SimpleNamespace

    from bittern.store.decisions import SUFFIX, Decisions

    place = path.with_name("a")
    shutil.copyfile(path, f"{place}{SUFFIX}")
    return Decisions(SimpleNamespace(folder=path.parent, place=place)).read()


add("known pairs", "npz", ".npz", _known_pairs, _use_known_pairs, is_ours=True)
add("decisions", "json", ".json", _decisions, _use_decisions)


def _shards(path):
    folder = path.parent / "shards"
    bt.scale.Shards.create(folder, CODES, shard_size=10, labels=Y, ids=np.arange(N) * 3)
    shutil.move(folder / "shards.json", path)


def _use_shards(path):
    folder = path.parent / "shards"
    shutil.copyfile(path, folder / "shards.json")
    scores = bt.scale.evaluate(CODES[:3], folder, bt.scale.Classes(Y[:3]), ["ap"])
    return scores["ap"].mean, bt.scale.search(CODES[:3], folder, k=3).ids


def _shard(path):
    folder = path.parent / "shards"
    bt.scale.Shards.create(folder, CODES, shard_size=10, labels=Y)
    chosen = sorted(folder.glob("**/*.np[yz]"))[0]
    (path.parent / "place").write_text(str(chosen))
    shutil.copyfile(chosen, path)


def _use_shard(path):
    place = Path((path.parent / "place").read_text())
    shutil.copyfile(path, path.parent / "shards" / place.name)
    return bt.scale.search(CODES[:3], path.parent / "shards", k=3).ids


add("manifest of shards", "json", ".json", _shards, _use_shards)
add("shard", "npy", ".npy", _shard, _use_shard, is_ours=True)


def _collection(path):
    with bt.store.create(path, n_bits=BITS) as made:
        made.add(CODES, metadata={"label": [f"l{y}" for y in Y], "n": list(range(N))})
        made.delete([3])


def _use_collection(path):
    with bt.store.open(path, read_only=True) as found:
        return _answers(found)


def _answers(found):
    queries = bt.Codes.from_bits(np.arange(2 * found.n_bits).reshape(2, -1) % 3 == 0)
    items = found.get(found.ids[:4])
    hits = found.search(queries, k=3, where="label = 'l1'"), found.within(queries, 4)
    return hits[0].ids, hits[1].ids, items.codes, repr(items.metadata), found.count("n > 5")


def _write_to_collection(path):
    with bt.store.open(path) as found:
        before = _answers(found)
        found.add(
            bt.Codes.from_bits(np.zeros((2, found.n_bits), bool)), metadata=[{"n": 1}, {"n": 2}]
        )
        found.delete([0])
        return before, _answers(found)


add("collection", "", ".bittern", _collection, _use_collection, is_ours=True, short=False)
add(
    "collection, written to",
    "",
    ".bittern",
    _collection,
    _write_to_collection,
    is_ours=True,
    short=False,
)
