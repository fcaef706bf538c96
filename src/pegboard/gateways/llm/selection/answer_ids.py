"""A request that continues an answer which the provider keeps under another id than the client was told."""

from __future__ import annotations

import re
from dataclasses import replace

from pegboard.gateways.llm.formats.edits import with_value, written
from pegboard.gateways.llm.formats.protocol import Codec, LlmRequest

ANSWER = re.compile(r"/responses/(?P<id>[^/]+)(/input_items|/cancel)?/?$")
"""The paths that name an answer which the provider keeps."""


def kept_answer(path: str) -> str:
    """The id of the answer that a path names; empty if it names none."""
    found = ANSWER.search(path)
    return found["id"] if found and found["id"] not in ("input_tokens", "compact") else ""


def renamed_path(path: str, asked: str, last: str) -> str:
    """The path with the ``last`` id in place of the one ``asked`` for."""
    before, _, behind = path.rpartition(f"/{asked}")
    return f"{before}/{last}{behind}"


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
