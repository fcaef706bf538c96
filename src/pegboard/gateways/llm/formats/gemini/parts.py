"""The parts of Gemini's answers, and Gemini's schemas, a dialect of OpenAPI's, as JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pegboard.gateways.llm.formats.edits import APART, summed
from pegboard.gateways.llm.formats.json_reader import object_of, objects_of, text_of
from pegboard.gateways.llm.formats.tool_search import Document, FunctionCall

Part = Mapping[str, Any]
SIGNATURE = "thoughtSignature"
SIGNED_BY_NOBODY = "skip_thought_signature_validator"
"""What Google takes in place of a thought signature that is not to be had (Gemini API, Thought signatures, FAQs)."""
STREAMED_ARGUMENTS = ("streamFunctionCallArguments", "stream_function_call_arguments")


def candidate_of(answer: Document) -> Mapping[str, Any]:
    candidates = objects_of(answer.get("candidates") or [])
    return candidates[0] if candidates else {}


def parts_in(candidate: Mapping[str, Any]) -> list[Part]:
    return objects_of(object_of(candidate.get("content")).get("parts") or [])


def call_in(part: Part) -> FunctionCall | None:
    call = part.get("functionCall")
    if not isinstance(call, dict):
        return None
    return FunctionCall(
        name=text_of(call.get("name")), arguments=json.dumps(call.get("args") or {}), id=text_of(call.get("id"))
    )


def still_signed(parts: Sequence[Part], shown: Sequence[Part]) -> list[Part]:
    """The parts of an answer that are ``shown``. Only the first of parallel calls is signed, and Gemini 3 refuses a
    history whose first is not: if that one is left out, the first that is shown gets a placeholder."""
    calls = [part for part in shown if call_in(part)]
    if not calls or SIGNATURE in calls[0] or not any(SIGNATURE in part for part in parts if call_in(part)):
        return [*shown]
    return [{**part, SIGNATURE: SIGNED_BY_NOBODY} if part is calls[0] else part for part in shown]


def is_said(part: Part) -> bool:
    """Whether the part is text for the user."""
    return bool(text_of(part.get("text"))) and not part.get("thought")


def streams_arguments(text: bytes) -> bool:
    """Whether a request asks for the arguments of calls in parts (`partialArgs`)."""
    return any(f'"{name}"'.encode() in text for name in STREAMED_ARGUMENTS)


def set_apart(parts: Sequence[Part]) -> list[Part]:
    """The parts with a separator before the first text."""
    first = next((place for place, part in enumerate(parts) if is_said(part)), None)
    return [{**part, "text": APART + part["text"]} if place == first else part for place, part in enumerate(parts)]


def put(parts: list[Part], more: Sequence[Part]) -> None:
    """Append parts; text chunks are merged if neither part has other fields."""
    for part in more:
        if parts and parts[-1].keys() == part.keys() == {"text"}:
            parts[-1] = {"text": text_of(parts[-1]["text"]) + text_of(part["text"])}
        else:
            parts.append(part)


def added(first: Any, second: Any) -> Any:
    """The usage of two answers; counts by modality are added by modality."""
    whole = summed(first, second)
    for name in object_of(whole):
        one, other = object_of(first).get(name), object_of(second).get(name)
        if isinstance(one, list) and isinstance(other, list):
            whole[name] = _by_modality([*objects_of(one), *objects_of(other)])
    return whole


def _by_modality(counts: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    found: dict[str, Mapping[str, Any]] = {}
    for count in counts:
        kind = text_of(count.get("modality"))
        found[kind] = {**summed(found.get(kind), count)}
    return list(found.values())


def json_schema(schema: Any) -> Any:
    """The schema as JSON Schema: lowercase types, `nullable` as a type.

    >>> json_schema({"type": "STRING", "nullable": True})
    {'type': ['string', 'null'], 'nullable': True}
    """
    if isinstance(schema, list):
        return [json_schema(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: json_schema(each) for name, each in schema.items()}
    if isinstance(schema.get("type"), str):
        kind = schema["type"].lower()
        found["type"] = [kind, "null"] if schema.get("nullable") is True else kind
    return found
