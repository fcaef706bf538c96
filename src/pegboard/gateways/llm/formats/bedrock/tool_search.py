"""Tool search in Converse: an extra tool, its `toolUse` blocks, and several answers as one, also when streamed.

Streams are frames (`event_frames.py`) whose payloads are the events of ConverseStream (Bedrock Runtime API reference).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from pegboard.gateways.llm.formats.bedrock.event_frames import EventFrames, Frame, event_frame, exception_frame
from pegboard.gateways.llm.formats.edits import (
    appended,
    arguments_in,
    fields_of,
    input_of,
    loaded,
    schema,
    summed,
    with_member,
    written,
)
from pegboard.gateways.llm.formats.json_reader import object_of, objects_of, place_of, text_of
from pegboard.gateways.llm.formats.json_spans import Edit, splice
from pegboard.gateways.llm.formats.protocol import LlmRequest
from pegboard.gateways.llm.formats.tool_search import Document, FunctionCall, Hides, Joiner, SearchExchange, SearchTool

CALLS, ENDED = "tool_use", "end_turn"
"""Stop reasons: of an answer that waits for results, and of one that is complete."""
INDEX = "contentBlockIndex"
SCHEMA_KEYS = frozenset({"type", "properties", "required"})


@dataclass(slots=True)
class ConverseBlock:
    """A block received so far. ``place`` is its index at the client, if it has one."""

    whole: dict[str, Any] = field(default_factory=dict)
    place: int | None = None
    input: str = ""
    citations: list[Any] = field(default_factory=list)

    @property
    def called(self) -> str:
        """The tool that the caller has to call, if the block is such a call."""
        return text_of(object_of(self.whole["toolUse"]).get("name")) if is_call(self.whole) else ""


@dataclass(slots=True)
class ConverseRound:
    """One answer received so far: its blocks, and the events that end it."""

    blocks: dict[int, ConverseBlock] = field(default_factory=dict)
    tail: list[tuple[bytes, str, Document]] = field(default_factory=list)
    told: Document = field(default_factory=dict)
    stop: Any = None
    is_known: bool = True


class ConverseJoiner:
    def __init__(self) -> None:
        self._rounds = 0
        self._told: Document = {}
        self._next = 0
        self._calls = 0
        self._left = b""
        self._frames = EventFrames()
        self._round = ConverseRound()

    def begin(self, held: Hides) -> None:
        if self._rounds:
            self._told = _sum(self._told, self._round.told)
        self._rounds += 1
        self._held = held
        self._frames = EventFrames()
        self._round = ConverseRound()

    def feed(self, piece: bytes) -> bytes:
        out = b"".join(map(self._passed, self._frames.whole(piece)))
        return out + self._frames.left() if self._frames.is_lost else out

    def close(self) -> Document | None:
        self._left = self._frames.left()
        round_ = self._round
        if round_.stop is None or not round_.is_known:
            return None
        blocks = [_whole(round_.blocks[index]) for index in sorted(round_.blocks)]
        return {"output": {"message": {"role": "assistant", "content": blocks}}, "stopReason": round_.stop}

    def finish(self, hides: Hides) -> bytes:
        ends = (self._ended(*each) for each in self._round.tail)
        return b"".join([*self._late_calls(hides), *ends, self._left])

    def failed(self, body: bytes) -> bytes:
        said = text_of((loaded(body) or {}).get("message")) or body.decode("utf-8", "replace")
        return exception_frame("internalServerException", said)

    def _passed(self, frame: Frame) -> bytes:
        event, said = frame.event, frame.document
        if said is None:
            return frame.raw
        match event:
            case "messageStart":
                return frame.raw if self._rounds == 1 else b""
            case "contentBlockStart" | "contentBlockDelta" | "contentBlockStop":
                return self._block(frame, event, said)
            case "messageStop" | "metadata":
                self._round.stop = said.get("stopReason") or self._round.stop
                self._round.told = said if event == "metadata" else self._round.told
                self._round.tail.append((frame.raw, event, said))
                return b""
        return frame.raw

    def _block(self, frame: Frame, event: str, said: Document) -> bytes:
        """Only blocks of calls begin with an event of their own."""
        index = place_of(said.get(INDEX, 0))
        if index is None:
            self._round.is_known = False
            return frame.raw
        block = self._round.blocks.get(index)
        if block is None:
            block = self._round.blocks[index] = ConverseBlock(dict(object_of(said.get("start"))))
            if not (block.called and self._held(block.called)):
                self._calls += bool(block.called)
                block.place, self._next = self._next, self._next + 1
        if event == "contentBlockDelta":
            self._round.is_known = add(block, object_of(said.get("delta"))) and self._round.is_known
        if block.place is None:
            return b""
        return frame.raw if index == block.place else event_frame(event, said | {INDEX: block.place})

    def _late_calls(self, hides: Hides) -> Iterator[bytes]:
        for block in self._round.blocks.values() if self._round.stop is not None else ():
            if block.place is None and not hides(block.called):
                block.place = self._next
                self._next, self._calls = self._next + 1, self._calls + 1
                yield from call_frames(block.place, object_of(block.whole["toolUse"]), block.input or "{}")

    def _ended(self, raw: bytes, event: str, said: Document) -> bytes:
        """The last events, with the total usage, and without announcing calls that the client does not get."""
        if event == "metadata":
            return raw if self._rounds == 1 else event_frame(event, _sum(self._told, said))
        reason = ended(said.get("stopReason"), shown=bool(self._calls))
        return raw if reason == said.get("stopReason") else event_frame(event, said | {"stopReason": reason})


class ConverseToolSearch:
    def closed(self, request: LlmRequest, query: str) -> str:
        if request.turn.messages and request.turn.messages[-1].role == "assistant":
            return "the answer continues text that the caller wrote"
        return ""

    def offer(self, body: bytes, tool: SearchTool) -> bytes:
        """Amazon Nova refuses any other key at the top level of a schema (Nova user guide, Defining a tool)."""
        json_ = {key: value for key, value in schema(tool.kinds).items() if key in SCHEMA_KEYS}
        said = {"name": tool.name, "description": tool.description, "inputSchema": {"json": json_}}
        return self.extended(body, [written({"toolSpec": said})])

    def extended(self, body: bytes, definitions: Sequence[bytes]) -> bytes:
        text, fields = fields_of(body)
        if "toolConfig" not in fields or not text[fields["toolConfig"].value.start :].startswith(b"{"):
            value = b'{"tools":[' + b",".join(definitions) + b"]}"
            if "toolConfig" not in fields:
                return with_member(body, "toolConfig", value)
            return splice(body, [Edit(*fields["toolConfig"].value, value)])
        start, end = fields["toolConfig"].value
        return splice(body, [Edit(start, end, appended(body[start:end], "tools", definitions))])

    def calls(self, answer: Document) -> list[FunctionCall]:
        return [asked(object_of(block["toolUse"])) for block in blocks_of(answer) if is_call(block)]

    def waits(self, answer: Document) -> bool:
        return answer.get("stopReason") == CALLS

    def continued(self, body: bytes, exchanges: Sequence[SearchExchange]) -> bytes:
        return appended(body, "messages", [said for each in exchanges for said in _said(each)])

    def merged(self, answers: Sequence[Document], hides: Hides) -> Document:
        last = answers[-1]
        if not isinstance(_message(last).get("content"), list):
            return last
        before = [block for answer in answers[:-1] for block in blocks_of(answer) if not is_call(block)]
        shown = [block for block in blocks_of(last) if not _is_hidden(block, hides)]
        reason = ended(last.get("stopReason"), shown=any(map(is_call, shown)))
        message = {**_message(last), "content": [*before, *shown]}
        output = {**object_of(last.get("output")), "message": message}
        return reduce(_sum, answers) | {"output": output, "stopReason": reason}

    def joiner(self) -> Joiner:
        return ConverseJoiner()


def is_call(block: Mapping[str, Any]) -> bool:
    """Whether the caller has to make it: the provider has run its own tools itself."""
    return "toolUse" in block and object_of(block["toolUse"]).get("type") != "server_tool_use"


def asked(use: Mapping[str, Any]) -> FunctionCall:
    return FunctionCall(
        name=text_of(use.get("name")), arguments=arguments_in(use.get("input")), id=text_of(use.get("toolUseId"))
    )


def blocks_of(answer: Document) -> list[Mapping[str, Any]]:
    return objects_of(_message(answer).get("content") or [])


def ended(reason: Any, *, shown: bool) -> Any:
    """The stop reason, corrected if the client gets none of the calls."""
    return ENDED if reason == CALLS and not shown else reason


def call_frames(place: int, use: Mapping[str, Any], arguments: str) -> Iterator[bytes]:
    """The frames of a complete call with this index. ``arguments`` is JSON."""
    at = {INDEX: place}
    yield event_frame("contentBlockStart", {"start": {"toolUse": dict(use)}, **at})
    yield event_frame("contentBlockDelta", {"delta": {"toolUse": {"input": arguments}}, **at})
    yield event_frame("contentBlockStop", at)


def add(block: ConverseBlock, delta: Mapping[str, Any]) -> bool:
    """Add a delta to its block. Returns whether it can be assembled again."""
    match next(iter(delta), ""):
        case "text":
            block.whole["text"] = text_of(block.whole.get("text")) + text_of(delta["text"])
        case "toolUse":
            block.input += text_of(object_of(delta["toolUse"]).get("input"))
        case "citation":
            block.citations.append(delta["citation"])
        case "toolResult":
            result = object_of(block.whole.get("toolResult"))
            content = [*(result.get("content") or []), *objects_of(delta["toolResult"])]
            block.whole["toolResult"] = {**result, "content": content}
        case "reasoningContent":
            return _add_reasoning(block, object_of(delta["reasoningContent"]))
        case _:
            return False
    return True


def _add_reasoning(block: ConverseBlock, delta: Mapping[str, Any]) -> bool:
    """Text and signature of a block are in a member of its own; what is redacted comes whole."""
    said = dict(object_of(block.whole.get("reasoningContent")))
    if "redactedContent" in delta:
        block.whole["reasoningContent"] = {"redactedContent": delta["redactedContent"]}
        return "redactedContent" not in said
    text = dict(object_of(said.get("reasoningText")))
    text |= {name: text_of(text.get(name)) + text_of(more) for name, more in delta.items()}
    block.whole["reasoningContent"] = {"reasoningText": text}
    return not delta.keys() - {"text", "signature"}


def _whole(block: ConverseBlock) -> Mapping[str, Any]:
    if block.citations:
        said = {"content": [{"text": text_of(block.whole.get("text"))}], "citations": block.citations}
        return {"citationsContent": said}
    if "toolUse" not in block.whole:
        return block.whole
    return {"toolUse": {**object_of(block.whole["toolUse"]), "input": input_of(block.input)}}


def _message(answer: Document) -> Mapping[str, Any]:
    return object_of(object_of(answer.get("output")).get("message"))


def _is_hidden(block: Mapping[str, Any], hides: Hides) -> bool:
    return is_call(block) and hides(text_of(object_of(block["toolUse"]).get("name")))


def _sum(first: Document, second: Document) -> Document:
    """The later of two answers, or of their metadata, with the usage and the latency of both."""
    counts = {name: summed(first.get(name), second.get(name)) for name in ("usage", "metrics")}
    return second | {name: value for name, value in counts.items() if value is not None}


def _said(exchange: SearchExchange) -> list[Document]:
    """The messages for an exchange. Signed reasoning stays unchanged; blank texts are dropped, as they are refused."""
    said = [block for block in blocks_of(exchange.answer) if "text" not in block or text_of(block["text"]).strip()]
    results = [{"toolResult": {"toolUseId": call.id, "content": [{"text": text}]}} for call, text in exchange.results]
    return [{"role": "assistant", "content": said}, {"role": "user", "content": results}]
