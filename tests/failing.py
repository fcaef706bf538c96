"""A store that can be down: every use of it raises StoreError then."""

from __future__ import annotations

from typing import Any

from pegboard.errors import StoreError


class Failing:
    """Any store, behind a wire that can be cut. ``deaf`` cuts it after the store has done what was asked."""

    def __init__(self, store: Any) -> None:
        self.store = store
        self.down = False
        self.deaf = False
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Any:
        async def ask(*arguments: Any, **named: Any) -> Any:
            self.asked.append(name)
            if self.down:
                raise StoreError("The store is down.", remedy="Start it.")
            result = await getattr(self.store, name)(*arguments, **named)
            if self.deaf:
                raise StoreError("The store hung up.", remedy="Look at it.")
            return result

        return ask
