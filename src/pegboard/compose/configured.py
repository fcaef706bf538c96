"""What the settings say about tools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pegboard.catalog import Catalog
from pegboard.model import Server, Tool
from pegboard.retrieval.categories import configured_category
from pegboard.routing import Rule, parse_precondition
from pegboard.settings import RuleSettings, Settings
from pegboard.summaries import Summaries, read_summaries


def rules(configured: RuleSettings) -> list[Rule]:
    scope = [Rule(pattern=configured.tools, scope=configured.scope)] if configured.scope else []
    needs = [Rule(pattern=configured.tools, precondition=parse_precondition(text)) for text in configured.requires]
    return scope + needs


def summaries(settings: Settings) -> Summaries:
    """What the file of summaries holds; nothing where none is configured. Raises ConfigError for one without sense."""
    file = settings.summaries.file
    return Summaries(read_summaries(file), str(file)) if file else Summaries({})


def as_configured(catalog: Catalog, settings: Settings) -> Catalog:
    """The catalog with the configured search words and categories on its tools."""
    if not settings.aliases and not settings.category_patterns:
        return catalog
    patterns = settings.category_patterns
    groups: list[tuple[Server, Sequence[Tool]]] = [
        (
            server,
            [
                replace(
                    tool,
                    aliases=settings.aliases.get(str(tool.id), tool.aliases),
                    category=configured_category(tool.id, patterns) or tool.category,
                )
                for tool in catalog.of_server(name)
            ],
        )
        for name, server in catalog.servers.items()
    ]
    return Catalog.build(groups, counter=catalog.counter)
