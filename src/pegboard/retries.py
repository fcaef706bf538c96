"""When a request to an HTTP service is retried."""

from __future__ import annotations

from collections.abc import Mapping

TOO_MANY = 429


def may_pass(status: int) -> bool:
    """Whether a status stands for a temporary failure."""
    return status == TOO_MANY or status >= 500


def asked_for(headers: Mapping[str, str], otherwise: float) -> float:
    """Seconds to wait, from Retry-After, or ``otherwise``. Its date form is not read: these services do not send it."""
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers.get(name, "")) * unit)
        except ValueError:
            continue
    return otherwise
