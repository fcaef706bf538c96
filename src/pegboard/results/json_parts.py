"""Long JSON as its parts, of which only those are read that are needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from pegboard.results.json_tables import (
    DEEPEST_FIELD,
    NotShaped,
    PartlyRead,
    WrittenJson,
    json_text,
    parsed_json,
    refuse_unsayable,
)

LONG = 50_000
"""Bytes of an array or object from which on only a part of it is read."""
DEEPEST = 4
LOOKED_AT = 100
"""Rows from all over that show how much is nested."""
SPREAD = 0.6180339887
"""By which share of the rows the next one is farther, so that what repeats is not missed (the golden ratio)."""
FIELD, VALUE = 60, 600
"""Bytes of nested values that are read and written in the time that it takes to part a field, and a nested value, from
a row."""
OBJECT, ARRAY = b"{", b"["
READ_AGAIN = ("\\u", "\\/")
"""Escapes for which other characters are written, once they are read."""
COLON = b"\\u003"


def written_json(text: str) -> Any:
    """The value of a long JSON text, in which values nested in the rows of long arrays are `WrittenJson`.

    Raises NotShaped as `parsed_json` does, also where little is nested, and if msgspec is not installed.
    """
    refuse_unsayable(text)
    return opened_json(text.encode("utf-8", "surrogatepass"), _rows)


def opened_json(raw: bytes, read_array: Callable[[bytes], Any], depth: int = 0) -> Any:
    """The value of a JSON text, whose long arrays are what ``read_array`` makes of them. Raises NotShaped."""
    if len(raw) < LONG or depth > DEEPEST or raw[:1] not in (OBJECT, ARRAY):
        return parsed_json(raw.decode("utf-8", "surrogatepass"))
    if raw[:1] == ARRAY:
        return read_array(raw)
    found = _read(_codec().fields, raw)
    _refuse_keys_twice(raw, found)
    return {key: opened_json(bytes(each), read_array, depth + 1) for key, each in found.items()}


def items_of(raw: bytes) -> list[Any]:
    """The items of an array, each as its bytes. Raises NotShaped."""
    found: list[Any] = _read(_codec().items, raw)
    return found


@dataclass(frozen=True, slots=True)
class _Codec:
    items: Callable[[bytes], Any]
    fields: Callable[[bytes], Any]
    rows: Callable[[bytes], Any]
    encode: Callable[[Any], bytes]
    compact: Callable[[bytes], bytes]


@cache
def _codec() -> _Codec:
    try:
        import msgspec
    except ImportError as error:
        raise NotShaped from error
    read = msgspec.json.Decoder
    return _Codec(
        items=read(list[msgspec.Raw]).decode,
        fields=read(dict[str, msgspec.Raw]).decode,
        rows=read(list[dict[str, msgspec.Raw]]).decode,
        encode=msgspec.json.Encoder().encode,
        compact=lambda raw: msgspec.json.format(raw, indent=-1),
    )


def _read(decode: Callable[[bytes], Any], raw: bytes) -> Any:
    try:
        return decode(raw)
    except (ValueError, RecursionError) as error:
        raise NotShaped from error


def _refuse_keys_twice(raw: bytes, found: Any) -> None:
    """What is said of a key for a second time is not in the parts, nor are its colons."""
    if COLON in raw or _codec().encode(found).count(b":") != raw.count(b":"):
        raise NotShaped("a key twice")


def _rows(raw: bytes) -> PartlyRead:
    """The rows of an array of objects with many nested values."""
    items = items_of(raw)
    some = [items[int(at * SPREAD * len(items)) % len(items)] for at in range(LOOKED_AT)] if items else []
    rows = [_read(_codec().fields, bytes(each)) for each in some]
    nested = [size for row in rows for each in row.values() if (size := _nested_size(each))]
    own = sum(len(bytes(each)) for each in some) - sum(nested)
    gained = LOOKED_AT * len(raw) / max(1, len(items)) - own  # few rows may hold most of it
    if gained < FIELD * sum(map(len, rows)) + VALUE * len(nested):
        raise NotShaped("little is nested")
    rows = _read(_codec().rows, raw)
    _refuse_keys_twice(raw, rows)
    _fill(rows, 0, again=any(each.encode() in raw for each in READ_AGAIN))
    return PartlyRead(rows)


def _nested_size(part: Any) -> int:
    raw = bytes(part)
    return len(raw) if raw[:1] in (OBJECT, ARRAY) else 0


def _fill(rows: Sequence[dict[str, Any]], depth: int, *, again: bool) -> None:
    """Reads what stands in rows of unread parts, but for nested values that are no columns, unless they are to be
    written ``again``."""
    with_key: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        for key in row:
            with_key.setdefault(key, []).append(row)
    for key, there in with_key.items():
        written = [bytes(row[key]) for row in there]
        begins = {each[:1] for each in written}
        objects: Sequence[dict[str, Any]] = ()
        if begins == {OBJECT} and len(there) == len(rows) and depth < DEEPEST_FIELD:
            objects = _read(_codec().rows, _array(written))
            _refuse_keys_twice(_array(written), objects)
        values: Sequence[Any]
        if OBJECT not in begins and ARRAY not in begins:
            values = _values(written)
        elif objects and all(objects):  # as `json_tables` makes columns of them
            _fill(objects, depth + 1, again=again)
            values = objects
        else:
            values = [
                _nested(each, again=again) if each[:1] in (OBJECT, ARRAY) else _values([each])[0] for each in written
            ]
        for row, value in zip(there, values, strict=True):
            row[key] = value


def _values(written: Sequence[bytes]) -> Sequence[Any]:
    values: Sequence[Any] = parsed_json(_array(written).decode("utf-8", "surrogatepass"))
    return values


def _array(written: Sequence[bytes]) -> bytes:
    return b"[" + b",".join(written) + b"]"


def _nested(raw: bytes, *, again: bool) -> WrittenJson | Mapping[str, Any] | Sequence[Any]:
    text = _codec().compact(raw).decode("utf-8", "surrogatepass")
    if again and any(each in text for each in READ_AGAIN):
        return WrittenJson(json_text(parsed_json(text)))
    return WrittenJson(text) if len(text) > len("[]") else [] if text[:1] == "[" else {}
