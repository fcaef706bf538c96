"""Checks that the names in the LLM gateway's configuration exist, and collects what its operator should know.

A rule that names a missing upstream or key applies to no request, and a key without any upstream opens none: these are
errors. A pattern that matches nothing yet, or one name of several, only causes a warning.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase

from pegboard.errors import ConfigError
from pegboard.settings.llm import LlmSettings

WILDCARDS = re.compile(r"[*?\[]")
Named = tuple[str, str, Collection[str]]
"""Where a pattern is, the pattern, and the names that it can match."""


def check_names(settings: LlmSettings) -> None:
    """Raises ConfigError for a rule that names a missing upstream or key, and for a key without any upstream."""
    for where, pattern, names in _in_rules(settings):
        if not WILDCARDS.search(pattern) and pattern not in names:
            raise _not_there(where, repr(pattern), names)
    for name, key in settings.keys.items():
        exact = not any(map(WILDCARDS.search, key.upstreams))
        if exact and not settings.upstreams.keys() & set(key.upstreams):
            raise _not_there(f"upstreams of llm.keys.{name}", str(list(key.upstreams)), settings.upstreams)


def warnings(settings: LlmSettings) -> Iterator[str]:
    """Patterns that match nothing, so that their settings apply to no request."""
    of_keys = (
        (f"upstreams of llm.keys.{name}", pattern, settings.upstreams)
        for name, key in settings.keys.items()
        for pattern in key.upstreams
    )
    for where, pattern, names in (*_in_rules(settings), *of_keys):
        if pattern != "*" and not any(fnmatchcase(name, pattern) for name in names):
            yield f"{where}: {pattern!r} matches none of {', '.join(names) or 'none'}."


def notes(settings: LlmSettings) -> Iterator[str]:
    """How addresses that end in an API version are handled."""
    for name, upstream in settings.upstreams.items():
        if upstream.version:
            yield (
                f"The address of the upstream {name!r} ends in {upstream.version}: "
                f"paths that also begin with {upstream.version} are sent with it only once."
            )


def _in_rules(settings: LlmSettings) -> Iterator[Named]:
    for number, rule in enumerate(settings.rules, 1):
        yield f"upstream of rule {number} of llm.rules", rule.upstream, settings.upstreams
        if rule.key:
            yield f"key of rule {number} of llm.rules", rule.key, settings.keys


def _not_there(where: str, said: str, names: Collection[str]) -> ConfigError:
    return ConfigError(
        f"{where} is {said}, which does not exist.",
        remedy=f"Use one of {', '.join(names) or 'none'}, or a pattern such as '*'.",
    )
