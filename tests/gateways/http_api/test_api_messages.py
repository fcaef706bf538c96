"""What answers of the HTTP API are said to contain."""

from __future__ import annotations

from pegboard.gateways.http_api.api_messages import SearchAnswer
from pegboard.gateways.mcp.gateway.meta_results import search_again


def test_every_key_about_servers_that_are_starting_is_described() -> None:
    said = search_again(["late"])

    assert said
    assert said.keys() <= SearchAnswer.model_fields.keys()
    assert SearchAnswer(tools=[], **said).model_extra == {}
