"""Several streamed responses as one: one beginning, items and events numbered through, and one end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pegboard.gateways.llm.reading import object_of, objects_of, text_of
from pegboard.gateways.llm.way_back.edits import loaded, summed, written
from pegboard.gateways.llm.way_back.frames import Frames
from pegboard.gateways.llm.way_back.response_items import asked, is_call, unseen
from pegboard.gateways.llm.way_back.wire import Document, Hides

BEGINNINGS = ("response.created", "response.queued", "response.in_progress")
ENDS = ("response.completed", "response.incomplete", "response.failed")
DONE = b"[DONE]"


@dataclass(slots=True)
class Round:
    """One answer, as far as it has come: where its items are at the client, and the events that end it."""

    places: dict[int, int | None] = field(default_factory=dict)
    late: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    tail: list[tuple[bytes, Document | None]] = field(default_factory=list)
    response: Document | None = None


class ResponsesJoiner:
    def __init__(self) -> None:
        self._rounds = 0
        self._number: int | None = None
        self._used: Any = None
        self._begun: Document = {}
        self._output: dict[int, Mapping[str, Any]] = {}
        self._next = 0
        self._frames = Frames()
        self._round = Round()

    def begin(self, held: Hides) -> None:
        if self._rounds:
            self._used = summed(self._used, object_of(self._round.response).get("usage"))
        self._rounds += 1
        self._held = held
        self._frames = Frames()
        self._round = Round()

    def feed(self, piece: bytes) -> bytes:
        return b"".join(self._passed(raw, data) for raw, data in self._frames.feed(piece))

    def close(self) -> Document | None:
        for raw, data in self._frames.finish():
            if passing := self._passed(raw, data):
                self._round.tail.append((passing, None))
        return self._round.response

    def finish(self, hides: Hides) -> bytes:
        late = b"".join(self._late_calls(hides))
        return late + b"".join(self._ended(raw, event, hides) for raw, event in self._round.tail)

    def failed(self, body: bytes) -> bytes:
        error = object_of((loaded(body) or {}).get("error"))
        told = {"code": "server_error", "message": text_of(error.get("message")) or body.decode("utf-8", "replace")}
        output = [item for _, item in sorted(self._output.items())]
        response = self._begun | {"status": "failed", "error": told, "output": output}
        return self._event({"type": "response.failed", "sequence_number": 0, "response": response})

    def _passed(self, raw: bytes, data: bytes) -> bytes:
        event = loaded(data)
        if data == DONE:
            self._round.tail.append((raw, None))
        elif event is None:
            return raw
        elif event.get("type") in BEGINNINGS:
            return self._beginning(raw, event)
        elif event.get("type") in ENDS:
            self._round.response = dict(object_of(event.get("response")))
            self._round.tail.append((raw, event))
        elif "output_index" in event:
            return self._item(raw, event)
        else:
            return self._event(event, raw, event)
        return b""

    def _beginning(self, raw: bytes, event: Document) -> bytes:
        if self._rounds > 1:
            return b""
        self._begun = unseen(dict(object_of(event.get("response"))), self._held)
        return self._event(event | {"response": self._begun}, raw, event)

    def _item(self, raw: bytes, event: Document) -> bytes:
        index, item = event["output_index"], object_of(event.get("item"))
        if event["type"] == "response.output_item.added":
            self._round.places[index] = self._place(item)
        place = self._round.places.get(index)
        if event["type"] == "response.output_item.done":
            if place is None:
                self._round.late[index] = item
            else:
                self._output[place] = item
        return b"" if place is None else self._event(event | {"output_index": place}, raw, event)

    def _place(self, item: Mapping[str, Any]) -> int | None:
        if is_call(item) and self._held(asked(item).name):
            return None
        self._next += 1
        return self._next - 1

    def _late_calls(self, hides: Hides) -> Iterator[bytes]:
        for item in self._round.late.values():
            if hides(asked(item).name):
                continue
            place, self._next = self._next, self._next + 1
            self._output[place] = item
            name = "input" if "input" in item else "arguments"
            kind = f"{item['type']}_{name}"
            for event in (
                {"type": "response.output_item.added", "item": {**item, name: "", "status": "in_progress"}},
                {"type": f"response.{kind}.delta", "item_id": item.get("id"), "delta": item.get(name)},
                {"type": f"response.{kind}.done", "item_id": item.get("id"), name: item.get(name)},
                {"type": "response.output_item.done", "item": item},
            ):
                yield self._event({**event, "sequence_number": 0, "output_index": place})

    def _ended(self, raw: bytes, event: Document | None, hides: Hides) -> bytes:
        """The whole response, with what all answers said and took, under the id that it began with."""
        if event is None:
            return raw
        response = unseen(dict(object_of(event.get("response"))), hides)
        for index, item in enumerate(objects_of(response.get("output") or [])):
            if (place := self._round.places.get(index)) is not None:
                self._output[place] = item
        output = [item for _, item in sorted(self._output.items())]
        response |= {"output": output, "usage": summed(self._used, response.get("usage"))}
        response |= {"id": self._begun["id"]} if "id" in self._begun else {}
        return self._event(event | {"response": response}, raw, event)

    def _event(self, event: Document, raw: bytes = b"", before: Document | None = None) -> bytes:
        """With the next number; as it came, where nothing of it is new."""
        if "sequence_number" in event:
            number = event["sequence_number"] if self._number is None else self._number
            event, self._number = event | {"sequence_number": number}, number + 1
        if event == before:
            return raw
        return b"event: " + text_of(event.get("type")).encode() + b"\ndata: " + written(event) + b"\n\n"
