"""All rules by their ids, and what each looks for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from pegboard.errors import ConfigError
from pegboard.lint import descriptions, names, schemas
from pegboard.lint.findings import Check, Finding, Limits, Subject

CHECKS: Mapping[str, Check] = {
    "no-description": descriptions.no_description,
    "short-description": descriptions.short_description,
    "implementer-voice": descriptions.implementer_voice,
    "docstring": descriptions.docstring,
    "cryptic-name": names.cryptic_name,
    "vague-name": names.vague_name,
    "undescribed-parameters": schemas.undescribed_parameters,
    "long-description": descriptions.long_description,
    "long-schema": schemas.long_schema,
    "deprecated": descriptions.deprecated,
}
"""Rules on one tool alone."""

RULES: Mapping[str, str] = {
    "lost-name": "another tool comes first for its own name",
    "lost-description": "another tool comes first for the first sentence of its description",
    "duplicate": "a tool of another server does the same",
    "same-description": "several tools have one description",
    "no-description": "no description",
    "short-description": "a description that says no more than the name",
    "implementer-voice": "a description of the code",
    "docstring": "sections of a docstring in the description",
    "cryptic-name": "a name without a word that can be read",
    "vague-name": "a name that says what is done and not to what",
    "undescribed-parameters": "most parameters have no description",
    "long-description": "a long description",
    "long-schema": "a long schema",
    "deprecated": "a tool that calls itself deprecated",
}
"""Every rule, in the order in which findings are shown."""


def chosen(names: Sequence[str]) -> frozenset[str]:
    """These rules, or all where none is named. Raises ConfigError for one that there is not."""
    for name in names:
        if name not in RULES:
            raise ConfigError(f"No rule {name!r}.", remedy=f"Use one of {', '.join(RULES)}.")
    return frozenset(names or RULES)


LONG_TEXTS = ("long-description", "long-schema")


def in_order(findings: Iterable[Finding], limits: Limits) -> list[Finding]:
    """Those of tools that are large enough: by rule, then by server, those with the most findings first."""
    kept = [finding for finding in findings if finding.tokens >= limits.tokens]
    sizes = Counter((finding.rule, finding.tool.server) for finding in kept)
    places = {rule: place for place, rule in enumerate(RULES)}

    def place(finding: Finding) -> tuple[int, int, str, int]:
        size = sizes[finding.rule, finding.tool.server]
        return places[finding.rule], -size, finding.tool.server, -finding.tokens

    return sorted(kept, key=place)


def tool_findings(subjects: Sequence[Subject], limits: Limits, rules: AbstractSet[str]) -> list[Finding]:
    """What these rules find about each tool alone."""
    made = (check(subject, limits) for name, check in CHECKS.items() if name in rules for subject in subjects)
    return [finding for finding in made if finding is not None]
