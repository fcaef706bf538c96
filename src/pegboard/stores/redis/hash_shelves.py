"""Records that are fields of a hash on Redis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pegboard.model import ToolId
from pegboard.records import Key, LessonRecord, MeterRecord, PinRecord, StatisticsRecord
from pegboard.spending import Meter
from pegboard.stores.lessons import COLUMNS
from pegboard.stores.redis import lessons, pins, spend, statistics
from pegboard.stores.redis.server import field_of, tool_of
from pegboard.stores.redis.shelves import HashShelf

ADD_STAMPED = """
local taken = 0
for at = 1, #ARGV, 3 do
  local known = redis.call('ZSCORE', KEYS[2], ARGV[at])
  if not known or tonumber(known) < tonumber(ARGV[at + 2]) then
    redis.call('HSET', KEYS[1], ARGV[at], ARGV[at + 1])
    redis.call('ZADD', KEYS[2], ARGV[at + 2], ARGV[at])
    taken = taken + 1
  end
end
return taken
"""
ADD_METERS = """
local taken = 0
for at = 1, #ARGV, 3 do
  local known = redis.call('HGET', KEYS[1], ARGV[at])
  if not known or tonumber(known) < tonumber(ARGV[at + 1]) then
    redis.call('HSET', KEYS[1], ARGV[at], ARGV[at + 1])
    if ARGV[at + 2] ~= '' then redis.call('ZADD', KEYS[2], ARGV[at + 2], ARGV[at]) end
    taken = taken + 1
  end
end
return taken
"""
ADD_PINS = """
local taken = 0
for at = 1, #ARGV, 5 do
  if redis.call('HSETNX', KEYS[1], ARGV[at], ARGV[at + 1]) == 1 then
    redis.call('HSET', KEYS[2], ARGV[at], ARGV[at + 2])
    for text = 3, 4 do
      if ARGV[at + text] ~= '' then redis.call('HSET', KEYS[text], ARGV[at], ARGV[at + text]) end
    end
    taken = taken + 1
  end
end
return taken
"""


class StatisticsShelf(HashShelf[StatisticsRecord]):
    script = ADD_STAMPED

    def keys(self) -> tuple[str, str]:
        return statistics.keys(self.server)

    def field(self, key: Key) -> str:
        return field_of(ToolId(*key))

    def key(self, field: bytes) -> Key:
        return tool_of(field)

    def arguments(self, record: StatisticsRecord) -> tuple[str, str]:
        counts = (record.calls, record.successes)
        averages = (record.success, record.variance, record.failure, record.latency)
        return " ".join(map(repr, (*counts, *averages))), repr(record.used)

    async def read(self, client: Any, keys: Sequence[Key]) -> list[StatisticsRecord]:
        found = zip(keys, await self.values(client, list(map(self.field, keys))), strict=True)
        return [
            StatisticsRecord(server=server, name=name, used=used, **asdict(statistics.statistics_of(value)))
            for (server, name), (value, used) in found
            if value is not None
        ]


class LessonShelf(HashShelf[LessonRecord]):
    script = ADD_STAMPED

    def keys(self) -> tuple[str, str]:
        return lessons.shared_keys(self.server)

    def field(self, key: Key) -> str:
        return key[0]

    def key(self, field: bytes) -> Key:
        return (field.decode(),)

    def arguments(self, record: LessonRecord) -> tuple[str, str]:
        return lessons.text_of([getattr(record, name) for name in COLUMNS]), repr(record.used)

    async def read(self, client: Any, keys: Sequence[Key]) -> list[LessonRecord]:
        found = zip(keys, await self.values(client, list(map(self.field, keys))), strict=True)
        return [
            LessonRecord(key=key, used=used, **asdict(lessons.seen_of(value)))
            for (key,), (value, used) in found
            if value is not None
        ]


class MeterShelf(HashShelf[MeterRecord]):
    script = ADD_METERS

    def keys(self) -> tuple[str, str]:
        spent, _, used = spend.shared_keys(self.server)
        return spent, used

    def field(self, key: Key) -> str:
        kind, name = key
        return spend.field_of_meter(Meter(kind, name))  # type: ignore[arg-type]

    def key(self, field: bytes) -> Key:
        return spend.meter_of(field.decode())

    def arguments(self, record: MeterRecord) -> tuple[int, str]:
        return record.spent, "" if record.used is None else repr(record.used)

    async def read(self, client: Any, keys: Sequence[Key]) -> list[MeterRecord]:
        found = zip(keys, await self.values(client, list(map(self.field, keys))), strict=True)
        return [
            MeterRecord(kind=kind, name=name, spent=int(value), used=used)  # type: ignore[arg-type]
            for (kind, name), (value, used) in found
            if value is not None
        ]


class PinShelf(HashShelf[PinRecord]):
    script = ADD_PINS

    def keys(self) -> tuple[str, str, str, str]:
        return pins.keys(self.server)

    def field(self, key: Key) -> str:
        return field_of(ToolId(*key))

    def key(self, field: bytes) -> Key:
        return tool_of(field)

    def arguments(self, record: PinRecord) -> tuple[str, str, str, str]:
        return record.approved, record.seen, record.approved_text or "", record.seen_text or ""

    async def read(self, client: Any, keys: Sequence[Key]) -> list[PinRecord]:
        fields = list(map(self.field, keys))
        commands = client.pipeline()
        for name in self.keys():
            commands.hmget(name, fields)
        return [
            PinRecord(
                server=server,
                name=name,
                approved=approved.decode(),
                seen=seen.decode(),
                approved_text=old and old.decode(),
                seen_text=new and new.decode(),
            )
            for (server, name), approved, seen, old, new in zip(keys, *await commands.execute(), strict=True)
            if approved is not None and seen is not None
        ]

    async def remove(self, client: Any, keys: Sequence[Key]) -> int:
        commands = client.pipeline()
        for name in self.keys():
            commands.hdel(name, *map(self.field, keys))
        return int((await commands.execute())[0])
