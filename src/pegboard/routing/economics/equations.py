"""EHRR's parameters, and its formulas, one function each, over arrays of any shape that broadcasts.

Times are seconds, money is US dollars a call, similarities and utilities have no unit. Indices: server i, its tool j.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pegboard.model import Mask, Smoothing

Array = NDArray[np.float64]
Places = NDArray[np.intp]
TABLE_V = Smoothing()


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """EHRR's hyperparameters. The defaults are those of table V, or of the text where the table has none.

    ``servers`` is k and ``tools`` is n (None: all of them). ``base`` and ``offset`` are p_bs and p_ofs, USD a call;
    ``reference`` is L_0, seconds; ``cap`` is B, USD a call (proposition 3; the paper's evaluation has none).
    ``server_weight`` and ``tool_weight`` are α_s and α_t, 1/s; ``seconds_per_usd`` is κ; ``floor`` is ε.
    ``route_overhead`` is L^route, seconds, a constant of the client for which the paper gives no value.
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
        """The parameters with a cap of at most ``most`` USD a call.

        >>> Parameters(cap=0.02).capped(0.05).cap, Parameters().capped(0.05).cap
        (0.02, 0.05)
        """
        return self if most is None else replace(self, cap=most if self.cap is None else min(most, self.cap))


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimates:
    """r, σ², p^fail (probabilities) and L (seconds) of servers or of tools: arrays of one shape (EHRR table III)."""

    success: Array
    variance: Array
    failure: Array
    latency: Array


def cosines(query: ArrayLike, texts: ArrayLike) -> Array:
    """cos(q, f) of a query, shape (d,), with each row of texts, shape (n, d): shape (n,); 0 where a vector is 0.

    >>> cosines([1.0, 0.0], [[2.0, 0.0], [-1.0, 0.0], [0.0, 0.0]])
    array([ 1., -1.,  0.])
    """
    q, f = np.asarray(query, np.float64), np.asarray(texts, np.float64)
    lengths = np.linalg.norm(q) * np.linalg.norm(f, axis=-1)
    return np.asarray(np.divide(f @ q, lengths, out=np.zeros(f.shape[:-1]), where=lengths > 0))


def similarity(cosine: ArrayLike) -> Array:
    """Sim(q, f) = max(0, cos(q, f)), in [0, 1] (EHRR eq. 1).

    >>> similarity([-0.2, 0.75])
    array([0.  , 0.75])
    """
    return np.maximum(0.0, np.asarray(cosine, np.float64))


def conservative_success(success: ArrayLike, variance: ArrayLike, *, floor: float = 1e-3) -> Array:
    """r~_i = max(ε, r_i − √σ²_i), a probability (EHRR, above eq. 2).

    >>> conservative_success([0.9, 0.5], [0.09, 0.25]).round(3)
    array([0.6  , 0.001])
    """
    return np.maximum(floor, np.asarray(success, np.float64) - np.sqrt(np.asarray(variance, np.float64)))


def overhead(route: ArrayLike, connection: ArrayLike) -> Array:
    """G_i = L^route + L^conn_i, seconds (EHRR, above eq. 2); L^conn is 0 if a connection is open."""
    return np.asarray(route, np.float64) + np.asarray(connection, np.float64)


def chance(failure: ArrayLike, success: ArrayLike, *, floor: float = 1e-3) -> Array:
    """β = max(ε, (1 − p^fail_i)·r), the probability that one attempt succeeds (EHRR eqs. 2 and 6).

    >>> float(chance(0.2, 0.45))
    0.36000000000000004
    """
    return np.maximum(floor, (1.0 - np.asarray(failure, np.float64)) * np.asarray(success, np.float64))


def time_to_success(attempt: ArrayLike, chance: ArrayLike) -> Array:
    """L/β, the expected seconds until an attempt of ``attempt`` seconds succeeds (EHRR lemma 1)."""
    return np.asarray(np.asarray(attempt, np.float64) / np.asarray(chance, np.float64))


def server_cost(overhead: ArrayLike, call_latency: ArrayLike, chance: ArrayLike) -> Array:
    """C^s_i = (G_i + L^call_i) / β_i, seconds, with β_i of r~_i (EHRR eq. 2).

    >>> server_cost([0.3, 0.6], [0.9, 0.6], chance([0.05, 0.2], [0.709, 0.45])).round(2)
    array([1.78, 3.33])
    """
    return time_to_success(np.asarray(overhead, np.float64) + np.asarray(call_latency, np.float64), chance)


def server_utility(similarity: ArrayLike, cost: ArrayLike, *, weight: float = 0.1) -> Array:
    """U_i = Sim(q, f_i) − α_s·C^s_i, no unit (EHRR eq. 3)."""
    return np.asarray(np.asarray(similarity, np.float64) - weight * np.asarray(cost, np.float64))


def posted_price(
    similarity: ArrayLike,
    cost: ArrayLike,
    *,
    base: float = 0.0025,
    offset: float = 0.0225,
    reference: float = 1.0,
    cap: float | None = None,
) -> Array:
    """τ_i = p_bs·Sim(q, f_i) + p_ofs·ln(1 + C^s_i/L_0), USD a call (EHRR eq. 4), at most B (proposition 3).

    >>> posted_price([0.75, 0.85], [1.78, 3.33]).round(4)
    array([0.0249, 0.0351])
    """
    price = base * np.asarray(similarity, np.float64) + offset * np.log1p(np.asarray(cost, np.float64) / reference)
    return np.asarray(price if cap is None else np.minimum(price, cap))


def accepts(ask: ArrayLike, posted: ArrayLike) -> Mask:
    """a_i = 1{c_i ≤ τ_i}, from a server's cost of a call and the posted price, both USD (EHRR eq. 5)."""
    return np.asarray(np.asarray(ask, np.float64) <= np.asarray(posted, np.float64), np.bool_)


def tool_cost(
    overhead: ArrayLike,
    latency: ArrayLike,
    chance: ArrayLike,
    price: ArrayLike,
    *,
    seconds_per_usd: float = 1.0,
    per_attempt: bool = False,
) -> Array:
    """C^t_ij = (G_i + l_ij) / β_ij + κ·p_ij, seconds, with β_ij of r_ij (EHRR eq. 6).

    ``per_attempt`` is the variant κ·p_ij / β_ij, which bills each retry.

    >>> tool_cost(0.3, [0.5, 0.8], chance(0.05, [0.9, 0.8]), [0.002, 0.020]).round(2)
    array([0.94, 1.47])
    """
    money = seconds_per_usd * np.asarray(price, np.float64)
    seconds = time_to_success(np.asarray(overhead, np.float64) + np.asarray(latency, np.float64), chance)
    return np.asarray(seconds + (money / np.asarray(chance, np.float64) if per_attempt else money))


def tool_utility(similarity: ArrayLike, cost: ArrayLike, *, weight: float = 0.25) -> Array:
    """U_ij = Sim(q, f_ij) − α_t·C^t_ij, no unit (EHRR eq. 7)."""
    return np.asarray(np.asarray(similarity, np.float64) - weight * np.asarray(cost, np.float64))


def observed(
    known: Estimates, *, success: ArrayLike, failure: ArrayLike, latency: ArrayLike, smoothing: Smoothing = TABLE_V
) -> Estimates:
    """The estimates after one call each: (1 − λ)·old + λ·observed, with (y − r)² observed for σ² (EHRR eq. 8).

    y is ``success`` and fail is ``failure``, 0 or 1; ``latency`` is in seconds. r in (y − r)² is the value before the
    call.
    """
    y, fail, seconds = (np.asarray(each, np.float64) for each in (success, failure, latency))
    return Estimates(
        success=moved(known.success, y, smoothing.success),
        variance=moved(known.variance, (y - known.success) ** 2, smoothing.variance),
        failure=moved(known.failure, fail, smoothing.failure),
        latency=moved(known.latency, seconds, smoothing.latency),
    )


def moved(old: ArrayLike, seen: ArrayLike, weight: float) -> Array:
    """(1 − λ)·old + λ·observed, the moving average of lemma 2; λ is ``weight``."""
    return np.asarray((1 - weight) * np.asarray(old, np.float64) + weight * np.asarray(seen, np.float64))


def best(utility: ArrayLike, among: Mask, at_most: int | None) -> Places:
    """The places of the ``at_most`` largest utilities in ``among``, best first, ties in order (EHRR eq. 9).

    The arrays have one dimension. Negative utilities are taken too, unlike in the sum of eq. 9a (see
    docs/economics.md).

    >>> best([0.2, 0.9, 0.2, 0.5], np.array([True, False, True, True]), 2)
    array([3, 0])
    """
    values = np.asarray(utility, np.float64)
    places = np.flatnonzero(among)
    if at_most is not None and at_most < len(places):
        bar = np.partition(values[places], len(places) - at_most)[len(places) - at_most] if at_most else np.inf
        places = places[values[places] >= bar]
    return np.asarray(places[np.argsort(-values[places], kind="stable")][:at_most], np.intp)
