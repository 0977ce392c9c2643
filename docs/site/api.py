"""Pages of the reference made from docstrings: one page for each public package."""

import inspect
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any

from bittern.registry import Registry


@dataclass(frozen=True)
class ApiPage:
    """A page: its file's name, its title, and the modules whose public names it describes."""

    name: str
    title: str
    modules: tuple[str, ...]


PAGES = (
    ApiPage("codes", "Codes, ground truth and profiles", ("codes", "relevance", "profile")),
    ApiPage("metrics", "Metrics", ("metrics", *(f"metrics.{m}" for m in ("precision", "gain")))),
    ApiPage("significance", "Significance tests", ("metrics.significance",)),
    ApiPage("data", "Datasets and splits", ("data",)),
    ApiPage("features", "Features", ("features",)),
    ApiPage("hashing", "Hash functions", ("hashing",)),
    ApiPage("crossmodal", "Cross-modal hash functions", ("hashing.crossmodal",)),
    ApiPage("quantise", "Quantisers", ("quantise",)),
    ApiPage("index", "Indexes", ("index",)),
    ApiPage("tables", "Hash tables", ("tables",)),
    ApiPage("fusion", "Fusion", ("fusion",)),
    ApiPage("scale", "Shards", ("scale",)),
    ApiPage("audit", "Audits of other engines", ("engines",)),
    ApiPage("store", "Collections", ("store",)),
    ApiPage("duplicates", "Near-duplicates", ("store.duplicates",)),
    ApiPage("experiments", "Experiments", ("experiments",)),
    ApiPage("analysis", "Analysis", ("analysis",)),
    ApiPage("report", "Reports", ("report",)),
    ApiPage("inputs", "Files of other programs", ("inputs",)),
    ApiPage("errors", "Errors", ("errors",)),
)


def api_pages() -> tuple[dict[str, str], str]:
    """The text of each page by its name, and an overview of them all."""
    seen: dict[int, str] = {}
    pages = {page.name: _page(page, seen) for page in PAGES}
    return pages, _overview(seen)


def public_names(module: ModuleType) -> list[str]:
    """The names that a module lists, or else defines itself."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return list(listed)
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]


def _page(page: ApiPage, seen: dict[int, str]) -> str:
    """The page; ``seen`` is where each object was described first, and grows."""
    lines = [f"# {page.title}", ""]
    for part in page.modules:
        module = import_module(f"bittern.{part}")
        lines += [f"## `bittern.{part}`", "", _summary(module), ""]
        for name in public_names(module):
            value = getattr(module, name)
            if isinstance(value, Registry):
                lines += [f"**`{name}`**: " + ", ".join(f"`{key}`" for key in value) + ".", ""]
            elif not isinstance(value, ModuleType) and callable(value) and id(value) not in seen:
                seen[id(value)] = f"bittern.{part}.{name}"
                lines += [_directive(f"bittern.{part}.{name}", value), ""]
    return "\n".join(lines)


def _directive(path: str, value: Any) -> str:
    kind = "autoclass" if inspect.isclass(value) else "autofunction"
    options = ["   :members:"] if kind == "autoclass" else []
    return "\n".join(["```{eval-rst}", f".. {kind}:: {path}", *options, "```"])


def _overview(seen: dict[int, str]) -> str:
    """The short names of ``import bittern as bt``, and a list of the pages."""
    import bittern

    rows = []
    for name in sorted(bittern.__all__, key=str.lower):
        value = getattr(bittern, name)
        if id(value) in seen:
            link = f"{{py:obj}}`bt.{name} <{seen[id(value)]}>`"
            rows.append(f"| {link} | {_first_line(value)} |")
    pages = [f"- [{page.title}](api/{page.name}.md)" for page in PAGES]
    short = ["| name | is |", "| --- | --- |", *rows]
    return "\n".join(
        [
            "# Python",
            "",
            "Made from docstrings, one page for each package:",
            "",
            *pages,
            "",
            "After `import bittern as bt` these names are there without more imports:",
            "",
            *short,
            "",
        ]
    )


def _summary(module: ModuleType) -> str:
    return (module.__doc__ or "").partition("\n\n")[0].replace("``", "`").replace(":class:", "")


def _first_line(value: Any) -> str:
    text = (inspect.getdoc(value) or "").partition("\n\n")[0].replace("``", "`")
    return " ".join(text.replace("|", "\\|").split())
