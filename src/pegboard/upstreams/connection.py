"""One session of a server, from its opening to its end."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import anyio
import mcp_types as types
from mcp import Client, MCPError
from mcp.client._transport import TransportStreams
from mcp.shared.dispatcher import ProgressFnT
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from pegboard.errors import ConfigError, PegboardError
from pegboard.seams import Listing
from pegboard.server_spec import ServerSpec
from pegboard.upstreams.announcements import Announcements
from pegboard.upstreams.asking import Asked
from pegboard.upstreams.conditions import Conditions
from pegboard.upstreams.explained import TIMED_OUT, Redactor, described
from pegboard.upstreams.health import answers
from pegboard.upstreams.listing import read_listing, untouched
from pegboard.upstreams.pacing import Paced
from pegboard.upstreams.speaking import Headers, speak_for_clients
from pegboard.upstreams.subscriptions import Subscriptions
from pegboard.upstreams.transport import StderrTail, Watched, open_transport

VERSION = version("pegboard")
"""Read with this module, and not on an event loop."""
LAST_ANSWERS = 1.0
"""Seconds for other calls under way to get their own answers when one was told that the session is gone."""
NEWS = (
    types.PromptListChangedNotification,
    types.ResourceListChangedNotification,
    types.ResourceUpdatedNotification,
)
ALL_OF_SAMPLING = types.SamplingCapability(
    context=types.SamplingContextCapability(), tools=types.SamplingToolsCapability()
)
"""What a client lacks of it, it is not asked for."""
QUOTED_CHARACTERS = 80
WORDS_CHARACTERS = 1000

Listed = Callable[[Listing], Awaitable[None]]
Heard = Callable[[types.ServerNotification], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a connection ended. ``at_once``: it need not be told, and the next may follow; ``final``: none should."""

    reason: str = ""
    opened: bool = False
    at_once: bool = False
    final: bool = False


class Connection:
    """A session with one server. ``protocol`` is the revision that it spoke last, empty where that is not known.

    ``heard`` is awaited with what the server says of its resources and prompts.
    """

    def __init__(
        self,
        spec: ServerSpec,
        conditions: Conditions,
        *,
        protocol: str,
        heard: Heard,
    ) -> None:
        self._heard = heard
        self._asked = Asked(spec.name)
        self._subscriptions = Subscriptions(spec.name)
        self._headers = Headers()
        self._spec = spec
        self._conditions = conditions
        self._mode = mode_of(protocol)
        self._redacted = Redactor(spec, conditions.environment)
        self._announcements = Announcements(spec.name, self._redacted)
        self._stderr = StderrTail()
        self._watched: Watched | None = None
        self._client: Client | None = None
        self._opened = False
        self._agreed = False
        self._doubted = asyncio.Event()
        self._calls = 0
        self._quiet = asyncio.Event()
        self._quiet.set()

    async def run(self, opened: Listed, listed: Listed) -> Ended:
        """Connect, await ``opened`` with the first listing and ``listed`` with those that follow, until it is over.

        Raises nothing: whatever one server provokes, the others live.
        """
        try:
            async with self._open() as (client, listing):
                await opened(listing)
                await self._serve(client, listed)
        except ConfigError as error:
            return self._ended(self._redacted(str(error)), final=True)
        except PegboardError as error:
            return self._ended(self._redacted(str(error)))
        except _Late:
            return self._ended(self.too_late)
        except Exception as error:  # noqa: BLE001
            another_era = not self._opened and self._mode == "legacy"
            return self._ended(self._because(self._broke(described(error))), at_once=another_era)
        return self._ended(self._because(self._broke()))

    async def call(self, request: types.ClientRequest, seconds: float, progress: ProgressFnT | None) -> dict[str, Any]:
        """The result, untouched, once what the server said before it has been passed on.

        ``seconds`` are the server's own: it is not held to account for the time that others take to answer it. Raises
        MCPError, and ValidationError for what is no result.
        """
        client = self._opened_client()
        self._calls += 1
        self._quiet.clear()
        try:
            with self._asked.working(seconds) as work:
                with work.limit:
                    paced = None if progress is None else Paced(progress)
                    result = await untouched(client, request, None, work.reporting(paced))
                    await work.said()
                    return result
                raise MCPError(types.REQUEST_TIMEOUT, TIMED_OUT)
        finally:
            self._calls -= 1
            if not self._calls:
                self._quiet.set()

    async def watch(self, uri: str) -> None:
        """Hear when a resource changes. Raises MCPError where the server will not say."""
        await self._subscriptions.add(self._opened_client(), uri, self._conditions.connect_timeout)

    async def unwatch(self, uri: str) -> None:
        await self._subscriptions.remove(self._opened_client(), uri, self._conditions.connect_timeout)

    def end(self, *, agreed: bool) -> None:
        """Let `run` return. ``agreed``: nothing is wrong with the server."""
        self._agreed = self._agreed or agreed
        if self._watched is not None:
            self._watched.ended.set()

    def doubt(self) -> None:
        """It owes an answer: if it does not say in time that it is there, it is over."""
        self._doubted.set()

    @property
    def over(self) -> bool:
        """Nothing that is sent now would be answered, although `run` has not returned."""
        return self._watched is not None and self._watched.ended.is_set()

    @property
    def too_late(self) -> str:
        """Why it is given up when its time is over."""
        return self._because(f"No answer within {self._conditions.connect_timeout:g} s.")

    def _opened_client(self) -> Client:
        if self._client is None:
            raise RuntimeError("a connection is called between `opened` and its end")
        return self._client

    async def _on_message(self, message: object) -> None:
        await self._announcements.on_message(message)
        await self._asked.on_message(message)
        if isinstance(message, NEWS):
            await self._heard(message)

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[tuple[Client, Listing]]:
        """Introduced and listed, within the time a server has for it."""
        seconds = self._conditions.connect_timeout
        client = Client(
            self._transport(self._spec.expanded(self._conditions.environment)),
            mode=self._mode,
            cache=None,
            message_handler=self._on_message,
            client_info=types.Implementation(name="pegboard", version=VERSION),
            sampling_callback=self._asked.sampling,  # type: ignore[arg-type]  # it answers each request with its result
            sampling_capabilities=ALL_OF_SAMPLING,
            elicitation_callback=self._asked.elicitation,  # type: ignore[arg-type]
            list_roots_callback=self._asked.roots,  # type: ignore[arg-type]
        )
        with anyio.CancelScope(deadline=anyio.current_time() + seconds) as limit:
            async with client:
                speak_for_clients(client, self._headers)
                listing = await read_listing(client, seconds)
                self._headers.read(listing)
                limit.deadline = math.inf
                self._client, self._opened = client, True
                yield client, listing
        if limit.cancelled_caught:
            raise _Late

    @asynccontextmanager
    async def _transport(self, spec: ServerSpec) -> AsyncIterator[TransportStreams]:
        limit = self._conditions.result_limit
        async with open_transport(spec, self._conditions.environment, self._stderr, limit=limit) as (read, write):
            self._watched = Watched(read)
            yield self._watched, write

    async def _serve(self, client: Client, listed: Listed) -> None:
        if self._watched is None:
            return

        async def listed_again(listing: Listing) -> None:
            self._headers.read(listing)
            await listed(listing)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._announcements.follow, client, self._conditions.connect_timeout, listed_again)
            tasks.start_soon(self._subscriptions.follow, client)
            tasks.start_soon(self._look_after, client, self._watched)
            await self._watched.ended.wait()
            with anyio.move_on_after(LAST_ANSWERS if self._agreed else 0):
                await self._quiet.wait()
            tasks.cancel_scope.cancel()

    async def _look_after(self, client: Client, watched: Watched) -> None:
        seconds = self._conditions.health_timeout
        while await self._doubted.wait():
            if not await answers(client, watched, seconds):
                watched.broken = f"It let a call time out, and then said nothing for {seconds:g} s."
                watched.ended.set()
            self._doubted.clear()

    def _ended(self, reason: str, *, at_once: bool = False, final: bool = False) -> Ended:
        return Ended(reason=reason, opened=self._opened, at_once=at_once or self._agreed, final=final)

    def _broke(self, otherwise: str = "The connection broke.") -> str:
        return (self._watched.broken if self._watched else "") or otherwise

    def _because(self, what: str) -> str:
        """What happened, with the last words of the server's stderr, and without its secrets."""
        garbage = self._redacted(self._watched.garbage if self._watched else "")[:QUOTED_CHARACTERS]
        said = f" It printed to stdout what is not JSON-RPC: {garbage}." if garbage else ""
        words = self._redacted(self._stderr.text)[-WORDS_CHARACTERS:]
        last = f" Its last words: {words}" if words else ""
        return f"{self._redacted(what)}{said}{last}"


def mode_of(protocol: str) -> str:
    """How the SDK is to greet a server (M19).

    One of the handshake era is not asked again whether it is one; where that fails it is, once. To one of the 2026 era
    `server/discover` is no such question, but how it introduces itself.
    """
    return "legacy" if protocol in HANDSHAKE_PROTOCOL_VERSIONS else "auto"


class _Late(Exception):  # noqa: N818
    """The server did not introduce itself, or list its tools, in its time."""
