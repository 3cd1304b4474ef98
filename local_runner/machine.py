"""The state machine of one instance: results of actions in, commands out.

It knows no threads, no clock and no handlers; the time is a parameter of its calls. Each call works
off one agenda, first in first out (ruling R12): an entry is either a new execution to look at or an
ended one whose parent must hear of it. FIFO makes the levels of R12: what an entry adds stands
behind everything that was there before it. Entries of executions that were closed in the meantime
are dropped. What happens by itself at some time (the end of a sleep, a time-out) stands in
`_due`, a heap, and is applied by `advance`, each item with all that follows from it.

    start() ─► agenda ─► RunAction … ─► begin(id), complete(id, …) ─► agenda ─► … ─► InstanceEnded
                                        advance(now_ms), next_due()

Iterations of a FOREACH with `reuse` are looked up and stored through a `BundleStore` that the
driver gives (semantics §9); a machine without one runs them all.

How cancelling works with `finally` (R13) stands in `local_runner/closing.py`.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from local_runner.bundles import BundleStore, content_keys
from local_runner.closing import cancel_all_below, close
from local_runner.commands import CancelAction, Command, InstanceEnded, RunAction
from local_runner.execution import (
    BODY,
    CANCELLED,
    FAILED,
    ON_ERROR,
    OPEN,
    READY,
    RUNNING,
    SKIPPED,
    SUCCEEDED,
    Execution,
    Failure,
    NodeError,
    View,
)
from local_runner.expressions import Program, evaluate
from local_runner.graph import Graph, Node, load_graph
from local_runner.node_types import CHILD_ENDED, LOOK_AT
from local_runner.type_table import TypeNode, check_inputs, check_variable
from local_runner.values import MISSING, EngineError, JsonValue, storable_problem, truth

if TYPE_CHECKING:
    from compiler.spec import GraphSpec

__all__ = ["CancelAction", "Command", "InstanceEnded", "Machine", "RunAction"]

WORK_LIMIT = 1_000_000

# Kinds of entries in the heap of what is due.
_AVAILABLE: Final = "available"
_DEADLINE: Final = "deadline"
_SLEEP: Final = "sleep"


class Machine:
    """One instance of a workflow.

    Attributes:
      status: CREATED, RUNNING, SUCCEEDED, FAILED or CANCELLED. An instance whose input does not
        fit stays CREATED, with the reason in `error`.
      executions: by id, in the order of activation; without those that `keep` has dropped.
    """

    def __init__(
        self,
        spec: GraphSpec | Graph,
        instance_id: str,
        context: dict[str, JsonValue],
        *,
        on_ended: Callable[[Execution], None] | None = None,
        bundles: BundleStore | None = None,
        work_limit: int = WORK_LIMIT,
    ) -> None:
        self.graph = spec if isinstance(spec, Graph) else load_graph(spec)
        self.instance_id = instance_id
        self.context = context
        self.status = "CREATED"
        self.error: NodeError | None = None
        self.output: JsonValue = None
        self.executions: dict[int, Execution] = {}
        self._last_id = 0
        self._bundles = bundles
        self._is_forced = context.get("forceRerun") is True
        # What this machine has stored, and in which of its calls.
        self._stored_in: dict[str, int] = {}
        self._call = 0
        self._agenda: deque[tuple[Callable[[Execution], None], Execution]] = deque()
        self._commands: list[Command] = []
        self._now = 0
        self._due: list[tuple[int, int, str]] = []
        self.on_ended = on_ended
        self._work_limit = work_limit
        self._work_left = work_limit

    # -- the calls of a driver

    def start(self, now_ms: int = 0) -> tuple[Command, ...]:
        """Checks the input and activates the root. Call it once."""
        self._now = now_ms
        self._last_id = 1
        root = self.executions[1] = Execution(1, self.graph.root, None, -1)
        problem = self._open_instance_scope(root)
        if problem is not None:
            self.executions.clear()
            self.error = NodeError(None, problem.code, problem.text, root.node.key, root.path)
            return (InstanceEnded(self.status, self.error, None),)
        self.status = RUNNING
        self._set_deadline(root)
        self._agenda.append((self._look_at, root))
        return self._commands_of_call()

    def begin(self, execution_id: int, now_ms: int | None = None) -> None:
        """Tells that an offered action is being run now: its time-out counts from here."""
        self._move_to(now_ms)
        execution = self.executions.get(execution_id)
        if execution is not None and execution.status == READY:
            execution.status = RUNNING
            execution.attempts += 1
            self._set_deadline(execution)

    def complete(
        self,
        execution_id: int,
        result_code: int,
        output: JsonValue,
        message: str | None = None,
        now_ms: int | None = None,
    ) -> tuple[Command, ...]:
        """Takes the result of an action and goes on; a result nobody waits for changes nothing.

        Whatever is due is applied before it, so a result at or after a deadline loses (R21).
        """
        execution = self.executions.get(execution_id)
        if execution is None:
            return self.advance(self._now if now_ms is None else now_ms)
        if execution.status == READY:
            self.begin(execution_id, now_ms)
        else:
            self._move_to(now_ms)
        attempt = execution.attempts
        if self._due:
            self._apply_due()
        is_wanted = execution.status == RUNNING and execution.attempts == attempt
        if is_wanted and execution.node.type == "ACTION":
            self._take_result(execution, result_code, output, message)
        return self._commands_of_call()

    def _take_result(
        self, execution: Execution, result_code: int, output: JsonValue, message: str | None
    ) -> None:
        execution.output = output
        if result_code < 0:
            if self._try_again(execution, result_code):
                return
            text = f"result code {result_code}" if message is None else message
            self.fail_with_code(execution, result_code, text)
        else:
            # Already so while the sets run: they may read the node's own result by `ctx.task`.
            execution.status, execution.result_code = SUCCEEDED, result_code
            view = self._view(execution, output, result_code) if execution.node.bindings else None
            self._set_and_succeed(execution, result_code, view)

    def advance(self, now_ms: int) -> tuple[Command, ...]:
        """Applies what is due at `now_ms`, earliest first, at the same time by execution id."""
        self._move_to(now_ms)
        self._apply_due()
        return self._commands_of_call()

    def next_due(self) -> int | None:
        """Returns when something will happen by itself or an offered action be available."""
        due = self._due
        while due and not self._is_live(due[0]):
            heapq.heappop(due)
        return due[0][0] if due else None

    def redeliver(self) -> tuple[Command, ...]:
        """Offers the actions that are being run once more, in the same attempt.

        For a driver that was killed and goes on: whoever ran them is gone.
        """
        for execution in self.executions.values():
            if execution.status == RUNNING and execution.node.type == "ACTION":
                execution.status = READY
                execution.attempts -= 1
                execution.deadline_ms = None
                self.offer(execution, execution.available_ms)
        return self._commands_of_call()

    def cancel(self) -> tuple[Command, ...]:
        """Ends the instance as an operator would: everything open is CANCELLED."""
        if self.status != RUNNING:
            return ()
        root = self.root
        assert root is not None, "a RUNNING instance has a root"
        cancel_all_below(self, root)
        root.status = CANCELLED
        self._end_instance(CANCELLED, None)
        return self._commands_of_call()

    @property
    def root(self) -> Execution | None:
        """The execution of the workflow itself; None when nothing was started."""
        return self.executions.get(1)

    # -- time

    @property
    def now_ms(self) -> int:
        """The latest time that a call has named."""
        return self._now

    def _move_to(self, now_ms: int | None) -> None:
        if now_ms is not None and now_ms > self._now:
            self._now = now_ms

    def _set_deadline(self, execution: Execution) -> None:
        if execution.node.timeout_ms is not None:
            execution.deadline_ms = self._now + execution.node.timeout_ms
            heapq.heappush(self._due, (execution.deadline_ms, execution.id, _DEADLINE))

    def _is_live(self, entry: tuple[int, int, str]) -> bool:
        at, execution_id, kind = entry
        execution = self.executions.get(execution_id)
        if execution is None:
            return False
        if kind == _AVAILABLE:
            is_waiting = execution.status == READY and execution.available_ms == at
            return is_waiting and at > self._now
        if execution.status != RUNNING or execution.phase not in (BODY, ON_ERROR):
            return False
        return kind == _SLEEP or execution.deadline_ms == at

    def _apply_due(self) -> None:
        while (at := self.next_due()) is not None and at <= self._now and self.status == RUNNING:
            _at, execution_id, kind = heapq.heappop(self._due)
            execution = self.executions[execution_id]
            if kind == _SLEEP:
                self.succeed(execution)
            else:
                self._time_out(execution)
            self._work_off()

    def _time_out(self, execution: Execution) -> None:
        path, node = execution.path, execution.node
        execution.deadline_ms = None
        text = f"{path}: timed out after {node.timeout_ms} ms"
        failure = Failure(None, NodeError(None, 10013, text, node.key, path))
        if node.type != "ACTION":
            close(self, execution, failure)
            return
        self._commands.append(CancelAction(execution.id))
        if not self._try_again(execution, 10013):
            self.fail(execution, failure)

    def _try_again(self, execution: Execution, code: int) -> bool:
        """Makes a failed attempt READY again when its retry policy takes the failure (R20)."""
        retry, failures = execution.node.retry, execution.attempts
        if retry is None or failures > retry.limit or not retry.matches(code):
            return False
        execution.status = READY
        execution.output = None
        execution.deadline_ms = None
        salt = f"{self.instance_id}/{execution.path}"
        self.offer(execution, self._now + retry.delay_ms(failures, salt))
        return True

    def sleep(self, execution: Execution, duration_ms: int) -> None:
        """Lets an execution succeed after that time; without one, at once."""
        if duration_ms > 0:
            heapq.heappush(self._due, (self._now + duration_ms, execution.id, _SLEEP))
        else:
            self.succeed(execution)

    def offer(self, execution: Execution, available_ms: int | None = None) -> None:
        """Offers an action to the driver, its input being built; by default after its delay."""
        node = execution.node
        at = self._now + node.delay_ms if available_ms is None else available_ms
        execution.available_ms = at
        if at > self._now:
            heapq.heappush(self._due, (at, execution.id, _AVAILABLE))
        loop: Execution | None = execution
        while loop is not None and not loop.node.is_iteration:
            loop = loop.parent
        self._commands.append(
            # In the order of its fields, which takes a third of the time that names take.
            RunAction._make(
                (
                    execution.id,
                    execution.path,
                    node.key,
                    node.action,
                    execution.input,
                    execution.attempts + 1,
                    0 if loop is None else loop.iteration + 1,
                    node.priority,
                    at,
                    node.timeout_ms,
                )
            )
        )

    # -- the agenda

    def _work_off(self) -> None:
        agenda = self._agenda
        while agenda:
            step, execution = agenda.popleft()
            step(execution)

    def _commands_of_call(self) -> tuple[Command, ...]:
        self._work_off()
        self._work_left = self._work_limit
        self._call += 1
        commands = tuple(self._commands)
        self._commands.clear()
        return commands

    def _look_at(self, execution: Execution) -> None:
        # A cancelled SEQUENCE may be open still, for its `finally`.
        if execution.status not in OPEN or execution.is_cancelled:
            return
        self._work_left -= 1
        if self._work_left < 0:
            text = f"more than {self._work_limit} activations in one call"
            self.fail_by_engine(execution, EngineError(10019, text))
            return
        node = execution.node
        # Those of the workflow itself were settled with its inputs.
        if node.initialisers and execution.parent is not None:
            problem = self._initialise(execution)
            if problem is not None:
                self.fail_by_engine(execution, problem)
                return
        LOOK_AT[node.type](self, execution)

    def _tell_parent(self, execution: Execution) -> None:
        parent = execution.parent
        if parent is None:
            self._finish(execution)
        elif parent.status == RUNNING and parent.phase == execution.node.heard_in:
            CHILD_ENDED[parent.node.type](self, parent, execution)

    # -- beginnings

    def _open_instance_scope(self, root: Execution) -> EngineError | None:
        """Inputs or their defaults, the check of their types, then the workflow's variables."""
        view, values = self._view(root), root.scope.values
        for declared in self.graph.inputs:
            value = self.context.get(declared.name, MISSING)
            if value is MISSING and declared.program is not None:
                value = evaluate(declared.program, view)
                if isinstance(value, EngineError):
                    return value
            if value is not MISSING:
                values[declared.name] = value
        misfit = check_inputs(
            (declared.name, declared.type, values.get(declared.name, MISSING))
            for declared in self.graph.inputs
        )
        return misfit or self._initialise(root)

    def activate(self, parent: Execution, node: Node, iteration: int = -1) -> None:
        execution = self._new_iteration(parent, node, iteration)
        if node.timeout_ms is not None and node.type != "ACTION":
            self._set_deadline(execution)
        self._agenda.append((self._look_at, execution))

    def _new_iteration(self, parent: Execution, node: Node, iteration: int) -> Execution:
        """Makes an execution below another one; one of a loop gets its loop variables."""
        self._last_id = own_id = self._last_id + 1
        execution = self.executions[own_id] = Execution(own_id, node, parent, iteration)
        parent.children.append(execution)
        parent.started_count += 1
        if iteration >= 0:
            loop, values = parent.node, execution.scope.values
            if loop.item is not None:
                values[loop.item] = parent.items[iteration]
            if loop.index is not None:
                values[loop.index] = iteration
        return execution

    def _initialise(self, execution: Execution) -> EngineError | None:
        """Evaluates the variables of the scope that opens here, in order (S2.3)."""
        if not execution.node.initialisers:
            return None
        view = self._view(execution)
        for declared in execution.node.initialisers:
            value = checked(declared.name, declared.type, evaluate(declared.program, view))
            if isinstance(value, EngineError):
                return value
            execution.scope.values[declared.name] = value
        return None

    # -- reuse of iterations (semantics §9)

    def look_up(self, loop: Execution) -> None:
        """Settles which iterations of a FOREACH with `reuse` are known, as it begins (S9.2)."""
        if self._bundles is None:
            return
        loop.content_keys = content_keys(self.graph.name, loop, self._view(loop))
        if self._is_forced:
            return
        loop.known = {}
        names = {binding.name for binding in loop.node.collects}
        for number, key in enumerate(loop.content_keys):
            # What this very call has stored came too late.
            if self._stored_in.get(key) == self._call:
                continue
            exported = self._bundles.find(key)
            if exported is not None and exported.keys() == names:
                loop.known[number] = exported

    def skip(self, loop: Execution, exported: dict[str, JsonValue]) -> None:
        """Passes over the next iteration: it gives what it has exported before (S9.3)."""
        assert loop.node.body is not None
        execution = self._new_iteration(loop, loop.node.body, loop.started_count)
        execution.status, execution.result_code = SKIPPED, 0
        execution.output = exported or None
        if self.on_ended is not None:
            self.on_ended(execution)

    def _store(self, execution: Execution, exported: dict[str, JsonValue]) -> None:
        loop = execution.parent
        if self._bundles is None or loop is None or not loop.content_keys:
            return
        key = loop.content_keys[execution.iteration]
        self._stored_in[key] = self._call
        self._bundles.store(
            key,
            exported,
            workflow=self.graph.name,
            path=execution.path,
            replaces=self._is_forced,
        )

    # -- iterations that `keep` lets go (R31)

    def drop(self, execution: Execution) -> None:
        """Forgets an execution that has ended, with everything below it."""
        pending = [execution]
        while pending:
            dropped = pending.pop()
            del self.executions[dropped.id]
            pending.extend(dropped.children)

    # -- endings

    def succeed(self, execution: Execution) -> None:
        loop = execution.parent
        if (
            loop is not None
            and execution.node.is_iteration
            and (loop.node.collects or loop.content_keys)
        ):
            exported = self._export(execution, loop.node)
            if exported is None:
                return
            execution.output = exported or None
            self._store(execution, exported)
        self._set_and_succeed(execution, 0)

    def _export(self, execution: Execution, loop: Node) -> dict[str, JsonValue] | None:
        """Evaluates what an iteration hands to its loop; None when that failed it."""
        exported: dict[str, JsonValue] = {}
        view = self._view(execution)
        for binding in loop.collects:
            value = evaluate(binding.program, view)
            if isinstance(value, EngineError):
                self.fail_by_engine(execution, value)
                return None
            exported[binding.name] = value
        return exported

    def _set_and_succeed(
        self, execution: Execution, result_code: int, view: View | None = None
    ) -> None:
        for binding in execution.node.bindings:
            value = evaluate(binding.program, view or self._view(execution))
            value = checked(binding.name, binding.type, value)
            if isinstance(value, EngineError):
                self.fail_by_engine(execution, value)
                return
            self.write(execution, binding.owner, binding.name, value)
        execution.status = SUCCEEDED
        execution.result_code = result_code
        self._ended(execution)

    def fail_by_engine(self, execution: Execution, error: EngineError) -> None:
        path = execution.path
        message = f"{path}: {error.text}"
        self.fail(
            execution,
            Failure(None, NodeError(None, error.code, message, execution.node.key, path)),
        )

    def fail_with_code(self, execution: Execution, code: int, message: str) -> None:
        error = NodeError(code, None, message, execution.node.key, execution.path)
        self.fail(execution, Failure(code, error))

    def fail(self, execution: Execution, failure: Failure) -> None:
        """Fails an execution below which nothing is open; `close` takes care of the others."""
        execution.status = FAILED
        # An action whose input cannot be built has used its attempt up without a worker.
        execution.attempts = max(execution.attempts, 1)
        execution.result_code = failure.result_code
        execution.error = failure.error
        self._ended(execution)

    def mark_cancelled(self, execution: Execution) -> None:
        """Writes the end of a cancelled execution; nobody hears of it by the agenda."""
        execution.status = CANCELLED
        if execution.node.type == "ACTION":
            self._commands.append(CancelAction(execution.id))
        if self.on_ended is not None:
            self.on_ended(execution)

    def _ended(self, execution: Execution) -> None:
        # Whether the root has succeeded is known when its output has been made.
        if self.on_ended is not None and (
            execution.parent is not None or execution.status == FAILED
        ):
            self.on_ended(execution)
        self._agenda.append((self._tell_parent, execution))

    def _finish(self, root: Execution) -> None:
        if root.status == FAILED:
            self._end_instance(FAILED, root.error)
            return
        output: dict[str, JsonValue] = {}
        for name, program in self.graph.outputs:
            value = evaluate(program, self._view(root))
            if isinstance(value, EngineError):
                self.fail_by_engine(root, value)
                return
            output[name] = value
        problem = storable_problem(output)
        if problem is not None:
            self.fail_by_engine(root, problem)
            return
        self.output = output if self.graph.outputs else None
        if self.on_ended is not None:
            self.on_ended(root)
        self._end_instance(SUCCEEDED, None)

    def _end_instance(self, status: str, error: NodeError | None) -> None:
        self.status = status
        self.error = error
        self._commands.append(InstanceEnded(status, error, self.output))

    # -- evaluation

    def _view(
        self, execution: Execution, out: JsonValue = MISSING, code: JsonValue = MISSING
    ) -> View:
        return View(execution, self, out, code)

    def evaluate(self, execution: Execution, program: Program | None) -> JsonValue:
        """Returns the value, or MISSING when the evaluation failed the execution."""
        if program is None:
            return None
        if program.constant is not MISSING:
            return program.constant
        value = evaluate(program, View(execution, self))
        if type(value) is EngineError:
            self.fail_by_engine(execution, value)
            return MISSING
        return value

    def test(self, execution: Execution) -> bool | None:
        """Returns the truth of the condition, or None when it failed the execution."""
        value = self.evaluate(execution, execution.node.program)
        if value is MISSING:
            return None
        holds = truth(value)
        if isinstance(holds, EngineError):
            self.fail_by_engine(execution, holds)
            return None
        return holds

    def write(self, execution: Execution, owner: str, name: str, value: JsonValue) -> None:
        scope = execution.scope.find(owner)
        if scope is not None:
            scope.values[name] = value


def checked(name: str, expected: TypeNode | None, value: JsonValue) -> JsonValue:
    """Returns a value that a variable shall get, or why it must not get it (R5)."""
    if expected is None or isinstance(value, EngineError):
        return value
    misfit = check_variable(name, expected, value)
    return value if misfit is None else misfit
