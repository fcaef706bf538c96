"""Charts as SVG, without scripts or styles of their own: classes, and a title for each bar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT, GAP = 640, 140, 4
LABELS, SCALE = 18, 20
"""Heights of the line of labels, and of the one with the highest bar's value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A part of a bar, with the class that colours it; ``y`` and ``height`` in the units of the chart."""

    kind: str
    y: float
    height: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    label: str
    title: str
    x: float
    width: float
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BarChart:
    """Bars of stacked values, the highest of which is ``most``; ``summary`` says it to those who do not see it."""

    summary: str
    bars: tuple[Bar, ...]
    legend: tuple[tuple[str, str], ...]
    most: float
    width: int = WIDTH
    height: int = SCALE + HEIGHT + LABELS
    top: int = SCALE
    base: int = SCALE + HEIGHT

    @property
    def shown_labels(self) -> set[int]:
        """Places of the bars whose label has room."""
        every = max(1, -(-len(self.bars) // 8))
        return set(range(len(self.bars) - 1, -1, -every))


def bar_chart(
    summary: str, legend: Sequence[tuple[str, str]], days: Sequence[tuple[str, str, Sequence[float]]]
) -> BarChart:
    """``days`` are labels, titles and one value of each kind in ``legend`` (class, name), from the bottom up.

    >>> chart = bar_chart("Two days", [("sent", "sent")], [("1", "1: 5", [5.0]), ("2", "2: 10", [10.0])])
    >>> [bar.segments[0].height for bar in chart.bars]
    [70.0, 140.0]
    """
    most = max((sum(values) for _, _, values in days), default=0.0)
    step = WIDTH / max(1, len(days))
    bars = []
    for place, (label, title, values) in enumerate(days):
        bottom, segments = float(SCALE + HEIGHT), list[Segment]()
        for (kind, _), value in zip(legend, values, strict=True):
            height = round(HEIGHT * value / (most or 1.0), 2)
            bottom -= height
            segments.append(Segment(kind=kind, y=round(bottom, 2), height=height))
        width = min(step - GAP, 64.0)
        x = place * step + (step - width) / 2
        bars.append(Bar(label=label, title=title, x=round(x, 2), width=round(width, 2), segments=tuple(segments)))
    return BarChart(summary=summary, bars=tuple(bars), legend=tuple(legend), most=most)
