"""Renders the pages: everything is escaped, and nothing is loaded from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pegboard.activity_report import day_name, when
from pegboard.extras import required
from pegboard.gateways.dashboard.forms import text_field
from pegboard.spend_limits import dollars

FOLDER = Path(__file__).parent
LEAST_SHOWN = 100_000
"""Billionths of a dollar: what columns of amounts show."""
STATIC: Mapping[str, str] = {"style.css": "text/css", "live.js": "text/javascript", "enter.js": "text/javascript"}
"""The files that are served, with their media types."""


class PageTemplates:
    """Raises ConfigError if Jinja2 is not installed."""

    def __init__(self) -> None:
        jinja2 = required("jinja2", "ui")
        self._environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(FOLDER / "templates"),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=jinja2.StrictUndefined,
        )
        self._environment.filters |= {
            "number": lambda value: f"{value:,}",
            "usd": usd,
            "exact_usd": dollars,
            "when": when,
            "day": day_name,
            "visible": visible,
            "field": text_field,
            "share": share,
        }
        self.static = {name: (FOLDER / "static" / name).read_bytes() for name in STATIC}

    def render(self, template: str, values: Mapping[str, Any]) -> str:
        return str(self._environment.get_template(template).render(values))


def usd(amount: int) -> str:
    """Billionths of a dollar, to a hundredth of a cent: amounts below each other have their points below each other.

    >>> usd(1_026_294_880_413), usd(2_500_000_000), usd(-2_000), usd(0)
    ('$1,026.2949', '$2.5000', '-<$0.0001', '$0')
    """
    if not amount:
        return "$0"
    sign, size = "-" if amount < 0 else "", abs(amount)
    return f"{sign}${size / 1e9:,.4f}" if size >= LEAST_SHOWN else f"{sign}<$0.0001"


def share(value: float | None) -> str:
    """
    >>> share(0.9876), share(None)
    ('98.8%', '')
    """
    return "" if value is None else f"{value:.1%}"


def visible(text: str) -> str:
    """The text with control and format characters as escapes: what is shown is what is there.

    >>> visible("a\\u202eb\\nc")
    'a\\\\u202eb\\nc'
    """
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() or each == "\n" else each.encode("unicode_escape").decode() for each in text
    )
