"""The Prometheus metrics of a gateway as OpenTelemetry metrics: `pegboard_calls_total` is `pegboard.calls`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.metrics_core import Metric

OURS = "pegboard_"
UNITS = {"seconds": "s", "tokens": "{token}"}


def points_of(registry: CollectorRegistry) -> list[list[Any]]:
    """As `Histograms.metrics` has them; of counters and gauges, a point is attributes and a value."""
    return [_metric(each) for each in registry.collect() if each.name.startswith(OURS) and each.samples]


def _metric(metric: Metric) -> list[Any]:
    name = f"pegboard.{metric.name.removeprefix(OURS)}"
    unit = next((unit for word, unit in UNITS.items() if word in metric.name.split("_")), "1")
    if metric.type == "histogram":
        bounds, points = _histogram(metric)
        return [name, metric.documentation, unit, "histogram", bounds, points]
    kept = [each for each in metric.samples if not each.name.endswith("_created")]
    points = [[dict(each.labels), each.value] for each in kept]
    return [name, metric.documentation, unit, "sum" if metric.type == "counter" else "gauge", [], points]


def _histogram(metric: Metric) -> tuple[list[float], list[list[Any]]]:
    """Prometheus counts what is below each bound; OpenTelemetry, what is between two of them."""
    series: dict[tuple[tuple[str, str], ...], dict[str, Any]] = {}
    for each in metric.samples:
        labels = {name: value for name, value in each.labels.items() if name != "le"}
        found = series.setdefault(tuple(sorted(labels.items())), {"labels": labels, "below": [], "sum": 0.0})
        if each.name.endswith("_bucket"):
            found["below"].append((float(each.labels["le"]), int(each.value)))
        elif each.name.endswith("_sum"):
            found["sum"] = each.value
    bounds, points = list[float](), []
    for found in series.values():
        below = sorted(found["below"])
        bounds = [bound for bound, _ in below[:-1]]
        counts = [count - (below[place - 1][1] if place else 0) for place, (_, count) in enumerate(below)]
        points.append([found["labels"], counts, found["sum"], sum(counts), None, None])
    return bounds, points
