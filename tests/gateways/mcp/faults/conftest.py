from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from faults import FAULTY, WAYS, MakeFaulty, Way
from pegboard.settings.server_spec import ServerSpec
from processes import listening


@pytest.fixture(params=WAYS, ids=lambda way: way.name)
def way(request: pytest.FixtureRequest) -> Way:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def era(way: Way) -> str:
    return way.client


@pytest.fixture
def faulty(way: Way) -> Iterator[MakeFaulty]:
    """The spec of a faulty server. One on HTTP runs from now on; one on stdio when it is started."""
    with ExitStack() as stack:

        def make(name: str = "faulty", **environment: str) -> ServerSpec:
            flags = way.environment | environment
            if not way.http:
                return ServerSpec(name=name, command=sys.executable, args=(FAULTY,), env=flags)
            with pytest.MonkeyPatch.context() as patch:
                for key, value in flags.items():
                    patch.setenv(key, value)
                url = stack.enter_context(listening(FAULTY))
            return ServerSpec(name=name, url=f"{url}/mcp")

        yield make
