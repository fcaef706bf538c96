from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.retrieval.encoders.providers import PROVIDERS
from pegboard.retrieval.encoders.service import Service


class Characters:
    """Each character is a token."""

    def count(self, texts: Sequence[str]) -> list[int]:
        return list(map(len, texts))

    def cut(self, text: str, limit: int) -> str:
        return text[:limit]


def service(name: str = "openai", **changes: object) -> Service:
    fields = {"base_url": "https://x/v1", "model": "m", "window": 100, "batch": 10} | changes
    return Service(provider=PROVIDERS[name], **fields)  # type: ignore[arg-type]


@pytest.mark.requirement("P24")
@given(
    texts=st.lists(st.text("ab", max_size=30), max_size=30),
    batch=st.integers(1, 8),
    tokens=st.integers(20, 60),
    window=st.integers(16, 20),
)
def test_batches_are_the_texts_in_their_order_cut_and_within_every_limit(
    texts: list[str], batch: int, tokens: int, window: int
) -> None:
    asked = service(batch=batch, window=window)
    asked = replace(asked, provider=replace(asked.provider, tokens=tokens))

    batches = list(asked.batches(texts, Characters()))

    assert [text for each in batches for text in each] == [text[:window] or " " for text in texts]
    assert all(0 < len(each) <= batch for each in batches)
    assert all(sum(map(len, each)) <= tokens for each in batches)


@pytest.mark.requirement("003.cache-key")
def test_a_space_is_named_by_all_that_makes_another_model_of_a_name() -> None:
    usual = service(base_url="https://api.openai.com/v1/")
    others = [
        service(),
        service(base_url="https://y/v1"),
        service("mistral"),
        service(model="n"),
        service(dimensions=256),
        service(deployment="ours"),
    ]

    assert usual.space == ("openai", "m")
    assert len({usual.space, *(other.space for other in others)}) == 7


def test_azure_is_asked_at_the_deployment_and_in_its_version() -> None:
    azure = service("azure", base_url="https://us.openai.azure.com/", deployment="small", model="")

    assert azure.url == "https://us.openai.azure.com/openai/deployments/small/embeddings?api-version=2024-10-21"
    assert replace(azure, api_version="2025-04-01-preview").url.endswith("?api-version=2025-04-01-preview")
    assert azure.headers("k")["api-key"] == "k"
    assert "Authorization" not in azure.headers("k")
