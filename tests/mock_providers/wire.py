"""What the mock providers share: answers as documents or as events."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from starlette.types import Send

SAID = "Very well, it is done. ✓"
MOST_CALLS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A document, or server-sent events: a name, if they have one, and data; a text is sent as it is."""

    document: Any = None
    events: Sequence[tuple[str, Any]] | None = None
    status: int = 200

    async def send(self, send: Send) -> None:
        kind = b"application/json" if self.events is None else b"text/event-stream; charset=utf-8"
        headers = [(b"content-type", kind), (b"request-id", b"req_1")]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        if self.events is None:
            await send({"type": "http.response.body", "body": json.dumps(self.document).encode()})
            return
        for name, data in self.events:
            await send({"type": "http.response.body", "body": event_bytes(name, data), "more_body": True})
        await send({"type": "http.response.body", "body": b""})


class Provider(Protocol):
    def answer(self, asked: Mapping[str, Any], id_: str, path: str) -> Reply: ...

    def error(self, message: str) -> Any:
        """The document that says what is wrong with a request."""
        ...


def event_bytes(name: str, data: Any) -> bytes:
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return f"event: {name}\ndata: {text}\n\n".encode() if name else f"data: {text}\n\n".encode()
