"""What revision 2026-07-28 wants with each request beyond what the SDK says: for whom it is, arguments as headers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mcp_types as types
from mcp import Client
from mcp.shared.dispatcher import CallOptions
from mcp.shared.inbound import find_invalid_x_mcp_header, mcp_param_headers, x_mcp_header_map

from pegboard.model import JsonObject
from pegboard.seams import Listing
from pegboard.upstreams.origin import ORIGIN

HeaderMap = Mapping[tuple[str, ...], str]


class Headers:
    """Which arguments of which tools go into headers as well (`x-mcp-header`)."""

    def __init__(self) -> None:
        self._maps: dict[str, HeaderMap] = {}

    def read(self, listing: Listing) -> None:
        """Those of a listing. A tool whose marks break the rules is not offered."""
        self._maps = {}
        for page in listing.pages:
            for tool in page.get("tools") or ():
                schema = tool.get("inputSchema") or {}
                if "x-mcp-header" in str(schema) and find_invalid_x_mcp_header(schema) is None:
                    self._maps[tool["name"]] = x_mcp_header_map(schema)

    def of(self, name: str, arguments: JsonObject) -> dict[str, str]:
        return mcp_param_headers(self._maps[name], arguments) if name in self._maps else {}


def speak_for_clients(client: Client, headers: Headers) -> None:
    """Let requests of a connection say what the client behind them can do. The SDK would say the same with each.

    Servers of the handshake era were told once, when the connection was opened. The SDK knows the headers only of tools
    that were listed through it.
    """
    session = client.session
    if session.discover_result is None:
        return
    stamp = session._stamp

    def stamped(data: dict[str, Any], options: CallOptions) -> None:
        stamp(data, options)
        origin = ORIGIN.get()
        if origin is not None:
            said = origin.capabilities.model_dump(by_alias=True, mode="json", exclude_none=True)
            data["params"]["_meta"][types.CLIENT_CAPABILITIES_META_KEY] = said

        if data["method"] == "tools/call":
            params = data["params"]
            options.setdefault("headers", {}).update(headers.of(params["name"], params.get("arguments") or {}))

    session._stamp = stamped
