"""What makes two entries of a configuration the same server."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pegboard.settings.server_spec import ServerSpec


def identity(environment: dict[str, str] | None = None, **fields: Any) -> str:
    return ServerSpec(**({"name": "it", "command": "run"} | fields)).expanded(environment or {}).identity()


@pytest.mark.parametrize(
    "fields",
    [
        {"command": "other"},
        {"args": ["--verbose"]},
        {"cwd": "src"},
        {"folder": "elsewhere"},
        {"env": {"A": "1"}},
        {"env": {"A": ""}},
        {"headers": {"A": "1"}},
        {"command": None, "url": "https://example.org/mcp"},
    ],
)
def test_another_way_to_reach_it_is_another_server(fields: dict[str, Any]) -> None:
    assert identity(**fields) != identity()


@pytest.mark.parametrize("fields", [{"name": "other"}, {"description": "Runs"}, {"lazy": True}, {"disabled": True}])
def test_what_it_is_called_here_is_not_what_it_is(fields: dict[str, Any]) -> None:
    assert identity(**fields) == identity()


def test_the_order_of_variables_makes_no_difference() -> None:
    assert identity(env={"A": "1", "B": "2"}) == identity(env={"B": "2", "A": "1"})


def test_another_value_of_a_variable_is_another_server_and_no_value_can_be_read() -> None:
    one, two = (identity({"TOKEN": token}, env={"T": "${TOKEN}"}) for token in ("first", "second"))
    assert one != two
    assert re.fullmatch("[0-9a-f]{64}", one)
