"""What a bridge tracks of the messages that it relays; it changes none of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import anyio
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
    find_invalid_x_mcp_header,
    mcp_param_headers,
    x_mcp_header_map,
)
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp_types import (
    PARSE_ERROR,
    PROTOCOL_VERSION_META_KEY,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)

NAMED: Mapping[str, str] = {
    **NAME_BEARING_METHODS,
    **dict.fromkeys(("tasks/get", "tasks/update", "tasks/cancel"), "taskId"),
}
"""By method, the parameter that the header with the name mirrors; of tasks the SDK knows nothing (SEP-2663)."""
ENDLESS = "subscriptions/listen"
"""A request that is answered only when it ends."""


class MessageReceiver(Protocol):
    async def receive(self) -> SessionMessage | Exception: ...


class MessageSender(Protocol):
    async def send(self, item: SessionMessage, /) -> None: ...


class Relay:
    """Tracks which requests are pending, and which HTTP headers messages need."""

    def __init__(self) -> None:
        self.pending: dict[RequestId, str] = {}
        self._version: str | None = None
        self._mirrored: dict[str, Mapping[tuple[str, ...], str]] = {}
        self._greeted = anyio.Event()
        self._greeted.set()
        self._progressed = anyio.Event()

    async def outward(self, item: SessionMessage | Exception, to_serve: MessageSender) -> SessionMessage | None:
        """Relays a client's message; input that is not a message is answered here."""
        if isinstance(item, Exception):
            return error_message(None, PARSE_ERROR, "This is not a JSON-RPC message.")
        message = item.message
        await self._greeted.wait()  # HTTP has no session for later messages until the handshake is answered
        if isinstance(message, JSONRPCRequest):
            self.pending[message.id] = message.method
            if message.method == "initialize":
                self._greeted = anyio.Event()
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            cancelled = (message.params or {}).get("requestId")
            self.pending = {request: method for request, method in self.pending.items() if request != cancelled}
        await to_serve.send(SessionMessage(message, ClientMessageMetadata(headers=self.headers(message))))
        return None

    def inward(self, message: JSONRPCMessage) -> None:
        """Records what an answer contains."""
        if not isinstance(message, JSONRPCResponse):
            return
        method = self.pending.get(message.id)
        if method == "initialize" and isinstance(agreed := message.result.get("protocolVersion"), str):
            self._version = agreed
        elif method == "tools/list":
            self._note_mirrored(message.result.get("tools"))

    def answered(self, message: JSONRPCMessage) -> None:
        """The client has received this answer."""
        if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id is not None:
            if self.pending.pop(message.id, None) == "initialize":
                self._greeted.set()
            self._progressed.set()

    async def settled(self) -> None:
        """Wait until every request is answered, except those that stay open."""
        while any(method != ENDLESS for method in self.pending.values()):
            self._progressed = anyio.Event()
            await self._progressed.wait()

    def headers(self, message: JSONRPCMessage) -> dict[str, str] | None:
        """The headers that the SDK's client would set: the agreed version, or those of a 2026-07-28 request."""
        if not isinstance(message, JSONRPCRequest | JSONRPCNotification) or message.method == "initialize":
            return None
        params = message.params or {}
        meta = params.get("_meta")
        modern = meta.get(PROTOCOL_VERSION_META_KEY) if isinstance(meta, Mapping) else None
        if not isinstance(modern, str):
            return {MCP_PROTOCOL_VERSION_HEADER: self._version} if self._version else None
        headers = {
            MCP_PROTOCOL_VERSION_HEADER: encode_header_value(modern),
            MCP_METHOD_HEADER: encode_header_value(message.method),
        }
        name = params.get(NAMED.get(message.method, ""))
        if isinstance(name, str):
            headers[MCP_NAME_HEADER] = encode_header_value(name)
        if isinstance(name, str) and message.method == "tools/call":
            headers |= mcp_param_headers(self._mirrored.get(name, {}), params.get("arguments") or {})
        return headers

    def _note_mirrored(self, tools: Any) -> None:
        """Record which arguments of which tools are mirrored in headers (`x-mcp-header` in the schema)."""
        for tool in tools if isinstance(tools, list) else ():
            schema = tool.get("inputSchema") if isinstance(tool, Mapping) else None
            if isinstance(schema, Mapping) and find_invalid_x_mcp_header(schema) is None:
                self._mirrored[str(tool.get("name"))] = x_mcp_header_map(schema)


def error_message(request: RequestId | None, code: int, message: str) -> SessionMessage:
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=request, error=ErrorData(code=code, message=message)))
