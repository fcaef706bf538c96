"""Which stores the settings give, and that an address keeps its password to itself."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

from pegboard.errors import ConfigError, StoreError
from pegboard.model import Outcome, Session, ToolId
from pegboard.settings import Settings, load_settings
from pegboard.stores import SqliteSessions
from pegboard.stores.postgres import PostgresSessions
from pegboard.stores.redis import RedisSessions
from pegboard.stores.state import open_state
from pegboard.testing import FakeClock
from pegboard_bench.ports import free_port

SECRET = "s3cret"


def settings(url: str | None, folder: Path, **options: object) -> Settings:
    chosen = {} if url is None else {"state": url}
    return load_settings(state_dir=folder / "state", cache_dir=folder / "cache", **chosen, **options)


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        (None, SqliteSessions),
        ("redis://box/0", RedisSessions),
        ("rediss://box/0", RedisSessions),
        ("postgres://box/db", PostgresSessions),
        ("postgresql://box/db", PostgresSessions),
    ],
)
async def test_the_address_says_which_stores(url: str | None, kind: type, clock: FakeClock, tmp_path: Path) -> None:
    state = open_state(settings(url, tmp_path), clock)

    assert isinstance(state.sessions, kind)
    assert (state.replicas is None) == (url is None)
    await state.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("url", "said"), [(f"mysql://me:{SECRET}@box/db", "'mysql:'"), (SECRET, "'nothing'"), ("", "'nothing'")]
)
def test_an_address_of_no_store_is_refused_without_being_repeated(
    url: str, said: str, clock: FakeClock, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="begins with") as caught:
        open_state(settings(url, tmp_path), clock)

    assert said in str(caught.value)
    assert "redis://HOST:PORT/0" in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.requirement("M30")
async def test_variables_stand_for_their_values(
    clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATE_PASSWORD", SECRET)
    port = free_port()
    chosen = settings(f"redis://me:${{STATE_PASSWORD}}@127.0.0.1:{port}/${{STATE_NUMBER:-4}}", tmp_path)
    state = open_state(chosen, clock)

    with pytest.raises(StoreError, match=rf"127\.0\.0\.1:{port}/4") as caught:
        await state.sessions.load("one")

    assert SECRET not in f"{caught.value!r} {caught.value} {chosen!r} {chosen} {chosen.model_dump_json()} {state!r}"
    await state.close()


def test_a_variable_that_is_not_set_is_named(clock: FakeClock, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="NOT_SET_ANYWHERE"):
        open_state(settings("redis://:${NOT_SET_ANYWHERE}@box/0", tmp_path), clock)


@pytest.mark.parametrize(
    ("url", "package", "extra"),
    [("redis://box/0", "redis", "redis"), ("postgresql://box/db", "psycopg", "postgres")],
)
async def test_a_missing_package_is_said_with_what_to_install(
    url: str, package: str, extra: str, clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    state = open_state(settings(url, tmp_path), clock)

    with pytest.raises(ConfigError, match=rf"pip install 'pegboard\[{extra}\]'"):
        await state.sessions.load("one")
    await state.close()


async def test_the_configured_weights_and_first_values_are_the_stores(clock: FakeClock, tmp_path: Path) -> None:
    averages = {"smoothing": {"latency": 0.5}, "prior": {"latency": 3.0, "success": 1.0}}
    state = open_state(settings(None, tmp_path, statistics=averages), clock)
    tool = ToolId("git", "log")

    await state.statistics.observe([Outcome(tool=tool, success=True, latency_ms=1_000)])

    known = (await state.statistics.read())[tool]
    assert (known.latency, known.success) == (2.0, 1.0)
    await state.close()


async def test_sessions_last_as_long_as_configured(clock: FakeClock, tmp_path: Path) -> None:
    state = open_state(settings(None, tmp_path, session_ttl=5), clock)
    await state.sessions.save(Session(id="one"))
    clock.advance(6)

    assert await state.sessions.load("one") is None
    await state.close()


async def test_a_store_that_does_not_answer_is_asked_again_after_its_rest(clock: FakeClock, tmp_path: Path) -> None:
    address = {"url": f"redis://127.0.0.1:{free_port()}/0", "rest": 30}
    state = open_state(load_settings(state=address, cache_dir=tmp_path), clock)
    with pytest.raises(StoreError) as first:
        await state.sessions.load("one")
    with pytest.raises(StoreError) as second:
        await state.statistics.read()

    assert second.value.message == first.value.message
    assert second.value.__cause__ is None
    await state.close()


def test_the_layer_contract_names_every_backend() -> None:
    root = Path(__file__).parents[2]
    contracts = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    named = next(each["modules"] for each in contracts if each["type"] == "independence")

    folders = {path.parent.name for path in (root / "src/pegboard/stores").glob("*/sessions.py")}

    assert {name.removeprefix("pegboard.stores.") for name in named} == folders
