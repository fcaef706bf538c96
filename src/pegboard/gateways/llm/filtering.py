"""What is done to one request's body: read, picked, rewritten; or left as it is, with the reason."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from uuid import uuid4

from pegboard.errors import PegboardError, RequestNotUnderstood
from pegboard.gateways.llm.codec import Codec, Request, Usage
from pegboard.gateways.llm.codecs import counts
from pegboard.gateways.llm.coding import decoded
from pegboard.gateways.llm.history import Histories
from pegboard.gateways.llm.one_tool.plan import Prepared
from pegboard.gateways.llm.one_tool.plan import way_of as one_tool_way_of
from pegboard.gateways.llm.policies import Treatment
from pegboard.gateways.llm.protection import shielded
from pegboard.gateways.llm.selecting import Selector
from pegboard.gateways.llm.selection import Filtered
from pegboard.gateways.llm.way_back.plan import way_of
from pegboard.gateways.llm.way_back.wire import RoundTrip
from pegboard.model import Tokens
from pegboard.seams import Clock

LOGGER = logging.getLogger(__name__)

NOT_YET = "not measured yet"
"""What is said of a request in the shadow whose answer begins before its tools are picked."""
LARGE = 512 * 1024
"""Bytes from which on reading a body would keep other requests waiting."""
UNKNOWN: Mapping[str, str] = MappingProxyType({})
"""No header that a known agent sends."""
TreatmentOf = Callable[[str], Treatment]
"""The treatment of a request for a model."""


class FilterFailed(PegboardError):  # noqa: N818
    """The tools of a request could not be picked, and the policy does not let it pass as it came."""

    code = "filter_failed"
    http_status = 503

    def __init__(self, rewritten: Rewritten) -> None:
        super().__init__(f"The tools of this request could not be picked: {rewritten.reason}", remedy="Try again.")
        self.rewritten = rewritten


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """A body on its way out. ``body`` is None where the bytes that came are sent.

    ``outcome`` is `filtered`, `unchanged`, `failed`, `off` or `shadow`, ``reason`` says why it is not the first, or
    what was missing, ``failure`` is the code of what failed. ``request`` and ``filtered`` are what was read and what
    was picked, as far as that went; in the shadow it is what would have been. ``treatment`` is how it was to be
    treated, once known, ``way`` the way back, where it has one.
    """

    outcome: str
    reason: str = ""
    body: bytes | None = None
    request: Request | None = None
    filtered: Filtered | None = None
    took_ms: float = 0.0
    failure: str = ""
    way: RoundTrip | None = None
    treatment: Treatment | None = None


class Filter:
    """Filters one body after another. Fails open, or raises FilterFailed, as the treatment says."""

    def __init__(
        self,
        selector: Selector,
        histories: Histories,
        clock: Clock,
        *,
        timeout: float,
        shadow_timeout: float,
        patience: float,
        most: int,
    ) -> None:
        self._selector = selector
        self._histories = histories
        self._clock = clock
        self._timeout = timeout
        self._shadow_timeout = shadow_timeout
        self._patience = patience
        self._most = most

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
    ) -> Rewritten:
        """The body as it goes on to a path and ``query``. ``coding`` is its Content-Encoding; ``owner`` whose
        conversations are remembered, ``conversation`` what it calls its own, ``client`` the headers that tell agents.

        Raises what ``treatment_of`` does, and FilterFailed.
        """
        started = self._clock.monotonic()
        request: Request | None = None
        treatment: Treatment | None = None
        try:
            read = identified(await self._read(codec, body, path, coding), conversation)
            request = self._histories.resumed(owner, read)
            treatment = treatment_of(request.model)
            counting = counts(path)
            request = shielded(request, client, treatment.policy)
            if not treatment.filters:
                self._passed(request, treatment, owner, counting)
                return Rewritten(
                    outcome="off",
                    reason="the policy",
                    body=mended(codec, request),
                    request=request,
                    took_ms=self._since(started),
                )
            if treatment.shadow:
                return Rewritten(
                    outcome="shadow",
                    reason=NOT_YET,
                    body=mended(codec, request),
                    request=request,
                    took_ms=self._since(started),
                    treatment=treatment,
                )
            filtered = await self._picked(codec, request, treatment, owner, query, counting=counting)
            if filtered.one_tool is not None:
                by_one = await self._by_one_tool(codec, request, filtered, filtered.one_tool, treatment, started)
                return replace(by_one, way=None) if counting else by_one
            everything = len(filtered.kept.places) == len(request.tools)
            way = None
            if not everything and filtered.narrowed is None:
                way = way_of(codec, request, filtered, treatment.way_back, query=query, timeout=self._timeout)
            if way is not None:
                filtered = replace(filtered, tokens_after=Tokens(filtered.tokens_after + way.tokens))
                rewritten = way.body()
            else:
                rewritten = filtered.narrowed or codec.rewrite(request, filtered.kept.places)
            if counting:
                way = None  # nothing is called in a count
            return Rewritten(
                outcome="unchanged" if everything else "filtered",
                reason=filtered.left_alone or filtered.without or ("everything is relevant" if everything else ""),
                body=None if rewritten == request.body else rewritten,
                request=request,
                filtered=filtered,
                took_ms=self._since(started),
                way=way,
                treatment=treatment,
            )
        except PegboardError as error:
            if treatment is None and not isinstance(error, RequestNotUnderstood):
                raise
            reason, failure = error.message, error.code
        except Exception as error:  # noqa: BLE001  # whatever it is, the request goes on
            reason, failure = self._why(error)
        if request is not None and treatment is not None and treatment.fails_open:
            self._passed(request, treatment, owner, counts(path))
        treatment = treatment or treatment_of("")
        failed = Rewritten(
            outcome="shadow" if treatment.shadow else "failed",
            reason=reason,
            body=None if request is None else mended(codec, request),
            request=request,
            took_ms=self._since(started),
            failure=failure,
            treatment=treatment,
        )
        if not treatment.fails_open:
            raise FilterFailed(failed)
        return failed

    async def shadowed(self, codec: Codec, passing: Rewritten, owner: str) -> Rewritten:
        """What would have become of a request that passes in the shadow; without it, and with the reason, where that
        cannot be said. Nobody waits for it, so tools that are new are waited for."""
        request, treatment = passing.request, passing.treatment
        if request is None or treatment is None:
            return passing
        started = self._clock.monotonic()
        try:
            filtered = await self._picked(codec, request, treatment, owner)
            return replace(
                passing, reason=filtered.left_alone, filtered=filtered, took_ms=passing.took_ms + self._since(started)
            )
        except Exception as error:  # noqa: BLE001  # the request is on its way, whatever it is
            reason, failure = self._why(error)
            return replace(passing, reason=reason, failure=failure, took_ms=passing.took_ms + self._since(started))

    def _why(self, error: Exception) -> tuple[str, str]:
        """What kept tools from being picked, and its code."""
        if isinstance(error, PegboardError):
            return error.message, error.code
        if isinstance(error, TimeoutError):
            return "picking took too long", "timeout"
        LOGGER.error("Picking tools failed", exc_info=error)
        return type(error).__name__, "internal"

    async def _read(self, codec: Codec, body: bytes, path: str, coding: str) -> Request:
        """A large body is read off the event loop (P25). Raises RequestNotUnderstood."""

        def read() -> Request:
            return codec.parse(decoded(body, coding, self._most), path)

        is_small = len(body) < LARGE and not coding  # what is compressed may be as large as it likes
        return read() if is_small else await asyncio.to_thread(read)

    async def _by_one_tool(
        self,
        codec: Codec,
        request: Request,
        filtered: Filtered,
        plan: Prepared,
        treatment: Treatment,
        started: float,
    ) -> Rewritten:
        """The body in which `call_tool` stands for the tools. Raises RequestNotUnderstood."""
        if len(request.body) < LARGE:
            way = one_tool_way_of(codec, request, plan)
        else:
            way = await asyncio.to_thread(one_tool_way_of, codec, request, plan)
        return Rewritten(
            outcome="filtered",
            reason=filtered.without,
            body=way.body(),
            request=request,
            filtered=filtered,
            took_ms=self._since(started),
            way=way,
            treatment=treatment,
        )

    async def _picked(
        self,
        codec: Codec,
        request: Request,
        treatment: Treatment,
        owner: str,
        query: str = "",
        *,
        counting: bool = False,
    ) -> Filtered:
        """Raises StillEmbedding where the request may go on without waiting for that, and TimeoutError."""
        timeout = self._shadow_timeout if treatment.shadow else self._timeout
        passes = treatment.fails_open and not treatment.shadow
        patience = min(self._patience, timeout) if passes else timeout
        async with asyncio.timeout(timeout):
            return await self._selector.select(
                codec,
                request,
                treatment.policy,
                owner=owner,
                patience=patience,
                url_query=query,
                counting=counting,
            )

    def _passed(self, request: Request, treatment: Treatment, owner: str, counting: bool) -> None:
        """In the shadow it is remembered what would have been sent, as far as that is known."""
        if not counting and not treatment.shadow:
            self._selector.passed(request, treatment.policy, owner)

    def answered(self, rewritten: Rewritten, used: Usage | None) -> None:
        """A request's answer is over, or broke off: its conversation holds what it went out with in the end, and is
        billed for all that was asked. ``used`` is what the provider counted, if it said so."""
        filtered, way = rewritten.filtered, rewritten.way
        if filtered is not None:
            sent = frozenset(filtered.sent(len(rewritten.request.tools) if rewritten.request else 0))
            self._selector.answered(filtered, [sent, *(way.rounds if way else ())], used)

    def remember(self, owner: str, answer_id: str, request: Request, called: Collection[str]) -> None:
        """What a conversation was about that the provider keeps, under the id of its last answer."""
        self._histories.remember(owner, answer_id, request, called)

    def _since(self, started: float) -> float:
        return (self._clock.monotonic() - started) * 1000


def mended(codec: Codec, request: Request) -> bytes | None:
    """The body of a request that passes with all its tools, where its history would have it refused (P21).

    None for what may go as it came, and where that cannot be mended.
    """
    try:
        body = codec.rewrite(request, range(len(request.tools)))
    except Exception:
        LOGGER.exception("Mending a request failed")
        return None
    return None if body == request.body else body


def identified(request: Request, conversation: str = "") -> Request:
    """With an id for what is decided about it, which the answer's headers and the events show."""
    return replace(request, turn=replace(request.turn, id=uuid4().hex), conversation=conversation)
