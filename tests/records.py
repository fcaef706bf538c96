"""Any records that a store may hold, and what is in a store."""

from __future__ import annotations

from dataclasses import fields

from hypothesis import strategies as st

from pegboard.protocols import Archive
from pegboard.records import (
    KINDS,
    EmbeddingRecord,
    HabitRecord,
    HoldRecord,
    LessonRecord,
    MeterRecord,
    PinRecord,
    Record,
    SessionRecord,
    SessionState,
    StatisticsRecord,
    SwitchRecord,
)
from pegboard.traffic import Seen

NOW = 1_000.0
"""When nothing of them has expired."""

texts = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=6)
definitions = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1, max_size=6)
wholes = st.integers(0, 2**53)
shares = st.floats(0, 1)
moments = st.floats(0, 4e9)
sums = st.floats(0, 1e12)
later = st.floats(NOW + 1, 4e9)
states = st.builds(
    SessionState,
    enabled=st.lists(st.lists(texts, min_size=2, max_size=2), max_size=3),
    answered=st.lists(texts, max_size=3),
    notices=wholes,
    client=st.none() | st.dictionaries(texts, texts | st.integers() | st.none(), max_size=3),
    replica=st.none() | texts,
)
RECORDS = {
    "session": st.builds(SessionRecord, key=texts, version=st.integers(1, 2**53), expires=later, state=states),
    "statistics": st.builds(
        StatisticsRecord,
        server=texts,
        name=texts,
        calls=wholes,
        successes=wholes,
        success=shares,
        variance=shares,
        failure=shares,
        latency=moments,
        used=moments,
    ),
    "lesson": st.builds(LessonRecord, key=texts, used=moments, **{field.name: sums for field in fields(Seen)}),
    "habit": st.builds(HabitRecord, key=texts, server=texts, name=texts, sums=st.binary(), used=moments),
    "meter": st.builds(MeterRecord, kind=st.sampled_from(["session", "day"]), name=texts, spent=wholes, used=moments)
    | st.builds(MeterRecord, kind=st.just("key"), name=texts, spent=wholes, used=st.none()),
    "hold": st.builds(
        HoldRecord,
        reservation=st.from_regex(r"[0-9a-f]{1,8}", fullmatch=True),
        session=texts,
        caller=texts,
        day=texts,
        amount=wholes,
        expires=later,
    ),
    "pin": st.builds(
        PinRecord,
        server=texts,
        name=texts,
        approved=texts,
        seen=texts,
        approved_text=st.none() | definitions,
        seen_text=st.none() | definitions,
    ),
    "switch": st.builds(SwitchRecord, server=texts, name=texts, definition=texts, who=texts, at=moments),
    "embedding": st.builds(EmbeddingRecord, key=texts, vector=st.binary(max_size=8)),
}
everything = st.tuples(
    *(st.lists(RECORDS[kind], max_size=3, unique_by=lambda record: record.identity) for kind in KINDS)
).map(lambda groups: [record for group in groups for record in sorted(group, key=lambda record: record.identity)])
"""A few of each kind, in the order in which a store reads them."""


async def held(archive: Archive) -> list[Record]:
    """All records, in the order in which they are read."""
    return [record for kind in KINDS async for record in archive.read(kind)]
