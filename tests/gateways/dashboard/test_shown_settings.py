from __future__ import annotations

from pegboard import Settings
from pegboard.gateways.access_keys import hashed
from pegboard.gateways.dashboard.shown_settings import HIDDEN, shown_settings

CANARY = "canary-5f0c1b9e"
SETTINGS = Settings(
    servers={
        "local": {
            "command": f"/home/{CANARY}/bin/tool",
            "args": ["--key", CANARY],
            "env": {"PLAIN": CANARY, "API_KEY": CANARY},
        },
        "remote": {
            "url": f"https://user:{CANARY}@mcp.example/s/{CANARY}/mcp?key={CANARY}",
            "headers": {"Authorization": f"Bearer {CANARY}"},
        },
    },  # type: ignore[arg-type]
    state=f"postgresql://user:{CANARY}@db.example/state",  # type: ignore[arg-type]
    access={"ann": {"hash": hashed(CANARY), "scopes": ["ops"]}},  # type: ignore[arg-type]
    toolsets={"small": {"tools": ["*"], "preset": {"local/echo": {"text": CANARY}}}},  # type: ignore[arg-type]
    llm={
        "upstreams": {"openai": {"url": f"https://api.example/v1/{CANARY}", "format": "openai"}},
        "keys": {"team": {"hash": hashed(CANARY)}},
    },  # type: ignore[arg-type]
)


def test_no_secret_is_shown_wherever_it_stands() -> None:
    found = shown_settings(SETTINGS)

    assert [name for name, value in found.items() if CANARY in value or hashed(CANARY) in value] == []
    assert found["servers.local.args"] == f"{HIDDEN}, {HIDDEN}"
    assert found["access.ann.hash"] == HIDDEN


def test_what_is_no_secret_is_shown() -> None:
    found = shown_settings(SETTINGS)

    assert found["port"] == "7332"
    assert found["servers.remote.url"] == "https://mcp.example"
    assert found["servers.local.command"] == "tool"
    assert found["access.ann.scopes"] == "ops"
    assert found["toolsets.small.tools"] == "*"
