"""Rephrases the implementer's text as a user's intent: "This tool allows you to search …" becomes "Search …".

See Tool Attention §5.3.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from pegboard.retrieval.name_words import LEADING_VERBS
from pegboard.retrieval.words import stem

THING = r"(?:tool|function|endpoint|method|operation|api(?: endpoint| call)?|command|plugin|service|utility|wrapper)s?"
WHO = r"(?:you|users?|agents?|clients?|developers?|the (?:user|model|agent|client))"
LONGEST_LEAD_IN = 5
"""How many of the patterns below may follow one another."""


def _start(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"^{pattern}\s+", re.IGNORECASE)


LEAD_INS = (
    _start(rf"(?:please )?(?:use|call|invoke) (?:this|the) {THING} (?:when|if|whenever) {WHO} \w+(?: you)? to"),
    _start(rf"(?:please )?(?:use|call|invoke) (?:this|the) {THING} (?:to|for)"),
    _start(rf"(?:this|the|an?) (?:[\w-]+ ){{0,2}}?{THING}(?: (?:to|for|that|which|will|can))?"),
    _start(rf"{THING} (?:to|for|that|which)"),
    _start(rf"(?:will |can )?(?:allows?|enables?|lets?|helps?)(?: {WHO})?(?: to)?"),
    _start(r"(?:is|can be|should be|may be) (?:used|designed|intended|meant|useful) (?:to|for)"),
    _start(rf"(?:provides?|offers?|gives?)(?: {WHO})? (?:the|an) (?:ability|option) to"),
    _start(r"(?:this|it)"),
)
"""Phrases before the verb."""

WIRING = (
    re.compile(r"\b(?:GET|POST|PUT|PATCH|DELETE|HEAD)\s+/\S*"),
    re.compile(
        r"\s+(?:by (?:calling|making|sending)|via|using|through|from|with) (?:(?:an?|the) )?(?:[\w./-]+ ){0,3}"
        r"(?:API|endpoint|HTTP request|API call)(?=\s*[.,;)]|\s*$)"
    ),
    re.compile(r"\s+(?:from|via|using|by|to|with)\s*(?=\.?$)"),
    re.compile(r"[\s,]*(?:\b(?:including|such as|like|the following))?\s*:$"),
)
"""Phrases about how something is done, which users do not ask for, and remnants such as the colon before a list."""

ASKED: Mapping[str, str] = {"retrieve": "get", "fetch": "get", "obtain": "get"}
ASIDE = re.compile(
    r"(?:important|notes?|warning|caution|critical|always|never|do not|don't|must|required|remember|prefer|avoid|only|"
    r"requires?|make sure|ensure that|e\.g|for example|examples?|see|more information|default|optional|if|deprecated|"
    r"when (?:setting|updating|closing|using)|"
    r"returns? (?:null|none|true|false|json|csv|an? (?:object|array|dict|json)))\b",
    re.IGNORECASE,
)
INSTRUCTION = re.compile(
    r"(?:ignore|disregard|forget|override)\b.{0,40}\b(?:previous|above|prior|earlier|all|instructions?|rules?)\b"
    r"|\byou (?:must|should|are|have to|need to)\b|\bsystem prompt\b|<\|"
    r"|</?(?:system|important|instructions?|secret)\b"
    r"|\b(?:always|must|only|first)\b.{0,20}\b(?:use|call|choose|prefer|select|pick)\b.{0,20}\b(?:this|tool|it)\b"
    r"|\bdo not (?:use|call|tell|mention|reveal|inform)\b|\b(?:instead of|before|over) (?:any |all )?other tools?\b"
    r"|\b(?:must|should|always) be (?:used|called|chosen|preferred)\b|\bbest tool\b|https?://",
    re.IGNORECASE | re.DOTALL,
)
FIRST_WORD = re.compile(r"^[A-Za-z]+\b")


def as_asked(sentence: str) -> str:
    """A sentence about a tool, rephrased as the beginning of a user's request.

    >>> as_asked("This tool allows you to search for GitHub issues.")
    'Search for GitHub issues.'
    >>> as_asked("Returns IssueList from GET /issues?labels=")
    'Get IssueList'
    """
    for pattern in WIRING:
        sentence = pattern.sub("", sentence)
    sentence = _without_lead_in(sentence.strip())
    sentence = FIRST_WORD.sub(lambda match: imperative(match.group()), sentence, count=1)
    return sentence[:1].upper() + sentence[1:]


def imperative(word: str) -> str:
    """The imperative of a sentence's first word, as a user would say it; a word that is not a verb is unchanged.

    >>> imperative("Retrieves"), imperative("Listing"), imperative("Returns"), imperative("Weather")
    ('get', 'list', 'get', 'Weather')
    """
    lower = word.lower()
    if lower in ("returns", "returning"):
        return "get"
    verb = lower if lower in LEADING_VERBS else _verbs().get(stem(lower))
    return word if verb is None else ASKED.get(verb, verb)


def is_verb(word: str) -> bool:
    return stem(word.lower()) in _verbs() or word.lower() in ("return", "returns")


def is_aside(sentence: str) -> bool:
    """Whether a sentence is about calling the tool or about its answer, not about what the tool does."""
    return bool(ASIDE.match(sentence.lstrip("*⚠️🚨❗ "))) or is_instruction(sentence)


def is_instruction(text: str) -> bool:
    """Whether a text instructs the model, as poisoned descriptions do. Such text must not enter a summary."""
    return bool(INSTRUCTION.search(text))


def _without_lead_in(sentence: str) -> str:
    for _ in range(LONGEST_LEAD_IN):
        found = next(filter(None, (_after(pattern, sentence) for pattern in LEAD_INS)), None)
        if found is None:
            break
        sentence = found
    return sentence


def _after(pattern: re.Pattern[str], sentence: str) -> str | None:
    """The text after a lead-in, if it continues with a verb (always after `to`) or with another lead-in."""
    found = pattern.match(sentence)
    if found is None:
        return None
    rest = sentence[found.end() :]
    first = FIRST_WORD.match(rest)
    sure = found.group().split()[-1].lower() == "to" or (first is not None and is_verb(first.group()))
    return rest if sure or any(each.match(rest) for each in LEAD_INS) else None


@cache
def _verbs() -> Mapping[str, str]:
    return {stem(verb): verb for verb in (*LEADING_VERBS, *ASKED)}
