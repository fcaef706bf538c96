"""What gateways lose to the plain ones that served beside them: ratios by round, with intervals of a bootstrap.

Each round has one burst of every gateway. Two gateways are plain: `off` and the `control`. What the control loses to
`off` is noise, as the two do the same. An observed gateway is compared with the mean of both. A process is faster or
slower than another of the same code as long as it runs, by where its objects lie: gateways are started several times,
and a start is what the bootstrap draws, with all of its rounds.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pegboard.evaluation.ranking_metrics import LEVEL, RESAMPLES

PLAIN = ("off", "control")


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """Milliseconds of each request, requests a second, and milliseconds of CPU that a request took of the gateway, of
    its exporter and of the process that writes its activity."""

    took: Sequence[float]
    rate: float
    cpu: float
    exporter: float
    writer: float

    @property
    def p50(self) -> float:
        """Milliseconds."""
        return statistics.median(self.took)


def shuffled_rounds(names: Sequence[str], rounds: int, *, seed: int) -> Iterator[tuple[str, ...]]:
    """An order of the names for each round, each drawn by itself: no gateway always follows the same other one."""
    chance = random.Random(seed)  # noqa: S311
    for _ in range(rounds):
        yield tuple(chance.sample(names, len(names)))


def compared(found: Mapping[str, Sequence[Burst]], name: str, *, clients: int, starts: int = 1) -> dict[str, float]:
    """What a gateway loses to the plain ones of the same round: of time with one client; of requests a second, and of
    CPU, with more. `found` has the bursts of each gateway in the order of rounds, as many after each of the starts."""
    references = [found["off"]] if name in PLAIN else [found[plain] for plain in PLAIN]

    def against(value: Callable[[Burst], float]) -> tuple[list[float], list[float]]:
        """The value of the plain gateways, and of the other, in each round."""
        plain = [statistics.mean(map(value, bursts)) for bursts in zip(*references, strict=True)]
        return plain, [value(burst) for burst in found[name]]

    if clients == 1:
        plain, own = against(lambda burst: burst.p50)
        return {
            "p50_ms": statistics.median(plain),
            **median_interval(
                "p50_added_ms", [after - before for before, after in zip(plain, own, strict=True)], starts
            ),
        }
    rates = against(lambda burst: burst.rate)
    cpus = against(lambda burst: burst.cpu)
    return {
        "requests_a_second": statistics.median(rates[0]),
        **median_interval(
            "requests_lost_percent", [100 * (1 - own / plain) for plain, own in zip(*rates, strict=True)], starts
        ),
        "cpu_ms": statistics.median(cpus[0]),
        **median_interval("cpu_added_ms", [own - plain for plain, own in zip(*cpus, strict=True)], starts),
        "exporter_cpu_ms": statistics.median(burst.exporter for burst in found[name]),
        "writer_cpu_ms": statistics.median(burst.writer for burst in found[name]),
    }


def median_interval(name: str, values: Sequence[float], starts: int = 1) -> dict[str, float]:
    """The median, and the ends of its interval of 95% by bootstrap (Efron 1979, percentiles) over starts, each with all
    of its rounds; over rounds where there was one start."""
    groups = np.asarray(values).reshape(starts if starts > 1 else len(values), -1)
    drawn = np.random.default_rng(0).choice(groups, (RESAMPLES, len(groups)))
    low, high = np.quantile(np.median(drawn, axis=(1, 2)), ((1 - LEVEL) / 2, (1 + LEVEL) / 2))
    return {name: statistics.median(values), f"{name}_low": float(low), f"{name}_high": float(high)}
