"""What a caller has before it: the board, the names of its tools, its rights and its session."""

from __future__ import annotations

from collections.abc import Collection

from pegboard.board import Board
from pegboard.catalog import WireNames
from pegboard.gateways.mcp import exposure, meta_tools
from pegboard.gateways.mcp.caller import Caller
from pegboard.gateways.mcp.introduction import introduction
from pegboard.gateways.mcp.sessions import SessionBook
from pegboard.gateways.mcp.toolsets import Toolset
from pegboard.gateways.mcp.view import View
from pegboard.model import AgentState, JsonObject, Message, Part, Session, ToolId, Turn
from pegboard.settings import Exposure, Settings


class Desk:
    """One view of the servers, seen by one caller after another."""

    def __init__(self, settings: Settings, view: View, book: SessionBook, toolset: Toolset | None) -> None:
        self.view = view
        self.book = book
        self.follow(settings, toolset)

    def follow(self, settings: Settings, toolset: Toolset | None) -> None:
        """Go by another configuration from now on."""
        self._settings = settings
        self._toolset = toolset

    @property
    def board(self) -> Board:
        return self.view.board

    @property
    def servers(self) -> Collection[str] | None:
        """Whose resources and prompts there are: a toolset's are those of its servers; None is all."""
        return None if self._toolset is None else self.view.catalog.servers.keys()

    def names(self, caller: Caller) -> WireNames:
        return self.view.names(caller.kind.longest_name)

    def turn(self, text: str, session: Session, caller: Caller) -> Turn:
        """A turn of this session: the caller's rights, which are the process's where there are no tokens, and what has
        answered so far."""
        holder = caller.holder
        scopes = frozenset(self._settings.scopes) if holder is None else holder.scopes
        state = AgentState(auth=scopes, tool_outputs=session.answered)
        message = Message(role="user", parts=(Part(text=text),))
        only = None if holder is None else holder.only
        return Turn(messages=(message,), session=session, scopes=scopes, only=only, state=state)

    async def resolve(self, name: str, caller: Caller, finder: str = meta_tools.SEARCH) -> tuple[Session, ToolId]:
        """The tool of a name. One that is not known yet may belong to a server that is still starting.

        Raises ToolNotAvailable, with the meta-tool ``finder`` as the remedy.
        """
        if self.names(caller).resolve(name) is None:
            await self.view.started()
        session = await self.book.get(caller.session)
        turn = self.turn("", session, caller)
        allowed = self.board.allowed(turn)
        return session, self.view.resolve(name, allowed, self.names(caller), turn, finder=finder)

    def exposure(self, caller: Caller, session: Session) -> Exposure:
        small, tools = self.view.is_small, len(self.board.catalog)
        return exposure.choose(caller, session, self._settings, small=small, tools=tools)

    def room(self, caller: Caller) -> int:
        """How many tools may join its list."""
        return exposure.room(caller, self._settings, len(self.board.pinned))

    def introduction(self, caller: Caller) -> str:
        """What the client is told at the beginning, of the servers whose tools it has a right to."""
        catalog, session = self.board.catalog, Session()
        permitted = {tool.server for tool in self.board.permitted(self.turn("", session, caller))}
        seen = [
            server
            for name, server in catalog.servers.items()
            if (caller.holder is None or caller.holder.may_see(name))
            and (name in permitted or not catalog.of_server(name))
        ]
        budget = self._settings.instruction_tokens
        return introduction(seen, self.exposure(caller, session), budget, catalog.counter)

    def is_listed(self, tool: ToolId, caller: Caller, session: Session) -> bool:
        if tool in self.board.pinned:
            return True
        chosen = self.exposure(caller, session)
        return chosen in ("eager", "native") or (chosen == "dynamic" and tool in session.enabled)

    def filled_in(self, tool: ToolId, arguments: JsonObject) -> JsonObject:
        """With those that the toolset gives, whatever the caller says."""
        return self._toolset.arguments(tool, arguments) if self._toolset else arguments
