"""The section of `fleet.json`: tokens before and after, and starting, with many real servers."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any

from pegboard_bench.fleet import clients_page, footprint_page
from pegboard_bench.results import measured

EXPOSURES = ("eager", "native", "dynamic", "static")
INTRODUCTION = """## A fleet of real servers

Written by `{command}` with the servers of `scripts/install_fleet.py`. {measured}.

{servers} servers, {tools} tools: {board:,} tokens of definitions (compact JSON of name, description and input schema,
cl100k). Pegboard's own tools, its searches and their answers are counted.

### Tokens

| exposure | listed at the start | of the board | a search and its answer | it adds to the list | describe and invoke |
|---|---|---|---|---|---|
"""
STARTING, SERVERS = "\n### Starting\n", "\n### The servers\n"
SEED = """
A search is the median of {queries} requests over the whole fleet. `describe` is needed only where the signature in a
search's answer does not say enough, and after a search in a `dynamic` session the tool is called by its own name; the
call that was described and invoked here takes {direct} tokens directly. `native` lists everything to a client that has
a tool search of its own and defers it. For comparison, what the requirements document for lazy tool loading expected of
one server:

| mode | initial context | per-search overhead |
|---|---|---|
| current (eager) | ~30-60K tokens | 0 |
| approach D (lazy) | ~1-2K tokens | ~500-2K tokens (search result and newly enabled tool schemas) |
| static proxy fallback | ~500 tokens | ~200-500 tokens per `invoke_tool` call |

### Starting

Medians of {rounds} starts in seconds, from the start of `pegboard mcp` (or of a server) until the answer. `new` is a
gateway that remembers nothing, `again` one that remembers these tools: it lists and finds them while their servers
start, as many at once as half of the cores, and a call starts its server out of turn and waits for it. `lazy` is one
that starts a server with its first call (`lazy = true`).

| | s |
|---|---|
"""
KINDS: Mapping[str, str] = {
    "slowest_alone": "the slowest server alone ({slowest})",
    "all_without_gateway": "all servers at once, without a gateway, until the last has listed its tools",
    "all_ready": "behind Pegboard, until the last server is ready, new",
    "first_search/new": "first search that finds something, new",
    "first_search/again": "first search that finds something, again",
    "first_search/lazy": "first search that finds something, lazy",
    "first_list/new": "first `tools/list`, new",
    "first_list/again": "first `tools/list`, again",
    "first_list/lazy": "first `tools/list`, lazy",
    "called_alone": "one server alone (`time`), until it has answered a call",
    "first_call/again": "a call of that server as the first thing, again",
    "first_call/lazy": "a call of that server as the first thing, lazy",
}
READING = """
At the first search of a new gateway, {not_ready:.0f} of {servers} servers were not ready yet. {servers} servers at once
are more than {cores} cores can start in the time of the slowest alone; what the gateway itself adds is the difference
between the second and the third line, {added:+.1f} s within a round. The gateway takes {memory:.0f} MB, the encoder
included.

### The servers

| server | version | protocol | tools | tokens | alone, s |
|---|---|---|---|---|---|
"""


def section(results: Mapping[str, Any]) -> str:
    figures, tables = results["figures"], results["tables"]
    common = {"servers": int(figures["servers"]), "tools": int(figures["tools"])}
    head = INTRODUCTION.format(
        command=results["command"], measured=measured(results), board=int(figures["tokens/board"]), **common
    )
    middle = SEED.format(
        queries=len(tables["queries"]), rounds=tables["rounds"], direct=tables["exposures"]["static"]["direct"]
    )
    end = READING.format(
        not_ready=figures["not_ready_at_first_search"],
        cores=results["machine"]["cores"],
        added=figures["startup_s/all_ready_minus_all_without_gateway"],
        memory=figures["rss_mb/gateway"],
        **common,
    )
    exposures = "".join(_exposure(name, figures) for name in EXPOSURES if f"tokens/{name}/start" in figures)
    starts = "".join(
        f"| {title.format(slowest=tables['startup']['slowest'])} | {median(tables['startup']['seconds'][kind]):.1f} |\n"
        for kind, title in KINDS.items()
        if kind in tables["startup"]["seconds"]
    )
    clients = clients_page.section(figures, tables["clients"]) if "clients" in tables else ""
    costs = footprint_page.section(figures, tables["footprint"]) if "footprint" in tables else ""
    middle, starting = middle.split(STARTING)
    starts = STARTING + starting + starts
    reading, servers = end.split(SERVERS)
    rows = "".join(_server(each) for each in tables["servers"])
    return head + exposures + middle + clients + starts + reading + costs + SERVERS + servers + rows


def _exposure(name: str, figures: Mapping[str, float]) -> str:
    start, share, search, added, calls = (
        figures[f"tokens/{name}/{key}"]
        for key in ("start", "start_over_board", "search", "search_adds_to_list", "describe_invoke")
    )
    return f"| `{name}` | {start:,.0f} | {share:.1%} | {search:,.0f} | {added:,.0f} | {calls:,.0f} |\n"


def _server(each: Mapping[str, Any]) -> str:
    cells = (each["name"], each["version"], each["protocol"], each["tools"], f"{each['tokens']:,}", each["start_s"])
    return f"| {' | '.join(map(str, cells))} |\n"
