"""A first look: ``bittern demo`` compares four hash functions on handwritten digits."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bittern.cli.app import app, check_outputs, echo, handle_interrupt
from bittern.cli.report import PAGE
from bittern.cli.run import RESULTS, Jobs, LiveView

if TYPE_CHECKING:
    from bittern.experiments import Protocol, Records, Watcher

FOLDER = RESULTS / "demo"
NEEDS_TORCH = "talr"
DRAWN = "LSH"  # has many ties
COLLECTION, IMAGES, N_IMAGES, N_BITS = "shapes.bittern", "shapes", 800, 48  # of --explore


@app.command()
def demo(
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the records and the page (default: results/demo)."),
    ] = None,
    runs: Annotated[int, typer.Option(help="Number of runs.")] = 10,
    jobs: Jobs = None,
    plot: Annotated[
        Path | None, typer.Option(help="Also draw the effect of ties on LSH: .svg, .png or .pdf.")
    ] = None,
    random_state: Annotated[int, typer.Option(help="Seed for the splits and methods.")] = 0,
    explore: Annotated[
        bool,
        typer.Option(
            "--explore",
            help="Instead of comparing, draw a collection of captioned images, and open it in the "
            "browser.",
        ),
    ] = False,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="With --explore, only print the address.")
    ] = False,
) -> None:
    """Compare four hash functions on handwritten digits, and write a page (two minutes)."""
    check_outputs(plot=plot)
    folder = out or FOLDER
    if explore:
        open_explorer(folder, no_browser=no_browser)
        return
    protocol = protocol_of(runs, random_state)
    echo(introduction(protocol) + "\n")
    with handle_interrupt(), LiveView(protocol.main_metric) as live:
        records = run_demo(protocol, folder, jobs=jobs, watcher=live)
    echo(closing(records, folder))
    if plot is not None:
        draw(records, plot)
        echo(f"\nThe figure is in {plot}.")
    if records.failures:
        raise typer.Exit(1)


def open_explorer(folder: Path, *, no_browser: bool) -> None:
    """Make the demo's own collection, if it is not there, and open it in the browser."""
    from bittern.cli.explore import explore
    from bittern.cli.serve import NEEDED
    from bittern.extras import require

    require({"demo --explore": (*NEEDED, "duckdb", "snowballstemmer")})
    path = folder / COLLECTION
    if not path.exists():
        echo(f"Drawing {N_IMAGES:,} images with captions, and making {path} of them ...")
        with handle_interrupt():
            make_collection(folder)
    explore(str(path), no_browser=no_browser)


def make_collection(folder: Path, n: int = N_IMAGES) -> Path:
    """Draw captioned images in a folder, and make a collection that images and texts search."""
    from bittern.data import load
    from bittern.data.export import CAPTIONS, MANIFEST, write_folder
    from bittern.store.building import build_collection, make_recipe

    images, path = folder / IMAGES, folder / COLLECTION
    if not images.exists():
        write_folder(load("captions", n=n, side=96, classes="colour"), images)
    recipe = make_recipe("cca-itq", N_BITS, features="colour-structure", texts="bag-of-words")
    build_collection(path, images, recipe, metadata=images / MANIFEST, texts=images / CAPTIONS)
    return path


def protocol_of(runs: int = 10, random_state: int = 0) -> Protocol:
    """The protocol of the demo; without TALR if PyTorch is missing."""
    from bittern.experiments import Protocol
    from bittern.io.protocol_files import shipped

    protocol = Protocol.load(shipped()["demo"])
    methods = tuple(m for m in protocol.method if m.name != NEEDS_TORCH or _has_torch())
    return replace(protocol, runs=runs, random_state=random_state, method=methods)


def introduction(protocol: Protocol) -> str:
    """What the demo measures."""
    methods = ", ".join(protocol.labels[1:])
    lengths = ", ".join(map(str, protocol.n_bits[:-1]))
    runs = f"{protocol.runs} runs" if protocol.runs > 1 else "one run"
    lines = [
        "1,797 handwritten digits of 8 × 8 grey levels. How well do codes of "
        f"{lengths} and {protocol.n_bits[-1]} bits",
        f"from {methods} find digits of the same class? Measured in {runs}",
        "of a split where neither queries nor database are seen in training.",
    ]
    if not _has_torch():
        lines.append("(Without TALR, which needs PyTorch: pip install 'bittern[deep]'.)")
    return "\n".join(lines)


def run_demo(
    protocol: Protocol,
    folder: Path = FOLDER,
    *,
    jobs: int | None = None,
    watcher: Watcher | None = None,
) -> Records:
    """Measure the missing cells, and write the page."""
    from bittern.experiments import run
    from bittern.report import write_page

    records = run(protocol, folder, jobs=jobs, watcher=watcher)
    if len(records):
        write_page(records, folder / PAGE)
    return records


def closing(records: Records, folder: Path) -> str:
    """The table, where the page is, and what to try next."""
    from bittern.report import to_text

    next_steps = {
        f"bittern demo --explore{_out(folder)}": "open a collection of its own in the browser",
        f"bittern explore {folder}": "look at these results query by query",
        f"bittern verify {folder}": "measure a cell again and compare to the last bit",
        "bittern reproduce": "list the papers' tables and figures",
        "bittern advise --vectors X.npy": "find how few bytes your own vectors need",
    }
    width = max(map(len, next_steps))
    return "\n".join(
        [
            to_text(records).rstrip(),
            "",
            f"The page, with images: {(folder / PAGE).resolve()}",
            "",
            "Things to try next:",
            *(f"  {command:{width}}   {purpose}" for command, purpose in next_steps.items()),
        ]
    )


def draw(records: Records, path: Path) -> None:
    """Draw the range of LSH's average precision over all orders of tied items."""
    from bittern.analysis import summarise
    from bittern.report.plots import draw_tie_spread

    found = [s for s in summarise(records, "ap") if s.method == DRAWN]
    spreads = [s.spread or (s.mean, s.mean) for s in found]
    draw_tie_spread(
        path,
        [s.n_bits or 0 for s in found],
        [s.mean for s in found],
        [worst for worst, _ in spreads],
        [best for _, best in spreads],
        title="Digits under random-hyperplane codes",
    )


def _out(folder: Path) -> str:
    """The option that names the folder, if it is not the default."""
    return "" if folder == FOLDER else f" --out {folder}"


def _has_torch() -> bool:
    return find_spec("torch") is not None
