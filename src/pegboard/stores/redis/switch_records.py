"""What operators have switched off, on Redis: a hash, one field a tool or server and definition, and when each was last
set."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pegboard.records import Key, SwitchRecord
from pegboard.stores.redis.record_stores import ADD_STAMPED, HashRecordStore


class SwitchRecords(HashRecordStore[SwitchRecord]):
    script = ADD_STAMPED

    def keys(self) -> tuple[str, str]:
        return self.server.key("switched"), self.server.key("switched", "at")

    def field(self, key: Key) -> str:
        return json.dumps(key)

    def key(self, field: bytes) -> Key:
        return tuple(json.loads(field))

    def arguments(self, record: SwitchRecord) -> tuple[str, str]:
        return json.dumps([record.definition, record.who]), repr(record.at)

    async def read(self, client: Any, keys: Sequence[Key]) -> list[SwitchRecord]:
        found = zip(keys, await self.values(client, list(map(self.field, keys))), strict=True)
        return [
            SwitchRecord(server=server, name=name, definition=definition, who=json.loads(value)[1], at=float(at))
            for (server, name, definition), (value, at) in found
            if value is not None
        ]
