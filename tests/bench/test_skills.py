"""Public skills: what is written for the measurement, how places become shares, what the section says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from pegboard_bench.sets.recipe import Files, Repository
from pegboard_bench.skills.__main__ import figures_of, rank, searched
from pegboard_bench.skills.page import section
from pegboard_bench.skills.sources import Request, requests, unknown, without_bodies, write_skills

SKILL = "---\nname: {0}\ndescription: About {0}\n---\n\nHow to mend a {1}.\n"
GIVEN = {
    "plugins/tools/skills/fences/SKILL.md": SKILL.format("fences", "gate"),
    "plugins/tools/skills/fences/other.md": "no skill",
    "skills/boats/SKILL.md": SKILL.format("boats", "keel"),
    "skills/pdf/SKILL.md": SKILL.format("pdf", "file"),
}


class GivenFiles(Files):
    """In place of a repository's."""

    def paths(self, folder: str) -> list[str]:
        return sorted(path for path in GIVEN if path.startswith(folder))

    def contents(self, paths: Sequence[str]) -> list[bytes]:
        return [GIVEN[path].encode() for path in paths]


class GivenRepositories:
    def open(self, repository: Repository) -> Files:
        return GivenFiles(repository)


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    whole, heads = tmp_path / "whole", tmp_path / "heads"
    whole.mkdir()
    heads.mkdir()
    assert write_skills(whole, GivenRepositories()) == ["boats", "fences"]  # type: ignore[arg-type]
    without_bodies(whole, heads)
    return whole, heads


def test_skills_that_are_not_open_are_left_out_and_bodies_can_be(folders: tuple[Path, Path]) -> None:
    whole, heads = folders

    assert "keel" in (whole / "boats" / "SKILL.md").read_text()
    assert (heads / "boats" / "SKILL.md").read_text() == "---\nname: boats\ndescription: About boats\n---\n"


def test_words_of_a_body_are_found_only_where_it_is(folders: tuple[Path, Path]) -> None:
    asked = [Request(text="the keel", skills=("boats",))]

    assert [searched(folder, asked) for folder in folders] == [[["boats"]], [[]]]


def test_places_become_shares_and_a_section() -> None:
    asked = Request(text="mend the keel", skills=("boats", "ships"))
    places = {"bodies": [rank(["fences", "ships"], asked), 1], "descriptions": [rank([], asked), 1]}
    figures = figures_of(places)
    said = section(
        {
            "command": "make bench-skills",
            "date": "2026-11-25",
            "commit": "0" * 40,
            "machine": {"cores": 2, "cpu": "some", "python": "3.11"},
            "figures": figures | {"requests": 2, "skills": 2, "nothing/bodies": 0, "nothing/descriptions": 1},
            "tables": {
                "sources": [{"origin": "somewhere", "licence": "MIT"}],
                "missed": {
                    "bodies": [],
                    "descriptions": [{"request": asked.text, "skills": list(asked.skills), "rank": None}],
                },
            },
        }
    )

    assert places == {"bodies": [2, 1], "descriptions": [None, 1]}
    assert (figures["recall@1/bodies"], figures["recall@3/bodies"], figures["mrr/bodies"]) == (0.5, 1.0, 0.75)
    assert (figures["recall@5/descriptions"], figures["gain@5"]) == (0.5, 0.5)
    assert "| mend the keel | `boats`, `ships` | first five | none |" in said
    assert "| name, description and body | 50.0% | 100.0% |" in said


def test_requests_are_each_written_once_and_labels_are_checked() -> None:
    asked = requests()

    assert len({request.text for request in asked}) == len(asked) >= 60
    assert unknown([Request(text="", skills=("a", "b"))], ["a"]) == {"b"}
