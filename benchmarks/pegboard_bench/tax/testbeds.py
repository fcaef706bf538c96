"""The testbeds: a catalog, the requests its tools serve, and tasks drawn from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path

from pegboard.catalog import Catalog
from pegboard.catalog.ingest import read_catalog
from pegboard.evaluation.datasets import CATALOG
from pegboard.settings import RuleSettings
from pegboard_bench.tax import made, phrases
from pegboard_bench.tax.phrases import Asks, Same
from pegboard_bench.tax.tasks import Drawn, Task, needs

RECORDED = "recorded.jsonl.gz"
"""What `pegboard bench record` took from public servers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Testbed:
    """``rules`` are the preconditions of its tools."""

    name: str
    catalog: Catalog
    asks: Asks
    same: Same

    def tasks(self, seed: int, count: int) -> tuple[Task, ...]:
        """The same ones for the same seed."""
        return Drawn(self.catalog, self.asks, self.same, f"{self.name}/{seed}").tasks(count)

    @property
    def rules(self) -> tuple[RuleSettings, ...]:
        wanted = ((tool.id, needs(tool.id)) for tool in self.catalog.tools)
        return tuple(RuleSettings(tools=str(tool), requires=need) for tool, need in wanted if need)


Reader = Callable[[Path | None], Testbed]


def _synthetic(_data: Path | None) -> Testbed:
    return _of("synthetic", made.synthetic(), phrases.made)


def _rounded(_data: Path | None) -> Testbed:
    return _of("synthetic_47k", made.synthetic(made.ROUNDED_TOTAL), phrases.made)


def _recorded(_data: Path | None) -> Testbed:
    return _of("recorded", recorded_catalog(), phrases.recorded)


def _real120(data: Path | None) -> Testbed:
    if data is None:
        raise FileNotFoundError("real120 is among the sets that PEGBOARD_DATA names")
    return _of("real120", read_catalog(data / "real120" / CATALOG), phrases.recorded)


def recorded_catalog() -> Catalog:
    with as_file(files(__package__) / RECORDED) as path:
        return read_catalog(path)


def _of(name: str, catalog: Catalog, requests: Callable[[Catalog], tuple[Asks, Same]]) -> Testbed:
    asks, same = requests(catalog)
    return Testbed(name=name, catalog=catalog, asks=asks, same=same)


TESTBEDS: dict[str, Reader] = {
    "synthetic": _synthetic,
    "synthetic_47k": _rounded,
    "recorded": _recorded,
    "real120": _real120,
}


def there(data: Path | None) -> tuple[str, ...]:
    """The names of those that can be had."""
    return tuple(
        name for name in TESTBEDS if name != "real120" or (data is not None and (data / name / CATALOG).is_file())
    )


@cache
def testbed(name: str, data: Path | None) -> Testbed:
    return TESTBEDS[name](data)
