"""What the scripts install: the tested versions, each file with the hash that hashes.txt knows."""

import hashlib
import importlib.util
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def hashed():
    spec = importlib.util.spec_from_file_location("hashed", ROOT / "scripts" / "hashed.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_pinned_version_has_its_hashes_and_no_other(hashed):
    pinned = hashed.parsed((ROOT / "constraints.txt").read_text())
    known = hashed.parsed((ROOT / "hashes.txt").read_text())
    assert {n: v for n, (v, _) in known.items()} == {n: v for n, (v, _) in pinned.items()}
    assert all(known[name][1] for name in known)
    assert set(hashed.BACKEND) <= set(known)


def test_a_requirements_file_comes_back(hashed):
    hashes = {"a-b": ("1.0", {"sha256:00", "sha256:ff"}), "c": ("2", {"sha256:11"})}
    assert hashed.parsed("# head\n" + hashed.requirements(hashes)) == hashes


def test_what_a_plan_names_is_all_but_this_project(hashed):
    listed = [("Bittern", "0.1.0"), ("Ruamel.YAML", "1.2"), ("torch", "2.13.0+cpu")]
    report = {"install": [{"metadata": {"name": n, "version": v}} for n, v in listed]}
    assert hashed.planned(report) == {"ruamel-yaml": "1.2", "torch": "2.13.0+cpu"}


def wheel(folder):
    """A wheel of a package that holds nothing."""
    path, about = folder / "nothing-1.0-py3-none-any.whl", "nothing-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            f"{about}/METADATA", "Metadata-Version: 2.1\nName: nothing\nVersion: 1.0\n"
        )
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", "")
    return path


def test_pip_refuses_a_file_with_another_hash(hashed, tmp_path, monkeypatch):
    right = f"sha256:{hashlib.sha256(wheel(tmp_path).read_bytes()).hexdigest()}"
    for name, value in {"NO_INDEX": "1", "FIND_LINKS": str(tmp_path), "DRY_RUN": "1"}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    for found, is_installed in ((right, True), ("sha256:" + "0" * 64, False)):
        hashes = {"nothing": ("1.0", {found})}
        assert (hashed.install_hashed({"nothing": "1.0"}, hashes, tmp_path) == 0) is is_installed


def test_without_words_it_says_what_it_takes():
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "hashed.py"], capture_output=True, text=True
    )
    assert done.returncode == 2 and "hashed.py install" in done.stderr
