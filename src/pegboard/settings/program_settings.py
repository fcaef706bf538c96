"""Options of programs: whether clients are offered `run_program`, and what one program may take."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

ProgramMode = Literal["off", "auto", "on"]


class ProgramSettings(BaseModel):
    """Whether `run_program` is offered: never (``off``), always (``on``), or where the break-even rule says that it
    pays (``auto``). The rule takes ``expected_calls`` calls for a task, with results of ``expected_tokens`` tokens;
    where nothing is said of calls, four on a large board, and none of a small one.

    A program computes for at most ``seconds``, ends after ``wait`` seconds with the time of its calls, takes
    ``memory_mb`` megabytes, makes ``calls`` calls, and hands on ``output`` tokens of what it prints. So many run
    ``at_once`` in this process; others wait.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    mode: ProgramMode = "off"
    seconds: float = Field(default=10.0, gt=0, le=600)
    wait: float = Field(default=300.0, gt=0, le=3600)
    memory_mb: int = Field(default=64, ge=8, le=1024)
    calls: int = Field(default=100, ge=1, le=10_000)
    output: int = Field(default=4_000, ge=100, le=50_000)
    at_once: int = Field(default=4, ge=1, le=64)
    expected_calls: float | None = Field(default=None, ge=0)
    expected_tokens: float = Field(default=500.0, ge=0)
