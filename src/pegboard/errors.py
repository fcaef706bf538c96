"""Every error Pegboard raises on purpose. Each says what was wrong, with which value, and what to do.

PegboardError
├── ConfigError          a file, flag or variable that cannot be used
├── CatalogError         tool definitions that cannot be read
├── EncoderError         the encoder cannot be loaded or answers nonsense
├── UpstreamError        a server that cannot be reached, or broke the protocol
│   └── NotCarriedOut    a call that its server certainly did not carry out
├── StoreError           a store on the network that cannot be reached, or refused
├── SessionConflict      a session that another process changed in the meantime
├── QuotaReached         a tenant that has, or waits for, as much as it may
├── SpendLimitReached    a call that may cost more than a spending limit leaves
├── ResultNotKept        a result that is not kept, or not any more
├── RequestNotUnderstood a model request whose tools cannot be read; it is forwarded unchanged
├── ToolNotAvailable     a call of a tool that is unknown, hidden from the caller, or not active now
│   ├── NotApproved      a call of a tool whose definition has not been approved
│   └── SwitchedOff      a call of a tool that an operator has switched off
└── ArgumentsInvalid     a call whose arguments do not match the tool's schema
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from pegboard.spend_limits import NanoUsd, dollars


class PegboardError(Exception):
    """Base class. ``remedy`` is one sentence that a person can act on.

    >>> print(PegboardError("The harbour is closed.", remedy="Ask tomorrow."))
    The harbour is closed. Ask tomorrow.
    """

    http_status: ClassVar[int] = 500
    code: ClassVar[str] = "pegboard_error"

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".strip()

    def payload(self) -> dict[str, Any]:
        """The error as a JSON object, for models and programs.

        >>> PegboardError("The harbour is closed.").payload()
        {'error': 'pegboard_error', 'message': 'The harbour is closed.'}
        """
        body: dict[str, Any] = {"error": self.code, "message": self.message}
        return body | ({"remedy": self.remedy} if self.remedy else {})

    def to_mcp(self) -> dict[str, Any]:
        """A ``CallToolResult`` with ``isError`` (MCP 2025-11-25, server/tools, error handling; M8).

        >>> PegboardError("The harbour is closed.").to_mcp()["isError"]
        True
        """
        text = json.dumps(self.payload(), ensure_ascii=False)
        return {"content": [{"type": "text", "text": text}], "isError": True}

    def to_http(self) -> tuple[int, dict[str, Any]]:
        """Status code and JSON body.

        >>> PegboardError("The harbour is closed.").to_http()[0]
        500
        """
        return self.http_status, self.payload()


class ConfigError(PegboardError):
    code = "config_error"


class CatalogError(PegboardError):
    code = "catalog_error"
    http_status = 422


class EncoderError(PegboardError):
    code = "encoder_error"


class UpstreamError(PegboardError):
    """``server`` is the server's name in the configuration."""

    code = "upstream_error"
    http_status = 502

    def __init__(self, server: str, message: str, *, remedy: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.server = server

    def payload(self) -> dict[str, Any]:
        return super().payload() | {"server": self.server}


class NotCarriedOut(UpstreamError):  # noqa: N818
    """The server certainly did not carry out the call: it never received it, or refused it."""


class StoreError(PegboardError):
    code = "store_error"
    http_status = 503


class ValueRefused(StoreError):  # noqa: N818
    """The store answers, and does not keep this value: it will not the next time either."""


class SessionConflict(PegboardError):  # noqa: N818
    """The saved version is no longer the stored one: load the session again and repeat the change."""

    code = "session_conflict"
    http_status = 409

    def __init__(self) -> None:
        super().__init__("The session was changed in the meantime.", remedy="Load it again and repeat the change.")


class SpendLimitReached(PegboardError):  # noqa: N818
    """``kind`` is session, key or day; ``used`` is what is spent or reserved for calls in progress."""

    code = "spend_limit_reached"
    http_status = 402

    def __init__(self, kind: str, *, limit: NanoUsd, used: NanoUsd, amount: NanoUsd, whose: str = "") -> None:
        of = f" of {whose!r}" if whose else ""
        super().__init__(
            f"The limit of {dollars(limit)} per {kind}{of} leaves no room for a call of up to {dollars(amount)}: "
            f"{dollars(used)} are spent or reserved.",
            remedy="Raise the limit." if kind == "key" else f"Raise the limit, or continue in a new {kind}.",
        )
        self.kind = kind
        self.limit = limit
        self.used = used


class QuotaReached(PegboardError):  # noqa: N818
    """``tenant`` already has ``most`` of something."""

    code = "quota_reached"
    http_status = 429

    def __init__(self, tenant: str, what: str, most: int) -> None:
        super().__init__(
            f"The tenant {tenant!r} has reached its quota of {most:,} {what}.",
            remedy="Try again later, or raise the quota.",
        )
        self.tenant = tenant
        self.most = most


class ResultNotKept(PegboardError):  # noqa: N818
    """No result is kept for this caller under this handle."""

    code = "result_not_kept"
    http_status = 404

    def __init__(self, handle: str) -> None:
        super().__init__(
            f"No result is kept under the handle {handle[:40]!r}, or not any more.", remedy="Call its tool again."
        )


class RequestNotUnderstood(PegboardError):  # noqa: N818
    """The body of a model request does not match its wire format. The provider decides what to answer."""

    code = "request_not_understood"
    http_status = 400


class ToolNotAvailable(PegboardError):  # noqa: N818
    """The answer of the hallucination gate, in the form of Tool Attention §5.5."""

    code = "tool_not_available"
    http_status = 404

    def __init__(self, name: str, available: Sequence[str], *, remedy: str = "") -> None:
        super().__init__(f"Tool {name!r} is not available.", remedy=remedy)
        self.name = name
        self.available = tuple(available)

    def payload(self) -> dict[str, Any]:
        return super().payload() | {"tool": self.name, "available": list(self.available)}


HeldBack = Literal["changed", "new", "suspicious", "pending", "unknown"]
HELD_BACK: Mapping[HeldBack, str] = {
    "changed": "its definition is not the approved one",
    "new": "its server added it after its other tools were approved",
    "suspicious": "its definition seems written to mislead",
    "pending": "its definition is new, and the store of approved definitions has not answered yet",
    "unknown": "its definition is new, and the store of approved definitions cannot be reached now",
}


class NotApproved(ToolNotAvailable):
    """A tool that is held back because of its definition (M28, M29)."""

    code = "definition_not_approved"
    http_status = 403

    def __init__(self, tool: str, why: HeldBack, *, pin: str = "") -> None:
        """``pin`` is the name of its pin, if that is another one."""
        pin = shlex.quote(pin or tool)
        super().__init__(
            tool,
            [],
            remedy="Try again in a moment: tools are admitted when the store of approved definitions answers."
            if why in ("pending", "unknown")
            else f"The operator reviews it with `pegboard pins diff {pin}` and approves it with "
            f"`pegboard pins approve {pin}`.",
        )
        self.message = f"Tool {tool!r} is held back: {HELD_BACK[why]}."
        self.why = why

    def payload(self) -> dict[str, Any]:
        return super().payload() | {"why": self.why}


class SwitchedOff(ToolNotAvailable):
    """A tool that an operator has switched off, or whose server is; or the definition that it has was rejected."""

    code = "switched_off"
    http_status = 403

    def __init__(self, tool: str) -> None:
        super().__init__(
            tool, [], remedy="Use another tool, or ask the gateway's operator, who can switch it on again."
        )
        self.message = f"Tool {tool!r} was switched off by an operator."


class ArgumentsInvalid(PegboardError):  # noqa: N818
    """``problems`` are sentences; ``schema`` is what the arguments must match."""

    code = "arguments_invalid"
    http_status = 422

    def __init__(self, name: str, problems: Sequence[str], schema: Mapping[str, Any]) -> None:
        super().__init__(
            f"The arguments of {name!r} do not match its schema: {'; '.join(problems)}.",
            remedy="Correct the arguments and call the tool again.",
        )
        self.name = name
        self.problems = tuple(problems)
        self.schema = schema

    def payload(self) -> dict[str, Any]:
        return super().payload() | {"tool": self.name, "problems": list(self.problems), "inputSchema": self.schema}
