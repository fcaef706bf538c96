"""A conversation played by one contender: what each request sent, found and cost."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage

from pegboard.catalog import BpeCounter, compact_json
from pegboard.errors import ArgumentsInvalid, ToolNotAvailable
from pegboard.gateways.langchain.model_request import NOW
from pegboard.gateways.langchain.scripted_model import ScriptedRequest
from pegboard_bench.agents.contenders import SYSTEM, Contender
from pegboard_bench.agents.script import Ask, offered
from pegboard_bench.cache.prompts import prompt
from pegboard_bench.cache.providers import Model

THINK = 30.0
"""Seconds between the user's messages; between the requests of a turn, STEP."""
STEP = 3.0
MODELS = {"openai": "gpt-5.4", "anthropic": "claude-sonnet-5"}
TTL = 300


@dataclass(kw_only=True)
class TurnPlayed:
    """Tokens are of all requests of the turn; ``about_tools`` is what of them is said about tools."""

    requests: int
    sent: int
    about_tools: int
    selecting: tuple[int, ...]
    seconds: float
    wanted: int
    at_first_sight: int
    called: int
    refused: int
    wrong_arguments: int


@dataclass(kw_only=True)
class Played:
    turns: list[TurnPlayed]
    prefix_kept: bool
    read_share: Mapping[str, float]
    """The share of all input tokens that a provider's cache gives, by its rules."""
    billed: Mapping[str, float]
    """Tokens of plain input that cost the same, over the conversation."""


def play(contender: Contender, asks: Sequence[Ask]) -> Played:
    turns, requests = [], []
    config = {"configurable": {"thread_id": "1"}, "recursion_limit": 60}
    for number, ask in enumerate(asks):
        contender.behaviour.ask = ask
        before, selected = len(contender.model.asked), len(contender.selections)
        started = time.perf_counter()
        out = contender.agent.invoke({"messages": [HumanMessage(ask.text)]}, config)
        seconds = time.perf_counter() - started
        asked = contender.model.asked[before:]
        requests += [(number * THINK + step * STEP, each) for step, each in enumerate(asked)]
        turns.append(_turn(ask, asked, tuple(contender.selections[selected:]), out["messages"], seconds))
    texts = [_blocks(each) for _, each in requests]
    kept = all(later[: len(earlier)] == earlier for earlier, later in pairwise(texts))
    counted = _counted(texts)
    times = [at for at, _ in requests]
    used = {provider: _billed(Model.of(name, TTL), times, texts, counted) for provider, name in MODELS.items()}
    return Played(
        turns=turns,
        prefix_kept=kept,
        read_share={provider: share for provider, (share, _) in used.items()},
        billed={provider: billed for provider, (_, billed) in used.items()},
    )


def _turn(
    ask: Ask,
    asked: Sequence[ScriptedRequest],
    selecting: tuple[int, ...],
    messages: Sequence[BaseMessage],
    seconds: float,
) -> TurnPlayed:
    texts = [_blocks(each) for each in asked]
    counted = _counted(texts)
    said = _since_ask(messages)
    wanted = [tool.name for tool in ask.tools]
    errors = [error for message in said if (error := _error(message))]
    first = set(offered(asked[0]))
    about = _counted([[part for part in _about_tools(each) if part] for each in asked])
    return TurnPlayed(
        requests=len(asked),
        sent=sum(counted[block] for blocks in texts for block in blocks),
        about_tools=sum(about[part] for each in asked for part in _about_tools(each) if part),
        selecting=selecting,
        seconds=seconds,
        wanted=len(wanted),
        at_first_sight=sum(name in first for name in wanted),
        called=sum(isinstance(each, ToolMessage) and each.status == "success" and not _found(each) for each in said),
        refused=errors.count(ToolNotAvailable.code),
        wrong_arguments=errors.count(ArgumentsInvalid.code),
    )


def _blocks(asked: ScriptedRequest) -> tuple[str, ...]:
    """A request as a provider's cache reads it: tool by tool, then message by message."""
    messages = [
        compact_json([each.type, each.content, getattr(each, "tool_calls", None) or None]) for each in asked.messages
    ]
    return (*(compact_json(tool) for tool in asked.tools), *messages)


def _about_tools(asked: ScriptedRequest) -> list[str]:
    """What a request says about tools: definitions, summaries, and texts that came with messages."""
    system = [each.text.removeprefix(SYSTEM) for each in asked.messages[:1] if each.type == "system"]
    texts = [_shown(each) for each in asked.messages if NOW in each.text and each.type != "system"]
    return [*(compact_json(tool) for tool in asked.tools), *system, *texts]


def _shown(message: BaseMessage) -> str:
    """The text that was shown beside a message: before what a user said, behind what a tool said."""
    before, _, after = message.text.rpartition("\n\n")
    return after if message.type == "tool" else before


def _since_ask(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    last = max(place for place, each in enumerate(messages) if isinstance(each, HumanMessage))
    return list(messages[last + 1 :])


def _error(message: BaseMessage) -> str:
    if not isinstance(message, ToolMessage) or message.status != "error":
        return ""
    try:
        return str(json.loads(message.text).get("error"))
    except ValueError:
        return "other"


def _found(message: BaseMessage) -> bool:
    return message.text.startswith("Available tools:")


def _counted(texts: Sequence[Sequence[str]]) -> Mapping[str, int]:
    distinct = list(dict.fromkeys(block for blocks in texts for block in blocks))
    return dict(zip(distinct, BpeCounter().count(distinct), strict=True))


def _billed(
    model: Model, times: Sequence[float], texts: Sequence[Sequence[str]], counted: Mapping[str, int]
) -> tuple[float, float]:
    """The share that is read from the cache, and what all of it is billed."""
    cache, read, sent, billed = model.cache(), 0, 0, 0.0
    for at, blocks in zip(times, texts, strict=True):
        tools = sum(block.startswith('{"type":"function"') for block in blocks)
        marks = model.marks(tools, len(blocks))
        usage = cache.send(prompt([(hash(block), counted[block]) for block in blocks], marks), at)
        read, sent = read + usage.read, sent + sum(counted[block] for block in blocks)
        billed += usage.billed(model.prices)
    return read / sent, billed


def total(turns: Sequence[TurnPlayed], name: str) -> Any:
    return sum(getattr(turn, name) for turn in turns)
