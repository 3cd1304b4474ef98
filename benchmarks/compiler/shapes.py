"""The same workflow in three languages, of any size.

Ten nodes repeat: eight calls in a row, the first given the input and each other what the one before
it returned, and a condition with one call inside. So a checker has names, types of arguments and
results, and branches to look at. `size` counts nodes and is a multiple of ten.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

CATALOG = """\
actions:
  - name: t.do
    input: "{ x: int }"
    output: "{ v: int }"
"""
_RESOURCE = "arn:aws:lambda:eu-west-1:123456789012:function:do"
_WDL_TASK = """\
version 1.0

task do {
  input { Int x }
  command <<< echo ~{x} >>>
  output { Int v = read_int(stdout()) }
}
"""


def _tens(size: int) -> Iterator[tuple[list[int], int, int]]:
    """The numbers of the calls of each ten: those in a row, the last of them, that inside."""
    for first in range(0, size, 10):
        yield list(range(first, first + 8)), first + 7, first + 9


def wf_text(size: int) -> str:
    """A `.wf` file; its catalog is CATALOG."""
    parts = ["workflow w {\n  input { seed : int }\n"]
    for calls, last, inside in _tens(size):
        before = "var.seed"
        for n in calls:
            parts.append(f"  action a{n} = t.do(x: {before})\n")
            before = f"ctx.task.a{n}.output.v"
        parts.append(f"  if ctx.task.a{last}.output.v > {last} {{\n")
        parts.append(f"    action a{inside} = t.do(x: {before})\n  }}\n")
    return "".join(parts) + "}\n"


def wdl_text(size: int) -> str:
    """A WDL file with one task."""
    parts = [_WDL_TASK, "\nworkflow w {\n  input { Int seed }\n"]
    for calls, last, inside in _tens(size):
        before = "seed"
        for n in calls:
            parts.append(f"  call do as a{n} {{ input: x = {before} }}\n")
            before = f"a{n}.v"
        parts.append(f"  if (a{last}.v > {last}) {{\n")
        parts.append(f"    call do as a{inside} {{ input: x = {before} }}\n  }}\n")
    return "".join(parts) + "}\n"


def asl_text(size: int) -> str:
    """A state machine in the Amazon States Language; a condition is a Choice."""
    states: dict[str, object] = {}
    for calls, last, inside in _tens(size):
        before = "$.seed"
        for n in calls:
            after = f"c{n + 1}" if n == last else f"a{n + 1}"
            states[f"a{n}"] = _task(n, before, after)
            before = f"$.a{n}.v"
        after = f"a{inside + 1}" if inside + 1 < size else "end"
        choice = {
            "Variable": before,
            "NumericGreaterThan": last,
            "Next": f"a{inside}",
        }
        states[f"c{last + 1}"] = {"Type": "Choice", "Choices": [choice], "Default": after}
        states[f"a{inside}"] = _task(inside, before, after)
    states["end"] = {"Type": "Succeed"}
    return json.dumps({"StartAt": "a0", "States": states}, indent=2)


def _task(n: int, argument: str, after: str) -> dict[str, object]:
    return {
        "Type": "Task",
        "Resource": _RESOURCE,
        "Parameters": {"x.$": argument},
        "ResultPath": f"$.a{n}",
        "Next": after,
    }
