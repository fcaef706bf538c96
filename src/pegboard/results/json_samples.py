"""The rows of long JSON that are shown, found without reading all of it: the first, those about what was asked, and a
few from all over."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from pegboard.results.asked_lines import asked_lines
from pegboard.results.json_parts import items_of, opened_json
from pegboard.results.json_tables import SomeRows, parsed_json

MOST_ASKED = 200
SAMPLED = 100
"""Rows from all over, of which is said what they hold."""


def sampled_json(text: str, asked: str, characters: int) -> Any:
    """The value of a JSON text, in which of each long array only `SomeRows` are.

    ``characters`` is the size of the first rows, and about twice that of the others. Raises NotShaped for what is no
    JSON, and if msgspec is not installed.
    """
    arrays: list[tuple[SomeRows, list[str]]] = []

    def some_of(raw: bytes) -> SomeRows:
        rows = SomeRows()
        arrays.append((rows, [str(each, "utf-8", "surrogatepass") for each in items_of(raw)]))
        return rows

    value = opened_json(text.replace("\n", " ").encode("utf-8", "surrogatepass"), some_of)
    _fill(arrays, asked, characters)
    return value


def sampled_rows(texts: Sequence[str], asked: str, characters: int) -> SomeRows:
    """The same of an array of which each of the texts is a row. Raises NotShaped."""
    rows = SomeRows()
    _fill([(rows, [text.replace("\n", " ") for text in texts])], asked, characters)
    return rows


def _fill(arrays: Sequence[tuple[SomeRows, list[str]]], asked: str, characters: int) -> None:
    """Reads rows of each array: the first, the best of all that are about what was asked, and some from all over."""
    every = [row for _, rows in arrays for row in rows]
    rank: dict[int, int] = {}
    room = characters // 2
    for at in asked_lines(every, asked)[:MOST_ASKED] if asked else ():
        if len(every[at]) <= room:
            room -= len(every[at])
            rank[at] = len(rank)
    begin = 0
    for some, rows in arrays:
        sizes = accumulate(map(len, rows))
        first = 1 + next((at for at, size in enumerate(sizes) if size >= characters), len(rows) - 1)
        step = max(1, len(rows) // SAMPLED, 2 * sum(map(len, rows)) // characters)
        about = {at - begin: rank[at] for at in rank if begin <= at < begin + len(rows)}
        some.places = sorted({*range(first), *about, *range(0, len(rows), step)})
        some.of, some.ranks = len(rows), about
        some[:] = parsed_json(f"[{','.join([rows[at] for at in some.places])}]")
        begin += len(rows)
