"""A board for a command, warmed up, with a progress bar where that takes long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pegboard.bench.progress import bar
from pegboard.board import Board
from pegboard.catalog import Catalog
from pegboard.compose import build, opened_parts
from pegboard.model import Floats
from pegboard.retrieval.encoders.cached import texts_at_once
from pegboard.seams import ClauseEncoder, Encoder
from pegboard.settings import Settings

Replaced = Mapping[str, Any] | None
"""Parts of the board that a caller of the program in process put in, by name; tests do."""


class Counting:
    """An encoder that knows how many texts it was given, which tells a cold index from a warm one."""

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


class CountingClauses(Counting):
    """The same for an encoder that sees clauses in their text: a ranker asks it for those another way."""

    def __init__(self, encoder: Encoder, clauses: ClauseEncoder) -> None:
        super().__init__(encoder)
        self._clauses = clauses

    async def encode_clauses(self, text: str, spans: Sequence[tuple[int, int]]) -> Floats:
        self.texts += 1
        return await self._clauses.encode_clauses(text, spans)


def counting(encoder: Encoder) -> Counting:
    return CountingClauses(encoder, encoder) if isinstance(encoder, ClauseEncoder) else Counting(encoder)


async def warm_board(settings: Settings, catalog: Catalog, replaced: Replaced) -> tuple[Board, bool]:
    """The board, and whether its index was cold. Raises EncoderError where the profile's encoder cannot be used."""
    async with opened_parts(settings, **(replaced or {})) as parts:
        encoder = counting(parts.encoder)
        board = build(settings, catalog, parts=replace(parts, encoder=encoder))
        with bar("embedding tools") as progress:
            await board.warm(progress)
    return board, encoder.texts > 0
