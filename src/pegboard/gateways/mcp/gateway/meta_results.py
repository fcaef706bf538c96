"""What the meta-tools return: JSON for a model to read."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mcp import MCPError

from pegboard.catalog import Catalog, WireNames, compact_json
from pegboard.gateways.mcp.gateway import meta_definitions
from pegboard.gateways.mcp.gateway.caller_view import on_the_wire
from pegboard.gateways.mcp.gateway.example_calls import signature
from pegboard.gateways.mcp.gateway.meta_definitions import CUT, shared_out
from pegboard.model import JsonObject, Server, Tool, ToolId
from pegboard.programs.stubs import stub
from pegboard.protocols import TokenCounter
from pegboard.results.result_reader import READER
from pegboard.retrieval.categories import describe_category
from pegboard.retrieval.words import FUNCTION_WORDS, raw_words, stem
from pegboard.routing import check_arguments
from pegboard.routing.economics import Offers
from pegboard.upstreams import ServerStatus

Result = dict[str, Any]
SHORT_DESCRIPTION = 300
META_SCHEMAS: Mapping[str, JsonObject] = {
    each["name"]: each["inputSchema"]
    for each in [
        *meta_definitions.definitions(""),
        *meta_definitions.routing_definitions(),
        READER,
        meta_definitions.program_definition("static"),
        meta_definitions.finder_definition(),
    ]
}
BESIDE_A_CATEGORY = frozenset(
    stem(word)
    for word in re.findall(
        r"\w+",
        "all any area available category categories everything feature features find function functions functionality "
        "handle handling list manage management manager managing need operate operation operations related show stuff "
        "tool toolkit tools use want what which work working",
    )
)
"""Words that may accompany a category's name in a query for the whole category, as in "issue management"."""
MOST_REMEMBERED = 10_000
"""Sessions whose last offers are remembered."""
_AGAIN = f"call {meta_definitions.ROUTE} again, with another subtask or other limits."
OTHERS = f"Correct the call, call one of these tools with {meta_definitions.EXECUTE}, or {_AGAIN}"
ALONE = f"Correct the call, or {_AGAIN}"


class LastOffers:
    """The tools of each session's last route, in memory; empty for an unknown session."""

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


async def check_meta_arguments(name: str, arguments: JsonObject) -> None:
    """Raises ArgumentsInvalid for arguments that violate the meta-tool's schema."""
    await check_arguments(Tool(id=ToolId("pegboard", name), input_schema=META_SCHEMAS[name]), arguments)


def json_result(value: Result) -> Result:
    return {"content": [{"type": "text", "text": compact_json(value)}], "isError": False}


def entry(
    tool: Tool, name: str, category: str | None = None, sure: str | None = None, function: str | None = None
) -> Result:
    """A tool as a search shows it: enough for a call with simple arguments. ``sure`` is how sure the match is,
    ``function`` the tool's name in programs, where they are offered: its signature is that of the function then."""
    description = " ".join(tool.description.split())
    short = description if len(description) <= SHORT_DESCRIPTION else f"{description[:SHORT_DESCRIPTION]}…"
    where = {"server": tool.server} | ({"category": category} if category is not None else {})
    where |= {"sure": sure} if sure is not None else {}
    shape = signature(name, tool) if function is None else stub(function, tool)
    return {"name": name, **where, "signature": shape, "description": short}


def about(category: str, tools: Sequence[Tool], server: Server | None, said: str | None = None) -> Result:
    """A category in the list of categories, with its configured description, or else one made from its tools."""
    described: Result = {"category": category, "tools": len(tools)}
    text = describe_category(tools, server) if said is None else said
    return described | ({"description": text} if text else {})


def within_tokens(categories: Sequence[Result], budget: int, counter: TokenCounter) -> list[Result]:
    """The list of categories with descriptions cut so that all take at most ``budget`` tokens; none is left out."""
    texts = [str(each.get("description", "")) for each in categories]
    bare = [{key: value for key, value in each.items() if key != "description"} for each in categories]
    taken = sum(counter.count([compact_json(each) for each in categories]))
    if taken <= budget:
        return list(categories)
    counts = counter.count(texts)
    room = budget - sum(counter.count([compact_json({**each, "description": ""}) for each in bare]))
    shares = zip(bare, texts, counts, shared_out(counts, room), strict=True)
    cut = [(each, text if share >= count else _cut(text, share, counter)) for each, text, count, share in shares]
    return [each | ({"description": text} if text else {}) for each, text in cut]


def _cut(text: str, tokens: int, counter: TokenCounter) -> str:
    kept = counter.cut(text, tokens - 1).rstrip(" ,:") if tokens > 1 else ""
    return f"{kept}{CUT}" if kept else ""


def not_ready(statuses: Iterable[ServerStatus]) -> Result:
    """Servers that are not available now, and why."""
    missing = {status.name: status.reason or status.state for status in statuses if not status.available}
    return {"servers_not_ready": missing} if missing else {}


def search_again(starting: Sequence[str]) -> Result:
    """Advice while servers are ``starting`` whose tools are not known yet."""
    if not starting:
        return {}
    servers = "1 server is" if len(starting) == 1 else f"{len(starting)} servers are"
    advice = f"{servers} still starting, with tools that are not known yet: {', '.join(starting)}."
    return {"search_again": f"{advice} Search again in a moment."}


def has_hints(tool: Tool, wanted: Mapping[str, bool]) -> bool:
    """Whether the tool has these annotations; missing ones have the protocol's defaults.

    A read-only tool is never destructive, whatever its annotations say.
    """
    said = dict(meta_definitions.HINTS) | dict(tool.annotations or {})
    if said.get("readOnlyHint"):
        said["destructiveHint"] = False
    return all(bool(said[hint]) == value for hint, value in wanted.items())


def named_category(query: str, categories: Mapping[ToolId, str]) -> str | None:
    """The category that a query names: its words are the category's name, with or without that of its server."""
    said = _stems(query)
    asked = said - BESIDE_A_CATEGORY
    for category in sorted(set(categories.values())):
        server, _, label = category.rpartition(": ")
        of_label = _stems(label)
        if of_label and of_label <= said and asked <= of_label | _stems(server):
            return category
    return None


def _stems(text: str) -> frozenset[str]:
    return frozenset(_without_function_words(raw_words(text)))


def _without_function_words(words: Iterable[str]) -> Iterable[str]:
    return (stem(word) for word in words if word not in FUNCTION_WORDS)


def shown(offers: Offers, catalog: Catalog, names: WireNames) -> Result:
    """The offered tools, best first, with their original schemas; times in seconds, prices in US dollars per call."""
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
    """The result, unchanged, with advice on what to try next appended to its content."""
    advice = {"try_next": {"tools": list(others), "remedy": OTHERS if others else ALONE}}
    text = {"type": "text", "text": compact_json(advice)}
    return {**result, "content": [*result.get("content", ()), text]}
