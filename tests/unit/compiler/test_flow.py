"""What may be missing when it is read, what is never reached, loops that cannot end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dsl.diagnostics import Diagnostic

AssertFound = Callable[[str, str, str], Diagnostic]
Check = Callable[[str], tuple[Diagnostic, ...]]

HEAD = "workflow w { input { n : int list : list<any> }\nvar v : int\n"
FLOW_CODES = frozenset(
    ("WF122", "WF125", "WF126", "WF209", "WF216", "WF217", "WF223", "WF224", "WF218", "WF219")
)
NEVER = '"{}" has no value here: nothing before this sets it'
MAYBE = '"{}" may have no value here: not every path before this sets it'
TASK_NEVER = '"{}" cannot have run yet when this is evaluated'
TASK_MAYBE = '"{}" may not have run when this is evaluated'
T = "action {} = any.thing() "

FOUND = {
    "never set": ("set a = «var.v» set v = 1", "WF216", NEVER.format("v")),
    "in one branch": ("if var.n { set v = 1 } set a = «var.v»", "WF217", MAYBE.format("v")),
    "in the other branch": (
        "if var.n { set v = 1 } else { set a = «var.v» }",
        "WF216",
        NEVER.format("v"),
    ),
    "in a loop that may not run": (
        "foreach x in var.list { set v = var.x } set a = «var.v»",
        "WF217",
        MAYBE.format("v"),
    ),
    "in an earlier iteration": (
        "repeat 2 { set a = «var.v» set v = 1 }",
        "WF217",
        MAYBE.format("v"),
    ),
    "in one case": (
        "switch var.n { case 1 { set v = 1 } default {} } set a = «var.v»",
        "WF217",
        MAYBE.format("v"),
    ),
    "set by a body that failed": (
        "sequence { set v = 1 action t = any.thing() } on_error { set a = «var.v» }",
        "WF217",
        MAYBE.format("v"),
    ),
    "finally counts on nothing": (
        "sequence { action t = any.thing() set v = 1 } finally { set a = «var.v» }",
        "WF217",
        MAYBE.format("v"),
    ),
    "on_error that does not set it": (
        "sequence { set v = 1 } on_error { set b = 2 } set a = «var.v»",
        "WF217",
        MAYBE.format("v"),
    ),
    "not every branch need succeed": (
        "parallel join any { set v = 1 set b = 2 } set a = «var.v»",
        "WF217",
        MAYBE.format("v"),
    ),
    "event or time-out": (
        'wait_event e on "x" { timeout 1s { set b = 1 } set v = 1 } set a = «var.v»',
        "WF217",
        MAYBE.format("v"),
    ),
    "guarded on one side only": (
        "if var.n { set v = 1 } if defined(var.v) { set a = var.v } else { set a = «var.v» }",
        "WF217",
        MAYBE.format("v"),
    ),
    "deeper than `??` reaches": (
        "if var.n { set v = 1 } set a = (1 + «var.v») ?? 2",
        "WF217",
        MAYBE.format("v"),
    ),
    "task of the other branch": (
        f"if var.n {{ {T.format('t')} }} else {{ set a = «ctx.task.t.resultCode» }}",
        "WF209",
        TASK_NEVER.format("t"),
    ),
    "task that comes later": (
        f"set a = «ctx.task.t.output» {T.format('t')}",
        "WF209",
        TASK_NEVER.format("t"),
    ),
    "task of a later place in the iteration": (
        f"repeat 3 {{ set a = «ctx.task.t.output» {T.format('t')} }}",
        "WF209",
        TASK_NEVER.format("t"),
    ),
    "task of one branch": (
        f"if var.n {{ {T.format('t')} }} set a = «ctx.task.t.output»",
        "WF224",
        TASK_MAYBE.format("t"),
    ),
    "bare key of one branch": (
        f"if var.n {{ {T.format('t')} }} if «t» {{ set a = 1 }}",
        "WF224",
        TASK_MAYBE.format("t"),
    ),
    "after fail": (
        "fail -1 set «a» = 1".replace("set «a» = 1", "«set a = 1»"),
        "WF122",
        "this is never reached: the `fail` before it always fails",
    ),
    "after a branch that always fails": (
        "if var.n { fail -1 } else { fail -2 } «set a = 1»",
        "WF122",
        "this is never reached: the if before it always fails",
    ),
    "constant condition": (
        "if false { «set a = 1» }",
        "WF122",
        "this is never reached: the condition before it never changes",
    ),
    "else of a constant": (
        "if true { set a = 1 } else { «set b = 1» }",
        "WF122",
        "this is never reached: the condition before it never changes",
    ),
    "repeat 0": (
        "repeat 0 { «set a = 1» }",
        "WF122",
        "this is never reached: the condition before it never changes",
    ),
    "endless": (
        f"while «var.n > 0» {{ {T.format('t')} set a = 1 }}",
        "WF126",
        "this loop never ends: nothing in its body changes what the condition reads",
    ),
    "endless by a constant": (
        f"while «true» {{ {T.format('t')} }}",
        "WF126",
        "this loop never ends: nothing in its body changes what the condition reads",
    ),
    "idle": (
        "set c = 0 «while var.c < 3 { set c = var.c + 1 }»",
        "WF125",
        "nothing in this loop takes time: it has no action, wait_event or sleep",
    ),
}


@pytest.mark.parametrize(("statements", "code", "message"), FOUND.values(), ids=FOUND.keys())
def test_finding_stands_at_its_place(
    assert_found: AssertFound, statements: str, code: str, message: str
) -> None:
    assert_found(HEAD + statements + "\n}", code, message)


FINE = {
    "both branches": "if var.n { set v = 1 } else { set v = 2 } set a = var.v",
    "every case": "switch var.n { case 1 { set v = 1 } case 2 { set v = 2 } } set a = var.v",
    "the other branch fails": "if var.n { set v = 1 } else { fail -1 } set a = var.v",
    "a loop that surely runs": "repeat 2 { set v = 1 } set a = var.v",
    "parallel": "parallel { set v = 1 set b = 2 } set a = var.v",
    "body and on_error": "sequence { set v = 1 } on_error { set v = 2 } set a = var.v",
    "on_error that fails": "sequence { set v = 1 } on_error { fail -1 } set a = var.v",
    "finally": "sequence { set b = 2 } finally { set v = 1 } set a = var.v",
    "under ??": "if var.n { set v = 1 } set a = var.v ?? 2",
    "in a chain of ??": "if var.n { set v = 1 } set a = var.n ?? var.v ?? 2",
    "under defined": "if var.n { set v = 1 } if defined(var.v) { set a = var.v }",
    "under not defined": (
        "if var.n { set v = 1 } if not defined(var.v) { set a = 1 } else { set a = var.v }"
    ),
    "beside defined": "if var.n { set v = 1 } set a = defined(var.v) and var.v > 1",
    "until defined": (
        f"while not defined(var.v) {{ {T.format('t')} if var.n {{ set v = 1 }} }} set a = var.v"
    ),
    "own output": "action t = any.thing() { set v = 1 set a = var.v }",
    "task of the loop just left": f"repeat 1 {{ {T.format('t')} }} set a = ctx.task.t.output",
    "task in the while above": (f"while (ctx.task.t.resultCode ?? 1) != 0 {{ {T.format('t')} }}"),
    "a loop that fails its way out": (f"while true {{ {T.format('t')} if t {{ fail -1 }} }}"),
    "task guarded by defined": (
        f"if var.n {{ {T.format('t')} }} "
        "if defined(ctx.task.t.output.x) { set a = ctx.task.t.output.y }"
    ),
}


@pytest.mark.parametrize("statements", FINE.values(), ids=FINE.keys())
def test_what_is_there_is_not_complained_about(check: Check, statements: str) -> None:
    found = [d for d in check(HEAD + statements + "\n}") if d.code in FLOW_CODES]
    assert [(d.code, d.message) for d in found] == []


def test_output_that_may_not_be_set_is_a_warning(assert_found: AssertFound) -> None:
    found = assert_found(
        "workflow w { input { n : int } output { o = «var.late» }\nif var.n { set late = 1 } }",
        "WF223",
        '"late" is not set on every path, so this output may be null',
    )
    assert found.severity == "warning"


def test_deep_tree_is_walked_without_recursion(check: Check) -> None:
    depth = 500
    text = "workflow w { input { n : int } " + "if var.n { " * depth + "set v = 1" + " }" * depth
    found = check(text + " set a = var.v }")
    assert [d.code for d in found if d.code in FLOW_CODES] == ["WF217"]


# --- types -------------------------------------------------------------------------------------

TYPED = 'workflow w { input { n : int s : string? mode : "a" | "b" }\n'
TYPES = {
    "string and number": (
        'set a = «var.n == "5"»',
        "WF218",
        "an integer and a string are never equal, so this is always false",
    ),
    "not in the enum": (
        'set a = var.mode != «"c"»',
        "WF218",
        '"c" is not one of its values, so this is always true',
    ),
    "case of another type": (
        'switch var.n { case «"x"» {} default {} }',
        "WF132",
        'the subject is an integer, so "x" never fits',
    ),
    "nullable argument": (
        "action t = mail.send(to: «var.s»)",
        "WF219",
        'argument "to" takes no null, and this may be null',
    ),
    "null only asked on the other side": (
        "if var.s != null { set a = 1 } else { action t = mail.send(to: «var.s») }",
        "WF219",
        'argument "to" takes no null, and this may be null',
    ),
}


@pytest.mark.parametrize(("statements", "code", "message"), TYPES.values(), ids=TYPES.keys())
def test_types_that_do_not_go_together(
    assert_found: AssertFound, statements: str, code: str, message: str
) -> None:
    assert_found(TYPED + statements + "\n}", code, message)


SETTLED = {
    "??": 'action t = mail.send(to: var.s ?? "x")',
    "if": "if var.s != null and var.n > 1 { action t = mail.send(to: var.s) }",
    "else": "if var.s == null { set a = 1 } else { action t = mail.send(to: var.s) }",
    "defined": "if defined(var.s) { action t = mail.send(to: var.s) }",
    "null with null": "set a = var.s == null",
}


@pytest.mark.parametrize("statements", SETTLED.values(), ids=SETTLED.keys())
def test_value_that_was_asked_for_is_no_null(check: Check, statements: str) -> None:
    assert [d.code for d in check(TYPED + statements + "\n}") if d.code in FLOW_CODES] == []
