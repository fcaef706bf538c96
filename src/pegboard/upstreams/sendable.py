"""Messages that JSON in UTF-8 cannot hold are refused before a transport, which all callers share, fails at them."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import mcp_types as types
from mcp import MCPError
from mcp.client._transport import WriteStream
from mcp.shared.message import SessionMessage
from pydantic import BaseModel

LOGGER = logging.getLogger(__name__)

HALF_A_PAIR = (
    "The request cannot be sent to the server: a text in it has half of a surrogate pair, "
    'such as "\\ud83d" without its other half. Send whole characters.'
)
TOO_DEEP = (
    "The request cannot be sent to the server: its values are nested too deeply. Nest them at most some 250 levels "
    "deep, or send them as a text."
)


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
