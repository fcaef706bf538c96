"""The figures of `pegboard top`: what happened in the last minute, from the events of a gateway or its store."""

from __future__ import annotations

import statistics
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pegboard.apps.cli.logs import is_failure

WINDOW = 60.0
LEAST = 5.0
"""Seconds over which rates are averaged at least."""
REQUESTS = frozenset({"ModelRequestServed", "ToolsListed", "ToolsSearched", "RouteAnswered", "CallFinished"})
ENTRIES = frozenset({"request", "list", "search", "route"})
MOST_KEPT = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TopFigures:
    """Of the last minute. ``p50_ms`` and ``p95_ms`` are by kind of work; tokens are those of definitions (``sent``,
    ``saved``) and what providers counted (``billed``); ``cost`` is US dollars. Of the calls that an entry of a store
    has, it is not known which ones failed: they count in ``failures``, and for a tool only if all were of one, or all
    failed."""

    requests_a_second: float
    failures: int
    billed: int
    sent: int
    saved: int
    cost: float
    tools: tuple[tuple[str, int, int], ...]
    """Name, calls and failed calls, the most called first."""
    latency: Mapping[str, tuple[int, float, float]]
    """Number, median and 95th percentile in milliseconds."""
    servers: Mapping[str, str]


class TopWindow:
    """Takes what happens, and sums up the last minute of it.

    >>> window = TopWindow()
    >>> window.take({"event": "CallFinished", "at": 59.0, "tool": "a/b", "success": True, "latency_ms": 5.0})
    >>> window.figures(60.0).tools
    (('a/b', 1, 0),)
    """

    def __init__(self) -> None:
        self.servers: dict[str, str] = {}
        self._kept: deque[Mapping[str, Any]] = deque(maxlen=MOST_KEPT)
        self._entries: dict[str, Mapping[str, Any]] = {}
        self._began: float | None = None

    def take(self, said: Mapping[str, Any]) -> None:
        """An event as the feed has it, or an entry of the store, also one that has changed."""
        if said["event"] == "Servers":
            self.servers = dict(said["servers"])
        elif said["event"] == "ServerChanged":
            self.servers[said["server"]] = said["state"]
            if said["state"] == "stopped":
                del self.servers[said["server"]]
        elif "id" in said and said["event"] in ENTRIES:
            self._entries[said["id"]] = said
        elif "at" in said:
            self._kept.append(said)

    def figures(self, now: float) -> TopFigures:
        """``now`` is seconds since the epoch."""
        first = now - WINDOW
        while self._kept and self._kept[0]["at"] < first:
            self._kept.popleft()
        self._entries = {name: each for name, each in self._entries.items() if each["at"] >= first}
        recent = [*self._kept, *self._entries.values()]
        requests = [each for each in recent if each["event"] in REQUESTS or each["event"] in ENTRIES]
        tools, failed, took = Counter[str](), Counter[str](), dict[str, list[float]]()
        for each in requests:
            for name, count, failures in _calls(each):
                tools[name] += count
                failed[name] += failures
            if each.get("latency_ms"):
                took.setdefault(_work(each), []).append(each["latency_ms"])
        oldest = min((each["at"] for each in recent), default=now)
        return TopFigures(
            requests_a_second=len(requests) / max(LEAST, now - oldest),
            failures=sum(map(_failures, requests)),
            billed=sum(each.get("input_tokens", 0) + each.get("output_tokens", 0) for each in requests),
            sent=sum(each.get("tokens_after", 0) for each in requests),
            saved=sum(max(0, each.get("tokens_before", 0) - each.get("tokens_after", 0)) for each in requests),
            cost=sum((each.get("cost") or 0) for each in requests) / 1e9,
            tools=tuple((name, count, failed[name]) for name, count in tools.most_common(15)),
            latency={name: (len(each), *_percentiles(each)) for name, each in sorted(took.items())},
            servers=dict(sorted(self.servers.items())),
        )


def _failures(said: Mapping[str, Any]) -> int:
    """An entry counts as often as calls of it failed."""
    return max(int(is_failure(said)), int(said.get("failures", 0)))


def _calls(said: Mapping[str, Any]) -> Iterator[tuple[str, int, int]]:
    """Each tool that was called, how often, and how often it is known to have failed.

    >>> list(_calls({"event": "search", "called": ["a/b", "a/b", "a/c"], "failures": 3}))
    [('a/b', 2, 2), ('a/c', 1, 1)]
    """
    called = Counter([said["tool"]] if said.get("tool") else said.get("called") or ())
    failures = int(said.get("failures", 0) or said.get("success") is False)
    for name, count in called.items():
        yield name, count, failures if len(called) == 1 else count * (failures == called.total())


def _work(said: Mapping[str, Any]) -> str:
    kinds = {"ModelRequestServed": "models", "CallFinished": "tool calls", "request": "models (added)"}
    return kinds.get(str(said["event"]), "decisions")


def _percentiles(values: list[float]) -> tuple[float, float]:
    if len(values) == 1:
        return values[0], values[0]
    return statistics.median(values), statistics.quantiles(values, n=20, method="inclusive")[18]
