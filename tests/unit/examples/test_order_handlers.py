"""The handlers of order_fulfilment and order_delivery, called directly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

Load = Callable[[str], ModuleType]


@pytest.fixture
def order(load_handlers: Load) -> ModuleType:
    return load_handlers("order_fulfilment")


@pytest.fixture
def delivery(load_handlers: Load) -> ModuleType:
    return load_handlers("order_delivery")


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def item(sku: str, qty: int) -> dict[str, Any]:
    return {"sku": sku, "qty": qty}


def test_reserve_sums_price_times_quantity(order: ModuleType) -> None:
    result = order.reserve("A1", [item("S1", 3), item("S2", 1)], "w")
    assert (result.code, result.output["total_cents"]) == (0, 3 * 650 + 2400)


def test_reserve_answers_short_with_the_lines_at_fault(order: ModuleType) -> None:
    result = order.reserve("A1", [item("S1", 1), item("S4", 2)], "w")
    assert (result.code, result.output["missing"]) == (1, ["S4: 2 wanted, 0 on hand"])


def test_reserve_adds_up_lines_of_one_article(order: ModuleType) -> None:
    result = order.reserve("A1", [item("S3", 4), item("S3", 4)], "w")
    assert (result.code, result.output["missing"]) == (1, ["S3: 8 wanted, 7 on hand"])


def test_reserve_answers_unknown_sku(order: ModuleType) -> None:
    result = order.reserve("A1", [item("S9", 1)], "w")
    assert (result.code, result.output["missing"]) == (2, ["S9: not in the price list"])


def test_reserve_of_a_short_order_writes_nothing(order: ModuleType, work: Path) -> None:
    order.reserve("A1", [item("S4", 1)], "w")
    assert files_below(work) == []


def test_charge_declines_an_amount_over_the_limit(order: ModuleType) -> None:
    card = {"token": "c", "limit_cents": 99}
    assert order.charge("A1", card, 100, 1, "w") == {"ok": False, "receipt": None}


def test_charge_up_to_the_limit_leaves_a_receipt(order: ModuleType, work: Path) -> None:
    answer = order.charge("A1", {"token": "c", "limit_cents": 100}, 100, 2, "w")
    receipt = (work / "w" / answer["receipt"]).read_text(encoding="utf-8")
    assert (answer["ok"], receipt) == (True, "order A1\ncard c\nattempt 2\namount_cents 100\n")


def test_pack_weighs_the_parcel(order: ModuleType) -> None:
    parcel = order.pack("S3", 2, "A1-0", "w")["parcel"]
    assert (parcel["label"], parcel["weight_grams"]) == ("A1-0", 820)


def test_book_sums_the_weights(order: ModuleType) -> None:
    parcels = [order.pack("S1", 1, "a", "w")["parcel"], order.pack("S2", 2, "b", "w")["parcel"]]
    assert order.book("A1", parcels, False, "w").output["weight_grams"] == 180 + 190


def test_book_refuses_what_is_too_heavy_for_the_van(order: ModuleType) -> None:
    result = order.book("A1", [{"label": "a", "weight_grams": 30_001}], False, "w")
    message = "30001 g are more than the 30000 g that the van takes"
    assert (result.code, result.message) == (-2, message)


def test_book_takes_what_the_van_just_takes(order: ModuleType) -> None:
    assert order.book("A1", [{"label": "a", "weight_grams": 30_000}], False, "w").code == 0


def test_invoice_refuses_a_total_that_its_lines_do_not_give(order: ModuleType) -> None:
    with pytest.raises(ValueError, match="the lines add up to 650, not to 651"):
        order.invoice("A1", [item("S1", 1)], 651, "r", "w")


def test_invoice_prints_lines_and_total(order: ModuleType, work: Path) -> None:
    answer = order.invoice("A1", [item("S1", 2)], 1300, "r", "w")
    text = (work / "w" / answer["file"]).read_text(encoding="utf-8")
    assert text.splitlines()[2:] == [
        "   2 x Field notebook            13.00",
        "total                            13.00",
    ]


def test_a_repeated_call_leaves_the_same_files(order: ModuleType, work: Path) -> None:
    first = order.send_mail("a@example.com", "s", ["l"], "w")
    before = files_below(work)
    assert (order.send_mail("a@example.com", "s", ["l"], "w"), files_below(work)) == (first, before)


def test_other_content_is_another_file(order: ModuleType, work: Path) -> None:
    order.send_mail("a@example.com", "one", [], "w")
    order.send_mail("a@example.com", "two", [], "w")
    assert len(files_below(work)) == 2


def test_confirm_answers_complete(delivery: ModuleType) -> None:
    result = delivery.confirm("A1", "T", ["a", "b"], ["b", "a"], "now", "me", "w")
    assert (result.code, result.output["complete"]) == (0, True)


def test_confirm_counts_what_is_missing(delivery: ModuleType) -> None:
    result = delivery.confirm("A1", "T", ["a", "b", "c"], ["b"], "now", "me", "w")
    assert (result.code, result.output["missing_count"]) == (1, 2)


def test_the_protocol_marks_what_is_open(delivery: ModuleType, work: Path) -> None:
    result = delivery.confirm("A1", "T", ["a", "b"], ["b"], "now", "me", "w")
    text = (work / "w" / result.output["file"]).read_text(encoding="utf-8")
    assert text.splitlines()[-2:] == ["open a", "done b"]


def test_chase_says_for_how_long_nothing_was_heard(delivery: ModuleType, work: Path) -> None:
    answer = delivery.chase("A1", "T", 6, "w")
    text = (work / "w" / answer["file"]).read_text(encoding="utf-8")
    assert text.splitlines()[-1] == "nothing heard for 6 days"
