"""Options of the LLM gateway: where requests go, whose they are, and how their tools are picked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

Format = Literal["openai", "anthropic", "gemini", "generic"]
UpstreamName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")]
KeyName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.@-]*$")]
KeyHash = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
HiddenCall = Literal["ask", "guard", "pass"]
"""What a call of a tool that was filtered out leads to: it is asked again with it, refused, or handed on."""
Way = Literal["whole", "tools", "call_tool", "defer"]
"""How tools reach the model: all of them, those that are picked, by one constant `call_tool`, or deferred."""
Variable = Annotated[str, Field(pattern=r"^[A-Z_][A-Z0-9_]*$")]
OURS = frozenset({"mcp", "healthz", "readyz", "metrics"})
"""Paths that are not passed on."""
ALLOWED_TOOLS_AT = "api.openai.com"


class PolicySettings(BaseModel):
    """How the tools of requests are picked; what is not said is taken from the policy before it.

    ``always`` and ``never`` are patterns on tools' names; ``protect`` keeps exits, handoffs, planning and an agent's
    own tools, whatever is relevant. ``filter`` off passes everything on; ``optional`` lets a request say so itself.
    With ``shadow`` requests pass as they are, and what filtering would have done is counted.

    ``sticky``: a conversation's tools stay while that is cheaper; ``turns`` is how many requests
    one is expected to have, at least. ``allowed_tools``: the upstream can be told which tools may be called now.
    ``ways``: how tools may reach the model; of several the one that is expected to cost least.

    With ``way_back`` the model can search for what was filtered out, of which it sees a summary of ``search_tokens``;
    without a word on ``hidden_call`` that is `ask` then, and else `pass`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    filter: bool | None = None
    optional: bool | None = None
    shadow: bool | None = None
    profile: str | None = None
    k: int | None = Field(default=None, ge=1)
    threshold: float | None = None
    recall: float | None = Field(default=None, gt=0, le=1)
    budget: int | None = Field(default=None, ge=0)
    always: tuple[str, ...] | None = None
    never: tuple[str, ...] | None = None
    protect: bool | None = None
    least_tools: int | None = Field(default=None, ge=0)
    least_tokens: int | None = Field(default=None, ge=0)
    when_none: Literal["all", "none"] | None = None
    sticky: bool | None = None
    turns: float | None = Field(default=None, ge=1)
    allowed_tools: bool | None = None
    ways: tuple[Way, ...] | None = Field(default=None, min_length=1)
    fail: Literal["open", "closed"] | None = None
    way_back: bool | None = None
    hidden_call: HiddenCall | None = None
    search_tokens: int | None = Field(default=None, ge=0)

    def over(self, before: PolicySettings) -> PolicySettings:
        """This policy, with what it leaves open as ``before`` has it; what ``before`` never keeps is never kept."""
        said = before.policy() | self.policy()
        if before.never and self.never is not None:
            said["never"] = (*before.never, *self.never)
        return PolicySettings(**said)

    def policy(self) -> dict[str, Any]:
        """What is said, by field."""
        given = self.model_dump(include=set(PolicySettings.model_fields))
        return {name: value for name, value in given.items() if value is not None}


class RuleOfPolicy(PolicySettings):
    """A policy for the requests that all its patterns fit: on the names of upstream, model and key."""

    upstream: str = "*"
    model: str = "*"
    key: str = "*"


class KeySettings(PolicySettings):
    """A key that clients show to the gateway. Only its SHA-256 is kept; `pegboard keys new NAME` makes one."""

    hash: KeyHash
    upstreams: tuple[str, ...] = ("*",)
    """Patterns on the names of the upstreams that it may be used for."""


class UpstreamSettings(BaseModel):
    """A provider of models. Requests to `/NAME/…` go to ``url`` with the rest of the path.

    The caller's key goes along, unless ``api_key_env`` names the variable that has the one to send in its place. Times
    are in seconds: to connect, and between two pieces of an answer.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    url: str
    format: Format = "openai"
    api_key_env: Variable | None = None
    headers: dict[str, str] = Field(default_factory=dict, repr=False)
    """Sent with every request, in place of the caller's of the same name; values may hold variables."""
    connect_timeout: float = Field(default=10.0, gt=0)
    read_timeout: float = Field(default=600.0, gt=0)
    connections: int = Field(default=1000, ge=1)
    retries: int = Field(default=1, ge=0, le=10)
    """Times that a request is sent again where no connection could be made, or a GET where it broke."""
    semantic_tool_filtering: dict[str, Any] | None = None
    """The policy of seed 003 by its own parameters; for the format `generic`."""

    @property
    def takes_allowed_tools(self) -> bool:
        """Whether it is known to: OpenAI is, and many a server that speaks like it answers with a 400."""
        return self.format == "openai" and urlsplit(self.url).hostname == ALLOWED_TOOLS_AT

    @field_validator("url")
    @classmethod
    def _address(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("url has to begin with http:// or https://")
        if parts.username or parts.password:
            raise ValueError("url may hold no password: name the variable that has the key in api_key_env")
        return url.rstrip("/")

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (self.semantic_tool_filtering is not None) != (self.format == "generic"):
            raise ValueError("format generic and semantic_tool_filtering belong together")
        return self


def _usual() -> dict[str, UpstreamSettings]:
    return {
        "openai": UpstreamSettings(url="https://api.openai.com", format="openai"),
        "anthropic": UpstreamSettings(url="https://api.anthropic.com", format="anthropic"),
        "gemini": UpstreamSettings(url="https://generativelanguage.googleapis.com", format="gemini"),
    }


class LlmSettings(BaseModel):
    """The LLM gateway: `/NAME/…` goes to the upstream of that name, and any other path to the first one of the format
    that the request speaks.

    Bodies beyond ``most_filtered`` bytes pass unfiltered, beyond ``most_body`` they are refused.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    enabled: bool = True
    upstreams: dict[UpstreamName, UpstreamSettings] = Field(default_factory=_usual)
    policy: PolicySettings = PolicySettings()
    rules: tuple[RuleOfPolicy, ...] = ()
    keys: dict[KeyName, KeySettings] = Field(default_factory=dict, repr=False)
    filter_timeout: float = Field(default=2.0, gt=0)
    """Seconds that picking may take; then the request passes, or not, as ``fail`` says."""
    patience: float = Field(default=0.25, ge=0)
    """Seconds that a request waits for tools that were never seen before to be embedded; then it passes, if it may."""
    shadow_timeout: float = Field(default=60.0, gt=0)
    """Seconds that picking may take in the shadow, where nobody waits for it: tools that are new are embedded first."""
    most_filtered: int = Field(default=32 * 1024 * 1024, ge=0)
    most_body: int = Field(default=512 * 1024 * 1024, ge=0)
    record: Path | None = None
    """File to which requests are recorded, with all that users say in them; relative to the file that names it."""
    most_recorded: int = Field(default=256 * 1024 * 1024, ge=1)
    """Bytes from which on a new file is begun, and the one before it kept as `FILE.1`."""

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        if taken := OURS & self.upstreams.keys():
            raise ValueError(f"an upstream cannot be called {sorted(taken)[0]!r}: that path is Pegboard's own")
        hashes = [each.hash for each in self.keys.values()]
        if len(set(hashes)) < len(hashes):
            raise ValueError("two keys have the same hash")
        return self
