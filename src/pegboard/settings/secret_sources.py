"""Secrets that a configuration names instead of containing: ``${keyring:NAME}``, ``${file:PATH}``, ``${cmd:WORDS}``."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pegboard.errors import ConfigError, PegboardError
from pegboard.extras import required
from pegboard.home_path import home_path

REFERENCE = re.compile(r"\$\{(keyring|file|cmd):((?:[^${}]|\$(?!\{)|\$\{[^{}]*\}|\{[^{}]*\})*)\}")
"""A reference may contain variables, other `$`, and pairs of braces, as in `${cmd:awk '{print $2}' tokens}`."""
REFERENCE_START = re.compile(r"\$\{(keyring|file|cmd):")
SERVICE = "pegboard"
"""The service under which a password is looked up in the keyring, unless the name has one before a slash."""
COMMAND_SECONDS = 10.0
MOST_BYTES = 64 * 1024


@dataclass(slots=True)
class SecretReader:
    """Reads the values of references, and remembers them in ``values`` so that they can be kept out of messages.

    Commands run without a shell, with ``environment``; what they write is never logged.
    """

    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    seconds: float = COMMAND_SECONDS
    values: set[str] = field(default_factory=set, repr=False)

    def read(self, owner: str, kind: str, name: str, folder: str) -> str:
        """The secret. ``owner`` names in errors what needs it; a relative path is below ``folder``.

        Raises ConfigError if there is no such secret, PegboardError if a command or the keyring fails.
        """
        if not name.strip():
            raise ConfigError(
                f"{owner} has ${{{kind}:}} without a name.", remedy="Write what to read behind the colon."
            )
        readers: Mapping[str, Callable[[str, str, str], str]] = {
            "keyring": self._keyring,
            "file": self._file,
            "cmd": self._command,
        }
        value = readers[kind](owner, name.strip(), folder)
        lines = [value, *value.splitlines()]
        self.values |= {*lines, *map(str.strip, lines)} - {""}  # a header is sent without the blanks around it
        return value

    def _keyring(self, owner: str, name: str, _folder: str) -> str:
        keyring = required("keyring", "keyring")
        service, slash, user = name.partition("/")
        try:
            found = keyring.get_password(*((service, user) if slash else (SERVICE, name)))
        except keyring.errors.KeyringError as error:
            raise PegboardError(
                f"{owner} needs {name!r} from the keyring, which cannot be read ({type(error).__name__}).",
                remedy="Unlock it; without a desktop, use ${file:PATH} or ${cmd:…}.",
            ) from error
        if found is None:
            service = service if slash else SERVICE
            raise ConfigError(
                f"{owner} needs {name!r} from the keyring, which has no such password.",
                remedy=f"`keyring set {service} {user if slash else name}` stores it.",
            )
        return str(found)

    def _file(self, owner: str, name: str, folder: str) -> str:
        path = Path(folder, home_path(name, owner))
        try:
            with path.open("rb") as file:
                data = file.read(MOST_BYTES + 1)
            text = data.decode("utf-8-sig")
        except OSError as error:
            raise ConfigError(
                f"{owner} needs the file {str(path)!r}, which cannot be read: {error.strerror}.",
                remedy="Correct its path, or make it readable.",
            ) from error
        except UnicodeDecodeError as error:
            raise ConfigError(f"{owner} needs the file {str(path)!r}, which is not text.") from error
        if len(data) > MOST_BYTES:
            raise ConfigError(f"{owner} needs the file {str(path)!r}, which is longer than {MOST_BYTES} bytes.")
        return _last_line_ended(text)

    def _command(self, owner: str, name: str, folder: str) -> str:
        try:
            words = shlex.split(name)
        except ValueError as error:
            raise ConfigError(f"{owner} has a command whose quotes do not match: ${{cmd:…}}.") from error
        try:
            done = subprocess.run(
                words,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                cwd=folder,
                env=dict(self.environment),
                timeout=self.seconds,
                check=False,
            )
            text = done.stdout.decode("utf-8-sig")
        except OSError as error:
            raise ConfigError(
                f"{owner} gets a secret from {words[0]!r}, which cannot be started: {error.strerror}.",
                remedy="Install it, or give its full path.",
            ) from error
        except subprocess.TimeoutExpired:
            raise PegboardError(
                f"{owner} gets a secret from {words[0]!r}, which did not end in {self.seconds:g} seconds.",
                remedy="It may be asking something: nobody can answer it. Run it by hand first.",
            ) from None
        except UnicodeDecodeError:
            raise PegboardError(f"{owner} gets a secret from {words[0]!r}, whose output is not text.") from None
        if done.returncode or not text.strip():
            how = f"ended with {done.returncode}" if done.returncode else "wrote nothing"
            raise PegboardError(
                f"{owner} gets a secret from {words[0]!r}, which {how}.",
                remedy="Run it by hand; its output is not shown here.",
            )
        return _last_line_ended(text)


def references(text: str) -> list[str]:
    """The references in a text, as written.

    >>> references("Bearer ${keyring:github}")
    ['${keyring:github}']
    """
    return [found.group() for found in REFERENCE.finditer(text)]


def _last_line_ended(text: str) -> str:
    """Without the line end that editors and commands add."""
    return text.removesuffix("\n").removesuffix("\r")
