"""The span of a request to a model, by the GenAI conventions, and its context in the request's headers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING

from pegboard.activity_entries import conversation_mark
from pegboard.gateways.llm.proxy.model_upstream import Headers
from pegboard.telemetry.otel import conventions as names
from pegboard.telemetry.otel.histograms import Histograms
from pegboard.telemetry.trace_spans import CARRIED, TRACEPARENT, TRACESTATE, Attribute, Tracer, TraceSpan

if TYPE_CHECKING:
    from pegboard.gateways.llm.proxy.request_audit import RequestContext

GENERATED = "generateContent"
LONGEST_NAME = 200
MOST_PATHS = 100


class ModelSpans:
    """Traces requests; ``histograms`` also gets the tokens that providers count."""

    def __init__(self, tracer: Tracer, histograms: Histograms | None = None) -> None:
        self._tracer = tracer
        self._histograms = histograms

    @contextmanager
    def traced(self, context: RequestContext, headers: Headers) -> Iterator[Headers]:
        """Within it, the request is sent with the headers that it yields."""
        upstream, request = context.target.upstream, context.known.request
        operation, model = operation_of(context.target.served, context.method), (request.model if request else "")
        host, port = upstream.host, upstream.port
        attributes: dict[str, Attribute] = {names.ADDRESS: host, names.PORT: port}
        if operation:
            attributes[names.OPERATION] = operation
            attributes[names.PROVIDER] = names.provider_of(upstream.format, host)
        else:
            attributes[names.HTTP_METHOD] = context.method
        if model:
            attributes[names.MODEL] = model = _printable(model)
        name = " ".join(filter(None, (operation or context.method, model)))
        metric = names.MODEL_DURATION if operation else ""
        with self._tracer.start(name, "client", attributes, metric=metric) as span:
            try:
                yield with_context(headers, span)
            finally:
                self._end(span, context)

    def _end(self, span: TraceSpan, context: RequestContext) -> None:
        if context.status >= HTTPStatus.BAD_REQUEST:
            span.fail(str(context.status))
        if self._histograms is not None and context.used is not None and names.OPERATION in span.attributes:
            self._histograms.record_tokens(context.used.input, context.used.output, span.attributes)
        if span.recorded:
            _describe(span.attributes, context)


def _describe(found: dict[str, Attribute], context: RequestContext) -> None:
    """What a recorded span says, as it is known at the end."""
    known, used = context.known, context.used
    request, filtered = known.request, known.filtered
    found["pegboard.upstream"] = context.target.upstream.name
    if context.status:
        found[names.HTTP_STATUS] = context.status
    if request is not None:
        found[names.STREAM] = request.streams
        if mark := conversation_mark(request.conversation):
            found[names.CONVERSATION] = mark
        found["pegboard.tools.received"] = len(request.tools)
    if known.outcome:
        found["pegboard.outcome"] = known.outcome
    if filtered is not None:
        found["pegboard.tools.sent"] = len(filtered.kept.places)
        found["pegboard.tokens.saved"] = max(0, filtered.tokens_before - filtered.tokens_after)
    if context.answer:
        found[names.RESPONSE_ID] = context.answer[:LONGEST_NAME]
    if context.first_chunk_s:
        found[names.FIRST_CHUNK] = context.first_chunk_s
    if used is not None:
        found[names.INPUT_TOKENS], found[names.OUTPUT_TOKENS] = used.input, used.output
        if used.cache_read:
            found[names.CACHE_READ] = used.cache_read
        if used.cache_write:
            found[names.CACHE_WRITE] = used.cache_write


def with_context(headers: Headers, span: TraceSpan) -> Headers:
    """The headers with the context of a span, in place of the client's."""
    kept = [each for each in headers if each[0].lower() not in CARRIED]
    kept.append((TRACEPARENT.encode(), span.context.traceparent.encode()))
    if span.context.state:
        kept.append((TRACESTATE.encode(), span.context.state.encode()))
    return kept


@lru_cache(MOST_PATHS)
def operation_of(path: str, method: str = "POST") -> str:
    """The `gen_ai.operation.name` of a request; empty for one that asks no model.

    >>> operation_of("/v1/chat/completions"), operation_of("/v1beta/models/g:streamGenerateContent")
    ('chat', 'generate_content')
    >>> operation_of("/v1/models", "GET"), operation_of("/v1/messages/count_tokens"), operation_of("/v1/embeddings")
    ('', '', 'embeddings')
    """
    last = path.rstrip("/").rpartition("/")[2]
    verb = last.rpartition(":")[2]
    if method != "POST":
        return ""
    if verb in (GENERATED, "streamGenerateContent"):
        return "generate_content"
    if last == "embeddings":
        return "embeddings"
    if last == "completions":
        return "chat" if path.rstrip("/").endswith("/chat/completions") else "text_completion"
    chats = ("messages", "responses", "converse", "converse-stream", "chat", "invoke")
    return "chat" if last in chats or verb in ("rawPredict", "streamRawPredict") else ""


def _printable(name: str) -> str:
    cut = name[:LONGEST_NAME]
    return cut if cut.isprintable() else "".join(each if each.isprintable() else "\ufffd" for each in cut)
