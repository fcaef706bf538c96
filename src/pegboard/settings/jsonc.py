"""Replaces one value in the text of a JSON file and keeps every other character, including comments."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/)
      | (?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
      | (?P<mark>[{}\[\]:,])
      | (?P<word>[^\s{}\[\]:,"'/]+)""",
    re.DOTALL | re.VERBOSE,
)


def plain_json(text: str) -> str:
    """The text with blanks instead of comments and trailing commas, so that every other character stays in its place.

    >>> plain_json('{"a": [1,], // "b"')
    '{"a": [1 ],       '
    """
    made, comma, before = list(text), -1, "["
    for token in TOKEN.finditer(text):
        start, end = token.span()
        if token.lastgroup == "skip":
            made[start:end] = [each if each.isspace() else " " for each in token.group()]
            continue
        if token.group() in ("}", "]") and comma >= 0:
            made[comma] = " "
        comma = start if token.group() == "," and before not in "{[,:" else -1
        before = token.group()
    return "".join(made)


def with_value(text: str, place: Sequence[str], value: Any) -> str:
    """The text with ``value`` at the path of keys ``place``. Raises LookupError if that path does not exist.

    >>> with_value('{"a": 1, "b": {"c": [2]}} // note', ("b", "c"), {})
    '{"a": 1, "b": {"c": {}}} // note'
    """
    start, end = span(text, place)
    return text[:start] + written_value(value, text, start) + text[end:]


def span(text: str, place: Sequence[str]) -> tuple[int, int]:
    """Start and end of the value at ``place``. Raises LookupError."""
    found: tuple[int, int] | None = None
    for path, start, end in _values(text):
        if path == tuple(place):
            found = start, end
    if found is None:
        raise LookupError(".".join(place))
    return found


def _values(text: str) -> Iterator[tuple[tuple[str | None, ...], int, int]]:
    """Every value inside an object with its path of keys, start and end; None in a path stands for an array element."""
    opened: list[tuple[int, str | None]] = []
    key: str | None = None
    before: re.Match[str] | None = None
    for token in TOKEN.finditer(text):
        if token.lastgroup == "skip":
            continue
        mark = token.group() if token.lastgroup == "mark" else ""
        if mark == ":" and before is not None:
            key = decoded_key(before)
        elif mark and mark in "{[":
            opened.append((token.start(), key))
            key = None
        elif mark and mark in "}]" and opened:
            if before is not None and before.lastgroup != "mark":
                yield _path(opened, key), before.start(), before.end()
            start, key = opened.pop()
            yield _path(opened, key), start, token.end()
            key = None
        elif mark == "," and before is not None:
            if before.lastgroup != "mark":
                yield _path(opened, key), before.start(), before.end()
            key = None
        before = token


def _path(opened: Sequence[tuple[int, str | None]], key: str | None) -> tuple[str | None, ...]:
    return (*(name for _, name in opened[1:]), key)


def decoded_key(token: re.Match[str]) -> str:
    """The key that a token is, without its quotes."""
    text = token.group()
    if text.startswith('"'):
        return str(json.loads(text))
    return text[1:-1] if text.startswith("'") else text


def written_value(value: Any, text: str, start: int) -> str:
    """The value as JSON, indented like the line of ``text`` on which it begins."""
    if "\n" not in text:
        return json.dumps(value, ensure_ascii=False)
    margin = margin_at(text, start)
    step = "\t" if margin.startswith("\t") else 4 if len(margin) % 4 == 0 and margin else 2
    end = "\r\n" if "\r\n" in text else "\n"
    return json.dumps(value, ensure_ascii=False, indent=step).replace("\n", end + margin)


def margin_at(text: str, start: int) -> str:
    """The white space with which the line of ``start`` begins."""
    line = text[text.rfind("\n", 0, start) + 1 : start]
    return line[: len(line) - len(line.lstrip())]
