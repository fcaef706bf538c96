from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pegboard_bench.simulate import calibrated, calibrated_page
from pegboard_bench.simulate.calls import Calls, Chance
from pegboard_bench.simulate.chooser import Setting, play
from pegboard_bench.simulate.run import known_of
from pegboard_bench.simulate.tasks import SUBTASK, tasks
from pegboard_bench.simulate.world import draw
from simulated import TOOLS, routes


def test_in_the_calibrated_world_calls_fail_as_in_the_traces() -> None:
    asked, world = routes(), draw(TOOLS, 1)
    task = tasks(asked.queries, asked.tokens, asked.canonical, world)[0]
    labelled = sorted(frozenset[int]().union(*task.goals))

    here = calibrated.of_task(world, task)

    assert here.success[labelled] == pytest.approx(0.90)
    assert np.delete(here.success, labelled) == pytest.approx(0.72)
    assert not here.crash.any()
    assert (here.price == world.price).all()


def test_what_is_offered_is_priced_whether_or_not_it_is_called() -> None:
    asked, world = routes(), draw(TOOLS, 1)
    known = known_of(asked, world)
    task = tasks(asked.queries, asked.tokens, asked.canonical, world)[0]
    setting = Setting(limits=replace(SUBTASK, calls=0), tokens=known.tokens, price=known.prices, seed=1, moment=0)

    episode = play(
        task, calibrated.routers(known)["rag_mcp", "task_text"], Calls(world, Chance.of(world, 1, 0)), setting
    )

    assert episode.paid == 0
    assert episode.offered > 0


def test_an_agent_that_prefers_first_places_calls_them_more() -> None:
    first, second, third = (np.exp(each) for each in calibrated.by_place())

    assert (first, second / first, third / first) == pytest.approx((1.0, 50 / 87, 39 / 87))


def test_the_two_by_two_has_figures_for_both_routers_with_both_texts_and_a_paragraph_for_a_reader() -> None:
    figures, changes = {}, {}
    for kind in calibrated.WORLDS:
        found = calibrated.played(routes(), (0, 1, 2), kind, lambda done, total: None)
        more, table = calibrated.summed(found, kind)
        figures |= {f"two_by_two/{name}": value for name, value in more.items()}
        changes |= table
    of = {"changes": changes, "worlds": 3, "steps": 6, "commit": "c" * 40, "date": "2026-11-24"}

    text = calibrated_page.part({"calibrated": of}, figures)

    assert len(figures) == 4 * len(calibrated.MEASURES) * len(calibrated.WORLDS)
    assert 0 <= figures["two_by_two/whole_task/ehrr/task_text/calibrated"] <= 1
    assert (
        figures["two_by_two/offered_usd/ehrr/task_text/frozen"] >= figures["two_by_two/cost_usd/ehrr/task_text/frozen"]
    )
    assert text.count("| `ehrr`") == 2
    assert "78.95%" in text
    assert calibrated_page.part({}, {}) == ""
