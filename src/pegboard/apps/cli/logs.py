"""`pegboard logs`: what happens in a gateway, line by line."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from pegboard.apps.cli.event_source import happened
from pegboard.apps.cli.options import Configs, Verbose, examples
from pegboard.apps.cli.output import plain

EXAMPLES = examples(
    "What happens now",
    "pegboard logs",
    "Calls of a server's tools, for a program to read",
    "pegboard logs --server github --kind CallFinished --json | jq .tool",
    "What happened in the last ten minutes, and no more",
    "pegboard logs --since 600 --no-follow",
)
FAILURES = ("rejected", "suspected", "refused", "changed", "crowds")
LEFT_OUT = frozenset({"event", "at", "scores", "candidates", "id", "turn_id", "query_embedding_hash"})
RESULT = "result"
"""The entry of a shortened result: its upstream is the tool."""
LONGEST = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """Which events are shown; patterns match the whole of a name."""

    tool: str | None = None
    server: str | None = None
    kind: str | None = None
    conversation: str | None = None

    def fits(self, said: Mapping[str, Any]) -> bool:
        """
        >>> EventFilter(server="git*").fits({"event": "CallFinished", "tool": "github/find", "server": "github"})
        True
        """
        tools = tools_of(said)
        names = [each.rpartition("/")[2] for each in tools]
        servers = [str(said.get("server", "")), *(each.rpartition("/")[0] for each in tools)]
        servers.append("" if said["event"] == RESULT else str(said.get("upstream", "")))
        return (
            (self.tool is None or any(fnmatchcase(each, self.tool) for each in (*tools, *names)))
            and (self.server is None or any(fnmatchcase(each, self.server) for each in servers if each))
            and (self.kind is None or fnmatchcase(str(said["event"]).lower(), self.kind.lower()))
            and (self.conversation is None or said.get("conversation") == self.conversation)
        )


def tools_of(said: Mapping[str, Any]) -> list[str]:
    """The tools that an event is about: called, brought back, or offered by a decision; or whose result it is.

    >>> tools_of({"event": "result", "upstream": "git/log"})
    ['git/log']
    """
    found = [said["tool"]] if said.get("tool") else []
    if said["event"] == RESULT and said.get("upstream"):
        found.append(said["upstream"])
    for name in ("called", "active_set", "brought_back"):
        found += said.get(name) or ()
    return [str(each) for each in found]


def logs(
    config: Configs = None,
    tool: Annotated[str | None, typer.Option(metavar="PATTERN", help="Name of a tool, or server/name.")] = None,
    server: Annotated[str | None, typer.Option(metavar="PATTERN", help="Server of the tool, or upstream.")] = None,
    kind: Annotated[
        str | None, typer.Option(metavar="PATTERN", help="Kind of event, such as CallFinished or Route*.")
    ] = None,
    conversation: Annotated[
        str | None, typer.Option(metavar="MARK", help="Mark of a conversation, as the dashboard shows it.")
    ] = None,
    since: Annotated[float, typer.Option(min=0, metavar="SECONDS", help="Begin with what happened so long ago.")] = 60,
    follow: Annotated[bool, typer.Option("--follow/--no-follow", help="Wait for what happens next.")] = True,
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="A gateway elsewhere; its token is in PEGBOARD_TOKEN.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
    verbose: Verbose = False,
) -> None:
    """Follow what happens in a gateway: decisions, calls, searches, requests to models, servers that come and go.

    Reads the `pegboard serve` that runs with this configuration, which remembers its last 500 events; without one, the
    activity that gateways keep with `[activity] keep = "store"`, also those of `pegboard mcp`. No line has the text of
    a user, an argument or a secret. Ends with Ctrl-C.
    """
    wanted = EventFilter(tool=tool, server=server, kind=kind, conversation=conversation)
    with suppress(KeyboardInterrupt):
        asyncio.run(_follow(config, url, since, wanted, follow=follow, as_json=as_json))


async def _follow(
    files: Sequence[Path] | None, url: str | None, ago: float, wanted: EventFilter, *, follow: bool, as_json: bool
) -> None:
    console = Console(highlight=False, soft_wrap=True)
    async with aclosing(happened(files, url, since=time.time() - ago)) as batches:
        async for batch in batches:
            if not follow and not batch:
                return
            for said in batch:
                if said["event"] != "Servers" and wanted.fits(said):
                    _print(console, said, as_json=as_json)


def _print(console: Console, said: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps(said, separators=(",", ":")) + "\n")
        sys.stdout.flush()
    else:
        console.print(line(said))


def line(said: Mapping[str, Any]) -> Text:
    """An event on one line; what failed is red on a terminal.

    >>> line({"event": "CallFinished", "at": 0.0, "tool": "a/b", "success": False, "latency_ms": 2.0}).plain[-37:]
    'CallFinished tool=a/b success=no 2 ms'
    """
    at = datetime.fromtimestamp(float(said.get("at", time.time()))).astimezone().strftime("%H:%M:%S")
    failed = is_failure(said)
    made = Text(f"{at} ", style="dim")
    made.append(str(said["event"]), style="bold red" if failed else "bold")
    for name, value in said.items():
        if name in LEFT_OUT or (value is not False and not value):
            continue
        made.append(" ")
        made.append_text(plain(_field(name, value).replace("\n", " ")))
    return made


def is_failure(said: Mapping[str, Any]) -> bool:
    """Whether an event tells of something that went wrong or was held back."""
    status = said.get("status") or 0
    return (
        said.get("success") is False
        or bool(said.get("error") or said.get("failure") or said.get("failures"))
        or status >= 400
        or str(said["event"]).lower().endswith(FAILURES)
    )


def _field(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return f"{name}={'yes' if value else 'no'}"
    if name == "latency_ms":
        return f"{value:.3g} ms"
    if isinstance(value, float):
        return f"{name}={value:.3g}"
    text = ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return f"{name}={text if len(text) <= LONGEST else text[: LONGEST - 1] + '…'}"
