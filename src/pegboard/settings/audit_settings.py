"""Options of the audit log."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from pegboard.settings.services import KeyVariable, key_in

Place = Literal["file", "store"]


class AuditSettings(BaseModel):
    """Where tool calls and model requests are logged: ``to`` files of JSON lines in ``folder``, to the ``store`` of the
    state, which replicas share, or to both; empty means nowhere.

    ``values`` keeps the arguments of calls besides their digest. ``key_env`` is the variable with the key of the hash
    chain and of the digests: without it, whoever can write the log can also compute its hashes anew. Keep the key as
    long as the log. ``required`` refuses calls while the log cannot be written. Changes apply at the next start.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    to: tuple[Place, ...] = ()
    folder: Path | None = None
    """By default `audit` in ``state_dir``; relative to the configuration file."""
    values: bool = False
    key_env: KeyVariable | None = None
    required: bool = False
    file_bytes: int = Field(default=64_000_000, ge=10_000)
    """Size from which a file is renamed and another one begun; that also happens each day."""

    @property
    def key(self) -> bytes:
        """The key of the chain; empty without one. Raises ConfigError if its variable is not set."""
        return key_in(self.key_env, "the audit log").encode() if self.key_env else b""

    @property
    def key_here(self) -> bytes:
        """The same for a process that only reads other state: empty if its variable is not set."""
        return os.environ.get(self.key_env, "").strip().encode() if self.key_env else b""
