"""`clients/typescript`: its own tests, in node, against a real `pegboard serve`; its types are those of the API."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pegboard.gateways.access_keys import hashed
from pegboard_bench.ports import free_port
from processes import eventually

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "clients" / "typescript"
PACKAGES = ROOT / ".demo" / "clients" / "typescript" / "node_modules"
LISTED = ROOT / "tests" / "servers" / "listed.py"
TOKEN = "of the test"
RAIL = [{"name": "timetable", "description": "When trains leave a station", "inputSchema": {"type": "object"}}]

pytestmark = [
    pytest.mark.npm,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        not (PACKAGES / "ai").exists() or shutil.which("node") is None,
        reason="needs node, and scripts/install_clients.py",
    ),
]


@pytest.fixture
def client(tmp_path: Path) -> Path:
    """A copy of the client's folder, with the packages that it is developed with."""
    folder = tmp_path / "clients" / "typescript"
    shutil.copytree(CLIENT, folder, ignore=shutil.ignore_patterns("node_modules", "dist"))
    (folder / "node_modules").symlink_to(PACKAGES)
    return folder


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[str]:
    """The address of a gateway with one server, for the holders of a token."""
    listed = tmp_path / "rail.json"
    listed.write_text(json.dumps({"title": "Rail", "instructions": "", "tools": RAIL}), "utf-8")
    config = tmp_path / "servers.json"
    own = {"access": {"node": {"hash": hashed(TOKEN)}}, "start_wait": 20, "api": {"patience": 60}}
    servers = {"rail": {"command": sys.executable, "args": [str(LISTED), str(listed)]}}
    config.write_text(json.dumps({"mcpServers": servers, "pegboard": own}), "utf-8")
    port, log = free_port(), tmp_path / "log"
    environment = os.environ | {
        "PEGBOARD_STATE_DIR": str(tmp_path / "state"),
        "PEGBOARD_CACHE_DIR": str(tmp_path / "cache"),
    }
    command = [sys.executable, "-m", "pegboard", "serve", "--config", str(config), "--port", str(port)]
    with log.open("wb") as said:
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=said)
    try:
        assert eventually(lambda: "Serving MCP at" in log.read_text() or process.poll() is not None)
        assert process.poll() is None, log.read_text()
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(60)


def run(folder: Path, *command: str, **environment: str) -> None:
    done = subprocess.run(
        command, cwd=folder, env=os.environ | environment, capture_output=True, text=True, check=False, timeout=500
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]


@pytest.mark.requirement("library.typescript")
def test_its_tests_pass_in_node_against_a_real_gateway(client: Path, gateway: str) -> None:
    run(client, "node_modules/.bin/tsc")
    tests = sorted(str(path.relative_to(client)) for path in (client / "dist" / "test").glob("*.test.js"))
    assert len(tests) == 2
    run(client, "node", "--test", "--test-timeout=240000", *tests, PEGBOARD_URL=gateway, PEGBOARD_TOKEN=TOKEN)


def test_its_types_are_made_from_the_committed_openapi_document(client: Path, tmp_path: Path) -> None:
    document = ROOT / "docs" / "assets" / "openapi.json"
    run(client, "node_modules/.bin/openapi-typescript", str(document), "-o", str(tmp_path / "schema.ts"))

    said = "run `npm run types` in clients/typescript"
    assert (tmp_path / "schema.ts").read_text("utf-8") == (CLIENT / "src" / "schema.ts").read_text("utf-8"), said


def test_its_version_is_pegboards() -> None:
    import pegboard

    assert json.loads((CLIENT / "package.json").read_text("utf-8"))["version"] == pegboard.__version__
