"""The decisions of a store as a file, in pieces as they are read: CSV for a spreadsheet, Parquet for an analysis."""

from __future__ import annotations

import asyncio
import csv
import io
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from pegboard.activity_entries import FIELDS, ActivityEntry, ActivityQuery
from pegboard.activity_report import cell, when
from pegboard.extras import required
from pegboard.protocols import Activity

PAGE = 200
"""Entries that are read at a time: whoever waits for the event loop waits for no more."""
ROW_GROUP = 10_000
"""Entries that Parquet has in one group of rows."""
MICROSECONDS = 1_000_000
REALS, LISTS = ("latency_ms",), ("called", "brought_back")
WHOLES = (
    *("tools", "offered", "failures", "searches", "tokens_before", "tokens_after", "billed", "saved", "input_tokens"),
    *("cached_tokens", "written_tokens", "output_tokens", "cost", "unpriced"),
)
Pages = AsyncIterator[Sequence[ActivityEntry]]


async def decisions(store: Activity, query: ActivityQuery, most: int | None = None) -> Pages:
    """At most ``most`` entries that the query chooses, the newest first, in pages that are read one after the other."""
    left = most
    while left is None or left > 0:
        page = PAGE if left is None else min(PAGE, left)
        found = await store.find(query, page)
        if found:
            yield found
        if len(found) < page:
            return
        left = None if left is None else left - len(found)
        query = replace(query, before=(found[-1].at, found[-1].id))


async def as_csv(pages: Pages) -> AsyncIterator[bytes]:
    """
    >>> async def one():
    ...     yield [ActivityEntry(id="1", at=0.0, door="mcp", kind="list", key="=1+1")]
    >>> async def lines():
    ...     return [line async for line in as_csv(one())]
    >>> asyncio.run(lines())[1][:37]
    b"1,1970-01-01 00:00:00,mcp,list,'=1+1,"
    """
    yield _rows([FIELDS])
    async for page in pages:
        yield await asyncio.to_thread(lambda page: _rows(map(_cells, page)), page)


def as_parquet(pages: Pages) -> AsyncIterator[bytes]:
    """Raises ConfigError if pyarrow is not installed."""
    return _parquet(pages, required("pyarrow", "parquet"), required("pyarrow.parquet", "parquet").ParquetWriter)


FORMATS: dict[str, tuple[str, Callable[[Pages], AsyncIterator[bytes]]]] = {
    "csv": ("text/csv", as_csv),
    "parquet": ("application/vnd.apache.parquet", as_parquet),
}
"""The media type of each kind of file, and what makes it."""


async def _parquet(pages: Pages, arrow: Any, writer_of: Any) -> AsyncIterator[bytes]:
    schema, sink = _schema(arrow), _Sink()
    writer = writer_of(sink, schema, compression="zstd")

    def write(entries: Sequence[ActivityEntry]) -> None:
        rows = [entry._asdict() | {"at": round(entry.at * MICROSECONDS)} for entry in entries]
        for row, entry in zip(rows, entries, strict=True):
            row["scores"] = [each._asdict() for each in entry.ranked]
        writer.write_table(arrow.Table.from_pylist(rows, schema))

    waiting: list[ActivityEntry] = []
    async for page in pages:
        waiting += page
        if len(waiting) >= ROW_GROUP:
            await asyncio.to_thread(write, waiting)
            waiting = []
            yield sink.taken()
    if waiting:
        await asyncio.to_thread(write, waiting)
    writer.close()
    yield sink.taken()


class _Sink(io.RawIOBase):
    """A file that is handed on while it is written; what Parquet's end says of places counts from the beginning."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._at = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._parts.append(bytes(data))
        self._at += len(self._parts[-1])
        return len(self._parts[-1])

    def tell(self) -> int:
        return self._at

    def taken(self) -> bytes:
        parts, self._parts = self._parts, []
        return b"".join(parts)


def _schema(arrow: Any) -> Any:
    text = arrow.string()
    scored = arrow.struct([("name", text), ("score", arrow.float64()), ("offered", arrow.bool_())])
    kinds = dict.fromkeys(WHOLES, arrow.int64()) | dict.fromkeys(REALS, arrow.float64())
    kinds |= dict.fromkeys(LISTS, arrow.list_(text)) | {"scores": arrow.list_(scored)}
    kinds["at"] = arrow.timestamp("us", tz="UTC")
    return arrow.schema([(name, kinds.get(name, text)) for name in FIELDS])


def _rows(rows: Iterable[Sequence[Any]]) -> bytes:
    file = io.StringIO()
    csv.writer(file).writerows(rows)
    return file.getvalue().encode()


def _cells(entry: ActivityEntry) -> list[Any]:
    ranked = "; ".join(f"{each.name} {each.score:g}{' offered' if each.offered else ''}" for each in entry.ranked)
    return list(map(_shown, FIELDS, entry._replace(scores=ranked)))


def _shown(name: str, value: Any) -> Any:
    if name == "at":
        return when(value)
    if isinstance(value, tuple):
        value = "; ".join(value)
    return cell(value) if isinstance(value, str) else value
