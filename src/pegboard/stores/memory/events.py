"""The latest events, for readers in the same process."""

from __future__ import annotations

from collections import deque

from pegboard.events import Event


class MemoryEvents:
    """The last ``capacity`` events."""

    def __init__(self, capacity: int = 1000) -> None:
        self._events: deque[Event] = deque(maxlen=capacity)

    def emit(self, event: Event) -> None:
        self._events.append(event)

    def of(self, kind: type[Event]) -> list[Event]:
        return [event for event in tuple(self._events) if isinstance(event, kind)]  # other threads go on appending

    def __len__(self) -> int:
        return len(self._events)
