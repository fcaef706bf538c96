"""Small edits of JSON bodies that leave every other byte where it is (P23), and reading what answers hold."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from pegboard.gateways.llm.reading import readable
from pegboard.gateways.llm.spans import Edit, Member, elements, members, splice
from pegboard.gateways.llm.way_back.wire import Document

APART = "\n\n"
"""Between what the model said before a search and what it said after, where a format has one text for both."""


def written(value: object) -> bytes:
    """As JSON in ASCII: half a surrogate pair, which answers may hold, has no other way to be sent."""
    return json.dumps(value, separators=(",", ":")).encode()


def loaded(data: bytes | str) -> Document | None:
    """The object that JSON holds; None where it is none."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def fields_of(body: bytes) -> tuple[bytes, dict[str, Member]]:
    """The text of a body and its members, which stand in it where they stand in the body."""
    try:
        return body, members(body)
    except msgspec.DecodeError:
        text = readable(body)
        return text, members(text)


def appended(body: bytes, name: str, items: Sequence[object]) -> bytes:
    """The body with these items at the end of an array that is a member of it, which is made where it is not there."""
    text, fields = fields_of(body)
    new = b",".join(map(written, items))
    if name not in fields:
        return with_member(body, name, b"[" + new + b"]")
    start, end = fields[name].value
    if text[start:end] == b"null":
        return splice(body, [Edit(start, end, b"[" + new + b"]")])
    found = elements(text, fields[name].value)
    at = found[-1].end if found else start + 1
    return splice(body, [Edit(at, at, b"," + new if found else new)])


def listed(body: bytes, name: str) -> bytes:
    """The body with a member as an array, of the one thing that it was."""
    text, fields = fields_of(body)
    if name not in fields or text[fields[name].value.start :].startswith(b"["):
        return body
    start, end = fields[name].value
    return splice(body, [Edit(start, start, b"["), Edit(end, end, b"]")])


def with_member(body: bytes, name: str, value: bytes) -> bytes:
    """The body with one member more, behind the others."""
    _, fields = fields_of(body)
    new = written(name) + b":" + value
    if fields:
        at = list(fields.values())[-1].end
        return splice(body, [Edit(at, at, b"," + new)])
    at = body.index(b"{") + 1
    return splice(body, [Edit(at, at, new)])


def summed(first: Any, second: Any) -> Any:
    """Usage of two answers: numbers add up, whatever they count; of anything else the later word counts."""
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        names = [*first, *(name for name in second if name not in first)]
        return {name: summed(first.get(name), second.get(name)) for name in names}
    if _is_number(first) and _is_number(second):
        return first + second
    return first if second is None else second


def schema() -> Document:
    """The schema of what the extra tool takes."""
    query = {"type": "string", "description": "What you want to do, in a few words"}
    return {"type": "object", "properties": {"query": query}, "required": ["query"], "additionalProperties": False}


def query_of(arguments: str) -> str:
    """What a call of the search tool looks for; models that put it elsewhere than asked are understood too."""
    given = loaded(arguments)
    if given is None:
        return arguments.strip()
    texts = [given["query"]] if isinstance(given.get("query"), str) else given.values()
    return " ".join(text for text in texts if isinstance(text, str)).strip()


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
