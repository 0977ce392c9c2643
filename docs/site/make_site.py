"""Build the documentation as a site, and check it: ``scripts/docs`` runs this.

Any warning of Sphinx and any broken link is an error.  The site needs no network and no server.
"""

import argparse
import shutil
import sys
from pathlib import Path

from assemble import ROOT, assemble
from check_links import broken_links, dead_addresses
from sphinx.cmd.build import main as sphinx_build


def main() -> int:
    """Build, check, and say where the first page is; the exit code."""
    options = _parser().parse_args()
    out = options.out.resolve()
    sources, settings = out.parent / f"{out.name}-sources", Path(__file__).parent
    assemble(sources)
    shutil.rmtree(out, ignore_errors=True)
    arguments = ["-b", "html", "-q", "-W", "--keep-going", "-d", f"{sources}/.doctrees"]
    if sphinx_build([*arguments, "-E", "-c", str(settings), str(sources), str(out)]):
        return 1
    problems = broken_links(out) + (dead_addresses(out) if options.external else [])
    _say(*problems)
    if problems:
        return 1
    pages = sum(1 for _ in out.rglob("*.html"))
    _say(f"{pages} pages without a warning or a broken link: {out / 'index.html'}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/docs", description=__doc__)
    parser.add_argument(
        "--out", type=Path, default=ROOT / "build" / "site", help="folder (default: build/site)"
    )
    parser.add_argument("--external", action="store_true", help="also try addresses of other sites")
    return parser


def _say(*lines: str) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
