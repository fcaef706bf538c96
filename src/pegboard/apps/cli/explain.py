"""The parts of a score in words that a person can act on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pegboard.model import Candidate

MEANING: Mapping[str, str] = {
    "cosine": "by meaning (cosine of query and tool)",
    "clause": "by its nearest clause (cosine of that clause and the tool)",
    "bm25": "by shared words (BM25F over name, description, parameters, server)",
    "name": "by its name (how much of the name a clause says, and how little else)",
    "server": "by its server's meaning (cosine of query and server)",
    "keyword": "by keywords (1000 exact name, 100 in name, 10 in description, 1 in category)",
}
"""A part that is not listed here is called by its own name."""

BETTER: Mapping[str, str] = {
    "cosine": "a description that says what users ask for would bring it up",
    "clause": "no single wish of the query is near what its description says",
    "bm25": "the words of the query stand in none of its texts: `aliases` in the configuration add some",
    "server": "the server's description says little of this, or nothing",
    "keyword": "`aliases` in the configuration add words",
}
"""What to do about the part that holds a tool back most."""

BEHIND = 5
"""From this place on a part holds a tool back."""


def sentences(candidate: Candidate, order: Sequence[Candidate]) -> Iterator[str]:
    """Each part of the score: its value, and where it puts the tool among all; what to do about the worst of them."""
    places = {part: _place(part, value, order) for part, value in candidate.parts.items()}
    for part, value in candidate.parts.items():
        yield f"{value:.3f} {MEANING.get(part, f'by {part}')}: number {places[part]} of {len(order)}"
    worst = max(places, key=lambda part: places[part], default="")
    if worst in BETTER and places[worst] > BEHIND:
        yield f"Held back by {worst}: {BETTER[worst]}."


def _place(part: str, value: float, order: Sequence[Candidate]) -> int:
    return 1 + sum(other.parts[part] > value for other in order)
