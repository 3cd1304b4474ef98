"""Node executions, scopes, and what a reference sees from an execution.

The tree of executions mirrors the tree of nodes: the parent of an execution is an execution of the
parent of its node. A `View` is the `Reader` that programs are evaluated with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from local_runner.values import MISSING, JsonValue

if TYPE_CHECKING:
    from local_runner.graph import Graph, Node

READY: Final = "READY"
RUNNING: Final = "RUNNING"
SUCCEEDED: Final = "SUCCEEDED"
FAILED: Final = "FAILED"
CANCELLED: Final = "CANCELLED"
SKIPPED: Final = "SKIPPED"

OPEN: Final = frozenset({READY, RUNNING})

# Where a composite stands; only a SEQUENCE leaves BODY for ON_ERROR and FINALLY. In CLOSING it has
# its verdict and waits for the `finally`s below it; in CANCELLING it has been cancelled and waits
# for the `finally`s below it before it runs its own.
BODY: Final = "BODY"
ON_ERROR: Final = "ON_ERROR"
FINALLY: Final = "FINALLY"
CLOSING: Final = "CLOSING"
CANCELLING: Final = "CANCELLING"


@dataclass(frozen=True, slots=True)
class NodeError:
    """Why a node failed. It is copied as it is to every ancestor that fails by it."""

    code: int | None
    engine_code: int | None
    message: str
    node: str
    path: str

    def to_json_value(self) -> dict[str, JsonValue]:
        return {
            "code": self.code,
            "engine_code": self.engine_code,
            "message": self.message,
            "node": self.node,
            "path": self.path,
        }


@dataclass(frozen=True, slots=True)
class Failure:
    """What an execution fails with: the code in its trace (None: an engine error) and the error."""

    result_code: int | None
    error: NodeError


class Scope:
    """The variables that one execution opened; a name without a value is not in `values`."""

    __slots__ = ("owner", "parent", "values")

    def __init__(self, owner: str, parent: Scope | None) -> None:
        self.owner = owner
        self.parent = parent
        self.values: dict[str, JsonValue] = {}

    def find(self, owner: str) -> Scope | None:
        """Returns the nearest scope, this one included, that node `owner` opened."""
        scope: Scope | None = self
        while scope is not None and scope.owner != owner:
            scope = scope.parent
        return scope


# What most executions have none of, shared by them and never changed: it takes half their memory.
_NO_CHILDREN: Final[list[Execution]] = []
_NO_ITEMS: Final[list[JsonValue]] = []
_NO_KEYS: Final[list[str]] = []
_NOTHING_KNOWN: Final[dict[int, dict[str, JsonValue]]] = {}


class Execution:
    """One activation of one node.

    A FOREACH with `reuse` has the `content_keys` of its iterations (S9.1), and in `known` what
    those have exported that need not run.

    Composites count their progress in the `…_count` fields. `failure` is why a SEQUENCE's body has
    failed so far, or the first failure that reached a PARALLEL or FOREACH. While it is closing or
    cancelled, `kept_count` counts the cancelled SEQUENCEs below whose `finally` has still to end,
    and `keeper` names who waits for this one.
    """

    __slots__ = (
        "attempts",
        "available_ms",
        "children",
        "content_keys",
        "deadline_ms",
        "error",
        "failed_count",
        "failure",
        "finished_count",
        "id",
        "input",
        "is_cancelled",
        "items",
        "iteration",
        "keeper",
        "kept_count",
        "known",
        "node",
        "output",
        "parent",
        "path",
        "phase",
        "result_code",
        "scope",
        "started_count",
        "status",
        "total_count",
    )

    def __init__(self, id: int, node: Node, parent: Execution | None, iteration: int) -> None:
        self.id = id
        self.node = node
        self.parent = parent
        self.iteration = iteration
        if node.type == "ACTION":
            self.status, self.attempts = READY, 0
        else:
            self.status, self.attempts = RUNNING, 1
        self.result_code: int | None = None
        self.input: JsonValue = None
        self.output: JsonValue = None
        self.error: NodeError | None = None
        if parent is None:
            self.scope = Scope(node.key, None)
        else:
            self.scope = Scope(node.key, parent.scope) if node.opens_scope else parent.scope
        self.children: list[Execution] = [] if node.children else _NO_CHILDREN
        self.items: list[JsonValue] = _NO_ITEMS
        self.started_count = 0
        self.finished_count = 0
        self.total_count = 0
        self.failed_count = 0
        self.phase = BODY
        self.failure: Failure | None = None
        self.is_cancelled = False
        self.keeper: Execution | None = None
        self.kept_count = 0
        self.available_ms = 0
        self.deadline_ms: int | None = None
        self.path = _path(parent, node, iteration)
        self.content_keys: list[str] = _NO_KEYS
        self.known: dict[int, dict[str, JsonValue]] = _NOTHING_KNOWN


def _path(parent: Execution | None, node: Node, iteration: int) -> str:
    """Returns the keys of the author's nodes from the root on, loop steps with iteration (R9)."""
    if parent is None:
        return node.key
    if node.is_iteration:
        return f"{parent.path}[{iteration}]"
    return parent.path if node.generated else f"{parent.path}/{node.key}"


class Instance(Protocol):
    """What a view shows of the instance as a whole."""

    @property
    def graph(self) -> Graph: ...

    @property
    def instance_id(self) -> str: ...

    @property
    def context(self) -> dict[str, JsonValue]: ...


class View:
    """What programs see when they run for `execution`; `out` and `code` only in its `set`s."""

    __slots__ = ("code", "execution", "instance", "out")

    event: Final = MISSING

    def __init__(
        self,
        execution: Execution,
        instance: Instance,
        out: JsonValue = MISSING,
        code: JsonValue = MISSING,
    ) -> None:
        self.execution = execution
        self.instance = instance
        self.out = out
        self.code = code

    def variable(self, owner: str, name: str) -> JsonValue:
        scope: Scope | None = self.execution.scope
        while scope is not None:
            if scope.owner == owner:
                return scope.values.get(name, MISSING)
            scope = scope.parent
        return MISSING

    def context(self, root: str, head: tuple[str, ...]) -> JsonValue:
        match root:
            case "task":
                return self._task(head)
            case "parent":
                return self._previous_result_code() if head == ("resultCode",) else MISSING
            case "context":
                return self.instance.context
            case "item" | "index" | "iterationNo":
                return self._loop(root)
            case "sequenceIndex":
                return self._child_order("SEQUENCE")
            case "parallelIndex":
                return self._child_order("PARALLEL")
            case "instance_id":
                return self.instance.instance_id
            case "workflow":
                return self.instance.graph.name
            case "version":
                return self.instance.graph.version
            case "node":
                return self.execution.node.key
            case "attempt":
                return MISSING if self.code is MISSING else self.execution.attempts
            case "error":
                return self._error()
            case "forceRerun":
                return self.instance.context.get("forceRerun", False)
            case _:
                return MISSING

    def _task(self, head: tuple[str, ...]) -> JsonValue:
        target = self.instance.graph.nodes.get(head[0]) if len(head) == 2 else None
        if target is None:
            return MISSING
        found = find_task(self.execution, target)
        if found is None:
            return MISSING
        if head[1] == "output":
            return found.output if found.status == SUCCEEDED else MISSING
        if head[1] == "resultCode":
            ended = found.status not in OPEN and found.result_code is not None
            return found.result_code if ended else MISSING
        return MISSING

    def _previous_result_code(self) -> JsonValue:
        step: Execution = self.execution
        while step.parent is not None and step.parent.node.type != "SEQUENCE":
            step = step.parent
        if step.parent is None or step.node.order == 0:
            return MISSING
        before = child_at(step.parent, step.node.order - 1)
        return MISSING if before is None or before.result_code is None else before.result_code

    def _error(self) -> JsonValue:
        """The failure that the nearest `on_error` or `finally` around the reader runs for."""
        step: Execution | None = self.execution
        while step is not None and step.node.edge not in ("ON_ERROR", "FINALLY"):
            step = step.parent
        if step is None or step.parent is None or step.parent.failure is None:
            return MISSING
        return step.parent.failure.error.to_json_value()

    def _loop(self, root: str) -> JsonValue:
        step: Execution | None = self.execution
        while step is not None and not step.node.is_iteration:
            step = step.parent
        if step is None or step.parent is None:
            return MISSING
        if root == "item":
            items = step.parent.items
            return items[step.iteration] if step.parent.node.type == "FOREACH" else MISSING
        return step.iteration if root == "index" else step.iteration + 1

    def _child_order(self, edge: str) -> JsonValue:
        step: Execution | None = self.execution
        while step is not None and step.node.edge != edge:
            step = step.parent
        return MISSING if step is None else step.node.order


def child_at(parent: Execution, order: int) -> Execution | None:
    """Returns the child of a SEQUENCE or PARALLEL whose node has this order, if it was started."""
    children = parent.children
    if order < len(children) and children[order].node.order == order:
        return children[order]
    # `on_error` and `finally` start wherever the body has stopped.
    return next((child for child in children[-2:] if child.node.order == order), None)


def find_task(reader: Execution, target: Node) -> Execution | None:
    """Finds the execution of `target` that a reader sees (R27), or None.

    From the deepest execution around the reader whose node is above `target`, down its static
    chain, in loops by the latest iteration; into a parallel loop nothing is seen from outside.
    """
    down = [target]
    above, step = target.parent, reader
    if above is None:
        return None
    while step.node.depth > above.depth and step.parent is not None:
        step = step.parent
    while above.parent is not None and above is not step.node:
        if above.depth == step.node.depth and step.parent is not None:
            step = step.parent
        down.append(above)
        above = above.parent
    return _descend(step, down)


def _descend(start: Execution, down: list[Node]) -> Execution | None:
    found = start
    for node in reversed(down):
        if node.is_iteration and found.node.type == "FOREACH" and found.node.parallel != 1:
            return None
        if found.node.type in ("SEQUENCE", "PARALLEL"):
            child = child_at(found, node.order)
            if child is None:
                return None
            found = child
        else:
            if not found.children or found.children[-1].node is not node:
                return None
            found = found.children[-1]
    return found
