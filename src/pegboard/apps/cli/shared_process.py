"""The one `pegboard serve` that all clients of a user share: started, found, stopped."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_state_path

from pegboard import operating_system
from pegboard.apps.cli.init import own_command
from pegboard.apps.cli.service_files import STOP_SECONDS, ServiceDefinition, ServiceManager, managers
from pegboard.errors import ConfigError, PegboardError
from pegboard.gateways.mcp.attach.serve_discovery import SETTING, is_serve, running_folder, running_for
from pegboard.home_path import home_path
from pegboard.settings.client_files import own_file

PROCESS = "process"
"""The manager of systems that have none: a process in the background, until the user logs out or the machine ends."""
POLL_SECONDS = 0.1
TAIL_LINES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedProcess:
    """`pegboard serve` with exactly ``files``."""

    files: tuple[Path, ...]
    port: int | None = None

    @property
    def name(self) -> str:
        """`pegboard` for the user's own file, else with a digest of the files."""
        if self.files == (own_file(),):
            return "pegboard"
        return "pegboard-" + hashlib.sha256("\0".join(map(str, self.files)).encode()).hexdigest()[:8]

    @property
    def definition(self) -> ServiceDefinition:
        configs = [word for file in self.files for word in ("--config", str(file))]
        port = [] if self.port is None else ["--port", str(self.port)]
        return ServiceDefinition(
            name=self.name,
            command=(*own_command(), "serve", *configs, *port),
            path=os.environ.get("PATH", os.defpath),
            env_file=own_file().parent / "up.env",
            log=self.folder / f"{self.name}.log",
        )

    @property
    def folder(self) -> Path:
        """Where logs and numbers of processes are."""
        return user_state_path("pegboard", appauthor=False) / "up"

    def managers(self) -> dict[str, ServiceManager]:
        user = operating_system.user_id()
        return dict(managers(self.definition, Path.home(), own_file().parent, user))

    def url(self) -> str | None:
        """Its MCP endpoint, if it runs and answers."""
        return running_for(self.files, running_folder(), wants_tokens=True)

    def up(self, manager: str) -> None:
        """Start it; a process that an earlier `up` started for these files ends. Raises PegboardError if the manager
        refuses."""
        if manager == PROCESS:
            self._stop()
            return self._spawn()
        if set_here := sorted(name for name in os.environ if SETTING.match(name)):
            raise ConfigError(
                f"{', '.join(set_here)} is set in this shell, and the service would not see it.",
                remedy="Put it into the configuration file, or start a plain process with --manager process.",
            )
        self._stop()
        chosen = self.managers()[manager]
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        chosen.file.parent.mkdir(parents=True, exist_ok=True)
        before = chosen.file.read_bytes() if chosen.file.exists() else None
        chosen.file.write_text(chosen.text, chosen.encoding)
        try:
            self._start(chosen, replaced=before is not None)
        except PegboardError:
            if before is None:
                self.remove(chosen)
            else:
                self._put_back(chosen, before)
            raise
        return None

    def _start(self, manager: ServiceManager, *, replaced: bool) -> None:
        """Start a service. Where an earlier one is cleared away first, the manager may refuse until that has ended."""
        with suppress(PegboardError):
            _all(manager.clear)
        until = time.monotonic() + (STOP_SECONDS if replaced and manager.clear else 0)
        while True:
            try:
                return _all(manager.start)
            except PegboardError:
                if time.monotonic() >= until:
                    raise
            time.sleep(POLL_SECONDS)

    def _put_back(self, manager: ServiceManager, before: bytes) -> None:
        """Start the service again that another definition was to replace."""
        manager.file.write_bytes(before)
        with suppress(PegboardError):
            self._start(manager, replaced=False)

    def wait(self, seconds: float) -> str:
        """Its URL, as soon as it answers. Raises PegboardError with the end of its log if it does not in time."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if url := self.url():
                return url
            if self._has_ended():
                break
            time.sleep(POLL_SECONDS)
        raise PegboardError(
            f"`pegboard serve` did not get ready. {self._said()}".strip(),
            remedy=f"Run `{' '.join(self.definition.command)}` to see why; `pegboard down` removes the service.",
        )

    def down(self) -> list[str]:
        """Stop it, however it was started; the names of the managers that ran it. Raises PegboardError."""
        ran = [manager for manager in self.managers().values() if manager.file.exists()]
        for manager in ran:
            self.remove(manager)
        stopped = self._stop()
        return [manager.name for manager in ran] + [PROCESS] * stopped

    def remove(self, manager: ServiceManager) -> None:
        """Stop a service and remove its definition. What is stopped already is no error."""
        for commands in (manager.stop, manager.after):
            with suppress(PegboardError):
                _all(commands)
            manager.file.unlink(missing_ok=True)

    def _spawn(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._pid_file.write_text(str(operating_system.start_detached(self.definition.command, self.definition.log)))

    @property
    def _pid_file(self) -> Path:
        return self.folder / f"{self.name}.pid"

    def _has_ended(self) -> bool:
        """Whether a process that this program started is gone."""
        pid = self._pid()
        return pid is not None and not operating_system.runs_as_us(pid)

    def _said(self) -> str:
        with suppress(OSError):
            return " | ".join(self.definition.log.read_text("utf-8", "replace").splitlines()[-TAIL_LINES:])
        return ""

    def _stop(self) -> bool:
        """End the process of the pid file if it is still the serve of these files: the number may be another's now.

        Raises PegboardError, and keeps the file, for a process that runs and cannot be told or does not end.
        """
        pid = self._pid()
        if pid is None or not self._runs(pid):
            self._pid_file.unlink(missing_ok=True)
            return False
        if not self._is_ours(pid):
            raise PegboardError(
                f"The process {pid}, which `pegboard up` started, runs, but does not answer as `pegboard serve`.",
                remedy=f"If it is just starting, try again in a moment; if it is stuck, end it by hand; if {pid} is "
                f"another program's number by now, remove {str(self._pid_file)!r}.",
            )
        operating_system.end_process(pid)
        until = time.monotonic() + STOP_SECONDS
        while self._runs(pid):
            if time.monotonic() > until:
                raise PegboardError(
                    f"The process {pid} did not end in {STOP_SECONDS} seconds.", remedy="End it by hand."
                )
            time.sleep(POLL_SECONDS)
        self._pid_file.unlink(missing_ok=True)
        return True

    def _is_ours(self, pid: int) -> bool:
        return is_serve(pid, self.files, running_folder())

    def _runs(self, pid: int) -> bool:
        """Whether the process runs; on Windows, which cannot tell, whether it answers."""
        return self._is_ours(pid) if operating_system.is_windows() else operating_system.runs_as_us(pid)

    def _pid(self) -> int | None:
        try:
            return int(self._pid_file.read_text())
        except (OSError, ValueError):
            return None


def served_files(config: Sequence[Path] | None) -> tuple[Path, ...]:
    """The absolute paths of these files, else of the user's own file; they need not exist."""
    return tuple(home_path(path).absolute() for path in config or [own_file()])


def usual_manager() -> str:
    """The manager of this system: that of its user's session if it answers, else a plain process."""
    if manager := operating_system.service_manager():
        return manager
    if shutil.which("systemctl") is None:
        return PROCESS
    asked = subprocess.run(["systemctl", "--user", "show-environment"], capture_output=True, check=False)  # noqa: S607
    return PROCESS if asked.returncode else "systemd"


def _all(commands: Iterable[Sequence[str]]) -> None:
    """Run each. Raises PegboardError with what a command said if it fails."""
    for command in commands:
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            raise PegboardError(f"Cannot run {command[0]!r}: {error.strerror}.") from error
        if done.returncode:
            raise PegboardError(f"`{' '.join(command)}` failed: {(done.stderr or done.stdout).strip()}")
