"""Embeddings from a service. The key is sent in one header; errors contain neither the key nor any text."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import httpx2
import numpy as np

from pegboard.circuit_breaker import Breaker
from pegboard.errors import EncoderError
from pegboard.model import Floats
from pegboard.protocols import TokenCounter
from pegboard.retries import asked_for, may_pass
from pegboard.retrieval.encoders.embedding_responses import InvalidResponse, vectors_of
from pegboard.retrieval.encoders.service import Service

TRIES = 4
FIRST_PAUSE = 0.25
"""Seconds before the first retry, doubled each time, unless the service asks for another pause."""
REMEDY = "`pegboard doctor` requests one vector from it; see [encoder] in the configuration."
CHECK = "Check window, batch and dimensions of [encoder]: it may accept only shorter texts, or fewer at once."
TOO_MUCH = (400, 413, 422)
"""Statuses of services for a text that is too long, or for too many texts."""
REASONS = {
    401: "it does not accept the key",
    403: "it does not allow this",
    404: "it has no such model, or no embeddings at this address",
    429: "it is overloaded, or the quota is used up",
}


class _Refused(Exception):  # noqa: N818
    """The service answered and rejects these texts; others may be fine."""

    def __init__(self, status: int) -> None:
        self.status = status


@dataclass(frozen=True, slots=True)
class _Call:
    """``deadline`` is a time of the event loop."""

    client: httpx2.AsyncClient
    deadline: float


def connections() -> httpx2.AsyncClient:
    return httpx2.AsyncClient(limits=httpx2.Limits(max_connections=100, max_keepalive_connections=20))


class RemoteEncoder:
    """Texts to unit vectors, shape (n, dimensions), over HTTP. Raises EncoderError with the service's name and status.

    A request has ``timeout`` seconds, and a whole call with its retries (429, 5xx, no connection) ``total_timeout``.
    After a failure the circuit breaker pauses calls to the service.
    """

    def __init__(
        self,
        service: Service,
        *,
        key: str | None,
        counter: TokenCounter,
        breaker: Breaker[EncoderError],
        connect: Callable[[], httpx2.AsyncClient] = connections,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.provider, self.model = service.space
        self._service = service
        self._headers = service.headers(key)
        self._counter = counter
        self._breaker = breaker
        self._connect = connect
        self._sleep = sleep
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx2.AsyncClient] = WeakKeyDictionary()
        self._connecting: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
        self._dimensions = service.dimensions or 0

    @property
    def dimensions(self) -> int:
        """As configured, or as in the first answer; 0 before it."""
        return self._dimensions

    @property
    def at_once(self) -> int:
        """Texts that the service takes at a time."""
        return self._service.batch * self._service.concurrency

    async def encode(self, texts: Sequence[str]) -> Floats:
        if not texts:
            return np.zeros((0, self.dimensions), np.float32)
        try:
            with self._breaker.call():
                return await self._in_time(texts, await self._client())
        except _Refused as refused:
            raise self._error(f"answered {refused.status}: it rejects the texts", CHECK) from None

    async def close(self) -> None:
        """Close the connections of this event loop; they open again when needed."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    async def _in_time(self, texts: Sequence[str], client: httpx2.AsyncClient) -> Floats:
        seconds = self._service.total_timeout
        try:
            async with asyncio.timeout(seconds):
                return await self._encoded(texts, _Call(client, asyncio.get_running_loop().time() + seconds))
        except TimeoutError:
            raise self._error(f"did not answer within {seconds:g} s") from None

    async def _encoded(self, texts: Sequence[str], call: _Call) -> Floats:
        """Encode all batches, concurrently within the limit. Counting and cutting run off the event loop too (P25)."""
        batches = await asyncio.to_thread(lambda: list(self._service.batches(texts, self._counter)))
        gate = asyncio.Semaphore(self._service.concurrency)

        async def encoded(batch: list[str]) -> Floats:
            async with gate:
                return await self._batch(batch, call)

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(encoded(batch)) for batch in batches]
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None
        return np.concatenate([task.result() for task in tasks])

    async def _batch(self, texts: list[str], call: _Call) -> Floats:
        try:
            answer = await self._answer(texts, call)
        except _Refused:
            shorter = await asyncio.to_thread(self._service.shorter, texts, self._counter)
            if shorter is None:
                raise
            answer = await self._answer(shorter, call)
        try:
            vectors = await asyncio.to_thread(vectors_of, answer, len(texts), self._dimensions)
        except InvalidResponse as nonsense:
            raise self._error(f"gave {nonsense}") from None
        if self._dimensions not in (0, vectors.shape[1]):  # learnt from another batch in the meantime
            raise self._error(f"gave vectors of {vectors.shape[1]} numbers and of {self._dimensions}")
        self._dimensions = vectors.shape[1]
        return vectors

    async def _answer(self, texts: list[str], call: _Call) -> bytes:
        """The body of a successful answer; transient failures are retried while time is left."""
        body = await asyncio.to_thread(self._service.body, texts)
        pause = FIRST_PAUSE
        for left in reversed(range(TRIES)):
            response, trouble = await self._once(body, call.client)
            if response is not None and response.status_code == 200:
                return response.content
            if response is not None and response.status_code in TOO_MUCH:
                raise _Refused(response.status_code)
            wait = pause if response is None else asked_for(response.headers, pause)
            passes = response is None or may_pass(response.status_code)
            if not left or not passes or asyncio.get_running_loop().time() + wait >= call.deadline:
                raise self._error(trouble)
            await self._sleep(wait)
            pause *= 2
        raise AssertionError("unreachable")

    async def _once(self, body: bytes, client: httpx2.AsyncClient) -> tuple[httpx2.Response | None, str]:
        """The answer and what is wrong with it, without the library's message, which may contain what was sent."""
        seconds = self._service.timeout
        try:
            async with asyncio.timeout(seconds):
                response = await client.post(self._service.url, content=body, headers=self._headers, timeout=seconds)
        except httpx2.ConnectTimeout:
            return None, f"cannot be reached within {seconds:g} s"
        except (TimeoutError, httpx2.TimeoutException):
            raise self._error(f"did not answer within {seconds:g} s") from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            return None, f"cannot be reached, or closed the connection ({type(error).__name__})"
        status = response.status_code
        reason = REASONS.get(status)
        return response, f"answered {status}" + (f": {reason}" if reason else "")

    async def _client(self) -> httpx2.AsyncClient:
        """The connections of this event loop, made in a thread because that reads certificates."""
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            async with self._connecting.setdefault(loop, asyncio.Lock()):
                if loop not in self._clients:
                    self._clients[loop] = await asyncio.to_thread(self._connect)
        return self._clients[loop]

    def _error(self, what: str, remedy: str = REMEDY) -> EncoderError:
        return EncoderError(f"The encoder {self.model!r} of {self.provider} {what}.", remedy=remedy)
