"""What a conversation costs: its tokens as they are sent, and as a provider with a prompt cache bills them."""

from __future__ import annotations

from pegboard.programs.break_even import OUTPUT, READ, WRITTEN
from pegboard.protocols import TokenCounter


class Conversation:
    """Begins with definitions and a task; nothing of it is cached before. Every request sends all that came before."""

    def __init__(self, counter: TokenCounter, definitions: str, task: str) -> None:
        self._counter = counter
        self._context = self._count(definitions) + self._count(task)
        self._cached = 0
        self.tokens = 0
        self.bill = 0.0
        self.requests = 0

    def write(self, *said: str) -> None:
        """One request, whose answer is what the model ``said``: one call, several, or words."""
        tokens = sum(map(self._count, said))
        self.requests += 1
        self.tokens += self._context + tokens
        self.bill += READ * self._cached + WRITTEN * (self._context - self._cached) + OUTPUT * tokens
        self._cached = self._context
        self._context += tokens

    def read(self, result: str) -> None:
        """The result of a call, which the next request sends."""
        self._context += self._count(result)

    def _count(self, text: str) -> int:
        return sum(self._counter.count([text]))
