"""Each check finds what it is for: code, message, and the exact place (marked `«…»`)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compiler.checks import CHECKS
from compiler.checks.structure import check_nesting
from compiler.file_aliases import FileAliases
from compiler.supported import NOT_YET
from compiler.symbols import build_model
from dsl.diagnostics import Diagnostic
from dsl.nodes import Block, If, LiteralExpr, Name, Workflow
from dsl.source import SourceFile, Span

AssertFound = Callable[[str, str, str], Diagnostic]

HEAD = """\
workflow w {
  input { id : string  n : int  list : list<{ sku: string, qty: int }> }
  var v : int = var.n
  output { o = [var.id, var.v, var.list] }
"""


def in_workflow(statements: str) -> str:
    return HEAD + statements + "\n}\n"


STRUCTURE = [
    (
        "duplicate key",
        "WF101",
        'action a = mail.send(to: "x")\naction «a» = mail.send(to: "x")',
        'key "a" is already that of an earlier node',
    ),
    (
        "key of the workflow",
        "WF101",
        'action «w» = mail.send(to: "x")',
        'key "w" is already that of the workflow',
    ),
    (
        "automatic key",
        "WF101",
        'if var.v { set v = 1 }\naction «if_1» = mail.send(to: "x")',
        'key "if_1" is the automatic key of a node without one',
    ),
    (
        "key too long",
        "WF103",
        f'action «{"k" * 121}» = mail.send(to: "x")',
        "this name has 121 characters; 120 are allowed",
    ),
    ("empty parallel", "WF114", "«parallel {}»", "a parallel needs at least one branch"),
    ("empty body", "WF120", "if var.v «{}»", "this body is empty"),
    (
        "collect outside foreach",
        "WF115",
        "sequence s { set v = 1 «collect x = 1» }",
        "`collect` stands only at the top of a foreach body",
    ),
    (
        "collect below the top",
        "WF115",
        "foreach a in var.list { if var.v { set y = var.a «collect x = 1» } }",
        "`collect` stands only at the top of a foreach body",
    ),
    (
        "positive fail code",
        "WF116",
        'fail «5» "x"',
        "`fail` takes a negative integer of 32 bits, not 5",
    ),
    (
        "fail code that is no literal",
        "WF116",
        'fail «var.n» "x"',
        "`fail` takes a negative integer, written out",
    ),
    (
        "unknown attribute",
        "WF108",
        "if var.v { parallel «max» 3 { set v = 1 } }",
        "a `parallel` has no `max`",
    ),
    (
        "max 0",
        "WF109",
        "while var.v max «0» { set v = 1 }",
        "`max 0` is out of range: 1 to 9223372036854775807",
    ),
    (
        "limit that is no literal",
        "WF109",
        "parallel limit «var.n» { set v = 1 }",
        "`limit` takes an integer, written out",
    ),
]
ACTIONS = [
    (
        "unknown action",
        "WF104",
        'action a = «mail.sned»(to: "x")',
        'unknown action "mail.sned"',
    ),
    (
        "unknown argument",
        "WF105",
        'action a = mail.send(to: "x", «subjekt»: "y")',
        'mail.send takes no argument "subjekt"',
    ),
    (
        "missing argument",
        "WF106",
        'action a = «mail.send»(subject: "x")',
        'mail.send needs argument "to"',
    ),
    (
        "duplicate argument",
        "WF107",
        'action a = mail.send(to: "x", «to»: "y")',
        'argument "to" is given twice',
    ),
    (
        "duplicate case by value",
        "WF111",
        'switch var.v { case 1 {} case "1" {} case 2, «1» {} default {} }',
        "case 1 is given twice",
    ),
    (
        "duplicate case by name",
        "WF111",
        "action a = stock.reserve(order_id: var.id)\n"
        "switch a { case ok {} case «0» {} default {} }",
        "case 0 is given twice",
    ),
    (
        "unknown result code",
        "WF112",
        "action a = stock.reserve(order_id: var.id)\nswitch a { case «shrot» {} default {} }",
        'stock.reserve has no result code "shrot"',
    ),
    (
        "name in a switch over a value",
        "WF112",
        "switch var.v { case «ok» {} default {} }",
        '"ok" can name a result code only in a switch over an action',
    ),
    (
        "case that is no integer or string",
        "WF113",
        "switch var.v { case «1.5» {} default {} }",
        "a case is an integer, a string or the name of a result code, not 1.5",
    ),
    (
        "switch that leaves out a code",
        "WF119",
        "action a = stock.reserve(order_id: var.id)\nswitch «a» { case ok {} }",
        "this switch leaves out the result code short of stock.reserve",
    ),
]

REFERENCES = [
    ("unknown variable", "WF201", "set v = «var.vv»", 'unknown variable "vv"'),
    (
        "later variable",
        "WF201",
        "sequence { var a : int = «var.b» var b : int = 1 set v = var.a + var.b }",
        'variable "b" is declared after this',
    ),
    (
        "variable of another scope",
        "WF201",
        "foreach a in var.list { set y = var.a }\nset v = «var.y»",
        'unknown variable "y"',
    ),
    ("unknown ctx path", "WF202", "set v = «ctx.attemt»", 'unknown ctx path "ctx.attemt"'),
    (
        "field of ctx.task",
        "WF202",
        'action a = mail.send(to: "x")\nset v = «ctx.task.a.code»',
        "`ctx.task.a` has only `resultCode` and `output`",
    ),
    (
        "output of a composite",
        "WF202",
        "sequence s { set v = 1 }\nset v = «ctx.task.s.output»",
        'sequence "s" has no output; only actions and wait_events have',
    ),
    ("unknown task key", "WF102", "set v = «ctx.task.aa.output»", 'no node has the key "aa"'),
    ("unknown bare key", "WF102", "if «aa» { set v = 1 }", 'no node has the key "aa"'),
    (
        "bare key of a composite",
        "WF102",
        "sequence s { set v = 1 }\nif «s» { set v = 2 }",
        'sequence "s" is no action, so it has no result code to test',
    ),
    (
        "out in an argument",
        "WF203",
        "action a = mail.send(to: «out.x»)",
        "`out` stands only in a `set` on an action or wait_event",
    ),
    (
        "code in a statement",
        "WF203",
        "set v = «code»",
        "`code` stands only in a `set` on an action or wait_event",
    ),
    (
        "event on an action",
        "WF203",
        'action a = mail.send(to: "x") { set y = «event.payload» }',
        "`event` stands only in a `set` on a wait_event and in `on event`",
    ),
    (
        "attempt in an argument",
        "WF203",
        'action a = mail.send(to: "${«ctx.attempt»}x")',
        "`ctx.attempt` stands only in a `set` on an action or wait_event",
    ),
    (
        "index outside a loop",
        "WF203",
        "set v = «ctx.index»",
        "`ctx.index` stands only inside a loop",
    ),
    (
        "task of a parallel foreach",
        "WF209",
        "foreach a in var.list parallel { action t = mail.send(to: var.a.sku) }\n"
        "set y = «ctx.task.t.output»",
        '"t" runs in a parallel foreach and cannot be read from outside it',
    ),
    (
        "task of another branch",
        "WF209",
        'parallel { action p = mail.send(to: "x") sequence { set y = «ctx.task.p.output» } }',
        '"p" runs in another branch of the same parallel',
    ),
    (
        "task that comes later",
        "WF209",
        'set y = «ctx.task.t.output»\naction t = mail.send(to: "x")',
        '"t" cannot have run yet when this is evaluated',
    ),
    (
        "unknown field of an input",
        "WF213",
        "foreach a in var.list { set y = var.a«.skuu» }",
        'unknown field "skuu"',
    ),
    (
        "unknown field of an output",
        "WF213",
        "action a = stock.reserve(order_id: var.id) { set y = out«.reservations» }",
        'unknown field "reservations"',
    ),
    (
        "unknown field deep in a task's output",
        "WF213",
        "action a = stock.reserve(order_id: var.id)\nset y = ctx.task.a.output.rows[0]«.idd»",
        'unknown field "idd"',
    ),
    ("field of a string", "WF213", "set y = var.id«.x»", 'a string has no field "x"'),
    ("unknown function", "WF118", "set v = «lenn»(var.id)", 'unknown function "lenn"'),
    ("arity", "WF118", "set v = «len(var.id, 1)»", "`len` takes 1 argument, not 2"),
    ("defined of a value", "WF118", "set v = defined(«1»)", "`defined` takes a reference"),
    ("object key twice", "WF205", "set y = {a: 1, «a»: 2}", 'key "a" is given twice'),
]
TYPES = [
    (
        "literal argument",
        "mail.send(to: «5»)",
        'argument "to" takes a string, not an integer',
    ),
    (
        "null argument",
        "mail.send(to: «null»)",
        'argument "to" takes a string, not null',
    ),
    (
        "element of a list argument",
        'mail.send(to: "x", tags: ["a", «1»])',
        'an element of argument "tags" takes a string, not an integer',
    ),
    (
        "variable as argument",
        "mail.send(to: «var.n»)",
        'argument "to" takes a string, not an integer',
    ),
    (
        "enum",
        'stock.reserve(order_id: var.id, mode: «"c"»)',
        'argument "mode" takes one of "a", "b", not "c"',
    ),
    (
        "field in an object of a list",
        'stock.reserve(order_id: var.id, items: [«{sku: "a"}»])',
        'field "qty" is missing here',
    ),
]

STATEMENT_TYPES = [
    ("typed variable", 'set v = «"x"»', '"v" takes an integer, not a string'),
    (
        "text as a condition",
        'if «"false"» { set v = 1 }',
        "a condition takes a boolean, an integer or null, not a string",
    ),
    (
        "string variable as a condition",
        "if «var.id» { set v = 1 }",
        "a condition takes a boolean, an integer or null, not a string",
    ),
    (
        "fraction for an integer",
        "set v = «1.0»",
        '"v" takes an integer, not a number with a fraction',
    ),
    ("sum of strings", 'set v = 1 + «"a"»', "`+` takes integers, not a string"),
    (
        "fraction in arithmetic",
        "set v = «1.5» * 2",
        "`*` takes integers, not a number with a fraction",
    ),
    (
        "list inside a string",
        'set y = "x ${«var.list»}"',
        "a list cannot stand inside a string",
    ),
    (
        "foreach over a string",
        "foreach a in «var.id» { set y = var.a }",
        "`foreach` takes a list, not a string",
    ),
    ("repeat of a string", 'repeat «"3"» { set v = 1 }', "`repeat` takes an integer, not a string"),
    (
        "index that is a string",
        "set y = var.list[«var.id»]",
        "an index takes an integer, not a string",
    ),
    (
        "order of string and number",
        "if «var.id < 3» { set v = 1 }",
        "cannot order a string and an integer",
    ),
    ("in a string", 'if "a" in «var.id» { set v = 1 }', "`in` takes a list, not a string"),
    (
        "boolean to correlate",
        'wait_event e on "x" { correlate «true» }',
        "`correlate` takes a string or an integer, not a boolean",
    ),
]

STORABLE = [
    (
        "value too deep",
        "WF215",
        "set y = " + "[" * 100 + "«[]»" + "]" * 100,
        "a value nested deeper than 100 levels cannot be stored",
    ),
    (
        "argument too deep",
        "WF215",
        "action a = any.thing(x: " + "[" * 99 + "«[]»" + "]" * 99 + ")",
        "a value nested deeper than 100 levels cannot be stored",
    ),
    (
        "key too long",
        "WF215",
        f'set y = {{«"{"k" * 257}"»: 1}}',
        "this key has 257 characters; 256 are allowed",
    ),
    (
        "type of an event",
        "WF103",
        'wait_event «e» on " x"',
        "the type of an event has 1 to 200 characters, none of them a control character, "
        "and no space at either end",
    ),
]

DATAFLOW = [
    (
        "two branches write",
        "WF206",
        "parallel { sequence { set v = 1 } sequence { set «v» = 2 } }",
        'another branch of this parallel writes "v" too',
    ),
    (
        "one branch reads",
        "WF208",
        "parallel { sequence { set v = 1 } action a = any.thing(x: «var.v») }",
        'another branch of this parallel writes "v"',
    ),
    (
        "parallel foreach writes outside",
        "WF207",
        "foreach a in var.list parallel 2 { set «v» = var.a.qty }",
        'a parallel foreach cannot write "v", which is declared outside',
    ),
    (
        "unused variable",
        "WF221",
        "sequence { var «u» : int set u = 1 }",
        'variable "u" is never read',
    ),
    (
        "shadowing loop variable",
        "WF222",
        "foreach «id» in var.list { set y = var.id }",
        '"id" hides the variable of that name outside',
    ),
]


def _params(cases: list[tuple[str, str, str, str]]) -> list[object]:
    return [pytest.param(*case[1:], id=case[0]) for case in cases]


@pytest.mark.parametrize(
    ("code", "statements", "message"),
    _params(STRUCTURE + ACTIONS + REFERENCES + STORABLE + DATAFLOW),
)
def test_finding_stands_at_its_place(
    assert_found: AssertFound, code: str, statements: str, message: str
) -> None:
    assert_found(in_workflow(statements), code, message)


def test_what_the_engines_do_not_run_is_refused_by_name(
    assert_found: AssertFound, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(NOT_YET, ("repeat", "keep"), "`keep`")  # type: ignore[arg-type]
    statement = "repeat 3 «keep» 2 { set v = 1 }"
    assert_found(in_workflow(statement), "WF090", "`keep` is not supported yet")


@pytest.mark.parametrize(
    ("call", "message"), [pytest.param(*case[1:], id=case[0]) for case in TYPES]
)
def test_argument_of_the_wrong_type(assert_found: AssertFound, call: str, message: str) -> None:
    assert_found(in_workflow(f"action a = {call}"), "WF212", message)


@pytest.mark.parametrize(
    ("statements", "message"), [pytest.param(*case[1:], id=case[0]) for case in STATEMENT_TYPES]
)
def test_value_of_the_wrong_type(assert_found: AssertFound, statements: str, message: str) -> None:
    assert_found(in_workflow(statements), "WF212", message)


DECLARATIONS = [
    (
        "duplicate input",
        "WF204",
        "workflow w { input { a : int «a» : int } set y = var.a }",
        'input "a" is declared twice',
    ),
    (
        "duplicate output",
        "WF204",
        "workflow w { output { a = 1 «a» = 2 } set y = 1 }",
        'output "a" is declared twice',
    ),
    (
        "unused input",
        "WF220",
        "workflow w { input { «a» : int } set y = 1 }",
        'input "a" is never read',
    ),
    (
        "unknown type",
        "WF210",
        "workflow w { var a : list<«strin»> set y = var.a }",
        'unknown type "strin"',
    ),
    (
        "type cycle",
        "WF211",
        "type A = list<B>\ntype B = { a: «A» }\nworkflow w { set y = 1 }",
        'type "A" contains itself',
    ),
    (
        "duplicate field",
        "WF214",
        "type A = { a: int, «a»: int }\nworkflow w { set y = 1 }",
        '"a" stands twice in this type',
    ),
    (
        "default of the wrong type",
        "WF212",
        'workflow w { input { a : int = «"x"» } set y = var.a }',
        '"a" takes an integer, not a string',
    ),
    (
        "duplicate workflow",
        "WF121",
        "workflow w { set y = 1 }\nworkflow «w» { set y = 1 }",
        'workflow "w" is declared twice in this file',
    ),
]


@pytest.mark.parametrize(("code", "text", "message"), _params(DECLARATIONS))
def test_declaration_that_does_not_fit(
    assert_found: AssertFound, code: str, text: str, message: str
) -> None:
    assert_found(text, code, message)


SOUND = {
    "while reads a task of its own body": (
        'while (ctx.task.t.resultCode ?? 1) != 0 { action t = mail.send(to: "x") }'
    ),
    "set on an undeclared name, in a loop too": (
        "set c = 0\nwhile var.c < 3 { action t = any.thing() set c = var.c + 1 }"
    ),
    "branches write names of their own": "parallel { set a = 1 set a = 2 }",
    "collect in a branch": (
        "parallel { foreach a in var.list parallel { set y = var.a collect r = var.y } "
        "foreach b in var.list { set z = var.b collect r = var.z } }"
    ),
    "empty cases": "switch var.v { case 1 {} default {} }",
    "object against null": "if var.list == null { set v = 1 }",
    "out, code and attempt in a set": (
        "action a = stock.reserve(order_id: var.id) "
        "{ set y = out.reservation set z = code set q = ctx.attempt }"
    ),
    "catalog names of result codes": (
        "action a = stock.reserve(order_id: var.id)\nswitch a { case ok {} case short, 2 {} }"
    ),
    "keywords as names": "set input = 1\nset limit = var.input",
}


@pytest.mark.parametrize("statements", SOUND.values(), ids=SOUND.keys())
def test_sound_program_gives_no_diagnostic(
    check: Callable[[str], tuple[Diagnostic, ...]], statements: str
) -> None:
    # That a value is not read is no fault of what these programs are about.
    found = [f.message for f in check(in_workflow(statements)) if f.code != "WF225"]
    assert found == []


def test_diagnostics_are_sorted_by_position(
    check: Callable[[str], tuple[Diagnostic, ...]],
) -> None:
    text = in_workflow('set y = var.a1\naction a = mail.sned(to: "x")\nset y = var.a2')
    starts = [found.span.start for found in check(text)]
    assert len(starts) == 4
    assert starts == sorted(starts)


def test_first_declaration_is_labelled(assert_found: AssertFound) -> None:
    found = assert_found(
        "workflow w { input { a : int «a» : int } set y = var.a }",
        "WF204",
        'input "a" is declared twice',
    )
    assert [(label.span.start, label.message) for label in found.labels] == [(21, "first here")]


def test_unknown_names_come_with_the_nearest(assert_found: AssertFound) -> None:
    found = assert_found(
        in_workflow('action a = «mail.sned»(to: "x")'), "WF104", 'unknown action "mail.sned"'
    )
    assert found.hint == 'did you mean "mail.send"?'


def nested_ifs(count: int) -> Workflow:
    """Builds by hand what the parser would refuse first."""
    here = Span(0, 1)
    block = Block(variables=(), statements=(), span=here)
    for number in range(count, 0, -1):
        condition = LiteralExpr(value=True, span=here)
        statement = If(
            key=None, condition=condition, then=block, otherwise=None, span=Span(number, number + 1)
        )
        block = Block(variables=(), statements=(statement,), span=here)
    return Workflow(
        name=Name(text="w", span=here),
        description=None,
        types=(),
        inputs=(),
        variables=(),
        outputs=(),
        subscriptions=(),
        body=block,
        span=here,
    )


@pytest.mark.parametrize(("count", "places"), [(512, []), (513, [513]), (600, [513])])
def test_nesting_past_512_levels_gives_one_error(count: int, places: list[int]) -> None:
    model = build_model(nested_ifs(count), SourceFile("w.wf", " " * 700), FileAliases({}), {})
    assert [found.span.start for found in check_nesting(model)] == places


def test_every_check_is_listed_once() -> None:
    assert len(set(CHECKS)) == len(CHECKS)
