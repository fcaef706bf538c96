"""What is shown of a result that is longer than its budget: its head, its tail, the lines about what was asked, and
what its tables hold."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import islice
from typing import Any

from pegboard.protocols import TokenCounter
from pegboard.results.json_tables import ABSENT, HEADER, Column, JsonTable, json_text

TAIL = 0.25
"""Share of the budget for the end of a text; tables have none."""
ASKED = 0.5
"""Share of the budget for lines about what was asked, at most."""
MOST_ASKED = 200
TOGETHER = 25
"""Lines about what was asked that are counted at once, until the budget is used up."""
GAP = "[lines {} to {} of {} are left out]"
REST = "[the lines from {} on are left out]"
GAP_TOKENS = 20
BEFORE, AFTER = 1, 2
"""Lines of a text that are shown with one about what was asked."""
LEAST_TOKENS = 64
MOST_CHARACTERS = 8
"""Characters of a token, at most: more than this times the budget is not looked at."""
FEW_CHARACTERS = 3
DESCRIBED = 20
"""Columns of which is said what they hold."""
FEW_VALUES = 6
LONGEST_VALUE = 40
LONG_TABLE = 10


def excerpt(
    lines: Sequence[str],
    budget: int,
    counter: TokenCounter,
    *,
    tail: bool,
    about: Sequence[int] = (),
    numbers: Sequence[int | None] | None = None,
    total: int | None = None,
) -> str:
    """The head and the tail of lines within about ``budget`` tokens, the lines between them ``about`` what was asked,
    which are given by place, the best first, and notes with the numbers, from 1, of the lines left out.

    Where the lines are some of ``total``, ``numbers`` are their places there, from 0; None if nobody knows them.

    A line that does not fit by itself is cut, and counts as left out.
    """
    budget = max(LEAST_TOKENS, budget)
    places = [*(range(len(lines)) if numbers is None else numbers), len(lines) if numbers is None else total]
    last = _end(lines, int(budget * TAIL)) if tail else []
    room = budget - sum(counter.count(["\n".join(last)])) if last else budget
    until = len(lines) - len(last)
    picked = _picked(lines[:until], int(budget * ASKED), counter, about, near=tail)
    head = until if numbers is None else next((at for at in range(until) if places[at] != at), until)
    text, first = _start(lines[:head], max(LEAST_TOKENS, room - sum(picked.values())), counter)
    said = [text]
    after: int | None = first - 1
    for place in sorted(each for each in picked if each >= first - 1):
        said += [*_gap(after, places[place], places[-1]), lines[place]]
        number = places[place]
        after = None if number is None else number + 1
    return "\n".join([*said, *_gap(after, places[until], places[-1]), *last])


def _gap(first: int | None, end: int | None, total: int | None) -> list[str]:
    """A note on the lines from ``first`` to before ``end``, both from 0."""
    if first is None:
        return []
    if end is None or total is None:
        return [REST.format(first + 1)]
    return [GAP.format(first + 1, end, total)] if first < end else []


def _picked(
    lines: Sequence[str], tokens: int, counter: TokenCounter, about: Sequence[int], *, near: bool
) -> dict[int, int]:
    """Places of lines about what was asked within a budget, with their tokens; with those ``near`` them in a text, and
    with the first two lines of their table."""
    heads = [] if near else table_heads(lines)
    structure = {each for head in heads for each in (head, head + 1)}
    most, longest = len(lines), tokens * MOST_CHARACTERS
    there = islice((each for each in about if each < most and each not in structure), MOST_ASKED)
    found: dict[int, int] = {}
    while tokens >= GAP_TOKENS and (places := [*islice(there, TOGETHER)]):
        groups = {
            place: range(max(0, place - BEFORE), min(most, place + AFTER + 1))
            if near
            else [*_fields(heads, place), place]
            for place in places
        }
        short = {at for group in groups.values() for at in group if len(lines[at]) <= longest}
        sizes = dict(zip(short, counter.count([lines[at] for at in short]), strict=True))
        for place, group in groups.items():
            more = [at for at in group if at not in found]
            needed = sum(sizes.get(at, tokens) for at in more) + GAP_TOKENS
            if place in more and needed <= tokens:
                tokens -= needed
                found |= {at: sizes[at] for at in more} | {place: sizes[place] + GAP_TOKENS}
    return found


def table_heads(lines: Sequence[str]) -> list[int]:
    """The places of the first lines of tables."""
    return [at for at, line in enumerate(lines) if line[:1] == "@" and HEADER.fullmatch(line)]


def _fields(heads: Sequence[int], place: int) -> list[int]:
    at = bisect_right(heads, place) - 1
    return [heads[at], heads[at] + 1] if at >= 0 else []


def _start(lines: Sequence[str], tokens: int, counter: TokenCounter) -> tuple[str, int]:
    """The first lines within a budget, and the number of the first line that is not whole."""
    most, taken, size = tokens * MOST_CHARACTERS, 0, 0
    while taken < len(lines) and size <= most:
        size += len(lines[taken]) + 1
        taken += 1
    text = "\n".join(lines[:taken])[: most + 1]
    cut = counter.cut(text, tokens)
    whole = cut.count("\n")
    if whole == 0 or len(cut) - cut.rfind("\n") > len(cut) // 2:
        return f"{cut}…", whole + 1
    return cut[: cut.rfind("\n")], whole + 1


def _end(lines: Sequence[str], tokens: int) -> list[str]:
    """The last lines that are short enough."""
    room, kept = tokens * FEW_CHARACTERS, 0
    while kept < len(lines) - 1 and (room := room - len(lines[-kept - 1]) - 1) >= 0:
        kept += 1
    return list(lines[len(lines) - kept :])


def contents(tables: Sequence[JsonTable]) -> list[str]:
    """What the columns of long tables hold, one line for each table."""
    found = []
    for at, table in enumerate(tables, 1):
        if table.rows > LONG_TABLE and table.columns:
            said = "; ".join(f"{'.'.join(each.path)}: {_held(each)}" for each in table.columns[:DESCRIBED])
            of = "" if table.some is None else f", of which {len(table.some)} hold"
            found.append(f"@{at} holds {table.rows} rows{of}: {said}")
    return found


def _held(column: Column) -> str:
    """Least and greatest of numbers; all different values where they are few; else how many there are."""
    values = column.values
    if missing := values.count(ABSENT) + values.count(None):
        values = [value for value in values if value is not ABSENT and value is not None]
    said = _values(values)
    return f"{said}, {missing} empty" if missing else said


def _values(values: Sequence[Any]) -> str:
    kinds = set(map(type, values))
    if not values or not kinds <= {int, float, str, bool}:
        return "nested" if values else "nothing"
    different = set(values)
    if len(different) <= FEW_VALUES and len(kinds) == 1:
        said = {json_text(value): values.count(value) for value in different}
        if max(map(len, said)) <= LONGEST_VALUE:
            return ", ".join(
                f"{text} ×{times}" for text, times in sorted(said.items(), key=lambda each: (-each[1], each[0]))
            )
    if kinds <= {int, float}:
        return f"{json_text(min(values))} to {json_text(max(values))}"
    return f"{len(different)} different"
