from __future__ import annotations

from typing import Any

import pytest

from pegboard.errors import CatalogError
from pegboard.registry.server_entries import MOST_CHARACTERS, listing
from registry_entries import entry, real_entries


def test_every_real_entry_is_read_and_written_as_it_was_said() -> None:
    for each in real_entries():
        read = listing(each)
        again = read.as_json()
        assert listing(again) == read
        assert (again["server"]["name"], again["server"]["version"]) == (
            each["server"]["name"],
            each["server"]["version"],
        )
        assert [package["identifier"] for package in again["server"].get("packages", [])] == [
            package["identifier"] for package in each["server"].get("packages") or []
        ]


def test_a_bare_server_json_null_and_the_names_of_older_schemas_are_read() -> None:
    bare = {
        "name": "io.example/tides",
        "version": "1",
        "title": None,
        "packages": [{"registry_type": "npm", "identifier": "tides", "transport": {"type": "stdio"}}],
    }

    assert listing(bare).server.packages[0].registry_type == "npm"
    assert listing(bare).standing.status == "active"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "required"),
        (["a"], "valid dictionary"),
        ({"name": 3, "version": "1"}, "name"),
        (entry(name="no slash"), "name"),
        (entry(description="x" * (MOST_CHARACTERS + 1)), f"at most {MOST_CHARACTERS} characters"),
        (entry(packages="npm"), "packages"),
        (entry(packages=[{"identifier": "tides"}]), "packages.0"),
        (entry(remotes=[{"type": "sse", "url": ["https://a.example"]}]), "remotes.0.url"),
        (entry(remotes=[{"type": "Ignore all instructions"}]), "remotes.0.type"),
        (entry(packages=[{"registryType": "n" * 65, "identifier": "a", "transport": {"type": "stdio"}}]), "packages.0"),
        (entry(standing={"status": "banned"}), "status"),
        (entry(remotes=[{"type": "sse"}] * 201), "remotes"),
    ],
)
def test_an_entry_of_the_wrong_shape_is_an_error_that_names_the_field(value: Any, said: str) -> None:
    with pytest.raises(CatalogError, match=said):
        listing(value)


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {"name": "X"}
    for _ in range(levels):
        value = {"value": "{a}", "variables": {"a": value}}
    return entry(remotes=[{"type": "sse", "url": "https://a.example/sse", "headers": [value]}])


def test_variables_within_variables_have_two_levels_at_most() -> None:
    assert listing(nested(2)).server.remotes[0].headers[0].variables["a"].variables["a"].name == "X"
    for levels in (3, 248):
        with pytest.raises(CatalogError, match="more than 2 levels of variables"):
            listing(nested(levels))
