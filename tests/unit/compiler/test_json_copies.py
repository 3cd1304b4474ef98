"""Values that Python code has given: the copy of what is fine is what writing and reading gives."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler import json_values

_numbers = st.sampled_from([0, -5, 2**63 - 1, 2**63, 10**500, 1.5, 1e300, Decimal("1.10")])
_texts = st.sampled_from(["", "a", "é", "\x01", "\x00", "\ud800", '"', "k" * 257])
_values: st.SearchStrategy[Any] = st.recursive(
    st.one_of(_numbers, _texts, st.sampled_from([None, True, False])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner),
        st.dictionaries(st.one_of(_texts, st.just(5)), inner, max_size=3),
    ),
    max_leaves=8,
)


def stored(value: Any) -> Any:
    """What a value is after it was written and read, which is what it has to be."""
    try:
        plain = json_values._plain(value)
        return json_values.loads(json_values.dumps(plain))
    except json_values.UnstorableValue as error:
        return str(error)


@settings(max_examples=500, deadline=None)
@given(_values)
def test_a_copy_is_what_writing_and_reading_gives(value: Any) -> None:
    try:
        found = json_values.from_python(value)
    except json_values.UnstorableValue as error:
        found = str(error)
    assert repr(found) == repr(stored(value))


def test_nothing_is_shared_with_what_was_given() -> None:
    given_value = {"a": [1, {"b": "c"}]}
    copy = json_values.from_python(given_value)
    given_value["a"].append(2)
    assert copy == {"a": [1, {"b": "c"}]}


def test_a_value_within_itself_is_too_deep() -> None:
    value: list[Any] = []
    value.extend([value, value])
    with pytest.raises(json_values.UnstorableValue, match="deeper than 100"):
        json_values.from_python(value)


@pytest.mark.parametrize(("depth", "is_fine"), [(100, True), (101, False)])
def test_a_value_may_be_a_hundred_levels_deep(depth: int, is_fine: bool) -> None:
    value: Any = []
    for _ in range(depth - 1):
        value = [value]
    if is_fine:
        assert json_values.from_python(value) == value
    else:
        with pytest.raises(json_values.UnstorableValue, match="deeper than 100"):
            json_values.from_python(value)


def test_what_may_be_too_long_is_written_down_to_know() -> None:
    fine = "é" * (7 * 1024 * 1024)
    assert json_values.from_python([fine]) == [fine]
    with pytest.raises(json_values.UnstorableValue, match="16 MB"):
        json_values.from_python([fine, fine])
