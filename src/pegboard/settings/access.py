"""Options of who may use the MCP gateway on HTTP."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pegboard.settings.llm import KeyHash, Variable


class AccessSettings(BaseModel):
    """A bearer token, by its hash or by the variable that holds it, and what whoever shows it may use.

    ``tools`` are patterns on ``server/name`` or the name alone; ``scopes`` are what `rules`, `grants` and toolsets
    ask for. Without ``tools``, and where no grants are configured, any tool is meant.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    hash: KeyHash | None = None
    env: Variable | None = None
    scopes: tuple[str, ...] = ()
    tools: tuple[str, ...] | None = Field(default=None)

    @model_validator(mode="after")
    def _one_token(self) -> Self:
        if (self.hash is None) == (self.env is None):
            raise ValueError("either hash or env says which token it is")
        return self
