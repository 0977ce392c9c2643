"""Small files as the publisher of CIFAR-10 writes them."""

import tarfile

import numpy as np
import python2

NAMES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
BATCHES = [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]


def image(number, n=2):
    """Rows of red, green and blue planes, each row by row; red at (y, x) is number + y + 2x."""
    y, x = np.mgrid[:32, :32]
    planes = [number + y + 2 * x, 100 + y, 200 + 0 * x]
    return [np.stack([p + i for p in planes]).astype(np.uint8).tobytes() for i in range(n)]


def write_pickles(folder, n=2):
    folder.mkdir(parents=True)
    for i, name in enumerate(BATCHES):
        files = [b"%s_%d.png" % (name.encode(), j) for j in range(n)]
        content = python2.batch(image(i, n), [(i + j) % 10 for j in range(n)], files)
        (folder / name).write_bytes(content)
    (folder / "batches.meta").write_bytes(python2.meta([name.encode() for name in NAMES]))
    return folder


def write_binary(folder, n=2):
    folder.mkdir(parents=True)
    for i, name in enumerate(BATCHES):
        rows = [bytes([(i + j) % 10]) + row for j, row in enumerate(image(i, n))]
        (folder / f"{name}.bin").write_bytes(b"".join(rows))
    (folder / "batches.meta.txt").write_text("\n".join(NAMES) + "\n\n")
    return folder


def packed(folder, target):
    with tarfile.open(target, "w:gz") as archive:
        archive.add(folder, folder.name)
    return target
