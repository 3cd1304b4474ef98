"""Advice about the context that a workflow is started with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from compiler import json_values
from wfsql.cli.output import did_you_mean

if TYPE_CHECKING:
    from runtime_sql.connection import InputRow


def unknown_keys(context: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """Returns a line for each key that is no input's name. It is allowed, and often a slip."""
    return [
        f'no input is called "{key}"; {_meant(key, names, context)}'
        for key in context
        if key not in names and key != "forceRerun"
    ]


def _meant(key: str, names: Sequence[str], context: Mapping[str, Any]) -> str:
    free = [name for name in names if name not in context]
    near = did_you_mean(key, free)
    if near is not None:
        return near
    return f"the inputs are: {', '.join(names)}" if names else "the workflow takes no input"


def right_form(context: Mapping[str, Any], inputs: Sequence[InputRow]) -> str | None:
    """Returns how to give the inputs that are needed; None when none of them is missing."""
    missing = [row.name for row in inputs if row.required and row.name not in context]
    if not missing:
        return None
    needed = [row.name for row in inputs if row.required]
    pairs = [f"{json_values.dumps(n)}: {_shown(context, n)}" for n in needed]
    return f"give it as --context '{{{', '.join(pairs)}}}'"


def _shown(context: Mapping[str, Any], name: str) -> str:
    if name not in context:
        return "…"
    text = json_values.dumps(context[name])
    return text if len(text) <= 20 else "…"
