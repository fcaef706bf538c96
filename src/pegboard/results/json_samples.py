"""The rows of long JSON that are shown, found without reading all of it: the first, those about what was asked, and a
few from all over."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from pegboard.results.asked_lines import asked_places, in_utf8
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
    arrays: list[tuple[SomeRows, list[bytes]]] = []

    def some_of(raw: bytes) -> SomeRows:
        rows = SomeRows()
        arrays.append((rows, [*map(bytes, items_of(raw))]))
        return rows

    value = opened_json(in_utf8(text).replace(b"\n", b" "), some_of)
    _fill(arrays, asked, characters)
    return value


def sampled_rows(texts: Sequence[str], asked: str, characters: int) -> SomeRows:
    """The same of an array of which each of the texts is a row. Raises NotShaped."""
    rows = SomeRows()
    _fill([(rows, [in_utf8(text).replace(b"\n", b" ") for text in texts])], asked, characters)
    return rows


def _fill(arrays: Sequence[tuple[SomeRows, list[bytes]]], asked: str, characters: int) -> None:
    """Reads rows of each array: the first, the best of all that are about what was asked, and some from all over."""
    every = [row for _, rows in arrays for row in rows]
    rank: dict[int, int] = {}
    room = characters // 2
    for at in asked_places(b"\n".join(every), asked)[:MOST_ASKED] if asked else ():
        if len(every[at]) <= room:
            room -= len(every[at])
            rank[at] = len(rank)
    begin = 0
    for some, rows in arrays:
        sizes = [*accumulate(map(len, rows))]
        first = min(len(rows), 1 + bisect_left(sizes, characters))
        step = max(1, len(rows) // SAMPLED, 2 * sum(sizes[-1:]) // characters)
        about = {at - begin: rank[at] for at in rank if begin <= at < begin + len(rows)}
        some.places = sorted({*range(first), *about, *range(0, len(rows), step)})
        some.of, some.ranks = len(rows), about
        kept = [rows[at] for at in some.places]
        some.size, some.read = sum(sizes[-1:]), sum(map(len, kept))
        some[:] = parsed_json(f"[{b','.join(kept).decode('utf-8', 'surrogatepass')}]")
        begin += len(rows)
