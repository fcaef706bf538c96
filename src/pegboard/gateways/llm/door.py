"""The LLM gateway on the wire: every request goes to its provider, with the tools it needs.

request ─► target ─► key ─► body ─► filtered? ─► provider ─► answer, as it comes
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any

from starlette.types import Receive, Scope, Send

from pegboard.errors import PegboardError
from pegboard.events import ModelRequestServed
from pegboard.gateways.llm.codec import Codec
from pegboard.gateways.llm.codecs import codec_for, generic_codecs
from pegboard.gateways.llm.exchange import Said, Target, format_of, said_in, target_of, without_key
from pegboard.gateways.llm.filtering import Filter, FilterFailed, Rewritten
from pegboard.gateways.llm.history import KEPT_BY_PROVIDERS
from pegboard.gateways.llm.keys import IsToken, Keys, NotAllowed
from pegboard.gateways.llm.local import is_local
from pegboard.gateways.llm.passage import OFF, Passage
from pegboard.gateways.llm.policies import Policies
from pegboard.gateways.llm.recording import Recorder
from pegboard.gateways.llm.selection import Filtered
from pegboard.gateways.llm.transfer import Answering, Following, HungUp, Reading, about, going, joined
from pegboard.gateways.llm.unknown_headers import UnknownHeaders
from pegboard.gateways.llm.upstream import CREDENTIALS, Body, Headers, ModelUpstream
from pegboard.gateways.llm.way_back.rounds import Rounds
from pegboard.gateways.llm.way_back.wire import RoundTrip
from pegboard.gateways.llm.witness import Witness
from pegboard.seams import Clock, EventSink
from pegboard.settings.llm import LlmSettings


class LlmDoor:
    """An ASGI application before model providers, with a filter for each. Serve it within `opened`."""

    def __init__(
        self,
        settings: LlmSettings,
        filters: Mapping[str, Filter],
        *,
        policies: Policies | None = None,
        events: EventSink,
        clock: Clock,
        environment: Mapping[str, str] | None = None,
        recorder: Recorder | None = None,
        is_token: IsToken = lambda text: False,
        names: Sequence[str] = (),
    ) -> None:
        """``is_token`` knows the tokens of the MCP gateway, ``names`` are this server's own besides loopback's.

        Raises ConfigError for options that make no sense together.
        """
        self._settings = settings
        self._filters = filters
        self._events = events
        self._clock = clock
        self._witness = Witness(events, clock, recorder)
        self._policies = policies or Policies(settings)
        self._keys = Keys(settings.keys, is_token)
        self._names = names
        self.upstreams = {name: ModelUpstream(name, each, environment) for name, each in settings.upstreams.items()}
        self._unknown = UnknownHeaders()
        self._generic = generic_codecs(settings.upstreams)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[LlmDoor]:
        async with AsyncExitStack() as stack:
            for upstream in self.upstreams.values():
                await stack.enter_async_context(upstream.opened())
            yield self

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answering = Answering(send)
        path = scope["path"]
        try:
            target = target_of(scope, self.upstreams)
            path = target.path
            await self._serve(target, scope, Reading(receive, self._settings.most_body), answering)
        except HungUp:
            return
        except PegboardError as error:
            await answering.refuse(error, format_of(path, scope["headers"]))

    async def refuse(self, error: PegboardError, scope: Scope, send: Send) -> None:
        """Answer a request that is not to be served."""
        try:
            path = target_of(scope, self.upstreams).path
        except PegboardError:
            path = scope["path"]
        await Answering(send).refuse(error, format_of(path, scope["headers"]))

    async def _serve(self, target: Target, scope: Scope, reading: Reading, answering: Answering) -> None:
        passage = Passage(target=target, started=self._clock.monotonic())
        said = said_in(scope["headers"])
        try:
            passage.target, passage.key = self._let_in(target, scope)
            passage.owner = _owner(passage, scope["headers"])
            passage.wishes, passage.client = said.wishes, said.client
            codec = self._codec(passage, scope["method"])
            body: Body
            if codec is None:
                body = reading.as_it_comes(scope["headers"])
            else:
                read, rest = await reading.first(self._settings.most_filtered)
                passage.rewritten = await self._rewritten(codec, read, passage, said)
                body = read if passage.rewritten.body is None else passage.rewritten.body
                if rest is not None:  # too large to be read: what came of it says so, and it passes as it comes
                    body = joined(read, rest)
            passage.added_ms = self._since(passage.started)
            headers = going(self._keys.none_of_ours(said.headers), passage.rewritten, followed=codec is not None)
            way = passage.rewritten.way
            if way is not None and codec is not None:
                passing = self._there_and_back(passage, scope["method"], headers, way, codec, answering)
            else:
                passing = self._pass(passage, scope["method"], headers, body, codec, answering)
            await reading.unless_hung_up(passing)
        except PegboardError as error:
            passage.status = passage.status or error.http_status
            if isinstance(error, FilterFailed):
                passage.rewritten = error.rewritten
            raise
        finally:
            self._tell(passage)
            await self._witness.note(passage)

    async def _rewritten(self, codec: Codec, body: bytes, passage: Passage, said: Said) -> Rewritten:
        upstream, key = passage.target.upstream.name, passage.key
        return await self._filters[upstream].rewrite(
            codec,
            body,
            path=passage.target.path,
            query=passage.target.query,
            coding=said.coding,
            owner=passage.owner,
            conversation=said.conversation,
            client=said.client,
            treatment_of=lambda model: self._policies.of(upstream, model, key, said.wishes),
        )

    def _let_in(self, target: Target, scope: Scope) -> tuple[Target, str | None]:
        """Who asks, by the key of ours that is shown; one in the query goes no further. Raises NotAllowed.

        A provider's key that the gateway holds is for callers with a key of the gateway, and for this machine's own.
        """
        query, in_query = without_key(target.query)
        key = self._keys.holder(scope["headers"], in_query)
        self._keys.check(key, target.upstream.name)
        if key is None and target.upstream.has_key and not is_local(scope, self._names):
            raise NotAllowed(
                f"The key that this gateway holds for {target.upstream.name!r} is not for unknown callers.",
                remedy="Whoever runs it makes a key with `pegboard keys new` and adds it to [llm.keys]; send that one.",
            )
        if key is None and not target.upstream.has_key and self._keys.shows_token(scope["headers"]):
            raise NotAllowed(
                "A token of the MCP gateway is no key for models.", remedy="Send the provider's key in its place."
            )
        ours = in_query is not None and (self._keys.is_ours(in_query) or target.upstream.has_key)
        return (replace(target, query=query) if ours else target), key

    def _codec(self, passage: Passage, method: str) -> Codec | None:
        """How the body is read; None where it has no tools, or they all stay in any case."""
        upstream = passage.target.upstream.name
        codec = self._generic.get(upstream) or codec_for(passage.target.path) if method == "POST" else None
        if codec is not None and self._policies.never_filters(upstream, passage.key):
            passage.rewritten = OFF
            return None
        return codec

    async def _pass(
        self,
        passage: Passage,
        method: str,
        headers: Headers,
        body: Body,
        codec: Codec | None,
        answering: Answering,
    ) -> None:
        """Send the request, and hand the answer on as it comes (P27); what it says of itself is noted on the way."""
        if codec is not None and passage.rewritten.outcome == "shadow":
            filter_ = self._filters[passage.target.upstream.name]
            passage.shadow = asyncio.create_task(filter_.shadowed(codec, passage.rewritten, passage.owner))
        async with passage.target.upstream.send(method, passage.target.whole, headers, body) as answer:
            passage.status = answer.status
            following = Following(codec, answer)
            said = [*about(passage.known, passage.added_ms), *self._unknown.warning(passage.wishes)]
            await answering.begin(answer.status, [*answer.headers, *said])
            async for piece in answer.pieces:
                following.feed(piece)
                await answering.more(piece)
            await answering.end()
        following.finish()
        self._filters[passage.target.upstream.name].answered(passage.rewritten, following.used)
        passage.called, passage.answer, passage.ended = tuple(following.called), following.id, True
        request = passage.rewritten.request
        if codec is not None and codec.name in KEPT_BY_PROVIDERS and request is not None and following.id:
            self._filters[passage.target.upstream.name].remember(passage.owner, following.id, request, following.called)

    async def _there_and_back(
        self, passage: Passage, method: str, headers: Headers, way: RoundTrip, codec: Codec, answering: Answering
    ) -> None:
        """Send the request, and again as long as the model asks for tools; the client gets one answer."""
        upstream, path = passage.target.upstream, passage.target.whole
        rounds = Rounds(
            way=way,
            codec=codec,
            send=lambda body: upstream.send(method, path, headers, body),
            answering=answering,
            about=[*about(passage.rewritten, passage.added_ms), *self._unknown.warning(passage.wishes)],
        )
        try:
            await rounds.run()
            passage.ended = True
        finally:
            passage.status, passage.called = rounds.status, rounds.called
            self._filters[passage.target.upstream.name].answered(passage.rewritten, rounds.used)

    def _tell(self, passage: Passage) -> None:
        rewritten = passage.rewritten
        filtered, request = rewritten.filtered, rewritten.request
        offered = len(request.tools) if request else 0
        self._events.emit(
            ModelRequestServed(
                at=self._clock.time(),
                upstream=passage.target.upstream.name,
                format=passage.target.upstream.format,
                model=request.model if request else "",
                key=passage.key or "",
                status=passage.status,
                outcome=rewritten.outcome,
                reason=rewritten.reason,
                tools=offered,
                kept=len(filtered.kept.places) if filtered else offered,
                tokens_before=filtered.tokens_before if filtered else 0,
                tokens_after=filtered.tokens_after if filtered else 0,
                decision=filtered.decision.turn_id if filtered and filtered.decision else "",
                called=passage.called,
                added_ms=passage.added_ms,
                latency_ms=self._since(passage.started),
                failure=rewritten.failure,
                filter_ms=rewritten.took_ms,
                **_cache(filtered),
                searches=rewritten.way.searches if rewritten.way else 0,
                brought_back=tuple(rewritten.way.found) if rewritten.way else (),
            )
        )

    def _since(self, started: float) -> float:
        return (self._clock.monotonic() - started) * 1000


def _cache(filtered: Filtered | None) -> dict[str, Any]:
    """What the event says of the prompt cache."""
    if filtered is not None and filtered.because:
        return {"cache": filtered.way}
    if filtered is None or filtered.verdict is None:
        return {}
    found = filtered.verdict
    return {
        "cache": found.kind,
        "cache_bill": found.bill,
        "cache_bill_whole": found.whole_bill,
        "narrowed": filtered.narrowed is not None,
    }


def _owner(passage: Passage, headers: Headers) -> str:
    """Whose conversations these are, without a word of it: the provider's account, or the gateway's key."""
    shown = sorted(value for name, value in headers if name.lower() in CREDENTIALS)
    said = [passage.target.upstream.name.encode(), (passage.key or "").encode(), *shown]
    return hashlib.sha256(b"\0".join(said)).hexdigest()
