"""Many names of tools in few tokens: what names begin with is written once, before those that share it."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import TypeAlias

from pegboard.protocols import TokenCounter

WORDS = re.compile(r"[^\W_]+[\W_]*|[\W_]+")
"""The words of a name, each with the separators behind it."""
HOW = " (`a_: b, c` stands for the names `a_b` and `a_c`)"
LEAST = 3
"""Fewer names get no line of their own."""
Words: TypeAlias = tuple[str, ...]
Line: TypeAlias = tuple[str, list[str]]
"""A beginning, and what follows it in each name."""


def name_lines(names: Sequence[str]) -> str:
    """The names, those that share a beginning in a line behind it, where that shortens the text, counted in words.

    The result depends on the names and their order alone.

    >>> print(name_lines(["read", *(f"mcp__jira__{name}" for name in ("get_issue", "get_page", "search", "add"))]))
    read
    mcp__jira__: get_issue, get_page, search, add
    """
    return "\n".join(_text(line, len(names)) for line in _named(names))


def name_lines_within(names: Sequence[str], counter: TokenCounter, budget: int) -> str:
    """The same lines within a token budget: the longest are cut, to as many names as fit. Where one name a line is too
    much, as many lines as fit."""
    lines = _named(names)
    longest = max((len(rest) for _, rest in lines), default=0)

    def text(most: int) -> str:
        return "\n".join(_text(line, most) for line in lines)

    def too_long(most: int) -> bool:
        return counter.count([text(most)])[0] > budget

    if not too_long(longest):
        return text(longest)
    if too_long(1):
        return counter.cut(text(1), budget).rpartition("\n")[0]
    return text(bisect_left(range(longest), True, lo=2, key=too_long) - 1)


def how_to_read(lines: str) -> str:
    """What a reader of `name_lines` has to be told; nothing where no beginning was taken out."""
    return HOW if ": " in lines else ""


def _named(names: Sequence[str]) -> list[Line]:
    return _lines((), [tuple(WORDS.findall(name)) for name in dict.fromkeys(names)])[1]


def _text(line: Line, most: int) -> str:
    prefix, rest = line
    more = [f"… {len(rest) - most} more"] if len(rest) > most else []
    listed = ", ".join([*rest[:most], *more])
    return f"{prefix}: {listed}" if prefix else listed


def _lines(prefix: Words, names: Sequence[Words]) -> tuple[int, list[Line]]:
    """The lines of names that follow a beginning, and the length of all of them, in words."""
    staying: list[Words] = []
    length, lines = 0, list[Line]()
    for word, of_word in _by_first(names).items():
        rest = [name[1:] for name in of_word]
        if len(rest) >= LEAST and all(rest):
            of_its_own, more = _lines((*prefix, word), rest)
            if of_its_own < _length(of_word):
                length, lines = length + of_its_own, lines + more
                continue
        staying += of_word
    if not staying:
        return length, lines
    length += _length(staying) + (len(prefix) + 1 if prefix else 0)
    return length, [("".join(prefix), ["".join(name) for name in staying]), *lines]


def _by_first(names: Sequence[Words]) -> dict[str, list[Words]]:
    groups: dict[str, list[Words]] = {}
    for name in names:
        groups.setdefault("".join(name[:1]), []).append(name)
    return groups


def _length(names: Sequence[Words]) -> int:
    """With a comma behind each."""
    return sum(len(name) + 1 for name in names)
