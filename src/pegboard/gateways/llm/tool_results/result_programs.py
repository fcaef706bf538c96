"""`run_program` in one request: its definition, when it is offered, and programs over the results in the request.

The agent makes the calls of its tools itself, so a program here makes none: it reads the results that were shortened.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pegboard.model import JsonObject, Tool, ToolId
from pegboard.programs.break_even import pays_off
from pegboard.programs.program_run import ProgramRun, program_text
from pegboard.programs.result_values import CallFailed, value_of
from pegboard.programs.runner import ProgramRunner
from pegboard.programs.stubs import check_stub
from pegboard.protocols import TokenCounter
from pegboard.results.shape import ShapedResult

RUN = "run_program"
ABOUT = (
    "Run a Python program over shortened tool results, to count, filter, join or sum: `r = await result('r…')` with a "
    "handle is all of one, JSON as dict or list, else str. Only what it prints comes back. No files, no network; json, "
    "re, math and datetime can be imported."
)
SCHEMA: JsonObject = {"type": "object", "properties": {"program": {"type": "string"}}, "required": ["program"]}
CHECKED = Tool(id=ToolId("pegboard", RUN), input_schema={**SCHEMA, "additionalProperties": False})
RESULT = "result"
READING = Tool(
    id=ToolId("pegboard", RESULT),
    input_schema={
        "type": "object",
        "properties": {"handle": {"type": "string"}},
        "required": ["handle"],
        "additionalProperties": False,
    },
)
"""The only function of a program."""
DECLARED = {RESULT: check_stub(RESULT, READING)}


def program_pays(found: ShapedResult, before: int, budget: int) -> bool:
    """Whether a program over a cut result is expected to cost less than reading the rest of it in pages of ``budget``
    tokens, with ``before`` tokens of prompt in front of it.

    >>> cut = ShapedResult(result={}, before=90_000, after=6_000, handle="r1", uncut=60_000)
    >>> short = ShapedResult(result={}, before=9_000, after=6_000, handle="r2", uncut=7_000)
    >>> program_pays(cut, 20_000, 6_000), program_pays(short, 20_000, 6_000)
    (True, False)
    """
    rest = max(0, found.uncut - found.after)
    pages = max(1, -(-rest // max(1, budget)))
    return pays_off(pages, rest / pages, before, begun=True)


@dataclass(slots=True, kw_only=True)
class ResultPrograms:
    """``kept`` are the texts of the shortened results by handle: those of one request, and so of one caller. ``tell``
    is called with each program that ended and the tokens of what it handed on."""

    kept: Mapping[str, Sequence[str]]
    definition: bytes
    runner: ProgramRunner
    counter: TokenCounter
    tell: Callable[[ProgramRun, int], None] = lambda run, tokens: None

    async def answer(self, given: JsonObject) -> str:
        """What a program printed, and what went wrong. Raises ProgramsBusy, and ConfigError without a sandbox."""
        run = await self.runner.run(given["program"], DECLARED, self._result)
        text = program_text(run, self.runner.settings.output, self.counter)
        self.tell(run, sum(self.counter.count([text])))
        return text

    async def _result(self, function: str, arguments: list[Any], named: JsonObject, line: int) -> Any:
        """The value of a kept result. Raises CallFailed for any other handle."""
        handle = arguments[0] if arguments else named.get("handle")
        texts = self.kept.get(handle) if isinstance(handle, str) else None
        if texts is None:
            raise CallFailed(f"no result of this conversation is kept under {handle!r}")
        content = {"content": [{"type": "text", "text": text} for text in texts]}
        return await asyncio.to_thread(value_of, READING, content)
