"""Notices about definitions that are not approved: each one once, in the log and as an event."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from itertools import islice

from pegboard.empty_sets import EMPTY, frozen
from pegboard.events import DefinitionChanged, DefinitionReordered, DefinitionSuspected, ServerCrowds
from pegboard.model import Fingerprint, Pin, ToolId
from pegboard.protocols import Clock, EventSink
from pegboard.trust import Crowd
from pegboard.trust.fingerprints import ScannedDefinition

LOGGER = logging.getLogger(__name__)

NAMED = 8
"""The most tools that one log line names."""

CROWDS: Mapping[str, Callable[[Crowd], str]] = {
    "copied-description": lambda crowd: (
        f"Tools of {crowd.server} have descriptions like those of {crowd.of or 'other servers'}"
    ),
    "copied-name": lambda crowd: f"Tools of {crowd.server} have names like those of {crowd.of or 'other servers'}",
    "requests": lambda crowd: f"Descriptions of {crowd.server} consist of users' requests instead of what the tools do",
    "word-list": lambda crowd: f"Descriptions of {crowd.server} are lists of words",
    "long-name": lambda crowd: f"Tools of {crowd.server} have names of very many words",
    "many-intents": lambda crowd: f"Descriptions of {crowd.server} name many unrelated actions",
}
PLACE: Mapping[bool, str] = {
    True: "They are ranked behind other tools; a description in the configuration replaces theirs.",
    False: "They may be found in place of other tools.",
}
"""What follows for tools that are damped, and for others."""


class ApprovalNotices:
    """Logs and emits each notice once."""

    def __init__(self, events: EventSink, clock: Clock) -> None:
        self._events = events
        self._clock = clock
        self._changed: Mapping[ToolId, Fingerprint] = {}
        self._suspected: Mapping[ToolId, Fingerprint] = {}
        self._unknown: AbstractSet[ToolId] = EMPTY
        self._reordered: AbstractSet[ToolId] = EMPTY
        self._crowds: frozenset[Crowd] = EMPTY

    def reset(self) -> None:
        """Repeat every notice, because the policy has changed."""
        self._changed = self._suspected = {}

    def changed(
        self,
        changed: Mapping[ToolId, Fingerprint],
        pins: Mapping[ToolId, Pin],
        before: Mapping[ToolId, Pin],
        held_back: AbstractSet[ToolId],
        *,
        aloud: bool,
    ) -> None:
        """Report definitions that differ from the approved ones. Those in ``before`` were already reported by another
        process: they are repeated only if they are held back."""
        new = [tool for tool in changed if self._changed.get(tool) != changed[tool]]
        self._changed = changed
        new = [tool for tool in new if tool in held_back or tool not in before or before[tool].seen != changed[tool]]
        if not aloud:
            return
        for tool in new:
            self._events.emit(
                DefinitionChanged(
                    at=self._clock.time(),
                    tool=str(tool),
                    approved=pins[tool].approved,
                    seen=changed[tool],
                    held_back=tool in held_back,
                )
            )
        for held, what in ((True, "held back"), (False, "used anyway")):
            if some := [tool for tool in new if (tool in held_back) is held]:
                LOGGER.warning(
                    "The definitions of these tools differ from the approved ones; they are %s: %s. `pegboard "
                    "pins diff` shows them, `pegboard pins approve` approves them.",
                    what,
                    named(some),
                )

    def reordered(self, reordered: Mapping[ToolId, Fingerprint], pins: Mapping[ToolId, Pin]) -> None:
        """Report tools that differ from the approved definition only in the order of listed values. Once per tool: some
        servers list them in another order at each start."""
        new = [tool for tool in reordered if tool not in self._reordered]
        for tool in new:
            self._events.emit(
                DefinitionReordered(
                    at=self._clock.time(), tool=str(tool), approved=pins[tool].approved, seen=reordered[tool]
                )
            )
        if new:
            self._reordered |= frozen(new)
            LOGGER.info(
                "These tools list the same values in another order than the approved definitions: %s.", named(new)
            )

    def crowded(self, found: Iterable[Crowd]) -> None:
        """Report servers whose tools may be found in place of those of others."""
        said, self._crowds = self._crowds, frozen(found)
        for crowd in sorted(self._crowds - said, key=lambda each: (each.server, each.kind, each.of)):
            tools = tuple(str(tool) for tool in crowd.tools)
            self._events.emit(
                ServerCrowds(
                    at=self._clock.time(),
                    server=crowd.server,
                    kind=crowd.kind,
                    of=crowd.of,
                    tools=tools,
                    damped=crowd.damped,
                )
            )
            LOGGER.warning("%s: %s. %s", CROWDS[crowd.kind](crowd), named(crowd.tools), PLACE[crowd.damped])

    def suspected(self, suspected: Mapping[ToolId, ScannedDefinition], held_back: AbstractSet[ToolId]) -> None:
        """Report definitions that the scanner suspects to be poisoned."""
        said, self._suspected = self._suspected, {tool: seen.fingerprint for tool, seen in suspected.items()}
        for tool, seen in suspected.items():
            verdict, held = seen.verdict, tool in held_back
            if verdict is None or said.get(tool) == seen.fingerprint:
                continue
            self._events.emit(
                DefinitionSuspected(
                    at=self._clock.time(),
                    tool=str(tool),
                    seen=seen.fingerprint,
                    score=verdict.score,
                    rules=verdict.rules,
                    held_back=held,
                )
            )
            LOGGER.warning(
                "The definition of %s seems poisoned (%s, score %.2f); it is %s. `pegboard scan` shows where.",
                named([tool]),
                ", ".join(verdict.rules),
                verdict.score,
                "held back" if held else "used anyway",
            )

    def unknown(self, unknown: AbstractSet[ToolId]) -> None:
        """Report tools that are new to this process while the store cannot be read."""
        if new := unknown - self._unknown:
            LOGGER.warning("New tools are held back until the store of approved definitions answers: %s.", named(new))
        self._unknown = unknown


def named(tools: Iterable[ToolId]) -> str:
    """The first few by name, and the number of the others.

    >>> named([ToolId("github", "merge"), ToolId("github", "fork"), ToolId("github", "")])
    'github (what it says of itself), github/fork, github/merge'
    """
    names = sorted(str(tool) if tool.name else f"{tool.server} (what it says of itself)" for tool in tools)
    more = len(names) - NAMED
    return ", ".join(islice(names, NAMED)) + (f" and {more} more" if more > 0 else "")
