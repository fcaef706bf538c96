"""The guide's code runs as it stands, but for the address of the gateway."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from model_doors import Gateway

pytest.importorskip("langchain_google_genai", reason="pip install --group sdks")

GUIDE = Path(__file__).parents[3] / "docs" / "llm-gateway.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
ADDRESS = "127.0.0.1:7332"


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.split()[1])
def test_drop_in_code_runs_and_its_requests_are_filtered(
    gateway: Gateway, block: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.setenv(variable, "sk-mine")
    assert ADDRESS in block

    exec(compile(block.replace(ADDRESS, gateway.address), "guide", "exec"), {"__name__": "guide"})  # noqa: S102 - that is the test

    assert gateway.mock.refused == []
    assert gateway.noting.said
    assert all(said["x-pegboard-filter"] in ("filtered", "unchanged") for said in gateway.noting.said)
