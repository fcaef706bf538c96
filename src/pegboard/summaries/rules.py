"""Query-shaped summaries by rule: phrased as a user's intent, not as the implementer's text (Tool Attention §5.3)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from pegboard.catalog.summaries import SUMMARY_TOKENS
from pegboard.model import Tool
from pegboard.protocols import TokenCounter
from pegboard.retrieval.words import FUNCTION_WORDS, raw_words, split_identifier, stem, terms
from pegboard.summaries.plain_text import sentences
from pegboard.summaries.voice import as_asked, is_aside, is_instruction, is_verb

MOST_PARAMETERS = 3
PLUMBING = frozenset(
    map(
        stem,
        re.findall(
            r"\w+",
            "page limit offset cursor size per count max min token key api timeout format output verbose fields "
            "include exclude sort order direction id ids options config param params args input value data raw "
            "debug dry run ctx context session user agent language lang encoding headers retry",
        ),
    )
)
"""Words of parameters about how an answer is delivered, which users do not ask for."""


def query_shaped(tool: Tool, counter: TokenCounter) -> str:
    """The summary s_i: the name, the action and its object, and words of required parameters; at most 60 tokens."""
    said = _said(tool)
    extra = new_in_parameters(tool, f"{tool.name} {said}")
    for text in (_joined(said, extra), said):
        summary = f"{tool.name}: {text}" if text else tool.name
        if counter.count([summary])[0] <= SUMMARY_TOKENS:
            return summary
    return counter.cut(summary, SUMMARY_TOKENS).rstrip()


def new_in_parameters(tool: Tool, said: str) -> list[str]:
    """The names of required parameters that add words to a text, at most `MOST_PARAMETERS`."""
    known, found = set(terms(said)), []
    for name in _required(tool):
        words = [word for word in raw_words(name) if word not in FUNCTION_WORDS and stem(word) not in PLUMBING]
        if {stem(word) for word in words} - known:
            found.append(" ".join(words))
            known |= {stem(word) for word in words}
    return found[:MOST_PARAMETERS]


def _joined(said: str, extra: list[str]) -> str:
    listed = ", ".join(extra)
    return f"{said.rstrip('.')} ({listed})" if said and listed else said or listed


def _said(tool: Tool) -> str:
    """The first sentence about what the tool does, after the words of the name if only these have a verb."""
    sentence = as_asked(_sentence(tool))
    name = split_identifier(re.sub(r"[-.]", " ", tool.name)).lower()
    says_more = set(terms(name)) - set(terms(sentence))
    if not sentence:
        return _capitalized(name) if name != tool.name.lower() else ""
    if says_more and sentence.isascii() and is_verb(name.split()[0]) and not is_verb(sentence.split()[0]):
        return f"{_capitalized(name)}. {sentence}"
    return sentence


def _sentence(tool: Tool) -> str:
    found = [each for each in sentences(tool.description) if not is_instruction(each)]
    return next((each for each in found if not is_aside(each)), found[0] if found else "")


def _required(tool: Tool) -> Iterator[str]:
    schema = tool.input_schema or {}
    properties, required = schema.get("properties"), schema.get("required")
    if isinstance(properties, Mapping) and isinstance(required, list):
        yield from (name for name in required if isinstance(name, str) and name in properties)


def _capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]
