"""Pins in memory."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pegboard.model import NEVER, Fingerprint, Pin, ToolId, Wording
from pegboard.protocols import NO_TEXTS


class MemoryPins:
    def __init__(self) -> None:
        self._pins: dict[ToolId, Pin] = {}
        self._texts: dict[ToolId, dict[Fingerprint, str]] = {}
        self._version = 0

    async def get(self, tools: Sequence[ToolId] | None = None) -> Mapping[ToolId, Pin]:
        return {tool: self._pins[tool] for tool in (self._pins if tools is None else tools) if tool in self._pins}

    async def put(
        self,
        seen: Mapping[ToolId, Fingerprint],
        *,
        texts: Mapping[ToolId, str] = NO_TEXTS,
        doubted: Collection[ToolId] = (),
    ) -> Mapping[ToolId, Pin]:
        for tool, fingerprint in seen.items():
            known = self._pins.get(tool)
            first = NEVER if tool in doubted else fingerprint
            self._keep(tool, Pin(approved=known.approved if known else first, seen=fingerprint))
            if tool in texts:
                self._texts[tool][fingerprint] = texts[tool]
        return await self.get(list(seen))

    async def approve(self, tools: Mapping[ToolId, Fingerprint]) -> None:
        for tool, fingerprint in tools.items():
            known = self._pins.get(tool)
            self._keep(tool, Pin(approved=fingerprint, seen=known.seen if known else fingerprint))
        self._version += 1

    async def wordings(self, tools: Sequence[ToolId]) -> Mapping[ToolId, Wording]:
        pins = await self.get(tools)
        return {
            tool: Wording(approved=self._texts[tool].get(pin.approved), seen=self._texts[tool].get(pin.seen))
            for tool, pin in pins.items()
        }

    async def version(self) -> int:
        return self._version

    def _keep(self, tool: ToolId, pin: Pin) -> None:
        """Store the pin, and keep only the texts of its two fingerprints."""
        known = self._texts.get(tool, {})
        self._texts[tool] = {each: known[each] for each in (pin.approved, pin.seen) if each in known}
        self._pins[tool] = pin
