"""The ids of tasks that clients get: they say whose server runs the task, and belong to the holder that started it."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass

from pegboard.catalog import compact_json
from pegboard.gateways.mcp.transport.auth import Holder
from pegboard.gateways.mcp.transport.signed_ids import Signing, inner


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPlace:
    """A task at its server: the server's name, the tool that was called, and the server's own id of the task."""

    server: str
    tool: str
    task: str


class TaskIds:
    """Makes ids and reads them. They need no store, so that they survive a restart and work in every process.

    With tokens, an id is signed for the holder that started the task: nobody else can use it (SEP-2663, security).
    """

    def __init__(self, signing: Signing | None = None) -> None:
        self._signing = signing

    def given(self, place: TaskPlace, holder: Holder | None) -> str:
        """The id that the client gets: visible ASCII, as it is also sent in the header `Mcp-Name`."""
        told = compact_json([place.server, place.tool, place.task]).encode("utf-8", "surrogatepass")
        name = base64.urlsafe_b64encode(told).decode("ascii").rstrip("=")
        return name if holder is None or self._signing is None else self._signing.session(name, holder)

    async def place(self, given: str, holder: Holder | None) -> TaskPlace | None:
        """Where the task of an id is; None for an id that this holder was never given."""
        if holder is not None and (self._signing is None or not await self._signing.owns(holder, given)):
            return None
        name = inner(given)
        try:
            told = json.loads(base64.urlsafe_b64decode(name + "=" * (-len(name) % 4)).decode("utf-8", "surrogatepass"))
        except (binascii.Error, ValueError, RecursionError):
            return None
        if not isinstance(told, list) or len(told) != 3 or not all(isinstance(each, str) for each in told):
            return None
        server, tool, task = told
        return TaskPlace(server=server, tool=tool, task=task)
