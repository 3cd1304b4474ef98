"""What `wf worker` claims: the capabilities that its handlers can do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from local_runner.handlers import Handlers
from wfsql.cli.main import CommandError
from wfsql.cli.output import did_you_mean, say

_SLIP = 0.85


def choose_capabilities(
    actions: Mapping[str, str], found: Handlers, wanted: Sequence[str]
) -> list[str]:
    """Returns what to claim, and refuses what would bring a task that nobody here can do.

    Args:
      actions: every deployed action with the capability it asks for.
      wanted: the capabilities that were named; none means those of the handlers.
    """
    chosen = list(wanted) or sorted({actions[name] for name in found.names if name in actions})
    if not chosen:
        raise CommandError(
            f"none of the handlers ({', '.join(found.names)}) is for an action in the database"
            f" ({', '.join(sorted(actions)) or 'it has none'})",
            _slips(found, actions)
            or "deploy a workflow first, or name what to claim with --capability",
        )
    _warn_of_unknown(chosen, set(actions.values()))
    everything = "*" in chosen
    missing = found.missing(
        name for name, capability in actions.items() if everything or capability in chosen
    )
    if missing:
        named = ", ".join(f"{name} ({actions[name]})" for name in missing)
        raise CommandError(
            f"no handler for these actions (and their capability): {named}",
            _slips(found, {name: actions[name] for name in missing})
            or "add them to a --handlers module, or claim other capabilities with --capability",
        )
    return chosen


def _warn_of_unknown(chosen: list[str], known: set[str]) -> None:
    for capability in chosen:
        if capability != "*" and capability not in known:
            near = did_you_mean(capability, known)
            say(
                f'warning: no action in the database asks for the capability "{capability}"'
                + (f"; {near}" if near else "")
            )


def _slips(found: Handlers, actions: Mapping[str, str]) -> str | None:
    """Returns a hint that sets handlers without an action against actions of a like name."""
    # Actions of one subject begin alike: only what differs in a letter or two is a slip.
    free = [name for name in actions if name not in found.names]
    pairs = ((name, did_you_mean(name, free, _SLIP)) for name in found.names if name not in actions)
    slips = [f'there is a handler for "{name}"; {near}' for name, near in pairs if near]
    return " ".join(slips) or None
