"""Answers that are larger than the configuration allows: an error for whom they answer, and for nobody else."""

from __future__ import annotations

from dataclasses import dataclass

import mcp_types as types
from mcp.shared.message import SessionMessage

from pegboard.upstreams.lines import TooLong

RESULT_LIMIT = 32_000_000
"""Bytes of one answer, where the configuration does not say."""


class Unattributable(Exception):  # noqa: N818
    """A message that is too large, and answers nobody knows whom: nothing after it can be relied on."""


@dataclass(frozen=True, slots=True)
class Size:
    """The data of our own error: no server can send one."""

    bytes: int
    limit: int


def too_large(line: TooLong, limit: int) -> SessionMessage | Exception:
    """What is read in place of a message that was not kept."""
    said = f"It sent {line.size:,} bytes in one message, and {limit:,} are allowed (result_limit)"
    if line.id is None:
        return Unattributable(said)
    error = types.ErrorData(code=types.INTERNAL_ERROR, message=said, data=Size(line.size, limit))
    return SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=line.id, error=error))
