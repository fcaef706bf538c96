"""Options of the LLM gateway: upstreams, keys, and how tools are selected."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator
from pydantic_core import PydanticKnownError

from pegboard.settings.key_rotation import KeyHash, RotatedKey
from pegboard.settings.limit_settings import ModelBudgetSettings
from pegboard.settings.result_settings import ResultForm
from pegboard.settings.services import KeyVariable
from pegboard.wire_formats import upstream_formats

GENERIC = "generic"
"""The format of upstreams whose requests are parsed as `semantic_tool_filtering` says."""


def _known_format(name: Any) -> Any:
    known = [repr(each) for each in (*upstream_formats(), GENERIC)]
    if repr(name) not in known:
        raise PydanticKnownError("literal_error", {"expected": f"{', '.join(known[:-1])} or {known[-1]}"})
    return name


Format = Annotated[str, BeforeValidator(_known_format)]
"""The wire format of an upstream."""
UpstreamName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")]
KeyName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.@-]*$")]
HiddenCall = Literal["ask", "guard", "pass"]
"""What happens when the model calls a tool that was filtered out: the request is repeated with that tool, the call is
refused, or it is passed on."""
Way = Literal["whole", "tools", "call_tool", "defer"]
"""How tools reach the model: all of them, the selected ones, through one constant `call_tool`, or deferred."""

OURS = frozenset({"mcp", "healthz", "readyz", "metrics"})
"""Paths that are not forwarded."""
VERSION = re.compile(r"/v[0-9]+[a-z0-9]*$")


class PolicySettings(BaseModel):
    """How the tools of requests are selected; options that are not set are inherited from the previous policy.

    ``always`` and ``never`` are patterns on tools' names; ``protect`` keeps exits, handoffs, planning and an agent's
    own tools, whatever is relevant. ``filter`` off forwards everything; ``optional`` lets a request turn filtering off.
    With ``shadow``, requests are forwarded unchanged, and the effect that filtering would have had is counted.

    ``sticky``: a conversation's tools stay as long as that is cheaper; ``turns`` is the least expected number of
    requests of a conversation. ``allowed_tools``: the upstream can be told which tools may be called now. ``ways``: how
    tools may reach the model; of several, the one with the least expected cost is used.

    ``results`` is the form in which the results of tools are sent (docs/results.md), by the options of `[results]`.

    With ``way_back``, the default, the model can search for tools that were filtered out, and sees a summary of them of
    ``search_tokens``. ``hidden_call`` is then `ask` by default, and `pass` otherwise.
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
    results: ResultForm | None = None

    def over(self, before: PolicySettings) -> PolicySettings:
        """This policy, with unset options taken from ``before``. Patterns of ``never`` accumulate."""
        said = before.policy() | self.policy()
        if before.never and self.never is not None:
            said["never"] = (*before.never, *self.never)
        return PolicySettings(**said)

    def policy(self) -> dict[str, Any]:
        """The options that are set, by name."""
        given = self.model_dump(include=set(PolicySettings.model_fields))
        return {name: value for name, value in given.items() if value is not None}


class RuleOfPolicy(PolicySettings):
    """A policy for requests that match all its patterns, on the names of upstream, model and key."""

    upstream: str = "*"
    model: str = "*"
    key: str = "*"


class KeySettings(PolicySettings, RotatedKey):
    """A key that clients send to the gateway. Only its SHA-256 is kept; `pegboard keys new NAME` makes one."""

    hash: KeyHash
    upstreams: tuple[str, ...] = ("*",)
    """Patterns on the names of the upstreams that the key permits."""
    tenant: str = ""
    """The tenant of its holder, in the audit log."""


class UpstreamSettings(BaseModel):
    """A model provider. Requests to `/NAME/…` go to ``url`` with the rest of the path. If ``url`` ends with the API
    version with which that path begins (`/v1`), it is not repeated.

    The caller's key is forwarded, unless ``api_key_env`` names the variable with the key to send instead. Timeouts are
    in seconds: to connect, and between two chunks of an answer.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    url: str
    format: Format = "openai"
    api_key_env: KeyVariable | None = None
    headers: dict[str, str] = Field(default_factory=dict, repr=False)
    """Sent with every request, replacing the caller's headers of the same name; values may contain variables."""
    connect_timeout: float = Field(default=10.0, gt=0)
    read_timeout: float = Field(default=600.0, gt=0)
    connections: int = Field(default=1000, ge=1)
    retries: int = Field(default=1, ge=0, le=10)
    """How often a request is retried if no connection could be made, or a GET if its connection broke."""
    semantic_tool_filtering: dict[str, Any] | None = None
    """The policy of the gateway article, with its own parameters; for the format `generic`."""

    @property
    def version(self) -> str:
        """The API version with which ``url`` ends, such as `/v1`; empty if there is none."""
        return found.group() if (found := VERSION.search(urlsplit(self.url).path)) else ""

    @field_validator("url")
    @classmethod
    def _address(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("url must begin with http:// or https://")
        if parts.username or parts.password:
            raise ValueError("url must not contain a password: name the key's environment variable in api_key_env")
        return url.rstrip("/")

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (self.semantic_tool_filtering is not None) != (self.format == GENERIC):
            raise ValueError("format generic and semantic_tool_filtering belong together")
        return self


def _usual() -> dict[str, UpstreamSettings]:
    return {
        "openai": UpstreamSettings(url="https://api.openai.com", format="openai"),
        "anthropic": UpstreamSettings(url="https://api.anthropic.com", format="anthropic"),
        "gemini": UpstreamSettings(url="https://generativelanguage.googleapis.com", format="gemini"),
    }


class LlmSettings(BaseModel):
    """The LLM gateway: `/NAME/…` goes to the upstream of that name. A model API's path without a name goes to the first
    upstream of the request's format. Without upstreams, no model path is served.

    Bodies of more than ``most_filtered`` bytes are forwarded unfiltered, and so are those that do not fit into the
    ``most_held`` bytes for all bodies in progress, half of which one caller may use. Bodies of more than ``most_body``
    bytes are refused.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    enabled: bool = True
    upstreams: dict[UpstreamName, UpstreamSettings] = Field(default_factory=_usual)
    policy: PolicySettings = PolicySettings()
    rules: tuple[RuleOfPolicy, ...] = ()
    keys: dict[KeyName, KeySettings] = Field(default_factory=dict, repr=False)
    budgets: tuple[ModelBudgetSettings, ...] = ()
    """What requests may cost, by key, tenant and model."""
    filter_timeout: float = Field(default=2.0, gt=0)
    """Seconds that filtering may take after ``patience``; then ``fail`` decides whether the request is forwarded
    unfiltered."""
    patience: float = Field(default=0.25, ge=0)
    """Seconds that a request waits for new tools to be embedded; then they are picked by words, or all pass."""
    shadow_timeout: float = Field(default=60.0, gt=0)
    """Seconds that filtering may take in the shadow, where no client waits: new tools are embedded first."""
    most_filtered: int = Field(default=32 * 1024 * 1024, ge=0)
    most_held: int = Field(default=128 * 1024 * 1024, ge=0)
    """Bytes of bodies in progress that are kept in memory for filtering; one caller may use half of them."""
    most_tools: int = Field(default=5_000, ge=1)
    """Most tools of a request; a request with more is forwarded unfiltered."""
    most_body: int = Field(default=512 * 1024 * 1024, ge=0)
    record: Path | None = None
    """File to which requests are recorded, including everything users say; relative to the configuration file."""
    most_recorded: int = Field(default=256 * 1024 * 1024, ge=1)
    """Bytes after which a new file is started and the previous one is kept as `FILE.1`."""

    @property
    def serves(self) -> bool:
        """Whether there is an upstream to forward model requests to."""
        return self.enabled and bool(self.upstreams)

    @property
    def holds_keys(self) -> bool:
        """Whether a provider's key is sent instead of the caller's."""
        return self.serves and any(each.api_key_env is not None for each in self.upstreams.values())

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        if taken := OURS & self.upstreams.keys():
            raise ValueError(f"an upstream cannot be named {sorted(taken)[0]!r}: Pegboard uses that path itself")
        hashes = [each.hash for each in self.keys.values()]
        if len(set(hashes)) < len(hashes):
            raise ValueError("two keys have the same hash")
        return self
