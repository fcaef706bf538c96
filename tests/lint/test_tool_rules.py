"""Each rule on one tool: what it finds, and what it leaves alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pegboard.catalog import Catalog
from pegboard.errors import ConfigError
from pegboard.lint import RULES, LintFinding, LintLimits, chosen, in_order, subjects, tool_findings
from pegboard.model import Tool
from pegboard.testing import fake_tool

CatalogOf = Callable[..., Catalog]
GOOD = "Creates an invoice for a customer and sends it by mail."


@pytest.fixture
def found(catalog_of: CatalogOf) -> Callable[..., list[LintFinding]]:
    """The findings of one rule on these tools."""

    def find(rule: str, *tools: Tool, **limits: int) -> list[LintFinding]:
        return tool_findings(subjects(catalog_of(*tools)), LintLimits(**limits), chosen([rule]))

    return find


Found = Callable[..., list[LintFinding]]


@pytest.mark.parametrize(
    "description",
    [
        "This function retrieves the balance.",
        "This endpoint returns the list of members.",
        "Restart a machine. Use this endpoint to reboot it.",
        "Wrapper around the payments client.",
        "GET /discounts/{discount_id}",
        "Assign an issue. Uses PUT /issue/{key}/assignee.",
        "Send events using the /import endpoint.",
        "TODO: describe this",
        "Looks up a component. For internal use.",
        "Tool for w3_ls operation.",
        "Get the profile using the UserProfile data class.",
    ],
)
def test_a_description_of_the_code_is_found(found: Found, description: str) -> None:
    finding = found("implementer-voice", fake_tool("do_it", description))[0]

    assert finding.rule == "implementer-voice"
    assert "describes the code" in finding.says


@pytest.mark.parametrize(
    "description",
    [
        GOOD,
        "Creates or updates the TODO.md file.",
        "Crawls a site, following internal links across pages.",
        "Send mock events to your local endpoint for testing.",
        "Set the network endpoint grouping rules for a project.",
        "Set a handler for clicks, or call a function of the page.",
        "Post a message. You must call this tool before the next one.",
        "Runs a command in the container's wrapper.",
        "Get details of a function in the code.",
        "Reads /etc/hosts or any other file.",
    ],
)
def test_words_of_the_trade_in_a_description_of_the_task_are_left_alone(found: Found, description: str) -> None:
    assert found("implementer-voice", fake_tool("do_it", description)) == []


@pytest.mark.parametrize(
    "description", ["Adds.\n\nArgs:\n    a: one", "Adds.\n  Returns:\n    a sum", "Adds. :param a: one"]
)
def test_sections_of_a_docstring_are_found(found: Found, description: str) -> None:
    assert len(found("docstring", fake_tool("add_numbers", description))) == 1


def test_a_sentence_on_what_is_returned_is_no_docstring(found: Found) -> None:
    assert found("docstring", fake_tool("add_numbers", "Adds numbers. Returns: the sum.")) == []


@pytest.mark.parametrize("name", ["dpt", "x1_q", "ps", "w3_ls", "mfcc"])
def test_a_name_without_a_word_that_can_be_read_is_cryptic(found: Found, name: str) -> None:
    assert len(found("cryptic-name", fake_tool(name, GOOD))) == 1


@pytest.mark.parametrize("name", ["create_issue", "getUser", "git_log", "ssh", "fetch_txt", "天气"])
def test_a_name_with_a_readable_word_or_a_known_short_form_is_not(found: Found, name: str) -> None:
    assert found("cryptic-name", fake_tool(name, GOOD)) == []


def test_the_servers_own_name_does_not_make_a_name_readable(found: Found) -> None:
    assert len(found("cryptic-name", fake_tool("shell_ps", GOOD, server="shell"))) == 1


@pytest.mark.parametrize(("name", "vague"), [("search", True), ("get_item", True), ("execute", True)])
def test_a_verb_alone_is_vague(found: Found, name: str, vague: bool) -> None:
    assert bool(found("vague-name", fake_tool(name, GOOD))) is vague


@pytest.mark.parametrize("name", ["search_files", "get_pull_request", "read_query", "delete_post", "echo"])
def test_a_verb_with_its_object_is_not(found: Found, name: str) -> None:
    assert found("vague-name", fake_tool(name, GOOD)) == []


def test_no_description_is_one_finding_and_not_also_a_short_one(found: Found) -> None:
    assert len(found("no-description", fake_tool("list_users", "  "))) == 1
    assert found("short-description", fake_tool("list_users", "  ")) == []


@pytest.mark.parametrize("description", ["Users", "List users.", "Lists the users"])
def test_a_description_that_adds_nothing_to_the_name_is_short(found: Found, description: str) -> None:
    assert len(found("short-description", fake_tool("list_users", description))) == 1


def test_a_description_that_adds_a_word_is_not_short(found: Found) -> None:
    assert found("short-description", fake_tool("list_users", "List users of the workspace")) == []


def test_a_long_description_costs_what_is_beyond_the_limit(found: Found, catalog_of: CatalogOf) -> None:
    tool = fake_tool("list_users", "word " * 60)
    finding = found("long-description", tool, description=20)[0]

    assert finding.spare == catalog_of(tool).counter.count([tool.description])[0] - 20
    assert finding.tokens == catalog_of(tool).token_counts[0]
    assert found("long-description", tool, description=61) == []


def test_a_long_schema_costs_what_is_beyond_the_limit(found: Found) -> None:
    schema = {"type": "object", "properties": {f"field_{number}": {"type": "string"} for number in range(40)}}
    finding = found("long-schema", fake_tool("list_users", GOOD, schema=schema), schema=100)[0]

    assert 0 < finding.spare < finding.tokens
    assert found("long-schema", fake_tool("list_users", GOOD, schema=schema)) == []


def parameters(**described: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": described}


def test_parameters_without_a_description_are_named(found: Found) -> None:
    schema = parameters(customer={"type": "string"}, due={"type": "string"}, note={"description": "Free text"})
    finding = found("undescribed-parameters", fake_tool("bill", "Makes it.", schema=schema))[0]

    assert "2 of 3 parameters have no description: customer, due" in finding.says


@pytest.mark.parametrize(
    ("description", "schema"),
    [
        ("Needs customer and due.", parameters(customer={}, due={})),
        ("Makes it.", parameters(state={"enum": ["open", "shut"]}, due={})),
        ("Makes it.", parameters(id={})),
        ("Makes it.", {}),
    ],
)
def test_parameters_that_are_explained_elsewhere_or_few_are_left_alone(
    found: Found, description: str, schema: dict[str, Any]
) -> None:
    assert found("undescribed-parameters", fake_tool("bill", description, schema=schema)) == []


def test_a_deprecated_tool_costs_all_of_its_tokens(found: Found) -> None:
    finding = found("deprecated", fake_tool("read_file", "Reads a file. DEPRECATED: use read_text_file."))[0]

    assert finding.spare == finding.tokens
    assert found("deprecated", fake_tool("check", "Check if packages are deprecated")) == []


def test_an_unknown_rule_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ConfigError, match=r"No rule 'naming'.*lost-name"):
        chosen(["naming"])


def test_without_a_choice_every_rule_is_chosen() -> None:
    assert chosen([]) == set(RULES)


def test_findings_come_by_rule_then_by_server_with_the_most(catalog_of: CatalogOf) -> None:
    catalog = catalog_of(
        fake_tool("list_users", "", server="small"),
        fake_tool("list_teams", "", server="large"),
        fake_tool("list_roles", "", server="large"),
        fake_tool("dpt", "This function computes it.", server="small"),
    )
    made = in_order(tool_findings(subjects(catalog), LintLimits(), set(RULES)), LintLimits())

    assert [(each.rule, each.tool.server) for each in made] == [
        ("no-description", "large"),
        ("no-description", "large"),
        ("no-description", "small"),
        ("implementer-voice", "small"),
        ("cryptic-name", "small"),
    ]


def test_findings_of_small_tools_can_be_left_out(catalog_of: CatalogOf) -> None:
    catalog = catalog_of(fake_tool("list_users", ""))
    made = tool_findings(subjects(catalog), LintLimits(), {"no-description"})

    assert len(in_order(made, LintLimits(tokens=catalog.token_counts[0]))) == 1
    assert in_order(made, LintLimits(tokens=catalog.token_counts[0] + 1)) == []
