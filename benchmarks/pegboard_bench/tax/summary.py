"""From outcomes to figures, whose names are stable, and to the tables of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from pegboard.catalog.ingest import read_catalog
from pegboard.evaluation.datasets import CATALOG
from pegboard.evaluation.ranking_metrics import bootstrap
from pegboard_bench.tax import equations, frontier
from pegboard_bench.tax.job_run import Job
from pegboard_bench.tax.peer_methods import sample
from pegboard_bench.tax.plan import Plan, rows_of
from pegboard_bench.tax.projection import projected
from pegboard_bench.tax.rows import TURN
from pegboard_bench.tax.testbeds import testbed

MEASURES = (
    *("first", "steady", "sent", "sent_o200k", "billed", "requests", "recall", "f1", "tools", "complete"),
    *("phase1", "phase2", "barred", "changed"),
)
SURE = frozenset({"first", "steady", "recall"})
"""Measures with an interval."""
BESIDE = ("hybrid", "simple")
"""Methods that stand beside peers, on the tasks that those were asked about."""
CATALOGS = ("catalog_klavis", "catalog_docker", "catalog_toolsdk", "mcp_large")
"""Recorded by others: their tax alone."""
SENSITIVE = (2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000)
"""C_task that ρ is shown for."""
Outcomes = Mapping[str, Mapping[str, Any]]


class Summary:
    """Everything that a run has found."""

    def __init__(self, plan: Plan, outcomes: Outcomes) -> None:
        self._plan = plan
        self._outcomes = outcomes
        self.methods = {bed: self._of(bed) for bed in plan.beds}
        self.ablations = {
            bed: {job.method: self._measured([job]) for job in plan.ablated() if job.testbed == bed and self._has(job)}
            for bed in plan.judged
        }
        self.peers = {bed: self._peers(bed) for bed in plan.judged if f"peers-{bed}" in outcomes}
        self.curves = {name: self._curves(name) for name in self._sets}

    def figures(self) -> dict[str, float]:
        found: dict[str, float] = {}
        for bed, methods in self.methods.items():
            for method, measured in (methods | self.peers.get(bed, {})).items():
                found |= _figures(bed, method, measured)
            found[f"tax_session/{bed}"] = equations.session_tax(self._catalog(bed).token_counts)
            found[f"alpha/{bed}"] = equations.alpha(self._catalog(bed))
        for bed, variants in self.ablations.items():
            for variant, measured in variants.items():
                found |= {f"ablation_{key}/{bed}/{variant}": measured[key][0] for key in ("phase2", "recall", "barred")}
        for (bed, method, kind), shares in self._poisoned():
            found |= {f"poisoned_{where}/{bed}/{method}/{kind}": share for where, share in shares.items()}
        for name, of in self._named("scaling"):
            found |= {f"scaling_{key}/{name}": value for key, value in of.items()}
        for name, methods in self.curves.items():
            for method, (tokens, recall) in methods.items():
                found[f"frontier_tokens_at_recall_0.9/{name}/{method}"] = _tokens_at(tokens, recall, 0.9)
        for (name, tokens, method), values in self._compared().items():
            found[f"frontier_recall/{name}/{method}/{tokens}"] = values["recall"]
        return {name: value for name, value in found.items() if np.isfinite(value)}

    def tables(self) -> dict[str, Any]:
        return {
            "plan": {
                "beds": list(self._plan.beds),
                "sets": list(self._sets),
                "parts": list(self._plan.parts),
                "largest": self._plan.largest,
                "jobs": len(self._plan.jobs()) + len(self._plan.peer_jobs()),
                "jobs_done": len(self._outcomes),
                "seeds": list(self._plan.seeds),
                "tasks": self._plan.tasks,
                "data": self._plan.place.data is not None,
                "untuned": self._plan.place.untuned is not None,
                "mpnet": self._plan.place.mpnet is not None,
                "peers": self._plan.place.peers is not None,
                "rankers": list(frontier.rankers(self._plan.place)),
            },
            "catalogs": {bed: self._about(bed) for bed in self._plan.beds},
            "recorded_by_others": self._others(),
            "methods": self.methods,
            "peers": self.peers,
            "beside_peers": {bed: self._beside(bed) for bed in self.peers},
            "peers_missing": {bed: self._outcomes[f"peers-{bed}"]["missing"] for bed in self.peers},
            "ablations": self.ablations,
            "poisoned": {"/".join(key): dict(shares) for key, shares in self._poisoned()},
            "scaling": {name: dict(of) for name, of in self._named("scaling")},
            "failures": {name: dict(of) for name, of in self._named("failed")},
            "curves": {
                name: {method: [_rounded(tokens), _rounded(recall, 4)] for method, (tokens, recall) in of.items()}
                for name, of in self.curves.items()
            },
            "compared": [
                {"set": name, "tokens": tokens, "method": method, **values}
                for (name, tokens, method), values in self._compared().items()
            ],
            "timings_ms": {
                f"{job.testbed}/{job.method}": round(self._outcomes[f"played-{job.name}"]["ms"], 3)
                for job in self._plan.played()
                if job.seed == self._plan.seeds[0] and self._has(job)
            },
        }

    @property
    def _sets(self) -> tuple[str, ...]:
        """Those of which every curve of ours is there."""
        wanted = [name for name in self._plan.jobs() if name.startswith("frontier-")]
        late = {name for name in wanted if name not in self._outcomes}
        there = self._plan.sets if "frontier" in self._plan.parts else ()
        return tuple(name for name in there if not any(each.startswith(f"frontier-{name}-") for each in late))

    def _has(self, job: Job) -> bool:
        return f"played-{job.name}" in self._outcomes

    def _catalog(self, bed: str) -> Any:
        return testbed(bed, self._plan.place.data).catalog

    def _about(self, bed: str) -> dict[str, Any]:
        catalog = self._catalog(bed)
        return {
            "tools": len(catalog),
            "tokens": sum(catalog.token_counts),
            "alpha": round(equations.alpha(catalog), 1),
            "session_tax": equations.session_tax(catalog.token_counts),
            "servers": equations.servers(catalog),
        }

    def _others(self) -> dict[str, Any]:
        data, found = self._plan.place.data, {}
        for name in CATALOGS if data is not None and not self._plan.quick else ():
            path = Path(str(data)) / name / CATALOG
            if path.is_file():
                catalog = read_catalog(path)
                by_server = [row["tokens"] for row in equations.servers(catalog).values()]
                found[name] = {
                    "servers": len(by_server),
                    "tools": len(catalog),
                    "tokens": sum(catalog.token_counts),
                    "alpha": round(equations.alpha(catalog), 1),
                    "server_quartiles": [round(each) for each in np.quantile(by_server, (0.25, 0.5, 0.75, 1.0))],
                }
        return found

    def _of(self, bed: str) -> dict[str, Any]:
        jobs = [job for job in self._plan.played() if job.testbed == bed and self._has(job)]
        methods = dict.fromkeys(job.method for job in jobs)
        return {method: self._measured([job for job in jobs if job.method == method]) for method in methods}

    def _measured(self, jobs: Sequence[Job]) -> dict[str, Any]:
        return measured(rows_of(self._outcomes, jobs))

    def _peers(self, bed: str) -> dict[str, Any]:
        return {peer: measured(rows) for peer, rows in self._outcomes[f"peers-{bed}"]["rows"].items()}

    def _beside(self, bed: str) -> dict[str, Any]:
        """On the tasks that peers were asked about."""
        seed, count = self._plan.seeds[0], self._plan.tasks
        drawn = testbed(bed, self._plan.place.data).tasks(seed, count)
        asked = {id(task) for task in sample(drawn)}
        found = {}
        for job in (Job(testbed=bed, method=method, seed=seed, tasks=count) for method in BESIDE):
            if self._has(job):
                rows = zip(drawn, rows_of(self._outcomes, [job]), strict=True)
                found[job.method] = measured([row for task, row in rows if id(task) in asked])
        return found

    def _named(self, prefix: str) -> list[tuple[str, Mapping[str, Any]]]:
        """Outcomes of a kind, by the rest of their names with slashes."""
        return [
            (name.removeprefix(f"{prefix}-").replace("-", "/"), of)
            for name, of in self._outcomes.items()
            if name.startswith(f"{prefix}-")
        ]

    def _poisoned(self) -> list[tuple[tuple[str, str, str], Mapping[str, float]]]:
        if not self._plan.judged:
            return []
        return [
            ((bed, method, kind), self._outcomes[f"poisoned-{bed}-{method}-{kind}"])
            for bed, method, kind in product(self._plan.judged, self._plan.methods, self._plan.kinds)
            if f"poisoned-{bed}-{method}-{kind}" in self._outcomes
        ]

    def _raw(self, name: str) -> dict[str, Mapping[str, Any]]:
        """The curves of a set, query by query."""
        prefix = f"frontier-{name}-"
        found = {key.removeprefix(prefix): of for key, of in self._outcomes.items() if key.startswith(prefix)}
        for key, of in self._outcomes.items():
            if key.startswith("frontier-peers-") and name in of:
                found |= of[name]["curves"]
        return found

    def _curves(self, name: str) -> dict[str, Any]:
        return {method: frontier.mean(of) for method, of in self._raw(name).items()}

    def _compared(self) -> dict[tuple[str, int, str], dict[str, float]]:
        """Recall at the same tokens, and ours minus the other's, query by query, with its interval."""
        found = {}
        for name in self._sets:
            curves = self._raw(name)
            ours = curves[frontier.OURS]
            for tokens, (method, of) in product(frontier.TOKENS, curves.items()):
                mine, theirs = frontier.recall_at(ours, tokens), frontier.recall_at(of, tokens)
                numbers = of.get("queries", range(len(mine)))
                gain = bootstrap(list(mine[list(numbers)] - theirs), np.random.default_rng(0))
                found[name, tokens, method] = {
                    "recall": round(float(theirs.mean()), 4),
                    "gain": round(gain.mean, 4),
                    "low": round(gain.low, 4),
                    "high": round(gain.high, 4),
                }
        return found


def measured(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Each measure as its mean, some with the bootstrap interval over tasks; recall by kind; ρ; what is projected."""
    found: dict[str, Any] = {
        name: (_interval if name in SURE else _mean)([float(row[name]) for row in rows])
        for name in (*MEASURES, "steps")
    }
    found["count"] = len(rows)
    found["recall_by_kind"] = {
        kind: _mean([row["recall"] for row in rows if row["kind"] == kind])
        for kind in dict.fromkeys(row["kind"] for row in rows)
    }
    long = [row["resident"] for row in rows if len(row["resident"]) >= TURN]
    if long:
        found["resident_t30"] = _mean([each[TURN - 1] for each in long])
        found["rho_t30"] = _interval([equations.utilization(each[TURN - 1]) for each in long])
        found["rho_cumulative_t30"] = _mean([equations.cumulative_utilization(each[:TURN]) for each in long])
        found["sensitivity"] = [
            [task, round(float(np.mean([equations.utilization(each[TURN - 1], task=task) for each in long])), 4)]
            for task in SENSITIVE
        ]
        found["resident_by_turn"] = [round(float(np.mean([each[turn] for each in long])), 1) for turn in range(TURN)]
        made = projected(
            rho=found["rho_t30"][0],
            recall=found["recall"][0],
            sent=found["sent"][0],
            requests=found["requests"][0],
            steps=found["steps"][0],
        )
        found["projected"] = {name: round(getattr(made, name), 4) for name in made.__slots__}
    return found


def _figures(bed: str, method: str, of: Mapping[str, Any]) -> dict[str, float]:
    found = {
        f"tokens_per_turn/{bed}/{method}/first": of["first"][0],
        f"tokens_per_turn/{bed}/{method}/steady": of["steady"][0],
        f"tokens_sent/{bed}/{method}": of["sent"][0],
        f"tokens_sent_o200k/{bed}/{method}": of["sent_o200k"][0],
        f"tokens_billed_cached/{bed}/{method}": of["billed"][0],
        f"tokens_phase1/{bed}/{method}": of["phase1"][0],
        f"tokens_phase2/{bed}/{method}": of["phase2"][0],
        f"requests_per_turn/{bed}/{method}": of["requests"][0],
        f"recall/{bed}/{method}": of["recall"][0],
        f"recall_low/{bed}/{method}": of["recall"][1],
        f"recall_high/{bed}/{method}": of["recall"][2],
        f"f1/{bed}/{method}": of["f1"][0],
        f"complete/{bed}/{method}": of["complete"][0],
    }
    for key in ("rho_t30", "rho_cumulative_t30", "resident_t30"):
        if key in of:
            found[f"{key}/{bed}/{method}"] = of[key][0]
    return found


def _mean(values: Sequence[float]) -> list[float]:
    """Without an interval, in the shape of one."""
    return [round(sum(values) / len(values), 4)]


def _interval(values: Sequence[float]) -> list[float]:
    if not values:
        return [float("nan")] * 3
    each = bootstrap(values, np.random.default_rng(0))
    return [round(each.mean, 4), round(each.low, 4), round(each.high, 4)]


def _tokens_at(tokens: Any, recall: Any, wanted: float) -> float:
    above = np.flatnonzero(np.asarray(recall) >= wanted)
    if not len(above):
        return float("nan")
    around = slice(max(0, int(above[0]) - 1), int(above[0]) + 1)
    return float(np.interp(wanted, recall[around], tokens[around]))


def _rounded(values: Any, digits: int = 1) -> list[float]:
    return [round(float(each), digits) for each in values]
