"""Lines of the audit log: who called what, each sealed with the hash of the line before it, so that a change is seen.

A chain alone shows changes by whoever cannot compute it anew: give it a key, or note its end elsewhere.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Literal

from pegboard.spend_limits import NanoUsd

Happened = Literal["call", "request", "lost", "act"]
"""A tool call, a request to a model, lines that could not be written, or an act of an operator."""
AuditOutcome = Literal["ok", "tool_error", "server_error", "caller_error", "refused", "cancelled", "unknown"]
OUTCOMES: tuple[AuditOutcome, ...] = (
    "ok",
    "tool_error",
    "server_error",
    "caller_error",
    "refused",
    "cancelled",
    "unknown",
)
FREE = NanoUsd(0)
LONGEST_NAME = 200
"""Characters of a name that a client chose."""
LONGEST_VALUES = 20_000
"""Characters of the arguments of one call, if they are kept."""
SEAL = ',"hash":"'
"""Begins the end of a line, which is not hashed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """What happened. ``at`` is seconds since the epoch; ``session`` is a hash of the session's id.

    ``arguments`` is a digest, and ``values`` are the arguments as JSON, if they are kept. ``decision`` is the id of the
    decision that chose the tools: the last search of the conversation, or that of the model request. ``called`` are
    the tools that a model called in its answer; ``lost`` is how many lines are missing here.
    """

    at: float
    event: Happened
    door: Literal["mcp", "llm", "ui"]
    caller: str = ""
    tenant: str = ""
    session: str = ""
    server: str = ""
    tool: str = ""
    model: str = ""
    arguments: str = ""
    values: str = ""
    outcome: AuditOutcome = "unknown"
    reason: str = ""
    price: NanoUsd = FREE
    latency_ms: float = 0.0
    decision: str = ""
    called: tuple[str, ...] = ()
    lost: int = 0
    act: str = ""
    """What an operator did; ``arguments`` is then the fingerprint of the definition that it was done to."""
    torn: str = ""
    """The digest of an unfinished line before this one, that a process left which died while it wrote."""

    def as_dict(self) -> dict[str, Any]:
        """As in a line: with the time in ISO 8601 and the price in US dollars, without what is empty."""
        said = {name: value for name, value in asdict(self).items() if value not in ("", 0, 0.0, ())}
        said |= {"at": moment(self.at), "event": self.event, "door": self.door, "outcome": self.outcome}
        if price := said.pop("price", 0):
            said["price_usd"] = f"{Decimal(price).scaleb(-9).normalize():f}"
        if "latency_ms" in said:
            said["latency_ms"] = round(self.latency_ms, 1)
        return said


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A place in the chain: the number of a line, counted from 1, and its hash. Number 0 is before the first line."""

    number: int = 0
    hash: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainEnds:
    """Where a chain ends, and after which line it now begins: earlier lines were removed when they were too old."""

    last: Link = Link()
    removed: Link = Link()

    def text(self, key: bytes = b"") -> str:
        """As a store keeps it, with a digest: nobody without the key can move the ends."""
        said = {"last": asdict(self.last), "removed": asdict(self.removed)}
        return json.dumps(said | {"mark": _hash(json.dumps(said).encode(), key)})

    @classmethod
    def of(cls, text: str | bytes) -> ChainEnds:
        """The ends in a text. Raises ValueError for a text that is none."""
        try:
            said = json.loads(text)
            return cls(last=Link(**said["last"]), removed=Link(**said["removed"]))
        except (TypeError, KeyError) as error:
            raise ValueError("These are no ends of a chain.") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainFinding:
    """Something about a chain: what is wrong after line ``number``, or ``torn`` for a write that was cut off. ``until``
    is the last of missing lines."""

    kind: Literal["changed", "missing", "torn", "ends"]
    number: int
    text: str
    until: int = 0

    @property
    def is_harmless(self) -> bool:
        return self.kind == "torn"


def moment(at: float) -> str:
    """A time in ISO 8601, UTC, with milliseconds.

    >>> moment(0.5)
    '1970-01-01T00:00:00.500Z'
    """
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def digest(arguments: Any, key: bytes = b"") -> str:
    """A digest of JSON data, whatever the order of its keys. With a key nobody else can guess what was digested.

    >>> digest({"b": 1, "a": 2}) == digest({"a": 2, "b": 1}), digest({})[:10]
    (True, 'sha256:441')
    """
    text = json.dumps(arguments, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
    return ("hmac-sha256:" if key else "sha256:") + _hash(text.encode("utf-8", "surrogatepass"), key)


def sealed(entries: Sequence[AuditEntry], last: Link, key: bytes = b"") -> tuple[list[bytes], Link]:
    """The lines of these entries after the line ``last``, each without its newline; and the last of them."""
    lines = list[bytes]()
    for entry in entries:
        number = last.number + 1
        said = {"number": number} | entry.as_dict() | {"previous": last.hash}
        body = json.dumps(said, separators=(",", ":"), ensure_ascii=True, default=str)[:-1]
        last = Link(number=number, hash=_hash(body.encode(), key))
        lines.append(f'{body}{SEAL}{last.hash}"}}'.encode())
    return lines, last


def link_of(line: bytes, key: bytes = b"") -> tuple[Link, Link] | None:
    """The link of a line and the one that it follows; None if the line is not as it was written."""
    body, seal, end = line.rpartition(SEAL.encode())
    known = _hash(body, key)
    if not seal or not hmac.compare_digest(end, known.encode() + b'"}'):
        return None
    try:
        said = json.loads(line)
        number, previous = int(said["number"]), str(said["previous"])
    except (ValueError, TypeError, KeyError):  # whole, but no line of ours
        return None
    return Link(number=number, hash=known), Link(number=number - 1, hash=previous)


class ChainCheck:
    """Finds everything that is wrong with a chain, line by line.

    An unfinished line is torn, not changed, if the next line says its digest, or if it is the last one and the chain's
    known end comes before it. ``last`` is the last line that is as it was written.
    """

    def __init__(self, ends: ChainEnds, key: bytes = b"") -> None:
        self._ends = ends
        self._key = key
        self.last = ends.removed
        self._torn: list[bytes] = []

    def feed(self, line: bytes) -> Iterator[ChainFinding]:
        links = link_of(line, self._key)
        if links is None:
            self._torn.append(line)
            return
        found, before = links
        as_said = not self._torn or _said_torn(line) == torn_mark(self._torn)
        if not as_said:
            yield _changed(self.last, found)
        elif self._torn:
            yield _torn(self.last)
        if as_said and before != self.last:
            yield _gap(self.last, found, before)
        self.last, self._torn = found, []

    def end(self) -> Iterator[ChainFinding]:
        at, last = self.last, self._ends.last
        if self._torn:
            yield _torn(at) if at.number >= last.number else _changed(at, last)
        if at.number < last.number:
            text = f"the lines {at.number + 1} to {last.number} are missing at the end"
            yield ChainFinding(kind="missing", number=at.number, text=text, until=last.number)
        elif at.number == last.number and at != last:
            yield ChainFinding(
                kind="ends", number=at.number, text=f"line {at.number} is not the one that was written last"
            )


def findings(lines: Iterable[bytes], ends: ChainEnds, key: bytes = b"") -> Iterator[ChainFinding]:
    """Everything that is wrong with a chain, in its order."""
    check = ChainCheck(ends, key)
    for line in lines:
        yield from check.feed(line)
    yield from check.end()


def torn_mark(unfinished: Sequence[bytes]) -> str:
    """What the next line says about the unfinished ones before it."""
    return _hash(b"\n".join(unfinished))


def _gap(at: Link, found: Link, before: Link) -> ChainFinding:
    if found.number > at.number + 1:
        text = f"the lines {at.number + 1} to {found.number - 1} are missing"
        return ChainFinding(kind="missing", number=at.number, text=text, until=found.number - 1)
    if found.number <= at.number:
        return ChainFinding(kind="changed", number=at.number, text=f"line {found.number} stands after line {at.number}")
    return ChainFinding(
        kind="changed", number=found.number, text=f"line {found.number} does not follow line {before.number}"
    )


def _changed(at: Link, found: Link) -> ChainFinding:
    first, last = at.number + 1, found.number - 1
    which = f"line {first} is" if last <= first else f"of the lines {first} to {last}, some are missing or are"
    return ChainFinding(kind="changed", number=first, text=f"{which} not as written")


def _torn(at: Link) -> ChainFinding:
    text = f"a process died while it wrote after line {at.number}; nothing that was written before is missing"
    return ChainFinding(kind="torn", number=at.number, text=text)


def _said_torn(line: bytes) -> str:
    return str(json.loads(line).get("torn", ""))


def _hash(data: bytes, key: bytes = b"") -> str:
    return hmac.new(key, data, hashlib.sha256).hexdigest() if key else hashlib.sha256(data).hexdigest()
