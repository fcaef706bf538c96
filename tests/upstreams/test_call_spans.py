"""What spans of requests to servers tell about their targets."""

from __future__ import annotations

import pytest

from pegboard.telemetry.otel.conventions import RESOURCE
from pegboard.upstreams.call_spans import target_attributes


@pytest.mark.parametrize("uri", ["notes://[inbox]/1", "notes://[inbox/1"])
def test_an_address_that_is_no_url_is_not_told_and_fails_nothing(uri: str) -> None:
    assert target_attributes("resources/read", "", uri) == {}


def test_the_address_of_a_resource_is_told_without_its_query_and_credentials() -> None:
    assert target_attributes("resources/read", "", "https://me:secret@a.example/b?c=d") == {
        RESOURCE: "https://a.example/b"
    }
