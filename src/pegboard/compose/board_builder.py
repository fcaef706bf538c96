"""Builds a board for a catalog, and boards for the tools that model requests carry."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pegboard.catalog import Catalog
from pegboard.catalog.catalog import with_labels
from pegboard.compose.board_parts import Parts, default_parts
from pegboard.compose.encoder_profile import space
from pegboard.model import Server, Tool
from pegboard.protocols import Embeddings
from pegboard.retrieval.categories import configured_category
from pegboard.routing import Profile, Rule, parse_precondition
from pegboard.routing.economics import Economics, Parameters, PriceList, no_connections
from pegboard.routing_board import RoutingBoard, Space
from pegboard.settings import RuleSettings, Settings
from pegboard.shared_indexes import SharedIndexes
from pegboard.summaries import Summaries, read_summaries


def boards_of_requests(
    settings: Settings, parts: Parts, near: Embeddings | None = None
) -> Callable[[Catalog, Profile], RoutingBoard]:
    """A function that builds a board for the tools of a model request. All boards share their embeddings, in ``near``
    or else in memory.

    If nothing is fitted for the encoder, the profile selects by rank. While tools are being embedded, impatient callers
    get a ranking by words.
    """
    first = space(settings, parts, parts.encoder, near)
    of_settings = replace(economics(settings, parts), near_ties=0.0)  # ties change with calls and break prompt caches
    second = None if parts.fallback is None else space(settings, parts, parts.fallback, near)

    def under(profile: Profile, over: Space) -> Profile:
        threshold = profile.threshold if profile.scale == "cosine" else None
        return profile.ranked(threshold) if over.profile.by_rank else profile

    def board(catalog: Catalog, profile: Profile) -> RoutingBoard:
        return RoutingBoard(
            catalog,
            under(profile, first),
            documents=first.documents,
            queries=first.queries,
            events=parts.events,
            clock=parts.clock,
            patient=False,
            fusions=first.fusions,
            economics=of_settings,
            learner=parts.learner,
            texts=settings.activity.texts,
            fallback=None if second is None else replace(second, profile=under(profile, second)),
        )

    return board


def build_routing(
    settings: Settings,
    catalog: Catalog,
    *,
    parts: Parts | None = None,
    patient: bool = True,
    name: str = "",
    connections: Callable[[], Mapping[str, float]] = no_connections,
    shared: SharedIndexes | None = None,
) -> RoutingBoard:
    """A board that routes over a catalog but does not call tools; `pegboard.Board` does both.

    Raises ConfigError for options that contradict each other, or for a missing file.

    ``patient=False`` ranks by words while the tools are still being embedded. ``name`` distinguishes boards that keep
    their vectors on one server. ``connections`` gives the seconds needed to connect, for servers without an open
    connection (L^conn, EHRR eq. 2). ``shared`` has the indexes that boards with the same tools share.

    >>> import asyncio
    >>> from pegboard.model import Server, ServerName
    >>> from pegboard.testing import fake_tool
    >>> catalog = Catalog.build([(Server(name=ServerName("rail")), [fake_tool("timetable", server="rail")])])
    >>> asyncio.run(build_routing(Settings(), catalog).route("when do trains go?")).profile
    'hybrid'
    """
    parts = default_parts(settings) if parts is None else parts
    first = space(settings, parts, parts.encoder, shared=shared)
    return RoutingBoard(
        as_configured(summaries(settings).put_on(catalog), settings),
        first.profile,
        category_descriptions=settings.category_descriptions,
        documents=first.documents,
        queries=first.queries,
        events=parts.events,
        clock=parts.clock,
        rules=[rule for each in settings.rules for rule in rules(each)],
        always_available=settings.always_available,
        patient=patient,
        fusions=first.fusions,
        economics=economics(settings, parts, connections),
        resting=parts.resting,
        learner=parts.learner,
        texts=settings.activity.texts,
        index=parts.index(name),
        shared=shared,
        fallback=None
        if parts.fallback is None
        else replace(space(settings, parts, parts.fallback, shared=shared), index=parts.fallback_index(name)),
    )


def rules(configured: RuleSettings) -> list[Rule]:
    scope = [Rule(pattern=configured.tools, scope=configured.scope)] if configured.scope else []
    needs = [Rule(pattern=configured.tools, precondition=parse_precondition(text)) for text in configured.requires]
    return scope + needs


def summaries(settings: Settings) -> Summaries:
    """The summaries of the configured file, empty if there is none. Raises ConfigError for a file that is invalid."""
    file = settings.summaries.file
    return Summaries(read_summaries(file), str(file)) if file else Summaries({})


def as_configured(catalog: Catalog, settings: Settings) -> Catalog:
    """The catalog with the configured aliases and categories."""
    if not settings.aliases and not settings.category_patterns:
        return catalog
    patterns = settings.category_patterns
    groups: list[tuple[Server, Sequence[Tool]]] = [
        (
            server,
            [
                with_labels(
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


def economics(
    settings: Settings, parts: Parts, connections: Callable[[], Mapping[str, float]] = no_connections
) -> Economics:
    said = settings.economics
    return Economics(
        knowledge=parts.knowledge,
        parameters=Parameters(
            servers=said.servers,
            tools=None,  # the profile's k
            base=said.base,
            offset=said.offset,
            reference=said.reference,
            cap=said.cap,
            server_weight=said.server_weight,
            tool_weight=said.tool_weight,
            seconds_per_usd=said.seconds_per_usd,
            floor=said.floor,
            route_overhead=said.route_overhead,
            per_attempt=said.per_attempt,
            smoothing=settings.statistics.weights,
        ),
        prices=PriceList(patterns=settings.spend.prices, tiers=said.tiers),
        asks=said.asks,
        connections=connections,
        near_ties=said.near_ties,
    )
