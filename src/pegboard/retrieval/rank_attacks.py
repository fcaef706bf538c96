"""Finds tools whose texts are built to be found instead of others (D12), by rules that real tools hardly ever meet.

requests            descriptions made of what users ask, in the words of users
word-list           words in a row without any grammar
long-name           names of more words than any name needs
many-intents        many unrelated actions in a short text
copied-name         the name of another server's tool over a text that is about nothing in it
copied-description  the text of another server's tool under an unrelated name, or sentences of several servers' tools

A server most of whose tools are built so is suspected as a whole. Forks of a server copy names together with their
texts; they are no attack (`pegboard.trust.crowds` notes them).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from pegboard.model import Tool, ToolId
from pegboard.retrieval.name_words import LEADING_VERBS
from pegboard.retrieval.words import FUNCTION_WORDS, known_words, raw_words, remembered, stem

Kind = Literal["requests", "word-list", "long-name", "many-intents", "copied-name", "copied-description"]

DAMPING = 0.02
"""A suspected tool keeps this share of its probability: it is found where it is named, or where nothing else fits."""
LEAST_REQUESTS = 3
LONGEST_RUN = 10
"""Words in a row without a function word or punctuation; 2 of 9,812 real descriptions have as many."""
TINY = 2
LONGEST_NAME, TAKEN_UP = 9, 0.25
"""Words of a name, and the share of them that an honest description has too."""
INTENTS, WORDS_PER_INTENT = 4, 8
MANY_INTENTS, WORDS_PER_ONE_OF_MANY = 6, 16
"""Unrelated actions, and the words of the description for each: ten of 9,812 real descriptions say as much so
shortly."""
LEAST_VERBS = 3
LEAST_NAME = 2
"""Minimum words of a copied name."""
LEAST_COPIED = 4
"""Minimum words of a copied description for that to be no coincidence."""
COPIED_SENTENCES, COPIED_SERVERS = 3, 3
"""Sentences of a description that other servers' tools have, and how many servers they are of, at least."""
OBJECT = 5
"""Words behind a verb that may say what it is done to."""
WHOLE = 0.5
"""Share of a server's tools from which on it is suspected as a whole, if they are at least two."""
REMEMBERED = 16_384

SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+|[。！？；]")
REQUEST = re.compile(
    r"""^\W{0,3}(?:i(?:'m|'d|'ve)?\b|my\b|we\b|(?:can|could|would|will)\ (?:you|i|we)\b|please\b|help\ me\b
    |(?:\w+)\ (?:me|my|us|our)\b|how\ (?:do|can|much|many|long|far)\b
    |wh(?:at|ere|en|ich|o)(?:'s|\ is|\ are|\ was|\ did)\b)
    |\b(?:for\ me|my\ \w+)\b[^.!?]{0,60}[.!?]?$|\?\s*$""",
    re.IGNORECASE | re.VERBOSE,
)
"""How people phrase requests. A tool's description says what the tool does, and does not say "me" or "my"."""
WORD = re.compile(r"\w+")
HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
ITEM = re.compile(r"[.!?;,:\n()]+|\b(?:and|or)\b", re.IGNORECASE)
GRAMMAR = re.compile(
    r"[^\w\s-]+|\n|\b(?:"
    + "|".join(sorted(FUNCTION_WORDS))
    + r"|about|after|all|any|based|before|between|each|how|including|into|more|no|not|only|out|per|through|up|using|via"
    r"|what|when|where|which|who|within|without)\b",
    re.IGNORECASE,
)
HABITUAL = frozenset({"provide", "return", "use"})
"""Verbs that begin sentences of any description: `Returns`, `Use this`."""
Words = frozenset[str]
Key = int
"""The hash of words, 64 bits."""


def suspects(tools: Sequence[Tool]) -> Mapping[ToolId, Kind]:
    """The suspected tools. Of two with the same name or text, the later one counts as the copy."""
    found: dict[ToolId, Kind] = {}
    found |= {tool.id: "copied-description" for tool in copied_descriptions(tools)}
    found |= {tool.id: "copied-description" for tool in put_together(tools)}
    found |= {tool.id: "copied-name" for tool in copied_names(tools)}
    found |= {tool.id: kind for tool in tools if (kind := own_kind(tool.name, tool.description)) is not None}
    return found | dict(_of_servers(tools, found))


def is_made_of_requests(description: str) -> bool:
    """Whether at least three of its sentences, and at least half of them, are phrased as users' requests.

    >>> is_made_of_requests("Find me a flight to Oslo. What's on my calendar today? Please order a pizza.")
    True
    >>> is_made_of_requests("Finds flights between two airports. Returns prices. Use it when a user asks for one.")
    False
    """
    return are_requests(*requests_of(description))


@remembered(REMEMBERED)
def requests_of(description: str) -> tuple[int, int]:
    """How many of its sentences are phrased as requests, and how many there are."""
    sentences = [each for each in SENTENCE.split(description.strip()) if WORD.search(each)]
    return sum(REQUEST.search(each) is not None for each in sentences), len(sentences)


def are_requests(asked: int, sentences: int) -> bool:
    return asked >= LEAST_REQUESTS and 2 * asked >= sentences


@remembered(REMEMBERED)
def own_kind(name: str, description: str) -> Kind | None:
    """What one tool's own texts show."""
    if is_made_of_requests(description):
        return "requests"
    if description.isascii() and _longest_run(description) >= LONGEST_RUN:
        return "word-list"
    if _is_long_name(raw_words(name), description):
        return "long-name"
    if _has_many_intents(description):
        return "many-intents"
    return None


def _longest_run(description: str) -> int:
    """The words of the longest run; other languages are known by their many words of two letters."""
    runs = [run.split() for run in GRAMMAR.split(description)]
    return max((len(run) for run in runs if sum(len(word) <= TINY for word in run) < 2), default=0)


def _is_long_name(words: Sequence[str], description: str) -> bool:
    """Whether a name has very many words that its description does not take up."""
    stems = frozenset(map(stem, words))
    return len(stems) >= LONGEST_NAME and len(stems & _content(description)) < TAKEN_UP * len(stems)


def _has_many_intents(description: str) -> bool:
    intents, words = _unrelated(description), len(known_words(description))
    return (intents >= INTENTS and words <= WORDS_PER_INTENT * intents) or (
        intents >= MANY_INTENTS and words <= WORDS_PER_ONE_OF_MANY * intents
    )


def _unrelated(description: str) -> int:
    """The number of actions in a description whose objects have no word in common; 0 if they are of a few verbs."""
    actions = {found for piece in ITEM.split(description) if (found := _action(raw_words(piece))) is not None}
    kept: list[tuple[str, Words]] = []
    for verb, about in sorted(actions, key=lambda action: (len(action[1]), sorted(action[1]), action[0])):
        if all(about.isdisjoint(other) for _, other in kept):
            kept.append((verb, about))
    return len(kept) if len({verb for verb, _ in kept}) >= LEAST_VERBS else 0


def _action(words: Sequence[str]) -> tuple[str, Words] | None:
    """The verb that a piece of text begins with and the stems of what it does something to, if it does."""
    verb = next((form for form in _base_forms(words[0]) if form in LEADING_VERBS), "") if words else ""
    about = frozenset(stem(word) for word in words[1 : 1 + OBJECT] if word not in FUNCTION_WORDS)
    return (verb, about) if verb and verb not in HABITUAL and about else None


def _base_forms(word: str) -> Iterator[str]:
    """The forms of a verb that a word may be of: `copies` of `copy`."""
    yield word
    yield word.removesuffix("s")
    yield word.removesuffix("es")
    yield word.removesuffix("ies") + "y"
    yield word.removesuffix("ing")
    yield word.removesuffix("ing") + "e"
    yield word.replace("ys", "yz", 1).removesuffix("s")


def copied_names(tools: Sequence[Tool]) -> Iterator[Tool]:
    """Tools with the name of another server's tool whose English text is about neither the name nor that tool."""
    for same in _by([name_key(tool) for tool in tools], tools):
        yield from copied_names_in(same)


def copied_names_in(same: Sequence[Tool]) -> Iterator[Tool]:
    """Of tools of one name, those whose English text is about neither the name nor an earlier server's tool."""
    for place, tool in enumerate(same):
        others = [other for other in same[:place] if other.server != tool.server]
        said = _content(tool.description)
        if (
            others
            and _is_english(tool.description)
            and said.isdisjoint(map(stem, _name_words(tool.name)))
            and all(said.isdisjoint(_content(other.description)) for other in others)
        ):
            yield tool


def copied_descriptions(tools: Sequence[Tool]) -> Iterator[Tool]:
    """Tools with the text of another server's tool whose names are about nothing in it, and not about the same."""
    for same in _by([description_key(tool) for tool in tools], tools):
        yield from copied_descriptions_in(same)


def copied_descriptions_in(same: Sequence[Tool]) -> Iterator[Tool]:
    """Of tools of one text, those whose names are about nothing in it, and not about the same as an earlier server's
    tool."""
    for place, tool in enumerate(same):
        name = frozenset(map(stem, _name_words(tool.name)))
        if name.isdisjoint(_content(tool.description)) and any(
            other.server != tool.server and name.isdisjoint(map(stem, _name_words(other.name)))
            for other in same[:place]
        ):
            yield tool


def put_together(tools: Sequence[Tool]) -> Iterator[Tool]:
    """Tools whose descriptions have sentences of the tools of several other servers, which come before them."""
    first: dict[Key, str] = {}
    for tool in tools:
        said = sentences(tool.description)
        if is_put_together([first.setdefault(each, tool.server) for each in said], tool.server):
            yield tool


def is_put_together(origins: Sequence[str], server: str) -> bool:
    """Whether sentences are those of several other servers' tools; ``origins`` has the server of the first tool with
    each."""
    copied = [origin for origin in origins if origin != server]
    return len(copied) >= max(COPIED_SENTENCES, len(origins) / 2) and len(set(copied)) >= COPIED_SERVERS


@remembered(REMEMBERED)
def sentences(description: str) -> tuple[Key, ...]:
    """The different sentences of a description that have as many words as no two tools share by chance."""
    words = (tuple(raw_words(each)) for each in SENTENCE.split(description))
    return tuple(dict.fromkeys(hash(each) for each in words if len(each) >= LEAST_COPIED))


def name_key(tool: Tool) -> Key | None:
    """Equal for tools of one name of several words."""
    words = _name_words(tool.name)
    return hash(words) if len(words) >= LEAST_NAME else None


def description_key(tool: Tool) -> Key | None:
    """Equal for tools of one text that is long enough."""
    words = known_words(tool.description)
    return hash(words) if len(words) >= LEAST_COPIED else None


def _of_servers(tools: Sequence[Tool], found: Mapping[ToolId, Kind]) -> Iterator[tuple[ToolId, Kind]]:
    """The other tools of servers that are suspected as a whole."""
    groups: defaultdict[str, list[Tool]] = defaultdict(list)
    for tool in tools:
        groups[tool.server].append(tool)
    for group in groups.values():
        kinds = Counter(found[tool.id] for tool in group if tool.id in found)
        counts = [requests_of(tool.description) for tool in group]
        if not kinds and are_requests(sum(asked for asked, _ in counts), sum(total for _, total in counts)):
            kinds["requests"] = len(group)
        if kinds.total() >= max(2, WHOLE * len(group)):
            yield from ((tool.id, kinds.most_common(1)[0][0]) for tool in group if tool.id not in found)


def _by(keys: Sequence[Key | None], tools: Sequence[Tool]) -> Iterator[Sequence[Tool]]:
    """The tools that share a key, for each that several have."""
    groups: defaultdict[Key, list[Tool]] = defaultdict(list)
    for key, tool in zip(keys, tools, strict=True):
        if key is not None:
            groups[key].append(tool)
    return (group for group in groups.values() if len(group) > 1)


@remembered(REMEMBERED)
def _name_words(name: str) -> tuple[str, ...]:
    return tuple(re.findall(r"[^\W_]+", HUMP.sub("_", name).casefold()))


def _content(text: str) -> Words:
    return frozenset(stem(word) for word in known_words(text) if word not in FUNCTION_WORDS)


def _is_english(text: str) -> bool:
    return text.isascii() and any(word in FUNCTION_WORDS for word in known_words(text))
