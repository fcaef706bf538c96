"""Every tool call in the audit log: by its own name, through a meta-tool, refused, failed."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
from mcp import Client, MCPError

from doors import Raw
from pegboard.audit_entries import FREE, AuditEntry, ChainEnds, digest, findings
from pegboard.clock import SystemClock
from pegboard.gateways.access_keys import hashed
from pegboard.gateways.mcp.gateway import call_audit
from pegboard.gateways.mcp.gateway.call_audit import AttemptedCall, CallAudit
from pegboard.gateways.mcp.gateway.caller import CallContext, Caller
from pegboard.gateways.mcp.gateway.host import Host
from pegboard.stores import MemoryAudit
from pegboard.telemetry.audit_log import AuditLog
from pegboard.testing import FakeClock

OpenClient = Callable[..., AbstractAsyncContextManager[Client]]
OpenDoor = Callable[..., AbstractAsyncContextManager[tuple[str, Host]]]


@pytest.fixture
def store() -> MemoryAudit:
    return MemoryAudit()


async def kept(store: MemoryAudit) -> list[dict[str, Any]]:
    lines = [line async for line in store.read()]
    assert not list(findings(lines, ChainEnds.of(await store.ends() or "{}") if lines else ChainEnds()))
    return [json.loads(line) for line in lines]


@pytest.mark.requirement("signing-in.audit-log")
async def test_each_call_is_one_line_with_its_digest_outcome_and_price(
    client_of: OpenClient, store: MemoryAudit
) -> None:
    log = AuditLog([store], clock=SystemClock())
    async with client_of(parts={"audit": log}, spend={"prices": {"scripted/echo": 0.05}}) as client:
        await client.call_tool("echo", {"text": "one"})
        await client.call_tool("invoke_tool", {"name": "echo", "arguments": {"text": "two"}})
        await client.call_tool("invoke_tool", {"name": "fails"})
        await client.call_tool("invoke_tool", {"name": "echo", "arguments": {"text": 5}})
        await client.call_tool("invoke_tool", {"name": "no_such_tool", "arguments": {}})
    await log.close()

    lines = await kept(store)
    assert [(line["tool"], line["outcome"], line.get("reason")) for line in lines] == [
        ("echo", "ok", None),
        ("echo", "ok", None),
        ("fails", "tool_error", None),
        ("echo", "caller_error", "arguments_invalid"),
        ("no_such_tool", "refused", "tool_not_available"),
    ]
    assert [line.get("server") for line in lines] == [*["scripted"] * 4, None]
    assert [line.get("price_usd") for line in lines] == ["0.05", "0.05", None, None, None]
    assert lines[1]["arguments"] == digest({"text": "two"})
    assert not any("values" in line or "two" in json.dumps(line) for line in lines)


async def test_arguments_are_those_of_the_client_without_what_the_toolset_presets(
    open_door: OpenDoor, store: MemoryAudit
) -> None:
    log = AuditLog([store], clock=SystemClock(), values=True)
    toolsets = {"preset": {"tools": ["scripted/add"], "preset": {"scripted/add": {"b": 41}}}}
    async with (
        open_door(replaced={"audit": log}, toolsets=toolsets) as (url, _),
        httpx2.AsyncClient(trust_env=False, timeout=60) as http,
    ):
        raw = await Raw(http, f"{url}/preset", modern=False).begin()
        await raw.call("add", a=1)
    await log.close()

    (line,) = await kept(store)
    assert (line["tool"], line["values"]) == ("add", '{"a":1}')


@pytest.mark.requirement("signing-in.audit-log")
async def test_a_line_says_who_called_by_token_and_tenant_and_after_which_search(
    open_door: OpenDoor, store: MemoryAudit
) -> None:
    log = AuditLog([store], clock=SystemClock())
    access = {
        "ann": {"hash": hashed("anns"), "tenant": "acme"},
        "bob": {"hash": hashed("bobs"), "tools": ["scripted/add"]},
    }
    async with (
        open_door(replaced={"audit": log}, access=access) as (url, _),
        httpx2.AsyncClient(trust_env=False, timeout=60) as http,
    ):
        for token in ("anns", "bobs"):
            raw = await Raw(http, url, modern=False, headers={"authorization": f"Bearer {token}"}).begin()
            await raw.search("echo a text")
            await raw.result("tools/call", name="echo", arguments={"text": "hello"})
    await log.close()

    ann, bob = await kept(store)
    assert (ann["caller"], ann["tenant"], ann["outcome"]) == ("ann", "acme", "ok")
    assert (bob["caller"], bob.get("tenant"), bob["outcome"]) == ("bob", None, "refused")
    assert ann["decision"]
    assert ann["decision"] != bob["decision"]
    assert ann["session"]
    assert ann["session"] != bob["session"]


async def test_a_protocol_error_of_a_server_is_a_line(client_of: OpenClient, store: MemoryAudit) -> None:
    log = AuditLog([store], clock=SystemClock())
    async with client_of(parts={"audit": log}) as client:
        with pytest.raises(MCPError):
            await client.call_tool("raises", {})
    await log.close()

    (line,) = await kept(store)
    assert line["outcome"] in ("server_error", "caller_error")
    assert line["reason"].lstrip("-").isdecimal()


async def test_calls_are_refused_while_a_required_log_cannot_be_written(client_of: OpenClient) -> None:
    log = AuditLog([MemoryAudit()], clock=SystemClock(), required=True)
    log._waiting[0].failing = True
    async with client_of(parts={"audit": log}) as client:
        result = await client.call_tool("echo", {"text": "one"})

    assert result.is_error
    assert json.loads(result.content[0].text)["error"] == "audit_unavailable"  # type: ignore[union-attr]


def test_a_conversation_that_goes_on_calling_keeps_its_search_while_others_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(call_audit, "MOST_CONVERSATIONS", 2)
    lines: list[AuditEntry] = []
    log: Any = SimpleNamespace(is_on=True, clock=FakeClock(), digested=lambda given: ("", ""), put=lines.append)
    later: Any = lambda work: work()  # noqa: E731
    audit, ann = CallAudit(log, later), Caller(session="ann")
    attempt = AttemptedCall(name="echo", arguments={}, context=CallContext(caller=ann))
    audit.searched(ann, "of ann")
    for other in ("bob", "eve", "zoe"):
        audit.searched(Caller(session=other), f"of {other}")
        audit.answered(attempt, {}, FREE)

    assert [line.decision for line in lines] == ["of ann"] * 3
    assert len(audit._searches) == 2
