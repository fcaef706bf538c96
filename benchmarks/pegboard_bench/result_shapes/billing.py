"""What conversations are billed with shaped results, by the rules of providers' prompt caches.

Conversations of agents are constructed around recorded results, and sent as an agent sends them: whole, with each
request. What the LLM gateway makes of them is billed by simulated caches (`pegboard_bench.cache`), and so is every
reading on: a result about which something is asked that its text does not say is read by `read_result`, by the rule of
`checker`, in a request of its own, whose call is output. Half of the questions stand before the call, in the model's
words; the others come up later. Other output is the same both ways, and left out.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import median, quantiles
from typing import Any

from pegboard.catalog.tokens import BpeCounter
from pegboard.gateways.llm.formats.registry import codec_for
from pegboard.gateways.llm.tool_results.request_results import RequestResults, ShapedRequest
from pegboard.results.result_reader import part_of
from pegboard.results.shape import ShapePolicy, texts_of
from pegboard.settings.result_settings import ResultForm, ResultSettings
from pegboard_bench.cache.prompts import Block, Chain
from pegboard_bench.cache.providers import Cache, Model
from pegboard_bench.result_shapes.checker import first_answer, second_answer
from pegboard_bench.result_shapes.questions import Question, questions
from pegboard_bench.result_shapes.recordings import Recording

CONVERSATIONS = 300
MODELS = ("claude-sonnet-5", "claude-haiku-4-5", "gpt-5.4", "gpt-5.6", "gemini-2.5-flash")
TTL = 300
OUTPUT = 5.0
"""Price of a token of output, in tokens of plain input."""
CALL = 60
"""Tokens of output of a call of `read_result`."""
HEAVY = 0.3
"""Share of results in the last prompt from which a conversation is one of large results."""
PATH = "/v1/messages"
COUNTER = BpeCounter("o200k_base")
WORDS = [
    "the",
    "of",
    "to",
    "and",
    "in",
    "is",
    "for",
    "with",
    "that",
    "on",
    "as",
    "are",
    "this",
    "be",
    "or",
    "by",
    "from",
    "at",
    "it",
    "an",
    "not",
    "which",
    "can",
    "will",
    "has",
    "more",
    "use",
    "when",
    "if",
    "data",
    "list",
    "name",
    "value",
    "page",
    "file",
    "table",
    "row",
    "issue",
    "branch",
    "user",
    "order",
    "price",
    "time",
    "error",
    "status",
    "request",
    "result",
    "search",
    "update",
    "create",
    "delete",
    "number",
    "between",
    "first",
    "last",
    "open",
    "closed",
    "after",
    "before",
    "every",
    "other",
    "same",
    "new",
    "next",
    "column",
    "message",
]
POLICY = ShapePolicy()
Body = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of conversation: least and most tools, words of instructions, turns of the user, steps in a turn, words of
    a user's message; and the largest result in tokens."""

    tools: tuple[int, int]
    system: tuple[int, int]
    turns: tuple[int, int]
    steps: tuple[int, int]
    words: tuple[int, int]
    largest: int


KINDS: Mapping[str, Kind] = {
    "data": Kind(tools=(4, 40), system=(200, 3_000), turns=(1, 4), steps=(1, 6), words=(10, 80), largest=10**9),
    "work": Kind(tools=(15, 60), system=(2_000, 12_000), turns=(2, 6), steps=(1, 8), words=(10, 200), largest=15_000),
    "talk": Kind(tools=(2, 15), system=(100, 2_000), turns=(4, 12), steps=(0, 1), words=(50, 600), largest=6_000),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A request: the conversation has ``messages`` of it by then. ``asked`` are questions about its last result;
    ``after`` are the seconds since the request before."""

    messages: int
    asked: Sequence[Question]
    after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    kind: str
    body: Body
    steps: Sequence[Step]


@lru_cache(maxsize=200_000)
def tokens(text: str) -> int:
    return int(COUNTER.count([text])[0])


def conversations(recorded: Sequence[Recording], number: int, seed: int) -> Iterator[Conversation]:
    """So many conversations, of each kind a third."""
    draw = random.Random(seed)  # noqa: S311
    pool: dict[int, list[Question]] = {}
    for each in questions(recorded, 10**6, seed):
        pool.setdefault(each.recording, []).append(each)
    sizes = [sum(map(tokens, texts_of(each.result))) for each in recorded]
    for at in range(number):
        name = list(KINDS)[at % len(KINDS)]
        yield _conversation(name, KINDS[name], recorded, sizes, pool, draw)


def _conversation(
    name: str,
    kind: Kind,
    recorded: Sequence[Recording],
    sizes: Sequence[int],
    pool: Mapping[int, Sequence[Question]],
    draw: random.Random,
) -> Conversation:
    among = [at for at, size in enumerate(sizes) if size <= kind.largest]
    names = list(dict.fromkeys(_name(each) for each in recorded))
    draw.shuffle(names)
    tools = [_tool(each, draw) for each in names[: draw.randint(*kind.tools)]]
    offered = {each["name"] for each in tools}
    callable_ = [at for at in among if _name(recorded[at]) in offered] or among
    messages: list[Body] = []
    steps: list[Step] = []
    for turn in range(draw.randint(*kind.turns)):
        messages.append({"role": "user", "content": [_text(_words(draw, draw.randint(*kind.words)))]})
        pause = draw.choice([20.0, 60.0, 120.0, 900.0]) if turn else 0.0
        asked: Sequence[Question] = ()
        for _ in range(draw.randint(*kind.steps)):
            steps.append(Step(messages=len(messages), asked=asked, after=pause))
            place, pause = draw.choice(callable_), draw.uniform(3, 30)
            exchange = _exchange(recorded[place], f"toolu_{len(messages)}", draw)
            own = pool.get(place, ())
            asked = draw.sample(own, 1) if own and draw.random() < 0.5 else ()
            if asked and len(steps) % 2:
                exchange[0]["content"].insert(0, _text(asked[0].said))
            messages += exchange
        steps.append(Step(messages=len(messages), asked=asked, after=pause))
        messages.append({"role": "assistant", "content": [_text(_words(draw, draw.randint(40, 300)))]})
    system = [_text(_words(draw, draw.randint(*kind.system)))]
    return Conversation(kind=name, body={"system": system, "tools": tools, "messages": messages}, steps=steps)


def _name(recording: Recording) -> str:
    return f"{recording.server}__{recording.tool}"


def _words(draw: random.Random, number: int) -> str:
    return " ".join(draw.choices(WORDS, k=number))


def _text(text: str) -> Body:
    return {"type": "text", "text": text}


def _tool(name: str, draw: random.Random) -> Body:
    fields = {
        f"{draw.choice(WORDS)}_{at}": {"type": "string", "description": _words(draw, draw.randint(3, 20))}
        for at in range(draw.randint(1, 6))
    }
    schema = {"type": "object", "properties": fields}
    return {"name": name, "description": _words(draw, draw.randint(8, 80)), "input_schema": schema}


def _exchange(recording: Recording, id_: str, draw: random.Random) -> list[Body]:
    call = {"type": "tool_use", "id": id_, "name": _name(recording), "input": {"what": _words(draw, 6)}}
    texts = [_text(each) for each in texts_of(recording.result)]
    result = {"type": "tool_result", "tool_use_id": id_, "content": texts or "nothing"}
    return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]


@dataclass(slots=True)
class Bill:
    """What the models bill for a conversation, how often it was read on, and the results' share of its last prompt."""

    billed: dict[str, float]
    reads: int = 0
    share: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A conversation as it is sent: the blocks of each message, and the texts of results. From message ``offered`` on
    the request offers `read_result`, as ``reader``."""

    front: Sequence[Block]
    messages: Sequence[Sequence[Block]]
    texts: Sequence[str]
    shaped: ShapedRequest | None
    offered: int
    reader: Block

    def blocks(self, messages: int) -> tuple[int, list[Block]]:
        """How many tools a request of so many messages has, and its blocks."""
        more = [self.reader] if self.offered <= messages else []
        tools = [*self.front[:-1], *more]
        return len(tools), [*tools, self.front[-1], *(block for each in self.messages[:messages] for block in each)]


def bill(conversation: Conversation, results: RequestResults, recorded: Sequence[Recording], form: ResultForm) -> Bill:
    """The bill with results in this form."""
    models = [Model.of(name, TTL) for name in MODELS]
    caches: dict[str, Cache] = {each.name: each.cache() for each in models}
    found = Bill(dict.fromkeys(MODELS, 0.0))
    asked = {"messages": conversation.body["messages"][: conversation.steps[-1].messages]}
    sent, now = sent_as(conversation.body | asked, results, form), 0.0
    for step in conversation.steps:
        now += step.after
        tools, blocks = sent.blocks(step.messages)
        _send(found, models, caches, tools, blocks, now)
        for read in _reads(step, sent, recorded):
            now += 5
            found.reads += 1
            blocks = [*blocks, _block(read[0]), _block(read[1])]
            _send(found, models, caches, tools, blocks, now)
            for name in MODELS:
                found.billed[name] += OUTPUT * CALL
    of_results = sum(tokens(text) for text in sent.texts)
    found.share = of_results / sum(each[1] for each in blocks)
    return found


def sent_as(body: Body, results: RequestResults, form: ResultForm) -> Sent:
    """Each message is sent as the same bytes with every request (`tests/gateways/llm/test_request_results.py`), so that
    the last one shows how all were."""
    shaped, first = _shaped(body, results, form), _shaped(body | {"messages": body["messages"][:1]}, results, form)
    made = json.loads(shaped.body) if shaped is not None else body
    reads = shaped.reads if shaped is not None else None
    handles = list(reads.kept) if reads is not None else []
    texts = [_result_text(each) for each in made["messages"]]
    cut = [at for at, text in enumerate(texts) if any(handle in text for handle in handles)]
    begins = first is not None and first.reads is not None
    return Sent(
        front=[*(_block(json.dumps(each)) for each in body["tools"]), _block(body["system"][0]["text"])],
        messages=[[_part(part) for part in each["content"]] for each in made["messages"]],
        texts=texts,
        shaped=shaped,
        offered=0 if begins else min(cut, default=len(texts)) + 1,
        reader=_block(reads.definition.decode()) if reads is not None else (0, 0),
    )


def _send(
    found: Bill, models: Sequence[Model], caches: Mapping[str, Cache], tools: int, blocks: Sequence[Block], now: float
) -> None:
    chain = Chain()
    chain.extend(blocks)
    for model in models:
        used = caches[model.name].send(chain.prompt(model.marks(tools, len(blocks))), now)
        found.billed[model.name] += used.billed(model.prices)


def _shaped(body: Body, results: RequestResults, form: ResultForm) -> ShapedRequest | None:
    codec = codec_for(PATH)
    if codec is None:
        raise ValueError(PATH)
    return results.shaped(codec, codec.parse(json.dumps(body).encode(), PATH), form)


def _part(part: Body) -> Block:
    match part["type"]:
        case "text":
            return _block(part["text"])
        case "tool_result":
            return _block("\n".join([part["tool_use_id"], _text_of(part)]))
    return _block(json.dumps(part))


def _result_text(message: Body) -> str:
    return "\n".join(_text_of(part) for part in message["content"] if part["type"] == "tool_result")


def _text_of(result: Body) -> str:
    said = result["content"]
    return said if isinstance(said, str) else "\n".join(each["text"] for each in said)


def _block(text: str) -> Block:
    return hash(text), tokens(text)


def _reads(step: Step, sent: Sent, recorded: Sequence[Recording]) -> Iterator[tuple[str, str]]:
    """The calls of `read_result`, with their answers, that the questions of a step take."""
    reads = None if sent.shaped is None or sent.offered > step.messages else sent.shaped.reads
    if reads is None:
        return
    text = sent.texts[step.messages - 1]
    for question in step.asked:
        if first_answer(question, text):
            continue
        made: list[tuple[str, str]] = []

        def read(made: list[tuple[str, str]] = made, of: Recording = recorded[question.recording], **given: Any) -> str:
            answer = part_of(of.result, given, POLICY, COUNTER)
            made.append((json.dumps({"name": "read_result", "input": given}), answer))
            return answer

        second_answer(question, read)
        yield from made


def billed(recorded: Sequence[Recording], seed: int) -> tuple[dict[str, float], dict[str, Any]]:
    """The figures and the table of the part."""
    figures: dict[str, float] = {"billed/conversations": CONVERSATIONS}
    table: dict[str, Any] = {"models": list(MODELS)}
    made = list(conversations(recorded, CONVERSATIONS, seed))
    none = RequestResults(ResultSettings(), COUNTER)
    before = [bill(each, none, recorded, "whole") for each in made]
    heavy = [at for at, each in enumerate(before) if each.share > HEAVY]
    figures["billed/heavy"] = len(heavy)
    forms: tuple[ResultForm, ...] = ("shaped", "handle")
    for form in forms:
        results = RequestResults(ResultSettings(), COUNTER)
        after = [bill(each, results, recorded, form) for each in made]
        ratios = [
            [one.billed[model] / other.billed[model] for model in MODELS]
            for one, other in zip(after, before, strict=True)
        ]
        flat = [ratio for row in ratios for ratio in row]
        large = [ratio for at in heavy for ratio in ratios[at]]
        total = sum(sum(each.billed.values()) for each in after) / sum(sum(each.billed.values()) for each in before)
        figures |= {
            f"billed/{form}/most": max(flat),
            f"billed/{form}/above": sum(max(row) > 1.01 for row in ratios),
            f"billed/{form}/median-heavy": median(large),
            f"billed/{form}/median": median(flat),
            f"billed/{form}/total": total,
            f"billed/{form}/reads": sum(each.reads for each in after),
        }
        table[form] = {
            model: {
                "most": max(row[at] for row in ratios),
                "median_heavy": median(ratios[each][at] for each in heavy),
                "quartiles": quantiles([row[at] for row in ratios]),
            }
            for at, model in enumerate(MODELS)
        }
        table[form]["kinds"] = {
            kind: median(ratio for row, each in zip(ratios, made, strict=True) if each.kind == kind for ratio in row)
            for kind in KINDS
        }
    return figures, table
