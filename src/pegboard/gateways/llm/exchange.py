"""One HTTP request to the LLM gateway: where it goes, and what its headers say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from urllib.parse import parse_qsl, urlencode

from starlette.types import Scope

from pegboard.errors import PegboardError
from pegboard.gateways.llm.policies import WISH
from pegboard.gateways.llm.upstream import Headers, ModelUpstream
from pegboard.protected import marking_headers
from pegboard.settings.llm import Format

SPOKEN_BY: Sequence[tuple[bytes, Format]] = (
    (b"anthropic-version", "anthropic"),
    (b"x-goog-api-key", "gemini"),
    (b"x-goog-api-client", "gemini"),
)
"""Headers that only one provider's clients send."""
PATHS_OF: Sequence[tuple[str, Format]] = (("/v1beta/", "gemini"), ("/v1/messages", "anthropic"))
"""How paths begin that only one provider has."""
CONVERSATION = "conversation"
"""The header of ours, without its beginning, that names a conversation."""


class NoUpstream(PegboardError):  # noqa: N818
    code = "no_upstream"
    http_status = 404


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where a request goes: an upstream, and there a path, with its query."""

    upstream: ModelUpstream
    path: str
    query: str

    @property
    def whole(self) -> str:
        return f"{self.path}?{self.query}" if self.query else self.path


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """The headers of a request: those that go on, what it wishes of us, and the coding of its body.

    ``conversation`` is what the client calls the conversation that it is part of, if it says so. ``client`` are the
    headers by which agents are told; none of them is a secret.
    """

    headers: Headers
    wishes: Mapping[str, str]
    coding: str
    client: Mapping[str, str] = field(default_factory=dict)
    conversation: str = ""


def target_of(scope: Scope, upstreams: Mapping[str, ModelUpstream]) -> Target:
    """The upstream that the path names, else the first of the format that the request speaks. Raises NoUpstream."""
    path = _path(scope)
    if not path.startswith("/"):  # behind a provider's host it would be another host
        raise NoUpstream(f"There is no path {path!r}.", remedy="Paths begin with a slash.")
    query = scope.get("query_string", b"").decode("latin-1")
    name, _, rest = path[1:].partition("/")
    if name in upstreams:
        return Target(upstream=upstreams[name], path=f"/{rest}", query=query)
    spoken = format_of(path, scope["headers"])
    for upstream in upstreams.values():
        if upstream.format == spoken:
            return Target(upstream=upstream, path=path, query=query)
    raise NoUpstream(
        f"Nothing is served at {path!r}.",
        remedy=f"Model requests go to /NAME/…, with one of: {', '.join(upstreams) or 'none'}. MCP is at /mcp.",
    )


def format_of(path: str, headers: Headers) -> Format:
    """What a request speaks, by headers and paths that only one provider has; else OpenAI's, as so many do."""
    names = {name.lower() for name, _ in headers}
    by_header = (format_ for name, format_ in SPOKEN_BY if name in names)
    by_path = (format_ for start, format_ in PATHS_OF if path.startswith(start))
    return next(chain(by_header, by_path), "openai")


def said_in(headers: Headers) -> Said:
    """Headers for us are no others' business."""
    kept: Headers = []
    wishes: dict[str, str] = {}
    client: dict[str, str] = {}
    coding = ""
    for name, value in headers:
        lower = name.lower().decode("latin-1")
        if lower.startswith(WISH):
            wishes[lower.removeprefix(WISH)] = value.decode("latin-1")
            continue
        if lower == "content-encoding":
            coding = value.decode("latin-1")
        if lower in marking_headers():
            client[lower] = value.decode("latin-1")
        kept.append((name, value))
    return Said(headers=kept, conversation=wishes.pop(CONVERSATION, ""), wishes=wishes, coding=coding, client=client)


def without_key(query: str) -> tuple[str, str | None]:
    """The query without the key that Gemini's clients may put there, and that key."""
    pairs = parse_qsl(query, keep_blank_values=True)
    key = next((value for name, value in pairs if name == "key"), None)
    return (query, None) if key is None else (urlencode([pair for pair in pairs if pair[0] != "key"]), key)


def _path(scope: Scope) -> str:
    """As it came, with its escapes."""
    raw: bytes | None = scope.get("raw_path")
    return raw.partition(b"?")[0].decode("latin-1") if raw else str(scope["path"])
