"""The MCP servers that agents are given: sixty tools of mcp-atlassian, as it is on PyPI, before a Jira of ours, and
beside it another server with generated ones, for more than sixty.

It is what a coding agent's user is likely to have, it lists its tools without signing in, and can be told which of them
to list. Its hash seed is fixed: it writes a set into a description, which would be in another order after each start.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

SERVER, MORE = "atlassian", "backoffice"
JIRA = """
get_user_profile search_assignable_users get_issue_watchers add_watcher remove_watcher get_issue search search_fields
get_field_options get_project_issues get_transitions get_worklog download_attachments get_issue_images get_agile_boards
get_board_issues get_sprints_from_board get_sprint_issues get_link_types create_issue batch_create_issues
batch_get_changelogs update_issue assign_issue delete_issue move_issue add_comment edit_comment add_worklog link_to_epic
create_issue_link create_remote_issue_link remove_issue_link transition_issue create_sprint update_sprint
add_issues_to_sprint move_issues_to_backlog get_project_issue_types get_create_fields
"""
CONFLUENCE = """
search get_page get_page_children get_space_page_tree get_comments get_labels add_label create_page update_page
update_page_section delete_page move_page add_comment reply_to_comment get_inline_comments add_inline_comment
search_user get_page_history get_page_diff get_page_views
"""
NAMED_MORE = re.compile(rf".*{MORE}[_.-]+.+")
NAMED = re.compile(rf".*{SERVER}[_.-]+(.+)")
TOOLS = (*(f"jira_{name}" for name in JIRA.split()), *(f"confluence_{name}" for name in CONFLUENCE.split()))


HTTP = ("--transport", "streamable-http", "--host", "127.0.0.1", "--path", "/mcp", "--stateless", "--port")
"""What has the first of them serve agents that it was not started by; a port follows."""


@dataclass(frozen=True, slots=True)
class Running:
    """A server that runs already, at its address for Streamable HTTP."""

    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """How an agent starts it; with ``http`` and a port as its last arguments it serves there."""

    command: str
    env: Mapping[str, str] = field(default_factory=dict)
    args: tuple[str, ...] = ()
    http: tuple[str, ...] = ()


def servers(installed: Path, jira: str, tools: int) -> Mapping[str, Server]:
    """The servers of an agent that is given so many tools, by name."""
    if not tools:
        return {}
    beside = Server(
        command=sys.executable,
        env={},
        args=("-m", "pegboard_bench.coding_agents.generated_tools", str(tools - len(TOOLS))),
        http=("--port",),
    )
    return {SERVER: server(installed, jira)} | ({MORE: beside} if tools > len(TOOLS) else {})


def server(installed: Path, jira: str) -> Server:
    """``installed``: the folder of `scripts/install_agents.py`; ``jira``: the address of the issue tracker."""
    environment = {
        "JIRA_URL": jira,
        "JIRA_PERSONAL_TOKEN": "none",
        "CONFLUENCE_URL": jira,
        "CONFLUENCE_PERSONAL_TOKEN": "none",
        "TOOLSETS": "all",
        "ENABLED_TOOLS": ",".join(TOOLS),
        "PYTHONHASHSEED": "0",
        "ALLOW_GLOBAL_CRED_FALLBACK": "true",  # on HTTP it would ask each caller for a token
    }
    return Server(command=str(installed / "mcp_atlassian/bin/mcp-atlassian"), env=environment, http=HTTP)


def is_one(tool: str) -> bool:
    """Whether a name, as any agent writes it, is that of a tool of these servers.

    >>> is_one("mcp__atlassian__jira_get_issue"), is_one("atlassian-jira_search"), is_one("web_search")
    (True, True, False)
    """
    named = NAMED.fullmatch(tool)
    if NAMED_MORE.fullmatch(tool):
        return True
    return named is not None and named[1] in TOOLS
