"""What may be null where null is not allowed, and what settles that it is not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dsl.diagnostics import Diagnostic
from tests.unit.compiler.conftest import take_mark

Check = Callable[[str], tuple[Diagnostic, ...]]

HEAD = """workflow w {
  input { s : string?, r : string?, n : int?, l : list<int>? = null, o : { a: int?, b?: int } }
  var v : string? = var.s
"""

# What is silent: the place cannot be null there.
SILENT = {
    "under a comparison with null": "if var.s != null { action a = mail.send(to: var.s) }",
    "in the else of one": "if null == var.s { sleep 1s } else { action a = mail.send(to: var.s) }",
    "under a negation": "if not (var.s == null) { action a = mail.send(to: var.s) }",
    "after a fail": 'if var.s == null { fail -1 "no" }\naction a = mail.send(to: var.s)',
    "after a set of the other branch": (
        'if var.v == null { set v = "x" }\naction a = mail.send(to: var.v)'
    ),
    "after a set": 'set v = "x"\naction a = mail.send(to: var.v)',
    "after a set of what is settled": (
        "if var.s != null { set v = var.s action a = mail.send(to: var.v) }"
    ),
    "after a set in both branches": (
        'if ctx.forceRerun { set v = "x" } else { set v = "y" }\naction a = mail.send(to: var.v)'
    ),
    "after a set in every case": (
        'switch len(var.o) { case 1 { set v = "x" } default { set v = "y" } }\n'
        "action a = mail.send(to: var.v)"
    ),
    "under an equality with a literal": 'if var.s == "x" { action a = mail.send(to: var.s) }',
    "under the truth of it": "if var.n { set x = var.n + 1 }",
    "on the right of and": "if var.n != null and var.n > 3 { sleep 1s }",
    "on the right of or": "if var.n == null or var.n > 3 { sleep 1s }",
    "deep on the right": "if var.n == null or (var.s == null or var.n + 1 > 3) { sleep 1s }",
    "on the right of and in a value": "set x = var.n != null and var.n > 3",
    "with another value for null": 'action a = mail.send(to: var.s ?? "x")',
    "after a while until it is there": (
        "while var.v == null { action b = any.thing() { set v = out } }\n"
        "action a = mail.send(to: var.v)"
    ),
    "in a while while it is there": (
        "while var.n != null { action a = any.thing(n: var.n + 1) set n = null }"
    ),
    "a field that is asked for": "if var.o.a != null { set x = var.o.a + 1 }",
    "an optional field that is defined": "if defined(var.o.b) { set x = var.o.b + 1 }",
    "in a loop that does not write it": (
        "if var.n != null { foreach i in [1] { set x = var.n + var.i } }"
    ),
    "in a branch of a parallel": "if var.n != null { parallel { sequence { set x = var.n + 1 } } }",
    "in on_error": (
        "if var.n != null { sequence { action a = any.thing() } on_error { set x = var.n + 1 } }"
    ),
    "after a sequence whose on_error fails": (
        'sequence { set v = "x" action a = any.thing() } on_error { fail -1 "no" }\n'
        "action b = mail.send(to: var.v)"
    ),
    "after an iteration that surely runs": (
        'repeat 2 { set v = "x" }\naction a = mail.send(to: var.v)'
    ),
    "in unreachable code": 'fail -1 "no"\naction a = mail.send(to: var.s)',
    "compared with null": "if var.s == null { sleep 1s }",
    "a string that is nothing else": 'action a = any.thing(text: "${var.s}")',
    "a list that is asked for": "if var.l != null { foreach i in var.l { set x = var.i } }",
    "a list with a value for null": "foreach i in var.l ?? [] { set x = var.i }",
}

# What warns, at the mark.
WARNS = {
    "an argument": "action a = mail.send(to: «var.s»)",
    "a longer string": 'action a = any.thing(text: "Dear ${«var.s»}")',
    "arithmetic": "set x = «var.n» + 1",
    "a negation": "set x = -«var.n»",
    "an order": "if «var.n» > 3 { sleep 1s }",
    "a count": "repeat «var.n» { sleep 1s }",
    "a collection": "foreach i in «var.l» { sleep 1s }",
    "a length": "set x = len(«var.s»)",
    "the list of in": "if 1 in «var.l» { sleep 1s }",
    "an index": "if var.l != null { set x = var.l[«var.n»] }",
    "a step into what may be null": "set x = var.l«[0]»",
    "a field that may be null": "set x = «var.o.a» + 1",
    "an optional field": "set x = «var.o.b» + 1",
    "in the branch where it is null": ("if var.s == null { action a = mail.send(to: «var.s») }"),
    "after an if that goes on": (
        "if var.s == null { sleep 1s }\naction a = mail.send(to: «var.s»)"
    ),
    "set to null in between": (
        "if var.v != null { set v = null action a = mail.send(to: «var.v») }"
    ),
    "set to what may be null": (
        "if var.v != null { set v = var.r action a = mail.send(to: «var.v») }"
    ),
    "set by a result": (
        "if var.v != null { action b = any.thing() { set v = var.r }"
        " action a = mail.send(to: «var.v») }"
    ),
    "set later in the loop": (
        "if var.v != null { foreach i in [1] { action a = mail.send(to: «var.v») set v = var.r } }"
    ),
    "set in one branch": ('if ctx.forceRerun { set v = "x" }\naction a = mail.send(to: «var.v»)'),
    "set in a loop that may not run": (
        'repeat len(var.o) { set v = "x" }\naction a = mail.send(to: «var.v»)'
    ),
    "set by a body that failed": (
        'sequence { set v = "x" action b = any.thing() }'
        " on_error { action a = mail.send(to: «var.v») }"
    ),
    "unset by a body that failed": (
        "if var.v != null { sequence { set v = var.r }"
        " finally { action a = mail.send(to: «var.v») } }"
    ),
    "one of two ors": "if var.n != null or var.s == null { set x = «var.n» + 1 }",
    "on the left of and": "if «var.n» > 3 and var.n != null { sleep 1s }",
    "another field": "if var.o.a != null { set x = «var.o.b» + 1 }",
    "a set by what needs one of the branches": (
        'parallel join any { sequence { set v = "x" } action b = any.thing() }\n'
        "action a = mail.send(to: «var.v»)"
    ),
}


@pytest.mark.parametrize("body", SILENT.values(), ids=SILENT)
def test_silent(body: str, check: Check) -> None:
    found = check(HEAD + body + "\n}\n")
    assert [d.message for d in found if d.code == "WF219"] == []
    assert [d.message for d in found if d.severity == "error"] == []


@pytest.mark.parametrize("body", WARNS.values(), ids=WARNS)
def test_warns_at_the_mark(body: str, check: Check) -> None:
    text, span = take_mark(HEAD + body + "\n}\n")
    found = check(text)
    assert [d.span for d in found if d.code == "WF219"] == [span]
    assert [d.message for d in found if d.severity == "error"] == []
