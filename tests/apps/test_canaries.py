"""Every field that holds a secret holds a canary, in one configuration: each arrives where it belongs, and is found
nowhere else, whatever fails."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args
from uuid import uuid4

import httpx2
import pytest
from mcp.shared.exceptions import MCPError
from psycopg import AsyncConnection
from psycopg.sql import SQL, Identifier
from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo

from gateway_processes import GatewayProcess
from issuers import RunningIssuer, running_issuer
from model_bodies import asking
from model_upstream import ModelUpstream, model_upstream
from pegboard.gateways.access_keys import hashed
from pegboard.settings import Settings
from pegboard.settings.services import VARIABLE
from processes import descendants, listening, until
from services import POSTGRES, drop_schema, needs_postgres
from signers import AUTHORIZATION, RESOURCE, control
from upstream_specs import SCRIPTED
from user_browsers import Browser, client_of

SECRET_FIELDS = {
    "servers.args",
    "servers.env",
    "servers.url",
    "servers.headers",
    "servers.oauth.client_secret",
    "servers.oauth.issuer_client_secret",
    "access.hash",
    "access.previous",
    "access.env",
    "issuer.client_secret_env",
    "toolsets.preset",
    "summaries.api_key_env",
    "state.url",
    "audit_log.key_env",
    "llm.upstreams.api_key_env",
    "llm.upstreams.headers",
    "llm.keys.hash",
    "llm.keys.previous",
    "chroma.token_env",
    "pgvector.url",
    "qdrant.token_env",
    "encoder.api_key_env",
    "otel.headers",
}
"""Those that have a canary below. A new field with a secret belongs here, and gets one."""


def canary(name: str) -> str:
    return f"canary-{name}-5f0c1b9e7a"


HASH = r"^sha256:[0-9a-f]{64}$"
FLOW = ("code", "code_verifier", "refresh_token", "client_secret")
"""What is secret in requests to the token endpoint."""
VARIABLES = {
    name: canary(name.lower().replace("_", "-"))
    for name in (
        "ACCESS",
        "INTROSPECTION",
        "SUMMARIES",
        "AUDIT",
        "PROVIDER",
        "CHROMA",
        "QDRANT",
        "EMBEDDINGS",
        "IN_HEADER",
    )
}
ANN, OLD, BOB, TEAM, OLD_TEAM = (canary(name) for name in ("ann", "ann-old", "opaque-bob", "team", "team-old"))
LATER = "2099-01-01T00:00:00Z"
PATIENCE = 60
"""Seconds: a machine that is busy is no store that is down, without which new tools are refused."""
CANARIES = VARIABLES | {
    name: canary(name)
    for name in (
        *("ann", "ann-old", "opaque-bob", "team", "team-old", "env", "args", "failing-env", "from-file"),
        *(
            "from-command",
            "url",
            "query",
            "header",
            "client",
            "issuer-client",
            "preset",
            "state",
            "pgvector",
            "model-header",
            "collector",
        ),
    )
}
BASIC = {
    name: b64encode(f"{user}:{canary(name)}".encode()).decode()
    for name, user in (("url", "user"), ("client", "pegboard"))
}
"""Those that are sent as passwords, as they are then written (RFC 7617)."""
NOT_TO_THE_RECORDER = {
    "ACCESS",
    "AUDIT",
    "QDRANT",
    "ann",
    "ann-old",
    "team",
    "team-old",
    "env",
    "preset",
    "state",
    "pgvector",
    "issuer-client",
}
"""Those that prove something to this gateway, go to another server or the store, or are for what does not happen here:
the authorization server of `exchanged` is never reached, as its identity provider gives nothing."""
TELLS = """
import json, os, pathlib, sys
path = pathlib.Path(sys.argv[1])
path.write_text(json.dumps([sys.argv, dict(os.environ)]))
print("cannot start with", sys.argv, dict(os.environ), file=sys.stderr, flush=True)
"""
"""A server that writes what it was started with to a file and to its log, and ends."""


PAGES = ("/ui", "/ui/activity", "/ui/tools", "/ui/conversations", "/ui/clients", "/ui/settings", "/ui/try")
COMMANDS = (
    ["doctor"],
    ["summarize", "--out", "summaries.jsonl"],
    ["audit-log", "--json"],
    ["report", "--json"],
    ["state", "show"],
)


@dataclass
class Scene:
    """The configured gateway, the servers around it, and what was seen of it."""

    gateway: GatewayProcess
    issuer: RunningIssuer
    authorization: str
    provider: ModelUpstream
    started_with: Path
    schema: str
    told: list[str] = field(default_factory=list)

    @property
    def base(self) -> str:
        return self.gateway.url.removesuffix("/mcp")


def servers(folder: Path, authorization: str, resource: str, recorder: str) -> dict[str, Any]:
    (folder / "key").write_text(canary("from-file"))
    secret = {"from_file": f"${{file:{folder / 'key'}}}", "from_command": f"${{cmd:echo {canary('from-command')}}}"}
    oauth = {"client_id": "pegboard", "issuer": authorization, "client_secret": canary("client")}
    jag = {"grant": "id_jag", "token_endpoint": f"{recorder}/token", "issuer_client_id": "us"}
    return {
        "scripted": {"command": sys.executable, "args": [SCRIPTED], "env": {"OWN": canary("env")}},
        "telling": {
            "command": sys.executable,
            "args": ["-c", TELLS, str(folder / "started_with"), "--key", canary("args")],
            "env": {"PLAIN": canary("failing-env"), "FROM_FILE": secret["from_file"], "CMD": secret["from_command"]},
        },
        "recorder": {
            "url": recorder.replace("//", f"//user:{canary('url')}@") + f"/mcp?key={canary('query')}",
            "headers": {"X-Tenant": canary("header"), "X-Key": "${IN_HEADER}"},
        },
        "personal": {"url": f"{resource}/mcp", "perUser": True, "oauth": oauth},
        "exchanged": {
            "url": f"{recorder}/exchanged/mcp",
            "perUser": True,
            "oauth": oauth | jag | {"issuer_client_secret": canary("issuer-client")},
        },
    }


def options(issuer: RunningIssuer, recorder: str, schema: str) -> dict[str, Any]:
    upstream = {"url": recorder, "api_key_env": "PROVIDER", "headers": {"x-team": canary("model-header")}}
    return {
        "access": {
            "ann": {"hash": hashed(ANN), "previous": hashed(OLD), "previous_expires": LATER},
            "operator": {"env": "ACCESS", "scopes": ["ops", "ui:viewer"]},
        },
        "issuer": {
            "url": issuer.url,
            "resource": issuer.resource,
            "introspection_uri": f"{issuer.url}/introspect",
            "client_id": "pegboard",
            "client_secret_env": "INTROSPECTION",
        },
        "toolsets": {"small": {"tools": ["scripted/*"], "preset": {"scripted/echo": {"text": canary("preset")}}}},
        "summaries": {"base_url": recorder, "model": "m", "api_key_env": "SUMMARIES"},
        "state": {"url": POSTGRES.replace("@", f":{canary('state')}@"), "prefix": schema, "timeout": PATIENCE},
        "audit_log": {"to": ["file", "store"], "values": True, "key_env": "AUDIT"},
        "activity": {"keep": "store", "texts": True},
        "llm": {
            "upstreams": {"openai": upstream, "dead": upstream | {"url": "http://127.0.0.1:1", "retries": 0}},
            "keys": {"team": {"hash": hashed(TEAM), "previous": hashed(OLD_TEAM), "previous_expires": LATER}},
            "policy": {"k": 1, "profile": "semantic", "least_tools": 0, "least_tokens": 0},
        },
        "otel": {"endpoint": recorder, "headers": {"x-collector": canary("collector")}},
        "index": "chroma",
        "chroma": {"url": recorder, "token_env": "CHROMA"},
        "pgvector": {"url": POSTGRES.replace("@", f":{canary('pgvector')}@")},
        "qdrant": {"url": recorder, "token_env": "QDRANT"},
        "encoder": {"provider": "compatible", "base_url": recorder, "model": "m", "api_key_env": "EMBEDDINGS"},
        "credentials": "file",
        "exposure": "eager",
    }


@pytest.fixture
async def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    schema = f"test_{uuid4().hex}"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    known = {"clients": {"resource": "resource", "pegboard": canary("client")}}
    with (
        listening(AUTHORIZATION, json.dumps(known)) as authorization,
        listening(RESOURCE, json.dumps({"issuer": authorization, "personal": True})) as resource,
    ):
        async with model_upstream() as provider, running_issuer() as issuer:
            gateway = GatewayProcess(tmp_path / "gateway")
            issuer.resource = gateway.url
            document = {
                "mcpServers": servers(tmp_path, authorization, resource, provider.url),
                "pegboard": options(issuer, provider.url, schema),
            }
            gateway.config.write_text(json.dumps(document))
            gateway.environment |= {"PEGBOARD_DEBUG": "1"}
            gateway.flags = ["--log-format", "json", "--log-level", "debug"]
            try:
                await asyncio.to_thread(gateway.start)
                yield Scene(gateway, issuer, authorization, provider, tmp_path / "started_with", schema)
            finally:
                await asyncio.to_thread(gateway.end)
                await drop_schema(schema)


async def asked_over_mcp(scene: Scene) -> None:
    """Ann signs in at her server, is renewed and revoked; a toolset's preset is used; Bob shows an opaque token."""
    scene.issuer.opaque[BOB] = {
        "active": True,
        "iss": scene.issuer.url,
        "aud": scene.issuer.resource,
        "sub": "bob",
        "exp": 4_000_000_000,
    }
    browser = Browser("ann")
    async with client_of(scene.gateway.url, "ann", browser, "legacy", token=ANN) as client:
        scene.told.append((await client.list_tools()).model_dump_json())
        for tool, arguments in (("sign_in", {}), ("whose", {}), ("fails", {}), ("raises", {})):
            scene.told.append(await called(client, tool, arguments))
        assert "diary_of_ann" in scene.told[1]
        await control(scene.authorization, expire=True)
        scene.told.append(await called(client, "whose", {}))
        await control(scene.authorization, revoke=True, expire=True, token_echo=True)
        scene.told.append(await called(client, "whose", {}))
    async with client_of(f"{scene.gateway.url}/small", "ann", browser, "auto", token=OLD) as client:
        assert canary("preset") in await called(client, "echo", {})
    async with client_of(scene.gateway.url, "bob", Browser("bob"), "auto", token=BOB) as client:
        scene.told.append(await called(client, "whose", {}))
    scene.told += browser.pages


async def called(client: Any, tool: str, arguments: Mapping[str, Any]) -> str:
    """The answer, or what the error says."""
    try:
        return str((await client.call_tool(tool, arguments)).model_dump_json())
    except MCPError as error:
        return f"{error} {error.error}"


async def asked_over_http(scene: Scene) -> None:
    """Model requests that end well and badly, and every page, with the keys of those who may see them."""
    chat = asking("openai_chat")
    operator, team = {"authorization": f"Bearer {VARIABLES['ACCESS']}"}, {"x-pegboard-key": TEAM}
    async with httpx2.AsyncClient(base_url=scene.base, trust_env=False, timeout=60) as http:

        async def tell(answer: httpx2.Response) -> httpx2.Response:
            scene.told.append(f"{answer.status_code} {dict(answer.headers)} {answer.text}")
            return answer

        for mood, key in (("ok", TEAM), ("ok", OLD_TEAM), ("error", TEAM), ("cut", TEAM)):
            scene.provider.mood = mood
            with suppress(httpx2.TransportError):
                await tell(await http.post("/openai/v1/chat/completions", json=chat, headers={"x-pegboard-key": key}))
        scene.provider.mood = "ok"
        await tell(await http.post("/dead/v1/chat/completions", json=chat, headers=team))
        await tell(await http.post("/openai/v1/chat/completions", json=chat, headers={"x-pegboard-key": TEAM[:-1]}))
        await tell(await http.post("/mcp", json={}, headers={"authorization": f"Bearer {ANN[:-1]}"}))
        for path in ("/healthz", "/readyz", "/metrics", "/v1/openapi.json", *PAGES):
            answer = await tell(await http.get(path, headers=operator))
            assert answer.status_code == 200, (path, answer.text)


def asked_at_the_terminal(scene: Scene) -> None:
    for words in COMMANDS:
        command = [sys.executable, "-m", "pegboard", *words, "--config", str(scene.gateway.config), "--verbose"]
        done = subprocess.run(command, env=scene.gateway.environment, capture_output=True, text=True, check=False)
        scene.told.append(f"{words} {done.returncode} {done.stdout} {done.stderr}")


def as_read(value: object) -> str:
    return repr(bytes(value) if isinstance(value, memoryview) else value)


async def rows(schema: str) -> str:
    """Everything that is kept in PostgreSQL, as text; bytes as they are read."""
    found = []
    async with await AsyncConnection.connect(POSTGRES) as connection:
        listed = await connection.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = %s", [schema]
        )
        for (table,) in await listed.fetchall():
            kept = await connection.execute(SQL("SELECT * FROM {}").format(Identifier(schema, table)))
            found += [" ".join(map(as_read, row)) for row in await kept.fetchall()]
    assert found
    return "\n".join(found)


def kept_in(folder: Path) -> Iterator[tuple[str, str]]:
    for path in folder.rglob("*"):
        if path.is_file():
            yield str(path.relative_to(folder)), path.read_bytes().decode("utf-8", "replace")


def process_lists(scene: Scene) -> str:
    """What other users of the machine see of its processes."""
    assert scene.gateway.process is not None
    lines = []
    for pid in (scene.gateway.process.pid, *descendants(scene.gateway.process.pid)):
        with suppress(OSError):  # it has ended meanwhile
            lines.append(Path(f"/proc/{pid}/cmdline").read_text())
    return "\n".join(lines)


def plain(text: str) -> str:
    """With the names and passwords of Basic authentication as they are."""
    return text + "".join(b64decode(found).decode() for found in re.findall(r"Basic ([\w+/]+=*)", text))


def found_in(text: str, secrets: Mapping[str, str]) -> list[str]:
    return [name for name, secret in secrets.items() if secret in text]


@needs_postgres
@pytest.mark.requirement("023.private")
@pytest.mark.timeout(600)
async def test_secrets_are_found_only_where_they_belong(scene: Scene) -> None:
    await asked_over_mcp(scene)
    await asked_over_http(scene)
    await until(scene.started_with.exists)
    lists: list[str] = []

    def has_ended() -> bool:
        """The server that shows its own arguments while it runs."""
        lists.append(process_lists(scene))
        return canary("args") not in lists[-1]

    await until(has_ended)
    processes = lists[-1]
    await asyncio.to_thread(asked_at_the_terminal, scene)
    signed_in = await control(scene.authorization)
    await asyncio.to_thread(scene.gateway.end)

    forms = signed_in["forms"]
    assert {"authorization_code", "refresh_token"} <= {form["grant_type"] for form in forms}
    flow = {f"{name}-{place}": form[name] for place, form in enumerate(forms) for name in FLOW if name in form}
    secrets = CANARIES | flow | {f"basic-{name}": text for name, text in BASIC.items()}
    secrets |= {f"token-{place}": token for place, token in enumerate(signed_in["tokens"])}
    places = {"processes": processes, "log": scene.gateway.said(), "store": await rows(scene.schema)}
    places |= {f"told {place}": text for place, text in enumerate(scene.told)}
    places |= dict(kept_in(scene.gateway.config.parent)) | dict(kept_in(Path(os.environ["XDG_CONFIG_HOME"])))
    del places["servers.json"]  # what the operator wrote
    assert {place: names for place, text in places.items() if (names := found_in(text, secrets))} == {}

    sent = "\n".join(each.whole for each in scene.provider.sent)
    started = scene.started_with.read_text()
    arrived = plain(sent + started + json.dumps(forms) + "\n".join(scene.issuer.shown))
    assert CANARIES.keys() - found_in(arrived, CANARIES) == NOT_TO_THE_RECORDER
    own = {"args", "failing-env", "from-file", "from-command"}
    assert set(found_in(started, CANARIES)) == own, "a server sees what its entry names, and nothing of others"


@pytest.mark.requirement("023.private")
def test_every_field_with_a_secret_has_a_canary() -> None:
    assert set(secret_fields(Settings)) == SECRET_FIELDS


def secret_fields(model: type[BaseModel], path: tuple[str, ...] = ()) -> Iterator[str]:
    """The paths of fields that are hidden, name an environment variable with a key, or are the hash of one."""
    for name, field_info in model.model_fields.items():
        below = [each for each in parts_of(field_info.annotation) if isinstance(each, type)]
        inner = [each for each in below if issubclass(each, BaseModel)]
        patterns = {getattr(each, "pattern", None) for each in metadata_of(field_info)}
        hidden = not field_info.repr and not inner
        if hidden or SecretStr in below or patterns & {VARIABLE, HASH}:
            yield ".".join((*path, name))
        for each in inner:
            yield from secret_fields(each, (*path, name))


def parts_of(annotation: Any) -> Iterator[Any]:
    yield annotation
    for each in get_args(annotation):
        yield from parts_of(each)


def metadata_of(field_info: FieldInfo) -> Iterator[Any]:
    """The constraints of a field, and those of the types that its own is made of."""
    for part in (field_info, *parts_of(field_info.annotation)):
        for each in getattr(part, "metadata", getattr(part, "__metadata__", ())):
            yield each
            yield from getattr(each, "metadata", ())
