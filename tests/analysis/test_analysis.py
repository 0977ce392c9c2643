"""Analysis: computed once, the same as its parts, and what every report takes."""

import numpy as np
import pytest
from made_records import drawn, records_of, three_methods

from bittern.analysis import (
    Analysis,
    analyse,
    analysis,
    areas_against_means,
    best_by_length,
    compare_experiments,
    compare_methods,
    costs,
    leaders,
    summarise,
)
from bittern.report import REPORTS, page_of, to_svg

RECORDS = records_of(three_methods(), spread=0.02)


def test_an_analysis_of_an_analysis_is_itself():
    found = analyse(RECORDS)
    assert isinstance(found, Analysis) and found.records is RECORDS
    assert analyse(found) is found


def test_its_parts_are_those_of_the_functions():
    found = analyse(RECORDS)
    assert found.summaries() == found.summaries("ap") == summarise(RECORDS, "ap")
    assert found.best() == best_by_length(RECORDS, "ap")
    assert repr(found.leaders()) == repr(leaders(RECORDS, "ap"))
    assert found.verdicts() == tuple(compare_methods(RECORDS, "ap", n) for n in (8, 16))
    assert repr(found.areas) == repr(areas_against_means(RECORDS))
    assert found.costs == costs(RECORDS)


def test_it_knows_which_methods_have_codes():
    found = analyse(RECORDS)
    assert (found.coded, found.uncoded) == (("a", "b", "c"), ("float",))
    assert found.columns == found.lengths == (8, 16)
    without = analyse(records_of({("float", None): drawn(2, 5, 0.5, 0)}))
    assert (without.coded, without.lengths, without.columns) == ((), (), (None,))


@pytest.mark.parametrize("name", ["summarise", "compare_methods", "areas_against_means", "costs"])
def test_each_part_is_computed_once(monkeypatch, name):
    calls = []
    compute = getattr(analysis, name)

    def counting(*arguments):
        calls.append(arguments[1:])
        return compute(*arguments)

    monkeypatch.setattr(analysis, name, counting)
    found = analyse(RECORDS)
    for write in (page_of, *REPORTS.values()):
        write(found)
    assert calls and len(set(calls)) == len(calls)


def test_reports_of_records_and_of_their_analysis_are_equal():
    found = analyse(RECORDS)
    for write in (page_of, *REPORTS.values()):
        assert write(found) == write(RECORDS)
    assert to_svg(found, "ties") == to_svg(RECORDS, "ties")


def test_two_analyses_can_be_compared():
    other = records_of(three_methods(), spread=0.02)
    found = compare_experiments(analyse(RECORDS), analyse(other))
    assert [row.difference for row in found.rows] == [0.0] * 7


def test_undefined_values_are_counted_over_methods_with_codes():
    values = {("float", None): [[np.nan, 0.5]] * 2, ("a", 8): [[0.5, np.nan], [0.5, 0.5]]}
    assert analyse(records_of(values)).undefined("ap") == (1, 4)
    assert analyse(records_of({("float", None): [[np.nan, 0.5]]})).undefined("ap") == (1, 2)
