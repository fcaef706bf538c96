"""The LLM gateway as an ASGI application: forwards each request to its provider with the tools it needs.

request ─► target ─► key ─► body ─► filtered? ─► provider ─► answer, streamed
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, nullcontext
from dataclasses import replace
from http import HTTPStatus

from starlette.types import Receive, Scope, Send

from pegboard.call_charges import CallCharges
from pegboard.caller_limits import ANYONE, LimitedCaller, RateLimiter
from pegboard.catalog import BpeCounter
from pegboard.errors import PegboardError, UpstreamError
from pegboard.gateways.llm.conversation.history import ProviderHistories
from pegboard.gateways.llm.formats.protocol import Codec
from pegboard.gateways.llm.formats.registry import codec_for, condensing_codec, generic_codecs, history_of, provider_of
from pegboard.gateways.llm.formats.tool_search import RoundTrip
from pegboard.gateways.llm.proxy.body_memory import BodyMemory, MemoryShare
from pegboard.gateways.llm.proxy.http_bodies import (
    ClientDisconnected,
    RequestReader,
    ResponseObserver,
    ResponseWriter,
    UnreadBody,
    content_length,
    gateway_headers,
    outgoing_headers,
)
from pegboard.gateways.llm.proxy.keys import IsToken, Keys, NotAllowed, is_local
from pegboard.gateways.llm.proxy.model_budgets import ModelBudgets
from pegboard.gateways.llm.proxy.model_spans import ModelSpans
from pegboard.gateways.llm.proxy.model_upstream import Body, Headers, ModelUpstream
from pegboard.gateways.llm.proxy.request_audit import OFF, SIGNED, RequestAudit, RequestContext
from pegboard.gateways.llm.proxy.request_event import served
from pegboard.gateways.llm.proxy.target import (
    RequestHeaders,
    Target,
    UnknownHeaders,
    header_names,
    parsed_headers,
    target_of,
    without_key,
)
from pegboard.gateways.llm.selection.answer_ids import kept_answer, mended_body, renamed_path
from pegboard.gateways.llm.selection.filter import FilterFailed, RequestFilter, RewrittenRequest, TreatmentOf
from pegboard.gateways.llm.selection.policy_rules import Policies
from pegboard.gateways.llm.shadow.recorder import Recorder
from pegboard.gateways.llm.tool_results.request_results import RequestResults
from pegboard.gateways.llm.tool_results.result_step import ResultStep, Sender, readable
from pegboard.gateways.llm.tool_search.chain import chained
from pegboard.gateways.llm.tool_search.search_loop import ToolSearchLoop
from pegboard.habits import habits_of
from pegboard.model_prices import NO_PRICES, PriceTable
from pegboard.protocols import Clock, EventSink
from pegboard.settings.llm import LlmSettings
from pegboard.settings.result_settings import ResultSettings
from pegboard.stores import MemoryRates
from pegboard.telemetry.audit_log import AuditLog

LOGGER = logging.getLogger(__name__)
LONG_MS = 50.0
"""Milliseconds before a request is sent in which its client may have gone away."""


class LlmApp:
    """An ASGI application in front of model providers, with a filter for each. Use it within `opened`."""

    def __init__(
        self,
        settings: LlmSettings,
        filters: Mapping[str, RequestFilter],
        *,
        policies: Policies | None = None,
        events: EventSink,
        clock: Clock,
        environment: Mapping[str, str] | None = None,
        recorder: Recorder | None = None,
        is_token: IsToken = lambda text: False,
        names: Sequence[str] = (),
        audit: AuditLog | None = None,
        rates: RateLimiter | None = None,
        prices: PriceTable = NO_PRICES,
        charges: CallCharges | None = None,
        results: RequestResults | None = None,
        spans: ModelSpans | None = None,
    ) -> None:
        """``is_token`` recognizes tokens of the MCP gateway; ``names`` are this server's names in addition to
        loopback's. Budgets are kept by ``charges``; ``results`` shapes the results of tools. With ``spans``, requests
        to providers are traced.

        Raises ConfigError for contradictory options.
        """
        self._settings = settings
        self._filters = filters
        self._events = events
        self._clock = clock
        self._memory = BodyMemory(settings.most_held)
        tenants = {name: each.tenant for name, each in settings.keys.items()}
        self._audit = RequestAudit(events, clock, recorder, audit, tenants)
        self._prices = prices
        self._spans = spans
        self._budgets = ModelBudgets(settings.budgets, charges, prices, events, clock)
        self._rates = rates or RateLimiter(MemoryRates(clock), (), clock)
        self._policies = policies or Policies(settings)
        self._keys = Keys(settings.keys, is_token, clock)
        self._names = names
        self.upstreams = {name: ModelUpstream(name, each, environment) for name, each in settings.upstreams.items()}
        shaper = results or RequestResults(ResultSettings(), BpeCounter())
        self._results = ResultStep(shaper, events, clock, most=settings.most_filtered)
        self._unknown = UnknownHeaders()
        self._generic = generic_codecs(settings.upstreams)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[LlmApp]:
        async with AsyncExitStack() as stack:
            for upstream in self.upstreams.values():
                await stack.enter_async_context(upstream.opened())
            yield self

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        writer = ResponseWriter(send)
        path = scope["path"]
        try:
            target = target_of(scope, self.upstreams)
            path = target.path
            await self._serve(target, scope, RequestReader(receive, self._settings.most_body), writer)
        except ClientDisconnected:
            return
        except PegboardError as error:
            await writer.refuse(error, provider_of(path, header_names(scope["headers"])))

    def end_shadows(self) -> None:
        """Drop the selections in the shadow, as the process is about to end."""
        self._audit.end_shadows()

    async def refuse(self, error: PegboardError, scope: Scope, send: Send) -> None:
        """Answer a request that is not served."""
        try:
            path = target_of(scope, self.upstreams).path
        except PegboardError:
            path = scope["path"]
        await ResponseWriter(send).refuse(error, provider_of(path, header_names(scope["headers"])))

    async def _serve(self, target: Target, scope: Scope, reader: RequestReader, writer: ResponseWriter) -> None:
        context = RequestContext(target=target, method=scope["method"], started=self._clock.monotonic())
        parsed = parsed_headers(scope["headers"])
        memory = ExitStack()
        try:
            context.target, context.key = self._authenticate(target, scope)
            self._audit.check()
            await self._rates.admit_request(self._limited(context.key))
            in_query = without_key(context.target.query)[1]
            context.owner = self._keys.owner(context.target.upstream.name, context.key, scope["headers"], in_query)
            context.wishes, context.client = parsed.wishes, parsed.client
            context.target = await self._kept_target(context, scope["method"])
            codec = self._codec(context, scope["method"], parsed)
            body: Body
            share = memory.enter_context(self._memory.share(_caller(context, scope)))
            if codec is None:
                body = await self._unfiltered(context, scope, parsed, reader, share)
            else:
                body = await self._read(codec, context, parsed, reader, share)
            context.added_ms = self._since(context.started)
            if context.added_ms > LONG_MS:  # the provider would bill what nobody waits for any more
                await reader.check()
            headers = outgoing_headers(
                self._keys.none_of_ours(parsed.headers), context.rewritten, followed=codec is not None
            )
            round_trip = context.rewritten.round_trip
            async with self._budgets.charged(context, self._limited(context.key)):
                with self._spans.traced(context, headers) if self._spans else nullcontext(headers) as sent:
                    if round_trip is not None and codec is not None:
                        passing = self._round_trip(context, scope["method"], sent, round_trip, codec, writer)
                    else:
                        passing = self._pass(context, scope["method"], sent, body, codec, writer)
                    await reader.until_disconnect(passing)
        except PegboardError as error:
            context.refused = "" if context.status else error.code
            context.status = context.status or error.http_status
            if isinstance(error, FilterFailed):
                context.rewritten = error.rewritten
            raise
        finally:
            memory.close()
            took_ms = self._since(context.started)
            self._events.emit(served(context, self._prices, at=self._clock.time(), took_ms=took_ms))
            self._audit.log(context)
            await self._audit.note(context)

    async def _kept_target(self, context: RequestContext, method: str) -> Target:
        """The target of a request for an answer that the provider keeps, under the id by which it does."""
        target, asked = context.target, kept_answer(context.target.path)
        if not asked:
            return target
        histories = self._histories(context)
        await histories.recall(context.owner, asked, context.key or "")
        last = histories.last_of(context.owner, asked) or asked
        context.deletes = last if method == "DELETE" and target.path.rstrip("/").endswith(asked) else ""
        return replace(target, path=renamed_path(target.path, asked, last)) if last != asked else target

    async def _unfiltered(
        self, context: RequestContext, scope: Scope, parsed: RequestHeaders, reader: RequestReader, share: MemoryShare
    ) -> Body:
        """A body without tools to select. If it names an answer, that is replaced as in the path (`_kept_target`)."""
        upstream, path = context.target.upstream.name, context.target.served
        codec = condensing_codec(path) if scope["method"] == "POST" and upstream not in self._generic else None
        if codec is None or parsed.is_signed:
            return reader.as_it_comes(scope["headers"])
        found = await reader.first(self._settings.most_filtered, share, content_length(parsed.headers))
        if isinstance(found, UnreadBody):
            return found.body
        body = await self._filters[upstream].condensing(
            codec,
            found.body,
            path=path,
            coding=parsed.coding,
            owner=context.owner,
            caller=context.key or "",
            share=share,
        )
        context.rewritten = replace(context.rewritten, body=body)
        return found.body if body is None else body

    async def _read(
        self, codec: Codec, context: RequestContext, parsed: RequestHeaders, reader: RequestReader, share: MemoryShare
    ) -> Body:
        """The body to send. A body that is too large to read, or for which there is no memory, passes unread."""
        most = self._settings.most_filtered
        found = await reader.first(most, share, content_length(parsed.headers))
        filter_, treatment_of = self._filters[context.target.upstream.name], self._treatment_of(context, parsed)
        if isinstance(found, UnreadBody):
            context.rewritten = filter_.unread(found.why, treatment_of)
            return found.body
        body, coding, shaped = found.body, parsed.coding, None
        if self._policies.shapes_results(context.target.upstream.name, context.key, parsed.wishes):
            shaped = await self._results.shaped(codec, body, coding, treatment_of, _sender(context, parsed))
        if shaped is not None:
            body, coding, treatment_of = shaped.body, "", readable(treatment_of, shaped)
        context.rewritten = await filter_.rewrite(
            codec,
            body,
            path=context.target.served,
            query=context.target.query,
            coding=coding,
            owner=context.owner,
            conversation=parsed.conversation,
            client=parsed.client,
            treatment_of=treatment_of,
            share=share,
            habits=habits_of(context.key or "", context.owner),
        )
        context.rewritten = chained(codec, context.rewritten, context.target.served)
        if context.rewritten.body is None:
            context.rewritten = replace(context.rewritten, body=mended_body(context.rewritten.request))
        if shaped is not None:
            context.rewritten = self._results.offered(codec, context.rewritten, shaped, context.target.served)
        return found.body if context.rewritten.body is None else context.rewritten.body

    def _treatment_of(self, context: RequestContext, parsed: RequestHeaders) -> TreatmentOf:
        upstream, key = context.target.upstream.name, context.key
        return lambda model: self._policies.of(upstream, model, key, parsed.wishes)

    def _authenticate(self, target: Target, scope: Scope) -> tuple[Target, str | None]:
        """Authenticate the request by a gateway key; a key in the query string is removed. Raises NotAllowed.

        A provider key that the gateway holds may be used with a gateway key, or from this machine.
        """
        query, in_query = without_key(target.query)
        key = self._keys.holder(scope["headers"], in_query)
        self._keys.check(key, target.upstream.name)
        if key is None and target.upstream.has_key and not is_local(scope, self._names):
            raise NotAllowed(
                f"Unknown callers may not use the key that this gateway holds for {target.upstream.name!r}.",
                remedy="The operator creates a key with `pegboard keys new` and adds it to [llm.keys]; send that key.",
            )
        if key is None and not target.upstream.has_key and self._keys.shows_token(scope["headers"]):
            raise NotAllowed(
                "A token of the MCP gateway is not a key for models.", remedy="Send the provider's key instead."
            )
        ours = in_query is not None and (self._keys.is_ours(in_query) or target.upstream.has_key)
        return (replace(target, query=query) if ours else target), key

    def _limited(self, key: str | None) -> LimitedCaller:
        """Who is counted by limits: the key, and the tenant of its holder."""
        return ANYONE if key is None else LimitedCaller(name=key, tenant=self._settings.keys[key].tenant)

    def _codec(self, context: RequestContext, method: str, parsed: RequestHeaders) -> Codec | None:
        """The codec of the body; None if it has no tools, or all of them stay in any case."""
        upstream = context.target.upstream.name
        codec = self._generic.get(upstream) or codec_for(context.target.served) if method == "POST" else None
        read = self._budgets.cover(self._limited(context.key)) or "results" in parsed.wishes
        if codec is not None and not read and self._policies.never_filters(upstream, context.key):
            context.rewritten = OFF
            return None
        if codec is not None and parsed.is_signed:
            context.rewritten = SIGNED
            return None
        return codec

    async def _pass(
        self,
        context: RequestContext,
        method: str,
        headers: Headers,
        body: Body,
        codec: Codec | None,
        writer: ResponseWriter,
    ) -> None:
        """Send the request and stream the answer (P27), observing it on the way."""
        if codec is not None and context.rewritten.outcome == "shadow":
            filter_ = self._filters[context.target.upstream.name]
            context.shadow = self._audit.shadow(filter_.shadowed(codec, context.rewritten, context.owner))
        sent = self._clock.monotonic()
        async with context.target.upstream.send(method, context.target.whole, headers, body) as answer:
            context.status = answer.status
            if context.deletes and _is_gone(answer.status):
                await self._deleted(context, headers)
            observer = ResponseObserver(codec, answer)
            await writer.begin(answer.status, [*answer.headers, *self._said(context, context.known)])
            try:
                async for piece in answer.pieces:
                    if observer.streamed and not context.first_chunk_s:
                        context.first_chunk_s = self._clock.monotonic() - sent
                    observer.feed(piece)
                    await writer.more(piece)
                await writer.end()
            finally:
                observer.finish()
                context.used, context.said = observer.used, observer.said
        called = observer.called if context.status < HTTPStatus.BAD_REQUEST else None
        self._filters[context.target.upstream.name].answered(context.rewritten, observer.used, called)
        context.called, context.answer, context.ended = tuple(observer.called), observer.id, True
        if codec is not None:
            self._remember(context, codec, observer.id, observer.called, observer.calls)

    async def _deleted(self, context: RequestContext, headers: Headers) -> None:
        """After the provider has deleted an answer: delete those before it that only searched, of which the client does
        not know, and forget it. They are a few, and deleted at once: the client waits for all."""
        target, last, histories = context.target, context.deletes, self._histories(context)
        paths = [renamed_path(target.path, last, each) for each in histories.earlier(context.owner, last)]
        await asyncio.gather(*(_delete(replace(target, path=path), headers) for path in paths))
        await histories.forget(context.owner, last)

    def _histories(self, context: RequestContext) -> ProviderHistories:
        return self._filters[context.target.upstream.name].histories

    def _remember(
        self,
        context: RequestContext,
        codec: Codec,
        answer_id: str,
        called: Collection[str],
        calls: Mapping[str, str],
        rounds: ToolSearchLoop | None = None,
    ) -> None:
        """Remember a conversation that the provider keeps, and the names of its ``calls`` by their ids; in ``rounds``,
        earlier answers only searched."""
        request, histories = context.rewritten.request, self._histories(context)
        if history_of(codec) is not None and request is not None and answer_id:
            kept, left_open = (rounds.kept, rounds.left_open) if rounds else (None, ())
            caller = context.key or ""
            histories.remember(context.owner, answer_id, request, called, kept, left_open, caller)
            histories.ended(context.owner, rounds.earlier_ids if rounds else (), answer_id, caller)
            if request.stored:
                histories.called(context.owner, calls, caller)

    async def _round_trip(
        self,
        context: RequestContext,
        method: str,
        headers: Headers,
        round_trip: RoundTrip,
        codec: Codec,
        writer: ResponseWriter,
    ) -> None:
        """Send the request, and repeat it while the gateway has to answer calls; the client gets one answer."""
        upstream, path = context.target.upstream, context.target.whole

        async def settle() -> None:
            self._remember(context, codec, rounds.answer_id, rounds.called, rounds.calls, rounds)
            if history_of(codec) is not None and rounds.answer_id:
                shared = self._histories(context).share
                await shared(context.owner, rounds.answer_id, rounds.earlier_ids, context.key or "")

        rounds = ToolSearchLoop(
            round_trip=round_trip,
            codec=codec,
            send=lambda body: upstream.send(method, path, headers, body),
            writer=writer,
            gateway_headers=self._said(context, context.rewritten),
            settle=settle,
        )
        context.rounds = rounds.sent
        try:
            await rounds.run()
            context.ended = True
        finally:
            context.status, context.used = rounds.status, rounds.used
            context.called = rounds.called
            self._remember(context, codec, rounds.answer_id, rounds.called, rounds.calls, rounds)
            called = rounds.called if context.ended and context.status < HTTPStatus.BAD_REQUEST else None
            self._filters[context.target.upstream.name].answered(context.rewritten, rounds.used, called)

    def _said(self, context: RequestContext, rewritten: RewrittenRequest) -> Headers:
        """The headers that the gateway adds to the answer."""
        budget = [(b"x-pegboard-budget", context.budget.encode())] if context.budget else []
        return [*gateway_headers(rewritten, context.added_ms), *self._unknown.warning(context.wishes), *budget]

    def _since(self, started: float) -> float:
        return (self._clock.monotonic() - started) * 1000


async def _delete(target: Target, headers: Headers) -> None:
    """Delete what the client does not know of, and so cannot be told about."""
    try:
        async with target.upstream.send("DELETE", target.whole, headers, None) as answer:
            status = answer.status
    except UpstreamError as error:
        status = error.http_status
    if not _is_gone(status):
        LOGGER.warning("%s kept an answer that led to a deleted one: status %s", target.upstream.name, status)


def _is_gone(status: int) -> bool:
    """Whether what was to be deleted is not there any more."""
    return status < HTTPStatus.BAD_REQUEST or status == HTTPStatus.NOT_FOUND


def _caller(context: RequestContext, scope: Scope) -> str:
    """Who is charged for memory, by something a client cannot choose: the gateway key or the address."""
    address = scope.get("client") or ("",)
    return f"key {context.key}" if context.key is not None else f"address {address[0]}"


def _sender(context: RequestContext, parsed: RequestHeaders) -> Sender:
    target = context.target
    return Sender(
        path=target.served,
        query=target.query,
        client=parsed.client,
        key=context.key or "",
        conversation=parsed.conversation,
    )
