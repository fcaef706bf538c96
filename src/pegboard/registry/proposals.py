"""The entry of pegboard.toml that a person would write for a server of a registry.

A registry's texts are its publishers' own: a command is made only from packages of the usual registries, pinned as the
registry says, without options of the program that runs them. What asks for more is for a person to write, and the
reason says so. Nothing is fetched, and no name is resolved.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import tomli_w

from pegboard.registry.server_entries import Input, Package, RegistryServer, Transport
from pegboard.settings.server_spec import SECRET_NAME, ServerSpec

USUAL: Mapping[str, tuple[str, ...]] = {
    "npm": ("registry.npmjs.org",),
    "pypi": ("pypi.org",),
    "oci": ("docker.io", "ghcr.io"),
    "nuget": ("api.nuget.org", "www.nuget.org"),
}
"""Hosts of `registryBaseUrl` that the runner asks anyway."""
IDENTIFIERS: Mapping[str, re.Pattern[str]] = {
    "npm": re.compile(r"(?:@[A-Za-z0-9~][\w.~-]*/)?[A-Za-z0-9~][\w.~-]*"),
    "pypi": re.compile(r"[A-Za-z0-9][\w.-]*"),
    "oci": re.compile(r"[A-Za-z0-9][\w.-]*(?:[:/][\w.-]+)*(?:@sha256:[a-f0-9]{64})?"),
    "nuget": re.compile(r"[A-Za-z0-9][\w.-]*"),
}
VERSION = re.compile(r"[A-Za-z0-9][\w.+-]*")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
PART = re.compile(r"\{([^{}]+)\}")
"""A part of a value that has an input of its own, such as ``Bearer {token}``."""
PLAIN = re.compile(r"[\w./:@, -]+")
HOST_PART = re.compile(r"[A-Za-z0-9._-]+")
"""A value within the host of an address, which cannot end it."""
REFERENCE = re.compile(r"\$\{\w+(?::-([^}]*))?\}")
"""What `_need` writes, with its default."""
LOADERS = re.compile(
    r"(?i)(LD_|DYLD_|NPM_CONFIG_|UV_|PIP_|DOCKER_|DOTNET_STARTUP_|CORECLR_|PERL5?|RUBY|GIT_(SSH|EXEC|CONFIG|PROXY)|SSL_CERT_).*"
    r"|PYTHON(PATH|HOME|STARTUP|USERBASE|INSPECT|BREAKPOINT|EXECUTABLE)|NODE_(OPTIONS|PATH|EXTRA_CA_CERTS)"
    r"|BASH_ENV|PATH|HOME|IFS|SHELL|(HTTPS?|ALL|NO)_PROXY|REQUESTS_CA_BUNDLE"
)
"""Variables that change which code a process runs, or whom it speaks to."""
NOISE = frozenset({"run", "-i", "-y", "--yes", "--rm", "--interactive", "-e", "--env"})
"""Runtime arguments that the entry has anyway."""
GENERIC = frozenset({"mcp", "mcp-server", "server", "api", "app"})
PRIVATE_NAMES = ("localhost", ".localhost", ".local", ".internal", ".lan", ".home.arpa", ".intranet", ".corp")


class NoEntry(ValueError):  # noqa: N818
    """Why no entry is proposed for a package or an address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """A value that its user has to have, by the name of its variable in the entry."""

    name: str
    secret: bool = False
    required: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """One way to configure a server. ``kind`` is how it would run: "npm, stdio" or "remote, streamable-http".

    ``spec`` is the entry's content, ``why_not`` the reason if there is none. ``notes`` are for the person who decides.
    """

    kind: str
    spec: Mapping[str, Any] | None = None
    needs: tuple[Need, ...] = ()
    notes: tuple[str, ...] = ()
    why_not: str = ""

    def toml(self, name: str) -> str:
        """The entry as it stands in pegboard.toml."""
        return tomli_w.dumps({"servers": {name: dict(self.spec or {})}}).strip()


def proposals(server: RegistryServer) -> list[Proposal]:
    """All ways to configure a server: addresses first, since they run nothing on this machine, then packages, and those
    without an entry last."""
    ways = [_proposal(f"remote, {each.type}", _remote, each) for each in server.remotes]
    ways += [_proposal(f"{each.registry_type}, {each.transport.type}", _package, each) for each in server.packages]
    ways = list({(each.kind, str(each.spec), each.why_not): each for each in ways}.values())
    return sorted(ways, key=lambda each: (each.spec is None, each.kind == "remote, sse"))


def entry_name(name: str) -> str:
    """A short name for the entry.

    >>> entry_name("io.github.domdomegg/airtable-mcp-server"), entry_name("com.notion/mcp")
    ('airtable-mcp-server', 'notion')
    """
    namespace, _, last = name.rpartition("/")
    short = last if last.casefold() not in GENERIC else namespace.rpartition(".")[2]
    return re.sub(r"[^a-z0-9_-]+", "-", short.casefold()).strip("-") or "server"


def configured_as(server: RegistryServer, specs: Mapping[str, ServerSpec]) -> list[str]:
    """The names of those configured servers that are this one: at one of its addresses, or run from one of its
    packages, whatever their version."""
    addresses = {_address(each.url) for each in server.remotes} - {""}
    packages = tuple(each.identifier for each in server.packages if each.identifier)
    return [
        name
        for name, spec in specs.items()
        if (spec.url is not None and _address(spec.url) in addresses)
        or any(_is_package(word, identifier) for word in spec.args for identifier in packages)
    ]


def _address(url: str) -> str:
    """Without query, fragment and last slash, and with the host in lower case; empty for what is no URL."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2].casefold()}{parts.path.rstrip('/')}"


def _is_package(word: str, identifier: str) -> bool:
    """Whether an argument is this package, with or without a version or a tag."""
    rest = word.removeprefix(identifier)
    return word.startswith(identifier) and (not rest or rest.startswith(("@", "==", ":")))


def _proposal(kind: str, make: Any, of: Any) -> Proposal:
    needs: dict[str, Need] = {}
    try:
        spec, notes = make(of, needs)
    except NoEntry as error:
        return Proposal(kind=kind, why_not=str(error))
    return Proposal(kind=kind, spec=spec, needs=tuple(needs.values()), notes=tuple(notes))


def _remote(remote: Transport, needs: dict[str, Need]) -> tuple[dict[str, Any], list[str]]:
    if remote.type not in ("streamable-http", "sse"):
        raise NoEntry(f"its transport {remote.type!r} is unknown")
    url = _filled(Input(value=remote.url, variables=remote.variables), "url", needs)
    check_public(PART.sub("x", remote.url))
    _check_host_parts(remote)
    check_public(REFERENCE.sub(lambda found: found.group(1) or "x", url))
    spec: dict[str, Any] = {"url": url} | ({"type": "sse"} if remote.type == "sse" else {})
    headers = {}
    for header in remote.headers:
        if not re.fullmatch(r"[A-Za-z0-9-]+", header.name):
            raise NoEntry(f"its header {header.name[:40]!r} has no valid name")
        if header.value or header.is_required:
            headers[header.name] = _filled(header, header.name, needs)
        else:
            _need(_variable(header.name), header, needs, required=False)
    return spec | ({"headers": headers} if headers else {}), []


def _check_host_parts(remote: Transport) -> None:
    """Raises NoEntry for a fixed value or a default that would end the host of the address it stands in."""
    for found in PART.finditer(remote.url):
        before = PART.sub("x", remote.url[: found.start()]).partition("://")[2]
        of = remote.variables.get(found.group(1))
        if of is None or re.search(r"[/?#]", before):
            continue
        if any(value and not HOST_PART.fullmatch(value) for value in (of.value, of.default)):
            raise NoEntry(f"its value of {found.group(1)[:40]!r} is no part of a host")


def _package(package: Package, needs: dict[str, Need]) -> tuple[dict[str, Any], list[str]]:
    kind, identifier, version = package.registry_type, package.identifier, package.version
    if package.transport.type != "stdio":
        raise NoEntry(f"it serves {package.transport.type}: start it yourself, then give its address")
    if kind not in IDENTIFIERS:
        what = "a bundle for desktop clients" if kind == "mcpb" else f"a package of {kind!r}"
        raise NoEntry(f"it is {what}: install it yourself")
    if not IDENTIFIERS[kind].fullmatch(identifier):
        raise NoEntry(f"{identifier[:80]!r} is not the name of a package of {kind}")
    try:
        base = urlsplit(package.registry_base_url).hostname
    except ValueError:
        raise NoEntry("the address of its registry is no URL") from None
    if base and base not in USUAL[kind]:
        raise NoEntry(f"its package comes from {base[:80]!r}, not from the usual registry")
    host = _image_host(identifier) if kind == "oci" else ""
    if host and host not in USUAL["oci"]:
        raise NoEntry(f"its image comes from {host[:80]!r}, not from the usual registry")
    if version and not VERSION.fullmatch(version):
        raise NoEntry(f"its version {version[:40]!r} is no version")
    environment = _environment(package, needs)
    _check_runtime(package, environment)
    passed = list(_arguments(package.package_arguments, needs))
    pinned = bool(version) and version != "latest"
    notes = [] if pinned or (kind == "oci" and _has_tag(identifier)) else ["Its version is not pinned."]
    image = f"{identifier}:{version}" if pinned and not _has_tag(identifier) else identifier
    commands: dict[str, list[str]] = {
        "npm": ["npx", "-y", f"{identifier}@{version}" if version else identifier],
        "pypi": ["uvx", f"{identifier}@{version}" if version else identifier],
        "nuget": ["dnx", f"{identifier}@{version}" if pinned else identifier, "--yes"],
        "oci": ["docker", "run", "-i", "--rm", *(word for name in environment for word in ("-e", name)), image],
    }
    command, *args = commands[kind]
    if kind == "nuget" and passed:
        args.append("--")
    spec = {"command": command, "args": [*args, *passed]} | ({"env": environment} if environment else {})
    return spec, notes


def _image_host(image: str) -> str:
    """The registry that an image's name begins with, as Docker reads it; empty for one of Docker Hub."""
    first, slash, _ = image.partition("/")
    is_host = "." in first or ":" in first or first == "localhost" or first != first.lower()
    return first if slash and is_host else ""


def _has_tag(image: str) -> bool:
    return "@" in image or ":" in image.rpartition("/")[2]


def _environment(package: Package, needs: dict[str, Need]) -> dict[str, str]:
    found = {}
    for each in package.environment_variables:
        wanted = bool(each.value) or each.is_required
        if LOADERS.fullmatch(each.name):
            raise NoEntry(f"it wants to set {each.name[:40]}, which can change what is run")
        if not VARIABLE.fullmatch(each.name):
            if wanted:
                raise NoEntry(f"its environment variable {each.name[:40]!r} has no valid name")
        elif wanted:
            found[each.name] = _filled(each, each.name, needs)
        else:
            _need(each.name, each, needs, required=False)
    return found


def _check_runtime(package: Package, environment: Mapping[str, str]) -> None:
    """Raises NoEntry for options of the runner itself, such as a folder of this machine that a container would see."""
    names = {each.name for each in package.environment_variables}
    image = package.identifier.removeprefix("docker.io/")
    known = {*NOISE, *names, *environment, image, package.identifier, image.partition(":")[0]}
    known |= {package.identifier.rpartition(":")[0], f"{package.identifier}@{package.version}"}
    for each in package.runtime_arguments:
        for word in filter(None, (each.name, each.value)):
            if word not in known:
                raise NoEntry(f"it needs options of the program that runs it ({word[:40]!r}): write its entry yourself")


def _arguments(given: Sequence[Input], needs: dict[str, Need]) -> Iterator[str]:
    for each in given:
        label = each.value_hint or each.name
        if each.type == "named":
            if not re.fullmatch(r"-{0,2}[A-Za-z0-9][\w.-]*", each.name):
                raise NoEntry(f"its flag {each.name[:40]!r} is no flag")
            is_switch = not (each.value or each.default or each.variables or each.value_hint or each.description)
            if each.value or each.is_required:
                yield each.name
                if not is_switch:
                    yield _filled(each, label, needs)
        elif each.value or each.is_required:
            yield _filled(each, label, needs)


def _filled(given: Input, label: str, needs: dict[str, Need]) -> str:
    """The value for the entry: fixed texts stay, and what a person gives becomes a variable.

    A fixed text cannot name a variable or a secret of this machine, which the server would then be sent.
    """
    if "$" in given.value:
        raise NoEntry(f"its value of {label[:40]!r} contains '$', which would read a variable of this machine")
    if any(ord(character) < 32 or ord(character) == 127 for character in given.value):
        raise NoEntry(f"its value of {label[:40]!r} contains control characters")
    if not given.value:
        return _need(_variable(label), given, needs)
    return PART.sub(lambda found: _part(found.group(1), given, label, needs), given.value)


def _part(name: str, given: Input, label: str, needs: dict[str, Need]) -> str:
    of = given.variables.get(name)
    if of is not None and of.value:
        if not PLAIN.fullmatch(of.value):
            raise NoEntry(f"its value of {name[:40]!r} is not plain text")
        return of.value
    secret = given.is_secret if of is None else of.is_secret
    return _need(
        _variable(name), Input(default=of.default if of else "", is_secret=secret, name=label, variables={}), needs
    )


def _need(variable: str, given: Input, needs: dict[str, Need], *, required: bool = True) -> str:
    """A reference to a variable, which is a need from now on."""
    secret = given.is_secret or bool(SECRET_NAME.search(given.name or variable))
    default = "" if secret or not PLAIN.fullmatch(given.default) else given.default
    before = needs.get(variable)
    needs[variable] = Need(
        name=variable, secret=secret, required=(required and not default) or bool(before and before.required)
    )
    return f"${{{variable}:-{default}}}" if default else f"${{{variable}}}"


def _variable(label: str) -> str:
    """The name of an environment variable for what a registry calls ``label``."""
    name = re.sub(r"[^A-Za-z0-9]+", "_", label).strip("_").upper() or "VALUE"
    name = f"MCP_{name}" if name[0].isdigit() or LOADERS.fullmatch(name) else name
    return name[:80]


def check_public(url: str) -> None:
    """Raises NoEntry for an address that is not https or that is of a private network, as far as its text says."""
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").rstrip(".")
        _ = parts.port
    except ValueError:
        raise NoEntry("its address is no URL") from None
    if parts.scheme != "https":
        raise NoEntry("its address is not https")
    if parts.username or parts.password:
        raise NoEntry("its address has a user name in it")
    if not re.fullmatch(r"[A-Za-z0-9.:_-]+", host):
        raise NoEntry("its address has no valid host")
    try:
        private = not ipaddress.ip_address(host).is_global
    except ValueError:
        dotted = re.fullmatch(r"[0-9a-fx.]+", host) is not None and host.rpartition(".")[2][:1].isdigit()
        private = dotted or "." not in host or any(host.endswith(name) for name in PRIVATE_NAMES)
    if private:
        raise NoEntry("its address is of a private network")
