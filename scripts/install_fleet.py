"""Installs a fleet of real MCP servers, several hundred tools, and writes an mcpServers file that starts them all.

    python scripts/install_fleet.py [FOLDER]          # default .demo; writes FOLDER/fleet.json

Those of `install_servers.py` and more from npm and PyPI, each in a folder of its own. They list their tools without
credentials: where one wants a token to start, it is given a word in its place. What cannot be installed here is said
and left out. A second run installs nothing.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import install_servers
from environments import binary, from_npm, from_pypi, say

NO_TOKEN = "none"  # noqa: S105
NO_SITE = "https://example.invalid"


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """A server from npm or PyPI, and how it starts."""

    package: str
    program: str
    arguments: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)


NPM = {
    "azure": Package(
        package="@azure/mcp",
        program="azmcp",
        arguments=("server", "start", "--mode", "all"),
        environment={"AZURE_MCP_COLLECT_TELEMETRY": "false"},
    ),
    "gitlab": Package(
        package="@zereight/mcp-gitlab",
        program="mcp-gitlab",
        environment={"GITLAB_PERSONAL_ACCESS_TOKEN": NO_TOKEN},
    ),
    "chrome": Package(
        package="chrome-devtools-mcp",
        program="chrome-devtools-mcp",
        arguments=("--headless", "--isolated", "--no-usage-statistics"),
    ),
    "mongodb": Package(
        package="mongodb-mcp-server", program="mongodb-mcp-server", environment={"MDB_MCP_TELEMETRY": "disabled"}
    ),
    "notion": Package(
        package="@notionhq/notion-mcp-server", program="notion-mcp-server", environment={"NOTION_TOKEN": NO_TOKEN}
    ),
    "chart": Package(package="@antv/mcp-server-chart", program="mcp-server-chart"),
    "github": Package(package="@modelcontextprotocol/server-github", program="mcp-server-github"),
    "firecrawl": Package(package="firecrawl-mcp", program="firecrawl-mcp", environment={"FIRECRAWL_API_KEY": NO_TOKEN}),
    "kubernetes": Package(package="mcp-server-kubernetes", program="mcp-server-kubernetes"),
    "circleci": Package(
        package="@circleci/mcp-server-circleci",
        program="mcp-server-circleci",
        environment={"CIRCLECI_TOKEN": NO_TOKEN, "DISABLE_TELEMETRY": "true"},
    ),
    "context7": Package(package="@upstash/context7-mcp", program="context7-mcp"),
    "thinking": Package(
        package="@modelcontextprotocol/server-sequential-thinking", program="mcp-server-sequential-thinking"
    ),
    "monday": Package(
        package="@mondaydotcomorg/monday-api-mcp", program="mcp-server-monday-api", arguments=("-t", NO_TOKEN)
    ),
    "hubspot": Package(
        package="@hubspot/mcp-server", program="mcp-hubspot", environment={"PRIVATE_APP_ACCESS_TOKEN": NO_TOKEN}
    ),
    "slack": Package(
        package="@modelcontextprotocol/server-slack",
        program="mcp-server-slack",
        environment={"SLACK_BOT_TOKEN": NO_TOKEN, "SLACK_TEAM_ID": NO_TOKEN},
    ),
    "airtable": Package(
        package="airtable-mcp-server", program="airtable-mcp-server", environment={"AIRTABLE_API_KEY": NO_TOKEN}
    ),
}
PYPI = {
    "atlassian": Package(
        package="mcp-atlassian",
        program="mcp-atlassian",
        environment={
            f"{product}_{field}": value
            for product in ("JIRA", "CONFLUENCE")
            for field, value in (("URL", NO_SITE), ("USERNAME", NO_TOKEN), ("API_TOKEN", NO_TOKEN))
        },
    ),
}


def install(folder: Path) -> Path:
    """Everything that can be installed here; the path of the configuration file."""
    folder = folder.absolute()
    servers: dict[str, Any] = json.loads(install_servers.install(folder).read_text("utf-8"))["mcpServers"]
    missing = []
    for name, each in (NPM | PYPI).items():
        program = _installed(folder / "fleet", name, each)
        if program is None:
            missing.append(name)
        else:
            servers[name] = {"command": str(program), "args": list(each.arguments), "env": each.environment}
    if missing:
        say(f"going on without {', '.join(missing)}: could not be installed")
    config = folder / "fleet.json"
    config.write_text(json.dumps({"mcpServers": servers}, indent=2) + "\n")
    return config


def _installed(folder: Path, name: str, each: Package) -> Path | None:
    """The path of the server's program; None where it could not be installed."""
    if name in PYPI:
        return from_pypi(folder / "pypi" / name, each.package, each.program)
    place = folder / "npm" / name
    return binary(place, each.program) if from_npm(place, [each.package]) else None


if __name__ == "__main__":
    print(install(Path(sys.argv[1] if len(sys.argv) > 1 else ".demo")))
