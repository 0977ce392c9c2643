"""The order of the stages, the public names, and what importing costs."""

import ast
import importlib
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

import bittern
from bittern.cli import app

# A module imports from earlier stages, and from earlier modules of its own stage.
STAGES = [
    ["errors", "extras", "checks", "registry", "progress", "parallel", "notebook", "moved"],
    ["io"],
    ["codes", "inputs", "kernels"],
    ["relevance", "profile", "metrics"],
    ["data"],
    ["networks", "features", "hashing", "quantise"],
    ["index", "tables"],
    ["fusion", "scale", "engines"],
    ["store"],
    ["experiments", "analysis"],
    ["report", "web"],
    ["cli", "__main__", "__init__"],
]
ORDER = [module for stage in STAGES for module in stage]
ROOT = Path(bittern.__file__).parent
PROJECT = Path(__file__).parents[1]
MODULES = sorted(ROOT.rglob("*.py"))
HEAVY = ["numba", "scipy", "sklearn", "matplotlib", "torch", "pandas", "faiss", "rich", "typer"]


@cache
def tree_of(path):
    return ast.parse(path.read_text())


def stage_of(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def module_name(path):
    parts = ("bittern", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts).removesuffix(".__init__")


def imports(path):
    """Dotted names that the module imports, anywhere in it."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def own_imports(path):
    return [name for name in imports(path) if name.startswith("bittern.")]


def test_there_is_something_to_look_at():
    assert len(MODULES) > 20
    assert any(own_imports(path) for path in MODULES)


def test_every_module_has_a_place_in_a_stage_and_every_place_is_taken():
    assert {stage_of(path) for path in MODULES} == set(ORDER)
    assert len(STAGES) <= 12


def test_no_module_imports_from_a_later_stage():
    wrong = []
    for path in MODULES:
        later = ORDER[ORDER.index(stage_of(path)) + 1 :]
        for name in own_imports(path):
            if name.split(".")[1] in later:
                wrong.append(f"{path.relative_to(ROOT)} imports {name}")
    assert not wrong, "\n".join(wrong)


def test_nothing_outside_a_paradigm_asks_for_its_name():
    names = "|".join(bittern.experiments.PARADIGMS)
    for path in MODULES:
        assert not re.search(rf"[!=]= *[\"'](?:{names})[\"']", path.read_text()), path.name


def test_files_are_of_a_length_that_can_be_read():
    long = {path.name: len(path.read_text().splitlines()) for path in MODULES}
    assert max(long.values()) <= 520, max(long, key=long.get)


def test_an_alias_of_an_array_type_is_defined_once():
    aliases = [
        line
        for path in MODULES
        for line in path.read_text().splitlines()
        if re.match(r"\w+(: TypeAlias)? = NDArray\[np\.(float32|float64|intp)\]( *#.*)?$", line)
    ]
    assert len(aliases) == 3, aliases


def test_kernels_know_nothing_of_the_package():
    kernels = [path for path in MODULES if stage_of(path) == "kernels"]
    assert len(kernels) > 3
    for path in kernels:
        for name in own_imports(path):
            assert name.startswith("bittern.kernels"), f"{path.name} imports {name}"


def test_only_kernels_are_compiled():
    # A hasher's own inner loop may stand in its own file: a file is one method.
    for path in MODULES:
        if stage_of(path) not in ("kernels", "hashing"):
            assert not any(name.split(".")[0] == "numba" for name in imports(path)), path.name


def test_metrics_know_no_files():
    for path in MODULES:
        if stage_of(path) == "metrics":
            for name in own_imports(path):
                assert name.split(".")[1] != "io", path.name


def test_all_is_complete_and_every_name_is_there():
    assert len(set(bittern.__all__)) == len(bittern.__all__)
    for name in bittern.__all__:
        assert getattr(bittern, name) is not None, name
    assert set(bittern.__all__) <= set(dir(bittern))


def test_the_names_of_the_design_are_public():
    # fmt: off
    design = {
        "Codes", "Relevance", "TieProfile", "ball_radius", "evaluate", "pr_curve",
        "interpolated_pr_curve", "rmse", "METRICS", "metrics", "hashing", "fusion", "FlatIndex",
        "MultiIndex", "TableIndex", "evaluate_codes", "table_profile", "table_surface",
    }
    # fmt: on
    assert design <= set(bittern.__all__)


# fmt: off
PUBLIC_STAGES = [
    "analysis", "data", "engines", "experiments", "features", "fusion", "hashing",
    "hashing.crossmodal", "index", "metrics", "metrics.significance", "networks", "report", "store",
    "tables",
]
# fmt: on


@pytest.mark.parametrize("name", PUBLIC_STAGES)
def test_a_stage_lists_its_public_names_alone(name):
    stage = importlib.import_module(f"bittern.{name}")
    later = {"crossmodal", "objectives", "backbones"} if name == "hashing" else set()
    assert set(dir(stage)) == {*stage.__all__, *later}
    assert not [listed for listed in dir(stage) if listed.startswith("_")]


def test_an_unknown_attribute_is_an_attribute_error():
    with pytest.raises(AttributeError, match="No bittern attribute evalute"):
        _ = bittern.evalute
    assert not hasattr(bittern, "Codez")


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_all_of_a_module_is_what_it_has(path):
    if path.name == "__main__.py":
        return
    module = importlib.import_module(module_name(path))
    for name in getattr(module, "__all__", []):
        assert hasattr(module, name), f"{module.__name__}.{name}"


def test_importing_the_package_is_cheap():
    script = (
        "import sys, bittern; "
        f"print([name for name in {HEAVY} if name in sys.modules], 'numpy' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[] False"


def test_codes_and_classes_need_no_heavy_library():
    script = f"""
import sys
import bittern as bt
codes = bt.Codes.from_bits([[0, 1]])
assert codes[:1].to_packed().tolist() == [[64]]
bt.Relevance, bt.TieProfile, bt.FileError
print([name for name in {HEAVY} if name in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_every_module_says_what_it_is(path):
    docstring = ast.get_docstring(tree_of(path))
    assert docstring
    first = docstring.split("\n\n")[0].rstrip()
    assert first.endswith((".", ":")), first


def test_the_library_does_not_print():
    for path in MODULES:
        if stage_of(path) == "cli":
            continue
        for node in ast.walk(tree_of(path)):
            is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            assert not (is_call and node.func.id == "print"), f"{path.name}, line {node.lineno}"


def test_modules_named_in_the_text_are_there():
    """``bittern.x`` and ``kernels.x`` in docstrings and comments."""
    wrong = []
    for path in MODULES:
        for name in re.findall(r"`(?:bittern\.)([a-z_]+(?:\.[a-z_]+)*)`", path.read_text()):
            parts = name.split(".")
            places = [ROOT.joinpath(*parts[:n]) for n in range(1, len(parts) + 1)]
            if not any(p.is_dir() or p.with_suffix(".py").is_file() for p in places[:1]):
                wrong.append(f"{path.relative_to(ROOT)} speaks of bittern.{name}")
    assert not wrong, "\n".join(wrong)


def commands_of(readme):
    """The commands in the fenced blocks of a text."""
    blocks = re.findall(r"^```(?:\w*)\n(.*?)^```", readme, flags=re.DOTALL | re.MULTILINE)
    lines = [line.strip().removeprefix("$ ") for block in blocks for line in block.splitlines()]
    return [line for line in lines if line.startswith(("scripts/", "bittern ", "python "))]


def test_the_readme_names_only_commands_that_exist():
    commands = commands_of((PROJECT / "README.md").read_text())
    assert commands
    for command in commands:
        program, *arguments = command.split()
        if program.startswith("scripts/"):
            assert (PROJECT / program).is_file(), command
            assert (PROJECT / program).stat().st_mode & 0o111, command
        elif program == "bittern":
            words = [argument for argument in arguments if not argument.startswith("-")]
            assert CliRunner().invoke(app, [*words[:1], "--help"]).exit_code == 0, command
        elif arguments and arguments[0].endswith(".py"):
            assert (PROJECT / arguments[0]).is_file(), command
