"""Install this checkout with files whose hashes are in hashes.txt, or write hashes.txt.

    python scripts/hashed.py install dev,docs    into the environment of this Python
    python scripts/hashed.py write [WHEEL ...]   of all files of the pinned versions, and of wheels

pip checks hashes of everything or of nothing, and a folder has none.  So pip first plans what it
would install; then it installs that, with hashes, and at the end the folder alone.
"""

import hashlib
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HASHES, CONSTRAINTS = ROOT / "hashes.txt", ROOT / "constraints.txt"
BACKEND = (  # what builds ROOT
    "editables",
    "hatchling",
    "packaging",
    "pathspec",
    "pluggy",
    "tomlkit",
    "trove-classifiers",
)
HEAD = (
    "# SHA-256 of the files of every version in constraints.txt: python scripts/hashed.py write\n"
)


def install(extras):
    """Install ROOT with these extras and all that they need; pip's exit code."""
    target = f".[{extras}]" if extras else "."
    usual = ["-c", str(CONSTRAINTS), "-e", target]
    hashes = parsed(HASHES.read_text())
    with tempfile.TemporaryDirectory() as folder:
        plan = Path(folder, "plan.json")
        backend = {name: hashes[name][0] for name in BACKEND}
        code = install_hashed(backend, hashes, folder) or pip(
            "--dry-run", "--report", str(plan), "--no-build-isolation", *usual
        )
        versions = {} if code else planned(json.loads(plan.read_text()))
        unknown = sorted(versions.keys() - hashes.keys())
        known = {name: version for name, version in versions.items() if name in hashes}
        code = code or install_hashed(known, hashes, folder)
    if code:
        sys.stderr.write(f"To install without checking hashes: pip install {' '.join(usual)}\n")
        return code
    if unknown:  # another platform may need more than was tested
        sys.stderr.write(f"No hash is known of {', '.join(unknown)}: installed unchecked.\n")
        return pip("--no-build-isolation", *usual)
    return pip("--no-build-isolation", "--no-deps", *usual)


def install_hashed(versions, hashes, folder):
    """Install these versions, if each file has a hash that is known."""
    wanted = Path(folder, "requirements.txt")
    wanted.write_text(requirements({n: (v, hashes[n][1]) for n, v in versions.items()}))
    return pip("--no-deps", "--require-hashes", "-r", str(wanted)) if versions else 0


def pip(*words):
    """Run ``pip install`` with these words; its exit code."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    return subprocess.run([*command, *words], cwd=ROOT).returncode


def planned(report):
    """The versions that pip would install besides this project, by plain name."""
    listed = (one["metadata"] for one in report["install"])
    versions = {plain(one["name"]): one["version"] for one in listed}
    return {name: version for name, version in versions.items() if name != "bittern"}


def write(wheels):
    """Write hashes.txt; the known hashes of a version that is still pinned stay."""
    command = [sys.executable, "-m", "uv", "pip", "compile", str(CONSTRAINTS), "--quiet"]
    command += ["--no-deps", "--generate-hashes", "--universal", "--python-version", "3.11"]
    command += ["--no-header", "--no-annotate"]
    hashes = parsed(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    before = parsed(HASHES.read_text()) if HASHES.exists() else {}
    for name, (version, found) in hashes.items():
        was, kept = before.get(name, (None, set()))
        found |= kept if was == version else set()
    for wheel in map(Path, wheels):
        hashes[plain(wheel.name.split("-")[0])][1].add(
            f"sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}"
        )
    new = HASHES.with_name(HASHES.name + ".new")
    new.write_text(HEAD + requirements(hashes))
    new.replace(HASHES)
    return 0


def parsed(text):
    """The version and the hashes of each package of a requirements file, by its plain name."""
    found = {}
    for line in text.replace("\\\n", " ").splitlines():
        if pin := re.match(r"([\w.-]+)==(\S+)", line):
            found[plain(pin[1])] = pin[2], set(re.findall(r"--hash=(\S+)", line))
    return found


def requirements(hashes):
    """A requirements file of versions and hashes."""
    lines = []
    for name, (version, found) in sorted(hashes.items()):
        lines.append(
            " \\\n    ".join([f"{name}=={version}", *sorted(f"--hash={h}" for h in found)])
        )
    return "\n".join(lines) + "\n"


def plain(name):
    """The name of a package as indexes spell it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def main(words):
    """Do what the words say; the exit code."""
    match words:
        case ["install", extras]:
            return install(extras)
        case ["write", *wheels]:
            return write(wheels)
    sys.stderr.write(f"{__doc__}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
