from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from pegboard.gateways.mcp.attach import serve_discovery
from pegboard.gateways.mcp.attach.serve_discovery import announce, files_hash, health, running_for


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    return [tmp_path / "pegboard.toml"]


@dataclass
class Announced:
    folder: Path
    url: str


@pytest.fixture
def serve(tmp_path: Path, files: list[Path]) -> Iterator[Announced]:
    """This process is the serve: it says that it is well, and is announced."""
    well = health(files)

    class Health(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/healthz" else 404)
            self.end_headers()
            self.wfile.write(json.dumps(well).encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Health) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}/mcp"
        with announce(url, files, tmp_path / "running"):
            yield Announced(tmp_path / "running", url)
        server.shutdown()
        thread.join()


def said(serve: Announced) -> Path:
    (path,) = serve.folder.glob("*.json")
    return path


def change(path: Path, **fields: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def test_a_live_serve_is_found_by_exactly_its_files(
    serve: Announced, files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert running_for(files, serve.folder) == serve.url
    assert running_for([*files, tmp_path / "more.toml"], serve.folder) is None
    assert running_for([], serve.folder) is None
    monkeypatch.chdir(tmp_path)
    assert running_for([Path("pegboard.toml")], serve.folder) == serve.url


@pytest.mark.parametrize("name", ["PEGBOARD_SCOPES", "ALWAYS_AVAILABLE_TOOLS"])
def test_settings_of_the_environment_make_it_another_configuration(
    serve: Announced, files: list[Path], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("PEGBOARD_DEBUG", "1")
    assert running_for(files, serve.folder) == serve.url
    monkeypatch.setenv(name, "admin")
    assert running_for(files, serve.folder) is None


def test_a_serve_that_ended_is_forgotten_and_its_file_with_it(serve: Announced, files: list[Path]) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    change(said(serve), pid=ended.pid)
    assert running_for(files, serve.folder) is None
    assert list(serve.folder.iterdir()) == []


def test_another_version_is_left_alone(serve: Announced, files: list[Path]) -> None:
    change(said(serve), version="0.0.0")
    assert running_for(files, serve.folder) is None
    assert said(serve)


def test_who_answers_there_has_to_be_the_process_of_the_file(serve: Announced, files: list[Path]) -> None:
    """The port may be another's by now."""
    change(said(serve), pid=os.getppid())
    assert running_for(files, serve.folder) is None


def test_only_this_machine_is_asked(serve: Announced, files: list[Path]) -> None:
    change(said(serve), url="http://serve.example/mcp")
    assert running_for(files, serve.folder) is None


def test_a_file_or_folder_that_others_can_write_is_not_believed(serve: Announced, files: list[Path]) -> None:
    said(serve).chmod(0o660)
    assert running_for(files, serve.folder) is None
    said(serve).chmod(0o600)
    serve.folder.chmod(0o777)
    assert running_for(files, serve.folder) is None
    serve.folder.chmod(0o700)
    assert running_for(files, serve.folder) == serve.url


def test_a_file_of_another_user_is_not_believed(
    serve: Announced, files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve_discovery.os, "getuid", lambda: serve.folder.stat().st_uid + 1)
    assert running_for(files, serve.folder) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": "1"}', '{"url": "http://127.0.0.1/mcp", "pid": 1}'])
def test_a_file_that_says_nothing_whole_is_passed_over(tmp_path: Path, text: str) -> None:
    (tmp_path / "1.json").write_text(text)
    (tmp_path / "1.json").chmod(0o600)
    tmp_path.chmod(0o700)

    assert running_for([], tmp_path) is None


def test_an_announcement_is_private_and_lasts_as_long_as_its_block(tmp_path: Path, files: list[Path]) -> None:
    folder = tmp_path / "state" / "running"
    with announce("http://127.0.0.1:1/mcp", files, folder):
        (path,) = folder.iterdir()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert json.loads(path.read_text())["files"] == [str(files[0].resolve())]
    assert list(folder.iterdir()) == []


def test_the_hash_of_a_configuration_is_the_same_in_every_process(files: list[Path]) -> None:
    code = "import sys; from pathlib import Path\n"
    code += "from pegboard.gateways.mcp.attach.serve_discovery import files_hash as h\n"
    code += "print(h([Path(sys.argv[1])]), end='')"
    other = subprocess.run([sys.executable, "-c", code, files[0]], capture_output=True, text=True, check=True)

    assert other.stdout == files_hash(files)


def test_where_nothing_was_ever_announced_there_is_nothing(tmp_path: Path) -> None:
    assert running_for([], tmp_path / "nowhere") is None
