"""Plots: the same bytes for the same numbers, without a display, never half a file."""

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from processes import seconds

import bittern as bt
from bittern.errors import FileError, InputError, MissingExtraError
from bittern.report import plots
from bittern.report.plots import (
    draw_pr_curves,
    draw_tables,
    draw_tie_spread,
    figure_format,
)
from bittern.tables import compare_with_ranking

MICRO = bt.Curve(np.array([0.0, 0.25, 1.0]), np.array([np.nan, 0.8, 0.3]), np.arange(3.0))
INTERPOLATED = bt.Curve(np.arange(11) / 10, np.linspace(0.9, 0.2, 11))


def draw_curves(path):
    draw_pr_curves(path, MICRO, INTERPOLATED, title="A < B & C")


def draw_spread(path):
    draw_tie_spread(path, [8, 16, 32], [0.2, 0.3, 0.4], [0.1, 0.25, 0.38], [0.4, 0.38, 0.42])


def draw_settings(path):
    codes = bt.Codes.from_bits((np.arange(64)[:, None] >> np.arange(6)) & 1)
    truth = bt.Relevance.from_classes(np.arange(64) // 8, np.arange(64) // 8)
    surface = bt.table_surface(codes, codes, truth, bits_per_table=[2, 3, 6], n_tables=[1, 2])
    profile = bt.TieProfile.from_codes(codes, codes, truth)
    draw_tables(path, compare_with_ranking(surface, profile), title="A < B & C")


DRAW = pytest.mark.parametrize("draw", [draw_curves, draw_spread, draw_settings])


@DRAW
@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
def test_the_same_numbers_give_the_same_file(tmp_path, draw, ending):
    first, again = tmp_path / f"first.{ending}", tmp_path / f"again.{ending}"
    draw(first)
    draw(again)
    assert first.read_bytes() == again.read_bytes()


def test_other_numbers_give_another_file(tmp_path):
    draw_curves(tmp_path / "one.svg")
    draw_pr_curves(tmp_path / "other.svg", MICRO, MICRO, title="A < B & C")
    assert (tmp_path / "one.svg").read_bytes() != (tmp_path / "other.svg").read_bytes()


@DRAW
def test_an_svg_is_well_formed(tmp_path, draw):
    draw(tmp_path / "figure.svg")
    assert ET.parse(tmp_path / "figure.svg").getroot().tag.endswith("svg")


@DRAW
def test_drawing_leaves_matplotlib_as_it_was(tmp_path, draw):
    before = dict(matplotlib.rcParams)
    draw(tmp_path / "figure.svg")
    assert dict(matplotlib.rcParams) == before


def test_no_display_and_no_pyplot_are_needed(tmp_path):
    # A backend that cannot start, as on a machine without a screen; pyplot would try it.
    code = """
import sys
sys.path.insert(0, sys.argv[1])
import test_plots
test_plots.draw_curves(sys.argv[2])
assert "matplotlib.pyplot" not in sys.modules
"""
    folder, path = str(Path(__file__).parent), tmp_path / "figure.png"
    done = subprocess.run(
        [sys.executable, "-c", code, folder, str(path)],
        env={
            "PATH": "",
            "HOME": str(tmp_path),
            "MPLBACKEND": "tkagg",
            "PYTHONPATH": os.pathsep.join(
                str(path) for path in (Path(bt.__file__).parents[1], Path(__file__).parents[1])
            ),
        },
        capture_output=True,
        timeout=seconds(60),
    )
    assert done.returncode == 0, done.stderr
    assert path.stat().st_size > 5000


@DRAW
def test_a_figure_is_written_whole_or_not_at_all(tmp_path, draw, monkeypatch):
    path = tmp_path / "figure.svg"
    path.write_text("old")

    def half(self, file, **_):
        file.write(b"<?xml half a figure")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", half)
    with pytest.raises(FileError, match="No space left"):
        draw(path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("name", "kind"), [("a.svg", "svg"), ("a.PNG", "png"), ("a.b.pdf", "pdf"), (".x/y.Svg", "svg")]
)
def test_the_ending_chooses_the_format(name, kind):
    assert figure_format(name) == kind


@pytest.mark.parametrize("name", ["a.jpg", "a", "svg", ".svg", "a.svg.gz", "a."])
def test_another_ending_is_refused(name):
    with pytest.raises(InputError, match=r"written as \.svg, \.png or \.pdf, got "):
        figure_format(name)


@DRAW
def test_a_refused_ending_writes_nothing(tmp_path, draw):
    with pytest.raises(InputError, match=r"got \.jpg"):
        draw(tmp_path / "figure.jpg")
    assert not list(tmp_path.iterdir())


def test_the_curves_are_the_numbers_given(tmp_path, monkeypatch):
    drawn = {}
    monkeypatch.setattr(plots, "_save", lambda figure, path: drawn.update(figure=figure))
    draw_curves(tmp_path / "figure.svg")
    (axes,) = drawn["figure"].axes
    micro, interpolated = (line.get_xydata().tolist() for line in axes.lines)
    assert micro == [[0.25, 0.8], [1.0, 0.3]]  # the point without precision is left out
    assert interpolated == np.column_stack([INTERPOLATED.recall, INTERPOLATED.precision]).tolist()
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("recall", "precision")
    assert len(axes.get_legend().get_texts()) == 2


def test_the_band_reaches_from_the_worst_to_the_best(tmp_path, monkeypatch):
    drawn = {}
    monkeypatch.setattr(plots, "_save", lambda figure, path: drawn.update(figure=figure))
    draw_spread(tmp_path / "figure.svg")
    (axes,) = drawn["figure"].axes
    band = axes.collections[0].get_paths()[0].vertices[:, 1]
    assert (band.min(), band.max()) == (0.1, 0.42)
    assert [label.get_text() for label in axes.get_xticklabels()] == ["8", "16", "32"]
    assert axes.get_ylim() == (0, pytest.approx(1.15 * 0.42))


def test_without_matplotlib_a_sentence_names_the_extra(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # as if it were not installed
    with pytest.raises(
        MissingExtraError, match=r"needs Matplotlib; pip install 'bittern\[plots\]'"
    ):
        draw_curves(tmp_path / "figure.svg")
    np.save("codes.npy", np.eye(4, dtype=bool))
    code, out, err = run("evaluate", "codes.npy", "--query-labels", "no.npy", "--plot", "x.svg")
    assert (code, out) == (2, "")
    assert err == "bittern: --plot: needs Matplotlib; pip install 'bittern[plots]'.\n"
    assert [path.name for path in tmp_path.iterdir()] == ["codes.npy"]
