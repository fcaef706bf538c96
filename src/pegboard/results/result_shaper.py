"""Results in the form that the settings name, and what is read of kept ones: the part with I/O."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, Literal, ParamSpec, TypedDict, TypeVar, Unpack

from pegboard.errors import ResultNotKept, StoreError
from pegboard.events import Event, ResultRead, ResultShaped
from pegboard.model import JsonObject, Tool, ToolId
from pegboard.protocols import Clock, EventSink, KeptResults, TokenCounter
from pegboard.results.rereads import Rereads
from pegboard.results.result_reader import part_of
from pegboard.results.shape import HANDLE, ShapedResult, ShapePolicy, shape, texts_of
from pegboard.settings.result_settings import FILE_READS, ResultForm, ResultSettings

LOGGER = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")
AT_ONCE = 200_000
"""Characters up to which a result is shaped, written and read on the event loop; a longer one on a thread."""
Owner = Literal["key", "subject", "session", "everyone"]


class Requester(TypedDict, total=False):
    """Who an event is about."""

    key: str
    conversation: str


def owner_mark(kind: Owner, name: str) -> str:
    """The mark of whoever may read a result on: the holder of a key, a subject of the issuer, a session, or
    everyone.

    >>> owner_mark("key", "ann") == owner_mark("session", "ann")
    False
    """
    return hashlib.sha256(f"{kind} {name}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


class ResultShaper:
    """``settings`` may change; what is kept stays readable."""

    def __init__(
        self, settings: ResultSettings, store: KeptResults, counter: TokenCounter, *, events: EventSink, clock: Clock
    ) -> None:
        self.rereads = Rereads(clock)
        self._store = store
        self._counter = counter
        self._events = events
        self._clock = clock
        self._warned = False
        self.adopt(settings)

    def adopt(self, settings: ResultSettings) -> None:
        """Switch to other settings."""
        self.settings = settings
        self.policy = ShapePolicy(threshold=settings.threshold, budget=settings.budget, seconds=settings.hours * 3600.0)
        self._form: Callable[[ToolId], ResultForm] = lru_cache(maxsize=4096)(lambda tool: _configured(settings, tool))

    def form(self, tool: ToolId, wish: ResultForm | None, *, can_read: bool) -> ResultForm:
        """The form of a tool's results: a caller's wish is for all but reads of files. Without `read_result`,
        nothing is cut."""
        form = self._form(tool)
        if wish is not None and (wish == "whole" or not _reads_files(tool)):
            form = wish
        return "shaped" if form == "handle" and not (can_read and self.rereads.pays(tool)) else form

    async def shaped(
        self,
        tool: Tool,
        result: JsonObject,
        form: ResultForm,
        *,
        owner: str,
        structured: bool,
        asked: str = "",
        **who: Unpack[Requester],
    ) -> JsonObject:
        """The result in this form; whole, if what would be left out cannot be kept, or if shaping fails.

        ``structured`` is whether `structuredContent` has to stay. What is cut keeps the lines about what was ``asked``.
        ``who`` is for the event.
        """
        if form == "whole":
            return result
        try:
            found = await self._made(tool, result, handles=form == "handle", structured=structured, asked=asked)
            if found.kept and not await self._is_kept(tool, result, found.handle, owner):
                found = await self._made(tool, result, handles=False, structured=structured)
        except Exception:
            LOGGER.exception("Shaping a result of %s failed", tool.id)
            return result
        if found.rules:
            if found.kept:
                self.rereads.saved(tool.id, max(0, found.uncut - found.after))
            self._tell(
                ResultShaped(
                    at=self._clock.time(),
                    tool=str(tool.id),
                    server=tool.server,
                    rules=found.rules,
                    tokens_before=found.before,
                    tokens_after=found.after,
                    kept=found.kept,
                    **who,
                )
            )
        return found.result

    async def read(self, arguments: JsonObject, owner: str, **who: Unpack[Requester]) -> str:
        """What valid arguments of `read_result` ask for. Raises ResultNotKept, ArgumentsInvalid and StoreError."""
        handle = arguments["handle"]
        body = await self._store.get(owner, handle) if HANDLE.fullmatch(handle) else None
        if body is None:
            raise ResultNotKept(handle)
        kept: dict[str, Any] = await _off_loop(len(body), json.loads, body)
        text = await asyncio.to_thread(
            part_of, kept["result"], arguments, self.policy, self._counter, schema=kept.get("schema")
        )
        tool, tokens = ToolId(*kept["tool"]), sum(self._counter.count([text]))
        self.rereads.read(tool, tokens)
        self._tell(ResultRead(at=self._clock.time(), tool=str(tool), server=tool.server, tokens=tokens, **who))
        return text

    async def _made(
        self, tool: Tool, result: JsonObject, *, handles: bool, structured: bool, asked: str = ""
    ) -> ShapedResult:
        def make() -> ShapedResult:
            return shape(
                result,
                self.policy,
                self._counter,
                schema=tool.output_schema or None,
                handles=handles,
                structured=structured,
                asked=asked,
            )

        return await _off_loop(_size(result), make)

    async def _is_kept(self, tool: Tool, result: JsonObject, handle: str, owner: str) -> bool:
        """Keep the texts of a result. False if there is no room for it, or no store."""
        body = await _off_loop(_size(result), _kept_body, tool, result)
        seconds, most = self.policy.seconds, self.settings.bytes_per_caller
        try:
            kept = await self._store.put(owner, handle, body, seconds=seconds, most=most)
        except StoreError as error:
            if not self._warned:
                LOGGER.warning("Results cannot be kept, so they are not shortened: %s", error)
            self._warned = True
            return False
        self._warned = False
        return kept

    def _tell(self, event: Event) -> None:
        self._events.emit(event)


async def _off_loop(size: int, function: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
    """What a function gives, which works on so many characters: on a thread if they are many."""
    return await asyncio.to_thread(function, *given, **named) if size > AT_ONCE else function(*given, **named)


def _size(result: JsonObject) -> int:
    return sum(map(len, texts_of(result)))


def _kept_body(tool: Tool, result: JsonObject) -> bytes:
    """What is kept of a result: its texts, and the schema by which its fields were left out."""
    texts = [{"type": "text", "text": text} for text in texts_of(result)]
    kept = {"tool": tool.id, "result": {"content": texts}}
    if tool.output_schema:
        kept["schema"] = tool.output_schema
    return json.dumps(kept, separators=(",", ":")).encode("ascii")


def _configured(settings: ResultSettings, tool: ToolId) -> ResultForm:
    name = str(tool)
    for pattern, form in settings.tools.items():
        if fnmatchcase(name, pattern):
            return form
    return "whole" if _reads_files(tool) else settings.policy


def _reads_files(tool: ToolId) -> bool:
    return any(fnmatchcase(str(tool), pattern) for pattern in FILE_READS)
