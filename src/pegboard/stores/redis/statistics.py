"""Statistics of tools and lessons from traffic on Redis: a hash each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple
from typing import Any

from pegboard.averages import PRIOR, SMOOTHING
from pegboard.clock import SYSTEM_CLOCK
from pegboard.model import Outcome, Smoothing, ToolId, ToolStatistics
from pegboard.protocols import Clock
from pegboard.records import Key, LessonRecord, StatisticsRecord
from pegboard.stores.database import batches
from pegboard.stores.redis.database import RedisServer, field_of, tool_of
from pegboard.stores.redis.record_stores import ADD_STAMPED, HashRecordStore
from pegboard.traffic import COLUMNS, MOST, Seen

OBSERVE = """
local function ema(old, observed, weight) return (1 - weight) * old + weight * observed end
local called = {}
for at = 12, #ARGV, 5 do
  local y, fail, seconds = tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
  local s = {}
  local known = redis.call('HGET', KEYS[1], ARGV[at]) or table.concat({unpack(ARGV, 1, 6)}, ' ')
  for value in string.gmatch(known, '%S+') do s[#s + 1] = tonumber(value) end
  if not (math.abs(s[6]) < math.huge) then s[6] = tonumber(ARGV[6]) end
  if ARGV[at + 1] == 'verdict' then
    local weight = tonumber(ARGV[7])
    local before = (s[3] - weight) / (1 - weight)
    s[2] = math.max(s[2] - 1, 0)
    s[3] = math.max(s[3] - weight, 0)
    s[4] = math.min(math.max(s[4] + tonumber(ARGV[8]) * (2 * before - 1), 0), 1)
  else
    s[1], s[2] = s[1] + 1, s[2] + y
  end
  if ARGV[at + 1] == 'call' then
    local surprise = y - s[3]
    s[3] = ema(s[3], y, tonumber(ARGV[7]))
    s[4] = ema(s[4], surprise * surprise, tonumber(ARGV[8]))
    s[5] = ema(s[5], fail, tonumber(ARGV[9]))
    if seconds and seconds - seconds == 0 then s[6] = ema(s[6], seconds, tonumber(ARGV[10])) end
  end
  redis.call('HSET', KEYS[1], ARGV[at], string.format('%d %d %.17g %.17g %.17g %.17g', unpack(s)))
  called[ARGV[at]] = true
end
for tool in pairs(called) do redis.call('ZADD', KEYS[2], ARGV[11], tool) end
"""
"""`pegboard.averages.after` in Lua. Arguments: six values of the prior, four weights, the time, five per outcome."""
KINDS = {"caller": "count", "verdict": "verdict"}
"""What an outcome changes, by its failure: only the counts, or an earlier outcome. Others also change the averages."""
ADD_LESSONS = """
local function numbers(text)
  local found = {}
  for value in string.gmatch(text, '%S+') do found[#found + 1] = tonumber(value) end
  return found
end
local most, conversations, now = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
for at = 4, #ARGV, 2 do
  local sums, known = numbers(ARGV[at + 1]), redis.call('HGET', KEYS[1], ARGV[at])
  if known then
    known = numbers(known)
    local weight = known[conversations] < most and 1 or 0.5
    for each = 1, #sums do sums[each] = weight * known[each] + sums[each] end
  end
  for each = 1, #sums do sums[each] = string.format('%.17g', sums[each]) end
  redis.call('HSET', KEYS[1], ARGV[at], table.concat(sums, ' '))
  redis.call('ZADD', KEYS[2], now, ARGV[at])
end
"""
"""`Seen.joined` in Lua. Arguments: `MOST`, the index of ``conversations``, the time, then keys and their sums."""


class RedisStatistics:
    def __init__(
        self,
        server: RedisServer,
        *,
        prior: ToolStatistics = PRIOR,
        smoothing: Smoothing = SMOOTHING,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._server = server
        self._clock = clock
        self._constants = [repr(value) for value in (*astuple(prior), *astuple(smoothing))]

    async def observe(self, outcomes: Sequence[Outcome]) -> None:
        for some in batches(outcomes):
            values = [value for outcome in some for value in _values(outcome)]
            now = repr(self._clock.time())
            await self._server.run(OBSERVE, statistics_keys(self._server), [*self._constants, now, *values])

    async def read(self) -> Mapping[ToolId, ToolStatistics]:
        async with self._server.client() as client:
            found = await client.hgetall(statistics_keys(self._server)[0])
        return {tool_of(field): statistics_of(value) for field, value in found.items()}


class RedisLessons:
    def __init__(self, server: RedisServer, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._server = server
        self._clock = clock

    async def add(self, sums: Mapping[str, Seen]) -> None:
        constants = (repr(MOST), COLUMNS.index("conversations") + 1, repr(self._clock.time()))
        for some in batches(sums.items()):
            values = [value for key, seen in some for value in (key, text_of(astuple(seen)))]
            await self._server.run(ADD_LESSONS, lesson_keys(self._server), [*constants, *values])

    async def read(self, keys: Sequence[str]) -> Mapping[str, Seen]:
        found: dict[str, Seen] = {}
        async with self._server.client() as client:
            for some in batches(dict.fromkeys(keys)):
                values = await client.hmget(lesson_keys(self._server)[0], some)
                found |= {key: seen_of(value) for key, value in zip(some, values, strict=True) if value is not None}
        return found


class StatisticsRecords(HashRecordStore[StatisticsRecord]):
    script = ADD_STAMPED

    def keys(self) -> tuple[str, str]:
        return statistics_keys(self.server)

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
            StatisticsRecord(server=server, name=name, used=used, **asdict(statistics_of(value)))
            for (server, name), (value, used) in found
            if value is not None
        ]


class LessonRecords(HashRecordStore[LessonRecord]):
    script = ADD_STAMPED

    def keys(self) -> tuple[str, str]:
        return lesson_keys(self.server)

    def field(self, key: Key) -> str:
        return key[0]

    def key(self, field: bytes) -> Key:
        return (field.decode(),)

    def arguments(self, record: LessonRecord) -> tuple[str, str]:
        return text_of([getattr(record, name) for name in COLUMNS]), repr(record.used)

    async def read(self, client: Any, keys: Sequence[Key]) -> list[LessonRecord]:
        found = zip(keys, await self.values(client, list(map(self.field, keys))), strict=True)
        return [
            LessonRecord(key=key, used=used, **asdict(seen_of(value)))
            for (key,), (value, used) in found
            if value is not None
        ]


def statistics_keys(server: RedisServer) -> tuple[str, str]:
    """The keys of the statistics, and of the time of each tool's last call."""
    return server.key("statistics"), server.key("statistics", "used")


def _values(outcome: Outcome) -> tuple[str | int, ...]:
    """The tool, what the outcome changes, y, fail, and seconds."""
    kind, fail = KINDS.get(outcome.failure or "", "call"), int(outcome.failure == "server")
    return field_of(outcome.tool), kind, int(outcome.success), fail, repr(outcome.latency_ms / 1000)


def statistics_of(value: bytes) -> ToolStatistics:
    calls, successes, *averages = value.split()
    success, variance, failure, latency = map(float, averages)
    return ToolStatistics(
        calls=int(calls),
        successes=int(successes),
        success=success,
        variance=variance,
        failure=failure,
        latency=latency,
    )


def lesson_keys(server: RedisServer) -> tuple[str, str]:
    """The keys of the sums, and of the time each was last added to."""
    return server.key("lessons"), server.key("lessons", "used")


def text_of(sums: Sequence[float]) -> str:
    return " ".join(repr(float(each)) for each in sums)


def seen_of(value: bytes) -> Seen:
    return Seen(**dict(zip(COLUMNS, map(float, value.split()), strict=True)))
