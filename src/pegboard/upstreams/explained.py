"""What went wrong with a server, in sentences that hold no secret."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import mcp_types as types
from mcp import MCPError

from pegboard.errors import PegboardError
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
