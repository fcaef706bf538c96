"""A decision: its candidates with the parts of their scores, its event, and a wider decision for a refused model."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pegboard.catalog import Catalog
from pegboard.events import RouteDecided
from pegboard.model import Candidate, Decision, Floats, JsonObject, Mask, Scores, Tokens, Tool, ToolId, Turn
from pegboard.routing.pool import Pool
from pegboard.routing.profiles import Profile
from pegboard.routing.select import Indices, Selection

MOST_DOUBLINGS = 30
"""More tools than any catalog has."""
WITHHELD = "its server failed repeatedly and is not used for a while"


def candidates(tools: Sequence[Tool], places: Indices, scores: Scores | None) -> tuple[Candidate, ...]:
    """The tools at these places, best first, with the parts of their scores."""
    if scores is None:
        return tuple(Candidate(tool=tools[place].id, score=0.0, rank=rank) for rank, place in enumerate(places))
    names = list(scores.parts)
    values = scores.values[places].tolist()
    parts = np.array([scores.parts[name][places] for name in names]).reshape(len(names), len(places)).T.tolist()
    return tuple(
        Candidate(tool=tools[place].id, score=value, rank=rank, parts=dict(zip(names, part, strict=True)))
        for rank, (place, value, part) in enumerate(zip(places.tolist(), values, parts, strict=True))
    )


def decide(
    turn: Turn,
    profile: Profile,
    catalog: Catalog,
    *,
    query: str,
    scores: Scores | None,
    selection: Selection,
    shown: int,
    gated_out: Mask,
    withheld: Mask,
    reachable: frozenset[ToolId],
    phase1: Pool,
    phase2: tuple[JsonObject, ...],
    latency_ms: float,
    encoder: str = "",
) -> Decision:
    """The decision of a turn, with at least ``shown`` candidates and every chosen tool."""
    tools, chosen = catalog.tools, selection.chosen
    return Decision(
        turn_id=turn.id,
        profile=profile.name,
        query=query,
        scale=profile.scale if scores is None else scores.scale,
        active=tuple(tools[place].id for place in np.sort(chosen)),
        candidates=candidates(tools, selection.order[: max(len(chosen), shown)], scores),
        reachable=reachable,
        gated_out_by_state=tuple(tools[place].id for place in np.flatnonzero(gated_out)),
        phase1=phase1.text,
        phase1_tokens=phase1.tokens,
        phase2=phase2,
        phase2_tokens=Tokens(sum(catalog.token_counts[place] for place in chosen)),
        session=turn.session,
        latency_ms=latency_ms,
        meets_target=selection.meets_target,
        encoder=encoder,
        by_rank=profile.by_rank and scores is not None,
        tools=tuple(tools[place] for place in np.sort(chosen)),
        names=catalog.plain_names,
        left_out={tools[place].id: WITHHELD for place in np.flatnonzero(withheld)},
        habits=turn.habits,
    )


def route_decided(decision: Decision, scores: Scores | None, *, at: float, texts: bool = False) -> RouteDecided:
    """The event of a decision (Tool Attention §5.7). It holds no text of the query, only its vector's hash (M30),
    unless ``texts`` is set."""
    return RouteDecided(
        at=at,
        turn_id=decision.turn_id,
        profile=decision.profile,
        query_embedding_hash=vector_hash(scores.query_vector if scores else None),
        candidates=tuple(str(candidate.tool) for candidate in decision.candidates),
        scores={str(candidate.tool): round(candidate.score, 4) for candidate in decision.candidates},
        gated_out_by_state=tuple(map(str, decision.gated_out_by_state)),
        active_set=tuple(map(str, decision.active)),
        phase1_tokens=decision.phase1_tokens,
        phase2_tokens=decision.phase2_tokens,
        latency_ms=decision.latency_ms,
        encoder=decision.encoder,
        by_rank=decision.by_rank,
        query=decision.query if texts else "",
    )


def vector_hash(vector: Floats | None) -> str:
    """Shortened SHA-256 of a query's vector: equal for equal queries, and not reversible."""
    return "" if vector is None else hashlib.sha256(vector.tobytes()).hexdigest()[:16]


def widened(decision: Decision, catalog: Catalog, refused: Sequence[str]) -> Decision:
    """The decision with twice as many tools for each refusal after the first, by rank.

    ``refused`` are the names that the model called without success since the user's last message. Refused tools that
    the caller may use are added first: the model wants to call them again, and now sees their schemas.
    """
    repeated = min(len(refused) - 1, MOST_DOUBLINGS)
    if repeated < 1:
        return decision
    wanted = max(len(decision.active), 1) * 2**repeated
    ranked = (candidate.tool for candidate in decision.candidates)
    names = frozenset(refused)
    asked = (tool for tool in sorted(decision.reachable) if _is_called(tool, decision, names))
    order = list(dict.fromkeys([*decision.active, *asked, *ranked]))
    return with_active(decision, catalog, order[:wanted])


def with_active(decision: Decision, catalog: Catalog, tools: Sequence[ToolId]) -> Decision:
    """The decision with these as its active tools, in catalog order."""
    places = sorted(catalog.position[tool] for tool in tools if tool in catalog)
    return replace(
        decision,
        active=tuple(catalog.tools[place].id for place in places),
        tools=tuple(catalog.tools[place] for place in places),
        phase2=tuple(catalog.tools[place].definition for place in places),
        phase2_tokens=Tokens(sum(catalog.token_counts[place] for place in places)),
    )


def _is_called(tool: ToolId, decision: Decision, names: frozenset[str]) -> bool:
    return not names.isdisjoint((decision.name_of(tool), tool.name, str(tool)))
