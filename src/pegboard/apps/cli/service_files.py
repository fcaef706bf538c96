"""What a system needs to run a command as a service of the user's session: a systemd unit, a launchd agent, a Windows
task. Nothing here reads or writes files.

Sources: systemd.service(5), systemd.syntax(7); launchd.plist(5); Task Scheduler schema 1.2 (Microsoft Learn);
2026-11-23.
"""

from __future__ import annotations

import plistlib
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from pegboard.operating_system import LINUX, application_data

DESCRIPTION = "Pegboard: one MCP gateway for all clients of this user"
STOP_SECONDS = 45
"""Seconds that it has to end: running answers (`drain_timeout`), then its servers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceDefinition:
    """A command that runs while its user is logged in. ``env_file`` may give it more variables; it need not exist."""

    name: str
    command: tuple[str, ...]
    path: str
    """The PATH on which the command finds the programs of MCP servers."""
    env_file: Path
    log: Path


def systemd_unit(service: ServiceDefinition) -> str:
    """The text of ``NAME.service`` for `systemctl --user`."""
    return f"""[Unit]
Description={DESCRIPTION}

[Service]
Type=exec
ExecStart={" ".join(map(_systemd_word, service.command))}
Environment={_systemd_word(f"PATH={service.path}", variables=False)}
EnvironmentFile=-{_percent(str(service.env_file))}
Restart=on-failure
RestartSec=2
KillMode=mixed
TimeoutStopSec={STOP_SECONDS}

[Install]
WantedBy=default.target
"""


def _systemd_word(word: str, *, variables: bool = True) -> str:
    """One word of a command line, in quotes, with nothing that systemd would replace."""
    quoted = _percent(word).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{quoted.replace("$", "$$") if variables else quoted}"'


def _percent(text: str) -> str:
    return text.replace("%", "%%")


def launch_agent(service: ServiceDefinition) -> str:
    """The text of ``NAME.plist`` for `launchctl`. launchd reads no file of variables."""
    made = {
        "Label": service.name,
        "ProgramArguments": list(service.command),
        "EnvironmentVariables": {"PATH": service.path},
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ExitTimeOut": STOP_SECONDS,
        "StandardErrorPath": str(service.log),
        "ProcessType": "Interactive",
    }
    return plistlib.dumps(made, sort_keys=False).decode()


def windows_task(service: ServiceDefinition) -> str:
    """The text of ``NAME.xml`` for `schtasks /Create /XML`. A task has the user's own variables."""
    program, *args = service.command
    return f"""<?xml version="1.0" encoding="UTF-16"?>
<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <RegistrationInfo><Description>{escape(DESCRIPTION)}</Description></RegistrationInfo>
  <Triggers><LogonTrigger><Enabled>true</Enabled></LogonTrigger></Triggers>
  <Principals>
    <Principal id="User"><LogonType>InteractiveToken</LogonType><RunLevel>LeastPrivilege</RunLevel></Principal>
  </Principals>
  <Settings>
    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>
    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>
    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>
    <ExecutionTimeLimit>PT0S</ExecutionTimeLimit>
    <Hidden>true</Hidden>
    <RestartOnFailure><Interval>PT1M</Interval><Count>3</Count></RestartOnFailure>
  </Settings>
  <Actions Context="User">
    <Exec>
      <Command>{escape(program)}</Command>
      <Arguments>{escape(subprocess.list2cmdline(args))}</Arguments>
    </Exec>
  </Actions>
</Task>
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceManager:
    """How one system starts and stops a service. In the commands, {file} is the definition's file, {name} the name."""

    name: str
    text: str
    file: Path
    encoding: str
    start: tuple[tuple[str, ...], ...]
    """A process of an earlier definition is replaced."""
    stop: tuple[tuple[str, ...], ...]
    """Run before the file is removed."""
    after: tuple[tuple[str, ...], ...] = ()
    """Run after the file is removed."""
    clear: tuple[tuple[str, ...], ...] = ()
    """Run before ``start``, which fails or has no effect while an earlier process runs."""


def managers(service: ServiceDefinition, home: Path, config: Path, user: int) -> Mapping[str, ServiceManager]:
    """Every manager by name, for the user with the number ``user`` (launchd addresses sessions by it)."""
    unit = f"{service.name}.service"
    agent = home / "Library" / "LaunchAgents" / f"{service.name}.plist"
    task = config / f"{service.name}.xml"
    return {
        "systemd": ServiceManager(
            name="systemd",
            text=systemd_unit(service),
            file=application_data(home, LINUX) / "systemd" / "user" / unit,
            encoding="utf-8",
            start=(
                ("systemctl", "--user", "daemon-reload"),
                ("systemctl", "--user", "enable", unit),
                ("systemctl", "--user", "restart", unit),
            ),
            stop=(("systemctl", "--user", "disable", "--now", unit),),
            after=(("systemctl", "--user", "daemon-reload"),),
        ),
        "launchd": ServiceManager(
            name="launchd",
            text=launch_agent(service),
            file=agent,
            encoding="utf-8",
            start=(("launchctl", "bootstrap", f"gui/{user}", str(agent)),),
            stop=(("launchctl", "bootout", f"gui/{user}/{service.name}"),),
            clear=(("launchctl", "bootout", f"gui/{user}/{service.name}"),),
        ),
        "task": ServiceManager(
            name="task",
            text=windows_task(service),
            file=task,
            encoding="utf-16",
            start=(
                ("schtasks", "/Create", "/F", "/TN", service.name, "/XML", str(task)),
                ("schtasks", "/Run", "/TN", service.name),
            ),
            stop=(("schtasks", "/End", "/TN", service.name), ("schtasks", "/Delete", "/F", "/TN", service.name)),
            clear=(("schtasks", "/End", "/TN", service.name),),
        ),
    }
