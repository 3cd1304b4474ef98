"""What stands in a `*.wftest.yaml` file, typed; every part keeps its place in the file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dsl.source import SourceFile, Span

LOCAL, POSTGRES, MSSQL = "local", "pg", "mssql"
ENGINES = (LOCAL, POSTGRES, MSSQL)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowRef:
    """`file.wf` or `file.wf#name`; the path stands relative to the test file."""

    file: str
    name: str | None
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedResult:
    """What an action answers once. `takes_ms` is how long it takes on the virtual clock."""

    code: int
    output: Any
    message: str | None
    takes_ms: int
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """The results of the node at `place` (a key or a path); a list is used up, one result stays."""

    place: str
    results: tuple[ScriptedResult, ...]
    is_list: bool
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class SendEvent:
    """An event; `when` wants that WAIT_EVENT to wait, `after` sends it once that key has ended."""

    type: str
    source: str
    idempotency_key: str | None
    correlation_key: str | None
    payload: Any
    when: str | None
    after: str | None
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvanceClock:
    milliseconds: int
    span: Span


Step = SendEvent | AdvanceClock


@dataclass(frozen=True, slots=True)
class Expected:
    """A value that is expected, with its place."""

    value: Any
    span: Span


@dataclass(frozen=True, slots=True)
class PlacedExpectation:
    """What is expected of the node or variable that `place` names."""

    place: str
    value: Any
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectations:
    """All that a case expects; None or empty where it says nothing."""

    status: Expected | None = None
    error: Expected | None = None
    output: Expected | None = None
    visited: Expected | None = None
    not_visited: tuple[PlacedExpectation, ...] = ()
    inputs: tuple[PlacedExpectation, ...] = ()
    vars: tuple[PlacedExpectation, ...] = ()
    attempts: tuple[PlacedExpectation, ...] = ()
    statuses: tuple[PlacedExpectation, ...] = ()
    result_codes: tuple[PlacedExpectation, ...] = ()
    errors: tuple[PlacedExpectation, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """In which order the results of claimed tasks come (R12)."""

    kind: str = "in_order"
    seed: int = 0

    def __str__(self) -> str:
        return f"seed {self.seed}" if self.kind == "seed" else self.kind.replace("_", " ")


IN_ORDER = Schedule()
REVERSE = Schedule(kind="reverse")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One case. `input_text` is the input as JSON text, which may be one that no door lets in.

    `before` are the runs of the same workflow that come first; nothing is expected of them.
    """

    name: str
    workflow: WorkflowRef
    input: Any
    input_text: str | None
    scripts: tuple[Script, ...]
    steps: tuple[Step, ...]
    expect: Expectations
    engines: tuple[str, ...]
    schedule: Schedule
    rules: tuple[str, ...]
    known_faults: dict[str, str]
    span: Span
    before: tuple[Case, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseFile:
    """A test file that was read without an error."""

    path: Path
    source: SourceFile
    catalogs: tuple[Path, ...] | None
    cases: tuple[Case, ...]
