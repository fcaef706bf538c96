"""Anthropic tools that are not in the prompt until a search finds them (P21).

A deferred tool costs nothing until then, and the prompt begins with the same bytes whatever is found: a
`tool_reference` in the history stands for the definition. The API rejects a deferred tool with a cache breakpoint,
requests without any tool that is not deferred, and references to missing tools. A search leaves a `tool_reference` for
each tool it found, and every later request repeats it; if the caller has removed that tool since, all these requests
would fail. https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-search-tool, read 2026-11-22
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from pegboard.gateways.llm.formats.json_reader import object_of, read
from pegboard.gateways.llm.formats.json_spans import Edit, Span, cut, cut_members, elements, members
from pegboard.gateways.llm.formats.protocol import LlmRequest
from pegboard.gateways.llm.formats.tool_arrays import (
    breakpoint_edits,
)
from pegboard.gateways.llm.formats.tool_choice import moved_breakpoints

SEARCH = "tool_search_tool"
"""Prefix of the names and types of the provider's search tools."""
TYPES = {
    "tool_search_tool_bm25": "tool_search_tool_bm25_20251119",
    "tool_search_tool_regex": "tool_search_tool_regex_20251119",
}
"""Types by the required name."""
FLAG = "defer_loading"
ESCAPE = b"\\u"
"""The beginning of an escape, in which a key may be written."""


def is_search(name: str) -> bool:
    """Whether a tool with this name or type is one of the provider's search tools."""
    return name.startswith(SEARCH)


def deferring_edits(
    request: LlmRequest, loaded: Collection[int], kept: Collection[int], search: bytes
) -> Iterator[Edit]:
    """The edits that leave the kept tools, those not loaded being deferred, with ``search`` before all others."""
    staying, in_prompt = frozenset(kept), frozenset(loaded)
    yield from cut([tool.span for tool in request.tools], [place in staying for place in range(len(request.tools))])
    yield from _adding(request, [*_written(_missing(request)), search], _breakpoint_before(request, in_prompt))
    yield from (edit for place in staying - in_prompt for edit in _deferring(request, place))
    yield from breakpoint_edits(request, moved_breakpoints(request, in_prompt))


def search_edits(request: LlmRequest, kept: Collection[int]) -> list[Edit]:
    """The edits that restore search tools that the history used: the API requires them while the history has their
    results, even if nothing is left to find."""
    return _adding(request, _written(_missing(request))) if kept else []


def _missing(request: LlmRequest) -> list[str]:
    return sorted(request.searched & TYPES.keys() - request.names)


def _written(names: Sequence[str]) -> list[bytes]:
    return [b'{"type":"%b","name":"%b"}' % (TYPES[name].encode(), name.encode()) for name in names]


def _adding(request: LlmRequest, entries: Sequence[bytes], breakpoint_: bytes | None = None) -> list[Edit]:
    """Inserts these tools before all others: they stay in place whatever else changes."""
    if not entries:
        return []
    last = entries[-1][:-1] + b',"cache_control":' + breakpoint_ + b"}" if breakpoint_ else entries[-1]
    start = request.tools[0].span.start
    return [Edit(start, start, b"".join(each + b"," for each in [*entries[:-1], last]))]


def _breakpoint_before(request: LlmRequest, loaded: Collection[int]) -> bytes | None:
    """The cache breakpoint before the first loaded tool, which no loaded tool before it can carry."""
    first = min(loaded, default=len(request.tools))
    return next((tool.breakpoint for tool in request.tools[:first] if tool.breakpoint), None)


def _deferring(request: LlmRequest, place: int) -> Iterator[Edit]:
    """The edits that defer a tool and remove its cache breakpoint."""
    tool = request.tools[place]
    may_have = tool.breakpoint is not None or any(each in tool.definition for each in (FLAG.encode(), ESCAPE))
    fields = members(request.text, tool.span) if may_have else {}
    if tool.breakpoint is not None:
        yield from cut_members(fields, ["cache_control"])
    if FLAG in fields:
        yield Edit(*fields[FLAG].value, b"true")
    else:
        yield Edit(tool.span.end - 1, tool.span.end - 1, b',"%b":true' % FLAG.encode())


def dangling_edits(request: LlmRequest) -> list[Edit]:
    """The edits that remove references to missing tools from the messages; the rest of a result stays byte for byte."""
    gone = request.referenced - request.names
    if not gone:
        return []
    return [edit for found in _lists(request) for edit in _without(request, found, gone)]


def _lists(request: LlmRequest) -> Iterator[Span]:
    """The arrays in which search results refer to tools, of server-side and client-side searches."""
    text = request.text
    for message in elements(text, request.fields["messages"].value):
        content = _member(text, message, "content")
        for block in elements(text, content) if content and _is(text, content, b"[") else ():
            found = _member(text, block, "content") if _is(text, block, b"{") else None
            if found and _is(text, found, b"{"):
                found = _member(text, found, "tool_references")
            if found and _is(text, found, b"["):
                yield found


def _without(request: LlmRequest, array: Span, gone: frozenset[str]) -> list[Edit]:
    entries = elements(request.text, array)
    return cut(entries, [_named(request.text, entry) not in gone for entry in entries])


def _named(text: bytes, entry: Span) -> str | None:
    """The tool that an entry refers to; None if it is something else."""
    said = object_of(read(text[slice(*entry)]))
    return said.get("tool_name") if said.get("type") == "tool_reference" else None


def _member(text: bytes, within: Span, name: str) -> Span | None:
    found = members(text, within).get(name)
    return None if found is None else found.value


def _is(text: bytes, span: Span, begins: bytes) -> bool:
    return text[span.start : span.start + 1] == begins
