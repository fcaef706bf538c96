"""What the gateway declares beyond its own: extensions and tasks of the servers behind it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard.gateways.mcp.gateway.caller import Caller
from pegboard.gateways.mcp.gateway.gateway import Gateway
from pegboard.upstreams.extension_requests import TASKS

HANDSHAKE_TASKS: Mapping[str, Any] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
"""Tasks in revision 2025-11-25, where they belong to the core protocol."""


def with_extensions(answer: Mapping[str, Any], gateway: Gateway, caller: Caller) -> dict[str, Any]:
    """The answer to a client's first request, whose capabilities name what servers offer that the caller may use."""
    capabilities = dict(answer.get("capabilities") or {})
    extensions = dict(capabilities.get("extensions") or {}) | gateway.extensions(caller)
    if gateway.tasks.offered(caller):
        if caller.modern:
            extensions[TASKS] = {}
        else:
            capabilities["tasks"] = HANDSHAKE_TASKS
    if extensions:
        capabilities["extensions"] = extensions
    return {**answer, "capabilities": capabilities}
