"""Plays a case: one worker, and a virtual clock that stands still while there is work (R12).

In order it claims one action and submits its result before it claims the next. The other schedules
claim all that can be claimed, then submit one of these: the last (`reverse`), or one that a
generator with the case's seed picks. A step of the case is taken when nothing can be claimed and
nothing is in hand; after the last step the clock moves to whatever is due next.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from compiler import json_values
from dsl.codes import Code
from dsl.source import Span
from wfsql.testing import codes
from wfsql.testing.cases import AdvanceClock, Case, Schedule, SendEvent, Step
from wfsql.testing.engines import ClaimedTask, Engine, NotStarted, Remains, Session
from wfsql.testing.graph_index import GraphIndex
from wfsql.testing.scripts import Answer, PlaceholderProblem, Scripts

_MAX_MOVES = 100_000
_REFUSED = 10018


@dataclass(frozen=True, slots=True)
class Problem:
    """What kept a case from being played as it is written, with its place in the test file."""

    code: Code
    span: Span
    message: str
    hint: str | None = None


@dataclass(slots=True)
class Played:
    """What playing a case has left. `remains` is None when the instance did not start."""

    remains: Remains | None = None
    not_started: NotStarted | None = None
    visited: tuple[str, ...] = ()
    problems: list[Problem] = field(default_factory=list)

    @property
    def is_broken(self) -> bool:
        return any(problem.code.severity == "error" for problem in self.problems)


def play(engine: Engine, index: GraphIndex, case: Case, schedule: Schedule) -> Played:
    """Plays a case to its end, or to the first problem; the runs before it first.

    Raises:
      EngineProblem: the engine cannot run the workflow, or the database has failed.
    """
    engine.forget_bundles()
    for run in case.before:
        played = _play(engine, index, run, schedule)
        if played.remains is None and not played.problems:
            message = "a run before the case did not start"
            if played.not_started is not None:
                message += f": {played.not_started.message}"
            return Played(problems=[Problem(codes.BAD_VALUE, run.span, message)])
        if played.problems:
            return played
    return _play(engine, index, case, schedule)


def _play(engine: Engine, index: GraphIndex, case: Case, schedule: Schedule) -> Played:
    context = case.input
    if case.input_text is not None:
        try:
            context = json_values.loads(case.input_text)
        except json_values.UnstorableValue as error:
            return Played(not_started=NotStarted("REFUSED", _REFUSED, str(error)))
        except ValueError as error:
            return Played(
                problems=[Problem(codes.BAD_VALUE, case.span, f"`input_json` is not JSON: {error}")]
            )
    session = engine.start(index.spec, context)
    if isinstance(session, NotStarted):
        return Played(not_started=session)
    player = _Player(session, Scripts(case.scripts, index), case, schedule)
    try:
        player.play()
        return player.result(index)
    finally:
        session.abandon()


class _Player:
    def __init__(self, session: Session, scripts: Scripts, case: Case, schedule: Schedule) -> None:
        self._session = session
        self._scripts = scripts
        self._case = case
        self._schedule = schedule
        self._random = random.Random(schedule.seed)
        self._steps: list[Step] = list(case.steps)
        self._held: list[ClaimedTask] = []
        self._finished: dict[int, str] = {}
        self._numbers_of_waits = 0
        self._problems: list[Problem] = []

    def play(self) -> None:
        self._note_waits()
        for _ in range(_MAX_MOVES):
            if self._problems or not self._move():
                return
        message = f"the case has not ended after {_MAX_MOVES} moves"
        self._problems.append(Problem(codes.BAD_VALUE, self._case.span, message))

    def _move(self) -> bool:
        """Does the next thing there is to do; False when there is nothing."""
        self._claim()
        if self._held:
            self._work(self._held.pop(self._choice()))
            return True
        step = next((s for s in self._steps if not isinstance(s, SendEvent) or not s.after), None)
        if step is not None:
            self._steps.remove(step)
            self._take_step(step)
            return True
        return self._session.advance_to_next_due()

    def _claim(self) -> None:
        if self._held and self._schedule.kind == "in_order":
            return
        while (task := self._session.claim()) is not None:
            self._held.append(task)
            if self._schedule.kind == "in_order":
                return

    def _choice(self) -> int:
        if self._schedule.kind == "reverse":
            return len(self._held) - 1
        return self._random.randrange(len(self._held)) if self._schedule.kind == "seed" else 0

    def _work(self, task: ClaimedTask) -> None:
        try:
            answer = self._scripts.take(task.node_key, task.path, task.input)
        except PlaceholderProblem as problem:
            self._problem(codes.BAD_PLACEHOLDER, problem.result.span, problem.message)
            return
        if answer is None:
            self._no_script(task)
            return
        self._submit(task, answer)

    def _submit(self, task: ClaimedTask, answer: Answer) -> None:
        if answer.takes_ms:
            self._session.advance_clock(answer.takes_ms)
        self._session.submit(task, answer.code, answer.output, answer.message)
        # A later attempt of the same execution moves it to the end.
        self._finished.pop(task.execution_id, None)
        self._finished[task.execution_id] = task.node_key
        self._note_waits()
        for step in [s for s in self._steps if isinstance(s, SendEvent)]:
            if step.after == task.node_key:
                self._steps.remove(step)
                self._take_step(step)

    def _no_script(self, task: ClaimedTask) -> None:
        used_up = self._scripts.used_up(task.node_key, task.path)
        if used_up is None:
            self._problem(
                codes.NO_SCRIPT,
                self._case.span,
                f'action "{task.node_key}" has no script; it was visited at {task.path}',
                f"add `{task.node_key}: {{}}` to `actions`",
            )
        else:
            count = len(used_up.results)
            entries = "1 entry" if count == 1 else f"{count} entries"
            self._problem(
                codes.NO_SCRIPT,
                used_up.span,
                f"the script has {entries}, and {task.path} was visited once more",
                "add an entry, or write one mapping for all visits",
            )

    def _take_step(self, step: Step) -> None:
        if isinstance(step, AdvanceClock):
            self._session.advance_clock(step.milliseconds)
        elif step.when is not None and step.when not in self._session.waiting_keys():
            self._problem(
                codes.EVENT_NOT_TAKEN,
                step.span,
                f'"{step.when}" does not wait when this event is due',
                "say `after:` for an event that comes early",
            )
        elif self._session.send(step) == 0 and step.when is not None:
            self._problem(
                codes.EVENT_NOT_TAKEN, step.span, f'the event does not fit the wait "{step.when}"'
            )
        self._note_waits()

    def _note_waits(self) -> None:
        for key in self._session.completed_waits():
            self._numbers_of_waits -= 1  # ids of their own, below all executions
            self._finished[self._numbers_of_waits] = key

    def _problem(self, code: Code, span: Span, message: str, hint: str | None = None) -> None:
        self._problems.append(Problem(code, span, message, hint))

    def result(self, index: GraphIndex) -> Played:
        remains = self._session.remains()
        ended = {e.id for e in remains.executions if e.status in ("SUCCEEDED", "FAILED")}
        keys = [key for id_, key in self._finished.items() if id_ < 0 or id_ in ended]
        played = Played(remains, None, tuple(dict.fromkeys(keys)), self._problems)
        if not self._problems:
            self._note_unused(played, index)
        return played

    def _note_unused(self, played: Played, index: GraphIndex) -> None:
        """Finds scripts and events that came to nothing (R29)."""
        spared = {index.place(entry.place) for entry in self._case.expect.not_visited}
        spared_nodes = {place.node for place in spared if place is not None and not place.path}
        for script, place, used in self._scripts.unused():
            if place in spared or place.node in spared_nodes:
                continue
            text = "was never used"
            if used:
                text = f"was used {used} times of {len(script.results)}"
            played.problems.append(
                Problem(codes.UNUSED_SCRIPT, script.span, f'the script of "{script.place}" {text}')
            )
        for step in self._steps:
            message = "this event was never sent"
            played.problems.append(Problem(codes.EVENT_NOT_TAKEN, step.span, message))
