"""From the implementer's voice to the user's: "This tool allows you to search …" becomes "Search …" (seed 000 §5.3)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from pegboard.retrieval.name_words import LEADING_VERBS
from pegboard.retrieval.words import stem

THING = r"(?:tool|function|endpoint|method|operation|api(?: endpoint| call)?|command|plugin|service|utility|wrapper)s?"
WHO = r"(?:you|users?|agents?|clients?|developers?|the (?:user|model|agent|client))"
LONGEST_LEAD_IN = 5
"""How many of the patterns below may follow on each other."""


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
"""What stands before the verb."""

WIRING = (
    re.compile(r"\b(?:GET|POST|PUT|PATCH|DELETE|HEAD)\s+/\S*"),
    re.compile(
        r"\s+(?:by (?:calling|making|sending)|via|using|through|from|with) (?:(?:an?|the) )?(?:[\w./-]+ ){0,3}"
        r"(?:API|endpoint|HTTP request|API call)(?=\s*[.,;)]|\s*$)"
    ),
    re.compile(r"\s+(?:from|via|using|by|to|with)\s*(?=\.?$)"),
    re.compile(r"[\s,]*(?:\b(?:including|such as|like|the following))?\s*:$"),
)
"""How it is done, which nobody asks for; and what is then left over, or announces a list."""

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
    """A sentence about a tool as a user would begin a request.

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
    """The verb that a user would say for the first word of a sentence; a word that is no verb as it is.

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
    """Whether a sentence is about how to call the tool or what its answer looks like, not about what it does."""
    return bool(ASIDE.match(sentence.lstrip("*⚠️🚨❗ "))) or is_instruction(sentence)


def is_instruction(text: str) -> bool:
    """Whether a text tells a model what to do, as poisoned descriptions do: none of it belongs into a summary."""
    return bool(INSTRUCTION.search(text))


def _without_lead_in(sentence: str) -> str:
    for _ in range(LONGEST_LEAD_IN):
        found = next(filter(None, (_after(pattern, sentence) for pattern in LEAD_INS)), None)
        if found is None:
            break
        sentence = found
    return sentence


def _after(pattern: re.Pattern[str], sentence: str) -> str | None:
    """What follows a lead-in, where that goes on with a verb, which it does after `to`, or with another lead-in."""
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
