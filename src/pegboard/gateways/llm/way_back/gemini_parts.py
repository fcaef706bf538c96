"""The parts of Gemini's answers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pegboard.gateways.llm.reading import object_of, objects_of, text_of
from pegboard.gateways.llm.way_back.edits import APART, summed
from pegboard.gateways.llm.way_back.wire import Asked, Document

Part = Mapping[str, Any]


def candidate_of(answer: Document) -> Mapping[str, Any]:
    candidates = objects_of(answer.get("candidates") or [])
    return candidates[0] if candidates else {}


def parts_in(candidate: Mapping[str, Any]) -> list[Part]:
    return objects_of(object_of(candidate.get("content")).get("parts") or [])


def call_in(part: Part) -> Asked | None:
    call = part.get("functionCall")
    if not isinstance(call, dict):
        return None
    return Asked(
        name=text_of(call.get("name")), arguments=json.dumps(call.get("args") or {}), id=text_of(call.get("id"))
    )


def is_said(part: Part) -> bool:
    """Whether it is text for the user."""
    return bool(text_of(part.get("text"))) and not part.get("thought")


def set_apart(parts: Sequence[Part]) -> list[Part]:
    """With the first text apart from one before it."""
    first = next((place for place, part in enumerate(parts) if is_said(part)), None)
    return [{**part, "text": APART + part["text"]} if place == first else part for place, part in enumerate(parts)]


def put(parts: list[Part], more: Sequence[Part]) -> None:
    """Add further parts; texts that came in pieces become one again, where neither has anything besides."""
    for part in more:
        if parts and parts[-1].keys() == part.keys() == {"text"}:
            parts[-1] = {"text": parts[-1]["text"] + part["text"]}
        else:
            parts.append(part)


def added(first: Any, second: Any) -> Any:
    """The usage of two answers; what is counted by modality adds up by modality."""
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
