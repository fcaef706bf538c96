"""Many names of tools in few tokens: what names begin with is written once, before those that share it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

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
    _, lines = _lines((), [tuple(WORDS.findall(name)) for name in dict.fromkeys(names)])
    return "\n".join(f"{prefix}: {', '.join(rest)}" if prefix else ", ".join(rest) for prefix, rest in lines)


def how_to_read(lines: str) -> str:
    """What a reader of `name_lines` has to be told; nothing where no beginning was taken out."""
    return HOW if ": " in lines else ""


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
