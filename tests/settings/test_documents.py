from __future__ import annotations

import json
import re
import traceback
from pathlib import Path
from typing import Any

import json5
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pegboard.settings.documents import json_members, syntax_of

JSON, TOML, YAML = (syntax_of(Path(f"a.{suffix}")) for suffix in ("json", "toml", "yaml"))
NAMES = st.text(min_size=1, max_size=4)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=6,
)


def swapped(syntax: Any, text: str, place: tuple[str, ...], gone: list[str], name: str, value: Any) -> str:
    return str(syntax.changed(text, place, gone, [syntax.written(text, place, name, value)]))


def test_a_large_file_with_comments_is_read_and_a_large_cut_one_is_an_error_that_says_where(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    entries = "".join(f'"s{number}": {{"command": "x"}}, // {number}\n' for number in range(5_000))
    monkeypatch.setattr(json_members.json5, "loads", lambda _: pytest.fail("the slow parser was asked"))

    assert len(JSON.parse(f'{{"mcpServers": {{{entries}}},}}')["mcpServers"]) == 5_000
    with pytest.raises(ValueError, match=r"line 500[01] column"):
        JSON.parse(f'{{"mcpServers": {{{entries}')
    with pytest.raises(ValueError, match="JSON5 is read in files of up to 50,000 characters"):
        JSON.parse(f"{{mcpServers: {{{entries}}}}}")


@given(
    members=st.dictionaries(NAMES, VALUES, min_size=1, max_size=4),
    rest=st.dictionaries(NAMES, VALUES, max_size=2),
    indent=st.sampled_from([None, 2, 4, "\t"]),
    data=st.data(),
)
def test_of_any_json_exactly_the_members_change(
    members: dict[str, Any], rest: dict[str, Any], indent: Any, data: st.DataObject
) -> None:
    document = rest | {"at": {"here": members}}
    text = json.dumps(document, indent=indent, ensure_ascii=data.draw(st.booleans()))
    gone = data.draw(st.lists(st.sampled_from(sorted(members)), unique=True))
    made = swapped(JSON, text, ("at", "here"), gone, "new", {"command": "x"})

    kept = {name: value for name, value in members.items() if name not in gone}
    assert json.loads(made) == rest | {"at": {"here": {"new": {"command": "x"}} | kept}}


@pytest.mark.parametrize(
    ("text", "gone", "expected"),
    [
        ('{"s": {"a": 1, "b": 2}}', ["b"], '{"s": {"n": {}, "a": 1}}'),
        ('{"s": {"a": 1, "b": 2}}', ["a"], '{"s": {"n": {}, "b": 2}}'),
        ('{"s": {"a": 1, "a": 2}}', ["a"], '{"s": {"n": {}}}'),
        ('{"s": {"a": 1,}, "s": {"b": 1}}', [], '{"s": {"a": 1,}, "s": {"n": {}, "b": 1}}'),
        (
            '{\n  "s": {\n    // one\n    "a": 1, // here\n    "b": 2 /* last */\n  }\n}',
            ["b"],
            '{\n  "s": {\n    // one\n    "n": {},\n    "a": 1 // here\n    /* last */\n  }\n}',
        ),
        ("{'s': {a: '\\x41', b: \"it's\"}}", ["b"], "{'s': {\"n\": {}, a: '\\x41' }}"),
    ],
)
def test_comments_commas_and_other_ways_of_writing_json_stay(text: str, gone: list[str], expected: str) -> None:
    made = swapped(JSON, text, ("s",), gone, "n", {})

    assert json5.loads(made) == json5.loads(expected)
    assert [word for word in ("// one", "// here", "/* last */", "'\\x41'") if word in text and word not in made] == []
    assert ",}" not in made.replace(" ", "").replace("\n", "") or ",}" in text


def test_tables_of_toml_go_with_all_their_parts_and_remarks_stay() -> None:
    text = (
        '[s.a]\ncommand = "a"\n\n[other]\nx = """\n[s.b]\n"""\n\n# of b\n[s.b]\ncommand = "b" # c\n\n'
        '[s.b.env]\nK = "v"\n\n# last\n[[list]]\ny = 1\n'
    )
    made = TOML.changed(text, ("s",), ["b"], [])

    assert TOML.parse(made) == {key: value for key, value in TOML.parse(text).items() if key != "s"} | {
        "s": {"a": {"command": "a"}}
    }
    assert "# of b" in made
    assert "# last" in made
    assert TOML.source(text, ("s",), "b") == '[s.b]\ncommand = "b" # c\n[s.b.env]\nK = "v"\n'


@pytest.mark.parametrize("name", ["a.b", 'quo"te', "ünï", "two words"])
@pytest.mark.parametrize("syntax", [JSON, TOML, YAML])
def test_a_name_is_written_so_that_it_is_read_back(syntax: Any, name: str) -> None:
    text = {"JSON": '{"s": {"a": {"c": 1}}}', "TOML": "[s.a]\nc = 1\n", "YAML": "s:\n  a:\n    c: 1\n"}[syntax.name]
    made = swapped(syntax, text, ("s",), ["a"], name, {"c": [1, "x"]})

    assert syntax.parse(made) == {"s": {name: {"c": [1, "x"]}}}
    assert syntax.parse(syntax.changed(made, ("s",), [name], [syntax.source(text, ("s",), "a")])) == syntax.parse(text)


def test_a_number_in_yaml_is_a_text_where_it_would_be_written_in_another_way() -> None:
    texts = ["22:22", "3.10", "0755", "1_000", "0x1F", "+5", "1:30.5"]
    numbers = ["8080", "0", "-1", "0.5", "-1.5", "1.0"]

    assert YAML.parse(f"[{', '.join(texts)}]") == texts
    assert [(type(each), each) for each in YAML.parse(f"[{', '.join(numbers)}]")] == [
        *((int, each) for each in (8080, 0, -1)),
        *((float, each) for each in (0.5, -1.5, 1.0)),
    ]


def test_words_and_dates_that_mean_something_else_only_in_yaml_1_1_are_texts() -> None:
    texts = ["yes", "No", "ON", "off", "2026-01-01", "2026-01-01T10:00:00Z", "="]

    assert YAML.parse(f"[{', '.join(texts)}]") == texts
    assert YAML.parse("on: {NO: true}") == {"on": {"NO": True}}
    assert YAML.parse("[true, True, FALSE, null, ~]") == [True, True, False, None, None]


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_blocks_of_yaml_go_with_their_texts_of_several_lines(ending: str) -> None:
    text = "s:\n  a:\n    t: |\n      one\n\n      two\n\n  # of b\n  b: {c: 1}\n  c:\n  - 1\n  - 2\nrest: 1\n"
    text = text.replace("\n", ending)
    made = YAML.changed(text, ("s",), ["a", "c"], [])

    assert yaml.safe_load(made) == {"s": {"b": {"c": 1}}, "rest": 1}
    assert f"# of b{ending}" in made


@pytest.mark.parametrize(
    ("syntax", "text"),
    [
        *((JSON, text) for text in ("{}", '{"s": {}}', '{"s": [1]}', "[]")),
        *((TOML, text) for text in ("", "[s]\n", 's = { a = { c = "x" } }\n', '[s]\na = { c = "x" }\n')),
        *((YAML, text) for text in ("", "s:\n", "s: {a: {c: 1}}\n", "- 1\n")),
    ],
)
def test_a_place_without_editable_members_is_an_error(syntax: Any, text: str) -> None:
    with pytest.raises(LookupError):
        syntax.changed(text, ("s",), [], [])


@pytest.mark.requirement("M30")
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('env:\n  TOKEN: "hush-hush\n', "unexpected end of stream (at line 3, column 1)"),
        ("env: {TOKEN: hush-hush: x}\n", "expected ',' or '}', but got ':' (at line 1, column 23)"),
        ("TOKEN: *hush-hush\n", "undefined alias '***' (at line 1, column 8)"),
        ("TOKEN: !hush-hush x\n", "tag '***' (at line 1, column 8)"),
        ("TOKEN: @hush-hush\n", "character '@'"),
        ("env:\n\tTOKEN: hush-hush\n", r"character '\t' that cannot start any token (at line 2, column 1)"),
        ("TOKEN: hush-hush\x08\n", "special characters are not allowed"),
        ("TOKEN: !!bool hush-hush\n", "not what its tag says"),
        ("TOKEN: !!int hush-hush\n", "not what its tag says"),
        ("TOKEN: !!int ''\n", "not what its tag says"),
        ("[" * 3_000, "nested too deep"),
    ],
)
def test_what_is_wrong_in_a_file_is_said_without_the_words_in_it(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)) as caught:
        YAML.parse(text)

    assert "hush" not in "".join(traceback.format_exception(caught.value))
