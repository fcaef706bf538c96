"""The activity of a gateway: one entry for each decision, and the sums that are shown of them.

An entry has names, counts and hashes. The text of a request is in it only if the settings say so (`[activity] texts`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import nan
from operator import itemgetter, sub
from typing import Literal, NamedTuple, get_args

from pegboard.extras import required
from pegboard.spend_limits import NanoUsd

Door = Literal["llm", "mcp", "api"]
ActivityKind = Literal["request", "list", "search", "route", "push", "result"]
Grouping = Literal["door", "key", "client", "conversation", "model", "tool"]
GROUPINGS: tuple[Grouping, ...] = get_args(Grouping)
DAY_SECONDS = 86_400
NO_MONEY = NanoUsd(0)


class ScoredTool(NamedTuple):
    """A candidate of a decision. ``offered``: it was among the tools that the decision chose."""

    name: str
    score: float
    offered: bool


NOT_RANKED = "[]"


def scores_of(ranked: Iterable[tuple[str, float, bool]]) -> str:
    """Candidates of a decision, the best first, as its entry has them.

    >>> scores_of([ScoredTool("git/log", 0.5, True), ScoredTool("git/show", 0.25, False)])
    '{"names":["git/log","git/show"],"scores":[0.5,0.25],"offered":[0]}'
    """
    rows = list(ranked)
    offered = [place for place, row in enumerate(rows) if row[2]]
    return scores_in_columns([row[0] for row in rows], [row[1] for row in rows], offered)


def scores_in_columns(names: Sequence[str], scores: Sequence[float], offered: Sequence[int], more: int = 0) -> str:
    """`scores_of` without an object for each candidate; ``offered`` are the places of those that were, and so many
    ``more`` were that are not named."""
    columns = {"names": names, "scores": scores, "offered": offered} | ({"more": more} if more else {})
    return str(required("msgspec", "mcp").json.encode(columns), "utf-8")


def ranked_in(scores: str) -> tuple[ScoredTool, ...]:
    """The candidates that `scores_of` was given; also of entries that are older than columns, with a row for each.

    >>> ranked_in('{"names":["git/log","git/show"],"scores":[0.5,null],"offered":[0]}')[1]
    ScoredTool(name='git/show', score=nan, offered=False)
    >>> ranked_in('[["git/log",0.5,true],["git/show",0.25]]')[0]
    ScoredTool(name='git/log', score=0.5, offered=True)
    """
    found = json.loads(scores)
    if isinstance(found, dict):
        offered = set(found["offered"])
        rows = ((*row, place in offered) for place, row in enumerate(zip(found["names"], found["scores"], strict=True)))
    else:
        rows = ((name, score, bool(offered)) for name, score, *offered in found)
    return tuple(ScoredTool(name, nan if score is None else score, offered) for name, score, offered in rows)


class ActivityEntry(NamedTuple):
    """A decision about tools and what came of it. ``at`` is seconds since the epoch.

    ``kind`` is a model's `request`, an MCP `list`, `search`, `push` or shortened `result`, or a `route` of MCP or the
    HTTP API.
    ``key`` is the name of the caller's key or token, ``conversation`` its mark (`conversation_mark`). ``upstream`` is
    where a request was sent, or the tool whose result was shortened. ``offered`` of ``tools`` were offered. ``scores``
    are the candidates as `scores_of` makes them: they are stored as they are, and read (``ranked``) where they are
    shown.
    ``called`` are the calls that followed, ``failures`` those of them that failed, and ``searches`` the searches that
    followed because none of the offered tools was called. ``billed`` and ``saved`` are the price of the definitions
    that were sent and of those that were not, for models with a known price. ``error`` is a code.

    The tokens of a model request are what its provider counted: ``input_tokens`` is the whole prompt, with what was
    read from the provider's cache (``cached_tokens``) and written to it. ``cost`` is the price of all of them,
    ``unpriced`` is 1 for an answered request whose cost is not known.
    """

    id: str
    at: float
    door: Door
    kind: ActivityKind
    key: str = ""
    client: str = ""
    conversation: str = ""
    text: str = ""
    upstream: str = ""
    model: str = ""
    profile: str = ""
    encoder: str = ""
    outcome: str = ""
    tools: int = 0
    offered: int = 0
    scores: str = NOT_RANKED
    called: tuple[str, ...] = ()
    brought_back: tuple[str, ...] = ()
    failures: int = 0
    searches: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    billed: NanoUsd = NO_MONEY
    saved: NanoUsd = NO_MONEY
    latency_ms: float = 0.0
    error: str = ""
    input_tokens: int = 0
    cached_tokens: int = 0
    written_tokens: int = 0
    output_tokens: int = 0
    cost: NanoUsd = NO_MONEY
    unpriced: int = 0

    @property
    def day(self) -> int:
        """Days since the epoch, UTC."""
        return int(self.at // DAY_SECONDS)

    @property
    def ranked(self) -> tuple[ScoredTool, ...]:
        """The candidates, the best first."""
        return ranked_in(self.scores)

    @property
    def more_offered(self) -> int:
        """How many tools a client had at hand that are not among the candidates: of very many, not all are named."""
        found = json.loads(self.scores)
        return int(found.get("more", 0)) if isinstance(found, dict) else 0

    @property
    def missed(self) -> tuple[str, ...]:
        """Tools that were called although the decision had not offered them. Where more were offered than its entry
        names, that is not known of those that it does not name."""
        if not self.called:
            return ()
        ranked = self.ranked
        offered = [each.name for each in ranked if each.offered]
        missed = set(self.called).difference(offered)
        if len(offered) < self.offered or self.more_offered:
            missed.intersection_update(each.name for each in ranked)
        return tuple(name for name in self.called if ranked and name in missed)

    def names(self, grouping: Grouping) -> tuple[str, ...]:
        """The groups that the entry counts for: one, or each tool that was called after it."""
        return tuple(dict.fromkeys(self.called)) if grouping == "tool" else (getattr(self, grouping),)


FIELDS = ActivityEntry._fields
USAGE = ("input_tokens", "cached_tokens", "written_tokens", "output_tokens", "cost", "unpriced")
"""Fields of what a provider counted, which totals have too, in the same order."""


CHOSEN = ("door", "key", "client", "conversation", "model", "outcome")
"""Fields that a query may name a value of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityQuery:
    """Which entries: None means any. ``tool`` was called after them. ``before`` is the time and id of an entry: those
    after it in the list."""

    door: str | None = None
    key: str | None = None
    client: str | None = None
    conversation: str | None = None
    model: str | None = None
    outcome: str | None = None
    tool: str | None = None
    since: float | None = None
    failed: bool = False
    before: tuple[float, str] | None = None

    def passes(self, entry: ActivityEntry) -> bool:
        return (
            all(getattr(self, name) in (None, getattr(entry, name)) for name in CHOSEN)
            and (self.tool is None or self.tool in entry.called)
            and (self.since is None or entry.at >= self.since)
            and (not self.failed or bool(entry.error) or entry.failures > 0)
            and (self.before is None or (entry.at, entry.id) < self.before)
        )


class ActivityTotals(NamedTuple):
    """Sums over entries. ``errors`` are entries with an error, ``failures`` calls that failed."""

    decisions: int = 0
    errors: int = 0
    failures: int = 0
    searches: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    billed: int = 0
    saved: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    written_tokens: int = 0
    output_tokens: int = 0
    cost: int = 0
    unpriced: int = 0

    @property
    def tokens_saved(self) -> int:
        return self.tokens_before - self.tokens_after

    def minus(self, other: ActivityTotals) -> ActivityTotals:
        return ActivityTotals(*map(sub, self, other))


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityGroup:
    """The sums of entries that share a ``name``, and the time of the first and of the last one."""

    name: str
    first: float
    last: float
    totals: ActivityTotals

    @property
    def priced(self) -> bool:
        """Whether any of its requests has a known cost."""
        return bool(self.totals.cost) or not self.totals.unpriced


_counts = itemgetter(*map(FIELDS.index, ActivityTotals._fields[2:]))


def totals_of(entry: ActivityEntry) -> ActivityTotals:
    return ActivityTotals(1, int(bool(entry.error)), *_counts(entry))


def summed(totals: Iterable[ActivityTotals]) -> ActivityTotals:
    """Their sums, field by field."""
    return ActivityTotals(*map(sum, zip(*totals, strict=True)))


def conversation_mark(conversation: str | None) -> str:
    """The mark of a conversation or session: its id itself could grant access to it.

    >>> conversation_mark("5f0c1b9e"), conversation_mark(None)
    ('1ddf1170bef0', '')
    """
    if not conversation:
        return ""
    return hashlib.sha256(conversation.encode("utf-8", "surrogatepass")).hexdigest()[:12]
