"""Filters the body of one request: read, selected, rewritten; or left unchanged, with the reason."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from types import MappingProxyType
from uuid import uuid4

from pegboard.errors import PegboardError, RequestNotUnderstood
from pegboard.gateways.llm.call_tool.plan import CallToolPlan
from pegboard.gateways.llm.call_tool.plan import round_trip_of as call_tool_round_trip
from pegboard.gateways.llm.conversation.history import ProviderHistories
from pegboard.gateways.llm.formats.protocol import Codec, LlmRequest, OpenCall
from pegboard.gateways.llm.formats.registry import as_served, counts
from pegboard.gateways.llm.formats.tool_choice import left_alone
from pegboard.gateways.llm.formats.tool_search import RoundTrip
from pegboard.gateways.llm.proxy.body_memory import MemoryShare, NoMemory
from pegboard.gateways.llm.proxy.content_encoding import decoded
from pegboard.gateways.llm.selection.answer_ids import continuing, mended_body
from pegboard.gateways.llm.selection.deferral import DeferralPlan
from pegboard.gateways.llm.selection.policy import Filtered, Policy, mark_protected
from pegboard.gateways.llm.selection.policy_rules import Treatment
from pegboard.gateways.llm.selection.selector import Selector
from pegboard.gateways.llm.tool_search.reference_round_trip import reference_round_trip
from pegboard.gateways.llm.tool_search.round_trip import ToolSearchRoundTrip, in_order, round_trip_of
from pegboard.gateways.llm.tool_search.searched_items import SearchedItems
from pegboard.habits import caller_of
from pegboard.model import Tokens
from pegboard.protocols import Clock
from pegboard.retrieval.index_thread import MANY
from pegboard.token_usage import TokenUsage

LOGGER = logging.getLogger(__name__)

NOT_YET = "not measured yet"
"""The reason for a request in the shadow whose answer begins before its tools are selected."""
LARGE = 512 * 1024
"""Larger bodies are read off the event loop, one at a time: each occupies the processor."""
UNKNOWN: Mapping[str, str] = MappingProxyType({})
"""No headers of known agents."""
TreatmentOf = Callable[[str], Treatment]
"""Returns the treatment of a request for a model."""


class FilterFailed(PegboardError):  # noqa: N818
    """The tools of a request could not be selected, and the policy does not let it pass unchanged."""

    code = "filter_failed"
    http_status = 503

    def __init__(self, rewritten: RewrittenRequest) -> None:
        super().__init__(f"The tools of this request could not be selected: {rewritten.reason}", remedy="Try again.")
        self.rewritten = rewritten


class TooManyTools(PegboardError):  # noqa: N818
    """A request has more tools than are examined: reading them would delay other requests."""

    code = "too_many_tools"
    http_status = 503


UNREAD = (RequestNotUnderstood, NoMemory, TooManyTools)
"""Errors for which a body is not read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RewrittenRequest:
    """A body to send. ``body`` is None if the original bytes are sent.

    ``outcome`` is `filtered`, `unchanged`, `failed`, `off` or `shadow`; ``reason`` says why it is not the first, or
    what was missing; ``failure`` is the code of an error. ``request`` and ``filtered`` are what was read and selected,
    as far as that went; in the shadow, what would have been. ``treatment`` is the request's treatment, once known;
    ``round_trip`` is the round trip that answers calls, if there is one.
    """

    outcome: str
    reason: str = ""
    body: bytes | None = None
    request: LlmRequest | None = None
    filtered: Filtered | None = None
    took_ms: float = 0.0
    failure: str = ""
    round_trip: RoundTrip | None = None
    treatment: Treatment | None = None


class RequestFilter:
    """Filters bodies. On failure the request passes, or FilterFailed is raised, as the treatment says."""

    def __init__(
        self,
        selector: Selector,
        histories: ProviderHistories,
        clock: Clock,
        *,
        timeout: float,
        shadow_timeout: float,
        patience: float,
        most: int,
        most_tools: int,
        items: SearchedItems | None = None,
    ) -> None:
        self._selector = selector
        self._histories = histories
        self._clock = clock
        self._timeout = timeout
        self._shadow_timeout = shadow_timeout
        self._patience = patience
        self._most = most
        self._most_tools = most_tools
        self._items = items
        self._read_turn = asyncio.Semaphore(1)
        self._large = ThreadPoolExecutor(max_workers=1, thread_name_prefix="large-requests")

    async def rewrite(
        self,
        codec: Codec,
        body: bytes,
        *,
        path: str,
        query: str = "",
        coding: str,
        owner: str,
        treatment_of: TreatmentOf,
        conversation: str = "",
        client: Mapping[str, str] = UNKNOWN,
        share: MemoryShare | None = None,
        habits: str = "",
    ) -> RewrittenRequest:
        """The body to send to a path and ``query``. ``coding`` is its Content-Encoding; ``owner`` identifies whose
        conversations are remembered, ``conversation`` is the client's name for this one, ``client`` are the headers
        that identify agents; ``share`` accounts for the memory of the body; ``habits`` says whose use teaches.

        Raises what ``treatment_of`` raises, and FilterFailed.
        """
        started = self._clock.monotonic()
        read: LlmRequest | None = None
        request: LlmRequest | None = None
        treatment: Treatment | None = None
        try:
            read = await self._read(codec, body, path, coding, share)
            if read.continues is not None:
                last, calls = await self._ending(owner, read.continues, caller_of(habits))
                read = continuing(codec, read, path, last, calls)
            read = identified(read, conversation, habits)
            if len(read.tools) > self._most_tools:
                said = f"It has {len(read.tools):,} tools, and {self._most_tools:,} are allowed."
                raise TooManyTools(said, remedy="Raise llm.most_tools.")
            request = self._histories.resumed(owner, read)
            treatment = treatment_of(request.model)
            counting = counts(path)
            request = await self._mark_protected(request, client, treatment.policy)
            if not treatment.filters:
                self._passed(request, treatment, owner, counting)
                return RewrittenRequest(
                    outcome="off",
                    reason="the policy",
                    body=mended(codec, request),
                    request=request,
                    took_ms=self._since(started),
                )
            if treatment.shadow:
                return RewrittenRequest(
                    outcome="shadow",
                    reason=NOT_YET,
                    body=mended(codec, request),
                    request=request,
                    took_ms=self._since(started),
                    treatment=treatment,
                )
            filtered = await self._picked(codec, request, treatment, owner, query, counting=counting)
            if filtered.call_tool_plan is not None:
                by_one = await self._by_call_tool(codec, request, filtered, filtered.call_tool_plan, treatment, started)
                return replace(by_one, round_trip=None) if counting else by_one
            if filtered.deferral is not None:
                deferred = self._deferred(codec, request, filtered, filtered.deferral, treatment, started)
                return replace(deferred, round_trip=None) if counting else deferred
            everything = len(filtered.kept.places) == len(request.tools)
            round_trip = self._way_back(codec, request, filtered, treatment, query)
            filtered = _with_search(filtered, round_trip)
            if round_trip is not None:
                rewritten = round_trip.body()
            else:
                rewritten = filtered.narrowed or in_order(codec, request, filtered.kept.places, filtered.tail)
            if counting:
                round_trip = None  # nothing is called in a count
            return RewrittenRequest(
                outcome="unchanged" if everything else "filtered",
                reason=filtered.left_alone or filtered.without or ("everything is relevant" if everything else ""),
                body=None if rewritten == request.body else _whole(request, rewritten),
                request=request,
                filtered=filtered,
                took_ms=self._since(started),
                round_trip=round_trip,
                treatment=treatment,
            )
        except PegboardError as error:
            if treatment is None and not isinstance(error, UNREAD):
                raise
            reason, failure = error.message, error.code
        except Exception as error:  # noqa: BLE001  # whatever it is, the request continues
            reason, failure = self._why(error)
        if request is not None and treatment is not None and treatment.fails_open:
            self._passed(request, treatment, owner, counts(path))
        failed = _failed(treatment or treatment_of(""), reason, failure)
        failed = replace(failed, took_ms=self._since(started))
        if request is not None:
            failed = replace(failed, body=mended(codec, request), request=request)
        elif read is not None:
            failed = replace(failed, body=mended_body(read))
        return _if_open(failed)

    async def condensing(
        self, codec: Codec, body: bytes, *, path: str, coding: str, owner: str, caller: str, share: MemoryShare
    ) -> bytes | None:
        """The body of a request for a shorter history, if that ends with another answer than the one it names, or has
        calls without results; None if it can pass unchanged, or cannot be read."""
        try:
            read = await self._read(codec, body, path, coding, share)
            if read.continues is None:
                return None
            last, calls = await self._ending(owner, read.continues, caller)
            return mended_body(continuing(codec, read, path, last, [replace(call, found=None) for call in calls]))
        except PegboardError:
            return None

    async def _ending(self, owner: str, answer: str, caller: str) -> tuple[str, Sequence[OpenCall]]:
        """The answer with which the provider's history of this one ends, and its calls without results."""
        await self._histories.recall(owner, answer, caller)
        last = self._histories.last_of(owner, answer) or answer
        return last, self._histories.left_open(owner, last)

    def unread(self, why: PegboardError, treatment_of: TreatmentOf) -> RewrittenRequest:
        """The outcome of a request whose body is not read. Raises FilterFailed."""
        return _if_open(_failed(treatment_of(""), why.message, why.code))

    async def shadowed(self, codec: Codec, passing: RewrittenRequest, owner: str) -> RewrittenRequest:
        """What would have become of a request in the shadow, or the unchanged result with the reason if that is
        unknown. As no client waits for it, it waits for new tools to be embedded."""
        request, treatment = passing.request, passing.treatment
        if request is None or treatment is None:
            return passing
        started = self._clock.monotonic()
        try:
            filtered = await self._picked(codec, request, treatment, owner)
            if filtered.call_tool_plan is None and filtered.deferral is None:
                filtered = _with_search(filtered, self._way_back(codec, request, filtered, treatment))
            return replace(
                passing, reason=filtered.left_alone, filtered=filtered, took_ms=passing.took_ms + self._since(started)
            )
        except Exception as error:  # noqa: BLE001  # whatever it is, the request is already sent
            reason, failure = self._why(error)
            return replace(passing, reason=reason, failure=failure, took_ms=passing.took_ms + self._since(started))

    def _why(self, error: Exception) -> tuple[str, str]:
        """The reason why tools could not be selected, and its code."""
        if isinstance(error, PegboardError):
            return error.message, error.code
        if isinstance(error, TimeoutError):
            return "the selection took too long", "timeout"
        LOGGER.error("Selecting tools failed", exc_info=error)
        return type(error).__name__, "internal"

    async def _read(self, codec: Codec, body: bytes, path: str, coding: str, share: MemoryShare | None) -> LlmRequest:
        """Reads large bodies off the event loop (P25). Raises RequestNotUnderstood, NoMemory."""
        if len(body) < LARGE and not coding:
            return codec.parse(decoded(body, coding, self._most), as_served(path))
        plain = await asyncio.to_thread(decoded, body, coding, self._most)  # a compressed body may be of any size
        if share is not None and plain is not body:
            share.take(len(plain))
        async with self._read_turn if len(plain) > LARGE else nullcontext():
            return await asyncio.to_thread(codec.parse, plain, as_served(path))

    async def _mark_protected(self, request: LlmRequest, client: Mapping[str, str], policy: Policy) -> LlmRequest:
        """The request with its protected tools marked. For thousands of tools that takes a second: off the event loop,
        and one such request at a time.

        Raises TimeoutError.
        """
        if len(request.tools) <= MANY:
            return mark_protected(request, client, policy)
        async with asyncio.timeout(self._timeout):
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._large, mark_protected, request, client, policy)

    async def _by_call_tool(
        self,
        codec: Codec,
        request: LlmRequest,
        filtered: Filtered,
        plan: CallToolPlan,
        treatment: Treatment,
        started: float,
    ) -> RewrittenRequest:
        """The body with `call_tool` in place of the tools. Raises RequestNotUnderstood."""
        if len(request.body) < LARGE:
            round_trip = call_tool_round_trip(codec, request, plan)
        else:
            round_trip = await asyncio.to_thread(call_tool_round_trip, codec, request, plan)
        return RewrittenRequest(
            outcome="filtered",
            reason=filtered.without,
            body=_whole(request, round_trip.body()),
            request=request,
            filtered=filtered,
            took_ms=self._since(started),
            round_trip=round_trip,
            treatment=treatment,
        )

    def _deferred(
        self,
        codec: Codec,
        request: LlmRequest,
        filtered: Filtered,
        plan: DeferralPlan,
        treatment: Treatment,
        started: float,
    ) -> RewrittenRequest:
        """The body with deferred tools, for which the gateway searches."""
        return RewrittenRequest(
            outcome="filtered",
            reason=filtered.without,
            body=_whole(request, plan.body),
            request=request,
            filtered=filtered,
            took_ms=self._since(started),
            round_trip=reference_round_trip(codec, request, filtered, plan, timeout=self._timeout),
            treatment=treatment,
        )

    async def _picked(
        self,
        codec: Codec,
        request: LlmRequest,
        treatment: Treatment,
        owner: str,
        query: str = "",
        *,
        counting: bool = False,
    ) -> Filtered:
        """Raises StillEmbedding if the request may pass without waiting for that, and TimeoutError.

        The time for the selection begins after ``patience``: whoever waits longer for vectors must not end with none.
        """
        timeout = self._shadow_timeout if treatment.shadow else self._timeout
        passes = treatment.fails_open and not treatment.shadow
        patience = self._patience if passes else timeout
        async with asyncio.timeout(timeout + self._patience if passes else timeout):
            return await self._selector.select(
                codec,
                request,
                treatment.policy,
                owner=owner,
                patience=patience,
                url_query=query,
                counting=counting,
            )

    def _way_back(
        self, codec: Codec, request: LlmRequest, filtered: Filtered, treatment: Treatment, query: str = ""
    ) -> ToolSearchRoundTrip | None:
        """The round trip of a request of which tools were left out, or which may want items, if it has one."""
        if filtered.narrowed is not None or left_alone(request):
            return None
        terms, timeout = treatment.tool_search, self._timeout
        return round_trip_of(codec, request, filtered, terms, query=query, timeout=timeout, items=self._items)

    def _passed(self, request: LlmRequest, treatment: Treatment, owner: str, counting: bool) -> None:
        """Remember that the request is sent with all tools; not in the shadow."""
        if not counting and not treatment.shadow:
            self._selector.passed(request, treatment.policy, owner)

    def answered(
        self, rewritten: RewrittenRequest, used: TokenUsage | None, called: Collection[str] | None = None
    ) -> None:
        """Record the end of an answer, complete or not: its conversation holds the tools of the last repetition and is
        billed for all of them. ``used`` is what the provider counted, ``called`` are the names of the called tools, if
        known."""
        filtered, round_trip = rewritten.filtered, rewritten.round_trip
        if filtered is not None:
            sent = frozenset(filtered.sent(len(rewritten.request.tools) if rewritten.request else 0))
            tail = round_trip.tail if isinstance(round_trip, ToolSearchRoundTrip) else ()
            self._selector.answered(filtered, [sent, *(round_trip.rounds if round_trip else ())], used, tail)
            if called is not None and rewritten.request is not None:
                self._selector.called(filtered, rewritten.request, called)

    @property
    def histories(self) -> ProviderHistories:
        """What is known of conversations that the provider keeps."""
        return self._histories

    def _since(self, started: float) -> float:
        return (self._clock.monotonic() - started) * 1000


def _failed(treatment: Treatment, reason: str, failure: str) -> RewrittenRequest:
    outcome = "shadow" if treatment.shadow else "failed"
    return RewrittenRequest(outcome=outcome, reason=reason, failure=failure, treatment=treatment)


def _with_search(filtered: Filtered, round_trip: ToolSearchRoundTrip | None) -> Filtered:
    """With the tokens of the search tool, if there is one."""
    tokens = 0 if round_trip is None else round_trip.tokens
    return replace(filtered, tokens_after=Tokens(filtered.tokens_after + tokens))


def _if_open(failed: RewrittenRequest) -> RewrittenRequest:
    """Raises FilterFailed if the request may not pass unchanged."""
    if failed.treatment is not None and not failed.treatment.fails_open:
        raise FilterFailed(failed)
    return failed


def mended(codec: Codec, request: LlmRequest) -> bytes | None:
    """The body of a request that passes with all its tools, corrected if the provider would reject its history (P21).

    None if it can pass unchanged, or cannot be corrected.
    """
    try:
        body = codec.rewrite(request, range(len(request.tools)))
    except Exception:
        LOGGER.exception("Correcting a request failed")
        return None
    return None if body == request.body else _whole(request, body)


def _whole(request: LlmRequest, body: bytes) -> bytes:
    """The body within the bytes around it."""
    before, behind = request.around
    return before + body + behind


def identified(request: LlmRequest, conversation: str = "", habits: str = "") -> LlmRequest:
    """The request with an id for its decision, which the response headers and the events show."""
    return replace(request, turn=replace(request.turn, id=uuid4().hex, habits=habits), conversation=conversation)
