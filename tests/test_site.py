"""The site: its reference is complete, its citations and links lead somewhere.

``scripts/docs`` builds it with Sphinx and fails on any warning; here are its parts, without Sphinx.
"""

import inspect
import re
from dataclasses import fields
from pathlib import Path

import api
import assemble
import check_links
import citations
import pytest
import reference
import typer

import bittern
from bittern.cli import app
from bittern.experiments import PARADIGMS, Protocol
from bittern.experiments.truth import TRUTHS
from bittern.metrics import METRICS

ROOT = Path(__file__).parents[1]
RENAMED = {
    old.removesuffix(".md"): new.removesuffix(".md") for old, new in assemble.RENAMED.items()
}
MADE = {"contributing", "changelog", "references", "security", "reference/python"}
MADE |= {f"reference/{name}" for name in ("commands", "metrics", "protocol")}


def test_every_page_is_in_the_menu_once():
    menu = [page for pages in assemble.NAVIGATION.values() for page in pages]
    docs = ROOT / "docs"
    written = {page.relative_to(docs).with_suffix("").as_posix() for page in docs.rglob("*.md")}
    written = {RENAMED.get(page, page) for page in written}
    assert len(menu) == len(set(menu))
    assert set(menu) == written - {"index"} | MADE


def test_every_page_can_be_found_from_the_first_one():
    text = (ROOT / "docs" / "index.md").read_text()
    linked = {link.removesuffix(".md") for link in re.findall(r"\]\(([^)#]+\.md)", text)}
    linked = {RENAMED.get(page, page) for page in linked}
    menu = {page for pages in assemble.NAVIGATION.values() for page in pages}
    sections = {"install", *(page for page in menu if page.startswith("results/"))}
    assert menu - MADE - sections <= linked


def test_the_reference_has_every_command_and_option():
    page = reference.commands_page()
    top = typer.main.get_command(app)
    groups = {"": top} | {n: g for n, g in top.commands.items() if hasattr(g, "commands")}
    n_commands = 0
    for prefix, group in groups.items():
        for name, command in group.commands.items():
            if hasattr(command, "commands"):
                continue
            n_commands += 1
            title = " ".join(filter(None, ("bittern", prefix, name)))
            (section,) = re.findall(rf"^## `{title}`\n(.*?)(?=^## |\Z)", page, re.M | re.S)
            for option in (word for one in command.params for word in one.opts):
                assert re.search(rf"[` ]{option}[`, .]", section), f"{title} {option}"
    assert n_commands > 20
    assert "&#124;" not in page and "euclidean\\|cosine" in page


def test_the_reference_has_every_metric_and_option():
    page = reference.metrics_page()
    for name, metric in METRICS.items():
        (row,) = re.findall(rf"^\| `{name}` \|.*$", page, re.MULTILINE)
        assert metric.title in row and all(f"`:{option}`" in row for option in metric.options)
        assert ("`@100`" in row, "`@r2`" in row) == (metric.cutoff, metric.radius)


def test_the_reference_has_every_key_of_a_protocol():
    page = reference.protocol_page()
    own = {kind.table for kind in PARADIGMS.values() if kind.table}
    assert set(reference.OWN_TABLES) == own
    records = [*reference.PARTS.values(), *reference.OWN_TABLES.values(), *TRUTHS.values()]
    keys = {one.name for record in (Protocol, *records) for one in fields(record)}
    for key in keys - {"settings"}:
        assert f"| `{key}` |" in page, key
    assert "| `runs` | whole number | `10` |" in page
    assert "| `n_bits` | list of whole numbers |" in page
    assert "| `title` | string | required |" in page


def test_the_reference_has_every_public_name():
    pages, overview = api.api_pages()
    text = "\n".join(pages.values())
    described = set(re.findall(r"^\.\. auto(?:class|function):: (\S+)$", text, re.MULTILINE))
    for name in bittern.__all__:
        value = getattr(bittern, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert f"`bt.{name} <" in overview, name
    for name in bittern.hashing.HASHERS.values():
        assert f"bittern.hashing.{name.__name__}" in described
    assert len(described) > 150


def test_citations_become_links_outside_code():
    text = "See [Moran-2016] and \\[Moran-2016\\], not `x[Moran-2016]` or [Nobody-1999].\n"
    linked = citations.link_in_markdown(text, {"Moran-2016"})
    link = r"[\[Moran-2016\]](#moran-2016)"
    assert linked == f"See {link} and {link}, not `x[Moran-2016]` or [Nobody-1999].\n"
    lines = ["Eq. 3 of [Moran-2016]."]
    citations.link_in_docstring({"Moran-2016"})(None, "", "", None, None, lines)
    assert lines == ["Eq. 3 of :ref:`[Moran-2016] <moran-2016>`."]


def test_every_reference_is_listed_with_its_title():
    bibliography = (ROOT / "docs" / "references.bib").read_text()
    page = citations.references_page(bibliography)
    keys = re.findall(r"^@\w+\{([^,]+),", bibliography, re.MULTILINE)
    assert re.findall(r"^\((.+)\)=$", page, re.MULTILINE) == [key.lower() for key in keys]
    assert "Hervé Jégou and Matthijs Douze" in " ".join(page.replace("e\u0301", "é").split())
    assert not re.search(r"[{}\\]", page)


@pytest.mark.parametrize(
    ("link", "problem"),
    [
        ("b.html", None),
        ("b.html#here", None),
        ("#top", None),
        ("c.html", "a.html: c.html leads nowhere."),
        ("b.html#there", "a.html: b.html#there has no anchor."),
        ("#bottom", "a.html: #bottom has no anchor."),
        ("https://example.org/x", None),
    ],
)
def test_a_broken_link_is_found(tmp_path, link, problem):
    (tmp_path / "a.html").write_text(f'<h1 id="top">A</h1><a href="{link}">x</a>')
    (tmp_path / "b.html").write_text('<p id="here">B</p>')
    assert check_links.broken_links(tmp_path) == ([problem] if problem else [])


@pytest.mark.parametrize("tag", ["<script src={}></script>", "<img src={}>", "<link href={}>"])
def test_what_a_page_loads_must_be_in_the_site(tmp_path, tag):
    (tmp_path / "a.html").write_text(tag.format('"https://example.org/x.js"'))
    (problem,) = check_links.broken_links(tmp_path)
    assert problem == "a.html: loads https://example.org/x.js from another site."
