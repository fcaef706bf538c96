"""Cuts list answers before they are parsed.

Parsing a page of a hundred thousand tools would block every other request, and the objects would take a hundred times
the memory of those that are kept. Entries that are cut here never become objects.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec
from mcp.shared.message import SessionMessage

from pegboard.upstreams.limits import LIST_METHOD, UpstreamLimits, values_in
from pegboard.upstreams.line_reader import ENDS_BYTES, answered

SHORT = 256 * 1024
"""Bytes up to which an answer parses quickly, whatever it contains."""
LISTS = ("tools", "resources", "resourceTemplates", "prompts")
Members = dict[str, msgspec.Raw]


class ListTooLarge(Exception):  # noqa: N818
    """A list answer with too many values to parse. The message names the setting that allows more."""


@dataclass(slots=True)
class ListRequests:
    """The list requests in progress on one connection, by id; their answers have their own limits."""

    open: set[int | str] = field(default_factory=set)

    def sent(self, message: SessionMessage) -> None:
        body = message.message
        self.asked(getattr(body, "method", ""), getattr(body, "id", None))

    def asked(self, method: str, id_: int | str | None) -> None:
        if id_ is not None and method.endswith(LIST_METHOD):
            self.open.add(id_)

    def answered(self, message: bytes) -> int | str | None:
        """The id of the list request that this message answers, or None. That request is then no longer in progress."""
        whose = _whose(message) if self.open else None
        if whose not in self.open:
            return None
        self.open.discard(whose)
        return whose


def cut(answer: bytes, limits: UpstreamLimits) -> bytes:
    """The answer with at most one entry more than a list may have, which tells the reader that the list goes on.

    Raises Unfit for more values than ``limits`` allow.

    >>> cut(b'{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}', UpstreamLimits())
    b'{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}'
    """
    if len(answer) <= SHORT:
        return answer
    short = _shortened(answer, limits.entries + 1)
    values = values_in(short)
    if values > limits.values:
        raise ListTooLarge(
            f"its list has about {values:,} values, but {limits.values:,} are allowed, "
            "one for each 16 bytes of list_bytes"
        )
    return short


def members(answer: bytes) -> Members | None:
    """The members of a JSON object, unparsed; None if the bytes are not a JSON object."""
    try:
        return msgspec.json.decode(answer, type=Members)
    except (msgspec.DecodeError, RecursionError):
        return None


def _whose(line: bytes) -> int | str | None:
    """The id of an answer. A long one is searched whole, since a server could hide the id to evade the list limits."""
    found = members(line) if len(line) > SHORT else None
    if found is None:
        return answered(line[:ENDS_BYTES], line[-ENDS_BYTES:])
    try:
        return msgspec.json.decode(found.get("id", b"null"), type=int | str | None)
    except msgspec.DecodeError:
        return None


def _shortened(answer: bytes, most: int) -> bytes:
    """The answer with at most ``most`` entries of each list; unchanged if it has no more or cannot be read."""
    message = members(answer)
    result = members(message["result"]) if message and "result" in message else None
    if message is None or result is None:
        return answer
    shorter = {name: entries[:most] for name in LISTS if len(entries := _entries(result.get(name))) > most}
    if not shorter:
        return answer
    return msgspec.json.encode(message | {"result": result | shorter})


def _entries(value: msgspec.Raw | None) -> list[msgspec.Raw]:
    try:
        return msgspec.json.decode(value or b"[]", type=list[msgspec.Raw])
    except (msgspec.DecodeError, RecursionError):
        return []
