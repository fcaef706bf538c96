"""Charts: one colour and line a method, names where lines end, readable in light and dark."""

from __future__ import annotations

from pathlib import Path

import pytest

from pegboard_bench.pictures import DARK, METHODS, begin, label_ends, save
from pegboard_bench.simulate.pictures import CURVES, LINES
from pegboard_bench.tax.pictures import DRAWN, RANKERS

pytest.importorskip("matplotlib")


def test_no_two_methods_look_alike() -> None:
    looks = [(method.color, str(method.dash), method.strong) for method in METHODS.values()]
    assert len(set(looks)) == len(looks)
    assert len({method.words for method in METHODS.values()}) == len(METHODS)


def test_every_method_that_is_drawn_has_a_look() -> None:
    assert {*DRAWN, *RANKERS, *CURVES, *LINES} <= METHODS.keys()


def test_lines_are_named_where_they_end_and_colours_follow_the_scheme(tmp_path: Path) -> None:
    begin(tmp_path)
    from matplotlib import pyplot

    pyplot.rcParams["svg.fonttype"] = "none"
    figure, axes = pyplot.subplots(layout="constrained")
    lines = [axes.plot([1, 2], [level, 5], **METHODS[name].line)[0] for level, name in enumerate(("hybrid", "full"))]
    label_ends(axes, lines)
    first, second = (text.get_position()[1] for text in axes.texts)
    assert [text.get_text() for text in axes.texts] == ["Pegboard", "all tools"]
    assert abs(first - second) > 0.01
    save(figure, tmp_path / "a.svg")
    drawn = (tmp_path / "a.svg").read_text()
    assert METHODS["hybrid"].color in drawn
    assert all(dark in drawn.partition("prefers-color-scheme: dark")[2] for dark in DARK.values())
