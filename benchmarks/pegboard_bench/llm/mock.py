"""A provider that costs next to nothing: it reads a request by its length and answers with the same bytes always.

python -m pegboard_bench.llm.mock PORT
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import cast

CALL = {"id": "call_1", "type": "function", "function": {"name": "invoice_approve", "arguments": '{"invoice_id": "1"}'}}
ANSWER = json.dumps(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": "some-model",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": None, "tool_calls": [CALL]},
                "finish_reason": "tool_calls",
            }
        ],
        "usage": {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20},
    }
).encode()
RESPONSE = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(ANSWER), ANSWER)


class Mock(asyncio.Protocol):
    """One connection."""

    def __init__(self) -> None:
        self._head = b""
        self._left = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # it serves on a socket

    def data_received(self, data: bytes) -> None:
        while data:
            if self._left:
                taken = min(self._left, len(data))
                self._left, data = self._left - taken, data[taken:]
            else:
                head, end, data = (self._head + data).partition(b"\r\n\r\n")
                if not end:
                    self._head = head
                    return
                self._head = b""
                self._left = _length(head)
            if not self._left:
                self._transport.write(RESPONSE)


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        if line[:15].lower() == b"content-length:":
            return int(line[15:])
    return 0


async def serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Mock, "127.0.0.1", port, backlog=1024)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    try:
        import uvloop

        uvloop.run(serve(int(sys.argv[1])))
    except ImportError:
        asyncio.run(serve(int(sys.argv[1])))
