"""Several replacements in one text."""

from __future__ import annotations

from collections.abc import Iterable


def spliced(text: str, edits: Iterable[tuple[int, int, str]]) -> str:
    """The text with each (start, end, replacement) made; all places are places in ``text``, and none overlap.

    >>> spliced("abc", [(1, 2, ""), (0, 0, "-")])
    '-ac'
    """
    made, at = "", 0
    for start, end, replacement in sorted(edits):
        made += text[at:start] + replacement
        at = max(at, end)
    return made + text[at:]


def line_start(text: str, index: int) -> int:
    """Where the line of ``index`` begins."""
    return text.rfind("\n", 0, index) + 1


def line_end(text: str) -> str:
    """The line end that the text uses."""
    return "\r\n" if "\r\n" in text else "\n"
