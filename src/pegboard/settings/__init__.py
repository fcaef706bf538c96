"""Every option, typed, from a file, the environment and flags: flags win over the environment, it over the file."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from platformdirs import user_cache_path, user_state_path
from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict, SettingsError

from pegboard.client_configs import load_document, sentences, servers_of
from pegboard.errors import ConfigError
from pegboard.server_spec import ServerSpec
from pegboard.settings.access import AccessSettings
from pegboard.settings.economics import BreakerSettings, EconomicsSettings
from pegboard.settings.encoder import EncoderSettings
from pegboard.settings.llm import KeyName, LlmSettings
from pegboard.settings.services import KeyVariable, ServiceUrl
from pegboard.settings.state import (
    PinPolicy,
    RetentionSettings,
    ScanPolicy,
    SpendSettings,
    StateSettings,
    StatisticsSettings,
)
from pegboard.settings.vectors import ChromaSettings, IndexKind

Exposure = Literal["eager", "static", "dynamic", "native", "route"]
ExposureMode = Literal["auto", "eager", "static", "dynamic", "native", "route"]
CategoryMode = Literal["auto", "server", "prefix", "clusters"]
ToolKey = Annotated[str, Field(pattern=r"^.+/.+$")]
ToolsetName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
"""Part of a URL's path."""
Origin = Annotated[str, Field(pattern=r"^(null|[a-z][a-z0-9+.-]*://[^/]+)$")]
ALWAYS_AVAILABLE = "ALWAYS_AVAILABLE_TOOLS"
"""The variable of seed 002, read where ours is not set."""
OF_A_TEXT = {"summaries": "file", "state": "url", "encoder": "provider"}
"""The field of a section that is meant where the section is a text."""
LEAST_NAME = 24
"""Characters that a name needs to say something and to end in a hash where it must be told from another."""


class RuleSettings(BaseModel):
    """Who may use the tools that match ``tools`` (a pattern on ``server/name``)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tools: str
    requires: tuple[str, ...] = ()
    scope: str | None = None


class ClientSettings(BaseModel):
    """What a kind of client can do, as far as it differs from the table of clients. ``matches`` are patterns on the
    name it gives itself."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    matches: tuple[str, ...] = ()
    list_changed: bool | None = None
    native_search: bool | None = None
    always_load: str | None = Field(None, min_length=1)
    most_tools: int | None = Field(None, ge=1)
    longest_name: int | None = Field(None, ge=LEAST_NAME)
    exposure: Exposure | None = None


class ToolsetSettings(BaseModel):
    """A named selection of the board's tools. Patterns are on ``server/name`` or the name alone; the tables are by
    ``server/name``. Values of ``preset`` may hold variables and are secret."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    servers: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    rename: dict[ToolKey, Annotated[str, Field(min_length=1)]] = Field(default_factory=dict)
    describe: dict[ToolKey, str] = Field(default_factory=dict)
    preset: dict[ToolKey, dict[str, Any]] = Field(default_factory=dict, repr=False)
    exposure: Exposure | None = None
    always_available: tuple[str, ...] | None = None
    scope: str | None = None
    """What a token needs for it, where tokens are needed."""


class SummariesSettings(BaseModel):
    """Where summaries are kept, and the LLM that writes them. The key is read from the variable, never from here."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    file: Path | None = None
    base_url: ServiceUrl | None = None
    model: str | None = None
    api_key_env: KeyVariable | None = None
    batch: int = Field(default=10, ge=1, le=50)
    concurrency: int = Field(default=4, ge=1, le=64)
    timeout: float = Field(default=60.0, gt=0)

    @model_validator(mode="after")
    def _whole(self) -> SummariesSettings:
        if (self.base_url is None) != (self.model is None):
            raise ValueError("base_url and model belong together")
        return self


class Settings(BaseSettings):
    """One object for the whole program. A field is `PEGBOARD_NAME` in the environment, `name` in pegboard.toml.

    >>> Settings(profile="attention", k=5).k
    5
    """

    model_config = SettingsConfigDict(env_prefix="PEGBOARD_", extra="forbid", frozen=True, hide_input_in_errors=True)

    servers: dict[str, ServerSpec] = Field(default_factory=dict, description="The MCP servers behind the board.")
    profile: str = Field("hybrid", description="How tools are chosen: attention, keyword, semantic, ehrr or hybrid.")
    k: int | None = Field(None, ge=1, description="At most this many tools a turn.")
    threshold: float | None = Field(None, description="Least score, on the profile's own scale.")
    calibration: Path | None = Field(
        None, description="What `pegboard calibrate` wrote; relative to the file that says so."
    )
    query: Literal["last_user", "last_message", "conversation", "observation"] | None = Field(
        None, description="What is matched; `observation` adds the last tool result to the intent."
    )
    recall: float | None = Field(None, gt=0, le=1, description="Mean recall to reach (hybrid).")
    budget: int | None = Field(None, ge=0, description="Tokens that the definitions of a turn may take.")
    pool: int | None = Field(None, ge=0, description="Tokens that the summary of all tools may take.")
    always_available: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="Patterns on server/name of tools that every turn has."
    )
    aliases: dict[str, tuple[str, ...]] = Field(default_factory=dict, description="Extra search words by server/name.")
    rules: tuple[RuleSettings, ...] = Field((), description="Preconditions and scopes by pattern on server/name.")
    scopes: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="Scopes that the caller of this process holds."
    )
    access: dict[KeyName, AccessSettings] = Field(
        default_factory=dict, description="Tokens of the MCP gateway on HTTP; as soon as there is one, one is needed."
    )
    grants: dict[str, tuple[str, ...]] = Field(
        default_factory=dict, description="Patterns of the tools that a scope of a token opens, by scope."
    )
    exposure: ExposureMode = Field(
        "auto",
        description="What MCP clients are listed: eager, static, dynamic, native or route; auto goes by the client.",
    )
    session_tools: int = Field(40, ge=1, description="Tools that searches may have added to a session's list at once.")
    session_ttl: float = Field(7 * 86_400.0, gt=0, description="Seconds after which an unused session is forgotten.")
    often_used: int = Field(
        3, ge=0, description="So many of the most called tools are always listed; counted from earlier runs."
    )
    eager_tools: int = Field(10, ge=0, description="Boards with fewer tools are listed whole.")
    eager_tokens: int = Field(4000, ge=0, description="Boards of fewer tokens are listed whole.")
    clients: dict[str, ClientSettings] = Field(
        default_factory=dict, description="What kinds of clients can do, by the names in the table of clients."
    )
    categories: CategoryMode = Field(
        "auto", description="How tools are put into categories: auto, server, prefix (of names) or clusters."
    )
    category_patterns: dict[str, tuple[str, ...]] = Field(
        default_factory=dict, description="Categories by patterns on server/name."
    )
    category_descriptions: dict[str, str] = Field(
        default_factory=dict, description="What categories are for, by their names; read by `keyword` too."
    )
    toolsets: dict[ToolsetName, ToolsetSettings] = Field(
        default_factory=dict, description="Selections of tools, each served under its name."
    )
    summaries: Annotated[SummariesSettings, NoDecode] = Field(
        SummariesSettings(), description="The file of summaries, and the LLM that writes them."
    )
    instruction_tokens: int = Field(
        500, ge=0, description="Tokens that the instructions of several servers may take in those of the gateway."
    )
    start_wait: float = Field(5.0, ge=0, description="Seconds the first listing waits for servers that are starting.")
    connect_timeout: float = Field(30.0, gt=0, description="Seconds a server has to answer its first request.")
    call_timeout: float = Field(300.0, gt=0, description="Seconds a tool call may take.")
    health_timeout: float = Field(
        10.0, gt=0, description="Seconds a server that let a call time out has to say anything; else it starts again."
    )
    result_limit: int = Field(
        32_000_000, ge=100_000, description="Bytes of one answer of a server; a longer one is an error that says so."
    )
    list_limit: int = Field(
        5_000, ge=1, description="Tools, resources or prompts of one server; further ones are left out, and it is said."
    )
    list_bytes: int = Field(
        8_000_000, ge=10_000, description="Bytes of one server's list of tools, resources or prompts, all pages."
    )
    host: str = Field("127.0.0.1", description="Address that `pegboard serve` listens on.")
    port: int = Field(7332, ge=0, le=65_535, description="Port that `pegboard serve` listens on; 0 takes a free one.")
    most_connections: int = Field(
        1_000, ge=1, description="Connections to `pegboard serve` at once; the longest idle one leaves for a new one."
    )
    head_timeout: float = Field(15.0, gt=0, description="Seconds that the head of a request may take.")
    body_timeout: float = Field(
        60.0, gt=0, description="Seconds that the body of a request may take, and one more for each 16 KiB."
    )
    allowed_hosts: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="Names that `pegboard serve` answers to in Host headers, besides its own address."
    )
    allowed_origins: Annotated[tuple[Origin, ...], NoDecode] = Field(
        (),
        description="Pages that may use `pegboard serve`, besides its own address and desktop programs: `Origin` "
        "headers as browsers send them, such as https://chat.example.com; `null` allows any page.",
    )
    metrics: bool = Field(True, description="Whether `pegboard serve` has Prometheus metrics at /metrics.")
    drain_wait: float = Field(
        0.0,
        ge=0,
        description="Seconds, at least half of one, that `pegboard serve` takes requests after SIGTERM, while /readyz "
        "sends them elsewhere: more than balancers take to ask again.",
    )
    drain_timeout: float = Field(
        30.0, ge=0, description="Seconds that models' answers under way may take to end before `pegboard serve` does."
    )
    log_format: Literal["text", "json"] = Field(
        "text", description="How `serve` and `mcp` log to stderr: text or json."
    )
    lazy: bool = Field(False, description="Start servers with their first call, once their tools are known.")
    idle_stop: float = Field(
        600.0, ge=0, description="Seconds without a call after which a lazy server ends; 0: never."
    )
    inherit_env: bool = Field(
        False,
        description="Whether servers have the whole environment of this process; else PATH, HOME and a few more, and "
        "what their entries name.",
    )
    state: Annotated[StateSettings, NoDecode] = Field(
        StateSettings(), description="Where state is kept that several processes share; a text alone is its url."
    )
    statistics: StatisticsSettings = Field(
        StatisticsSettings(), description="Weights and first values of the moving averages of tools."
    )
    retention: RetentionSettings = Field(
        RetentionSettings(), description="Days after which what was not used is removed from the stores."
    )
    spend: SpendSettings = Field(SpendSettings(), description="What calls cost, and how much may be spent.")
    economics: EconomicsSettings = Field(
        EconomicsSettings(), description="How the profile `ehrr` weighs price, time and failure."
    )
    breakers: BreakerSettings = Field(
        BreakerSettings(), description="When a server that fails again and again is left alone."
    )
    pins: PinPolicy = Field(
        "warn", description="What is done about a tool whose definition changed: allow, warn or quarantine."
    )
    scan: ScanPolicy = Field(
        "warn", description="What is done about a new definition that seems poisoned: off, warn or quarantine."
    )
    llm: LlmSettings = Field(
        LlmSettings(upstreams={}),
        description="The LLM gateway: upstreams, keys, and how tools are picked. Without `[llm]` there is none.",
    )
    replica_url: str | None = Field(
        None, description="Where the other processes on the same store reach this one; by default its host and port."
    )
    index: IndexKind = Field(
        "exact",
        description="Where hybrid finds the vectors of tools: exact, faiss (this process) or chroma (a server).",
    )
    chroma: ChromaSettings = Field(ChromaSettings(), description="The Chroma server.")
    encoder: Annotated[EncoderSettings, NoDecode] = Field(
        EncoderSettings(), description="The model that embeds texts; a text alone is its provider."
    )
    encoder_threads: int = Field(0, ge=0, description="Threads of the encoder in process; 0 lets it choose.")
    cache_dir: Path = Field(
        default_factory=lambda: user_cache_path("pegboard", appauthor=False),
        description="Where embeddings and tool definitions are kept.",
    )
    state_dir: Path = Field(
        default_factory=lambda: user_state_path("pegboard", appauthor=False),
        description="Where sessions and counts of calls are kept.",
    )

    @field_validator("servers", mode="before")
    @classmethod
    def _name_servers(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        return {
            name: {"name": name} | dict(each) if isinstance(each, Mapping) else each for name, each in value.items()
        }

    @field_validator("always_available", "scopes", "allowed_hosts", "allowed_origins", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        """In the environment a list is words with commas between them (seed 002), or JSON."""
        if not isinstance(value, str):
            return value
        return json.loads(value) if value.startswith("[") else tuple(filter(None, map(str.strip, value.split(","))))

    @field_validator("summaries", "state", "encoder", mode="before")
    @classmethod
    def _of_a_text(cls, value: Any, info: ValidationInfo) -> Any:
        """A text alone is the most important field; in the environment it may be JSON."""
        if not isinstance(value, str):
            return value
        return json.loads(value) if value.startswith("{") else {OF_A_TEXT[str(info.field_name)]: value}

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (init_settings, env_settings)

    @property
    def enabled_servers(self) -> dict[str, ServerSpec]:
        """The servers that are not switched off, by name.

        >>> spec = {"command": "some-server", "disabled": True}
        >>> Settings(servers={"some": spec}).enabled_servers
        {}
        """
        return {name: self._told(spec) for name, spec in self.servers.items() if not spec.disabled}

    def _told(self, spec: ServerSpec) -> ServerSpec:
        """With what is said of all servers, where its entry does not say otherwise."""
        if spec.inherit_env is not None or not self.inherit_env:
            return spec
        return spec.model_copy(update={"inherit_env": True})


def load_settings(files: Sequence[Path] = (), **flags: Any) -> Settings:
    """Settings from configuration files (later ones win), the environment, and flags that are not None.

    Raises ConfigError naming the file, the option and what to do.

    >>> load_settings(profile="semantic").profile
    'semantic'
    """
    from_files: dict[str, Any] = {}
    servers: dict[str, Any] = {}
    for path in files:
        document = _from_its_folder(read_file(path), path)
        servers |= document.pop("servers", {})
        from_files |= document
    given = {name: value for name, value in flags.items() if value is not None}
    if ALWAYS_AVAILABLE in os.environ and "PEGBOARD_ALWAYS_AVAILABLE" not in os.environ:
        from_files["always_available"] = os.environ[ALWAYS_AVAILABLE]
    fields = {name: value for name, value in from_files.items() if f"PEGBOARD_{name.upper()}" not in os.environ}
    try:
        return Settings(**(fields | {"servers": servers} | given))
    except ValidationError as error:
        raise ConfigError(
            f"{_origin(error, files, given)}: {sentences(error)}.", remedy="`pegboard doctor` checks a configuration."
        ) from error
    except SettingsError as error:
        raise ConfigError(
            f"Configuration in the environment: {error}.", remedy="Lists and tables are written as JSON there."
        ) from error


def _origin(error: ValidationError, files: Sequence[Path], given: Mapping[str, Any]) -> str:
    if all(problem["loc"] and problem["loc"][0] in given for problem in error.errors()):
        return "What is given as options"
    return f"Configuration {', '.join(map(str, files)) or 'in the environment'}"


def _from_its_folder(document: dict[str, Any], path: Path) -> dict[str, Any]:
    """The document of a configuration file, with the files it names found from the folder it is in."""

    def found(name: Any) -> Any:
        return str(path.absolute().parent / Path(name).expanduser()) if isinstance(name, str) else name

    summaries, named = document.get("summaries"), dict(document)
    if isinstance(summaries, Mapping) and "file" in summaries:
        named["summaries"] = {**summaries, "file": found(summaries["file"])}
    elif isinstance(summaries, str):
        named["summaries"] = {"file": found(summaries)}
    llm = document.get("llm")
    if isinstance(llm, Mapping) and "record" in llm:
        named["llm"] = {**llm, "record": found(llm["record"])}
    return named | ({"calibration": found(document["calibration"])} if "calibration" in document else {})


def read_file(path: Path) -> dict[str, Any]:
    """Settings and servers of one file: pegboard's own TOML, or a client's JSON."""
    if path.suffix != ".toml":
        document = load_document(path)
        own = document.get("pegboard", {})
        return (dict(own) if isinstance(own, Mapping) else {}) | {"servers": servers_of(document, path)}
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(
            f"Cannot read {str(path)!r}: {error}.", remedy="Check the path given with --config."
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{str(path)!r} is not TOML: {error}.", remedy="Correct the file at that place.") from error
    return document | ({"servers": servers_of(document, path)} if "servers" in document else {})
