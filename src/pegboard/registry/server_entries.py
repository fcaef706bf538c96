"""A server as a registry lists it: `server.json` and what the registry says about it.

Source: modelcontextprotocol/registry, docs/reference/server-json, schema 2025-12-11. Older schemas are read too: they
have fewer fields, or the same ones with underscores. Unknown fields are dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic.alias_generators import to_camel

from pegboard.errors import CatalogError
from pegboard.settings.client_configs import sentences

OFFICIAL = "io.modelcontextprotocol.registry/official"
"""The key of the registry's own words on a server, in `_meta`."""
MOST_CHARACTERS = 4_000
"""Of one text. The official registry takes 100 for a description, others more."""
MOST_LEVELS = 2
"""Of parts of values within each other; the official schema has one."""
MOST_ITEMS = 200
"""Packages, remotes, variables and arguments in one list."""
NAME = r"^[A-Za-z0-9.-]+/[A-Za-z0-9._-]+$"
Status = Literal["active", "deprecated", "deleted"]
Text = Annotated[str, Field(max_length=MOST_CHARACTERS)]
Word = Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z0-9_.+-]*$")]
"""The name of a kind, which is shown to models as it is."""
_Few = Field(strict=False, max_length=MOST_ITEMS)


class _Part(BaseModel):
    """A part of `server.json`: types are taken as they are, and null is the same as nothing."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True, alias_generator=to_camel, populate_by_name=True)

    @model_validator(mode="before")
    @classmethod
    def _without_null(cls, value: Any) -> Any:
        return {key: each for key, each in value.items() if each is not None} if isinstance(value, Mapping) else value

    def as_json(self) -> dict[str, Any]:
        """As a registry writes it, without what is not said."""
        return self.model_dump(mode="json", by_alias=True, exclude_defaults=True)


class Input(_Part):
    """A value that a person gives, or that is fixed: of an environment variable, a header, an argument or a part of
    one. A named argument's ``name`` is the flag."""

    name: Text = ""
    description: Text = ""
    type: Text = ""
    value: Text = ""
    value_hint: Text = ""
    default: Text = ""
    is_required: bool = False
    is_secret: bool = False
    variables: Annotated[dict[str, Input], Field(default_factory=dict, max_length=MOST_ITEMS)]

    @field_validator("default", "value", mode="before")
    @classmethod
    def _as_text(cls, value: Any) -> Any:
        """Publishers also write numbers and true."""
        if isinstance(value, bool):
            return "true" if value else "false"
        return str(value) if isinstance(value, int | float) else value

    @field_validator("variables", mode="before")
    @classmethod
    def _not_deep(cls, value: Any) -> Any:
        if _is_deeper(value, MOST_LEVELS):
            raise ValueError(f"has more than {MOST_LEVELS} levels of variables")
        return value


def _is_deeper(variables: object, most: int) -> bool:
    """Whether variables have more than ``most`` levels. It looks no deeper."""
    if not isinstance(variables, Mapping) or not variables:
        return False
    return most == 0 or any(
        _is_deeper(each.get("variables"), most - 1) for each in variables.values() if isinstance(each, Mapping)
    )


class Transport(_Part):
    """How a server is spoken to: stdio, streamable-http or sse."""

    type: Word
    url: Text = ""
    headers: Annotated[tuple[Input, ...], _Few] = ()
    variables: Annotated[dict[str, Input], Field(default_factory=dict, max_length=MOST_ITEMS)]


class Package(_Part):
    """A package that a person's machine would run."""

    registry_type: Word
    identifier: Text
    transport: Transport
    registry_base_url: Text = ""
    version: Text = ""
    file_sha256: Annotated[Text, Field(alias="fileSha256")] = ""
    runtime_hint: Text = ""
    runtime_arguments: Annotated[tuple[Input, ...], _Few] = ()
    package_arguments: Annotated[tuple[Input, ...], _Few] = ()
    environment_variables: Annotated[tuple[Input, ...], _Few] = ()


class Repository(_Part):
    url: Text = ""
    source: Text = ""


class RegistryServer(_Part):
    """One version of a server. ``name`` is in reverse-DNS form: ``io.github.user/server``."""

    name: Annotated[str, Field(pattern=NAME, min_length=3, max_length=200)]
    version: Annotated[str, Field(min_length=1, max_length=255)]
    title: Text = ""
    description: Text = ""
    website_url: Text = ""
    repository: Repository = Repository()
    packages: Annotated[tuple[Package, ...], _Few] = ()
    remotes: Annotated[tuple[Transport, ...], _Few] = ()


class Standing(_Part):
    """What the registry says about a version. Times are RFC 3339 texts."""

    status: Status = "active"
    status_message: Text = ""
    published_at: Text = ""
    updated_at: Text = ""
    is_latest: bool = False


class ServerListing(_Part):
    """One item of the answer of ``GET /v0/servers``."""

    server: RegistryServer
    standing: Standing = Standing()

    @property
    def name(self) -> str:
        return self.server.name

    def as_json(self) -> dict[str, Any]:
        return {"server": self.server.as_json(), "_meta": {OFFICIAL: self.standing.as_json()}}


def listing(value: object) -> ServerListing:
    """A listing, or a bare `server.json`. Raises CatalogError that names the server and says what is wrong."""
    inner = value.get("server", value) if isinstance(value, Mapping) else value
    meta: Any = value.get("_meta") if isinstance(value, Mapping) else None
    said = meta.get(OFFICIAL, {}) if isinstance(meta, Mapping) else {}
    try:
        return ServerListing.model_validate({"server": inner, "standing": said})
    except ValidationError as error:
        name = inner.get("name") if isinstance(inner, Mapping) else None
        shown = repr(name[:80]) if isinstance(name, str) else "without a name"
        raise CatalogError(f"Server {shown}: {sentences(error)}") from None
