"""The secrets of the servers on Redis: one hash, a field each."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pegboard.model import SigningKey
from pegboard.stores.redis.server import RedisServer
from pegboard.stores.signing_keys import in_order, key_of

SHARE = """
for at = 2, #ARGV, 2 do redis.call('HSETNX', KEYS[1], ARGV[at], ARGV[at + 1]) end
local known = redis.call('HGETALL', KEYS[1])
local kept = {}
for at = 1, #known, 2 do
  if cjson.decode(known[at + 1])['made'] >= tonumber(ARGV[1]) then kept[#kept + 1] = known[at + 1]
  else redis.call('HDEL', KEYS[1], known[at]) end
end
return kept
"""


class RedisSigningKeys:
    def __init__(self, server: RedisServer) -> None:
        self._server = server

    async def share(self, keys: Sequence[SigningKey], *, forget: float) -> Sequence[SigningKey]:
        values = [repr(forget)]
        for key in keys:
            values += [key.id, json.dumps({"id": key.id, "made": key.made, "secret": key.secret.hex()})]
        kept = await self._server.run(SHARE, [self._server.key("signing_keys")], values)
        return in_order(key_of(**json.loads(each)) for each in kept)
