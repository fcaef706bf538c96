"""Results of calls in the form that a board's settings name, and what its model reads of kept ones."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from dataclasses import replace

from pegboard.catalog import BpeCounter, summarize
from pegboard.errors import PegboardError
from pegboard.library.execution import result_of_error
from pegboard.library.runtime import BoardRuntime
from pegboard.model import JsonObject, Result, Server, ServerName, Session, Tool, ToolId
from pegboard.results.result_reader import READER, READER_SCHEMA
from pegboard.results.result_shaper import owner_mark
from pegboard.results.shape import READ
from pegboard.routing import check_arguments
from pegboard.settings.result_settings import ResultForm, form_named

READ_RESULT = ToolId("pegboard-results", READ)
"""The tool that reads kept results: every turn of a board that cuts results has it, beside the tools selected."""
UNNAMED = Session().id


def reader() -> tuple[Server, tuple[Tool, ...]]:
    """`read_result` as the tool of a server of its own."""
    tool = Tool(id=READ_RESULT, description=READER["description"], input_schema=READER_SCHEMA, definition=READER)
    return Server(name=ServerName(READ_RESULT.server)), (replace(tool, summary=summarize(tool, BpeCounter())),)


class BoardResults:
    """Shortens results by ``settings.results``. What is cut is kept in the board's store, and is read on within the
    same conversation alone: that of the same ``session``; without one, by the same board object.

    >>> from pegboard import Board, Result, ToolId
    >>> rows = str([{"harbour": f"Harbour {at}", "tide": "16:20"} for at in range(200)]).replace("'", '"')
    >>> board = Board(results="shaped")
    >>> whole = Result(tool=ToolId("local", "tides"), content=({"type": "text", "text": rows},))
    >>> board.results.shaped_now(whole).text.splitlines()[1:4]
    ['@1 200 rows, each with {"tide":"16:20"}', 'harbour', 'Harbour 0']
    """

    def __init__(self, shared: BoardRuntime, definition: Callable[[ToolId], Awaitable[Tool]]) -> None:
        self._shared = shared
        self._definition = definition
        self._own = uuid.uuid4().hex

    @property
    def is_on(self) -> bool:
        """Whether any result may be changed."""
        return self._shared.settings.results.is_on

    async def shaped(
        self, result: Result, *, session: str | None = None, form: ResultForm | None = None, asked: str = ""
    ) -> Result:
        """The result as the model should get it. Errors stay whole, and so does ``structured``, which is for programs.

        ``asked`` are words about what is looked for, such as the user's and the call's arguments: a result that is cut
        keeps the lines about them. ``form`` is wanted for this result alone; reads of files stay whole unless a pattern
        of the settings names their tool. Raises ConfigError for a form that there is not.
        """
        wish = form_named(form)
        if result.is_error or result.tool is None or wish == "whole" or not (self.is_on or wish):
            return result
        return await self._shared.wait(self._shaped(result, result.tool, self._owner(session), wish, asked))

    def shaped_now(
        self, result: Result, *, session: str | None = None, form: ResultForm | None = None, asked: str = ""
    ) -> Result:
        """`shaped` for synchronous code."""
        return self._shared.run(self.shaped(result, session=session, form=form, asked=asked))

    async def read(self, arguments: JsonObject, *, session: str | None = None) -> Result:
        """What `read_result` answers to these arguments; an error result if they, or the handle, cannot be used."""
        return await self._shared.wait(self._read(arguments, self._owner(session)))

    def read_now(self, arguments: JsonObject, *, session: str | None = None) -> Result:
        """`read` for synchronous code."""
        return self._shared.run(self._read(arguments, self._owner(session)))

    async def _shaped(self, result: Result, tool: ToolId, owner: str, wish: ResultForm | None, asked: str) -> Result:
        shaper, definition = await self._shared.result_shaper(), await self._definition(tool)
        form = shaper.form(tool, wish, can_read=self._shared.settings.results.cuts)
        given = {"content": [*result.content]}
        said = await shaper.shaped(definition, given, form, owner=owner, structured=True, asked=asked)
        return result if said is given else replace(result, content=tuple(said["content"]))

    async def _read(self, arguments: JsonObject, owner: str) -> Result:
        try:
            await check_arguments(Tool(id=READ_RESULT, input_schema=READER_SCHEMA), arguments)
            text = await (await self._shared.result_shaper()).read(arguments, owner)
        except PegboardError as error:
            return result_of_error(READ_RESULT, error)
        return Result(tool=READ_RESULT, content=({"type": "text", "text": text},))

    def _owner(self, session: str | None) -> str:
        named = session is not None and session != UNNAMED
        return owner_mark("session", f"conversation {session}" if named else f"board {self._own}")
