"""What the documents say is so: links, commands, metrics, references, versions."""

import ast
import functools
import re
import runpy
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest
import reference
from processes import one_after_another, seconds

import bittern
from bittern.experiments import measure
from bittern.features import chunks
from bittern.metrics import parse

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
METRICS_PAGE = (ROOT / "docs" / "metrics.md").read_text()
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
SOURCES = sorted((ROOT / "src").rglob("*.py"))
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
LINK = re.compile(r"\]\(([^)\s]+)\)")
KEY = re.compile(r"\[([A-Za-z]+(?:-[A-Za-z]+)*-[0-9]{4}[a-z]?)\]")


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def relative(path):
    return str(path.relative_to(ROOT))


def test_the_python_of_the_readme_prints_a_table(capsys):
    (evaluation,) = blocks(README, "python")
    exec(evaluation, {})
    out = capsys.readouterr().out
    assert out.startswith("metric ") and "\n200 queries." in out
    assert [line.split()[0] for line in out.splitlines()[2:6]] == [
        "ap",
        "ndcg@100",
        "precision@r2",
        "auprc",
    ]


def test_the_readme_is_what_a_visitor_needs():
    assert len(README.splitlines()) < 120
    guides = re.findall(r"\(docs/guides/(\w+)\.md\)", README)
    assert guides == ["engineer", "curator", "researcher", "student"]


def test_every_metric_that_the_page_names_is_one():
    (table,) = re.findall(r"\| written \| means \|\n\|.*\n((?:\|.*\n)+)", METRICS_PAGE)
    names = [
        name for row in table.splitlines() for name in re.findall("`([^`]+)`", row.split("|")[1])
    ]
    assert len(names) > 25
    assert [str(parse(name)) for name in names] == names


def test_every_metric_and_option_is_on_the_page():
    from bittern.metrics import METRICS

    written = set(re.findall(r"`([a-z0-9.-]+)[@:`]", METRICS_PAGE))
    assert set(METRICS) <= written
    for metric in METRICS.values():
        assert all(f":{option}`" in METRICS_PAGE for option in metric.options)


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_every_relative_link_leads_somewhere(page):
    links = [link for link in LINK.findall(page.read_text()) if "://" not in link]
    missing = [link for link in links if not (page.parent / link.partition("#")[0]).exists()]
    assert not missing


def test_there_are_links_to_follow():
    assert sum(len(LINK.findall(page.read_text())) for page in PAGES) > 5


@pytest.mark.parametrize("example", EXAMPLES, ids=relative)
def test_every_example_runs_without_arguments(example, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(example)])
    for module in (measure, chunks):  # no process of its own, which would import everything again
        monkeypatch.setattr(module, "run_tasks", one_after_another)
    runpy.run_path(str(example), run_name="__main__")
    said = capfd.readouterr()
    assert said.out and not said.err
    assert list(tmp_path.iterdir()) == []


def test_an_example_needs_nothing_that_a_test_imported(tmp_path):
    command = [sys.executable, "-W", "error", str(ROOT / "examples" / "evaluate_codes.py")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=seconds(120))
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout and not done.stderr


def names_used(path):
    """The names of the package that an example uses, with the modules that they are from."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "bittern":
            yield from ((node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            plain = [alias.name for alias in node.names if alias.name.startswith("bittern.")]
            yield from ((name, "") for name in plain)
        elif isinstance(node, ast.Attribute):
            *inner, name = ast.unparse(node).split(".")
            if inner and inner[0] == "bt" and all(part.isidentifier() for part in (*inner, name)):
                yield ".".join(["bittern", *inner[1:]]), name


@cache
def documentation():
    return "\n".join(page.read_text() for page in PAGES if page.name != "CHANGELOG.md")


def is_documented(module, name):
    """Whether a name is listed by the package, by a stage, or by the docs with its module."""
    found = bittern
    for part in module.split(".")[1:]:
        found = getattr(found, part, None)
    if isinstance(found, type):  # what a class has is documented with it
        return not name.startswith("_")
    if "__dir__" in vars(found or object) and name in dir(found):  # the public names alone
        return True
    text = documentation()
    return f"{module}." in text and re.search(rf"`(?:[\w.]+\.)?{name}\b", text) is not None


def test_examples_use_only_what_is_documented():
    paths = [*EXAMPLES, *(ROOT / "examples/plugin/src").rglob("*.py")]
    used = {(*one, relative(path)) for path in paths for one in names_used(path)}
    assert {("bittern", "evaluate"), ("bittern.features", "NINE")} <= {one[:2] for one in used}
    assert not [one for one in sorted(used) if not is_documented(*one[:2])]
    assert not is_documented("bittern.hashing.linear", "margins")
    assert not is_documented("bittern.store", "_kind_of")
    assert not is_documented("bittern.store.building", "BATCH")


def test_the_example_of_the_issue_is_short():
    assert ROOT / "examples/evaluate_codes.py" in EXAMPLES
    assert len((ROOT / "examples/evaluate_codes.py").read_text().splitlines()) <= 60


def test_every_reference_that_is_cited_is_in_the_bibliography():
    entries = re.findall(
        r"^@\w+\{([^,]+),", (ROOT / "docs/references.bib").read_text(), re.MULTILINE
    )
    assert entries == sorted(entries, key=str.lower)
    assert len(entries) == len(set(entries))
    cited = {
        (key, relative(page))
        for page in (*SOURCES, *PAGES)
        for key in KEY.findall(page.read_text())
    }
    assert len(cited) > 10
    assert not {(key, page) for key, page in cited if key not in entries}


def test_every_path_in_contributing_exists():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    quoted = {word for words in re.findall("`([^`\n]+)`", text) for word in words.split()[:1]}
    made_on_use = {".venv", "../shared/data", "build/site"}
    paths = {
        word
        for word in quoted - made_on_use
        if re.fullmatch(r"\.?[\w./-]+", word) and ("/" in word or Path(word).suffix in SUFFIXES)
    }
    assert {"scripts/test", "docs/references.bib", "CHANGELOG.md"} <= paths
    homes = ROOT, ROOT / "docs"
    assert not [path for path in sorted(paths) if not any((h / path).exists() for h in homes)]


SCRIPTS = [
    *(f"scripts/{name}" for name in ("demo", "test", "browser", "check", "docs", "package")),
    ".ci/run",
]
SUFFIXES = {".md", ".toml", ".txt", ".bib", ".py", ".cff"}


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_script_may_be_executed(script):
    assert (ROOT / script).stat().st_mode & 0o111


def test_the_readme_s_two_commands_are_scripts():
    commands = [line for block in blocks(README, "bash") for line in block.splitlines()]
    assert {"scripts/demo", "scripts/test"} <= set(commands)


@pytest.mark.parametrize("example", EXAMPLES, ids=relative)
def test_what_an_example_imports_is_documented(example):
    pages = "\n".join(page.read_text() for page in PAGES if page.name != "CHANGELOG.md")
    for node in ast.walk(ast.parse(example.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "bittern":
            for name in node.names:
                assert re.search(rf"\b{name.name}\b", pages), f"{example.name}: {name.name}"


@functools.cache
def help_of(*command):
    from typer.testing import CliRunner

    from bittern.cli import app

    return CliRunner().invoke(app, [*command, "--help"], env={"COLUMNS": "200"}).output


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_commands_on_a_page_have_only_options_that_exist(page):
    groups = ("data", "features", "index", "shards")
    lines = [line for block in blocks(page.read_text(), "bash") for line in block.splitlines()]
    for line in lines:
        program, *words = line.split() or [""]
        if program == "bittern":
            command = words[: 2 if words[0] in groups else 1]
            used = [word for word in words if word.startswith("-")]
            known = help_of(*command)
            assert not [option for option in used if option not in known], line


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_options_named_in_the_text_of_a_page_exist(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    used = {option for code in re.findall("`([^`]+)`", text) for option in OPTION.findall(code)}
    assert not sorted(used - options_of_commands() - OTHER_OPTIONS)


@functools.cache
def options_of_commands():
    return set(OPTION.findall(reference.commands_page()))


#: Options of scripts, benchmarks, examples and pytest.
OTHER_OPTIONS = {"--write", "--only", "--figure", "--lists", "--fix", "--external", "--try"}
OTHER_OPTIONS |= {"--cov", "--help", "--install-completion", "--trial", "--peers"}
OTHER_OPTIONS |= {"--minutes", "--start", "--trials", "--subject", "--total", "--up-to", "--rate"}
OTHER_OPTIONS |= {"--disable-pip", "--no-deps", "--require-hashes"}  # of pip and pip-audit


def test_the_changelog_has_a_place_for_what_is_next():
    assert re.search(
        r"^## Unreleased\n\n###? ?\w+", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )


def test_the_constraints_pin_every_direct_dependency():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = {
        normal(re.match(r"[\w.-]+", need)[0])
        for need in [*project["dependencies"], *(n for extra in extras.values() for n in extra)]
    } - {"bittern"}
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert len(wanted) > 20
    assert wanted <= {normal(name) for name in pins}
    assert all(re.fullmatch(r"[0-9][\w.]*", version) for version in pins.values())


def test_every_extra_is_on_the_page_about_installing():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    listed = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs/install.md").read_text(), re.MULTILINE)
    assert set(project["optional-dependencies"]) == set(listed)


def normal(name):
    """A package's name as PyPI compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def test_the_python_about_tables_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    for source in blocks((ROOT / "docs" / "tables.md").read_text(), "python"):
        exec(source, names)
    out = capsys.readouterr().out
    assert "micro-f1@r0" in out
    assert "0.6667" in out
    assert [path.name for path in tmp_path.iterdir()] == ["tables.npz"]


def test_every_hasher_is_on_the_page_about_them():
    from bittern.hashing import HASHERS

    page = (ROOT / "docs" / "hashing.md").read_text()
    rows = re.findall(r"^\| `([\w-]+)` \|", page, re.MULTILINE)
    assert rows == list(HASHERS)


def test_the_python_about_hashers_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    for source in blocks((ROOT / "docs" / "hashing.md").read_text(), "python"):
        exec(source, names)
    assert "precision@100" in capsys.readouterr().out


def test_the_python_about_significance_runs(capsys):
    names = {}
    for source in blocks((ROOT / "docs" / "significance.md").read_text(), "python"):
        exec(source, names)
    out = capsys.readouterr().out
    assert out.startswith("randomisation test (100,000 draws, greater): p = ")
    assert "\nitq - lsh" in out and "p adjusted by Holm over 2 comparisons" in out
    assert names["outcome"].n == len(names["queries"]) == names["interval"].n
    assert names["correction"].significant.tolist() == [True, False, False, False]


def test_the_python_about_bringing_your_own_runs(tmp_path, monkeypatch, capsys):
    from bittern.features import FEATURES
    from bittern.fusion import FUSIONS
    from bittern.hashing import HASHERS

    for table in (HASHERS, FEATURES, FUSIONS, bittern.METRICS, bittern.DATASETS):
        for name in ("_entries", "_registered"):
            monkeypatch.setattr(table, name, dict(getattr(table, name)))
    monkeypatch.chdir(tmp_path)
    *sources, script, shipped = blocks((ROOT / "docs" / "bring-your-own.md").read_text(), "python")
    monkeypatch.setattr(measure, "run_tasks", one_after_another)
    exec(script, {"__name__": "__main__"})
    out = capsys.readouterr().out
    assert "our system" in out and "itq" in out
    names = {"__name__": "page"}
    for source in (*sources, shipped):
        exec(source, names)
    out = capsys.readouterr().out
    assert "<500 codes of 16 bits>" in out and "MedianHasher(n_bits=16)" in out
    assert "\nfirst-tie" in out and "<Dataset ring: 30 items" in out and "[[128." in out
    assert FUSIONS["geometric"]([[4.0], [9.0]]).tolist() == pytest.approx([6.0])
    assert (
        bittern.experiments.Protocol.of(tomllib.loads(names["ours"] + blocks_of_codes())).labels[-1]
        == "our system"
    )


def blocks_of_codes():
    """The method that reads codes, as its page shows it."""
    page = (ROOT / "docs" / "bring-your-own.md").read_text()
    (found,) = (block for block in blocks(page, "toml") if block.startswith("[[method]]"))
    return found


def test_the_entry_points_of_the_page_are_those_of_the_example():
    page = (ROOT / "docs" / "bring-your-own.md").read_text()
    project = tomllib.loads((ROOT / "examples" / "plugin" / "pyproject.toml").read_text())
    (shown,) = (block for block in blocks(page, "toml") if "entry-points" in block)
    assert tomllib.loads(shown)["project"]["entry-points"] == project["project"]["entry-points"]


def test_every_table_on_the_page_about_bringing_your_own_is_there():
    page = (ROOT / "docs" / "bring-your-own.md").read_text()
    rows = re.findall(r"^\| `bt\.([\w.]+)` \| `(bittern\.\w+)` \|", page, re.MULTILINE)
    assert len(rows) == 6
    for path, group in rows:
        table = bittern
        for part in path.split("."):
            table = getattr(table, part)
        assert table.group == group


def test_every_feature_is_on_the_page_about_evidence():
    from bittern.features import FEATURES

    page = (ROOT / "docs" / "evidence.md").read_text()
    rows = re.findall(r"^\| (`[^|]+`) \|", page, re.MULTILINE)
    assert set(re.findall("`([^`]+)`", " ".join(rows))) == set(FEATURES)


def test_the_python_about_evidence_runs(capsys):
    names = {}
    for source in blocks((ROOT / "docs" / "evidence.md").read_text(), "python"):
        exec(source, names)
    assert "\nap " in capsys.readouterr().out
    assert names["scores"].shape == (3, 10, 100)


def test_the_python_about_duplicates_runs():
    names = {}
    for source in blocks((ROOT / "docs" / "duplicates.md").read_text(), "python"):
        exec(source, names)
    assert (len(names["pairs"]), len(names["groups"]), len(names["quality"])) == (10, 10, 5)


def test_the_python_about_datasets_runs(capsys):
    names = {}
    for source in blocks((ROOT / "docs" / "datasets.md").read_text(), "python"):
        exec(source, names)
    out = capsys.readouterr().out
    assert "all sets are disjoint; balanced by class" in out and "circle" in out
    assert len(names["queries"]) == len(names["split"].queries) > 0
    assert names["rows"].shape[0] == 200


def test_the_python_about_searching_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    for source in blocks((ROOT / "docs" / "search.md").read_text(), "python"):
        exec(source, names)
    assert "200 100" in capsys.readouterr().out
    assert names["hits"].distances[:, 0].tolist() == [0, 0, 0]
    assert (names["odd"].ids % 2 == 1).all()
    assert len(names["index"]) == 5008


def test_the_python_and_the_protocol_about_experiments_run(tmp_path, monkeypatch, capsys):
    page = (ROOT / "docs" / "experiments.md").read_text()
    (source,) = blocks(page, "python")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(measure, "run_tasks", one_after_another)
    exec(source, {"__name__": "__main__"})
    out = capsys.readouterr().out
    assert "lsh" in out and "itq" in out
    protocol, change, pairs, words, copies, search = map(tomllib.loads, blocks(page, "toml"))
    changed = bittern.experiments.Protocol.of(change)
    assert changed.dataset.options == {} and changed.method[-1].parameters["n_steps"] == 100
    cells = bittern.experiments.cells_of(bittern.experiments.Protocol.of(protocol))
    assert len(cells) == 10 * (1 + 3 + 3)
    trials = bittern.experiments.trials_of(bittern.experiments.Protocol.of(protocol | search))
    assert len(trials) == 2 * 3 * 12 * 2  # methods, lengths, points, repeats
    pairs = bittern.experiments.Protocol.of(pairs)
    assert len(pairs.kind.tasks(pairs)) == 3 * 3  # directions, settings
    copies = bittern.experiments.Protocol.of(copies)
    assert len(copies.kind.tasks(copies)) == len(copies.settings["changes"])
    words = bittern.experiments.Protocol.of(words)
    assert len(bittern.experiments.cells_of(words)) == 3 * 3  # runs, methods
