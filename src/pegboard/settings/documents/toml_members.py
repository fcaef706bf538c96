"""Tables below one table of a TOML file, such as ``[mcp_servers.NAME]`` and ``[mcp_servers.NAME.env]``."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import tomli_w

from pegboard.settings.documents.splices import line_end, spliced

HEADER = re.compile(r"^[ \t]*\[(?!\[)[^\n]*\][ \t]*(?:#[^\n]*)?\r?$", re.MULTILINE)
STRING = re.compile(r'''#[^\n]*|"""(?:\\.|[^\\])*?"{3,5}|\'{3}.*?\'{3,5}|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'''', re.DOTALL)
"""A comment or a string, so that a quote inside one begins none."""
LIST = re.compile(r"^[ \t]*\[\[", re.MULTILINE)
REMARK = re.compile(r"[ \t]*(?:#[^\n]*)?\r?\n?")
"""An empty line or a comment."""


class TomlMembers:
    """Implements Syntax. A member that is no table of its own, ``NAME = {…}``, is not found."""

    name = "TOML"

    def parse(self, text: str) -> Any:
        return tomllib.loads(text.replace("\r\n", "\n"))

    def source(self, text: str, place: Sequence[str], name: str) -> str:
        return "".join(_ended(text[start:end], text) for start, end in _ranges(text, place, name))

    def written(self, text: str, place: Sequence[str], name: str, value: Mapping[str, Any]) -> str:
        made: dict[str, Any] = {name: value}
        for key in reversed(place):
            made = {key: made}
        return _ended(tomli_w.dumps(made), text)

    def changed(self, text: str, place: Sequence[str], gone: Collection[str], sources: Sequence[str]) -> str:
        first = next((start for path, start, _ in _tables(text) if _is_member(path, place)), None)
        if first is None:
            raise LookupError(".".join(place))
        ranges = [each for name in gone for each in _ranges(text, place, name)]
        blank = re.compile(r"[ \t]*\r?\n")
        edits = [(start, found.end() if (found := blank.match(text, end)) else end, "") for start, end in ranges]
        return spliced(text, [*edits, (first, first, "".join(source + line_end(text) for source in sources))])


def _ranges(text: str, place: Sequence[str], name: str) -> list[tuple[int, int]]:
    """Where the tables of a member are; remarks behind them belong to what follows. Raises LookupError."""
    found = [(start, end) for path, start, end in _tables(text) if path[: len(place) + 1] == (*place, name)]
    if not found:
        raise LookupError(name)
    return found


def _is_member(path: tuple[str, ...], place: Sequence[str]) -> bool:
    return len(path) > len(place) and path[: len(place)] == tuple(place)


def _tables(text: str) -> Iterator[tuple[tuple[str, ...], int, int]]:
    """Every table with its path, the start of its header, and the end of its last key."""
    seen = STRING.sub(_blank, text)
    starts = sorted(found.start() for pattern in (HEADER, LIST) for found in pattern.finditer(seen))
    for found in HEADER.finditer(seen):
        path, start = _path(text[found.start() : found.end()]), found.start()
        following = next((each for each in starts if each > start), len(text))
        lines = text[start:following].splitlines(keepends=True)
        while len(lines) > 1 and REMARK.fullmatch(lines[-1]):
            lines.pop()
        yield path, start, start + sum(map(len, lines))


def _blank(found: re.Match[str]) -> str:
    """Nothing in a string of several lines looks like a header; what is on one line stays, as a header may have it."""
    return re.sub(r"[^\n]", " ", found.group()) if "\n" in found.group() else found.group()


def _path(header: str) -> tuple[str, ...]:
    """The keys of a header; none if the line only looks like one, as in a text of several lines."""
    try:
        inner: Any = tomllib.loads(header.strip())
    except tomllib.TOMLDecodeError:
        return ()
    path: list[str] = []
    while isinstance(inner, dict) and len(inner) == 1:
        key, inner = next(iter(inner.items()))
        path.append(key)
    return tuple(path)


def _ended(made: str, text: str) -> str:
    """With the line ends of ``text``, and one at the end."""
    return (made.replace("\r\n", "\n").rstrip("\n") + "\n").replace("\n", line_end(text))
