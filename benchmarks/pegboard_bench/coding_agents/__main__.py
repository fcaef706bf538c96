"""`python -m pegboard_bench.coding_agents` writes `bench/results/coding_agents.json`: what real agents lose and pay."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pegboard_bench import results
from pegboard_bench.coding_agents.agents import AGENTS
from pegboard_bench.coding_agents.atlassian import servers
from pegboard_bench.coding_agents.conversations import Kept
from pegboard_bench.coding_agents.figures import figures, harm, tables
from pegboard_bench.coding_agents.guide import with_figures
from pegboard_bench.coding_agents.measure import Case, measure, of_kept
from pegboard_bench.coding_agents.processes import provider, running
from pegboard_bench.coding_agents.prompts import PROMPTS
from pegboard_bench.coding_agents.sessions import Place
from pegboard_bench.page import write_page

SEED = 0
"""Nothing here is drawn by chance."""
COUNTS = (0, 60, 300)
STDERR = Console(stderr=True)


def main(
    installed: Annotated[Path, typer.Option(help="The agents; installed by scripts/install_agents.py.")] = Path(
        ".demo/agents"
    ),
    upstream: Annotated[Path, typer.Option(help="The program that is the provider; its argument is a port.")] = Path(
        "tests/servers/coding_provider.py"
    ),
    agent: Annotated[list[str] | None, typer.Option(help="Only these agents.")] = None,
    count: Annotated[list[int] | None, typer.Option(help="Only with so many MCP tools: 0, 60 or 300.")] = None,
    prompts: Annotated[int, typer.Option(help="Only the first so many prompts.")] = len(PROMPTS),
    jobs: Annotated[int, typer.Option(help="Agents that run at the same time; no times are measured.")] = 4,
    keep: Annotated[Path | None, typer.Option(help="Folder for every conversation, with all that was sent.")] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Conversations that are kept are not held again; the gateway learns nothing of them. On the same day: "
            "prompts name it.",
        ),
    ] = False,
    only_kept: Annotated[
        bool,
        typer.Option(
            "--only-kept", help="Hold no conversation: of each agent, what is kept on both sides. Fewer prompts may be."
        ),
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder for coding_agents.json.")] = Path("bench/results"),
    page: Annotated[Path | None, typer.Option(help="Write the results as a section of this page too.")] = None,
    guide: Annotated[Path | None, typer.Option(help="Write the figures between the marks of this page too.")] = None,
) -> None:
    """Run every agent through every prompt and task, directly and through the gateway.

    Ends with 1 where the gateway does harm.
    """
    if not (installed / "node").is_dir():
        STDERR.print(f"There are no agents in {installed}: python scripts/install_agents.py")
        raise typer.Exit(2)
    wanted = [(name, tools) for name in agent or AGENTS for tools in count or COUNTS]
    kept = Kept(keep, resume)
    if only_kept:
        cases = [of_kept(AGENTS[name], tools, prompts, kept) for name, tools in wanted]
    else:
        with kept.workplace() as folder, ThreadPoolExecutor(jobs) as workers:
            bench = Bench(
                installed=installed.resolve(), upstream=upstream, folder=folder, prompts=PROMPTS[:prompts], kept=kept
            )
            cases = list(workers.map(bench.case, *zip(*wanted, strict=True)))
    found = tables(cases) | {"versions": {each: _version(installed, each) for each in _packages(cases)}}
    path = results.write(
        "coding_agents",
        command="make bench-coding-agents",
        seed=SEED,
        figures=figures(cases),
        tables=found,
        folder=out,
    )
    if page is not None:
        write_page(page, out)
    if guide is not None:
        guide.write_text(with_figures(guide.read_text("utf-8"), results.read(path)), "utf-8")
    wrong = list(harm(cases))
    for each in wrong:
        STDERR.print(each, markup=False)
    STDERR.print(f"Written to {path}")
    raise typer.Exit(1 if wrong else 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What all cases share; each has a provider of its own."""

    installed: Path
    upstream: Path
    folder: Path
    prompts: Sequence[str]
    kept: Kept

    def case(self, name: str, tools: int) -> Case:
        folder = self.folder / f"{name}-{tools}"
        folder.mkdir()
        with (
            provider(self.upstream, folder) as behind,
            running(servers(self.installed, behind.url, tools), folder) as mcp,
        ):
            place = Place(
                agent=AGENTS[name],
                tools=tools,
                installed=self.installed,
                folder=folder / "agent",
                provider=behind,
                running=mcp,
            )
            return measure(place, self.prompts, folder / "gateway", partial(_say, f"{name}/{tools}"), self.kept)


def _say(of: str, text: str) -> None:
    STDERR.print(of, text, markup=False)


def _packages(cases: list[Case]) -> list[str]:
    return list(dict.fromkeys(case.agent.package for case in cases))


def _version(installed: Path, package: str) -> str:
    """As the package says that is installed in its folder."""
    lock = json.loads((installed / package / "package.json").read_text("utf-8"))
    return str(next(iter(lock["dependencies"].values()))).lstrip("^")


if __name__ == "__main__":
    typer.run(main)
