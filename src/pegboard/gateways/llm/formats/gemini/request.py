"""Gemini `generateContent` and `streamGenerateContent`: groups of declarations, in camel or snake case."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgspec

from pegboard.catalog import compact_json
from pegboard.catalog.ingest.provider_tools import tool_from_gemini
from pegboard.gateways.llm.formats.gemini.response import read_answer
from pegboard.gateways.llm.formats.json_reader import object_of, objects_of, text_of, understanding, value_of
from pegboard.gateways.llm.formats.json_spans import Edit, Member, Span, cut, cut_members, elements, members, splice
from pegboard.gateways.llm.formats.protocol import LlmRequest, Observer, OfferedTool, ToolChoice, parsed
from pegboard.gateways.llm.formats.streams import observer
from pegboard.gateways.llm.formats.tool_arrays import (
    given,
    names_cut,
)
from pegboard.lone_surrogates import readable
from pegboard.model import JsonObject, Message, Part, Tool, Turn

COUNTING = ":countTokens"
LISTED_MODES = ("ANY", "VALIDATED")
"""Modes in which a list of allowed names is valid; in others Gemini rejects it (P26)."""


class _Declaration(msgspec.Struct):
    name: str


DECLARATIONS = msgspec.json.Decoder(list[_Declaration])


class Group(NamedTuple):
    """One entry of `tools`: its members, and its declarations, which are the request's tools from ``first`` on."""

    span: Span
    members: Mapping[str, Member]
    key: str
    declarations: list[Span]
    first: int


class Gemini:
    name = "gemini"

    def parse(self, body: bytes, path: str) -> LlmRequest:
        """A count request may contain a whole request."""
        inner, around = _held(body) if path.endswith(COUNTING) else (body, (b"", b""))
        return replace(parsed(inner, lambda text, fields: _request(text, fields, path)), around=around)

    def tool(self, definition: JsonObject) -> Tool | None:
        return tool_from_gemini("", definition) if "name" in definition else None

    def rewrite(self, request: LlmRequest, kept: Collection[int]) -> bytes:
        if len(kept) == len(request.tools):
            return request.body
        staying = frozenset(kept)
        return splice(request.body, [*_group_edits(request, staying), *_dependent_edits(request, staying)])

    def narrow(self, request: LlmRequest, kept: Collection[int]) -> bytes | None:
        return None

    def observe(self, content_type: str) -> Observer:
        return observer(content_type, read_answer)


def _held(body: bytes) -> tuple[bytes, tuple[bytes, bytes]]:
    with understanding():
        fields = members(readable(body))
    key = either(fields, "generateContentRequest")
    if key not in fields:
        return body, (b"", b"")
    start, end = fields[key].value
    return body[start:end], (body[:start], body[end:])


def either(fields: Mapping[str, Any], camel: str) -> str:
    """The spelling of a field in use: JSON's `toolConfig`, or `tool_config`, which SDKs send."""
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in camel)
    return snake if camel not in fields and snake in fields else camel


def field_of(value: object, camel: str) -> Any:
    fields = object_of(value)
    return fields.get(either(fields, camel))


def _request(text: bytes, fields: dict[str, Member], path: str) -> LlmRequest:
    groups = list(_groups(text, given(text, fields, "tools")))
    config = field_of(value_of(text, fields, either(fields, "toolConfig")), "functionCallingConfig")
    said = objects_of(value_of(text, fields, "contents"))
    system = value_of(text, fields, either(fields, "systemInstruction"))
    messages = [Message(role="system", parts=_parts(system, "text"))] if system else []
    return LlmRequest(
        body=text,
        text=text,
        fields=fields,
        tools=tuple(tool for group in groups for tool in _offered(text, group)),
        turn=Turn(messages=(*messages, *(each for content in said for each in _messages(content)))),
        choice=choice_in(config),
        called=frozenset(
            text_of(field_of(part, "functionCall").get("name"))
            for content in said
            for part in objects_of(content.get("parts"))
            if isinstance(field_of(part, "functionCall"), dict)
        )
        - {""},
        model=unquote(path.rpartition("/")[2]).partition(":")[0],
        streams="streamgeneratecontent" in unquote(path).lower(),
        untouchable="it uses cached content, which has its own tools"
        if given(text, fields, either(fields, "cachedContent"))
        else "",
        layout=groups,
    )


def _groups(text: bytes, array: Span | None) -> Iterator[Group]:
    first = 0
    for span in elements(text, array) if array else ():
        own = members(text, span)
        key = either(own, "functionDeclarations")
        declared = given(text, own, key)
        declarations = elements(text, declared) if declared else []
        yield Group(span, own, key, declarations, first)
        first += max(1, len(declarations))


def _places(group: Group) -> range:
    """The places of the group's tools; one place for a group of hosted tools."""
    return range(group.first, group.first + max(1, len(group.declarations)))


def _offered(text: bytes, group: Group) -> Iterator[OfferedTool]:
    if not group.declarations:
        yield OfferedTool(name="", definition=text[slice(*group.span)], span=group.span, hosted=True)
        return
    value = group.members[group.key].value
    named = DECLARATIONS.decode(memoryview(text)[value.start : value.end])
    for span, declaration in zip(group.declarations, named, strict=True):
        yield OfferedTool(name=declaration.name, definition=text[slice(*span)], span=span)


def choice_in(config: object) -> ToolChoice:
    mode = text_of(object_of(config).get("mode")).upper()
    listed = field_of(config, "allowedFunctionNames")
    names = frozenset(map(text_of, listed)) - {""} if isinstance(listed, list) and mode in LISTED_MODES else frozenset()
    return ToolChoice(
        mode="required" if mode == "ANY" else "none" if mode == "NONE" else "auto",
        names=names or None,
        forced=mode == "ANY" and len(names) == 1,
    )


def _messages(content: Mapping[str, Any]) -> Iterator[Message]:
    """Splits contents with function results: results are not what the user said (P1)."""
    results = _parts(content, "tool_result")
    if results:
        yield Message(role="tool", parts=results)
    parts = tuple(part for part in _parts(content) if part.kind != "tool_result")
    if parts or not results:
        yield Message(role="assistant" if content.get("role") == "model" else "user", parts=parts)


def _parts(content: object, kind: str | None = None) -> tuple[Part, ...]:
    """The parts of a content, or of a text in place of one; only those of one kind if ``kind`` is given."""
    if isinstance(content, str):
        return (Part(text=content),)
    found = map(_part, objects_of(object_of(content).get("parts") or []))
    return tuple(part for part in found if kind is None or part.kind == kind)


def _part(part: Mapping[str, Any]) -> Part:
    if isinstance(call := field_of(part, "functionCall"), dict):
        return Part(kind="tool_call", tool=text_of(call.get("name")))
    if isinstance(answer := field_of(part, "functionResponse"), dict):
        return Part(kind="tool_result", text=compact_json(answer.get("response")), tool=text_of(answer.get("name")))
    return (
        Part(text=part["text"]) if isinstance(part.get("text"), str) and not part.get("thought") else Part(kind="file")
    )


def _stays(group: Group, staying: frozenset[int]) -> bool:
    """Whether a group stays: without any declaration it goes, unless it contains something else (P12, P15)."""
    return not group.declarations or len(group.members) > 1 or not staying.isdisjoint(_places(group))


def _group_edits(request: LlmRequest, staying: frozenset[int]) -> Iterator[Edit]:
    groups: list[Group] = request.layout
    keep = [_stays(group, staying) for group in groups]
    if not any(keep):
        return
    yield from cut([group.span for group in groups], keep)
    for group in (group for group, kept in zip(groups, keep, strict=True) if kept and group.declarations):
        if staying.isdisjoint(_places(group)):
            yield from cut_members(group.members, [group.key])
        else:
            yield from cut(group.declarations, [place in staying for place in _places(group)])


def _dependent_edits(request: LlmRequest, staying: frozenset[int]) -> Iterator[Edit]:
    """Removes the configuration if no declaration is left, and dropped declarations from the allowed names (P10)."""
    fields, text = request.fields, request.text
    name = either(fields, "toolConfig")
    config = members(text, span) if (span := given(text, fields, name)) else {}
    calling = either(config, "functionCallingConfig")
    if any(not request.tools[place].hosted for place in staying):
        if request.choice.names is not None:
            own = members(text, config[calling].value)
            listed = own[either(own, "allowedFunctionNames")].value
            yield from names_cut(request, staying, elements(text, listed), text_of)
        return
    going = [] if any(_stays(group, staying) for group in request.layout) else ["tools"]
    if calling in config and len(config) > 1:
        yield from cut_members(config, [calling])
    elif calling in config:
        going.append(name)
    yield from cut_members(fields, going)
