"""A dry run: the way that given or default results lead, with every input on it, no handler called.

It plays the machine with a virtual clock and one worker, as the driver of R12 does. A result comes
from `Scripts`: by the path of the node, its path without the root, or its key; a list gives the
results of successive visits and attempts, its last repeats. What has none answers 0 with a sample
of what the action's output schema describes, so that `set`s find what they read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from local_runner.clock import VirtualClock
from local_runner.commands import CancelAction, Command, RunAction
from local_runner.graph import Graph
from local_runner.machine import Machine
from local_runner.values import JsonValue

_SAMPLE_DEPTH = 20


@dataclass(frozen=True, slots=True)
class Step:
    """One action on the way, with the input that was built and the result that was assumed."""

    path: str
    action: str
    attempt: int
    input: JsonValue
    code: int
    output: JsonValue


@dataclass(frozen=True, slots=True)
class Assumed:
    """The result of an action; `output` None stands for the sample of its schema."""

    code: int = 0
    output: JsonValue = None
    has_output: bool = False


@dataclass(slots=True)
class Scripts:
    """Assumed results by path or key."""

    by_name: Mapping[str, tuple[Assumed, ...]] = field(default_factory=dict)
    _visits: dict[str, int] = field(default_factory=dict)

    def next(self, path: str, key: str) -> Assumed:
        """Returns the result of this visit."""
        for name in (path, path.partition("/")[2], key):
            listed = self.by_name.get(name)
            if listed:
                visit = self._visits.get(name, 0)
                self._visits[name] = visit + 1
                return listed[min(visit, len(listed) - 1)]
        return Assumed()


def read_scripts(value: JsonValue) -> Scripts | str:
    """Reads `{key or path: {code, output} or a list of such}`; a text says what is wrong."""
    if not isinstance(value, dict):
        return "the results must be a JSON object by node key or path"
    found: dict[str, tuple[Assumed, ...]] = {}
    for name, written in value.items():
        entries = written if isinstance(written, list) else [written]
        read = [_assumed(entry) for entry in entries]
        if not read or None in read:
            return f'the result of "{name}" must be an object with code and output, or a list'
        found[name] = tuple(entry for entry in read if entry is not None)
    return Scripts(found)


def _assumed(entry: JsonValue) -> Assumed | None:
    if not isinstance(entry, dict) or not entry.keys() <= {"code", "output"}:
        return None
    code = entry.get("code", 0)
    if type(code) is not int:
        return None
    return Assumed(code, entry.get("output"), "output" in entry)


def dry_run(
    graph: Graph, context: dict[str, JsonValue], scripts: Scripts
) -> tuple[Machine, tuple[Step, ...]]:
    """Plays one instance to its end and returns what it came by."""
    schemas = {row.name: row.output_schema for row in graph.spec.actions}
    machine, clock = Machine(graph, "dry-run", context), VirtualClock()
    offered: dict[int, RunAction] = {}
    steps: list[Step] = []
    _obey(offered, machine.start())
    while True:
        able = [c for c in offered.values() if c.available_ms <= clock.now_ms()]
        if able:
            command = min(able, key=lambda c: c.claim_key)
            del offered[command.execution_id]
            step = _step(command, scripts, schemas.get(command.action))
            steps.append(step)
            machine.begin(command.execution_id, clock.now_ms())
            _obey(offered, machine.complete(command.execution_id, step.code, step.output))
            continue
        due = machine.next_due()
        if due is None:
            return machine, tuple(steps)
        clock.move_to(due)
        _obey(offered, machine.advance(due))


def _obey(offered: dict[int, RunAction], commands: tuple[Command, ...]) -> None:
    for command in commands:
        if isinstance(command, RunAction):
            offered[command.execution_id] = command
        elif isinstance(command, CancelAction):
            offered.pop(command.execution_id, None)


def _step(command: RunAction, scripts: Scripts, schema: Mapping[str, Any] | None) -> Step:
    assumed = scripts.next(command.path, command.node_key)
    output = assumed.output if assumed.has_output else sample({} if schema is None else schema)
    return Step(command.path, command.action, command.attempt, command.input, assumed.code, output)


def sample(schema: Any, depth: int = 0) -> JsonValue:
    """Returns a small value that a JSON Schema describes; an object where it says nothing."""
    if not isinstance(schema, Mapping) or depth > _SAMPLE_DEPTH:
        return None if depth else {}
    for word in ("const", "default"):
        if word in schema:
            return schema[word]
    if schema.get("enum"):
        return schema["enum"][0]
    for word in ("anyOf", "oneOf", "allOf"):
        if schema.get(word):
            return sample(schema[word][0], depth + 1)
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = kind[0] if kind else None
    if kind == "object" or (kind is None and (depth == 0 or "properties" in schema)):
        properties = schema.get("properties") or {}
        return {name: sample(inner, depth + 1) for name, inner in properties.items()}
    by_kind: dict[Any, JsonValue] = {
        "string": "",
        "integer": 0,
        "number": 0,
        "boolean": False,
        "array": [],
    }
    return by_kind.get(kind)
