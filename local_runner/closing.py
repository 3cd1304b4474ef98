"""Cancelling what is open below a composite, and the `finally`s that still run then (R13).

`close(P, verdict)` cancels everything open below P at once, except SEQUENCEs that have a `finally`:
they are *kept* RUNNING. A kept one runs its `finally` when no kept one below it is left, and is
CANCELLED then, whatever its `finally` gave. P takes its verdict when none is left below it. Who
waits for whom is a tree: `keeper` is the nearest kept SEQUENCE above, else P, and `kept_count` how
many a keeper waits for.

    close(P) ─► kept: CANCELLING ─► FINALLY ─► release ─► keeper … ─► P takes its verdict

A SEQUENCE is closed by its own time-out too; its verdict is then a failure of its body, which
`on_error` and `finally` of its own follow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from local_runner.execution import (
    CANCELLED,
    CANCELLING,
    CLOSING,
    FINALLY,
    ON_ERROR,
    OPEN,
    Execution,
    Failure,
)

if TYPE_CHECKING:
    from local_runner.machine import Machine


def close(machine: Machine, top: Execution, failure: Failure | None) -> None:
    """Cancels what is open below `top`, which then fails with `failure` or succeeds."""
    top.phase = CLOSING
    top.failure = failure
    for kept in _cancel_below(machine, top):
        if kept.kept_count == 0 and kept.phase == CANCELLING:
            run_finally(machine, kept)
    if top.kept_count == 0:
        _take_verdict(machine, top)


def _cancel_below(machine: Machine, top: Execution) -> list[Execution]:
    """Returns the kept SEQUENCEs, oldest first."""
    top.kept_count = 0
    kept: list[Execution] = []
    # Cancelled ones are looked through: an earlier close may have left kept ones below them.
    pending = [(top, child) for child in top.children]
    while pending:
        keeper, execution = pending.pop()
        if execution.status in OPEN and execution.node.final is not None:
            kept.append(execution)
            _keep(execution, keeper)
            if execution.phase == FINALLY:
                continue
            execution.phase = CANCELLING
            keeper = execution
        elif execution.status in OPEN:
            machine.mark_cancelled(execution)
        elif execution.status != CANCELLED:
            continue
        pending.extend((keeper, child) for child in execution.children)
    return sorted(kept, key=lambda execution: execution.id)


def _keep(execution: Execution, keeper: Execution) -> None:
    keeper.kept_count += 1
    execution.keeper = keeper
    execution.kept_count = 0
    execution.is_cancelled = True
    if execution.phase != FINALLY:
        execution.failure = None


def _take_verdict(machine: Machine, top: Execution) -> None:
    if top.node.type == "SEQUENCE" and top.failure is not None:
        body_failed(machine, top, top.failure)
    else:
        settle(machine, top)


def release(machine: Machine, kept: Execution) -> None:
    """Ends a kept SEQUENCE after its `finally`, and lets its keeper go on if it was the last."""
    machine.mark_cancelled(kept)
    keeper = kept.keeper
    if keeper is None:
        return
    keeper.kept_count -= 1
    if keeper.kept_count > 0:
        return
    if keeper.phase == CANCELLING:
        run_finally(machine, keeper)
    else:
        _take_verdict(machine, keeper)


def body_failed(machine: Machine, sequence: Execution, failure: Failure) -> None:
    """Goes on after a failure of a SEQUENCE's body or `on_error`."""
    sequence.failure = failure
    handler, children = sequence.node.on_error, sequence.children
    has_run = bool(children) and children[-1].node is handler
    if handler is not None and not has_run:
        sequence.phase = ON_ERROR
        machine.activate(sequence, handler)
    else:
        run_finally(machine, sequence)


def run_finally(machine: Machine, sequence: Execution) -> None:
    """Starts the `finally` of a SEQUENCE; without one, the SEQUENCE ends."""
    if sequence.node.final is None:
        settle(machine, sequence)
        return
    sequence.phase = FINALLY
    machine.activate(sequence, sequence.node.final)


def settle(machine: Machine, execution: Execution) -> None:
    """Ends a composite by its verdict so far."""
    if execution.failure is None:
        machine.succeed(execution)
    else:
        machine.fail(execution, execution.failure)


def cancel_all_below(machine: Machine, top: Execution) -> None:
    """Cancels as an operator does: no `finally` runs, and those that run end too."""
    pending = list(top.children)
    while pending:
        execution = pending.pop()
        if execution.status in OPEN:
            machine.mark_cancelled(execution)
        elif execution.status != CANCELLED:
            continue
        pending.extend(execution.children)
