"""Encoders over HTTP, against services that refuse what the providers refuse."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from embedding_services import KEY, RIGHT, Answer, Service, service, vectors
from pegboard.catalog import BpeCounter
from pegboard.circuit_breaker import Breaker
from pegboard.compose import embedding_service
from pegboard.errors import EncoderError
from pegboard.retrieval import CachedEncoder
from pegboard.retrieval.encoders.remote import RemoteEncoder
from pegboard.settings.retrieval import EncoderSettings
from pegboard.stores import MemoryEmbeddings
from pegboard.testing import FakeClock

KINDS: dict[str, dict[str, Any]] = {
    "openai": {"provider": "openai"},
    "azure": {"provider": "azure", "deployment": "our-small"},
    "mistral": {"provider": "mistral"},
    "tei": {"provider": "compatible", "model": "bge"},
}
TEXTS = ["when is high water", "mend the bicycle", "lend me a book"]
SECRET = "my password is hunter2"
AGAIN = {"Retry-After": "0"}


@pytest.fixture
def openai() -> Iterator[Service]:
    with service("openai") as made:
        yield made


@asynccontextmanager
async def encoder_of(
    at: Service, kind: str = "openai", *, clock: FakeClock | None = None, key: str | None = KEY, **options: Any
) -> AsyncIterator[RemoteEncoder]:
    limits = {name: options.pop(name) for name in ("tokens", "inputs") if name in options}
    chosen = embedding_service(EncoderSettings(**KINDS[kind], base_url=at.base_url, **options))
    encoder = RemoteEncoder(
        replace(chosen, provider=replace(chosen.provider, **limits)),
        key=key if at.rules.header else None,
        counter=BpeCounter(),
        breaker=Breaker(clock or FakeClock(), EncoderError, name="The encoder", rest=5, meanwhile="words rank"),
        sleep=lambda _seconds: asyncio.sleep(0),
    )
    try:
        yield encoder
    finally:
        await encoder.close()


@pytest.mark.requirement("003.providers")
@pytest.mark.parametrize("kind", KINDS)
async def test_every_provider_gives_unit_vectors_in_the_order_of_the_texts(kind: str) -> None:
    with service(kind) as at:
        async with encoder_of(at, kind) as encoder:
            found = await encoder.encode(TEXTS)

    assert at.refusals == []
    assert (found.dtype, found.shape, encoder.dimensions) == (np.float32, (3, 32), 32)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(found, vectors(TEXTS, 32) / 3, atol=1e-6)


@pytest.mark.requirement("003.providers")
@pytest.mark.parametrize("kind", KINDS)
async def test_rows_that_come_in_another_order_are_put_in_that_of_the_texts(kind: str) -> None:
    with service(kind, shuffled=True) as at:
        async with encoder_of(at, kind) as encoder:
            np.testing.assert_allclose(await encoder.encode(TEXTS), vectors(TEXTS, 32) / 3, atol=1e-6)


@pytest.mark.parametrize(("kind", "field"), [("openai", "dimensions"), ("mistral", "output_dimension")])
async def test_dimensions_are_asked_for_only_where_they_are_configured(kind: str, field: str) -> None:
    with service(kind) as at:
        async with encoder_of(at, kind) as usual, encoder_of(at, kind, dimensions=16) as fewer:
            shapes = [(await each.encode(TEXTS)).shape for each in (usual, fewer)]

    assert shapes == [(3, 32), (3, 16)]
    assert field not in at.bodies[0]
    assert at.bodies[1][field] == 16
    assert usual.model != fewer.model


@pytest.mark.requirement("P24")
@pytest.mark.parametrize("kind", KINDS)
async def test_many_texts_go_in_as_many_requests_as_the_provider_wants_and_a_few_at_once(kind: str) -> None:
    texts = [f"tool number {number}" for number in range(700)]
    with service(kind) as at:
        async with encoder_of(at, kind, concurrency=3) as encoder:
            found = await encoder.encode(texts)

    assert at.refusals == []
    assert sorted(at.texts) == sorted(texts)
    assert max(len(body["input"]) for body in at.bodies) <= at.rules.inputs
    assert at.most_at_once <= 3
    np.testing.assert_allclose(found, vectors(texts, 32) / 3, atol=1e-6)


@pytest.mark.requirement("P24")
async def test_a_request_has_no_more_tokens_than_the_provider_takes(openai: Service) -> None:
    openai.rules = replace(openai.rules, tokens=100)
    texts = [f"{number} " + "word " * (number % 40) for number in range(60)]
    async with encoder_of(openai, tokens=100) as encoder:
        await encoder.encode(texts)

    assert openai.refusals == []
    assert len(openai.bodies) > 10


@pytest.mark.requirement("P24")
@pytest.mark.parametrize("kind", KINDS)
async def test_a_text_beyond_the_window_is_cut_to_it_whoever_counts(kind: str) -> None:
    long = "".join(chr(0x4E00 + number % 900) for number in range(100_000))
    with service(kind) as at:
        async with encoder_of(at, kind) as encoder:
            assert (await encoder.encode(["tides", long])).shape == (2, 32)

    assert len(at.refusals) <= 1
    assert long.startswith(at.texts[-1])


@pytest.mark.parametrize("text", ["", "   ", "\ud83d", "\0", "ý́"])
async def test_any_text_can_be_sent(openai: Service, text: str) -> None:
    async with encoder_of(openai) as encoder:
        assert (await encoder.encode([text])).shape == (1, 32)


async def test_no_texts_are_no_request(openai: Service) -> None:
    async with encoder_of(openai, dimensions=16) as encoder:
        assert (await encoder.encode([])).shape == (0, 16)

    assert openai.bodies == []


@pytest.mark.parametrize(("status", "said"), [(429, "429: it is overloaded"), (500, "500"), (503, "503")])
async def test_what_may_pass_is_tried_again(openai: Service, status: int, said: str) -> None:
    openai.answer = lambda _, number: Answer(status=status, headers=AGAIN) if number < 3 else RIGHT
    async with encoder_of(openai) as encoder:
        assert (await encoder.encode(TEXTS)).shape == (3, 32)

    openai.answer = lambda *_: Answer(status=status)
    async with encoder_of(openai) as encoder:
        with pytest.raises(EncoderError, match=f"answered {said}"):
            await encoder.encode(TEXTS)


@pytest.mark.parametrize("headers", [{"Retry-After": "3600"}, {"retry-after-ms": "60000", "Retry-After": "0"}])
async def test_a_service_that_wants_more_time_than_there_is_is_not_waited_for(
    openai: Service, headers: dict[str, str]
) -> None:
    openai.answer = lambda *_: Answer(status=429, headers=headers)
    async with encoder_of(openai) as encoder:
        with pytest.raises(EncoderError, match="429"):
            await encoder.encode(TEXTS)

    assert len(openai.bodies) == 1


@pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 418])
async def test_what_will_not_pass_is_not_tried_again(openai: Service, status: int) -> None:
    openai.answer = lambda *_: Answer(status=status)
    async with encoder_of(openai) as encoder:
        with pytest.raises(EncoderError, match=f"'text-embedding-3-small' of openai .* answered {status}"):
            await encoder.encode(TEXTS)

    assert len(openai.bodies) == 1


async def test_a_connection_that_breaks_off_is_tried_again(openai: Service) -> None:
    openai.answer = lambda _, number: Answer(cut=True) if number < 2 else RIGHT
    async with encoder_of(openai) as encoder:
        assert (await encoder.encode(TEXTS)).shape == (3, 32)

    openai.answer = lambda *_: Answer(cut=True)
    async with encoder_of(openai) as encoder:
        with pytest.raises(EncoderError, match="closed the connection"):
            await encoder.encode(TEXTS)


async def test_a_service_that_is_not_there_is_an_error() -> None:
    with service("openai") as gone:
        pass
    async with encoder_of(gone) as encoder:
        with pytest.raises(EncoderError, match="cannot be reached"):
            await encoder.encode(TEXTS)


@pytest.mark.parametrize("seconds", [{"timeout": 0.5}, {"total_timeout": 0.5}])
async def test_a_service_that_does_not_answer_in_time_is_not_waited_for(
    openai: Service, seconds: dict[str, float]
) -> None:
    released = threading.Event()
    openai.answer = lambda *_: Answer(after=released)
    async with encoder_of(openai, **seconds) as encoder:
        with pytest.raises(EncoderError, match=r"within 0\.5 s"):
            await encoder.encode(TEXTS)
    released.set()

    assert len(openai.bodies) <= 1


@pytest.mark.requirement("P25")
async def test_a_slow_answer_stalls_no_other_text(openai: Service) -> None:
    released = threading.Event()
    openai.answer = lambda texts, _: Answer(after=released) if "slow" in texts else RIGHT
    async with encoder_of(openai, timeout=30, total_timeout=30) as encoder:
        cached = CachedEncoder(encoder, MemoryEmbeddings())
        slow = asyncio.create_task(cached.encode(["slow"]))
        await asyncio.to_thread(openai.arrived.wait)

        await cached.encode(["quick"])

        assert not slow.done()
        released.set()
        assert (await slow).shape == (1, 32)


@pytest.mark.requirement("P25")
async def test_many_texts_are_no_reason_to_hold_up_the_event_loop(openai: Service) -> None:
    openai.dimensions = 1536
    texts = [f"tool {number} " + "does this and that " * 20 for number in range(512)]
    longest = 0.0

    async def watch() -> None:
        nonlocal longest
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0)
            longest = max(longest, time.perf_counter() - before)

    watching = asyncio.create_task(watch())
    async with encoder_of(openai, timeout=60, total_timeout=60) as encoder:
        started = time.perf_counter()
        await encoder.encode(texts)
        took = time.perf_counter() - started
    watching.cancel()

    assert longest < max(0.25, took / 2)


BAD: dict[str, Answer] = {
    "not finite numbers": Answer(rows=[{"index": n, "embedding": [float("nan")] * 32} for n in range(3)]),
    "a vector of length 0": Answer(rows=[{"index": n, "embedding": [0] * 32} for n in range(3)]),
    "2 vectors for 3 texts": Answer(rows=[{"index": n, "embedding": [1] * 32} for n in range(2)]),
    "indexes that do not match": Answer(rows=[{"index": 1, "embedding": [1] * 32} for _ in range(3)]),
    "different widths": Answer(rows=[{"index": n, "embedding": [1] * (n + 1)} for n in range(3)]),
    "not lists of numbers": Answer(rows=[{"index": n, "embedding": "not base64!"} for n in range(3)]),
    "not a list of embeddings": Answer(body=b'{"data": "my password is hunter2"}'),
    "is not a list of embeddings": Answer(body=b"<html>"),
}


@pytest.mark.parametrize("said", BAD)
async def test_an_answer_that_makes_no_sense_is_an_error(openai: Service, said: str) -> None:
    openai.answer = lambda *_: BAD[said]
    async with encoder_of(openai) as encoder:
        with pytest.raises(EncoderError, match=said):
            await encoder.encode(TEXTS)


async def test_vectors_of_another_width_than_before_are_an_error(openai: Service) -> None:
    async with encoder_of(openai) as encoder:
        await encoder.encode(["tides"])
        openai.dimensions = 64

        with pytest.raises(EncoderError, match="64 numbers instead of 32"):
            await encoder.encode(["bicycles"])


async def test_a_service_that_failed_is_left_alone_for_a_moment_and_then_tried_again(
    openai: Service, clock: FakeClock
) -> None:
    openai.answer = lambda _, number: Answer(status=401) if number == 0 else RIGHT
    async with encoder_of(openai, clock=clock) as encoder:
        for _ in range(3):
            with pytest.raises(EncoderError, match="401"):
                await encoder.encode(TEXTS)
        asked = len(openai.bodies)
        clock.advance(5)

        assert (await encoder.encode(TEXTS)).shape == (3, 32)
    assert asked == 1


async def test_texts_that_are_refused_take_nothing_from_others(openai: Service) -> None:
    openai.answer = lambda texts, _: Answer(status=400) if "bad" in texts else RIGHT
    async with encoder_of(openai) as encoder:
        with pytest.raises(EncoderError, match="400: it rejects the texts"):
            await encoder.encode(["bad"])

        assert (await encoder.encode(["good"])).shape == (1, 32)


@pytest.mark.requirement("M4")
async def test_a_storm_of_callers_sends_each_text_once(openai: Service) -> None:
    texts = [f"tool {number}" for number in range(20)]
    async with encoder_of(openai, batch=7) as encoder:
        cached = CachedEncoder(encoder, MemoryEmbeddings())
        await asyncio.gather(*(cached.encode(texts[start:] + texts[:start]) for start in range(20)))

    assert sorted(openai.texts) == sorted(texts)


def test_one_encoder_serves_several_event_loops_one_after_the_other(openai: Service) -> None:
    chosen = embedding_service(EncoderSettings(**KINDS["openai"], base_url=openai.base_url))
    breaker = Breaker(FakeClock(), EncoderError, name="The encoder", rest=5, meanwhile="words rank")
    encoder = RemoteEncoder(chosen, key=KEY, counter=BpeCounter(), breaker=breaker)

    async def used() -> None:
        await encoder.encode(TEXTS)
        await encoder.close()

    for _ in range(3):
        asyncio.run(used())

    assert len(openai.bodies) == 3


@pytest.mark.requirement("M30")
@pytest.mark.parametrize(
    "answer",
    [
        lambda *_: Answer(status=400),
        lambda *_: Answer(status=500),
        lambda *_: Answer(body=f'{{"data": "{SECRET} {KEY}"}}'.encode()),
        lambda *_: Answer(status=301, headers={"Location": f"http://127.0.0.1:9/?key={KEY}"}),
        lambda *_: Answer(cut=True),
    ],
)
async def test_neither_key_nor_text_reaches_an_error_a_log_or_a_representation(
    openai: Service, answer: Callable[..., Answer], caplog: pytest.LogCaptureFixture
) -> None:
    openai.answer = answer
    with caplog.at_level(logging.DEBUG, "pegboard"):
        async with encoder_of(openai) as encoder:
            with pytest.raises(EncoderError) as raised:
                await encoder.encode([SECRET])
            shown = repr(encoder) + repr(encoder.__dict__["_service"])

    told = "".join(traceback.format_exception(raised.value)) + str(raised.value.payload()) + caplog.text + shown
    assert KEY not in told
    assert SECRET not in told


@pytest.mark.requirement("M30")
async def test_a_key_that_is_wrong_is_said_without_the_key(openai: Service) -> None:
    async with encoder_of(openai, key="sk-wrong") as encoder:
        with pytest.raises(EncoderError, match="401: it does not accept the key") as raised:
            await encoder.encode(TEXTS)

    assert "sk-wrong" not in str(raised.value)
