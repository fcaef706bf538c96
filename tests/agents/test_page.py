"""docs/coding-agents.md: its blocks start the agents as they stand there; its figures are those of the results file."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from pegboard_bench import results
from pegboard_bench.coding_agents.agents import AGENTS
from pegboard_bench.coding_agents.atlassian import Server
from pegboard_bench.coding_agents.guide import with_figures
from pegboard_bench.coding_agents.processes import Provider, gateway
from pegboard_bench.coding_agents.prompts import WHOLE
from pegboard_bench.coding_agents.sessions import Place
from played_agents import PLAYED

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "coding-agents.md").read_text("utf-8")
INSTALLED = ROOT / ".demo" / "agents"
SHOWN = {
    "Claude Code": "claude_code",
    "Codex": "codex",
    "Gemini CLI": "gemini_cli",
    "opencode": "opencode",
    "qwen-code": "qwen_code",
    "Copilot CLI": "copilot_cli",
    "Cline": "cline",
}
ADDRESS = re.compile(r"http://127\.0\.0\.1:7332/(?:openai|anthropic|gemini)")
FILE = re.compile(r"^`~/([^`]+)`:\n\n```\w+\n(.*?)^```", re.DOTALL | re.MULTILINE)
EXPORT = re.compile(r"^export (\w+)=(.*)$", re.MULTILINE)
UNATTENDED = {"codex": 'approval_policy = "never"\nsandbox_mode = "danger-full-access"\n'}
"""Without people: what stands before the file that a person would write."""
KEYS = {"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"}


def block(title: str) -> str:
    """What stands below a heading."""
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


@pytest.mark.npm
@pytest.mark.timeout(600)
@pytest.mark.requirement("agents.page")
@pytest.mark.parametrize("title", [title for title, name in SHOWN.items() if name in PLAYED])
def test_what_the_page_says_to_set_leads_an_agent_through_the_gateway(
    title: str, behind: Provider, tmp_path: Path
) -> None:
    agent, text = AGENTS[SHOWN[title]], block(title)
    with gateway(behind.url, agent.format, tmp_path / "gateway") as url:

        def setup(home: Path, _: str, server: Server | None) -> tuple[str, ...]:
            for name, content in FILE.findall(text):
                path = home / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(UNATTENDED.get(agent.name, "") + ADDRESS.sub(url, content), "utf-8")
            return ()

        said = {name: ADDRESS.sub(url, value) for name, value in EXPORT.findall(text)}
        environment = {**agent.environment, **dict.fromkeys(KEYS, "none"), **said}
        written = replace(agent, setup=setup, environment=environment, address="")
        place = Place(agent=written, tools=0, installed=INSTALLED.resolve(), folder=tmp_path / "agent", provider=behind)
        session = place.hold(url, WHOLE.prompt, WHOLE.acts)

    assert session.did(WHOLE) == ""


def test_every_agent_that_is_measured_has_its_place_on_the_page() -> None:
    assert {AGENTS[name].package for name in AGENTS} == set(SHOWN.values())
    assert all(block(title) for title in (*SHOWN, "Cursor"))


def test_the_figures_on_the_page_are_those_of_the_results_file() -> None:
    assert with_figures(PAGE, results.read(ROOT / "bench" / "results" / "coding_agents.json")) == PAGE
