"""What requests of the HTTP API contain and what answers do, checked when it arrives and described by OpenAPI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pegboard.wire_formats import Provider

LONGEST_NAME = 200
"""Characters of names and ids."""
LONGEST_QUERY = 20_000
MOST_RESULTS = 200
MOST_NAMES = 100
"""Refused calls, and milestones, of a turn."""
LONGEST_CALL = 86_400_000
"""Milliseconds: a day."""

Format = Provider | Literal["none"]
"""The API for whose requests definitions are written, or `none` for names alone."""
Kind = Literal["tool", "skill", "prompt", "resource"]
ToolObject = dict[str, Any]
Name = Annotated[str, Field(max_length=LONGEST_NAME)]


class Said(BaseModel):
    """A body: unknown fields are errors, so that a misspelt one is noticed."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Choosing(Said):
    """What both ways to ask for tools have in common."""

    tools: list[ToolObject] | None = Field(
        None,
        description="Tools of the caller's own, in the form of OpenAI (Chat Completions, Responses), Anthropic, Gemini "
        "or MCP, in place of those of the gateway's servers.",
    )
    toolset: str = Field("", max_length=LONGEST_NAME, description="A configured toolset; empty for the whole board.")


class RouteRequest(Choosing):
    """A turn of an agent: what was said, and what is known of the agent."""

    query: str | None = Field(
        None, max_length=LONGEST_QUERY, description="The user's text. Give this or `messages`, not both."
    )
    messages: list[Any] | None = Field(
        None,
        description="The conversation, in the form of OpenAI (Chat Completions, Responses), Anthropic, Gemini "
        "(`contents`), Bedrock (Converse) or LangChain.",
    )
    session: str | None = Field(
        None,
        min_length=1,
        max_length=LONGEST_NAME,
        description="The conversation's name: tools whose outcomes were reported in it satisfy preconditions.",
    )
    refused: list[Name] = Field(
        default_factory=list,
        max_length=MOST_NAMES,
        description="Names of the calls that were refused since the user's last message; from the second on, each "
        "doubles the selection.",
    )
    milestones: list[Name] = Field(
        default_factory=list,
        max_length=MOST_NAMES,
        description="Facts of the agent's state, for preconditions.",
    )
    max_price: float | None = Field(
        None, ge=0, allow_inf_nan=False, description="Most US dollars of a call (profile `ehrr`)."
    )
    deadline: float | None = Field(
        None, ge=0, allow_inf_nan=False, description="Most seconds of a call (profile `ehrr`)."
    )
    format: Format | None = Field(
        None,
        description="The form of `tools` in the answer; `none` leaves them out. By default the caller's own tools come "
        "back as they came, and others as MCP servers list them.",
    )

    @model_validator(mode="after")
    def _asks_once(self) -> RouteRequest:
        if (self.query is None) == (self.messages is None):
            raise ValueError("give either query or messages")
        return self


class SearchRequest(Choosing):
    """A search, as the way back for a model that misses a tool."""

    query: str = Field(min_length=1, max_length=LONGEST_QUERY, description="What the tool has to do, or its name.")
    limit: int | None = Field(None, ge=1, le=MOST_RESULTS, description="Most results; by default the profile's.")
    kind: Kind | None = Field(None, description="Search this kind alone, of what the gateway's servers offer.")
    server: str | None = Field(None, max_length=LONGEST_NAME, description="Only what this server offers.")
    category: str | None = Field(None, max_length=LONGEST_NAME, description="Only tools of this category.")


class OutcomeRequest(Said):
    """How a call ended that the caller executed. Calls through the gateway's own `/mcp` are counted there."""

    tool: str = Field(min_length=1, max_length=LONGEST_NAME, description="The name that the model called.")
    success: bool
    latency_ms: float = Field(
        0.0, ge=0, le=LONGEST_CALL, allow_inf_nan=False, description="Milliseconds that the call took."
    )
    failure: Literal["server", "caller", "tool", "verdict"] | None = Field(
        None, description="Whose fault a failure was; `verdict`: the result was useless. By default the tool's."
    )
    turn: str | None = Field(
        None,
        max_length=LONGEST_NAME,
        description="The `turn` of the answer that offered the tool. Needed for tools of the caller's own.",
    )
    session: str | None = Field(None, min_length=1, max_length=LONGEST_NAME, description="The conversation's name.")
    toolset: str = Field("", max_length=LONGEST_NAME, description="The toolset that the tool is of.")


class Relevant(BaseModel):
    """A tool with its score."""

    name: str
    score: float = Field(description="On the scale that the answer names; comparable within one answer.")


class TokenCounts(BaseModel):
    """Tokens of definitions."""

    active: int
    all: int = Field(description="Those of all tools that the caller may use.")


class RouteAnswer(BaseModel):
    """The tools of a turn."""

    turn: str = Field(description="Names this answer in a report of an outcome.")
    active: list[str] = Field(description="Names of the tools that the model should get, in catalog order.")
    tools: list[ToolObject] = Field(description="Their definitions, in the form that was asked for.")
    candidates: list[Relevant] = Field(description="The best tools, best first, also those that are not active.")
    reachable: int = Field(description="How many tools the caller may use.")
    profile: str
    scale: str
    ranked_by: Literal["meaning", "words"] = Field(
        description="`words` while tools are being embedded or the encoder does not answer, and for profiles without."
    )
    meets_target: bool = Field(description="False if k or the budget kept the selection from its recall.")
    tokens: TokenCounts


class FoundTool(BaseModel):
    """A tool that a search found."""

    model_config = ConfigDict(extra="allow")

    name: str
    server: str
    signature: str = Field(description="The parameters in short.")
    description: str
    category: str | None = None
    sure: Literal["high", "some", "low"] | None = Field(None, description="How sure it is that this tool is meant.")


class SearchAnswer(BaseModel):
    """What was found. `why`, `chance`, `nearest` and `categories` come where nothing seems to fit."""

    model_config = ConfigDict(extra="allow")

    tools: list[FoundTool]
    nearest: list[FoundTool] | None = None
    skills: list[ToolObject] | None = None
    prompts: list[ToolObject] | None = None
    resources: list[ToolObject] | None = None
    resourceTemplates: list[ToolObject] | None = None  # noqa: N815 - the protocol's name
    why: str | None = None
    chance: float | None = Field(None, description="The probability that any tool fits, where none seems to.")
    categories: list[str] | None = None
    searched_for: str | None = Field(None, description="The query with its spelling corrected.")
    ranked_by: str | None = None
    servers_not_ready: dict[str, str] | None = None
    search_again: str | None = Field(
        None, description="Where servers are still starting whose tools are not known yet: which, and to search again."
    )


class ErrorAnswer(BaseModel):
    """An error, in one shape for all of them."""

    model_config = ConfigDict(extra="allow")

    error: str = Field(description="A code that does not change with the wording.")
    message: str
    remedy: str | None = Field(None, description="What to do.")


BODIES: Mapping[str, type[BaseModel]] = {
    "/v1/route": RouteRequest,
    "/v1/search": SearchRequest,
    "/v1/outcome": OutcomeRequest,
}
"""The body of each path."""
ANSWERS: Mapping[str, type[BaseModel] | None] = {
    "/v1/route": RouteAnswer,
    "/v1/search": SearchAnswer,
    "/v1/outcome": None,
}
"""The answer of each path; None is an empty one (204)."""
