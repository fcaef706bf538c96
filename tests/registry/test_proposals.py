from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from pegboard.registry.proposals import NoEntry, check_public, configured_as, entry_name, proposals
from pegboard.registry.server_entries import listing
from pegboard.settings import load_settings
from pegboard.settings.server_spec import ServerSpec
from registry_entries import entry, real_entries

AIRTABLE = """
[servers.airtable-mcp-server]
command = "npx"
args = [
    "-y",
    "airtable-mcp-server@1.9.5",
]

[servers.airtable-mcp-server.env]
AIRTABLE_API_KEY = "${AIRTABLE_API_KEY}"
"""


def of(**server: Any) -> Any:
    """The only proposal for a server."""
    (found,) = proposals(listing(entry(**server)).server)
    return found


def package(**more: Any) -> Any:
    own = {"registryType": "npm", "identifier": "tides", "version": "1.0.0", "transport": {"type": "stdio"}} | more
    return of(packages=[own])


@pytest.mark.requirement("registry.proposals")
def test_the_entry_of_a_real_server_is_what_a_person_would_write() -> None:
    latest = next(each for each in real_entries() if each["server"]["version"] == "1.9.5")
    first = proposals(listing(latest).server)[0]

    assert first.toml(entry_name(latest["server"]["name"])) == AIRTABLE.strip()
    assert [(need.name, need.secret, need.required) for need in first.needs] == [("AIRTABLE_API_KEY", True, True)]


@pytest.mark.requirement("registry.proposals")
def test_every_entry_for_real_servers_is_read_by_the_configuration_and_the_others_say_why_not(tmp_path: Path) -> None:
    with_entry = 0
    for each in real_entries():
        name = entry_name(each["server"]["name"])
        for way in proposals(listing(each).server):
            assert (way.spec is None) == bool(way.why_not)
            if way.spec is not None:
                (tmp_path / "pegboard.toml").write_text(way.toml(name))
                assert list(load_settings([tmp_path / "pegboard.toml"]).servers) == [name]
                with_entry += 1
    assert with_entry > len(real_entries()) // 2


def test_addresses_come_before_packages_and_ways_without_an_entry_last() -> None:
    ways = proposals(
        listing(
            entry(
                packages=[
                    {"registryType": "mcpb", "identifier": "https://a.example/a.mcpb", "transport": {"type": "stdio"}},
                    {"registryType": "pypi", "identifier": "tides", "transport": {"type": "stdio"}},
                ],
                remotes=[{"type": "sse", "url": "https://a.example/sse"}],
            )
        ).server
    )

    assert [way.kind for way in ways] == ["pypi, stdio", "remote, sse", "mcpb, stdio"]


def test_values_of_a_person_become_variables_and_fixed_ones_stay() -> None:
    remote = of(
        remotes=[
            {
                "type": "streamable-http",
                "url": "https://{region}.example/mcp",
                "variables": {"region": {"default": "eu"}},
                "headers": [
                    {"name": "Authorization", "value": "Bearer {token}", "variables": {"token": {"isSecret": True}}},
                    {"name": "X-Plan", "value": "free"},
                    {"name": "X-Trace"},
                ],
            }
        ]
    )

    assert tomllib.loads(remote.toml("tides"))["servers"]["tides"] == {
        "url": "https://${REGION:-eu}.example/mcp",
        "headers": {"Authorization": "Bearer ${TOKEN}", "X-Plan": "free"},
    }
    needs = [(each.name, each.secret, each.required) for each in remote.needs]
    assert needs == [("REGION", False, False), ("TOKEN", True, True), ("X_TRACE", False, False)]


def test_arguments_and_a_container_get_their_values_and_variables() -> None:
    found = package(
        registryType="oci",
        identifier="ghcr.io/example/tides:1.2",
        version="",
        runtimeArguments=[{"type": "positional", "value": "run"}, {"type": "named", "name": "--rm"}],
        packageArguments=[
            {"type": "named", "name": "--harbour", "isRequired": True, "valueHint": "harbour"},
            {"type": "positional", "value": "serve"},
            {"type": "named", "name": "--debug"},
        ],
        environmentVariables=[{"name": "TIDE_KEY", "isRequired": True}, {"name": "TIDE_UNIT", "default": "m"}],
    )

    words = ["run", "-i", "--rm", "-e", "TIDE_KEY", "ghcr.io/example/tides:1.2", "--harbour", "${HARBOUR}", "serve"]
    assert found.spec == {"command": "docker", "args": words, "env": {"TIDE_KEY": "${TIDE_KEY}"}}
    needs = [(each.name, each.secret, each.required) for each in found.needs]
    assert needs == [("TIDE_KEY", True, True), ("TIDE_UNIT", False, False), ("HARBOUR", False, True)]


def test_a_version_that_is_not_pinned_is_said() -> None:
    assert package(version="latest").notes == package(version="").notes == ("Its version is not pinned.",)
    assert package().notes == ()


@pytest.mark.requirement("registry.proposals")
@pytest.mark.parametrize(
    ("own", "why"),
    [
        ({"identifier": "--registry=https://evil.example"}, "not the name of a package"),
        ({"identifier": "evil/repository"}, "not the name of a package"),
        ({"identifier": "git+https://evil.example/x"}, "not the name of a package"),
        ({"version": "1.0.0 --unsafe"}, "is no version"),
        ({"registryBaseUrl": "https://npm.evil.example"}, "not from the usual registry"),
        ({"registryBaseUrl": "https://[x"}, "is no URL"),
        ({"registryType": "mcpb"}, "bundle for desktop clients"),
        ({"registryType": "cargo"}, "package of 'cargo'"),
        ({"transport": {"type": "sse", "url": "http://127.0.0.1:1/sse"}}, "it serves sse"),
        ({"runtimeArguments": [{"type": "named", "name": "-v", "value": "/:/host"}]}, "options of the program"),
        ({"runtimeArguments": [{"type": "positional", "value": "--privileged"}]}, "options of the program"),
        ({"environmentVariables": [{"name": "LD_PRELOAD", "value": "/tmp/x.so"}]}, "can change what is run"),
        ({"environmentVariables": [{"name": "DOCKER_HOST", "value": "tcp://evil.example:2375"}]}, "change what is run"),
        ({"registryType": "oci", "identifier": "evil.example/a/b:1"}, "'evil.example', not from the usual registry"),
        ({"registryType": "oci", "identifier": "10.0.0.5:5000/a:1"}, "not from the usual registry"),
        ({"registryType": "oci", "identifier": "localhost/a:1"}, "not from the usual registry"),
        ({"registryType": "oci", "identifier": "EVIL/a:1"}, "not from the usual registry"),
        ({"environmentVariables": [{"name": "node_options", "isRequired": True}]}, "can change what is run"),
        ({"environmentVariables": [{"name": "A KEY", "isRequired": True}]}, "no valid name"),
        ({"environmentVariables": [{"name": "URL", "value": "https://e.example/${AWS_SECRET_ACCESS_KEY}"}]}, r"'\$'"),
        ({"packageArguments": [{"type": "positional", "value": "${keyring:github}"}]}, r"contains '\$'"),
        ({"packageArguments": [{"type": "positional", "value": "a\nb"}]}, "control characters"),
        ({"packageArguments": [{"type": "named", "name": "--a b", "value": "c"}]}, "is no flag"),
    ],
)
def test_a_package_that_asks_for_more_than_running_it_gets_no_entry(own: dict[str, Any], why: str) -> None:
    found = package(**own)

    assert found.spec is None
    assert re.search(why, found.why_not)


@pytest.mark.requirement("registry.proposals")
@pytest.mark.parametrize(
    "url",
    [
        *("http://a.example/mcp", "https://127.0.0.1/mcp", "https://10.0.0.8/mcp", "https://[::1]/mcp"),
        *("https://169.254.169.254/", "https://localhost/mcp", "https://db.internal/mcp", "https://printer.local/"),
        *("https://router/", "https://2130706433/", "https://0x7f.1/", "https://127.1/", "https://a.example:x/"),
        *("https://u:p@a.example/", "https://[::ffff:10.0.0.1]/", "https://a.example\\@10.0.0.1/", "https:///mcp", ""),
    ],
)
def test_an_address_that_is_not_public_gets_no_entry(url: str) -> None:
    with pytest.raises(NoEntry):
        check_public(url)
    assert of(remotes=[{"type": "streamable-http", "url": url}]).spec is None


@pytest.mark.parametrize(
    "image", ["tides:1", "example/tides:1", "docker.io/example/tides:1", "ghcr.io/example/tides:1"]
)
def test_an_image_of_a_usual_registry_gets_an_entry(image: str) -> None:
    assert package(registryType="oci", identifier=image, version="").spec["args"][-1] == image


@pytest.mark.parametrize(
    ("url", "variables"),
    [
        ("https://{h}.example.com/mcp", {"h": {"value": "169.254.169.254/latest/meta-data/"}}),
        ("https://{h}.example.com/mcp", {"h": {"default": "127.0.0.1/"}}),
        ("https://{h}.example.com/mcp", {"h": {"default": "127.0.0.1:80"}}),
        ("https://{h}.example.com/mcp", {"h": {"value": "me@10.0.0.1/"}}),
        ("https://{a/b}{h}.example.com/mcp", {"h": {"value": "evil.example/"}}),
        ("https://{a}.{b}/mcp", {"a": {"value": "10.0.0"}, "b": {"value": "1"}}),
        ("https://{a}.{b}/mcp", {"a": {"default": "db"}, "b": {"default": "internal"}}),
    ],
)
def test_values_and_defaults_that_make_another_host_get_no_entry(url: str, variables: dict[str, Any]) -> None:
    assert of(remotes=[{"type": "streamable-http", "url": url, "variables": variables}]).spec is None


def test_values_and_defaults_in_a_host_and_after_it_stay() -> None:
    variables = {"region": {"default": "eu-1.west"}, "plan": {"value": "free"}, "path": {"default": "a/b:1"}}
    found = of(
        remotes=[
            {"type": "streamable-http", "url": "https://{plan}.{region}.example/{path}/{team}", "variables": variables}
        ]
    )

    assert found.spec == {"url": "https://free.${REGION:-eu-1.west}.example/${MCP_PATH:-a/b:1}/${TEAM}"}


def test_a_default_with_braces_or_of_a_secret_is_left_out() -> None:
    variables = [
        {"name": "A_TOKEN", "isRequired": True, "default": "changeme"},
        {"name": "MODE", "isRequired": True, "default": "x}${HOME}"},
        {"name": "UNIT", "isRequired": True, "default": "m"},
    ]

    assert package(environmentVariables=variables).spec["env"] == {
        "A_TOKEN": "${A_TOKEN}",
        "MODE": "${MODE}",
        "UNIT": "${UNIT:-m}",
    }


@pytest.mark.requirement("registry.find-server")
@pytest.mark.parametrize(
    ("fields", "is_it"),
    [
        ({"command": "npx", "args": ("-y", "tides")}, True),
        ({"command": "npx", "args": ("-y", "tides@0.9.0")}, True),
        ({"command": "uvx", "args": ("tides==2",)}, True),
        ({"command": "npx", "args": ("-y", "tides-of-others@1.0.0")}, False),
        ({"command": "npx", "args": ("-y", "@evil/tides")}, False),
        ({"url": "https://TIDES.example/mcp/"}, True),
        ({"url": "https://tides.example/mcp?key=1"}, True),
        ({"url": "https://tides.example/other"}, False),
        ({"url": "http://tides.example/mcp"}, False),
    ],
)
def test_a_server_that_is_configured_is_known_by_its_package_or_address(fields: Any, is_it: bool) -> None:
    package = {"registryType": "npm", "identifier": "tides", "version": "1.0.0", "transport": {"type": "stdio"}}
    remote = {"type": "streamable-http", "url": "https://tides.example/mcp"}
    server = listing(entry(packages=[package], remotes=[remote])).server
    specs = {"mine": ServerSpec(name="mine", **fields), "other": ServerSpec(name="other", command="npx", args=("-y",))}
    assert configured_as(server, specs) == (["mine"] if is_it else [])


def test_an_address_that_is_no_url_is_the_one_of_no_configured_server() -> None:
    remote = {"type": "streamable-http", "url": "https://[x"}
    server = listing(entry(remotes=[remote])).server
    specs = {"mine": ServerSpec(name="mine", url="https://tides.example/mcp")}

    assert configured_as(server, specs) == []
    assert [each.why_not for each in proposals(server)] == ["its address is no URL"]
