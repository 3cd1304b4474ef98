"""The action catalog: from `*.actions.yaml` files to the actions a workflow may use.

Flow: read and decode, parse with places kept, check against `catalog.schema.json`, turn the short
type syntax into types and JSON Schema, collect. Whatever does not fit is a diagnostic with its
place in the YAML file; the actions that do fit are still returned, so one slip hides nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from compiler import codes, json_values
from compiler.attributes import factor_hundredths, retry_value
from compiler.catalog_types import (
    NoType,
    ShortType,
    parse_short_types,
    place_in_yaml,
    unquoted_type,
)
from compiler.schema_check import accepts, is_plain_schema, misfits, schema_problem
from compiler.suggest import did_you_mean
from compiler.supported import CATALOG_NOT_YET
from compiler.type_model import ANY, BUILTIN, Type, TypeResolver, from_schema, json_schema
from compiler.yaml_reader import YamlNode, YamlProblem, read_source, read_yaml
from dsl.codes import Code
from dsl.diagnostics import Diagnostic, Label
from dsl.literals import duration_milliseconds
from dsl.quick_class import dataclass
from dsl.source import SourceFile, Span

SUFFIX = ".actions.yaml"
DEFAULT_CAPABILITY = "default"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CatalogAction:
    """One action as the catalog describes it, and where it stands there."""

    name: str
    source: SourceFile
    span: Span
    description: str | None
    version: str | None
    capability: str
    input_type: Type
    output_type: Type
    input_schema: dict[str, Any] | None
    output_schema: dict[str, Any] | None
    result_codes: Mapping[str, str]
    idempotent: bool
    timeout_ms: int | None
    retry: Mapping[str, Any] | None
    """As the GraphSpec writes one: an action that says nothing else is tried again this way."""
    dispatch: Mapping[str, Any]
    sensitive: tuple[str, ...]
    identity: Mapping[str, Any]
    """What the revision is made from: all that a run depends on."""

    @property
    def revision(self) -> str:
        """The hash of what the action is; only lowering asks for it."""
        return json_values.sha256_hex(self.identity)

    def code_of(self, name: str) -> int | None:
        """Returns the integer of a named result code."""
        return next((int(code) for code, word in self.result_codes.items() if word == name), None)


@dataclass(frozen=True, slots=True)
class CatalogResult:
    actions: Mapping[str, CatalogAction]
    diagnostics: tuple[Diagnostic, ...]


def discover_catalogs(wf_path: Path) -> tuple[Path, ...]:
    """Returns every `*.actions.yaml` beside a workflow file, by name."""
    folder = wf_path.parent
    if not folder.is_dir():
        return ()
    return tuple(sorted(folder.glob(f"*{SUFFIX}"), key=lambda path: path.name))


def load_catalog(paths: Iterable[Path]) -> CatalogResult:
    """Reads catalog files; an action may stand in one of them only."""
    loader = _Loader()
    for path in paths:
        loader.load(path)
    loader.resolve_types()
    return CatalogResult(loader.actions(), tuple(sorted(loader.found, key=_sort_key)))


def _sort_key(diagnostic: Diagnostic) -> tuple[str, int, int, str]:
    return diagnostic.sort_key


def catalog_schema() -> dict[str, Any]:
    """Returns the JSON Schema of a catalog file, its patterns in Python's dialect."""
    text = Path(__file__).with_name("catalog.schema.json").read_text("utf-8")
    schema: dict[str, Any] = json.loads(text, object_hook=_with_python_pattern)
    return schema


def _with_python_pattern(schema: dict[str, Any]) -> dict[str, Any]:
    """In JSON Schema `$` is the end of the text, in Python also the place before a last newline."""
    pattern = schema.get("pattern")
    return (
        {**schema, "pattern": pattern.replace("$", r"\Z")} if isinstance(pattern, str) else schema
    )


@dataclass(slots=True, eq=False)
class _Entry:
    """An action on its way: its YAML, and its types once they are resolved."""

    node: YamlNode
    source: SourceFile
    name: str
    types: dict[str, tuple[Type, dict[str, Any] | None]]


class _Loader:
    def __init__(self) -> None:
        self.found: list[Diagnostic] = []
        self._entries: dict[str, _Entry] = {}
        self._schema = catalog_schema()

    def load(self, path: Path) -> None:
        name = str(path)
        source = SourceFile(name, "")
        try:
            source = read_source(path, name)
            document = read_yaml(source)
        except YamlProblem as problem:
            code = codes.CATALOG_YAML if source.text else codes.CATALOG_UNREADABLE
            self._report(code, source, problem.span, problem.message, problem.hint)
            return
        value = document.value()
        if not accepts(self._schema, value):
            self._report_misfits(source, document, value)
        listed = document.child("actions")
        if listed is not None and isinstance(listed.content, tuple):
            for node in listed.content:
                self._enter(source, node)

    def _report_misfits(self, source: SourceFile, document: YamlNode, value: Any) -> None:
        for misfit in misfits(self._schema, value):
            span = _place(document, misfit.path, misfit.at_key)
            self._report(codes.CATALOG_MISFIT, source, span, misfit.message, misfit.hint)

    def _enter(self, source: SourceFile, node: YamlNode) -> None:
        if not accepts({**self._schema, "$ref": "#/$defs/action"}, node.value()):
            return
        name_node = node.content["name"]
        name = name_node.content
        if name in self._entries:
            self._report_duplicate(source, name_node.span, name)
            return
        self._entries[name] = _Entry(node, source, name, {})
        for key, what in CATALOG_NOT_YET.items():
            if key in node.content:
                message = f"{what} is not supported yet"
                self._report(codes.NOT_YET, source, node.key_spans[key], message, "remove it")
        self._check_times(source, node)

    def _check_times(self, source: SourceFile, node: YamlNode) -> None:
        """What the schema of a catalog cannot say of its durations and factors."""
        retry = node.child("retry")
        places = [node.child("timeout")]
        if retry is not None:
            places += [retry.child("backoff"), retry.child("max")]
            factor = retry.child("factor")
            if factor is not None and factor_hundredths(factor.content) is None:
                message = "a factor has at most two decimal places"
                self._report(codes.CATALOG_MISFIT, source, factor.span, message)
        for place in places:
            milliseconds = 1 if place is None else duration_milliseconds(place.content)
            if place is not None and not (isinstance(milliseconds, int) and milliseconds > 0):
                message = "a duration must be longer than nothing"
                if isinstance(milliseconds, str):
                    message = milliseconds
                self._report(codes.CATALOG_MISFIT, source, place.span, message)

    def _report_duplicate(self, source: SourceFile, span: Span, name: str) -> None:
        first = self._entries[name]
        place = first.source.position(first.node.content["name"].span.start)
        hint = f"the first is in {first.source.name}, line {place.line}"
        labels: tuple[Label, ...] = ()
        if first.source is source:
            labels = (Label(span=first.node.content["name"].span, message="first here"),)
        message = f'action "{name}" is described twice'
        self._report(codes.CATALOG_DUPLICATE, source, span, message, hint, labels)

    def resolve_types(self) -> None:
        """Turns `input` and `output` into types; all short types are parsed in one go."""
        short: list[tuple[_Entry, str, YamlNode]] = []
        for entry in self._entries.values():
            for field in ("input", "output"):
                node = entry.node.child(field)
                if node is None:
                    entry.types[field] = (ANY, None)
                elif isinstance(node.content, str):
                    short.append((entry, field, node))
                else:
                    entry.types[field] = self._schema_type(entry, node)
        parsed = parse_short_types([node.content for _, _, node in short])
        for position, (entry, field, node) in enumerate(short):
            one = self._parse_one(entry, node) if isinstance(parsed, NoType) else parsed[position]
            entry.types[field] = self._short_type(entry, node, one)
        for entry in self._entries.values():
            self._check_sensitive(entry)
            self._check_affinity(entry)

    def _check_sensitive(self, entry: _Entry) -> None:
        """Each pointer leads somewhere, as far as the types say what there is."""
        listed = entry.node.child("sensitive")
        for node in listed.content if listed is not None else ():
            root, *steps = node.content.removeprefix("/").split("/")
            known, _schema = entry.types[root]
            problem = _step_problem(known, steps)
            if problem is not None:
                message, hint = problem
                message = f'"{node.content}" points nowhere: {message}'
                self._report(codes.CATALOG_MISFIT, entry.source, node.span, message, hint)

    def _check_affinity(self, entry: _Entry) -> None:
        """The key of a task is taken from its input, so the input must have the field."""
        dispatch = entry.node.child("dispatch")
        node = None if dispatch is None else dispatch.child("affinity_key_field")
        fields = entry.types["input"][0].fields if "input" in entry.types else None
        if node is None or fields is None or node.content in [field.name for field in fields]:
            return
        message = f'the input has no field "{node.content}", so there is no key'
        hint = did_you_mean(node.content, [field.name for field in fields])
        self._report(codes.CATALOG_MISFIT, entry.source, node.span, message, hint)

    def _schema_type(self, entry: _Entry, node: YamlNode) -> tuple[Type, dict[str, Any] | None]:
        schema = node.value()
        if is_plain_schema(schema):
            return from_schema(schema), schema
        unquoted = unquoted_type(node)
        problem = schema_problem(schema) if unquoted is None else None
        if unquoted is not None:
            span, key, hint = unquoted
            message = f'"{key}" is no keyword of JSON Schema'
            self._report(codes.CATALOG_TYPE, entry.source, span, message, hint)
        elif problem is not None:
            message = f"no valid JSON Schema: {problem}"
            self._report(codes.CATALOG_TYPE, entry.source, node.span, message)
        else:
            return from_schema(schema), schema
        return ANY, None

    def _parse_one(self, entry: _Entry, node: YamlNode) -> ShortType | None:
        parsed = parse_short_types([node.content])
        if not isinstance(parsed, NoType):
            return parsed[0]
        message, span = "this is not a type", node.span
        if parsed.reason is not None and parsed.span is not None:
            message = f"{message}: {parsed.reason}"
            span = place_in_yaml(entry.source, node, parsed.span)
        hint = parsed.hint or 'write one such as "{ sku: string, qty: int }", or a JSON Schema'
        self._report(codes.CATALOG_TYPE, entry.source, span, message, hint)
        return None

    def _short_type(
        self, entry: _Entry, node: YamlNode, parsed: ShortType | None
    ) -> tuple[Type, dict[str, Any] | None]:
        if parsed is None:
            return ANY, None

        def report(kind: str, span: Span, name: str) -> None:
            words = {
                "unknown": f'unknown type "{name}"',
                "duplicate": f'"{name}" stands twice in this type',
                "deep": "this type is nested too deep or too large",
            }
            hint = did_you_mean(name, BUILTIN) if kind == "unknown" else None
            inside = Span(span.start - parsed.base, span.end - parsed.base)
            place = place_in_yaml(entry.source, node, inside)
            self._report(codes.CATALOG_TYPE, entry.source, place, words[kind], hint)

        resolved = TypeResolver({}, report).resolve(parsed.expr)
        return resolved, json_schema(resolved)

    def actions(self) -> dict[str, CatalogAction]:
        return {name: _action(entry) for name, entry in self._entries.items()}

    def _report(
        self,
        code: Code,
        source: SourceFile,
        span: Span,
        message: str,
        hint: str | None = None,
        labels: Sequence[Label] = (),
    ) -> None:
        self.found.append(
            Diagnostic(
                code=code.code,
                severity=code.severity,
                message=message,
                source=source,
                span=span,
                hint=hint,
                labels=tuple(labels),
            )
        )


def _place(document: YamlNode, path: tuple[str | int, ...], at_key: bool) -> Span:
    """Returns the place of a path; of its last key when `at_key`, as far as the path leads."""
    node = document
    for position, step in enumerate(path):
        if at_key and position == len(path) - 1 and step in node.key_spans:
            return node.key_spans[str(step)]
        child = node.child(step)
        if child is None:
            break
        node = child
    return node.span


def _step_problem(type_: Type, steps: list[str]) -> tuple[str, str | None] | None:
    """Returns why no value of a type has a place there, and a hint; None where it may have one."""
    for step in steps:
        key = step.replace("~1", "/").replace("~0", "~")
        if type_.base == "any" or (type_.base == "object" and type_.fields is None):
            return None
        if type_.base == "list" and (key.isdecimal() or type_.item is None):
            type_ = type_.item or ANY
            continue
        field = type_.field(key)
        if field is None:
            known = [field.name for field in type_.fields or ()]
            return f'{type_.describe()} has no field "{key}"', did_you_mean(key, known)
        type_ = field.type
    return None


def _action(entry: _Entry) -> CatalogAction:
    value = entry.node.value()
    input_type, input_schema = entry.types["input"]
    output_type, output_schema = entry.types["output"]
    # What a version freezes (R24): everything but description, capability and dispatch. A retry
    # counts only when there is one, so that older revisions keep their names.
    frozen: dict[str, Any] = {
        "timeout_ms": _milliseconds(value.get("timeout")),
        "version": value.get("version"),
        "input_schema": input_schema,
        "output_schema": output_schema,
        "result_codes": value.get("result_codes", {}),
        "idempotent": value.get("idempotent", True),
        "sensitive": value.get("sensitive", []),
    }
    retry = _retry(value.get("retry"))
    identity = {"name": entry.name, **frozen} | ({} if retry is None else {"retry": retry})
    return CatalogAction(
        name=entry.name,
        source=entry.source,
        span=entry.node.content["name"].span,
        description=value.get("description"),
        capability=value.get("capability", DEFAULT_CAPABILITY),
        input_type=input_type,
        output_type=output_type,
        retry=retry,
        dispatch=value.get("dispatch", {}),
        identity=identity,
        **{**frozen, "sensitive": tuple(frozen["sensitive"])},
    )


def _milliseconds(text: str | None) -> int | None:
    found = None if text is None else duration_milliseconds(text)
    return found if isinstance(found, int) else None


def _retry(value: dict[str, Any] | None) -> dict[str, Any] | None:
    if value is None:
        return None
    return retry_value(
        value["attempts"],
        _milliseconds(value.get("backoff")),
        value.get("factor"),
        _milliseconds(value.get("max")),
        value.get("jitter", False),
    )
