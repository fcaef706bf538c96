"""Where an HTTP request to the LLM gateway goes, and what its headers say."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote, urlencode

from starlette.types import Scope

from pegboard.errors import PegboardError
from pegboard.gateways.llm.formats.registry import is_model_path, key_parameters, provider_of
from pegboard.gateways.llm.proxy.model_upstream import Headers, ModelUpstream
from pegboard.gateways.llm.selection.policy_rules import WISH
from pegboard.protection import marking_headers

LOGGER = logging.getLogger(__name__)
KNOWN = ("k", "budget", "threshold", "never", "filter", "way-back", "results", "key", "conversation")
"""Known headers of model requests, without their prefix."""
OF_MCP = frozenset({"session", "exposure", "forwarded"})
"""Headers of the MCP gateway, which a client may send everywhere."""
MOST_LOGGED = 100
"""The most unknown names that are logged, as clients choose them."""
MOST_SHOWN = 5
USE = f"Known headers are {WISH}{', '.join(KNOWN)}."
DEEPEST_ESCAPE = 3
"""How often a segment is unescaped: some servers unescape twice."""
SEPARATORS = re.compile(r"[/\\;]")
UNRESERVED = re.compile(r"(?i)%(?:2[de]|3[0-9]|4[1-9a-f]|5[0-9af]|6[1-9a-f]|7[0-9ae])")
"""Escapes of letters, digits, `-`, `.`, `_` and `~`."""
SIGNATURE = b"AWS4-"
"""How an Authorization header of AWS Signature Version 4 begins."""
CONVERSATION = "conversation"
"""The header that names a conversation, without its prefix."""


class NoUpstream(PegboardError):  # noqa: N818
    """No upstream serves this path."""

    code = "no_upstream"
    http_status = 404


class UnsafePath(PegboardError):  # noqa: N818
    """A path that a provider could read as another one."""

    code = "unsafe_path"
    http_status = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The destination of a request: an upstream, and the path and query there."""

    upstream: ModelUpstream
    path: str
    query: str

    @property
    def whole(self) -> str:
        return f"{self.path}?{self.query}" if self.query else self.path

    @property
    def served(self) -> str:
        """The path at the provider, by which a request is read."""
        return self.upstream.served(self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestHeaders:
    """The headers of a request: those to forward, its wishes, and the coding of its body.

    ``conversation`` is the client's name for its conversation, if given. ``client`` are the headers that identify
    agents; none of them is a secret. ``is_signed``: a signature covers the body (AWS Signature Version 4).
    """

    headers: Headers
    wishes: Mapping[str, str]
    coding: str
    client: Mapping[str, str] = field(default_factory=dict)
    conversation: str = ""
    is_signed: bool = False


class UnknownHeaders:
    """Logs each unknown `x-pegboard-` header once; the request is served anyway."""

    def __init__(self) -> None:
        self._logged: set[str] = set()

    def warning(self, names: Iterable[str]) -> Headers:
        """The response header that lists the unknown ones among ``names``, which come without `x-pegboard-`."""
        unknown = sorted({name for name in names if name not in KNOWN and name not in OF_MCP})
        if not unknown:
            return []
        for name in unknown:
            if name not in self._logged and len(self._logged) < MOST_LOGGED:
                self._logged.add(name)
                LOGGER.warning("Requests have the unknown header %s%s. %s", WISH, name, USE)
        shown = ", ".join(WISH + name for name in unknown[:MOST_SHOWN])
        return [(b"x-pegboard-warning", f"unknown: {shown}. {USE}".encode("latin-1"))]


def target_of(scope: Scope, upstreams: Mapping[str, ModelUpstream]) -> Target:
    """The upstream that the path names, or, for the path of a model API, the first upstream of the request's format.

    Raises NoUpstream for any other path, and UnsafePath. The paths that MCP clients request besides `/mcp` (`/sse`,
    `/register`, `/.well-known/…`) are never forwarded: such requests carry MCP tokens.
    """
    path = resolved(_path(scope))
    query = scope.get("query_string", b"").decode("latin-1")
    name, _, rest = path[1:].partition("/")
    if name in upstreams:
        return Target(upstream=upstreams[name], path=f"/{rest}", query=query)
    provider = provider_of(path, header_names(scope["headers"]))
    for upstream in upstreams.values() if is_model_path(path) else ():
        if upstream.format == provider.name:
            return Target(upstream=upstream, path=path, query=query)
    raise NoUpstream(
        f"Nothing is served at {path!r}.",
        remedy=f"Model requests go to /NAME/…, with one of: {', '.join(upstreams) or 'none'}. MCP is at /mcp.",
    )


def resolved(path: str) -> str:
    """The path without its dot segments (RFC 3986, 5.2.4), including escaped ones, and without escapes of characters
    that need none (6.2.2.2); every other byte is unchanged.

    Raises NoUpstream for a path that does not begin with a slash or climbs above the root, and UnsafePath for dot
    segments behind escaped separators.

    >>> resolved("/openai/v1/x/%2E%2e/models")
    '/openai/v1/models'
    """
    if not path.startswith("/"):  # appended to a provider's host, it would change the host
        raise NoUpstream(f"There is no path {path!r}.", remedy="Paths begin with a slash.")
    if "." not in path and "%" not in path:
        return path
    path = UNRESERVED.sub(lambda escape: unquote(escape.group()), path)
    kept: list[str] = []
    segments = path[1:].split("/")
    for place, segment in enumerate(segments):
        plain = _unescaped(segment)
        if plain == ".." and not kept:
            raise NoUpstream(f"There is no path {path!r}.", remedy="It climbs above the root.")
        if plain == "..":
            kept.pop()
        elif plain != ".":
            if ".." in SEPARATORS.split(plain):
                raise UnsafePath(f"The path {path!r} hides `..`.", remedy="Send it without dot segments.")
            kept.append(segment)
        if plain in (".", "..") and place == len(segments) - 1:
            kept.append("")
    return "/" + "/".join(kept)


def header_names(headers: Headers) -> frozenset[bytes]:
    """The names in lowercase."""
    return frozenset(name.lower() for name, _ in headers)


def parsed_headers(headers: Headers) -> RequestHeaders:
    """The parsed headers. Pegboard's own headers are not forwarded."""
    kept: Headers = []
    wishes: dict[str, str] = {}
    client: dict[str, str] = {}
    coding, signed = "", False
    for name, value in headers:
        lower = name.lower().decode("latin-1")
        if lower.startswith(WISH):
            wishes[lower.removeprefix(WISH)] = value.decode("latin-1")
            continue
        if lower == "content-encoding":
            coding = value.decode("latin-1")
        if lower == "authorization" and value.startswith(SIGNATURE):
            signed = True
        if lower in marking_headers():
            client[lower] = value.decode("latin-1")
        kept.append((name, value))
    return RequestHeaders(
        headers=kept,
        conversation=wishes.pop(CONVERSATION, ""),
        wishes=wishes,
        coding=coding,
        client=client,
        is_signed=signed,
    )


def without_key(query: str) -> tuple[str, str | None]:
    """The query without the key that clients of some providers put there, and that key."""
    pairs, keys = parse_qsl(query, keep_blank_values=True), key_parameters()
    key = next((value for name, value in pairs if name in keys), None)
    return (query, None) if key is None else (urlencode([pair for pair in pairs if pair[0] not in keys]), key)


def _path(scope: Scope) -> str:
    """The path as received, with its escapes."""
    raw: bytes | None = scope.get("raw_path")
    return raw.partition(b"?")[0].decode("latin-1") if raw else str(scope["path"])


def _unescaped(segment: str) -> str:
    for _ in range(DEEPEST_ESCAPE):
        if "%" not in segment:
            break
        segment = unquote(segment)
    return segment
