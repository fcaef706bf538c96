"""One gateway with the encoder of the package before mock providers, for every test that only asks it something."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from model_doors import Gateway, gateway_beside

NOTHING_IS_RELEVANT = {"profile": "semantic", "threshold": 0.99}


@pytest.fixture(scope="session")
def shared_gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """Two tools a request; models called `picky-…` find none relevant, `off-…` are not filtered."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PEGBOARD_STATE_DIR", str(tmp_path_factory.mktemp("state")))
        environment.setenv("PEGBOARD_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        rules = [
            {"model": "picky-or-all", **NOTHING_IS_RELEVANT, "when_none": "all"},
            {"model": "picky-or-none", **NOTHING_IS_RELEVANT, "when_none": "none"},
            {"model": "off-*", "filter": False},
        ]
        with gateway_beside(policy={"k": 2}, rules=rules) as found:
            yield found


@pytest.fixture
def gateway(shared_gateway: Gateway) -> Gateway:
    """With nothing noted yet."""
    shared_gateway.mock.received.clear()
    shared_gateway.mock.refused.clear()
    shared_gateway.noting.said.clear()
    return shared_gateway
