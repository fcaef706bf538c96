"""What servers have besides tools: resources, templates of them, and prompts, as one library."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import mcp_types as types
from mcp import MCPError
from mcp.server.subscriptions import InMemorySubscriptionBus, PromptsListChanged, ResourcesListChanged, ResourceUpdated
from mcp.shared.uri_template import InvalidUriTemplate, UriTemplate

from pegboard.errors import PegboardError
from pegboard.gateways.mcp.announcer import Announcer
from pegboard.gateways.mcp.content import Contents
from pegboard.gateways.mcp.shelves import KINDS, Kind, read_shelf
from pegboard.model import JsonObject, ServerName
from pegboard.upstreams import ORIGIN, Upstream

LOGGER = logging.getLogger(__name__)

PATIENCE = 10.0
"""Seconds that a list waits for a slow server; what that has is there the next time (M15)."""

Result = dict[str, Any]
Told = Callable[[str], Awaitable[None]]
Sight = Callable[[str], bool]
"""Whether whoever asks may see what a server of this name has."""


def everything(_server: str) -> bool:
    return True


class Library:
    """Of the ``upstreams``, or of those of them that ``within`` names: a toolset's.

    Who may ``see`` some servers alone is answered as if there were no others.
    """

    def __init__(
        self,
        upstreams: Callable[[], Sequence[Upstream]],
        bus: InMemorySubscriptionBus,
        within: Callable[[], Collection[str] | None],
        contents: Contents,
    ) -> None:
        self._contents = contents
        self.prompts_news = Announcer(PromptsListChanged(), bus)
        self.resources_news = Announcer(ResourcesListChanged(), bus)
        self._bus = bus
        self._upstreams = upstreams
        self._within = within
        self._shelves: WeakKeyDictionary[Upstream, dict[Kind, asyncio.Task[Sequence[JsonObject]]]] = WeakKeyDictionary()
        self._watchers: dict[str, dict[object, Told | None]] = {}
        self._watched_at: dict[str, str] = {}

    def close(self) -> None:
        self.prompts_news.close()
        self.resources_news.close()
        for shelf in list(self._shelves.values()):
            for task in shelf.values():
                task.cancel()

    async def listed(self, kind: Kind, see: Sight = everything) -> list[JsonObject]:
        """Everything of a kind, in the order of the servers. A resource that two servers have is the first one's."""
        shelves = await self._of(kind, see)
        if kind == "prompts":
            return [{**each, "name": name} for name, (_, each) in _named(shelves).items()]
        return list(
            {each[KINDS[kind].identity]: each for _, shelf in reversed(shelves) for each in reversed(shelf)}.values()
        )[::-1]

    async def prompt(self, params: types.GetPromptRequestParams, see: Sight = everything) -> Result:
        """Raises MCPError as the server does, or for a prompt that there is not."""
        upstream, prompt = await self._prompt(params.name, see)
        copied = params.model_copy(update={"name": prompt["name"]})
        result = await upstream.request(types.GetPromptRequest(params=copied))
        await self._contents.answered(upstream.server.name, f"prompts/{prompt['name']}", result)
        return result

    async def read(self, params: types.ReadResourceRequestParams, see: Sight = everything) -> Result:
        """By the server that has it; where none is known to, by the first that answers. Raises MCPError."""
        request = types.ReadResourceRequest(params=params)

        async def read(upstream: Upstream) -> Result:
            result = await upstream.request(request)
            await self._contents.answered(upstream.server.name, f"resources/{params.uri}", result)
            return result

        return dict(await self._first(str(params.uri), read, see))

    async def complete(self, params: types.CompleteRequestParams, see: Sight = everything) -> Result:
        if isinstance(params.ref, types.PromptReference):
            upstream, prompt = await self._prompt(params.ref.name, see)
            ref = params.ref.model_copy(update={"name": prompt["name"]})
            request = types.CompleteRequest(params=params.model_copy(update={"ref": ref}))
            return await upstream.request(request)
        request = types.CompleteRequest(params=params)
        return dict(await self._first(str(params.ref.uri), lambda each: each.request(request), see))

    async def subscribe(self, who: object, uri: str, tell: Told | None, see: Sight = everything) -> None:
        """Have ``tell`` awaited when the resource changes; None where that is heard on the bus. Raises MCPError."""

        async def watch(upstream: Upstream) -> str:
            await upstream.watch(uri)
            return upstream.server.name

        if uri not in self._watchers:
            self._watched_at[uri] = await self._first(uri, watch, see)
        elif not see(self._watched_at[uri]):
            raise _not_found(uri)
        self._watchers.setdefault(uri, {})[who] = tell

    async def unsubscribe(self, who: object, uri: str) -> None:
        watchers = self._watchers.get(uri, {})
        watchers.pop(who, None)
        if not watchers and self._watchers.pop(uri, None) is not None:
            self._watched_at.pop(uri, None)
            for upstream in self._there("resources"):
                await upstream.unwatch(uri)

    async def forget(self, who: object) -> None:
        """A session has ended."""
        for uri in [uri for uri, watchers in self._watchers.items() if who in watchers]:
            await self.unsubscribe(who, uri)

    async def on_news(self, server: ServerName, message: types.ServerNotification) -> None:
        """What a server said of its lists and resources, told to those whom it concerns."""
        upstream = next((each for each in self._there() if each.server.name == server), None)
        if upstream is None:
            return
        shelf = self._shelves.get(upstream, {})
        if isinstance(message, types.ResourceUpdatedNotification):
            await self._updated(str(message.params.uri))
        elif isinstance(message, types.PromptListChangedNotification):
            shelf.pop("prompts", None)
            await self.prompts_news.tell_all()
        elif isinstance(message, types.ResourceListChangedNotification):
            shelf.pop("resources", None)
            shelf.pop("resourceTemplates", None)
            await self.resources_news.tell_all()

    async def _updated(self, uri: str) -> None:
        told = [each for each in self._watchers.get(uri, {}).values() if each is not None]
        await self._bus.publish(ResourceUpdated(uri))
        await asyncio.gather(*(each(uri) for each in told), return_exceptions=True)

    async def _prompt(self, name: str, see: Sight) -> tuple[Upstream, JsonObject]:
        prompts = _named(await self._of("prompts", see))
        if name not in prompts:
            raise MCPError(types.INVALID_PARAMS, f"Prompt {name!r} not found", {"available": list(prompts)})
        return prompts[name]

    async def _first(self, uri: str, act: Callable[[Upstream], Awaitable[Any]], see: Sight) -> Any:
        """By the first server that does not refuse, those first that list the resource or a template of it."""
        error: MCPError | PegboardError | None = None
        for upstream in await self._holders(uri, see):
            try:
                return await act(upstream)
            except (MCPError, PegboardError) as refusal:
                error = error or refusal
        raise error or _not_found(uri)

    async def _holders(self, uri: str, see: Sight) -> list[Upstream]:
        """The server that lists it; else those with a template for it; else all, since not all that can be read is."""
        listed = [each for each, shelf in await self._of("resources", see) if any(one["uri"] == uri for one in shelf)]
        if listed:
            return listed[:1]
        templates = await self._of("resourceTemplates", see)
        fitting = [each for each, shelf in templates if any(fits(one["uriTemplate"], uri) for one in shelf)]
        return fitting[:1] or self._there("resources", see)

    def _there(self, capability: str | None = None, see: Sight = everything) -> list[Upstream]:
        within = self._within()
        return [
            each
            for each in self._upstreams()
            if see(each.server.name)
            and (within is None or each.server.name in within)
            and (capability is None or capability in each.capabilities)
        ]

    async def _of(self, kind: Kind, see: Sight) -> list[tuple[Upstream, Sequence[JsonObject]]]:
        """Each server's shelf of a kind; asked for once, and again when the server says that it changed."""
        tasks = {each: self._task(each, kind) for each in self._there(KINDS[kind].capability, see)}
        if tasks:
            await asyncio.wait(tasks.values(), timeout=PATIENCE)
        return [(each, task.result()) for each, task in tasks.items() if _succeeded(task)]

    def _task(self, upstream: Upstream, kind: Kind) -> asyncio.Task[Sequence[JsonObject]]:
        shelf = self._shelves.setdefault(upstream, {})
        if kind not in shelf or (shelf[kind].done() and not _succeeded(shelf[kind])):
            shelf[kind] = asyncio.create_task(self._read(upstream, kind))
        return shelf[kind]

    async def _read(self, upstream: Upstream, kind: Kind) -> Sequence[JsonObject]:
        return await self._contents.listed(upstream.server.name, kind, await _for_nobody(upstream, kind))


async def _for_nobody(upstream: Upstream, kind: Kind) -> Sequence[JsonObject]:
    """What is read for all is read for no client in particular."""
    ORIGIN.set(None)
    try:
        return await read_shelf(upstream, kind)
    except (MCPError, PegboardError) as error:
        LOGGER.warning("The %s of server %s could not be listed: %s", kind, upstream.server.name, error)
        raise


def _not_found(uri: str) -> MCPError:
    return MCPError(types.INVALID_PARAMS, "Resource not found", {"uri": uri})


def fits(template: str, uri: str) -> bool:
    try:
        return UriTemplate.parse(template).match(uri) is not None
    except InvalidUriTemplate:
        return False


def _succeeded(task: asyncio.Task[Any]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is None


def _named(shelves: Sequence[tuple[Upstream, Sequence[JsonObject]]]) -> Mapping[str, tuple[Upstream, JsonObject]]:
    """Prompts by the names they are listed under: their own, with the server's before it where it is taken (M11)."""
    names: dict[str, tuple[Upstream, JsonObject]] = {}
    for upstream, shelf in shelves:
        for prompt in shelf:
            name = prompt["name"]
            names[f"{upstream.server.name}_{name}" if name in names else name] = (upstream, prompt)
    return names
