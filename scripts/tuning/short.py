"""Short requests, as agents put them to a search for tools: a verb, what it is done to, and often the server."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pegboard.retrieval.name_match import GROUPS
from pegboard.retrieval.name_words import LEADING_VERBS
from pegboard.retrieval.words import raw_words

REPLACED = 0.4
"""The share of the words with near-synonyms that one of those takes the place of."""
WITH_SERVER = 0.5
LONGEST = 4
OTHERS: Mapping[str, Sequence[str]] = {
    word: [other for other in line.split() if other != word] for line in GROUPS.split("\n") for word in line.split()
}


def short_requests(tools: Sequence[Mapping[str, Any]], seed: int) -> Iterator[dict[str, Any]]:
    """One request for each tool whose name is a verb and at most three words more."""
    draw = random.Random(seed)  # noqa: S311  # a sample, no secret
    for number, tool in enumerate(tools):
        of_server = raw_words(tool["server"].rpartition("/")[2])
        words = [word for word in raw_words(tool["name"]) if word not in of_server]
        if not 2 <= len(words) <= LONGEST or words[0] not in LEADING_VERBS:
            continue
        verb, *rest = (
            draw.choice(OTHERS[word]) if word in OTHERS and draw.random() < REPLACED else word for word in words
        )
        said = [verb, draw.choice(["", "a", "the", "my"]), *rest]
        if draw.random() < WITH_SERVER:
            said += [draw.choice(["in", "on", "with"]), *of_server]
        text = " ".join(filter(None, said))
        yield {"id": f"short-{number}", "query": text, "relevant": [[tool["server"], tool["name"]]]}
