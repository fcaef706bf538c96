"""An LLM behind any OpenAI-compatible `/chat/completions`. Its key goes into one header and nowhere else."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2

from pegboard.errors import ConfigError
from pegboard.retries import asked_for, may_pass
from pegboard.summaries.refused import Refused

TRIES = 4
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 30.0
"""Seconds between tries: twice as long each time, or what the service asks for, up to this."""
HOPELESS = {
    401: "it does not accept the key",
    403: "it does not allow this",
    404: "it has no such model, or no /chat/completions there",
}
"""Answers that every other request would get too."""


class Chat:
    """One model of one service. ``timeout`` is in seconds, for a whole answer."""

    def __init__(
        self,
        client: httpx2.AsyncClient,
        *,
        base_url: str,
        model: str,
        key: str | None = None,
        timeout: float = 60.0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.model = model
        self._client = client
        self._url = f"{base_url.rstrip('/')}/chat/completions"
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._timeout = timeout
        self._sleep = sleep

    async def ask(self, system: str, user: str) -> str:
        """The text of the first choice. Raises Refused for this request, ConfigError where no other can succeed."""
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        return _content(await self._posted({"model": self.model, "messages": messages}))

    async def _posted(self, body: dict[str, Any]) -> httpx2.Response:
        """The answer; 429 and 5xx are tried again."""
        pause = FIRST_PAUSE
        for left in reversed(range(TRIES)):
            response = await self._once(body)
            if not may_pass(response.status_code) or not left:
                break
            await self._sleep(min(asked_for(response.headers, pause), LONGEST_PAUSE))
            pause *= 2
        if response.status_code in HOPELESS:
            raise ConfigError(
                f"The model's service at {self._url!r} answered {response.status_code}: "
                f"{HOPELESS[response.status_code]}.",
                remedy="Check base_url, model and api_key_env of [summaries], and the variable that it names.",
            )
        if response.status_code != 200:
            raise Refused(f"status {response.status_code}")
        return response

    async def _once(self, body: dict[str, Any]) -> httpx2.Response:
        """What went wrong is said without the library's own words, which may hold what was sent."""
        try:
            async with asyncio.timeout(self._timeout):
                return await self._client.post(self._url, json=body, headers=self._headers, timeout=self._timeout)
        except (TimeoutError, httpx2.TimeoutException):
            raise Refused("time-out") from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise Refused(f"no connection ({type(error).__name__})") from None


def _content(response: httpx2.Response) -> str:
    try:
        content = response.json()["choices"][0]["message"]["content"]
    except (ValueError, LookupError, TypeError):
        raise Refused("an answer that is no chat completion") from None
    if not isinstance(content, str):
        raise Refused("an answer without text")
    return content
