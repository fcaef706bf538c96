"""Tools of clients that no row describes: a tool that does not look like part of a catalog is kept, as in doubt.

Catalogs show in the names: tools of one server share a prefix, or several tools do different things to one object. A
tool that shares nothing with the many beside it is likely the client's own. So is a tool that the instructions mention,
or one that agents work with (`agent_tools`). If names are inconclusive, nothing is inferred from them.

Agents' tools are recognized by their definitions: only if tools that run commands, read files and write files occur
together does the client look like an autonomous agent; then its other trades count, too: planning, asking, finding,
finishing.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import lru_cache

from pegboard.protection.table import LONGEST_NAME
from pegboard.retrieval.name_words import LEADING_VERBS, Word, words_of

START = 600
"""Bytes at the start of a definition that are examined: they say what a tool is for."""
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
SERVER = re.compile(r"[^_./:-][^./:]*?(?:__|--|::|[./:])(?=[^_./:-])")
"""A server prefix that clients put before a tool's name, with a separator that names do not contain."""
LEAST_MARKED = 10
"""From this many prefixed tools on, tools without a prefix are taken as the client's own."""
LEAST_ALIKE = 4
"""From this many tools on that begin with the same word, they belong to one server."""
LEAST_OF_OBJECT = 3
"""From this many different actions on one object on, the tools come from a catalog."""
HALF = 0.5
"""The share of tools that must come from catalogs before the others stand out."""
MOST = 32
"""The most tools kept in doubt, besides those that the instructions name: more would be a catalog."""
LISTED = 0.8
"""If the instructions name more than this share of the tools, they list them and single none out."""
MOST_LISTED = 40
"""Up to this many tools may all be the client's own."""
LONGEST = 200_000
"""Characters of the instructions that are examined."""
SEPARATORS = ".:/-"
WRITTEN = re.compile(r"[\w.:/-]+")
MARKED = tuple(map(re.compile, (r"[`'\"<*](\w+)(?=[`'\">*(])", r"\b(\w+)(?= tool\b)", r"\btool (?=(\w+))")))
"""A word that is marked as a name; what follows it may mark another one."""


def doubtful(names: Sequence[str], definitions: Sequence[bytes], instructions: Sequence[str]) -> set[int]:
    """The places of the tools that may be the client's own; of those that the instructions do not name, at most
    `MOST`."""
    own = [] if _is_marked(names) else agent_tools(definitions)
    return named_in(names, instructions) | set(list(dict.fromkeys([*conspicuous_in(names), *own]))[:MOST])


def conspicuous_in(names: Sequence[str]) -> list[int]:
    """Tools that share nothing with the catalog tools beside them, if those are the majority."""
    found = from_catalogs(names)
    others = [place for place in range(len(names)) if place not in found]
    return others if len(found) >= HALF * len(names) and len(others) <= MOST else []


def named_in(names: Sequence[str], instructions: Sequence[str]) -> set[int]:
    """Tools that the instructions name; a name that is an everyday word must be marked as a name."""
    text = "\n".join(instructions)[:LONGEST]
    written = frozenset(each.rstrip(SEPARATORS) for each in WRITTEN.findall(text)) - {""}
    named = {name for name in names if name in written}
    words = {name for name in named if _is_word(name)}
    named -= words - (_marked_in(text) if words else words)
    found = {place for place, name in enumerate(names) if name in named}
    return set() if len(found) > LISTED * len(names) and len(names) > MOST_LISTED else found


def from_catalogs(names: Sequence[str]) -> set[int]:
    """The places of tools that come from catalogs, judged by name alone."""
    if _is_marked(names):
        return {place for place, name in enumerate(names) if SERVER.match(name)}
    words = [words_of(name[:LONGEST_NAME]) for name in names]
    first = [_first_word(of_name) for of_name in words]
    uses = Counter(first)
    alike = {place for place, word in enumerate(first) if word and uses[word] >= LEAST_ALIKE}
    if len(alike) >= HALF * len(names):
        return alike
    objects = [frozenset(word.stem for word in of_name if word.is_about) for of_name in words]
    done: dict[frozenset[str], set[str]] = defaultdict(set)
    for of_name, about in zip(words, objects, strict=True):
        if about and of_name[0].text in LEADING_VERBS:
            done[about].add(of_name[0].stem)
    return alike | {place for place, about in enumerate(objects) if len(done.get(about, ())) >= LEAST_OF_OBJECT}


def _is_marked(names: Sequence[str]) -> bool:
    """Whether this client prefixes the tools of catalogs."""
    return sum(SERVER.match(name) is not None for name in names) >= LEAST_MARKED


def _first_word(name: Sequence[Word]) -> str:
    """The word that may stand for a server: not a verb, and followed by more than a number."""
    says_more = any(not word.text.isdigit() for word in name[1:])
    return name[0].stem if says_more and name[0].text not in LEADING_VERBS else ""


def _is_word(name: str) -> bool:
    return name.isalpha() and (name.islower() or name.istitle())


def _marked_in(text: str) -> frozenset[str]:
    """All words that a text marks as names, in as many passes as there are ways to mark one."""
    return frozenset(word for pattern in MARKED for word in pattern.findall(text))


def agent_tools(definitions: Sequence[bytes]) -> list[int]:
    """The places of an agent's own tools, the surest first; empty if the client does not look like an agent."""
    trades = [trades_of(each[:START]) for each in definitions]
    if not frozenset().union(*trades) >= HANDS:
        return []
    return sorted((place for place, own in enumerate(trades) if own), key=lambda place: (-len(trades[place]), place))


@lru_cache(maxsize=8192)
def trades_of(start: bytes) -> frozenset[str]:
    """What a tool is for, judged by the start of its definition.

    >>> sorted(trades_of(b'{"name": "amend", "description": "Changes some lines of a file."}'))
    ['write']
    """
    text = start.decode("utf-8", "ignore")
    return frozenset(trade for trade, pattern in PATTERNS.items() if pattern.search(text))
