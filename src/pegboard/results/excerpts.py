"""What is shown of a result that is longer than its budget: its head, its tail, the lines about what was asked, and
what its tables hold."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from pegboard.protocols import TokenCounter
from pegboard.results.asked_lines import asked_lines
from pegboard.results.json_tables import ABSENT, HEADER, Column, JsonTable, json_text

TAIL = 0.25
"""Share of the budget for the end of a text; tables have none."""
ASKED = 0.5
"""Share of the budget for lines about what was asked, at most."""
MOST_ASKED = 200
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
    lines: Sequence[str], budget: int, counter: TokenCounter, *, tail: bool, asked: str = "", beyond: int | None = 0
) -> str:
    """The head and the tail of lines within about ``budget`` tokens, the lines between them about what was ``asked``,
    and notes with the numbers, from 1, of the lines left out. ``beyond`` lines follow that are not given, None if their
    number is not known.

    A line that does not fit by itself is cut, and counts as left out.
    """
    budget = max(LEAST_TOKENS, budget)
    last = _end(lines, int(budget * TAIL)) if tail else []
    room = budget - sum(counter.count(["\n".join(last)])) if last else budget
    until = len(lines) - len(last)
    picked = _picked(lines[:until], int(budget * ASKED), counter, asked, near=tail) if asked else {}
    text, first = _start(lines[:until], max(LEAST_TOKENS, room - sum(picked.values())), counter)
    if beyond is None:
        return f"{text}\n{REST.format(first)}"
    said, total = [text], len(lines) + beyond
    for place in sorted(each for each in picked if each >= first - 1):
        said += [*_gap(first, place, total), lines[place]]
        first = place + 2
    return "\n".join([*said, *_gap(first, until + beyond, total), *last])


def _gap(first: int, last: int, total: int) -> list[str]:
    return [GAP.format(first, last, total)] if first <= last else []


def _picked(lines: Sequence[str], tokens: int, counter: TokenCounter, asked: str, *, near: bool) -> dict[int, int]:
    """Places of lines about what was asked within a budget, with their tokens; with those ``near`` them in a text, and
    with the first two lines of their table."""
    heads = [] if near else [at for at, line in enumerate(lines) if line[:1] == "@" and HEADER.fullmatch(line)]
    structure = {each for head in heads for each in (head, head + 1)}
    places = asked_lines(lines, asked, heads[0] if heads else 0)
    groups = {
        place: range(max(0, place - BEFORE), min(len(lines), place + AFTER + 1))
        if near
        else [*_fields(heads, place), place]
        for place in [each for each in places if each not in structure][:MOST_ASKED]
    }
    short = {at for group in groups.values() for at in group if len(lines[at]) <= tokens * MOST_CHARACTERS}
    sizes = dict(zip(short, counter.count([lines[at] for at in short]), strict=True))
    found: dict[int, int] = {}
    for place, group in groups.items():
        more = [at for at in group if at not in found]
        needed = sum(sizes.get(at, tokens) for at in more) + GAP_TOKENS
        if place in more and needed <= tokens:
            tokens -= needed
            found |= {at: sizes[at] for at in more} | {place: sizes[place] + GAP_TOKENS}
    return found


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
            found.append(f"@{at} holds {table.rows} rows: {said}")
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
