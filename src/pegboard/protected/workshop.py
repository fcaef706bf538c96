"""An agent's own tools by what they say that they do: whoever has hands to work on files has them for a client's work.

Only where tools that run commands, read files and write files stand side by side does the client look like an agent
that works on its own; then its other trades count, too: planning, asking, finding, and coming to an end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

START = 600
"""Bytes of a definition that are looked at: they say what a tool is for."""
REACH = r"[^.]{0,60}"
TRADES = {
    "shell": r"\b(?:bash|shell|terminal|powershell|command line"
    r"|(?:run|execute)s? (?:a |the |any )?(?:\w+ )?commands?)\b",
    "read": rf"\b(?:read|view|open|show|display|look)\w*\b{REACH}\bfiles?\b",
    "write": rf"\b(?:writ|edit|modif|replac|patch|amend|chang|creat|overwrit)\w*\b{REACH}\b(?:files?|patch)\b",
    "find": rf"\b(?:search|find|grep|glob|list|match)\w*\b{REACH}"
    r"\b(?:files?|code(?:base)?|director(?:y|ies)|workspace|repository)\b",
    "web": rf"\b(?:fetch|search|brows|retriev)\w*\b{REACH}\b(?:web|urls?|internet)\b",
    "plan": r"\b(?:to-?dos?|task list|checklist|plans?)\b",
    "ask": rf"\b(?:ask|question|clarif)\w*\b{REACH}\b(?:user|human|person)\b",
    "end": rf"\b(?:complet|finish|final|done|end|conclu)\w*\b{REACH}"
    r"\b(?:tasks?|work|job|conversation|results?|answer)\b",
    "think": r"\b(?:think|reason|reflect|remember|memor)\w*\b",
    "delegate": r"\b(?:sub-?agents?|delegat\w+|background (?:task|process|shell)\w*)\b",
}
PATTERNS = {trade: re.compile(pattern, re.IGNORECASE) for trade, pattern in TRADES.items()}
HANDS = frozenset({"shell", "read", "write"})


def of_workshop(definitions: Sequence[bytes]) -> list[int]:
    """The places of an agent's own tools, the surest first; none where there is no agent to be seen."""
    trades = [trades_of(each[:START]) for each in definitions]
    if not frozenset().union(*trades) >= HANDS:
        return []
    return sorted((place for place, own in enumerate(trades) if own), key=lambda place: (-len(trades[place]), place))


@lru_cache(maxsize=8192)
def trades_of(start: bytes) -> frozenset[str]:
    """What a tool is for, by the start of its definition.

    >>> sorted(trades_of(b'{"name": "amend", "description": "Changes some lines of a file."}'))
    ['write']
    """
    text = start.decode("utf-8", "ignore")
    return frozenset(trade for trade, pattern in PATTERNS.items() if pattern.search(text))
