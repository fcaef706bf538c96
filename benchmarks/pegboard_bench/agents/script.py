"""Scripted conversations, and a model that plays the agent's part in them by one rule."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from pegboard.catalog import Catalog
from pegboard.gateways.langchain.messages import CALL_TOOL, called_name
from pegboard.gateways.langchain.model_request import NOW
from pegboard.gateways.langchain.scripted_model import ScriptedRequest, calls
from pegboard.model import ToolId

GIVE_UP = 3
"""Refusals in a turn after which the model asks the user."""
RETRIEVE = "retrieve_tools"
KEY = "SHOP-412"
"""Fits the one pattern that the schemas of real120 have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What a user says, the tools that it takes in their order, and what to call them with."""

    text: str
    tools: tuple[ToolId, ...]
    arguments: tuple[Mapping[str, Any], ...] = ()


def conversation(name: str) -> list[Ask]:
    """The asks that were written for a testbed, in the order of their story."""
    said = json.loads((files("pegboard_bench.agents") / "conversations.json").read_text("utf-8"))[name]
    return [
        Ask(
            text=each["ask"],
            tools=tuple(ToolId(*tool.split("/")) for tool in each["tools"]),
            arguments=tuple(each.get("arguments", ())),
        )
        for each in said
    ]


def shuffled(asks: Sequence[Ask], seed: int) -> list[Ask]:
    """The story for seed 0; other seeds in another order, where what was said before helps less."""
    found = list(asks)
    if seed:
        random.Random(seed).shuffle(found)  # noqa: S311
    return found


def with_arguments(asks: Sequence[Ask], catalog: Catalog) -> list[Ask]:
    """Arguments that fit each tool's schema, where none were written."""
    return [
        ask
        if ask.arguments
        else replace(ask, arguments=tuple(fitting(catalog[tool].input_schema or {}) for tool in ask.tools))
        for ask in asks
    ]


def fitting(schema: Mapping[str, Any]) -> Any:
    """The smallest value of a schema, made from what it requires."""
    if "enum" in schema:
        return schema["enum"][0]
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return fitting(schema[key][0])
    kind = schema.get("type", "object")
    match kind[0] if isinstance(kind, list) else kind:
        case "object":
            properties = schema.get("properties", {})
            return {name: fitting(properties.get(name, {"type": "string"})) for name in schema.get("required") or ()}
        case "array":
            return [fitting(schema.get("items", {"type": "string"}))] * schema.get("minItems", 0)
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return False
    return KEY if "pattern" in schema else "something"


@dataclass
class Behaviour:
    """The rule of the model: it knows which tool it needs, and how it comes to call it is the contender's business.

    A tool that it was given it calls. One whose name stands in the system prompt it calls too, three times at most: the
    gate's case. With a tool for finding tools it asks for the user's words. Else it asks the user what is meant.
    """

    ask: Ask = Ask(text="", tools=())

    def __call__(self, asked: ScriptedRequest) -> AIMessage | str:
        since = _since_user(asked.messages)
        done = [called for called, message in _answered(since) if message.status == "success"]
        left = [place for place, tool in enumerate(self.ask.tools) if tool.name not in done]
        if not left:
            return "Done."
        if sum(message.status == "error" for _, message in _answered(since)) >= GIVE_UP:
            return "Which tool do you mean?"
        tool, arguments = self.ask.tools[left[0]].name, self.ask.arguments[left[0]]
        if tool in offered(asked) or _named_in_prompt(tool, asked):
            wrapped = CALL_TOOL in asked.names
            return calls((CALL_TOOL, {"name": tool, "arguments": arguments}) if wrapped else (tool, arguments))
        searched = sum(called == RETRIEVE for called, _ in _answered(since))
        if RETRIEVE in asked.names and searched < len(self.ask.tools):
            return calls((RETRIEVE, {"query": self.ask.text}))
        return "Which tool do you mean?"


def offered(asked: ScriptedRequest) -> list[str]:
    """The names of the tools that a request says can be called."""
    if CALL_TOOL not in asked.names:
        return asked.names
    lines = [line for message in asked.messages for line in message.text.splitlines() if line.startswith(NOW)]
    return lines[-1].removeprefix(NOW).strip().split(", ") if lines else []


def _named_in_prompt(tool: str, asked: ScriptedRequest) -> bool:
    words = asked.messages[0].text.replace(",", " ").replace(":", " ").split() if asked.messages else []
    return asked.messages[0].type == "system" and tool in words


def _since_user(messages: Sequence[BaseMessage]) -> list[Any]:
    last = max((place for place, each in enumerate(messages) if isinstance(each, HumanMessage)), default=0)
    return list(messages[last:])


def _answered(messages: Sequence[BaseMessage]) -> list[tuple[str, ToolMessage]]:
    called = {
        call["id"]: called_name(call) for each in messages if isinstance(each, AIMessage) for call in each.tool_calls
    }
    return [(called.get(each.tool_call_id, ""), each) for each in messages if isinstance(each, ToolMessage)]
