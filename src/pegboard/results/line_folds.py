"""Lines that repeat at once, said once with their number."""

from __future__ import annotations

import re
from collections.abc import Sequence

LONGEST_PERIOD = 8
"""Lines of a block that is recognized when it repeats."""
LEAST_TIMES = 4
MOST_DIFFERENT = 0.9
"""Largest share of different lines of a text in which repeated ones are looked for."""
NOTE = re.compile(r"\[the (?:line|(\d+) lines) above (\d+) times in all\]")


def folded(text: str) -> str:
    """The text with a note in place of repeated lines; unchanged if it has few, or contains such a note itself.

    >>> print(folded("ready\\n" + "retry\\n" * 50 + "done"))
    ready
    retry
    [the line above 50 times in all]
    done
    """
    return "\n".join(folded_lines(text.split("\n")))


def folded_lines(lines: list[str]) -> list[str]:
    """The lines with notes in place of repeated ones; the same list if nothing changes."""
    if len(set(lines)) > MOST_DIFFERENT * len(lines) or any(map(NOTE.search, lines)):
        return lines
    found: list[str] = []
    at = 0
    while at < len(lines):
        period, times = _repetition(lines, at)
        found += lines[at : at + period]
        if times > 1:
            above = "line" if period == 1 else f"{period} lines"
            found.append(f"[the {above} above {times} times in all]")
        at += period * times
    return found if len(found) < len(lines) else lines


def unfolded(text: str) -> str:
    """The inverse of `folded`.

    >>> unfolded("retry\\n[the line above 3 times in all]\\ndone")
    'retry\\nretry\\nretry\\ndone'
    """
    found: list[str] = []
    for line in text.split("\n"):
        if note := NOTE.fullmatch(line):
            block = found[-int(note[1] or 1) :]
            found += block * (int(note[2]) - 1)
        else:
            found.append(line)
    return "\n".join(found)


def _repetition(lines: Sequence[str], at: int) -> tuple[int, int]:
    """How many lines the block here has, and how often it stands here; (1, 1) if it does not repeat."""
    for period in range(1, min(LONGEST_PERIOD, (len(lines) - at) // LEAST_TIMES) + 1):
        if lines[at] != lines[at + period]:
            continue
        times, end = 1, at + period
        block = lines[at:end]
        while lines[end : end + period] == block:
            times, end = times + 1, end + period
        if times >= LEAST_TIMES:
            return period, times
    return 1, 1
