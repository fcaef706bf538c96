"""A changed `[llm]` is taken up while requests are under way."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest

from model_bodies import asking
from model_upstream import FIRST, LAST, ModelUpstream, model_upstream
from pegboard.gateways import drain
from pegboard.gateways.access_keys import hashed, new_key
from pegboard.gateways.mcp.transport import config_reload
from pegboard.gateways.mcp.transport.config_reload import Source
from pegboard.gateways.serve import serving
from pegboard.settings import load_settings
from pegboard.stores import MemoryEmbeddings
from pegboard.testing import FakeEncoder
from processes import until
from served import Gateway, OpenGateway

CHAT = "/openai/v1/chat/completions"
POLICY = {"profile": "semantic", "k": 1, "ways": ["tools"], "least_tools": 0, "least_tokens": 0, "way_back": False}
PATIENT = {"patience": 60, "filter_timeout": 60, "policy": POLICY}
FIRST_KEY, SECOND_KEY = new_key(), new_key()


class Configuration:
    """A file with what `[llm]` says."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "pegboard.json"
        self.versions = 0

    def write(self, **llm: Any) -> None:
        self.write_text(json.dumps({"mcpServers": {}, "pegboard": {"llm": llm}}))

    def write_text(self, text: str) -> None:
        """At once, with a time of its own: clocks of file systems are coarse."""
        new = self.path.with_suffix(".new")
        new.write_text(text)
        self.versions += 1
        os.utime(new, (self.versions, self.versions))
        new.replace(self.path)


@pytest.fixture
def configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Configuration:
    monkeypatch.setattr(config_reload, "POLL_SECONDS", 0.02)
    return Configuration(tmp_path)


@pytest.fixture
def serve(configuration: Configuration, tmp_path: Path) -> Callable[..., Any]:
    @asynccontextmanager
    async def opened() -> AsyncIterator[Gateway]:
        read = partial(load_settings, [configuration.path], cache_dir=tmp_path, state_dir=tmp_path, port=0)
        source, listening = Source.of([configuration.path], read), asyncio.Event()
        parts = {"encoder": FakeEncoder(), "embeddings": MemoryEmbeddings()}
        async with serving(read(), source, started=lambda url: listening.set(), **parts) as server:
            ending = asyncio.create_task(server.until_end())
            await listening.wait()
            base = server.url.removesuffix("/mcp")
            async with httpx2.AsyncClient(trust_env=False, timeout=60, base_url=base) as http:
                yield Gateway(server, http, ending)
            server.end(0)
            server.end(0)
            await ending

    return opened


def to(upstream: ModelUpstream, **more: Any) -> dict[str, Any]:
    return PATIENT | {"upstreams": {"openai": {"url": upstream.url}}} | more


async def taken_up(caplog: pytest.LogCaptureFixture, times: int = 1) -> None:
    await until(lambda: caplog.text.count("The configuration changed.") == times)


@pytest.mark.requirement("A11")
async def test_new_keys_upstreams_and_policies_hold_from_the_next_request_on(
    configuration: Configuration, serve: Callable[..., Any], upstream: ModelUpstream, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "pegboard")
    keys = {"one": {"hash": hashed(FIRST_KEY)}}
    configuration.write(**to(upstream, keys=keys))
    async with serve() as gateway, model_upstream() as other:

        async def status(key: str, path: str = CHAT) -> int:
            headers = {"authorization": f"Bearer {key}"}
            return (await gateway.http.post(path, json=asking("openai_chat", "beta"), headers=headers)).status_code

        assert [await status(FIRST_KEY), await status(SECOND_KEY)] == [200, 401]
        assert upstream.tools == ["beta"]
        assert await status(FIRST_KEY, "/local/v1/chat/completions") == 404, "no upstream's name"
        before = len(upstream.sent)

        local = {"local": {"url": other.url}}
        configuration.write(
            **to(upstream, keys={"two": {"hash": hashed(SECOND_KEY)}}, policy={"filter": False})
            | {"upstreams": {"openai": {"url": upstream.url}} | local}
        )
        await taken_up(caplog)
        assert [await status(FIRST_KEY), await status(SECOND_KEY)] == [401, 200]
        assert upstream.tools == ["alpha", "beta", "gamma", "delta"]
        assert await status(SECOND_KEY, "/local/v1/chat/completions") == 200
        assert (len(upstream.sent), len(other.sent)) == (before + 1, 1)
    assert "after a restart" not in caplog.text


@pytest.mark.requirement("A11")
async def test_an_answer_under_way_comes_to_its_end_whatever_becomes_of_its_upstream(
    configuration: Configuration, serve: Callable[..., Any], upstream: ModelUpstream, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "pegboard")
    configuration.write(**to(upstream))
    upstream.mood = "stream"
    async with serve() as gateway, model_upstream() as other:
        async with gateway.http.stream("POST", CHAT, json=asking("openai_chat", stream=True)) as answer:
            await upstream.begun.wait()
            configuration.write(**to(other))
            await taken_up(caplog)
            new = await gateway.http.post(CHAT, json=asking("openai_chat"))
            upstream.release.set()
            assert await answer.aread() == FIRST + LAST
        assert (new.status_code, len(other.sent), len(upstream.sent)) == (200, 1, 1)


@pytest.mark.requirement("A11")
@pytest.mark.parametrize(
    "wrong",
    [
        {"policy": {"threshold": 1.5}},
        {"rules": [{"upstream": "opnai", "k": 1}]},
        {"upstreams": {"openai": {"url": "http://127.0.0.1:9", "api_key_env": "NOT_SET_ANYWHERE"}}},
        {"no_such_option": 1},
        None,
    ],
)
async def test_a_change_that_makes_no_sense_is_refused_and_said_and_what_was_goes_on(
    configuration: Configuration,
    serve: Callable[..., Any],
    upstream: ModelUpstream,
    caplog: pytest.LogCaptureFixture,
    wrong: dict[str, Any] | None,
) -> None:
    caplog.set_level(logging.INFO, "pegboard")
    configuration.write(**to(upstream))
    async with serve() as gateway:
        if wrong is None:
            configuration.write_text("{")
        else:
            configuration.write(**to(upstream) | wrong)
        await until(lambda: "The changed configuration is not used; the previous one stays in effect" in caplog.text)
        answer = await gateway.http.post(CHAT, json=asking("openai_chat", "beta"))
        assert (answer.status_code, upstream.tools) == (200, ["beta"])

        configuration.write(**to(upstream, policy={"filter": False}))
        await taken_up(caplog)
        await gateway.http.post(CHAT, json=asking("openai_chat", "beta"))
        assert len(upstream.tools) == 4


@pytest.mark.requirement("A11")
async def test_the_llm_gateway_is_switched_off_and_on_again(
    configuration: Configuration, serve: Callable[..., Any], upstream: ModelUpstream, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "pegboard")
    configuration.write(**to(upstream, enabled=False))
    async with serve() as gateway:
        assert (await gateway.http.post(CHAT, json=asking("openai_chat"))).status_code == 404
        configuration.write(**to(upstream))
        await taken_up(caplog)
        assert (await gateway.http.post(CHAT, json=asking("openai_chat"))).status_code == 200
        configuration.write(**to(upstream, enabled=False))
        await taken_up(caplog, 2)
        assert (await gateway.http.post(CHAT, json=asking("openai_chat"))).status_code == 404


async def test_new_prices_hold_from_the_next_request_on(
    configuration: Configuration, serve: Callable[..., Any], upstream: ModelUpstream, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "pegboard")
    llm = to(upstream, budgets=[{"day": 1.0}])
    configuration.write(**llm)
    async with serve() as gateway:

        async def status() -> int:
            return (await gateway.http.post(CHAT, json=asking("openai_chat", model="own"))).status_code

        async def entries(many: int) -> list[dict[str, str]]:
            async with asyncio.timeout(20):
                while True:
                    text = (await gateway.http.get("/ui/activity.csv")).text
                    if len(found := list(csv.DictReader(io.StringIO(text)))) == many:
                        return found

        assert await status() == 403, "the model has no price"
        await entries(1)
        activity = {"prices": {"own": {"input": 1.0, "output": 1.0}}}
        configuration.write_text(json.dumps({"mcpServers": {}, "pegboard": {"llm": llm, "activity": activity}}))
        await taken_up(caplog)
        assert await status() == 200
        later = await entries(2)
        assert [each["billed"] != "0" for each in later] == [True, False], "the pages count by them, too"


@pytest.mark.requirement("A11")
async def test_what_needs_a_restart_is_said(
    configuration: Configuration,
    serve: Callable[..., Any],
    upstream: ModelUpstream,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:
    caplog.set_level(logging.INFO, "pegboard")
    configuration.write(**to(upstream))
    async with serve():
        configuration.write(**to(upstream, record=str(tmp_path / "requests.jsonl")))
        await taken_up(caplog)
    assert "take effect after a restart: llm.record" in caplog.text


@pytest.mark.requirement("A11")
async def test_with_a_wait_of_nothing_balancers_still_hear_that_it_ends(
    gateway_of: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert drain.LEAST_WAIT > 0
    monkeypatch.setattr(drain, "LEAST_WAIT", 1000)
    async with gateway_of(drain_wait=0) as gateway:
        gateway.server.terminate()
        ready = await gateway.http.get("/readyz")
        served = await gateway.http.post(CHAT, json=asking("openai_chat"))

    assert (ready.status_code, ready.json()["reasons"]) == (503, ["The process is shutting down."])
    assert served.status_code == 200


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX")
@pytest.mark.requirement("A11")
async def test_sighup_has_the_configuration_read_at_once_and_ends_nothing(
    upstream: ModelUpstream, tmp_path: Path
) -> None:
    configuration = Configuration(tmp_path)
    keys = {"one": {"hash": hashed(FIRST_KEY)}}
    configuration.write(**to(upstream, policy={"filter": False}))
    folders = {f"PEGBOARD_{name}_DIR": str(tmp_path) for name in ("CACHE", "STATE")}
    words = ["serve", "--config", str(configuration.path), "--port", "0", "--json", "--log-format", "json"]
    logged = tmp_path / "log"
    with logged.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "pegboard", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=os.environ | folders,
        )
    assert process.stdout is not None
    try:
        url = json.loads(await asyncio.to_thread(process.stdout.readline))["url"].removesuffix("/mcp")
        async with httpx2.AsyncClient(trust_env=False, timeout=60, base_url=url) as http:
            assert (await http.post(CHAT, json=asking("openai_chat"))).status_code == 200
            about = configuration.path.stat()
            document = json.loads(configuration.path.read_text())
            document["pegboard"]["llm"]["keys"] = keys
            configuration.path.write_text(json.dumps(document))
            os.utime(configuration.path, ns=(about.st_atime_ns, about.st_mtime_ns))
            process.send_signal(signal.SIGHUP)
            await until(lambda: "The configuration changed." in logged.read_text(), 120)
            assert (await http.post(CHAT, json=asking("openai_chat"))).status_code == 401
            headers = {"x-api-key": FIRST_KEY}
            assert (await http.post(CHAT, json=asking("openai_chat"), headers=headers)).status_code == 200
        process.terminate()
        assert await asyncio.to_thread(process.wait, 60) == 0
    finally:
        process.kill()
        process.stdout.close()
        process.wait()


@pytest.mark.requirement("025.items-reloaded")
async def test_skills_are_read_again_with_the_configuration_and_kept_where_they_cannot_be(
    configuration: Configuration, serve: Callable[..., Any], upstream: ModelUpstream, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "pegboard")
    skill = configuration.path.parent / "skills" / "one" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    policy = {"filter": True, "way_back": True, "ways": ["tools"], "least_tools": 0}

    def write(name: str) -> None:
        skill.write_text(f"---\nname: {name}\ndescription: Says hello\n---\n" if name else "no front matter")
        own = {"items": {"skills": [str(skill.parent)]}, "llm": to(upstream, policy=policy)}
        configuration.write_text(json.dumps({"mcpServers": {}, "pegboard": own}))

    write("greeting")
    async with serve() as gateway:

        async def found() -> tuple[str, str]:
            """What the description of a model's search names, and what an MCP client's search finds."""
            (await gateway.http.post(CHAT, json=asking("openai_chat", "Hello"))).raise_for_status()
            answer = await gateway.http.post("/v1/search", json={"query": "hello"})
            tools = json.loads(upstream.sent[-1].body)["tools"]
            named = tools[-1]["function"]["description"].rpartition("- skill ")[2].partition(":")[0]
            return named, answer.json()["skills"][0]["name"]

        assert await found() == ("greeting", "greeting")
        write("farewell")
        await taken_up(caplog)
        assert await found() == ("farewell", "farewell")
        write("")
        await until(lambda: "has no front matter" in caplog.text)
        assert "the previous one stays in effect" in caplog.text
        assert await found() == ("farewell", "farewell")
