from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from embedding_services import KEY, Service, service
from pegboard.apps.cli import doctor
from pegboard.settings import Settings, load_settings
from pegboard.stores.database import Migration
from pegboard.stores.sqlite.database import STATE_MIGRATIONS, SqliteFile
from pegboard_bench.ports import free_port
from processes import listening
from servers.protected import TOKEN
from servers.scripted import TOOLS

PROTECTED = str(Path(__file__).parents[1] / "servers" / "protected.py")

Run = Callable[..., Result]
RunJson = Callable[..., Any]


@pytest.fixture
def healthy_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model is checked in a test of its own: loading it takes longer than everything else here."""

    async def fine(_settings: object) -> list[doctor.Check]:
        return [doctor.Check(name="encoder", status="ok", detail="fine")]

    monkeypatch.setattr(doctor, "encoder", fine)


def by_name(report: Any) -> dict[str, Any]:
    return {check["name"]: check for check in report["checks"]}


@pytest.mark.usefixtures("healthy_encoder")
def test_a_machine_in_order_passes_and_exits_with_0(
    run_json: RunJson, run: Run, servers_file: Callable[..., Path], scripted: dict[str, Any]
) -> None:
    path = servers_file(good=scripted)
    found = by_name(run_json("doctor", "--config", path))

    assert found[str(path)]["detail"] == "1 server"
    assert found["server good"]["status"] == "ok"
    assert f"{len(TOOLS)} tools in" in found["server good"]["detail"]
    assert found["routing"]["detail"] == "profile hybrid, 0 rules"
    assert {"python", "pegboard", "mcp", "onnxruntime"} <= set(found)


@pytest.mark.requirement("B4")
@pytest.mark.usefixtures("healthy_encoder")
def test_a_server_that_needs_signing_in_is_called_so_and_one_with_a_wrong_token_too(
    run_json: RunJson, servers_file: Callable[..., Path]
) -> None:
    with listening(PROTECTED) as url:
        tokens = {
            "unsigned": {},
            "stale": {"Authorization": "Bearer old"},
            "good": {"Authorization": f"Bearer {TOKEN}"},
        }
        path = servers_file(**{name: {"url": f"{url}/mcp", "headers": headers} for name, headers in tokens.items()})
        found = by_name(run_json("doctor", "--config", path, code=1))

    assert found["server good"]["status"] == "ok"
    assert found["server unsigned"]["detail"] == "It waits for a sign-in (OAuth)."
    assert "pegboard login unsigned" in found["server unsigned"]["remedy"]
    assert found["server stale"]["detail"] == "It refuses the token or key of its entry (HTTP 401)."
    assert "token" in found["server stale"]["remedy"]


@pytest.mark.usefixtures("healthy_encoder")
def test_a_server_that_does_not_start_fails_with_its_reason(
    run_json: RunJson, run: Run, servers_file: Callable[..., Path]
) -> None:
    path = servers_file(
        gone={"command": "/nowhere/server"},
        needy={"command": "sh", "env": {"TOKEN": "${NOT_SET_ANYWHERE}"}},
        loud={"command": "sh", "args": ["-c", "echo no licence >&2; exit 3"]},
        off={"command": "/nowhere/else", "disabled": True},
    )
    report = run_json("doctor", "--config", path, code=1)
    found = by_name(report)

    assert report["ok"] is False
    assert found[str(path)]["detail"] == "4 servers, 1 of them disabled"
    assert "'/nowhere/server' was not found" in found["server gone"]["detail"]
    assert "NOT_SET_ANYWHERE" in found["server needy"]["detail"]
    assert "no licence" in found["server loud"]["detail"]
    assert all(found[f"server {name}"]["remedy"] for name in ("gone", "needy", "loud"))
    assert "server off" not in found
    assert "fail" in run("doctor", "--config", path).stdout


@pytest.mark.usefixtures("healthy_encoder")
def test_every_broken_file_is_named_with_its_remedy(run_json: RunJson, machine: Path) -> None:
    (machine / "a.json").write_text("{")
    (machine / "b.toml").write_text("k = 0")
    found = by_name(run_json("doctor", "--config", machine / "a.json", "--config", machine / "b.toml", code=1))

    assert "is not JSON" in found[str(machine / "a.json")]["detail"]
    assert "k: Input should be greater than or equal to 1" in found[str(machine / "b.toml")]["detail"]
    assert found[str(machine / "a.json")]["remedy"] == "Correct the file there."


@pytest.mark.usefixtures("healthy_encoder")
def test_options_that_contradict_each_other_are_found(run_json: RunJson, machine: Path) -> None:
    (machine / "own.toml").write_text('profile = "semantic"\nrecall = 0.5')
    found = by_name(run_json("doctor", "--config", machine / "own.toml", code=1))

    assert found["routing"]["status"] == "fail"
    assert "--profile hybrid" in found["routing"]["remedy"]


@pytest.mark.usefixtures("healthy_encoder")
def test_no_configuration_at_all_is_a_warning(run_json: RunJson) -> None:
    report = run_json("doctor")

    assert report["ok"] is True
    assert by_name(report)["configuration"]["status"] == "warn"


def test_a_variable_that_cannot_be_used_is_found(run_json: RunJson, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEGBOARD_K", "many")
    checks = run_json("doctor", code=1)["checks"]

    assert [(each["name"], "k: Input should be" in each["detail"]) for each in checks if each["status"] == "fail"] == [
        ("environment", True)
    ]


@pytest.mark.usefixtures("healthy_encoder")
def test_a_client_that_starts_pegboard_is_in_order(run_json: RunJson, machine: Path) -> None:
    file = machine / "client.json"
    file.write_text('{"mcpServers": {"pegboard": {"command": "pegboard", "args": ["mcp"]}}}')
    found = by_name(run_json("doctor", "--config", file))

    assert (found[str(file)]["status"], found[str(file)]["detail"]) == ("ok", "starts Pegboard")


async def test_an_encoder_that_is_not_there_fails_with_a_remedy(tmp_path: Path) -> None:
    (check,) = await doctor.encoder(load_settings(), tmp_path)

    assert (check.name, check.status) == ("encoder", "fail")
    assert "Install pegboard again" in check.remedy


async def test_an_encoder_with_half_a_card_fails(tmp_path: Path) -> None:
    (tmp_path / "card.json").write_text('{"window": 256}')
    (check,) = await doctor.encoder(load_settings(), tmp_path)

    assert (check.status, check.remedy) == ("fail", "Install pegboard again.")


async def test_the_cache_is_counted_and_measured(tmp_path: Path) -> None:
    (check,) = await doctor.cache(load_settings(cache_dir=tmp_path))

    assert check.status == "ok"
    assert "0 vectors, 0.0 MB" in check.detail


async def test_a_cache_that_is_no_database_fails_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "embeddings.sqlite").write_bytes(b"this is not a database at all")
    (check,) = await doctor.cache(load_settings(cache_dir=tmp_path))

    assert check.status == "fail"
    assert "Delete the file" in check.remedy


async def test_the_store_of_state_is_counted_and_named(tmp_path: Path) -> None:
    (check,) = await doctor.state(load_settings(cache_dir=tmp_path, state_dir=tmp_path))

    assert (check.name, check.status) == ("state", "ok")
    assert f"{tmp_path}/state.sqlite: 0 records" in check.detail


async def test_a_store_of_state_that_does_not_answer_fails_without_its_password(tmp_path: Path) -> None:
    port = free_port()
    (check,) = await doctor.state(load_settings(cache_dir=tmp_path, state=f"redis://me:s3cret@127.0.0.1:{port}/0"))

    assert (check.name, check.status) == ("state", "fail")
    assert f"127.0.0.1:{port}/0" in check.detail
    assert "Check that it runs" in check.remedy
    assert "s3cret" not in check.detail + check.remedy


async def test_a_store_of_state_that_a_newer_version_changed_fails(tmp_path: Path) -> None:
    newer = SqliteFile(tmp_path / "state.sqlite", [*STATE_MIGRATIONS, Migration("of tomorrow")], remedy="")
    newer.run_now(lambda _: None)
    newer.close()
    (check,) = await doctor.state(load_settings(cache_dir=tmp_path, state_dir=tmp_path))

    assert check.status == "fail"
    assert "of tomorrow" in check.detail
    assert "Upgrade Pegboard" in check.remedy


async def test_a_cache_folder_that_cannot_be_made_fails(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (check,) = await doctor.cache(load_settings(cache_dir=tmp_path / "file" / "cache"))

    assert check.status == "fail"
    assert check.remedy


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[tuple[Service, Settings]]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with service("openai") as at:
        section = {"provider": "openai", "base_url": at.base_url, "fallback": "none"}
        yield at, load_settings(cache_dir=tmp_path, encoder=section)


async def test_a_service_for_embeddings_is_asked_for_one_vector(remote: tuple[Service, Settings]) -> None:
    at, settings = remote
    (check,) = await doctor.encoder(settings)

    assert (check.name, check.status) == ("encoder", "ok")
    assert "text-embedding-3-small of openai" in check.detail
    assert "32 numbers" in check.detail
    assert "by rank" in check.detail
    assert len(at.texts) == 1


@pytest.mark.requirement("M30")
async def test_a_service_that_refuses_fails_with_its_status_and_without_the_key(
    remote: tuple[Service, Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, settings = remote
    monkeypatch.setenv("OPENAI_API_KEY", "sk-wrong-key")
    (check,) = await doctor.encoder(settings)

    assert (check.status, "401" in check.detail) == ("fail", True)
    assert "sk-wrong-key" not in str(check.as_dict())


async def test_a_missing_key_fails_with_the_name_of_its_variable(
    remote: tuple[Service, Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    at, settings = remote
    monkeypatch.delenv("OPENAI_API_KEY")
    (check,) = await doctor.encoder(settings)

    assert (check.status, "OPENAI_API_KEY" in check.detail) == ("fail", True)
    assert at.bodies == []


async def test_the_encoder_behind_a_service_is_examined_too(remote: tuple[Service, Settings], tmp_path: Path) -> None:
    _, settings = remote
    both = settings.model_copy(update={"encoder": settings.encoder.model_copy(update={"fallback": "local"})})

    assert [(each.name, each.status) for each in await doctor.encoder(both, tmp_path)] == [
        ("encoder", "ok"),
        ("encoder (fallback)", "fail"),
    ]


def test_a_projects_own_file_cannot_say_where_texts_are_embedded(
    run_json: RunJson, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = machine / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    evil = {"provider": "compatible", "base_url": "http://127.0.0.1:9", "model": "m", "api_key_env": "OPENAI_API_KEY"}
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": {}, "pegboard": {"encoder": evil}}))
    found = by_name(run_json("doctor"))

    assert "sets where data and keys are sent (encoder)" in found["configuration"]["detail"]


@pytest.mark.requirement("A10")
@pytest.mark.usefixtures("healthy_encoder")
def test_what_is_wrong_with_the_llm_gateway_is_found(run_json: RunJson, machine: Path) -> None:
    (machine / "own.toml").write_text('[[llm.rules]]\nupstream = "opnai"\nk = 3')
    found = by_name(run_json("doctor", "--config", machine / "own.toml", code=1))

    assert found["models"]["status"] == "fail"
    assert "'opnai'" in found["models"]["detail"]


@pytest.mark.requirement("B1")
@pytest.mark.parametrize(("tokens", "said"), [(6_000, 0), (6_001, 1)])
def test_it_says_that_the_list_budget_keeps_a_list_from_being_whole(tokens: int, said: int) -> None:
    checks = doctor.listing(Settings(exposure="eager"), tokens)

    assert [check.status for check in checks] == ["warn"] * said
    assert all("list_budget is 6000" in check.detail for check in checks)
    assert not doctor.listing(Settings(), tokens)
    assert not doctor.listing(Settings(exposure="eager", list_budget=0), tokens)
