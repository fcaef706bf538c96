"""A board of a catalog, and those of the tools that requests bring along."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from pegboard.board import Board, RoutingBoard, Space
from pegboard.catalog import Catalog
from pegboard.compose.configured import rules, summaries, with_aliases
from pegboard.compose.economics import economics
from pegboard.compose.fitted import space
from pegboard.compose.parts import Parts, default_parts
from pegboard.routing import Profile
from pegboard.routing.economics import no_connections
from pegboard.seams import (
    Embeddings,
)
from pegboard.settings import Settings


def boards_of_requests(
    settings: Settings, parts: Parts, near: Embeddings | None = None
) -> Callable[[Catalog, Profile], Board]:
    """Makes a board of the tools that a request brings along; whatever was embedded for one is there for all, in
    ``near`` or else in memory.

    Over an encoder that nothing is fitted for, the profile goes by rank.
    """
    first = space(settings, parts, parts.encoder, near)
    of_settings = replace(economics(settings, parts), near_ties=0.0)  # what changes with calls breaks prompt caches
    second = None if parts.fallback is None else space(settings, parts, parts.fallback, near)

    def under(profile: Profile, over: Space) -> Profile:
        threshold = profile.threshold if profile.scale == "cosine" else None
        return profile.ranked(threshold) if over.profile.by_rank else profile

    def board(catalog: Catalog, profile: Profile) -> Board:
        return Board(
            catalog,
            under(profile, first),
            documents=first.documents,
            queries=first.queries,
            events=parts.events,
            clock=parts.clock,
            fusions=first.fusions,
            economics=of_settings,
            fallback=None if second is None else replace(second, profile=under(profile, second)),
        )

    return board


def build(
    settings: Settings,
    catalog: Catalog,
    *,
    parts: Parts | None = None,
    patient: bool = True,
    name: str = "",
    connections: Callable[[], Mapping[str, float]] = no_connections,
) -> RoutingBoard:
    """A board that routes over a catalog and calls nothing; `pegboard.Board` does both.

    Raises ConfigError for options that contradict each other, or a file that is not there.

    ``patient=False`` answers from words while the tools are still being embedded. ``name`` tells boards apart that keep
    their vectors on one server. ``connections`` are the seconds until a call can be sent to servers that no connection
    is open to (L^conn, EHRR eq. 2).

    >>> import asyncio
    >>> from pegboard.model import Server, ServerName
    >>> from pegboard.testing import fake_tool
    >>> catalog = Catalog.build([(Server(name=ServerName("rail")), [fake_tool("timetable", server="rail")])])
    >>> asyncio.run(build(Settings(), catalog).route("when do trains go?")).profile
    'hybrid'
    """
    parts = default_parts(settings) if parts is None else parts
    first = space(settings, parts, parts.encoder)
    return RoutingBoard(
        with_aliases(summaries(settings).put_on(catalog), settings),
        first.profile,
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
        index=parts.index(name),
        fallback=None
        if parts.fallback is None
        else replace(space(settings, parts, parts.fallback), index=parts.fallback_index(name)),
    )
