"""The nouns of the whole program. Frozen dataclasses; what they can do is show themselves.

Shapes: ``n`` is the number of tools in a catalog, and every array over tools is in catalog order.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal, NamedTuple, NewType

import numpy as np
from numpy.typing import NDArray

from pegboard.wire_formats import Provider, wire_tool, wire_tools

Tokens = NewType("Tokens", int)
ServerName = NewType("ServerName", str)
Fingerprint = NewType("Fingerprint", str)

JsonObject = Mapping[str, Any]
Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]

Role = Literal["system", "user", "assistant", "tool"]
PartKind = Literal["text", "note", "image", "audio", "file", "tool_call", "tool_result"]
Scale = Literal["cosine", "probability", "points", "utility"]


class ToolId(NamedTuple):
    """A tool is its server and its name: the same name on two servers is two tools (M11).

    >>> str(ToolId("github", "list_issues"))
    'github/list_issues'
    """

    server: str
    name: str

    def __str__(self) -> str:
        return f"{self.server}/{self.name}"

    def fits(self, pattern: str) -> bool:
        """Whether a pattern on ``server/name``, or on the name alone, means this tool.

        >>> ToolId("github", "list_issues").fits("github/*issue*")
        True
        """
        return fnmatchcase(str(self), pattern) or fnmatchcase(self.name, pattern)

    @property
    def whole(self) -> ToolId:
        """Its server as a whole, under which statistics keep what calls of any of its tools have shown.

        >>> ToolId("github", "list_issues").whole
        ToolId(server='github', name='')
        """
        return ToolId(self.server, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Where tools come from, as it introduced itself. ``description`` is the configuration's, or else its title."""

    name: ServerName
    description: str = ""
    title: str = ""
    instructions: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool, with its definition kept as it arrived so that it can be relayed unchanged.

    >>> tool = Tool(id=ToolId("rail", "timetable"), description="When trains go")
    >>> tool.name, tool.server
    ('timetable', 'rail')
    """

    id: ToolId
    description: str = ""
    title: str | None = None
    summary: str = ""
    category: str | None = None
    aliases: tuple[str, ...] = ()
    input_schema: JsonObject | None = field(default=None, hash=False)
    output_schema: JsonObject | None = field(default=None, hash=False)
    annotations: JsonObject | None = field(default=None, hash=False)
    definition: JsonObject = field(default_factory=dict, hash=False, repr=False)

    @property
    def name(self) -> str:
        return self.id.name

    @property
    def server(self) -> str:
        return self.id.server


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of a message. ``text`` is empty where the part has none (an image); ``tool`` names a called tool.

    A `note` is what a harness wrote in the user's name.
    """

    kind: PartKind = "text"
    text: str = ""
    tool: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    role: Role
    parts: tuple[Part, ...] = ()

    @property
    def text(self) -> str:
        """The text parts, joined by line breaks; empty for an image-only message (P2)."""
        return "\n".join(part.text for part in self.parts if part.kind == "text" and part.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentState:
    """What preconditions look at (seed 000 §4.2): authoritative facts, never free text.

    >>> "mail" in AgentState(auth=frozenset({"mail"})).auth
    True
    """

    auth: frozenset[str] = frozenset()
    tool_outputs: frozenset[str] = frozenset()
    milestones: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What one conversation has accumulated. ``version`` is for compare-and-swap in a store; 0 was never stored.

    ``enabled`` are the tools that searches added, the least recently used first; ``answered`` the own names of tools
    that gave a result. ``notices`` counts the list_changed notifications since the client last listed its tools.
    ``client`` is what it said of itself in `initialize`, from which a restarted gateway makes the connection anew.
    ``replica`` is the id of the process that it is with, where several serve together.
    """

    id: str = "default"
    enabled: tuple[ToolId, ...] = ()
    answered: frozenset[str] = frozenset()
    notices: int = 0
    client: JsonObject | None = field(default=None, hash=False)
    replica: str | None = None
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """One of the processes that serve together. ``url`` is where the others reach it, without a path."""

    id: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One step of an agent: the conversation so far, who asks, and what is known to be true.

    ``only`` are patterns of the tools that the caller may use at all, None for any.
    ``max_price`` (USD) and ``deadline`` (seconds) are what a call of a tool may cost and take; the profile `ehrr` goes
    by them.

    >>> said = Message(role="user", parts=(Part(text="and in London?"),))
    >>> Turn(messages=(said,), scopes=frozenset({"weather"})).messages[-1].text
    'and in London?'
    """

    messages: tuple[Message, ...]
    session: Session = Session()
    state: AgentState = AgentState()
    scopes: frozenset[str] = frozenset()
    only: tuple[str, ...] | None = None
    id: str = ""
    max_price: float | None = None
    deadline: float | None = None

    @classmethod
    def ask(cls, text: str, **fields: Any) -> Turn:
        """A turn of one user message.

        >>> Turn.ask("what time is it in Oslo?").messages[0].role
        'user'
        """
        return cls(messages=(Message(role="user", parts=(Part(text=text),)),), **fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """One number a tool, shape (n,), and the parts it was made of, each of shape (n,).

    ``query_vector``, shape (d,), is what the query was embedded as, where it was. ``least_share`` has for a recall the
    least share of the sum of all values that a tool must have for that recall to be reached on average. ``jobs``, shape
    (n,), has one number for all tools that do the same job on different servers, where that is known. Where an index
    left tools out, their values are 0, and ``unscored`` is the sum of what they would be, estimated.
    """

    values: Floats
    scale: Scale
    parts: Mapping[str, Floats] = field(default_factory=dict)
    query_vector: Floats | None = None
    least_share: Mapping[float, float] = field(default_factory=dict)
    jobs: NDArray[np.intp] | None = None
    unscored: float = 0.0

    def share_for(self, recall: float) -> float:
        """The share of the sum of all values from which on tools are taken to reach a recall (above 0, at most 1).

        >>> Scores(values=np.ones(1, np.float32), scale="probability", least_share={0.5: 0.2}).share_for(0.75)
        0.1
        """
        recalls, shares = zip(*sorted((dict(self.least_share) | {0.0: 1.0, 1.0: 0.0}).items()), strict=True)
        return float(np.interp(recall, recalls, shares))


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A tool with its place in the ranking (0 is best) and the parts of its score."""

    tool: ToolId
    score: float
    rank: int
    parts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What a turn was given, and why.

    ``active`` is relevant now, in catalog order; ``reachable`` is what the caller may use at all.
    ``phase1`` is the summary pool's text, ``phase2`` the full definitions of ``active`` (seed 000 §4.4).
    ``meets_target`` is false where the profile's recall target could not be reached within k and the budget.
    ``tools`` are the active tools themselves, in the order of ``active``; ``names`` has the name that a model calls a
    tool by, for every tool of the catalog.
    ``encoder`` says which model's vectors decided, where any did. ``by_rank`` is true where nothing is fitted for that
    encoder: its best k are taken, and neither a recall target nor a fitted threshold counts.

    >>> from pegboard import Board
    >>> decision = Board(tools=[{"name": "tide", "description": "When the tide comes"}]).route_now("the tide?")
    >>> decision.active, decision.profile
    ((ToolId(server='local', name='tide'),), 'hybrid')
    """

    turn_id: str
    profile: str
    query: str
    scale: Scale
    active: tuple[ToolId, ...]
    candidates: tuple[Candidate, ...]
    reachable: frozenset[ToolId]
    gated_out_by_state: tuple[ToolId, ...]
    phase1: str
    phase1_tokens: Tokens
    phase2: tuple[JsonObject, ...]
    phase2_tokens: Tokens
    session: Session
    latency_ms: float
    meets_target: bool = True
    encoder: str = ""
    by_rank: bool = False
    left_out: Mapping[ToolId, str] = field(default_factory=dict)
    tools: tuple[Tool, ...] = ()
    names: Mapping[ToolId, str] = field(default_factory=dict, repr=False)

    def tools_for(self, provider: Provider) -> list[dict[str, Any]]:
        """The active tools as the ``tools`` of a request, under names that every provider takes.

        OpenAI's are those of Chat Completions; MCP's are the entries of a `tools/list` result.

        >>> from pegboard import Board
        >>> decision = Board(tools=[{"name": "tide", "description": "When the tide comes"}]).route_now("the tide?")
        >>> decision.tools_for("openai")[0]["function"]["name"]
        'tide'
        """
        return wire_tools(provider, [self._as(provider, tool) for tool in self.tools])

    def prompt(self, phase: Literal[1, 2] | None = None) -> str:
        """The tools as text: phase 1 what there is, which seldom changes; phase 2 the active ones in full; or both.

        Put phase 1 where the prompt's stable beginning is, and phase 2 right before the user's message (seed 000 §5.6).

        >>> from pegboard import Board
        >>> decision = Board(tools=[{"name": "tide", "description": "When the tide comes"}]).route_now("the tide?")
        >>> print(decision.prompt(phase=1))
        [local]
        tide: When the tide comes
        """
        full = "\n".join(
            json.dumps(self._as("mcp", tool), ensure_ascii=False, separators=(",", ":")) for tool in self.tools
        )
        return "\n\n".join(text for number, text in ((1, self.phase1), (2, full)) if phase in (None, number) and text)

    def name_of(self, tool: ToolId) -> str:
        """What a model calls a tool by.

        >>> from pegboard import Board
        >>> Board(tools=[{"name": "tide.high"}]).route_now("the tide?").name_of(ToolId("local", "tide.high"))
        'tide_high'
        """
        return self.names.get(tool, tool.name)

    def _as(self, provider: Provider, tool: Tool) -> dict[str, Any]:
        return wire_tool(provider, self.name_of(tool.id), tool.description, tool.input_schema)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """The tools of a turn: those that are relevant, in catalog order, and best first these and the next best."""

    active: tuple[ToolId, ...]
    ranked: tuple[ToolId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call as a model asked for it.

    >>> Call(name="timetable", arguments={"to": "Oslo"}).arguments["to"]
    'Oslo'
    """

    name: str
    arguments: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came of a call: blocks of content as MCP has them, ``structured`` where the tool gave a value besides.

    With ``is_error`` the text says what was wrong; ``tool`` is None where no tool was called.

    >>> Result(tool=ToolId("rail", "timetable"), content=({"type": "text", "text": "16:20"},)).is_error
    False
    """

    tool: ToolId | None
    content: tuple[JsonObject, ...] = ()
    structured: Any = None
    is_error: bool = False

    @property
    def text(self) -> str:
        """The blocks of text, joined by line breaks.

        >>> Result(tool=None, content=({"type": "text", "text": "16:20"},)).text
        '16:20'
        """
        return "\n".join(block["text"] for block in self.content if block.get("type") == "text")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a call went. ``failure`` names whose fault it was; bad arguments are not the server's.

    A ``verdict`` is no other call: whoever asked for the tool's last one, which counted as a success, found its result
    of no use, and it counts as a failure of the tool instead.

    >>> Outcome(tool=ToolId("rail", "timetable"), success=False, latency_ms=900, failure="server").success
    False
    """

    tool: ToolId
    success: bool
    latency_ms: float
    failure: Literal["server", "caller", "tool", "verdict"] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStatistics:
    """What calls of a tool have shown: counts, and moving averages (EHRR eq. 8).

    ``success`` is r, the chance of success, and ``variance`` σ², what r was off by, squared; ``failure`` is p_fail, the
    chance that the server fails; ``latency`` is L^call, in seconds. The defaults stand for a tool that was never
    called; the paper gives none. A variance of r·(1 − r) is what a steady r leads to.
    """

    calls: int = 0
    successes: int = 0
    success: float = 0.9
    variance: float = 0.09
    failure: float = 0.05
    latency: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Smoothing:
    """The weights λ of the newest observation in each moving average, in (0, 1) (EHRR eq. 8 and table V)."""

    success: float = 0.15
    variance: float = 0.15
    failure: float = 0.15
    latency: float = 0.15


NEVER = Fingerprint("")
"""What stands for the approved definition of a tool of which none was approved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """The definition of a tool that was approved, and the one that was seen last. ``ToolId.whole`` stands for what a
    server says of itself."""

    approved: Fingerprint
    seen: Fingerprint

    @property
    def changed(self) -> bool:
        return self.seen != self.approved

    @property
    def new(self) -> bool:
        """No definition of it was ever approved."""
        return self.approved == NEVER


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """The definitions that a pin's fingerprints stand for, as JSON; None where the store was not told."""

    approved: str | None = None
    seen: str | None = None
