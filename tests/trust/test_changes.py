"""What has changed in a definition, place by place."""

from __future__ import annotations

import json
from typing import Any

from pegboard.trust import Change, changes, only_order

OLD: dict[str, Any] = {
    "name": "dig",
    "description": "Dig a hole",
    "inputSchema": {"properties": {"depth": {"type": "integer", "default": 1}}, "required": ["depth", "width"]},
}


def between(**new: Any) -> list[Change]:
    return changes(json.dumps(OLD), json.dumps(OLD | new))


def test_each_change_has_its_place() -> None:
    schema = {"properties": {"depth": {"type": "string"}, "to": {"type": "string"}}, "required": ["width", "depth"]}

    assert between(description="Dig a grave", inputSchema=schema) == [
        Change(place="description", before="Dig a hole", after="Dig a grave"),
        Change(place="inputSchema.properties.depth.default", before="1", after=None),
        Change(place="inputSchema.properties.depth.type", before="integer", after="string"),
        Change(place="inputSchema.properties.to.type", before=None, after="string"),
    ]


def test_another_order_of_what_has_none_is_no_change() -> None:
    schema = OLD["inputSchema"] | {"required": ["width", "depth"]}

    assert changes(json.dumps(OLD), json.dumps(dict(reversed((OLD | {"inputSchema": schema}).items())))) == []


def test_against_nothing_everything_is_new() -> None:
    assert [(each.place, each.before) for each in changes(None, '{"name": "dig", "icons": [{"src": "x"}]}')] == [
        ("icons[0].src", None),
        ("name", None),
    ]


def test_changed_words_are_marked_and_what_is_hidden_is_shown() -> None:
    [change] = between(description="Dig a\u200b hole \U000e0041")
    assert change.marked == "Dig [-a-]{+a\\u200b+} hole{+ \\U000e0041+}"


def test_of_a_long_text_only_what_is_near_a_change_is_shown() -> None:
    words = [f"w{number}" for number in range(200)]
    before = " ".join(words)
    words[100] = "new"

    marked = Change(place="d", before=before, after=" ".join(words)).marked

    assert "[-w100-]{+new+}" in marked
    assert len(marked) < 80
    assert marked.startswith("…")


def test_texts_of_many_words_are_shown_whole() -> None:
    marked = Change(place="d", before="a " * 3_000, after="b " * 3_000).marked

    assert marked.startswith("[-a a")
    assert marked.endswith("b +}")


def test_words_that_are_repeated_very_often_are_not_compared_one_by_one() -> None:
    before, after = "first " + "a b " * 500 + "last", "first " + "b a " * 500 + "the last"

    parts = Change(place="d", before=before, after=after).parts

    assert [kind for kind, _ in parts] == ["same", "gone", "new", "same"]
    assert (parts[0][1], parts[-1][1]) == ("first ", " last")


def test_both_versions_can_be_read_from_the_parts() -> None:
    before = "Send a mail  to the people of a list. Adds the mail to the list of mails.\nEnds."
    after = "Send a short mail to all people of the list. Adds a mail to the mails of the list.\n\nEnds."

    parts = Change(place="d", before=before, after=after).parts

    assert "".join(text for kind, text in parts if kind != "new") == before
    assert "".join(text for kind, text in parts if kind != "gone") == after
    assert ("same", "Send a ") in parts


def test_a_text_that_became_longer_or_shorter_has_one_change() -> None:
    assert Change(place="d", before="a b", after="a b a b").marked == "a b{+ a b+}"
    assert Change(place="d", before="a b a b", after="a b").marked == "a b[- a b-]"
    assert Change(place="d", before="", after="a b").marked == "{+a b+}"


def test_a_number_in_place_of_a_truth_value_is_a_change() -> None:
    assert not only_order('{"destructiveHint": true}', '{"destructiveHint": 1}')
    assert not only_order('{"readOnlyHint": false}', '{"readOnlyHint": 0}')
