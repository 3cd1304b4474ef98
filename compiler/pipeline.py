"""The compiler from end to end: parse, catalog, model, checks, and lowering when it is wanted.

    path → dsl.parser → File → one Model per workflow → CHECKS → lower → verify → GraphSpec

Every diagnostic of a file comes in one run, sorted by position. `check_file` stops after the
checks and so never imports pydantic or networkx. Specs are made only when no error was found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from compiler import codes
from compiler.catalog import CatalogResult, discover_catalogs, load_catalog
from compiler.checks import CHECKS
from compiler.checks.finding import finding
from compiler.checks.support import not_yet
from compiler.infer import type_loop_variables
from compiler.supported import NOT_YET
from compiler.symbols import Model, build_model
from dsl.diagnostics import Diagnostic, InternalError, has_errors
from dsl.nodes import File, TypeExpr
from dsl.source import SourceFile, Span

if TYPE_CHECKING:
    from compiler.spec import GraphSpec

CatalogState = Literal["ok", "missing", "broken"]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The models of a file's workflows and everything found in it; `models` may have errors."""

    source: SourceFile | None
    models: tuple[Model, ...]
    diagnostics: tuple[Diagnostic, ...]


@dataclass(frozen=True, slots=True)
class CompileResult:
    """`specs` is empty when a diagnostic is an error; else one per workflow, in file order."""

    specs: tuple[GraphSpec, ...]
    diagnostics: tuple[Diagnostic, ...]


def check_file(path: str | Path, catalog_paths: Sequence[str | Path] | None = None) -> CheckResult:
    """Checks a `.wf` file against the catalogs named, or those beside it."""
    from dsl.parser import parse_file

    path = Path(path)
    parsed = parse_file(path)
    catalog, state = _catalog(path, catalog_paths)
    return _check(parsed.source, parsed.file, parsed.diagnostics, catalog, state)


def check_text(
    text: str | bytes, name: str = "input.wf", catalog_paths: Sequence[str | Path] = ()
) -> CheckResult:
    """Checks a `.wf` text against the catalogs named."""
    from dsl.parser import parse_text

    parsed = parse_text(text, name)
    catalog, state = _catalog(Path(name), catalog_paths)
    return _check(parsed.source, parsed.file, parsed.diagnostics, catalog, state)


def compile_file(
    path: str | Path, catalog_paths: Sequence[str | Path] | None = None
) -> CompileResult:
    """Compiles a `.wf` file: as `check_file`, then a GraphSpec per workflow when none is wrong.

    Raises:
      InternalError: the compiler made a graph that its own verifier refuses.
    """
    return _compile(check_file(path, catalog_paths))


def compile_text(
    text: str | bytes, name: str = "input.wf", catalog_paths: Sequence[str | Path] = ()
) -> CompileResult:
    """Compiles a `.wf` text; see `compile_file`."""
    return _compile(check_text(text, name, catalog_paths))


def _catalog(
    path: Path, catalog_paths: Sequence[str | Path] | None
) -> tuple[CatalogResult, CatalogState]:
    paths = discover_catalogs(path) if catalog_paths is None else map(Path, catalog_paths)
    paths = tuple(paths)
    catalog = load_catalog(paths)
    if has_errors(catalog.diagnostics):
        return catalog, "broken"
    return catalog, "ok" if paths else "missing"


def _check(
    source: SourceFile | None,
    file: File | None,
    syntax: tuple[Diagnostic, ...],
    catalog: CatalogResult,
    state: CatalogState,
) -> CheckResult:
    found = [*syntax, *catalog.diagnostics]
    models: list[Model] = []
    if source is not None and file is not None:
        models = _models(source, file, catalog, state)
        for model in models:
            found.extend(diagnostic for check in CHECKS for diagnostic in check(model))
        if models:
            found.extend(_check_file_level(models, file))
    return CheckResult(source, tuple(models), _sorted(found))


def _models(
    source: SourceFile, file: File, catalog: CatalogResult, state: CatalogState
) -> list[Model]:
    types: dict[str, TypeExpr] = {}
    for alias in file.types:
        types.setdefault(alias.name.text, alias.type)
    models = []
    for workflow in file.workflows:
        model = build_model(workflow, source, types, catalog.actions)
        model.catalog = state
        type_loop_variables(model)
        models.append(model)
    return models


def _check_file_level(models: list[Model], file: File) -> list[Diagnostic]:
    """Checks of what stands outside or between workflows: names, imports."""
    found: list[Diagnostic] = []
    seen: dict[str, Span] = {}
    for model in models:
        name = model.workflow.name
        if name.text in seen:
            message = f'workflow "{name.text}" is declared twice in this file'
            found.append(
                finding(
                    model,
                    codes.DUPLICATE_WORKFLOW,
                    name.span,
                    message,
                    "rename one",
                    seen[name.text],
                )
            )
        seen.setdefault(name.text, name.span)
    types: dict[str, Span] = {}
    for alias in file.types:
        if alias.name.text in types:
            message = f'type "{alias.name.text}" is declared twice'
            first = types[alias.name.text]
            found.append(
                finding(
                    models[0], codes.DUPLICATE_NAME, alias.name.span, message, "rename one", first
                )
            )
        types.setdefault(alias.name.text, alias.name.span)
    what = NOT_YET.get(("file", "import"))
    if what is not None:
        found.extend(not_yet(models[0], what, item.span) for item in file.imports)
    return found


def _sorted(found: list[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Sorts by position; the same finding of an alias used twice is one finding."""
    unique = {(d.code, d.source.name, d.span.start, d.span.end, d.message): d for d in found}
    return tuple(sorted(unique.values(), key=lambda diagnostic: diagnostic.sort_key))


def _compile(checked: CheckResult) -> CompileResult:
    if has_errors(checked.diagnostics):
        return CompileResult((), checked.diagnostics)
    from compiler.lower import lower
    from compiler.verify import verify_spec

    specs = tuple(lower(model) for model in checked.models)
    for spec in specs:
        findings = verify_spec(spec)
        if findings:
            raise InternalError(f"workflow {spec.name}: {findings[0].message}")
    return CompileResult(specs, checked.diagnostics)
