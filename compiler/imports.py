"""Imports: the `type` aliases that `import "shared/types.wf"` brings in.

Flow: `resolve_imports` follows the imports of a file depth first, each file once, and then settles
them bottom up: what a file may name is its own aliases and those of all it imports. An alias that
is wrong is reported in the file it stands in and passes for `any` from there on, so that nobody
who imports it hears of it again. Paths are relative, inside the project, and never leave it
through a link.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from compiler import codes
from compiler.type_model import TypeResolver
from dsl.codes import Code
from dsl.diagnostics import Diagnostic, Label, has_errors
from dsl.nodes import File, Import, NamedType, TypeAlias, TypeExpr
from dsl.quick_class import dataclass, field
from dsl.source import SourceFile, Span

PROJECT_MARKS = ("wf.toml", "pyproject.toml", ".git")
SUFFIX = ".wf"
MAX_FILES = 1_000  # that one file imports, those that its imports import among them


@dataclass(frozen=True, slots=True)
class Imports:
    """The aliases a file imports, and by which of its `import`s each came (there may be two)."""

    types: dict[str, TypeExpr]
    origins: dict[str, list[Import]]
    diagnostics: tuple[Diagnostic, ...]
    failed: frozenset[int]
    """The `id`s of those imports that bring nothing because something is wrong with them."""


@dataclass(slots=True, eq=False)
class _Unit:
    """One file. `types` is what it offers: its own aliases and those it imports."""

    path: Path
    source: SourceFile
    file: File
    pending: list[Import]
    parents: list[tuple[Import, _Unit]] = field(default_factory=list)
    types: dict[str, TypeExpr] = field(default_factory=dict)
    homes: dict[str, _Unit] = field(default_factory=dict)
    origins: dict[str, list[Import]] = field(default_factory=dict)


def project_root(folder: Path) -> Path:
    """Returns the nearest folder at or above that is a project's, else the folder itself (R40)."""
    for candidate in (folder, *folder.parents):
        if any((candidate / mark).exists() for mark in PROJECT_MARKS):
            return candidate
    return folder


def resolve_imports(path: Path, source: SourceFile, file: File) -> Imports:
    """Follows the imports of a file."""
    return _Resolver(path, source, file).run()


def unused(imports: Imports, file: File, used: frozenset[str]) -> list[Import]:
    """Returns the imports of which nothing is used."""
    needed = {id(item) for name in used for item in imports.origins.get(name, ())}
    needed |= imports.failed
    return [item for item in file.imports if id(item) not in needed]


class _Resolver:
    def __init__(self, path: Path, source: SourceFile, file: File) -> None:
        folder = path.parent.resolve()
        self._root = project_root(folder)
        self._found: list[Diagnostic] = []
        self._main = _Unit(folder / path.name, source, file, list(file.imports))
        self._done: dict[Path, _Unit] = {}
        self._bad: dict[Path, bool] = {}
        self._read_count = 0

    def run(self) -> Imports:
        open_ = [self._main]
        while open_:
            unit = open_[-1]
            if unit.pending:
                item = unit.pending.pop(0)
                child = self._enter(unit, item, open_)
                if child is not None:
                    open_.append(child)
                continue
            open_.pop()
            self._done[unit.path] = unit
            if unit is not self._main:
                self._settle(unit)
        main = self._main
        if main.file.workflows:
            self._collect(main)  # its own aliases are checked with its workflows
        else:
            self._settle(main)
        reached = {id(item) for item, _unit in main.parents}
        failed = frozenset(id(item) for item in main.file.imports if id(item) not in reached)
        return Imports(main.types, main.origins, tuple(self._found), failed)

    # --- from an import to a file ---

    def _enter(self, unit: _Unit, item: Import, open_: list[_Unit]) -> _Unit | None:
        """Notes the unit an import names; returns it when it still has to be read through."""
        target = self._target(unit, item)
        if target is None:
            return None
        circle = [other for other in open_ if other.path == target]
        if circle:
            names = [other.path.name for other in open_[open_.index(circle[0]) :]]
            message = "imports go round in a circle: " + " > ".join([*names, target.name])
            self._report(codes.IMPORT_CYCLE, unit, item.span, message, "move the types they share")
            return None
        if target in self._done:
            unit.parents.append((item, self._done[target]))
            return None
        child = self._read(unit, item, target)
        if child is not None:
            unit.parents.append((item, child))
        return child

    def _target(self, unit: _Unit, item: Import) -> Path | None:
        problem = _path_problem(item.path)
        if problem is not None:
            self._report(codes.BAD_IMPORT, unit, item.span, *problem)
            return None
        # Unlike Path.resolve, realpath takes links that lead round in a circle.
        target = Path(os.path.realpath(unit.path.parent / item.path))
        if not target.is_relative_to(self._root):
            message = f'"{item.path}" leads out of the project'
            self._report(codes.BAD_IMPORT, unit, item.span, message, "import from inside it")
            return None
        return target

    def _read(self, unit: _Unit, item: Import, target: Path) -> _Unit | None:
        from dsl.parser import parse_file

        if target in self._bad:
            return None
        if self._read_count >= MAX_FILES:
            message = f'"{item.path}" is not read: a file imports at most {MAX_FILES} files'
            hint = "put the types of several files in one"
            self._report(codes.BAD_IMPORT, unit, item.span, message, hint)
            return None
        shown = str(Path(unit.source.name).parent / item.path)
        parsed = parse_file(target, shown)
        if not parsed.source.text and has_errors(parsed.diagnostics):
            self._bad[target] = True
            reason = parsed.diagnostics[0].message
            message = f'"{item.path}" cannot be imported: {reason}'
            self._report(codes.BAD_IMPORT, unit, item.span, message, parsed.diagnostics[0].hint)
            return None
        self._found.extend(parsed.diagnostics)
        if parsed.file is None:
            self._bad[target] = True
            return None
        self._read_count += 1
        return _Unit(target, parsed.source, parsed.file, list(parsed.file.imports))

    # --- from files to names ---

    def _collect(self, unit: _Unit) -> None:
        """Takes over what the imports of a file offer."""
        for item, other in unit.parents:
            for name, expr in other.types.items():
                home = other.homes[name]
                if unit.homes.get(name, home) is not home:
                    message = f'type "{name}" is imported from {unit.homes[name].source.name} too'
                    self._report(codes.DUPLICATE_NAME, unit, item.span, message, "rename one")
                    continue
                unit.types[name], unit.homes[name] = expr, home
                unit.origins.setdefault(name, []).append(item)

    def _settle(self, unit: _Unit) -> None:
        """Checks the aliases of an imported file where they stand."""
        self._collect(unit)
        own: dict[str, TypeAlias] = {}
        for alias in unit.file.types:
            name = alias.name.text
            if name in own or name in unit.types:
                message = f'type "{name}" is declared twice'
                first = own[name].name.span if name in own else unit.origins[name][0].span
                self._report(
                    codes.DUPLICATE_NAME, unit, alias.name.span, message, "rename one", first
                )
                continue
            own[name] = alias
        visible = {**unit.types, **{name: alias.type for name, alias in own.items()}}
        for name, alias in own.items():
            problems = list(self._problems(unit, visible, alias))
            self._found.extend(problems)
            unit.types[name] = NamedType(name="any", span=alias.span) if problems else alias.type
            unit.homes[name] = unit

    def _problems(
        self, unit: _Unit, visible: dict[str, TypeExpr], alias: TypeAlias
    ) -> Iterator[Diagnostic]:
        from compiler.checks.types import type_names, type_problem

        misfits: list[tuple[str, Span, str]] = []
        resolver = TypeResolver(visible, lambda *misfit: misfits.append(misfit))
        resolver.resolve(NamedType(name=alias.name.text, span=alias.name.span))
        names = type_names(visible) if misfits else ()
        for kind, span, name in misfits:
            code, message, hint = type_problem(kind, name, names)
            yield _diagnostic(code, unit.source, span, message, hint)

    def _report(
        self,
        code: Code,
        unit: _Unit,
        span: Span,
        message: str,
        hint: str | None = None,
        first: Span | None = None,
    ) -> None:
        self._found.append(_diagnostic(code, unit.source, span, message, hint, first))


def _diagnostic(
    code: Code,
    source: SourceFile,
    span: Span,
    message: str,
    hint: str | None,
    first: Span | None = None,
) -> Diagnostic:
    return Diagnostic(
        code=code.code,
        severity=code.severity,
        message=message,
        source=source,
        span=span,
        hint=hint,
        labels=() if first is None else (Label(span=first, message="first here"),),
    )


def _path_problem(path: str) -> tuple[str, str] | None:
    """Returns message and hint when a path cannot be that of an import."""
    if "\0" in path or "\\" in path:
        return "this path has a character that is not allowed", "separate folders with `/`"
    if "://" in path:
        return "an import is a file of this project, not an address", "copy the file here"
    if Path(path).is_absolute():
        return "an import is relative to the file it stands in", "begin it with the folder's name"
    if not path.endswith(SUFFIX):
        return f"only `{SUFFIX}` files can be imported", "name a file of types"
    return None
