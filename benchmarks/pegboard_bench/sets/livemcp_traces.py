"""The published traces of an agent on LiveMCPBench: what it asked of the router, what came back, what it executed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pegboard_bench.sets.livemcp_catalog import Pair

ROUTE = "route"
EXECUTE = "execute-tool"
MATCH = re.compile(r"server_name: (.+?)\\n  tool_name: (.+?)\\n")
"""A tool in the answer of a route, which stands in the trace as a quoted text."""
FAILED = re.compile(r"\] isError=True$|timed out")
"""The protocol's flag, or a timeout of the call or of what it did. That a result says in its text that something went
wrong is no failure of the call: the agent had the right tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One question to the router. ``number`` counts those of a task from 0; ``offered`` are the tools in the answer."""

    number: int
    text: str
    offered: frozenset[Pair]


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    tool: Pair
    failed: bool


def steps(trace: Mapping[str, Any]) -> Iterator[Route | Execution]:
    """What the agent did in one task, in order."""
    answers = {each["tool_call_id"]: each["content"] for each in trace["messages"] if each["role"] == "tool"}
    number = 0
    for message in trace["messages"]:
        for call in message.get("tool_calls") or ():
            arguments = json.loads(call["function"]["arguments"])
            answer = str(answers.get(call["id"], ""))
            if call["function"]["name"] == ROUTE:
                yield Route(number=number, text=_text(arguments["query"]), offered=frozenset(_offered(answer)))
                number += 1
            elif call["function"]["name"] == EXECUTE:
                tool = (str(arguments.get("server_name")), str(arguments.get("tool_name")))
                yield Execution(tool=tool, failed=bool(FAILED.search(answer)))


def executed(trace: Mapping[str, Any]) -> list[Pair]:
    """The tools that were executed without an error, in order of the first time."""
    done = (step.tool for step in steps(trace) if isinstance(step, Execution) and not step.failed)
    return list(dict.fromkeys(done))


def credited(trace: Mapping[str, Any]) -> list[tuple[Route, list[Pair]]]:
    """Every route with the tools that it returned and that the agent then executed: each with the latest route before
    its first success."""
    routes: list[tuple[Route, list[Pair]]] = []
    seen: set[Pair] = set()
    for step in steps(trace):
        if isinstance(step, Route):
            routes.append((step, []))
        elif not step.failed and step.tool not in seen:
            seen.add(step.tool)
            latest: Sequence[tuple[Route, list[Pair]]] = [each for each in routes if step.tool in each[0].offered]
            if latest:
                latest[-1][1].append(step.tool)
    return routes


def _text(query: str) -> str:
    return re.sub(r"</?tool_assistant>", "", query).strip()


def _offered(answer: str) -> list[Pair]:
    return [(server.strip("'\""), name.strip("'\"")) for server, name in MATCH.findall(answer)]
