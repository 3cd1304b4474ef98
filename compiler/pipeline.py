"""The compiler from end to end: parse, catalog, model, checks, and lowering when it is wanted.

    path → dsl.parser → File → one Model per workflow → CHECKS → lower → verify → GraphSpec

Every diagnostic of a file comes in one run, sorted by position. `check_file` stops after the
checks and so never imports pydantic or networkx. Specs are made only when no error was found.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from compiler import codes
from compiler.catalog import CatalogResult, discover_catalogs, load_catalog
from compiler.checks import CHECKS
from compiler.checks.finding import finding
from compiler.checks.support import not_yet
from compiler.file_aliases import FileAliases
from compiler.infer import type_loop_variables, type_set_variables
from compiler.model import Model
from compiler.silence import silence
from compiler.supported import NOT_YET
from compiler.symbols import build_model
from dsl.diagnostics import Diagnostic, InternalError, has_errors
from dsl.nodes import File, Name, TypeExpr, Workflow
from dsl.quick_class import dataclass
from dsl.source import SourceFile, Span

if TYPE_CHECKING:
    from compiler.imports import Imports
    from compiler.spec import GraphSpec
    from dsl.parser import ParseResult

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
    return _Check(path, catalog, state).run(parsed)


def check_text(
    text: str | bytes, name: str = "input.wf", catalog_paths: Sequence[str | Path] = ()
) -> CheckResult:
    """Checks a `.wf` text against the catalogs named."""
    from dsl.parser import parse_text

    parsed = parse_text(text, name)
    catalog, state = _catalog(Path(name), catalog_paths)
    return _Check(Path(name), catalog, state).run(parsed)


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


class _Check:
    """One run over one file."""

    def __init__(self, path: Path, catalog: CatalogResult, state: CatalogState) -> None:
        self._path = path
        self._catalog = catalog
        self._state = state
        self._found: list[Diagnostic] = []

    def run(self, parsed: ParseResult) -> CheckResult:
        source, file = parsed.source, parsed.file
        self._found += [*parsed.diagnostics, *self._catalog.diagnostics]
        if file is None:
            return CheckResult(source, (), _sorted(self._found))
        imports = self._imports(source, file)
        types = self._file_types(source, file, imports)
        aliases = FileAliases(types, () if imports is None else imports.types)
        models = [self._model(workflow, source, aliases) for workflow in file.workflows]
        for model in models:
            self._found.extend(found for check in CHECKS for found in check(model))
        self._check_names(source, models, imports)
        self._check_unused(source, file, imports, models)
        sources = {id(found.source): found.source for found in self._found} | {id(source): source}
        kept = silence(self._found, [s for s in sources.values() if s.name.endswith(".wf")])
        return CheckResult(source, tuple(models), _sorted(kept))

    def _imports(self, source: SourceFile, file: File) -> Imports | None:
        if not file.imports and file.workflows:
            return None
        what = NOT_YET.get(("file", "import"))
        if file.imports and what is not None:
            self._found.extend(not_yet(source, what, item.span) for item in file.imports)
            return None
        from compiler.imports import resolve_imports

        imports = resolve_imports(self._path, source, file)
        self._found.extend(imports.diagnostics)
        return imports

    def _file_types(
        self, source: SourceFile, file: File, imports: Imports | None
    ) -> dict[str, TypeExpr]:
        types: dict[str, TypeExpr] = {} if imports is None else dict(imports.types)
        first: dict[str, Span] = {}
        if imports is not None:
            first.update((name, items[0].span) for name, items in imports.origins.items())
        for alias in file.types:
            self._once(source, first, "type", alias.name)
            types.setdefault(alias.name.text, alias.type)
        return types

    def _model(self, workflow: Workflow, source: SourceFile, aliases: FileAliases) -> Model:
        model = build_model(workflow, source, aliases, self._catalog.actions)
        model.catalog = self._state
        type_loop_variables(model)
        type_set_variables(model)
        return model

    def _check_names(
        self, source: SourceFile, models: list[Model], imports: Imports | None
    ) -> None:
        """What stands between workflows: their names, and aliases that hide imported ones."""
        seen: dict[str, Span] = {}
        for model in models:
            name = model.workflow.name
            # Names that differ only in case are one name on a case-insensitive server (R19).
            folded = name.text.lower()
            first = seen.setdefault(folded, name.span)
            if first is not name.span:
                other = source.text[first.start : first.end]
                message = f'workflow "{name.text}" is declared twice in this file'
                if other != name.text:
                    message = f'workflow "{name.text}" differs from "{other}" only in case'
                code = codes.DUPLICATE_WORKFLOW
                self._found.append(finding(source, code, name.span, message, "rename one", first))
            if imports is not None and model.workflow.types:
                imported = {name: items[0].span for name, items in imports.origins.items()}
                for alias in model.workflow.types:
                    if alias.name.text in imported:
                        self._once(source, imported, "type", alias.name)

    def _once(self, source: SourceFile, first: dict[str, Span], what: str, name: Name) -> None:
        if name.text in first:
            message = f'{what} "{name.text}" is declared twice'
            code = codes.DUPLICATE_NAME
            self._found.append(
                finding(source, code, name.span, message, "rename one", first[name.text])
            )
        first.setdefault(name.text, name.span)

    def _check_unused(
        self, source: SourceFile, file: File, imports: Imports | None, models: list[Model]
    ) -> None:
        # A file without workflows passes on what it imports.
        if imports is None or not models:
            return
        from compiler.imports import unused

        used: frozenset[str] = frozenset().union(*(model.used_types for model in models))
        for item in unused(imports, file, used):
            message = f'nothing of "{item.path}" is used'
            code = codes.UNUSED_IMPORT
            self._found.append(finding(source, code, item.span, message, "remove it"))


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
