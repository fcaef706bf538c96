"""`read_result` in one request: its definition, and the answers to its calls, from the results in the request; and
those of `run_program`, which is offered beside it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pegboard.errors import ArgumentsInvalid, PegboardError, ResultNotKept
from pegboard.gateways.llm.formats.edits import strictly_loaded
from pegboard.gateways.llm.formats.tool_search import (
    Document,
    FunctionCall,
    SearchExchange,
    ToolSearchCodec,
)
from pegboard.gateways.llm.tool_results import result_programs
from pegboard.gateways.llm.tool_results.result_programs import ResultPrograms
from pegboard.model import JsonObject, Tool, ToolId
from pegboard.protocols import TokenCounter
from pegboard.results.result_reader import READER_SCHEMA, part_of
from pegboard.results.shape import READ, ShapePolicy
from pegboard.routing import check_arguments

MOST_READS = 8
"""How often a request is repeated at most for its reads."""
ABOUT = "Read on in a shortened tool result"
"""The shortest that says what it is for: every conversation carries it, and how to read stands in what is cut."""
SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "handle": {"type": "string"},
        "lines": {"type": "string"},
        "grep": {"type": "string"},
        "path": {"type": "string"},
        "page": {"type": "integer"},
        "original": {"type": "boolean"},
    },
    "required": ["handle"],
}
"""That of the MCP gateway, in fewer tokens; calls are checked against that one."""
CHECKED = Tool(id=ToolId("pegboard", READ), input_schema=READER_SCHEMA)
LAST = "[No more can be read before the next message: go on with what you have]"


@dataclass(slots=True, kw_only=True)
class ResultReads:
    """``kept`` are the texts of the shortened results by handle, ``definition`` is the tool as the request offers it.
    ``tell`` is called with the handle and the tokens of each reading. With ``programs``, `run_program` is offered
    too."""

    kept: Mapping[str, Sequence[str]]
    definition: bytes
    policy: ShapePolicy
    counter: TokenCounter
    tell: Callable[[str, int], None] = lambda handle, tokens: None
    programs: ResultPrograms | None = None
    rounds: int = 0

    @property
    def definitions(self) -> Sequence[bytes]:
        """The tools as the request offers them."""
        return [self.definition] if self.programs is None else [self.definition, self.programs.definition]

    def named(self, name: str) -> bool:
        """Whether calls of this tool are answered here."""
        return name == READ or (self.programs is not None and name == result_programs.RUN)

    async def answer(self, name: str, arguments: str) -> str:
        """What a call of `read_result` or `run_program` gets; whatever is wrong with it, the model is told."""
        self.rounds += 1
        runs = self.programs if name == result_programs.RUN else None
        checked = CHECKED if runs is None else result_programs.CHECKED
        try:
            asked = strictly_loaded(arguments)
            if asked is None:
                raise ArgumentsInvalid(name, ["arguments: not a JSON object"], checked.input_schema or {})
            given = {key: said for key, said in asked.items() if said not in (None, "") and said is not False}
            await check_arguments(checked, given)
            text = await asyncio.to_thread(self._part, given) if runs is None else await runs.answer(given)
        except PegboardError as error:
            return json.dumps(error.payload(), ensure_ascii=False)
        return f"{text}\n{LAST}" if self.rounds >= MOST_READS else text

    def _part(self, given: JsonObject) -> str:
        if given["handle"] not in self.kept:
            raise ResultNotKept(given["handle"])
        result = {"content": [{"type": "text", "text": text} for text in self.kept[given["handle"]]]}
        text = part_of(result, given, self.policy, self.counter)
        self.tell(given["handle"], sum(self.counter.count([text])))
        return text


def reads_alone(reads: ResultReads | None, calls: Sequence[FunctionCall]) -> bool:
    """Whether all of these calls are of `read_result` and `run_program`."""
    return reads is not None and all(reads.named(call.name) for call in calls)


@dataclass(slots=True, kw_only=True)
class ReadRoundTrip:
    """The round trip of a request with no other calls to answer than those of `read_result` and `run_program`."""

    format: ToolSearchCodec
    rewritten: bytes
    reads: ResultReads
    exchanges: list[SearchExchange] = field(default_factory=list)

    @property
    def searches(self) -> int:
        return 0

    @property
    def found(self) -> Sequence[str]:
        return ()

    @property
    def rounds(self) -> Sequence[frozenset[int]]:
        """The tools never change, and nobody asks which they are."""
        return ()

    def body(self) -> bytes:
        """The current body of the request."""
        body = self.format.extended(self.rewritten, self.reads.definitions)
        return self.format.continued(body, self.exchanges) if self.exchanges else body

    def held(self, name: str) -> bool:
        return self.reads.named(name)

    def hides(self, name: str) -> bool:
        return self.reads.named(name)

    def goes_on(self, answer: Document) -> bool:
        """Whether the gateway has to answer the calls."""
        calls = self.format.calls(answer)
        may = bool(calls) and len(self.exchanges) < MOST_READS and self.format.waits(answer)
        return may and all(self.held(call.name) for call in calls)

    async def answer(self, answer: Document) -> None:
        """Answer the calls; the next `body` includes the results."""
        calls: list[FunctionCall] = self.format.calls(answer)
        results = [(call, await self.reads.answer(call.name, call.arguments)) for call in calls]
        self.exchanges.append(SearchExchange(answer=answer, results=results))

    async def found_by(self, call: FunctionCall) -> None:
        """Nothing is searched for."""
