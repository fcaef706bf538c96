"""A request without deferral that continues a history in which the gateway searched: it is sent as that demands."""

from __future__ import annotations

from dataclasses import replace

from pegboard.gateways.llm.formats.protocol import Codec
from pegboard.gateways.llm.formats.registry import counts
from pegboard.gateways.llm.selection.filter import RewrittenRequest
from pegboard.gateways.llm.tool_search.reference_round_trip import chained_round_trip


def chained(codec: Codec, rewritten: RewrittenRequest, path: str) -> RewrittenRequest:
    """The request as it can continue that history, whatever else was decided about it; any other one unchanged.

    Tools were picked, left alone, or could not be selected: those that the history has loaded are there already, and
    it demands the search.
    """
    request, filtered = rewritten.request, rewritten.filtered
    if request is None or request.kept is None or (filtered is not None and filtered.deferral is not None):
        return rewritten
    round_trip = chained_round_trip(codec, request, filtered)
    if round_trip is None:
        return rewritten
    before, behind = request.around
    body = before + round_trip.body() + behind
    return replace(rewritten, body=body, round_trip=None if counts(path) else round_trip)
