"""Writes src/pegboard/model_prices.toml from the price list that LiteLLM maintains (MIT licence), which names the
provider's page for each model:

    pip download --no-deps litellm && unzip litellm-*.whl
    python scripts/model_prices.py litellm/model_prices_and_context_window_backup.json --version 1.110.2

Taken are the models of the providers behind the LLM gateway's wire formats, by exact name.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

OUT = Path(__file__).parents[1] / "src" / "pegboard" / "model_prices.toml"
PAGES = {
    "openai": "https://developers.openai.com/api/docs/pricing",
    "anthropic": "https://platform.claude.com/docs/en/about-claude/pricing",
    "gemini": "https://ai.google.dev/gemini-api/docs/pricing",
    "bedrock_converse": "https://aws.amazon.com/bedrock/pricing/",
    "cohere_chat": "https://cohere.com/pricing",
    "mistral": "https://mistral.ai/pricing",
    "xai": "https://docs.x.ai/docs/models",
    "deepseek": "https://api-docs.deepseek.com/quick_start/pricing",
}
"""Providers, the earlier first where two sell a model of one name, and the page for rows that name none."""
MODES = ("chat", "responses")
DISPUTED = frozenset(
    {
        *("magistral-medium-latest", "magistral-small-latest", "mistral-medium", "mistral-large-latest"),
        *("open-mistral-nemo", "grok-code-fast", "grok-code-fast-1", "grok-code-fast-1-0825", "deepseek-chat"),
    }
)
"""Models for which another list, genai-prices 0.2.3, has another price: they are left out, as none is guessed."""
FIELDS = {
    "input": "input_cost_per_token",
    "output": "output_cost_per_token",
    "cached": "cache_read_input_token_cost",
    "written": "cache_creation_input_token_cost",
}
ABOVE = re.compile(r"input_cost_per_token_above_(\d+)k_tokens")
Row = tuple[tuple[str, str], ...]


def amounts(entry: Mapping[str, Any], suffix: str = "") -> dict[str, str]:
    """US dollars per million tokens."""
    found = {name: entry.get(f"{field}{suffix}") for name, field in FIELDS.items()}
    return {name: number(value) for name, value in found.items() if value is not None}


def number(per_token: Any) -> str:
    return f"{(Decimal(str(per_token)) * 1_000_000).normalize():f}"


def row(entry: Mapping[str, Any], page: str) -> Row | None:
    """The members of a row; None without prices of input and output."""
    plain = amounts(entry)
    if "input" not in plain or "output" not in plain or Decimal(plain["input"]) == 0:
        return None
    found = dict(plain)
    steps = [int(match[1]) for name in entry if (match := ABOVE.fullmatch(name))]
    if steps:
        beyond = amounts(entry, f"_above_{min(steps)}k_tokens")
        whole = plain | beyond
        found["above"] = str(min(steps) * 1_000)
        found["beyond"] = "{ " + ", ".join(f"{name} = {value}" for name, value in whole.items()) + " }"
    source = entry.get("source", "")
    found["source"] = json.dumps(source if source.startswith("https://") and "subscriptions" not in source else page)
    return tuple(found.items())


def rows(table: Mapping[str, Mapping[str, Any]]) -> dict[Row, list[str]]:
    seen, found = set[str](), defaultdict[Row, list[str]](list)
    for provider, page in PAGES.items():
        for name, entry in table.items():
            model = name.removeprefix(f"{provider.removesuffix('_chat')}/").lower()
            if (
                entry.get("litellm_provider") != provider
                or entry.get("mode") not in MODES
                or "/" in model
                or model in DISPUTED
            ):
                continue
            made = row(entry, page)
            if made is not None and model not in seen:
                seen.add(model)
                found[made].append(model)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", type=Path)
    parser.add_argument("--version", required=True, help="version of LiteLLM")
    given = parser.parse_args()
    lines = [
        f"# List prices of models, US dollars per million tokens, from the price list of LiteLLM {given.version}",
        "# (MIT, https://github.com/BerriAI/litellm), which names the sources. Written by scripts/model_prices.py.",
        "# cached: read from the provider's prompt cache; written: written to it (for the shorter lifetime).",
        "# beyond: the prices of a request whose prompt has more than `above` tokens.",
        "",
        f"checked = {datetime.now(UTC).date()}",
    ]
    for members, models in rows(json.loads(given.table.read_text("utf-8"))).items():
        names = ", ".join(json.dumps(each) for each in sorted(models))
        lines += ["", "[[row]]", f"models = [{names}]", *(f"{name} = {value}" for name, value in members)]
    OUT.write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main()
