from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pegboard.model import Floats
from pegboard.testing import FakeEncoder


class Clausal(FakeEncoder):
    """Sees clauses in the light of the whole text."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    async def encode_clauses(self, text: str, spans: Sequence[tuple[int, int]]) -> Floats:
        self.asked.append(text)
        vectors = await self.encode([text, *(text[start:end] for start, end in spans)])
        return np.asarray(vectors)


def test_a_command_asks_for_clauses_as_the_gateway_does(run_json: Callable[..., Any], tools: Path) -> None:
    encoder, query = Clausal(), "list the issues of a repository, then warn of storms in a region"
    run_json("route", query, "--catalog", tools, encoder=encoder)

    assert set(encoder.asked) == {query}
