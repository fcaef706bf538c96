from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import keyring
import keyring.errors
import pytest
from keyring.backend import KeyringBackend

from pegboard.errors import ConfigError, PegboardError
from pegboard.settings.secret_sources import MOST_BYTES, SecretReader
from pegboard.settings.server_spec import ServerSpec


class Memory(KeyringBackend):
    """A keyring that forgets at the end."""

    priority = 1.0

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}
        self.locked = False

    def get_password(self, service: str, username: str) -> str | None:
        if self.locked:
            raise keyring.errors.KeyringLocked("hush")
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password


@pytest.fixture
def ring() -> Iterator[Memory]:
    before, memory = keyring.get_keyring(), Memory()
    keyring.set_keyring(memory)
    yield memory
    keyring.set_keyring(before)


def spec(folder: Path = Path(), **fields: object) -> ServerSpec:
    return ServerSpec.model_validate({"name": "notes", "command": "x", "folder": str(folder)} | fields)


def command(program: str) -> str:
    return f"${{cmd:{shlex.join([sys.executable, '-c', program])}}}"


def test_a_secret_is_read_only_where_a_reader_is_given(tmp_path: Path, ring: Memory) -> None:
    (tmp_path / "token").write_text("from-a-file\n")
    keyring.set_password("pegboard", "github", "from-the-ring")
    keyring.set_password("work", "ann", "another")
    made = spec(
        tmp_path,
        args=["--token", "${file:token}"],
        env={"A": "${keyring:github}", "B": "${keyring:work/ann}!", "C": command("print('from-a-command')")},
    )
    reader = SecretReader()
    read = made.expanded({}, reader)

    assert made.expanded({}) == made, "as it is written"
    assert len(made.references) == 4
    assert read.args == ("--token", "from-a-file")
    assert read.env == {"A": "from-the-ring", "B": "another!", "C": "from-a-command"}
    assert {"from-a-file", "from-the-ring", "another", "from-a-command"} <= reader.values
    assert "from-" not in f"{reader!r} {read!r}"


def test_variables_in_a_reference_are_expanded_and_values_are_not(tmp_path: Path) -> None:
    (tmp_path / "my.token").write_text("${cmd:touch never}")
    read = spec(tmp_path, env={"A": "${file:${WHOSE}.token}", "B": "${V}"}).expanded(
        {"WHOSE": "my", "V": "${cmd:touch never}"}, SecretReader()
    )

    assert read.env == {"A": "${cmd:touch never}", "B": "${cmd:touch never}"}
    assert not (tmp_path / "never").exists()


def test_a_command_gets_no_shell_and_runs_in_the_folder_of_its_file(tmp_path: Path) -> None:
    program = "import os, sys; print(os.getcwd(), sys.argv[1:], os.environ.get('WHO'))"
    text = command(program).removesuffix("}") + " ; > *}"
    read = spec(tmp_path, env={"A": text}).expanded({}, SecretReader({"WHO": "ann"}))

    assert read.env["A"] == f"{tmp_path} [';', '>', '*'] ann"


@pytest.mark.parametrize("text", ["a$b", "$1", "{print $2}", "a{b}c", "$${X}", "it's ${X}{y}$"])
def test_a_reference_may_contain_dollars_and_pairs_of_braces(tmp_path: Path, text: str) -> None:
    written = shlex.join([sys.executable, "-c", "import sys; print(sys.argv[1])", text])
    made = spec(tmp_path, env={"A": f"${{cmd:{written}}}"})
    (tmp_path / "a$b{c}").write_text("from-a-file")
    file = spec(tmp_path, env={"A": "Bearer ${file:a$b{c}}!"})

    assert len(made.references) == 1
    assert made.expanded({"X": "x"}, SecretReader()).env["A"] == text.replace("${X}", "x")
    assert file.expanded({}, SecretReader()).env["A"] == "Bearer from-a-file!"


@pytest.mark.parametrize("kind", ["keyring", "file", "cmd"])
@pytest.mark.parametrize("text", ["secret", "secret {{}}", "secret { x {", "secret ${a ${b}}"])
def test_a_reference_whose_braces_do_not_match_is_never_taken_literally(kind: str, text: str) -> None:
    end = "" if text == "secret" else "}"
    for secrets in (None, SecretReader()):
        with pytest.raises(ConfigError, match=rf"Server 'notes' has a reference \$\{{{kind}:…\}}") as raised:
            spec(env={"A": f"${{HOME:-x}} ${{{kind}:{text}{end}"}).expanded({"HOME": "h"}, secrets)
        assert "secret" not in str(raised.value)


def test_a_file_of_a_user_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Server 'notes' names '~nosuchuser/x', but there is no such user"):
        spec(tmp_path, env={"A": "${file:~nosuchuser/x}"}).expanded({}, SecretReader())


@pytest.mark.parametrize("data", [b"\xef\xbb\xbfhush", b"\xef\xbb\xbfhush\r\n", b"hush\n\n", b"hush \n"])
def test_what_editors_and_shells_put_around_a_token_is_not_sent(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "token").write_bytes(data)
    made = ServerSpec(
        name="notes", url="https://a.example", folder=str(tmp_path), headers={"Authorization": "Bearer ${file:token}"}
    )

    assert made.expanded({}, SecretReader()).headers == {"Authorization": "Bearer hush"}


@pytest.mark.requirement("M30")
def test_a_secret_is_known_as_it_is_sent(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("hushhush \n\n of two lines\n")
    reader = SecretReader()
    reader.read("Server 'notes'", "file", "token", str(tmp_path))

    assert reader.values == {
        "hushhush \n\n of two lines",
        "hushhush ",
        "hushhush",
        " of two lines",
        "of two lines",
    }


@pytest.mark.requirement("M30")
@pytest.mark.parametrize("value", ["q7\\q7\nq7'q7", "q7\0q7", "q7üq7", "\ufeffq7"])
def test_a_header_that_cannot_be_sent_is_named_and_its_value_is_not(value: str) -> None:
    made = ServerSpec(name="notes", url="https://a.example", headers={"X-Key": "${KEY}", "Y": "${file:hüsh}"})

    with pytest.raises(ConfigError, match="'notes': its header 'X-Key' has a character") as caught:
        made.expanded({"KEY": value})

    assert "q7" not in str(caught.value)
    assert made.expanded({"KEY": ""}).headers == {"X-Key": "", "Y": "${file:hüsh}"}


def test_a_servers_identity_does_not_change_with_a_secret(tmp_path: Path) -> None:
    made = spec(tmp_path, env={"A": "${file:token}"})
    (tmp_path / "token").write_text("one")
    first = made.expanded({}).identity()
    (tmp_path / "token").write_text("two")

    assert made.expanded({}).identity() == first


@pytest.mark.requirement("M30")
@pytest.mark.parametrize(
    ("reference", "kind", "says"),
    [
        ("${file:absent}", ConfigError, "absent' , which cannot be read: No such file"),
        ("${file:long}", ConfigError, "longer than"),
        ("${file:binary}", ConfigError, "not text"),
        ("${keyring:absent}", ConfigError, "`keyring set pegboard absent`"),
        ("${keyring:work/bob}", ConfigError, "`keyring set work bob`"),
        ("${cmd:no-such-program-x hush-hush}", ConfigError, "'no-such-program-x'"),
        ("${cmd:'open}", ConfigError, "quotes"),
        ("${file: }", ConfigError, "without a name"),
        (command("import sys; print('hush-hush'); sys.exit('hush-hush')"), PegboardError, "ended with 1"),
        (command("pass"), PegboardError, "wrote nothing"),
        (command("import time; print('hush-hush', flush=True); time.sleep(60)"), PegboardError, "did not end in 1"),
        (command("import sys; sys.stdout.buffer.write(bytes([255]))"), PegboardError, "not text"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_server_and_no_value(
    tmp_path: Path, ring: Memory, reference: str, kind: type[Exception], says: str
) -> None:
    (tmp_path / "long").write_text("hush-hush" * MOST_BYTES)
    (tmp_path / "binary").write_bytes(b"\xff")
    with pytest.raises(kind) as caught:
        spec(tmp_path, env={"A": f"Bearer {reference}"}).expanded({}, SecretReader(seconds=1))

    assert "'notes'" in str(caught.value)
    assert says.replace("' ,", "',") in str(caught.value)
    assert "hush" not in str(caught.value)


def test_a_locked_keyring_may_be_open_the_next_time(ring: Memory) -> None:
    ring.locked = True
    with pytest.raises(PegboardError, match="cannot be read") as caught:
        spec(env={"A": "${keyring:github}"}).expanded({}, SecretReader())

    assert not isinstance(caught.value, ConfigError), "so connecting is tried again"
    assert "hush" not in str(caught.value)


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(ConfigError, match=r"pip install 'pegboard\[keyring\]'"):
        spec(env={"A": "${keyring:github}"}).expanded({}, SecretReader())


@pytest.mark.parametrize("reader", [None, SecretReader({})], ids=["as it is written", "read"])
@pytest.mark.parametrize("variable", ["${UNSET}", "${env:UNSET}"])
def test_a_command_with_a_variable_that_is_not_set_names_it_and_does_not_run(
    tmp_path: Path, variable: str, reader: SecretReader | None
) -> None:
    words = command("open('ran', 'w')").removesuffix("}") + f" {variable}}}"
    with pytest.raises(ConfigError, match="'notes' needs the environment variable UNSET, which is not set"):
        spec(tmp_path, env={"A": words}).expanded({}, reader)

    assert not (tmp_path / "ran").exists()
