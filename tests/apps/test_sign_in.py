"""`pegboard login`, `whoami` and `logout`, as a person types them."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import webbrowser
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from typer.testing import Result

from pegboard import Settings
from pegboard.apps.cli import doctor
from pegboard.apps.cli.whoami import settings_of
from pegboard.gateways.users import ids_of, of_subject, of_token, user_named
from pegboard.upstreams.oauth import credential_store as credential_store_module
from pegboard.upstreams.oauth.sign_ins import credential_store
from processes import listening
from signers import SIGNED, control

PUBLIC = "https://93.184.215.14/mcp"
ANSWERING = str(Path(__file__).parents[1] / "clients" / "answering_browser.py")

EXCHANGE = {
    "grant": "token_exchange",
    "client_id": "gateway",
    "client_secret": "secret",
    "token_endpoint": "https://login.example/token",
}

Run = Callable[..., Result]
RunJson = Callable[..., Any]


@pytest.fixture(autouse=True)
def _no_keychain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEGBOARD_CREDENTIALS", "file")


@pytest.fixture
def server() -> Iterator[str]:
    with listening(SIGNED) as url:
        yield url


@pytest.fixture
def config(server: str, servers_file: Callable[..., Path]) -> Path:
    return servers_file(signed={"url": f"{server}/mcp"})


def browser(monkeypatch: pytest.MonkeyPatch, answer: str = "allow") -> None:
    """What `BROWSER` would be, which the module reads only once."""
    answering = webbrowser.get(f"{sys.executable} {ANSWERING} {answer} %s")
    monkeypatch.setattr(webbrowser, "open", answering.open)


def stored(url: str) -> Any:
    return asyncio.run(control(url))


@pytest.mark.requirement("023.login", "023.private")
def test_a_sign_in_is_kept_shown_used_and_ended(
    run: Run, run_json: RunJson, server: str, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser(monkeypatch)
    done = run("login", "signed", "--config", config)
    assert done.exit_code == 0, done.output
    assert f"Signed in to 'signed' at {server}" in done.output
    secrets = stored(server)["tokens"]

    [shown] = run_json("whoami")["sign_ins"]
    assert (shown["server"], shown["issuer"], shown["renewable"]) == ("signed", server, True)
    table = run("whoami")
    assert "signed" in table.output

    found = run_json("route", "who am I", "--config", config)
    assert "whose" in json.dumps(found)

    ended = run("logout", "signed")
    assert "They are revoked" in ended.output
    assert stored(server)["tokens"] == []
    assert run_json("whoami") == {"sign_ins": []}
    everything = done.output + done.stderr + json.dumps(shown) + table.output + ended.output
    assert len(secrets) == 2
    assert not [secret for secret in secrets if secret in everything]


def test_a_browser_in_the_terminal_need_not_be_closed(run: Run, config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    browser(monkeypatch)
    answered, closed, gone = webbrowser.open, threading.Event(), threading.Event()

    def opened(url: str) -> bool:
        answered(url)
        closed.wait(60)
        gone.set()
        return True

    monkeypatch.setattr(webbrowser, "open", opened)
    done = run("login", "signed", "--config", config)
    was_open = not gone.is_set()
    closed.set()
    assert done.exit_code == 0, done.output
    assert was_open


@pytest.mark.requirement("023.login")
def test_the_address_at_which_a_browser_elsewhere_ended_can_be_pasted(
    run_json: RunJson, start: Callable[..., subprocess.Popen[bytes]], server: str, config: Path
) -> None:
    with (
        start("login", "signed", "--no-browser", "--config", config) as process,
        httpx2.Client(follow_redirects=True, timeout=60) as elsewhere,
    ):
        page = next(line.decode().strip() for line in process.stderr or () if line.startswith(b"http"))
        question = elsewhere.get(page)
        answer = elsewhere.post(question.url, data={"answer": "allow"}, follow_redirects=False)
        ended = answer.headers["location"]
        typed = "".join(f"{line}\n" for line in ("nonsense", ended.replace("state=", "state=x"), ended))
        said = process.communicate(typed.encode(), 60)[1].decode()
        code = process.returncode

    assert code == 0, said
    assert "Paste the whole address" in said
    assert "not the answer to a sign-in that was begun here" in said
    assert [each["server"] for each in run_json("whoami")["sign_ins"]] == ["signed"]


@pytest.mark.parametrize(
    ("entry", "revoked"),
    [
        ({"url": PUBLIC}, False),
        ({"url": PUBLIC, "oauth": {"private_addresses": True}}, True),
        ({"url": "https://another.example/mcp", "oauth": {"private_addresses": True}}, False),
    ],
    ids=["not allowed", "allowed", "allowed to another server"],
)
def test_logout_asks_a_private_address_of_a_public_server_only_where_the_entry_allows_it(
    run: Run,
    server: str,
    config: Path,
    servers_file: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    entry: dict[str, Any],
    revoked: bool,
) -> None:
    browser(monkeypatch)
    assert run("login", "signed", "--config", config).exit_code == 0
    store = credential_store(settings_of([config]))
    [summary] = store.all()
    made = store.read(summary.key)
    assert made is not None
    store.delete(summary.key)
    store.write(made.model_copy(update={"url": PUBLIC}))
    ended = run("logout", "signed", "--config", servers_file(signed=entry))

    assert ("They are revoked" in ended.output) == revoked
    assert (stored(server)["tokens"] == []) == revoked
    assert store.all() == []


def test_tokens_that_another_process_holds_keep_no_others_from_being_removed(
    run: Run, run_json: RunJson, server: str, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser(monkeypatch)
    assert run("login", "signed", "--config", config).exit_code == 0
    store = credential_store(settings_of([config]))
    made = store.read(store.all()[0].key)
    assert made is not None
    before = made.model_copy(update={"server": "before"})
    store.write(before)
    monkeypatch.setattr(credential_store_module, "LOCK_SECONDS", 0)
    with store.lock(before.key):
        ended = run_json("logout", "--all", code=1)
        again = run("logout", "before")

    assert [(each["server"], each["revoked"]) for each in ended["removed"]] == [("signed", True)]
    assert [each["server"] for each in ended["kept"]] == ["before"]
    assert stored(server)["tokens"] == []
    assert again.exit_code == 1
    assert "'before' are not removed. Another process" in again.output
    assert [each.server for each in store.all()] == ["before"]
    assert "are removed" in run("logout", "--all").output


def test_who_refuses_gets_an_error_and_nothing_is_kept(
    run: Run, run_json: RunJson, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser(monkeypatch, "refuse")
    done = run("login", "signed", "--config", config)

    assert done.exit_code == 1
    assert "was refused: access_denied" in done.stderr
    assert run_json("whoami") == {"sign_ins": []}


def test_an_open_server_is_said_to_need_no_sign_in(run: Run, servers_file: Callable[..., Path]) -> None:
    with listening(SIGNED, '{"open": true}') as url:
        done = run("login", "open", "--config", servers_file(open={"url": f"{url}/mcp"}))

    assert done.exit_code == 1
    assert "does not ask for a sign-in" in done.stderr


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"command": "some-server"}, "is a command"),
        ({"url": "https://a.example/mcp", "headers": {"Authorization": "Bearer x"}}, "has a token or key"),
    ],
)
def test_servers_that_cannot_be_signed_in_to_are_errors_of_use(
    run: Run, servers_file: Callable[..., Path], entry: dict[str, Any], said: str
) -> None:
    done = run("login", "it", "--config", servers_file(it=entry))

    assert done.exit_code == 2
    assert said in done.stderr


@pytest.mark.parametrize(
    ("entry", "settings", "said"),
    [
        ({}, {"access": {"ann": {"hash": "sha256:" + "0" * 64}}}, "has one connection for all its users"),
        ({"per_user": True}, {"access": {"ann": {"hash": "sha256:" + "0" * 64}}}, "No user is called 'bob'"),
        ({"per_user": True, "oauth": EXCHANGE}, {}, "Nobody signs in to server 'it'"),
    ],
)
def test_a_sign_in_for_a_user_needs_a_user_and_a_server_that_has_users(
    run: Run, tmp_path: Path, entry: dict[str, Any], settings: dict[str, Any], said: str
) -> None:
    config = tmp_path / "users.json"
    servers = {"it": {"url": "https://a.example/mcp"} | entry}
    config.write_text(json.dumps({"mcpServers": servers, "pegboard": settings}), "utf-8")
    done = run("login", "it", "--user", "bob", "--config", config)

    assert done.exit_code == 2
    assert said in done.stderr


def test_a_subject_of_the_issuer_is_a_user_and_a_configured_name_comes_first() -> None:
    issuer = {
        "url": "https://login.example",
        "resource": "https://gate.example/mcp",
        "jwks_uri": "https://login.example/k",
    }
    settings = Settings(access={"ann": {"hash": "sha256:" + "0" * 64}}, issuer=issuer)  # type: ignore[arg-type]

    assert user_named("ann", settings) == of_token("ann")
    assert user_named("zoe", settings) == of_subject("https://login.example", "zoe")
    assert ids_of("zoe", settings) == {"zoe", of_token("zoe"), of_subject("https://login.example", "zoe")}


def test_unknown_names_are_answered_with_the_known_ones(run: Run, config: Path) -> None:
    done = run("login", "sigend", "--config", config)
    assert done.exit_code == 2
    assert "No enabled server is called 'sigend'. Servers with a URL: signed." in done.stderr

    gone = run("logout", "signed")
    assert gone.exit_code == 2
    assert "Nobody is signed in to 'signed'" in gone.stderr
    assert run("logout").exit_code == 2


async def _fine(_settings: object) -> list[doctor.Check]:
    return []


@pytest.mark.requirement("023.waiting")
def test_doctor_names_the_command_for_a_server_that_waits_for_a_sign_in(
    run_json: RunJson, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "encoder", _fine)
    found = {check["name"]: check for check in run_json("doctor", "--config", config, code=1)["checks"]}

    assert found["server signed"]["detail"] == "It waits for a sign-in (OAuth)."
    assert "pegboard login signed" in found["server signed"]["remedy"]
