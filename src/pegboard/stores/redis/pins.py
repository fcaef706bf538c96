"""Pins on Redis: two hashes, a field a tool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pegboard.model import Fingerprint, Pin, ToolId
from pegboard.stores.batches import batches
from pegboard.stores.redis.server import RedisServer, field_of, tool_of

GET = """
local found = {}
for _, tool in ipairs(ARGV) do
  found[#found + 1] = redis.call('HGET', KEYS[1], tool)
  found[#found + 1] = redis.call('HGET', KEYS[2], tool)
end
return found
"""
PUT = """
local approved = {}
for at = 1, #ARGV, 2 do
  redis.call('HSETNX', KEYS[1], ARGV[at], ARGV[at + 1])
  redis.call('HSET', KEYS[2], ARGV[at], ARGV[at + 1])
  approved[#approved + 1] = redis.call('HGET', KEYS[1], ARGV[at])
end
return approved
"""
APPROVE = """
for at = 1, #ARGV, 2 do
  redis.call('HSET', KEYS[1], ARGV[at], ARGV[at + 1])
  redis.call('HSETNX', KEYS[2], ARGV[at], ARGV[at + 1])
end
"""


class RedisPins:
    """The server has to keep them: with persistence, and no eviction."""

    def __init__(self, server: RedisServer) -> None:
        self._server = server

    async def get(self, tools: Sequence[ToolId] | None = None) -> Mapping[ToolId, Pin]:
        if tools is None:
            async with self._server.client() as client:
                tools = [tool_of(field) for field in await client.hkeys(keys(self._server)[0])]
        pins: dict[ToolId, Pin] = {}
        for some in batches(tools):
            values = await self._server.run(GET, keys(self._server), [field_of(tool) for tool in some])
            pairs = zip(some, values[::2], values[1::2], strict=True)
            pins |= {tool: _pin(approved, seen.decode()) for tool, approved, seen in pairs if approved is not None}
        return pins

    async def put(self, seen: Mapping[ToolId, Fingerprint]) -> Mapping[ToolId, Pin]:
        pins: dict[ToolId, Pin] = {}
        for some in batches(seen.items()):
            approved = await self._server.run(PUT, keys(self._server), _arguments(some))
            pins |= {tool: _pin(known, now) for (tool, now), known in zip(some, approved, strict=True)}
        return pins

    async def approve(self, tools: Mapping[ToolId, Fingerprint]) -> None:
        for some in batches(tools.items()):
            await self._server.run(APPROVE, keys(self._server), _arguments(some))


def keys(server: RedisServer) -> tuple[str, str]:
    return server.key("pins", "approved"), server.key("pins", "seen")


def _arguments(some: Sequence[tuple[ToolId, Fingerprint]]) -> list[str]:
    return [value for tool, fingerprint in some for value in (field_of(tool), fingerprint)]


def _pin(approved: bytes, seen: str) -> Pin:
    return Pin(approved=Fingerprint(approved.decode()), seen=Fingerprint(seen))
