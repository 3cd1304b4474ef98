"""What `wf test` writes: text for people, JSON for programs, JUnit for build servers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from dsl.plain import plain
from dsl.render import render_data, render_text
from wfsql.testing.coverage import WorkflowCoverage
from wfsql.testing.runner import CaseResult

_SHOWN_LINES = 60


def text_of(result: CaseResult) -> str:
    """Returns the lines that say how a case went; empty for one that passed."""
    if result.verdict in ("passed", "skipped") and not result.diagnostics:
        return ""
    lines = []
    if result.verdict == "failed":
        lines.append(f"FAIL {_place(result)} ({_how(result)})")
    elif result.verdict == "known_fault":
        return f"XFAIL {_place(result)} ({_how(result)}): {plain(result.note or '')}\n"
    if result.note is not None:
        lines.append(f"  {plain(result.note)}")
    for found in result.diagnostics:
        lines += [f"  {line}".rstrip() for line in render_text([found]).rstrip("\n").split("\n")]
    for failure in result.failures:
        line = result.file.source.position(failure.span.start).line
        lines.append(f"  {plain(failure.what)}, expected in line {line}:")
        lines += [f"    {plain(text)}" for text in failure.lines[:_SHOWN_LINES]]
        if len(failure.lines) > _SHOWN_LINES:
            lines.append(f"    … {len(failure.lines) - _SHOWN_LINES} more lines")
    return "\n".join(lines) + "\n"


def _place(result: CaseResult) -> str:
    line = result.file.source.position(result.case.span.start).line
    return plain(f"{result.file.source.name}:{line}: {result.case.name}")


def _how(result: CaseResult) -> str:
    if result.schedule.kind == "in_order":
        return result.engine
    return f"{result.engine}, {result.schedule}"


def summary(results: Sequence[CaseResult]) -> str:
    """Returns the closing lines; the last is `N passed, N failed`."""
    counts = Counter(result.verdict for result in results)
    lines = []
    if counts["skipped"]:
        lines.append(f"{counts['skipped']} skipped: they name other engines")
    if counts["known_fault"]:
        lines.append(f"{counts['known_fault']} failed as their `xfail` says")
    lines.append(f"{counts['passed']} passed, {counts['failed']} failed")
    return "\n".join(lines) + "\n"


def json_of(
    results: Sequence[CaseResult], coverage: Sequence[WorkflowCoverage] | None = None
) -> dict[str, Any]:
    """Returns the report as one JSON value."""
    counts = Counter(result.verdict for result in results)
    document: dict[str, Any] = {
        "passed": counts["passed"],
        "failed": counts["failed"],
        "skipped": counts["skipped"],
        "known_faults": counts["known_fault"],
        "cases": [_case_json(result) for result in results],
    }
    if coverage is not None:
        document["coverage"] = [
            {
                "workflow": one.workflow,
                "file": one.file,
                "edges": [
                    {
                        "parent": edge.parent,
                        "way": edge.way,
                        "line": edge.line,
                        "taken": edge.taken_count,
                    }
                    for edge in one.edges
                ],
            }
            for one in coverage
        ]
    return document


def _case_json(result: CaseResult) -> dict[str, Any]:
    source = result.file.source
    return {
        "file": source.name,
        "line": source.position(result.case.span.start).line,
        "name": result.case.name,
        "engine": result.engine,
        "order": str(result.schedule),
        "verdict": result.verdict,
        "milliseconds": round(result.seconds * 1000),
        "note": result.note,
        "failures": [
            {
                "what": failure.what,
                "line": source.position(failure.span.start).line,
                "column": source.position(failure.span.start).column,
                "diff": list(failure.lines),
            }
            for failure in result.failures
        ],
        "diagnostics": render_data(list(result.diagnostics)),
    }


def junit_of(results: Sequence[CaseResult]) -> str:
    """Returns a JUnit document, one suite per test file."""
    suites: dict[str, list[CaseResult]] = {}
    for result in results:
        suites.setdefault(result.file.source.name, []).append(result)
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', "<testsuites>"]
    for name, members in suites.items():
        counts = Counter(result.verdict for result in members)
        skipped = counts["skipped"] + counts["known_fault"]
        lines.append(
            f"  <testsuite name={_attribute(name)} tests={_attribute(len(members))}"
            f" failures={_attribute(counts['failed'])} skipped={_attribute(skipped)}"
            f" time={_attribute(format(sum(r.seconds for r in members), '.3f'))}>"
        )
        for result in members:
            lines += _case_xml(result)
        lines.append("  </testsuite>")
    lines.append("</testsuites>")
    return "\n".join(lines) + "\n"


def _case_xml(result: CaseResult) -> list[str]:
    head = (
        f"    <testcase name={_attribute(result.case.name)}"
        f" classname={_attribute(result.file.source.name)}"
        f" time={_attribute(format(result.seconds, '.3f'))}"
    )
    if result.verdict == "passed":
        return [head + "/>"]
    if result.verdict == "failed":
        text = escape(text_of(result))
        first = next((f.what for f in result.failures), result.note or "the case is broken")
        body = f"      <failure message={_attribute(first)}>{text}</failure>"
    else:
        body = f"      <skipped message={_attribute(result.note or '')}/>"
    return [head + ">", body, "    </testcase>"]


def _attribute(value: object) -> str:
    return quoteattr(plain(str(value)))


def coverage_text(coverage: Sequence[WorkflowCoverage]) -> str:
    """Returns a line per workflow, then one for each way that no case took."""
    lines = []
    for one in coverage:
        taken = len(one.edges) - len(one.missed)
        lines.append(f"{plain(one.workflow)}: {taken} of {len(one.edges)} edges taken")
        for edge in one.missed:
            where = f"{plain(one.file)}:{edge.line}: " if edge.line else ""
            lines.append(f"  {where}{edge.parent} → {plain(edge.way)} was never taken")
    return "".join(line + "\n" for line in lines)
