"""Messages that JSON in UTF-8 cannot hold, on their way to a transport."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import MCPError
from mcp.shared.message import SessionMessage

from pegboard.upstreams.message_streams import EncodedMessage, SendableMessages

HALF = "half a pair: \ud83d"


async def passed_on(*messages: Any) -> Sequence[SessionMessage]:
    writing, reading = anyio.create_memory_object_stream[SessionMessage](10)
    async with SendableMessages(writing) as stream, reading:
        for message in messages:
            await stream.send(SessionMessage(message))
        return [reading.receive_nowait() for _ in range(reading.statistics().current_buffer_used)]


async def test_a_message_is_written_once_and_passed_on_with_its_text() -> None:
    request = types.JSONRPCRequest(jsonrpc="2.0", id=1, method="tools/call", params={"name": "ä"})
    [came] = await passed_on(request)
    assert isinstance(came, EncodedMessage)
    assert came.message is request
    assert came.text == '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ä"}}'


async def test_a_request_that_cannot_be_sent_is_refused_to_who_sends_it() -> None:
    with pytest.raises(MCPError, match="surrogate") as caught:
        await passed_on(types.JSONRPCRequest(jsonrpc="2.0", id=1, method="tools/call", params={"name": HALF}))
    assert caught.value.error.code == types.INVALID_PARAMS


async def test_an_answer_that_cannot_be_sent_is_an_error_and_a_notification_is_left_out() -> None:
    [came] = await passed_on(
        types.JSONRPCNotification(jsonrpc="2.0", method="notifications/cancelled", params={"reason": HALF}),
        types.JSONRPCResponse(jsonrpc="2.0", id=7, result={"action": "accept", "content": {"name": HALF}}),
    )
    assert isinstance(came.message, types.JSONRPCError)
    assert (came.message.id, came.message.error.code) == (7, types.INTERNAL_ERROR)
