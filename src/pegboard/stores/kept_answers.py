"""How an answer that a model provider keeps is written in the store of sessions, and whose it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard.model import JsonObject
from pegboard.stores.sessions import session_key

KEPT_ANSWER = "kept_answer"


def answer_mark(id_: str) -> str:
    """By what a record is found for erasure: a hash of the id of an answer or of a conversation."""
    return session_key(id_, "kept answers")


def answer_state(*, caller: str, marks: tuple[str, ...], **fields: Any) -> JsonObject:
    """The state of the session that stands for an answer. ``caller`` is the name of the gateway key; ``marks`` are
    those of the answer's id and of its conversation."""
    return {KEPT_ANSWER: {"caller": caller, "marks": [*marks], **fields}}


def caller_and_marks(client: Mapping[str, Any] | None) -> tuple[str, frozenset[str]]:
    """The caller and the marks of an answer, of what a session knows of its client; empty for any other session."""
    fields = (client or {}).get(KEPT_ANSWER)
    if not isinstance(fields, dict):
        return "", frozenset()
    return str(fields.get("caller", "")), frozenset(map(str, fields.get("marks", ())))
