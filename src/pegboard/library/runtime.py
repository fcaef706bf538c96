"""What boards of one configuration share: a loop, stores, an encoder, servers."""

from __future__ import annotations

import asyncio
import atexit
import logging
import threading
import weakref
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pegboard import operating_system
from pegboard.call_charges import CallCharges
from pegboard.catalog import BpeCounter
from pegboard.compose import Parts, default_parts
from pegboard.errors import ConfigError
from pegboard.library.board_approvals import server_approvals
from pegboard.library.portal import Portal
from pegboard.model import JsonObject, Outcome, Server, Tool, ToolId, ToolStatistics
from pegboard.results.result_shaper import ResultShaper
from pegboard.settings import Settings
from pegboard.usage import Usage

if TYPE_CHECKING:
    from pegboard.trust.approvals import Approvals
    from pegboard.upstreams import Fleet, UpstreamLimits

LOGGER = logging.getLogger(__name__)
_living: weakref.WeakSet[ForkAware] = weakref.WeakSet()
_runtimes: weakref.WeakSet[BoardRuntime] = weakref.WeakSet()
_ending: weakref.WeakSet[threading.Thread] = weakref.WeakSet()
END_SECONDS = 5.0
"""How long an exiting interpreter waits for boards that were collected just before."""
T = TypeVar("T")


class ForkAware(Protocol):
    def forget(self) -> object:
        """Reset after a fork; returns everything that belongs to the parent process."""
        ...


class BoardRuntime:
    """Opens on first use: stores, the encoder, and servers, which get ``start_wait`` seconds to list their tools.

    In a forked process it opens again: threads, connections and locks belong to the parent.
    """

    def __init__(self, settings: Settings, replaced: Mapping[str, Any]) -> None:
        self.settings = settings
        self._replaced = replaced
        self._begin()
        reset_at_fork(self)
        _runtimes.add(self)

    def _begin(self) -> None:
        self._portal = Portal(self._bind)
        self._bind()
        self._parts: Parts | None = None
        self._fleet: Fleet | None = None
        self._serving: asyncio.Task[None] | None = None
        self._usage: Usage | None = None
        self._charges: CallCharges | None = None
        self._shaper: ResultShaper | None = None
        self._counting: asyncio.Task[None] | None = None
        self._approvals: Approvals | None = None
        self.changes = 0
        """How often servers have changed their tool lists, or other tools of theirs were held back."""

    def _bind(self) -> None:
        """Create what is bound to one event loop."""
        self._opening = asyncio.Lock()
        self._ended = asyncio.Event()
        self.renewing = asyncio.Lock()

    @property
    def parts(self) -> Parts | None:
        """None while nothing is open."""
        return self._parts

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._portal.run(work)

    async def wait(self, work: Coroutine[Any, Any, T]) -> T:
        return await self._portal.wait(work)

    async def in_thread(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a caller's blocking function without blocking the caller's loop; the function may use the board."""
        return await self._portal.in_thread(function, *arguments)

    async def opened(self) -> Parts:
        """The parts; call it in the portal's loop."""
        if self._parts is not None:
            return self._parts
        async with self._opening:
            if not self._ended.is_set() and self._parts is None:
                parts = await asyncio.to_thread(default_parts, self.settings, **self._replaced)
                if self.settings.enabled_servers:
                    await self._start(parts)
                self._usage = Usage(parts.statistics, parts.knowledge.observe, parts.resting.observe)
                self._charges = CallCharges(parts.spend, self.settings.spend, parts.clock)
                self._shaper = ResultShaper(
                    self.settings.results, parts.results, BpeCounter(), events=parts.events, clock=parts.clock
                )
                self._counting = asyncio.create_task(_run(self._usage, self._charges, parts, self._approvals))
                self._parts = parts
        while self._parts is None:
            await asyncio.Event().wait()  # until this loop, which is being closed, cancels it
        return self._parts

    def listed(self) -> Mapping[str, tuple[Server, tuple[Tool, ...]]]:
        """The current tools of the servers, without those that are held back."""
        if self._fleet is None:
            return {}
        catalog = self._fleet.catalog()
        if self._approvals is not None:
            catalog = self._approvals.admitted(catalog)
        return {server.name: (server, catalog.of_server(name)) for name, server in catalog.servers.items()}

    async def call(self, tool: ToolId, arguments: JsonObject) -> dict[str, Any]:
        """The response of the tool's server. Raises ConfigError if the tool has none, UpstreamError, and MCPError."""
        await self.opened()
        if self._fleet is None or tool.server not in self.settings.enabled_servers:
            raise _nothing_to_call(tool)
        return await self._fleet.call(tool, arguments)

    async def charged(self) -> CallCharges:
        """The charges for calls; call it in the portal's loop."""
        await self.opened()
        assert self._charges is not None  # noqa: S101 - opened together with the parts
        return self._charges

    async def result_shaper(self) -> ResultShaper:
        """What shortens results; call it in the portal's loop."""
        await self.opened()
        assert self._shaper is not None  # noqa: S101 - opened together with the parts
        return self._shaper

    def observe(self, outcome: Outcome) -> None:
        """Record the outcome of a call: at once for the next turn, soon after in the store."""
        if self._usage is None:
            self.run(self.opened())
        assert self._usage is not None  # noqa: S101 - opened together with the parts
        self._usage.observe(outcome)

    async def statistics(self) -> Mapping[ToolId, ToolStatistics]:
        """Those of the store, with this process's latest calls; without the sums of whole servers."""
        parts = await self.opened()
        if self._usage is not None:
            await self._usage.flush()
        known = await parts.statistics.read()
        return {tool: each for tool, each in known.items() if tool.name}

    def close(self) -> None:
        """Stop servers, stores and the thread; turns that run are cancelled. Using it again opens it again."""
        self._portal.close(self._closed)

    def abandon(self) -> None:
        """Close without waiting for it: for the garbage collector, which runs in any thread at any time."""
        thread = self._portal.end(self._closed)
        if thread is not None:
            _ending.add(thread)

    def forget(self) -> object:
        """Reset after a fork; returns everything that belongs to the parent process."""
        theirs = dict(vars(self))
        self._begin()
        return theirs

    async def _start(self, parts: Parts) -> None:
        """Start the servers and wait until they have listed their tools or their time is up."""
        listed = asyncio.Event()
        self._serving = asyncio.create_task(self._serve(parts, listed))
        waiting = asyncio.create_task(listed.wait())
        await asyncio.wait({self._serving, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if self._serving.done():
            self._serving.result()

    async def _serve(self, parts: Parts, listed: asyncio.Event) -> None:
        """Run the servers within one task."""
        settings = self.settings
        fleet_of, limits_of = await asyncio.to_thread(_fleet)
        self._approvals = approvals = server_approvals(
            settings, parts, self._count_change, lambda tool: fleet.is_placeholder(tool)
        )
        fleet = fleet_of(
            settings.enabled_servers,
            connect_timeout=settings.connect_timeout,
            call_timeout=settings.call_timeout,
            events=parts.events,
            clock=parts.clock,
            on_change=self._changed,
            definitions=parts.definitions,
            lazy=settings.lazy,
            idle_stop=settings.idle_stop,
            limits=limits_of(result=settings.result_limit, entries=settings.list_limit, list_bytes=settings.list_bytes),
            health_timeout=settings.health_timeout,
            admit=self._admit,
        )
        async with fleet:
            self._fleet = fleet
            await fleet.settled(settings.start_wait)
            if approvals is not None:
                await approvals.settled(settings.start_wait)
            listed.set()
            await self._ended.wait()

    async def _changed(self) -> None:
        if self._approvals is not None and self._fleet is not None:
            await self._approvals.see(self._fleet.listed())
        self._count_change()

    def _count_change(self) -> None:
        self.changes += 1

    async def _admit(self, tool: ToolId) -> None:
        if self._approvals is not None:
            await self._approvals.admit(tool)

    def check_approved(self, tool: ToolId) -> None:
        """Raises NotApproved for a server's tool that is held back."""
        if self._approvals is not None:
            self._approvals.check(tool)

    async def _closed(self) -> None:
        self._ended.set()
        async with self._opening:
            try:
                await self._stopped()
            finally:
                self._parts = self._fleet = self._serving = self._usage = self._counting = None
                self._charges = self._shaper = self._approvals = None

    async def _stopped(self) -> None:
        if self._serving is not None:
            await self._serving
        if self._counting is not None and self._usage is not None:
            self._counting.cancel()
            await asyncio.wait([self._counting])
            await _written(self._usage)
            if self._charges is not None:
                await self._charges.close()
            if self._parts is not None and self._parts.learner is not None:
                await self._parts.learner.book.flush()
        if self._parts is not None:
            await self._parts.close()


def _fleet() -> tuple[type[Fleet], type[UpstreamLimits]]:
    """Import lazily: boards without servers do not need the MCP SDK, which is slow to import."""
    from pegboard.upstreams import Fleet, UpstreamLimits

    return Fleet, UpstreamLimits


async def _run(usage: Usage, charges: CallCharges, parts: Parts, approvals: Approvals | None) -> None:
    """Write counts, charges, what use taught and what servers list every few seconds until cancelled."""
    more = [*(() if parts.learner is None else (parts.learner.book.run(),))]
    if approvals is not None:
        from pegboard.trust.pin_reads import ApprovalWatch

        watch = ApprovalWatch(parts.pins, approvals.wake, is_strict=lambda: approvals.is_strict)
        more += [approvals.run(), watch.run()]
    await asyncio.gather(usage.run(), charges.run(), *more)


async def _written(usage: Usage) -> None:
    """Flush the counts. A board that is never closed loses only those of its last seconds."""
    try:
        await usage.flush()
    except RuntimeError as error:  # the interpreter is shutting down and starts no more threads
        LOGGER.debug("Calls of the last seconds were not counted: %s", error)


def _nothing_to_call(tool: ToolId) -> ConfigError:
    return ConfigError(
        f"Tool {str(tool)!r} has neither a function nor a server.",
        remedy="Pair its schema with a callable, or call it yourself.",
    )


def reset_at_fork(owner: ForkAware) -> None:
    """``owner`` is reset in every process forked from now on, before other code runs there."""
    _living.add(owner)


def _reset_all() -> None:
    for owner in list(_living):
        operating_system.never_finalize(owner.forget())


def _close_all() -> None:
    """Close what is still open when the interpreter exits, and wait for what is just being closed."""
    for runtime in list(_runtimes):
        try:
            runtime.close()
        except Exception:
            LOGGER.exception("A board could not be closed cleanly")
    for thread in list(_ending):
        thread.join(END_SECONDS)


atexit.register(_close_all)
operating_system.after_fork(_reset_all)
