"""What a bridge has to know of the messages that pass; it changes none of them."""

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

ENDLESS = "subscriptions/listen"
"""A request that is answered only when it ends."""


class Reading(Protocol):
    async def receive(self) -> SessionMessage | Exception: ...


class Writing(Protocol):
    async def send(self, item: SessionMessage, /) -> None: ...


class Relay:
    """What has to be known of the messages that pass: which requests wait, and what HTTP wants said in headers."""

    def __init__(self) -> None:
        self.pending: dict[RequestId, str] = {}
        self._version: str | None = None
        self._mirrored: dict[str, Mapping[tuple[str, ...], str]] = {}
        self._greeted = anyio.Event()
        self._greeted.set()
        self._progressed = anyio.Event()

    async def outward(self, item: SessionMessage | Exception, to_serve: Writing) -> SessionMessage | None:
        """Passes a client's message on; what is no message is answered here."""
        if isinstance(item, Exception):
            return error_message(None, PARSE_ERROR, "That is no JSON-RPC message.")
        message = item.message
        await self._greeted.wait()  # until its handshake is answered, HTTP has no session for what follows
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
        """Takes note of what an answer says."""
        if not isinstance(message, JSONRPCResponse):
            return
        method = self.pending.get(message.id)
        if method == "initialize" and isinstance(agreed := message.result.get("protocolVersion"), str):
            self._version = agreed
        elif method == "tools/list":
            self._note_mirrored(message.result.get("tools"))

    def answered(self, message: JSONRPCMessage) -> None:
        """The client has this answer."""
        if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id is not None:
            if self.pending.pop(message.id, None) == "initialize":
                self._greeted.set()
            self._progressed.set()

    async def settled(self) -> None:
        """Until every request is answered but those that never are."""
        while any(method != ENDLESS for method in self.pending.values()):
            self._progressed = anyio.Event()
            await self._progressed.wait()

    def headers(self, message: JSONRPCMessage) -> dict[str, str] | None:
        """As the SDK's own client sets them: the agreed version, or what a request of 2026-07-28 says of itself."""
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
        name = params.get(NAME_BEARING_METHODS.get(message.method, ""))
        if isinstance(name, str):
            headers[MCP_NAME_HEADER] = encode_header_value(name)
            headers |= mcp_param_headers(self._mirrored.get(name, {}), params.get("arguments") or {})
        return headers

    def _note_mirrored(self, tools: Any) -> None:
        """Which arguments of which tool go into headers too (`x-mcp-header` in its schema)."""
        for tool in tools if isinstance(tools, list) else ():
            schema = tool.get("inputSchema") if isinstance(tool, Mapping) else None
            if isinstance(schema, Mapping) and find_invalid_x_mcp_header(schema) is None:
                self._mirrored[str(tool.get("name"))] = x_mcp_header_map(schema)


def error_message(request: RequestId | None, code: int, message: str) -> SessionMessage:
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=request, error=ErrorData(code=code, message=message)))
