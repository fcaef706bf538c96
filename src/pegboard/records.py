"""The records that stores keep, in one form for all backends: a line of an export, or a row of a table.

Imported files are outside data, so pydantic checks these types strictly.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from pegboard.spend_limits import Meter, MeterKind

Kind = Literal["session", "statistics", "lesson", "habit", "meter", "hold", "pin", "switch", "embedding"]
Key = tuple[str, ...]

Text = Annotated[str, Field(pattern=r"^[^\x00]*$")]
"""PostgreSQL cannot store NUL."""
Whole = Annotated[int, Field(ge=0, le=2**53)]
Share = Annotated[float, Field(ge=0, le=1)]
Seconds = Annotated[float, Field(ge=0)]
Sum = Annotated[float, Field(ge=0)]
Moment = float
"""Seconds since the epoch."""


class _Checked:
    """``names`` are the fields that identify a record among those of its kind."""

    __slots__ = ()
    __pydantic_config__: ClassVar[Any] = {
        "extra": "forbid",
        "strict": True,
        "allow_inf_nan": False,
        "ser_json_bytes": "base64",
        "val_json_bytes": "base64",
    }
    names: ClassVar[tuple[str, ...]]

    @property
    def identity(self) -> Key:
        return tuple(getattr(self, name) for name in self.names)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionState(_Checked):
    """The fields of `pegboard.model.Session` that are stored."""

    enabled: list[Annotated[list[Text], Field(min_length=2, max_length=2)]]
    answered: list[str]
    notices: Whole
    client: dict[str, Any] | None
    replica: str | None = None
    watched: list[str] = field(default_factory=list)
    level: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRecord(_Checked):
    """``key`` is a hash of the client's session id (`stores.sessions.key_of`)."""

    names: ClassVar = ("key",)
    record: Literal["session"] = "session"
    key: Text
    version: Whole
    expires: Moment
    state: SessionState


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsRecord(_Checked):
    """``used`` is the time of the last call."""

    names: ClassVar = ("server", "name")
    record: Literal["statistics"] = "statistics"
    server: Text
    name: Text
    calls: Whole
    successes: Whole
    success: Share
    variance: Share
    failure: Share
    latency: Seconds
    used: Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonRecord(_Checked):
    """Sums over the turns of a key's conversations (`pegboard.traffic.Seen`); ``used``: the last update."""

    names: ClassVar = ("key",)
    record: Literal["lesson"] = "lesson"
    key: Text
    requests: Sum
    conversations: Sum
    later: Sum
    asked: Sum
    growth: Sum
    wanted: Sum
    added: Sum
    called: Sum
    changed: Sum
    returned: Sum
    kept: Sum
    alike: Sum
    used: Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class HabitRecord(_Checked):
    """What use taught about a tool (`pegboard.habits`): ``sums`` are float32, little-endian; ``key`` begins with the
    name of the caller's key, if it has one. ``server`` is `pegboard.habits.TRIAL` in the
    rows of a trial. ``used``: the last update."""

    names: ClassVar = ("key", "server", "name")
    record: Literal["habit"] = "habit"
    key: Text
    server: Text
    name: Text
    sums: bytes
    used: Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class MeterRecord(_Checked):
    """Spending in billionths of a dollar. ``used`` is None for the total of a key, which is never removed."""

    names: ClassVar = ("kind", "name")
    record: Literal["meter"] = "meter"
    kind: MeterKind
    name: Text
    spent: Whole
    used: Moment | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldRecord(_Checked):
    """Money reserved for a call: ``session``, ``caller`` and ``day`` are the names of its three meters."""

    names: ClassVar = ("reservation",)
    record: Literal["hold"] = "hold"
    reservation: Annotated[str, Field(pattern=r"^\S+$")]
    session: Text
    caller: Text
    day: Text
    amount: Whole
    expires: Moment

    @property
    def meters(self) -> tuple[Meter, Meter, Meter]:
        return Meter("session", self.session), Meter("key", self.caller), Meter("day", self.day)


@dataclass(frozen=True, slots=True, kw_only=True)
class PinRecord(_Checked):
    """Fingerprints, and the definitions behind them as JSON if they are known."""

    names: ClassVar = ("server", "name")
    record: Literal["pin"] = "pin"
    server: Text
    name: Text
    approved: Text
    seen: Text
    approved_text: Text | None = None
    seen_text: Text | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchRecord(_Checked):
    """A tool that an operator has switched off, or with an empty ``name`` a server; ``who`` did so ``at`` a moment.

    ``definition`` is the fingerprint of the only definition that it holds for: one that was rejected; empty for any. A
    tool may have one for any, and one for each rejected definition.
    """

    names: ClassVar = ("server", "name", "definition")
    record: Literal["switch"] = "switch"
    server: Text
    name: Text
    definition: Text
    who: Text
    at: Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingRecord(_Checked):
    """``vector`` is float32, little-endian; ``key`` is the hash of provider, model and text."""

    names: ClassVar = ("key",)
    record: Literal["embedding"] = "embedding"
    key: Text
    vector: bytes


Record = (
    SessionRecord
    | StatisticsRecord
    | LessonRecord
    | HabitRecord
    | MeterRecord
    | HoldRecord
    | PinRecord
    | SwitchRecord
    | EmbeddingRecord
)

RECORDS: dict[Kind, type[Record]] = {
    "session": SessionRecord,
    "statistics": StatisticsRecord,
    "lesson": LessonRecord,
    "habit": HabitRecord,
    "meter": MeterRecord,
    "hold": HoldRecord,
    "pin": PinRecord,
    "switch": SwitchRecord,
    "embedding": EmbeddingRecord,
}
KINDS: tuple[Kind, ...] = tuple(RECORDS)
"""In the order of an export."""
STATE: tuple[Kind, ...] = tuple(kind for kind in KINDS if kind != "embedding")
"""The kinds that cannot be recomputed."""


def columns(kind: Kind) -> tuple[str, ...]:
    """The fields of a record of this kind, except ``record``, which names the kind."""
    return tuple(field.name for field in fields(RECORDS[kind]) if field.name != "record")
