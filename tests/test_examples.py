"""The examples of agents' loops run as they stand, the SDKs' against a provider as strict as its documentation."""

from __future__ import annotations

import asyncio
import json
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal

from mock_providers import MockProviders
from mock_providers.scripted import Calls, Says, Seen
from model_doors import served

EXAMPLES = Path(__file__).parents[1] / "examples"
ASK = "when is high tide in Bergen?"
LOOPS = {"openai_agent": "openai", "anthropic_agent": "anthropic"}


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PEGBOARD_CACHE_DIR", str(tmp_path))


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[MockProviders]:
    mock = MockProviders()
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(served(mock)) as address:
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://{address}/v1")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", f"http://{address}")
        for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
            monkeypatch.setenv(variable, "sk-mine")
        yield mock


def hesitates(seen: Seen) -> Says:
    """First a call with wrong arguments, then of a tool that is not there, then the right one."""
    step = len(seen.answered)
    wanted = [
        Calls(tool=seen.tools[0], arguments={"port": 7}),
        Calls(tool="no_such_tool"),
        Calls(tool="high_tide", arguments={"harbour": "Bergen"}),
    ]
    return Says(calls=[wanted[step]]) if step < len(wanted) else Says(text=f"after {step} calls: 16:20")


def run(name: str) -> Any:
    main = runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"]
    return asyncio.run(main(ASK)) if name == "anthropic_agent" else main(ASK)


@pytest.mark.parametrize("name", LOOPS)
def test_the_loop_calls_what_it_was_given_and_tells_the_model_what_was_wrong(
    name: str, provider: MockProviders
) -> None:
    pytest.importorskip(LOOPS[name], reason="pip install --group sdks")
    provider.model = hesitates

    assert run(name) == "after 3 calls: 16:20"
    assert provider.refused == []
    last = provider.last.body.decode()
    assert "arguments_invalid" in last
    assert "tool_not_available" in last
    assert "Bergen: 04:05 and 16:20" in last


@pytest.mark.parametrize("name", LOOPS)
def test_the_loop_fits_into_forty_lines(name: str) -> None:
    source = (EXAMPLES / f"{name}.py").read_text().partition('"""\n\n')[2]

    assert len([line for line in source.splitlines() if line.strip()]) <= 40


def test_the_langchain_agent_answers() -> None:
    main = runpy.run_path(str(EXAMPLES / "langchain_agent.py"))["main"]

    assert main() == [ASK, "Bergen: 04:05 and 16:20", "At 04:05 and 16:20."]


@pytest.mark.requirement("library.own-data")
def test_the_cells_of_the_notebook_run_in_order() -> None:
    notebook = json.loads((EXAMPLES / "your_own_tools.ipynb").read_text("utf-8"))
    known: dict[str, Any] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), cell["id"], "exec"), known)  # noqa: S102

    assert len(known["labelled"]) == 3
    assert str(known["decision"].candidates[0].tool).endswith("/create_issue")
    assert known["card"].queries == 3
    assert known["found"].tools
    assert all(cell.get("outputs", []) == [] for cell in notebook["cells"])
