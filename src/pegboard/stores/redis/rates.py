"""How often each caller has called, on Redis: one number for each meter, removed when it says nothing more."""

from __future__ import annotations

from collections.abc import Sequence

from pegboard.protocols import Clock
from pegboard.rate_limits import CLOCKS_APART, ROUNDING, RateMeter
from pegboard.stores.redis.database import RedisServer

TAKE = """
local now, wait, known = tonumber(ARGV[1]), 0, {}
for at, key in ipairs(KEYS) do
  local interval, tolerance = tonumber(ARGV[2 * at]), tonumber(ARGV[2 * at + 1])
  known[at] = math.max(now, tonumber(redis.call('GET', key) or 0))
  if known[at] > now + interval + tolerance + tonumber(ARGV[2 * #KEYS + 3]) then known[at] = now + tolerance end
  wait = math.max(wait, known[at] - tolerance - now)
end
if wait > tonumber(ARGV[2 * #KEYS + 2]) then return string.format('%.17g', wait) end
for at, key in ipairs(KEYS) do
  local arrival = known[at] + tonumber(ARGV[2 * at])
  redis.call('SET', key, string.format('%.17g', arrival), 'PX', math.max(1, math.ceil((arrival - now) * 1000)))
end
return '0'
"""
"""`pegboard.rate_limits.admission`, atomically."""


class RedisRates:
    def __init__(self, server: RedisServer, clock: Clock) -> None:
        self._server = server
        self._clock = clock

    async def take(self, meters: Sequence[RateMeter]) -> float:
        keys = [self._server.key("rates", meter.key) for meter in meters]
        values = [repr(value) for meter in meters for value in (meter.interval, meter.tolerance)]
        values = [repr(self._clock.time()), *values, repr(ROUNDING), repr(CLOCKS_APART)]
        return float(await self._server.run(TAKE, keys, values))
