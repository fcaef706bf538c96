"""What `pegboard replay` says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pegboard.apps.cli.output import cells, plain, stdout, table
from pegboard.apps.cli.replayed import Replayed, by_tool, differences
from pegboard.apps.cli.shadowed import interval, rounded, said
from pegboard.bench.metrics import Interval
from pegboard.gateways.llm.replay import Choice, Compared

MOST_TOOLS = 20


def payload(outcome: Replayed) -> dict[str, Any]:
    kept, tokens, recall = differences(outcome)
    return {
        "log": str(outcome.log),
        "replayed": len(outcome.turns),
        "filtered_when_recorded": sum(turn.was_filtered for turn in outcome.turns),
        "broken": [{"line": number, "reason": reason} for number, reason in outcome.broken.items()],
        "left_out": dict(outcome.left_out),
        "recorded": _side(outcome, lambda turn: turn.before),
        "new": _side(outcome, lambda turn: turn.after),
        "difference": {
            "kept_per_turn": _rounded(kept),
            "tokens_per_turn": _rounded(tokens),
            "recall": None if recall is None else rounded(recall),
        },
        "tools": [
            {"tool": tool, "calls": calls, "missed_recorded": before, "missed_new": after}
            for tool, calls, before, after in by_tool(outcome)
        ],
    }


def _side(outcome: Replayed, of: Callable[[Compared], Choice]) -> dict[str, Any]:
    calls, missed = _missed(outcome, of)
    return {
        "kept_per_turn": round(_mean([of(turn).tools for turn in outcome.turns]), 3),
        "tokens_per_turn": round(_mean([of(turn).tokens for turn in outcome.turns]), 1),
        "calls": calls,
        "missed": missed,
        "recall": interval(calls, missed),
    }


def _missed(outcome: Replayed, of: Callable[[Compared], Choice]) -> tuple[int, int]:
    """Calls, and how many of them are of tools that were not kept."""
    hits = [name in of(turn).names for turn in outcome.turns for name in turn.called]
    return len(hits), hits.count(False)


def show(outcome: Replayed) -> None:
    console = stdout()
    kept, tokens, recall = differences(outcome)
    recorded, new = _side(outcome, lambda turn: turn.before), _side(outcome, lambda turn: turn.after)
    made = table(f"{len(outcome.turns):,} requests of {outcome.log}", "", ">recorded", ">new", ">difference [95%]")
    for title, name, gain, form in (
        ("tools kept", "kept_per_turn", kept, ".2f"),
        ("tokens", "tokens_per_turn", tokens, ",.0f"),
    ):
        spread = f"{gain.mean:+{form}} [{gain.low:+{form}}, {gain.high:+{form}}]"
        made.add_row(*cells(f"{title} a request", f"{recorded[name]:{form}}", f"{new[name]:{form}}", spread))
    gained = "-" if recall is None else f"{recall.value:+.3f} [{recall.low:+.3f}, {recall.high:+.3f}]"
    shares = (said(side["calls"], side["missed"]) for side in (recorded, new))
    made.add_row(*cells(f"recall of {new['calls']:,} calls", *shares, gained))
    console.print(made)
    if rows := [row for row in by_tool(outcome) if row[2] or row[3]][:MOST_TOOLS]:
        made = table("Missed most", "tool", ">calls", ">missed, recorded", ">missed, new")
        for row in rows:
            made.add_row(*cells(*row))
        console.print()
        console.print(made)
    for line in _notes(outcome):
        console.print(plain(line), soft_wrap=True)


def _notes(outcome: Replayed) -> Iterator[str]:
    if filtered := sum(turn.was_filtered for turn in outcome.turns):
        yield (
            f"{filtered:,} of these requests were filtered when they were recorded: their models could not call what "
            "had been removed, so both recalls are too high. Record in the shadow to avoid that."
        )
    if outcome.broken:
        yield f"{len(outcome.broken):,} lines could not be read and were skipped."
    for why, count in outcome.left_out.items():
        yield f"Left out, {why}: {count:,} requests."


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _rounded(gain: Interval) -> list[float]:
    return [round(each, 4) for each in (gain.mean, gain.low, gain.high)]
