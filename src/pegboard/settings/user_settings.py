"""Users with connections of their own to servers."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from pegboard.settings.issuer_settings import SafeUrl


class UserSettings(BaseModel):
    """The section `users`, for entries with ``per_user``. Times are in seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    most: int = Field(default=1_000, ge=1)
    """Users at once. Beyond that, the one idle for longest makes room; if all are in use, a request gets 503."""
    idle: float = Field(default=600.0, gt=0)
    """Without a call, after which a user's connections end; without a request, after which nothing of the user stays in
    memory."""
    rest: float = Field(default=60.0, gt=0)
    """Without a request of the user, after which their connection to a server without sessions (MCP 2026-07-28) ends
    until the next call: nothing is lost with it."""
    public_url: SafeUrl | None = None
    """Where browsers reach this gateway, to return to after a sign-in; by default, where the issuer's ``resource``
    is."""
