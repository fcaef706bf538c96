"""`pegboard keys`."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import Result

from pegboard.gateways.access_keys import hashed
from pegboard.settings import Settings
from pegboard.settings.llm import LlmSettings

Run = Callable[..., Result]


def test_a_new_key_is_shown_once_and_only_its_hash_is_to_be_kept(run: Run) -> None:
    key, _, lines = run("keys", "new", "team.a@x", "--upstreams", "openai, gem*").stdout.partition("\n")
    configured = LlmSettings.model_validate(tomllib.loads(lines)["llm"]).keys["team.a@x"]

    assert key not in lines
    assert configured.hash == hashed(key)
    assert configured.upstreams == ("openai", "gem*")


def test_with_json_all_of_it_is_one_object(run: Run) -> None:
    said = json.loads(run("keys", "new", "team", "--json").stdout)

    assert said["hash"] == hashed(said["key"])
    assert said["upstreams"] == ["*"]


def test_a_name_that_cannot_be_is_an_error_without_a_key(run: Run) -> None:
    done = run("keys", "new", "a b")

    assert done.exit_code == 2
    assert "pgb_" not in done.output
    assert "'a b'" in done.stderr


@pytest.mark.parametrize("words", [["new", "a", "--days"], ["new", "a", "--mcp", "--days"]])
def test_an_end_that_no_calendar_has_is_an_error_without_a_key(run: Run, words: list[str]) -> None:
    done = run("keys", *words, 99_999_999)

    assert done.exit_code == 2
    assert "pgb_" not in done.output
    assert "99999999 days are too many" in done.stderr


def test_a_key_is_checked_by_the_configuration_and_never_said(run: Run, tmp_path: Path) -> None:
    made = json.loads(run("keys", "new", "team", "--upstreams", "openai", "--json").stdout)
    config = tmp_path / "pegboard.toml"
    config.write_text(made["toml"])

    found = run("keys", "check", "--config", config, typed=f"{made['key']}\n")
    unknown = run("keys", "check", "--config", config, typed="pgb_of-nobody\n")

    assert found.stdout == "team, for the upstreams openai\n"
    assert (unknown.exit_code, unknown.stdout) == (1, "")
    assert "pgb_of-nobody" not in unknown.output


def test_a_token_for_mcp_is_made_and_checked_in_the_same_way(run: Run, tmp_path: Path) -> None:
    options = ("--mcp", "--tools", "github/*, time/*", "--scopes", "dba", "--json")
    made = json.loads(run("keys", "new", "ann", *options).stdout)
    config = tmp_path / "pegboard.toml"
    config.write_text(made["toml"])
    configured = Settings.model_validate(tomllib.loads(made["toml"])).access["ann"]

    found = run("keys", "check", "--config", config, typed=f"{made['key']}\n")

    assert configured.hash == hashed(made["key"])
    assert (configured.tools, configured.scopes) == (("github/*", "time/*"), ("dba",))
    assert made["key"] not in made["toml"]
    assert found.stdout == "ann, for the tools github/*, time/* of MCP\n"


def configured(run: Run, tmp_path: Path, name: str, *options: str) -> tuple[Path, str]:
    made = json.loads(run("keys", "new", name, *options, "--json").stdout)
    path = tmp_path / "pegboard.toml"
    path.write_text(made["toml"])
    return path, made["key"]


@pytest.mark.requirement("signing-in.rotation")
@pytest.mark.parametrize(("options", "section"), [((), "llm.keys"), (("--mcp",), "access")])
def test_a_rotated_key_and_its_successor_are_one_holders_until_the_previous_one_ends(
    run: Run, tmp_path: Path, options: tuple[str, ...], section: str
) -> None:
    config, old = configured(run, tmp_path, "team", *options)

    made = json.loads(run("keys", "rotate", "team", "--config", config, "--days", "3", "--json").stdout)
    config.write_text(f"[{section}.team]\n{made['toml']}")

    for key in (old, made["key"]):
        assert run("keys", "check", "--config", config, typed=f"{key}\n").stdout.startswith("team, for the")
    config.write_text(config.read_text().replace(str(datetime.now(UTC).year), "2001"))
    assert run("keys", "check", "--config", config, typed=f"{old}\n").exit_code == 1
    assert run("keys", "check", "--config", config, typed=f"{made['key']}\n").exit_code == 0


def test_a_key_that_was_lost_is_replaced_at_once(run: Run, tmp_path: Path) -> None:
    config, old = configured(run, tmp_path, "team")

    shown = run("keys", "rotate", "team", "--config", config, "--days", "0").stdout

    assert "previous" not in shown
    assert old not in shown


def test_what_cannot_be_rotated_is_said(run: Run, tmp_path: Path) -> None:
    (tmp_path / "env.toml").write_text('[access.ann]\nenv = "ANN_TOKEN"\n')

    unknown = run("keys", "rotate", "bob", "--config", tmp_path / "env.toml")
    variable = run("keys", "rotate", "ann", "--config", tmp_path / "env.toml")

    assert (unknown.exit_code, variable.exit_code) == (1, 1)
    assert "There is no key 'bob'." in unknown.stderr
    assert "The token 'ann' is read from a variable." in variable.stderr


def test_keys_are_listed_with_their_ends_and_without_their_hashes(run: Run, tmp_path: Path) -> None:
    config, _ = configured(run, tmp_path, "team", "--days", "5")

    listed = json.loads(run("keys", "list", "--config", config, "--json").stdout)["keys"]
    table = run("keys", "list", "--config", config).stdout

    assert [(each["section"], each["name"], each["state"]) for each in listed] == [("llm.keys", "team", "ends soon")]
    assert "ends soon" in table
    assert "sha256" not in table


def test_doctor_warns_of_keys_that_end_soon(run: Run, tmp_path: Path) -> None:
    config, _ = configured(run, tmp_path, "team", "--days", "5")

    checks = json.loads(run("doctor", "--config", config, "--json").stdout)["checks"]

    (check,) = [each for each in checks if each["name"] == "keys"]
    assert check["status"] == "warn"
    assert check["detail"].startswith("The key [llm.keys.team] ends at ")
    assert check["remedy"] == "`pegboard keys rotate team`"
