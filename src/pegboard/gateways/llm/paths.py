"""Which paths are passed on to providers: those that name an upstream, and those that model APIs have."""

from __future__ import annotations

import re
from urllib.parse import unquote

from pegboard.errors import PegboardError

MODEL_PATHS = re.compile(
    r"/(v1|v1beta|v1alpha|upload/v1beta|upload/v1alpha)/."
    r"|/(chat/completions|completions|embeddings)/?$"
    r"|/(responses|models)(/|$)"
)
"""How paths begin that name no upstream and are a model API's: OpenAI's, with and without `/v1`, Anthropic's, Gemini's.

Everything else is answered with 404. What MCP clients ask for beside `/mcp` (`/sse`, `/register`, `/.well-known/…`) is
among that: it carries their tokens.
"""
DEEPEST_ESCAPE = 3
"""Times that a segment is unescaped: servers that do it twice have been seen."""
SEPARATORS = re.compile(r"[/\\;]")


class NoUpstream(PegboardError):  # noqa: N818
    """No upstream serves this path."""

    code = "no_upstream"
    http_status = 404


class UnsafePath(PegboardError):  # noqa: N818
    """A path that a provider could read as another one."""

    code = "unsafe_path"
    http_status = 400


def resolved(path: str) -> str:
    """The path without its dot segments (RFC 3986, 5.2.4), escaped ones included; every other byte as it came.

    Raises NoUpstream for a path that does not begin with a slash or climbs above the root, and UnsafePath for dot
    segments behind escaped separators.

    >>> resolved("/openai/v1/x/%2E%2e/models")
    '/openai/v1/models'
    """
    if not path.startswith("/"):  # appended to a provider's host it would make another host
        raise NoUpstream(f"There is no path {path!r}.", remedy="Paths begin with a slash.")
    if "." not in path and "%" not in path:
        return path
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


def is_model_path(path: str) -> bool:
    """Whether a path that names no upstream is a model API's."""
    return MODEL_PATHS.match(path) is not None


def _unescaped(segment: str) -> str:
    for _ in range(DEEPEST_ESCAPE):
        if "%" not in segment:
            break
        segment = unquote(segment)
    return segment
