"""The program of `activity_writer`: stores the batches on its standard input in a file until that ends."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import BinaryIO

import msgspec

from pegboard.activity_entries import ActivityEntry
from pegboard.errors import PegboardError
from pegboard.operating_system import BEHIND_REQUESTS, yield_to_others
from pegboard.stores.sqlite.activity import SqliteActivity
from pegboard.stores.sqlite.activity_writer import REFUSED, STORED, read


async def serve(store: SqliteActivity, batches: BinaryIO, answers: BinaryIO) -> None:
    decoder = msgspec.msgpack.Decoder(tuple[list[ActivityEntry], list[str]])
    while (batch := read(batches)) is not None:
        try:
            entries, known = decoder.decode(batch)
            await store.put(entries, known=known)
            answer = STORED
        except PegboardError:
            answer = REFUSED
        answers.write(answer)
        answers.flush()


if __name__ == "__main__":
    yield_to_others(BEHIND_REQUESTS)
    activity = SqliteActivity(Path(sys.argv[1]), apart=False)
    asyncio.run(serve(activity, sys.stdin.buffer, sys.stdout.buffer))
    activity.close()
