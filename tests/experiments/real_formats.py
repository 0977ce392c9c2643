"""Small files as the publishers of NUS-WIDE, LabelMe and SIFT1M write them, enough for a run."""

import numpy as np
import scipy.io
from format_true import write

N_CONCEPTS, N_WORDS, N_TAGS = 81, 500, 5018


def write_nuswide(folder, n=260, random_state=0):
    """``n`` images with one or two of 81 concepts; visual words and tags depend on the concepts."""
    rng = np.random.default_rng(random_state)
    tags = np.zeros((n, N_CONCEPTS), int)
    tags[np.arange(n), np.arange(n) % 30] = 1
    tags[np.arange(n), rng.integers(0, 40, n)] = 1
    words = rng.poisson(0.3 + 4 * (tags @ rng.random((N_CONCEPTS, N_WORDS)) ** 8))
    names = [f"concept{i:02d}" for i in range(N_CONCEPTS)]
    images = [f"actor\\{i:04d}_{2124494179 + i}.jpg" for i in range(n)]
    write(folder / "ImageList" / "Imagelist.txt", "".join(f"{name}\r\n" for name in images))
    write(folder / "ConceptsList" / "Concepts81.txt", "\n".join(names) + "\n")
    for name, column in zip(names, tags.T, strict=True):
        text = "".join(f"{bit}\n" for bit in column)
        write(folder / "Groundtruth" / "AllLabels" / f"Labels_{name}.txt", text)
    rows = "".join(" ".join(map(str, row)) + " \r\n" for row in words)
    write(folder / "Low_Level_Features" / "BoW_int.dat", rows)
    write_tags(folder / "NUS_WID_Tags", tags, rng)
    return folder


def write_tags(folder, concepts, rng):
    """Three tags of each concept of an image, and two others; the first ten images have none."""
    known = [f"tag{i:04d}" for i in range(N_TAGS)]
    write(folder / "Final_Tag_List.txt", "".join(f"{tag}\r\n" for tag in known))
    lines = []
    for i, row in enumerate(concepts):
        own = [3 * concept + j for concept in np.flatnonzero(row) for j in range(3)]
        chosen = [] if i < 10 else [*own, *rng.integers(300, N_TAGS, 2)]
        lines.append(f"{2124494179 + i}      {' '.join(known[tag] for tag in chosen)} \r\n")
    write(folder / "All_Tags.txt", "".join(lines))


def write_labelme(folder, n=220, random_state=0):
    """``n`` GIST descriptors in ten clusters."""
    folder.mkdir(parents=True, exist_ok=True)
    scipy.io.savemat(folder / "LabelMe_gist.mat", {"gist": clusters(n, 512, random_state)})
    return folder


def write_sift1m(folder, n=400, random_state=0):
    """``n`` base vectors, and the learning and query vectors that the publisher adds."""
    rows = np.round(100 * clusters(n + 30, 128, random_state)).astype("<f4")
    parts = {"base": rows[:n], "learn": rows[n : n + 20], "query": rows[n + 20 :]}
    for name, part in parts.items():
        lengths = np.full((len(part), 1), 128, "<i4")
        content = np.hstack([lengths.view("<f4"), part]).astype("<f4").tobytes()
        write(folder / f"sift_{name}.fvecs", content)
    return folder


def clusters(n, dim, random_state):
    """Rows around ten centres, not negative."""
    rng = np.random.default_rng(random_state)
    return np.abs(rng.random((10, dim))[np.arange(n) % 10] + 0.2 * rng.standard_normal((n, dim)))
