"""Which calls of `call_tool` go to the client, and what the model is told of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pegboard.errors import ArgumentsInvalid
from pegboard.gateways.llm.one_tool import told
from pegboard.gateways.llm.one_tool.calls import Call
from pegboard.gateways.llm.way_back.edits import loaded
from pegboard.gateways.llm.way_back.search import refused
from pegboard.model import JsonObject, Tool
from pegboard.routing import check_lightly


@dataclass(slots=True, kw_only=True)
class Gate:
    """``callable`` are the tools by name, ``shown`` the names of those whose definition the model has seen."""

    own: str
    callable: Mapping[str, Sequence[Tool]]
    shown: set[str]
    brought: list[str] = field(default_factory=list)
    """The names of those that it got as an answer."""

    def passes(self, call: Call) -> bool:
        """Of a tool that is shown any object passes, as it would in a native call."""
        given = loaded(call.arguments)
        if call.name not in self.callable or given is None:
            return False
        return call.name in self.shown or not all(_problems(tool, given) for tool in self.callable[call.name])

    def answer(self, call: Call | None) -> str:
        """What the model is told of a call that does not pass."""
        if call is None:
            return told.without_name(self.own)
        if call.name not in self.callable:
            return refused(call.name, sorted(self.shown), search="")
        tools = self.callable[call.name]
        given = loaded(call.arguments)
        problems = ["arguments: no JSON object"] if given is None else _problems(tools[0], given)
        if call.name not in self.shown:
            self.shown.add(call.name)
            self.brought.append(call.name)
        return told.not_fitting(tools, problems)


def _problems(tool: Tool, arguments: JsonObject) -> Sequence[str]:
    try:
        check_lightly(tool, arguments)
    except ArgumentsInvalid as error:
        return error.problems
    return ()
