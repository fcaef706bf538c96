"""What a conversation has accumulated, between its turns: which tools have answered."""

from __future__ import annotations

from dataclasses import replace

from pegboard.errors import SessionConflict
from pegboard.model import Session, ToolId, Turn
from pegboard.seams import Sessions

UNNAMED = Session().id


async def remembered(sessions: Sessions, turn: Turn, name: str) -> Turn:
    """The turn as one of the conversation ``name``: the tools that answered in it are among the facts of its state."""
    session = await sessions.load(name) or Session(id=name)
    state = replace(turn.state, tool_outputs=turn.state.tool_outputs | session.answered)
    return replace(turn, session=session, state=state)


async def answered(sessions: Sessions, session: Session, tool: ToolId) -> None:
    """Remember that a tool gave a result; a conversation without a name has no memory."""
    while session.id != UNNAMED:
        now = await sessions.load(session.id) or Session(id=session.id)
        if tool.name in now.answered:
            return
        try:
            await sessions.save(replace(now, answered=now.answered | {tool.name}))
        except SessionConflict:
            continue
        return
