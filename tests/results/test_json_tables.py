"""JSON as tables, and back."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.results.json_tables import LONG, NotShaped, json_text, parsed_json, restored, table_text

TEXTS = st.text(alphabet=st.characters(exclude_characters="\ue000\ue001", exclude_categories=["Cs"]), max_size=12)
AWKWARD = st.sampled_from(
    [
        "",
        " ",
        "1",
        "-0",
        "1e5",
        "true",
        "null",
        "a\tb",
        "a\nb",
        '"q"',
        "[x",
        "{",
        "@1",
        "x?",
        "a.b",
        "\0",
        "\x85",
        "\u2028",
        "1.",
        "01",
    ]
)
KEYS = st.one_of(st.sampled_from(["id", "title", "user", "a.b", "x?", "", "@1", 'q"', "n m"]), TEXTS)
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), TEXTS, AWKWARD
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=5),
        st.dictionaries(KEYS, inner, max_size=5),
        st.lists(st.fixed_dictionaries({"id": inner, "user": st.dictionaries(KEYS, inner, max_size=3)}), max_size=6),
    ),
    max_leaves=30,
)
ARRAYS = st.integers(1, 4).flatmap(
    lambda cells: st.lists(st.lists(SCALARS, min_size=cells, max_size=cells), min_size=2, max_size=6)
)


@given(value=st.one_of(VALUES, ARRAYS, st.fixed_dictionaries({"columns": VALUES, "rows": ARRAYS})))
@settings(max_examples=500, deadline=None)
@pytest.mark.requirement("results.shapes")
def test_the_same_json_is_read_from_the_tables(value: Any) -> None:
    text = json.dumps(value).replace("-0.0", "0.5")  # no negative zero
    written = "\n".join(table_text(parsed_json(text)).lines)

    assert same(restored(written), json.loads(text))
    assert written == "\n".join(table_text(parsed_json(text)).lines)


def same(one: Any, other: Any) -> bool:
    """Equal in JSON: 1, 1.0 and true differ."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def test_an_array_of_arrays_is_a_table_whose_fields_are_places() -> None:
    rows = [["size", "path"], [7, "a.py"], [None, "b.py"]]

    assert table_text(parsed_json(json.dumps({"values": rows, "odd": [[1, 2], [3, 4], [5]]}))).lines == [
        '{"values":@1,"odd":[[1,2],[3,4],[5]]}',
        "@1 3 rows, each an array",
        "0\t1",
        "size\tpath",
        "7\ta.py",
        "\tb.py",
    ]


def test_an_array_of_objects_is_a_table_with_what_all_rows_share_said_once() -> None:
    rows = [{"id": at, "user": {"login": f"u{at}"}, "state": "open", "body": None if at else "x"} for at in range(3)]

    assert table_text(parsed_json(json.dumps({"total": 3, "items": rows}))).lines == [
        '{"total":3,"items":@1}',
        '@1 3 rows, each with {"state":"open"}',
        "id\tuser.login\tbody",
        "0\tu0\tx",
        "1\tu1\t",
        "2\tu2\t",
    ]


def test_a_missing_field_is_not_null() -> None:
    rows = [{"a": 1, "b": None}, {"a": 2}, {"a": 3, "b": "null"}]

    lines = table_text(rows).lines

    assert lines[1:] == ["a\tb?", "1\tnull", "2\t", '3\t"null"']
    assert restored("\n".join(lines)) == rows


@pytest.mark.parametrize("literal", ["1.10", "1e5", "0.1000", "12345678901234567890123", "1E-7", "1e400", "3.0"])
@pytest.mark.requirement("results.shapes")
def test_numbers_stay_as_they_are_written(literal: str) -> None:
    text = f'[{{"n": {literal}, "s": "{literal}"}}, {{"n": 1, "s": "a"}}, {{"n": 2, "s": "b"}}]'

    lines = table_text(parsed_json(text)).lines

    assert lines[2] == f'{literal}\t"{literal}"'
    assert json_text(parsed_json(f"[{literal}]")) == f"[{literal}]"


@pytest.mark.parametrize(
    "text", ['{"a": 1, "a": 2}', "[NaN]", "[-0]", '["\ue000"]', r'["\ue000"]', "[1", "not json", "[" * 100_000]
)
def test_what_could_not_be_read_again_is_not_shaped(text: str) -> None:
    with pytest.raises(NotShaped):
        parsed_json(text)


def test_arrays_that_share_few_fields_stay_json() -> None:
    rows = [{f"k{at}": at, f"m{at}": at} for at in range(5)]

    assert len(table_text(rows).lines) == 1


def test_of_an_array_that_stays_json_no_cells_are_made() -> None:
    rows = [{f"k{at}": at} for at in range(3_000)]
    tracemalloc.start()
    try:
        written = table_text(rows)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert written.lines == [json.dumps(rows, separators=(",", ":"))]
    assert most < 10_000_000


def test_a_sparse_array_is_a_table_if_the_fields_of_nested_objects_fill_it() -> None:
    rows = [{f"k{at}": at, "all": dict.fromkeys("abcdef", at)} for at in range(4)]

    written = table_text(rows)
    assert written.lines[1].split("\t") == [
        "k0?",
        "all.a",
        "all.b",
        "all.c",
        "all.d",
        "all.e",
        "all.f",
        "k1?",
        "k2?",
        "k3?",
    ]
    assert restored("\n".join(written.lines)) == rows


FLOATS = st.sampled_from([1e16, 1e-05, 1e-07, 0.0001, 1.5, 1e22, -2.5e-08, 123456789.125])
NESTED = st.recursive(
    st.one_of(FLOATS, st.integers(), st.booleans(), st.none(), st.text(max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=4), inner, max_size=4)),
    max_leaves=12,
)


@given(value=NESTED, indent=st.sampled_from([None, 1]), ascii_only=st.booleans())
def test_a_long_text_is_read_and_written_as_python_reads_and_writes_it(
    value: object, indent: int | None, *, ascii_only: bool
) -> None:
    short = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    long = f"{short}{' ' * LONG}"
    assert _read(long) == _read(short)
    assert json_text(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1,"a":2}',
        '{"a":1.5,"a":2}',
        '{"a":1.5,"a":"\\u003a"}',
        '{"a":{"b":1,"b":{"c":":"}}}',
        '{"a":1,"a":"\\u003a"}',
        '{"\\u003a":1,"b":2,"b":3}',
        '{"a" :1,"a":2}',
        "[NaN]",
        "[-0]",
        "[1,]",
    ],
)
def test_a_long_text_that_python_cannot_hold_is_not_shaped(text: str) -> None:
    with pytest.raises(NotShaped):
        parsed_json(f"{text}{' ' * LONG}")


def test_half_a_surrogate_pair_is_read_in_a_long_text() -> None:
    assert parsed_json(f'["\\ud800"]{" " * LONG}') == ["\ud800"]
    assert json_text(["\ud800"]) == '["\ud800"]'


def _read(text: str) -> object:
    try:
        return repr(parsed_json(text))
    except NotShaped:
        return NotShaped
