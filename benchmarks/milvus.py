"""Codes from shards into Milvus, searched there, and audited against the exact answer.

    python benchmarks/milvus.py [--sizes 1e5,1e6] [--queries 200] [--server milvus://host:port]

Codes of 64 bits are clustered: half are random, and the others are copies of them with up to eight
bits flipped; queries are such copies too.  They are cut into shards, which fill a collection, in
Milvus Lite unless a server is given.  Milvus's own search is timed, by its exact index
BIN_FLAT, and on a server also by BIN_IVF_FLAT at several `nprobe`.  Every answer is audited: recall
with ties counted fairly, and what a comparison of ids would say on average.  Then our own index
answers the same queries.  Times are of the clock, of one client.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import bittern as bt
from bittern.io.milvus import MilvusAddress, connect
from bittern.scale import Shards
from bittern.store.building import build_collection

N_BITS, MOST_FLIPS, K = 64, 8, 10
PROBES = (1, 8, 64)


def main() -> None:
    """Measure every size and print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="1e5", help="numbers of codes")
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--server", help="address of a server; by default Milvus Lite")
    options = parser.parse_args()
    for size in options.sizes.split(","):
        with tempfile.TemporaryDirectory() as folder:
            measure(int(float(size)), options.queries, options.server, Path(folder))


def measure(n: int, n_queries: int, server: str | None, folder: Path) -> None:
    """Fill a collection of n codes, search it, and print what was found."""
    codes, queries = clustered(n, n_queries)
    shards = Shards.create(folder / "shards", codes, shard_size=max(1, n // 10))
    place = f"milvus://{folder}/lite.db?collection=codes" if server is None else f"{server}/codes"
    began = time.perf_counter()
    build_collection(place, shards.folder, bt.store.Recipe())
    took = time.perf_counter() - began
    print(f"{n:,} codes of {N_BITS} bits, {len(shards)} shards: stored {n / took:,.0f} a second")
    address = MilvusAddress.parse(place)
    client = connect(address)
    client.load_collection(address.name)
    report("Milvus BIN_FLAT", queries, shards, lambda: search(client, address.name, queries, {}))
    if server is not None:  # Milvus Lite has the exact index alone
        index_lists(client, address.name, n)
        for n_probes in PROBES:
            wanted = {"nprobe": n_probes}
            report(
                f"Milvus BIN_IVF_FLAT, nprobe {n_probes}",
                queries,
                shards,
                lambda wanted=wanted: search(client, address.name, queries, wanted),
            )
    for name in (address.name, address.recipe_name):
        client.drop_collection(name)
    client.close()
    index = bt.MultiIndex(codes)
    index.search(queries[:1], K)
    report("MultiIndex", queries, shards, lambda: index.search(queries, K))


def report(name: str, queries: bt.Codes, shards: Shards, answer: Any) -> None:
    """Time a search and print its audit."""
    began = time.perf_counter()
    hits = answer()
    took = time.perf_counter() - began
    found = bt.audit(queries, shards, hits, k=K)
    means = found.means
    print(
        f"  {name:<28} {len(queries) / took:>9,.1f} queries/s  recall {means['recall']:.4f}  "
        f"by ids {means['expected_recall']:.4f} ({means['worst_recall']:.4f} at worst)"
    )
    for sentence in found.sentences():
        print(f"    {sentence}")


def search(client: Any, name: str, queries: bt.Codes, parameters: dict[str, int]) -> bt.Hits:
    """What Milvus itself answers."""
    found = client.search(
        name,
        [row.tobytes() for row in queries.to_packed("little")],
        limit=K,
        anns_field="code",
        search_params={"metric_type": "HAMMING", "params": parameters},
    )
    offsets = np.cumsum([0, *map(len, found)])
    ids = np.array([hit["id"] for one in found for hit in one], np.int64)
    return bt.Hits(ids, np.array([hit["distance"] for one in found for hit in one]), offsets)


def index_lists(client: Any, name: str, n: int) -> None:
    """Replace the exact index by inverted lists."""
    wanted = client.prepare_index_params()
    lists = {"nlist": max(16, int(n**0.5))}
    wanted.add_index("code", index_type="BIN_IVF_FLAT", metric_type="HAMMING", params=lists)
    client.flush(name)  # what is not flushed is not indexed, and is searched exactly
    client.release_collection(name)
    client.drop_index(name, "code")
    client.create_index(name, wanted)
    client.load_collection(name)


def clustered(n: int, n_queries: int) -> tuple[bt.Codes, bt.Codes]:
    """Random codes, and copies of them with some bits flipped; queries are such copies."""
    rng = np.random.default_rng(0)
    words = rng.integers(0, 1 << 64, (n + n_queries, 1), dtype=np.uint64)
    copies = np.arange(n // 2, n + n_queries)
    words[copies] = words[rng.integers(n // 2, size=len(copies))]
    n_flips = rng.integers(MOST_FLIPS + 1, size=len(copies))
    for flip in range(MOST_FLIPS):
        rows = copies[n_flips > flip]
        words[rows, 0] ^= np.uint64(1) << rng.integers(N_BITS, size=len(rows)).astype(np.uint64)
    codes = bt.Codes(words, N_BITS)
    return codes[:n], codes[n:]


if __name__ == "__main__":
    main()
