"""A configuration that lost its end while it was written is valid, and says that nobody needs a token."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import httpx2
import pytest

from doors import Raw
from pegboard.events import ConfigurationRefused
from pegboard.gateways.access_keys import hashed
from pegboard.gateways.mcp.transport import config_reload
from pegboard.gateways.mcp.transport.config_reload import Source
from pegboard.gateways.serve import serving
from pegboard.settings import Settings, load_settings
from pegboard.settings.reload_checks import weakened
from pegboard.stores import MemoryEmbeddings, MemoryEvents
from pegboard.testing import FakeEncoder
from processes import until
from upstream_specs import SCRIPTED

TOKEN = "pgb_ann-77aa"
WHOLE = f"""
eager_tools = 0
[servers.scripted]
command = {json.dumps(sys.executable)}
args = [{json.dumps(SCRIPTED)}]
[access.ann]
hash = "{hashed(TOKEN)}"
tools = ["echo"]
[access.bob]
hash = "{hashed("bob")}"
tools = ["*"]
"""
CUT_OFF = [WHOLE[: WHOLE.index("[access")], WHOLE[: WHOLE.index("tools = [")]]
KEY = {"hash": hashed("key")}
BOXED = {"command": "x", "sandbox": "bubblewrap"}


@dataclass
class Served:
    url: str
    http: httpx2.AsyncClient
    file: Path

    def write(self, text: str) -> None:
        """At once, with a time of its own: clocks of file systems are coarse."""
        new, before = self.file.with_suffix(".new"), self.file.stat().st_mtime_ns if self.file.exists() else 0
        new.write_text(text)
        os.utime(new, ns=(before + 1_000_000_000, before + 1_000_000_000))
        new.replace(self.file)

    async def degraded(self) -> list[str]:
        return list((await self.http.get(self.url.replace("/mcp", "/readyz"))).json()["degraded"])


@asynccontextmanager
async def serve(folder: Path, events: MemoryEvents, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Served]:
    monkeypatch.setattr(config_reload, "POLL_SECONDS", 0.02)
    file, listening = folder / "pegboard.toml", asyncio.Event()
    file.write_text(WHOLE)
    own = {"state_dir": folder, "cache_dir": folder, "port": 0, "start_wait": 60}
    source = Source.of([file], partial(load_settings, [file], **own))
    parts = {"encoder": FakeEncoder(), "embeddings": MemoryEmbeddings()}
    async with serving(source.load(), source, started=lambda url: listening.set(), sinks=[events], **parts) as server:
        ending = asyncio.create_task(server.until_end())
        try:
            await listening.wait()
            async with httpx2.AsyncClient(trust_env=False, timeout=60) as http:
                yield Served(server.url, http, file)
        finally:
            server.end(0)
            server.end(0)
            await ending


@pytest.mark.requirement("D5")
@pytest.mark.parametrize("cut_off", CUT_OFF, ids=["no token is left", "a token has lost its limits"])
async def test_a_half_written_file_drops_no_token_and_everybody_is_told(
    tmp_path: Path,
    events: MemoryEvents,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    cut_off: str,
) -> None:
    async with serve(tmp_path, events, monkeypatch) as served:
        ann = await Raw(served.http, served.url, headers={"authorization": f"Bearer {TOKEN}"}).begin()
        assert await ann.call("echo", text="before") == "before"

        served.write(cut_off)
        await until(lambda: bool(events.of(ConfigurationRefused)))

        (refused,) = events.of(ConfigurationRefused)
        assert refused.code == "configuration_weaker"
        assert [record.levelname for record in caplog.records if "not used" in record.message] == ["ERROR"]
        assert len(await served.degraded()) == 1
        assert (await Raw(served.http, served.url).post("initialize", {})).status == 401
        assert await ann.call("echo", text="still") == "still"
        assert (await ann.result("tools/call", name="add", arguments={"a": 1, "b": 1}))["isError"], (
            "and no more than before"
        )

        served.write(WHOLE + "# whole again\n")
        async with asyncio.timeout(20):
            while await served.degraded():
                pass
        assert await ann.call("echo", text="after") == "after"


async def test_a_file_that_cannot_be_read_is_told_too(
    tmp_path: Path, events: MemoryEvents, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serve(tmp_path, events, monkeypatch) as served:
        served.write("[servers")
        await until(lambda: bool(events.of(ConfigurationRefused)))
        assert await served.degraded() == [
            "The changed configuration is not used; the previous one stays in effect. It cannot be used."
        ]


@pytest.mark.requirement("D5")
@pytest.mark.parametrize(
    ("before", "after", "lost"),
    [
        ({"access": {"a": KEY}}, {}, "no token"),
        ({"access": {"a": KEY, "b": {"hash": hashed("b")}}}, {"access": {"a": KEY}}, ""),
        ({"access": {"a": KEY}}, {"access": {"b": {"hash": hashed("b")}}}, ""),
        ({"llm": {"keys": {"a": KEY}}}, {}, "no key"),
        ({"llm": {"keys": {"a": KEY}}}, {"llm": {"enabled": False}}, "no key"),
        ({"llm": {"keys": {"a": KEY | {"upstreams": ["x"]}}}}, {"llm": {"keys": {"a": KEY}}}, "permit all of them"),
        ({"access": {"a": KEY | {"tools": ["x"]}}}, {"access": {"a": KEY}}, "permit all of them"),
        ({"access": {"a": KEY | {"tools": ["x"]}}}, {"access": {"a": KEY | {"tools": ["*"]}}}, ""),
        ({"access": {"a": KEY}, "grants": {"s": ["x"]}}, {"access": {"a": KEY}}, "permit all of them"),
        ({"access": {"a": KEY}}, {"access": {"a": KEY}, "grants": {"s": ["x"]}}, ""),
        ({"rules": [{"tools": "x", "scope": "s"}]}, {"rules": [{"tools": "x"}]}, "no tool would require a scope"),
        ({"rules": [{"tools": "x", "scope": "s"}]}, {"rules": [{"tools": "y", "scope": "s"}]}, ""),
        ({"toolsets": {"t": {"scope": "s"}}}, {"toolsets": {"t": {}}}, "a toolset would require no scope"),
        ({"toolsets": {"t": {"scope": "s"}}}, {}, ""),
        ({"llm": {"budgets": [{"day": 1}]}}, {}, "no budget for models"),
        ({"llm": {"budgets": [{"day": 1}]}}, {"llm": {"budgets": [{"day": 2}]}}, ""),
        ({}, {"access": {"a": KEY}}, ""),
        ({"spend": {"day": 1}}, {}, "a limit of spending"),
        ({"spend": {"day": 1, "key": 2}}, {"spend": {"day": 3}}, "a limit of spending"),
        ({"spend": {"session": 1}}, {"spend": {"session": 2}}, ""),
        ({"pins": "quarantine"}, {}, "definitions would not be held back"),
        ({"pins": "quarantine"}, {"pins": "warn"}, ""),
        ({"new_servers": "quarantine"}, {}, "definitions would not be held back"),
        ({"scan": "quarantine"}, {}, "definitions would not be held back"),
        ({"scan": "quarantine"}, {"scan": "quarantine"}, ""),
        ({"sandbox": "bubblewrap"}, {}, "without its sandbox"),
        ({"sandbox": "bubblewrap"}, {"sandbox": "none"}, ""),
        ({"servers": {"a": BOXED}}, {"servers": {"a": {"command": "x"}}}, "without its sandbox"),
        ({"servers": {"a": BOXED}}, {"servers": {"a": {"command": "x", "sandbox": "none"}}}, ""),
        ({"servers": {"a": BOXED}}, {"servers": {"a": {"command": "x"}}, "sandbox": "bubblewrap"}, ""),
        ({"servers": {"a": BOXED}}, {"servers": {"a": {"url": "https://a.example/mcp"}}}, ""),
        ({"servers": {"a": BOXED}}, {}, ""),
    ],
)
def test_what_would_open_what_was_shut_is_named(before: dict[str, object], after: dict[str, object], lost: str) -> None:
    said = weakened(Settings(**before), Settings(**after))  # type: ignore[arg-type]

    assert (lost in said) if lost else not said
