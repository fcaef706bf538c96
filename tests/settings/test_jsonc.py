from __future__ import annotations

import json
from typing import Any

import json5
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.settings.jsonc import plain_json, span, with_value

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
NOTED = """// servers
{
    "other": [1, {"servers": "not this one"}], /* { "servers": 0 } */
    'servers': {
        // the first
        "a": {"command": "x // no comment", "args": ["}", "\\"{"]},
    },
    last: 1.50,
}
"""


def test_one_value_is_replaced_and_every_other_character_stays() -> None:
    made = with_value(NOTED, ("servers",), {"b": {"command": "y"}})
    start, end = span(NOTED, ("servers",))

    assert NOTED[start:end].startswith("{\n        // the first")
    assert made.startswith(NOTED[:start])
    assert made.endswith(NOTED[end:])
    assert json5.loads(made) == json5.loads(NOTED) | {"servers": {"b": {"command": "y"}}}
    assert '    {\n        "b": {\n' in made.replace("'servers': ", "    ")


def test_line_ends_and_tabs_are_those_of_the_file() -> None:
    made = with_value('{\r\n\t"a": {}\r\n}\r\n', ("a",), {"b": 1})

    assert made == '{\r\n\t"a": {\r\n\t\t"b": 1\r\n\t}\r\n}\r\n'


@pytest.mark.parametrize("text", ["{}", "[]", '{"b": {"a": 1}}', '[{"a": 1}]', ""])
def test_a_place_that_is_not_there_is_an_error(text: str) -> None:
    with pytest.raises(LookupError):
        with_value(text, ("a",), 1)


def test_of_two_equal_keys_the_one_that_counts_is_replaced() -> None:
    assert json.loads(with_value('{"a": 1, "a": 2}', ("a",), 3)) == {"a": 3}


@given(
    document=st.dictionaries(st.text(max_size=4), VALUES, min_size=1, max_size=4),
    value=VALUES,
    indent=st.sampled_from([None, 2, 4]),
    data=st.data(),
)
def test_any_value_of_any_document_can_be_replaced(
    document: dict[str, Any], value: Any, indent: int | None, data: st.DataObject
) -> None:
    key = data.draw(st.sampled_from(sorted(document)))

    assert json.loads(with_value(json.dumps(document, indent=indent), (key,), value)) == document | {key: value}


@given(value=VALUES, comment=st.sampled_from(["", '// "a", [\n', "/* {'b',\n */"]), indent=st.sampled_from([None, 2]))
def test_comments_and_trailing_commas_become_blanks(value: Any, comment: str, indent: int | None) -> None:
    text = json.dumps({"a": [value], "b": {"c": value}}, indent=indent)
    written = f"{comment}{text[:-2]},{comment}{text[-2:]}{comment}" if indent is None else f"{comment}{text}{comment}"

    assert json.loads(plain_json(written)) == json.loads(text)
    assert len(plain_json(written)) == len(written)


@pytest.mark.parametrize("text", ["[,]", "{,}", "[1,,]", '{"a":,}'])
def test_a_comma_without_a_value_before_it_stays_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"Expecting"):
        json.loads(plain_json(text))
