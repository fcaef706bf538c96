"""Long JSON whose nested values are written as they stand there."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.results import json_parts
from pegboard.results.json_parts import LONG, written_json
from pegboard.results.json_tables import NotShaped, parsed_json, table_text

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-9, 10**20), st.sampled_from([1.5, 1e-7, 1e22, "", "é/\u2028", "-0", '"q"'])
)
NESTED = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["id", "a.b", "x?", "é:"]), inner, max_size=3)
    ),
    max_leaves=12,
)
ROWS = st.lists(
    st.fixed_dictionaries({"id": NESTED, "user": NESTED}, optional={"labels": NESTED}), min_size=3, max_size=5
)


@given(value=st.one_of(ROWS, st.fixed_dictionaries({"total": SCALARS, "items": ROWS})), ascii_=st.booleans())
@settings(max_examples=150, deadline=None)
@pytest.mark.requirement("results.shapes")
def test_nested_values_that_are_not_read_are_written_as_those_that_are(value: Any, ascii_: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_)
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(json_parts, "LONG", 0)
        changed.setattr(json_parts, "FIELD", 0)
        changed.setattr(json_parts, "VALUE", 0)
        try:
            written = table_text(written_json(text)).lines
        except NotShaped:  # the whole text is read then
            return

    assert written == table_text(parsed_json(text)).lines


def nested_rows(count: int) -> list[dict[str, Any]]:
    return [{"id": at, "tags": [{"name": f"tag {each}", "at": each} for each in range(40)]} for at in range(count)]


def test_of_long_rows_nested_values_are_not_read() -> None:
    text = json.dumps(nested_rows(100))

    assert len(text) > LONG
    assert type(written_json(text)[7]["tags"]).__name__ == "WrittenJson"
    assert table_text(written_json(text)).lines == table_text(parsed_json(text)).lines


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([{"id": at, "name": f"part {at}", "weight": at / 4} for at in range(2_000)]),
        json.dumps(nested_rows(100)).replace('"id": 7,', '"id": 7, "id": 8,'),
        json.dumps([{"user": {"id": at}, "tags": row["tags"] * 3} for at, row in enumerate(nested_rows(100))]).replace(
            '{"id": 7}', '{"id": 7, "id": 8}'
        ),
        json.dumps(nested_rows(100)).replace('"id": 7,', '"id": -0,'),
        json.dumps(nested_rows(100))[:-1],
        json.dumps({"rows": nested_rows(100), "a": 1}).replace('"a": 1', '"a": 1, "a": 2'),
    ],
    ids=[
        "little is nested",
        "a key twice",
        "a key twice in fields",
        "a negative zero",
        "no end",
        "a key twice around them",
    ],
)
def test_other_json_is_left_to_whoever_reads_all_of_it(text: str) -> None:
    with pytest.raises(NotShaped):
        written_json(text)


def test_half_a_surrogate_pair_in_a_nested_value_is_written_as_it_was_read() -> None:
    rows = [{**row, "tags": [{"name": "\ud800 of it", "at": at} for at in range(40)]} for row in nested_rows(100)]
    text = json.dumps(rows, ensure_ascii=False)

    assert table_text(written_json(text)).lines == table_text(parsed_json(text)).lines


def test_rows_of_which_each_has_a_field_of_its_own_are_gone_through_once() -> None:
    rows = [{f"k{at}": tags} for at, tags in enumerate([nested_rows(1)[0]["tags"]] * 2_000)]
    looked_up = 0

    class Counted(dict[str, Any]):
        def __contains__(self, key: object) -> bool:
            nonlocal looked_up
            looked_up += 1
            return super().__contains__(key)

    json_parts._fill(
        [Counted({key: json.dumps(each).encode()}) for row in rows for key, each in row.items()], 0, again=False
    )

    assert looked_up < 10 * len(rows)
