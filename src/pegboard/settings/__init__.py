"""All options, typed, from files, the environment and flags. Flags override the environment, which overrides files."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from platformdirs import user_cache_path, user_state_path
from pydantic import Field, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict, SettingsError

from pegboard.errors import ConfigError
from pegboard.home_path import home_path
from pegboard.settings.activity_settings import ActivitySettings
from pegboard.settings.api import ApiSettings
from pegboard.settings.audit_settings import AuditSettings
from pegboard.settings.client_configs import load_document, sentences, servers_in, servers_of
from pegboard.settings.client_files import client_of
from pegboard.settings.economics import BreakerSettings, EconomicsSettings
from pegboard.settings.issuer_settings import LOOPBACK, IssuerSettings
from pegboard.settings.item_settings import ItemSettings
from pegboard.settings.limit_settings import RateSettings
from pegboard.settings.llm import KeyName, LlmSettings
from pegboard.settings.otel_settings import OtelSettings
from pegboard.settings.program_settings import ProgramSettings
from pegboard.settings.registry_settings import RegistrySettings
from pegboard.settings.result_settings import ResultSettings
from pegboard.settings.retrieval import ChromaSettings, EncoderSettings, IndexKind, PgvectorSettings, QdrantSettings
from pegboard.settings.sandbox_settings import SandboxSettings
from pegboard.settings.sections import (
    AccessSettings,
    ClientSettings,
    Exposure,
    RuleSettings,
    SummariesSettings,
    ToolsetSettings,
)
from pegboard.settings.server_spec import ServerSpec
from pegboard.settings.storage import (
    NewServerPolicy,
    PinPolicy,
    RetentionSettings,
    ScanPolicy,
    SpendSettings,
    StateSettings,
    StatisticsSettings,
    UsageSettings,
)
from pegboard.settings.user_settings import UserSettings

__all__ = [
    "ClientSettings",
    "Exposure",
    "RuleSettings",
    "Settings",
    "SummariesSettings",
    "ToolsetSettings",
    "load_settings",
    "read_file",
]

ExposureMode = Literal["auto", "eager", "static", "dynamic", "native", "route"]
CategoryMode = Literal["auto", "server", "prefix", "clusters"]
ToolsetName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
"""Part of a URL's path."""
Origin = Annotated[str, Field(pattern=r"^(null|[a-z][a-z0-9+.-]*://[^/]+)$")]
ALWAYS_AVAILABLE = "ALWAYS_AVAILABLE_TOOLS"
"""The environment variable of the lazy-loading PRD, read if Pegboard's own is not set."""
OF_A_TEXT = {
    "summaries": "file",
    "state": "url",
    "encoder": "provider",
    "results": "policy",
    "programs": "mode",
    "registry": "snapshot",
    "sandbox": "kind",
}
"""The field that is meant if a section is given as a string."""


class Settings(BaseSettings):
    """All settings of the program. A field is `PEGBOARD_NAME` in the environment and `name` in pegboard.toml.

    >>> Settings(profile="attention", k=5).k
    5
    """

    model_config = SettingsConfigDict(env_prefix="PEGBOARD_", extra="forbid", frozen=True, hide_input_in_errors=True)

    servers: dict[str, ServerSpec] = Field(default_factory=dict, description="The MCP servers behind the board.")
    profile: str = Field("hybrid", description="How tools are chosen: attention, keyword, semantic, ehrr or hybrid.")
    k: int | None = Field(None, ge=1, description="At most this many tools a turn.")
    threshold: float | None = Field(None, description="Least score, on the profile's own scale.")
    calibration: Path | None = Field(
        None, description="The file that `pegboard calibrate` wrote; relative to the configuration file."
    )
    query: Literal["last_user", "last_message", "conversation", "observation"] | None = Field(
        None, description="Which text is matched; `observation` adds the last tool result to the user's intent."
    )
    recall: float | None = Field(None, gt=0, le=1, description="Mean recall to reach (profile hybrid).")
    budget: int | None = Field(None, ge=0, description="Most tokens of the definitions of a turn.")
    pool: int | None = Field(None, ge=0, description="Most tokens of the summaries of all tools.")
    always_available: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="Patterns on server/name of the tools that every turn gets."
    )
    aliases: dict[str, tuple[str, ...]] = Field(default_factory=dict, description="Extra search words by server/name.")
    rules: tuple[RuleSettings, ...] = Field((), description="Preconditions and scopes by pattern on server/name.")
    scopes: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="Scopes that the caller of this process holds."
    )
    access: dict[KeyName, AccessSettings] = Field(
        default_factory=dict,
        description="Tokens for the MCP gateway on HTTP. If any is configured, every request needs one.",
    )
    issuer: IssuerSettings | None = Field(
        None,
        description="The authorization server whose tokens the MCP gateway on HTTP accepts besides those of access.",
    )
    grants: dict[str, tuple[str, ...]] = Field(
        default_factory=dict, description="Patterns of the tools that each scope of a token permits."
    )
    exposure: ExposureMode = Field(
        "auto",
        description="Which tools MCP clients are listed: eager, static, dynamic (for clients that list again when "
        "told), native or route; auto: by size.",
    )
    list_budget: int = Field(
        6000,
        ge=0,
        description="Most tokens of definitions that an MCP client is listed, whatever it asks for; what does not fit "
        "is found by search. Only a client whose own tool search is known to be on is listed more. 0: no limit.",
    )
    session_tools: int = Field(40, ge=1, description="Most tools that searches add to a session's list.")
    push: bool = Field(
        False, description="Whether tools that a conversation makes likely join the list of a `dynamic` session."
    )
    session_ttl: float = Field(7 * 86_400.0, gt=0, description="Seconds after which an unused session is forgotten.")
    often_used: int = Field(
        3, ge=0, description="Number of most called tools that are always listed; calls of earlier runs count."
    )
    eager_tools: int = Field(10, ge=0, description="Boards with fewer tools are listed completely.")
    eager_tokens: int = Field(4000, ge=0, description="Boards with fewer tokens are listed completely.")
    clients: dict[str, ClientSettings] = Field(
        default_factory=dict, description="Capabilities of kinds of clients, by their names in the table of clients."
    )
    categories: CategoryMode = Field(
        "auto", description="How tools are grouped into categories: auto, server, prefix (of names) or clusters."
    )
    category_patterns: dict[str, tuple[str, ...]] = Field(
        default_factory=dict, description="Categories by patterns on server/name."
    )
    category_descriptions: dict[str, str] = Field(
        default_factory=dict, description="Descriptions of categories, by name; the profile `keyword` matches them too."
    )
    toolsets: dict[ToolsetName, ToolsetSettings] = Field(
        default_factory=dict, description="Named selections of tools, each served under its name."
    )
    summaries: Annotated[SummariesSettings, NoDecode] = Field(
        SummariesSettings(), description="The summary file, and the LLM that writes summaries."
    )
    instruction_tokens: int = Field(
        500, ge=0, description="Most tokens of the gateway's instructions that servers' instructions may take."
    )
    start_wait: float = Field(5.0, ge=0, description="Seconds that the first listing waits for starting servers.")
    search_wait: float | None = Field(
        None,
        ge=0,
        description="Seconds that a search which found nothing certain waits for servers that never listed their "
        "tools, in vain for each only once. Default: three times `start_wait`, 15 at most.",
    )
    connect_timeout: float = Field(
        30.0, gt=0, description="Seconds that a server may take to answer its first request."
    )
    call_timeout: float = Field(300.0, gt=0, description="Seconds that a tool call may take.")
    health_timeout: float = Field(
        10.0, gt=0, description="Seconds that a server may stay silent after a call timed out; then it is restarted."
    )
    result_limit: int = Field(
        32_000_000, ge=100_000, description="Most bytes of one answer of a server; a longer one is an error."
    )
    results: Annotated[ResultSettings, NoDecode] = Field(
        ResultSettings(),
        description="In which form the results of tools are handed on: whole, shaped or handle; a string alone is the "
        "policy of all tools.",
    )
    programs: Annotated[ProgramSettings, NoDecode] = Field(
        ProgramSettings(),
        description="Whether MCP clients, and models whose results are cut, are offered `run_program`: off, on, or "
        "auto, where the break-even rule says that it pays; and what a program may take. A string alone is the mode.",
    )
    items: ItemSettings = Field(
        ItemSettings(),
        description="What searches find besides tools: skills (folders of SKILL.md files) and agents (files of A2A "
        "agent cards), and how many and how many tokens of each kind.",
    )
    registry: Annotated[RegistrySettings, NoDecode] = Field(
        RegistrySettings(),
        description="The snapshot of an MCP registry that `pegboard registry` writes and searches; a string alone is "
        "its file, by default in cache_dir. If it is named, MCP clients are offered `find_server`.",
    )
    list_limit: int = Field(
        5_000,
        ge=1,
        description="Most tools, resources or prompts of one server; further ones are left out, with a warning.",
    )
    list_bytes: int = Field(
        8_000_000,
        ge=10_000,
        description="Most bytes of one server's list of tools, resources or prompts, over all pages.",
    )
    host: str = Field("127.0.0.1", description="Address that `pegboard serve` listens on.")
    port: int = Field(7332, ge=0, le=65_535, description="Port that `pegboard serve` listens on; 0 chooses a free one.")
    most_connections: int = Field(
        1_000,
        ge=1,
        description="Most connections to `pegboard serve`; beyond that, the longest idle one is closed for a new one.",
    )
    head_timeout: float = Field(15.0, gt=0, description="Seconds that the header section of a request may take.")
    body_timeout: float = Field(
        60.0, gt=0, description="Seconds that the body of a request may take, plus one for each 16 KiB."
    )
    allowed_hosts: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="Host names that `pegboard serve` accepts in Host headers, besides its own address."
    )
    allowed_origins: Annotated[tuple[Origin, ...], NoDecode] = Field(
        (),
        description="Origins of web pages that may use `pegboard serve`, besides its own address and desktop programs, "
        "as browsers send them in `Origin`, such as https://chat.example.com; `null` allows any page.",
    )
    metrics: bool = Field(True, description="Whether `pegboard serve` serves Prometheus metrics at /metrics.")
    dashboard: bool = Field(True, description="Whether `pegboard serve` serves the dashboard at /ui.")
    drain_wait: float = Field(
        0.0,
        ge=0,
        description="Seconds, at least 0.5, that `pegboard serve` still accepts requests after SIGTERM while /readyz "
        "already fails: longer than the interval of the load balancer's health checks.",
    )
    drain_timeout: float = Field(
        30.0, ge=0, description="Seconds that `pegboard serve` waits at shutdown for models' answers in progress."
    )
    log_format: Literal["text", "json"] = Field(
        "text", description="How `serve` and `mcp` log to stderr: text or json."
    )
    lazy: bool = Field(False, description="Start a server only with its first call, once its tools are known.")
    idle_stop: float = Field(
        600.0, ge=0, description="Seconds without a call after which a lazy server is stopped; 0: never."
    )
    inherit_env: bool = Field(
        False,
        description="Whether servers get the whole environment of this process, instead of PATH, HOME and a few more "
        "variables, plus those that their entries name.",
    )
    sandbox: Annotated[SandboxSettings, NoDecode] = Field(
        SandboxSettings(),
        description="Where the processes of servers run whose entries do not say it: none, bubblewrap or docker, or a "
        "table with kind, network, read, write and image.",
    )
    state: Annotated[StateSettings, NoDecode] = Field(
        StateSettings(), description="Where shared state is kept; a string alone is its url."
    )
    statistics: StatisticsSettings = Field(
        StatisticsSettings(), description="Weights and initial values of the moving averages of tools."
    )
    usage: UsageSettings = Field(UsageSettings(), description="How selection learns from the calls of each key.")
    retention: RetentionSettings = Field(
        RetentionSettings(), description="Days after which unused records are removed from the stores."
    )
    audit_log: AuditSettings = Field(
        AuditSettings(), description="Where the log of who called what is kept; by default nowhere."
    )
    activity: ActivitySettings = Field(
        ActivitySettings(), description="Where the decisions that the dashboard shows are kept, and whether with texts."
    )
    otel: OtelSettings = Field(
        OtelSettings(), description="Where traces, metrics and logs are sent by OpenTelemetry; by default nowhere."
    )
    rates: tuple[RateSettings, ...] = Field((), description="How often callers, tenants and tools may be served.")
    spend: SpendSettings = Field(SpendSettings(), description="What calls cost, and how much may be spent.")
    economics: EconomicsSettings = Field(
        EconomicsSettings(), description="How the profile `ehrr` weighs price, time and failure."
    )
    breakers: BreakerSettings = Field(
        BreakerSettings(), description="When a server that fails repeatedly is not called for a while."
    )
    users: UserSettings = Field(
        UserSettings(), description="How many users may have connections of their own to servers, and for how long."
    )
    pins: PinPolicy | None = Field(
        None,
        description="What happens to a tool whose definition changed, or that its server did not have: allow, warn or "
        "quarantine; by default quarantine for a team (`[access]` or `[issuer]`), else warn.",
    )
    new_servers: NewServerPolicy | None = Field(
        None,
        description="What happens to the tools of a server that is added later, where `pins` is quarantine: approve or "
        "quarantine; by default quarantine for a team, else approve.",
    )
    scan: ScanPolicy = Field(
        "warn", description="What happens to a new definition that seems poisoned: off, warn or quarantine."
    )
    llm: LlmSettings = Field(
        LlmSettings(upstreams={}),
        description="The LLM gateway: upstreams, keys, and how tools are selected. Without `[llm]` it is off.",
    )
    api: ApiSettings = Field(ApiSettings(), description="The HTTP API of `pegboard serve`, for other languages.")
    replica_url: str | None = Field(
        None,
        description="URL at which the other processes on the same store reach this one; by default its host and port.",
    )
    index: IndexKind = Field(
        "exact",
        description="Index that hybrid searches for tools: exact, compressed or faiss (in this process), or "
        "chroma, pgvector or qdrant (a server).",
    )
    index_recall: float = Field(
        60.0,
        ge=0,
        description="Seconds between two searches of an index (other than exact) that are compared with all tools in "
        "the background, at least; 0: none is.",
    )
    index_shards: tuple[Path, ...] = Field(
        (),
        description="Folders that `pegboard index build` wrote: vectors found there are mapped into memory and never "
        "computed.",
    )
    chroma: ChromaSettings = Field(ChromaSettings(), description="The Chroma server.")
    pgvector: PgvectorSettings = Field(PgvectorSettings(), description="The PostgreSQL server with pgvector.")
    qdrant: QdrantSettings = Field(QdrantSettings(), description="The Qdrant server.")
    encoder: Annotated[EncoderSettings, NoDecode] = Field(
        EncoderSettings(), description="The model that embeds texts; a string alone is its provider."
    )
    index_wait: float | None = Field(
        None,
        ge=0,
        description="Seconds that a turn of the library waits for new tools to be embedded; until they are, words rank "
        "them, which the decision says. Without it, a turn waits as long as that takes.",
    )
    encoder_threads: int = Field(0, ge=0, description="Threads of the encoder in this process; 0 lets it choose.")
    credentials: Literal["auto", "keyring", "file"] = Field(
        "auto",
        description="Where tokens of sign-ins at servers are kept: the system's keychain, or an encrypted file in "
        "state_dir; auto: the keychain if there is one.",
    )
    cache_dir: Path = Field(
        default_factory=lambda: user_cache_path("pegboard", appauthor=False),
        description="Folder of cached embeddings and tool definitions; relative to the configuration file.",
    )
    state_dir: Path = Field(
        default_factory=lambda: user_state_path("pegboard", appauthor=False),
        description="Folder of sessions and statistics of calls; relative to the configuration file.",
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
        """In the environment, a list is comma-separated words (the lazy-loading PRD) or JSON."""
        if not isinstance(value, str):
            return value
        return json.loads(value) if value.startswith("[") else tuple(filter(None, map(str.strip, value.split(","))))

    @field_validator(*OF_A_TEXT, mode="before")
    @classmethod
    def _of_a_text(cls, value: Any, info: ValidationInfo) -> Any:
        """A string alone stands for the most important field; in the environment it may be JSON."""
        if not isinstance(value, str):
            return value
        return json.loads(value) if value.startswith("{") else {OF_A_TEXT[str(info.field_name)]: value}

    @field_validator("cache_dir", "state_dir", mode="before")
    @classmethod
    def _named(cls, value: Any) -> Any:
        """A variable that was set to nothing would mean the folder in which the program happens to run."""
        if value == "":
            raise ValueError("is empty, and needs the name of a folder")
        return value

    @field_validator("cache_dir", "state_dir")
    @classmethod
    def _at_home(cls, value: Path) -> Path:
        try:
            return value.expanduser()
        except RuntimeError as error:
            raise ValueError("there is no such user") from error

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
        """The servers that are not disabled, by name.

        >>> spec = {"command": "some-server", "disabled": True}
        >>> Settings(servers={"some": spec}).enabled_servers
        {}
        """
        return {name: self._told(spec) for name, spec in self.servers.items() if not spec.disabled}

    @property
    def is_for_one_person(self) -> bool:
        """Whether all clients are those of one person on this machine, as far as the configuration says.

        >>> Settings(host="0.0.0.0").is_for_one_person
        False
        """
        return self.host in LOOPBACK and not self.access and self.issuer is None

    @property
    def is_for_team(self) -> bool:
        """Whether callers are told apart, so that one person decides on definitions for others.

        >>> Settings().is_for_team
        False
        """
        return bool(self.access) or self.issuer is not None

    @property
    def pin_policy(self) -> PinPolicy:
        """What happens to definitions of tools that are not the approved ones.

        >>> Settings().pin_policy, Settings(pins="allow").pin_policy
        ('warn', 'allow')
        """
        return self.pins or ("quarantine" if self.is_for_team else "warn")

    @property
    def content_pin_policy(self) -> PinPolicy:
        """As `pin_policy`, for prompts, resources and skills, whose descriptions change by themselves: they are held
        back only where the configuration says so.

        >>> Settings().content_pin_policy, Settings(pins="quarantine").content_pin_policy
        ('warn', 'quarantine')
        """
        return self.pins or "warn"

    @property
    def new_server_policy(self) -> NewServerPolicy:
        """What happens to definitions of servers that are added to known ones.

        >>> Settings().new_server_policy, Settings(new_servers="quarantine").new_server_policy
        ('approve', 'quarantine')
        """
        return self.new_servers or ("quarantine" if self.is_for_team else "approve")

    @property
    def public_address(self) -> str:
        """Where browsers reach this gateway, without a path of its own; empty if the settings do not say it.

        >>> Settings(issuer={"url": "https://login.example", "resource": "https://gate.example/a/mcp"}).public_address
        'https://gate.example/a'
        """
        if self.users.public_url:
            return self.users.public_url.rstrip("/")
        return self.issuer.resource.rstrip("/").removesuffix("/mcp") if self.issuer else ""

    @property
    def has_users(self) -> bool:
        """Whether any server is connected for each user alone.

        >>> Settings(host="0.0.0.0", servers={"a": {"url": "https://a.example/mcp", "per_user": True}}).has_users
        True
        """
        return any(each.per_user for each in self.enabled_servers.values())

    @property
    def for_one_person(self) -> Settings:
        """These settings without tokens of callers, for a single client on standard streams.

        >>> Settings(host="0.0.0.0").for_one_person.is_for_one_person
        True
        """
        return self.model_copy(update={"host": "127.0.0.1", "access": {}, "issuer": None})

    def _told(self, spec: ServerSpec) -> ServerSpec:
        """The spec with the options for all servers that its entry does not set."""
        told: dict[str, Any] = {"inherit_env": True} if spec.inherit_env is None and self.inherit_env else {}
        if spec.per_user and self.is_for_one_person:
            told["per_user"] = False
        if spec.command and spec.sandbox is None and self.sandbox.kind != "none":
            told["sandbox"] = self.sandbox
        return spec.model_copy(update=told) if told else spec


def load_settings(files: Sequence[Path] = (), *, content: Mapping[str, Any] | None = None, **flags: Any) -> Settings:
    """Settings from configuration files (later ones override), the environment, and flags that are not None.
    ``content`` is that of another file, without servers.

    Raises ConfigError naming the file, the option and what to do.

    >>> load_settings(profile="semantic").profile
    'semantic'
    """
    from_files: dict[str, Any] = dict(content or {})
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
            f"{_origin(error, files, {**(content or {}), **given})}: {sentences(error)}.",
            remedy="`pegboard doctor` checks a configuration.",
        ) from error
    except SettingsError as error:
        raise ConfigError(
            f"Configuration in the environment: {error}.", remedy="Write lists and tables as JSON there."
        ) from error


def _origin(error: ValidationError, files: Sequence[Path], given: Mapping[str, Any]) -> str:
    wrong = {str(problem["loc"][0]) if problem["loc"] else "" for problem in error.errors()}
    if wrong <= given.keys():
        return "The given options"
    variables = [f"PEGBOARD_{name.upper()}" for name in sorted(wrong)]
    if not wrong & given.keys() and all(name in os.environ for name in variables):
        return f"Environment variable {', '.join(variables)}"
    return f"Configuration {', '.join(map(str, files)) or 'in the environment'}"


def _from_its_folder(document: dict[str, Any], path: Path) -> dict[str, Any]:
    """The document of a configuration file, with the files that it names resolved against its folder. Raises
    ConfigError."""

    def found(name: Any) -> Any:
        return str(path.absolute().parent / home_path(name, repr(str(path)))) if isinstance(name, str) else name

    named, files = dict(document), (("summaries", "file"), ("registry", "snapshot"))
    for section, field in (*files, ("llm", "record"), ("audit_log", "folder")):
        said = document.get(section)
        if isinstance(said, Mapping) and field in said:
            named[section] = {**said, field: found(said[field])}
        elif isinstance(said, str) and (section, field) in files:
            named[section] = {field: found(said)}
    if isinstance(items := document.get("items"), Mapping):
        paths = {name: [found(each) for each in items[name]] for name in ("skills", "agents") if _listed(items, name)}
        named["items"] = {**items, **paths}
    if isinstance(shards := document.get("index_shards"), list):
        named["index_shards"] = [found(folder) for folder in shards]
    alone = ("calibration", "cache_dir", "state_dir")
    return named | {name: found(document[name]) for name in alone if name in document}


def _listed(section: Mapping[str, Any], name: str) -> bool:
    return isinstance(section.get(name), list)


def read_file(path: Path) -> dict[str, Any]:
    """Settings and servers of one file: Pegboard's own TOML, or a client's file. Raises ConfigError."""
    if path.suffix != ".toml" or client_of(path):
        own = load_document(path).get("pegboard", {})
        return (dict(own) if isinstance(own, Mapping) else {}) | {"servers": servers_in(path)}
    try:
        document = tomllib.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        raise ConfigError(
            f"Cannot read {str(path)!r}: {error}.", remedy="Check the path given with --config."
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{str(path)!r} is not TOML: {error}.", remedy="Correct the file there.") from error
    return document | ({"servers": servers_of(document, path)} if "servers" in document else {})
