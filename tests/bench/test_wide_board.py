"""Scored sets on one board with the tools of many catalogs."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from pegboard.catalog import Catalog
from pegboard.evaluation.datasets import CATALOG, Query, ToolSet
from pegboard.model import Server, ServerName, Tool
from pegboard.testing import fake_tool
from pegboard_bench.wide import named
from pegboard_bench.wide_board import OTHERS, wide_sets


def board(*tools: Tool) -> Catalog:
    servers = dict.fromkeys(tool.server for tool in tools)
    return Catalog.build(
        [(Server(name=ServerName(name)), [tool for tool in tools if tool.server == name]) for name in servers]
    )


SEND = fake_tool("send_message", "Send a message to a channel of the team", server="mattermost-mcp")
OTHER = fake_tool("list_tides", "List the tides of a harbour", server="tides")
COPY = fake_tool("sendMessage", "Send a message to a channel", server="chat")


def sets() -> list[ToolSet]:
    asked = Query(id="1", text="tell the team that we are late", relevant=(SEND.id,))
    return [
        ToolSet(name="one", catalog=board(SEND), queries=(asked,)),
        ToolSet(name="two", catalog=board(OTHER, COPY), queries=()),
    ]


def test_copies_in_other_sets_answer_and_copies_in_other_catalogs_are_left_out(tmp_path: Path) -> None:
    rows = [
        {"server": "forked", "name": "send-message", "description": SEND.description, "input_schema": None},
        {"server": "music", "name": "play", "description": "Play a song", "input_schema": None},
        {"server": "music", "name": "stop", "description": "Stop it " + "now " * 60, "input_schema": None},
    ]
    (tmp_path / OTHERS[0]).mkdir()
    with gzip.open(tmp_path / OTHERS[0] / CATALOG, "wt") as lines:
        lines.writelines(json.dumps(row) + "\n" for row in rows)

    one, two = wide_sets(tmp_path, sets(), longest=100)

    assert {tool.name for tool in one.catalog.tools} == {"send_message", "list_tides", "sendMessage", "play"}
    assert one.catalog is two.catalog
    assert one.queries[0].any_of == ((SEND.id, COPY.id),)


def test_a_service_is_named_by_the_words_of_its_own_name() -> None:
    ((text, servers, number),) = named(sets()[0])

    assert "mattermost" in text
    assert "mcp" not in text
    assert "tell the team that we are late" in text
    assert (servers, number) == (frozenset({"mattermost-mcp"}), 0)
    assert list(named(sets()[0], ordinary=True)) == []
