"""LangChain's messages as a turn, an agent's state as the facts of preconditions, and what is checkpointed as plain
JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware import AgentState as LangChainState
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.channels.untracked_value import UntrackedValue

from pegboard.errors import ToolNotAvailable
from pegboard.model import AgentState, Message, Part, Role, ToolId, Turn
from pegboard.results.asked_lines import asked_by
from pegboard.retrieval import mark_notes

ACTIVE = "pegboard_active"
TEXTS = "pegboard_texts"
TOOLSET = "pegboard_toolset"
SEARCH = "pegboard_search"
CACHE = "pegboard_cache"
CALL_TOOL = "call_tool"


class ToolAttentionState(LangChainState[Any]):
    """``pegboard_active`` maps the name that the model uses for an active tool to the tool's server and name;
    ``pegboard_toolset`` is the key of the agent's tools in this run, and no checkpoint has it: who resumes brings the
    tools of their own; ``pegboard_texts`` maps a message's id to the
    text shown beside it; ``pegboard_search`` is the name of the search that was offered, or empty;
    ``pegboard_cache`` is how the conversation's tools reach the model, and which were relevant."""

    pegboard_active: NotRequired[Annotated[dict[str, list[str]], PrivateStateAttr]]
    pegboard_toolset: NotRequired[Annotated[str, UntrackedValue, PrivateStateAttr]]
    pegboard_search: NotRequired[Annotated[str, PrivateStateAttr]]
    pegboard_cache: NotRequired[Annotated[dict[str, Any], PrivateStateAttr]]
    pegboard_texts: NotRequired[Annotated[dict[str, str], PrivateStateAttr, joined]]


def turn_of(messages: Sequence[AnyMessage], state: AgentState) -> Turn:
    return mark_notes(Turn(messages=tuple(_message(message) for message in messages), state=state))


def facts_of(state: Mapping[str, Any]) -> AgentState:
    """``auth`` and ``milestones`` of the state, and the tools that answered in its messages.

    An agent may keep something else under these names, such as a token: what is no list or set of texts is no fact.
    """
    messages: Sequence[AnyMessage] = state.get("messages") or ()
    return AgentState(
        auth=_texts(state.get("auth")),
        milestones=_texts(state.get("milestones")),
        tool_outputs=frozenset(_answered(messages)),
    )


def _texts(value: object) -> frozenset[str]:
    given = value if isinstance(value, list | tuple | set | frozenset) else ()
    return frozenset(each for each in given if isinstance(each, str))


def asked_in(messages: Sequence[AnyMessage], call: Mapping[str, Any]) -> str:
    """What a call is for: the last words of the user, those of the model since, and the arguments."""
    user = model = ""
    for message in messages:
        if isinstance(message, HumanMessage):
            user, model = message.text, ""
        elif isinstance(message, AIMessage):
            model = message.text or model
    return asked_by(user, model, json.dumps(call["args"], ensure_ascii=False, default=str))


def called_name(call: Mapping[str, Any]) -> str:
    """The name of the tool that a call means. For the constant tool it is in the arguments; an agent's own tool of that
    name takes other arguments."""
    name, arguments = call["name"], call["args"]
    through_one = name == CALL_TOOL and "name" in arguments and arguments.keys() <= {"name", "arguments"}
    return str(arguments["name"] if through_one else name)


def refused_names(messages: Sequence[AnyMessage]) -> list[str]:
    """The tool names of calls that were refused since the user's last message, in order."""
    found: list[str] = []
    for message in messages:
        if isinstance(message, HumanMessage):
            found = []
        elif isinstance(message, ToolMessage) and message.status == "error":
            found += _refused(message)
    return found


def _refused(message: ToolMessage) -> list[str]:
    try:
        said = json.loads(message.content) if isinstance(message.content, str) else None
    except (ValueError, RecursionError):
        return []
    refused = isinstance(said, dict) and said.get("error") == ToolNotAvailable.code
    return [str(said.get("tool"))] if refused and isinstance(said, dict) else []


def _answered(messages: Sequence[AnyMessage]) -> Iterator[str]:
    names = {
        call["id"]: called_name(call)
        for message in messages
        if isinstance(message, AIMessage)
        for call in message.tool_calls
    }
    for message in messages:
        if isinstance(message, ToolMessage) and message.status == "success":
            yield names.get(message.tool_call_id) or message.name or ""


def _message(message: AnyMessage) -> Message:
    role: Role = "user"
    parts = [Part(text=message.text)] if message.text else []
    match message:
        case AIMessage():
            role = "assistant"
            parts += [Part(kind="tool_call", tool=called_name(call)) for call in message.tool_calls]
        case ToolMessage():
            role = "tool"
            parts = [Part(kind="tool_result", text=message.text)]
        case SystemMessage():
            role = "system"
    return Message(role=role, parts=tuple(parts))


def joined(before: Mapping[str, str] | None, added: Mapping[str, str | None] | None) -> dict[str, str]:
    """Merges texts; existing texts never change, until None says that their message is gone."""
    gone = {message for message, text in (added or {}).items() if text is None}
    both = {**(added or {}), **(before or {})}
    return {message: text for message, text in both.items() if text is not None and message not in gone}


def active_in(state: Mapping[str, Any]) -> dict[str, ToolId]:
    """The active tools by the names that the model uses."""
    return {name: ToolId(*tool) for name, tool in (state.get(ACTIVE) or {}).items()}


def texts_in(state: Mapping[str, Any]) -> dict[str, str]:
    return dict(state.get(TEXTS) or {})
