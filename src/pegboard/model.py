"""The nouns of the whole program: frozen dataclasses that hold data and can format it.

Shapes: ``n`` is the number of tools in a catalog, and every array over tools is in catalog order.
"""

from __future__ import annotations

import json
import marshal
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from fnmatch import fnmatchcase
from operator import attrgetter
from typing import Any, Literal, NamedTuple, NewType

import numpy as np
from numpy.typing import NDArray

from pegboard.board_items import BoardItem
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
    """Server and name of a tool: the same name on two servers means two tools (M11).

    >>> str(ToolId("github", "list_issues"))
    'github/list_issues'
    """

    server: str
    name: str

    def __str__(self) -> str:
        return f"{self.server}/{self.name}"

    def fits(self, pattern: str) -> bool:
        """Whether a pattern matches ``server/name`` or the name alone.

        >>> ToolId("github", "list_issues").fits("github/*issue*")
        True
        """
        return fnmatchcase(str(self), pattern) or fnmatchcase(self.name, pattern)

    @property
    def whole(self) -> ToolId:
        """The id of the whole server, under which statistics sum up the calls of all its tools.

        >>> ToolId("github", "list_issues").whole
        ToolId(server='github', name='')
        """
        return ToolId(self.server, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server, as it introduced itself. ``description`` is taken from the configuration, or else is its title."""

    name: ServerName
    description: str = ""
    title: str = ""
    instructions: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, weakref_slot=True)
class Tool:
    """One tool. Its ``definition`` is kept as received, so that it can be relayed unchanged.

    >>> tool = Tool(id=ToolId("rail", "timetable"), description="When trains go")
    >>> tool.name, tool.server
    ('timetable', 'rail')

    ``fingerprint`` and ``counted`` are set once they were computed (`pegboard.catalog`): a catalog that is rebuilt from
    tools that are there already does not compute them again. ``counted`` is a token counter and the tokens it found.
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
    fingerprint: Fingerprint | None = field(default=None, init=False, compare=False, repr=False)
    counted: tuple[object, int] | None = field(default=None, init=False, compare=False, repr=False)

    @property
    def name(self) -> str:
        return self.id.name

    @property
    def server(self) -> str:
        return self.id.server

    def __eq__(self, other: object) -> bool:
        """Numbers in schemas are equal as JSON has them.

        >>> book = ToolId("rail", "book")
        >>> zero, false, same = (Tool(id=book, input_schema={"default": each}) for each in (0, False, 0))
        >>> zero == false, zero == same
        (False, True)
        """
        if self is other:
            return True
        if not isinstance(other, Tool):
            return NotImplemented
        schemas, others = SCHEMAS(self), SCHEMAS(other)
        if TEXTS(self) != TEXTS(other) or schemas != others:
            return False
        if self.fingerprint is not None and other.fingerprint is not None:
            return self.fingerprint == other.fingerprint
        return _are_same_bytes(schemas, others) or same_json(schemas, others)


TEXTS = attrgetter("id", "description", "title", "summary", "category", "aliases")
SCHEMAS = attrgetter("definition", "input_schema", "output_schema", "annotations")
WITHOUT_REFERENCES = 2
"""The version of marshal whose bytes do not depend on which equal parts are one object."""


def _are_same_bytes(one: Any, other: Any) -> bool:
    """Whether two values are equal in JSON, with their keys in the same order: much sooner than to look at each value.
    False if that cannot be told so."""
    try:
        return marshal.dumps(one, WITHOUT_REFERENCES) == marshal.dumps(other, WITHOUT_REFERENCES)
    except ValueError:  # another kind of mapping, or too deep
        return False


def same_json(one: object, other: object) -> bool:
    """Whether two values are equal in JSON, where `0` is neither `false` nor `0.0`, as it is in Python.

    >>> same_json({"a": [1]}, {"a": [True]}), same_json({"a": 1, "b": None}, {"b": None, "a": 1})
    (False, True)
    """
    pairs = [(one, other)]
    while pairs:
        first, second = pairs.pop()
        if first is second:
            continue
        if isinstance(first, Mapping) and isinstance(second, Mapping):
            if first.keys() != second.keys():
                return False
            pairs += [(value, second[key]) for key, value in first.items()]
        elif isinstance(first, list | tuple) and type(first) is type(second):
            if len(first) != len(second):
                return False
            pairs += zip(first, second, strict=True)
        elif first != second or (isinstance(first, int | float) and type(first) is not type(second)):
            return False
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of a message. ``text`` is empty if the part has none (an image); ``tool`` names a called tool, and
    ``failed`` marks a result that is an error.

    A `note` is text that a harness wrote in the user's name.
    """

    kind: PartKind = "text"
    text: str = ""
    tool: str | None = None
    failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    role: Role
    parts: tuple[Part, ...] = ()

    @property
    def text(self) -> str:
        """The text parts, joined by line breaks; empty for an image-only message (P2)."""
        return "\n".join(part.text for part in self.parts if part.kind == "text" and part.text)


def _collect(owner: object, kind: type[frozenset[str] | tuple[str, ...]], *names: str) -> None:
    """Keep what the owner was given under these names as this kind of collection: it is read more than once.

    Raises TypeError for a text, which contains its letters, and parts of other names.
    """
    for name in names:
        value = getattr(owner, name)
        if isinstance(value, str):
            raise TypeError(f"{name} is the text {value!r}. Give a collection of texts, such as [{value!r}].")
        if value is not None and not isinstance(value, kind):
            object.__setattr__(owner, name, kind(value))


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentState:
    """The facts that preconditions test (Tool Attention §4.2): authoritative, never free text.

    >>> "mail" in AgentState(auth=frozenset({"mail"})).auth
    True
    """

    auth: frozenset[str] = frozenset()
    tool_outputs: frozenset[str] = frozenset()
    milestones: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        _collect(self, frozenset, "auth", "tool_outputs", "milestones")


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The state of one conversation. ``version`` is for compare-and-swap in a store; 0 means never stored.

    ``enabled`` are the tools that searches added, the least recently used first. ``answered`` are the names, without
    server, of tools that gave a result. ``notices`` counts the list_changed notifications since the client last listed
    its tools. ``client`` is what the client sent in `initialize`; a restarted gateway restores the connection from it.
    ``replica`` is the id of the process that serves the session, if several run together. ``watched`` are the resources
    of whose changes the client is told, and ``level`` is the log level that it asked for: they are restored, too.
    """

    id: str = "default"
    enabled: tuple[ToolId, ...] = ()
    answered: frozenset[str] = frozenset()
    notices: int = 0
    client: JsonObject | None = field(default=None, hash=False)
    replica: str | None = None
    watched: tuple[str, ...] = ()
    level: str | None = None
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """One of several processes on one store. ``url`` is where the others reach it, without a path."""

    id: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningKey:
    """A secret shared by the processes on one store, with which they sign what they hand out. ``made`` is in seconds
    since the epoch, ``secret`` is 32 random bytes."""

    id: str
    made: float
    secret: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One step of an agent: the conversation so far, the caller's rights, and the agent's state.

    ``scopes`` are those that the caller holds; None says nothing, and a `Board` takes those of its process then.
    ``only`` are patterns of the tools that the caller may use; None means any.
    ``max_price`` (USD) and ``deadline`` (seconds) limit the cost and the time of a call; the profile `ehrr` uses them.
    ``habits`` says whose use teaches the selection (`pegboard.habits.habits_of`); nobody's if it is empty.

    >>> said = Message(role="user", parts=(Part(text="and in London?"),))
    >>> Turn(messages=(said,), scopes=frozenset({"weather"})).messages[-1].text
    'and in London?'
    """

    messages: tuple[Message, ...]
    session: Session = Session()
    state: AgentState = AgentState()
    scopes: frozenset[str] | None = None
    only: tuple[str, ...] | None = None
    id: str = ""
    max_price: float | None = None
    deadline: float | None = None
    habits: str = ""

    def __post_init__(self) -> None:
        _collect(self, frozenset, "scopes")
        _collect(self, tuple, "only")

    @classmethod
    def ask(cls, text: str, **fields: Any) -> Turn:
        """A turn of one user message.

        >>> Turn.ask("what time is it in Oslo?").messages[0].role
        'user'
        """
        return cls(messages=(Message(role="user", parts=(Part(text=text),)),), **fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """One score per tool, shape (n,), and the parts that it was computed from, each of shape (n,).

    ``query_vector``, shape (d,), is the embedding of the query, if there is one. ``least_share`` maps a recall to the
    least share of the sum of all values that a tool must have for that recall to be reached on average. ``jobs``, shape
    (n,), gives one number to all tools that do the same job on different servers, if that is known. Tools that an index
    did not return have the value 0, and ``unscored`` is an estimate of the sum of their scores.
    """

    values: Floats
    scale: Scale
    parts: Mapping[str, Floats] = field(default_factory=dict)
    query_vector: Floats | None = None
    least_share: Mapping[float, float] = field(default_factory=dict)
    jobs: NDArray[np.intp] | None = None
    unscored: float = 0.0

    def share_for(self, recall: float) -> float:
        """The share of the sum of all values at or above which tools are taken to reach a recall in (0, 1].

        >>> Scores(values=np.ones(1, np.float32), scale="probability", least_share={0.5: 0.2}).share_for(0.75)
        0.1
        """
        recalls, shares = zip(*sorted((dict(self.least_share) | {0.0: 1.0, 1.0: 0.0}).items()), strict=True)
        return float(np.interp(recall, recalls, shares))


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A tool with its rank (0 is best), its score and the parts of its score."""

    tool: ToolId
    score: float
    rank: int
    parts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The tools that a turn was given, and why.

    ``active`` are the relevant tools, in catalog order; ``reachable`` are all tools that the caller may use.
    ``phase1`` is the text of the summary pool, ``phase2`` the full definitions of ``active`` (Tool Attention §4.4).
    ``meets_target`` is false if the profile's recall target could not be reached within k and the budget.
    ``tools`` are the active tools themselves, in the order of ``active``; ``names`` maps every tool of the catalog to
    the name by which a model calls it.
    ``encoder`` names the model whose vectors were used, if any. ``by_rank`` is true if nothing is fitted for that
    encoder: its best k tools are taken, and neither a recall target nor a fitted threshold applies.
    ``habits`` are those of the turn. ``items`` are the skills, agents, prompts and resources of a `Board` that match,
    by kind, best first.

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
    habits: str = ""
    items: tuple[BoardItem, ...] = ()

    @property
    def ranked_by(self) -> Literal["meaning", "words"]:
        """`words` while tools are being embedded or the encoder does not answer, for profiles without an encoder, and
        where nothing was ranked.

        >>> from pegboard import Board
        >>> Board([{"name": "tide"}], profile="keyword").route_now("the tide?").ranked_by
        'words'
        """
        return "meaning" if self.encoder else "words"

    def tools_for(self, provider: Provider) -> list[dict[str, Any]]:
        """The active tools as the ``tools`` of a request, under names that every provider accepts.

        ``openai`` is for Chat Completions, ``responses`` for Responses; ``mcp`` gives the entries of a `tools/list`
        result. Raises ValueError for an unknown provider.

        >>> from pegboard import Board
        >>> decision = Board(tools=[{"name": "tide", "description": "When the tide comes"}]).route_now("the tide?")
        >>> decision.tools_for("openai")[0]["function"]["name"]
        'tide'
        """
        return wire_tools(provider, [self._as(provider, tool) for tool in self.tools])

    def prompt(self, phase: Literal[1, 2] | None = None) -> str:
        """The tools as text: phase 1, the summaries of all tools, which seldom change; phase 2, the definitions of the
        active tools; or both.

        Put phase 1 into the stable beginning of the prompt and phase 2 right before the user's message (Tool Attention
        §5.6).

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
        """The name by which a model calls a tool.

        >>> from pegboard import Board
        >>> Board(tools=[{"name": "tide.high"}]).route_now("the tide?").name_of(ToolId("local", "tide.high"))
        'tide_high'
        """
        return self.names.get(tool, tool.name)

    def to_dict(self) -> dict[str, Any]:
        """All fields as JSON values, by their names; a tool's id is written ``server/name``.

        >>> from pegboard import Board
        >>> decision = Board(tools=[{"name": "tide", "description": "When the tide comes"}]).route_now("the tide?")
        >>> json.loads(json.dumps(decision.to_dict()))["active"]
        ['local/tide']
        """
        return {each.name: _as_json(getattr(self, each.name)) for each in fields(self)}

    def _as(self, provider: Provider, tool: Tool) -> dict[str, Any]:
        return wire_tool(provider, self.name_of(tool.id), tool.description, tool.input_schema)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """The tools of a turn: ``active`` in catalog order, and ``ranked``, which adds the next best, best first.

    ``candidates`` are the ranked ones with their scores for the ``query``; ``comparable``: their cosines come from an
    encoder that the package has data of.
    """

    active: tuple[ToolId, ...]
    ranked: tuple[ToolId, ...]
    query: str = ""
    candidates: tuple[Candidate, ...] = ()
    comparable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call that a model made.

    >>> Call(name="timetable", arguments={"to": "Oslo"}).arguments["to"]
    'Oslo'
    """

    name: str
    arguments: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of a call: MCP content blocks, and ``structured`` if the tool also returned a value.

    If ``is_error`` is true, the text says what was wrong. ``tool`` is None if no tool was called.

    >>> Result(tool=ToolId("rail", "timetable"), content=({"type": "text", "text": "16:20"},)).is_error
    False
    """

    tool: ToolId | None
    content: tuple[JsonObject, ...] = ()
    structured: Any = None
    is_error: bool = False

    @property
    def text(self) -> str:
        """The text blocks, joined by line breaks.

        >>> Result(tool=None, content=({"type": "text", "text": "16:20"},)).text
        '16:20'
        """
        return "\n".join(block["text"] for block in self.content if block.get("type") == "text")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a call ended. ``failure`` says whose fault a failure was; invalid arguments are the caller's.

    A ``verdict`` is not a call of its own: the caller judged the result of the tool's last call, which had counted as a
    success, to be useless. That call then counts as a failure of the tool.

    >>> Outcome(tool=ToolId("rail", "timetable"), success=False, latency_ms=900, failure="server").success
    False
    """

    tool: ToolId
    success: bool
    latency_ms: float
    failure: Literal["server", "caller", "tool", "verdict"] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStatistics:
    """Statistics of a tool's calls: counts, and moving averages (EHRR eq. 8).

    ``success`` is r, the probability of success; ``variance`` is σ², the squared error of r; ``failure`` is p_fail, the
    probability that the server fails; ``latency`` is L^call, in seconds. The defaults are the prior for a tool that was
    never called; the paper gives none. A constant r leads to a variance of r·(1 − r).
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
"""The approved fingerprint of a tool that was never approved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """Fingerprints of the approved definition of a tool and of the one seen last. The pin of `ToolId.whole` is for the
    server's own title, version and instructions. Equal fingerprints are in memory once: those of many users are."""

    approved: Fingerprint
    seen: Fingerprint

    def __post_init__(self) -> None:
        object.__setattr__(self, "approved", sys.intern(self.approved))
        object.__setattr__(self, "seen", sys.intern(self.seen))

    @property
    def changed(self) -> bool:
        return self.seen != self.approved

    @property
    def new(self) -> bool:
        """Whether no definition of the tool was ever approved."""
        return self.approved == NEVER


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """The definitions behind the fingerprints of a pin, as JSON; None if the store does not have them."""

    approved: str | None = None
    seen: str | None = None


def _as_json(value: Any) -> Any:
    match value:
        case ToolId():
            return str(value)
        case Mapping():
            return {str(key): _as_json(each) for key, each in value.items()}
        case tuple() | list():
            return [_as_json(each) for each in value]
        case frozenset():
            return sorted(_as_json(each) for each in value)
        case _ if is_dataclass(value):
            return {each.name: _as_json(getattr(value, each.name)) for each in fields(value)}
    return value
