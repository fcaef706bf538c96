"""Measures 200 users × 20 calls with tokens of their own through one `pegboard serve`, beside the same calls through
one without tokens: `make bench-users` prints the figures, and `--write` keeps them.

Every user's token is exchanged (RFC 8693), and the server checks the token of each call and answers with its subject.
Calls through the two gateways alternate, so that the machine's moods meet both.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any

import httpx2
import typer
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from pegboard_bench import results
from pegboard_bench.users.token_server import GATEWAY, token

PROTOCOL = "2026-07-28"
PREFIX = "io.modelcontextprotocol"
WAIT_SECONDS = 60.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(*command: str, port: int, **variables: str) -> Iterator[subprocess.Popen[bytes]]:
    """A program that listens on a port within it."""
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


def resident_kb(process: subprocess.Popen[bytes]) -> int:
    """Resident memory in KiB (Linux)."""
    status = Path(f"/proc/{process.pid}/status").read_text("utf-8")
    return int(status.partition("VmRSS:")[2].split()[0])


async def asked(http: httpx2.AsyncClient, url: str, bearer: str, method: str, **params: Any) -> dict[str, Any]:
    about = {"protocolVersion": PROTOCOL, "clientInfo": {"name": "bench", "version": "1"}, "clientCapabilities": {}}
    meta = {"_meta": {f"{PREFIX}/{name}": value for name, value in about.items()}}
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": PROTOCOL, "mcp-method": method}
    headers |= {"mcp-name": params["name"]} if "name" in params else {}
    headers |= {"authorization": f"Bearer {bearer}"} if bearer else {}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params | meta}
    response = await http.post(url, json=body, headers=headers)
    response.raise_for_status()
    text = response.text
    data = text if text.startswith("{") else text.rpartition("data: ")[2]
    return dict(json.loads(data)["result"])


async def ready(http: httpx2.AsyncClient, url: str, bearer: str) -> None:
    """The server's tools are listed to this user."""
    end = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < end:
        if "whose" in [each["name"] for each in (await asked(http, url, bearer, "tools/list"))["tools"]]:
            return
        await asyncio.sleep(0.05)
    raise TimeoutError("the tools are not listed")


async def called(http: httpx2.AsyncClient, url: str, bearer: str) -> tuple[str, float]:
    """Whose token the server saw, and milliseconds."""
    began = time.perf_counter()
    result = await asked(http, url, bearer, "tools/call", name="whose", arguments={})
    return str(result["content"][0]["text"]), (time.perf_counter() - began) * 1000


async def measured(
    own: str, plain: str, tokens: dict[str, str], calls: int, gateway: subprocess.Popen[bytes]
) -> dict[str, float]:
    crossed, own_ms, plain_ms = 0, [], []
    async with httpx2.AsyncClient(trust_env=False, timeout=WAIT_SECONDS) as http:
        await ready(http, plain, "")
        first, *others = tokens
        await ready(http, own, tokens[first])
        before = resident_kb(gateway)
        for user in others:
            await ready(http, own, tokens[user])
        after = resident_kb(gateway)
        for _ in range(calls):
            for user, bearer in tokens.items():
                whose, took = await called(http, own, bearer)
                crossed += whose != user
                own_ms.append(took)
                plain_ms.append((await called(http, plain, ""))[1])
        both = await asyncio.gather(*(called(http, own, bearer) for bearer in tokens.values()))
        crossed += sum(whose != user for (whose, _), user in zip(both, tokens, strict=True))
    p50, plain_p50 = statistics.median(own_ms), statistics.median(plain_ms)
    return {
        "users": len(tokens),
        "calls": len(own_ms),
        "crossed": crossed,
        "p50_ms": round(p50, 3),
        "plain_p50_ms": round(plain_p50, 3),
        "added_p50_ms": round(p50 - plain_p50, 3),
        "p99_ms": round(statistics.quantiles(own_ms, n=100)[98], 3),
        "kb_per_user": round((after - before) / len(others), 1),
    }


def main(
    users: Annotated[int, typer.Option(help="Users.")] = 200,
    calls: Annotated[int, typer.Option(help="Calls of each.")] = 20,
    write: Annotated[bool, typer.Option(help="Keep the figures in bench/results.")] = False,
) -> None:
    """Users with tokens of their own through one process."""
    key = ec.generate_private_key(ec.SECP256R1())
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    ports = [free_port() for _ in range(4)]
    signed, opened, own, plain = (f"http://127.0.0.1:{port}" for port in ports)
    oauth = {"grant": "token_exchange", "client_id": "bench", "client_secret": "bench"}
    oauth |= {"token_endpoint": f"{signed}/token"}
    entry = {"url": f"{signed}/mcp", "per_user": True, "oauth": oauth}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        common = {"cache_dir": folder, "state_dir": folder, "exposure": "eager"}
        issuer = {"url": signed, "resource": GATEWAY}
        configs = {
            "own": {"mcpServers": {"bench": entry}, "pegboard": common | {"issuer": issuer}},
            "plain": {"mcpServers": {"bench": {"url": f"{opened}/mcp"}}, "pegboard": common},
        }
        for name, config in configs.items():
            Path(folder, f"{name}.json").write_text(json.dumps(config), "utf-8")
        upstream = "pegboard_bench.users.token_server"
        stack.enter_context(running(upstream, str(ports[0]), port=ports[0], KEY=pem))
        stack.enter_context(running(upstream, str(ports[1]), "open", port=ports[1], KEY=pem))
        gateways = [
            stack.enter_context(
                running(
                    "pegboard", "serve", "--config", str(Path(folder, f"{name}.json")), "--port", str(port), port=port
                )
            )
            for name, port in zip(configs, ports[2:], strict=True)
        ]
        tokens = {f"user-{at}": token(key, signed, f"user-{at}", GATEWAY) for at in range(users)}
        figures = asyncio.run(measured(f"{own}/mcp", f"{plain}/mcp", tokens, calls, gateways[0]))
    typer.echo(json.dumps(figures, indent=1))
    if write:
        kept = Path("bench/results")
        results.write("users", command="make bench-users", seed=0, figures=figures, tables={}, folder=kept)


if __name__ == "__main__":
    typer.run(main)
