"""`usage.json` as a section of the page of benchmarks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard_bench import results as files

STREAMS = {
    "steady": "habits that stay",
    "changing": "other tools from the middle on",
    "reversing": "wrong from the middle on",
}
SEEN = {"all": "all", "offered": "first 10"}
HEAD = ("set", "stream", "calls seen", "turns", "untaught", "as served", "difference (95%)", "least window", "used")


def section(results: Mapping[str, Any]) -> str:
    tables = results["tables"]
    return "\n".join(
        [
            "## Selection that learns from use\n",
            f"Written by `{results['command']}`. {files.measured(results)}.\n",
            "Streams of recorded turns: each is predicted with what the earlier ones taught ([how](usage.md)), then "
            f"learnt from. Recall@{tables['k']} of the later half, or after the change; the least difference in any "
            f"{tables['window']} turns in a row; the share of turns for which the trial let the taught order be used. "
            "Nothing fades, the harder case. Nothing of the learning was chosen on these sets. *Calls seen*: all, as "
            "if the model found by search what was not offered, or only those of the first 10 tools of the served "
            "order. *Wrong from the middle on*: requests for one tool of a pair then lead to the other one.\n",
            *_table(results["figures"], tables["sets"]),
            "",
        ]
    )


def _table(figures: Mapping[str, float], sets: list[str]) -> list[str]:
    rows = [_row(figures, f"{name}/{stream}/{seen}") for name in sets for stream in STREAMS for seen in SEEN]
    return [f"| {' | '.join(row)} |" for row in (HEAD, ["---"] * len(HEAD), *rows)]


def _row(figures: Mapping[str, float], about: str) -> list[str]:
    name, stream, seen = about.split("/")
    found = {metric: figures[f"{metric}/{about}"] for metric in ("turns", "untaught", "taught", "gain", "used")}
    interval = f"{figures[f'gain_low/{about}']:+.3f} to {figures[f'gain_high/{about}']:+.3f}"
    return [
        name,
        STREAMS[stream],
        SEEN[seen],
        f"{found['turns']:,.0f}",
        f"{found['untaught']:.3f}",
        f"{found['taught']:.3f}",
        f"{found['gain']:+.3f} ({interval})",
        f"{figures[f'least_window/{about}']:+.3f}",
        f"{found['used']:.0%}",
    ]
