"""What the parts of a driver say, as figures: what was asked for, and what of it was so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

MOST = 8 + 2
"""Tools that a model is shown at most: those of the turn, `search_tools` and a control tool (`scenario.K`)."""


def failed_parts(found: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """The parts that raised, with the last line of what they raised."""
    return {
        part: said["failed"].strip().splitlines()[-1] for part, said in found.items() if said.get("failed") is not None
    }


def is_gated(gate: Mapping[str, Any]) -> bool:
    """Whether a call of a tool that was not shown was answered with the error, and did not run."""
    said = gate.get("result", "")
    return not gate.get("shown") and gate.get("ran") == [] and "tool_not_available" in said and gate["said"] == "done"


def is_found(way_back: Mapping[str, Any]) -> bool:
    """Whether a tool that was left out was shown after a search for it, and ran."""
    shown: Sequence[bool] = way_back.get("found", ())
    return list(shown[:2]) == [False, True] and way_back["ran"] == ["translate_telescope"]


def is_streamed(streaming: Mapping[str, Any]) -> bool:
    """Whether the answer came in parts while the run went on, through a refusal and a call."""
    parts: Sequence[str] = streaming.get("parts", ())
    return len(parts) > 1 and "done" in "".join(parts) and streaming["ran"] == ["get_calendar_event"]


def is_handed_over(several: Mapping[str, Any]) -> bool:
    """Whether an agent could hand off to a second one, which was offered its tool and ended."""
    return bool(several.get("control")) and several["ran"] == ["get_contract"] and several["said"] == "done"


def figures_of(name: str, found: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """The figures of one framework. A part that raised counts as one in which nothing was right."""
    turns, parallel = found.get("twenty_turns", {}), found.get("parallel", {})
    added = found.get("added_time", {})
    requests = float(parallel.get("requests", 0))
    figures = {
        "turns": float(turns.get("turns", 0)),
        "offered": float(turns.get("offered", 0)),
        "ended": float(turns.get("ended", 0)),
        "largest": float(turns.get("largest", 0)),
        "gated": float(is_gated(found.get("gate", {}))),
        "found": float(is_found(found.get("way_back", {}))),
        "streamed": float(is_streamed(found.get("streaming", {}))),
        "handed_over": float(is_handed_over(found.get("several_agents", {}))),
        "requests": requests,
        "leaks": float(parallel.get("leaks", 0) + parallel.get("deleted_unshown", 0)),
        "errors": float(len(parallel.get("errors", ())) + parallel.get("not_ended", 0)) if requests else 1.0,
    }
    if "processor_ms" in added:
        figures |= {"processor_ms": added["processor_ms"], "wall_ms": added["wall_ms"][1]}
    return {f"{figure}/{name}": value for figure, value in figures.items()}
