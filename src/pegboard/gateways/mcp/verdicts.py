"""Which calls of a session may still be judged: an agent's own verdict counts once a call (DESIGN §2.2)."""

from __future__ import annotations

from collections import OrderedDict

from pegboard.model import ToolId

MOST_SESSIONS = 10_000
MOST_TOOLS = 100
"""Tools of one session whose last call may be judged: the newest."""


class Awaiting:
    """The tools of each session whose last call succeeded and was not judged, in memory of the process that made it."""

    def __init__(self) -> None:
        self._of: OrderedDict[str, OrderedDict[ToolId, None]] = OrderedDict()

    def called(self, session: str | None, tool: ToolId, *, success: bool) -> None:
        """Nobody can say later which call was a nameless client's: it is not judged."""
        if session is None:
            return
        tools = self._of.setdefault(session, OrderedDict())
        self._of.move_to_end(session)
        tools.pop(tool, None)
        if success:
            tools[tool] = None
        while len(tools) > MOST_TOOLS:
            tools.popitem(last=False)
        while len(self._of) > MOST_SESSIONS:
            self._of.popitem(last=False)

    def judged(self, session: str | None, tool: ToolId) -> bool:
        """Whether there was a call to judge; there is none any more."""
        awaiting = self._of.get(session, OrderedDict()) if session is not None else OrderedDict[ToolId, None]()
        return tool in awaiting and awaiting.pop(tool) is None

    def forget(self, session: str) -> None:
        self._of.pop(session, None)
