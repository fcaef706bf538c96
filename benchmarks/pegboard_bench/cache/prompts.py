"""A request as a prompt cache sees it: blocks, each with the identity of everything up to its end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pegboard.prompt_cache.cache_prices import CachePrices

Block = tuple[int, int]
"""What a block says, as a number, and its tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A breakpoint at the end of block ``block``, counted from 1; ``lasting`` asks for the longer lifetime."""

    block: int
    lasting: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """``prefixes`` and ``ends``: for each block the identity and the tokens of all up to its end."""

    prefixes: Sequence[int]
    ends: Sequence[int]
    marks: Sequence[Mark] = ()

    @property
    def tokens(self) -> int:
        return self.ends[-1] if self.ends else 0


@dataclass(slots=True)
class Chain:
    """Blocks one after the other, in the order in which providers read them: tools, system, messages."""

    prefixes: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)

    def extend(self, blocks: Iterable[Block]) -> None:
        prefix = self.prefixes[-1] if self.prefixes else 0
        end = self.ends[-1] if self.ends else 0
        for said, tokens in blocks:
            prefix, end = hash((prefix, said, tokens)), end + tokens
            self.prefixes.append(prefix)
            self.ends.append(end)

    def prompt(self, marks: Sequence[Mark] = ()) -> Prompt:
        return Prompt(prefixes=self.prefixes, ends=self.ends, marks=marks)


def prompt(blocks: Iterable[Block], marks: Sequence[Mark] = ()) -> Prompt:
    chain = Chain()
    chain.extend(blocks)
    return chain.prompt(marks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of a request's input by what they cost; ``lasting`` were written for the longer lifetime."""

    read: int = 0
    written: int = 0
    lasting: int = 0
    plain: int = 0

    def billed(self, prices: CachePrices, lasting: CachePrices | None = None) -> float:
        """In tokens of plain input."""
        longer = (lasting or prices).write
        return prices.read * self.read + prices.write * self.written + longer * self.lasting + self.plain
