"""A request that continues an answer which the provider keeps under another id than the client was told."""

from __future__ import annotations

from dataclasses import replace

from pegboard.gateways.llm.formats.edits import with_value, written
from pegboard.gateways.llm.formats.protocol import Codec, LlmRequest


def continuing(codec: Codec, request: LlmRequest, path: str, answer: str) -> LlmRequest:
    """The request, whose `previous_response_id` is now this answer. Raises RequestNotUnderstood."""
    body = with_value(request.body, "previous_response_id", written(answer))
    return replace(codec.parse(body, path), around=request.around, renamed=True)


def renamed_body(request: LlmRequest | None) -> bytes | None:
    """The body of a request that passes as it is, if its id was changed."""
    if request is None or not request.renamed:
        return None
    before, behind = request.around
    return before + request.body + behind
