"""What the language has, and what of it the engines of this version do not run yet.

One table: `ATTRIBUTES` lists the attributes of every statement, `NOT_YET` those of them, and the
other forms, that are refused by name (WF090). Lifting one means deleting its line. At present
every engine is to run all of the language, so both tables of refusals are empty.
"""

from __future__ import annotations

from collections.abc import Mapping

DISPATCH = (
    "max_per_worker",
    "exclusive_worker",
    "affinity_key_field",
    "prefer_previous_worker",
    "prefer_continue_group",
    "require_previous_worker",
    "max_concurrent",
    "rate_per_minute",
    "max_deliveries",
    "idempotent",
)

ATTRIBUTES: Mapping[str, tuple[str, ...]] = {
    "action": ("timeout", "retry", "lease", "priority", "delay", *DISPATCH),
    "sequence": ("timeout",),
    "parallel": ("limit", "join", "keep_going", "timeout"),
    "repeat": ("timeout", "keep"),
    "while": ("max", "timeout", "keep"),
    "foreach": ("parallel", "batch", "tolerate", "reuse", "keep_going", "timeout"),
    "wait_event": (),
    "workflow": ("timeout",),
}

NOT_YET: Mapping[tuple[str, str], str] = {}
"""By kind of statement and attribute: what a workflow may not hold, in the words of the message."""

CATALOG_NOT_YET: Mapping[str, str] = {}
"""By field: what a catalog may not hold."""
