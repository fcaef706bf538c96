"""References to deferred tools in Messages: a search in the history, with a result of `tool_reference` blocks.

The API expands a `tool_reference` in a `tool_result` to the definition, where it stands: what precedes it stays
cached. https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-search-tool (custom tool search), read
2026-11-23
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from pegboard.gateways.llm.formats.anthropic.defer_loading import dangling_edits, deferring_edits
from pegboard.gateways.llm.formats.edits import appended, schema, written
from pegboard.gateways.llm.formats.insertion import begins, member, objects, spot_in, value
from pegboard.gateways.llm.formats.json_reader import object_of, objects_of, read, text_of, value_of
from pegboard.gateways.llm.formats.json_spans import Edit, Span, cut, cut_members, elements, splice
from pegboard.gateways.llm.formats.openai_chat.call_tool import TEXTS, text_part
from pegboard.gateways.llm.formats.protocol import LlmRequest
from pegboard.gateways.llm.formats.tool_references import DeferredTools, Found, ReferenceExchange
from pegboard.gateways.llm.formats.tool_search import Document, SearchTool

CLEARS_RESULTS = b'"clear_tool_uses'
"""Occurs in requests that clear old tool results, and references with them."""
THOUGHTS = ("thinking", "redacted_thinking")
QUERY = "what this needs"
"""What the searches in the history look for: the results have the names."""
ID = "toolu_pegboard_{}"
"""The id of a search in the history, by the number of its message."""


class MessagesDeferral:
    def closed(self, request: LlmRequest) -> str:
        if any(tool.deferred for tool in request.tools):
            return "it already has deferred tools"
        if any(tool.searches for tool in request.tools):
            return "it has a search of its own"
        return "it clears results of tools" if CLEARS_RESULTS in request.text else ""

    def may_push(self, request: LlmRequest) -> bool:
        """Not with a budget for thinking: then an answer has to begin with a thinking block, which a search that the
        model did not make has not. https://platform.claude.com/docs/en/build-with-claude/adaptive-thinking"""
        return object_of(value_of(request.text, request.fields, "thinking")).get("type") != "enabled"

    def deferred(self, request: LlmRequest, tools: DeferredTools) -> bytes:
        edits = deferring_edits(request, tools.loaded, tools.kept, written(entry(tools)))
        return splice(request.body, [*edits, *dangling_edits(request), *_reference_edits(request, tools)])

    def call_name(self, search: SearchTool) -> str:
        return search.name

    def continued(self, body: bytes, request: LlmRequest, exchanges: Sequence[ReferenceExchange]) -> bytes:
        return appended(body, "messages", [said for each in exchanges for said in _said(each)])

    def brought(self, body: bytes) -> frozenset[str]:
        """References are names: the definitions stay in the request's array."""
        return frozenset()


def entry(tools: DeferredTools) -> Document:
    """The search as an entry of the request's array of tools."""
    return {"name": tools.search.name, "description": tools.search.description, "input_schema": schema()}


def _said(exchange: ReferenceExchange) -> list[Document]:
    """The messages for an exchange. Signed thinking blocks stay unchanged; blank texts are dropped, as they must not be
    sent."""
    blocks = objects_of(exchange.answer.get("content") or [])
    said = [block for block in blocks if block.get("type") != "text" or text_of(block["text"]).strip()]
    results = [_result(call.id, found) for call, found in exchange.results]
    return [{"role": "assistant", "content": said}, {"role": "user", "content": results}]


def _result(id_: str, found: Found) -> Document:
    content: object = found
    if not isinstance(found, str):
        content = [{"type": "tool_reference", "tool_name": name} for name in found]
    return {"type": "tool_result", "tool_use_id": id_, "content": content}


def _reference_edits(request: LlmRequest, tools: DeferredTools) -> Iterator[Edit]:
    """The edits that refer to tools: after the user's messages to those pushed, and before calls to those called that
    nothing referred to before: a search had found them."""
    deferred = {request.tools[place].name for place in tools.kept - tools.loaded}
    seen: set[str] = set()
    messages = list(objects(request, member(request, request.fields, "messages")))
    roles = [value(request, fields, "role") for _, fields in messages]
    spoken, waiting = 0, list[str]()
    for number, (span, fields) in enumerate(messages):
        content = member(request, fields, "content")
        if roles[number] == "user":
            if spot_in(request, content, text_part, TEXTS, "tool_result") is not None:
                pushed = (request.tools[place].name for place in tools.pushed.get(spoken, ()))
                waiting += [name for name in pushed if name in deferred]
                spoken += 1
            seen |= set(_referred(request, content))
            new = [name for name in dict.fromkeys(waiting) if name not in seen]
            if new and roles[number + 1 : number + 2] != ["user"]:  # results of calls may come in several messages
                mark, edits = _taken(request, content) if number == len(messages) - 1 else (None, [])
                yield from edits
                yield Edit(span.end, span.end, b"," + _searched(tools, f"{number}p", new, mark=mark))
                seen.update(new)
                waiting = []
        elif roles[number] == "assistant" and content is not None and begins(request, content, b"["):
            spans = elements(request.text, content)
            blocks = [object_of(read(request.text[slice(*each)])) for each in spans]
            called = (text_of(block.get("name")) for block in blocks if block.get("type") == "tool_use")
            new = [name for name in dict.fromkeys(called) if name in deferred - seen]
            if new:
                yield from _split(request, span, spans, split_at(blocks), tools, f"{number}c", new)
                seen.update(new)
            seen |= set(_referred(request, content))


def split_at(blocks: Sequence[Mapping[str, Any]]) -> int:
    """Where an assistant's message is split into what came before its search and what came after: before the last
    thoughts, if there are two groups of them, else before its calls.

    Then a message that began with thoughts still does. What a server-side tool said stays in one message.
    """
    first = next(place for place, block in enumerate(blocks) if block.get("type") == "tool_use")
    head = [text_of(block.get("type")) for block in blocks[:first]]
    if any(kind not in (*THOUGHTS, "text") for kind in head) or any("caller" in block for block in blocks):
        return 0
    before = ["", *head]
    groups = [place for place, kind in enumerate(head) if kind in THOUGHTS and before[place] not in THOUGHTS]
    return groups[-1] if len(groups) > 1 else first


def _split(
    request: LlmRequest,
    message: Span,
    blocks: Sequence[Span],
    at: int,
    tools: DeferredTools,
    id_: str,
    names: Sequence[str],
) -> Iterator[Edit]:
    """The edits that move the first blocks of a message before a search for these names."""
    moved = b"".join(request.body[slice(*each)] + b"," for each in blocks[:at])
    yield Edit(message.start, message.start, _searched(tools, id_, names, moved) + b",")
    yield from cut(blocks, [place >= at for place in range(len(blocks))])


def _taken(request: LlmRequest, content: Span | None) -> tuple[Any, list[Edit]]:
    """The breakpoint at the end of a content, and the edits that remove it: it goes behind the references, so that the
    next request reads them."""
    blocks = list(objects(request, content)) if content is not None and begins(request, content, b"[") else []
    fields = blocks[-1][1] if blocks else {}
    mark = value(request, fields, "cache_control")
    return mark, cut_members(fields, ["cache_control"]) if mark else []


def _searched(tools: DeferredTools, id_: str, names: Sequence[str], before: bytes = b"", mark: object = None) -> bytes:
    """Two messages: a search, after these blocks, and its result, which carries the breakpoint ``mark``."""
    id_ = ID.format(id_)
    use = {"type": "tool_use", "id": id_, "name": tools.search.name, "input": {"query": QUERY}}
    found = _result(id_, tuple(names)) | ({"cache_control": mark} if mark else {})
    result = {"role": "user", "content": [found]}
    return b'{"role":"assistant","content":[' + before + written(use) + b"]}," + written(result)


def _referred(request: LlmRequest, content: Span | None) -> Collection[str]:
    """The tools that search results of the client's own history refer to."""
    if not request.referenced or content is None or not begins(request, content, b"["):
        return ()
    inner = [block.get("content") for block in objects_of(read(request.text[slice(*content)]))]
    lists = [each.get("tool_references") if isinstance(each, dict) else each for each in inner]
    entries = chain.from_iterable(objects_of(each) for each in lists if isinstance(each, list))
    return [text_of(each.get("tool_name")) for each in entries if each.get("type") == "tool_reference"]
