"""What went wrong with a server, in sentences that hold no secret."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import mcp_types as types
from mcp import MCPError
from pydantic import ValidationError

from pegboard.errors import PegboardError, UpstreamError
from pegboard.server_spec import ServerSpec


@dataclass(frozen=True, slots=True)
class Redactor:
    """Blanks out what a server's configuration keeps secret (M30)."""

    spec: ServerSpec
    environment: Mapping[str, str]

    def __call__(self, text: str) -> str:
        for secret in sorted(self.spec.secrets(self.environment), key=len, reverse=True):
            text = text.replace(secret, "***")
        return text


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


class NotCarriedOut(UpstreamError):  # noqa: N818
    """The server has certainly not done the work: the call never reached it, or it refused to hear it."""


class SessionExpired(NotCarriedOut):
    """An HTTP server forgot our session: connect again and retry once (M14)."""


def failed_call(error: MCPError | ValidationError, server: str, tool: str, seconds: float) -> Exception:
    """Why a call that had ``seconds`` failed, as our own error; what the server itself said stays as it is (M8)."""
    if isinstance(error, ValidationError):
        return UpstreamError(
            server,
            f"Server {server!r} answered {tool!r} with something that is no tool result.",
            remedy="Report it to the server's authors.",
        )
    match error.code, error.message:
        case types.CONNECTION_CLOSED, "Connection closed":
            return ConnectionLost(
                server,
                f"Server {server!r} closed the connection during the call.",
                remedy="It is being restarted; whether the call took effect is not known.",
            )
        case types.REQUEST_TIMEOUT, str(message) if message.startswith("Request '") and message.endswith("timed out"):
            return UpstreamError(
                server,
                f"Server {server!r} did not answer within {seconds:g} s.",
                remedy="Raise call_timeout, or ask for less.",
            )
        case types.INVALID_REQUEST, "Session terminated":
            return SessionExpired(server, f"Server {server!r} forgets its sessions at once.", remedy="Try again later.")
    return error
