"""Answers that a provider keeps and in whose histories the gateway searched, in the store of sessions.

Whichever replica gets the next request continues them: it knows under which id the provider's history ends, and which
tools that history has. A record is bound to its owner, expires like a session, and has no text of the user's.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pegboard.errors import PegboardError, SessionConflict
from pegboard.gateways.llm.formats.json_reader import object_of, objects_of, text_of
from pegboard.gateways.llm.formats.protocol import KeptSearches, OpenCall
from pegboard.model import JsonObject, Session
from pegboard.protocols import Sessions
from pegboard.stores.kept_answers import KEPT_ANSWER, answer_mark, answer_state
from pegboard.stores.sessions import session_key

LOGGER = logging.getLogger(__name__)
SECONDS = 2.0
"""How long a request or an answer waits for the store."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptAnswer:
    """The ``last`` id under which the provider's history ends, the conversation's id, the names of the tools that were
    called, what our searches left in the history, the calls that it leaves open, and the ids of answers before it that
    led to searches."""

    last: str
    conversation: str
    called: frozenset[str]
    kept: KeptSearches | None
    left_open: tuple[OpenCall, ...] = ()
    earlier: tuple[str, ...] = ()


class AnswerStore:
    """Kept answers by owner and id. If the store does not answer, nothing is known, and the log says so."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def load(self, owner: str, id_: str) -> KeptAnswer | None:
        session = await _in_time(self._sessions.load(_key(owner, id_)))
        return None if session is None else _answer(session)

    async def save(self, owner: str, ids: Collection[str], answer: KeptAnswer, key: str) -> None:
        """Save an answer under each of these ids; ``key`` is the name of the gateway key whose request it answers."""
        await asyncio.gather(*(_in_time(self._save(owner, id_, answer, key)) for id_ in ids))

    async def forget(self, owner: str, id_: str) -> None:
        await _in_time(self._sessions.forget(_key(owner, id_)))

    async def _save(self, owner: str, id_: str, answer: KeptAnswer, key: str) -> None:
        kept = answer.kept
        state = answer_state(
            caller=key,
            marks=(answer_mark(id_), answer_mark(answer.conversation)),
            last=answer.last,
            conversation=answer.conversation,
            called=sorted(answer.called),
            loaded=None if kept is None else sorted(kept.loaded),
            left_open=[_written(call) for call in answer.left_open],
            earlier=[*answer.earlier],
        )
        session = Session(id=_key(owner, id_), client=state)
        try:
            await self._sessions.save(session)
        except SessionConflict:  # the provider used the id before
            stored = await self._sessions.load(session.id)
            await self._sessions.save(replace(session, version=stored.version if stored else 0))


def _key(owner: str, id_: str) -> str:
    return session_key(id_, f"answers of {owner}")


def _answer(session: Session) -> KeptAnswer | None:
    fields = object_of(object_of(session.client).get(KEPT_ANSWER))
    last = text_of(fields.get("last"))
    if not last:
        return None
    loaded = fields.get("loaded")
    return KeptAnswer(
        last=last,
        conversation=text_of(fields.get("conversation")),
        called=frozenset(_texts(fields.get("called"))),
        kept=KeptSearches(loaded=frozenset(_texts(loaded))) if isinstance(loaded, list) else None,
        left_open=tuple(_open_call(each) for each in objects_of(fields.get("left_open"))),
        earlier=tuple(_texts(fields.get("earlier"))),
    )


def _written(call: OpenCall) -> JsonObject:
    return {"id": call.id, "kind": call.kind, "found": None if call.found is None else [*call.found]}


def _open_call(fields: Mapping[str, Any]) -> OpenCall:
    found = fields.get("found")
    return OpenCall(
        id=text_of(fields.get("id")),
        kind=text_of(fields.get("kind")),
        found=tuple(_texts(found)) if isinstance(found, list) else None,
    )


def _texts(found: object) -> Sequence[str]:
    return [text for each in found if (text := text_of(each))] if isinstance(found, list) else []


async def _in_time(asked: Awaitable[T]) -> T | None:
    try:
        async with asyncio.timeout(SECONDS):
            return await asked
    except (PegboardError, TimeoutError) as error:
        LOGGER.warning("The store of sessions did not answer: %s", type(error).__name__)
        return None
