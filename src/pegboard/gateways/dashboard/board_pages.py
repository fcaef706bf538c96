"""The pages of the board: servers and tools, clients and keys, trying a query, and the settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pegboard.activity_entries import DAY_SECONDS, ActivityGroup, ActivityTotals
from pegboard.errors import PegboardError
from pegboard.events import ContentSuspected, DefinitionChanged, DefinitionSuspected, Event, ServerCrowds
from pegboard.gateways.dashboard.activity_pages import latest_outcomes
from pegboard.gateways.dashboard.budget_lines import BudgetSpending, budget_lines
from pegboard.gateways.dashboard.forms import switch_field, tool_field
from pegboard.gateways.dashboard.profile_comparison import ProfileComparison, compared
from pegboard.gateways.dashboard.shown_settings import shown_options, shown_settings
from pegboard.gateways.key_expiry import lifetimes
from pegboard.gateways.mcp.gateway.host import Host
from pegboard.model import AgentState, Message, Part, Pin, ToolId, ToolStatistics, Turn
from pegboard.records import MeterRecord, SwitchRecord
from pegboard.settings import Settings
from pegboard.settings.limit_settings import BudgetSettings, RateSettings
from pegboard.spend_limits import BUDGET, day_of
from pegboard.telemetry.activity_recorder import ActivityRecorder
from pegboard.trust.tool_keys import tool_key
from pegboard.upstreams.status import ServerStatus

MOST_TOOLS = 500
MOST_USED = 200
USED_DAYS = 30
MOST_KEYS = 500
LONGEST_QUERY = 4_000
EXPLAINED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolLine:
    """A tool of the board, with the statistics of its calls and what its pin says."""

    id: ToolId
    description: str
    tokens: int
    statistics: ToolStatistics | None
    pin: Pin | None

    @property
    def target(self) -> str:
        """As a form names it."""
        return tool_field(self.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLine:
    """``off`` says whether an operator has switched the server off."""

    status: ServerStatus
    statistics: ToolStatistics | None
    off: bool

    @property
    def target(self) -> str:
        """As a form names it."""
        return tool_field(ToolId(self.status.name, ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchedLine:
    """What is switched off; ``target`` is what a form calls it."""

    target: str
    tool: ToolId
    switch: SwitchRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyLine:
    """A key or token: configured, or seen in activity alone."""

    name: str
    section: str
    scopes: tuple[str, ...]
    tenant: str
    ends: float | None
    state: str
    use: ActivityGroup | None

    @property
    def totals(self) -> ActivityTotals:
        return self.use.totals if self.use else ActivityTotals()


class BoardPages:
    """Each page as the values of its template."""

    def __init__(self, host: Host, recorder: ActivityRecorder | None) -> None:
        self._host = host
        self._recorder = recorder
        self._profiles = ProfileComparison(host)

    async def tools(self) -> dict[str, Any]:
        parts, catalog = self._host.parts, self._host.gateway().view.board.catalog
        statistics, pins = await parts.statistics.read(), await parts.pins.get()
        lines = [
            ToolLine(
                id=tool.id,
                description=tool.description,
                tokens=catalog.token_counts[place],
                statistics=statistics.get(tool.id),
                pin=pins.get(tool_key(tool.id)),
            )
            for place, tool in enumerate(catalog.tools)
        ]
        lines.sort(key=lambda line: (-(line.statistics.calls if line.statistics else 0), line.id))
        return {
            "servers": [
                ServerLine(
                    status=status,
                    statistics=statistics.get(ToolId(status.name, "")),
                    off=self._host.switches.is_server_off(status.name),
                )
                for status in self._host.fleet.status()
            ],
            "tools": lines[:MOST_TOOLS],
            "left_out": max(0, len(lines) - MOST_TOOLS),
            "changed": sum(pin.changed for pin in pins.values()),
            "off": [
                SwitchedLine(target=switch_field(switch), tool=ToolId(switch.server, switch.name), switch=switch)
                for _, switch in sorted(self._host.switches.records.items())
            ],
            "used": await self._used_tools(),
            "outcomes": None if self._recorder is None else await latest_outcomes(self._recorder.store),
            "recall": {} if self._recorder is None else self._recorder.recall,
            "notices": [] if self._recorder is None else [_notice(each) for each in reversed(self._recorder.notices)],
        }

    async def clients(self) -> dict[str, Any]:
        settings, spending = self._host.settings, BudgetSpending()
        spent = await self._spent(spending)
        used: dict[str, ActivityGroup] = {}
        clients: list[ActivityGroup] = []
        if self._recorder is not None:
            await self._recorder.flush()
            used = {each.name: each for each in await self._recorder.store.by("key", 0, MOST_KEYS)}
            clients = await self._recorder.store.by("client", 0, MOST_KEYS)
        ends = {(each.section, each.name): each for each in lifetimes(settings) if not each.previous}
        now = self._host.parts.clock.time()
        lines = []
        for (section, name), lifetime in ends.items():
            token = settings.access.get(name) if section == "access" else None
            lines.append(
                KeyLine(
                    name=name,
                    section=section,
                    scopes=token.scopes if token else (),
                    tenant=token.tenant if token else "",
                    ends=lifetime.expires,
                    state=lifetime.state(now),
                    use=used.get(name),
                )
            )
        known = {name for _, name in ends}
        lines += [
            KeyLine(
                name=name,
                section="issuer" if name else "no key",
                scopes=(),
                tenant="",
                ends=None,
                state="",
                use=used.get(name),
            )
            for name in sorted(used.keys() - known)
        ]
        return {
            "keys": lines,
            "spent": spent,
            "limits": limits(settings),
            "budgets": budget_lines(settings, spending, used),
            "clients": [each for each in clients if each.name],
        }

    async def tried(self, query: str) -> dict[str, Any]:
        """The decision for a query, with the rights of this process, and why each of its best tools is in or out.

        Beside it, what all profiles would decide."""
        query = query[:LONGEST_QUERY]
        values: dict[str, Any] = {"query": query, "found": [], "decision": None, "error": "", "parts": ()}
        values |= {"profiles": (), "compared": ()}
        if not query.strip():
            return values
        scopes = frozenset(self._host.settings.scopes)
        message = Message(role="user", parts=(Part(text=query),))
        turn = Turn(messages=(message,), scopes=scopes, state=AgentState(auth=scopes))
        try:
            explained = await self._host.gateway().view.board.explain(turn)
            profiles = await self._profiles.explained(turn)
        except PegboardError as error:
            return values | {"error": error.message}
        best = explained.order[:EXPLAINED]
        return values | {
            "decision": explained.decision,
            "parts": tuple(dict.fromkeys(name for each in best for name in each.parts)),
            "profiles": profiles,
            "compared": compared(profiles, EXPLAINED),
            "found": [(each, explained.of_tool(each.tool)) for each in best],
        }

    def settings(self) -> dict[str, Any]:
        now, later = map(shown_settings, (self._host.settings, self._host.configured))
        return {"options": shown_options(now, later)}

    async def _used_tools(self) -> list[ActivityGroup]:
        if self._recorder is None:
            return []
        await self._recorder.flush()
        since = int(self._host.parts.clock.time() // DAY_SECONDS) - USED_DAYS + 1
        return await self._recorder.store.by("tool", since, MOST_USED)

    async def _spent(self, budgets: BudgetSpending) -> int:
        """What the calls of all have cost, in billionths of a dollar; what was spent of budgets is added to
        ``budgets``."""
        spent, today = 0, day_of(self._host.parts.clock.time())
        async for record in self._host.parts.archive.read("meter", after=("day", today)):
            if not isinstance(record, MeterRecord) or record.kind == "session":
                break  # today and keys come before sessions, of which there may be many
            if record.kind == "key" and record.name.startswith(BUDGET):
                budgets.total[record.name] = record.spent
            elif record.kind == "key":
                spent += record.spent
            elif record.name.startswith(f"{today} {BUDGET}"):
                budgets.today[record.name.removeprefix(f"{today} ")] = record.spent
        return spent


def limits(settings: Settings) -> tuple[str, ...]:
    """What holds for callers, as text."""
    spend = settings.spend
    fixed = {"a session": spend.session, "all calls": spend.key, "all calls on a day": spend.day}
    return (
        *(f"${usd:g} for {what}" for what, usd in fixed.items() if usd is not None),
        *map(_rate, settings.rates),
        *map(_budget, spend.budgets),
    )


def _rate(rate: RateSettings) -> str:
    return f"{rate.calls} {rate.of} in {rate.seconds:g} s for {_whom(rate)}"


def _budget(budget: BudgetSettings) -> str:
    sums = {"a day": budget.day, "in all": budget.total}
    return f"{', '.join(f'${usd:g} {when}' for when, usd in sums.items() if usd is not None)} for {_whom(budget)}"


def _whom(limit: RateSettings | BudgetSettings) -> str:
    whose = {"caller": "each caller", "tenant": "each tenant", "all": "all together"}[limit.by]
    named = [f"callers {', '.join(limit.callers)}"] if limit.callers != ("*",) else []
    named += [f"tenants {', '.join(limit.tenants)}"] if limit.tenants != ("*",) else []
    named += [f"tools {', '.join(limit.tools)}"] if limit.tools != ("*",) else []
    return f"{whose}{' (' if named else ''}{'; '.join(named)}{')' if named else ''}"


def _notice(event: Event) -> tuple[float, str, str]:
    """When, about what, and what was found."""
    match event:
        case DefinitionChanged():
            return event.at, event.tool, f"definition changed{_held(event.held_back)}"
        case DefinitionSuspected():
            return event.at, event.tool, f"definition suspected: {', '.join(event.rules)}{_held(event.held_back)}"
        case ContentSuspected():
            said = f"{event.what} suspected: {', '.join(event.rules)}{_held(event.held_back)}"
            return event.at, f"{event.server}: {event.where}", said
        case ServerCrowds():
            of = f" of {event.of}" if event.of else ""
            return event.at, event.server, f"crowds out others: {event.kind}{of}"
    return event.at, "", event.kind


def _held(held_back: bool) -> str:
    return ", held back" if held_back else ""
