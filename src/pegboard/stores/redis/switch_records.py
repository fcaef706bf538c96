"""What operators have switched off, on Redis: a hash, one field a tool or server, and when each was last set."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pegboard.model import ToolId
from pegboard.records import Key, SwitchRecord
from pegboard.stores.redis.database import field_of, tool_of
from pegboard.stores.redis.record_stores import ADD_STAMPED, HashRecordStore


class SwitchRecords(HashRecordStore[SwitchRecord]):
    script = ADD_STAMPED

    def keys(self) -> tuple[str, str]:
        return self.server.key("switches"), self.server.key("switches", "at")

    def field(self, key: Key) -> str:
        return field_of(ToolId(*key))

    def key(self, field: bytes) -> Key:
        return tool_of(field)

    def arguments(self, record: SwitchRecord) -> tuple[str, str]:
        return json.dumps([record.definition, record.who]), repr(record.at)

    async def read(self, client: Any, keys: Sequence[Key]) -> list[SwitchRecord]:
        found = zip(keys, await self.values(client, list(map(self.field, keys))), strict=True)
        read = [(key, json.loads(value), at) for key, (value, at) in found if value is not None]
        return [
            SwitchRecord(server=server, name=name, definition=definition, who=who, at=float(at))
            for (server, name), (definition, who), at in read
        ]
