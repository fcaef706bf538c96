"""Whether what a configuration of the LLM gateway names is there, and what its operator should know of it.

A rule that names what is not there holds for no request, and a key without any upstream opens none: these are errors.
A pattern that fits nothing yet, and one name of several, are only said.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase

from pegboard.errors import ConfigError
from pegboard.settings.llm import LlmSettings

WILDCARDS = re.compile(r"[*?\[]")
Named = tuple[str, str, Collection[str]]
"""Where a pattern stands, the pattern, and the names that it can fit."""


def check_names(settings: LlmSettings) -> None:
    """Raises ConfigError for a rule that names an upstream or a key that is not there, and for a key of none."""
    for where, pattern, names in _in_rules(settings):
        if not WILDCARDS.search(pattern) and pattern not in names:
            raise _not_there(where, repr(pattern), names)
    for name, key in settings.keys.items():
        exact = not any(map(WILDCARDS.search, key.upstreams))
        if exact and not settings.upstreams.keys() & set(key.upstreams):
            raise _not_there(f"upstreams of llm.keys.{name}", str(list(key.upstreams)), settings.upstreams)


def warnings(settings: LlmSettings) -> Iterator[str]:
    """What fits nothing: what stands under it holds for no request."""
    of_keys = (
        (f"upstreams of llm.keys.{name}", pattern, settings.upstreams)
        for name, key in settings.keys.items()
        for pattern in key.upstreams
    )
    for where, pattern, names in (*_in_rules(settings), *of_keys):
        if pattern != "*" and not any(fnmatchcase(name, pattern) for name in names):
            yield f"{where}: {pattern!r} fits none of {', '.join(names) or 'none'}."


def notes(settings: LlmSettings) -> Iterator[str]:
    """What is done with addresses that end in the version of an API."""
    for name, upstream in settings.upstreams.items():
        if upstream.version:
            yield (
                f"The address of the upstream {name!r} ends in {upstream.version}: "
                f"paths that begin with {upstream.version} too are sent there with it once."
            )


def _in_rules(settings: LlmSettings) -> Iterator[Named]:
    for number, rule in enumerate(settings.rules, 1):
        yield f"upstream of rule {number} of llm.rules", rule.upstream, settings.upstreams
        if rule.key:
            yield f"key of rule {number} of llm.rules", rule.key, settings.keys


def _not_there(where: str, said: str, names: Collection[str]) -> ConfigError:
    return ConfigError(
        f"{where} is {said}, and there is none of that name.",
        remedy=f"Use one of {', '.join(names) or 'none'}, or a pattern such as '*'.",
    )
