"""Anthropic tools that are not in the prompt until the provider's own search has found them (P21).

What is deferred costs nothing before, and the prompt begins with the same bytes whatever is found: a `tool_reference`
in the history stands for the definition. The API refuses a deferred tool that has a cache breakpoint, requests without
any tool that is not deferred, and references to tools that are not there.
https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-search-tool, read 2026-11-22
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from fnmatch import fnmatchcase

from pegboard.gateways.llm.codec import Request
from pegboard.gateways.llm.codecs.parts import breakpoint_edits
from pegboard.gateways.llm.codecs.references import dangling_edits
from pegboard.gateways.llm.obedience import moved_breakpoints
from pegboard.gateways.llm.spans import Edit, cut, cut_members, members, splice

SEARCH = "tool_search_tool"
"""How the names and the types of the provider's search tools begin."""
TYPES = {
    "tool_search_tool_bm25": "tool_search_tool_bm25_20251119",
    "tool_search_tool_regex": "tool_search_tool_regex_20251119",
}
"""By the name that each has to go by."""
FLAG = "defer_loading"
ESCAPE = b"\\u"
"""How any letter of a key may be written."""
USUAL = "tool_search_tool_bm25"
WITHOUT = (
    *("*claude-instant*", "*claude-2*", "*claude-3*"),
    *("*claude-opus-4", "*claude-opus-4[-@]20*", "*claude-opus-4-[01]*"),
    *("*claude-sonnet-4", "*claude-sonnet-4[-@]20*", "*claude-sonnet-4-0*"),
)
"""Models that came before the search tool."""


def is_search(name: str) -> bool:
    """Whether a tool of this name, or type, is one of the provider's that search for others."""
    return name.startswith(SEARCH)


def deferred(request: Request, loaded: Collection[int], kept: Collection[int]) -> bytes | None:
    """The body with the kept tools, those deferred that are not loaded, and one that searches for them.

    None where the model has none, or another tool has its name.
    """
    adding = _missing(request)
    if not adding and not any(tool.searches for tool in request.tools):
        adding = [USUAL]
    if not TYPES.keys() - request.names >= {*adding} or is_without(request.model):
        return None
    staying, in_prompt = frozenset(kept), frozenset(loaded)
    return splice(
        request.body,
        [
            *cut([tool.span for tool in request.tools], [place in staying for place in range(len(request.tools))]),
            *_adding(request, adding, _breakpoint_before(request, in_prompt)),
            *(edit for place in staying - in_prompt for edit in _deferring(request, place)),
            *breakpoint_edits(request, moved_breakpoints(request, in_prompt)),
            *dangling_edits(request),
        ],
    )


def search_edits(request: Request, kept: Collection[int]) -> list[Edit]:
    """The edits that put back the search tools that the history used: the API wants them there as long as it holds what
    they found, whether anything is left to be found or not."""
    return _adding(request, _missing(request)) if kept else []


def is_without(model: str) -> bool:
    """Whether a model is known to have no search tool."""
    return any(fnmatchcase(model.lower(), pattern) for pattern in WITHOUT)


def _missing(request: Request) -> list[str]:
    return sorted(request.searched & TYPES.keys() - request.names)


def _adding(request: Request, names: Sequence[str], breakpoint_: bytes | None = None) -> list[Edit]:
    """Before all others: whatever else comes and goes, they stay where they are."""
    mark = b',"cache_control":' + breakpoint_ if breakpoint_ else b""
    written = [b'{"type":"%b","name":"%b"' % (TYPES[name].encode(), name.encode()) for name in names]
    if not written:
        return []
    start = request.tools[0].span.start
    return [Edit(start, start, b"".join(each + b"}," for each in [*written[:-1], written[-1] + mark]))]


def _breakpoint_before(request: Request, loaded: Collection[int]) -> bytes | None:
    """The cache breakpoint of the tools before the first loaded one, which has none before it that could take it."""
    first = min(loaded, default=len(request.tools))
    return next((tool.breakpoint for tool in request.tools[:first] if tool.breakpoint), None)


def _deferring(request: Request, place: int) -> Iterator[Edit]:
    """The edits that defer a tool, in its own bytes, and take its cache breakpoint from it."""
    tool = request.tools[place]
    may_have = tool.breakpoint is not None or any(each in tool.definition for each in (FLAG.encode(), ESCAPE))
    fields = members(request.text, tool.span) if may_have else {}
    if tool.breakpoint is not None:
        yield from cut_members(fields, ["cache_control"])
    if FLAG in fields:
        yield Edit(*fields[FLAG].value, b"true")
    else:
        yield Edit(tool.span.end - 1, tool.span.end - 1, b',"%b":true' % FLAG.encode())
