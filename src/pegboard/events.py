"""Events: what happened, as data. They carry hashes and names, never arguments or secrets (M30).

The text of a query is only in `RouteDecided.query`, only if the settings say so, and never in `Event.as_dict`, which is
what logs and files get. ``key`` is the name of a key or token, ``conversation`` the mark of a conversation or session.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from pegboard.spend_limits import NanoUsd


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """``at`` is seconds since the epoch."""

    at: float

    @property
    def kind(self) -> str:
        return type(self).__name__

    def as_dict(self) -> dict[str, Any]:
        return {"event": self.kind} | asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteDecided(Event):
    """One routing decision (Tool Attention §5.7). ``scores`` maps each candidate to its score, best first.

    ``encoder`` and ``by_rank`` have the same meaning as in `Decision`. ``query`` is empty unless `[activity] texts` is
    set.
    """

    turn_id: str
    profile: str
    query_embedding_hash: str
    candidates: tuple[str, ...]
    scores: Mapping[str, float]
    gated_out_by_state: tuple[str, ...]
    active_set: tuple[str, ...]
    phase1_tokens: int
    phase2_tokens: int
    latency_ms: float
    encoder: str = ""
    by_rank: bool = False
    query: str = field(default="", repr=False)

    def as_dict(self) -> dict[str, Any]:
        """Without the text of the query."""
        fields = Event.as_dict(self)
        del fields["query"]
        return fields


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRejected(Event):
    """The guard refused a call: the tool was not available, or its arguments were invalid."""

    tool: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFinished(Event):
    """A call returned from its ``server``."""

    tool: str
    server: str = ""
    success: bool
    latency_ms: float
    key: str = ""
    conversation: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultShaped(Event):
    """A result was handed on in fewer tokens, by these ``rules``. ``kept`` is whether the original can be read on.
    ``door`` is the gateway that it went through."""

    tool: str
    server: str
    rules: tuple[str, ...]
    tokens_before: int
    tokens_after: int
    kept: bool = False
    key: str = ""
    conversation: str = ""
    door: Literal["llm", "mcp"] = "mcp"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultRead(Event):
    """A part of so many ``tokens`` was read of a kept result of ``tool``."""

    tool: str
    server: str
    tokens: int
    key: str = ""
    conversation: str = ""
    door: Literal["llm", "mcp"] = "mcp"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramFinished(Event):
    """A program of a client ended after so many ``calls``, of which ``failed`` had an error.

    It was given results of ``received`` characters, and handed on ``tokens``. ``outcome`` is `ok`, `refused`, `failed`,
    `time`, `memory`, `calls`, `output` or `crashed`.
    """

    outcome: str
    calls: int
    failed: int
    seconds: float
    received: int
    tokens: int
    key: str = ""
    conversation: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsListed(Event):
    """An MCP client was listed ``listed`` of the ``tools`` that it may use. Tokens are those of their definitions.

    ``programs`` is whether `run_program` is among them, and why: `on`, `off`, `pays`, `small board`, `loses` or
    `few tools`.
    """

    exposure: str
    tools: int
    listed: int
    tokens_before: int
    tokens_after: int
    key: str = ""
    client: str = ""
    conversation: str = ""
    programs: str = "off"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsSearched(Event):
    """An MCP client's search found tools; ``by_words`` is true if there were no vectors to rank by.

    ``decision`` is the `turn_id` of its decision, if there was one. ``at_hand`` are the tools that the client
    has then: those in the answer, also the nearest ones where nothing fits, and those that it is listed anyway; None if
    that is not known.
    """

    found: int
    by_words: bool
    decision: str = ""
    key: str = ""
    client: str = ""
    conversation: str = ""
    at_hand: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsOffered(Event):
    """An MCP client was offered so many tools: by the tool `route`, or by a push, as they are likely to be called next.

    ``way`` is `route` or `push`, ``decision`` the `turn_id` of its decision. ``at_hand`` are the tools
    that the client has then.
    """

    way: Literal["route", "push"]
    offered: int
    decision: str
    key: str = ""
    client: str = ""
    conversation: str = ""
    at_hand: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteAnswered(Event):
    """A request to the HTTP API was answered with ``offered`` of the ``tools`` that it may use."""

    decision: str
    key: str
    conversation: str
    tools: int
    offered: int
    tokens_before: int
    tokens_after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeReported(Event):
    """A client of the HTTP API reported a call, of a tool that a ``decision`` offered if it says which."""

    decision: str
    tool: str
    success: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionChanged(Event):
    """The fingerprint of a tool's definition is not the approved one; ``held_back`` is true if the tool is held back.

    ``approved`` is empty for a tool that its server added after approval. A ``tool`` without a name after the slash
    stands for the server's own title, version and instructions.
    """

    tool: str
    approved: str
    seen: str
    held_back: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionReordered(Event):
    """A definition differs from the approved one only in the order of a default's values; that is not a change."""

    tool: str
    approved: str
    seen: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionSuspected(Event):
    """The scanner suspects that a definition is poisoned. ``rules`` are those that matched, the heaviest first."""

    tool: str
    seen: str
    score: float
    rules: tuple[str, ...]
    held_back: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCrowds(Event):
    """Tools of a server crowd out others: ``kind`` is `copied-description`, `copied-name`, `requests`, `word-list`,
    `long-name` or `many-intents`.

    ``of`` is the server whose texts were copied; it is empty if there is no single one. ``damped`` is whether the tools
    are ranked behind others for it.
    """

    server: str
    kind: str
    of: str
    tools: tuple[str, ...]
    damped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallMeasured(Event):
    """Of the ``wanted`` nearest tools an ``index`` had ``found`` so many, by comparison with ``compared`` tools."""

    index: str
    wanted: int
    found: int
    compared: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentSuspected(Event):
    """The scanner suspects that a server's text is poisoned: ``where`` is a tool, or a kind and a name or URI.

    ``what`` is `definition` or `result`; ``held_back`` is true if it was left out of the list.
    """

    server: str
    where: str
    what: str
    score: float
    rules: tuple[str, ...]
    held_back: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerChanged(Event):
    """A server became ``ready``, ``idle``, ``signed_out``, ``unhealthy`` or ``stopped``; ``reason`` is empty when it is
    ready."""

    server: str
    state: str
    reason: str = ""
    tools: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationRefused(Event):
    """A changed configuration was refused and the previous one stays in force, for the reason with this ``code``.

    ``reason`` names options but no values.
    """

    code: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowMeasured(Event):
    """What filtering would have done to a request that was forwarded unchanged, and what the model then called.

    ``kept`` of its ``tools`` would have stayed. ``called`` are the calls of offered tools, and ``missed`` are those of
    them whose tool would have been removed. ``policy`` identifies the policy; ``unmeasured`` is the code of the reason
    if nothing could be measured.
    """

    upstream: str
    model: str
    key: str
    policy: str
    decision: str = ""
    tools: int = 0
    kept: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    called: tuple[str, ...] = ()
    missed: tuple[str, ...] = ()
    unmeasured: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetUsed(Event):
    """Of a budget for models, so much is spent or held that a warning is due, or that a request was ``refused``.

    ``by`` is `caller`, `tenant` or `all`, ``whose`` its name, ``per`` `a day` or `in all`.
    """

    by: str
    whose: str
    per: str
    used: NanoUsd
    limit: NanoUsd
    refused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequestServed(Event):
    """A request to a model was served. ``outcome`` says what happened to its tools, and ``reason`` why.

    ``status`` is the provider's; ours if the provider was not reached; 0 if the client disconnected before there was
    one. ``failure`` is the code of the error that prevented filtering. ``filter_ms`` is the time for filtering,
    ``added_ms`` the gateway's time before the request was forwarded, ``latency_ms`` the time until the answer ended.
    ``key`` is the name of a key, never the key. ``searches`` counts the model's searches for tools; ``brought_back``
    names the tools that were restored, by a search or because the model called them.

    ``cache`` says what happened to the tools of the conversation: `first`, `kept`, `grown`, `shrunk` or `whole`;
    `defer` if they are deferred until searched for, `call_tool` if they are called through that tool. ``cache_bill`` is
    the expected cost of this and the later turns, in tokens of uncached input, and ``cache_bill_whole`` the same with
    all tools; both are zero if they were not computed. ``narrowed``: all tools were sent, with a list of those that may
    be called. ``instead_of_defer`` says why they are not deferred, if another way emulates `defer`.

    ``metered``: an answer was generated, so that tokens are billed. They are what the provider counted, zero if it did
    not: ``input_tokens`` is the whole prompt, with what was read from the provider's cache and written to it. ``cost``
    is their price, and ``prompt_cost`` that of the input; None if it is not known. With ``searches``, they are sums of
    several prompts, each of them at its own price.
    """

    upstream: str
    format: str
    model: str
    key: str
    status: int
    outcome: str
    reason: str
    tools: int
    kept: int
    tokens_before: int
    tokens_after: int
    decision: str
    called: tuple[str, ...]
    added_ms: float
    latency_ms: float
    failure: str = ""
    filter_ms: float = 0.0
    cache: str = ""
    cache_bill: float = 0.0
    cache_bill_whole: float = 0.0
    narrowed: bool = False
    instead_of_defer: str = ""
    searches: int = 0
    brought_back: tuple[str, ...] = ()
    conversation: str = ""
    metered: bool = False
    input_tokens: int = 0
    cached_tokens: int = 0
    written_tokens: int = 0
    output_tokens: int = 0
    cost: NanoUsd | None = None
    prompt_cost: NanoUsd | None = None
