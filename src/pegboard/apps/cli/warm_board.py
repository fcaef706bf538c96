"""Builds and warms up a board for a command, with a progress bar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pegboard.catalog import Catalog
from pegboard.compose import build_routing, opened_parts
from pegboard.evaluation.progress_bar import bar
from pegboard.model import Floats
from pegboard.protocols import ClauseEncoder, Encoder
from pegboard.retrieval.encoders.encoder_cache import texts_at_once
from pegboard.routing_board import RoutingBoard
from pegboard.settings import Settings

Replaced = Mapping[str, Any] | None
"""Parts of the board, by name, that an in-process caller of the program replaces; tests do."""


class CountingEncoder:
    """Counts the texts given to an encoder, which distinguishes a cold index from a warm one."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self.texts = 0

    @property
    def provider(self) -> str:
        return self._encoder.provider

    @property
    def model(self) -> str:
        return self._encoder.model

    @property
    def dimensions(self) -> int:
        return self._encoder.dimensions

    @property
    def at_once(self) -> int:
        return texts_at_once(self._encoder)

    async def encode(self, texts: Sequence[str]) -> Floats:
        self.texts += len(texts)
        return await self._encoder.encode(texts)


class CountingClauseEncoder(CountingEncoder):
    """The same for a `ClauseEncoder`, which rankers call by another method."""

    def __init__(self, encoder: Encoder, clauses: ClauseEncoder) -> None:
        super().__init__(encoder)
        self._clauses = clauses

    async def encode_clauses(self, text: str, spans: Sequence[tuple[int, int]]) -> Floats:
        self.texts += 1
        return await self._clauses.encode_clauses(text, spans)


def counting(encoder: Encoder) -> CountingEncoder:
    return CountingClauseEncoder(encoder, encoder) if isinstance(encoder, ClauseEncoder) else CountingEncoder(encoder)


async def warm_board(settings: Settings, catalog: Catalog, replaced: Replaced) -> tuple[RoutingBoard, bool]:
    """The board, and whether its index was cold. Raises EncoderError if the profile's encoder cannot be used."""
    async with opened_parts(settings, **(replaced or {})) as parts:
        encoder = counting(parts.encoder)
        board = build_routing(settings, catalog, parts=replace(parts, encoder=encoder))
        with bar("embedding tools") as progress:
            await board.warm(progress)
    return board, encoder.texts > 0
