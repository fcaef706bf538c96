"""What is told of the tools of one array: made once, however many conversations bring it along."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pegboard.gateways.llm.boards import Stock
from pegboard.gateways.llm.codec import Codec, Request
from pegboard.gateways.llm.one_tool import told
from pegboard.gateways.llm.one_tool.wire import Dialect, OneTool
from pegboard.model import Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """``entry`` is `call_tool` as the request offers it, under the name ``own``; ``lines`` are definitions by place.

    Tokens are those of the entry, of each line, and of what stands around the lines of a message.
    """

    own: str
    entry: bytes
    tools: Mapping[int, Tool]
    lines: Mapping[int, str]
    entry_tokens: int
    line_tokens: Mapping[int, int]
    frame_tokens: int


async def texts_of(
    codec: Codec, dialect: Dialect, request: Request, stock: Stock, barred: Collection[int], budget: int | None
) -> Texts:
    """Of all tools but the barred; ``budget`` is the pool's. The same for all requests with these tools, and made off
    the event loop (P25)."""
    key = (frozenset(barred), budget)
    found = stock.told.get(key)
    if isinstance(found, Texts):
        return found
    made = await asyncio.to_thread(_made, codec, dialect, request, stock, barred, budget)
    stock.told[key] = made
    return made


def _made(
    codec: Codec, dialect: Dialect, request: Request, stock: Stock, barred: Collection[int], budget: int | None
) -> Texts:
    catalog, count = stock.board.catalog, stock.board.catalog.counter.count
    tools = {place: catalog[tool] for place, tool in sorted(stock.ids.items())}
    if codec.name == "gemini":
        tools = {place: replace(tool, input_schema=standard(tool.input_schema)) for place, tool in tools.items()}
    pool = [tool for place, tool in tools.items() if place not in barred]
    own = told.own_name(request.names)
    description = told.description(pool, catalog.counter, budget)
    entry = dialect.offer(OneTool(name=own, description=description, breakpoint=_breakpoint(request)))
    lines = {place: told.definition(tool) for place, tool in tools.items()}
    whole, frame, *each = count([entry.decode(), told.shown([], own), *lines.values()])
    return Texts(
        own=own,
        entry=entry,
        tools=tools,
        lines=lines,
        entry_tokens=whole,
        line_tokens=dict(zip(lines, each, strict=True)),
        frame_tokens=frame,
    )


def _breakpoint(request: Request) -> bytes | None:
    """That of the tools in whose place `call_tool` is (P20); behind that of a tool which stays, the same as that: a
    longer time to live may not follow a shorter one."""
    ours = [tool.breakpoint for tool in request.tools if tool.breakpoint and not tool.stays]
    fixed = [tool.breakpoint for tool in request.tools if tool.breakpoint and tool.stays]
    return (fixed[-1] if fixed else ours[0]) if ours else None


def standard(schema: Any) -> Any:
    """Gemini's form of a schema as JSON Schema: types in small letters, `nullable` as a type.

    >>> standard({"type": "STRING", "nullable": True})
    {'type': ['string', 'null'], 'nullable': True}
    """
    if isinstance(schema, list):
        return [standard(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: standard(each) for name, each in schema.items()}
    if isinstance(schema.get("type"), str):
        kind = schema["type"].lower()
        found["type"] = [kind, "null"] if schema.get("nullable") is True else kind
    return found
