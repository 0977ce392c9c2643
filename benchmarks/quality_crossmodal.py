"""Average precision across modalities on Wiki and Corel-5K, beside the levels of our prototypes.

    python benchmarks/quality_crossmodal.py [NAME …] [--root DATA] [--records results] [--run]
        [--only run=0] [--jobs 2] [--write docs/results/crossmodal.md]

Reads the records of the protocols ``crossmodal-*``, which `bittern reproduce` makes; ``--run``
measures the missing cells first.  Every value is tie-aware, image → text / text → image, the mean
over runs.  A bound is the level that a prototype of the method reached with two or three seeds on
the same split, with settings chosen on training rows.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from results import Section, Target

from bittern.experiments import Records, run
from bittern.experiments.records import PROTOCOL
from bittern.io.protocol_files import find_protocol

BITS = (16, 32, 64)
WAYS = ("image → text", "text → image")
ROUNDING = 0.0005  # the levels have three digits
Pair = tuple[float, float]
Levels = dict[str, tuple[Pair | None, ...]]  # by method, at each of BITS
#: By protocol, metric and setting.
LEVELS: dict[tuple[str, str, str], Levels] = {
    ("crossmodal-wiki", "ap", "unseen"): {
        "CVH": ((0.203, 0.170), (0.199, 0.168), (0.202, 0.169)),
        "IMH": ((0.184, 0.156), (0.169, 0.143), (0.150, 0.130)),
        "PDH": ((0.210, 0.181), (0.204, 0.170), (0.195, 0.169)),
        "CMSSH": ((0.237, 0.184), (0.240, 0.193), (0.237, 0.192)),
        "SCM-seq": ((0.231, 0.189), (0.238, 0.195), (0.256, 0.204)),
        "CCA-ITQ": ((0.260, 0.208), (0.263, 0.215), (0.268, 0.217)),
        "RCMH": ((0.262, 0.199), (0.282, 0.214), (0.284, 0.221)),
        "DLFH": ((0.231, 0.181), (0.263, 0.206), (0.276, 0.219)),
        "DCH": ((0.270, 0.210), (0.285, 0.232), (0.301, 0.245)),
        "SCRATCH": ((0.281, 0.223), (0.299, 0.236), (0.308, 0.240)),
        "CM-TALR": ((0.296, 0.232), (0.302, 0.238), (0.298, 0.236)),
    },
    ("crossmodal-wiki", "ap", "seen"): {
        "SCM-seq": (None, (0.230, 0.227), None),
        "DCH": (None, (0.287, 0.369), None),
        "SCRATCH": (None, (0.302, 0.410), None),
        "CM-TALR": (None, (0.300, 0.338), None),
    },
    ("crossmodal-wiki", "ap", "leak"): {},
    ("crossmodal-corel5k", "ap", "unseen"): {
        "SCM-seq": ((0.208, 0.195), (0.337, 0.317), (0.388, 0.387)),
        "DCH": ((0.398, 0.388), (0.453, 0.447), (0.455, 0.452)),
        "SCRATCH": ((0.346, 0.345), (0.413, 0.412), (0.452, 0.443)),
        "CM-TALR": ((0.443, 0.435), (0.468, 0.470), (0.443, 0.438)),
    },
    ("crossmodal-corel5k-words", "ap", "unseen"): {
        "DCH": ((0.573, 0.552), (0.615, 0.596), (0.649, 0.624)),
        "SCRATCH": ((0.587, 0.561), (0.620, 0.592), (0.640, 0.620)),
        "CM-TALR": ((0.628, 0.610), (0.667, 0.650), (0.688, 0.667)),
    },
    ("crossmodal-corel5k-graded", "ndcg", "seen"): {
        "DCH": ((0.791, 0.805), (0.811, 0.828), (0.825, 0.845)),
        "SCRATCH": ((0.784, 0.802), (0.811, 0.831), (0.832, 0.855)),
        "CM-TALR-NDCG": ((0.802, 0.832), (0.820, 0.858), (0.831, 0.879)),
    },
}


def main() -> None:
    """Measure the missing cells if asked to, then compare with the levels."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known = sorted({name for name, *_ in LEVELS})
    parser.add_argument("names", nargs="*", default=[], help=f"of {', '.join(known)}")
    parser.add_argument("--root", type=Path, help="folder of the data (default: BITTERN_DATA)")
    parser.add_argument("--records", type=Path, default=Path("results"))
    parser.add_argument("--run", action="store_true", help="measure the missing cells first")
    parser.add_argument("--only", action="append", default=[], help="as of `bittern run`")
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--write", type=Path, help="write the tables into this Markdown file")
    options = parser.parse_args()
    sections = []
    for name in options.names or known:
        folder = options.records / name
        if options.run:
            chosen = {"root": options.root, "jobs": options.jobs, "wanted": options.only}
            run(find_protocol(name), folder, **chosen)
        if not (folder / PROTOCOL).exists():
            print(f"{name}: no records in {folder}; make them with --run.")
            continue
        records = Records.read(folder)
        sections += [table(records, *key) for key in LEVELS if key[0] == name]
    for section in sections:
        print(section.text(), end="\n\n")
    if options.write and sections:
        command = "python benchmarks/quality_crossmodal.py"
        Section.write(options.write, "quality-crossmodal", command, sections)
    raise SystemExit(0 if sections and all(section.holds for section in sections) else 1)


def table(records: Records, name: str, metric: str, setting: str) -> Section:
    """Methods by lengths and directions in one setting."""
    levels = LEVELS[name, metric, setting]
    columns = [f"{n} bits, {way}" for n in BITS for way in WAYS]
    section = Section(
        f"{records.protocol.title}: tie-aware {metric}, {setting} database",
        ("method", *columns, "runs"),
    )
    for method in records.methods:
        pairs = levels.get(method, (None,) * len(BITS))
        row = [
            entry(records, method, n_bits, metric, f"{way}, {setting}", pair and pair[i])
            for n_bits, pair in zip(BITS, pairs, strict=True)
            for i, way in enumerate(WAYS)
        ]
        if any(row):
            n_runs = len({r.run for r in records if r.method == method})
            section.row(method, *row, n_runs)
    absent = [method for method in levels if method not in records.methods]
    if absent:
        section.holds = False
        section.note(f"Not measured: {', '.join(absent)}.")
    return section


def entry(
    records: Records, method: str, n_bits: int, metric: str, task: str, level: float | None
) -> Target | str:
    """The mean over runs with its bound; empty if it was not measured."""
    found = [
        r.tasks[task].values[metric].mean for r in records.of(method, n_bits) if task in r.tasks
    ]
    if not found:
        return ""
    at_least = None if level is None else level - ROUNDING
    return Target(float(np.mean(found)), at_least=at_least)


if __name__ == "__main__":
    main()
