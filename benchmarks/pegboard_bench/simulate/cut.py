"""What the cut to five servers leaves to be found."""

from __future__ import annotations

import numpy as np

from pegboard.routing.economics import best
from pegboard_bench.simulate.policies import SERVERS
from pegboard_bench.simulate.run import Asked


def kept(asked: Asked) -> dict[str, float]:
    """The share of goals with a tool on the servers most similar to the query; of queries, those that lose none."""
    servers = list(dict.fromkeys(tool.server for tool in asked.tools))
    found = []
    for query, fitting in zip(asked.queries, asked.relevance.servers, strict=True):
        near = {servers[place] for place in best(fitting, np.ones(len(fitting), np.bool_), SERVERS)}
        alone = [(tool,) for tool in query.relevant if not any(tool in group for group in query.any_of)]
        found.append([any(tool.server in near for tool in goal) for goal in (*alone, *query.any_of)])
    return {
        "kept_by_cut": float(np.mean([hit for hits in found for hit in hits])),
        "whole_after_cut": float(np.mean([all(hits) for hits in found])),
    }
