"""Members of an object in a JSON file with comments and trailing commas."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import json5

from pegboard.settings.documents.splices import line_end, line_start, spliced
from pegboard.settings.jsonc import TOKEN, decoded_key, plain_json, written_value

MOST_JSON5 = 50_000


@dataclass(frozen=True, slots=True)
class _Member:
    name: str
    start: int
    end: int
    comma: int | None
    """Where the comma behind it is."""


@dataclass(slots=True)
class _Open:
    """An object or array that has begun. ``key`` is that of the member being read, and its start."""

    start: int
    path: tuple[str | None, ...]
    key: tuple[str, int] | None = None
    last: int = 0
    members: list[_Member] = field(default_factory=list)


class JsonMembers:
    """Implements Syntax."""

    name = "JSON"

    def parse(self, text: str) -> Any:
        """Plain JSON is tried first, then JSON with comments and trailing commas: a client's file can have megabytes,
        and the parser for all else (JSON5) is so slow that it gets only `MOST_JSON5` characters."""
        try:
            return json.loads(text)
        except ValueError:
            pass
        try:
            return json.loads(plain_json(text))
        except ValueError as error:
            if len(text) > MOST_JSON5:
                raise ValueError(f"{error}; JSON5 is read in files of up to {MOST_JSON5:,} characters") from error
            return json5.loads(text)

    def source(self, text: str, place: Sequence[str], name: str) -> str:
        member = _member(_members(text, place)[1], name)
        return text[member.start : member.end]

    def written(self, text: str, place: Sequence[str], name: str, value: Mapping[str, Any]) -> str:
        start, members = _members(text, place)
        at = members[0].start if members else start
        return f"{json.dumps(name, ensure_ascii=False)}: {written_value(value, text, at)}"

    def changed(self, text: str, place: Sequence[str], gone: Collection[str], sources: Sequence[str]) -> str:
        _, members = _members(text, place)
        if not members:
            raise LookupError(".".join(place))
        kept = [member for member in members if member.name not in gone]
        edits = [(*_with_lines(text, member), "") for member in members if member.name in gone]
        if kept and kept[-1] is not members[-1] and members[-1].comma is None and kept[-1].comma is not None:
            edits.append((kept[-1].comma, kept[-1].comma + 1, ""))  # not every reader allows a comma after the last one
        return spliced(text, [*edits, _insertion(text, members[0].start, sources, followed=bool(kept))])


def _member(members: Sequence[_Member], name: str) -> _Member:
    found = [member for member in members if member.name == name]
    if not found:
        raise LookupError(name)
    return found[-1]


def _insertion(text: str, first: int, sources: Sequence[str], *, followed: bool) -> tuple[int, int, str]:
    line = line_start(text, first)
    if text[line:first].strip():
        made = ", ".join(sources) + (", " if followed and sources else "")
        return first, first, made
    made = f",{line_end(text)}".join(text[line:first] + source for source in sources)
    end = "," + line_end(text) if followed else line_end(text)
    return line, line, made + end if sources else ""


def _with_lines(text: str, member: _Member) -> tuple[int, int]:
    """Where a member is, with its comma, and with its lines if nothing else is on them."""
    start, end = member.start, member.end if member.comma is None else member.comma + 1
    line, after = line_start(text, start), text.find("\n", end)
    if after >= 0 and not text[line:start].strip() and not text[end:after].strip():
        return line, after + 1
    while end < len(text) and text[end] in " \t":
        end += 1
    return start, end


def _members(text: str, place: Sequence[str]) -> tuple[int, list[_Member]]:
    """Start and members of the object at ``place``; of two equal keys, the last one counts. Raises LookupError."""
    found: tuple[int, list[_Member]] | None = None
    for path, start, members in _objects(text):
        if path == tuple(place):
            found = start, members
    if found is None:
        raise LookupError(".".join(place))
    return found


def _objects(text: str) -> Iterator[tuple[tuple[str | None, ...], int, list[_Member]]]:
    """Every object with the path of keys that leads to it; None stands for an element of an array."""
    opened: list[_Open] = []
    pending: re.Match[str] | None = None
    for token in TOKEN.finditer(text):
        mark = token.group() if token.lastgroup == "mark" else ""
        if token.lastgroup == "skip":
            continue
        if mark and mark in "{[":
            path = (*opened[-1].path, opened[-1].key[0] if opened[-1].key else None) if opened else ()
            opened.append(_Open(token.start(), path))
        elif mark == ":" and opened and pending:
            opened[-1].key = decoded_key(pending), pending.start()
        elif mark == "," and opened:
            _close(opened[-1], token.start())
        elif mark and mark in "}]" and opened:
            done = opened.pop()
            _close(done, None)
            if mark == "}":
                yield done.path, done.start, done.members
        if opened and mark not in (",", "{", "["):
            opened[-1].last = token.end()
        pending = None if mark else token


def _close(inside: _Open, comma: int | None) -> None:
    """End the member that was read, if there is one."""
    if inside.key is not None:
        inside.members.append(_Member(inside.key[0], inside.key[1], inside.last, comma))
    inside.key = None
