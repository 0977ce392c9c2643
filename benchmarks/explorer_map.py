"""Frame times of the explorer's map in Chromium: the first drawing, then moving, zooming, a lasso.

``python benchmarks/explorer_map.py`` makes a collection of clustered random codes, opens its codes
view, and prints a table in Markdown.  A frame is the time from one ``requestAnimationFrame`` to the
next, a drawing the part of it that is spent in the map.  The browser has no graphics card here.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "web"))

from browser import Page, served, start_browser

import bittern as bt
from bittern import store
from bittern.cli.explore import opened

N_CLASSES, N_BITS, FLIPPED, FRAMES = 20, 64, 0.12, 120
# Events as a pointer sends them, one in each frame; times are those between frames.
DRIVE = """
const [kind, n, done] = arguments;
const canvas = document.querySelector("canvas.map");
const box = canvas.getBoundingClientRect();
const send = (type, x, y, more = {}) => canvas.dispatchEvent(
  new (type === "wheel" ? WheelEvent : PointerEvent)(type, { bubbles: true, cancelable: true,
    pointerId: 1, clientX: box.left + x, clientY: box.top + y, ...more }));
canvas.setPointerCapture = () => {};
if (kind === "lasso")
  [...document.querySelectorAll("button")].find((one) => one.textContent === "Lasso").click();
const at = (i) => [box.width / 2 + (box.width / 3) * Math.cos((6.28 * i) / n),
                   box.height / 2 + (box.height / 3) * Math.sin((6.28 * i) / n)];
const frames = [], drawings = [];
let last = null, i = 0;
if (kind !== "zoom") send("pointerdown", ...at(0));
const step = (now) => {
  if (last !== null) {
    frames.push(now - last);
    drawings.push(Number(canvas.dataset.milliseconds));
  }
  last = now;
  i += 1;
  if (i > n) {
    const began = performance.now();
    if (kind !== "zoom") send("pointerup", ...at(n));
    done({ frames, drawings, last: performance.now() - began });
    return;
  }
  if (kind === "zoom") send("wheel", ...at(0), { deltaY: i < n / 2 ? -12 : 12 });
  else send("pointermove", ...at(i));
  requestAnimationFrame(step);
};
requestAnimationFrame(step);
"""


def make_collection(folder: Path, n: int) -> Path:
    """Codes about a few random centres, with the number of the centre as label."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, N_CLASSES, n)
    bits = rng.random((N_CLASSES, N_BITS))[labels] < 0.5
    bits ^= rng.random((n, N_BITS)) < FLIPPED
    path = folder / "clustered.bittern"
    with store.create(path, n_bits=N_BITS) as made:
        made.add(bt.Codes.from_bits(bits), metadata=[{"label": f"class {one}"} for one in labels])
    return path


def measure(page: Page, n: int) -> None:
    """Open the codes view, use the map, and print what it took."""
    page.driver.get(f"{page.address}/codes")
    canvas = page.one("canvas.map")
    page.until(lambda: canvas.get_attribute("data-milliseconds"), "the map")
    first = page.run("return performance.now()")  # since the page was asked for
    page.settled()
    drawing = float(canvas.get_attribute("data-milliseconds"))
    print(f"{n:,} points: drawn {first:,.0f} ms after the page was asked for.\n")
    print("| what | median frame | 99th percentile | longest | median drawing |")
    print("| --- | --: | --: | --: | --: |")
    print(f"| first drawing | – | – | – | {drawing:.1f} ms |")
    page.driver.set_script_timeout(120)
    for kind in ("move", "zoom", "lasso"):
        found = page.driver.execute_async_script(DRIVE, kind, FRAMES)
        frames = np.array(found["frames"])
        ends = (*np.percentile(frames, (50, 99)), frames.max(), np.median(found["drawings"]))
        print(f"| {kind} | {' | '.join(f'{value:.1f} ms' for value in ends)} |")
        if kind == "lasso":
            page.at("lasso=")
            print(f"\nEnding the lasso finds its items within {found['last']:.1f} ms.")


def main() -> None:
    """Measure collections of one size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=100_000)
    n = parser.parse_args().items
    with tempfile.TemporaryDirectory() as folder:
        made = make_collection(Path(folder), n)
        with opened(str(made), hosts=("127.0.0.1",)) as app, served(app) as address:
            driver = start_browser(Path(folder, "profile"))
            try:
                measure(Page(driver, address), n)
            finally:
                driver.quit()


if __name__ == "__main__":
    main()
