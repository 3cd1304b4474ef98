"""Random graphs of all nodes and attributes, under random schedules: what must always hold.

Each seed makes one graph and one schedule (claims, results, time-outs in any order). The traces of
the engines are compared elsewhere; here stand the rules that one trace has to keep by itself.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from local_runner.execution import OPEN, Execution
from local_runner.machine import Machine
from local_runner.trace import trace_document
from tests.unit.local_runner.graphs import (
    Part,
    action,
    fail,
    foreach,
    guarded,
    if_,
    lit,
    parallel,
    repeat,
    sleep,
    workflow,
)
from tests.unit.local_runner.play import Player

SEEDS = range(300)


class Maker:
    """Makes a graph from a seed."""

    def __init__(self, random: random.Random) -> None:
        self.random = random
        self.count = 0

    def key(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def maybe(self, value: Any, chance: float = 0.3) -> Any:
        return value if self.random.random() < chance else None

    def given(self, **attributes: Any) -> dict[str, Any]:
        return {name: value for name, value in attributes.items() if value is not None}

    def body(self, depth: int) -> list[Part]:
        return [self.part(depth - 1) for _ in range(self.random.randint(1, 3))]

    def timeout(self) -> int | None:
        return self.maybe(self.random.choice([0, 5, 20, 50]), 0.2)

    def part(self, depth: int) -> Part:
        kinds = ["action", "action", "fail", "sleep"]
        if depth > 0:
            kinds += ["guarded", "guarded", "parallel", "parallel", "foreach", "repeat", "if"]
        part: Part = getattr(self, f"make_{self.random.choice(kinds)}")(depth)
        return part

    def make_action(self, _depth: int) -> Part:
        retry = {
            "limit": self.random.randint(1, 2),
            "backoff_ms": self.random.choice([0, 10]),
            "on": self.random.choice([["any"], [-2], [10013]]),
        }
        more = self.given(
            retry=self.maybe(retry), delay_ms=self.maybe(10), timeout_ms=self.timeout()
        )
        return action(self.key("a"), priority=self.random.randint(0, 1), **more)

    def make_fail(self, _depth: int) -> Part:
        return fail(self.key("f"), -self.random.randint(1, 3), lit("no"))

    def make_sleep(self, _depth: int) -> Part:
        return sleep(self.key("z"), self.random.choice([0, 10, 20]))

    def make_guarded(self, depth: int) -> Part:
        on_error, final = (self.body(depth - 1) if self.random.random() < 0.6 else None, None)
        if self.random.random() < 0.6:
            final = self.body(depth - 1)
        return guarded(self.key("s"), self.body(depth), on_error, final, self.timeout())

    def make_parallel(self, depth: int) -> Part:
        more = self.given(
            limit=self.maybe(self.random.randint(1, 2)),
            join=self.maybe(self.random.randint(1, 3), 0.5),
            keep_going=self.maybe(True),
            timeout_ms=self.timeout(),
        )
        return parallel(self.key("p"), self.body(depth), **more)

    def make_foreach(self, depth: int) -> Part:
        tolerate = self.random.choice([{"count": 1}, {"percent": 40}, None])
        more = self.given(
            tolerate=tolerate,
            keep_going=self.maybe(True),
            batch=self.maybe(2),
            timeout_ms=self.timeout(),
        )
        items = list(range(self.random.randint(0, 4)))
        parallel_count = self.random.choice([0, 1, 2])
        collects = [("all", lit(1))]
        return foreach(
            self.key("e"),
            "x",
            lit(items),
            self.body(depth),
            parallel=parallel_count,
            collects=collects,
            **more,
        )

    def make_repeat(self, depth: int) -> Part:
        return repeat(self.key("r"), lit(self.random.randint(0, 3)), self.body(depth))

    def make_if(self, depth: int) -> Part:
        return if_(
            self.key("i"), lit(self.random.random() < 0.5), self.body(depth), self.body(depth)
        )


def played(seed: int, calls: list[Any] | None = None) -> Machine:
    """Runs a graph to its end; `calls` notes how the machine was called."""
    source = random.Random(seed)
    maker = Maker(source)
    spec = workflow(
        [maker.part(4) for _ in range(2)], timeout_ms=maker.maybe(source.choice([5, 200]))
    )
    player = Player(spec).start()
    running: list[Any] = []
    for _ in range(5000):
        command = player.claim(reverse=source.random() < 0.5)
        if command is not None:
            running.append(command)
            if calls is not None:
                calls.append(("begin", command.execution_id, player.now))
        due = player.machine.next_due()
        if running and (command is None or source.random() < 0.6) and source.random() < 0.9:
            done = running.pop(source.randrange(len(running)))
            code = source.choice([0, 0, 0, 1, -1, -2])
            # A driver does not hand in what it was told to drop.
            if is_running(player.machine, done):
                player.submit(done, code)
                if calls is not None:
                    calls.append(("complete", done.execution_id, code, player.now))
        elif due is not None and (command is None or source.random() < 0.1):
            player.advance(due)
            if calls is not None:
                calls.append(("advance", due))
        elif due is None and command is None and not running:
            return player.machine
    raise AssertionError("the workflow does not end")


def is_running(machine: Machine, command: Any) -> bool:
    execution = machine.executions[command.execution_id]
    return execution.status == "RUNNING" and execution.attempts == command.attempt


@pytest.mark.parametrize("seed", SEEDS)
def test_what_always_holds(seed: int) -> None:
    machine = played(seed)
    assert machine.status in ("SUCCEEDED", "FAILED")
    assert machine.next_due() is None
    for execution in machine.executions.values():
        _check(execution)


def _check(execution: Execution) -> None:
    status, node = execution.status, execution.node
    assert status not in OPEN
    assert (status == "FAILED") == (execution.error is not None)
    assert (status == "SUCCEEDED") <= (execution.result_code is not None)
    assert (status == "CANCELLED") <= (execution.result_code is None)
    # What a composite waited for has been taken over when an outer one cancelled it.
    assert execution.kept_count == 0 or status == "CANCELLED"
    ended = [child.status for child in execution.children]
    edges = [child.node.edge for child in execution.children]
    if node.type == "SEQUENCE":
        # Started in order, `on_error` at most once, `finally` always unless nothing had begun.
        assert edges == sorted(edges, key=["SEQUENCE", "ON_ERROR", "FINALLY"].index)
        assert edges.count("ON_ERROR") <= 1
        assert edges.count("FINALLY") == (node.final is not None)
    if node.type == "PARALLEL" and status == "SUCCEEDED":
        assert ended.count("SUCCEEDED") >= node.needed
    if node.type == "FOREACH" and status == "SUCCEEDED":
        assert len(ended) == execution.total_count
        assert "CANCELLED" not in ended
    if node.keep_going and status != "CANCELLED" and not _timed_out(execution):
        assert "CANCELLED" not in ended


def _timed_out(execution: Execution) -> bool:
    error = execution.error
    return error is not None and error.path == execution.path and error.engine_code == 10013


@pytest.mark.parametrize("seed", SEEDS[:60])
def test_the_same_calls_leave_the_same_trace(seed: int) -> None:
    calls: list[Any] = []
    first = played(seed, calls)
    again = Machine(first.graph, first.instance_id, {})
    again.start(0)
    for call in calls:
        match call:
            case ("begin", int(number), int(now)):
                again.begin(number, now)
            case ("complete", int(number), int(code), int(now)):
                again.complete(number, code, None, now_ms=now)
            case ("advance", int(now)):
                again.advance(now)
    assert trace_document(again) == trace_document(first)
