"""`pegboard audit-log`: shows and verifies the log of who called what."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pegboard.apps.cli.options import Configs, Json, Verbose, examples
from pegboard.apps.cli.output import cells, plain, print_json, stdout, table
from pegboard.audit_entries import OUTCOMES, ChainCheck, ChainEnds, ChainFinding, Link, moment
from pegboard.clock import SYSTEM_CLOCK
from pegboard.errors import ConfigError
from pegboard.stores.state import open_state

if TYPE_CHECKING:
    from pegboard.protocols import AuditLines
    from pegboard.settings import Settings

EXAMPLES = examples(
    "The last calls",
    "pegboard audit-log",
    "What ann's agents were refused since yesterday",
    "pegboard audit-log --caller ann --outcome refused --since 1d",
    "Every call of a server's tools in October, for a program to read",
    "pegboard audit-log --server github --since 2026-10-01 --until 2026-11-01 --limit 0 --json",
    "Is every line there, as it was written?",
    "pegboard audit-log --verify",
)
SHOWN = 50
AGO = re.compile(r"(\d+)\s*([smhdw])")
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
END = re.compile(r"(\d+):([0-9a-f]{64})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which lines are shown; patterns match the whole of a field."""

    since: str = ""
    until: str = ""
    caller: str | None = None
    tenant: str | None = None
    tool: str | None = None
    server: str | None = None
    outcome: str | None = None

    def fits(self, said: Mapping[str, Any]) -> bool:
        at = str(said.get("at", ""))
        if not said or at < self.since or (self.until and at >= self.until):
            return False
        for name in ("caller", "tenant", "server", "outcome"):
            pattern = getattr(self, name)
            if pattern is not None and not fnmatchcase(str(said.get(name, "")), pattern):
                return False
        tools = [said.get("tool", ""), *said.get("called", ())]
        return self.tool is None or any(fnmatchcase(str(tool), self.tool) for tool in tools)


def audit_log(
    config: Configs = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Lines from then on: 2026-11-24, 2026-11-24T08:00, 30m, 12h, 7d.")
    ] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="Lines before then.")] = None,
    caller: Annotated[str | None, typer.Option(metavar="PATTERN", help="Name of the token, key or subject.")] = None,
    tenant: Annotated[str | None, typer.Option(metavar="PATTERN", help="Tenant of the caller.")] = None,
    tool: Annotated[
        str | None, typer.Option(metavar="PATTERN", help="Name of a tool that was called, by a client or by a model.")
    ] = None,
    server: Annotated[str | None, typer.Option(metavar="PATTERN", help="Server of the tool, or upstream.")] = None,
    outcome: Annotated[str | None, typer.Option(metavar="PATTERN", help=f"One of {', '.join(OUTCOMES)}.")] = None,
    limit: Annotated[int, typer.Option(min=0, help="Show only the last lines; 0: all.")] = SHOWN,
    place: Annotated[
        str | None, typer.Option("--from", metavar="PLACE", help="`file` or `store`, if both are written.")
    ] = None,
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Check the whole chain instead: exit with 1 if a line was changed or removed."),
    ] = False,
    expect: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER:HASH", help="With --verify: a line that was the last one earlier must still be there."
        ),
    ] = None,
    as_json: Json = False,
    verbose: Verbose = False,
) -> None:
    """Show who called which tools and models, from the log that [audit_log] turns on.

    The newest line is the last one. With --json, each line is printed as it is kept. --verify checks that no line was
    changed, removed or put in, and prints the last line's number and hash: keep them elsewhere, and give them to
    --expect the next time.
    """
    wanted = Wanted(
        since=_time("--since", since),
        until=_time("--until", until),
        caller=caller,
        tenant=tenant,
        tool=tool,
        server=server,
        outcome=_outcome(outcome),
    )
    if expect is not None and not (verify and END.fullmatch(expect)):
        raise ConfigError(f"--expect {expect!r} cannot be used.", remedy="Write --verify --expect NUMBER:HASH.")
    settings = _settings(config)
    if not verify:
        asyncio.run(_show(settings, place, wanted, limit, as_json=as_json))
    elif not asyncio.run(_verify(settings, place, expect, as_json=as_json)):
        raise typer.Exit(1)


async def _show(settings: Settings, place: str | None, wanted: Wanted, limit: int, *, as_json: bool) -> None:
    lines = deque[dict[str, Any]](maxlen=limit or None)
    async with _opened(settings, place) as log:
        async for line in log.read():
            said = _fields(line)
            if wanted.fits(said):
                lines.append(said)
    if as_json:
        for said in lines:
            sys.stdout.write(json.dumps(said, separators=(",", ":")) + "\n")
    elif not lines:
        stdout().print(plain("No line fits."))
    else:
        made = table("", "time", "caller", "server", "tool or model", "outcome", ">ms", ">USD")
        for said in lines:
            made.add_row(*cells(*_row(said)))
        stdout().print(made)


async def _verify(settings: Settings, place: str | None, expect: str | None, *, as_json: bool) -> bool:
    """Whether the chain is whole. The result is printed."""
    key, count = settings.audit_log.key, 0
    async with _opened(settings, place) as log:
        text = await log.ends()  # before the lines: a process may be writing
        ends, wrong = _ends(text, key)
        check, awaited = ChainCheck(ends, key), _awaited(expect, ends)
        async for line in log.read():
            count += 1
            wrong += check.feed(line)
            awaited -= {check.last}
        gone, amiss = _ends(await log.ends(), key)  # retention may have removed lines meanwhile
    wrong += check.end()
    if not amiss:
        wrong = [each for each in wrong if each.kind != "missing" or each.until > gone.removed.number]
        awaited = {each for each in awaited if each.number > gone.removed.number}
    if count and not text:
        wrong.append(ChainFinding(kind="ends", number=0, text="the end of the chain is not noted any more"))
    wrong += [ChainFinding(kind="missing", number=each.number, text=f"line {expect} is not there") for each in awaited]
    whole = all(each.is_harmless for each in wrong)
    end = f"{check.last.number}:{check.last.hash}"
    if as_json:
        said = [{"kind": each.kind, "after": each.number, "text": each.text} for each in wrong]
        print_json({"whole": whole, "lines": count, "removed": ends.removed.number, "end": end, "findings": said})
        return whole
    for each in wrong:
        sys.stdout.write(f"{each.kind}: {each.text}\n")
    older = f", {ends.removed.number:,} older ones were removed by retention" if ends.removed.number else ""
    sys.stdout.write(f"{count:,} lines{older}: {'none was changed' if whole else 'the log was CHANGED'}.\n")
    sys.stdout.write(f"The last line is {end}\n" if check.last.number else "")
    return whole


def _ends(text: str, key: bytes) -> tuple[ChainEnds, list[ChainFinding]]:
    """The ends of the chain, and what is wrong with them."""
    try:
        ends = ChainEnds.of(text) if text else ChainEnds()
    except ValueError:
        return ChainEnds(), [ChainFinding(kind="ends", number=0, text="the end of the chain cannot be read")]
    if text and ends.text(key) != text:
        return ends, [ChainFinding(kind="ends", number=0, text="the end of the chain was not written with this key")]
    return ends, []


def _awaited(expect: str | None, ends: ChainEnds) -> set[Link]:
    """The line that was the last one earlier, unless retention removed it."""
    if expect is None:
        return set()
    number, hash_ = expect.split(":")
    return {Link(number=int(number), hash=hash_)} if int(number) > ends.removed.number else set()


@asynccontextmanager
async def _opened(settings: Settings, place: str | None) -> AsyncIterator[AuditLines]:
    """The log at a place, or the first one that the settings name. Raises ConfigError if there is none."""
    state = open_state(settings, SYSTEM_CLOCK)
    try:
        if not settings.audit_log.to and place in (None, "store") and await state.audit.ends():
            yield state.audit  # acts of operators are logged in any case
            return
        if not settings.audit_log.to:
            raise ConfigError(
                "No audit log is configured, and no operator has done anything.",
                remedy='Add `[audit_log]` with `to = ["file"]` to pegboard.toml.',
            )
        chosen = place or settings.audit_log.to[0]
        found = next((log for name, log in state.audit_logs.items() if name == chosen), None)
        if found is None:
            raise ConfigError(
                f"The audit log is not written to {chosen!r}.",
                remedy=f"Give --from {' or '.join(settings.audit_log.to)}.",
            )
        yield found
    finally:
        await state.close()


def _settings(config: Configs) -> Settings:
    from pegboard.apps.cli.configs import own_files_agreed
    from pegboard.settings import load_settings

    return load_settings(config or own_files_agreed())


def _time(option: str, text: str | None) -> str:
    """A moment as lines have it; empty without one. Raises ConfigError."""
    if text is None:
        return ""
    try:
        if ago := AGO.fullmatch(text.strip()):
            found = datetime.now(UTC) - timedelta(**{UNITS[ago[2]]: int(ago[1])})
        else:
            found = datetime.fromisoformat(text.strip())
        return moment((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError) as error:
        raise ConfigError(
            f"{option} {text!r} is not a time.", remedy="Write 2026-11-24, 2026-11-24T08:00, or 30m, 12h, 7d."
        ) from error


def _outcome(text: str | None) -> str | None:
    if text is not None and not any(fnmatchcase(each, text) for each in OUTCOMES):
        raise ConfigError(f"There is no outcome {text!r}.", remedy=f"Use one of {', '.join(OUTCOMES)}.")
    return text


def _fields(line: bytes) -> dict[str, Any]:
    """The fields of a line; none of one that is unfinished."""
    try:
        said = json.loads(line)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def _row(said: Mapping[str, Any]) -> list[str]:
    what = str(said.get("tool") or said.get("model", ""))
    if called := said.get("called"):
        what = f"{what} → {', '.join(map(str, called))}"
    if act := said.get("act"):
        what = f"{act} {what}".rstrip()
    if lost := said.get("lost"):
        what = f"{lost} lines could not be written"
    who = "/".join(filter(None, (str(said.get("tenant", "")), str(said.get("caller", "")))))
    outcome = " ".join(filter(None, (str(said.get("outcome", "")), str(said.get("reason", "")))))
    took = f"{said['latency_ms']:.0f}" if "latency_ms" in said else ""
    return [str(said.get("at", "")), who, str(said.get("server", "")), what, outcome, took, said.get("price_usd", "")]
