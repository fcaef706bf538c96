"""A calibration for one deployment: the file that `pegboard calibrate` writes and `calibration` names."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pegboard.errors import ConfigError
from pegboard.retrieval.fusion import Fusion, shipped

LOGGER = logging.getLogger(__name__)

THRESHOLD_OF = "attention"
"""The profile of a fitted threshold, which is a cosine with the summaries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalFit:
    """``fusions`` are those better than the shipped ones; ``threshold`` is θ of `attention`, if better than the
    default.

    ``encoder`` is the model whose vectors it was fitted on. ``origin`` describes the data, for people.
    """

    encoder: str
    fusions: Mapping[str, Fusion] = field(default_factory=dict)
    threshold: float | None = None
    origin: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> LocalFit:
        """Read a calibration file. Raises ConfigError that names it."""
        remedy = "Run `pegboard calibrate` again, or remove `calibration` from the configuration."
        try:
            row = json.loads(path.read_text("utf-8"))
            fusions = {name: _fusion(name, row["fusions"][name]) for name in row["fusions"]}
            threshold = None if row["threshold"] is None else float(row["threshold"])
            return cls(encoder=str(row["encoder"]), fusions=fusions, threshold=threshold, origin=row["origin"])
        except OSError as error:
            raise ConfigError(f"Cannot read the calibration {str(path)!r}: {error}.", remedy=remedy) from error
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ConfigError(
                f"{str(path)!r} is not a calibration: {type(error).__name__}: {error}.", remedy=remedy
            ) from error

    def text(self) -> str:
        """What a calibration file contains."""
        row = {
            "encoder": self.encoder,
            "threshold": self.threshold,
            "fusions": {name: fusion.written() for name, fusion in self.fusions.items()},
            "origin": self.origin,
        }
        return json.dumps(row, indent=2) + "\n"


def _fusion(name: str, row: Mapping[str, Any]) -> Fusion:
    """Raises KeyError for an unknown fusion, ValueError for one with unknown parts.

    A part added after the file was written has no weight in it and is ignored, so that the fit stays valid.
    """
    fusion, known = Fusion.of(row), shipped()[name].weights
    if not fusion.weights or not fusion.weights.keys() <= known.keys():
        raise ValueError(f"the fusion {name!r} has the parts {sorted(fusion.weights)}, of {sorted(known)}")
    if new := sorted(known.keys() - fusion.weights.keys()):
        LOGGER.info("The calibration's fusion %r is older than the parts %s: they are ignored.", name, new)
    return fusion
