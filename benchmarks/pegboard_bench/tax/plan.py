"""What a run does: every job by name, and what comes of them put together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pegboard_bench.tax import ablations, frontier, scale
from pegboard_bench.tax.boards import Place
from pegboard_bench.tax.failures import failed
from pegboard_bench.tax.job_run import Job, play
from pegboard_bench.tax.jobs import Jobs
from pegboard_bench.tax.methods import available
from pegboard_bench.tax.peer_methods import played_by_peers
from pegboard_bench.tax.poison import KINDS, poisoned
from pegboard_bench.tax.testbeds import there

SEEDS = (1, 2, 3)
TASKS = 500
QUICK_TASKS = 40
DEAR = frozenset({"simple_minilm", "attention_minilm"})
"""Left out of a quick run: they need another encoder."""
ROUNDED = "synthetic_47k"
ROUNDED_METHODS = ("full", "pruned", "simple", "attention", "attention_minilm", "hybrid")
PARTS = ("tokens", "ablations", "poisoning", "failures", "frontier", "scaling", "peers")
"""What a run has; `tokens` is the headline."""
MODEL = "model"
"""What a model calls: a part with a results file of its own."""
LARGEST = scale.SIZES[-1]
JUDGED = ("synthetic", "real120")
"""Testbeds of the ablations, of poisoning and of the classes of failures."""
LATER = ("-seed2", "-seed3", "-10000")
"""How names of jobs end that come last: without them there are wider intervals, and a shorter figure."""
EXPLAINED = ("attention", "attention_minilm", "hybrid")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Which testbeds and sets, which methods, which seeds, and how many tasks of each testbed."""

    place: Place
    beds: tuple[str, ...]
    sets: tuple[str, ...]
    methods: tuple[str, ...]
    seeds: tuple[int, ...] = SEEDS
    tasks: int = TASKS
    quick: bool = False
    parts: tuple[str, ...] = PARTS
    largest: int = LARGEST

    @classmethod
    def of(
        cls,
        place: Place,
        *,
        sets: Sequence[str] = (),
        methods: Sequence[str] = (),
        seeds: int = 3,
        quick: bool = False,
        parts: Sequence[str] = (),
        largest: int = LARGEST,
    ) -> Plan:
        """Everything there is, or what is named; ``sets`` may name testbeds and labelled sets."""
        beds = [name for name in there(place.data) if not sets or name in sets]
        labelled = [name for name in frontier.sets(place.data, sets) if not sets or name in sets]
        known = [name for name in available(place) if not methods or name in methods]
        if quick:
            beds = [name for name in beds if name != ROUNDED]
            labelled, known = [], [name for name in known if name not in DEAR]
        return cls(
            place=place,
            beds=tuple(beds),
            sets=tuple(labelled),
            methods=tuple(known),
            seeds=tuple(range(1, (1 if quick else seeds) + 1)),
            tasks=QUICK_TASKS if quick else TASKS,
            quick=quick,
            parts=tuple(part for part in (*PARTS, MODEL) if not parts or part in parts),
            largest=largest,
        )

    @property
    def only_model(self) -> bool:
        return self.parts == (MODEL,)

    @property
    def judged(self) -> tuple[str, ...]:
        return tuple(bed for bed in self.beds if bed in JUDGED)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Of attackers."""
        return () if "poisoning" not in self.parts else ("adapted",) if self.quick else KINDS

    def played(self) -> list[Job]:
        return [
            Job(testbed=bed, method=method, seed=seed, tasks=self.tasks)
            for bed in self.beds
            for method in self.methods
            if bed != ROUNDED or method in ROUNDED_METHODS
            for seed in (self.seeds if bed in JUDGED else self.seeds[:1])
        ]

    def ablated(self) -> list[Job]:
        if self.quick or "ablations" not in self.parts or "attention" not in self.methods:
            return []
        return [
            Job(testbed=bed, method=variant, seed=self.seeds[0], tasks=self.tasks)
            for bed in self.judged
            for variant in ablations.available(self.place)
        ]

    def jobs(self) -> Jobs:
        """Those of one process each, in the order of what they are worth: a run that is cut short has the first."""
        found = [
            *self._played(self.played()),
            *self._frontier(),
            *self._played(self.ablated()),
            *self._poisoned(),
            *self._failed(),
            *self._scaling(),
        ]
        return dict(sorted(found, key=lambda job: job[0].endswith(LATER)))

    def peer_jobs(self) -> Jobs:
        """Those that use every core by themselves."""
        if self.quick or self.place.peers is None or self.place.data is None or "peers" not in self.parts:
            return {}
        seed = self.seeds[0]
        found: dict[str, Any] = {
            f"peers-{bed}": (played_by_peers, (bed, seed, self.tasks, self.place)) for bed in self.judged
        }
        for names in frontier.together(self.sets, self.place.data):
            found[f"frontier-peers-{names[0]}"] = (frontier.peer_curves, (names, self.place, seed))
        return found

    def _frontier(self) -> Iterator[Any]:
        if "frontier" not in self.parts:
            return
        for name in self.sets:
            for method in (frontier.OURS, *frontier.rankers(self.place)):
                yield f"frontier-{name}-{method}", (frontier.curve, (name, method, self.place))

    def _scaling(self) -> Iterator[Any]:
        methods = [name for name in self.methods if name not in DEAR]
        for method, size in sorted(scale.wanted(methods, quick=self.quick), key=lambda pair: pair[1]):
            if "scaling" in self.parts and size <= self.largest:
                yield f"scaling-{method}-{size}", (scale.scaled, (method, size, self.place, self.seeds[0]))

    def _played(self, jobs: Iterable[Job]) -> Iterator[Any]:
        for job in jobs:
            yield f"played-{job.name}", (play, (job, self.place))

    def _poisoned(self) -> Iterator[Any]:
        for bed in self.judged:
            for method in self.methods:
                for kind in self.kinds:
                    arguments = (bed, method, kind, self.place, self.seeds[0])
                    yield f"poisoned-{bed}-{method}-{kind}", (poisoned, arguments)

    def _failed(self) -> Iterator[Any]:
        for bed in () if self.quick or "failures" not in self.parts else self.judged:
            for method in (name for name in EXPLAINED if name in self.methods):
                arguments = (bed, method, self.seeds[0], self.tasks, self.place)
                yield f"failed-{bed}-{method}", (failed, arguments)


def rows_of(outcomes: Mapping[str, Mapping[str, Any]], jobs: Iterable[Job]) -> list[Any]:
    """All tasks of these jobs."""
    return [row for job in jobs for row in outcomes[f"played-{job.name}"]["rows"]]
