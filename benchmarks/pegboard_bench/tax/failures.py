"""Why a step's tool was not there: the classes of Tool Attention §7.5, told from the text by rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from pegboard.catalog import Catalog
from pegboard.model import ToolId
from pegboard.retrieval.words import FUNCTION_WORDS, raw_words
from pegboard_bench.tax.boards import Place
from pegboard_bench.tax.job_run import runner
from pegboard_bench.tax.methods import methods
from pegboard_bench.tax.tasks import Step, Task
from pegboard_bench.tax.testbeds import Testbed, testbed

CLASSES: Mapping[str, str] = {
    "follow_up": "an elliptical follow-up",
    "several": "a message of several requests",
    "ambiguous": "a tool of much the same name was chosen",
    "other_words": "no word in common with name and description",
    "other": "none of these",
}
ALIKE = 0.5
"""Share of the words of two names, from which on they are much the same."""


def failed(bed: str, method: str, seed: int, count: int, place: Place) -> Mapping[str, Any]:
    """Steps that failed, by class, and how many steps there were."""
    return runner().run(_failed(testbed(bed, place.data), method, seed, count, place))


async def _failed(bed: Testbed, method: str, seed: int, count: int, place: Place) -> Mapping[str, Any]:
    playing = methods()[method].make(place)
    await playing.begin(bed)
    classes: Counter[str] = Counter()
    steps = 0
    for task in bed.tasks(seed, count):
        for number, sent in enumerate(await playing.play(task)):
            step, steps = task.steps[number], steps + 1
            if not step.serves & sent.reached:
                classes[why(task, number, step, sent.reached, bed.catalog)] += 1
    return {"classes": dict(classes), "steps": steps}


def why(task: Task, number: int, step: Step, chosen: Collection[ToolId], catalog: Catalog) -> str:
    """The first class that fits, in the order of `CLASSES`."""
    tool = max(step.serves)
    if task.kind == "follow_up" and number:
        return "follow_up"
    if step.said is None or (number + 1 < len(task.steps) and task.steps[number + 1].said is None):
        return "several"
    if any(_alike(tool.name, other.name) >= ALIKE for other in chosen):
        return "ambiguous"
    if not _content(step.ask) & _content(f"{tool.name} {catalog[tool].description}"):
        return "other_words"
    return "other"


def _alike(name: str, other: str) -> float:
    """Jaccard's share of the words of two names."""
    mine, theirs = set(raw_words(name)), set(raw_words(other))
    return len(mine & theirs) / max(1, len(mine | theirs))


def _content(text: str) -> set[str]:
    return set(raw_words(text)) - FUNCTION_WORDS
