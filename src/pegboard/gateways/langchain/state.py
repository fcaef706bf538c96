"""What is checkpointed, as plain JSON: which tools are active, and the texts that were shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware import AgentState
from langchain.agents.middleware.types import PrivateStateAttr

from pegboard.model import ToolId

ACTIVE = "pegboard_active"
TEXTS = "pegboard_texts"
TOOLSET = "pegboard_toolset"


def joined(before: Mapping[str, str] | None, added: Mapping[str, str] | None) -> dict[str, str]:
    """What was shown before stays as it was."""
    return {**(added or {}), **(before or {})}


class ToolAttentionState(AgentState[Any]):
    """``pegboard_active`` has the server and name of each active tool by the name that the model calls it by;
    ``pegboard_toolset`` the key of the tools that its agent had, in this process; ``pegboard_texts`` what was shown
    beside a message, by the message's id.
    """

    pegboard_active: NotRequired[Annotated[dict[str, list[str]], PrivateStateAttr]]
    pegboard_toolset: NotRequired[Annotated[str, PrivateStateAttr]]
    pegboard_texts: NotRequired[Annotated[dict[str, str], PrivateStateAttr, joined]]


def active_in(state: Mapping[str, Any]) -> dict[str, ToolId]:
    """The active tools by the names that the model calls them by."""
    return {name: ToolId(*tool) for name, tool in (state.get(ACTIVE) or {}).items()}


def texts_in(state: Mapping[str, Any]) -> dict[str, str]:
    return dict(state.get(TEXTS) or {})
