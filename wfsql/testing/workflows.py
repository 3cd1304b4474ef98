"""Compiles the workflows that cases name; each file once, however many cases use it."""

from __future__ import annotations

from pathlib import Path

from compiler.pipeline import CompileResult, compile_file
from compiler.suggest import did_you_mean
from dsl.diagnostics import Diagnostic, has_errors
from wfsql.testing import codes
from wfsql.testing.cases import CaseFile, WorkflowRef
from wfsql.testing.graph_index import GraphIndex


class Workflows:
    """The compiled workflows of a run, by file and catalogs."""

    def __init__(self) -> None:
        self._compiled: dict[tuple[Path, tuple[Path, ...] | None], CompileResult] = {}
        self._told: set[tuple[Path, tuple[Path, ...] | None]] = set()
        self._indexes: dict[tuple[Path, tuple[Path, ...] | None, str], GraphIndex] = {}

    def find(self, file: CaseFile, ref: WorkflowRef) -> GraphIndex | tuple[Diagnostic, ...]:
        """Returns the workflow that a case names, or what is wrong with it."""
        path = file.path.parent / ref.file
        key = (path, file.catalogs)
        if key not in self._compiled:
            if not path.is_file():
                return (_finding(file, ref, f"there is no workflow file {ref.file}", None),)
            self._compiled[key] = compile_file(path, file.catalogs)
        result = self._compiled[key]
        if has_errors(result.diagnostics):
            here = _finding(file, ref, f"{ref.file} does not compile", None)
            # What is wrong with the workflow is told with the first case that names it.
            told = key in self._told
            self._told.add(key)
            errors = () if told else tuple(d for d in result.diagnostics if d.severity == "error")
            return (*errors, here)
        names = [spec.name for spec in result.specs]
        if ref.name is None and len(names) != 1:
            hint = f"say which: {ref.file}#{names[0]}" if names else None
            return (_finding(file, ref, f"{ref.file} has {len(names)} workflows", hint),)
        name = names[0] if ref.name is None else ref.name
        for spec in result.specs:
            if spec.name == name:
                return self._indexes.setdefault((*key, name), GraphIndex(spec))
        hint = did_you_mean(name, names)
        return (_finding(file, ref, f'{ref.file} has no workflow "{name}"', hint),)


def _finding(file: CaseFile, ref: WorkflowRef, message: str, hint: str | None) -> Diagnostic:
    code = codes.NO_WORKFLOW
    return Diagnostic(
        code=code.code,
        severity=code.severity,
        message=message,
        source=file.source,
        span=ref.span,
        hint=hint,
    )
