"""Events as Prometheus metrics.

Labels have few values: names from the configuration, and Pegboard's own states and codes. Nothing in a request becomes
a label.
"""

from __future__ import annotations

from collections import Counter as Count
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from pegboard.events import (
    BudgetUsed,
    CallFinished,
    CallRejected,
    ConfigurationRefused,
    Event,
    ModelRequestServed,
    ProgramFinished,
    RecallMeasured,
    ResultRead,
    ResultShaped,
    RouteDecided,
    ServerChanged,
    ShadowMeasured,
    ToolsListed,
    ToolsSearched,
)
from pegboard.telemetry.trace_sampler import TRACES, TraceSampler

MILLISECOND = 0.001
OURS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
"""Histogram bounds, in seconds, for work in this process."""
THEIRS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
"""Histogram bounds, in seconds, for models and servers."""
STATUSES = range(100, 600)
STATES = ("starting", "ready", "idle", "signed_out", "unhealthy")


class Metrics:
    """An EventSink with its own registry."""

    def __init__(self, version: str) -> None:
        self.registry = CollectorRegistry(auto_describe=True)
        ProcessCollector(registry=self.registry)
        self._gauge("build_info", "The version of Pegboard.", "version").labels(version).set(1)
        requests = self._counter(
            "model_requests", "Model requests forwarded.", "upstream", "format", "outcome", "status"
        )
        self._requests = cache(requests.labels)
        self._offered = self._counter("tools_offered", "Tools in model requests as received.")
        self._kept = self._counter("tools_kept", "Tools in model requests as forwarded.")
        self._saved = self._counter("tokens_saved", "Tokens of tool definitions that were not sent.")
        self._tokens = self._counter("model_tokens", "Tokens that providers counted.", "key", "kind")
        self._cost = self._counter("model_cost_usd", "List price of the tokens that providers counted.", "key")
        self._unpriced = self._counter("model_requests_unpriced", "Answered requests whose cost is not known.", "key")
        self._budgets = self._counter(
            "model_budgets", "Budgets for models that were nearly used up, or had nothing left.", "by", "refused"
        )
        self._searches = self._counter("tool_searches", "Searches by models for tools that were filtered out.")
        self._back = self._counter("tools_brought_back", "Tools restored to models that needed them.")
        self._failures = self._counter("filter_failures", "Requests whose tools could not be filtered.", "reason")
        self._filtering = self._histogram("filter_seconds", "Time to parse, filter and rewrite a request.", OURS)
        self._whole = cache(
            self._histogram("request_seconds", "Time until a model's answer ended.", THEIRS, "upstream").labels
        )
        self._routing = cache(self._histogram("route_seconds", "Time of a routing decision.", OURS, "profile").labels)
        of_shadows = ("upstream", "key")
        self._shadows = self._counter("shadow_requests", "Shadow requests.", *of_shadows, "unmeasured")
        self._unspent = self._counter("shadow_tokens_saved", "Tokens that filtering would have saved.", *of_shadows)
        self._seen = self._counter(
            "shadow_calls", "Calls by models of tools that were offered in shadow requests.", *of_shadows
        )
        self._missed = self._counter("shadow_misses", "Calls of tools that filtering would have removed.", *of_shadows)
        self._calls = cache(self._counter("calls", "Tool calls that returned.", "server", "success").labels)
        self._calling = cache(self._histogram("call_seconds", "Duration of a tool call.", THEIRS, "server").labels)
        self._shaped = self._counter("results_shaped", "Results handed on in fewer tokens.", "server")
        self._spared = self._counter("result_tokens_saved", "Tokens of results that this left out.", "server")
        self._read = self._counter("result_tokens_read", "Tokens that were read of kept results afterwards.", "server")
        self._rejected = self._counter(
            "calls_rejected", "Tool calls that were refused before they reached a server.", "reason"
        )
        self._refused = self._counter("configurations_refused", "Changed configurations that were refused.", "reason")
        self._lists = self._counter("mcp_lists", "Lists of tools sent to MCP clients.", "exposure")
        self._unlisted = self._counter("mcp_tokens_saved", "Tokens of tool definitions that these lists left out.")
        self._searched = self._counter("mcp_searches", "Searches for tools by MCP clients.", "ranked_by")
        self._nearest = self._counter(
            "index_nearest", "Nearest tools of sampled searches, by whether the index found them.", "index", "found"
        )
        self._programs = self._counter("programs", "Programs of MCP clients by how they ended.", "outcome")
        self._servers = self._gauge("servers", "MCP servers by state.", "state")
        self._states: dict[str, str] = {}
        self._takes: Mapping[type[Event], Callable[[Any], None]] = {
            ModelRequestServed: self._request,
            BudgetUsed: self._budget,
            RouteDecided: self._route,
            CallFinished: self._call,
            CallRejected: self._rejection,
            ResultShaped: self._shape,
            ResultRead: self._reread,
            ProgramFinished: self._program,
            ServerChanged: self._server,
            ConfigurationRefused: self._refusal,
            ShadowMeasured: self._shadow,
            ToolsListed: self._list,
            ToolsSearched: self._search,
            RecallMeasured: self._recall,
        }
        self._count_servers()

    def emit(self, event: Event) -> None:
        take = self._takes.get(type(event))
        if take is not None:
            take(event)

    def count_traces(self, sampler: TraceSampler) -> None:
        self.registry.register(TraceCounts(sampler))

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """All metrics in the format that ``accept`` asks for, and their Content-Type."""
        encode, content_type = choose_encoder(accept)
        return encode(self.registry), content_type

    def _request(self, event: ModelRequestServed) -> None:
        status = str(event.status) if event.status in STATUSES else "none"
        self._requests(event.upstream, event.format, event.outcome, status).inc()
        self._whole(event.upstream).observe(event.latency_ms * MILLISECOND)
        if event.tools:
            self._offered.inc(event.tools)
            self._kept.inc(event.kept)
        if event.tokens_before > event.tokens_after:
            self._saved.inc(event.tokens_before - event.tokens_after)
        if event.metered:
            self._price(event)
        if event.filter_ms:
            self._filtering.observe(event.filter_ms * MILLISECOND)
        if event.searches:
            self._searches.inc(event.searches)
        if event.brought_back:
            self._back.inc(len(event.brought_back))
        if event.failure:
            self._failures.labels(event.failure).inc()

    def _price(self, event: ModelRequestServed) -> None:
        """By key: keys are those of the configuration, so that there are few."""
        plain = max(0, event.input_tokens - event.cached_tokens - event.written_tokens)
        kinds = {"input": plain, "cached": event.cached_tokens, "written": event.written_tokens}
        for kind, tokens in (kinds | {"output": event.output_tokens}).items():
            if tokens:
                self._tokens.labels(event.key, kind).inc(tokens)
        if event.cost is None:
            self._unpriced.labels(event.key).inc()
        else:
            self._cost.labels(event.key).inc(event.cost / 1e9)

    def _budget(self, event: BudgetUsed) -> None:
        self._budgets.labels(event.by, str(event.refused).lower()).inc()

    def _route(self, event: RouteDecided) -> None:
        self._routing(event.profile).observe(event.latency_ms * MILLISECOND)

    def _call(self, event: CallFinished) -> None:
        self._calls(event.server, "true" if event.success else "false").inc()
        self._calling(event.server).observe(event.latency_ms * MILLISECOND)

    def _shape(self, event: ResultShaped) -> None:
        self._shaped.labels(event.server).inc()
        self._spared.labels(event.server).inc(event.tokens_before - event.tokens_after)

    def _reread(self, event: ResultRead) -> None:
        self._read.labels(event.server).inc(event.tokens)

    def _program(self, event: ProgramFinished) -> None:
        self._programs.labels(event.outcome).inc()

    def _rejection(self, event: CallRejected) -> None:
        self._rejected.labels(event.reason).inc()

    def _refusal(self, event: ConfigurationRefused) -> None:
        self._refused.labels(event.code).inc()

    def _server(self, event: ServerChanged) -> None:
        self._states[event.server] = event.state
        if event.state == "stopped":
            del self._states[event.server]
        self._count_servers()

    def _shadow(self, event: ShadowMeasured) -> None:
        of = event.upstream, event.key
        self._shadows.labels(*of, event.unmeasured).inc()
        self._unspent.labels(*of).inc(max(0, event.tokens_before - event.tokens_after))
        self._seen.labels(*of).inc(len(event.called))
        self._missed.labels(*of).inc(len(event.missed))

    def _list(self, event: ToolsListed) -> None:
        self._lists.labels(event.exposure).inc()
        self._unlisted.inc(max(0, event.tokens_before - event.tokens_after))

    def _search(self, event: ToolsSearched) -> None:
        self._searched.labels("words" if event.by_words else "profile").inc()

    def _recall(self, event: RecallMeasured) -> None:
        self._nearest.labels(event.index, "true").inc(event.found)
        self._nearest.labels(event.index, "false").inc(event.wanted - event.found)

    def _count_servers(self) -> None:
        counted = Count(self._states.values())
        for state in STATES:
            self._servers.labels(state).set(counted[state])

    def _counter(self, name: str, says: str, *labels: str) -> Counter:
        return Counter(f"pegboard_{name}", says, labels, registry=self.registry)

    def _gauge(self, name: str, says: str, *labels: str) -> Gauge:
        return Gauge(f"pegboard_{name}", says, labels, registry=self.registry)

    def _histogram(self, name: str, says: str, bounds: tuple[float, ...], *labels: str) -> Histogram:
        return Histogram(f"pegboard_{name}", says, labels, registry=self.registry, buckets=bounds)


class TraceCounts(Collector):
    """How many traces began here, and were recorded or left out."""

    def __init__(self, sampler: TraceSampler) -> None:
        self._sampler = sampler

    def collect(self) -> Iterator[Metric]:
        found = CounterMetricFamily("pegboard_traces", TRACES, labels=["recorded"])
        found.add_metric(["true"], self._sampler.taken)
        found.add_metric(["false"], self._sampler.left_out)
        yield found
