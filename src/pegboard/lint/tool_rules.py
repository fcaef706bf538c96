"""Rules on one tool: its name, its description and its schema."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from pegboard.errors import ConfigError
from pegboard.lint.subjects import Check, LintFinding, LintLimits, Subject, listed, quoted
from pegboard.model import JsonObject
from pegboard.retrieval.name_words import GENERIC, LEADING_VERBS, VERBS, Word, words_of
from pegboard.retrieval.words import raw_words, terms

SAY_WHEN = "Say in a sentence what it does, to what, and when to use it."

VOICE = re.compile(
    r"""
    \bthis\ (?:function|method|endpoint|handler|class|wrapper|route)\ \w+s\b
    | \buse\ this\ (?:method|endpoint)\b
    | \bwrapper\ (?:around|for|over|of)\b | ^wraps\b
    | \b(?:calls?|calling|uses?|using|hits?|via)\ (?:the\ )?[`'"]?(?:(?:get|post|put|patch|delete)\ )?/[\w{]
    | ^(?:get|post|put|patch|delete)\ /
    | \b(?:todo|fixme)\s*[:(]
    | \bfor\ internal\ use\b | \binternal\ (?:function|method|helper|tool|api)\b | \binternally\ (?:uses|calls)\b
    | ^(?:helper|handler|implementation|implements|placeholder)\b
    | ^tool\ (?:for\ \w+\ operation|name:)
    | \b(?:data\ ?class|kwargs|returns?\ a\ promise|async\ function)\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""Phrases that describe the code. Its matches in 10,600 real descriptions were reviewed by hand."""

DOCSTRING = re.compile(
    r"^[ \t]*(?:Args|Arguments|Parameters|Returns|Raises|Yields):[ \t]*$|:param \w+:|@(?:param|returns?)\b",
    re.MULTILINE,
)
DEPRECATED = re.compile(r"\bDEPRECATED\b|[\[(][Dd]eprecated\b|^\W*[Dd]eprecated\b|\.\. deprecated::")

VOWEL = re.compile(r"[aeiouy]")
FEWEST_LETTERS = 3
"""Fewest letters of a word with a vowel that counts as readable."""
KNOWN = frozenset(
    re.findall(r"\w+", "api css csv db dns html http https ip js json pdf sql ssh ssl tld txt ui url xml")
)
"""Abbreviations that users of such tools know."""

SAY_WHAT = "Name the action and its object in full words, as in `create_invoice`."

SHARE = 0.5
"""Share of parameters without a description at or above which there is a finding."""
FEWEST = 2

RULES: Mapping[str, str] = {
    "lost-name": "another tool ranks first for the name of the tool",
    "lost-description": "another tool ranks first for the first sentence of the description",
    "duplicate": "a tool of another server does the same",
    "same-description": "several tools have the same description",
    "no-description": "no description",
    "short-description": "a description that says no more than the name",
    "implementer-voice": "a description of the code instead of the task",
    "docstring": "docstring sections in the description",
    "cryptic-name": "a name without a readable word",
    "vague-name": "a name with an action but without an object",
    "undescribed-parameters": "most parameters have no description",
    "long-description": "a long description",
    "long-schema": "a long schema",
    "deprecated": "a description that says that the tool is deprecated",
}
"""Every rule, in the order in which findings are shown."""

LONG_TEXTS = ("long-description", "long-schema")


def no_description(subject: Subject, limits: LintLimits) -> LintFinding | None:
    if subject.tool.description.strip():
        return None
    return subject.finding("no-description", "It has no description, so only its name can be matched.", SAY_WHEN)


def short_description(subject: Subject, limits: LintLimits) -> LintFinding | None:
    """The description has too few words, or only words of the name."""
    text = subject.tool.description
    words = raw_words(text)
    if 0 < len(words) < limits.words:
        return subject.finding("short-description", f"Its whole description is {quoted(text)}.", SAY_WHEN)
    if words and set(terms(text)) <= set(terms(subject.tool.name)):
        return subject.finding(
            "short-description", f"The description {quoted(text)} says no more than the name.", SAY_WHEN
        )
    return None


def long_description(subject: Subject, limits: LintLimits) -> LintFinding | None:
    beyond = subject.description - limits.description
    if beyond <= 0:
        return None
    says = f"Its description takes {subject.description:,} tokens, {beyond:,} beyond {limits.description:,}."
    remedy = "Keep what helps to choose and call the tool; move examples and results into the documentation."
    return subject.finding("long-description", says, remedy, spare=beyond)


def implementer_voice(subject: Subject, limits: LintLimits) -> LintFinding | None:
    """The description is about the code, which users do not ask for."""
    found = VOICE.search(subject.tool.description.strip())
    if found is None:
        return None
    says = f"{quoted(_around(subject.tool.description.strip(), found))} describes the code, not what a user wants."
    return subject.finding("implementer-voice", says, "Describe the task that it performs: `Creates an invoice`.")


def docstring(subject: Subject, limits: LintLimits) -> LintFinding | None:
    """The description has sections of a docstring. They belong in the schema, beside the parameters."""
    found = DOCSTRING.search(subject.tool.description)
    if found is None:
        return None
    says = f"Its description contains a section of a docstring ({quoted(found.group())})."
    return subject.finding("docstring", says, "Describe parameters in the schema; leave out return values.")


def deprecated(subject: Subject, limits: LintLimits) -> LintFinding | None:
    """The description says that the tool is deprecated; its definition still costs tokens."""
    if not DEPRECATED.search(subject.tool.description):
        return None
    remedy = "Hide it with `hidden` of a toolset, or remove it from the server."
    return subject.finding("deprecated", "Its description says that it is deprecated.", remedy, spare=subject.tokens)


def _around(text: str, found: re.Match[str]) -> str:
    """The match with a few words before and after it."""
    start = text.rfind(" ", 0, max(0, found.start() - 15)) + 1 if found.start() > 15 else 0
    return text[start : found.end() + 30]


def cryptic_name(subject: Subject, limits: LintLimits) -> LintFinding | None:
    """No word of the name is readable, not counting words of the server's name."""
    words = words_of(subject.tool.name)
    of_server = {word.stem for word in words_of(subject.tool.server) if word.text not in LEADING_VERBS}
    own = [word for word in words if word.stem not in of_server] or words
    if any(_legible(word.text) for word in own):
        return None
    return subject.finding("cryptic-name", f"{subject.tool.name!r} contains no word that says what it does.", SAY_WHAT)


def vague_name(subject: Subject, limits: LintLimits) -> LintFinding | None:
    """The name has an action but no object. The server's name does not count, because many clients drop it."""
    words = words_of(subject.tool.name)
    if not words or not _says_no_object(words[0]) or any(word.names_something for word in words[1:]):
        return None
    return subject.finding("vague-name", f"{subject.tool.name!r} does not say what it acts on.", SAY_WHAT)


def _legible(word: str) -> bool:
    return not word.isascii() or word in KNOWN or (len(word) >= FEWEST_LETTERS and bool(VOWEL.search(word)))


def _says_no_object(word: Word) -> bool:
    return word.text in VERBS or word.text in GENERIC


def long_schema(subject: Subject, limits: LintLimits) -> LintFinding | None:
    beyond = subject.schema - limits.schema
    if beyond <= 0:
        return None
    says = f"Its schema takes {subject.schema:,} tokens, {beyond:,} beyond {limits.schema:,}."
    remedy = "Split the tool, flatten what is nested, and shorten long lists of values."
    return subject.finding("long-schema", says, remedy, spare=beyond)


def undescribed_parameters(subject: Subject, limits: LintLimits) -> LintFinding | None:
    """Most parameters have no description and are not mentioned in the tool's description."""
    properties = _properties(subject.tool.input_schema)
    bare = [name for name, schema in properties.items() if not _described(schema)]
    unknown = [name for name in bare if name.casefold() not in subject.tool.description.casefold()]
    if len(unknown) < FEWEST or len(unknown) <= SHARE * len(properties):
        return None
    says = f"{len(unknown)} of {len(properties)} parameters have no description: {listed(unknown)}."
    return subject.finding("undescribed-parameters", says, "Describe the meaning, unit and format of each.")


CHECKS: Mapping[str, Check] = {
    "no-description": no_description,
    "short-description": short_description,
    "implementer-voice": implementer_voice,
    "docstring": docstring,
    "cryptic-name": cryptic_name,
    "vague-name": vague_name,
    "undescribed-parameters": undescribed_parameters,
    "long-description": long_description,
    "long-schema": long_schema,
    "deprecated": deprecated,
}
"""The check of each rule on one tool."""


def _properties(schema: JsonObject | None) -> Mapping[str, object]:
    properties = (schema or {}).get("properties")
    return properties if isinstance(properties, Mapping) else {}


def _described(schema: object) -> bool:
    """Whether a parameter's schema has a description, values to choose from, or a reference."""
    return isinstance(schema, Mapping) and any(schema.get(key) for key in ("description", "enum", "const", "$ref"))


def chosen(names: Sequence[str]) -> frozenset[str]:
    """These rules, or all where none is named. Raises ConfigError for one that there is not."""
    for name in names:
        if name not in RULES:
            raise ConfigError(f"No rule {name!r}.", remedy=f"Use one of {', '.join(RULES)}.")
    return frozenset(names or RULES)


def in_order(findings: Iterable[LintFinding], limits: LintLimits) -> list[LintFinding]:
    """Findings about tools of at least ``limits.tokens``: by rule, then by server, most findings first."""
    kept = [finding for finding in findings if finding.tokens >= limits.tokens]
    sizes = Counter((finding.rule, finding.tool.server) for finding in kept)
    places = {rule: place for place, rule in enumerate(RULES)}

    def place(finding: LintFinding) -> tuple[int, int, str, int]:
        size = sizes[finding.rule, finding.tool.server]
        return places[finding.rule], -size, finding.tool.server, -finding.tokens

    return sorted(kept, key=place)


def tool_findings(subjects: Sequence[Subject], limits: LintLimits, rules: AbstractSet[str]) -> list[LintFinding]:
    """The findings of these rules about each tool."""
    made = (check(subject, limits) for name, check in CHECKS.items() if name in rules for subject in subjects)
    return [finding for finding in made if finding is not None]
