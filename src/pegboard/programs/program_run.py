"""What came of a program, and how a model reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from pegboard.events import ProgramFinished
from pegboard.protocols import TokenCounter

Outcome = Literal["ok", "refused", "failed", "time", "memory", "calls", "output", "crashed"]
"""``refused`` ran nothing: the program is no Python, or calls a tool wrongly."""
MOST_NAMED = 20
LONGEST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramCall:
    """One call: the tool's name, the line of the program that made it, and what it failed with, if it did.
    ``finished`` is false for one that was cancelled with the program."""

    tool: str
    line: int
    problem: str = ""
    finished: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramRun:
    """``value`` is the last expression's, as text; ``problem`` says what ended the program, with the line."""

    outcome: Outcome
    printed: str = ""
    value: str = ""
    problem: str = ""
    calls: tuple[ProgramCall, ...] = ()
    seconds: float = 0.0
    received: int = 0
    """Characters of the results that the program was given."""


def program_text(run: ProgramRun, most: int, counter: TokenCounter) -> str:
    """What the model reads: what was printed and the last value, in at most ``most`` tokens, then what went wrong."""
    said = "\n".join(filter(None, [run.printed.rstrip("\n"), run.value]))
    parts = [_cut(said, most, counter)]
    if run.problem:
        parts += [run.problem.rstrip("\n"), _calls_made(run.calls)]
    return "\n".join(filter(None, parts)) or "(nothing was printed)"


def finished(run: ProgramRun, *, at: float, tokens: int, **who: str) -> ProgramFinished:
    """The event of a program that handed on so many tokens. ``who`` are its `key` and its `conversation`."""
    return ProgramFinished(
        at=at,
        outcome=run.outcome,
        calls=len(run.calls),
        failed=sum(bool(each.problem) for each in run.calls),
        seconds=run.seconds,
        received=run.received,
        tokens=tokens,
        **who,
    )


def _cut(text: str, most: int, counter: TokenCounter) -> str:
    kept = counter.cut(text, most)
    if len(kept) == len(text):
        return text
    return f"{kept}\n[{len(text) - len(kept)} characters more were printed: print less]"


def _calls_made(calls: Sequence[ProgramCall]) -> str:
    """Which calls were made before the end, so that none is repeated that changed something."""
    if not calls:
        return "No call was made."
    said = (f"  line {each.line}: {each.tool} {_how(each)}" for each in calls)
    lines = [(line, len(list(same))) for line, same in groupby(said)]
    shown = [f"{line} ({times} times)" if times > 1 else line for line, times in lines[-MOST_NAMED:]]
    return "\n".join([f"{len(calls)} {'call was' if len(calls) == 1 else 'calls were'} made:", *shown])


def _how(call: ProgramCall) -> str:
    if not call.finished:
        return "was cancelled"
    return f"failed: {call.problem[:LONGEST]}" if call.problem else "succeeded"
