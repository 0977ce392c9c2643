"""Check that text from a stranger is a condition that a DuckDB file may be asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from bittern.errors import InputError
from bittern.store.base import TITLE
from bittern.store.duckfile import DuckFile

# What a condition may call.  DuckDB also has functions that wait, that fail with what only
# the server should know, or that make texts and lists of any size, for each item.
FUNCTIONS = frozenset(
    """
    ~~ !~~ ~~* !~~* ~~~ like_escape not_like_escape ilike_escape not_ilike_escape ^@
    + - * / // % ** ^ & | ~ << >> || @> <@ &&
    abs ceil ceiling even exp floor greatest isfinite isinf isnan least ln log log10 log2 mod pow
    power round sign sqrt trunc
    bit_length concat contains ends_with hash instr lcase left len length levenshtein lower ltrim
    md5 nullif ord parse_dirname parse_dirpath parse_filename position prefix regexp_extract
    regexp_full_match regexp_matches reverse right row rtrim split_part starts_with strip_accents
    strlen strpos substr substring suffix trim ucase unicode upper
    array_contains array_extract array_has array_has_all array_has_any array_length array_position
    list_contains list_element list_extract list_has list_has_all list_has_any list_position
    list_value string_split str_split split array_slice list_slice
    age century current_date current_timestamp date_diff date_part date_sub date_trunc datediff
    datepart datesub datetrunc day dayname dayofmonth dayofweek dayofyear decade epoch epoch_ms
    get_current_timestamp hour isodow isoyear julian last_day make_date make_timestamp microsecond
    millisecond minute month monthname now quarter second strftime strptime time_bucket timezone
    to_days to_hours to_minutes to_months to_seconds to_timestamp to_weeks to_years today
    try_strptime week weekday weekofyear year yearweek
    json_array_length json_contains json_exists json_extract json_extract_path
    json_extract_path_text json_extract_string json_type json_valid json_value ->> ->
    """.split()  # noqa: SIM905
)


def check_condition(where: str, file: DuckFile) -> None:
    """Fail unless it is one expression on the item's own values.

    As DuckDB parses it, a SELECT of the expression must differ from a SELECT of TRUE only in that
    expression, which must contain no SELECT and call none but harmless functions.
    """
    sql = "SELECT json_serialize_sql(?::VARCHAR), json_serialize_sql('SELECT (true)')"
    asked, plain = map(json.loads, file.rows(sql, [f"SELECT ({where}\n)"])[0])
    if asked["error"]:
        message = str(asked["error_message"]).splitlines()[0].rstrip(".!")
        raise InputError(f"{TITLE}: where must be one condition, got {where!r} ({message}).")
    selected = [_pop_select_list(tree) for tree in (asked, plain)]
    is_one = asked == plain and all(len(expressions) == 1 for expressions in selected)
    if not is_one or _has_subquery(selected[0]):
        raise InputError(
            f"{TITLE}: where must be one condition on the metadata, without SELECT, got {where!r}."
        )
    other = next((name for name in _called(selected[0]) if name not in FUNCTIONS), None)
    if other is not None:
        raise InputError(
            f"{TITLE}: where cannot use {other!r}, got {where!r}; conditions may compare, "
            "calculate, and look at texts, lists and dates."
        )


def _pop_select_list(tree: dict[str, Any]) -> list[Any]:
    """The expressions of a parsed SELECT, removed from it."""
    statements = tree["statements"]
    return statements[0]["node"].pop("select_list", []) if len(statements) == 1 else []


def _has_subquery(tree: Any) -> bool:
    if isinstance(tree, dict):
        return tree.get("class") == "SUBQUERY" or any(map(_has_subquery, tree.values()))
    return isinstance(tree, list) and any(map(_has_subquery, tree))


def _called(tree: Any) -> Iterator[str]:
    """The names of the functions in a parsed expression."""
    if isinstance(tree, dict) and tree.get("class") == "FUNCTION":
        yield str(tree["function_name"]).lower()
    parts = tree.values() if isinstance(tree, dict) else tree
    for part in parts if isinstance(tree, dict | list) else ():
        yield from _called(part)
