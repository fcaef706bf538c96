"""One request whose tools are called through one, on its way there and back."""

from __future__ import annotations

from dataclasses import dataclass, field

from pegboard.gateways.llm.one_tool.format import OneToolFormat
from pegboard.gateways.llm.one_tool.gate import Gate
from pegboard.gateways.llm.way_back.way import MOST_ROUNDS
from pegboard.gateways.llm.way_back.wire import Document, Exchange


@dataclass(slots=True, kw_only=True)
class OneToolWay:
    """``rewritten`` is the request's body, ``sent`` the places of what the model sees in it.

    Calls that name no tool, or do not fit one, the gateway answers itself.
    """

    format: OneToolFormat
    gate: Gate
    rewritten: bytes
    sent: frozenset[int] = frozenset()
    exchanges: list[Exchange] = field(default_factory=list)

    @property
    def searches(self) -> int:
        return 0

    @property
    def found(self) -> list[str]:
        """The names of the tools whose definition the model got as an answer."""
        return self.gate.brought

    @property
    def rounds(self) -> list[frozenset[int]]:
        """The tools stay what they are."""
        return [self.sent] * len(self.exchanges)

    def body(self) -> bytes:
        """The request as it goes out now."""
        return self.format.continued(self.rewritten, self.exchanges) if self.exchanges else self.rewritten

    def held(self, name: str) -> bool:
        """Calls of ours wait: those that pass have other names by then."""
        return self.format.is_ours(name)

    def hides(self, name: str) -> bool:
        return self.format.is_ours(name)

    def goes_on(self, answer: Document) -> bool:
        """Whether the answer is for the gateway."""
        return len(self.exchanges) < MOST_ROUNDS and bool(self.format.waiting(answer))

    async def answer(self, answer: Document) -> None:
        """Answer its calls; the next `body` has the results."""
        results = [(call, self.gate.answer(meant)) for call, meant in self.format.waiting(answer)]
        self.exchanges.append(Exchange(answer=answer, results=results))
