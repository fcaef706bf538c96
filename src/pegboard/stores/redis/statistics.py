"""Statistics on Redis: one hash, a field a tool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple

from pegboard.averages import PRIOR, SMOOTHING
from pegboard.clock import SYSTEM_CLOCK
from pegboard.model import Outcome, Smoothing, ToolId, ToolStatistics
from pegboard.seams import Clock
from pegboard.stores.batches import batches
from pegboard.stores.redis.server import RedisServer, field_of, tool_of

OBSERVE = """
local function ema(old, observed, weight) return (1 - weight) * old + weight * observed end
local called = {}
for at = 12, #ARGV, 5 do
  local y, fail, seconds = tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
  local s = {}
  local known = redis.call('HGET', KEYS[1], ARGV[at]) or table.concat({unpack(ARGV, 1, 6)}, ' ')
  for value in string.gmatch(known, '%S+') do s[#s + 1] = tonumber(value) end
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
    s[6] = ema(s[6], seconds, tonumber(ARGV[10]))
  end
  redis.call('HSET', KEYS[1], ARGV[at], string.format('%d %d %.17g %.17g %.17g %.17g', unpack(s)))
  called[ARGV[at]] = true
end
for tool in pairs(called) do redis.call('ZADD', KEYS[2], ARGV[11], tool) end
"""
"""`pegboard.averages.after` in Lua: six values of the prior, four weights, the time, then five values an outcome."""
KINDS = {"caller": "count", "verdict": "verdict"}
"""What an outcome does by its failure: it counts alone, or revises; every other one is a `call` to the averages."""


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
            await self._server.run(OBSERVE, keys(self._server), [*self._constants, now, *values])

    async def read(self) -> Mapping[ToolId, ToolStatistics]:
        async with self._server.client() as client:
            found = await client.hgetall(keys(self._server)[0])
        return {tool_of(field): statistics_of(value) for field, value in found.items()}


def keys(server: RedisServer) -> tuple[str, str]:
    """The statistics, and when each tool was last called."""
    return server.key("statistics"), server.key("statistics", "used")


def _values(outcome: Outcome) -> tuple[str | int, ...]:
    """Which tool, what is done with it, y, fail, and seconds."""
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
