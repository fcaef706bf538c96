"""Options of the activity that the dashboard shows."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from pegboard.settings.limit_settings import Usd


class ActivitySettings(BaseModel):
    """Where `pegboard serve` keeps its decisions: ``keep`` the last ``most`` of them in its `memory`, all of them in
    the `store` of the state for as long as the retention says, or none (`off`).

    ``texts`` keeps the texts that tools were chosen for, which users wrote. ``prices`` are US dollars per million
    tokens of input, by patterns on a model's name of which the first match counts. Changes apply at the next start.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    keep: Literal["memory", "store", "off"] = "memory"
    texts: bool = False
    most: int = Field(default=2_000, ge=1, le=1_000_000)
    prices: dict[str, Usd] = Field(default_factory=dict)
