"""What EHRR is set to (seed 001, table V)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from pegboard.model import Smoothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """The seed's hyperparameters; the defaults are table V, and where it has none, what the text says.

    ``servers`` is k and ``tools`` is n (None: all of them). ``base`` and ``offset`` are p_bs and p_ofs, USD a call;
    ``reference`` is L_0, seconds; ``cap`` is B, USD a call (proposition 3; the seed's evaluation has none).
    ``server_weight`` and ``tool_weight`` are α_s and α_t, 1/s; ``seconds_per_usd`` is κ; ``floor`` is ε.
    ``route_overhead`` is L^route, seconds, a constant of the client for which the seed gives no value.
    ``per_attempt`` bills each retry: κ·p is divided by the chance of success as the time is (the variant below eq. 6).
    """

    servers: int | None = 5
    tools: int | None = 3
    base: float = 0.0025
    offset: float = 0.0225
    reference: float = 1.0
    cap: float | None = None
    server_weight: float = 0.1
    tool_weight: float = 0.25
    seconds_per_usd: float = 1.0
    floor: float = 1e-3
    route_overhead: float = 0.0
    per_attempt: bool = False
    smoothing: Smoothing = field(default_factory=Smoothing)

    def capped(self, most: float | None) -> Parameters:
        """With a cap that is ``most`` USD a call, or what it is where that is less.

        >>> Parameters(cap=0.02).capped(0.05).cap, Parameters().capped(0.05).cap
        (0.02, 0.05)
        """
        return self if most is None else replace(self, cap=most if self.cap is None else min(most, self.cap))
