"""What is noted of a request when its answer is over: what the shadow showed, and the record."""

from __future__ import annotations

import asyncio

from pegboard.gateways.llm.passage import Passage
from pegboard.gateways.llm.recording import Recorded, Recorder, narrowing, text_or_raw
from pegboard.gateways.llm.shadow import fingerprint, measured, reason_not_to
from pegboard.seams import Clock, EventSink


class Witness:
    """Of one request after another. Without a recorder nothing is recorded."""

    def __init__(self, events: EventSink, clock: Clock, recorder: Recorder | None = None) -> None:
        self._events = events
        self._clock = clock
        self._recorder = recorder

    async def note(self, passage: Passage) -> None:
        """Nobody waits for it but the server, which ends after it."""
        target, key = passage.target, passage.key
        unmeasured = reason_not_to(target.path, passage.status, ended=passage.ended)
        if passage.shadow is not None:
            if unmeasured:
                passage.shadow.cancel()
            try:
                await asyncio.wait([passage.shadow])
            finally:
                passage.shadow.cancel()
        if passage.rewritten.outcome == "shadow":
            self._events.emit(
                measured(
                    passage.known,
                    passage.called,
                    at=self._clock.time(),
                    upstream=target.upstream.name,
                    key=key,
                    unmeasured=unmeasured,
                )
            )
        if self._recorder is not None and not unmeasured:
            self._record(self._recorder, passage)

    def _record(self, recorder: Recorder, passage: Passage) -> None:
        known = passage.known
        request, filtered = known.request, known.filtered
        if request is None:
            return
        places = range(len(request.tools)) if filtered is None else filtered.reached
        text, raw = text_or_raw(request.body)
        unknown = filtered is None and known.outcome == "shadow"
        recorder.put(
            Recorded(
                at=self._clock.time(),
                upstream=passage.target.upstream.name,
                path=passage.target.path,
                outcome=known.outcome,
                key=passage.key or "",
                owner=recorder.alias(passage.owner),
                conversation=recorder.alias(request.conversation) if request.conversation else "",
                policy=fingerprint(known.treatment.policy) if known.treatment else "",
                wishes=narrowing(passage.wishes),
                client=dict(passage.client),
                kept=None if unknown else [request.tools[place].name for place in places],
                tokens_before=filtered.tokens_before if filtered else 0,
                tokens_after=filtered.tokens_after if filtered else 0,
                called=list(passage.called),
                answer=passage.answer,
                body=text,
                raw=raw,
            )
        )
