"""One session with a server, from opening to end."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
from anyio.abc import TaskGroup
from mcp import Client, MCPError
from mcp.client._transport import TransportStreams
from mcp.shared.dispatcher import ProgressFnT
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import ValidationError

from pegboard.errors import ConfigError, PegboardError
from pegboard.flags import Flag
from pegboard.protocols import Listing
from pegboard.settings.secret_sources import SecretReader
from pegboard.settings.server_spec import ServerSpec
from pegboard.terminal import printable
from pegboard.upstreams.error_text import (
    TIMED_OUT,
    Redactor,
    described,
    missing_variables,
    sign_in_remedy,
    waits_for_sign_in,
)
from pegboard.upstreams.extension_requests import AnyNotification, client_extensions
from pegboard.upstreams.fleet_options import FleetOptions
from pegboard.upstreams.http_transport import NOT_REACHED, SIGN_IN, opened_client, session_streams
from pegboard.upstreams.message_streams import MonitoredStream, SendableMessages
from pegboard.upstreams.raw_requests import AnyRequest, ParameterHeaders, send_client_capabilities, untouched
from pegboard.upstreams.server_lists import read_listing
from pegboard.upstreams.server_requests import ProgressRelay, ServerRequests
from pegboard.upstreams.stateless_dispatcher import HandshakeEra, StatelessDispatcher, stateless
from pegboard.upstreams.subscriptions import ListChanges, ResourceSubscriptions
from pegboard.upstreams.task_streams import TaskStreams
from pegboard.upstreams.transport import StderrTail, open_transport

if TYPE_CHECKING:
    from pegboard.upstreams.oauth.bearer_auth import BearerAuth
    from pegboard.upstreams.oauth.token_exchange import ExchangedAuth

VERSION = version("pegboard")
"""Read at import, because reading it would block the event loop."""
US = types.Implementation(name="pegboard", version=VERSION)
CHECK_PAUSE = 0.5
"""Seconds between two checks of a server that cannot be reached while calls are in progress."""
LAST_ANSWERS = 1.0
"""Seconds for other calls in progress to get their answers after one learns that the session is gone."""
NEWS = (
    types.PromptListChangedNotification,
    types.ResourceListChangedNotification,
    types.ResourceUpdatedNotification,
)
ALL_OF_SAMPLING = types.SamplingCapability(
    context=types.SamplingContextCapability(), tools=types.SamplingToolsCapability()
)
"""Announced to every server; clients that lack a part are not asked for it."""
QUOTED_CHARACTERS = 80
STDERR_CHARACTERS = 1000

Listed = Callable[[Listing], Awaitable[None]]
Heard = Callable[[types.ServerNotification | AnyNotification], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionEnd:
    """How a connection ended. ``at_once``: reconnect immediately, without a report; ``final``: do not reconnect;
    ``signed_out``: reconnect when somebody has signed in."""

    reason: str = ""
    signed_out: bool = False
    opened: bool = False
    at_once: bool = False
    final: bool = False


class Connection:
    """A session with one server. ``protocol`` is the revision it spoke last, empty if unknown.

    ``heard`` is awaited with the server's notifications about its resources and prompts. ``user`` is the one whose
    credentials it uses, if the server wants some; empty for those that all callers share.
    """

    def __init__(
        self,
        spec: ServerSpec,
        conditions: FleetOptions,
        *,
        protocol: str,
        heard: Heard,
        user: str = "",
    ) -> None:
        self._user = user
        self.auth: BearerAuth | ExchangedAuth | None = None
        """What adds the tokens of a sign-in to its requests; None if there can be none."""
        self._heard = heard
        self._server_requests = ServerRequests(spec.name, conditions.clients)
        self._headers = ParameterHeaders()
        self._spec = spec
        self._conditions = conditions
        self._mode = "legacy" if spec.is_sse else mode_of(protocol)
        self._redacted = Redactor(spec, conditions.environment)
        self._subscriptions = ResourceSubscriptions(spec.name, self._redacted)
        self._task_streams = TaskStreams(spec.name, self._redacted)
        self._announcements = ListChanges(spec.name, self._redacted, conditions.limits, heard)
        self._stderr = StderrTail()
        self._watched: MonitoredStream | StatelessDispatcher | None = None
        self._client: Client | None = None
        self._opened = False
        self._agreed = False
        self._is_doubted = False
        self._tasks: TaskGroup | None = None
        self._calls = 0
        self._quiet = Flag()
        self._quiet.set()

    async def run(self, opened: Listed, listed: Listed) -> ConnectionEnd:
        """Connect, then await ``opened`` with the first listing and ``listed`` with later ones, until the session ends.

        Raises nothing: no failure of one server may affect the others.
        """
        try:
            async with self._open(opened) as client:
                await self._serve(client, listed)
        except ConfigError as error:
            return self._ended(self._redacted(str(error)), final=not self._spec.is_read_anew)
        except PegboardError as error:
            return self._ended_signed_out(error) or self._ended(self._redacted(str(error)))
        except _Late:
            return self._ended(self.too_late)
        except Exception as error:  # noqa: BLE001
            if signed_out := self._ended_signed_out(error):
                return signed_out
            another_era = not self._opened and self._mode == "legacy" and not self._spec.is_sse
            return self._ended(self._because(self._broke(described(error))), at_once=another_era)
        return self._ended(self._because(self._broke()))

    async def call(self, request: AnyRequest, seconds: float, progress: ProgressFnT | None) -> dict[str, Any]:
        """The unchanged result, after everything the server sent before it has been passed on.

        ``seconds`` limits the server's own time; the time that clients take to answer its questions does not count.
        Raises MCPError, and ValidationError for an invalid result.
        """
        client = self._opened_client()
        self._calls += 1
        self._quiet.clear()
        try:
            with self._server_requests.in_progress(seconds) as work:
                result = None
                with work.limit:
                    paced = None if progress is None else ProgressRelay(progress)
                    result = await untouched(client, request, None, work.reporting(paced))
                if result is None:
                    raise MCPError(types.REQUEST_TIMEOUT, TIMED_OUT)
                await work.drained()
                return result
        finally:
            self._calls -= 1
            if not self._calls:
                self._quiet.set()

    async def watch(self, uri: str) -> None:
        """Subscribe to changes of a resource. Raises MCPError if the server refuses."""
        await self._subscriptions.add(self._opened_client(), uri, self._conditions.connect_timeout)

    def close_stream(self, uri: str) -> None:
        """Close the stream that a `watch` has opened which was given up."""
        self._subscriptions.streams.close(uri)

    async def unwatch(self, uri: str) -> None:
        if self.over:
            return
        await self._subscriptions.remove(self._opened_client(), uri, self._conditions.connect_timeout)

    def watch_task(self, task: str) -> None:
        """Ask to hear of a task."""
        self._task_streams.add(self._opened_client(), task)

    def unwatch_task(self, task: str) -> None:
        self._task_streams.remove(task)

    async def tell_roots_changed(self) -> None:
        """Notify a server of the handshake era, which then asks for roots again; later ones ask only within
        requests."""
        client = self._client
        if client is None or self.over:  # then the client may have no session any more
            return
        if client.session.discover_result is None:
            with suppress(MCPError, anyio.ClosedResourceError, anyio.BrokenResourceError):  # then it asks the next time
                await client.session.send_notification(types.RootsListChangedNotification())

    def said(self, error: MCPError | ValidationError) -> str:
        """What the server said is wrong, without its secrets."""
        return self._redacted(described(error))

    def end(self, *, agreed: bool) -> None:
        """Make `run` return. ``agreed``: nothing is wrong with the server."""
        self._agreed = self._agreed or agreed
        if self._watched is not None:
            self._watched.ended.set()

    def check_alive(self) -> None:
        """Check that the server is alive after an answer did not come, or a request could not be sent; end the session
        if it does not respond in time."""
        if self._tasks is not None and self._watched is not None and not self._is_doubted:
            self._is_doubted = True
            self._tasks.start_soon(self._look_after, self._opened_client(), self._watched)

    @property
    def over(self) -> bool:
        """Whether the connection has ended, so that no request would be answered, although `run` has not returned."""
        return self._watched is not None and self._watched.ended.is_set()

    @property
    def too_late(self) -> str:
        """The reason reported when connecting took too long."""
        return self._because(f"No answer within {self._conditions.connect_timeout:g} s.")

    def _opened_client(self) -> Client:
        if self._client is None:
            raise RuntimeError("a connection is called between `opened` and its end")
        return self._client

    async def _on_message(self, message: object) -> None:
        await self._announcements.on_message(message)
        await self._server_requests.on_message(message)
        if isinstance(message, NEWS):
            await self._heard(message)

    @asynccontextmanager
    async def _open(self, opened: Listed) -> AsyncIterator[Client]:
        """Connect and list, within ``connect_timeout``."""
        seconds = self._conditions.connect_timeout
        introduced = self._introduced(await expanded_spec(self._spec, self._conditions, self._redacted.resolved))
        with anyio.CancelScope(deadline=anyio.current_time() + seconds) as limit:
            async with introduced as client:
                send_client_capabilities(client, self._headers)
                listing = await read_listing(self._spec.name, client, seconds, self._conditions.limits)
                self._headers.read(listing)
                limit.deadline = math.inf
                self._client, self._opened = client, True
                await opened(listing)
                del listing  # it would stay in memory as long as the connection
                yield client
        if limit.cancelled_caught:
            raise _Late

    @asynccontextmanager
    async def _introduced(self, spec: ServerSpec) -> AsyncIterator[Client]:
        """The SDK's client, once the server has introduced itself. On HTTP, without streams and tasks between requests
        if the server has no sessions."""
        if self._conditions.sign_ins is not None:
            self.auth = self._conditions.sign_ins.auth(spec, self._user)
        if self.auth is not None:
            self._redacted.tokens.append(self.auth.secrets)
        limits, environment = self._conditions.limits, self._conditions.environment
        if spec.url is None or spec.is_sse:
            streams = open_transport(spec, environment, self._stderr, limits, self.auth)
            async with self._made(self._monitored(streams), self._mode) as client:
                yield client
            return
        url, mode, pools, refused = spec.url, self._mode, self._conditions.pools, False
        http_client = partial(
            opened_client, spec.headers, limits=limits, credentials=spec.has_credentials, auth=self.auth
        )
        del spec  # it would stay in memory as long as the connection
        if mode != "legacy":
            async with http_client(pools=pools) as http:
                dispatcher = self._watched = stateless(url, http, limits, pools)
                dispatcher.doubt = self.check_alive
                client = self._made(_nowhere(), mode)
                try:
                    async with dispatcher.introduced(client):
                        yield client
                    return
                except HandshakeEra:
                    mode, refused = "legacy", http.discovery_refused
        async with http_client() as http:
            http.discovery_refused, http.fails_alone = refused, self._doubted
            async with self._made(self._monitored(session_streams(url, http, limits)), mode) as client:
                yield client

    def _doubted(self, error: Exception) -> bool:
        """Check a server of the handshake era that could not be reached; false before it has listed its tools."""
        if self._tasks is None or not isinstance(self._watched, MonitoredStream):
            return False
        self._watched.unreached = error
        self.check_alive()
        return True

    def _made(self, transport: AbstractAsyncContextManager[TransportStreams], mode: str) -> Client:
        return Client(
            transport,
            mode=mode,
            cache=None,
            message_handler=self._on_message,
            client_info=US,
            sampling_callback=self._server_requests.sampling,  # type: ignore[arg-type]  # it answers each request with its result
            sampling_capabilities=ALL_OF_SAMPLING,
            elicitation_callback=self._server_requests.elicitation,  # type: ignore[arg-type]
            list_roots_callback=self._server_requests.roots,  # type: ignore[arg-type]
            extensions=client_extensions(self._heard),
        )

    @asynccontextmanager
    async def _monitored(
        self, transport: AbstractAsyncContextManager[TransportStreams]
    ) -> AsyncIterator[TransportStreams]:
        async with transport as (read, write):
            self._watched = MonitoredStream(read)
            yield self._watched, SendableMessages(write)

    async def _serve(self, client: Client, listed: Listed) -> None:
        if self._watched is None:
            return

        async def listed_again(listing: Listing) -> None:
            self._headers.read(listing)
            await listed(listing)

        seconds = self._conditions.connect_timeout
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            if isinstance(self._watched, StatelessDispatcher):
                client.session._task_group = tasks
            try:
                with (
                    self._announcements.followed(tasks, client, seconds, listed_again),
                    self._subscriptions.streams.running(tasks),
                    self._task_streams.streams.running(tasks),
                ):
                    await self._watched.ended.wait()
                    with anyio.move_on_after(LAST_ANSWERS if self._agreed else 0):
                        await self._quiet.wait()
            finally:
                self._tasks = None
            tasks.cancel_scope.cancel()
        if isinstance(self._watched, StatelessDispatcher) and self._watched.error is not None:
            raise self._watched.error

    async def _look_after(self, client: Client, watched: MonitoredStream | StatelessDispatcher) -> None:
        """Calls in progress show that a server may be alive which cannot be reached just now: it is asked repeatedly
        then."""
        seconds = self._conditions.health_timeout
        end = anyio.current_time() + seconds
        while not await answers(client, watched, seconds):
            if not self._calls or anyio.current_time() + CHECK_PAUSE >= end:
                self._found_dead(watched)
                break
            await anyio.sleep(CHECK_PAUSE)
        else:
            watched.unreached = None
        self._is_doubted = False

    def _found_dead(self, watched: MonitoredStream | StatelessDispatcher) -> None:
        unreached = watched.unreached
        if unreached is None:
            seconds = self._conditions.health_timeout
            watched.broken = f"A call timed out, and then it did not respond for {seconds:g} s."
        elif isinstance(watched, StatelessDispatcher):
            watched.error = watched.unreached
        else:
            watched.broken = described(unreached)
        watched.ended.set()

    def _ended_signed_out(self, error: Exception) -> ConnectionEnd | None:
        if not waits_for_sign_in(error):
            return None
        reason = f"{SIGN_IN}. {sign_in_remedy(self._spec.name, SIGN_IN)}"
        return ConnectionEnd(reason=reason, opened=self._opened, signed_out=True)

    def _ended(self, reason: str, *, at_once: bool = False, final: bool = False) -> ConnectionEnd:
        return ConnectionEnd(reason=reason, opened=self._opened, at_once=at_once or self._agreed, final=final)

    def _broke(self, otherwise: str = "The connection broke.") -> str:
        return (self._watched.broken if self._watched else "") or otherwise

    def _because(self, what: str) -> str:
        """What happened, with the end of the server's stderr, and without its secrets."""
        garbage = self._redacted(self._watched.garbage if self._watched else "")[:QUOTED_CHARACTERS]
        printed = f" It printed to stdout what is not JSON-RPC: {garbage}." if garbage else ""
        stderr = self._redacted(self._stderr.text)[-STDERR_CHARACTERS:]
        last = f" Its stderr ends with: {stderr}" if stderr else ""
        missing = missing_variables(self._spec, self._conditions.environment, self._stderr.text)
        return printable(f"{self._redacted(what)}{printed}{last}{missing}")


async def expanded_spec(spec: ServerSpec, conditions: FleetOptions, values: set[str] | None = None) -> ServerSpec:
    """The spec with its variables, and with its secrets, which are read anew each time and added to ``values``.

    Raises ConfigError, or PegboardError if a secret cannot be read now.
    """
    if not spec.references:
        return spec.expanded(conditions.environment)
    secrets = SecretReader(conditions.environment, values=set() if values is None else values)
    return await asyncio.to_thread(_with_secrets, spec, conditions.environment, secrets)


def _with_secrets(spec: ServerSpec, environment: Mapping[str, str], secrets: SecretReader) -> ServerSpec:
    """An entry that is wrong anyway runs no command, and asks no keyring, each time that it is tried again."""
    spec.expanded(environment)
    return spec.expanded(environment, secrets)


def mode_of(protocol: str) -> str:
    """The SDK's mode for connecting to a server (M19).

    A server known to be of the handshake era is not probed again, unless connecting so fails, and then once. For a
    server of the 2026 era `server/discover` is not a probe but its introduction.
    """
    return "legacy" if protocol in HANDSHAKE_PROTOCOL_VERSIONS else "auto"


@asynccontextmanager
async def _nowhere() -> AsyncIterator[TransportStreams]:
    """In place of the streams of a client that has none."""
    raise RuntimeError("it has no streams")
    yield


class _Late(Exception):  # noqa: N818
    """The server did not introduce itself, or list its tools, in time."""


NO_SIGN_OF_LIFE = (types.REQUEST_TIMEOUT, types.CONNECTION_CLOSED)


async def answers(client: Client, watched: MonitoredStream | StatelessDispatcher, seconds: float) -> bool:
    """Whether the server sends anything within ``seconds`` after a health check; an error response counts too.

    The check is `ping` in the handshake era; 2026-07-28 has none, so `server/discover` is used, which is as cheap.
    """
    question: types.ClientRequest = types.DiscoverRequest() if client.session.discover_result else types.PingRequest()
    heard = watched.heard
    try:
        with anyio.fail_after(seconds):
            await untouched(client, question, seconds)
    except TimeoutError:
        return watched.heard > heard
    except MCPError as error:
        if error.message == NOT_REACHED and isinstance(watched, MonitoredStream):  # where such errors count as heard
            return False
        return error.code not in NO_SIGN_OF_LIFE or watched.heard > heard + 1
    except ValidationError:
        return True
    return True
