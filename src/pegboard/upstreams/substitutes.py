"""What is read in place of an answer that cannot be: an error for whom it answers, and for nobody else."""

from __future__ import annotations

from dataclasses import dataclass

import mcp_types as types
from mcp.shared.message import SessionMessage

from pegboard.upstreams.lines import ENDS_BYTES, TooLong, answered


class Unattributable(Exception):  # noqa: N818
    """A message that is too large, and answers nobody knows whom: nothing after it can be relied on."""


@dataclass(frozen=True, slots=True)
class Size:
    """The data of our own error: no server can send one."""

    bytes: int
    limit: int


UNPARSED = "Failed to parse JSON response: "
"""In the words of the SDK's HTTP transport."""


def too_large(line: TooLong, limit: int, option: str = "result_limit") -> SessionMessage | Exception:
    """In place of a message that was not kept."""
    said = f"It sent {line.size:,} bytes in one message, and {limit:,} are allowed ({option})"
    if line.id is None:
        return Unattributable(said)
    return _failure(line.id, types.ErrorData(code=types.INTERNAL_ERROR, message=said, data=Size(line.size, limit)))


def misshapen(line: bytes, error: Exception) -> SessionMessage | Exception:
    """In place of a line that is no message. One that says whom it answers lets nobody wait for his deadline."""
    name = answered(line[:ENDS_BYTES], line[-ENDS_BYTES:])
    if name is None or b'"jsonrpc"' not in line[:ENDS_BYTES] + line[-ENDS_BYTES:]:
        return error
    return _failure(name, types.ErrorData(code=types.PARSE_ERROR, message=f"{UNPARSED}it is no JSON-RPC answer"))


def _failure(name: int | str, error: types.ErrorData) -> SessionMessage:
    return SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=name, error=error))
