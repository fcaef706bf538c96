"""Draws the pictures that are not charts of a benchmark: a turn before and after, and the architecture.

python scripts/draw_pictures.py          # writes docs/assets/*.svg; a test fails where they are out of date

Each picture has a ground of its own and follows the reader's light or dark scheme. Colours are those of Okabe and Ito,
which people with any kind of colour vision tell apart.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "assets"
STYLE = """<style>
text { font: 15px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1b1f24 }
.small { font-size: 13px; fill: #57606a } .strong { font-weight: 600 } .title { font-size: 17px; font-weight: 600 }
.ground { fill: #ffffff; stroke: #d0d7de } .box { fill: #f6f8fa; stroke: #8c959f } .band { fill: #eef2f6 }
.line { stroke: #57606a; fill: none; stroke-width: 1.5 } .head { fill: #57606a }
.all { fill: #d55e00 } .ours { fill: #0072b2 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .small { fill: #9da7b3 }
.ground { fill: #0d1117; stroke: #30363d } .box { fill: #161b22; stroke: #6e7681 } .band { fill: #1c2430 }
.line { stroke: #9da7b3 } .head { fill: #9da7b3 } .ours { fill: #56b4e9 }
}
</style>"""
ARROW = (
    '<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    '<path class="head" d="M0 0 8 4 0 8z"/></marker></defs>'
)

BED = "real120"
ROWS = (
    ("full", "All tools in every request", "all"),
    ("hybrid_way_back", "LLM gateway with tool search", "ours"),
    ("hybrid_static", "MCP gateway", "ours"),
    ("hybrid", "Library", "ours"),
)
"""Methods of `pegboard bench` by their names in tax.json, what they are, and their colour."""


def turn() -> str:
    """Tokens of tools that one step of an agent sends, before and after; figures of bench/results/tax.json."""
    figures = json.loads((ROOT / "bench" / "results" / "tax.json").read_text())["figures"]
    most = figures[f"tokens_sent/{BED}/full"]
    parts = [
        _text(24, 36, "Tokens of tool definitions, searches and results of searches, sent in one step", "title"),
        _text(
            24, 58, "120 tools of six real MCP servers. In brackets: steps whose tool the model could call.", "small"
        ),
    ]
    for place, (method, title, colour) in enumerate(ROWS):
        tokens, recall = figures[f"tokens_sent/{BED}/{method}"], figures[f"recall/{BED}/{method}"]
        top = 80 + place * 42
        width = 380 * tokens / most
        parts.append(_text(24, top + 19, title))
        parts.append(f'<rect class="{colour}" x="270" y="{top}" width="{width:.1f}" height="28" rx="3"/>')
        parts.append(_text(270 + width + 10, top + 19, f"{tokens:,.0f} ({recall:.1%})", "strong"))
    return _picture(840, 262, "Tokens of tools in one step of an agent, with and without Pegboard", parts)


DOORS = (
    ("MCP gateway", "pegboard mcp, /mcp", "MCP clients"),
    ("LLM gateway", "/v1/…, base URL", "SDKs, coding agents"),
    ("Library", "Board, middleware", "Python agents"),
)
STAGES = ("query", "eligible", "scores", "price", "select", "load", "guard")
LAYERS = (
    ("Routing", "router, eligibility, economics, prompt-cache rule"),
    ("Upstreams", "MCP servers and model providers: start, connect, call, end"),
    ("Retrieval · Catalog · Stores", "encoder, indexes, fusion · snapshots, tokens · state"),
    ("Model", "frozen nouns: Tool, Turn, Session, Scores, Decision, Outcome"),
)


def architecture() -> str:
    """Three doors, one pipeline, the layers below; an arrow is the path of a turn."""
    parts = [ARROW, _text(24, 36, "Three doors, one pipeline", "title")]
    for place, (name, how, who) in enumerate(DOORS):
        left = 24 + place * 268
        parts += [_text(left + 120, 66, who, "small", "middle"), _line(left + 120, 74, left + 120, 90)]
        parts += _box(left, 92, 240, 58, name, how)
        parts.append(_line(left + 120, 150, left + 120, 180))
    parts.append('<rect class="band" x="24" y="182" width="776" height="92" rx="6"/>')
    parts.append(_text(40, 204, "One turn: messages in, a Decision out", "small"))
    width, gap = 92, 14
    for place, stage in enumerate(STAGES):
        left = 40 + place * (width + gap)
        parts.append(f'<rect class="box" x="{left}" y="216" width="{width}" height="42" rx="4"/>')
        parts.append(_text(left + width / 2, 242, stage, "strong", "middle"))
        if place:
            parts.append(_line(left - gap, 237, left - 1, 237))
    parts.append(_line(412, 274, 412, 296))
    for place, (name, what) in enumerate(LAYERS):
        top = 298 + place * 46
        parts.append(f'<rect class="box" x="24" y="{top}" width="776" height="38" rx="4"/>')
        parts += [_text(40, top + 24, name, "strong"), _text(290, top + 24, what, "small")]
    parts.append(
        _text(24, 504, "Each layer imports only from those below it. What came of a call goes back to", "small")
    )
    parts.append(
        _text(24, 524, "the statistics in the stores; every decision is an event without the user's text.", "small")
    )
    return _picture(824, 544, "Three doors, one pipeline of seven stages, and the layers below", parts)


def _box(left: float, top: float, width: float, height: float, title: str, more: str) -> list[str]:
    middle = left + width / 2
    return [
        f'<rect class="box" x="{left}" y="{top}" width="{width}" height="{height}" rx="6"/>',
        _text(middle, top + 25, title, "strong", "middle"),
        _text(middle, top + 45, more, "small", "middle"),
    ]


def _text(left: float, base: float, text: str, style: str = "", anchor: str = "start") -> str:
    return f'<text x="{left:g}" y="{base:g}" class="{style}" text-anchor="{anchor}">{escape(text)}</text>'


def _line(left: float, top: float, right: float, bottom: float) -> str:
    return f'<path class="line" d="M{left:g} {top:g} L{right:g} {bottom:g}" marker-end="url(#a)"/>'


def _picture(width: int, height: int, title: str, parts: Sequence[str]) -> str:
    """The whole file; what it shows is its title, for those who do not see it."""
    ground = f'<rect class="ground" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8"/>'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return "\n".join([f'{head} role="img">', f"<title>{escape(title)}</title>", STYLE, ground, *parts, "</svg>"]) + "\n"


PICTURES = {"turn.svg": turn, "architecture.svg": architecture}


def out_of_date() -> dict[Path, str]:
    """Each picture as it should be, of those that are not."""
    wanted = {FOLDER / name: draw() for name, draw in PICTURES.items()}
    return {path: text for path, text in wanted.items() if not path.exists() or path.read_text() != text}


if __name__ == "__main__":
    for path, text in out_of_date().items():
        path.write_text(text)
