"""Pins on Redis: four hashes, one field a tool, and a number that says whether more has been approved."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pegboard.model import NEVER, Fingerprint, Pin, ToolId, Wording
from pegboard.protocols import NO_TEXTS
from pegboard.records import Key, PinRecord
from pegboard.stores.database import batches
from pegboard.stores.redis.database import RedisServer, field_of, tool_of
from pegboard.stores.redis.record_stores import HashRecordStore

GET = """
local found = {}
for _, tool in ipairs(ARGV) do
  found[#found + 1] = redis.call('HGET', KEYS[1], tool)
  found[#found + 1] = redis.call('HGET', KEYS[2], tool)
end
return found
"""
PUT = """
local approved, seen, approved_texts, seen_texts = unpack(KEYS)
local answer = {}
for at = 1, #ARGV, 4 do
  local tool, first, now, text = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
  redis.call('HSETNX', approved, tool, first)
  if text == '' and redis.call('HGET', seen, tool) ~= now then redis.call('HDEL', seen_texts, tool) end
  redis.call('HSET', seen, tool, now)
  local pinned = redis.call('HGET', approved, tool)
  if text ~= '' then
    redis.call('HSET', seen_texts, tool, text)
    if pinned == now then redis.call('HSET', approved_texts, tool, text) end
  end
  answer[#answer + 1] = pinned
end
return answer
"""
APPROVE = """
local approved, seen, approved_texts, seen_texts, version = unpack(KEYS)
for at = 1, #ARGV, 2 do
  local tool, now = ARGV[at], ARGV[at + 1]
  if redis.call('HGET', approved, tool) ~= now then
    local text = redis.call('HGET', seen, tool) == now and redis.call('HGET', seen_texts, tool)
    if text then redis.call('HSET', approved_texts, tool, text) else redis.call('HDEL', approved_texts, tool) end
  end
  redis.call('HSET', approved, tool, now)
  redis.call('HSETNX', seen, tool, now)
end
redis.call('INCR', version)
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


class RedisPins:
    """The Redis server must persist its data and must not evict keys."""

    def __init__(self, server: RedisServer) -> None:
        self._server = server

    async def get(self, tools: Sequence[ToolId] | None = None) -> Mapping[ToolId, Pin]:
        if tools is None:
            async with self._server.client() as client:
                tools = [tool_of(field) for field in await client.hkeys(pin_keys(self._server)[0])]
        pins: dict[ToolId, Pin] = {}
        for some in batches(tools):
            values = await self._server.run(GET, pin_keys(self._server), [field_of(tool) for tool in some])
            pairs = zip(some, values[::2], values[1::2], strict=True)
            pins |= {tool: _pin(approved, seen.decode()) for tool, approved, seen in pairs if approved is not None}
        return pins

    async def put(
        self,
        seen: Mapping[ToolId, Fingerprint],
        *,
        texts: Mapping[ToolId, str] = NO_TEXTS,
        doubted: Collection[ToolId] = (),
    ) -> Mapping[ToolId, Pin]:
        pins: dict[ToolId, Pin] = {}
        for some in batches(seen.items()):
            values = [
                value
                for tool, now in some
                for value in (field_of(tool), NEVER if tool in doubted else now, now, texts.get(tool, ""))
            ]
            approved = await self._server.run(PUT, pin_keys(self._server), values)
            pins |= {tool: _pin(known, now) for (tool, now), known in zip(some, approved, strict=True)}
        return pins

    async def approve(self, tools: Mapping[ToolId, Fingerprint]) -> None:
        for some in batches(tools.items()):
            values = [value for tool, fingerprint in some for value in (field_of(tool), fingerprint)]
            await self._server.run(APPROVE, (*pin_keys(self._server), version_key(self._server)), values)

    async def wordings(self, tools: Sequence[ToolId]) -> Mapping[ToolId, Wording]:
        found: dict[ToolId, Wording] = {}
        for some in batches(tools):
            fields = [field_of(tool) for tool in some]
            async with self._server.client() as client:
                commands = client.pipeline()
                approved, _, approved_texts, seen_texts = pin_keys(self._server)
                for name in (approved, approved_texts, seen_texts):
                    commands.hmget(name, fields)
                columns = await commands.execute()
            rows = zip(some, *columns, strict=True)
            found |= {
                tool: Wording(approved=_text(old), seen=_text(now)) for tool, pin, old, now in rows if pin is not None
            }
        return found

    async def version(self) -> int:
        async with self._server.client() as client:
            return int(await client.get(version_key(self._server)) or 0)


class PinRecords(HashRecordStore[PinRecord]):
    script = ADD_PINS

    def keys(self) -> tuple[str, str, str, str]:
        return pin_keys(self.server)

    def field(self, key: Key) -> str:
        return field_of(ToolId(*key))

    def key(self, field: bytes) -> Key:
        return tool_of(field)

    def arguments(self, record: PinRecord) -> tuple[str, str, str, str]:
        return record.approved, record.seen, record.approved_text or "", record.seen_text or ""

    async def add(self, records: Sequence[PinRecord]) -> int:
        taken = await super().add(records)
        async with self.server.client() as client:
            await client.incr(version_key(self.server))
        return taken

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


def pin_keys(server: RedisServer) -> tuple[str, str, str, str]:
    """The hashes of approved and last seen fingerprints, and of their texts."""
    return tuple(server.key("pins", part) for part in ("approved", "seen", "approved_text", "seen_text"))  # type: ignore[return-value]


def version_key(server: RedisServer) -> str:
    return server.key("pins", "version")


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


def _pin(approved: bytes, seen: str) -> Pin:
    return Pin(approved=Fingerprint(approved.decode()), seen=Fingerprint(seen))
