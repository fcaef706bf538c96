"""What each model can do with tools that are not in its prompt, by wire format and model name.

The package contains `deferral.toml`; each row names its source and the day it was read.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Any, Literal

TABLE = "deferral.toml"
SearchResultKind = Literal["tool_reference", "tool_search", "none"]
"""What the result of a search that the client runs may contain: names of deferred tools, their definitions, or only
text."""
EmulationKind = Literal["call_tool", "search_tools"]
"""How deferral is emulated: one constant tool in place of the others, or a search by a plain call, with found tools at
the end of the list."""
ToolAdditionKind = Literal["tool_addition", ""]
"""The message that makes a deferred tool available without a search."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeferralSupport:
    """What a model can do. ``emulated`` counts where it has no ``search``. ``hosted``: the provider has its own search.
    ``additions`` need the header ``beta``."""

    search: SearchResultKind = "none"
    emulated: EmulationKind = "search_tools"
    hosted: bool = False
    additions: ToolAdditionKind = ""
    beta: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeferralRow:
    """Models of a wire format (the name of a codec) by name patterns."""

    api: str
    models: tuple[str, ...]
    support: DeferralSupport
    source: str
    checked: date

    def fits(self, api: str, model: str) -> bool:
        return api == self.api and any(fnmatchcase(model.lower(), pattern) for pattern in self.models)


EMULATED = DeferralSupport()
"""Nothing is known of the model: tools are searched and added by plain calls and lists alone."""


@cache
def deferral_rows() -> tuple[DeferralRow, ...]:
    """The bundled table; earlier rows take precedence."""
    document = tomllib.loads(files(__package__).joinpath(TABLE).read_text("utf-8"))
    return tuple(_row(fields) for fields in document["row"])


def deferral_support(api: str, model: str, rows: Sequence[DeferralRow] | None = None) -> DeferralSupport:
    """What a model can do according to the first matching row of ``rows``, or of the bundled table.

    ``api`` is the name of a codec: `anthropic`, `openai_responses`, `openai_chat`, `gemini`, `bedrock`…

    >>> deferral_support("anthropic", "claude-sonnet-4-5").search
    'tool_reference'
    >>> deferral_support("openai_responses", "gpt-5.4").search
    'tool_search'
    >>> deferral_support("openai_chat", "gpt-5.4").search
    'none'
    >>> deferral_support("openai_chat", "gpt-5.4").emulated
    'call_tool'
    >>> deferral_support("openai_chat", "llama-4-scout").emulated
    'search_tools'
    """
    table = deferral_rows() if rows is None else rows
    return next((row.support for row in table if row.fits(api, model)), EMULATED)


def _row(fields: dict[str, Any]) -> DeferralRow:
    names = ("search", "emulated", "hosted", "additions", "beta")
    return DeferralRow(
        api=fields["api"],
        models=tuple(fields["models"]),
        support=DeferralSupport(**{name: fields[name] for name in names if name in fields}),
        source=fields["source"],
        checked=fields["checked"],
    )
