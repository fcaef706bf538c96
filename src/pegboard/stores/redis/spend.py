"""Spend on Redis: the amount of each meter, and the money held on it for calls in progress."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, cast

from pegboard.errors import SpendLimitReached
from pegboard.protocols import Clock
from pegboard.records import (
    HoldRecord,
    Key,
    MeterRecord,
)
from pegboard.spend_limits import Account, Limits, Meter, MeterKind, NanoUsd, Reservation, meters
from pegboard.stores.database import batches
from pegboard.stores.redis.database import RedisServer
from pegboard.stores.redis.record_stores import HashRecordStore, RecordStore, scanned
from pegboard.stores.retention import HOLD, LATE
from pegboard.stores.spend import check_amount, limit_of, new_reservation

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
ADD_HOLDS = """
local taken = 0
for at = 1, #ARGV, 4 do
  if redis.call('ZADD', KEYS[1], 'NX', ARGV[at + 2], ARGV[at]) == 1 then
    for meter = 1, 3 do
      local held = KEYS[1 + (at - 1) / 4 * 3 + meter]
      redis.call('HSET', held, ARGV[at], ARGV[at + 1] .. ' ' .. ARGV[at + 2])
      if redis.call('PTTL', held) < tonumber(ARGV[at + 3]) then redis.call('PEXPIRE', held, ARGV[at + 3]) end
    end
    taken = taken + 1
  end
end
return taken
"""


class RedisSpend:
    """The Redis server must persist its data and must not evict keys."""

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
        await self._server.run(SETTLE, [*self._keys(running), spend_keys(self._server)[2]], values)

    async def expire(self) -> int:
        async with self._server.client() as client:
            past = repr(self._clock.time() - LATE)
            return int(await client.zremrangebyscore(spend_keys(self._server)[1], "-inf", past))

    def _keys(self, running: tuple[Meter, ...]) -> list[str]:
        return [*spend_keys(self._server)[:2], *(held_key(self._server, meter) for meter in running)]


class MeterRecords(HashRecordStore[MeterRecord]):
    script = ADD_METERS

    def keys(self) -> tuple[str, str]:
        spent, _, used = spend_keys(self.server)
        return spent, used

    def field(self, key: Key) -> str:
        kind, name = key
        return field_of_meter(Meter(kind, name))  # type: ignore[arg-type]

    def key(self, field: bytes) -> Key:
        return meter_of(field.decode())

    def arguments(self, record: MeterRecord) -> tuple[int, str]:
        return record.spent, "" if record.used is None else repr(record.used)

    async def read(self, client: Any, keys: Sequence[Key]) -> list[MeterRecord]:
        found = zip(keys, await self.values(client, list(map(self.field, keys))), strict=True)
        return [
            MeterRecord(kind=kind, name=name, spent=int(value), used=used)  # type: ignore[arg-type]
            for (kind, name), (value, used) in found
            if value is not None
        ]


class HoldRecords(RecordStore[HoldRecord]):
    """The holds of calls in progress: few at any time."""

    async def names(self, client: Any) -> list[Key]:
        return sorted((each.reservation,) for each in await self._all(client))

    async def read(self, client: Any, keys: Sequence[Key]) -> list[HoldRecord]:
        found = {each.identity: each for each in await self._all(client)}
        return [found[key] for key in keys if key in found]

    async def add(self, records: Sequence[HoldRecord]) -> int:
        now, values, keys = self.clock.time(), list[str | int](), [spend_keys(self.server)[1]]
        for each in records:
            keep = int((each.expires - now + LATE) * 1000)
            values += [each.reservation, each.amount, repr(each.expires), keep]
            keys += [held_key(self.server, meter) for meter in each.meters]
        return int(await self.server.run(ADD_HOLDS, keys, values))

    async def remove(self, client: Any, keys: Sequence[Key]) -> int:
        commands = client.pipeline()
        commands.zrem(spend_keys(self.server)[1], *(reservation for (reservation,) in keys))
        for each in await self.read(client, keys):
            for meter in each.meters:
                commands.hdel(held_key(self.server, meter), each.reservation)
        return int((await commands.execute())[0])

    async def remove_old(self, client: Any, before: float) -> int:
        return int(await client.zremrangebyscore(spend_keys(self.server)[1], "-inf", repr(before)))

    async def count(self, client: Any) -> int:
        return int(await client.zcount(spend_keys(self.server)[1], f"({self.clock.time() - LATE!r}", "+inf"))

    async def _all(self, client: Any) -> list[HoldRecord]:
        """All holds; each is stored in the hashes of its three meters."""
        found: dict[str, dict[str, Any]] = defaultdict(dict)
        for some in batches(await scanned(client, self.server, "spend", "held")):
            running = list(map(meter_of, some))
            commands = client.pipeline(transaction=False)
            for meter in running:
                commands.hgetall(held_key(self.server, meter))
            for meter, held in zip(running, await commands.execute(), strict=True):
                for reservation, value in held.items():
                    amount, expires = value.split()
                    name = "caller" if meter.kind == "key" else meter.kind
                    found[reservation.decode()] |= {name: meter.name, "amount": int(amount), "expires": float(expires)}
        whole = len(("session", "caller", "day", "amount", "expires"))
        return [
            HoldRecord(reservation=reservation, **fields)
            for reservation, fields in found.items()
            if len(fields) == whole
        ]


def spend_keys(server: RedisServer) -> tuple[str, str, str]:
    """Amounts of the meters, ends of the reservations, and last use of the meters of sessions and days."""
    return server.key("spend", "spent"), server.key("spend", "reservations"), server.key("spend", "used")


def held_key(server: RedisServer, meter: Meter) -> str:
    return server.key("spend", "held", field_of_meter(meter))


def field_of_meter(meter: Meter) -> str:
    return f"{meter.kind} {meter.name}"


def meter_of(field: str) -> Meter:
    kind, _, name = field.partition(" ")
    return Meter(cast("MeterKind", kind), name)
