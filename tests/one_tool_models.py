"""Scripted models that are given `call_tool`: what they call and see by it, for scripts that know tools by name."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from mock_providers.scripted import NOT_MADE, Calls, Model, Says, Seen

OWN = "call_tool"
REFUSED = "tool_not_available"


def by_call_tool(model: Model, own: str = OWN) -> Model:
    """Calls by ``own`` what the script calls by name; without it, the script as it is."""

    def wrapped(seen: Seen) -> Says:
        if own not in seen.tools:
            return model(seen)
        listed = tuple(made(own, seen.body))
        says = model(replace(seen, answered=listed))
        return replace(says, calls=[call if call.tool == own else by(own, call) for call in says.calls])

    return wrapped


def by(own: str, call: Calls) -> Calls:
    return Calls(tool=own, arguments={"name": call.tool, "arguments": call.arguments})


def made(own: str, body: Mapping[str, Any]) -> Iterator[str]:
    """The tools that were called by ``own`` and have answered."""
    for call, result in history(body):
        if call["name"] == own and NOT_MADE not in result and REFUSED not in result:
            yield inner(call)["name"]


def inner(call: Mapping[str, Any]) -> dict[str, Any]:
    arguments = call.get("arguments", call.get("input", call.get("args")))
    found = json.loads(arguments) if isinstance(arguments, str) else dict(arguments)
    if isinstance(found["arguments"], str):
        found["arguments"] = json.loads(found["arguments"])
    return found


def history(body: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], str]]:
    """The calls of a conversation in any format, each with its result."""
    calls, results = [], {}
    for place, said in enumerate(body.get("messages") or body.get("input") or body.get("contents")):
        if not isinstance(said, dict):
            continue
        content = said.get("content")
        blocks = [*(content if isinstance(content, list) else []), *said.get("parts", ())]
        calls += [(call["id"], call["function"]) for call in said.get("tool_calls") or ()]
        if said.get("role") == "tool":
            results[said["tool_call_id"]] = said["content"]
        if said.get("type") == "function_call":
            calls.append((said["call_id"], said))
        if said.get("type") == "function_call_output":
            results[said["call_id"]] = said["output"]
        for number, block in enumerate(blocks):
            match block:
                case {"type": "tool_use"}:
                    calls.append((block["id"], block))
                case {"type": "tool_result"}:
                    results[block["tool_use_id"]] = str(block["content"])
                case {"functionCall": call}:
                    calls.append((f"{place}-{number}", call))
                case {"functionResponse": response}:
                    open_ = [id_ for id_, _ in calls if id_ not in results]
                    assert response["name"] == dict(calls)[open_[0]]["name"]
                    results[open_[0]] = json.dumps(response["response"])
    return [(call, results[id_]) for id_, call in calls if id_ in results]


def restored(value: Any, own: str = OWN) -> Any:
    """A body with the client's calls and words in place of ours."""
    if isinstance(value, list):
        return [restored(each, own) for each in value if not (isinstance(each, dict) and _is_shown(each))]
    if not isinstance(value, dict):
        return value.partition("</tools>\n\n")[2] if _is_text_shown(value) else value
    found = {name: restored(each, own) for name, each in value.items()}
    if "contents" in found:
        found["contents"] = _with_names(found["contents"])
    if found.get("name") != own or not {"arguments", "input", "args"} & found.keys():
        return found
    key = next(name for name in ("arguments", "input", "args") if name in found)
    said = found[key]
    call = inner(found)
    given = said[said.index('"arguments":') + len('"arguments":') : -1] if isinstance(said, str) else call["arguments"]
    return found | {"name": call["name"], key: given}


def _with_names(contents: list[Any]) -> list[Any]:
    """With the results under the names of the calls that they answer."""
    open_: list[str] = []
    for content in contents:
        for part in content["parts"]:
            call = part.get("functionCall", part.get("function_call"))
            answer = part.get("functionResponse", part.get("function_response"))
            if call:
                open_.append(call["name"])
            if answer:
                answer["name"] = open_.pop(0)
    return contents


def _is_shown(part: Mapping[str, Any]) -> bool:
    return _is_text_shown(part.get("text")) and part["text"].endswith("</tools>")


def _is_text_shown(text: Any) -> bool:
    return isinstance(text, str) and text.startswith("<tools>\nDefinitions")
