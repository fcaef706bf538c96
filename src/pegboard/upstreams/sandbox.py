"""Command lines that run a server's process apart: in bubblewrap's namespaces, or in a container.

Sources: bwrap(1) of bubblewrap 0.8, docker-run(1); 2026-11-23.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from pegboard import operating_system
from pegboard.errors import UpstreamError
from pegboard.home_path import home_path
from pegboard.settings.server_spec import ServerSpec

SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/gnu/store"),
    *("/etc/alternatives", "/etc/ssl", "/etc/pki", "/etc/ca-certificates", "/etc/ca-certificates.conf"),
    *("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/services", "/etc/protocols", "/etc/mime.types"),
    *("/etc/passwd", "/etc/group", "/etc/localtime", "/etc/timezone", "/etc/fonts"),
    *("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d"),
)
"""What most programs need of the system, for reading. The rest of /etc is not there."""
PROBE_SECONDS = 5.0
DOCKER_VARIABLES = ("HOME", "PATH", "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_CERT_PATH")
"""Variables that the docker program itself needs; they do not reach the container."""


def sandboxed(argv: Sequence[str], spec: ServerSpec, env: Mapping[str, str], cwd: Path | None) -> list[str]:
    """The command line that runs ``argv`` with what the spec's sandbox allows.

    No value of ``env`` is in it, as other users can read command lines. Raises UpstreamError if this machine cannot
    do that: the server is then not started at all.
    """
    chosen = spec.sandbox
    if chosen is None or chosen.kind == "none":
        return list(argv)
    for path in (*_paths(spec, chosen.read), *_paths(spec, chosen.write)):
        if not path.exists():
            raise UpstreamError(
                spec.name, f"Its sandbox names {str(path)!r}, which does not exist.", remedy="Create it."
            )
    if chosen.kind == "docker":
        return _docker(argv, spec, cwd)
    return _bubblewrap(argv, spec, env, cwd)


def container_environment(spec: ServerSpec, environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of the docker program: its own variables, and those that the server's entry names."""
    return {name: environment[name] for name in DOCKER_VARIABLES if name in environment} | spec.env


def _bubblewrap(argv: Sequence[str], spec: ServerSpec, env: Mapping[str, str], cwd: Path | None) -> list[str]:
    program = _bwrap(spec.name)
    chosen = spec.sandbox
    assert chosen is not None  # noqa: S101  # `sandboxed` has looked
    home = Path(env.get("HOME", "/nonexistent"))
    made = [program, "--die-with-parent", "--new-session", "--unshare-all", *["--share-net"] * chosen.network]
    made += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]  # noqa: S108  # the sandbox's own
    made += [word for path in SYSTEM for word in ("--ro-bind-try", path, path)]
    made += ["--tmpfs", str(home)] if home.is_absolute() and not _covers(SYSTEM, home) else []
    readable = [*_of_program(Path(argv[0]), home), *([cwd] if cwd else []), *_paths(spec, chosen.read)]
    made += [word for path in _once(readable) for word in ("--ro-bind", str(path), str(path))]
    made += [word for path in _once(_paths(spec, chosen.write)) for word in ("--bind", str(path), str(path))]
    made += ["--chdir", str(cwd)] if cwd else ["--chdir", "/tmp"]  # noqa: S108
    return [*made, "--", *argv]


def _docker(argv: Sequence[str], spec: ServerSpec, cwd: Path | None) -> list[str]:
    chosen = spec.sandbox
    assert chosen is not None  # noqa: S101  # `sandboxed` has looked
    program = shutil.which("docker")
    if program is None:
        raise UpstreamError(
            spec.name,
            "Its sandbox is docker, which is not installed.",
            remedy='Install it, or choose another sandbox: "bubblewrap" (Linux) or "none".',
        )
    made = [program, "run", "--rm", "--interactive", "--init", "--read-only", "--tmpfs", "/tmp"]  # noqa: S108
    made += ["--cap-drop", "ALL", "--security-opt", "no-new-privileges", *["--network", "none"] * (not chosen.network)]
    who = operating_system.user_and_group()
    made += ["--user", who] if who else []
    made += [word for name in sorted(spec.env) for word in ("--env", name)]
    readable = [*([cwd] if cwd else []), *_paths(spec, chosen.read)]
    for paths, mode in ((_once(readable), ",readonly"), (_once(_paths(spec, chosen.write)), "")):
        made += [word for path in paths for word in ("--mount", f"type=bind,source={path},target={path}{mode}")]
    made += ["--workdir", str(cwd)] if cwd else []
    return [*made, chosen.image, *argv]


def _bwrap(server: str) -> str:
    """The program bubblewrap, if it works here. Raises UpstreamError with what to do if not."""
    other = 'Choose another sandbox for this server: "docker" or "none".'
    if not operating_system.is_linux():
        raise UpstreamError(server, "Its sandbox is bubblewrap, which exists only on Linux.", remedy=other)
    program = shutil.which("bwrap")
    if program is None:
        raise UpstreamError(
            server,
            "Its sandbox is bubblewrap, which is not installed.",
            remedy=f"Install it (`apt install bubblewrap`, `dnf install bubblewrap`). {other}",
        )
    probe = [program, "--unshare-all", "--ro-bind", "/", "/", "true"]
    try:
        tried = subprocess.run(probe, capture_output=True, timeout=PROBE_SECONDS, check=False)
        said = tried.stderr.decode("utf-8", "replace").strip() if tried.returncode else ""
    except subprocess.TimeoutExpired:
        said = "It does not answer."
    if said:
        raise UpstreamError(
            server,
            f"Its sandbox is bubblewrap, which may not make namespaces on this machine: {said}",
            remedy="Allow unprivileged user namespaces (sysctl kernel.unprivileged_userns_clone=1, or on Ubuntu "
            f"kernel.apparmor_restrict_unprivileged_userns=0; a container may need more rights). {other}",
        )
    return program


def _paths(spec: ServerSpec, names: Iterable[str]) -> list[Path]:
    return [Path(spec.folder, home_path(name, f"Server {spec.name!r}")).absolute() for name in names]


def _of_program(program: Path, home: Path) -> Iterator[Path]:
    """What a program outside the system's folders needs: its own folder, and what is installed beside it.

    A program in ``…/bin`` has its libraries beside that folder; but not if that would be the whole home folder.
    """
    for found in (program, *_links(program)):
        beside = found.parent.parent if found.parent.name == "bin" else found.parent
        wanted = found.parent if beside in (home, *home.parents) else beside
        if not _covers(SYSTEM, wanted) and wanted not in (home, *home.parents):
            yield wanted
        elif wanted in (home, *home.parents) and not _covers(SYSTEM, found):
            yield found


def _links(program: Path) -> Iterator[Path]:
    """Where the program's symbolic links lead, one by one."""
    seen = {program}
    while program.is_symlink():
        program = Path(os.path.normpath(program.parent / program.readlink()))
        if program in seen:
            return
        seen.add(program)
        yield program


def _covers(folders: Iterable[str], path: Path) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def _once(paths: Iterable[Path]) -> list[Path]:
    return list(dict.fromkeys(paths))
