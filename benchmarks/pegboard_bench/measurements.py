"""Everything that is measured on labelled sets: quality of ours and of peers, and certainty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pegboard.compose import Parts, build_routing
from pegboard.evaluation.datasets import ToolSet
from pegboard.evaluation.methods import searches, ungated
from pegboard.evaluation.progress_bar import bar
from pegboard.routing_board import RoutingBoard
from pegboard.settings import Settings
from pegboard_bench import certainty, quality
from pegboard_bench.certainty import Judged
from pegboard_bench.peers import PeerRows
from pegboard_bench.quality import OURS, Quality, Row
from pegboard_bench.shared_catalogs import by_catalog, peers_of

MEANS = ("recall@5", "mrr", "ndcg@5")
TARGET = 0.9
"""The recall at which tokens are compared."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """``curves`` have (tokens, recall) by set and by how many tools are taken: `adaptive` or `fixed`."""

    qualities: Sequence[Quality] = ()
    reliability: certainty.Reliability | None = None
    ece: Mapping[str, float] = field(default_factory=dict)
    realised: Mapping[str, Mapping[float, float]] = field(default_factory=dict)
    curves: Mapping[str, Mapping[str, certainty.Curve]] = field(default_factory=dict)
    peers: Mapping[str, PeerRows] = field(default_factory=dict)

    def figures(self) -> dict[str, float]:
        found = {name: value for each in self.qualities for name, value in each.figures().items()}
        for metric in MEANS if self.qualities else ():
            found[f"{metric}/mean/{OURS}"] = float(np.mean([each.means[metric, OURS].mean for each in self.qualities]))
        for name, rows in self.peers.items():
            found |= {f"latency_p50_ms/{name}/{peer}": run.p50_ms for peer, run in rows.runs.items()}
        return found | self._certain()

    def _certain(self) -> dict[str, float]:
        if self.reliability is None:
            return {}
        found = {"ece_top20/unseen": self.reliability.ece, "brier_skill_top20/unseen": self.reliability.skill}
        found |= {f"ece_top20/{name}": value for name, value in self.ece.items()}
        for asked in certainty.ASKED:
            each = {name: of_set[asked] for name, of_set in self.realised.items()}
            found |= {f"realised_recall_{asked:g}/{name}": value for name, value in each.items()}
            found[f"realised_recall_{asked:g}/mean"] = float(np.mean(list(each.values())))
        for name, curves in self.curves.items():
            for method, label in (("adaptive", OURS), ("fixed", f"{OURS}_fixed_k")):
                tokens = curves[method].tokens_at(TARGET)
                found |= {} if tokens is None else {f"tokens_at_recall_{TARGET:g}/{name}/{label}": tokens}
        return found

    def tables(self) -> dict[str, Any]:
        return {
            "sets": {each.name: each.table() for each in self.qualities},
            "peers": {peer: run.version for rows in self.peers.values() for peer, run in rows.runs.items()},
            "peers_missing": {peer: why for rows in self.peers.values() for peer, why in rows.missing.items()},
            "reliability_bins": [list(each) for each in self.reliability.bins] if self.reliability else [],
            "curves": {
                name: {method: [list(curve.tokens), list(curve.recall)] for method, curve in curves.items()}
                for name, curves in self.curves.items()
            },
        }


async def measure(
    datasets: Sequence[ToolSet],
    settings: Settings,
    parts: Parts,
    *,
    untuned: Parts | None,
    peers: Path | None,
    seed: int,
) -> Measured:
    """One set after the other; then the peers, which are other processes."""
    rows: dict[str, dict[str, Row]] = {}
    judged: dict[str, list[Judged]] = {}
    for dataset in datasets:
        methods = await searches(dataset.catalog, settings, parts)
        if untuned is not None:
            methods["hybrid_untuned"] = ungated(await _warm(dataset, settings, untuned))
        with bar(dataset.name) as progress:
            rows[dataset.name] = await quality.measure(dataset, methods, progress)
        judged[dataset.name] = await certainty.judge(dataset, await _warm(dataset, settings, parts))
    found = await _peers(datasets, peers, seed) if peers is not None else {}
    for dataset in datasets:
        if dataset.name in found:
            rows[dataset.name] |= quality.measure_peers(dataset, found[dataset.name].runs)
    return Measured(
        qualities=[quality.summarize(name, of_set, seed=seed) for name, of_set in rows.items()],
        reliability=certainty.reliability(certainty.pooled(judged.values())) if judged else None,
        ece={name: certainty.reliability(of_set).ece for name, of_set in judged.items()},
        realised={
            name: {asked: certainty.realised(of_set, asked) for asked in certainty.ASKED}
            for name, of_set in judged.items()
        },
        curves={
            name: {"adaptive": certainty.adaptive(of_set), "fixed": certainty.fixed(of_set)}
            for name, of_set in judged.items()
        },
        peers=found,
    )


async def _peers(datasets: Sequence[ToolSet], folder: Path, seed: int) -> dict[str, PeerRows]:
    found: dict[str, PeerRows] = {}
    for together in by_catalog(datasets):
        label = "peers: " + ", ".join(dataset.name for dataset in together)
        with bar(label) as progress:
            found |= {dataset.name: rows for dataset, rows in await peers_of(together, folder, progress, seed=seed)}
    return found


async def _warm(dataset: ToolSet, settings: Settings, parts: Parts) -> RoutingBoard:
    board = build_routing(settings.model_copy(update={"profile": OURS}), dataset.catalog, parts=parts)
    await board.warm()
    return board
