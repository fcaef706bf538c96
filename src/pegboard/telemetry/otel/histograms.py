"""Histograms by attributes, summed up in this process: an exporter gets sums, not values."""

from __future__ import annotations

from bisect import bisect_left
from threading import Lock
from typing import Any

from pegboard.telemetry.otel.conventions import BOUNDS, METRICS, MODEL_TOKENS, OF_MODEL
from pegboard.telemetry.trace_spans import Attribute

MOST_SERIES = 2_000
"""Different attributes of one histogram; clients choose names of models and tools."""
OVERFLOW: dict[str, Attribute] = {"otel.metric.overflow": True}
"""The attributes of all others (OpenTelemetry, metrics SDK, cardinality limits)."""


class Histograms:
    """Safe from any thread."""

    def __init__(self) -> None:
        self._series: dict[str, dict[tuple[Any, ...], list[Any]]] = {name: {} for name in METRICS}
        self._lock = Lock()

    def record(self, name: str, value: float, attributes: dict[str, Attribute]) -> None:
        """Of the attributes, those that the conventions give to the metric are kept."""
        self._add(name, value, tuple(map(attributes.get, METRICS[name][2])))

    def record_tokens(self, read: int, written: int, attributes: dict[str, Attribute]) -> None:
        """The tokens that a model read and wrote, as the conventions count them."""
        shared = tuple(map(attributes.get, OF_MODEL))
        self._add(MODEL_TOKENS, read, (*shared, "input"))
        self._add(MODEL_TOKENS, written, (*shared, "output"))

    def _add(self, name: str, value: float, key: tuple[Any, ...]) -> None:
        bounds = BOUNDS[name]
        with self._lock:
            series = self._series[name]
            found = series.get(key)
            if found is None:
                if len(series) >= MOST_SERIES:
                    key = ()
                found = series.setdefault(key, [[0] * (len(bounds) + 1), 0.0, 0, value, value])
            found[0][bisect_left(bounds, value)] += 1
            found[1] += value
            found[2] += 1
            if value < found[3]:  # four times as fast as min
                found[3] = value
            if value > found[4]:
                found[4] = value

    def metrics(self) -> list[list[Any]]:
        """Each as name, description, unit, kind, bounds and points; a point is attributes, counts, sum, count, least
        and greatest value."""
        with self._lock:
            found = {
                name: [[key, [*kept[0]], *kept[1:]] for key, kept in series.items()]
                for name, series in self._series.items()
                if series
            }
        made = []
        for name, points in found.items():
            unit, says, names = METRICS[name]
            rows = [[_attributes(names, key), *rest] for key, *rest in points]
            made.append([name, says, unit, "histogram", list(BOUNDS[name]), rows])
        return made


def _attributes(names: tuple[str, ...], key: tuple[Any, ...]) -> dict[str, Any]:
    if not key:
        return dict(OVERFLOW)
    return {name: value for name, value in zip(names, key, strict=True) if value is not None}
