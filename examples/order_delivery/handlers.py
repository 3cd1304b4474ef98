"""What the actions of order_delivery do: compare two lists and write documents.

Like all handlers here they keep nothing between two calls and name what they write for its
content, so a call may be repeated anywhere.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any

from wfsql import Result, action

COMPLETE, INCOMPLETE = 0, 1


@action("delivery.confirm")
def confirm(
    order_id: str,
    tracking: str,
    expected: list[str],
    handed_over: list[str],
    delivered_at: str,
    signed_by: str,
    work_dir: str,
) -> Result:
    """Answers `incomplete` when a parcel that was sent has not been handed over."""
    missing = [label for label in expected if label not in handed_over]
    lines = [f"order {order_id}", f"tracking {tracking}", f"{delivered_at} {signed_by}"]
    lines += [f"{'open' if label in missing else 'done'} {label}" for label in expected]
    file = _store(work_dir, "protocols", ".txt", "\n".join(lines) + "\n")
    output = {"complete": not missing, "missing_count": len(missing), "file": file}
    return Result(INCOMPLETE if missing else COMPLETE, output)


@action("courier.chase")
def chase(order_id: str, tracking: str, days: int, work_dir: str) -> dict[str, Any]:
    """Writes the letter that asks where an order is."""
    letter = f"order {order_id}\ntracking {tracking}\nnothing heard for {days} days\n"
    return {"file": _store(work_dir, "letters", ".txt", letter)}


@action("customer.notify")
def notify(to: str, subject: str, body: str, work_dir: str) -> dict[str, Any]:
    """Puts a message into the outbox, where another program would take it from."""
    message = f"To: {to}\nSubject: {subject}\n\n{body}\n"
    return {"file": _store(work_dir, "outbox", ".eml", message)}


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
