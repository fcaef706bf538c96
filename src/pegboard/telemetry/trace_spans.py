"""Spans as light records, and their context between processes (W3C Trace Context, level 2).

Nothing here imports OpenTelemetry: a span is a few slots that `pegboard.telemetry.otel` exports from another process.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar, Token
from typing import Any, Literal, NamedTuple, Protocol

from pegboard.errors import PegboardError
from pegboard.telemetry.trace_sampler import TraceSampler

Kind = Literal["server", "client"]
Attribute = str | int | float | bool | Sequence[str]
TRACEPARENT = "traceparent"
TRACESTATE = "tracestate"
CARRIED = frozenset({TRACEPARENT.encode(), TRACESTATE.encode()})
HEADER = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
LONGEST_STATE = 512
"""Characters of a `tracestate` that are passed on (W3C Trace Context, 3.3.1.5)."""
NO_TRACE, NO_SPAN = bytes(16), bytes(8)
SAMPLED = 1


class SpanContext(NamedTuple):
    """What identifies a span: 16 and 8 bytes, whether it is recorded, and the `tracestate` of its vendors."""

    trace_id: bytes
    span_id: bytes
    sampled: bool
    state: str = ""

    @property
    def traceparent(self) -> str:
        return f"00-{self.trace_id.hex()}-{self.span_id.hex()}-{'01' if self.sampled else '00'}"


def context_of(carrier: Mapping[str, Any] | None) -> SpanContext | None:
    """The context in headers or in an MCP request's `_meta` (SEP-414); None if there is none that is valid.

    >>> found = context_of({"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"})
    >>> found.sampled, found.span_id.hex()
    (True, '00f067aa0ba902b7')
    """
    given = carrier.get(TRACEPARENT) if carrier else None
    found = HEADER.fullmatch(given) if isinstance(given, str) else None
    if carrier is None or found is None or found[1] == "ff" or (found[1] == "00" and found[5]):
        return None
    trace_id, span_id = bytes.fromhex(found[2]), bytes.fromhex(found[3])
    if trace_id == NO_TRACE or span_id == NO_SPAN:
        return None
    state = carrier.get(TRACESTATE)
    kept = state if isinstance(state, str) and len(state) <= LONGEST_STATE and state.isascii() else ""
    return SpanContext(trace_id, span_id, bool(int(found[4], 16) & SAMPLED), kept)


def context_in(headers: Iterable[tuple[bytes, bytes]]) -> SpanContext | None:
    """The context in the headers of an ASGI scope, whose names are in lower case."""
    found = {name.decode(): value.decode("latin-1") for name, value in headers if name in CARRIED}
    return context_of(found) if found else None


class SpanSink(Protocol):
    """Takes spans at their end, recorded or not. Must be fast."""

    def ended(self, span: TraceSpan) -> None: ...


class TraceSpan:
    """An operation. Within `with`, it is the current one; an exception that leaves it becomes its error.

    ``start`` is nanoseconds since the epoch, ``seconds`` the duration at its end. ``error`` is a low-cardinality
    `error.type`; the text of an exception is not kept, as it may quote anything. ``metric`` is the name of the
    histogram of its duration, which also counts spans that are not ``recorded``: of those, only the attributes that the
    histogram knows are of use, and ``start`` is not set.
    """

    __slots__ = (
        "_began",
        "_sink",
        "_token",
        "attributes",
        "context",
        "error",
        "kind",
        "links",
        "message",
        "metric",
        "name",
        "parent",
        "recorded",
        "seconds",
        "start",
    )

    def __init__(
        self,
        sink: SpanSink,
        name: str,
        kind: Kind,
        context: SpanContext,
        parent: bytes,
        attributes: dict[str, Attribute],
        links: Sequence[SpanContext] = (),
        metric: str = "",
    ) -> None:
        self._sink = sink
        self.name, self.kind, self.context, self.parent = name, kind, context, parent
        self.attributes, self.links, self.metric = attributes, links, metric
        self.error = self.message = ""
        self.recorded = context.sampled
        self.start, self._began, self.seconds = time.time_ns() if context.sampled else 0, time.perf_counter(), 0.0
        self._token: Token[TraceSpan | None] | None = None

    def fail(self, error: str, message: str = "") -> None:
        self.error, self.message = error, message

    def end(self) -> None:
        self.seconds = time.perf_counter() - self._began
        self._sink.ended(self)

    def __enter__(self) -> TraceSpan:
        self._token = CURRENT.set(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if self._token is not None:
            CURRENT.reset(self._token)
        if error is not None and not self.error:
            self.error = error.code if isinstance(error, PegboardError) else type(error).__name__
        self.end()


CURRENT: ContextVar[TraceSpan | None] = ContextVar("span", default=None)


class Tracer:
    """Starts spans. The ``sampler`` says which of the traces that begin here are recorded; those of clients are as they
    say or, without ``follows_parent``, as it says, too. ``content`` is whether arguments, results and queries are
    recorded.

    >>> class Kept(list):
    ...     ended = list.append
    >>> kept = Kept()
    >>> with Tracer(kept).start("tools/list", "server") as outer, Tracer(kept).start("inner", "client") as inner:
    ...     pass
    >>> inner.parent == outer.context.span_id, [each.name for each in kept]
    (True, ['inner', 'tools/list'])
    """

    def __init__(
        self,
        sink: SpanSink,
        *,
        sampler: TraceSampler | None = None,
        follows_parent: bool = True,
        content: bool = False,
    ) -> None:
        self.content = content
        self.sampler = sampler or TraceSampler()
        self._sink = sink
        self._follows = follows_parent

    def start(
        self,
        name: str,
        kind: Kind,
        attributes: dict[str, Attribute] | None = None,
        *,
        parent: SpanContext | None = None,
        links: Sequence[SpanContext] = (),
        metric: str = "",
    ) -> TraceSpan:
        """A span that has begun now, below ``parent``, else below the current span."""
        if parent is None and (current := CURRENT.get()) is not None:
            parent, context = current.context, self._below(current.context, sampled=current.recorded)
        elif parent is None:
            trace_id = random.randbytes(16)  # noqa: S311
            context = SpanContext(trace_id, random.randbytes(8), self.sampler.takes(trace_id))  # noqa: S311
        else:
            sampled = parent.sampled if self._follows else self.sampler.takes(parent.trace_id)
            context = self._below(parent, sampled=sampled)
        above = NO_SPAN if parent is None else parent.span_id
        return TraceSpan(
            self._sink, name, kind, context, above, {} if attributes is None else attributes, links, metric
        )

    @staticmethod
    def _below(parent: SpanContext, *, sampled: bool) -> SpanContext:
        """The context of a span below another; what is not recorded has no id of its own, and passes on the other's."""
        if sampled:
            return SpanContext(parent.trace_id, random.randbytes(8), True, parent.state)  # noqa: S311
        return parent._replace(sampled=False) if parent.sampled else parent
