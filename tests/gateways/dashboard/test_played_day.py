"""A played day: each figure of the pages is what SQL says of the rows in the gateway's store."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from page_cells import Cells
from pegboard.activity_report import when
from pegboard.gateways.dashboard.page_templates import usd
from played_day import Day, opened_day

DECISIONS = int(os.environ.get("TEST_DECISIONS", "300"))
ONE_TO_ONE = (
    *("failures", "searches", "tokens_before", "tokens_after", "billed", "saved", "input_tokens", "cached_tokens"),
    *("written_tokens", "output_tokens", "cost", "unpriced"),
)
SUMS = f"count(*), sum(error <> ''), max(at), {', '.join(f'sum({name})' for name in ONE_TO_ONE)}"
TOOLS = ", json_each(called) each"


class Sums(NamedTuple):
    decisions: int
    errors: int
    last: float
    failures: int
    searches: int
    before: int
    after: int
    billed: int
    saved: int
    input: int
    cached: int
    written: int
    output: int
    cost: int
    unpriced: int

    @property
    def spared(self) -> str:
        return f"{self.before - self.after:,}"


class Rows:
    """The decisions in the file of the store, which nobody has summed up yet."""

    def __init__(self, path: Path) -> None:
        self._database = sqlite3.connect(path)

    def by(self, name: str, more: str = "") -> dict[str, Sums]:
        """Sums by what a column, or an expression over it, is."""
        said = self._database.execute(f"SELECT {name}, {SUMS} FROM activity{more} GROUP BY 1")  # noqa: S608
        return {str(row[0]): Sums(*row[1:]) for row in said}

    def listed(self) -> Iterator[tuple[str, ...]]:
        """What the list of decisions shows of each, the newest first."""
        chosen = "at, door, kind, key, tokens_before - tokens_after, searches, error"
        for at, door, kind, key, spared, searches, error in self._database.execute(
            f"SELECT {chosen} FROM activity ORDER BY at DESC, id DESC LIMIT 50"  # noqa: S608
        ):
            yield when(at), f"{door} {kind}", key, f"{spared:,}", f"{searches:,}", error


async def shown(day: Day, path: str) -> Cells:
    answer = await day.gateway.http.get(path)
    assert answer.status_code == 200, answer.text
    return Cells(answer.text)


def table(page: Cells, first: str, second: str) -> dict[str, dict[str, str]]:
    """The rows of the table that begins with two headings, by the first cell."""
    [found] = [each for each in page.tables if each[0][:2] == [first, second]]
    return {row[0]: dict(zip(found[0], row, strict=True)) for row in found[1:]}


@pytest.mark.timeout(900)
async def test_each_figure_is_what_the_rows_of_the_store_add_up_to(tmp_path: Path) -> None:
    async with opened_day(tmp_path) as day:
        await day.play(DECISIONS)
        pages = {path: await shown(day, f"/ui{path}") for path in ("", "/activity", "/tools", "/conversations")}
        pages["/clients"] = await shown(day, "/ui/clients")
        approvals = (await day.gateway.http.get("/ui/approvals")).text
        rows = Rows(tmp_path / "activity.sqlite")
        [whole] = rows.by("''").values()

        overview = pages[""]
        assert overview.ids == overview.ids | {
            "decisions": f"{whole.decisions:,}",
            "tokens-saved": whole.spared,
            "cost": usd(whole.cost),
            "saved": usd(whole.saved),
            "billed": usd(whole.billed),
            "errors": f"{whole.errors:,}",
            "failures": f"{whole.failures:,}",
            "searches": f"{whole.searches:,}",
        }
        by_day = rows.by("date(at, 'unixepoch')")
        assert {
            name: (row["decisions"], row["tokens before"], row["tokens sent"], row["input"], row["models cost"])
            for name, row in table(overview, "day", "decisions").items()
            if row["decisions"] != "0"
        } == {
            name: (f"{each.decisions:,}", f"{each.before:,}", f"{each.after:,}", f"{each.input:,}", usd(each.cost))
            for name, each in by_day.items()
        }
        assert {
            name: (row["requests"], row["cached"], row["output"], row["no cost"], row["saved"])
            for name, row in table(overview, "model", "requests").items()
        } == {
            name: (f"{each.decisions:,}", f"{each.cached:,}", f"{each.output:,}", f"{each.unpriced:,}", usd(each.saved))
            for name, each in rows.by("model").items()
            if name
        }
        assert {name: row["decisions"] for name, row in table(overview, "door", "decisions").items()} == {
            name: f"{each.decisions:,}" for name, each in rows.by("door").items()
        }

        listed = pages["/activity"].tables[0]
        shows = ("time (UTC)", "door", "key", "tokens saved", "searched after")
        assert [tuple(dict(zip(listed[0], row, strict=True))[name] for name in shows) for row in listed[1:]] == [
            each[:5] for each in rows.listed()
        ]
        assert all(row[-1].startswith(said[5]) for row, said in zip(listed[1:], rows.listed(), strict=True))

        assert {
            name: (row["decisions"], row["searched after"], row["failed calls"], row["models cost"])
            for name, row in table(pages["/tools"], "tool", "decisions").items()
        } == {
            name: (f"{each.decisions:,}", f"{each.searches:,}", f"{each.failures:,}", usd(each.cost))
            for name, each in rows.by("each.value", TOOLS).items()
        }
        assert {
            name: (row["decisions"], row["tokens saved"], row["failed calls"], row["last (UTC)"])
            for name, row in table(pages["/conversations"], "conversation", "first (UTC)").items()
        } == {
            name: (f"{each.decisions:,}", each.spared, f"{each.failures:,}", when(each.last))
            for name, each in rows.by("conversation").items()
            if name
        }
        assert {
            name.replace("(none)", ""): (row["decisions"], row["tokens saved"], row["errors"], row["models cost"])
            for name, row in table(pages["/clients"], "key", "from").items()
        } == {
            name: (f"{each.decisions:,}", each.spared, f"{each.errors:,}", usd(each.cost))
            for name, each in rows.by("key").items()
        }

        by_door = {name: each.decisions for name, each in rows.by("door").items()}
        assert (by_door["llm"], by_door["api"]) == (day.decided["llm"], day.decided["api"])
        assert by_door["mcp"] >= day.decided["mcp"]
        assert whole.errors > 0
        assert whole.failures > 0
        assert "private keys" in approvals
