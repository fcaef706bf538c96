"""The parts of a score in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pegboard.model import Candidate

MEANING: Mapping[str, str] = {
    "cosine": "by meaning (cosine of query and tool)",
    "bm25": "by shared words (BM25F over name, description, parameters, server)",
    "server": "by its server's meaning (cosine of query and server)",
    "keyword": "by keywords (1000 exact name, 100 in name, 10 in description, 1 in category)",
}
"""A part that is not listed here is called by its own name."""


def sentences(candidate: Candidate, order: Sequence[Candidate]) -> Iterator[str]:
    """Each part of the score: its value, and where it puts the tool among all."""
    for part, value in candidate.parts.items():
        better = sum(other.parts[part] > value for other in order)
        yield f"{value:.3f} {MEANING.get(part, f'by {part}')}: number {better + 1} of {len(order)}"
