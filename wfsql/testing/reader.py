"""Reads a `*.wftest.yaml` file into typed cases, or says what is wrong with it and where.

Flow: YAML with positions → JSON Schema (shape, unknown keys) → `Case`s, with what a schema cannot
say (a duration that is too long, two cases of one name). A file with an error gives no cases.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from compiler.schema_check import accepts, misfits
from compiler.yaml_reader import MAX_BYTES, YamlNode, YamlProblem, read_yaml
from dsl.codes import Code
from dsl.diagnostics import Diagnostic, Label
from dsl.literals import duration_milliseconds
from dsl.source import SourceFile, Span
from wfsql.testing import codes
from wfsql.testing.cases import (
    ENGINES,
    IN_ORDER,
    AdvanceClock,
    Case,
    CaseFile,
    Expectations,
    Expected,
    PlacedExpectation,
    Schedule,
    Script,
    ScriptedResult,
    SendEvent,
    Step,
    WorkflowRef,
)

SUFFIX = ".wftest.yaml"


@dataclass(frozen=True, slots=True)
class ReadResult:
    """`file` is None when a diagnostic is an error."""

    file: CaseFile | None
    diagnostics: tuple[Diagnostic, ...]


def read_cases(path: Path, name: str | None = None) -> ReadResult:
    """Reads one test file; `name` is what messages call it."""
    shown = name or str(path)
    try:
        source = _source(path, shown)
    except YamlProblem as problem:
        nowhere = SourceFile(shown, "")
        return ReadResult(None, (_finding(codes.UNREADABLE, nowhere, problem),))
    try:
        document = read_yaml(source)
    except YamlProblem as problem:
        empty = YamlProblem("the file is empty", Span(0, 0), "start it with `cases:`")
        shown_problem = problem if source.text.strip() else empty
        return ReadResult(None, (_finding(codes.NOT_YAML, source, shown_problem),))
    return _Reader(path, source).read(document)


@cache
def wftest_schema() -> dict[str, Any]:
    """Returns the JSON Schema of a test file, its patterns in Python's dialect."""
    text = Path(__file__).with_name("wftest.schema.json").read_text("utf-8")
    schema: dict[str, Any] = json.loads(text, object_hook=_with_python_pattern)
    return schema


def _with_python_pattern(schema: dict[str, Any]) -> dict[str, Any]:
    pattern = schema.get("pattern")
    return (
        {**schema, "pattern": pattern.replace("$", r"\Z")} if isinstance(pattern, str) else schema
    )


def _source(path: Path, name: str) -> SourceFile:
    nowhere = Span(0, 0)
    try:
        if path.stat().st_size > MAX_BYTES:
            raise YamlProblem("the test file is larger than 5 MB", nowhere, "split it")
        data = path.read_bytes()
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        raise YamlProblem(f"the test file cannot be read: {reason}", nowhere) from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise YamlProblem(
            f"the test file is not UTF-8 text (byte {error.start})", nowhere, "save it as UTF-8"
        ) from None
    return SourceFile(name, text.replace("\r\n", "\n").replace("\r", "\n"))


def _finding(code: Code, source: SourceFile, problem: YamlProblem) -> Diagnostic:
    return Diagnostic(
        code=code.code,
        severity=code.severity,
        message=problem.message,
        source=source,
        span=problem.span,
        hint=problem.hint,
    )


@dataclass(slots=True)
class _Reader:
    path: Path
    source: SourceFile
    found: list[Diagnostic] = field(default_factory=list)

    def read(self, document: YamlNode) -> ReadResult:
        value = document.value()
        schema = wftest_schema()
        if not accepts(schema, value):
            for misfit in misfits(schema, value):
                span = _place(document, misfit.path, misfit.at_key)
                self.report(codes.MISFIT, span, misfit.message, misfit.hint)
        if self.found:
            return self._result(None)
        cases = tuple(self._case(document, node) for node in _items(document.child("cases")))
        self._check_names(document, cases)
        if self.found:
            return self._result(None)
        file = CaseFile(
            path=self.path, source=self.source, catalogs=self._catalogs(document), cases=cases
        )
        return self._result(file)

    def _result(self, file: CaseFile | None) -> ReadResult:
        return ReadResult(file, tuple(sorted(self.found, key=lambda found: found.sort_key)))

    def report(self, code: Code, span: Span, message: str, hint: str | None = None) -> None:
        problem = YamlProblem(message, span, hint)
        self.found.append(_finding(code, self.source, problem))

    def _check_names(self, document: YamlNode, cases: tuple[Case, ...]) -> None:
        first: dict[str, Span] = {}
        for case in cases:
            if case.name not in first:
                first[case.name] = case.span
                continue
            self.found.append(
                Diagnostic(
                    code=codes.DUPLICATE_CASE.code,
                    severity="error",
                    message=f'case "{case.name}" stands twice in this file',
                    source=self.source,
                    span=case.span,
                    hint="rename one",
                    labels=(Label(span=first[case.name], message="first here"),),
                )
            )

    def _catalogs(self, document: YamlNode) -> tuple[Path, ...] | None:
        node = document.child("catalog")
        if node is None:
            return None
        names = [node.content] if isinstance(node.content, str) else node.value()
        return tuple(self.path.parent / name for name in names)

    # -- a case

    def _case(self, document: YamlNode, node: YamlNode) -> Case:
        name, workflow = node.content["name"], self._workflow(document, node)
        case = replace(
            self._run(node, name.content, name.span, workflow),
            expect=self._expect(node.content["expect"]),
            engines=_engines(node.child("engines") or document.child("engines")),
            schedule=_schedule(node.child("order")),
            rules=(*_texts(document.child("rules")), *_texts(node.child("rules"))),
            known_faults=self._known_faults(node.child("xfail")),
        )
        before = tuple(
            self._run(item, f"{case.name} (before)", item.span, workflow)
            for item in _items(node.child("before"))
        )
        return replace(case, before=before)

    def _run(self, node: YamlNode, name: str, span: Span, workflow: WorkflowRef) -> Case:
        """Reads what a case and a run before it have in common."""
        text = node.child("input_json")
        if text is not None and node.child("input") is not None:
            self.report(
                codes.BAD_VALUE,
                text.span,
                "`input` and `input_json` exclude each other",
                "keep one",
            )
        given = node.child("input")
        return Case(
            name=name,
            workflow=workflow,
            input={} if given is None else given.value(),
            input_text=None if text is None else text.content,
            scripts=self._scripts(node.child("actions")),
            steps=tuple(self._step(item) for item in _items(node.child("events"))),
            expect=Expectations(),
            engines=ENGINES,
            schedule=IN_ORDER,
            rules=(),
            known_faults={},
            span=span,
        )

    def _workflow(self, document: YamlNode, node: YamlNode) -> WorkflowRef:
        found = node.child("workflow") or document.child("workflow")
        if found is None:
            self.report(
                codes.NO_WORKFLOW,
                node.content["name"].span,
                "no workflow is named, neither here nor for the whole file",
                "add `workflow: file.wf`",
            )
            return WorkflowRef(file="", name=None, span=node.span)
        file, _, name = found.content.partition("#")
        return WorkflowRef(file=file, name=name or None, span=found.span)

    def _known_faults(self, node: YamlNode | None) -> dict[str, str]:
        if node is None:
            return {}
        if isinstance(node.content, str):
            return dict.fromkeys(ENGINES, node.content)
        for engine in node.content:
            if engine not in ENGINES:
                known = ", ".join(ENGINES)
                self.report(
                    codes.BAD_VALUE,
                    node.key_spans[engine],
                    f'there is no engine "{engine}"',
                    f"known here: {known}",
                )
        return {engine: reason.content for engine, reason in node.content.items()}

    def _scripts(self, node: YamlNode | None) -> tuple[Script, ...]:
        if node is None:
            return ()
        return tuple(
            Script(
                place=place,
                results=tuple(map(self._result_of, _items(script)))
                if isinstance(script.content, tuple)
                else (self._result_of(script),),
                is_list=isinstance(script.content, tuple),
                span=node.key_spans[place],
            )
            for place, script in node.content.items()
        )

    def _result_of(self, node: YamlNode) -> ScriptedResult:
        code, output, message = node.child("code"), node.child("output"), node.child("message")
        return ScriptedResult(
            code=0 if code is None else code.content,
            output={} if output is None else output.value(),
            message=None if message is None else message.content,
            takes_ms=self._duration(node.child("takes")),
            span=node.span,
        )

    def _duration(self, node: YamlNode | None) -> int:
        if node is None:
            return 0
        milliseconds = duration_milliseconds(node.content)
        if isinstance(milliseconds, str):
            self.report(codes.BAD_VALUE, node.span, milliseconds)
            return 0
        return milliseconds

    def _step(self, node: YamlNode) -> Step:
        advance = node.child("advance")
        if advance is not None:
            if len(node.content) > 1:
                self.report(codes.BAD_VALUE, node.span, "`advance` stands alone in its step")
            return AdvanceClock(milliseconds=self._duration(advance), span=node.span)
        if node.child("type") is None:
            self.report(codes.BAD_VALUE, node.span, "a step has `type` (an event) or `advance`")
        if node.child("when") is not None and node.child("after") is not None:
            self.report(codes.BAD_VALUE, node.span, "`when` and `after` exclude each other")
        payload, correlation = node.child("payload"), node.child("correlation_key")
        return SendEvent(
            type=_text(node.child("type")) or "",
            source=_text(node.child("source")) or "wftest",
            idempotency_key=_text(node.child("idempotency_key")),
            correlation_key=None if correlation is None else str(correlation.content),
            payload={} if payload is None else payload.value(),
            when=_text(node.child("when")),
            after=_text(node.child("after")),
            span=node.span,
        )

    # -- what is expected

    def _expect(self, node: YamlNode) -> Expectations:
        listed = node.child("not_visited")
        return Expectations(
            status=_expected(node, "status"),
            error=_expected(node, "error"),
            output=_expected(node, "output"),
            visited=_expected(node, "visited"),
            not_visited=tuple(
                PlacedExpectation(item.content, None, item.span) for item in _items(listed)
            ),
            inputs=_placed(node.child("inputs")),
            vars=_placed(node.child("vars")),
            attempts=_placed(node.child("attempts")),
            statuses=_placed(node.child("statuses")),
            result_codes=_placed(node.child("result_codes")),
            errors=_placed(node.child("errors")),
        )


def parse_schedule(text: str) -> Schedule | None:
    """Reads `in_order`, `reverse` or `seed N`; None when it is none of them."""
    if text in ("in_order", "reverse"):
        return Schedule(kind=text)
    match = re.fullmatch(r"seed ([0-9]{1,18})", text)
    return Schedule(kind="seed", seed=int(match.group(1))) if match else None


def _schedule(node: YamlNode | None) -> Schedule:
    return IN_ORDER if node is None else parse_schedule(node.content) or IN_ORDER


def _engines(node: YamlNode | None) -> tuple[str, ...]:
    return ENGINES if node is None else _texts(node)


def _items(node: YamlNode | None) -> tuple[YamlNode, ...]:
    return () if node is None else node.content


def _texts(node: YamlNode | None) -> tuple[str, ...]:
    return tuple(item.content for item in _items(node))


def _text(node: YamlNode | None) -> str | None:
    return None if node is None else node.content


def _expected(node: YamlNode, name: str) -> Expected | None:
    child = node.child(name)
    return None if child is None else Expected(child.value(), child.span)


def _placed(node: YamlNode | None) -> tuple[PlacedExpectation, ...]:
    if node is None:
        return ()
    return tuple(
        PlacedExpectation(place, child.value(), node.key_spans[place])
        for place, child in node.content.items()
    )


def _place(document: YamlNode, path: tuple[str | int, ...], at_key: bool) -> Span:
    """Returns the span of the value at `path`, or of its key."""
    node = document
    for position, step in enumerate(path):
        if at_key and position == len(path) - 1 and isinstance(step, str):
            return node.key_spans.get(step, node.span)
        below = node.child(step)
        if below is None:
            break
        node = below
    return Span(node.span.start, min(node.span.end, node.span.start + 80))
