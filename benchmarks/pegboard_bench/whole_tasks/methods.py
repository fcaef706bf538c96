"""The ways by name, over one set of tools: everything that runs is started here, once for all plays."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from sys import executable
from typing import Any

import aiohttp

from pegboard.gateways.llm.conversation.stickiness import LEAST_SEEN
from pegboard.gateways.llm.conversation.turn_statistics import FLUSH_SECONDS
from pegboard.settings.server_spec import ServerSpec
from pegboard_bench.llm.contenders import started
from pegboard_bench.whole_tasks import langchain_agents
from pegboard_bench.whole_tasks.doors import Direct, LlmGateway, VendorSearch, by_pattern, by_words, mcp_server
from pegboard_bench.whole_tasks.local_site import Definitions, site
from pegboard_bench.whole_tasks.model import Model, Respond
from pegboard_bench.whole_tasks.play import Played, converse, judged, most_requests, system
from pegboard_bench.whole_tasks.rates import Rates
from pegboard_bench.whole_tasks.task import Task
from pegboard_bench.whole_tasks.task_set import TaskSet
from pegboard_bench.whole_tasks.toolbox import Toolbox, toolbox
from pegboard_bench.whole_tasks.workspace import Workspace

IN_PROCESS = ("oracle", "all", "bm25_search", "regex_search", "langchain_selector", "middleware")
"""What needs nothing but the servers."""
GATEWAYS = ("llm_gateway", "llm_gateway_call_tool", "llm_gateway_filter_only", "mcp_static", "mcp_dynamic")
OURS = ("middleware", *GATEWAYS)
PEERS = ("fastmcp_search",)
METHODS = (*IN_PROCESS, *GATEWAYS, *PEERS)
GATEWAY = """
start_wait = 60

[llm]
filter_timeout = 60
patience = 60

[llm.upstreams.default]
url = "{url}"
format = "openai"

[llm.upstreams.filter_only]
url = "{url}"
format = "openai"

[[llm.rules]]
upstream = "filter_only"
way_back = false

[llm.upstreams.call_tool]
url = "{url}"
format = "openai"

[[llm.rules]]
upstream = "call_tool"
ways = ["whole", "tools", "call_tool"]

"""

FIRST = 2 * LEAST_SEEN
"""Conversations after which the LLM gateway is given time to sum them up: the bills have a minute between tasks, in
which it does so, but plays follow each other at once."""

Talk = Callable[[Task, int], Awaitable[str]]
"""Plays a task with a seed, and returns what was answered."""
Begin = Callable[[Task, int, Sequence[Any]], tuple[Respond, Sequence[str]]]
"""A model for a task, a seed and the ids of all tools; and the list in which it notes what it missed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Ways over one set of tools, ready to play."""

    tasks: Sequence[Task]
    ways: Mapping[str, Talk]
    space: Workspace
    model: Model
    box: Toolbox

    async def play(self, method: str, task: Task, seed: int, begin: Begin) -> Played:
        """One play in a workspace that nobody has touched."""
        self.space.reset()
        respond, missed = begin(task, seed, self.box.ids)
        self.model.begin(respond)
        began = time.perf_counter()
        answer = await self.ways[method](task, seed)
        return judged(task, seed, self.space, self.model, answer=answer, missed=missed, began=began)


@asynccontextmanager
async def stage(
    methods: Sequence[str],
    played: TaskSet,
    distractors: Definitions,
    folder: Path,
    *,
    rates: Rates,
    name: str,
    fastmcp: Path | None = None,
) -> AsyncIterator[Stage]:
    """Starts what these methods need, in a folder of their own, and ends it. ``fastmcp`` is a Python that has it."""
    space, model = Workspace.made(folder), Model(name)
    servers, prompt = played.servers(space), system(space, played.system)
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(site(model, distractors))
        box = await stack.enter_async_context(toolbox(servers, distractors))
        entries = _entries(servers, distractors, url)
        ways = _in_process(box, model, prompt, folder, rates, stack)
        if set(methods) & {*GATEWAYS}:
            ways |= await _gateways(stack, folder, url, entries, box, model, prompt)
        if set(methods) & {*PEERS} and fastmcp is not None:
            ways |= await _fastmcp(stack, folder, fastmcp, entries, model, prompt)
        yield Stage(
            tasks=played.tasks({"root": str(space.root), "pages": f"{url}/pages"}),
            ways={method: ways[method] for method in methods if method in ways},
            space=space,
            model=model,
            box=box,
        )


def _in_process(
    box: Toolbox, model: Model, prompt: str, folder: Path, rates: Rates, stack: AsyncExitStack
) -> dict[str, Talk]:
    functions = box.functions()
    finders = {"bm25_search": by_words(functions), "regex_search": by_pattern(functions)}
    picked: list[str] = []
    agent, middleware = langchain_agents.attention(box, model, folder / "langchain")
    stack.callback(middleware.close)
    selecting = langchain_agents.selected(box, model, lambda: picked)

    async def oracle(task: Task, seed: int) -> str:
        return await converse(task, Direct(box, model, only=task), model, prompt)

    async def everything(task: Task, seed: int) -> str:
        return await converse(task, Direct(box, model), model, prompt)

    def search(method: str) -> Talk:
        async def talk(task: Task, seed: int) -> str:
            door = VendorSearch(box, model, find=finders[method], kind=method.partition("_")[0])
            return await converse(task, door, model, prompt)

        return talk

    async def attention(task: Task, seed: int) -> str:
        return await langchain_agents.converse(agent, task, prompt, most_requests(task))

    async def selector(task: Task, seed: int) -> str:
        picked[:] = langchain_agents.picks(task, rates, seed, functions)
        return await langchain_agents.converse(selecting, task, prompt, most_requests(task))

    return {
        "oracle": oracle,
        "all": everything,
        **{method: search(method) for method in finders},
        "langchain_selector": selector,
        "middleware": attention,
    }


async def _gateways(
    stack: AsyncExitStack,
    folder: Path,
    site_url: str,
    entries: Mapping[str, Any],
    box: Toolbox,
    model: Model,
    prompt: str,
) -> dict[str, Talk]:
    """Both of Pegboard's gateways in one process, before the same servers."""
    config = folder / "pegboard.toml"
    servers = "".join(f"[servers.{name}]\n{_toml(entry)}\n" for name, entry in entries.items())
    config.write_text(GATEWAY.format(url=site_url) + servers, "utf-8")
    processes = stack.enter_context(ExitStack())
    command = [executable, "-m", "pegboard", "serve", "--config", str(config), "--log-level", "error", "--port"]
    own = {"PEGBOARD_STATE_DIR": str(folder / "state"), "PEGBOARD_CACHE_DIR": str(folder / "cache")}
    url, _ = started(processes, command, folder, **own)
    session = await stack.enter_async_context(aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(None)))

    def llm(upstream: str) -> Talk:
        played = count(1)

        async def talk(task: Task, seed: int) -> str:
            door = LlmGateway(box, model, url=f"{url}/{upstream}", session=session)
            answer = await converse(task, door, model, prompt)
            if next(played) <= FIRST:
                await asyncio.sleep(1.1 * FLUSH_SECONDS)
            return answer

        return talk

    def mcp(exposure: str) -> Talk:
        async def talk(task: Task, seed: int) -> str:
            async with mcp_server(f"{url}/mcp?exposure={exposure}", model) as door:
                return await converse(task, door, model, prompt)

        return talk

    return {
        "llm_gateway": llm("default"),
        "llm_gateway_call_tool": llm("call_tool"),
        "llm_gateway_filter_only": llm("filter_only"),
        "mcp_static": mcp("static"),
        "mcp_dynamic": mcp("dynamic"),
    }


async def _fastmcp(
    stack: AsyncExitStack, folder: Path, python: Path, entries: Mapping[str, Any], model: Model, prompt: str
) -> dict[str, Talk]:
    config = folder / "fastmcp.json"
    config.write_text(json.dumps({"mcpServers": entries}), "utf-8")
    processes = stack.enter_context(ExitStack())
    program = Path(__file__).with_name("fastmcp_search.py")
    command = [str(python), str(program), str(config)]
    url, _ = await asyncio.to_thread(started, processes, command, folder)  # it asks the site, which this loop serves

    async def talk(task: Task, seed: int) -> str:
        async with mcp_server(f"{url}/mcp", model) as door:
            return await converse(task, door, model, prompt)

    return {"fastmcp_search": talk}


def _entries(servers: Mapping[str, ServerSpec], distractors: Definitions, url: str) -> dict[str, dict[str, Any]]:
    """All servers as a client's configuration has them."""
    running = {
        name: {"url": spec.url}
        if spec.url
        else {"command": spec.command, "args": list(spec.args), "env": dict(spec.env), "cwd": spec.cwd}
        for name, spec in servers.items()
    }
    return running | {name: {"url": f"{url}/mcp/{name}"} for name in distractors}


def _toml(entry: Mapping[str, Any]) -> str:
    inline = "".join(f"{key} = {json.dumps(value)}\n" for key, value in entry.items() if not isinstance(value, dict))
    pairs = ", ".join(f"{name} = {json.dumps(value)}" for name, value in entry.get("env", {}).items())
    return f"{inline}env = {{{pairs}}}\n" if pairs else inline
