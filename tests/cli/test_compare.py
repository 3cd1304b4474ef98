"""Differences between trace documents."""

from __future__ import annotations

from decimal import Decimal

from wfsql.compare import differences


def test_equal_documents_have_no_difference() -> None:
    assert differences({"a": [1, {"b": None}]}, {"a": [1, {"b": None}]}) == []


def test_a_differing_value_is_named_with_its_place() -> None:
    assert differences({"a": [1, 2]}, {"a": [1, 3]}) == [("a[1]", "2", "3")]


def test_numbers_differ_by_their_normal_form() -> None:
    assert differences({"a": 1}, {"a": Decimal("1.0")}) == [("a", "1", "1.0")]


def test_true_is_not_one() -> None:
    assert differences(True, 1) == [("", "true", "1")]


def test_an_absent_key_is_a_difference_from_null() -> None:
    assert differences({"a": None}, {}) == [("a", "null", "(absent)")]


def test_a_missing_node_is_one_difference() -> None:
    left = {"nodes": [{"path": "w", "x": 1}, {"path": "w/a", "x": 2}]}
    right = {"nodes": [{"path": "w", "x": 1}]}
    assert differences(left, right) == [("nodes[w/a]", '{"path":"w/a","x":2}', "(absent)")]


def test_nodes_in_another_order_are_a_difference() -> None:
    rows = [{"path": "w"}, {"path": "w/a"}]
    found = differences({"nodes": rows}, {"nodes": rows[::-1]})
    assert next(place for place, _left, _right in found).startswith("nodes: order of paths")
