"""The results of a request in fewer tokens: which of them, in which shape, and when cutting one pays.

Everything is a function of the request up to the result, the tool's name and the settings. So a result is sent as the
same bytes in every later request of its conversation, from any replica, and prompt caches hold.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from pegboard.gateways.llm.formats.edits import written
from pegboard.gateways.llm.formats.json_spans import Edit, splice
from pegboard.gateways.llm.formats.protocol import Codec, LlmRequest
from pegboard.gateways.llm.formats.registry import results_of, tool_search_of
from pegboard.gateways.llm.formats.tool_results import ToolResult, ToolResultCodec, result_edits
from pegboard.gateways.llm.tool_results import result_programs
from pegboard.gateways.llm.tool_results.result_programs import ResultPrograms, program_pays
from pegboard.gateways.llm.tool_results.result_reads import ABOUT, SCHEMA, ResultReads
from pegboard.programs.runner import ProgramRunner
from pegboard.protocols import TokenCounter
from pegboard.results.shape import READ, ShapedResult, ShapePolicy, shape, texts_of
from pegboard.settings.result_settings import FILE_READS, ResultForm, ResultSettings
from pegboard.wire_formats import wire_tool

READ_PRICE = 0.1
"""Price of a token read from a prompt cache, in tokens that are not: what most providers ask."""
WRITE_PRICE = 1.25
"""Price of a token written to a prompt cache: what the dearest provider asks."""
READ_CALL = 500
"""Price of a call of `read_result` and the part that it reads, in input tokens, besides reading the prompt again."""
READINGS = 2
"""How many readings on a cut has to be worth."""
UNNOTICED = 130
"""How many times its own length the tools and instructions have before `read_result` is offered from the beginning.
What is left of one percent is for providers that count cached tokens in steps: a tool more moves a prompt past one."""
CHARACTERS = 4
"""Of a token, about."""
SMALLEST = 5_500
"""Tokens of a prompt, about, below which results stay whole: providers cache prompts from 1,024 to 4,096 tokens on, and
a prompt must not fall below that."""
BREAKPOINT = re.compile(rb'"cache_control"\s*:\s*\{[^{}]*\}')
"""What clients move from message to message, without the comma before it."""
MOST_REMEMBERED = 64_000_000
"""Characters of shapes that are kept, for the next request of their conversations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapedRequest:
    """``body`` is the request with its results shaped. ``told`` are the new ones that became shorter, by tool;
    ``reads`` answers `read_result`, if the request offers it; ``tools`` are those of the cut results, by handle."""

    body: bytes
    reads: ResultReads | None
    tools: Mapping[str, str]
    told: Sequence[tuple[str, ShapedResult]]


class RequestResults:
    """Shapes the results of requests, unless the prompt would have fewer than ``smallest`` tokens. With ``programs``,
    `run_program` may be offered beside `read_result`. Thread-safe, but for a shape that is made twice."""

    def __init__(
        self,
        settings: ResultSettings,
        counter: TokenCounter,
        *,
        smallest: int = SMALLEST,
        programs: ProgramRunner | None = None,
    ) -> None:
        self._settings = settings
        self._smallest = smallest
        self._programs = programs
        self._policy = ShapePolicy(threshold=settings.threshold, budget=settings.budget, seconds=0.0)
        self._counter = counter
        self._shapes: OrderedDict[bytes, tuple[int, ShapedResult]] = OrderedDict()
        self._remembered = 0
        self._lock = threading.Lock()

    def shaped(self, codec: Codec, request: LlmRequest, form: ResultForm, url_query: str = "") -> ShapedRequest | None:
        """The request with its results in this form; None if the format has none, or the form is `whole`.

        Results of protected tools stay whole, as those of tools that read files do, unless a pattern of the settings
        names them; so do those of tools that the request does not name.
        """
        format_ = results_of(codec)
        if format_ is None or form == "whole":
            return None
        definition = written(wire_tool(format_.definitions, READ, ABOUT, SCHEMA))
        may_cut = form == "handle" or "handle" in self._settings.tools.values()
        may_cut = may_cut and not self.cannot_read(codec, request, url_query)
        front = _beginning(request)
        offered = may_cut and front >= UNNOTICED * len(definition)
        running = self._running(format_, request) if may_cut else b""
        runs = offered and self._runs(running, pays=front >= UNNOTICED * (len(definition) + len(running)))
        own = {tool.name for tool in request.tools if tool.protected}
        edits: list[Edit] = []
        kept: dict[str, Sequence[str]] = {}
        tools: dict[str, str] = {}
        told: list[tuple[str, ShapedResult]] = []
        less = 0
        for result in format_.results(request):
            chosen = self.form_of(result.tool, form, protected=result.tool in own)
            found = self._shape(result, chosen, handles=chosen == "handle" and may_cut)
            before = max(0, (front + _length(request, result)) // CHARACTERS - less)
            if found.kept and not pays(found, before, offered=offered):
                found = self._shape(result, chosen, handles=False)
            if not found.rules or before + found.after < self._smallest:
                continue
            if found.kept:
                if not offered:
                    runs = self._runs(running, pays=program_pays(found, before, self._policy.budget))
                offered, tools[found.handle] = True, result.tool
                kept[found.handle] = [each.text for each in result.texts]
            less += max(0, found.before - found.after)
            edits += result_edits(result, texts_of(found.result))
            if result.new:
                told.append((result.tool, found))
        reads = None
        if offered:
            reads = ResultReads(kept=kept, definition=definition, policy=self._policy, counter=self._counter)
        if reads is not None and runs and self._programs is not None:
            reads.programs = ResultPrograms(kept=kept, definition=running, runner=self._programs, counter=self._counter)
        return ShapedRequest(body=splice(request.body, edits), reads=reads, tools=tools, told=told)

    def _running(self, format_: ToolResultCodec, request: LlmRequest) -> bytes:
        """The definition of `run_program`; empty where programs are switched off, or a tool has that name."""
        if self._programs is None or result_programs.RUN in request.names:
            return b""
        return written(
            wire_tool(format_.definitions, result_programs.RUN, result_programs.ABOUT, result_programs.SCHEMA)
        )

    def _runs(self, definition: bytes, *, pays: bool) -> bool:
        """Whether `run_program` is offered when `read_result` first is, by the mode of the settings. It does not come
        later, as a list of tools that changes empties the cache."""
        mode = "off" if self._programs is None else self._programs.settings.mode
        return bool(definition) and (mode == "on" or pays)

    def form_of(self, tool: str, form: ResultForm, *, protected: bool) -> ResultForm:
        """The form of a tool's results in a request of this form."""
        if not tool:
            return "whole"
        names = _full_names(tool)
        for pattern, chosen in self._settings.tools.items():
            if any(fnmatchcase(name, pattern) for name in names):
                return chosen if form == "handle" or chosen != "handle" else form
        reads = any(fnmatchcase(name, pattern) for name in names for pattern in FILE_READS)
        return "whole" if protected or reads else form

    def cannot_read(self, codec: Codec, request: LlmRequest, url_query: str) -> str:
        """Why calls of `read_result` cannot be answered in a request's conversation; empty if they can."""
        search = tool_search_of(codec)
        if search is None:
            return "this format has no calls"
        if request.stored or request.continues:
            return "the provider keeps its history"
        if READ in request.names or not request.tools:
            return "it has a tool of that name, or none at all"
        return search.closed(request, url_query)

    def _shape(self, result: ToolResult, form: ResultForm, *, handles: bool) -> ShapedResult:
        content = {"content": [{"type": "text", "text": each.text} for each in result.texts]}
        if form == "whole":
            return ShapedResult(result=content, before=0, after=0)
        hashed = hashlib.sha256(b"handle" if handles else b"shaped")
        asked = result.asked if handles else ""
        for text in (*(each.text for each in result.texts), asked):
            hashed.update(b"\0" + text.encode("utf-8", "surrogatepass"))
        key = hashed.digest()
        with self._lock:
            if key in self._shapes:
                self._shapes.move_to_end(key)
                return self._shapes[key][1]
        made = shape(content, self._policy, self._counter, handles=handles, asked=asked)
        size = sum(map(len, texts_of(made.result))) if made.rules else 0
        made = made if made.rules else ShapedResult(result={}, before=made.before, after=made.after)
        with self._lock:
            if key not in self._shapes:  # or another thread was faster
                self._shapes[key] = (size, made)
                self._remembered += size
            while self._remembered > MOST_REMEMBERED or len(self._shapes) > MOST_REMEMBERED // 10_000:
                self._remembered -= self._shapes.popitem(last=False)[1][0]
        return made


def pays(found: ShapedResult, before: int, *, offered: bool) -> bool:
    """Whether a result should be cut that has ``before`` tokens of prompt in front of it: what is not written to the
    cache has to be worth some readings on, and, if `read_result` is not ``offered`` yet, the cache that a tool more
    in the list empties.

    >>> cut = ShapedResult(result={}, before=20_000, after=6_000, handle="r1", uncut=20_000)
    >>> pays(cut, 50_000, offered=True), pays(cut, 50_000, offered=False)
    (True, False)
    """
    needed = READINGS * (READ_CALL + READ_PRICE * before)
    if not offered:
        needed += (WRITE_PRICE - READ_PRICE) * before
    return WRITE_PRICE * (found.uncut - found.after) >= needed


def _beginning(request: LlmRequest) -> int:
    """Characters of what every request of the conversation begins with: tools and instructions."""
    said = sum(len(tool.definition) for tool in request.tools)
    for message in request.turn.messages:
        if message.role != "system":
            break
        said += len(message.text)
    return said


def _length(request: LlmRequest, result: ToolResult) -> int:
    """Bytes of the conversation before a result, without cache breakpoints."""
    spans = (each.value for each in request.fields.values())
    begin = next(span.start for span in spans if span.start <= result.start < span.end)
    if request.text.find(b'"cache_control"', begin, result.start) < 0:
        return result.start - begin
    return result.start - begin - _moved(request.text, begin, result.start)


def _moved(text: bytes, begin: int, end: int) -> int:
    """Bytes of the cache breakpoints in a part of the text, each with the comma and the blanks before it.

    >>> _moved(b'{"a":1 , "cache_control":{}}', 0, 28)
    21
    """
    size = 0
    for found in BREAKPOINT.finditer(text, begin, end):
        before = text[begin : found.start()]
        size += found.end() - begin - len(before.rstrip().removesuffix(b",").rstrip())
        begin = found.end()
    return size


def _full_names(tool: str) -> Sequence[str]:
    """A name as patterns see it: without a server, and with the one that clients put in front (`mcp__server__tool`).

    >>> _full_names("mcp__files__read_file")
    ['/mcp__files__read_file', 'files/read_file']
    """
    server, _, name = tool.removeprefix("mcp__").partition("__")
    return [f"/{tool}", *([f"{server}/{name}"] if name else [])]
