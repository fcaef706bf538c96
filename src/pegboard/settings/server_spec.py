"""The specification of one MCP server, and the expansion of its variables."""

from __future__ import annotations

import hashlib
import ipaddress
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from dotenv import dotenv_values
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from pegboard import operating_system
from pegboard.errors import ConfigError
from pegboard.settings.oauth_settings import OAuthSettings
from pegboard.settings.sandbox_settings import SandboxSettings
from pegboard.settings.secret_sources import REFERENCE, REFERENCE_START, SecretReader, references

SAFE = operating_system.inherited_variables()
"""Variables that every server's process inherits."""
VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-((?:[^{}]|\{[^{}]*\})*))?\}")
PARTS = re.compile(rf"{REFERENCE.pattern}|{VARIABLE.pattern}")
UNKNOWN = re.compile(r"\$\{(?:input|command|config):[^}]*\}")
WORD_BREAK = re.compile(r"[\s:/@?&=;,]+")
SECRET_NAME = re.compile(r"(?i)(key|token|secret|passw|credential|auth|cookie|(?<![a-z])(pat|pwd|pass)(?![a-z]))")
"""Names of headers, flags and parameters whose values are secret."""
HEADER_FLAGS = frozenset({"-H", "--header", "--headers"})
HEADER_LINE = re.compile(r"\s*([\w-]+)\s*:(?!//)\s*(?=\S)")
HEADER_NAME = re.compile(r"(?i)(proxy-)?authorization|(set-)?cookie|[\w-]*-(key|token|secret)")
"""Names of headers whose lines are secret without such a flag before them."""
SENDABLE = re.compile(r"[\t\x20-\x7e]*")
"""Values of headers."""
CLIENT_SECRETS = ("client_secret", "issuer_client_secret")
CLIENT_KEYS = ("client_id", "issuer_client_id", *CLIENT_SECRETS)
"""Options of `oauth` that may contain variables."""
SECRET_LENGTH = 5
HARMLESS = frozenset({"https", "bearer", "basic", "localhost", "127.0.0.1", "false", "token"})
"""Words of URLs and headers that are not secret and occur in many messages."""


class ServerSpec(BaseModel):
    """How to reach one server: a command to run, or a URL. Values may contain variables until `expanded`."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True, hide_input_in_errors=True)

    name: str
    command: str | None = None
    args: tuple[str, ...] = Field(default=(), repr=False)
    env: dict[str, str] = Field(default_factory=dict, repr=False)
    cwd: str | None = None
    url: str | None = Field(default=None, repr=False)
    headers: dict[str, str] = Field(default_factory=dict, repr=False)
    type: str | None = None
    disabled: bool = False
    description: str = ""
    env_file: str | None = Field(default=None, alias="envFile")
    folder: str = "."
    """The folder of the configuration: `${workspaceFolder}`, and the base of a relative cwd."""
    lazy: bool | None = None
    """Whether to start it only with its first call; None means as the settings say for all servers."""
    inherit_env: bool | None = Field(default=None, alias="inheritEnv")
    """Whether its process inherits the gateway's whole environment; None means as the settings say for all servers."""
    per_client: bool = Field(default=False, alias="perClient")
    """Whether each client gets its own connection, or its own process on stdio."""
    per_user: bool = Field(default=False, alias="perUser")
    """Whether each user signs in to it, and has a connection, lists and results of their own."""

    oauth: OAuthSettings | None = None
    """How to sign in to it, if it asks for that. A server with a token or key in its entry is never signed in to unless
    this is given."""
    sandbox: SandboxSettings | None = None
    """Where its process runs; None means as the settings say for all servers."""

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: Any) -> Any:
        """Editors write null for what is not set."""
        return {key: each for key, each in value.items() if each is not None} if isinstance(value, Mapping) else value

    @model_validator(mode="after")
    def _one_way_in(self) -> ServerSpec:
        if bool(self.command) == bool(self.url):
            raise ValueError("needs either a command or a url")
        if self.url and "${" not in self.url and not _is_well_formed(self.url):
            raise ValueError("the url is malformed")
        if self.url and self.sandbox:
            raise ValueError("a sandbox is for a server with a command")
        if self.command and self.oauth:
            raise ValueError("oauth is for a server with a url")
        if self.oauth and self.oauth.exchanges and not self.per_user:
            raise ValueError(f"{self.oauth.grant} needs per_user")
        if self.per_user and (self.command or self.per_client):
            raise ValueError("per_user is for a server with a url, and excludes per_client")
        return self

    @field_validator("oauth", mode="before")
    @classmethod
    def _oauth_of_a_flag(cls, value: Any) -> Any:
        """Some clients write only whether they sign in."""
        return {} if value is True else value or None

    @field_validator("env", "headers", mode="before")
    @classmethod
    def _as_text(cls, value: Any) -> Any:
        """Editors also write numbers, and null for a variable that is not to be set."""
        if not isinstance(value, Mapping):
            return value
        return {key: _text_of(each) for key, each in value.items() if each is not None}

    @field_validator("args", mode="before")
    @classmethod
    def _each_as_text(cls, value: Any) -> Any:
        """A port is a number in YAML."""
        return [_text_of(each) for each in value] if isinstance(value, list | tuple) else value

    @property
    def is_http(self) -> bool:
        return self.url is not None

    @property
    def is_sse(self) -> bool:
        """Whether it uses the transport that streamable HTTP replaced (MCP 2024-11-05, HTTP with SSE), by its type or
        by the usual end of such a URL."""
        if self.url is None or self.type not in (None, "sse"):
            return False
        return self.type == "sse" or self.url.partition("?")[0].rstrip("/").endswith("/sse")

    @property
    def is_remote(self) -> bool:
        """Whether it has a URL on another machine."""
        if self.url is None:
            return False
        try:
            host = urlsplit(self.url).hostname or ""
            return not (host == "localhost" or ipaddress.ip_address(host).is_loopback)
        except ValueError:  # a name, or a variable
            return True

    @property
    def has_credentials(self) -> bool:
        """Whether its headers or its URL contain a token or key, so that no sign-in is needed."""
        try:
            url = urlsplit(VARIABLE.sub("", self.url or ""))
        except ValueError:  # it is malformed once its variables are expanded
            url = urlsplit("")
        names = [*self.headers, *(name for name, _ in parse_qsl(url.query, keep_blank_values=True))]
        return bool(url.password) or any(SECRET_NAME.search(name) for name in names)

    @property
    def exchanges_tokens(self) -> bool:
        """Whether its tokens are got in exchange for its callers' own."""
        return self.oauth is not None and self.oauth.exchanges

    def identity(self) -> str:
        """SHA-256 of everything that determines which server this is, except its name; reveals no secret.

        Use it on an `expanded` spec: another value of a variable may mean another server.
        """
        named = [sorted(self.env), sorted(self.headers)]
        values = [_hashed(dict(sorted(each.items()))) for each in (self.env, self.headers)]
        return _hashed([self.command, self.args, self.folder, self.cwd, self.url, named, values])

    @property
    def references(self) -> list[str]:
        """The secrets that it names and that are read only when it is connected, such as `${keyring:github}`."""
        texts = [self.command or "", *self.args, *self.env.values(), self.cwd or "", self.url or ""]
        texts += [getattr(self.oauth, key) or "" for key in CLIENT_KEYS] if self.oauth else []
        return [found for text in [*texts, *self.headers.values()] for found in references(text)]

    @property
    def is_read_anew(self) -> bool:
        """Whether parts of it lie in files, a keyring or with a command, which may have something else the next time.

        >>> ServerSpec(name="a", command="a", env={"TOKEN": "${file:token}"}).is_read_anew
        True
        """
        return bool(self.env_file or self.references)

    def expanded(self, environment: Mapping[str, str], secrets: SecretReader | None = None) -> ServerSpec:
        """The spec with all variables expanded (M26), and with its secrets if there is a reader for them.

        Raises ConfigError naming the variable and the server; PegboardError if a secret cannot be read now.
        """
        expand = Expander(f"Server {self.name!r}", environment, self.folder, secrets)
        return self.model_copy(
            update={
                "command": expand(self.command),
                "args": tuple(expand(arg) or "" for arg in self.args),
                "env": self._env_file(expand) | {key: expand(value) or "" for key, value in self.env.items()},
                "cwd": expand(self.cwd),
                "url": expand(self.url),
                "headers": {key: self._sendable(key, expand(value) or "") for key, value in self.headers.items()},
                "oauth": self._oauth(expand),
                "sandbox": self._sandbox(expand),
            }
        )

    def handed(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The environment of its process, for an `expanded` spec: the safe variables, plus those that its entry names.

        So a server does not see secrets of the gateway or of other servers. The list is the one of the SDK's client.
        """
        inherited = (
            environment if self.inherit_env else {name: environment[name] for name in SAFE if name in environment}
        )
        return dict(inherited) | self.env

    def secrets(self, environment: Mapping[str, str]) -> set[str]:
        """All strings that must not appear in a message (M30).

        These are the values of env and headers, of flags whose names say so, of variables, and the words of headers and
        of values that contain a URL (credentials, parameters). Words of other values are left out, because the folders
        of a path occur in many legitimate messages.
        """
        raw = [*self.args, *self.env.values(), *self.headers.values(), self.url or "", self.command or ""]
        raw += [getattr(self.oauth, key) or "" for key in CLIENT_SECRETS] if self.oauth else []
        found = {environment.get(name, "") for text in raw for name, _ in VARIABLE.findall(text)}
        try:
            spec = self.expanded(environment)
        except ConfigError:
            spec = self
        values = [*spec.env.values(), *spec.headers.values(), *filter(None, [spec.url])]
        values += filter(None, (getattr(spec.oauth, key) for key in CLIENT_SECRETS)) if spec.oauth else []
        given = [secret for _, secret in secret_arguments(spec.args)]
        values += given
        worded = [*spec.headers.values(), *given, *(value for value in values if "://" in value)]
        found |= set(values) | {word for value in worded for word in WORD_BREAK.split(value)}
        return {secret for secret in found if len(secret) >= SECRET_LENGTH and secret.lower() not in HARMLESS}

    def _oauth(self, expand: Expander) -> OAuthSettings | None:
        if self.oauth is None:
            return None
        own = {key: expand(getattr(self.oauth, key)) for key in CLIENT_KEYS}
        return self.oauth.model_copy(update=own)

    def _sendable(self, header: str, value: str) -> str:
        """The value without blanks around it, such as the second line end of a file, which are no part of it (RFC 9110,
        5.5). Raises ConfigError."""
        sent = value.strip()
        if not SENDABLE.fullmatch(REFERENCE.sub("", sent)):  # those that are not read yet
            raise ConfigError(
                f"Server {self.name!r}: its header {header!r} has a character that no header can have.",
                remedy="It takes printable ASCII on one line; look at the variable or file that its value comes from.",
            )
        return sent

    def _sandbox(self, expand: Expander) -> SandboxSettings | None:
        if self.sandbox is None:
            return None
        paths = {key: tuple(expand(each) or "" for each in getattr(self.sandbox, key)) for key in ("read", "write")}
        return self.sandbox.model_copy(update=paths)

    def _env_file(self, expand: Expander) -> dict[str, str]:
        """The variables of VS Code's `envFile`."""
        name = expand(self.env_file)
        if not name:
            return {}
        try:
            path = Path(self.folder, Path(name).expanduser())
            text = path.read_text("utf-8-sig")
        except (OSError, RuntimeError, UnicodeDecodeError) as error:  # RuntimeError: `~` of a user that does not exist
            why = "is not UTF-8" if isinstance(error, UnicodeDecodeError) else "does not exist or cannot be read"
            raise ConfigError(
                f"Server {self.name!r} has the envFile {self.env_file!r}, which {why}.",
                remedy="Correct its path or it.",
            ) from error
        return {key: value or "" for key, value in dotenv_values(stream=StringIO(text)).items()}


def _text_of(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, bool | int | float) else value


def secret_arguments(args: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each argument as what may be shown of it, and the secret after that: the value of a flag whose name says so, and
    that of a header.

    >>> list(secret_arguments(["--port", "1", "--api-key", "k", "--token=t"]))
    [('--port', ''), ('1', ''), ('--api-key', ''), ('', 'k'), ('--token=', 't')]
    >>> list(secret_arguments(["--header", "Authorization: Bearer b"]))
    [('--header', ''), ('Authorization: ', 'Bearer b')]
    """
    before = ""
    for arg in args:
        flag, equals, value = arg.partition("=")
        if header := _header(arg, before):
            yield header
        elif flag in HEADER_FLAGS and (header := _header(value, flag)):
            yield f"{flag}={header[0]}", header[1]
        elif before not in HEADER_FLAGS and SECRET_NAME.search(before) and not arg.startswith("-"):
            yield "", arg
        elif equals and SECRET_NAME.search(flag):
            yield flag + equals, value
        else:
            yield arg, ""
        before = arg if arg.startswith("-") and not equals else ""


def _header(line: str, flag: str) -> tuple[str, str] | None:
    """The name of a header and its value; None for what is no line of a header that may be secret."""
    found = HEADER_LINE.match(line)
    if found is None or not (flag in HEADER_FLAGS or HEADER_NAME.fullmatch(found.group(1))):
        return None
    return found.group(), line[found.end() :]


def _is_well_formed(url: str) -> bool:
    """
    >>> _is_well_formed("http://[::1]:80/mcp"), _is_well_formed("http://[::1/mcp"), _is_well_formed("http://host:one/")
    (True, False, False)
    """
    try:
        return urlsplit(url).port != 0
    except ValueError:
        return False


def _hashed(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Expander:
    """Expands `${VAR}`, `${VAR:-default}`, `${env:VAR}`, `${workspaceFolder}` and `${userHome}` in a text (M26).

    ``owner`` names the text's owner in errors: "Server 'github'". Without ``secrets``, references to secrets stay as
    they are written, though a variable in one must be set. A value is never expanded itself.
    """

    owner: str
    environment: Mapping[str, str]
    folder: str
    secrets: SecretReader | None = None

    def __call__(self, text: str | None) -> str | None:
        if text is None or "${" not in text:
            return text
        if unknown := UNKNOWN.search(text):
            raise ConfigError(
                f"{self.owner} uses {unknown.group()}, which only its editor can prompt for.",
                remedy="Put the value into an environment variable and write ${NAME} instead.",
            )
        if broken := REFERENCE_START.search(PARTS.sub(" ", text)):
            raise ConfigError(
                f"{self.owner} has a reference ${{{broken.group(1)}:…}} whose braces do not match.",
                remedy="Inside it, braces stand in pairs, and no pair within another.",
            )
        return PARTS.sub(self._part, text)

    def _part(self, match: re.Match[str]) -> str:
        if (variable := VARIABLE.fullmatch(match.group())) is not None:
            return self._value(variable)
        kind, name = REFERENCE.fullmatch(match.group()).groups()  # type: ignore[union-attr]  # the other of two patterns
        name = self(name) or ""
        return match.group() if self.secrets is None else self.secrets.read(self.owner, kind, name, self.folder)

    def _value(self, match: re.Match[str]) -> str:
        name, default = match.groups()
        known = {"workspaceFolder": self.folder, "userHome": str(Path.home())} | dict(self.environment)
        if known.get(name):
            return known[name]
        if default is not None:
            return self(default) or ""
        if name in known:
            return ""
        raise ConfigError(
            f"{self.owner} needs the environment variable {name}, which is not set.",
            remedy=f"Set {name}, or write ${{{name}:-default}} in the configuration.",
        )
