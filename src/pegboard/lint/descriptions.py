"""Rules on descriptions: written for an agent that chooses, not for whoever maintains the code."""

from __future__ import annotations

import re

from pegboard.lint.findings import Finding, Limits, Subject, quoted
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
"""What describes the code; what it found in 10,600 real descriptions was read."""

DOCSTRING = re.compile(
    r"^[ \t]*(?:Args|Arguments|Parameters|Returns|Raises|Yields):[ \t]*$|:param \w+:|@(?:param|returns?)\b",
    re.MULTILINE,
)
DEPRECATED = re.compile(r"\bDEPRECATED\b|[\[(][Dd]eprecated\b|^\W*[Dd]eprecated\b|\.\. deprecated::")


def no_description(subject: Subject, limits: Limits) -> Finding | None:
    if subject.tool.description.strip():
        return None
    return subject.finding("no-description", "It has no description, so only its name can be matched.", SAY_WHEN)


def short_description(subject: Subject, limits: Limits) -> Finding | None:
    """Few words, or none that the name does not hold."""
    text = subject.tool.description
    words = raw_words(text)
    if 0 < len(words) < limits.words:
        return subject.finding("short-description", f"{quoted(text)} is all it says.", SAY_WHEN)
    if words and set(terms(text)) <= set(terms(subject.tool.name)):
        return subject.finding("short-description", f"{quoted(text)} says no more than the name.", SAY_WHEN)
    return None


def long_description(subject: Subject, limits: Limits) -> Finding | None:
    beyond = subject.description - limits.description
    if beyond <= 0:
        return None
    says = f"Its description takes {subject.description:,} tokens, {beyond:,} beyond {limits.description:,}."
    remedy = "Keep what helps to choose and to call it; examples and results belong in the documentation."
    return subject.finding("long-description", says, remedy, spare=beyond)


def implementer_voice(subject: Subject, limits: Limits) -> Finding | None:
    """The description speaks of the code, which no user ever asks for."""
    found = VOICE.search(subject.tool.description.strip())
    if found is None:
        return None
    says = f"{quoted(_around(subject.tool.description.strip(), found))} describes the code, not what a user wants."
    return subject.finding("implementer-voice", says, "Write it as the task that it does: `Creates an invoice`.")


def docstring(subject: Subject, limits: Limits) -> Finding | None:
    """Sections of a docstring: they belong in the schema, where a client shows them beside the parameter."""
    found = DOCSTRING.search(subject.tool.description)
    if found is None:
        return None
    says = f"Its description holds a docstring's section ({quoted(found.group())})."
    return subject.finding("docstring", says, "Describe parameters in the schema; leave out what is returned.")


def deprecated(subject: Subject, limits: Limits) -> Finding | None:
    """A tool that says of itself not to use it costs what the others cost."""
    if not DEPRECATED.search(subject.tool.description):
        return None
    remedy = "Leave it out, with `hidden` of a toolset or on the server."
    return subject.finding("deprecated", "It calls itself deprecated.", remedy, spare=subject.tokens)


def _around(text: str, found: re.Match[str]) -> str:
    """The matched words with the few before and after them."""
    start = text.rfind(" ", 0, max(0, found.start() - 15)) + 1 if found.start() > 15 else 0
    return text[start : found.end() + 30]
