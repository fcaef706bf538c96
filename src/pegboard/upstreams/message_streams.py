"""The messages of a transport, which all callers share: what comes is watched, and what JSON in UTF-8 cannot hold is
refused before the transport fails at it."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.client._transport import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from pydantic import BaseModel, ValidationError

from pegboard.flags import Flag
from pegboard.upstreams.line_reader import Unattributable

LOGGER = logging.getLogger(__name__)

QUOTED_CHARACTERS = 4000
MOST_GARBAGE = 100
"""Unreadable lines in a row after which the connection ends: a server may print some lines, but not flood us (M23)."""

HALF_A_PAIR = (
    "The request cannot be sent to the server: a text in it has half of a surrogate pair, "
    'such as "\\ud83d" without its other half. Send whole characters.'
)
TOO_DEEP = (
    "The request cannot be sent to the server: its values are nested too deeply. Nest them at most some 250 levels "
    "deep, or send them as a text."
)


class MonitoredStream:
    """A read stream that signals its end and keeps the first item that was not a message (M23)."""

    def __init__(self, stream: ReadStream[SessionMessage | Exception]) -> None:
        self._stream = stream
        self.ended = Flag()
        self.heard = 0
        """Messages so far."""
        self.garbage = ""
        self.broken = ""
        """The message after which nothing more can be read, as text."""
        self.unreached: Exception | None = None
        """Why a request could not be sent, until the server is reached again."""
        self._unread = 0

    async def receive(self) -> SessionMessage | Exception:
        try:
            item = await self._stream.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            self.ended.set()
            raise
        if not isinstance(item, Exception):
            self._unread = 0
            self.heard += 1
            return item
        if isinstance(item, Unattributable):
            self.broken = f"{item}."
            self.ended.set()
            raise anyio.EndOfStream
        self.garbage = self.garbage or _quoted(item)
        self._unread += 1
        if self._unread > MOST_GARBAGE:
            self.ended.set()
            raise anyio.EndOfStream
        return item

    def __aiter__(self) -> MonitoredStream:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        self.ended.set()
        await self._stream.aclose()

    async def __aenter__(self) -> MonitoredStream:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> bool | None:
        self.ended.set()
        return await self._stream.__aexit__(*error)

    @property
    def last_context(self) -> object:
        """Read by the SDK besides the messages."""
        return getattr(self._stream, "last_context", None)


@dataclass
class EncodedMessage(SessionMessage):
    """A message with its JSON, which need not be written a second time."""

    text: str = ""


class SendableMessages:
    """The stream to a transport. A request that cannot be written raises MCPError where it is sent; an answer that
    cannot becomes an error, and a notification is left out."""

    def __init__(self, stream: WriteStream[SessionMessage]) -> None:
        self._stream = stream

    async def send(self, item: SessionMessage, /) -> None:
        message = item.message
        try:
            text = encoded(message)
        except (ValueError, RecursionError) as error:
            if isinstance(message, types.JSONRPCRequest):
                raise unsendable(error) from error
            LOGGER.warning("A message for a server cannot be written as JSON: %s", type(error).__name__)
            if not isinstance(message, types.JSONRPCNotification):
                await self._stream.send(SessionMessage(_instead(message, error), item.metadata))
            return
        await self._stream.send(EncodedMessage(message, item.metadata, text))

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._stream.__aexit__(kind, error, trace)


def encoded(message: BaseModel) -> str:
    """As JSON. Raises ValueError or RecursionError for what no transport can send."""
    return message.model_dump_json(by_alias=True, exclude_unset=True)


def can_be_sent(message: BaseModel) -> bool:
    """Asked after something failed: it writes the whole message."""
    try:
        encoded(message)
    except (ValueError, RecursionError):
        return False
    return True


def unsendable(error: ValueError | RecursionError) -> MCPError:
    """What the caller of a request is told that cannot be written for this reason.

    >>> unsendable(ValueError("Maximum serialization depth exceeded")).error.code
    -32602
    """
    return MCPError(types.INVALID_PARAMS, HALF_A_PAIR if "surrogate" in str(error) else TOO_DEEP)


def _instead(
    answer: types.JSONRPCResponse | types.JSONRPCError, error: ValueError | RecursionError
) -> types.JSONRPCError:
    """The error that a server gets to its own request in place of this answer."""
    said = types.ErrorData(code=types.INTERNAL_ERROR, message=f"The client's answer is no JSON: {type(error).__name__}")
    return types.JSONRPCError(jsonrpc="2.0", id=answer.id, error=said)


def _quoted(error: Exception) -> str:
    """The line that could not be read, if the error still has it."""
    if isinstance(error, ValidationError):
        return repr(error.errors(include_url=False)[0]["input"])[:QUOTED_CHARACTERS]
    return type(error).__name__
