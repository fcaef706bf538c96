"""Everything that is learnt from one deployment's queries, each thing kept only where it is better."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pegboard.bench.learning.labelled import Labelled, folds
from pegboard.bench.learning.sweep import Sweep, sweep
from pegboard.bench.learning.validation import Refit, refit
from pegboard.retrieval import Progress
from pegboard.retrieval.fusion import shipped
from pegboard.retrieval.local_fit import LocalFit
from pegboard.routing import Profile

FOLDS = 5
SEED = 42


@dataclass(frozen=True, slots=True, kw_only=True)
class Learnt:
    """The sweep of θ, and the fusions by name."""

    sweep: Sweep
    refits: Mapping[str, Refit]
    queries: int
    tools: int

    def kept(self, encoder: str) -> LocalFit | None:
        """What is better than before, for a file; None where nothing is."""
        fusions = {name: each.fusion for name, each in self.refits.items() if each.held_out.better}
        if not fusions and not self.sweep.better:
            return None
        origin = {"queries": self.queries, "tools": self.tools, "folds": FOLDS, "seed": SEED}
        threshold = self.sweep.best if self.sweep.better else None
        return LocalFit(encoder=encoder, fusions=fusions, threshold=threshold, origin=origin)


def learn(
    attention: Sequence[Labelled], hybrid: Sequence[Labelled], profile: Profile, progress: Progress | None = None
) -> Learnt:
    """From the same queries as both profiles see them; ``profile`` is `attention`, with the θ and k from before."""
    fold_of = folds([query.text for query in hybrid], FOLDS, SEED)
    before = profile.threshold or 0.0
    return Learnt(
        sweep=sweep(attention, profile.k, before, fold_of, SEED),
        refits={
            name: refit(hybrid, fusion, fold_of=fold_of, seed=SEED, progress=progress)
            for name, fusion in shipped().items()
        },
        queries=len(hybrid),
        tools=len(hybrid[0].canonical),
    )
