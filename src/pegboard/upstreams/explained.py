"""What went wrong with a server, in sentences that hold no secret."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import mcp_types as types
from mcp import MCPError
from pydantic import ValidationError

from pegboard.errors import PegboardError, UpstreamError
from pegboard.server_spec import SAFE, ServerSpec
from pegboard.upstreams.substitutes import UNPARSED, Size
from pegboard.upstreams.web import BROKE_OFF, NO_ANSWER, REFUSED, SIGN_IN

WHY_CHARACTERS = 200
NAME = re.compile(r"\b[A-Z][A-Z0-9_]{2,63}\b")
MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Redactor:
    """Blanks out what a server's configuration keeps secret (M30)."""

    spec: ServerSpec
    environment: Mapping[str, str]

    def __call__(self, text: str) -> str:
        for secret in sorted(self.spec.secrets(self.environment), key=len, reverse=True):
            text = text.replace(secret, "***")
        return text


def missing_variables(spec: ServerSpec, environment: Mapping[str, str], words: str) -> str:
    """What to do where a server speaks of variables that are set here, and that it is not given; else nothing."""
    given = {*SAFE, *spec.env}
    named = [name for name in NAME.findall(words) if name in environment and name not in given]
    if spec.is_http or spec.inherit_env or not named:
        return ""
    names = list(dict.fromkeys(named))[:MOST_NAMED]
    put = ", ".join(f'"{name}": "${{{name}}}"' for name in names)
    return f' It speaks of {", ".join(names)}, which it is not given: write "env": {{{put}}} in its entry.'


def described(error: BaseException) -> str:
    """One sentence an error. A closed connection before the first answer is a program that ended."""
    return " ".join(_sentence(each) for each in _leaves(error))


def _sentence(error: BaseException) -> str:
    if isinstance(error, PegboardError):
        return str(error)
    if isinstance(error, MCPError):
        closed = error.code == types.CONNECTION_CLOSED
        return "It ended, or closed the connection, before it answered." if closed else f"{error.message}."
    return f"{type(error).__name__}: {error}."


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if not isinstance(error, BaseExceptionGroup):
        yield error
        return
    for each in error.exceptions:
        yield from _leaves(each)


class ConnectionLost(UpstreamError):  # noqa: N818
    """The connection ended during a call."""


class AnswerLost(UpstreamError):  # noqa: N818
    """The answer did not come, or not whole, although the connection stands: the server may be in trouble."""


class NotCarriedOut(UpstreamError):  # noqa: N818
    """The server has certainly not done the work: the call never reached it, or it refused to hear it."""


class SessionExpired(NotCarriedOut):
    """An HTTP server forgot our session: connect again and retry once (M14)."""


TIMED_OUT = "The request timed out"
UNREADABLE = (UNPARSED, "Failed to parse SSE message: ", "SSE stream failed: ")
"""How the SDK begins what it says of an answer that it could not read."""
BROKEN_OFF = "SSE stream ended"
UNKNOWN_EFFECT = "Whether the call took effect is not known."
UNAUTHORIZED: Mapping[str, str] = {
    SIGN_IN: "Leave it to the client, or give it a token in the headers of its entry.",
    REFUSED: "Give its entry a token that holds.",
}
"""What to do about a server that answers 401."""


def failed_call(error: MCPError | ValidationError, server: str, tool: str, seconds: float) -> Exception:
    """Why a call that had ``seconds`` failed, as our own error; what the server itself said stays as it is (M8)."""
    if isinstance(error, ValidationError):
        return UpstreamError(
            server,
            f"Server {server!r} answered {tool!r} with something that is no tool result.",
            remedy="Report it to the server's authors.",
        )
    if isinstance(error.data, Size):
        return _too_large(server, tool, f"{error.data.bytes:,} bytes, and {error.data.limit:,} are allowed")
    match error.code, error.message:
        case types.CONNECTION_CLOSED, "Connection closed":
            return ConnectionLost(
                server,
                f"Server {server!r} closed the connection during the call.",
                remedy="It is being restarted; whether the call took effect is not known.",
            )
        case types.REQUEST_TIMEOUT, message if message == TIMED_OUT:
            return AnswerLost(
                server,
                f"Server {server!r} did not answer within {seconds:g} s.",
                remedy="Raise call_timeout, or ask for less.",
            )
        case types.INVALID_REQUEST, message if message in UNAUTHORIZED:
            return NotCarriedOut(server, f"Server {server!r}: {message}.", remedy=UNAUTHORIZED[message])
        case types.INVALID_REQUEST, "Session terminated":
            return SessionExpired(server, f"Server {server!r} forgets its sessions at once.", remedy="Try again later.")
        case types.CONNECTION_CLOSED, message if message == NO_ANSWER or message.startswith(BROKEN_OFF):
            return AnswerLost(server, f"Server {server!r} broke off its answer to {tool!r}.", remedy=UNKNOWN_EFFECT)
        case ((types.CONNECTION_CLOSED | types.PARSE_ERROR), message) if message.startswith(UNREADABLE):
            return _unreadable(server, tool, message)
    return error


def _unreadable(server: str, tool: str, message: str) -> UpstreamError:
    why = next(message.removeprefix(each) for each in UNREADABLE if message.startswith(each)).rstrip(".")
    if why == BROKE_OFF:
        return AnswerLost(server, f"Server {server!r} broke off its answer to {tool!r}.", remedy=UNKNOWN_EFFECT)
    if "byte limit" in why or "result_limit" in why:
        return _too_large(server, tool, "more than is allowed")
    why = "it is no JSON-RPC answer" if "validation error" in why else why[:WHY_CHARACTERS]
    return UpstreamError(
        server,
        f"Server {server!r} answered {tool!r} with what cannot be read: {why}.",
        remedy="Report it to the server's authors.",
    )


def _too_large(server: str, tool: str, how_much: str) -> UpstreamError:
    return UpstreamError(
        server,
        f"Server {server!r} answered {tool!r} with {how_much}.",
        remedy="Ask for less, or raise result_limit. The call was carried out.",
    )
