"""The work of `pegboard replay`."""

from __future__ import annotations

import gzip
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, cast

import msgspec
import numpy as np

from pegboard.apps.cli import logs
from pegboard.apps.cli.boards import Replaced
from pegboard.bench.metrics import Interval, bootstrap
from pegboard.bench.progress import bar
from pegboard.compose import opened_parts
from pegboard.errors import ConfigError, PegboardError
from pegboard.gateways.llm.opened import open_filters
from pegboard.gateways.llm.recording import Recorded
from pegboard.gateways.llm.replay import Compared, NotReplayed, RecordedClock, Replay
from pegboard.proportions import Share, paired_difference
from pegboard.settings import Settings

GZIP_MAGIC = b"\x1f\x8b"
PATIENCE = {"patience": 600.0, "filter_timeout": 600.0}
"""Nothing is left out because its tools take long to embed."""
SEED = 0
DECODER = msgspec.json.Decoder(Recorded)


@dataclass(slots=True, kw_only=True)
class Replayed:
    """The requests of ``log`` that could be compared; lines that are ``broken``, by number; others by why not."""

    log: Path
    turns: list[Compared] = field(default_factory=list)
    broken: dict[int, str] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)

    @property
    def calls(self) -> list[tuple[str, bool, bool]]:
        """Each call: its tool, and whether the one and the other configuration kept it."""
        return [
            (name, name in turn.before.names, name in turn.after.names) for turn in self.turns for name in turn.called
        ]


async def run(log: Path, settings: Settings, replaced: Replaced) -> Replayed:
    """Raises ConfigError for a file that cannot be read, PegboardError where nothing in it can be replayed."""
    patient = settings.model_copy(update={"llm": settings.llm.model_copy(update=PATIENCE)})
    outcome, clock = Replayed(log=log), RecordedClock()
    total = sum(1 for _ in _lines(log))
    async with opened_parts(patient, **(replaced or {})) as parts, open_filters(patient, parts, clock) as filters:
        replay = Replay(patient.llm, filters, clock)
        with bar("replaying requests") as progress:
            for number, line in enumerate(_lines(log), start=1):
                await _one(replay, number, line, outcome)
                progress(number, total)
    if not outcome.turns:
        why = ", ".join([*(f"{count:,}: {reason}" for reason, count in outcome.left_out.items())])
        raise PegboardError(
            f"None of the {total:,} lines of {str(log)!r} could be replayed{f' ({why})' if why else ''}.",
            remedy="The gateway writes such a file where llm.record names one.",
        )
    return outcome


async def _one(replay: Replay, number: int, line: bytes, outcome: Replayed) -> None:
    try:
        outcome.turns.append(await replay.compare(DECODER.decode(line)))
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        outcome.broken[number] = str(error)
        logs.OURS.warning("Line %d of %s is skipped: %s", number, outcome.log, error)
    except NotReplayed as error:
        outcome.left_out[error.why] += 1


def _lines(log: Path) -> Iterator[bytes]:
    """Raises ConfigError."""
    try:
        with log.open("rb") as file:
            packed = file.peek(len(GZIP_MAGIC)).startswith(GZIP_MAGIC)
            yield from cast(BinaryIO, gzip.GzipFile(fileobj=file)) if packed else file
    except (OSError, EOFError, zlib.error) as error:
        raise ConfigError(f"Cannot read {str(log)!r}: {error}.", remedy="Name a file that llm.record made.") from error


def differences(outcome: Replayed) -> tuple[Interval, Interval, Share | None]:
    """Of tools and tokens a turn, over turns; of recall over calls, each of which both configurations were tried on."""
    random = np.random.default_rng(SEED)
    kept = bootstrap([turn.after.tools - turn.before.tools for turn in outcome.turns], random)
    tokens = bootstrap([turn.after.tokens - turn.before.tokens for turn in outcome.turns], random)
    hits = Counter((before, after) for _, before, after in outcome.calls)
    recall = paired_difference(*(hits[each] for each in ((True, True), (True, False), (False, True), (False, False))))
    return kept, tokens, recall


def by_tool(outcome: Replayed) -> list[tuple[str, int, int, int]]:
    """Tools with their calls, and how many of them each configuration misses; the new one's misses first."""
    calls = Counter(name for name, _, _ in outcome.calls)
    before = Counter(name for name, kept, _ in outcome.calls if not kept)
    after = Counter(name for name, _, kept in outcome.calls if not kept)
    rows = [(name, count, before[name], after[name]) for name, count in calls.items()]
    return sorted(rows, key=lambda row: (-row[3], -row[2], -row[1], row[0]))
