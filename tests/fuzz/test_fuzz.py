"""A short attack on every reader of files; ``scripts/fuzz`` is the long one."""

import sys
from pathlib import Path

import pytest
from attack import Tally, attack, file_name, main
from formats import FORMATS
from trials import BAD, Bench, damaged, seed_of

FOUND = Path(__file__).parent / "found"
SHORT = [name for name, one in FORMATS.items() if one.short]
N_TRIALS = 10  # of each format; always the same ones


@pytest.fixture(scope="module")
def seeds(tmp_path_factory):
    return tmp_path_factory.mktemp("seeds")


@pytest.mark.slow  # some thousand small files are read, in a process that imports everything
def test_damaged_files_are_refused_or_read(seeds):
    tally = Tally()
    attack(SHORT, seeds, tally, N_TRIALS)
    assert {name: one["next"] for name, one in tally.counts.items()} == dict.fromkeys(
        SHORT, N_TRIALS
    )
    assert not tally.listed(), "\n".join(tally.listed())
    assert sum(one["refused"] for one in tally.counts.values()) > N_TRIALS * len(SHORT) / 3


def test_trials_can_be_repeated(seeds):
    one = FORMATS["profile"]
    folder = seed_of(one, seeds)
    assert damaged(one, 3, folder) == damaged(one, 3, folder)
    assert damaged(one, 3, folder) != damaged(one, 4, folder)


@pytest.mark.parametrize("words", [("--format", "nope"), ("--trial", "nope", "1")])
def test_an_attack_on_an_unknown_format_is_refused_and_no_success(words, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["fuzz", *words])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert "codes.npz, codes.npy" in capsys.readouterr().err


def known():
    """Files that once ended badly, each beside the name of its format."""
    by_name = {file_name(one, 0).partition("--")[0]: one for one in FORMATS.values()}
    return [(path, by_name[path.name.partition("--")[0]]) for path in sorted(FOUND.glob("*--*"))]


@pytest.mark.parametrize(("path", "one"), known(), ids=lambda value: getattr(value, "name", ""))
def test_what_once_ended_badly_ends_well(path, one, seeds, tmp_path):
    if not one.short:
        pytest.skip(f"{one.name} loads a large library; scripts/fuzz has it")
    outcome, sentence = Bench(seeds, tmp_path).read(one, path.read_bytes())
    assert outcome not in BAD, sentence
