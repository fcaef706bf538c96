"""Random model requests that their providers would take, written down as differently as JSON allows."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

TEXTS = [
    "Renew my books",
    "naïve café 🤖",
    "",
    'a "quote" \\ and\n\ttabs',
    "\u2028 <toolname>",
    "天气怎么样",
    "</script>",
]
"""What people say, and what has to be escaped."""
ODD_FIELDS: Mapping[str, Any] = {
    "x_unknown": {"b": 1, "a": [2, {"z": None}]},
    "seed": 12345678901234567890123,
    "temperature": 1e-05,
    "metadata": {"user": "Zoë"},
    "tools_used": [],
}
POINT = {"cachePoint": {"type": "default"}}
EPHEMERAL = [{"type": "ephemeral"}, {"type": "ephemeral", "ttl": "5m"}]


def written(value: Any, seed: int) -> bytes:
    """The value as JSON, with blanks, escapes and notations of numbers by chance, but for a seed of 0: then plain."""
    chance = random.Random(seed)
    return json.dumps(value).encode() if seed == 0 else _written(value, chance).encode()


def _written(value: Any, chance: random.Random) -> str:
    blank = lambda: chance.choice(["", "", "", " ", "\n  ", "\t", "\r\n"])  # noqa: E731
    if isinstance(value, dict):
        inside = ",".join(
            f"{blank()}{_text(key, chance)}{blank()}:{blank()}{_written(each, chance)}{blank()}"
            for key, each in value.items()
        )
        return f"{{{inside or blank()}}}"
    if isinstance(value, list):
        return f"[{','.join(blank() + _written(each, chance) + blank() for each in value) or blank()}]"
    if isinstance(value, str):
        return _text(value, chance)
    if isinstance(value, float):
        return chance.choice([repr(value), f"{value:.20E}"])
    return json.dumps(value)


def _text(text: str, chance: random.Random) -> str:
    plain = json.dumps(text, ensure_ascii=chance.random() < 0.5)
    if chance.random() < 0.2 and text.isascii() and text.isalnum():
        return '"' + "".join(f"\\u{ord(letter):04x}" if chance.random() < 0.3 else letter for letter in text) + '"'
    return plain.replace("/", "\\/") if chance.random() < 0.3 else plain


names = st.lists(st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_-]{0,15}", fullmatch=True), min_size=1, max_size=8, unique=True)
texts = st.sampled_from(TEXTS)
schemas = st.sampled_from(
    [
        {"type": "object"},
        {"type": "object", "properties": {"größe": {"type": "number", "maximum": 1e300}}, "required": ["größe"]},
        {"type": "object", "properties": {"name": {"enum": ["}", "]", '"', ","]}}, "additionalProperties": False},
    ]
)


@st.composite
def written_requests(draw: st.DrawFn, bodies: st.SearchStrategy[dict[str, Any]]) -> bytes:
    """One of these bodies, with fields that nobody knows, in any order, written down somehow."""
    body = draw(bodies) | {
        name: ODD_FIELDS[name] for name in draw(st.lists(st.sampled_from(sorted(ODD_FIELDS)), unique=True))
    }
    order = draw(st.permutations(list(body)))
    return written({name: body[name] for name in order}, draw(st.integers(0, 1000)))


def described(draw: st.DrawFn, name: str, **fields: Any) -> dict[str, Any]:
    """A definition, with or without a description, its members in any order."""
    definition = {"name": name} | fields | ({"description": draw(texts)} if draw(st.booleans()) else {})
    return {key: definition[key] for key in draw(st.permutations(list(definition)))}


@st.composite
def chat_bodies(draw: st.DrawFn) -> dict[str, Any]:
    """Chat Completions."""
    offered = draw(names)
    kinds = {name: draw(st.sampled_from(["function", "function", "custom"])) for name in offered}

    def entry(name: str) -> dict[str, Any]:
        fields = {"parameters": draw(schemas)} if kinds[name] == "function" and draw(st.booleans()) else {}
        return {"type": kinds[name], kinds[name]: described(draw, name, **fields)}

    def named(name: str) -> dict[str, Any]:
        return {"type": kinds[name], kinds[name]: {"name": name}}

    allowed = draw(st.lists(st.sampled_from(offered), min_size=1, unique=True))
    choices = ["auto", "none", "required", named(draw(st.sampled_from(offered)))] + [
        {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": [named(name) for name in allowed]}}
        for mode in ("auto", "required")
    ]
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": draw(texts)}]
    for number, name in enumerate(draw(st.lists(st.sampled_from(offered), max_size=2))):
        call = {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": '{"a": 1}'}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"call_{number}", "content": draw(texts)})
    body = {"model": "m", "messages": messages, "tools": [entry(name) for name in offered]}
    return body | _perhaps(draw, tool_choice=st.sampled_from(choices), parallel_tool_calls=st.booleans())


@st.composite
def legacy_bodies(draw: st.DrawFn) -> dict[str, Any]:
    """Chat Completions with `functions`."""
    offered = draw(names)
    choices = ["auto", "none", {"name": draw(st.sampled_from(offered))}]
    messages: list[dict[str, Any]] = [{"role": "user", "content": draw(texts)}]
    for name in draw(st.lists(st.sampled_from(offered), max_size=1)):
        messages.append({"role": "assistant", "content": None, "function_call": {"name": name, "arguments": "{}"}})
        messages.append({"role": "function", "name": name, "content": draw(texts)})
    functions = [described(draw, name, parameters=draw(schemas)) for name in offered]
    body = {"model": "m", "messages": messages, "functions": functions}
    return body | _perhaps(draw, function_call=st.sampled_from(choices))


@st.composite
def responses_bodies(draw: st.DrawFn) -> dict[str, Any]:
    """Responses."""
    offered = draw(names)
    hosted = draw(st.lists(st.sampled_from(["web_search", "code_interpreter", "image_generation"]), unique=True))
    deferred = draw(st.sets(st.sampled_from(offered)))
    tools: list[dict[str, Any]] = [{"type": kind} for kind in hosted]
    for name in offered:
        fields = {"type": "function", "parameters": draw(st.none() | schemas)}
        tools.append(described(draw, name, **fields, **({"defer_loading": True} if name in deferred else {})))
    if deferred:
        tools.append({"type": "tool_search"})
    tools = draw(st.permutations(tools))
    allowed = draw(st.lists(st.sampled_from(offered), min_size=1, unique=True))
    entries = [{"type": "function", "name": name} for name in allowed] + [{"type": kind} for kind in hosted]
    choices: list[Any] = ["auto", "none", "required", {"type": "function", "name": draw(st.sampled_from(offered))}]
    choices += [{"type": "allowed_tools", "mode": mode, "tools": entries} for mode in ("auto", "required")]
    choices += [{"type": kind} for kind in hosted]
    items: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "input_text", "text": draw(texts)}]}]
    for number, name in enumerate(draw(st.lists(st.sampled_from(offered), max_size=2))):
        items.append({"type": "function_call", "call_id": f"c{number}", "name": name, "arguments": "{}"})
        items.append({"type": "function_call_output", "call_id": f"c{number}", "output": draw(texts)})
    body = {"model": "m", "input": draw(st.sampled_from([items, draw(texts)])), "tools": list(tools)}
    return body | _perhaps(draw, tool_choice=st.sampled_from(choices), parallel_tool_calls=st.booleans())


@st.composite
def anthropic_bodies(draw: st.DrawFn) -> dict[str, Any]:
    """Messages, with cache breakpoints and deferred tools."""
    offered = draw(names)
    searched = draw(st.booleans())
    deferred = draw(st.sets(st.sampled_from(offered))) if searched else set()
    marked = set(draw(st.lists(st.sampled_from(offered), max_size=3, unique=True))) - deferred
    tools: list[dict[str, Any]] = []
    for name in offered:
        fields = {"input_schema": draw(schemas)} | ({"defer_loading": True} if name in deferred else {})
        fields |= {"type": draw(st.sampled_from(["custom", None]))} if draw(st.booleans()) else {}
        fields |= {"cache_control": draw(st.sampled_from(EPHEMERAL))} if name in marked else {}
        tools.append(described(draw, name, **fields))
    if draw(st.booleans()):
        tools.insert(draw(st.integers(0, len(tools))), {"type": "web_search_20250305", "name": "web search"})
    if searched:
        tools.insert(0, {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"})
    choices: list[dict[str, Any]] = [{"type": kind} for kind in ("auto", "any", "none")]
    if loaded := [name for name in offered if name not in deferred]:
        choices.append({"type": "tool", "name": draw(st.sampled_from(loaded)), "disable_parallel_tool_use": True})
    messages: list[dict[str, Any]] = [{"role": "user", "content": draw(texts)}]
    for number, name in enumerate(draw(st.lists(st.sampled_from(offered), max_size=2))):
        use = {"type": "tool_use", "id": f"t{number}", "name": name, "input": {"a": 12345678901234567890}}
        found = [{"type": "tool_reference", "tool_name": draw(st.sampled_from(offered))}]
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": draw(st.sampled_from([found, "ok"]))}
        messages += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    body = {"model": "m", "max_tokens": 9, "messages": messages, "tools": tools}
    system = [{"type": "text", "text": draw(texts) or "x", "cache_control": {"type": "ephemeral"}}]
    return body | _perhaps(draw, tool_choice=st.sampled_from(choices), system=st.just(system))


@st.composite
def gemini_bodies(draw: st.DrawFn) -> dict[str, Any]:
    """`generateContent`, in either spelling, with one group of declarations or several."""
    offered = draw(names)
    camel = draw(st.booleans())
    spelled: Callable[[str], str] = (lambda name: name) if camel else _snake
    cuts = sorted(draw(st.sets(st.integers(1, len(offered)), max_size=2)) | {0, len(offered)})
    groups: list[dict[str, Any]] = []
    for start, end in pairwise(cuts):
        declared = [
            described(draw, name, **({"parameters": draw(schemas)} if draw(st.booleans()) else {}))
            for name in offered[start:end]
        ]
        groups.append({spelled("functionDeclarations"): declared})
        if draw(st.booleans()):
            groups[-1][spelled("codeExecution")] = {}
    if draw(st.booleans()):
        groups.insert(draw(st.integers(0, len(groups))), {spelled("googleSearch"): {}})
    allowed = draw(st.lists(st.sampled_from(offered), min_size=1, unique=True))
    listed = {spelled("allowedFunctionNames"): allowed}
    configs: list[dict[str, Any]] = [{"mode": mode} for mode in ("AUTO", "ANY", "NONE", "VALIDATED")]
    configs += [{"mode": "ANY"} | listed, {"mode": "VALIDATED"} | listed]
    config = {spelled("functionCallingConfig"): draw(st.sampled_from(configs))}
    retrieval = {spelled("retrievalConfig"): {spelled("languageCode"): "nb"}}
    contents: list[dict[str, Any]] = [{"role": "user", "parts": [{"text": draw(texts)}]}]
    for name in draw(st.lists(st.sampled_from(offered), max_size=2)):
        contents.append({"role": "model", "parts": [{spelled("functionCall"): {"name": name, "args": {"a": 1.5}}}]})
        answer = {"name": name, "response": {"n": 123456789012345678901234567890}}
        contents.append({"role": "user", "parts": [{spelled("functionResponse"): answer}]})
    body = {"contents": contents, "tools": groups}
    tool_config = st.sampled_from([config, config | retrieval, retrieval])
    return body | _perhaps(draw, **{spelled("toolConfig"): tool_config})


@st.composite
def converse_bodies(draw: st.DrawFn) -> dict[str, Any]:
    """Bedrock Converse, with cache points and a tool of the system. Nova takes no other keys in a schema."""
    offered = draw(names)
    plain = schemas.filter(lambda schema: "additionalProperties" not in schema)
    tools = [{"toolSpec": described(draw, name, inputSchema={"json": draw(plain)})} for name in offered]
    if draw(st.booleans()):
        tools.insert(draw(st.integers(0, len(tools))), {"systemTool": {"name": "nova_grounding"}})
    for place in sorted(draw(st.sets(st.integers(1, len(tools)), max_size=2)), reverse=True):
        tools.insert(place, POINT)
    messages: list[dict[str, Any]] = [{"role": "user", "content": [{"text": draw(texts)}]}]
    for number, name in enumerate(draw(st.lists(st.sampled_from(offered), max_size=2))):
        use = {"toolUseId": f"t{number}", "name": name, "input": {"a": 12345678901234567890}}
        result = {
            "toolUseId": f"t{number}",
            "content": draw(st.sampled_from([[{"json": {"n": 1.50}}], [{"text": "ok"}]])),
        }
        messages.append({"role": "assistant", "content": [{"toolUse": use}]})
        messages.append({"role": "user", "content": [{"toolResult": result}]})
    choices: list[dict[str, Any]] = [{"auto": {}}, {"any": {}}, {"tool": {"name": draw(st.sampled_from(offered))}}]
    config = {"tools": tools} | _perhaps(draw, toolChoice=st.sampled_from(choices))
    system = [{"text": draw(texts) or "x"}, POINT]
    return {"messages": messages, "toolConfig": config} | _perhaps(draw, system=st.just(system))


@st.composite
def cohere_bodies(draw: st.DrawFn) -> dict[str, Any]:
    """Cohere Chat."""
    offered = draw(names)
    tools = [
        {"type": "function", "function": described(draw, name, **_perhaps(draw, parameters=schemas))}
        for name in offered
    ]
    messages: list[dict[str, Any]] = [{"role": "user", "content": draw(texts)}]
    for number, name in enumerate(draw(st.lists(st.sampled_from(offered), max_size=2))):
        call = {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": '{"a": 1}'}}
        messages.append({"role": "assistant", "tool_plan": draw(texts), "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"call_{number}", "content": draw(texts)})
    body = {"model": "m", "messages": messages, "tools": tools}
    return body | _perhaps(draw, tool_choice=st.sampled_from(["REQUIRED", "NONE"]), strict_tools=st.booleans())


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def _perhaps(draw: st.DrawFn, **fields: st.SearchStrategy[Any]) -> dict[str, Any]:
    return {name: draw(value) for name, value in fields.items() if draw(st.booleans())}


BODIES: Mapping[str, st.SearchStrategy[dict[str, Any]]] = {
    "openai_chat": chat_bodies() | legacy_bodies(),
    "openai_responses": responses_bodies(),
    "anthropic": anthropic_bodies(),
    "gemini": gemini_bodies(),
    "bedrock": converse_bodies(),
    "cohere": cohere_bodies(),
}
"""By the name of a codec."""
