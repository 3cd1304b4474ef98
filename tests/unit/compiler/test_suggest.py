"""The hint "did you mean …": good for few names and for many, and cheap for very many."""

from __future__ import annotations

import time

import pytest

from compiler.suggest import did_you_mean


def others(count: int) -> list[str]:
    return [f"other_thing_{number}" for number in range(count)]


@pytest.mark.parametrize("count", [0, 5, 100, 2_000])
@pytest.mark.parametrize("typed", ["parcle", "parcl", "parcels", "partel", "PARCEL"])
def test_a_slip_of_one_letter_is_mended_among_any_number_of_names(count: int, typed: str) -> None:
    assert did_you_mean(typed, [*others(count), "parcel"]) == 'did you mean "parcel"?'


@pytest.mark.parametrize("count", [0, 5, 100, 500])
def test_two_slips_are_mended_among_some_names(count: int) -> None:
    names = [*others(count), "stock_reserve"]
    assert did_you_mean("stok_resrve", names) == 'did you mean "stock_reserve"?'


def test_the_spelling_of_the_candidate_is_kept() -> None:
    assert did_you_mean("orderid", ["orderId"]) == 'did you mean "orderId"?'


def test_of_two_that_fold_alike_the_first_is_named() -> None:
    assert did_you_mean("SKU", ["Sku", "sku"]) == 'did you mean "Sku"?'


def test_few_names_are_listed_when_none_is_near() -> None:
    assert did_you_mean("zzz", ["one", "two", "one"]) == "known here: one, two"


def test_many_names_are_not_listed() -> None:
    assert did_you_mean("zzz", others(9)) is None


def test_nothing_known_gives_no_hint() -> None:
    assert did_you_mean("zzz", []) is None


def test_thousands_of_unknown_names_beside_thousands_of_known_ones_take_little_time() -> None:
    known = [f"name_{number}_of_thing" for number in range(2_500)]
    began = time.process_time()
    for number in range(500):
        did_you_mean(f"nmae_{number}_fothing", known)
    assert time.process_time() - began < 2.0
