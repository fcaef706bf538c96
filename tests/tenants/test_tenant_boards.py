"""Boards of tenants: what is shared is embedded once, what is private is found by its owner alone."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from index_threads import SECONDS, busy
from pegboard.catalog import Catalog
from pegboard.compose import build_routing, default_parts
from pegboard.errors import CatalogError, ConfigError, EncoderError, QuotaReached
from pegboard.model import Floats, Server, ServerName, Tool, ToolId
from pegboard.retrieval.index_thread import LARGE, MANY
from pegboard.settings import Settings
from pegboard.tenants import DefinitionStore, ServerRows, TenantBoards
from pegboard.testing import FakeEncoder, fake_tool
from processes import until

pytestmark = [pytest.mark.requirement("scale.tenants"), pytest.mark.slow]

SEA = Server(name=ServerName("sea"), description="Tides and winds")
TOOLS = [
    fake_tool("tide", "When the tide comes", server="sea"),
    fake_tool("wind", "How the wind blows", server="sea"),
]
INVOICES = [{"name": "find_invoice", "description": "Find an invoice", "inputSchema": {"type": "object"}}]


@pytest.fixture
def encoder() -> FakeEncoder:
    return FakeEncoder()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(cache_dir=tmp_path, state_dir=tmp_path)


@pytest.fixture
async def boards(settings: Settings, encoder: FakeEncoder) -> AsyncIterator[TenantBoards]:
    made = TenantBoards(settings, encoder=encoder)
    yield made
    await made.close()


async def found(boards: TenantBoards, tenant: str, query: str) -> list[str]:
    return [str(tool) for tool in (await boards.search(tenant, query)).ids]


async def test_a_public_tool_is_embedded_once_for_all_tenants(boards: TenantBoards, encoder: FakeEncoder) -> None:
    await boards.publish(SEA, TOOLS)
    embedded = len(encoder.encoded)
    for tenant in ("acme", "other", "third"):
        boards.use(tenant, ["sea"])
        assert "sea/tide" in await found(boards, tenant, "tide")
    assert boards.definitions == 2
    assert set(encoder.encoded[embedded:]) <= {"tide"}


async def test_a_private_tool_is_its_owners_alone(boards: TenantBoards) -> None:
    await boards.publish(SEA, TOOLS)
    boards.use("other", ["sea"])
    await boards.import_tools("acme", "crm", INVOICES)
    assert await found(boards, "acme", "find an invoice") == ["crm/find_invoice"]
    assert not {each for each in await found(boards, "other", "find an invoice") if each.startswith("crm/")}
    assert ToolId("crm", "find_invoice") not in (await boards.route("other", "find an invoice")).reachable


async def test_of_equal_private_tools_each_tenant_has_its_own(boards: TenantBoards, encoder: FakeEncoder) -> None:
    first = await boards.import_tools("acme", "crm", INVOICES)
    texts = len(encoder.encoded)
    second = await boards.import_tools("other", "crm", INVOICES)
    assert (first.embedded, second.embedded) == (1, 1)
    assert len(encoder.encoded) == 2 * texts, "also the store of embeddings tells nobody what others have"
    assert boards.definitions == 2


async def test_tools_of_one_name_are_each_tenants_own(boards: TenantBoards) -> None:
    for tenant, said in (("acme", "Find an invoice of acme"), ("other", "Find an invoice of other")):
        await boards.import_tools(tenant, "crm", [{"name": "find", "description": said}])
    for tenant in ("acme", "other"):
        (match,) = (await boards.search(tenant, "find an invoice")).tools
        assert match.description == f"Find an invoice of {tenant}"


async def test_a_board_ranks_to_the_last_bit_as_if_no_other_tenant_existed(
    boards: TenantBoards, settings: Settings
) -> None:
    mine = [fake_tool(f"find_{number}", f"Find invoice {number} of the harbour", server="crm") for number in range(40)]
    await boards.import_tools("other", "crm", [fake_tool("find", "Find invoice tide harbour wind", server="crm")])
    await boards.publish(SEA, TOOLS)
    await boards.import_tools("acme", "crm", mine)
    boards.use("acme", ["sea"])
    alone = build_routing(
        settings,
        Catalog.build([(SEA, TOOLS), (Server(name=ServerName("crm")), mine)]),
        parts=default_parts(settings, encoder=FakeEncoder()),
    )
    shared = await boards.board("acme")
    for query in ("tide in the harbour", "find invoice 7", "how does the wind blow"):
        assert await shared.rank(query) == await alone.rank(query)
        assert (await shared.route(query)).active == (await alone.route(query)).active


async def test_a_server_that_is_listed_anew_embeds_what_is_new(boards: TenantBoards) -> None:
    await boards.publish(SEA, TOOLS)
    boards.use("acme", ["sea"])
    assert "sea/salt" not in await found(boards, "acme", "salt")
    again = await boards.publish(SEA, [TOOLS[0], fake_tool("salt", "How much salt is in the water", server="sea")])
    assert (again.tools, again.embedded) == (2, 1)
    assert "sea/salt" in await found(boards, "acme", "salt")
    assert boards.definitions == 2


async def test_what_is_withdrawn_or_removed_is_gone_with_the_next_request(boards: TenantBoards) -> None:
    await boards.publish(SEA, TOOLS)
    boards.use("acme", ["sea"])
    await boards.import_tools("acme", "crm", INVOICES)
    assert len(boards.tools_of("acme")) == 3
    boards.withdraw("sea")
    assert await found(boards, "acme", "tide") in ([], ["crm/find_invoice"])
    boards.remove_tools("acme", "crm")
    assert boards.tools_of("acme") == frozenset()
    assert boards.definitions == 0


async def test_a_removed_tenant_leaves_nothing_and_is_unknown(boards: TenantBoards) -> None:
    await boards.import_tools("acme", "crm", INVOICES)
    await found(boards, "acme", "invoice")
    boards.remove_tenant("acme")
    assert boards.definitions == 0
    with pytest.raises(ConfigError, match="No tenant is called 'acme'"):
        await boards.search("acme", "invoice")


async def test_boards_that_are_not_hot_are_built_again_and_find_the_same(settings: Settings) -> None:
    boards = TenantBoards(settings, encoder=FakeEncoder(), hot_tools=1)
    await boards.publish(SEA, TOOLS)
    for tenant in ("acme", "other"):
        boards.use(tenant, ["sea"])
    first = await boards.board("acme")
    before = await found(boards, "acme", "tide")
    await boards.board("other")
    assert await boards.board("acme") is not first
    assert await found(boards, "acme", "tide") == before
    await boards.close()


async def test_rows_that_are_being_read_are_not_given_to_another_tenant(
    boards: TenantBoards, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, read_on = threading.Event(), threading.Event()
    tools = boards._store.tools

    def slowly(listed: ServerRows) -> tuple[Tool, ...]:
        reading.set()
        assert read_on.wait(60)
        return tools(listed)

    monkeypatch.setattr(boards._store, "tools", slowly)
    await boards.import_tools("acme", "crm", INVOICES)
    building = asyncio.create_task(boards.board("acme"))
    assert await asyncio.to_thread(reading.wait, 10)
    boards.remove_tenant("acme")
    await boards.import_tools("other", "crm", [{"name": "secret", "description": "A secret of other"}])
    read_on.set()
    assert [tool.name for tool in (await building).catalog.tools] == ["find_invoice"]
    assert boards.definitions == 1
    assert boards.hot == 0, "nothing stays of a tenant that is gone"


class Reading:
    """Boards are read from the store when they are told to go on. What was read stays in ``tools``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.go = threading.Event(), threading.Event()
        self.tools: list[tuple[Tool, ...]] = []
        read = DefinitionStore.tools

        def slowly(store: DefinitionStore, listed: ServerRows) -> tuple[Tool, ...]:
            self.begun.set()
            assert self.go.wait(SECONDS)
            self.tools.append(read(store, listed))
            return self.tools[-1]

        monkeypatch.setattr(DefinitionStore, "tools", slowly)

    async def begins(self) -> None:
        assert await asyncio.to_thread(self.begun.wait, SECONDS)


NEW_INVOICES = [{"name": "pay_invoice", "description": "Pay an invoice"}]
NEW_TOOLS = [fake_tool("salt", "How much salt is in the water", server="sea")]
SECRETS = [{"name": f"secret_{number}", "description": "A secret invoice of a rival"} for number in range(4)]


@pytest.mark.parametrize("change", ["removes", "imports anew", "withdraws", "publishes anew", "leaves"])
async def test_who_waits_for_a_place_gets_no_tools_of_another_tenant(
    boards: TenantBoards, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    await boards.publish(SEA, TOOLS)
    boards.use("acme", ["sea"])
    await boards.import_tools("acme", "crm", INVOICES)
    await boards.import_tools("other", "crm", INVOICES)
    mine = boards.tools_of("acme")
    reading = Reading(monkeypatch)
    other = asyncio.create_task(boards.board("other"))
    await reading.begins()
    waiting = asyncio.create_task(boards.board("acme"))
    await asyncio.sleep(0)  # it has its view now, and no place
    match change:
        case "removes":
            boards.remove_tools("acme", "crm")
        case "imports anew":
            await boards.import_tools("acme", "crm", NEW_INVOICES)
        case "withdraws":
            boards.withdraw("sea")
        case "publishes anew":
            await boards.publish(SEA, NEW_TOOLS)
        case "leaves":
            boards.remove_tenant("acme")
    await boards.import_tools("rival", "vault", SECRETS)
    assert not waiting.done()
    reading.go.set()
    assert {tool.id for tool in (await waiting).catalog.tools} == mine
    await other


async def test_rows_of_who_waited_for_a_place_are_free_afterwards(
    boards: TenantBoards, monkeypatch: pytest.MonkeyPatch
) -> None:
    await boards.publish(SEA, TOOLS)
    boards.use("acme", ["sea"])
    for server in ("crm", "erp"):
        await boards.import_tools("acme", server, INVOICES)
    await boards.import_tools("other", "crm", INVOICES)
    reading = Reading(monkeypatch)
    other = asyncio.create_task(boards.board("other"))
    await reading.begins()
    waiting = [asyncio.create_task(boards.board("acme")) for _ in range(3)]
    await asyncio.sleep(0)
    boards.remove_tools("acme", "crm")
    waiting[1].cancel()
    reading.go.set()
    await asyncio.gather(other, *waiting, return_exceptions=True)
    assert [task.cancelled() for task in waiting] == [False, True, False]
    assert boards.definitions == len(TOOLS) + 2
    boards.remove_tenant("acme")
    boards.remove_tenant("other")
    boards.withdraw("sea")
    assert boards.definitions == 0


async def test_rows_stay_until_they_are_read_also_when_nobody_waits_any_more(
    boards: TenantBoards, monkeypatch: pytest.MonkeyPatch
) -> None:
    await boards.publish(SEA, TOOLS)
    for tenant in ("acme", "other"):
        boards.use(tenant, ["sea"])
    reading = Reading(monkeypatch)
    asked = asyncio.create_task(boards.board("acme"))
    await reading.begins()
    asked.cancel()
    await asyncio.gather(asked, return_exceptions=True)
    boards.withdraw("sea")
    air = [replace(tool, id=ToolId("air", tool.name), description="What is in the air") for tool in NEW_TOOLS + TOOLS]
    await boards.publish("air", air)
    boards.use("other", ["air"])
    reading.go.set()
    await until(lambda: bool(reading.tools) and boards.definitions == len(air))
    assert [tool.id for tool in reading.tools[0]] == [tool.id for tool in TOOLS]
    assert boards.tools_of("other") == {tool.id for tool in air}


async def test_searches_of_boards_that_are_ready_wait_for_no_board_that_is_built(boards: TenantBoards) -> None:
    tenants = ("acme", "other", "third")
    for tenant, many in zip(tenants, (MANY + 1, MANY + 2, 1), strict=True):
        tools = [fake_tool(f"tide_{number}", "When the tide comes", server="sea") for number in range(many)]
        await boards.import_tools(tenant, "sea", tools)
        await found(boards, tenant, "tide_0")

    async with busy(MANY + 1, LARGE), asyncio.timeout(SECONDS):
        for answer in await asyncio.gather(*(found(boards, tenant, "tide_0") for tenant in tenants)):
            assert answer[0] == "sea/tide_0"


async def test_a_limit_of_a_search_that_is_no_number_of_tools_is_refused(boards: TenantBoards) -> None:
    await boards.import_tools("acme", "crm", INVOICES)
    with pytest.raises(ConfigError, match="limit is -1"):
        await boards.search("acme", "invoice", limit=-1)


async def test_an_import_that_fails_leaves_what_was_there(settings: Settings) -> None:
    encoder = FakeEncoder()
    boards = TenantBoards(settings, encoder=encoder)
    await boards.import_tools("acme", "crm", INVOICES)
    encoder.broken = True
    with pytest.raises(EncoderError):
        await boards.import_tools("acme", "crm", [{"name": f"tool_{number}"} for number in range(40)])
    assert boards.tools_of("acme") == {ToolId("crm", "find_invoice")}
    assert boards.definitions == 1
    await boards.close()


class Halted(FakeEncoder):
    """Embeds the texts of large listings when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.go = asyncio.Event(), asyncio.Event()

    async def encode(self, texts: Sequence[str]) -> Floats:
        if any("old" in text for text in texts):
            self.begun.set()
            await self.go.wait()
        return await super().encode(texts)


OLD = [{"name": f"old_{number}", "description": "An old tool"} for number in range(3)]


async def test_of_two_listings_of_a_server_the_one_that_was_asked_for_last_holds(settings: Settings) -> None:
    encoder = Halted()
    boards = TenantBoards(settings, encoder=encoder)
    boards.use("acme", [])
    imports = asyncio.create_task(boards.import_tools("acme", "crm", OLD))
    publishes = asyncio.create_task(boards.publish("sea", OLD))
    removed = asyncio.create_task(boards.import_tools("acme", "old", OLD))
    await encoder.begun.wait()
    await asyncio.sleep(0)
    boards.remove_tools("acme", "old")
    boards.withdraw("sea")
    encoder.go.set()
    await asyncio.gather(imports, publishes, removed)

    assert {tool.server for tool in boards.tools_of("acme")} == {"crm"}
    with pytest.raises(ConfigError, match="No public server"):
        boards.use("acme", ["sea"])
    assert boards.definitions == len(OLD)
    await boards.close()


async def test_a_name_that_is_taken_while_its_tools_arrive_is_refused(settings: Settings) -> None:
    encoder = Halted()
    boards = TenantBoards(settings, encoder=encoder)
    await boards.publish(SEA, TOOLS)
    importing = asyncio.create_task(boards.import_tools("acme", "sea", OLD))
    await encoder.begun.wait()
    boards.use("acme", ["sea"])
    encoder.go.set()

    with pytest.raises(ConfigError, match="already has a server called 'sea'"):
        await importing
    assert {tool.name for tool in boards.tools_of("acme")} == {"tide", "wind"}
    assert boards.definitions == len(TOOLS)
    await boards.close()


async def test_imports_of_two_tenants_take_turns(settings: Settings) -> None:
    batches: list[str] = []

    class Telling(FakeEncoder):
        async def encode(self, texts: Sequence[str]) -> Floats:
            await asyncio.sleep(0)
            batches.append(texts[0].split()[0])
            return await super().encode(texts)

    boards = TenantBoards(settings, encoder=Telling())
    large = [{"name": f"tool_{number}", "description": f"Does {number}"} for number in range(100)]
    await asyncio.gather(
        boards.import_tools("acme", "large", large),
        boards.import_tools("other", "small", large[:2]),
    )
    assert batches.index("small") < 3, "a small import does not wait for a large one to end"
    await boards.close()


async def test_a_tenant_has_no_more_tools_of_its_own_than_its_quota(settings: Settings) -> None:
    boards = TenantBoards(settings, encoder=FakeEncoder(), most_tools=2)
    await boards.import_tools("acme", "crm", INVOICES)
    with pytest.raises(QuotaReached, match="quota of 2 tools"):
        await boards.import_tools("acme", "more", [{"name": "one"}, {"name": "two"}])
    assert (await boards.import_tools("acme", "crm", [{"name": "one"}, {"name": "two"}])).tools == 2
    await boards.close()


async def test_a_name_is_one_server_of_a_tenant(boards: TenantBoards) -> None:
    await boards.publish(SEA, TOOLS)
    await boards.import_tools("acme", "sea", [{"name": "own"}])
    with pytest.raises(ConfigError, match="already has a server called 'sea'"):
        boards.use("acme", ["sea"])
    boards.use("other", ["sea"])
    with pytest.raises(ConfigError, match="already has a server called 'sea'"):
        await boards.import_tools("other", "sea", [{"name": "own"}])
    with pytest.raises(ConfigError, match="No public server is called 'air'"):
        boards.use("acme", ["air"])


async def test_what_cannot_be_listed_is_refused_before_anything_is_embedded(
    boards: TenantBoards, encoder: FakeEncoder
) -> None:
    with pytest.raises(CatalogError, match="Duplicate"):
        await boards.import_tools("acme", "sea", [TOOLS[0], TOOLS[0]])
    with pytest.raises(CatalogError, match="is listed under server 'crm'"):
        await boards.import_tools("acme", "crm", TOOLS)
    with pytest.raises(ConfigError, match="needs a name"):
        await boards.import_tools("", "crm", INVOICES)
    assert encoder.encoded == []


async def test_progress_is_told_in_tools(boards: TenantBoards) -> None:
    told: list[tuple[int, int]] = []
    tools = [{"name": f"tool_{number}"} for number in range(20)]
    await boards.import_tools("acme", "crm", tools, progress=lambda done, total: told.append((done, total)))
    assert told == [(16, 20), (20, 20)]


async def test_the_bundled_encoder_embeds_imports_in_a_process_of_its_own(settings: Settings) -> None:
    boards = TenantBoards(settings)
    await boards.import_tools("acme", "crm", INVOICES)
    alone = default_parts(settings).encoder
    (row,) = await (await boards.board("acme")).vectors()
    texts = await alone.encode(["crm find invoice: Find an invoice"] * 2)
    assert np.dot(row, texts[0]) > 0.9
    assert await found(boards, "acme", "look for an invoice") == ["crm/find_invoice"]
    await boards.close()
