"""Results around the selection of tools: shaped before it, and `read_result` offered after it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace

from pegboard.activity_entries import conversation_mark
from pegboard.errors import PegboardError
from pegboard.events import Event, ResultRead, ResultShaped
from pegboard.gateways.llm.call_tool.exchange import CallToolRoundTrip
from pegboard.gateways.llm.formats.protocol import Codec, LlmRequest
from pegboard.gateways.llm.formats.registry import as_served, counts, results_of, tool_search_of
from pegboard.gateways.llm.proxy.content_encoding import decoded
from pegboard.gateways.llm.selection.filter import LARGE, RewrittenRequest, TreatmentOf
from pegboard.gateways.llm.selection.policy import mark_protected
from pegboard.gateways.llm.selection.policy_rules import Treatment
from pegboard.gateways.llm.tool_results.request_results import RequestResults, ShapedRequest
from pegboard.gateways.llm.tool_results.result_reads import ReadRoundTrip
from pegboard.gateways.llm.tool_search.reference_round_trip import ReferenceRoundTrip
from pegboard.gateways.llm.tool_search.round_trip import ToolSearchRoundTrip
from pegboard.programs.program_run import finished
from pegboard.protocols import Clock, EventSink

LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """Where a request comes from and goes to. ``path`` and ``query`` are those of its URL, ``client`` are the headers
    that identify agents, ``key`` and ``conversation`` are for the events."""

    path: str
    query: str = ""
    client: Mapping[str, str]
    key: str = ""
    conversation: str = ""


def readable(treatment_of: TreatmentOf, shaped: ShapedRequest) -> TreatmentOf:
    """The treatment of a request that offers `read_result`: a list of allowed tools would not have it."""
    if shaped.reads is None:
        return treatment_of

    def of(model: str) -> Treatment:
        given = treatment_of(model)
        return replace(given, policy=replace(given.policy, allowed_tools=False))

    return of


class ResultStep:
    """Shapes results where the policy or the request wants it. Whatever fails, the request goes on as it was."""

    def __init__(self, results: RequestResults, events: EventSink, clock: Clock, *, most: int) -> None:
        self._results = results
        self._events = events
        self._clock = clock
        self._most = most
        self._read_turn = asyncio.Semaphore(1)

    async def shaped(
        self, codec: Codec, body: bytes, coding: str, treatment_of: TreatmentOf, sender: Sender
    ) -> ShapedRequest | None:
        """The request with its results shaped; None if it stays as it is. ``coding`` is its Content-Encoding.

        Raises what ``treatment_of`` raises.
        """
        if results_of(codec) is None:
            return None
        try:
            async with self._read_turn if len(body) > LARGE else nullcontext():
                request = await asyncio.to_thread(self._parsed, codec, body, coding, sender.path)
        except PegboardError:
            return None  # the selection says why
        treatment = treatment_of(request.model)
        if treatment.results == "whole" or treatment.shadow or request.around != (b"", b""):
            return None
        try:
            if len(request.body) > LARGE:
                found = await asyncio.to_thread(self._shape, codec, request, treatment, sender)
            else:
                found = self._shape(codec, request, treatment, sender)
        except Exception:
            LOGGER.exception("Shaping results failed")
            return None
        if found is not None and not counts(sender.path):
            self._tell(found, sender)
        return found

    def offered(self, codec: Codec, rewritten: RewrittenRequest, shaped: ShapedRequest, path: str) -> RewrittenRequest:
        """The request with `read_result`, if one of its results can be read on."""
        search = tool_search_of(codec)
        body = shaped.body if rewritten.body is None else rewritten.body
        if shaped.reads is None or search is None:
            return replace(rewritten, body=body)
        trip = rewritten.round_trip
        if isinstance(trip, CallToolRoundTrip):
            trip.format.reads = shaped.reads
        elif isinstance(trip, ToolSearchRoundTrip | ReferenceRoundTrip):
            trip.reads = shaped.reads
        elif not counts(path):
            trip = ReadRoundTrip(format=search, rewritten=body, reads=shaped.reads)
        body = search.extended(body, shaped.reads.definitions) if trip is None else trip.body()
        return replace(rewritten, body=body, round_trip=trip)

    def _parsed(self, codec: Codec, body: bytes, coding: str, path: str) -> LlmRequest:
        return codec.parse(decoded(body, coding, self._most), as_served(path))

    def _shape(self, codec: Codec, request: LlmRequest, treatment: Treatment, sender: Sender) -> ShapedRequest | None:
        marked = mark_protected(request, sender.client, treatment.policy)
        return self._results.shaped(codec, marked, treatment.results, sender.query)

    def _tell(self, found: ShapedRequest, sender: Sender) -> None:
        who = {"key": sender.key, "conversation": conversation_mark(sender.conversation)}
        for tool, each in found.told:
            self._emit(
                ResultShaped(
                    at=self._clock.time(),
                    tool=tool,
                    server="",
                    rules=each.rules,
                    tokens_before=each.before,
                    tokens_after=each.after,
                    kept=each.kept,
                    door="llm",
                    **who,
                )
            )
        if found.reads is not None and found.reads.programs is not None:
            found.reads.programs.tell = lambda run, tokens: self._emit(
                finished(run, at=self._clock.time(), tokens=tokens, **who)
            )
        if found.reads is not None:
            found.reads.tell = lambda handle, tokens: self._emit(
                ResultRead(
                    at=self._clock.time(),
                    tool=found.tools.get(handle, ""),
                    server="",
                    tokens=tokens,
                    door="llm",
                    **who,
                )
            )

    def _emit(self, event: Event) -> None:
        self._events.emit(event)
