"""Circuit breakers: a server that fails again and again is left alone for a while, under every profile."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from pegboard.model import Outcome
from pegboard.seams import Clock

LOGGER = logging.getLogger(__name__)


@dataclass(slots=True)
class _Circuit:
    """``failures`` in a row; since when it is open, and until when the server rests (monotonic seconds)."""

    failures: int = 0
    opened: float | None = None
    until: float = 0.0
    rest: float = 0.0


class Resting:
    """Which servers are left alone. One for all boards of a process, fed with every call.

    After ``failures`` failures of a server in a row (0: never) its tools are offered no more for ``rest`` seconds. Then
    they are again (the circuit is half open), and the next call is the probe. If the server fails, it rests twice as
    long as before, at most ``longest`` seconds; if it answers, whatever it says, all is as it was. Tools stay callable
    by name meanwhile, and such a call that is answered ends the rest. What the caller did wrong shows nothing, and nor
    does the failure of a call that began before the rest was over.
    """

    def __init__(self, clock: Clock, *, failures: int = 5, rest: float = 30.0, longest: float = 600.0) -> None:
        self._clock = clock
        self._failures = failures
        self._rest = rest
        self._longest = longest
        self._circuits: dict[str, _Circuit] = {}

    def servers(self) -> frozenset[str]:
        """Those that rest now."""
        now = self._clock.monotonic()
        return frozenset(name for name, each in self._circuits.items() if each.opened is not None and now < each.until)

    def adopt(self, *, failures: int, rest: float, longest: float) -> None:
        """Go by these from now on; what rests now rests as it was told."""
        self._failures, self._rest, self._longest = failures, rest, longest

    def observe(self, outcome: Outcome) -> None:
        if outcome.failure in ("caller", "verdict") or not self._failures:
            return
        server = outcome.tool.server
        if outcome.failure == "server":
            self._failed(server, began=self._clock.monotonic() - outcome.latency_ms / 1000)
        elif (circuit := self._circuits.pop(server, None)) is not None and circuit.opened is not None:
            LOGGER.warning("Server %s answers again: its tools are offered as before.", server)

    def _failed(self, server: str, *, began: float) -> None:
        circuit, now = self._circuits.setdefault(server, _Circuit()), self._clock.monotonic()
        circuit.failures += 1
        if circuit.opened is None:
            if circuit.failures < self._failures:
                return
            circuit.rest = self._rest
        elif now < circuit.until or began < circuit.until:
            return
        else:
            circuit.rest = min(2 * circuit.rest, self._longest)
        circuit.opened, circuit.until = now, now + circuit.rest
        LOGGER.warning(
            "Server %s failed %d times in a row: its tools are not offered for %.0f s.",
            server,
            circuit.failures,
            circuit.rest,
        )
