"""Explains why a tool was chosen or not, by repeating the steps of `routing.select.choose`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Literal

import numpy as np

from pegboard.cached_property import cached_property
from pegboard.catalog import Catalog
from pegboard.events import RouteDecided
from pegboard.model import Candidate, Decision, Scores, ToolId
from pegboard.routing.economics import Priced
from pegboard.routing.economics import terms as priced
from pegboard.routing.profiles import Profile
from pegboard.routing.select import likely_enough

Status = Literal[
    "active",
    "below_threshold",
    "server_not_shortlisted",
    "server_declined",
    "too_expensive",
    "too_slow",
    "recall_reached",
    "beyond_k",
    "over_budget",
    "withheld",
    "gated_by_state",
    "out_of_scope",
    "unknown",
]
DROPPED: Mapping[str, Status] = {
    "server_not_shortlisted": "server_not_shortlisted",
    "server_declined": "server_declined",
    "too_expensive": "too_expensive",
    "too_slow": "too_slow",
}
"""The status of a tool dropped before selection, by the reason that the layers of `ehrr` give."""
SUGGESTIONS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolExplanation:
    """What happened to one tool; ``why`` is a sentence."""

    tool: str
    status: Status
    why: str
    candidate: Candidate | None = None
    suggestions: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """A decision, its ``event``, and the ``order`` of all tools that it was made from, best first."""

    catalog: Catalog
    profile: Profile
    pinned: tuple[ToolId, ...]
    decision: Decision
    order: tuple[Candidate, ...]
    scores: Scores | None
    event: RouteDecided
    priced: Priced | None = None

    def of_name(self, name: str) -> list[ToolExplanation]:
        """An explanation for each tool named ``name`` or ``server/name``; if there is none, similar names."""
        catalog = self.catalog
        found = [tool.id for tool in catalog.tools if name in (tool.name, str(tool.id))]
        return [self.of_tool(tool) for tool in found] or [_unknown(catalog, name)]

    def of_tool(self, tool: ToolId) -> ToolExplanation:
        if tool in self.decision.gated_out_by_state:
            return ToolExplanation(tool=str(tool), status="gated_by_state", why="Its precondition does not hold now.")
        if tool not in self.decision.reachable:
            return ToolExplanation(
                tool=str(tool), status="out_of_scope", why="It needs a scope that the caller does not hold."
            )
        candidate = self._candidates[tool]
        status = "active" if tool in self.decision.active else self._missed(candidate)
        return ToolExplanation(
            tool=str(tool), status=status, why=self._sentence(status, candidate), candidate=candidate
        )

    def _missed(self, candidate: Candidate) -> Status:
        place = self._passed.get(candidate.tool)
        k = self.profile.k
        if candidate.tool in self.decision.left_out:
            return "withheld"
        if candidate.tool in self._pinned:
            return "over_budget"
        if self.priced is not None and (reason := self.priced.reason(self._place(candidate.tool))) in DROPPED:
            return DROPPED[reason]
        if place is None:
            return "below_threshold"
        if place >= self._enough:
            return "recall_reached"
        return "beyond_k" if k is not None and place >= k else "over_budget"

    def _sentence(self, status: Status, candidate: Candidate) -> str:
        profile = self.profile
        rank = f"rank {candidate.rank + 1} of {len(self.order)}"
        match status:
            case "active":
                return self._chosen(candidate, rank)
            case "below_threshold":
                return f"{rank}: its score {candidate.score:.3f} is below the threshold {profile.threshold}."
            case "recall_reached":
                return (
                    f"{rank}: it is less likely than a recall of {profile.recall or 0:.0%} requires; "
                    f"{self._enough} before it are likely enough."
                )
            case "server_not_shortlisted" | "server_declined" | "too_expensive" | "too_slow" if self.priced is not None:
                return f"{rank}: {priced.tool_why(self.priced, self._place(candidate.tool))}"
            case "beyond_k":
                return f"{rank}, and k is {profile.k}."
            case "withheld":
                return f"{rank}: {self.decision.left_out[candidate.tool]}."
            case _:
                tokens = self.catalog.token_counts[self.catalog.position[candidate.tool]]
                left = "" if profile.budget is None else f" into what was left of the budget of {profile.budget:,}"
                return f"{rank}: its {tokens:,} tokens did not fit{left}."

    def _chosen(self, candidate: Candidate, rank: str) -> str:
        if candidate.tool in self._pinned:
            return f"{rank}: the configuration makes it always available."
        if not candidate.parts:
            return "Relevance is unknown, so every tool passes."
        return f"{rank}, score {candidate.score:.3f} ({self.decision.scale})."

    def _place(self, tool: ToolId) -> int:
        return self.catalog.position[tool]

    @cached_property
    def _candidates(self) -> dict[ToolId, Candidate]:
        return {candidate.tool: candidate for candidate in self.order}

    @cached_property
    def _pinned(self) -> frozenset[ToolId]:
        return frozenset(self.pinned)

    @cached_property
    def _passed(self) -> dict[ToolId, int]:
        """The place of each tool among those that compete: offered, not pinned, and not below the threshold."""
        threshold = self.profile.threshold
        least = np.float32(-np.inf if threshold is None else threshold)
        competing = [
            each.tool
            for each in self.order
            if each.score >= least
            and each.tool not in self._pinned
            and each.tool not in self.decision.left_out
            and (self.priced is None or self.priced.among[self._place(each.tool)])
        ]
        return {tool: place for place, tool in enumerate(competing)}

    @cached_property
    def _enough(self) -> int:
        """How many of the competing tools are likely enough for the recall target."""
        if self.scores is None:
            return len(self._passed)
        values = np.array([self._candidates[tool].score for tool in self._passed], np.float32)
        scores = replace(self.scores, values=values)
        return len(likely_enough(scores, np.arange(len(values)), self.profile.recall))


def _unknown(catalog: Catalog, name: str) -> ToolExplanation:
    names = [known for tool in catalog.tools for known in (tool.name, str(tool.id))]
    near = tuple(dict.fromkeys(get_close_matches(name, names, SUGGESTIONS)))
    hint = f" Similar: {', '.join(near)}." if near else ""
    return ToolExplanation(tool=name, status="unknown", why=f"No tool has that name.{hint}", suggestions=near)
