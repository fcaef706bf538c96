"""The options of an entry's `oauth`, and their reference."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from pegboard.settings.oauth_settings import OAuthSettings

DOCS = Path(__file__).parents[2] / "docs"


def test_the_reference_has_a_row_for_each_option_and_no_others() -> None:
    section = (DOCS / "configuration.md").read_text("utf-8").partition("\n## Signing in\n")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    assert {name for row in rows for name in re.findall("`([a-z_]+)`", row)} == set(OAuthSettings.model_fields)


def test_the_examples_in_the_documentation_can_be_read() -> None:
    found = []
    for page in ("configuration.md", "sign-in.md"):
        for block in re.findall(r"```toml\n(.*?)```", (DOCS / page).read_text("utf-8"), re.DOTALL):
            servers = tomllib.loads(block).get("servers", {}).values()
            found += [OAuthSettings.model_validate(each["oauth"]) for each in servers if "oauth" in each]
    grants = {"authorization_code", "client_credentials", "token_exchange", "id_jag"}
    assert {each.grant for each in found} == grants
