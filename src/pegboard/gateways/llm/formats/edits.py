"""Small edits of JSON bodies that keep all other bytes (P23), and helpers for reading answers."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from pegboard.errors import RequestNotUnderstood
from pegboard.gateways.llm.formats.json_spans import Edit, Member, elements, members, splice
from pegboard.gateways.llm.formats.tool_search import Document, SearchTool
from pegboard.lone_surrogates import readable

SEARCH_TOOLS = 64
"""Search tools whose JSON is remembered: a conversation's requests have the same, mostly."""
MOST_REMEMBERED = 32 * 1024
"""The most characters of the description of each."""
NO_JSON = "INVALID_JSON"
INFINITE, TOO_LARGE = "Infinity", "1e999"
"""How Python writes a number that it cannot hold, which is no JSON, and how to write one (RFC 8259, section 6)."""
STRING_OR_INFINITE = re.compile(rf'"[^"\\]*(?:\\.[^"\\]*)*"|{INFINITE}')
WHITESPACE = b" \t\r\n"
APART = "\n\n"
"""Separates the model's text before a search from that after it, if the format has one text for both."""


def written(value: object) -> bytes:
    """JSON in ASCII: lone surrogates, which answers may contain, cannot be sent otherwise.

    >>> written(loaded('{"x": [1e400, -1e400], "y": "Infinity"}'))
    b'{"x":[1e999,-1e999],"y":"Infinity"}'
    """
    text = json.dumps(value, separators=(",", ":"))
    if INFINITE in text:
        text = STRING_OR_INFINITE.sub(lambda found: TOO_LARGE if found[0] == INFINITE else found[0], text)
    return text.encode()


def loaded(data: bytes | str) -> Document | None:
    """The JSON object; None if it is anything else. NaN and infinity are read as Python reads them, since some servers
    send them."""
    return _object_in(data)


def strictly_loaded(text: str) -> Document | None:
    """The JSON object that a model or a tool wrote as text; None if it is anything else.

    An object with NaN or infinity is none, nor is one with a number that becomes infinite: it could not be written as
    JSON again (RFC 8259, section 6).
    """
    return _object_in(text, parse_constant=_finite, parse_float=_finite)


def input_of(text: str) -> Document:
    """The input of a call, in formats that have it as an object. Text that is none stands in a field of its own, as
    Anthropic advises (Fine-grained tool streaming, Handling invalid JSON)."""
    given = strictly_loaded(text) if text else {}
    return {NO_JSON: text} if given is None else given


def arguments_in(given: object) -> str:
    """What the model wrote as the input of a call, of which `input_of` made an object."""
    text = given.get(NO_JSON) if isinstance(given, dict) and len(given) == 1 else None
    return text if isinstance(text, str) else json.dumps(given)


def fields_of(body: bytes) -> tuple[bytes, dict[str, Member]]:
    """The text of a body and its members; positions in the text equal those in the body."""
    try:
        return body, members(body)
    except msgspec.DecodeError:
        text = readable(body)
        return text, members(text)


def appended(body: bytes, name: str, items: Sequence[object]) -> bytes:
    """The body with these items appended to a member that is an array, created if missing; bytes are JSON already."""
    text, fields = fields_of(body)
    new = b",".join(item if isinstance(item, bytes) else written(item) for item in items)
    if name not in fields:
        return with_member(body, name, b"[" + new + b"]")
    start, end = fields[name].value
    if text[start:end] == b"null":
        return splice(body, [Edit(start, end, b"[" + new + b"]")])
    if text[start : start + 1] != b"[":
        raise RequestNotUnderstood(f"{name!r} is no array.", remedy="Send an array.")
    at = start + len(text[start : end - 1].rstrip(WHITESPACE))
    return splice(body, [Edit(at, at, b"," + new if at > start + 1 else new)])


def prepended(body: bytes, name: str, items: Sequence[object]) -> bytes:
    """The body with these items at the beginning of a member that is an array, created if missing."""
    text, fields = fields_of(body)
    if name not in fields:
        return appended(body, name, items)
    if text[slice(*fields[name].value)] == b"null":
        return appended(body, name, items)
    at = fields[name].value.start + 1
    between = b"," if elements(text, fields[name].value) else b""
    return splice(body, [Edit(at, at, b",".join(map(written, items)) + between)])


def listed(body: bytes, name: str) -> bytes:
    """The body with a member wrapped in an array, unless it already is one."""
    text, fields = fields_of(body)
    if name not in fields or text[fields[name].value.start :].startswith(b"["):
        return body
    start, end = fields[name].value
    return splice(body, [Edit(start, start, b"["), Edit(end, end, b"]")])


def with_member(body: bytes, name: str, value: bytes) -> bytes:
    """The body with one more member at the end."""
    _, fields = fields_of(body)
    new = written(name) + b":" + value
    if fields:
        at = list(fields.values())[-1].end
        return splice(body, [Edit(at, at, b"," + new)])
    at = body.index(b"{") + 1
    return splice(body, [Edit(at, at, new)])


def with_value(body: bytes, name: str, value: bytes) -> bytes:
    """The body with this value of a member."""
    _, fields = fields_of(body)
    return splice(body, [Edit(*fields[name].value, value)]) if name in fields else with_member(body, name, value)


def summed(first: Any, second: Any) -> Any:
    """The usage of two answers: numbers are added; for anything else the later value counts."""
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        names = [*first, *(name for name in second if name not in first)]
        return {name: summed(first.get(name), second.get(name)) for name in names}
    if _is_number(first) and _is_number(second):
        return first + second
    return first if second is None else second


def schema(kinds: Sequence[str] = ()) -> Document:
    """The schema of the search tool's arguments."""
    query = {"type": "string", "description": "What you want to do, in a few words"}
    kind = {"kind": {"type": "string", "enum": [*kinds]}} if kinds else {}
    properties = {"query": query, **kind}
    return {"type": "object", "properties": properties, "required": ["query"], "additionalProperties": False}


def search_function(tool: SearchTool, parameters: str = "parameters") -> bytes:
    """The search tool as a function; ``parameters`` is the field of its schema."""
    made = _search_function if len(tool.description) <= MOST_REMEMBERED else _search_function.__wrapped__
    return made(tool, parameters)


@lru_cache(maxsize=SEARCH_TOOLS)
def _search_function(tool: SearchTool, parameters: str) -> bytes:
    return written({"name": tool.name, "description": tool.description, parameters: schema(tool.kinds)})


def query_of(arguments: str) -> str:
    """The query of a search call; also accepts queries in unexpected places."""
    given = loaded(arguments)
    if given is None:
        return arguments.strip()
    texts = [given["query"]] if isinstance(given.get("query"), str) else given.values()
    return " ".join(text for text in texts if isinstance(text, str)).strip()


def kind_of(arguments: str) -> str | None:
    """The kind of things that a search call is for; None for all."""
    kind = (loaded(arguments) or {}).get("kind")
    return kind if isinstance(kind, str) else None


def _object_in(data: bytes | str, **how: Any) -> Document | None:
    try:
        value = json.loads(data, **how)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _finite(literal: str) -> float:
    value = float(literal)
    if not math.isfinite(value):
        raise ValueError(literal)
    return value


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
