"""The chart, linted and rendered by Helm's own engine."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

import check_image
import pegboard
from environments import programs
from pegboard.gateways import readiness
from pegboard.gateways.dashboard import dashboard_app
from pegboard.gateways.mcp.transport.auth import WELL_KNOWN
from pegboard.settings import Settings, load_settings
from pegboard.upstreams.oauth.browser_returns import CALLBACK, PAGE

ROOT = Path(__file__).parents[1]
CHART = ROOT / "deploy" / "helm" / "pegboard"
ENGINE = Path(__file__).parent / "helm_engine.py"
PYTHON = programs(ROOT / ".demo" / "deploy" / "helm") / ("python.exe" if sys.platform == "win32" else "python")
EVERYTHING: dict[str, Any] = {
    "replicas": 3,
    "state": {"secret": "board-store"},
    "secrets": ["providers"],
    "allowedHosts": ["tools.example.com"],
    "ingress": {"enabled": True, "host": "tools.example.com", "tlsSecret": "tls", "className": "nginx"},
    "autoscaling": {"enabled": True},
    "serviceMonitor": {"enabled": True},
    "podAnnotations": {"a": "b"},
    "nodeSelector": {"c": "d"},
    "tolerations": [{"operator": "Exists"}],
    "affinity": {"podAntiAffinity": {}},
    "imagePullSecrets": [{"name": "registry"}],
    "env": [{"name": "E", "value": "f"}],
}
DASHBOARD = "Service of the dashboard"

pytestmark = pytest.mark.skipif(not PYTHON.exists(), reason="python scripts/install_deploy_tools.py")


@cache
def rendered(values: str) -> dict[str, Any]:
    asked = json.dumps({"name": "board", "namespace": "tools", "values": json.loads(values)})
    done = subprocess.run([PYTHON, ENGINE, CHART], input=asked, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def objects(**values: Any) -> dict[str, dict[str, Any]]:
    """What would be applied, by kind; the dashboard's Service by its own name."""
    said = rendered(json.dumps(values))
    assert "error" not in said, said
    made = [yaml.safe_load(text) for text in said["files"].values() if text.strip()]
    named = {DASHBOARD if each["metadata"]["name"].endswith("-dashboard") else each["kind"]: each for each in made}
    assert len(named) == len(made)
    return named


def pod(**values: Any) -> dict[str, Any]:
    return dict(objects(**values)["Deployment"]["spec"]["template"]["spec"])


@pytest.mark.parametrize("values", [{}, EVERYTHING], ids=["defaults", "everything"])
def test_lint_finds_no_error_and_no_warning(values: dict[str, Any]) -> None:
    report = rendered(json.dumps(values))["messages"]
    assert report["total_charts_linted"] == 1
    assert [each for each in report["messages"] if each["severity"] > 1] == report["errors"] == []


def test_what_is_off_is_not_there() -> None:
    always = {"ConfigMap", "Deployment", "PodDisruptionBudget", "Service", "ServiceAccount", DASHBOARD}
    assert set(objects()) == always
    assert set(objects(**EVERYTHING)) == always | {"HorizontalPodAutoscaler", "Ingress", "ServiceMonitor"}
    assert "replicas" not in objects(**EVERYTHING)["Deployment"]["spec"], "the autoscaler's"


def test_many_replicas_without_a_store_are_refused() -> None:
    assert "state.secret" in rendered(json.dumps({"replicas": 2}))["error"]
    assert "state.secret" in rendered(json.dumps({"autoscaling": {"enabled": True}}))["error"]


def test_secrets_are_only_referred_to() -> None:
    made = objects(**EVERYTHING)
    assert "Secret" not in made
    [container] = pod(**EVERYTHING)["containers"]
    [state] = [each for each in container["env"] if each["name"] == "PEGBOARD_STATE"]
    assert state["valueFrom"] == {"secretKeyRef": {"name": "board-store", "key": "url"}}
    assert container["envFrom"] == [{"secretRef": {"name": "providers"}}]


def test_a_pod_is_nobody_writes_nowhere_and_has_no_rights_in_the_cluster() -> None:
    spec = pod()
    [container] = spec["containers"]
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert f"--uid {spec['securityContext']['runAsUser']}" in (ROOT / "Dockerfile").read_text()
    assert spec["automountServiceAccountToken"] is False
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {each["mountPath"] for each in container["volumeMounts"] if not each.get("readOnly")} == {"/state", "/tmp"}


def test_probes_ask_what_is_served_by_a_name_that_is_accepted() -> None:
    [container] = pod()["containers"]
    for probe, path in (
        ("livenessProbe", "/healthz"),
        ("startupProbe", "/healthz"),
        ("readinessProbe", readiness.READY),
    ):
        asked = container[probe]["httpGet"]
        assert (asked["path"], asked["port"]) == (path, "http")
        assert asked["httpHeaders"] == [{"name": "Host", "value": "localhost"}]
    image = check_image.environment(check_image.stages((ROOT / "Dockerfile").read_text())[1])
    assert str(container["ports"][0]["containerPort"]) == image["PEGBOARD_PORT"]


def test_a_pod_is_not_killed_before_it_has_drained() -> None:
    spec = pod(drain={"wait": 7, "timeout": 90})
    said = {each["name"]: each.get("value") for each in spec["containers"][0]["env"]}
    assert spec["terminationGracePeriodSeconds"] > float(said["PEGBOARD_DRAIN_WAIT"]) + float(
        said["PEGBOARD_DRAIN_TIMEOUT"]
    )


def test_every_variable_of_ours_and_the_file_are_settings_that_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = objects(**EVERYTHING)
    config = tmp_path / "pegboard.toml"
    config.write_text(made["ConfigMap"]["data"]["pegboard.toml"])
    [container] = pod(**EVERYTHING)["containers"]
    ours = {
        each["name"]: each.get("value", "redis://store/0") for each in container["env"] if "PEGBOARD" in each["name"]
    }
    assert all(name.removeprefix("PEGBOARD_").lower() in Settings.model_fields for name in ours)
    for name, value in ours.items():
        monkeypatch.setenv(name, value.replace("$(POD_IP)", "10.0.0.7"))
    settings = load_settings([config])

    assert {"board-pegboard", "board-pegboard.tools.svc", "10.0.0.7", "tools.example.com"} <= set(
        settings.allowed_hosts
    )
    assert settings.replica_url == "http://10.0.0.7:7332"
    assert "openai" in settings.llm.upstreams


def test_selectors_choose_the_pods() -> None:
    made = objects(**EVERYTHING)
    labels = made["Deployment"]["spec"]["template"]["metadata"]["labels"].items()
    for chosen in (
        made["Service"]["spec"]["selector"],
        made["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
        made["Deployment"]["spec"]["selector"]["matchLabels"],
    ):
        assert chosen.items() <= labels
    assert made["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]["name"] == made["Deployment"]["metadata"]["name"]


def test_the_ingress_shows_nothing_that_is_for_within() -> None:
    [rule] = objects(**EVERYTHING)["Ingress"]["spec"]["rules"]
    paths = {each["path"] for each in rule["http"]["paths"]}
    assert not any(within.startswith(path) for within in (*readiness.PATHS, "/healthz") for path in paths)


def test_the_name_of_the_ingress_is_accepted_and_sign_ins_are_reached_by_it() -> None:
    values = {"ingress": {"enabled": True, "host": "board.example.com"}}
    [container] = pod(**values)["containers"]
    [hosts] = [each["value"].split(",") for each in container["env"] if each["name"] == "PEGBOARD_ALLOWED_HOSTS"]
    [rule] = objects(**values)["Ingress"]["spec"]["rules"]
    paths = [each["path"] for each in rule["http"]["paths"]]
    assert hosts.count("board.example.com") == 1
    for needed in (CALLBACK, PAGE, WELL_KNOWN, f"{WELL_KNOWN}/mcp"):
        assert any(needed == path or needed.startswith(f"{path}/") for path in paths), needed


def test_a_browser_stays_at_the_pod_where_it_signed_in() -> None:
    made = objects(**EVERYTHING)
    service, all_of_it = made[DASHBOARD], made["Service"]
    [rule] = made["Ingress"]["spec"]["rules"]
    [monitored] = made["ServiceMonitor"]["spec"]["endpoints"]
    backends = {each["path"]: each["backend"]["service"] for each in rule["http"]["paths"]}
    [port] = service["spec"]["ports"]
    assert service["spec"]["sessionAffinity"] == "ClientIP"
    assert service["spec"]["selector"] == all_of_it["spec"]["selector"]
    assert backends[dashboard_app.PATH] == {"name": service["metadata"]["name"], "port": {"name": port["name"]}}
    assert {each["name"] for path, each in backends.items() if path != dashboard_app.PATH} == {
        all_of_it["metadata"]["name"]
    }
    assert monitored["port"] != port["name"], "metrics of a pod are collected once"


def test_the_chart_is_of_this_version() -> None:
    assert yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"] == pegboard.__version__
