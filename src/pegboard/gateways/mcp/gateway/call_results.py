"""Results on their way to a client: in the form that the settings or the client want, and those that it reads on."""

from __future__ import annotations

from typing import Any

from pegboard.catalog.tokens import compact_json
from pegboard.gateways.mcp.gateway.call_audit import session_hash
from pegboard.gateways.mcp.gateway.caller import CallContext, Caller
from pegboard.model import JsonObject, Tool
from pegboard.results.asked_lines import asked_by
from pegboard.results.result_shaper import Requester, ResultShaper, owner_mark
from pegboard.settings import Settings
from pegboard.settings.result_settings import form_named

RESULTS_META = "pegboard/results"
"""The key of a request's `_meta` with the form that its result should have."""

ASKED_META = "pegboard/asked"
"""The key with what the call is for, in words: a result that is cut keeps the lines about it. By default those about
the call's arguments."""


class CallResults:
    """``is_on`` says whether any result is changed without a client's wish."""

    def __init__(self, settings: Settings, shaper: ResultShaper) -> None:
        self._shaper = shaper
        self.adopt(settings)

    def adopt(self, settings: Settings) -> None:
        self.is_on = settings.results.is_on
        self._for_one = settings.is_for_one_person
        self._shaper.adopt(settings.results)

    def is_readable(self, caller: Caller) -> bool:
        """Whether results may be cut for this caller, so that it is listed `read_result`."""
        cuts = caller.results == "handle" if caller.results else self._shaper.settings.cuts
        return cuts and caller.kind.most_tools is None

    async def shaped(
        self, tool: Tool, arguments: JsonObject, result: JsonObject, context: CallContext, *, listed: bool
    ) -> dict[str, Any]:
        """``listed`` is whether the client was listed the tool, so that it may check `structuredContent`."""
        caller = context.caller
        asked = asked_by(str((context.meta or {}).get(ASKED_META) or compact_json(arguments)))
        wish = form_named((context.meta or {}).get(RESULTS_META)) or caller.results
        form = self._shaper.form(tool.id, wish, can_read=self.is_readable(caller))
        structured = listed and bool(tool.output_schema)
        return dict(
            await self._shaper.shaped(
                tool, result, form, owner=self._owner(caller), structured=structured, asked=asked, **_who(caller)
            )
        )

    async def read(self, arguments: JsonObject, context: CallContext) -> dict[str, Any]:
        text = await self._shaper.read(arguments, self._owner(context.caller), **_who(context.caller))
        return {"content": [{"type": "text", "text": text}], "isError": False}

    def _owner(self, caller: Caller) -> str:
        """One person on this machine reads on after a new session too."""
        if caller.holder is not None:
            return owner_mark("subject" if caller.holder.is_subject else "key", caller.holder.name)
        if self._for_one or caller.session is None:
            return owner_mark("everyone", "")
        return owner_mark("session", caller.session)


def _who(caller: Caller) -> Requester:
    return Requester(key=caller.name, conversation=session_hash(caller.session))
