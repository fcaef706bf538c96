"""The profile, the calibration and the thresholds that fit an encoder."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from pegboard.compose.board_parts import Parts
from pegboard.protocols import Embeddings, Encoder
from pegboard.retrieval import CachedEncoder
from pegboard.retrieval.encoders.embedding_caches import TieredEmbeddings
from pegboard.retrieval.fusion import Fusion, shipped
from pegboard.retrieval.local_fit import THRESHOLD_OF, LocalFit
from pegboard.retrieval.thresholds import measured
from pegboard.routing import Profile, profile_named
from pegboard.routing_board import Space
from pegboard.settings import Settings
from pegboard.shared_indexes import Encoders, SharedIndexes
from pegboard.stores import MemoryEmbeddings

LOGGER = logging.getLogger(__name__)

QUERY_CACHE = 4096
TOOL_CACHE = 4096
"""Vectors of tools' texts that are in memory besides the store and boards: small boards are made anew for each user."""

FITTED = frozenset({"onnx", "fake"})
"""Providers for which the shipped fusion and thresholds are fitted: the packaged encoder, and its fake in tests."""


def space(
    settings: Settings,
    parts: Parts,
    encoder: Encoder,
    near: Embeddings | None = None,
    shared: SharedIndexes | None = None,
) -> Space:
    """An encoder with everything that is fitted for it. If nothing is, its scores are used by rank only."""

    def caches() -> Encoders:
        return (
            CachedEncoder(encoder, TieredEmbeddings(near or MemoryEmbeddings(TOOL_CACHE), parts.embeddings)),
            CachedEncoder(encoder, MemoryEmbeddings(QUERY_CACHE)),
        )

    is_first = encoder is parts.encoder
    fitted = calibration(settings, encoder) if is_first else fit_for(settings, encoder)
    fusions: Mapping[str, Fusion] = shipped() if fitted is None else {**shipped(), **fitted.fusions}
    chosen = profile(settings, fitted)
    threshold = settings.threshold if chosen.scale == "cosine" else None
    if threshold is not None and not is_first:  # the configured cosine is meant for the first encoder
        chosen, threshold = profile(settings.model_copy(update={"threshold": None}), fitted), None
    if fitted is None and encoder.provider not in FITTED and chosen.scale not in ("points", "utility"):
        chosen = chosen.ranked(threshold)
        fusions = {**fusions, "hybrid": fusions["hybrid"].uncalibrated()}
    warn_of_threshold(chosen, encoder)
    documents, queries = caches() if shared is None else shared.encoders(encoder, caches)
    return Space(documents=documents, queries=queries, profile=chosen, fusions=fusions)


def warn_of_threshold(profile: Profile, encoder: Encoder) -> None:
    """Log a warning if the profile's threshold excludes almost every tool with this encoder."""
    if profile.ranker != "definition_cosine" or profile.threshold is None or encoder.model != measured().encoder:
        return
    if said := measured().too_high(profile.threshold):
        LOGGER.warning("%s Or remove the threshold: then the best k tools are taken.", said)


def calibration(settings: Settings, encoder: Encoder) -> LocalFit | None:
    """This deployment's calibration, or None with a warning if it is for another encoder. Raises ConfigError if its
    file is invalid."""
    fitted = fit_for(settings, encoder)
    if fitted is None and (other := local_fit(settings)) is not None:
        LOGGER.warning(
            "Calibration %s is not used: it is for the encoder %r, not for %r. Run `pegboard calibrate` again.",
            settings.calibration,
            other.encoder,
            encoder.model,
        )
    return fitted


def fit_for(settings: Settings, encoder: Encoder) -> LocalFit | None:
    """The calibration that the settings name, if it was fitted for this encoder."""
    fitted = local_fit(settings)
    return fitted if fitted is None or fitted.encoder == encoder.model else None


def local_fit(settings: Settings) -> LocalFit | None:
    """The calibration that the settings name, for any encoder. Raises ConfigError if its file is invalid."""
    return None if settings.calibration is None else LocalFit.read(settings.calibration)


def profile(settings: Settings, fitted: LocalFit | None = None) -> Profile:
    """The named profile with the settings' overrides. A fitted threshold applies if the settings have none."""
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
