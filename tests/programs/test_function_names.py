from __future__ import annotations

import keyword

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.programs.function_names import TAKEN, function_names

NAMES = st.lists(st.text("abcé_-./ 1AZ", min_size=1, max_size=12) | st.sampled_from(["print", "class", "json"]))


def test_a_name_that_python_can_say_is_the_functions() -> None:
    assert function_names(["read_file"]) == {"read_file": "read_file"}


def test_names_that_mean_something_else_in_python_get_a_suffix() -> None:
    assert function_names(["open", "class", "json"]) == {
        "class_tool": "class",
        "json_tool": "json",
        "open_tool": "open",
    }


def test_two_tools_never_share_a_function() -> None:
    assert function_names(["a-b", "a_b", "a.b"]) == {"a_b": "a_b", "a_b_2": "a-b", "a_b_3": "a.b"}


@pytest.mark.requirement("programs.stubs")
@given(NAMES)
def test_every_tool_has_one_function_that_python_can_call_whatever_the_order(names: list[str]) -> None:
    found = function_names(names)

    assert sorted(found.values()) == sorted(set(names))
    assert all(name.isidentifier() and not keyword.iskeyword(name) and name not in TAKEN for name in found)
    assert found == function_names(reversed(names))
