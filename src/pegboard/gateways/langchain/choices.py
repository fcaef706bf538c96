"""What the request itself decides: a tool that is forced stays, and so does one that the history cannot do without."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage

from pegboard.catalog import Catalog
from pegboard.gateways.langchain.reading import called_name
from pegboard.model import Decision
from pegboard.routing.widening import with_active


def forced(decision: Decision, catalog: Catalog, choice: Any) -> Decision:
    """The decision with the tool that ``tool_choice`` names (P8); ``any`` and the like name none."""
    match choice:
        case {"function": {"name": str(name)}} | {"name": str(name)} | str(name):
            return _with_named(decision, catalog, [name])
    return decision


def kept(decision: Decision, catalog: Catalog, messages: Sequence[AnyMessage]) -> Decision:
    """Where no tool is active, those that the history has calls of: providers refuse calls of tools they do not see
    (P14)."""
    if decision.active:
        return decision
    called = [called_name(call) for each in messages if isinstance(each, AIMessage) for call in each.tool_calls]
    return _with_named(decision, catalog, called)


def _with_named(decision: Decision, catalog: Catalog, names: Sequence[str]) -> Decision:
    wished = [tool for tool in decision.reachable if decision.name_of(tool) in names or tool.name in names]
    if set(wished) <= set(decision.active):
        return decision
    return with_active(decision, catalog, [*decision.active, *wished])
