from __future__ import annotations

import pytest

from pegboard.catalog import Catalog
from pegboard.model import AgentState, Server, ServerName
from pegboard.testing import fake_tool
from pegboard_bench.tax.failures import why
from pegboard_bench.tax.tasks import Kind, Step, Task

WANTED, TWIN, OTHER = fake_tool("find_parcel", "Finds a parcel"), fake_tool("send_parcel"), fake_tool("add_user")
CATALOG = Catalog.build([(Server(name=ServerName("fake")), (WANTED, TWIN, OTHER))])


def step(said: str | None, ask: str) -> Step:
    return Step(said=said, ask=ask, serves=frozenset({WANTED.id}), state=AgentState())


@pytest.mark.parametrize(
    ("kind", "number", "said", "ask", "chosen", "found"),
    [
        ("follow_up", 1, "and for Maria?", "find the parcel of Maria", [], "follow_up"),
        ("multi", 1, None, "find the parcel", [], "several"),
        ("single", 0, "find my parcel", "find my parcel", [TWIN.id], "other"),
        ("single", 0, "find my parcel", "find my parcel", [fake_tool("find_parcel_now").id], "ambiguous"),
        ("single", 0, "track a box", "track a box", [OTHER.id], "other_words"),
    ],
)
def test_a_miss_has_the_first_class_that_fits(
    kind: Kind, number: int, said: str | None, ask: str, chosen: list[object], found: str
) -> None:
    steps = [step("find it", "find it")] * number + [step(said, ask)]
    task = Task(kind=kind, steps=tuple(steps))

    assert why(task, number, steps[number], chosen, CATALOG) == found  # type: ignore[arg-type]
