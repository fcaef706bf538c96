"""How well what was offered fits what was called: recall by model, and which tools are ranked above the ones wanted."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isnan

from pegboard.activity_entries import ActivityEntry


@dataclass(slots=True, kw_only=True)
class CallOutcomes:
    """Sums over the decisions of a model, or of an MCP client, after which tools were called.

    Of the ``calls``, so many were of tools that had been ``offered`` when they were wanted: without a search. In so
    many decisions the ``first`` call was. ``failures`` are calls that failed, as far as the gateway sees their results.
    """

    name: str
    decisions: int = 0
    calls: int = 0
    offered: int = 0
    first: int = 0
    failures: int = 0

    @property
    def recall(self) -> float | None:
        """The share of calls whose tool had been offered; None without calls."""
        return self.offered / self.calls if self.calls else None

    @property
    def first_call(self) -> float | None:
        """The share of decisions whose first call was of a tool that had been offered."""
        return self.first / self.decisions if self.decisions else None

    def add(self, entry: ActivityEntry, offered: Sequence[bool]) -> None:
        """``offered`` says of each call whether its tool had been."""
        self.decisions += 1
        self.calls += len(offered)
        self.offered += sum(offered)
        self.first += offered[0]
        self.failures += entry.failures


@dataclass(frozen=True, slots=True, kw_only=True)
class LostRank:
    """How often a tool was called first although the decision had ranked another one best, which was not called at all.

    ``offered`` of these ``times`` it had been offered all the same.
    """

    tool: str
    best: str
    times: int
    offered: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionOutcomes:
    """``read`` decisions were looked at; those without a ranking or without calls count for nothing else. ``by_model``
    has those with the most decisions first, ``lost`` the pairs that are most frequent."""

    read: int
    total: CallOutcomes
    by_model: Sequence[CallOutcomes]
    lost: Sequence[LostRank]


def decision_outcomes(entries: Iterable[ActivityEntry], most: int) -> DecisionOutcomes:
    """The outcomes of decisions, with at most ``most`` models and pairs."""
    read, total, by_model = 0, CallOutcomes(name=""), dict[str, CallOutcomes]()
    times, offered = Counter[tuple[str, str]](), defaultdict[tuple[str, str], int](int)
    for entry in entries:
        read += 1
        if not entry.called or not (ranked := entry.ranked):
            continue
        were_offered = calls_offered(entry)
        name = entry.model or entry.client or entry.door
        for sums in (total, by_model.setdefault(name, CallOutcomes(name=name))):
            sums.add(entry, were_offered)
        first, best = entry.called[0], ranked[0].name
        if best not in entry.called and not isnan(ranked[0].score):
            times[first, best] += 1
            offered[first, best] += were_offered[0]
    pairs = sorted(times, key=lambda pair: (-times[pair], pair))[:most]
    return DecisionOutcomes(
        read=read,
        total=total,
        by_model=sorted(by_model.values(), key=lambda sums: (-sums.decisions, sums.name))[:most],
        lost=[LostRank(tool=pair[0], best=pair[1], times=times[pair], offered=offered[pair]) for pair in pairs],
    )


def calls_offered(entry: ActivityEntry) -> list[bool]:
    """Of each call, whether its tool had been offered. A model calls what it was sent, unless it had to search."""
    missed = entry.brought_back if entry.door == "llm" else entry.missed
    return [tool not in missed for tool in entry.called]
