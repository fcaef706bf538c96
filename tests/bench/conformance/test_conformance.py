"""The protocol's own test suite passes behind the gateway wherever it passes without.

The suite is installed by `python scripts/install_clients.py`, the reference server by `scripts/install_servers.py` (CI
does both); without them this skips.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from pegboard_bench.conformance.__main__ import TRANSPORTS
from pegboard_bench.conformance.page import page
from pegboard_bench.conformance.sides import Subject, subjects
from pegboard_bench.conformance.suite import MODERN, Checked, Suite, lost, passed, read

ROOT = Path(__file__).parents[3]
SUITE = Suite(ROOT / ".demo" / "clients" / "conformance")
SUBJECTS = {each.name: each for each in subjects(ROOT / ".demo" / "npm")}
ALL = ("server-everything", "conforming")
RECORDED = json.loads((ROOT / "bench" / "results" / "conformance.json").read_text("utf-8"))
CLIENT: Checked = RECORDED["tables"]["client"]["direct"]
"""What a client passes by itself, by scenario and revision."""
SIGN_INS = (
    *("metadata-default", "metadata-var3", "basic-cimd", "pre-registration", "scope-step-up", "scope-retry-limit"),
    *("token-endpoint-auth-basic", "resource-mismatch", "iss-wrong-issuer", "iss-supported-missing"),
    *("metadata-issuer-mismatch", "client-credentials-basic", "authorization-server-migration"),
)
"""A scenario of each kind; `make conformance` runs them all."""


@pytest.fixture(scope="module")
def subject(request: pytest.FixtureRequest) -> Subject:
    found = SUBJECTS.get(request.param)
    if found is None or not SUITE.installed:
        message = "install the suite and the server: python scripts/install_clients.py, scripts/install_servers.py"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return found


DIRECT: dict[str, Checked] = {}


async def direct_checks(subject: Subject) -> Checked:
    """What the server passes by itself; asked once, for both transports of the gateway."""
    if subject.name not in DIRECT:
        async with subject.alone() as url:
            DIRECT[subject.name] = await SUITE.run(url)
    return DIRECT[subject.name]


@pytest.mark.timeout(600)
@pytest.mark.requirement("M7")
@pytest.mark.requirement("M17")
@pytest.mark.requirement("M21")
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("subject", ALL, indirect=True)
async def test_what_a_server_passes_of_the_suite_the_gateway_before_it_passes_too(
    subject: Subject, transport: str, tmp_path: Path
) -> None:
    direct = await direct_checks(subject)
    async with subject.behind(transport, tmp_path) as url:
        through = await SUITE.run(url)

    assert passed(direct) > 40
    assert lost(direct, through) == []


@pytest.mark.timeout(600)
@pytest.mark.skipif(not SUITE.installed and not os.environ.get("CI"), reason="install it: scripts/install_clients.py")
@pytest.mark.parametrize("scenario", [name for name in CLIENT if not name.startswith("auth/")])
async def test_what_a_client_passes_of_the_client_half_it_passes_with_the_gateway_between_too(scenario: str) -> None:
    name, _, revision = scenario.removesuffix(")").partition(" (")
    through = await SUITE.run_client_scenario("gateway", revision, name)

    assert through.keys() == {scenario}
    assert lost({scenario: CLIENT[scenario]}, through) == []


def test_what_was_recorded_of_the_client_half_is_of_use() -> None:
    assert passed(CLIENT) > 40


@pytest.mark.timeout(600)
@pytest.mark.requirement("023.conformance")
@pytest.mark.skipif(not SUITE.installed and not os.environ.get("CI"), reason="install it: scripts/install_clients.py")
@pytest.mark.parametrize("scenario", SIGN_INS)
async def test_the_gateway_signs_in_as_the_suites_authorization_scenarios_want_it(scenario: str) -> None:
    [checks] = (await SUITE.run_client_scenario("gateway", MODERN, f"auth/{scenario}")).values()

    assert "SUCCESS" in checks.values()
    assert {name: status for name, status in checks.items() if status in ("FAILURE", "WARNING")} == {}


def write(folder: Path, scenario: str, *checks: tuple[str, str]) -> None:
    path = folder / f"server-{scenario}-2026-11-22T21-20-20-200Z" / "checks.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps([{"id": name, "status": status} for name, status in checks]))


def test_a_check_that_was_made_twice_has_the_worse_of_its_statuses(tmp_path: Path) -> None:
    write(tmp_path, "tools-list", ("a", "SUCCESS"), ("a", "FAILURE"), ("b", "SUCCESS"), ("b", "INFO"))
    write(tmp_path, "ping", ("p", "SUCCESS"))
    found = read(tmp_path)

    assert found == {"ping": {"p": "SUCCESS"}, "tools-list": {"a": "FAILURE", "b": "INFO"}}
    assert passed(found) == 1


def test_an_instance_that_was_skipped_hides_none_that_was_made(tmp_path: Path) -> None:
    write(tmp_path, "headers", ("h", "SUCCESS"), ("h", "SKIPPED"), ("n", "SKIPPED"))
    write(tmp_path, "more-headers", ("h", "SKIPPED"), ("h", "FAILURE"))

    assert read(tmp_path) == {"headers": {"h": "SUCCESS", "n": "SKIPPED"}, "more-headers": {"h": "FAILURE"}}


def test_an_exception_is_on_the_page_with_its_text_and_one_without_a_text_is_an_error() -> None:
    recorded = json.loads((ROOT / "bench" / "results" / "conformance.json").read_text("utf-8"))
    shown = page(recorded)
    unknown = recorded["tables"]["client"]["gateway"] | {"another (2026-07-28)": {"a": "FAILURE"}}
    recorded["tables"]["client"]["gateway"] = unknown

    assert "| tasks-status-notifications (2026-07-28) | conforming, stdio; conforming, http | Skipped by" in shown
    assert "| auth/dpop | client half | Not run" in shown
    with pytest.raises(KeyError, match="another"):
        page(recorded)


def test_what_is_not_passed_any_more_or_not_checked_any_more_is_lost() -> None:
    direct = {"one": {"a": "SUCCESS", "b": "FAILURE"}, "two": {"c": "SUCCESS"}}

    assert lost(direct, {"one": {"a": "SUCCESS"}, "two": {"c": "SKIPPED"}}) == ["two/c"]
    assert lost(direct, {"one": {"a": "WARNING", "b": "SUCCESS"}}) == ["one/a", "two/c"]


def test_streams_that_the_suite_calls_optional_are_not_lost_where_answers_are_json() -> None:
    direct = {"many": {"server-sse-streams-functional": "SUCCESS"}, "polls": {"server-sse-priming-event": "SUCCESS"}}
    through = {"many": {"server-sse-streams-functional": "INFO"}, "polls": {"server-sse-content-type": "INFO"}}

    assert lost(direct, through) == []
    assert lost(direct, {"many": {"server-sse-streams-functional": "FAILURE"}, "polls": {}}) == [
        "many/server-sse-streams-functional",
        "polls/server-sse-priming-event",
    ]
    assert lost({"one": {"a": "SUCCESS"}}, {"one": {"a": "INFO"}}) == ["one/a"]


def test_the_page_has_a_column_for_each_side_and_names_what_is_lost() -> None:
    known = "server-sse-polling"
    sides = {"direct": {known: {"a": "SUCCESS", "b": "INFO"}}, "stdio": {known: {"a": "FAILURE"}}, "http": {}}
    machine = {"cores": 2, "cpu": "a cpu", "python": "3.11"}
    results: dict[str, Any] = {"commit": "c" * 40, "date": "2026-11-22T00:00:00", "machine": machine}
    client = {"direct": sides["direct"], "gateway": sides["stdio"]}
    shown = page(results | {"tables": {"suite": "1.0", "checks": {"a-server": sides}, "client": client}})

    assert f"| {known} | 1 of 1 | 0 of 1 | – |" in shown
    assert f"Lost behind the gateway: `{known}/a` (stdio), `{known}/a` (http)." in shown
    assert f"Lost behind the gateway: `{known}/a` (gateway)." in shown


def test_the_page_in_the_documentation_is_that_of_the_results_file() -> None:
    results = json.loads((ROOT / "bench" / "results" / "conformance.json").read_text("utf-8"))
    assert (ROOT / "docs" / "conformance.md").read_text("utf-8") == page(results), "run make conformance"
