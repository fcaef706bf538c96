"""Answers that are late, double, somebody else's, too large, broken or no answers: none is taken for another (M23)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import mcp_types as types
import pytest
from mcp import Client

from faults import PIPES, WAYS, MakeFaulty, over

OpenClient = Callable[..., AbstractAsyncContextManager[Client]]

pytestmark = pytest.mark.requirement("M23")

EVENTS = [way for way in WAYS if not way.json]


async def text(client: Client, name: str, /, **arguments: Any) -> str:
    """What the tool says, by its own name."""
    result = await client.call_tool(name, arguments)
    return str(result.content[0].text)  # type: ignore[union-attr]


async def failure(client: Client, name: str, /, **arguments: Any) -> str:
    """Why a call failed."""
    result = await client.call_tool("invoke_tool", {"name": name, "arguments": arguments})
    assert result.is_error
    said = json.loads(result.content[0].text)  # type: ignore[union-attr]
    assert said["error"] == "upstream_error"
    return str(said["message"])


async def echoes(client: Client, calls: int, name: str = "echo") -> None:
    """So many calls at once, of which each gets its own answer."""
    wanted = [f"{name} {number}" for number in range(calls)]
    assert await asyncio.gather(*(text(client, name, text=each) for each in wanted)) == wanted


@over(*EVENTS)
async def test_of_two_answers_to_one_call_the_first_counts(client_of: OpenClient, faulty: MakeFaulty) -> None:
    async with client_of(faulty()) as client:
        await echoes(client, 20, "twice")
        await echoes(client, 20)


@over(*EVENTS)
async def test_an_answer_that_nobody_asked_for_is_nobodys(client_of: OpenClient, faulty: MakeFaulty) -> None:
    async with client_of(faulty()) as client:
        await echoes(client, 20, "stranger")


@over(*(way for way in WAYS if way.http))
async def test_an_answer_under_another_calls_id_is_not_taken_for_that_calls_nor_for_its_own(
    client_of: OpenClient, faulty: MakeFaulty
) -> None:
    """Each HTTP answer belongs to its request; on standard streams nothing but the id says whose it is."""
    async with client_of(faulty()) as client:
        for at in range(3):
            before = asyncio.create_task(text(client, "late", text=str(at), n=500))
            await failure(client, "crossed")
            assert await before == str(at)


async def test_an_answer_that_comes_after_its_time_is_taken_for_no_other(
    client_of: OpenClient, faulty: MakeFaulty
) -> None:
    async with client_of(faulty(), call_timeout=6.0) as client:  # an echo has as long, on a busy machine too
        assert "did not answer within 6 s" in await failure(client, "late", text="late", n=6_500)
        for at in range(8):  # the late one comes meanwhile
            assert await text(client, "late", text=str(at), n=100) == str(at)
        await echoes(client, 10)


async def test_among_calls_at_once_that_go_wrong_in_every_way_each_other_gets_its_own(
    client_of: OpenClient, faulty: MakeFaulty
) -> None:
    async with client_of(faulty(), call_timeout=12.0) as client:  # an echo has as long, on a busy machine too
        wrong = [asyncio.create_task(failure(client, name)) for name in ("nothing", "hang") * 5]
        wrong.append(asyncio.create_task(failure(client, "late", n=12_500)))
        await echoes(client, 100)
        assert all(await asyncio.gather(*wrong))
        await echoes(client, 10)


async def test_a_text_cut_in_the_middle_of_an_emoji_comes_with_a_mark_in_its_place(
    client_of: OpenClient, faulty: MakeFaulty
) -> None:
    """JavaScript's strings can be cut there, and its clients read the half that is left."""
    async with client_of(faulty()) as client:
        assert await text(client, "cut") == "done \ufffd"
        assert await text(client, "echo", text="whole 😀") == "whole 😀"


@pytest.mark.requirement("M7")
async def test_a_result_of_ten_megabytes_comes_whole_while_others_are_answered(
    client_of: OpenClient, faulty: MakeFaulty
) -> None:
    size = 10_000_000
    async with client_of(faulty()) as client:
        large = asyncio.create_task(text(client, "big", n=size))
        await echoes(client, 20)
        assert await large == "x" * size


async def test_a_result_beyond_the_limit_is_an_error_that_says_so_and_others_get_theirs(
    client_of: OpenClient, faulty: MakeFaulty
) -> None:
    async with client_of(faulty(), result_limit=1_000_000) as client:
        pid = await text(client, "pid")
        large = asyncio.create_task(client.call_tool("invoke_tool", {"name": "big", "arguments": {"n": 3_000_000}}))
        await echoes(client, 20)
        said = json.loads((await large).content[0].text)  # type: ignore[union-attr]
        assert "answered 'big' with " in said["message"]
        assert "allowed" in said["message"]
        assert "result_limit" in said["remedy"]
        assert await text(client, "big", n=900_000) == "x" * 900_000
        assert await text(client, "pid") == pid, "the server was left alone"


@over(*PIPES)
async def test_a_message_beyond_the_limit_that_names_nobody_ends_the_connection_and_the_server_starts_again(
    client_of: OpenClient, faulty: MakeFaulty
) -> None:
    async with client_of(faulty(), result_limit=1_000_000) as client:
        pid = await text(client, "pid")
        assert "closed the connection" in await failure(client, "anonymous", n=2_000_000)
        assert await text(client, "pid") != pid


async def test_a_list_of_five_megabytes_is_listed_whole(client_of: OpenClient, faulty: MakeFaulty) -> None:
    async with client_of(faulty(FAULTY_LIST="5000000"), exposure="eager", list_budget=0, start_wait=90.0) as client:
        names: list[str] = []
        cursor: str | None = None
        while True:
            listed: types.ListToolsResult = await client.list_tools(cursor=cursor)
            names += [tool.name for tool in listed.tools]
            cursor = listed.next_cursor
            if cursor is None:
                break
    assert [name for name in names if name.startswith("long")] == [f"long{number}" for number in range(500)]
    assert len(names) == len(set(names))


@over(PIPES[0])
async def test_a_list_without_end_is_read_as_far_as_it_says_anything_new(
    client_of: OpenClient, faulty: MakeFaulty
) -> None:
    async with client_of(faulty(FAULTY_ENDLESS="1"), exposure="eager") as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
    assert len(names) == len(set(names)) == len(set(names) | {"echo", "pid"})


@over(*PIPES)
async def test_some_lines_that_are_no_messages_do_no_harm_and_a_flood_of_them_ends_the_connection(
    client_of: OpenClient, faulty: MakeFaulty
) -> None:
    async with client_of(faulty()) as client:
        pid = await text(client, "pid")
        assert await text(client, "garbage", text="still there", n=50) == "still there"
        assert await text(client, "pid") == pid
        assert "closed the connection" in await failure(client, "garbage", n=5000)
        assert await text(client, "pid") != pid


@over(*(way for way in WAYS if way.http))
async def test_garbage_in_place_of_an_answer_fails_that_call_only(client_of: OpenClient, faulty: MakeFaulty) -> None:
    async with client_of(faulty()) as client:
        others = asyncio.create_task(echoes(client, 20))
        assert "cannot be read" in await failure(client, "garbage", n=1)
        await others


async def test_what_is_no_result_is_an_error_at_once(client_of: OpenClient, faulty: MakeFaulty) -> None:
    async with client_of(faulty(), call_timeout=60) as client:
        assert "cannot be read" in await failure(client, "nothing")
        await echoes(client, 5)


async def test_an_answer_that_breaks_off_fails_that_call_and_the_next_is_answered(
    client_of: OpenClient, faulty: MakeFaulty
) -> None:
    async with client_of(faulty()) as client:
        why = await failure(client, "half")
        assert "closed the connection" in why or "broke off" in why
        await echoes(client, 5)


@over(*(way for way in WAYS if way.http))
async def test_an_http_answer_that_breaks_off_fails_no_other_call(client_of: OpenClient, faulty: MakeFaulty) -> None:
    async with client_of(faulty()) as client:
        slow = asyncio.create_task(text(client, "late", text="slow", n=500))
        for _ in range(5):
            assert "broke off" in await failure(client, "half")
        assert await slow == "slow"


@over(PIPES[0], *(way for way in WAYS if way.name in ("events-2025", "json-2026")))
@pytest.mark.requirement("M15")
async def test_a_hundred_and_fifty_calls_that_are_not_answered_hold_up_no_other(
    client_of: OpenClient, faulty: MakeFaulty
) -> None:
    async with client_of(faulty()) as client:
        hanging = [asyncio.create_task(text(client, "hang")) for _ in range(150)]
        await echoes(client, 10)
        assert not any(each.done() for each in hanging)
        for each in hanging:
            each.cancel()
        await asyncio.wait(hanging)
