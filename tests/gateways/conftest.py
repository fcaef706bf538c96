"""`pegboard serve` in this process, before a provider of models of the test's own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from model_upstream import ModelUpstream, model_upstream
from pegboard.stores import MemoryEvents
from served import OpenGateway, opened_gateway


@pytest.fixture
async def upstream() -> AsyncIterator[ModelUpstream]:
    async with model_upstream() as opened:
        yield opened


@pytest.fixture
def gateway_of(upstream: ModelUpstream, events: MemoryEvents, tmp_path: Path) -> OpenGateway:
    """A gateway with ``upstream`` as openai, anthropic and gemini: options of its own, parts by `parts`."""
    return partial(opened_gateway, upstream, tmp_path, [events])
