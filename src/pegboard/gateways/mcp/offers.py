"""What `route_tools` and `execute_tool` answer, and what each session was offered last."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any

from mcp import MCPError

from pegboard.catalog import Catalog, WireNames, compact_json
from pegboard.gateways.mcp import meta_tools
from pegboard.gateways.mcp.exposure import on_the_wire
from pegboard.model import ToolId
from pegboard.routing.economics import Offers

Result = dict[str, Any]

MOST_REMEMBERED = 10_000
"""Sessions of which it is known what they were offered last."""
_AGAIN = f"call {meta_tools.ROUTE} again, with another subtask or other limits."
OTHERS = f"Correct the call, call one of these tools with {meta_tools.EXECUTE}, or {_AGAIN}"
ALONE = f"Correct the call, or {_AGAIN}"


class LastOffers:
    """The tools of each session's last route, in memory: a session that is not known was offered nothing."""

    def __init__(self) -> None:
        self._of: OrderedDict[str, tuple[ToolId, ...]] = OrderedDict()

    def remember(self, session: str | None, tools: Iterable[ToolId]) -> None:
        if session is None:
            return
        self._of[session] = tuple(tools)
        self._of.move_to_end(session)
        while len(self._of) > MOST_REMEMBERED:
            self._of.popitem(last=False)

    def of(self, session: str | None) -> tuple[ToolId, ...]:
        return self._of.get(session, ()) if session is not None else ()

    def forget(self, session: str) -> None:
        self._of.pop(session, None)


def shown(offers: Offers, catalog: Catalog, names: WireNames) -> Result:
    """The best first, with their definitions' own schemas; seconds, and US dollars a call."""
    tools = [
        {
            "name": names.of[each.tool],
            "server": each.tool.server,
            "description": catalog[each.tool].description,
            "inputSchema": on_the_wire(catalog[each.tool], names).get("inputSchema", {}),
            "price_usd": each.price.usd,
            "price_from": each.price.source,
            "expected_seconds": round(each.latency, 3),
            "success": round(each.success, 3),
            "score": round(each.score, 4),
        }
        for each in offers.tools
        if each.tool in catalog and each.tool in names.of
    ]
    why = {"why": list(offers.why)} if offers.why else {}
    return {"tools": tools} | why | ({} if tools else {"try_next": list(offers.remedies)})


def failed(error: MCPError) -> Result:
    """A server's protocol error as a result, with its code, message and data."""
    said = error.error.model_dump(by_alias=True, mode="json", exclude_none=True)
    return {"content": [{"type": "text", "text": compact_json({"error": "protocol_error"} | said)}], "isError": True}


def with_next(result: Result, others: Sequence[str]) -> Result:
    """The result as it is, and behind its content what to try next."""
    advice = {"try_next": {"tools": list(others), "remedy": OTHERS if others else ALONE}}
    text = {"type": "text", "text": compact_json(advice)}
    return {**result, "content": [*result.get("content", ()), text]}
