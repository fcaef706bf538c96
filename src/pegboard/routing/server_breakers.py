"""Circuit breakers for servers that fail repeatedly, under every profile."""

from __future__ import annotations

import logging

from pegboard.circuit_breaker import Circuit, RestPolicy
from pegboard.model import Outcome
from pegboard.protocols import Clock

LOGGER = logging.getLogger(__name__)

POLICY = RestPolicy(failures=5, rest=30.0, longest=600.0)


class ServerBreakers:
    """The servers with open breakers. Shared by all boards of a process, and updated with every call.

    While a server's breaker is open, its tools are not offered. Afterwards they are, and the next call is the probe.
    Tools stay callable by name meanwhile, and an answered call closes the breaker. Errors of the caller do not count.
    """

    def __init__(self, clock: Clock, policy: RestPolicy = POLICY) -> None:
        self._clock = clock
        self._policy = policy
        self._circuits: dict[str, Circuit] = {}

    def resting(self) -> frozenset[str]:
        """The servers whose breakers are open now."""
        return frozenset(name for name, each in self._circuits.items() if each.resting)

    def adopt(self, policy: RestPolicy) -> None:
        """Use this policy from now on; an open breaker keeps its duration."""
        self._policy = policy
        for each in self._circuits.values():
            each.policy = policy

    def observe(self, outcome: Outcome) -> None:
        if outcome.failure in ("caller", "verdict") or not self._policy.failures:
            return
        server = outcome.tool.server
        if outcome.failure == "server":
            self._failed(server, began=self._clock.monotonic() - outcome.latency_ms / 1000)
        elif (circuit := self._circuits.pop(server, None)) is not None and not circuit.closed:
            LOGGER.warning("Server %s answers again: its tools are offered as before.", server)

    def _failed(self, server: str, *, began: float) -> None:
        circuit = self._circuits.setdefault(server, Circuit(self._clock, self._policy))
        if circuit.failed(began):
            LOGGER.warning(
                "Server %s failed %d times in a row: its tools are not offered for %.0f s.",
                server,
                circuit.failures,
                circuit.rest,
            )
