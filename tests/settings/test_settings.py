from __future__ import annotations

import traceback
from pathlib import Path

import pytest

from pegboard import PegboardError
from pegboard.errors import ConfigError
from pegboard.settings import Settings, load_settings


def write(path: Path, text: str) -> Path:
    path.write_text(text, "utf-8")
    return path


def test_without_any_configuration_the_defaults_hold() -> None:
    settings = load_settings()

    assert (settings.profile, settings.k, settings.threshold, settings.servers) == ("hybrid", None, None, {})


def test_flags_win_over_the_environment_and_it_over_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path / "pegboard.toml", 'profile = "keyword"\nk = 3\nbudget = 100\n')
    monkeypatch.setenv("PEGBOARD_K", "4")
    monkeypatch.setenv("PEGBOARD_BUDGET", "200")

    settings = load_settings([file], budget=300, threshold=None)

    assert (settings.profile, settings.k, settings.budget, settings.threshold) == ("keyword", 4, 300, None)


def test_later_files_win_and_their_servers_are_added(tmp_path: Path) -> None:
    first = write(
        tmp_path / "a.toml", 'k = 3\n[servers.files]\ncommand = "files"\n[servers.notes]\nurl = "https://a/"\n'
    )
    second = write(tmp_path / "b.toml", 'k = 5\n[servers.notes]\nurl = "https://b/"\n')

    settings = load_settings([first, second])

    assert settings.k == 5
    assert list(settings.servers) == ["files", "notes"]
    assert settings.servers["notes"].url == "https://b/"


def test_servers_can_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEGBOARD_SERVERS", '{"files": {"command": "files-mcp"}}')

    assert load_settings().servers["files"].command == "files-mcp"


def test_a_clients_file_may_hold_pegboards_own_options(tmp_path: Path) -> None:
    file = write(
        tmp_path / "mcp.json", '{"mcpServers": {"files": {"command": "files-mcp"}}, "pegboard": {"k": 7, "pool": 500}}'
    )

    settings = load_settings([file])

    assert (settings.k, settings.pool, list(settings.servers)) == (7, 500, ["files"])


def test_disabled_servers_are_known_but_not_enabled(tmp_path: Path) -> None:
    file = write(
        tmp_path / "mcp.json", '{"mcpServers": {"a": {"command": "a"}, "b": {"command": "b", "disabled": true}}}'
    )

    settings = load_settings([file])

    assert list(settings.servers) == ["a", "b"]
    assert list(settings.enabled_servers) == ["a"]


def test_rules_and_aliases_are_read_from_the_file(tmp_path: Path) -> None:
    text = """
        [[rules]]
        tools = "tickets/*"
        requires = ["is_authenticated:tickets:write"]
        scope = "staff"

        [aliases]
        "tickets/create_issue" = ["bug report"]
    """
    settings = load_settings([write(tmp_path / "pegboard.toml", text)])

    assert settings.rules[0].requires == ("is_authenticated:tickets:write",)
    assert settings.aliases == {"tickets/create_issue": ("bug report",)}


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("kk = 3", "kk"),
        ("k = 0", "k: Input should be greater than or equal to 1"),
        ('k = "many"', "k: "),
        ("recall = 1.5", "recall"),
        ('exposure = "loud"', "exposure"),
        ('[[rules]]\nscope = "x"', "rules.0.tools"),
    ],
)
def test_an_option_that_cannot_be_used_is_named(tmp_path: Path, text: str, named: str) -> None:
    file = write(tmp_path / "pegboard.toml", text)

    with pytest.raises(ConfigError) as caught:
        load_settings([file])

    assert named in str(caught.value)
    assert "pegboard.toml" in str(caught.value)
    assert caught.value.remedy


def test_toml_that_is_not_toml_is_named_with_the_place(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"pegboard\.toml' is not TOML: .*line 2"):
        load_settings([write(tmp_path / "pegboard.toml", "k = 3\nk k")])


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    for name in ("nowhere.toml", "nowhere.json"):
        with pytest.raises(ConfigError, match=f"Cannot read .*{name}"):
            load_settings([tmp_path / name])


@pytest.mark.parametrize(
    ("name", "value"), [("PEGBOARD_K", "many"), ("PEGBOARD_RULES", "[{tools"), ("PEGBOARD_RULES", "5")]
)
def test_a_variable_that_cannot_be_used_is_an_error_of_ours(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)

    with pytest.raises(ConfigError) as caught:
        load_settings()

    assert name.removeprefix("PEGBOARD_").lower() in str(caught.value)


@pytest.mark.parametrize("option", ["port", "pins", "state_dir", "cache_dir"])
def test_a_variable_that_is_empty_is_named_and_not_the_file_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    """As a container gets them from `${NAME:-}`. An empty folder would be the one that the program was started in."""
    file = write(tmp_path / "pegboard.toml", "port = 7400\n")
    monkeypatch.setenv(f"PEGBOARD_{option.upper()}", "")

    with pytest.raises(ConfigError, match=f"^Environment variable PEGBOARD_{option.upper()}: {option}: "):
        load_settings([file])
    monkeypatch.delenv(f"PEGBOARD_{option.upper()}")
    with pytest.raises(ConfigError, match=r"^The given options: k: "):
        load_settings([file], k=0)
    with pytest.raises(ConfigError, match=r"^Configuration .*pegboard\.toml: "):
        load_settings([write(file, "k = 0\n")])


@pytest.mark.requirement("M30")
@pytest.mark.parametrize(
    "entry",
    [
        '{"env": {"TOKEN": "hush-hush"}}',
        '{"command": "x", "env": {"TOKEN": ["hush-hush"]}}',
        '{"url": "https://u:hush-hush@host/", "headers": {"Authorization": ["hush-hush"]}}',
        '{"url": "https://host/", "command": "x", "headers": {"Authorization": "hush-hush"}}',
    ],
)
def test_a_servers_secrets_are_in_no_part_of_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str
) -> None:
    def told(error: PegboardError) -> str:
        return "".join(traceback.format_exception(error)) + str(error.payload())

    file = write(tmp_path / "mcp.json", f'{{"mcpServers": {{"billing": {entry}}}}}')
    with pytest.raises(ConfigError, match="billing") as from_file:
        load_settings([file])
    monkeypatch.setenv("PEGBOARD_SERVERS", f'{{"billing": {entry}}}')
    with pytest.raises(ConfigError, match="billing") as from_environment:
        load_settings()

    assert "hush-hush" not in told(from_file.value)
    assert "hush-hush" not in told(from_environment.value)


@pytest.mark.requirement("M30")
def test_the_representation_of_settings_holds_no_secret_of_a_server(tmp_path: Path) -> None:
    file = write(
        tmp_path / "mcp.json",
        '{"mcpServers": {"a": {"url": "https://h/?k=hush-hush", "headers": {"A": "hush-hush"}},'
        ' "b": {"command": "b", "args": ["--token=hush-hush"], "env": {"T": "hush-hush"}}}}',
    )

    assert "hush-hush" not in repr(load_settings([file]))
    assert "hush-hush" not in str(load_settings([file]))


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Settings().k = 3


def test_the_encoder_can_be_named_by_its_provider_or_as_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path / "pegboard.toml", '[encoder]\nprovider = "openai"\ndimensions = 512\n')

    assert load_settings().encoder.provider == "local"
    assert (load_settings([file]).encoder.provider, load_settings([file]).encoder.dimensions) == ("openai", 512)
    monkeypatch.setenv("PEGBOARD_ENCODER", "mistral")
    assert load_settings([file]).encoder.provider == "mistral"
    monkeypatch.setenv("PEGBOARD_ENCODER", '{"provider": "openai", "api_key_env": "MY_KEY"}')
    assert load_settings([file]).encoder.api_key_env == "MY_KEY"


@pytest.mark.parametrize(
    ("section", "why"),
    [
        ('provider = "cohere"', "encoder.provider"),
        ('provider = "azure"\nbase_url = "https://x"', "needs deployment"),
        ('provider = "azure"', "needs base_url and deployment"),
        ('provider = "compatible"\nmodel = "bge"', "needs base_url"),
        ('model = "bge"', "provider 'local' has no use for model: name a provider"),
        ('provider = "openai"\ndeployment = "ours"', "deployment: only for provider 'azure'"),
        ('provider = "openai"\napi_key_env = "sk-proj-secret"', "api_key_env"),
        ('provider = "openai"\napi_key = "sk-proj-secret"', "api_key"),
        ('provider = "openai"\nbase_url = "https://user:sk-proj-secret@x/v1"', "must not contain a key"),
        ('provider = "openai"\nbase_url = "https://x/v1?key=sk-proj-secret"', "must not contain a key"),
        ('provider = "openai"\nbase_url = "ftp://x"', "must begin with http"),
        ('provider = "openai"\ntimeout = 0', "encoder.timeout"),
        ('provider = "openai"\nbatch = 5000', "encoder.batch"),
        (
            'provider = "azure"\nbase_url = "https://x"\ndeployment = "../../admin?x="',
            "encoder.deployment",
        ),
    ],
)
def test_an_encoder_that_makes_no_sense_is_refused_and_nothing_secret_shown(
    section: str, why: str, tmp_path: Path
) -> None:
    file = write(tmp_path / "pegboard.toml", f"[encoder]\n{section}\n")

    with pytest.raises(ConfigError) as raised:
        load_settings([file])

    assert why in str(raised.value)
    assert "sk-proj-secret" not in "".join(traceback.format_exception(raised.value))


def test_the_place_of_state_may_be_a_text_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = write(tmp_path / "pegboard.toml", '[state]\nurl = "redis://file/0"\ntimeout = 5\nprefix = "mine"\n')

    from_file = load_settings([file]).state
    monkeypatch.setenv("PEGBOARD_STATE", "postgresql://environment/db")
    from_environment = load_settings([file]).state
    monkeypatch.setenv("PEGBOARD_STATE", '{"url": "redis://json/0", "connections": 3}')
    from_json = load_settings().state

    assert from_file.url is not None
    assert (from_file.url.get_secret_value(), from_file.timeout, from_file.prefix) == ("redis://file/0", 5, "mine")
    assert from_environment.url is not None
    assert from_environment.url.get_secret_value() == "postgresql://environment/db"
    assert (from_environment.timeout, from_json.connections) == (2.0, 3)


def test_the_sandbox_of_all_servers_is_a_word_or_json_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEGBOARD_SANDBOX", '{"kind": "docker", "image": "x", "network": true}')
    from_json = load_settings().sandbox
    monkeypatch.setenv("PEGBOARD_SANDBOX", "bubblewrap")

    assert (from_json.kind, from_json.image, from_json.network) == ("docker", "x", True)
    assert load_settings().sandbox.kind == "bubblewrap"
    monkeypatch.setenv("PEGBOARD_SANDBOX", "firejail")
    with pytest.raises(ConfigError, match=r"sandbox\.kind"):
        load_settings()


@pytest.mark.parametrize(
    "text", ['prefix = "No!"', "timeout = 0", "connections = 0", "rest = -1", 'uri = "redis://me:s3cret@h"']
)
def test_a_place_of_state_that_cannot_be_is_refused_without_its_password(tmp_path: Path, text: str) -> None:
    file = write(tmp_path / "pegboard.toml", f'[state]\nurl = "redis://me:s3cret@box"\n{text}\n')

    with pytest.raises(ConfigError, match="state") as caught:
        load_settings([file])

    assert "s3cret" not in str(caught.value) + "".join(traceback.format_exception(caught.value))


def test_weights_and_first_values_of_statistics_are_options(tmp_path: Path) -> None:
    file = write(
        tmp_path / "pegboard.toml", "[statistics.smoothing]\nsuccess = 0.5\n[statistics.prior]\nlatency = 4.0\n"
    )

    statistics = load_settings([file]).statistics

    assert (statistics.weights.success, statistics.weights.latency) == (0.5, 0.15)
    assert (statistics.start.latency, statistics.start.success) == (4.0, 0.9)


def test_retention_is_in_days_and_0_keeps(tmp_path: Path) -> None:
    retention = load_settings(
        [write(tmp_path / "pegboard.toml", "[retention]\nspend = 30\nembeddings = 0\n")]
    ).retention

    assert (retention.spend, retention.embeddings, retention.statistics) == (30, 0, 0)
    assert (retention.definitions, retention.lessons) == (90, 90)
    with pytest.raises(ConfigError, match=r"retention\.spend"):
        load_settings(retention={"spend": -1})


@pytest.mark.parametrize("name", ["state_dir", "cache_dir"])
def test_own_folders_are_relative_to_their_file_and_may_begin_with_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.delenv(f"PEGBOARD_{name.upper()}", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    path = tmp_path / "project" / "pegboard.toml"
    path.parent.mkdir()

    def read(value: str) -> Path:
        path.write_text(f'{name} = "{value}"')
        return Path(getattr(load_settings([path]), name))

    assert read("kept") == path.parent / "kept"
    assert read("~/kept") == tmp_path / "home" / "kept"
    assert read("/kept") == Path("/kept")
    with pytest.raises(ConfigError, match="'~nosuchuser/x', but there is no such user"):
        read("~nosuchuser/x")
    monkeypatch.setenv(f"PEGBOARD_{name.upper()}", "~/kept")
    assert getattr(load_settings(), name) == tmp_path / "home" / "kept"
    monkeypatch.setenv(f"PEGBOARD_{name.upper()}", "~nosuchuser/x")
    with pytest.raises(ConfigError, match=f"{name}: there is no such user"):
        load_settings()
