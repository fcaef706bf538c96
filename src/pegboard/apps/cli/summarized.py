"""What `pegboard summarize` did, as a table and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from pegboard.apps.cli.output import cells, plain, stdout, table
from pegboard.apps.cli.sources import Loaded
from pegboard.bench.summarized import METRICS, Retrieval, mean_tokens
from pegboard.catalog import Catalog
from pegboard.retrieval.texts import name_and_description
from pegboard.summaries.writing import Written

SHOWN = 5
"""Summaries that people are shown, spread evenly over the catalog."""
CLAIM = "The seed reports -63% of length and +8 points of F1 for an LLM's."


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Tokens, mean a tool: of name and whole description, of the summary before, and of the one after."""

    description: float
    before: float
    after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """``after`` is the catalog with the new summaries, ``found`` what was retrieved before and after.

    ``to_ask`` is how many requests an LLM was sent, or would be; ``out`` is None where nothing was written.
    """

    loaded: Loaded
    written: Written
    model: str | None
    to_ask: int
    after: Catalog
    found: tuple[Retrieval, Retrieval] | None
    queries: int
    out: Path | None

    @property
    def lengths(self) -> Lengths:
        before, after = self.loaded.catalog, self.after
        return Lengths(
            description=mean_tokens(before, [name_and_description(tool) for tool in before.tools]),
            before=mean_tokens(before, [tool.summary for tool in before.tools]),
            after=mean_tokens(after, [tool.summary for tool in after.tools]),
        )

    @property
    def by_model(self) -> int:
        return len(self.written.rows) - self.written.by_rule - self.written.kept


def payload(outcome: Outcome) -> dict[str, Any]:
    written, lengths = outcome.written, outcome.lengths
    made: dict[str, Any] = {
        "out": None if outcome.out is None else str(outcome.out),
        "tools": len(written.rows),
        "by_rule": written.by_rule,
        "by_model": outcome.by_model,
        "kept": written.kept,
        "model": outcome.model,
        "requests": written.requests,
        "requests_needed": outcome.to_ask,
        "refused": dict(written.refused),
        "mean_tokens": {
            "description": round(lengths.description, 1),
            "before": round(lengths.before, 1),
            "after": round(lengths.after, 1),
        },
        "length_change": round(_change(lengths.before, lengths.after), 4),
        "length_change_of_description": round(_change(lengths.description, lengths.after), 4),
        "retrieval": _retrieval(outcome),
        "summaries": [{"server": row.server, "name": row.name, "summary": row.summary} for row in written.rows],
    }
    return made | outcome.loaded.payload()


def _retrieval(outcome: Outcome) -> dict[str, Any] | None:
    if outcome.found is None:
        return None
    before, after = outcome.found
    gain = after.gain(before)
    return {
        "queries": outcome.queries,
        "before": before.payload(),
        "after": after.payload(),
        "f1@5_gain": round(gain.mean, 4),
        "f1@5_gain_interval_95": [round(gain.low, 4), round(gain.high, 4)],
        "seed_claims": {"f1": 0.08, "length_change": -0.63},
    }


def show(outcome: Outcome) -> None:
    console = stdout()
    for line in outcome.loaded.lines():
        console.print(plain(line))
    console.print(_examples(outcome.loaded.catalog, outcome.after))
    if outcome.found is not None:
        console.print(_compared(outcome.queries, *outcome.found))
    console.print(plain("\n" + "\n".join(_sentences(outcome))))


def _examples(before: Catalog, after: Catalog) -> Table:
    made = table("", "before", "after")
    made.show_lines = True
    step = max(1, len(before) // SHOWN)
    for old, new in list(zip(before.tools, after.tools, strict=True))[::step][:SHOWN]:
        made.add_row(*cells(old.summary, new.summary))
    return made


def _compared(queries: int, before: Retrieval, after: Retrieval) -> Table:
    made = table(f"\n{queries} queries, profile attention", "", ">before", ">after")
    for metric in METRICS:
        made.add_row(*cells(metric, f"{before.mean(metric):.3f}", f"{after.mean(metric):.3f}"))
    made.add_row(*cells("F1 at the best θ", f"{before.f1:.3f} (θ={before.theta})", f"{after.f1:.3f} (θ={after.theta})"))
    return made


def _sentences(outcome: Outcome) -> Iterator[str]:
    written, lengths = outcome.written, outcome.lengths
    yield (
        f"{len(written.rows)} tools: {written.by_rule} by rule, {outcome.by_model} by "
        f"{outcome.model or 'an LLM'}, {written.kept} kept from the file."
    )
    if written.refused:
        why = ", ".join(f"{reason} ({times})" for reason, times in written.refused.items())
        yield f"Not taken from {outcome.model}: {why}."
    yield (
        f"A summary has {lengths.after:.1f} tokens; before it had {lengths.before:.1f} "
        f"({_change(lengths.before, lengths.after):+.0%}), name and whole description {lengths.description:.1f} "
        f"({_change(lengths.description, lengths.after):+.0%})."
    )
    if outcome.found is not None:
        before, after = outcome.found
        gain = after.gain(before)
        points = [100 * value for value in (gain.mean, gain.low, gain.high)]
        yield f"F1@5 changes by {points[0]:+.1f} points [{points[1]:+.1f}, {points[2]:+.1f}]. {CLAIM}"
    if outcome.out is not None:
        yield f'Written to {outcome.out}. `summaries = "{outcome.out}"` in pegboard.toml uses them.'
    else:
        asked = f"; {outcome.model} would be asked {outcome.to_ask} times" if outcome.model else ""
        yield f"Nothing was written{asked}."


def _change(before: float, after: float) -> float:
    return after / before - 1 if before else 0.0
