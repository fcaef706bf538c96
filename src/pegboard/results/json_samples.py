"""The rows of long JSON that are shown, found without reading all of it: the first, those about what was asked, and a
few from all over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import accumulate
from typing import Any

from pegboard.results.asked_lines import asked_lines
from pegboard.results.json_tables import NotShaped, SomeRows, parsed_json

LONG = 50_000
"""Bytes of an array or object from which on only a part of it is read."""
DEEPEST = 4
MOST_ASKED = 200
SAMPLED = 100
"""Rows from all over, of which is said what they hold."""


def sampled_json(text: str, asked: str, characters: int) -> Any:
    """The value of a JSON text, in which of each long array only `SomeRows` are.

    ``characters`` is the size of the first rows, and about twice that of the others. Raises NotShaped for what is no
    JSON, and if msgspec is not installed.
    """
    arrays: list[tuple[SomeRows, list[str]]] = []
    value = _opened(text.replace("\n", " ").encode("utf-8", "surrogatepass"), arrays, 0)
    _fill(arrays, asked, characters)
    return value


def sampled_rows(texts: Sequence[str], asked: str, characters: int) -> SomeRows:
    """The same of an array of which each of the texts is a row. Raises NotShaped."""
    rows = SomeRows()
    _fill([(rows, [text.replace("\n", " ") for text in texts])], asked, characters)
    return rows


def _opened(raw: bytes, arrays: list[tuple[SomeRows, list[str]]], depth: int) -> Any:
    if len(raw) < LONG or depth > DEEPEST or raw[:1] not in (b"[", b"{"):
        return parsed_json(raw.decode("utf-8", "surrogatepass"))
    if raw[:1] == b"{":
        return {key: _opened(bytes(each), arrays, depth + 1) for key, each in _parts(raw, dict).items()}
    rows = SomeRows()
    arrays.append((rows, [str(each, "utf-8", "surrogatepass") for each in _parts(raw, list)]))
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


def _parts(raw: bytes, kind: type) -> Any:
    decode = _decoders()[kind]
    try:
        return decode(raw)
    except ValueError as error:
        raise NotShaped from error


@cache
def _decoders() -> dict[type, Callable[[bytes], Any]]:
    """Of an array and of an object as their parts, which are not read."""
    try:
        import msgspec
    except ImportError as error:
        raise NotShaped from error
    return {
        list: msgspec.json.Decoder(list[msgspec.Raw]).decode,
        dict: msgspec.json.Decoder(dict[str, msgspec.Raw]).decode,
    }
