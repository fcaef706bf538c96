"""The composition root: the only place where parts are chosen and put together."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pegboard.board import Board
from pegboard.catalog import Catalog
from pegboard.model import Server, Tool
from pegboard.retrieval import CachedEncoder, OnnxEncoder
from pegboard.retrieval.fusion import shipped
from pegboard.retrieval.local_fit import THRESHOLD_OF, LocalFit
from pegboard.routing import Profile, Rule, parse_precondition, profile_named
from pegboard.seams import Clock, Definitions, Embeddings, Encoder, EventSink, Sessions, Statistics
from pegboard.settings import RuleSettings, Settings
from pegboard.stores import (
    FanOut,
    LogEvents,
    MemoryEmbeddings,
    MemoryEvents,
    SqliteDefinitions,
    SqliteEmbeddings,
    SqliteSessions,
    SqliteStatistics,
    TieredEmbeddings,
)
from pegboard.summaries import Summaries, read_summaries

LOGGER = logging.getLogger(__name__)

EMBEDDINGS_FILE = "embeddings.sqlite"
STATE_FILE = "state.sqlite"
DEFINITIONS_FILE = "definitions.sqlite"
QUERY_CACHE = 4096


class SystemClock:
    def time(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a board is made of besides its catalog and settings; any of it may be replaced."""

    encoder: Encoder
    embeddings: Embeddings
    definitions: Definitions
    events: EventSink
    clock: Clock
    sessions: Sessions
    statistics: Statistics


def default_parts(settings: Settings, **replaced: Any) -> Parts:
    """The parts that work out of the box, with those given put in their places."""
    clock = SystemClock()
    state = settings.state_dir / STATE_FILE
    parts: dict[str, Any] = {
        "encoder": OnnxEncoder(threads=settings.encoder_threads),
        "embeddings": SqliteEmbeddings(settings.cache_dir / EMBEDDINGS_FILE),
        "definitions": SqliteDefinitions(settings.cache_dir / DEFINITIONS_FILE),
        "events": FanOut([LogEvents(), MemoryEvents()]),
        "clock": clock,
        "sessions": SqliteSessions(state, clock, ttl=settings.session_ttl),
        "statistics": SqliteStatistics(state),
    }
    return Parts(**(parts | replaced))


def build(settings: Settings, catalog: Catalog, *, parts: Parts | None = None, patient: bool = True) -> Board:
    """A board over a catalog. Raises ConfigError for options that contradict each other, or a file that is not there.

    ``patient=False`` answers from words while the tools are still being embedded.
    """
    parts = default_parts(settings) if parts is None else parts
    fitted = calibration(settings, parts.encoder)
    return Board(
        with_aliases(summaries(settings).put_on(catalog), settings),
        profile(settings, fitted),
        documents=CachedEncoder(parts.encoder, TieredEmbeddings(MemoryEmbeddings(), parts.embeddings)),
        queries=CachedEncoder(parts.encoder, MemoryEmbeddings(QUERY_CACHE)),
        events=parts.events,
        clock=parts.clock,
        rules=[rule for each in settings.rules for rule in rules(each)],
        always_available=settings.always_available,
        patient=patient,
        fusions=None if fitted is None else {**shipped(), **fitted.fusions},
    )


def calibration(settings: Settings, encoder: Encoder) -> LocalFit | None:
    """What was fitted for this deployment, if it was for this encoder. Raises ConfigError for a file that is none."""
    fitted = local_fit(settings)
    if fitted is None or fitted.encoder == encoder.model:
        return fitted
    LOGGER.warning(
        "Not used: the calibration %s is for the encoder %r, and this one is %r. Run `pegboard calibrate` again.",
        settings.calibration,
        fitted.encoder,
        encoder.model,
    )
    return None


def local_fit(settings: Settings) -> LocalFit | None:
    """The calibration that the settings name, for whatever encoder. Raises ConfigError for a file that is none."""
    return None if settings.calibration is None else LocalFit.read(settings.calibration)


def profile(settings: Settings, fitted: LocalFit | None = None) -> Profile:
    """The named profile with the settings' overrides; a threshold that was fitted counts where none is set."""
    named = profile_named(settings.profile)
    learned = fitted.threshold if fitted and named.name == THRESHOLD_OF else None
    return named.with_overrides(
        k=settings.k,
        threshold=learned if settings.threshold is None else settings.threshold,
        recall=settings.recall,
        query=settings.query,
        budget=settings.budget,
        pool=settings.pool,
    )


def rules(configured: RuleSettings) -> list[Rule]:
    scope = [Rule(pattern=configured.tools, scope=configured.scope)] if configured.scope else []
    needs = [Rule(pattern=configured.tools, precondition=parse_precondition(text)) for text in configured.requires]
    return scope + needs


def summaries(settings: Settings) -> Summaries:
    """What the file of summaries holds; nothing where none is configured. Raises ConfigError for one without sense."""
    file = settings.summaries.file
    return Summaries(read_summaries(file), str(file)) if file else Summaries({})


def with_aliases(catalog: Catalog, settings: Settings) -> Catalog:
    """The catalog with the configured search words on its tools."""
    if not settings.aliases:
        return catalog
    groups: list[tuple[Server, Sequence[Tool]]] = [
        (
            server,
            [
                replace(tool, aliases=settings.aliases.get(str(tool.id), tool.aliases))
                for tool in catalog.of_server(name)
            ],
        )
        for name, server in catalog.servers.items()
    ]
    return Catalog.build(groups, counter=catalog.counter)
