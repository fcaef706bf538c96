"""What is shown of a result that is longer than its budget: its head, its tail, and what its tables hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pegboard.protocols import TokenCounter
from pegboard.results.json_tables import ABSENT, Column, JsonTable, json_text

TAIL = 0.25
"""Share of the budget for the end of a text; tables have none."""
LEAST_TOKENS = 64
MOST_CHARACTERS = 8
"""Characters of a token, at most: more than this times the budget is not looked at."""
FEW_CHARACTERS = 3
DESCRIBED = 20
"""Columns of which is said what they hold."""
FEW_VALUES = 6
LONGEST_VALUE = 40
LONG_TABLE = 10


def excerpt(lines: Sequence[str], budget: int, counter: TokenCounter, *, tail: bool) -> tuple[str, str, int, int]:
    """The head and the tail of lines within about ``budget`` tokens, and the numbers, from 1, of the first and the
    last line left out.

    A line that does not fit by itself is cut, and counts as left out.
    """
    budget = max(LEAST_TOKENS, budget)
    last = _end(lines, int(budget * TAIL)) if tail else []
    room = budget - sum(counter.count(["\n".join(last)])) if last else budget
    text, first = _start(lines[: len(lines) - len(last)], room, counter)
    return text, "\n".join(last), first, len(lines) - len(last)


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
