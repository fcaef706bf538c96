from __future__ import annotations

from dataclasses import replace

import pytest

from pegboard.model import Server, ServerName
from pegboard.retrieval.tool_texts import TEXTS, fields, server_profile
from pegboard.testing import fake_tool


@pytest.mark.requirement("003.tool-text")
def test_a_tool_is_embedded_as_its_name_a_colon_and_its_description() -> None:
    assert TEXTS["definition"](fake_tool("renew_loan", "Extend a loan.")) == "renew_loan: Extend a loan."


@pytest.mark.requirement("P16")
def test_a_tool_without_a_description_is_embedded_by_its_name() -> None:
    assert TEXTS["definition"](fake_tool("renew_loan")) == "renew_loan"


@pytest.mark.requirement("000.eq4")
def test_tool_attention_embeds_the_summary() -> None:
    assert (
        TEXTS["summary"](replace(fake_tool("renew_loan", "long"), summary="renew_loan: short")) == "renew_loan: short"
    )


@pytest.mark.parametrize(
    ("server", "profile"),
    [
        (Server(name=ServerName("maps"), description="Routes", instructions="Ask twice."), "maps: Routes"),
        (Server(name=ServerName("maps"), instructions="Ask twice."), "maps: Ask twice."),
        (Server(name=ServerName("maps")), "maps"),
    ],
)
def test_a_server_is_embedded_by_its_name_and_what_it_says_about_itself(server: Server, profile: str) -> None:
    assert server_profile(server) == profile


def test_every_field_of_a_tool_can_be_searched() -> None:
    tool = replace(
        fake_tool(
            "renew_loan",
            "Extend it.",
            server="library",
            schema={
                "properties": {
                    "loanId": {"type": "string", "description": "Number on the slip"},
                    "branch": {"enum": ["north", 7]},
                    "odd": True,
                }
            },
        ),
        title="Renew a loan",
        category="Loans",
        aliases=("prolong",),
    )

    assert fields(tool, Server(name=ServerName("library"), description="Town library")) == {
        "name": "renew_loan Renew a loan prolong",
        "description": "Extend it.",
        "parameters": "loan Id Number on the slip branch north 7 odd",
        "server": "library Loans Town library",
    }


@pytest.mark.parametrize(
    "schema", [{}, {"properties": None}, {"properties": ["a"]}, {"properties": {"a": {"enum": 1}}}]
)
def test_an_odd_schema_has_no_parameter_words_but_breaks_nothing(schema: dict[str, object]) -> None:
    assert fields(fake_tool("x", schema=schema), None)["parameters"] in ("", "a")
