"""The configuration of each MCP client as a user's machine has it: two servers that move among other settings.

Every text has the servers ``files`` and ``search``, which move, and something of the client's own that stays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

ENTRY = ["/opt/bin/pegboard", "mcp", "--config", "BOARD"]
STANDARD: dict[str, Any] = {"command": ENTRY[0], "args": ENTRY[1:]}
MCP_SERVERS = """{
  "mcpServers": {
    "files": {
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-filesystem", "/srv"]
    },
    "search": {"command": "search-mcp", "env": {"SEARCH_KEY": "${SEARCH_KEY}"}, "disabled": false}
  }
}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """``file`` is below the home folder, on Linux; ``entry`` is Pegboard's, with BOARD for its configuration."""

    client: str
    file: str
    text: str
    entry: dict[str, Any]
    place: str = "mcpServers"
    keeps: tuple[str, ...] = ()
    """What stays in the text, word for word."""


SAMPLES = (
    Sample(client="claude-desktop", file=".config/Claude/claude_desktop_config.json", text=MCP_SERVERS, entry=STANDARD),
    Sample(
        client="claude-code",
        file=".claude.json",
        text=MCP_SERVERS.replace("{", '{\n  "numStartups": 12,', 1)[:-3] + ',\n  "theme": "dark"\n}\n',
        entry=STANDARD,
        keeps=('"numStartups": 12', '"theme": "dark"'),
    ),
    Sample(client="cursor", file=".cursor/mcp.json", text=MCP_SERVERS.replace("  ", "\t"), entry=STANDARD),
    Sample(
        client="vscode",
        file=".config/Code/User/mcp.json",
        place="servers",
        text="""// my servers
{
    "inputs": [{"type": "promptString", "id": "token", "password": true}],
    "servers": {
        // files of the company
        "files": {"type": "stdio", "command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/srv"]},
        "search": {"command": "search-mcp", "env": {"SEARCH_KEY": "${env:SEARCH_KEY}"}}, // the new one
    },
}
""",
        entry={"type": "stdio", **STANDARD},
        keeps=("// my servers", '"id": "token"', "// files of the company"),
    ),
    Sample(client="windsurf", file=".codeium/windsurf/mcp_config.json", text=MCP_SERVERS, entry=STANDARD),
    Sample(
        client="gemini-cli",
        file=".gemini/settings.json",
        text="""{
  "security": {"auth": {"selectedType": "gemini-api-key"}},
  "mcpServers": {
    "files": {
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-filesystem", "/srv"],
      "trust": true
    },
    "search": {"httpUrl": "http://127.0.0.1:7001/mcp", "headers": {"Authorization": "Bearer $SEARCH_KEY"}}
  }
}
""",
        entry=STANDARD,
        keeps=('"selectedType": "gemini-api-key"',),
    ),
    Sample(client="qwen-code", file=".qwen/settings.json", text=MCP_SERVERS, entry=STANDARD),
    Sample(
        client="codex",
        file=".codex/config.toml",
        place="mcp_servers",
        text="""# Codex
model = "gpt-5.5"

[mcp_servers.files]
command = "npx"
args = ["-y", "@modelcontextprotocol/server-filesystem", "/srv"] # the company's

# the search of the intranet
[mcp_servers.search]
url = "http://127.0.0.1:7001/mcp"
bearer_token_env_var = "SEARCH_KEY"

[mcp_servers.search.http_headers]
X-Region = "eu"

# trusted
[projects."/src/shop"]
trust_level = "trusted"
""",
        entry=STANDARD,
        keeps=("# Codex", 'model = "gpt-5.5"', "# trusted", "# the search of the intranet"),
    ),
    Sample(
        client="zed",
        file=".config/zed/settings.json",
        place="context_servers",
        text="""// Zed settings
{
  "context_servers": {
    "files": {
      "source": "custom",
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-filesystem", "/srv"],
      "env": {},
    },
    "search": {"command": {"path": "search-mcp", "args": [], "env": {"SEARCH_KEY": "k"}}, "settings": {}},
    "mcp-server-context7": {"settings": {"key": "an extension starts this one"}},
  },
  "vim_mode": true, // yes
}
""",
        entry={"source": "custom", "env": {}, **STANDARD},
        keeps=("// Zed settings", '"vim_mode": true, // yes', "mcp-server-context7"),
    ),
    Sample(
        client="opencode",
        file=".config/opencode/opencode.json",
        place="mcp",
        text="""{
  "$schema": "https://opencode.ai/config.json",
  "mcp": {
    "files": {
      "type": "local",
      "command": ["npx", "-y", "@modelcontextprotocol/server-filesystem", "/srv"],
      "enabled": true
    },
    "search": {"type": "local", "command": ["search-mcp"], "environment": {"SEARCH_KEY": "{env:SEARCH_KEY}"}},
    "off": {"type": "local", "command": ["off-mcp"], "enabled": false}
  }
}
""",
        entry={"type": "local", "enabled": True, "command": ENTRY},
        keeps=('"$schema"', '"off"'),
    ),
    Sample(
        client="cline",
        file=".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
        text=MCP_SERVERS.replace('"disabled": false', '"disabled": false, "autoApprove": ["find"], "timeout": 60'),
        entry={"timeout": 60, **STANDARD},
    ),
    Sample(
        client="roo",
        file=".config/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
        text=MCP_SERVERS.replace('"disabled": false', '"disabled": false, "alwaysAllow": []'),
        entry=STANDARD,
    ),
    Sample(
        client="continue",
        file=".continue/config.yaml",
        text="""name: My configuration
version: 1.0.0
schema: v1
mcpServers:
  # files of the company
  - name: files
    command: npx
    args:
      - "-y"
      - "@modelcontextprotocol/server-filesystem"
      - /srv
  - name: search
    type: streamable-http
    url: http://127.0.0.1:7001/mcp
    requestOptions:
      headers:
        X-Key: ${SEARCH_KEY}
models: # none yet
  - name: qwen
    provider: ollama
""",
        entry={"name": "pegboard", **STANDARD},
        keeps=("# files of the company", "models: # none yet"),
    ),
    Sample(
        client="copilot-cli",
        file=".copilot/mcp-config.json",
        text=MCP_SERVERS.replace('"disabled": false', '"tools": ["*"], "type": "local"'),
        entry={"type": "local", "tools": ["*"], **STANDARD},
    ),
    Sample(client="lm-studio", file=".lmstudio/mcp.json", text=MCP_SERVERS, entry=STANDARD),
    Sample(
        client="goose",
        file=".config/goose/config.yaml",
        place="extensions",
        text="""GOOSE_PROVIDER: anthropic
extensions:
  developer:
    bundled: true
    enabled: true
    name: developer
    timeout: 300
    type: builtin
  files:
    enabled: true
    type: stdio
    name: files
    cmd: npx
    args: ['-y', '@modelcontextprotocol/server-filesystem', /srv]
    envs: {}
    env_keys: []
    timeout: 300
  search:
    # of the intranet
    enabled: true
    type: stdio
    name: search
    cmd: search-mcp
    args: []
    envs:
      SEARCH_KEY: k
GOOSE_MODEL: claude-sonnet-5-5
""",
        entry={
            "name": "pegboard",
            "enabled": True,
            "type": "stdio",
            "timeout": 300,
            "cmd": ENTRY[0],
            "args": ENTRY[1:],
        },
        keeps=("GOOSE_PROVIDER: anthropic", "GOOSE_MODEL: claude-sonnet-5-5", "bundled: true"),
    ),
    Sample(client="kiro", file=".kiro/settings/mcp.json", text=MCP_SERVERS, entry=STANDARD),
)
