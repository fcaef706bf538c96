"""The processes of the benchmark: a server whose callers need tokens, and gateways before it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from pegboard_bench.ports import free_port
from pegboard_bench.users.token_server import GATEWAY, token

WAIT_SECONDS = 60.0
ANYBODY = "anybody"
"""Whose token the gateway without users has for all its callers."""
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    url: str
    pid: int

    def resident_kb(self) -> int:
        """Resident memory in KiB (Linux)."""
        status = Path(f"/proc/{self.pid}/status").read_text("utf-8")
        return int(status.partition("VmRSS:")[2].split()[0])

    def cpu_seconds(self) -> float:
        """Processor time so far (Linux)."""
        fields = Path(f"/proc/{self.pid}/stat").read_text("utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateways:
    """``own`` connect each user for themselves, ``plain`` has one connection for callers without tokens; ``tokens`` are
    those of the users, by name."""

    own: Sequence[Process]
    plain: Process
    tokens: Mapping[str, str]


@contextmanager
def gateways(
    folder: Path, users: int, *, replicas: int = 1, state: Mapping[str, str] | None = None
) -> Iterator[Gateways]:
    """Everything, ready to be asked. The server checks the token of every call, whichever gateway sends it."""
    key = ec.generate_private_key(ec.SECP256R1())
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    with ExitStack() as stack:
        port = free_port()
        server = f"http://127.0.0.1:{port}"
        stack.enter_context(running("pegboard_bench.users.token_server", str(port), port=port, KEY=pem))
        oauth = {"grant": "token_exchange", "client_id": "bench", "client_secret": "bench"}
        oauth |= {"token_endpoint": f"{server}/token"}
        entry = {"url": f"{server}/mcp"}
        shown = {"headers": {"authorization": f"Bearer {token(key, server, ANYBODY, entry['url'])}"}}
        issuer = {"issuer": {"url": server, "resource": GATEWAY}}
        own_options = issuer | ({"state": state} if state else {})

        def serve(name: str, entry: Mapping[str, Any], **options: Any) -> Process:
            place = folder / name
            place.mkdir()
            kept = {"cache_dir": str(place), "state_dir": str(place), "exposure": "eager"}
            config = place / "config.json"
            config.write_text(json.dumps({"mcpServers": {"bench": entry}, "pegboard": kept | options}), "utf-8")
            port = free_port()
            command = ("pegboard", "serve", "--config", str(config), "--port", str(port))
            pid = stack.enter_context(running(*command, port=port)).pid
            return Process(url=f"http://127.0.0.1:{port}/mcp", pid=pid)

        personal = entry | {"per_user": True, "oauth": oauth}
        yield Gateways(
            own=[serve(f"own-{at}", personal, **own_options) for at in range(replicas)],
            plain=serve("plain", entry | shown),
            tokens={f"user-{at}": token(key, server, f"user-{at}", GATEWAY) for at in range(users)},
        )


@contextmanager
def running(*command: str, port: int, **variables: str) -> Iterator[subprocess.Popen[bytes]]:
    """A program that listens on a port within a minute."""
    process = subprocess.Popen([sys.executable, "-m", *command], env=os.environ | variables)
    try:
        end = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < end:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield process
    finally:
        process.terminate()
        process.wait()
