"""The dashboard of Grafana and the alerts of Prometheus: every metric that they name is one of ours."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from pegboard.telemetry.metrics import Metrics

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
PROMTOOL = ROOT / ".demo" / "deploy" / "promtool"
RULES = DEPLOY / "prometheus" / "pegboard.rules.yml"
SCRAPE: dict[str, Any] = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text())
BOARD: dict[str, Any] = json.loads((DEPLOY / "grafana" / "dashboards" / "pegboard.json").read_text())
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
METRIC = re.compile(r"\b((?:pegboard|process)_\w+)(?:\{([^}]*)\})?")
OF_PROMETHEUS = {"instance", "job", "le"}
"""Labels that it adds, and that of buckets."""
MADE = Metrics("1").registry._names_to_collectors
"""Each name that `/metrics` can have, with what has its labels."""


def alerts() -> dict[str, str]:
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return {rule["alert"]: rule["expr"] for group in groups for rule in group["rules"]}


def panels() -> dict[str, str]:
    queries = {
        f"{panel['title']} {each['refId']}": each["expr"] for panel in BOARD["panels"] for each in panel["targets"]
    }
    variables = {each["name"]: each["query"] for each in BOARD["templating"]["list"] if each["type"] == "query"}
    return queries | variables


def labels(expression: str) -> Iterator[tuple[str, str]]:
    """Each metric of an expression with each label that it is chosen by."""
    for name, chosen in METRIC.findall(expression):
        yield from ((name, label) for label in re.findall(r"(\w+)\s*(?:=~|!=|!~|=)", chosen))


@pytest.mark.parametrize("queries", [alerts(), panels()], ids=["alerts", "panels"])
def test_every_metric_and_label_that_is_asked_for_is_one_of_ours(queries: dict[str, str]) -> None:
    named = {name for each in queries.values() for name, _ in METRIC.findall(each)}
    grouped = {
        (name, label)
        for each in queries.values()
        for by in re.findall(r"by \(([^)]*)\)", each)
        for label in re.split(r",\s*", by)
        for name, _ in METRIC.findall(each)
    }
    chosen = {pair for each in queries.values() for pair in labels(each)}

    assert len(named) > 8
    assert named <= set(MADE) | {"process_resident_memory_bytes"}
    for name, label in grouped | chosen:
        ours = getattr(MADE.get(name), "_labelnames", ())
        assert label in OF_PROMETHEUS or label in ours, (name, label)


def test_no_metric_of_ours_is_left_out_of_the_pages_list() -> None:
    listed = set(re.findall(r"`(pegboard_\w+)`", (ROOT / "docs" / "deploy.md").read_text()))
    kinds = {"pegboard_build_info", "pegboard_servers"}
    made = {name for name in MADE if name.startswith("pegboard_") and (name.endswith("_total") or name in kinds)}
    made |= {name.removesuffix("_bucket") for name in MADE if name.startswith("pegboard_") and name.endswith("_bucket")}
    assert made == listed


def test_each_alert_says_what_is_wrong_and_how_bad_it_is() -> None:
    rules = [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]
    for rule in rules:
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert rule["annotations"]["summary"].endswith(".")
    assert len({rule["alert"] for rule in rules}) == len(rules)


@pytest.mark.skipif(not PROMTOOL.exists(), reason="python scripts/install_deploy_tools.py")
def test_prometheus_takes_its_configuration_and_the_rules() -> None:
    checked = subprocess.run(
        [PROMTOOL, "check", "config", "prometheus.yml"],
        cwd=DEPLOY / "prometheus",
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stderr
    assert f"SUCCESS: {len(alerts())} rules found" in checked.stdout


@pytest.mark.skipif(not PROMTOOL.exists(), reason="python scripts/install_deploy_tools.py")
@pytest.mark.parametrize(
    ("alert", "series"),
    [
        ("PegboardConfigurationRefused", 'pegboard_configurations_refused_total{instance="a", reason="code"}'),
        ("PegboardBudgetUsedUp", 'pegboard_model_budgets_total{instance="a", by="all", refused="true"}'),
    ],
)
def test_an_alert_of_an_event_does_not_miss_the_first_one_and_ends(alert: str, series: str, tmp_path: Path) -> None:
    labels = dict(re.findall(r'(\w+)="(\w+)"', series))
    [rule] = (
        each
        for group in yaml.safe_load(RULES.read_text())["groups"]
        for each in group["rules"]
        if each["alert"] == alert
    )
    [kept] = set(re.findall(r"by \(([^)]*)\)", rule["expr"]))
    said = {name: labels[name] for name in kept.split(", ")}
    summary = rule["annotations"]["summary"]
    for name, value in said.items():
        summary = summary.replace(f"{{{{ $labels.{name} }}}}", value)
    fires = [{"exp_labels": {**said, **rule["labels"]}, "exp_annotations": {"summary": summary}}]
    # No series until the 20th minute, then the first event, and the second one in the 60th.
    values = "_x20 1x39 2x40"
    times = {"10m": [], "21m": fires, "50m": [], "61m": fires, "90m": []}
    tests = {
        "rule_files": [str(RULES)],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": series, "values": values}],
                "alert_rule_test": [
                    {"eval_time": when, "alertname": alert, "exp_alerts": expected} for when, expected in times.items()
                ],
            }
        ],
    }
    (tmp_path / "tests.yml").write_text(yaml.safe_dump(tests))
    tried = subprocess.run(
        [PROMTOOL, "test", "rules", "tests.yml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert tried.returncode == 0, tried.stdout + tried.stderr


def test_panels_do_not_overlap_and_have_ids_of_their_own() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in BOARD["panels"]:
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not taken & cells, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])


def test_prometheus_asks_the_gateways_by_names_that_they_accept() -> None:
    [job] = SCRAPE["scrape_configs"]
    [targets] = (each["targets"] for each in job["static_configs"])
    gateways = [name for name in COMPOSE["services"] if name.startswith("gateway-")]
    assert targets == [f"{name}:7332" for name in gateways]
    for name in gateways:
        accepted = COMPOSE["services"][name]["environment"]["PEGBOARD_ALLOWED_HOSTS"].split(",")
        assert set(gateways) <= set(accepted)


def test_grafana_is_given_the_source_and_the_dashboard_where_it_looks_for_them() -> None:
    provisioning = DEPLOY / "grafana" / "provisioning"
    [source] = yaml.safe_load((provisioning / "datasources" / "prometheus.yaml").read_text())["datasources"]
    [provider] = yaml.safe_load((provisioning / "dashboards" / "pegboard.yaml").read_text())["providers"]
    mounted = dict(each.split(":")[:2] for each in COMPOSE["services"]["grafana"]["volumes"])

    assert source["url"] == "http://prometheus:9090"
    assert mounted["./grafana/dashboards"] == provider["options"]["path"]
    assert mounted["./grafana/provisioning"] == "/etc/grafana/provisioning"
