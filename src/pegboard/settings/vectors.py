"""Options of the vectors of tools: which index, and where Chroma's server is."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator

from pegboard.settings.services import KeyVariable

IndexKind = Literal["exact", "faiss", "chroma"]


class ChromaSettings(BaseModel):
    """A Chroma server. The token is read from the variable ``token_env``, never from here."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    url: str = "http://127.0.0.1:8000"
    collection: Annotated[str, Field(pattern=r"^[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}$")] = "pegboard"
    """How the names of our collections begin."""
    tenant: Annotated[str, Field(pattern=r"^[\w.-]+$")] = "default_tenant"
    database: Annotated[str, Field(pattern=r"^[\w.-]+$")] = "default_database"
    token_env: KeyVariable | None = None
    header: Literal["Authorization", "X-Chroma-Token"] = "Authorization"
    timeout: float = Field(default=2.0, gt=0)
    """Seconds that a search may take."""
    rest: float = Field(default=1.0, ge=0)
    """Seconds that a server which failed is not asked again."""

    @field_validator("url")
    @classmethod
    def _is_address(cls, value: str) -> str:
        url = urlsplit(value)
        if url.scheme not in ("http", "https") or not url.hostname:
            raise ValueError("url has to begin with http:// or https://")
        if url.username or url.password or url.query or url.fragment:
            raise ValueError("url may hold no token: name the variable that has it in token_env")
        return value
