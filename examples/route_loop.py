"""A model asks for tools, calls one that fails, asks again, and stops: algorithm 1 of EHRR over a board."""

import asyncio

from pegboard import Catalog, build, load_settings
from pegboard.model import Outcome, Server, ServerName
from pegboard.routing.economics import Episode, Execute, Route, Stop, Subtask, solve
from pegboard.testing import fake_tool

servers = [Server(name=ServerName(name)) for name in ("ferry", "rail")]
tools = [(server, [fake_tool("timetable", "Look up departures", server=server.name)]) for server in servers]
board = build(load_settings(breakers={"failures": 1}), Catalog.build(tools))


async def model(context: tuple) -> Route | Execute | Stop:
    """Any chat model stands here: it reads the context, and these three are the tool calls that it may make."""
    last = context[-1]
    if "08:15" in str(last):
        return Stop(answer=f"It leaves at {last}.")
    if isinstance(last, str):  # the task, or a call that failed
        return Route(subtask=Subtask(text="look up departures to Oslo", operation="search"))
    return Execute(tool=last.tools[0].tool, arguments={"to": "Oslo"})


async def call(step: Execute) -> str:
    """A server stands here, and the first one fails: what came of a call is what the next route goes by."""
    fails = step.tool.server == "ferry"
    board.observe(Outcome(tool=step.tool, success=not fails, latency_ms=40, failure="server" if fails else None))
    return "error: no connection" if fails else "08:15, platform 3"


def main() -> Episode:
    return asyncio.run(
        solve("When can I go to Oslo?", decide=model, route=lambda q: board.routing.offers(str(q)), execute=call)
    )


if __name__ == "__main__":
    print(*main().context, sep="\n")
