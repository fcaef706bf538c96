"""What happened, as data. Events carry hashes and names, never query text, arguments or secrets (M30)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


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
    """One routing decision (seed 000 §5.7). ``scores`` maps each candidate to its score, best first.

    ``encoder`` and ``by_rank`` are those of the decision.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRejected(Event):
    """The guard refused a call: the tool was not available, or the arguments did not fit."""

    tool: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFinished(Event):
    """A call came back from its ``server``."""

    tool: str
    server: str = ""
    success: bool
    latency_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsListed(Event):
    """An MCP client was listed ``listed`` definitions, of the ``tools`` that it may use; tokens are of definitions."""

    exposure: str
    tools: int
    listed: int
    tokens_before: int
    tokens_after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsSearched(Event):
    """An MCP client's search found tools; ``by_words`` where no vectors were there to rank by."""

    found: int
    by_words: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionChanged(Event):
    """A tool is defined otherwise than was approved, by fingerprints; ``held_back`` is whether it may not be used.

    ``approved`` is empty for a tool that its server did not have when it was approved. A ``tool`` without a name after
    the slash is what a server says of itself.
    """

    tool: str
    approved: str
    seen: str
    held_back: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionReordered(Event):
    """A tool lists the values of a default in another order than was approved, and is the same otherwise: no change."""

    tool: str
    approved: str
    seen: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionSuspected(Event):
    """The scanner holds a definition for poisoned: its score, and the rules that found something, heaviest first."""

    tool: str
    seen: str
    score: float
    rules: tuple[str, ...]
    held_back: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCrowds(Event):
    """Tools of a server stand in others' places: ``kind`` is `copied-description`, `copied-name` or `requests`.

    ``of`` is the server that has the same, empty where the descriptions are made of what users ask.
    """

    server: str
    kind: str
    of: str
    tools: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentSuspected(Event):
    """The scanner holds what a server says for poisoned: ``where`` is a tool, or a kind and a name or URI.

    ``what`` is `definition` or `result`; ``held_back`` is whether it was left out of the list.
    """

    server: str
    where: str
    what: str
    score: float
    rules: tuple[str, ...]
    held_back: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerChanged(Event):
    """A server became ``ready``, ``idle``, ``unhealthy`` or ``stopped``; ``reason`` is empty when it is ready."""

    server: str
    state: str
    reason: str = ""
    tools: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationRefused(Event):
    """A changed configuration is not used, and the one before stays: the code of why, and that in words.

    The words name options, and no value of one.
    """

    code: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowMeasured(Event):
    """What filtering would have done to a request that passed as it came, and what the model then called.

    ``kept`` of its ``tools`` would have stayed. ``called`` has the calls of tools that were offered, ``missed`` those
    of them whose tool would not have been. ``policy`` tells one way of picking from others; ``unmeasured`` is the code
    of why nothing of this is known, where that is so.
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
class ModelRequestServed(Event):
    """A request to a model passed through. ``outcome`` says what became of its tools, and ``reason`` why.

    ``status`` is the provider's, or ours where it was not reached, or 0 where the client hung up before there was one;
    ``failure`` the code of what kept its tools from being picked. ``filter_ms`` is the time for that, ``added_ms`` what
    the gateway took before the request went on, ``latency_ms`` the time until the answer had ended. ``key`` is the name
    of a key, never the key. ``searches`` counts those that the model made for tools, ``brought_back`` names the tools
    that came back to it, by a search or because it called them.

    ``cache`` is what became of the tools that the conversation had: `first`, `kept`, `grown`, `shrunk` or `whole`;
    `defer` where they wait to be searched for, `call_tool` where they are called through that one. ``cache_bill`` is
    what this and the later turns are expected to cost, in tokens of plain input, and ``cache_bill_whole`` the same with
    all tools; both are zero where that was not weighed. ``narrowed``: all went out, with a word on which may be called.
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
    searches: int = 0
    brought_back: tuple[str, ...] = ()
