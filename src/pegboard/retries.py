"""When an HTTP service is asked again."""

from __future__ import annotations

from collections.abc import Mapping

TOO_MANY = 429


def may_pass(status: int) -> bool:
    """Whether what this status stands for may be over in a moment."""
    return status == TOO_MANY or status >= 500


def asked_for(headers: Mapping[str, str], otherwise: float) -> float:
    """Seconds that the service asks to be left alone (Retry-After); its other form, a date, is not what they send."""
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers.get(name, "")) * unit)
        except ValueError:
            continue
    return otherwise
