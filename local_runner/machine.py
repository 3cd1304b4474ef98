"""The state machine of one instance: results of actions in, commands out.

It knows no threads, no clock and no handlers. `start` and `complete` work off one agenda, first in
first out (ruling R12): an entry is either a new execution to look at or an ended one whose parent
must hear of it. FIFO makes the levels of R12: what an entry adds stands behind everything that was
there before it. Entries of executions that were closed in the meantime are dropped.

    start() ─► agenda ─► RunAction … ─► begin(id), complete(id, …) ─► agenda ─► … ─► InstanceEnded
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from local_runner.commands import CancelAction, Command, InstanceEnded, RunAction
from local_runner.execution import (
    CANCELLED,
    FAILED,
    OPEN,
    READY,
    RUNNING,
    SUCCEEDED,
    Execution,
    NodeError,
    View,
)
from local_runner.expressions import Program, evaluate
from local_runner.graph import Graph, Node, load_graph
from local_runner.node_types import CONTINUE, LOOK_AT
from local_runner.type_table import check_inputs
from local_runner.values import MISSING, EngineError, JsonValue, truth

if TYPE_CHECKING:
    from compiler.spec import GraphSpec

__all__ = ["CancelAction", "Command", "InstanceEnded", "Machine", "RunAction"]

WORK_LIMIT = 1_000_000


class Machine:
    """One instance of a workflow.

    Attributes:
      status: CREATED, RUNNING, SUCCEEDED, FAILED or CANCELLED. An instance whose input does not
        fit stays CREATED, with the reason in `error`.
      executions: all executions so far; the one with id n stands at n - 1.
    """

    def __init__(
        self,
        spec: GraphSpec | Graph,
        instance_id: str,
        context: dict[str, JsonValue],
        *,
        on_ended: Callable[[Execution], None] | None = None,
        work_limit: int = WORK_LIMIT,
    ) -> None:
        self.graph = spec if isinstance(spec, Graph) else load_graph(spec)
        self.instance_id = instance_id
        self.context = context
        self.status = "CREATED"
        self.error: NodeError | None = None
        self.output: JsonValue = None
        self.executions: list[Execution] = []
        self._agenda: deque[tuple[Callable[[Execution], None], Execution]] = deque()
        self._commands: list[Command] = []
        self._on_ended = on_ended
        self._work_limit = work_limit
        self._work_left = work_limit

    # -- the calls of a driver

    def start(self) -> tuple[Command, ...]:
        """Checks the input and activates the root. Call it once."""
        root = self._new_execution(self.graph.root, None, -1)
        problem = self._open_instance_scope(root)
        if problem is not None:
            self.executions.clear()
            self.error = NodeError(None, problem.code, problem.text, root.node.key, root.path)
            return (InstanceEnded(self.status, self.error, None),)
        self.status = RUNNING
        self._agenda.append((self._look_at, root))
        return self._work_off()

    def begin(self, execution_id: int) -> None:
        """Tells that an offered action is being run now."""
        execution = self.executions[execution_id - 1]
        if execution.status == READY:
            execution.status = RUNNING
            execution.attempts += 1

    def complete(
        self, execution_id: int, result_code: int, output: JsonValue, message: str | None = None
    ) -> tuple[Command, ...]:
        """Takes the result of an action and goes on; a result nobody waits for changes nothing."""
        self.begin(execution_id)
        execution = self.executions[execution_id - 1]
        if execution.status != RUNNING or execution.node.type != "ACTION":
            return ()
        execution.output = output
        if result_code < 0:
            text = f"result code {result_code}" if message is None else message
            self.fail_with_code(execution, result_code, text)
        else:
            # Already so while the sets run: they may read the node's own result by `ctx.task`.
            execution.status, execution.result_code = SUCCEEDED, result_code
            self._set_and_succeed(
                execution, result_code, self._view(execution, output, result_code)
            )
        return self._work_off()

    def cancel(self) -> tuple[Command, ...]:
        """Ends the instance as an operator would: everything open is CANCELLED."""
        if self.status != RUNNING:
            return ()
        root = self.executions[0]
        self._cancel_below(root)
        root.status = CANCELLED
        self._agenda.clear()
        self._end_instance(CANCELLED, None)
        return self._work_off()

    # -- the agenda

    def _work_off(self) -> tuple[Command, ...]:
        self._work_left = self._work_limit
        agenda = self._agenda
        while agenda:
            step, execution = agenda.popleft()
            step(execution)
        commands = tuple(self._commands)
        self._commands.clear()
        return commands

    def _look_at(self, execution: Execution) -> None:
        if execution.status not in OPEN or self._out_of_work(execution):
            return
        problem = None if execution.parent is None else self._initialise(execution)
        if problem is None:
            LOOK_AT[execution.node.type](self, execution)
        else:
            self.fail_by_engine(execution, problem)

    def _tell_parent(self, execution: Execution) -> None:
        parent = execution.parent
        if parent is None:
            self._finish(execution)
        elif parent.status != RUNNING:
            return
        elif execution.status == FAILED and execution.error is not None:
            self._fail(parent, execution.result_code, execution.error)
        else:
            CONTINUE[parent.node.type](self, parent)

    def _out_of_work(self, execution: Execution) -> bool:
        self._work_left -= 1
        if self._work_left >= 0:
            return False
        text = f"more than {self._work_limit} activations in one call"
        self.fail_by_engine(execution, EngineError(10019, text))
        return True

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

    def _new_execution(self, node: Node, parent: Execution | None, iteration: int) -> Execution:
        execution = Execution(len(self.executions) + 1, node, parent, iteration)
        self.executions.append(execution)
        return execution

    def activate(self, parent: Execution, node: Node, iteration: int = -1) -> None:
        execution = self._new_execution(node, parent, iteration)
        parent.children.append(execution)
        parent.started_count += 1
        if iteration >= 0:
            loop, values = parent.node, execution.scope.values
            if loop.item is not None:
                values[loop.item] = parent.items[iteration]
            if loop.index is not None:
                values[loop.index] = iteration
        self._agenda.append((self._look_at, execution))

    def _initialise(self, execution: Execution) -> EngineError | None:
        """Evaluates the variables of the scope that opens here, in order (S2.3)."""
        if not execution.node.initialisers:
            return None
        view = self._view(execution)
        for name, program in execution.node.initialisers:
            value = evaluate(program, view)
            if isinstance(value, EngineError):
                return value
            execution.scope.values[name] = value
        return None

    # -- endings

    def succeed(self, execution: Execution) -> None:
        if execution.node.is_iteration and execution.parent and execution.parent.node.collects:
            exported = self._export(execution, execution.parent.node)
            if exported is None:
                return
            execution.output = exported
        self._set_and_succeed(execution, 0)

    def _export(self, execution: Execution, loop: Node) -> dict[str, JsonValue] | None:
        """Evaluates what an iteration hands to its FOREACH; None when that failed it."""
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
        self._fail(execution, None, NodeError(None, error.code, message, execution.node.key, path))

    def fail_with_code(self, execution: Execution, code: int, message: str) -> None:
        error = NodeError(code, None, message, execution.node.key, execution.path)
        self._fail(execution, code, error)

    def _fail(self, execution: Execution, result_code: int | None, error: NodeError) -> None:
        execution.status = FAILED
        # An action whose input cannot be built has used its attempt up without a worker.
        execution.attempts = max(execution.attempts, 1)
        execution.result_code = result_code
        execution.error = error
        self._cancel_below(execution)
        self._ended(execution)

    def _ended(self, execution: Execution) -> None:
        # Whether the root has succeeded is known when its output has been made.
        is_certain = execution.parent is not None or execution.status == FAILED
        if self._on_ended is not None and is_certain:
            self._on_ended(execution)
        self._agenda.append((self._tell_parent, execution))

    def _cancel_below(self, top: Execution) -> None:
        pending = [top]
        while pending:
            for child in pending.pop().children:
                if child.status not in OPEN:
                    continue
                child.status = CANCELLED
                if child.node.type == "ACTION":
                    self._commands.append(CancelAction(child.id))
                if self._on_ended is not None:
                    self._on_ended(child)
                pending.append(child)

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
        self.output = output if self.graph.outputs else None
        if self._on_ended is not None:
            self._on_ended(root)
        self._end_instance(SUCCEEDED, None)

    def _end_instance(self, status: str, error: NodeError | None) -> None:
        self.status = status
        self.error = error
        self._commands.append(InstanceEnded(status, error, self.output))

    def command(self, command: Command) -> None:
        """Adds to what the current call answers."""
        self._commands.append(command)

    # -- evaluation

    def _view(
        self, execution: Execution, out: JsonValue = MISSING, code: JsonValue = MISSING
    ) -> View:
        return View(execution, self.graph, self.instance_id, self.context, out, code)

    def evaluate(self, execution: Execution, program: Program | None) -> JsonValue:
        """Returns the value, or MISSING when the evaluation failed the execution."""
        if program is None:
            return None
        value = evaluate(program, self._view(execution))
        if isinstance(value, EngineError):
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
