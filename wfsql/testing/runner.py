"""Runs the cases of files on one engine and tells how each went."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from dsl.diagnostics import Diagnostic
from wfsql.testing.cases import Case, CaseFile, Schedule
from wfsql.testing.driver import Played, Problem, play
from wfsql.testing.engines import Engine, EngineProblem
from wfsql.testing.expectations import Failure, unmet
from wfsql.testing.fitting import find_misfits
from wfsql.testing.graph_index import GraphIndex
from wfsql.testing.reader import SUFFIX
from wfsql.testing.workflows import Workflows

Verdict = Literal["passed", "failed", "skipped", "known_fault"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """How one case went. `played` is None when it could not be played at all."""

    file: CaseFile
    case: Case
    engine: str
    schedule: Schedule
    verdict: Verdict
    failures: tuple[Failure, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    note: str | None = None
    seconds: float = 0.0
    index: GraphIndex | None = None
    played: Played | None = None


def find_files(paths: list[Path]) -> list[Path]:
    """Returns the test files among files and below folders, each once, by name."""
    found: dict[Path, None] = {}
    for path in paths:
        below = sorted(path.rglob(f"*{SUFFIX}")) if path.is_dir() else [path]
        found.update(dict.fromkeys(below))
    return list(found)


@dataclass(slots=True)
class Runner:
    """Plays cases on one engine. `schedule` takes the place of the cases' own."""

    engine: Engine
    workflows: Workflows
    schedule: Schedule | None = None
    is_strict: bool = False

    def run_file(self, file: CaseFile, name_part: str | None = None) -> Iterator[CaseResult]:
        """Yields the result of each case whose name has `name_part` in it."""
        for case in file.cases:
            if name_part is None or name_part in case.name:
                yield self.run_case(file, case)

    def run_case(self, file: CaseFile, case: Case) -> CaseResult:
        began = time.perf_counter()
        result = self._run(file, case)
        fault = case.known_faults.get(self.engine.name)
        if fault is not None and result.verdict != "skipped":
            result = _judge_known_fault(result, fault)
        return replace(result, seconds=time.perf_counter() - began)

    def _run(self, file: CaseFile, case: Case) -> CaseResult:
        schedule = self.schedule or case.schedule
        blank = CaseResult(
            file=file, case=case, engine=self.engine.name, schedule=schedule, verdict="failed"
        )
        if self.engine.name not in case.engines:
            note = f"it runs on {', '.join(case.engines)}"
            return replace(blank, verdict="skipped", note=note)
        index = self.workflows.find(file, case.workflow)
        if not isinstance(index, GraphIndex):
            return replace(blank, diagnostics=index)
        misfits = find_misfits(case, index)
        if misfits:
            return replace(blank, diagnostics=self._findings(file, misfits))
        try:
            played = play(self.engine, index, case, schedule)
        except EngineProblem as problem:
            note = problem.message if problem.hint is None else f"{problem.message}; {problem.hint}"
            return replace(blank, note=note)
        return self._judge(replace(blank, index=index, played=played), played, index)

    def _judge(self, blank: CaseResult, played: Played, index: GraphIndex) -> CaseResult:
        case = blank.case
        findings = self._findings(blank.file, played.problems)
        if played.is_broken:
            return replace(blank, diagnostics=findings)
        expect = case.expect
        if blank.schedule != case.schedule:
            expect = replace(expect, visited=None)  # it tells the order of the case's own schedule
        failures = unmet(expect, played, index)
        is_bad = bool(failures) or any(found.severity == "error" for found in findings)
        return replace(
            blank,
            verdict="failed" if is_bad else "passed",
            failures=tuple(failures),
            diagnostics=findings,
        )

    def _findings(self, file: CaseFile, problems: list[Problem]) -> tuple[Diagnostic, ...]:
        return tuple(
            Diagnostic(
                code=problem.code.code,
                severity="error" if self.is_strict else problem.code.severity,
                message=problem.message,
                source=file.source,
                span=problem.span,
                hint=problem.hint,
            )
            for problem in problems
        )


def _judge_known_fault(result: CaseResult, fault: str) -> CaseResult:
    """A case that is known to fail must fail, or its mark has to go."""
    if result.verdict == "failed":
        return replace(result, verdict="known_fault", note=fault)
    note = f"it passes now, so its `xfail` has to go ({fault})"
    return replace(result, verdict="failed", note=note)
