"""A request that continues an answer which the provider keeps: under another id than the client was told, if need be,
and with the results of calls that the client does not know."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from pegboard.gateways.llm.formats.json_reader import object_of, read
from pegboard.gateways.llm.formats.protocol import Codec, LlmRequest, OfferedTool, OpenCall
from pegboard.gateways.llm.formats.registry import as_served, history_of
from pegboard.gateways.llm.tool_search import tool as search
from pegboard.lone_surrogates import readable
from pegboard.model import Tool, ToolId

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


def continuing(codec: Codec, request: LlmRequest, path: str, answer: str, calls: Sequence[OpenCall]) -> LlmRequest:
    """The request, whose `previous_response_id` is now this answer, with the results of its open ``calls``.

    What the client said, and so what is relevant, stays the same. Raises RequestNotUnderstood and CatalogError.
    """
    history = history_of(codec)
    if history is None or (answer == request.continues and not calls):
        return request
    results = [(call, _result(codec, request, call)) for call in calls]
    changed = codec.parse(history.continuing(request, answer, results), as_served(path))
    return replace(
        changed,
        turn=request.turn,
        unnamed=request.unnamed,
        referenced=request.referenced,
        around=request.around,
        mended=True,
        found=tuple(dict.fromkeys(name for call in calls for name in call.found or ())),
    )


def mended_body(request: LlmRequest | None) -> bytes | None:
    """The body of a request that passes as it is, if it was changed to continue an answer."""
    if request is None or not request.mended:
        return None
    before, behind = request.around
    return before + request.body + behind


def _result(codec: Codec, request: LlmRequest, call: OpenCall) -> str:
    if call.found is None:
        return search.not_answered()
    tools = [_found(codec, tool) for name in call.found for tool in request.tools if tool.name == name]
    return search.found(tool for tool in tools if tool is not None)


def _found(codec: Codec, offered: OfferedTool) -> Tool | None:
    tool = codec.tool(object_of(read(readable(offered.definition))))
    return None if tool is None else replace(tool, id=ToolId("", offered.name))
