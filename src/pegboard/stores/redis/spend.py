"""Spending on Redis: what each meter shows, and what is held back on it for calls under way."""

from __future__ import annotations

from typing import cast

from pegboard.errors import SpendLimitReached
from pegboard.seams import Clock
from pegboard.spending import Account, Limits, Meter, MeterKind, NanoUsd, Reservation, meters
from pegboard.stores.redis.server import RedisServer
from pegboard.stores.spend import HOLD, LATE, check_amount, limit_of, new_reservation

RESERVE = """
local id, amount, expires, now, keep = ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4]), ARGV[5]
for meter = 1, 3 do
  local used = tonumber(redis.call('HGET', KEYS[1], ARGV[5 + meter]) or 0)
  local held = redis.call('HGETALL', KEYS[2 + meter])
  for at = 1, #held, 2 do
    local cost, ends = string.match(held[at + 1], '(%S+) (%S+)')
    if tonumber(ends) > now then used = used + tonumber(cost)
    else redis.call('HDEL', KEYS[2 + meter], held[at]) end
  end
  local limit = tonumber(ARGV[8 + meter])
  if limit and used + amount > limit then return {meter, string.format('%.0f', used)} end
end
for meter = 1, 3 do
  redis.call('HSET', KEYS[2 + meter], id, ARGV[2] .. ' ' .. expires)
  redis.call('PEXPIRE', KEYS[2 + meter], keep)
end
redis.call('ZADD', KEYS[2], expires, id)
return {0}
"""
SETTLE = """
if redis.call('ZREM', KEYS[2], ARGV[1]) == 0 then return end
for meter = 1, 3 do
  redis.call('HDEL', KEYS[2 + meter], ARGV[1])
  redis.call('HINCRBY', KEYS[1], ARGV[3 + meter], ARGV[2])
  if meter ~= 2 then redis.call('ZADD', KEYS[6], ARGV[3], ARGV[3 + meter]) end
end
"""


class RedisSpend:
    """The server has to keep it: with persistence, and no eviction."""

    def __init__(self, server: RedisServer, clock: Clock, *, hold: float = HOLD) -> None:
        self._server = server
        self._clock = clock
        self._hold = hold

    async def reserve(self, account: Account, amount: NanoUsd, limits: Limits) -> Reservation:
        now = self._clock.time()
        reservation = new_reservation(account, amount, now, self._hold)
        running = meters(account, reservation.day)
        at_most = [limit_of(limits, meter.kind) for meter in running]
        keep = int((self._hold + LATE) * 1000)
        values: list[str | int] = [
            reservation.id,
            amount,
            repr(reservation.expires),
            repr(now),
            keep,
            *map(field_of_meter, running),
        ]
        values += ["" if limit is None else limit for limit in at_most]
        refused, *used = await self._server.run(RESERVE, self._keys(running), values)
        if refused:
            kind, limit = running[refused - 1].kind, at_most[refused - 1]
            raise SpendLimitReached(kind, limit=NanoUsd(limit or 0), used=NanoUsd(int(used[0])), amount=amount)
        return reservation

    async def settle(self, reservation: Reservation, actual: NanoUsd) -> None:
        check_amount(actual)
        running = meters(reservation.account, reservation.day)
        values: list[str | int] = [reservation.id, actual, repr(self._clock.time()), *map(field_of_meter, running)]
        await self._server.run(SETTLE, [*self._keys(running), shared_keys(self._server)[2]], values)

    async def expire(self) -> int:
        async with self._server.client() as client:
            past = repr(self._clock.time() - LATE)
            return int(await client.zremrangebyscore(shared_keys(self._server)[1], "-inf", past))

    def _keys(self, running: tuple[Meter, ...]) -> list[str]:
        return [*shared_keys(self._server)[:2], *(held_key(self._server, meter) for meter in running)]


def shared_keys(server: RedisServer) -> tuple[str, str, str]:
    """What each meter shows, when each reservation ends, and when each meter of a session or day last ran."""
    return server.key("spend", "spent"), server.key("spend", "reservations"), server.key("spend", "used")


def held_key(server: RedisServer, meter: Meter) -> str:
    return server.key("spend", "held", field_of_meter(meter))


def field_of_meter(meter: Meter) -> str:
    return f"{meter.kind} {meter.name}"


def meter_of(field: str) -> Meter:
    kind, _, name = field.partition(" ")
    return Meter(cast("MeterKind", kind), name)
