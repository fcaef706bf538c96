"""An append to the audit log in PostgreSQL whose transaction ends without an answer."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar
from uuid import uuid4

import pytest

from pegboard.audit_entries import AuditEntry, ChainEnds, findings
from pegboard.errors import StoreError
from pegboard.stores.postgres import PostgresAudit, PostgresDatabase, audit_lines
from services import POSTGRES, drop_schema, needs_postgres

pytestmark = needs_postgres
T = TypeVar("T")


class Deaf(PostgresDatabase):
    """A server whose answer to a commit does not come: it has been done, or not."""

    deaf = False
    applies = True

    async def run(self, work: Callable[[Any], Awaitable[T]]) -> T:
        async def cut_off(connection: Any) -> T:
            result = await work(connection)
            if self.deaf and not self.applies:
                raise OSError("The connection is lost")
            return result

        result = await super().run(cut_off)
        if self.deaf:
            raise StoreError("The connection is lost.", remedy="Try again.")
        return result


@pytest.fixture
async def database() -> AsyncIterator[Deaf]:
    made = Deaf(POSTGRES, schema=f"test_{uuid4().hex}", timeout=30)
    yield made
    await made.close()
    await drop_schema(made.schema)


def entry(number: int) -> AuditEntry:
    return AuditEntry(at=1_000.0, event="call", door="mcp", tool=f"tool_{number}")


@pytest.mark.parametrize("applies", [True, False])
@pytest.mark.parametrize("others", [False, True])
async def test_an_append_without_an_answer_that_is_tried_again_is_there_once(
    database: Deaf, applies: bool, others: bool
) -> None:
    log = PostgresAudit(database)
    await log.append([entry(0)])
    database.applies = applies

    for _ in range(2):
        database.deaf = True
        with pytest.raises(StoreError):
            await log.append([entry(1), entry(2)])
        database.deaf = False
        if others:
            await PostgresAudit(database).append([entry(9)])
    await log.append([entry(1), entry(2)])
    await log.append([entry(3)])

    lines = [line async for line in log.read()]
    assert list(findings(lines, ChainEnds.of(await log.ends()))) == []
    tools = [json.loads(line)["tool"] for line in lines]
    assert [tool for tool in tools if tool != "tool_9"] == [f"tool_{number}" for number in range(4)]
    assert log._unsure == {}


async def test_what_is_remembered_of_appends_without_an_answer_is_bounded(
    database: Deaf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_lines, "MOST_UNSURE", 3)
    log, database.deaf = PostgresAudit(database), True

    for number in range(9):
        with pytest.raises(StoreError):
            await log.append([entry(number)])

    assert [given[0].tool for given in log._unsure] == ["tool_6", "tool_7", "tool_8"]
