"""`pegboard replay`: runs recorded requests through another configuration."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, BinaryIO, cast

import msgspec
import numpy as np
import typer

from pegboard.apps.cli import stderr_log
from pegboard.apps.cli.options import Configs, Json, Verbose, examples
from pegboard.apps.cli.output import cells, plain, print_json, stdout, table
from pegboard.apps.cli.shadow import interval, rounded, said
from pegboard.apps.cli.warm_board import Replaced
from pegboard.compose import opened_parts
from pegboard.errors import ConfigError, PegboardError
from pegboard.evaluation.progress_bar import bar
from pegboard.evaluation.ranking_metrics import Interval, bootstrap
from pegboard.gateways.llm.build import open_filters
from pegboard.gateways.llm.shadow.recorder import RequestRecord
from pegboard.gateways.llm.shadow.replay import (
    NotReplayed,
    RecordedClock,
    RecordReplay,
    ReplayedChoice,
    ReplayedComparison,
)
from pegboard.proportions import Share, paired_difference
from pegboard.settings import Settings

EXAMPLES = examples(
    "What would a smaller k have removed, and which calls would have been lost?",
    "pegboard replay turns.jsonl --config smaller.toml",
    "The same as JSON",
    "pegboard replay turns.jsonl.gz --config smaller.toml --json",
)

GZIP_MAGIC = b"\x1f\x8b"
PATIENCE = {"patience": 600.0, "filter_timeout": 600.0}
"""Long enough that no request is left out because its tools take long to embed."""
SEED = 0
DECODER = msgspec.json.Decoder(RequestRecord)

MOST_TOOLS = 20


@dataclass(slots=True, kw_only=True)
class ReplayReport:
    """The compared requests of ``log``; ``broken`` lines by number; numbers of requests ``left_out``, by reason."""

    log: Path
    turns: list[ReplayedComparison] = field(default_factory=list)
    broken: dict[int, str] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)

    @property
    def calls(self) -> list[tuple[str, bool, bool]]:
        """Every call: its tool, and whether the recorded and the new configuration kept it."""
        return [
            (name, name in turn.before.names, name in turn.after.names) for turn in self.turns for name in turn.called
        ]


def replay(
    context: typer.Context,
    log: Annotated[
        Path, typer.Argument(metavar="LOG", help="The file that the gateway wrote to llm.record; also .gz.")
    ],
    config: Configs = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Run recorded requests through the filters of a configuration, and compare what each keeps.

    No model is called. For the recorded and for the new configuration, it shows the tools kept, their tokens, and the
    recall: the share of the models' calls whose tool is kept. The difference has a 95% interval. Lines that cannot be
    read are reported and skipped.
    """
    from pegboard.apps.cli.configs import own_files_agreed
    from pegboard.settings import load_settings

    stderr_log.set_level(None)
    outcome = asyncio.run(run(log, load_settings(config or own_files_agreed()), context.obj))
    if as_json:
        print_json(payload(outcome))
    else:
        show(outcome)


async def run(log: Path, settings: Settings, replaced: Replaced) -> ReplayReport:
    """Replay a file. Raises ConfigError if it cannot be read, PegboardError if nothing in it can be replayed."""
    patient = settings.model_copy(update={"llm": settings.llm.model_copy(update=PATIENCE)})
    outcome, clock = ReplayReport(log=log), RecordedClock()
    total = sum(1 for _ in _lines(log))
    async with opened_parts(patient, **(replaced or {})) as parts, open_filters(patient, parts, clock) as filters:
        replay = RecordReplay(patient.llm, filters, clock)
        with bar("replaying requests") as progress:
            for number, line in enumerate(_lines(log), start=1):
                await _one(replay, number, line, outcome)
                progress(number, total)
    if not outcome.turns:
        why = ", ".join([*(f"{count:,}: {reason}" for reason, count in outcome.left_out.items())])
        raise PegboardError(
            f"None of the {total:,} lines of {str(log)!r} could be replayed{f' ({why})' if why else ''}.",
            remedy="Use a file that the gateway wrote to llm.record.",
        )
    return outcome


async def _one(replay: RecordReplay, number: int, line: bytes, outcome: ReplayReport) -> None:
    try:
        outcome.turns.append(await replay.compare(DECODER.decode(line)))
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        outcome.broken[number] = str(error)
        stderr_log.OURS.warning("Line %d of %s is skipped: %s", number, outcome.log, error)
    except NotReplayed as error:
        outcome.left_out[error.why] += 1


def _lines(log: Path) -> Iterator[bytes]:
    """Raises ConfigError."""
    try:
        with log.open("rb") as file:
            packed = file.peek(len(GZIP_MAGIC)).startswith(GZIP_MAGIC)
            yield from cast(BinaryIO, gzip.GzipFile(fileobj=file)) if packed else file
    except (OSError, EOFError, zlib.error) as error:
        raise ConfigError(
            f"Cannot read {str(log)!r}: {error}.", remedy="Name a file that the gateway wrote to llm.record."
        ) from error


def differences(outcome: ReplayReport) -> tuple[Interval, Interval, Share | None]:
    """Differences of tools and of tokens per turn, over turns, and of recall, over paired calls."""
    random = np.random.default_rng(SEED)
    kept = bootstrap([turn.after.tools - turn.before.tools for turn in outcome.turns], random)
    tokens = bootstrap([turn.after.tokens - turn.before.tokens for turn in outcome.turns], random)
    hits = Counter((before, after) for _, before, after in outcome.calls)
    recall = paired_difference(*(hits[each] for each in ((True, True), (True, False), (False, True), (False, False))))
    return kept, tokens, recall


def by_tool(outcome: ReplayReport) -> list[tuple[str, int, int, int]]:
    """Tools with their calls and the misses of each configuration, most misses of the new one first."""
    calls = Counter(name for name, _, _ in outcome.calls)
    before = Counter(name for name, kept, _ in outcome.calls if not kept)
    after = Counter(name for name, _, kept in outcome.calls if not kept)
    rows = [(name, count, before[name], after[name]) for name, count in calls.items()]
    return sorted(rows, key=lambda row: (-row[3], -row[2], -row[1], row[0]))


def payload(outcome: ReplayReport) -> dict[str, Any]:
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


def _side(outcome: ReplayReport, of: Callable[[ReplayedComparison], ReplayedChoice]) -> dict[str, Any]:
    calls, missed = _missed(outcome, of)
    return {
        "kept_per_turn": round(_mean([of(turn).tools for turn in outcome.turns]), 3),
        "tokens_per_turn": round(_mean([of(turn).tokens for turn in outcome.turns]), 1),
        "calls": calls,
        "missed": missed,
        "recall": interval(calls, missed),
    }


def _missed(outcome: ReplayReport, of: Callable[[ReplayedComparison], ReplayedChoice]) -> tuple[int, int]:
    """The number of calls, and of those whose tool was not kept."""
    hits = [name in of(turn).names for turn in outcome.turns for name in turn.called]
    return len(hits), hits.count(False)


def show(outcome: ReplayReport) -> None:
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


def _notes(outcome: ReplayReport) -> Iterator[str]:
    if filtered := sum(turn.was_filtered for turn in outcome.turns):
        yield (
            f"{filtered:,} of these requests were filtered when they were recorded: their models could not call the "
            "removed tools, so both recalls are too high. Record in shadow mode to avoid this."
        )
    if outcome.broken:
        yield f"{len(outcome.broken):,} lines could not be read and were skipped."
    for why, count in outcome.left_out.items():
        yield f"Left out, {why}: {count:,} requests."


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _rounded(gain: Interval) -> list[float]:
    return [round(each, 4) for each in (gain.mean, gain.low, gain.high)]
