from __future__ import annotations

import numpy as np
import pytest

from pegboard.errors import EncoderError
from pegboard.testing import FakeClock, FakeEncoder, fake_tool


def test_the_fake_clock_moves_when_told_to() -> None:
    clock = FakeClock(5)
    clock.advance(2.5)

    assert clock.time() == clock.monotonic() == 7.5


async def test_the_fake_encoder_puts_texts_near_that_share_words() -> None:
    encoder = FakeEncoder()

    vectors = await encoder.encode(["renew a loan", "loans are renewed", "high water", ""])

    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert vectors[0] @ vectors[1] > 0.99
    assert vectors[0] @ vectors[2] < 0.1
    assert encoder.encoded == ["renew a loan", "loans are renewed", "high water", ""]
    assert (await encoder.encode([])).shape == (0, 256)


async def test_a_broken_fake_encoder_raises() -> None:
    with pytest.raises(EncoderError):
        await FakeEncoder(broken=True).encode(["x"])


def test_a_fake_tool_looks_like_a_listed_one() -> None:
    assert fake_tool("send", "Send it.").definition == {
        "name": "send",
        "description": "Send it.",
        "inputSchema": {"type": "object"},
    }
