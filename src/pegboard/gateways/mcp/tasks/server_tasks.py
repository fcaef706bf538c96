"""The tasks of all servers: each request about one goes to the server that runs it."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import mcp_types as types
from mcp import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from pegboard.errors import PegboardError
from pegboard.gateways.mcp.gateway.caller import Caller
from pegboard.gateways.mcp.gateway.notifications import sent
from pegboard.gateways.mcp.tasks.task_ids import TaskIds, TaskPlace
from pegboard.gateways.mcp.tasks.task_results import created_task, final_result, with_task_id
from pegboard.gateways.mcp.trust.content import Contents
from pegboard.model import JsonObject, ServerName, ToolId
from pegboard.upstreams import Upstream
from pegboard.upstreams.extension_requests import (
    TASKS,
    AnyNotification,
    ExtensionRequest,
    TaskRequest,
    accepts_tasks,
    extensions_of,
)

MOST_TASKS = 10_000
"""Tasks whose clients are remembered, for `tasks/list` and for notifications: those that were heard of last."""
MOST_PAGES = 100

Result = dict[str, Any]
Tell = Callable[[Any], Awaitable[None]]
"""Sends a notification to a client; the SDK has no type for those of tasks."""
TaskKey = tuple[str, str, str]
"""A task's server, the client whose own connection it runs on (empty for one that clients share), and the server's id:
two connections may have the same ids."""
Answered = Callable[[str | None, str], Awaitable[object]]
"""Awaited with the session and the tool of a task that has ended well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedTask:
    """A task that a client of this process has started, and the id that it got."""

    given: str
    session: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedTask:
    """A task of which streams want to hear, and the connection that was asked for it last."""

    upstream: Upstream
    tellers: dict[object, Tell]


class ServerTasks:
    """Of all ``upstreams``, or of those that ``within`` names for a toolset. ``reach`` is the server's connection for
    the current request."""

    def __init__(
        self,
        upstreams: Callable[[], Sequence[Upstream]],
        reach: Callable[[str], Upstream],
        within: Callable[[], Collection[str] | None],
        ids: TaskIds,
        contents: Contents,
        answered: Answered,
    ) -> None:
        self._upstreams = upstreams
        self._reach = reach
        self._within = within
        self._ids = ids
        self._contents = contents
        self._answered = answered
        self._started: OrderedDict[TaskKey, StartedTask] = OrderedDict()
        self._channels: OrderedDict[str, Tell] = OrderedDict()
        self._streams: dict[TaskKey, WatchedTask] = {}

    def offered(self, caller: Caller) -> bool:
        """Whether a server that the caller may use runs tasks, in the caller's era."""
        return any(runs_tasks(each, modern=caller.modern) and self._sees(caller, each) for each in self._upstreams())

    def created(self, tool: ToolId, result: Result, caller: Caller) -> Result:
        """The result of a call; if the call has become a task, with the id under which the client finds it.

        The client of an embedded gateway asks its server itself, by the server's id.
        """
        task = created_task(result)
        if task is None or all(each.server.name != tool.server for each in self._upstreams()):
            return result
        given = self._ids.given(TaskPlace(server=tool.server, tool=tool.name, task=task), caller.holder)
        at = (tool.server, self._reach(tool.server).client, task)
        self._started[at] = StartedTask(given=given, session=caller.session)
        self._heard_of(at)
        return with_task_id(result, given)

    async def asked(self, method: str, params: JsonObject, caller: Caller) -> Result:
        """The answer of a task's server to a request about it. Raises MCPError for an unknown task, and as the server
        does."""
        given = params.get("taskId")
        place, upstream = await self._find(given, caller)
        self._heard_of((place.server, upstream.client, place.task))
        result = await upstream.request(TaskRequest(method=method, params={**params, "taskId": place.task}))
        final = final_result(result)
        if final is not None:
            self._contents.answered(ServerName(place.server), place.tool, final)
            if not final.get("isError", False):
                await self._answered(caller.session, place.tool)
        return with_task_id(result, str(given))

    async def listed(self, caller: Caller) -> list[JsonObject]:
        """The tasks that this session has started, as their servers list them (MCP 2025-11-25, tasks/list).

        A server knows the gateway alone, so it lists the tasks of all clients: those of others are left out.
        """
        mine = {at: each.given for at, each in self._started.items() if each.session == caller.session}
        found: list[JsonObject] = []
        for server in dict.fromkeys(server for server, _, _ in mine):
            with suppress(MCPError, PegboardError):  # a server that is down, or lists none: the others' tasks are told
                upstream = self._reach(server)
                tasks = {(server, upstream.client, each.get("taskId")): each for each in await _all_tasks(upstream)}
                found += [{**each, "taskId": mine[at]} for at, each in tasks.items() if at in mine]
        return found

    def connect(self, session: str | None, tell: Tell) -> None:
        """Register how to reach a session of the handshake era outside its requests."""
        if session is not None:
            self._channels[session] = tell
            self._channels.move_to_end(session)
            while len(self._channels) > MOST_TASKS:
                self._channels.popitem(last=False)

    def forget(self, session: str) -> None:
        self._channels.pop(session, None)

    async def watch(self, who: object, given: str, caller: Caller, tell: Tell) -> bool:
        """Await ``tell`` with each change of the task (SEP-2663, notifications). Whether the task is known."""
        try:
            place, upstream = await self._find(given, caller)
        except MCPError:
            return False
        at = (place.server, upstream.client, place.task)
        others = self._streams[at].tellers if at in self._streams else {}
        self._streams[at] = WatchedTask(upstream=upstream, tellers={**others, who: tell})
        self._started.setdefault(at, StartedTask(given=given, session=caller.session))
        self._heard_of(at)
        await upstream.watch_task(place.task)
        return True

    def unwatch(self, who: object) -> None:
        """A stream has ended."""
        for at, watched in list(self._streams.items()):
            if watched.tellers.pop(who, None) is not None and not watched.tellers:
                del self._streams[at]
                watched.upstream.unwatch_task(at[-1])

    async def on_notification(self, server: ServerName, message: AnyNotification) -> None:
        """Pass a server's word of a task on to the client that started it, or to the streams that asked for it."""
        at = (str(server), message.client, str(message.params.get("taskId")))
        started = self._heard_of(at)
        if started is None:
            return
        told = AnyNotification(method=message.method, params=with_task_id(message.params, started.given))
        channel = self._channels.get(started.session or "")
        watched = self._streams.get(at)
        tellers = [] if watched is None else list(watched.tellers.values())
        if message.method.endswith("/status") and channel is not None:
            tellers.append(channel)
        await asyncio.gather(*(sent(partial(tell, told)) for tell in tellers))

    def _heard_of(self, at: TaskKey) -> StartedTask | None:
        """The task, if it is known; the one of which nothing was heard for the longest is forgotten beyond the most."""
        started = self._started.get(at)
        if started is not None:
            self._started.move_to_end(at)
        while len(self._started) > MOST_TASKS:
            self._started.popitem(last=False)
        return started

    async def _find(self, given: object, caller: Caller) -> tuple[TaskPlace, Upstream]:
        place = await self._ids.place(given, caller.holder) if isinstance(given, str) else None
        there = {each.server.name: each for each in self._upstreams()}
        shared = None if place is None else there.get(ServerName(place.server))
        if place is None or shared is None or not self._sees(caller, shared):
            raise MCPError(types.INVALID_PARAMS, "Task not found", {"taskId": given})
        return place, self._reach(place.server)

    def _sees(self, caller: Caller, upstream: Upstream) -> bool:
        name, within = upstream.server.name, self._within()
        return (within is None or name in within) and (caller.holder is None or caller.holder.may_see(name))


def runs_tasks(upstream: Upstream, *, modern: bool) -> bool:
    """Whether a server runs tasks for clients of revision 2026-07-28, or for those of the handshake era."""
    if upstream.status.protocol in MODERN_PROTOCOL_VERSIONS:
        return modern and TASKS in extensions_of(upstream.capabilities)
    return not modern and accepts_tasks(upstream.capabilities)


async def _all_tasks(upstream: Upstream) -> list[JsonObject]:
    """Every page of a server's tasks. Raises MCPError, UpstreamError."""
    found: list[JsonObject] = []
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        params = {} if cursor is None else {"cursor": cursor}
        page = await upstream.request(ExtensionRequest(method="tasks/list", params=params))
        found += page.get("tasks") or []
        cursor = page.get("nextCursor")
        if cursor is None:
            break
    return found
