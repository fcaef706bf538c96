"""Model providers as upstreams: sends requests and returns answers unchanged."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from io import BytesIO
from types import SimpleNamespace

import aiohttp
from yarl import URL

from pegboard.errors import ConfigError, UpstreamError
from pegboard.gateways.llm.formats.registry import key_headers, provider_named
from pegboard.settings.llm import Format, UpstreamSettings
from pegboard.settings.secret_sources import SecretReader
from pegboard.settings.server_spec import Expander

Headers = list[tuple[bytes, bytes]]
Body = bytes | AsyncIterator[bytes] | None

HOP_BY_HOP = frozenset(
    {b"connection", b"keep-alive", b"proxy-connection", b"proxy-authenticate", b"proxy-authorization"}
    | {b"te", b"trailer", b"transfer-encoding", b"upgrade", b"host", b"content-length", b"expect"}
)
"""Hop-by-hop headers, including the `Expect` header, which the server itself answers."""
FIRST_REST = 0.1
"""Seconds before the first retry of a connection; each further retry waits twice as long."""

MOST_AT_ONCE = 512 * 1024
STALE_SECONDS = 1.0
"""Seconds within which a kept connection turns out to be closed by the other end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A provider's answer: status, headers, and the body in chunks."""

    status: int
    headers: Headers
    pieces: AsyncIterator[bytes]


@dataclass(slots=True, kw_only=True)
class Attempt:
    """One attempt to send a request."""

    started: float
    reused: bool = False

    def was_stale(self, error: Exception) -> bool:
        """Whether the provider had closed this idle connection before it saw the request."""
        soon = asyncio.get_running_loop().time() - self.started < STALE_SECONDS
        return self.reused and soon and _broke(error)


class ModelUpstream:
    """One provider. All requests share its pooled connections (M16). Use it within `opened`."""

    def __init__(self, name: str, settings: UpstreamSettings, environment: Mapping[str, str] | None = None) -> None:
        """Raises ConfigError if an environment variable is not set."""
        self.name = name
        self.format: Format = settings.format
        known = os.environ if environment is None else environment
        expand = Expander(f"The upstream {name!r}", known, ".", SecretReader(known))
        self._settings = settings
        self._base = settings.url
        address = URL(settings.url)
        self._root = address.raw_path.rstrip("/")
        self.host, self.port = address.host or "", address.port or 0
        self._own = {key.lower().encode(): (expand(value) or "").encode() for key, value in settings.headers.items()}
        self._key = _key(name, settings, known)
        self._http: aiohttp.ClientSession | None = None

    @property
    def has_key(self) -> bool:
        """Whether the gateway's key replaces the caller's."""
        return self._key is not None

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[ModelUpstream]:
        chosen = self._settings
        connector = aiohttp.TCPConnector(limit=chosen.connections, keepalive_timeout=75)
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=chosen.connect_timeout, connect=None, sock_read=chosen.read_timeout
        )
        async with aiohttp.ClientSession(
            connector=connector,
            timeout=timeout,
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            trace_configs=[_noting_reuse()],
        ) as self._http:
            yield self
        self._http = None

    @asynccontextmanager
    async def send(self, method: str, target: str, headers: Headers, body: Body) -> AsyncIterator[Answer]:
        """The provider's answer; leaving the context early closes the connection.

        ``target`` is the path and query to send. Raises UpstreamError if there is no answer.
        """
        response = await self._response(method, target, headers, body)
        try:
            yield Answer(status=response.status, headers=_passed(response.raw_headers), pieces=self._pieces(response))
        finally:
            response.release() if response.content.at_eof() else response.close()

    async def _response(self, method: str, target: str, headers: Headers, body: Body) -> aiohttp.ClientResponse:
        if self._http is None:
            raise RuntimeError("An upstream is used within `opened`")
        url = URL(self._address(target), encoded=True)
        given = [(name.decode("latin-1"), _text(value)) for name, value in self._dressed(headers, body)]
        tries = 0
        while True:
            attempt = Attempt(started=asyncio.get_running_loop().time())
            try:
                return await self._http.request(
                    method,
                    url,
                    headers=given,
                    data=_sent(body),
                    allow_redirects=False,
                    skip_auto_headers=SKIPPED,
                    trace_request_ctx=attempt,
                )
            except (aiohttp.ClientConnectorError, aiohttp.ServerTimeoutError, aiohttp.ClientError, OSError) as error:
                if attempt.was_stale(error) and isinstance(body, bytes | None):
                    continue  # each attempt removes one connection from the pool, so this ends
                if tries >= self._settings.retries or not _may_repeat(error, method, body):
                    raise self._failed(error) from error
            await asyncio.sleep(FIRST_REST * 2**tries)
            tries += 1

    def served(self, path: str) -> str:
        """The whole path of a request for ``path``: that of the upstream's address may name a model, too."""
        return self._root + self._unversioned(path) if self._root else path

    def _address(self, target: str) -> str:
        return self._base + self._unversioned(target)

    def _unversioned(self, target: str) -> str:
        """Removes a repeated version: clients add it to an address without one, and the upstream's address often ends
        with it."""
        version = self._settings.version
        repeated = version and target.startswith((f"{version}/", f"{version}?"))
        return target.removeprefix(version) if repeated else target

    async def _pieces(self, response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        """Chunks as they arrive (P27)."""
        try:
            async for piece in response.content.iter_any():
                yield piece
        except (aiohttp.ClientError, OSError) as error:
            raise self._failed(error) from error

    def _dressed(self, headers: Headers, body: Body) -> Headers:
        """The headers to send: the caller's, with the gateway's replacing those of the same name.

        A body that passes unread keeps the caller's Content-Length.
        """
        ours = dict(self._own)
        if self._key is not None:
            name, value = self._key
            ours[name] = value
        hop = HOP_BY_HOP if isinstance(body, bytes | None) else HOP_BY_HOP - {b"content-length"}
        dropped = hop | ours.keys() | (frozenset(key_headers()) if self._key is not None else frozenset())
        dropped |= _of_the_connection(headers)
        return [each for each in headers if each[0].lower() not in dropped] + list(ours.items())

    def _failed(self, error: Exception) -> UpstreamError:
        """Names the upstream and nothing of what was sent."""
        if isinstance(error, aiohttp.ServerTimeoutError | TimeoutError):
            return UpstreamTimeout(self.name, f"The upstream {self.name!r} did not answer in time.")
        reason = type(error.__cause__ or error).__name__
        return UpstreamError(
            self.name, f"The upstream {self.name!r} cannot be reached: {reason}.", remedy="Check its url."
        )


class UpstreamTimeout(UpstreamError):  # noqa: N818
    http_status = 504


SKIPPED = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")
"""Headers that the HTTP library would add on its own."""


def _key(name: str, settings: UpstreamSettings, environment: Mapping[str, str]) -> tuple[bytes, bytes] | None:
    if settings.api_key_env is None:
        return None
    value = environment.get(settings.api_key_env)
    if not value:
        raise ConfigError(
            f"The upstream {name!r} reads its key from {settings.api_key_env}, which is not set.",
            remedy="Set the variable, or remove api_key_env, so that callers send their own keys.",
        )
    auth = provider_named(settings.format).auth
    return auth.header, auth.before + value.encode()


def _sent(body: Body) -> object:
    """Sends a large body in chunks: as a whole it would block the event loop."""
    return BytesIO(body) if isinstance(body, bytes) and len(body) > MOST_AT_ONCE else body


def _may_repeat(error: Exception, method: str, body: Body) -> bool:
    """Whether to retry: yes if nothing was sent or the method is safe; no if the body was consumed."""
    if not isinstance(body, bytes | None):
        return False
    if isinstance(error, aiohttp.ClientConnectorError):
        return True
    return method in ("GET", "HEAD") and _broke(error)


def _broke(error: Exception) -> bool:
    """Whether an established connection broke."""
    return isinstance(error, aiohttp.ServerDisconnectedError | aiohttp.ClientOSError | ConnectionError)


def _noting_reuse() -> aiohttp.TraceConfig:
    """Marks attempts that use a pooled connection."""

    async def note(_session: aiohttp.ClientSession, context: SimpleNamespace, _params: object) -> None:
        context.trace_request_ctx.reused = True

    tracing = aiohttp.TraceConfig()
    tracing.on_connection_reuseconn.append(note)
    return tracing


def _passed(headers: tuple[tuple[bytes, bytes], ...]) -> Headers:
    """An answer's headers without hop-by-hop headers; its length is kept, as its bytes are."""
    dropped = HOP_BY_HOP - {b"content-length"} | _of_the_connection(headers)
    return [(name, value) for name, value in headers if name.lower() not in dropped]


def _of_the_connection(headers: Iterable[tuple[bytes, bytes]]) -> set[bytes]:
    """The headers that the Connection header names, which are not forwarded (RFC 9110, 7.6.1)."""
    return {
        word.strip().lower() for name, value in headers if name.lower() == b"connection" for word in value.split(b",")
    }


def _text(value: bytes) -> str:
    """A header value for the HTTP library, which writes UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")
