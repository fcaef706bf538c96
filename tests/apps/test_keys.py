"""`pegboard keys`."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path

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
