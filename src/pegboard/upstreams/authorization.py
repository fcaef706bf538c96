"""The sign-in that one server waits for: who is asked for it, and when the server is tried again."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pegboard.settings.server_spec import ServerSpec
from pegboard.upstreams.connection import expanded_spec
from pegboard.upstreams.fleet_options import FleetOptions

if TYPE_CHECKING:
    from pegboard.upstreams.oauth.bearer_auth import BearerAuth
    from pegboard.upstreams.oauth.token_exchange import ExchangedAuth


class Authorization:
    """Of one server and one user. ``auth`` is that of the last connection; None if it had none."""

    def __init__(self, spec: ServerSpec, conditions: FleetOptions, user: str) -> None:
        self.auth: BearerAuth | ExchangedAuth | None = None
        self._spec = spec
        self._conditions = conditions
        self._user = user

    async def ask(self) -> bool:
        """Whether the person at the client of the current request has signed in when asked to."""
        questions = self._conditions.sign_in_questions
        if questions is None or self._spec.exchanges_tokens:
            return False
        return await questions.ask(await expanded_spec(self._spec, self._conditions), self._user)

    async def wait_for_news(self, seconds: float) -> None:
        """Return when there are other credentials, or after so many seconds: the server may have been opened to all."""
        if self.auth is None:
            await asyncio.sleep(seconds)
        else:
            await self.auth.wait_for_news(seconds)
