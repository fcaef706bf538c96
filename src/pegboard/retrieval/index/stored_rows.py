"""What indexes on servers have in common: keys of tools, digests of vectors, and the order of what was found."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence

import numpy as np

from pegboard.model import Floats, ToolId
from pegboard.protocols import Hits


def key_of(tool: ToolId) -> str:
    """The tool as one line of ASCII, whatever characters its names have.

    >>> key_of(ToolId("sea", "tide"))
    '["sea", "tide"]'
    """
    return json.dumps(tool)


def tool_of(key: str) -> ToolId:
    return ToolId(*json.loads(key))


def digest(vector: Floats) -> str:
    """Tells whether a stored vector is still the same."""
    return hashlib.sha256(np.asarray(vector, "<f4").tobytes()).hexdigest()[:32]


def batches(tools: Sequence[ToolId], size: int) -> Iterator[Sequence[ToolId]]:
    return (tools[start : start + size] for start in range(0, len(tools), size))


def best(hits: Hits, k: int) -> Hits:
    """The k best; ties in the order of the tools."""
    return sorted(hits, key=lambda hit: (-hit[1], hit[0]))[:k]


def is_settled(passing: Hits, seen: Hits, k: int) -> bool:
    """Whether k results pass, and no unseen one can be as good as the last of them."""
    return len(passing) >= k and passing[k - 1][1] > seen[-1][1]
