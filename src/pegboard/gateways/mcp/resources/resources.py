"""Resources, resource templates, prompts and skills of all servers, merged."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from contextvars import Context
from dataclasses import dataclass
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.server.subscriptions import InMemorySubscriptionBus, PromptsListChanged, ResourcesListChanged, ResourceUpdated
from mcp.shared.uri_template import InvalidUriTemplate, UriTemplate

from pegboard.cached_property import cached_property
from pegboard.errors import PegboardError
from pegboard.gateways.mcp.gateway.notifications import Announcer, MergedNotices
from pegboard.gateways.mcp.resources.resource_listing import KINDS, Kind, read_list
from pegboard.gateways.mcp.trust.content import Contents
from pegboard.model import JsonObject, ServerName
from pegboard.upstreams import ORIGIN, Upstream

LOGGER = logging.getLogger(__name__)

PATIENCE = 10.0
"""Seconds that a list waits for a slow server, whose items are then included the next time (M15)."""

AT_ONCE = 0.5
"""The same for a search, in which most servers offer nothing but tools."""

OF_RESOURCES: Sequence[Kind] = ("resources", "resourceTemplates", "skills")

EXPIRY = 30.0
"""Seconds after which a list is read again that may have changed without a word."""

LAST_WORDS = 5.0
"""Seconds for servers to hear that a session which has ended watches nothing any more."""

Result = dict[str, Any]
OnUpdate = Callable[[str], Awaitable[None]]
Visible = Callable[[str], bool]
"""Whether the caller may see what the server of this name offers."""


def everything(_server: str) -> bool:
    return True


@dataclass(slots=True)
class _List:
    """A server's list of one kind: its latest reading, and what the last one that succeeded found, over the
    ``connection`` of this number; none if a client's list was without them since. ``tried`` is the connection of the
    last reading. ``is_old``: it may have changed without a word; ``wakes``: it is read even if the server does not
    run."""

    task: asyncio.Task[Sequence[JsonObject]] | None = None
    items: Sequence[JsonObject] | None = None
    connection: int = 0
    tried: int = 0
    is_old: bool = False
    wakes: bool = False

    def grow_old(self) -> None:
        self.is_old = True


class ServerResources:
    """Of all ``upstreams``, or of those that ``within`` names for a toolset.

    ``visible`` restricts a request to the servers that its caller may see: the others do not exist for it.
    """

    def __init__(
        self,
        upstreams: Callable[[], Sequence[Upstream]],
        bus: InMemorySubscriptionBus,
        within: Callable[[], Collection[str] | None],
        contents: Contents,
    ) -> None:
        self._contents = contents
        self.prompts_announcer = Announcer(PromptsListChanged(), bus)
        self.resources_announcer = Announcer(ResourcesListChanged(), bus)
        self._bus = bus
        self._upstreams = upstreams
        self._within = within
        self.on_read: Callable[[str, Result], None] = lambda uri, result: None
        self._watchers: dict[str, dict[object, OnUpdate | None]] = {}
        self._watched_at: dict[str, Upstream] = {}
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._updates = MergedNotices()
        self._later: set[asyncio.Task[None]] = set()

    @cached_property
    def _lists(self) -> WeakKeyDictionary[Upstream, dict[Kind, _List]]:
        return WeakKeyDictionary()

    @cached_property
    def _offering(self) -> dict[Kind, Sequence[str]]:
        """The servers that offer each kind that clients have asked for, as clients were last told."""
        return {}

    def close(self) -> None:
        for who in {who for watchers in self._watchers.values() for who in watchers}:
            self.leave(who)
        self.prompts_announcer.close()
        self.resources_announcer.close()
        for each in [each for lists in self._lists.values() for each in lists.values()]:
            if each.task is not None:
                each.task.cancel()

    async def listed(self, kind: Kind, visible: Visible = everything, *, running: bool = False) -> list[JsonObject]:
        """All items of a kind, in the order of the servers. If two servers have the same resource, the first one's is
        listed. With ``running``, only of servers that run and answer at once: none is started."""
        if not running:
            self._offering.setdefault(kind, self._names(kind))
        lists = await self._of(kind, visible, running=running)
        if kind == "prompts":
            return [{**each, "name": name} for name, (_, each) in _named(lists).items()]
        return list(
            {each[KINDS[kind].identity]: each for _, items in reversed(lists) for each in reversed(items)}.values()
        )[::-1]

    async def lists(self, uri: str, visible: Visible = everything) -> bool:
        """Whether a server lists a resource of this address, or a template that it fits."""
        if any(each["uri"] == uri for each in await self.listed("resources", visible)):
            return True
        return any(fits(each["uriTemplate"], uri) for each in await self.listed("resourceTemplates", visible))

    async def prompt(self, params: types.GetPromptRequestParams, visible: Visible = everything) -> Result:
        """A prompt. Raises MCPError as the server does, or for an unknown prompt."""
        upstream, prompt = await self._prompt(params.name, visible)
        copied = params.model_copy(update={"name": prompt["name"]})
        result = await upstream.request(types.GetPromptRequest(params=copied))
        self._contents.answered(upstream.server.name, f"prompts/{prompt['name']}", result)
        return result

    async def read(self, params: types.ReadResourceRequestParams, visible: Visible = everything) -> Result:
        """Read from the server that lists the resource, else from the first one that answers. Raises MCPError."""
        request = types.ReadResourceRequest(params=params)

        async def read(upstream: Upstream) -> Result:
            result = await upstream.request(request)
            self._contents.answered(upstream.server.name, f"resources/{params.uri}", result)
            return result

        result = dict(await self.first(str(params.uri), read, visible))
        self.on_read(str(params.uri), result)
        return result

    async def complete(self, params: types.CompleteRequestParams, visible: Visible = everything) -> Result:
        if isinstance(params.ref, types.PromptReference):
            upstream, prompt = await self._prompt(params.ref.name, visible)
            ref = params.ref.model_copy(update={"name": prompt["name"]})
            request = types.CompleteRequest(params=params.model_copy(update={"ref": ref}))
            return await upstream.request(request)
        request = types.CompleteRequest(params=params)
        return dict(await self.first(str(params.ref.uri), lambda each: each.request(request), visible))

    async def subscribe(self, who: object, uri: str, tell: OnUpdate | None, visible: Visible = everything) -> None:
        """Await ``tell`` when the resource changes; with None, changes go to the bus only. Raises MCPError."""

        async def watch(upstream: Upstream) -> Upstream:
            await upstream.watch(uri)
            return upstream

        async with self._turn(uri):
            if uri not in self._watchers:
                self._watched_at[uri] = await self.first(uri, watch, visible)
            elif not visible(self._watched_at[uri].server.name):
                raise _not_found(uri)
            self._watchers.setdefault(uri, {})[who] = tell

    async def unsubscribe(self, who: object, uri: str) -> None:
        """Nobody tells ``who`` of the resource any more; the server that it was the last to watch it at is told. Raises
        MCPError if that refuses."""
        self._watchers.get(uri, {}).pop(who, None)
        async with self._turn(uri):
            if self._watchers.get(uri) or self._watchers.pop(uri, None) is None:
                return
            at = self._watched_at.pop(uri).server.name
            for upstream in [each for each in self._upstreams() if each.server.name == at]:
                await upstream.unwatch(uri)

    def renew(self) -> None:
        """The servers have changed. Clients are told if others offer what they have asked for. Lists of those that were
        connected anew are read again: clients are told of what changed. Nobody watches any more what was watched at a
        server that is gone."""
        offering: dict[Kind, Sequence[str]] = vars(self).get("_offering", {})  # of most users there are none
        changed = {kind: names for kind, before in offering.items() if (names := self._names(kind)) != before}
        offering.update(changed)
        for announcer in {self._announcer(kind) for kind in changed}:
            self._start(announcer.tell_all())
        for upstream, lists in list(vars(self).get("_lists", {}).items()):
            if upstream.status.state == "stopped":
                self._succeed(upstream)
            elif upstream.status.state == "ready":
                for kind, known in list(lists.items()):
                    if known.items is not None and known.tried != upstream.connections:
                        self._task(upstream, kind)
        for uri, at in [each for each in self._watched_at.items() if each[1].status.state == "stopped"]:
            now = [each for each in self._upstreams() if each.server.name == at.server.name and each.watches(uri)]
            if now:
                self._watched_at[uri] = now[0]
            else:
                del self._watched_at[uri]
                self._watchers.pop(uri, None)

    def _succeed(self, stopped: Upstream) -> None:
        """A server that is restarted with another configuration: its lists are compared with those from before."""
        lists = self._lists.pop(stopped)
        for upstream in [each for each in self._upstreams() if each.server.name == stopped.server.name]:
            for kind, known in lists.items():
                if known.items is not None:
                    before = _List(items=known.items, connection=-1, tried=-1)
                    self._lists.setdefault(upstream, {}).setdefault(kind, before)

    def _announcer(self, kind: Kind) -> Announcer:
        return self.prompts_announcer if kind == "prompts" else self.resources_announcer

    def _turn(self, uri: str) -> asyncio.Lock:
        """Held while a server is asked to watch an address, or to end it: otherwise two at once would count as two."""
        return self._turns.setdefault(uri, asyncio.Lock())

    async def forget(self, who: object) -> None:
        """A session or a stream has ended. A server that refuses to hear of that, or does not answer, changes nothing;
        nor does it that the one who waits for this is cancelled."""
        watched = [uri for uri, watchers in self._watchers.items() if who in watchers]
        ending = [self.unsubscribe(who, uri) for uri in watched]
        with anyio.move_on_after(LAST_WORDS, shield=True):
            for failed in await asyncio.gather(*ending, return_exceptions=True):
                if failed is not None:
                    LOGGER.info("A server did not end a subscription: %s", failed)

    def leave(self, who: object) -> None:
        """As `forget`, of which nobody waits for the end."""
        self._start(self.forget(who))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work, context=Context())
        self._later.add(task)
        task.add_done_callback(self._later.discard)

    async def on_notification(self, server: ServerName, message: types.ServerNotification) -> None:
        """Pass a server's notification about its lists and resources on to the clients concerned."""
        upstream = next((each for each in self._there() if each.server.name == server), None)
        if upstream is None:
            return
        lists = self._lists.get(upstream, {})
        if isinstance(message, types.ResourceUpdatedNotification):
            await self._updated(server, str(message.params.uri))
        elif isinstance(message, types.PromptListChangedNotification):
            lists.pop("prompts", None)
            await self.prompts_announcer.tell_all()
        elif isinstance(message, types.ResourceListChangedNotification):
            for kind in OF_RESOURCES:
                lists.pop(kind, None)
            await self.resources_announcer.tell_all()

    async def _updated(self, server: ServerName, uri: str) -> None:
        """Tell sessions that watch the resource, or one of the same server of which it is a part."""
        whole = [
            watched for watched, at in self._watched_at.items() if at.server.name == server and _is_part(uri, watched)
        ]
        told = {
            who: watched
            for watched in (*whole, uri)
            for who, tell in self._watchers.get(watched, {}).items()
            if tell is not None
        }
        await self._bus.publish(ResourceUpdated(uri))
        sending = (
            self._updates.send((who, uri), partial(self._tell, who, watched, uri)) for who, watched in told.items()
        )
        await asyncio.gather(*sending)

    async def _tell(self, who: object, watched: str, uri: str) -> None:
        tell = self._watchers.get(watched, {}).get(who)
        if tell is not None:
            await tell(uri)

    async def _prompt(self, name: str, visible: Visible) -> tuple[Upstream, JsonObject]:
        prompts = _named(await self._of("prompts", visible))
        if name not in prompts:
            raise MCPError(types.INVALID_PARAMS, f"Prompt {name!r} not found", {"available": list(prompts)})
        return prompts[name]

    def servers(self, visible: Visible = everything) -> list[Upstream]:
        """The servers that the caller may see."""
        return self._there(None, visible)

    async def first(
        self,
        uri: str,
        act: Callable[[Upstream], Awaitable[Any]],
        visible: Visible,
        among: Sequence[Upstream] | None = None,
    ) -> Any:
        """The result of the first server that does not refuse; servers that list the resource or its template come
        first. ``among`` are the servers to ask where there are others that never answer."""
        error: MCPError | PegboardError | None = None
        holders = await self._holders(uri, visible)
        for upstream in holders if among is None else [each for each in holders if each in among] or among:
            try:
                return await act(upstream)
            except (MCPError, PegboardError) as refusal:
                error = error or refusal
        raise error or _not_found(uri)

    async def _holders(self, uri: str, visible: Visible) -> list[Upstream]:
        """The server that lists the resource, else one with a matching template, else all: not every resource is
        listed."""
        listed = [
            each for each, items in await self._of("resources", visible) if any(one["uri"] == uri for one in items)
        ]
        if listed:
            return listed[:1]
        skills = await self._of("skills", visible)
        owners = [each for each, items in skills if any(uri.startswith(folder_of(one["uri"])) for one in items)]
        if owners:
            return owners[:1]
        templates = await self._of("resourceTemplates", visible)
        fitting = [each for each, items in templates if any(fits(one["uriTemplate"], uri) for one in items)]
        return fitting[:1] or self._there("resources", visible)

    def _names(self, kind: Kind) -> Sequence[str]:
        return tuple(each.server.name for each in self._there(kind))

    def _there(self, kind: Kind | None = None, visible: Visible = everything) -> list[Upstream]:
        within = self._within()
        return [
            each
            for each in self._upstreams()
            if visible(each.server.name)
            and (within is None or each.server.name in within)
            and (kind is None or KINDS[kind].offered(each.capabilities))
        ]

    async def _of(
        self, kind: Kind, visible: Visible, *, running: bool = False
    ) -> list[tuple[Upstream, Sequence[JsonObject]]]:
        """Each server's list of a kind. Lists are requested once, and again after the server reports a change, or over
        each new connection to it."""
        there = [each for each in self._there(kind, visible) if not running or each.status.state == "ready"]
        tasks = {each: self._task(each, kind) for each in there}
        if tasks:
            await asyncio.wait(tasks.values(), timeout=AT_ONCE if running else PATIENCE)
        found = [(each, self._latest(each, kind, task)) for each, task in tasks.items()]
        for late in [each for each, items in found if items is None and not running]:
            if known := self._lists.get(late, {}).get(kind):
                known.items = ()
        return [(each, items) for each, items in found if items is not None]

    def _latest(
        self, upstream: Upstream, kind: Kind, task: asyncio.Task[Sequence[JsonObject]]
    ) -> Sequence[JsonObject] | None:
        """What a reading found, or the one before it over the same connection."""
        if _succeeded(task):
            return task.result()
        known = self._lists.get(upstream, {}).get(kind)
        return known.items if known is not None and known.connection == upstream.connections else None

    def _task(self, upstream: Upstream, kind: Kind) -> asyncio.Task[Sequence[JsonObject]]:
        """The reading of a list, begun again if it failed or is out of date. One that is merely old is kept while its
        server does not run: that is not started for it."""
        known = self._lists.setdefault(upstream, {}).setdefault(kind, _List())
        runs = upstream.status.state == "ready"
        task = known.task
        outdated = known.connection != upstream.connections or (known.is_old and (runs or known.wakes))
        if task is None or (task.done() and (outdated or not _succeeded(task))):
            known.task = task = asyncio.create_task(self._read(upstream, kind, known))
        return task

    async def _read(self, upstream: Upstream, kind: Kind, known: _List) -> Sequence[JsonObject]:
        spec = KINDS[kind]
        try:
            items = await _read_unattributed(upstream, kind) if spec.offered(upstream.capabilities) else []
        finally:
            known.tried = upstream.connections
        shown = await self._contents.listed(upstream.server.name, kind, items)
        before, is_new = known.items, known.connection != upstream.connections
        known.items, known.connection, known.is_old = shown, upstream.connections, False
        if is_new and before is not None and list(before) != list(shown):
            self._start(self._announcer(kind).tell_all())
        known.wakes = kind == "skills" or len(shown) < len(items)  # what is held back may be approved
        if known.wakes or not spec.announced(upstream.capabilities):
            asyncio.get_running_loop().call_later(EXPIRY, known.grow_old)
        return shown


async def _read_unattributed(upstream: Upstream, kind: Kind) -> Sequence[JsonObject]:
    """Read a list that all clients share: it is not requested on behalf of any client."""
    ORIGIN.set(None)
    try:
        return await read_list(upstream, kind)
    except (MCPError, PegboardError) as error:
        LOGGER.warning("The %s of server %s could not be listed: %s", kind, upstream.server.name, error)
        raise


def _not_found(uri: str) -> MCPError:
    return MCPError(types.INVALID_PARAMS, "Resource not found", {"uri": uri})


def _is_part(uri: str, of: str) -> bool:
    """Whether a resource is below another one, by their addresses.

    >>> _is_part("file:///notes/one", "file:///notes"), _is_part("file:///notes2", "file:///notes")
    (True, False)
    """
    return uri.startswith(of.rstrip("/") + "/")


def folder_of(manifest: str) -> str:
    """Where the files of a skill are.

    >>> folder_of("skill://billing/refunds/SKILL.md")
    'skill://billing/refunds/'
    """
    return manifest.rpartition("/")[0] + "/"


def fits(template: str, uri: str) -> bool:
    try:
        return UriTemplate.parse(template).match(uri) is not None
    except InvalidUriTemplate:
        return False


def _succeeded(task: asyncio.Task[Any]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is None


def _named(lists: Sequence[tuple[Upstream, Sequence[JsonObject]]]) -> Mapping[str, tuple[Upstream, JsonObject]]:
    """Prompts by their listed names: their own, prefixed with the server's if the name is taken (M11)."""
    names: dict[str, tuple[Upstream, JsonObject]] = {}
    for upstream, items in lists:
        for prompt in items:
            name = prompt["name"]
            names[f"{upstream.server.name}_{name}" if name in names else name] = (upstream, prompt)
    return names
