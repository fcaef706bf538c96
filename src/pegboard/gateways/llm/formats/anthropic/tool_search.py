"""Tool search in Messages: an extra tool, its `tool_use` blocks, and several messages as one, also when streamed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from pegboard.gateways.llm.formats.edits import (
    appended,
    arguments_in,
    fields_of,
    input_of,
    loaded,
    search_function,
    summed,
    with_value,
    written,
)
from pegboard.gateways.llm.formats.json_reader import object_of, objects_of, place_of, text_of, value_of
from pegboard.gateways.llm.formats.protocol import LlmRequest
from pegboard.gateways.llm.formats.streams import Frames, named_event
from pegboard.gateways.llm.formats.tool_search import Document, FunctionCall, Hides, Joiner, SearchExchange, SearchTool

GROWING: Mapping[str, str] = {"text_delta": "text", "thinking_delta": "thinking"}
"""The field of a delta that is appended to the field of its block, by delta type."""


@dataclass(slots=True)
class Block:
    """A block received so far. ``place`` is its index at the client, if it has one."""

    whole: dict[str, Any]
    place: int | None = None
    input: str = ""


@dataclass(slots=True)
class MessagesRound:
    """One answer received so far: its blocks, and the events that end it."""

    blocks: dict[int, Block] = field(default_factory=dict)
    tail: list[tuple[bytes, Document]] = field(default_factory=list)
    used: Any = None
    stop: Any = None
    container: Any = None
    is_known: bool = True


class MessagesJoiner:
    def __init__(self) -> None:
        self._rounds = 0
        self._used: Any = None
        self._next = 0
        self._calls = 0
        self._frames = Frames()
        self._round = MessagesRound()

    def begin(self, held: Hides) -> None:
        if self._rounds:
            self._used = summed(self._used, self._round.used)
        self._rounds += 1
        self._held = held
        self._frames = Frames()
        self._round = MessagesRound()

    def feed(self, piece: bytes) -> bytes:
        return b"".join(self._passed(raw, loaded(data)) for raw, data in self._frames.feed(piece))

    def close(self) -> Document | None:
        last = b"".join(self._passed(raw, loaded(data)) for raw, data in self._frames.finish())
        round_ = self._round
        if last:
            round_.tail.append((last, {}))
        if round_.stop is None or not round_.is_known:
            return None
        blocks = [round_.blocks[index].whole for index in sorted(round_.blocks)]
        where = {"container": round_.container} if round_.container else {}
        return {"type": "message", "role": "assistant", "content": blocks, "stop_reason": round_.stop, **where}

    def finish(self, hides: Hides) -> bytes:
        return b"".join([*self._late_calls(hides), *(self._ended(raw, event) for raw, event in self._round.tail)])

    def failed(self, body: bytes) -> bytes:
        error = (loaded(body) or {}).get("error") or {"type": "api_error", "message": body.decode("utf-8", "replace")}
        return named_event({"type": "error", "error": error})

    def _passed(self, raw: bytes, event: Document | None) -> bytes:
        kind = event.get("type") if event else None
        if event and text_of(kind).startswith("content_block") and place_of(event.get("index")) is None:
            self._round.is_known = False
            return raw
        match kind:
            case "message_start" if event:
                self._round.used = object_of(event.get("message")).get("usage")
                return raw if self._rounds == 1 else b""
            case "message_delta" | "message_stop" if event:
                self._round.tail.append((raw, event))
                self._end(event)
                return b""
            case "content_block_start" if event:
                return self._start(raw, event)
            case "content_block_delta" | "content_block_stop" if event:
                return self._go_on(raw, event)
        return raw

    def _end(self, event: Document) -> None:
        delta = object_of(event.get("delta"))
        self._round.stop = delta.get("stop_reason") or self._round.stop
        self._round.container = delta.get("container") or self._round.container
        told = object_of(event.get("usage"))
        self._round.used = {**object_of(self._round.used), **{name: n for name, n in told.items() if n is not None}}

    def _start(self, raw: bytes, event: Document) -> bytes:
        block = Block(dict(object_of(event.get("content_block"))))
        self._round.blocks[event["index"]] = block
        is_call = block.whole.get("type") == "tool_use"
        if is_call and self._held(text_of(block.whole.get("name"))):
            return b""
        self._calls += is_call
        block.place, self._next = self._next, self._next + 1
        return renumbered(raw, event, block.place)

    def _go_on(self, raw: bytes, event: Document) -> bytes:
        block = self._round.blocks.get(event["index"])
        if block is None:
            return raw
        if event["type"] == "content_block_stop" and block.input:
            block.whole["input"] = input_of(block.input)
        elif event["type"] == "content_block_delta":
            self._round.is_known = add(block, object_of(event.get("delta"))) and self._round.is_known
        return b"" if block.place is None else renumbered(raw, event, block.place)

    def _late_calls(self, hides: Hides) -> Iterator[bytes]:
        for block in self._round.blocks.values() if self._round.stop is not None else ():
            if block.place is None and not hides(text_of(block.whole.get("name"))):
                at = {"index": self._next}
                self._next, self._calls = self._next + 1, self._calls + 1
                partial = {
                    "type": "input_json_delta",
                    "partial_json": block.input or json.dumps(block.whole.get("input") or {}),
                }
                yield named_event({"type": "content_block_start", **at, "content_block": block.whole | {"input": {}}})
                yield named_event({"type": "content_block_delta", **at, "delta": partial})
                yield named_event({"type": "content_block_stop", **at})

    def _ended(self, raw: bytes, event: Document) -> bytes:
        """The last events, with the total usage, and without announcing calls that the client does not get."""
        if event.get("type") != "message_delta":
            return raw
        delta = dict(object_of(event.get("delta")))
        if delta.get("stop_reason") == "tool_use" and not self._calls:
            delta["stop_reason"] = "end_turn"
        elif self._rounds == 1:
            return raw
        used = summed(self._used, self._round.used) if self._rounds > 1 else event.get("usage")
        return named_event(event | {"delta": delta, "usage": used})


class MessagesToolSearch:
    def closed(self, request: LlmRequest, query: str) -> str:
        if request.turn.messages and request.turn.messages[-1].role == "assistant":
            return "the answer continues text that the caller wrote"
        return ""

    def offer(self, body: bytes, tool: SearchTool) -> bytes:
        return appended(body, "tools", [search_function(tool, "input_schema")])

    def extended(self, body: bytes, definitions: Sequence[bytes]) -> bytes:
        return appended(body, "tools", definitions)

    def calls(self, answer: Document) -> list[FunctionCall]:
        return [asked(block) for block in _blocks(answer) if block.get("type") == "tool_use"]

    def waits(self, answer: Document) -> bool:
        return answer.get("stop_reason") == "tool_use"

    def continued(self, body: bytes, exchanges: Sequence[SearchExchange]) -> bytes:
        body = _in_container(body, exchanges[-1].answer)
        return appended(body, "messages", [said for each in exchanges for said in _said(each)])

    def merged(self, answers: Sequence[Document], hides: Hides) -> Document:
        last = answers[-1]
        if not isinstance(last.get("content"), list):
            return last
        before = [block for answer in answers[:-1] for block in _blocks(answer) if block.get("type") != "tool_use"]
        shown = [block for block in _blocks(last) if not _is_hidden(block, hides)]
        reason = ended(last.get("stop_reason"), shown=any(block.get("type") == "tool_use" for block in shown))
        used = reduce(summed, (answer.get("usage") for answer in answers))
        first = {"id": answers[0]["id"]} if "id" in answers[0] else {}
        ended_by = {"stop_reason": reason} if "stop_reason" in last else {}
        return last | first | {"content": [*before, *shown]} | ended_by | ({} if used is None else {"usage": used})

    def joiner(self) -> Joiner:
        return MessagesJoiner()


def asked(block: Mapping[str, Any]) -> FunctionCall:
    return FunctionCall(
        name=text_of(block.get("name")), arguments=arguments_in(block.get("input")), id=text_of(block.get("id"))
    )


def ended(reason: Any, *, shown: bool) -> Any:
    """The stop reason, corrected if the client gets none of the calls."""
    return "end_turn" if reason == "tool_use" and not shown else reason


def _is_hidden(block: Mapping[str, Any], hides: Hides) -> bool:
    return block.get("type") == "tool_use" and hides(text_of(block.get("name")))


def _in_container(body: bytes, answer: Document) -> bytes:
    """The body for the container in which the answer's code ran, so that what comes next finds its files."""
    used = text_of(object_of(answer.get("container")).get("id"))
    if not used:
        return body
    text, fields = fields_of(body)
    asked_for = object_of(value_of(text, fields, "container"))
    return with_value(body, "container", written({**asked_for, "id": used} if asked_for else used))


def _blocks(answer: Document) -> list[Mapping[str, Any]]:
    return objects_of(answer.get("content") or [])


def _said(exchange: SearchExchange) -> list[Document]:
    """The messages for an exchange. Signed thinking blocks stay unchanged; blank texts are dropped, as they must not be
    sent."""
    said = [
        block for block in _blocks(exchange.answer) if block.get("type") != "text" or text_of(block["text"]).strip()
    ]
    results = [{"type": "tool_result", "tool_use_id": call.id, "content": text} for call, text in exchange.results]
    return [{"role": "assistant", "content": said}, {"role": "user", "content": results}]


def add(block: Block, delta: Mapping[str, Any]) -> bool:
    """Add a delta to its block. Returns whether its type is known."""
    kind = text_of(delta.get("type"))
    if kind in GROWING:
        name = GROWING[kind]
        block.whole[name] = text_of(block.whole.get(name)) + text_of(delta.get(name))
    elif kind == "compaction_delta":  # returned as it is: an empty text is refused, None is not
        before = block.whole.get("content")
        block.whole |= {name: value for name, value in delta.items() if name != "type"}
        if isinstance(before, str) and isinstance(delta.get("content"), str):
            block.whole["content"] = before + delta["content"]
    elif kind == "input_json_delta":
        block.input += text_of(delta.get("partial_json"))
    elif kind == "signature_delta":
        block.whole["signature"] = text_of(block.whole.get("signature")) + text_of(delta.get("signature"))
    elif kind == "citations_delta":
        block.whole["citations"] = [*(block.whole.get("citations") or []), delta.get("citation")]
    else:
        return False
    return True


def renumbered(raw: bytes, event: Document, place: int) -> bytes:
    """The event of a block with this index; its original bytes if that does not change."""
    return raw if event["index"] == place else named_event(event | {"index": place})
