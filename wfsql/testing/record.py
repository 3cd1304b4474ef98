"""Writes a test file from a real run: the handlers run once, and what they gave becomes a script.

A node that was visited once, or whose visits all gave the same, is scripted by its key; any other
by the path of each visit. Values are written as JSON on one line, which is YAML too.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from compiler import json_values
from local_runner.engine import LocalWorkflowEngine, Refusal, RunResult
from local_runner.handlers import Handlers, Outcome, Result, TaskContext

if TYPE_CHECKING:
    from compiler.spec import GraphSpec

# What YAML does not let stand as it is, beyond what JSON escapes already.
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
# A string, or one of the marks between values.
_TOKEN = re.compile(r'("(?:[^"\\]|\\.)*")|[,:]')
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_YAML_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


Calls = dict[str, list[Outcome]]


def _recording(handlers: Handlers, calls: Calls) -> Handlers:
    """Returns handlers that keep what each call gave, by path, attempts in order."""

    def watched(name: str) -> Callable[..., Result]:
        def call(context: TaskContext, /, **arguments: Any) -> Result:
            outcome = handlers.invoke(name, arguments, context)
            calls[context.path].append(outcome)
            return Result(outcome.code, outcome.output, outcome.message)

        return call

    return Handlers.from_functions({name: watched(name) for name in handlers.names})


def record(
    spec: GraphSpec, handlers: Handlers, context: dict[str, Any], case_name: str, workflow: str
) -> str | Refusal:
    """Runs a workflow in this process and returns a test file with one case.

    Args:
      workflow: how the file names the workflow, such as `order.wf#order_fulfilment`.
    """
    calls: Calls = defaultdict(list)
    result = LocalWorkflowEngine(spec, _recording(handlers, calls)).run(context)
    if not isinstance(result, RunResult):
        return result
    lines = [f"workflow: {_value(workflow)}", "cases:", f"  - name: {_value(case_name)}"]
    lines.append(f"    input: {_value(context)}")
    lines += _actions(calls)
    lines += _expectations(result, calls)
    return "\n".join(lines) + "\n"


def _actions(calls: Calls) -> list[str]:
    by_key: dict[str, list[tuple[str, list[Outcome]]]] = defaultdict(list)
    for path, outcomes in calls.items():
        by_key[path.rpartition("/")[2]].append((path, outcomes))
    if not by_key:
        return []
    lines = ["    actions:"]
    for key, visits in by_key.items():
        scripts = [_script(outcomes) for _, outcomes in visits]
        if len(set(scripts)) == 1:
            lines.append(f"      {_key(key)}: {scripts[0]}")
            continue
        for (path, _), script in zip(visits, scripts, strict=True):
            lines.append(f"      {_key(path.partition('/')[2])}: {script}")
    return lines


def _script(outcomes: list[Outcome]) -> str:
    written = [_value(_result(outcome)) for outcome in outcomes]
    return written[0] if len(written) == 1 else f"[{', '.join(written)}]"


def _result(outcome: Outcome) -> dict[str, Any]:
    result: dict[str, Any] = {}
    if outcome.code != 0:
        result["code"] = outcome.code
    if outcome.output != {}:
        result["output"] = _without_placeholders(outcome.output)
    if outcome.message is not None:
        result["message"] = outcome.message
    return result


def _without_placeholders(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("${", "$${")
    if isinstance(value, list):
        return [_without_placeholders(item) for item in value]
    if isinstance(value, dict):
        return {key: _without_placeholders(item) for key, item in value.items()}
    return value


def _expectations(result: RunResult, calls: Calls) -> list[str]:
    trace = result.trace
    rows = [row for row in trace["nodes"] if row["type"] == "ACTION" and row["attempts"] > 0]
    visited = list(dict.fromkeys(path.rpartition("/")[2] for path in calls))
    lines = ["    expect:", f"      status: {result.status}"]
    if trace["error"] is not None:
        lines.append(f"      error: {_value(_short_error(trace['error']))}")
    if result.status != "CREATED":
        lines.append(f"      visited: {_value(visited)}")
        lines.append(f"      output: {_value(trace['output'])}")
    if trace["variables"]:
        lines.append("      vars:")
        lines += [f"        {_key(n)}: {_value(v)}" for n, v in sorted(trace["variables"].items())]
    if rows:
        lines.append("      inputs:")
        lines += [
            f"        {_key(row['path'].partition('/')[2])}: {_value(row['input'])}" for row in rows
        ]
    return lines


def _short_error(error: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in error.items() if value is not None}


def _key(text: str) -> str:
    is_plain = _PLAIN_KEY.fullmatch(text) and text.lower() not in _YAML_WORDS
    return text if is_plain else _value(text)


def _value(value: Any) -> str:
    """Writes a value as JSON that YAML reads alike."""
    text = _TOKEN.sub(lambda match: match.group(1) or match.group() + " ", json_values.dumps(value))
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match.group()):04x}", text)
