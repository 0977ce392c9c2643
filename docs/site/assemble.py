"""The sources of the site: the pages of ``docs``, and those that are made at each build."""

import re
import shutil
from collections.abc import Iterable
from pathlib import Path

import api
import citations
import reference

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
#: The pages under each title, in the order of the menu.
NAVIGATION: dict[str, tuple[str, ...]] = {
    "Start": ("start", "install"),
    "Guides": ("guides/engineer", "guides/curator", "guides/researcher", "guides/student"),
    "Guides by subject": (
        "evaluate",
        "comparing-systems",
        "comparing-numbers",
        "significance",
        "hashing",
        "crossmodal",
        "quantise",
        "scale",
        "onnx",
        "bring-your-own",
        "advise",
        "searching",
        "serve",
        "engines",
        "explore",
        "duplicates",
        "tables",
        "datasets",
        "evidence",
        "experiments",
    ),
    "Reference": (
        "commands",
        "reference/commands",
        "reference/python",
        "metrics",
        "reference/metrics",
        "reference/protocol",
        "formats",
    ),
    "Mathematics": (
        "maths/average-precision",
        "maths/discounts",
        "maths/cut-ties",
        "maths/counting",
        "maths/learning",
        "maths/quantising",
    ),
    "Results": (
        "results/index",
        "results/methodology",
        "results/ground-truths",
        "results/ties",
        "results/evidence",
        "results/crossmodal",
        "results/hashing",
        "results/speed",
    ),
    "Project": ("architecture", "contributing", "changelog", "references"),
}
RENAMED = {"search.md": "searching.md"}  # Sphinx has a page search.html of its own
OUTSIDE = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
LINK = re.compile(r"(?<=\]\()([^)\s#]+)(?=[)#])")


def assemble(target: Path) -> None:
    """Write all sources of the site into a new folder."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(DOCS, target, ignore=shutil.ignore_patterns("site", "__pycache__"))
    for name, other in RENAMED.items():
        (target / name).rename(target / other)
    for source, name in OUTSIDE.items():
        (target / name).write_text(_moved((ROOT / source).read_text()))
    bibliography = (DOCS / "references.bib").read_text()
    (target / "references.md").write_text(citations.references_page(bibliography))
    _write_reference(target / "reference")
    keys = set(citations.read_entries(bibliography))
    for page in target.rglob("*.md"):
        if page.name != "references.md":
            text = _to_files(page.read_text(), page.parent, target)
            page.write_text(citations.link_in_markdown(text, keys))
    _add_menu(target / "index.md")


def _write_reference(folder: Path) -> None:
    (folder / "api").mkdir(parents=True)
    (folder / "commands.md").write_text(reference.commands_page())
    (folder / "metrics.md").write_text(reference.metrics_page())
    (folder / "protocol.md").write_text(reference.protocol_page())
    pages, overview = api.api_pages()
    for name, text in pages.items():
        (folder / "api" / f"{name}.md").write_text(text)
    menu = _menu([f"api/{name}" for name in pages])
    (folder / "python.md").write_text(overview + menu)


def _moved(text: str) -> str:
    """A page of the root folder with links as from ``docs``."""

    def link(match: re.Match[str]) -> str:
        place = match[1]
        if "://" in place:
            return place
        return place.removeprefix("docs/") if place.startswith("docs/") else f"../{place}"

    return citations.outside_code(text, lambda part: LINK.sub(link, part))


def _to_files(text: str, folder: Path, target: Path) -> str:
    """Links to renamed pages, and to files outside ``docs`` by copies in the folder ``files``."""

    def link(match: re.Match[str]) -> str:
        if "://" in match[1]:
            return match[1]
        inside = (folder / match[1]).resolve().relative_to(target.parent.resolve())
        if inside.parts[0] == target.name:
            other = RENAMED.get("/".join(inside.parts[1:]))
            return _from(folder, target / other) if other else match[1]
        if str(inside) in OUTSIDE:
            return _from(folder, target / OUTSIDE[str(inside)])
        return _from(folder, _copied(ROOT / inside, target / "files" / inside))

    return citations.outside_code(text, lambda part: LINK.sub(link, part))


def _copied(source: Path, copy: Path) -> Path:
    """A copy of a file, or of a folder as an archive."""
    copy.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        return Path(shutil.make_archive(str(copy), "zip", source.parent, source.name))
    return Path(shutil.copy(source, copy))


def _from(folder: Path, file: Path) -> str:
    up = [".."] * len(folder.relative_to(_common(folder, file)).parts)
    return "/".join([*up, *file.relative_to(_common(folder, file)).parts])


def _common(one: Path, other: Path) -> Path:
    return next(parent for parent in (one, *one.parents) if other.is_relative_to(parent))


def _add_menu(index: Path) -> None:
    menus = [_menu(pages, title) for title, pages in NAVIGATION.items()]
    index.write_text(index.read_text() + "".join(menus))


def _menu(pages: Iterable[str], title: str = "") -> str:
    caption = f":caption: {title}\n" if title else ""
    return f"\n```{{toctree}}\n:hidden:\n{caption}\n" + "\n".join(pages) + "\n```\n"
