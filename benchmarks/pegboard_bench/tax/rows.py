"""From what was sent to numbers: one row a task."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise

from pegboard.catalog import BpeCounter, canonical_text, compact_json
from pegboard.catalog.tokens import Encoding
from pegboard.model import Tool, ToolId
from pegboard.routing.eligibility import Precondition, parse_precondition
from pegboard_bench.tax.request import Sent
from pegboard_bench.tax.tasks import Step, Task, needs

TURN = 30
"""The turn at which ρ is taken (Tool Attention §6.5)."""
TALK = 250
"""Tokens that a step adds to the conversation besides tool text, for what a changed prefix makes a cache write anew."""
READ, WRITE = 0.1, 1.25
"""A cached token read and written, in prices of plain input: Anthropic's five-minute cache (`prompt_cache.prices`)."""

Row = Mapping[str, float | str | Sequence[float]]
"""JSON: the measures of one task."""


def wire_text(tool: Tool) -> str:
    """A definition as OpenAI's Chat Completions take it."""
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.input_schema or {"type": "object"},
    }
    return compact_json({"type": "function", "function": function})


@dataclass(slots=True)
class Tally:
    """Counts tokens, each text once."""

    encoding: Encoding = "cl100k_base"
    _known: dict[bytes, int] = field(default_factory=dict)
    _canonical: dict[Tool, int] = field(default_factory=dict)
    _wire: dict[Tool, int] = field(default_factory=dict)

    def text(self, text: str) -> int:
        key = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if key not in self._known:
            self._known[key] = BpeCounter(self.encoding).count([text])[0]
        return self._known[key]

    def canonical(self, tools: Sequence[Tool]) -> int:
        for tool in tools:
            if tool not in self._canonical:
                self._canonical[tool] = self.text(canonical_text(tool))
        return sum(self._canonical[tool] for tool in tools)

    def wire(self, tools: Sequence[Tool]) -> int:
        """As an array, with a token for each comma or bracket."""
        for tool in tools:
            if tool not in self._wire:
                self._wire[tool] = self.text(wire_text(tool)) + 1
        return sum(self._wire[tool] for tool in tools)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """Tokens of one step.

    ``turn`` is what its last request carries: definitions in canonical form, texts, and what was asked in this step.
    ``resident`` also has what was asked in earlier ones. ``sent`` is everything that all its requests carry, as it goes
    over the wire; ``billed`` the same in prices of plain input, under a prompt cache.
    """

    turn: int
    resident: int
    sent: int
    sent_o200k: int
    billed: float
    requests: int


def count(sends: Sequence[Sent], tally: Tally, other: Tally) -> list[Counted]:
    """Each step of a conversation, in order. ``other`` counts by another encoding."""
    found: list[Counted] = []
    kept = kept_other = 0
    before: tuple[object, ...] = ()
    for number, sent in enumerate(sends):
        standing = tally.canonical([*sent.tools, *sent.late]) + sum(map(tally.text, sent.texts))
        asked = [sum(map(tally.text, each)) for each in sent.asked]
        asked_other = [sum(map(other.text, each)) for each in sent.asked]
        requests = 1 + len(asked)
        prefix = tally.wire(sent.tools) + sum(map(tally.text, sent.texts))
        late = tally.wire(sent.late)
        history = kept + TALK * number
        same = (sent.tools, sent.texts) == before and number > 0
        first = (READ if same else WRITE) * (prefix + history) + late
        again = (requests - 1) * (READ * (prefix + history) + late)
        found.append(
            Counted(
                turn=standing + sum(asked),
                resident=standing + sum(asked) + kept,
                sent=requests * (prefix + late + kept) + _carried(asked),
                sent_o200k=requests * (_whole(sent, other) + kept_other) + _carried(asked_other),
                billed=first + again + WRITE * sum(asked) - READ * TALK * number,
                requests=requests,
            )
        )
        before = (sent.tools, sent.texts)
        kept, kept_other = kept + sum(asked), kept_other + sum(asked_other)
    return found


def _whole(sent: Sent, tally: Tally) -> int:
    return tally.wire([*sent.tools, *sent.late]) + sum(map(tally.text, sent.texts))


def _carried(asked: Sequence[int]) -> int:
    """What is asked in a request is carried by all that follow in the step: a then b then the call carry a, a + b."""
    return sum((len(asked) - place) * tokens for place, tokens in enumerate(asked))


def row(task: Task, sends: Sequence[Sent], tally: Tally, other: Tally) -> Row:
    """The measures of a task: means over its steps, and its first one apart."""
    steps = count(sends, tally, other)
    hits = [float(bool(step.serves & sent.reached)) for step, sent in zip(task.steps, sends, strict=True)]
    given = [len(sent.reached) for sent in sends]
    later = steps[1:] or steps
    changed = [a.tools != b.tools for a, b in pairwise(sends)]
    return {
        "kind": task.kind,
        "steps": float(len(steps)),
        "first": float(steps[0].turn),
        "steady": _mean([each.turn for each in later]),
        "sent": _mean([each.sent for each in steps]),
        "sent_o200k": _mean([each.sent_o200k for each in steps]),
        "billed": _mean([each.billed for each in steps]),
        "requests": _mean([each.requests for each in steps]),
        "recall": _mean(hits),
        "f1": _mean([2 * hit / (1 + most) for hit, most in zip(hits, given, strict=True)]),
        "tools": _mean(given),
        "complete": float(all(hits)),
        "phase1": _mean([sum(map(tally.text, sent.texts)) for sent in sends]),
        "phase2": _mean([tally.canonical([*sent.tools, *sent.late]) for sent in sends]),
        "barred": _mean([float(_barred(step, sent)) for step, sent in zip(task.steps, sends, strict=True)]),
        "changed": _mean(changed) if changed else 0.0,
        "resident": [float(each.resident) for each in steps],
        "hits": hits,
    }


def _barred(step: Step, sent: Sent) -> bool:
    """Whether a tool was promoted that the state of the agent does not allow."""
    return any(not holds(step.state) for tool in sent.reached for holds in _preconditions(tool))


@cache
def _preconditions(tool: ToolId) -> tuple[Precondition, ...]:
    return tuple(parse_precondition(need) for need in needs(tool))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
