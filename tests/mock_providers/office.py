"""A model for agents of frameworks: it does what was asked with one tool of the catalog, then uses what is left.

What is no tool of the catalog is the framework's own: an exit, a handoff. Each of them is called once in a
conversation. Where a call is required and nothing of it is left, the model has to call a tool of the catalog again, as
a real one has.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mock_providers.scripted import Calls, Says, Seen

DONE = "All of it is done."
FIRST_STEP = "get_invoice"
CALL, SEARCH = "call_tool", "search_tools"
"""Of the gateway: by one the model calls what it has no definition of, by the other it finds it."""
OF_THE_CATALOG = re.compile(r"(create|get|list|update|delete)_\w+")
OTHER_AGENT = "shipping"
AGENT_FIELDS = frozenset({"agent_name", "to_agent", "coworker"})


@dataclass
class OfficeModel:
    """``wanted`` is the tool of the catalog that it calls first, where it was given it."""

    wanted: str = FIRST_STEP

    def __call__(self, seen: Seen) -> Says:
        done = {*seen.answered, *(name for name in seen.tools if name != CALL and _was_called(name, seen.body))}
        schemas = dict(_schemas(seen.body))
        own = [name for name in seen.tools if not OF_THE_CATALOG.fullmatch(name) and name not in (CALL, SEARCH)]
        of_catalog = [name for name in seen.tools if OF_THE_CATALOG.fullmatch(name)]
        through_one = CALL in seen.tools and self.wanted not in of_catalog
        left = [name for name in own if name not in done]
        has_worked = CALL in done or any(OF_THE_CATALOG.fullmatch(name) for name in done)
        if (of_catalog or through_one) and not has_worked:
            return self._work(of_catalog, schemas, through_one)
        if left or (own and has_to_call(seen.body)):
            step = (left or own)[0]
            return Says(calls=[Calls(tool=step, arguments=arguments(schemas.get(step, {})))])
        return self._work(of_catalog, schemas, through_one) if has_to_call(seen.body) else Says(text=DONE)

    def _work(self, offered: Sequence[str], schemas: Mapping[str, Any], through_one: bool) -> Says:
        if through_one:
            return Says(calls=[Calls(tool=CALL, arguments={"name": self.wanted, "arguments": {"id": "7"}})])
        step = self.wanted if self.wanted in offered else offered[0]
        return Says(calls=[Calls(tool=step, arguments=arguments(schemas.get(step, {})) | {"id": "7"})])


def arguments(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The least that fits a schema of parameters; what names an agent names the other one."""
    wanted = schema.get("required", schema.get("properties", {}))
    return {name: _value(name, schema["properties"][name], schema) for name in wanted}


def _value(name: str, schema: Mapping[str, Any], whole: Mapping[str, Any]) -> Any:
    if "$ref" in schema:
        key = schema["$ref"].rpartition("/")[2]
        return _value(name, whole.get("$defs", {}).get(key, {}), whole)
    if options := schema.get("enum"):
        return OTHER_AGENT if OTHER_AGENT in options else options[0]
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        return _value(name, next((each for each in choices if each.get("type") != "null"), {}), whole)
    kind = str(schema.get("type", "string")).lower()
    match kind:
        case "integer" | "number":
            return 1
        case "boolean":
            return True
        case "array":
            return []
        case "object":
            return arguments({"$defs": whole.get("$defs", {}), "properties": {}} | dict(schema))
        case _:
            return OTHER_AGENT if name in AGENT_FIELDS else "7"


def has_to_call(body: Mapping[str, Any]) -> bool:
    config = body.get("toolConfig", body.get("tool_config", {}))
    mode = config.get("functionCallingConfig", config.get("function_calling_config", {})).get("mode")
    choice = body.get("tool_choice")
    return choice == "required" or mode == "ANY" or (isinstance(choice, Mapping) and choice.get("type") != "auto")


def _was_called(name: str, body: Mapping[str, Any]) -> bool:
    """Whether the conversation has a call of the tool, or speaks of one: some frameworks write them down as text."""
    return any(re.search(rf"\b{name}\b", text) for text in _later(body))


def _later(body: Mapping[str, Any]) -> Iterator[str]:
    """What comes after the person's first message, of whoever is no system; each as JSON."""
    messages = body.get("messages") or body.get("contents") or body.get("input")
    seen_first = False
    for message in messages if isinstance(messages, list) else ():
        if message.get("role") in ("system", "developer"):
            continue
        if seen_first:
            yield json.dumps(message)
        seen_first = True


def _schemas(body: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for tool in body.get("tools", ()):
        for each in tool.get("functionDeclarations", [tool]):
            named = each.get("function", each)
            schema = named.get("parameters") or named.get("parametersJsonSchema") or named.get("input_schema") or {}
            yield named.get("name", ""), schema
