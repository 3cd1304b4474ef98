"""What the engines of this version run, and what the language has but they do not yet.

One table: `ATTRIBUTES` lists the attributes of every statement, `NOT_YET` those of them, and the
other forms, that are refused by name (WF090). Lifting one means deleting its line.
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

NOT_YET: Mapping[tuple[str, str], str] = {
    ("action", "timeout"): "`timeout` on an action",
    ("action", "retry"): "`retry`",
    ("action", "delay"): "`delay`",
    **{("action", name): f"`{name}` on an action" for name in DISPATCH},
    ("sequence", "timeout"): "`timeout` on a sequence",
    ("sequence", "on_error"): "`on_error`",
    ("sequence", "finally"): "`finally`",
    ("parallel", "join"): "`join`",
    ("parallel", "keep_going"): "`keep_going`",
    ("parallel", "timeout"): "`timeout` on a parallel",
    ("repeat", "timeout"): "`timeout` on a repeat",
    ("repeat", "keep"): "`keep`",
    ("while", "timeout"): "`timeout` on a while",
    ("while", "keep"): "`keep`",
    ("foreach", "batch"): "`batch`",
    ("foreach", "tolerate"): "`tolerate`",
    ("foreach", "reuse"): "`reuse`",
    ("foreach", "keep_going"): "`keep_going`",
    ("foreach", "timeout"): "`timeout` on a foreach",
    ("wait_event", "timeout"): "`timeout` on a wait_event",
    ("workflow", "timeout"): "`timeout` on a workflow",
    ("workflow", "on event"): "`on event`",
    ("file", "import"): "`import`",
    ("statement", "sleep"): "`sleep`",
}

CATALOG_NOT_YET: Mapping[str, str] = {
    "timeout": "`timeout` in a catalog",
    "retry": "`retry` in a catalog",
    "dispatch": "`dispatch` in a catalog",
    "sensitive": "`sensitive` in a catalog",
}
