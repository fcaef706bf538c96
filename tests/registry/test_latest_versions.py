from __future__ import annotations

import random

from pegboard.registry.latest_versions import latest_versions
from pegboard.registry.server_entries import ServerListing
from registry_entries import listed


def latest(*listings: ServerListing) -> list[str]:
    return [each.server.version for each in latest_versions(listings).listings]


def test_the_registrys_mark_counts_before_the_version() -> None:
    assert latest(listed(version="2.0.0"), listed(version="1.9.0", standing={"is_latest": True})) == ["1.9.0"]


def test_without_a_mark_versions_are_compared_as_numbers_and_releases_come_after_candidates() -> None:
    assert latest(listed(version="1.9.0"), listed(version="1.10.0"), listed(version="1.10.0-rc.1")) == ["1.10.0"]


def test_versions_that_are_not_semantic_are_ordered_by_publication() -> None:
    spring = listed(version="spring", standing={"publishedAt": "2025-03-01T00:00:00Z"})
    autumn = listed(version="autumn", standing={"publishedAt": "2025-10-01T00:00:00Z"})

    assert latest(autumn, spring) == ["autumn"]


def test_a_deleted_version_gives_way_to_the_one_before_and_a_deleted_server_is_gone() -> None:
    deleted = {"status": "deleted", "is_latest": True}
    found = latest_versions(
        [
            listed(version="1.0.0"),
            listed(version="2.0.0", standing=deleted),
            listed("io.example/gone", standing=deleted),
        ]
    )

    assert [(each.name, each.server.version) for each in found.listings] == [("io.example/tides", "1.0.0")]
    assert found.deleted == 2


def test_of_a_repeated_version_the_last_update_counts_and_a_deletion_more() -> None:
    old = listed(title="old", standing={"updatedAt": "2025-01-01T00:00:00Z"})
    new = listed(title="new", standing={"updatedAt": "2025-02-01T00:00:00Z"})
    gone = listed(standing={"status": "deleted"})

    assert [each.server.title for each in latest_versions([new, old]).listings] == ["new"]
    assert latest_versions([gone, new]).listings == ()
    assert latest_versions([new, old]).repeated == 1


def test_names_that_differ_in_case_are_one_server() -> None:
    assert len(latest(listed("io.example/Tides"), listed("io.example/tides", "2.0.0"))) == 1


def test_the_order_of_the_source_changes_nothing() -> None:
    given = [listed(f"io.example/s{place % 7}", f"{place}.0.0", title=str(place)) for place in range(40)]
    shuffled = random.Random(4).sample(given, len(given))

    assert latest_versions(given) == latest_versions(shuffled)
