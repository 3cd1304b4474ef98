"""`reuse`: what of a body is in its fingerprint, and what of it counts as read from outside."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compiler import json_values
from compiler.pipeline import compile_text
from compiler.spec import GraphSpec
from compiler.verify import verify_spec
from dsl.diagnostics import Diagnostic

Compiled = Callable[[str], GraphSpec]
AssertFound = Callable[[str, str, str], Diagnostic]

HEAD = """\
workflow w {
  input { id : string = "x" n : int = 1 list : list<any> = [] map : any = null }
  var v : int = var.n
  output { o = [var.id, var.v] }
"""


def reuse_of(spec: GraphSpec, key: str = "f") -> dict[str, Any]:
    (found,) = [node.attributes["reuse"] for node in spec.nodes if node.key == key]
    return dict(found)


def in_loop(body: str, before: str = "", head: str = HEAD) -> str:
    return f"{head}{before}\nforeach f: item, i in var.list reuse {{ {body} }}\n}}"


READS: dict[str, tuple[str, list[list[Any]]]] = {
    "nothing": ("action a = any.thing()", []),
    "the item": ("action a = any.thing(x: var.item.y, z: ctx.item)", []),
    "an input, as an argument": ("action a = any.thing(x: var.id)", [["var", "id", "w", []]]),
    "inside a string": (
        'action a = any.thing(x: "to ${var.map.a[0]}!")',
        [["var", "map", "w", ["a", 0]]],
    ),
    "in an expression": ("action a = any.thing(x: var.n + 1)", [["var", "n", "w", []]]),
    "a variable of the body": ("var b : int = 1\naction a = any.thing(x: var.b)", []),
    "an initialiser": (
        "var b : int = var.n\naction a = any.thing(x: var.b)",
        [["var", "n", "w", []]],
    ),
    "the index of its own": ("action a = any.thing(x: var.i)", [["var", "i", "f.body", []]]),
    "ctx.index and iterationNo": (
        "action a = any.thing(x: ctx.index, y: ctx.iterationNo)",
        [["ctx", "index", []], ["ctx", "iterationNo", []]],
    ),
    "ctx.index of a loop inside": ("repeat 2 { action a = any.thing(x: ctx.index) }", []),
    "the count of a repeat": (
        "repeat ctx.index { action a = any.thing() }",
        [["ctx", "index", []]],
    ),
    "the start context": (
        "action a = any.thing(x: ctx.context.a.b)",
        [["ctx", "context", ["a", "b"]]],
    ),
    "forceRerun": ("if ctx.forceRerun { set q = 1 }", [["ctx", "forceRerun", []]]),
    "names of the graph": ("action a = any.thing(x: ctx.workflow, y: ctx.node)", []),
    "a task outside": (
        "action a = any.thing(x: ctx.task.before.output.y.z)",
        [["ctx", "task", ["before", "output", "y", "z"]]],
    ),
    "a bare key outside": (
        "if before { action a = any.thing() }",
        [["ctx", "task", ["before", "resultCode"]]],
    ),
    "a bare key in a switch": (
        "switch before { case 0 { set q = 1 } default {} }",
        [["ctx", "task", ["before", "resultCode"]]],
    ),
    "a task inside": (
        "action a = any.thing()\nswitch a { case 0 { set q = ctx.task.a.output } default {} }",
        [],
    ),
    "a computed index": (
        "action a = any.thing(x: var.map.rows[var.n].name)",
        [["var", "map", "w", ["rows"]], ["var", "n", "w", []]],
    ),
    "a computed index of the body": (
        "action a = any.thing(x: var.list[var.item])",
        [["var", "list", "w", []]],
    ),
    "a condition": (
        "while var.n > 2 and (ctx.task.a.resultCode ?? 1) == 1 { action a = any.thing() }",
        [["var", "n", "w", []]],
    ),
    "a collection": (
        "foreach x in var.list { action a = any.thing(x: var.x) }",
        [["var", "list", "w", []]],
    ),
    "what stands in defined and before ??": (
        "if defined(var.map.a) { set q = ctx.context.b ?? 1 }",
        [["ctx", "context", ["b"]], ["var", "map", "w", ["a"]]],
    ),
    "a message": ('fail -3 "no ${var.id}"', [["var", "id", "w", []]]),
    "a collect of its own": (
        "action a = any.thing()\ncollect c = [ctx.task.a.output, var.id]",
        [["var", "id", "w", []]],
    ),
    "a collect inside": (
        "foreach x in [1] { collect c = var.x + var.n }",
        [["var", "n", "w", []]],
    ),
    "places inside": (
        "set p = [ctx.sequenceIndex, ctx.parent.resultCode]\n"
        "parallel { set q = ctx.parallelIndex }",
        [],
    ),
    "a place outside": ("set q = ctx.parallelIndex", [["ctx", "parallelIndex", []]]),
    "places outside, in a collect": (
        "collect c = [ctx.sequenceIndex, ctx.parent.resultCode]",
        [["ctx", "parent", ["resultCode"]], ["ctx", "sequenceIndex", []]],
    ),
    "an error inside": (
        "sequence s { action a = any.thing() } on_error { set q = ctx.error.code }",
        [],
    ),
    "the same twice": (
        "action a = any.thing(x: var.id, y: [var.id])",
        [["var", "id", "w", []]],
    ),
}


@pytest.mark.parametrize(("body", "reads"), READS.values(), ids=READS.keys())
def test_body_reads_this_from_outside(
    compiled: Compiled, body: str, reads: list[list[Any]]
) -> None:
    spec = compiled(in_loop(body, "action before = any.thing()"))
    assert reuse_of(spec)["reads"] == reads
    assert verify_spec(spec) == ()


def test_error_outside_is_read(compiled: Compiled) -> None:
    spec = compiled(
        HEAD + "sequence s { action a = any.thing() } on_error {\n"
        "foreach f: x in var.list reuse { action b = any.thing(x: ctx.error.code) } } }"
    )
    assert reuse_of(spec)["reads"] == [["ctx", "error", ["code"]]]


def test_items_around_are_in_the_key_and_their_indexes_are_read(compiled: Compiled) -> None:
    spec = compiled(
        HEAD + "foreach o: box, b in var.list { repeat 2 as r { foreach f: x in var.box reuse {\n"
        "action a = any.thing(x: var.box, y: var.b, z: var.r) } } } }"
    )
    assert reuse_of(spec)["reads"] == [
        ["var", "b", "o.body", []],
        ["var", "r", "o.repeat_1.body", []],
    ]


def test_item_around_that_is_written_is_read(compiled: Compiled) -> None:
    spec = compiled(
        HEAD + "foreach o: box in var.list { set box = 1 foreach f: x in var.list reuse {\n"
        "action a = any.thing(x: var.box) } } }"
    )
    assert reuse_of(spec)["reads"] == [["var", "box", "o.body", []]]


def test_reads_are_sorted_by_their_canonical_text(compiled: Compiled) -> None:
    body = (
        'action a = any.thing(a: var.v, b: var.n, c: ctx.context.a, d: var.map["é"], e: var.map.z)'
    )
    reads = reuse_of(compiled(in_loop(body)))["reads"]
    texts = [json_values.canonical(read) for read in reads]
    assert len(texts) == 5
    assert texts == sorted(texts)


def test_of_nested_loops_each_has_its_own(compiled: Compiled) -> None:
    spec = compiled(
        HEAD + "foreach o: box in var.list reuse { foreach f: x in var.box reuse {\n"
        "action a = any.thing(x: var.x, y: var.id) } } }"
    )
    outer, inner = reuse_of(spec, "o"), reuse_of(spec)
    assert outer["fingerprint"] != inner["fingerprint"]
    assert outer["reads"] == inner["reads"] == [["var", "id", "w", []]]


# --- fingerprints ------------------------------------------------------------------------------

BODY = "var b : int = 1\naction a = any.thing(x: var.item, y: var.b)\ncollect c = ctx.task.a.output"


def fingerprint(compiled: Compiled, text: str) -> str:
    found: str = reuse_of(compiled(text))["fingerprint"]
    assert re.fullmatch("[0-9a-f]{64}", found)
    return found


CHANGES = {
    "an argument": BODY.replace("y: var.b", "y: var.b + 1"),
    "a literal in the template": BODY.replace("y: var.b", 'y: "b"'),
    "a key": BODY.replace("action a", "action aa").replace("task.a.", "task.aa."),
    "the action": BODY.replace("any.thing(x: var.item, y: var.b)", 'mail.send(to: "x")'),
    "an attribute": BODY.replace("var.b)", "var.b) { timeout 1s }"),
    "a set": BODY.replace("var.b)", "var.b) { set q = code }"),
    "an initialiser": BODY.replace("= 1\n", "= 2\n"),
    "the type of a variable": BODY.replace(": int", ": int?"),
    "the collect": BODY.replace("a.output", "a.resultCode"),
    "the name of a collect": BODY.replace("collect c", "collect d"),
    "one node more": BODY.replace("\ncollect", "\nset q = 1\ncollect"),
    "a body more": BODY.replace("\ncollect", "\nif var.b { set q = 1 }\ncollect"),
}


@pytest.mark.parametrize("changed", CHANGES.values(), ids=CHANGES.keys())
def test_change_of_the_body_changes_the_fingerprint(compiled: Compiled, changed: str) -> None:
    assert fingerprint(compiled, in_loop(BODY)) != fingerprint(compiled, in_loop(changed))


def test_order_of_two_nodes_is_in_the_fingerprint(compiled: Compiled) -> None:
    first, second = "sequence s { set p = 1 }\n", "sequence t { set q = 1 }\n"
    assert fingerprint(compiled, in_loop(first + second)) != fingerprint(
        compiled, in_loop(second + first)
    )


SAME = {
    "positions and comments": in_loop("\n# a word\n\n" + BODY),
    "a description": in_loop(BODY.replace("var.b)", 'var.b) { description "says more" }')),
    "a node before the loop": in_loop(BODY, before="action first = any.thing(x: 1)"),
    "an input more": in_loop(BODY, head=HEAD.replace("input {", "input { more : list<any> = []")),
    "attributes of the loop": in_loop(BODY).replace("reuse {", "parallel 3 tolerate 1 reuse {"),
    "the collection": in_loop(BODY).replace("in var.list", "in var.map"),
}


@pytest.mark.parametrize("text", SAME.values(), ids=SAME.keys())
def test_fingerprint_does_not_see(compiled: Compiled, text: str) -> None:
    assert fingerprint(compiled, in_loop(BODY)) == fingerprint(compiled, text)


def _with_catalog(folder: Path, catalog: str) -> str:
    path = folder / "c.actions.yaml"
    path.write_text(f"actions: [{{name: any.thing{catalog}}}]", "utf-8")
    result = compile_text(in_loop(BODY), "t.wf", [path])
    assert [found for found in result.diagnostics if found.severity == "error"] == []
    found: str = reuse_of(result.specs[0])["fingerprint"]
    return found


def test_version_of_an_action_is_in_the_fingerprint(tmp_path: Path) -> None:
    assert _with_catalog(tmp_path, "") != _with_catalog(tmp_path, ', version: "2"')


def test_schema_of_an_action_is_not_in_the_fingerprint(tmp_path: Path) -> None:
    changed = ', description: "d", output: "{ id: string }", result_codes: {0: ok}'
    assert _with_catalog(tmp_path, "") == _with_catalog(tmp_path, changed)


# --- refused -----------------------------------------------------------------------------------


def test_what_is_written_inside_is_not_refused(compiled: Compiled) -> None:
    spec = compiled(in_loop("var b : int = 0\nforeach x in [1] { set b = 2 collect c = var.x }"))
    assert "reads" in reuse_of(spec)


def test_undeclared_name_belongs_to_the_iteration(compiled: Compiled) -> None:
    assert reuse_of(compiled(in_loop("set q = 1\nset r = var.q")))["reads"] == []


def test_write_in_a_parallel_loop_is_said_once(
    check: Callable[[str], tuple[Diagnostic, ...]],
) -> None:
    text = in_loop("set v = 1").replace("reuse {", "parallel reuse {")
    assert [found.code for found in check(text) if found.severity == "error"] == ["WF207"]


def test_task_of_a_parallel_loop_is_said_once(
    check: Callable[[str], tuple[Diagnostic, ...]],
) -> None:
    text = in_loop("action a = any.thing()").replace("reuse {", "parallel reuse {")
    text = text[:-1] + "action z = any.thing(x: ctx.task.a.resultCode ?? 0) }"
    assert [found.code for found in check(text) if found.severity == "error"] == ["WF209"]


def test_collect_of_the_loop_reads_its_tasks(compiled: Compiled) -> None:
    assert reuse_of(compiled(in_loop(BODY)))["reads"] == []


def test_outer_of_two_loops_may_not_read_the_tasks_of_the_inner(assert_found: AssertFound) -> None:
    assert_found(
        HEAD + "foreach o: x in var.list reuse { foreach f: y in [1] reuse "
        "{ action a = any.thing() }\nset q = «ctx.task.a.resultCode» ?? 0 } }",
        "WF233",
        '"a" may be skipped by the `reuse` of the foreach around it',
    )


# --- specs from elsewhere ----------------------------------------------------------------------

BROKEN = {
    "a flag": (True, "reuse has fingerprint and reads"),
    "no reads": ({"fingerprint": "0" * 64}, "reuse has fingerprint and reads"),
    "a short fingerprint": (
        {"fingerprint": "0" * 63, "reads": []},
        "the fingerprint of reuse has 64 hex digits in lower case",
    ),
    "upper case": (
        {"fingerprint": "A" * 64, "reads": []},
        "the fingerprint of reuse has 64 hex digits in lower case",
    ),
    "reads that are no list": (
        {"fingerprint": "0" * 64, "reads": {}},
        "reads of reuse lists references",
    ),
    "a literal": (
        {"fingerprint": "0" * 64, "reads": [["lit", 1]]},
        "read 0 of reuse is no var or ctx reference",
    ),
    "a reference that is none": (
        {"fingerprint": "0" * 64, "reads": [["ctx", "index", []], ["var", "n"]]},
        "read 1 of reuse: instruction 0: var has 3 operands",
    ),
}


@pytest.mark.parametrize(("given", "message"), BROKEN.values(), ids=BROKEN.keys())
def test_broken_reuse_is_found(compiled: Compiled, given: object, message: str) -> None:
    spec = compiled(in_loop(BODY))
    (loop,) = [node for node in spec.nodes if node.key == "f"]
    loop.attributes["reuse"] = given
    assert [(found.node, found.message) for found in verify_spec(spec)] == [("f", message)]
