"""What the actions of order_fulfilment do: look up, sum, and write documents.

Every handler is a plain function of its input. It keeps nothing between two calls, so any worker
process may take any call. What it writes is named for its content and moved into place in one
step, so a call that is repeated, or made by two workers at once, leaves the same files.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from wfsql import Result, action

PRICE_LIST = Path(__file__).with_name("price_list.json")
OK, SHORT, UNKNOWN_SKU = 0, 1, 2
TOO_HEAVY = -2
VAN_TAKES_GRAMS = 30_000


@action("inventory.reserve")
def reserve(order_id: str, items: list[dict[str, Any]], work_dir: str) -> Result:
    """Answers `short` or `unknown_sku` with the lines at fault, else reserves and sums."""
    prices = _price_list()
    unknown = [item["sku"] for item in items if item["sku"] not in prices]
    if unknown:
        lines = [f"{sku}: not in the price list" for sku in unknown]
        return Result(UNKNOWN_SKU, {"total_cents": 0, "missing": lines})
    missing = [
        f"{sku}: {wanted} wanted, {prices[sku]['on_hand']} on hand"
        for sku, wanted in sorted(_quantities(items).items())
        if wanted > prices[sku]["on_hand"]
    ]
    if missing:
        return Result(SHORT, {"total_cents": 0, "missing": missing})
    total_cents = sum(prices[item["sku"]]["price_cents"] * item["qty"] for item in items)
    reservation = {"order_id": order_id, "items": items}
    name = _store(work_dir, "reservations", ".json", _json_text(reservation))
    return Result(OK, {"total_cents": total_cents, "reservation": name, "missing": []})


@action("payment.charge")
def charge(
    order_id: str, card: dict[str, Any], amount_cents: int, attempt: int, work_dir: str
) -> dict[str, Any]:
    """Charges the card when its limit allows the amount; the attempt stands on the receipt."""
    if amount_cents > card["limit_cents"]:
        return {"ok": False, "receipt": None}
    receipt = (
        f"order {order_id}\ncard {card['token']}\nattempt {attempt}\namount_cents {amount_cents}\n"
    )
    return {"ok": True, "receipt": _store(work_dir, "receipts", ".txt", receipt)}


@action("warehouse.pack")
def pack(sku: str, qty: int, label: str, work_dir: str) -> dict[str, Any]:
    """Writes the packing slip of one parcel."""
    article = _price_list()[sku]
    weight_grams = article["weight_grams"] * qty
    slip = f"{label}\n{qty} x {sku} {article['name']}\n{weight_grams} g\n"
    return {
        "parcel": {
            "label": label,
            "weight_grams": weight_grams,
            "slip": _store(work_dir, "slips", ".txt", slip),
        }
    }


@action("courier.book")
def book(order_id: str, parcels: list[dict[str, Any]], express: bool, work_dir: str) -> Result:
    """Writes the way bill; the tracking number is read off its content."""
    weight_grams = sum(parcel["weight_grams"] for parcel in parcels)
    if weight_grams > VAN_TAKES_GRAMS:
        message = f"{weight_grams} g are more than the {VAN_TAKES_GRAMS} g that the van takes"
        return Result(TOO_HEAVY, message=message)
    lines = [f"order {order_id}", "express" if express else "standard"]
    lines += [f"{parcel['label']} {parcel['weight_grams']} g" for parcel in parcels]
    lines.append(f"together {weight_grams} g")
    name = _store(work_dir, "way_bills", ".txt", "\n".join(lines) + "\n")
    tracking = f"TR-{Path(name).stem[:12].upper()}"
    return Result(OK, {"tracking": tracking, "weight_grams": weight_grams})


@action("billing.invoice")
def invoice(
    order_id: str, items: list[dict[str, Any]], total_cents: int, receipt: str, work_dir: str
) -> dict[str, Any]:
    """Writes the invoice, and refuses when its lines do not add up to what was charged."""
    prices = _price_list()
    amounts = [prices[item["sku"]]["price_cents"] * item["qty"] for item in items]
    if sum(amounts) != total_cents:
        raise ValueError(f"the lines add up to {sum(amounts)}, not to {total_cents}")
    lines = [f"Invoice for order {order_id}", f"receipt {receipt}"]
    for item, amount in zip(items, amounts, strict=True):
        lines.append(f"{item['qty']:>4} x {prices[item['sku']]['name']:<20} {_euros(amount):>10}")
    lines.append(f"{'total':<27} {_euros(total_cents):>10}")
    name = _store(work_dir, "invoices", ".txt", "\n".join(lines) + "\n")
    return {"number": f"I-{order_id}-{Path(name).stem[:6]}", "file": name}


@action("mail.send")
def send_mail(to: str, subject: str, lines: list[str], work_dir: str) -> dict[str, Any]:
    """Puts a message into the outbox, where another program would take it from."""
    message = "\n".join([f"To: {to}", f"Subject: {subject}", "", *lines]) + "\n"
    return {"file": _store(work_dir, "outbox", ".eml", message)}


def _price_list() -> dict[str, dict[str, Any]]:
    document: dict[str, dict[str, Any]] = json.loads(PRICE_LIST.read_text(encoding="utf-8"))
    return document


def _quantities(items: list[dict[str, Any]]) -> dict[str, int]:
    wanted: dict[str, int] = {}
    for item in items:
        wanted[item["sku"]] = wanted.get(item["sku"], 0) + item["qty"]
    return wanted


def _euros(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02d}"


def _json_text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, indent=2) + "\n"


def _store(work_dir: str, folder: str, suffix: str, text: str) -> str:
    """Writes `text` under a name made of its hash; returns the name within `work_dir`."""
    content = text.encode("utf-8")
    name = f"{folder}/{hashlib.sha256(content).hexdigest()[:24]}{suffix}"
    target = _place(work_dir) / name
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=".new-")
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    os.replace(temporary, target)  # a reader sees the whole file or none
    return name


def _place(work_dir: str) -> Path:
    """A relative `work_dir` lies in WFSQL_WORK, or else in the system's folder for such files."""
    default = Path(tempfile.gettempdir()) / "wfsql-examples"
    return Path(os.environ.get("WFSQL_WORK", default)) / work_dir
