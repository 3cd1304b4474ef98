"""What the lowering makes: keys, paths of scopes, programs, templates, bindings."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from compiler.pipeline import compile_text
from compiler.spec import GraphSpec, dump_spec, parse_spec
from compiler.verify import verify_spec

Compiled = Callable[[str], GraphSpec]

HEAD = "workflow w { input { s : string n : int list : list<any> }\n"


def program_of(compiled: Compiled, expression: str) -> list[object]:
    """Compiles an expression as the value of an output and returns its program."""
    spec = compiled(HEAD + "output { o = " + expression + " }\nset y = 1 }")
    return list(spec.outputs[0].program)


VAR_N = ["var", "n", "w", []]
VAR_S = ["var", "s", "w", []]

PROGRAMS = {
    "1": [["lit", 1]],
    "-5": [["lit", -5]],
    "-1.5": [["lit", Decimal("-1.5")]],
    "-var.n": [VAR_N, ["neg"]],
    "null": [["lit", None]],
    "var.n + 1 < 3": [VAR_N, ["lit", 1], ["add"], ["lit", 3], ["lt"]],
    "var.n // 2 % 3": [VAR_N, ["lit", 2], ["div"], ["lit", 3], ["mod"]],
    "not var.n": [VAR_N, ["not"]],
    "var.n and var.n == 1": [VAR_N, ["jf", 4], VAR_N, ["lit", 1], ["eq"], ["bool"]],
    "var.n or true": [VAR_N, ["jt", 2], ["lit", True], ["bool"]],
    "var.n ?? 1 ?? 2": [VAR_N, ["alt", 1], ["lit", 1], ["alt", 1], ["lit", 2]],
    "len(var.s)": [VAR_S, ["len"]],
    "defined(ctx.context.x)": [["defined", ["ctx", "context", ["x"]]]],
    "var.n in [1, 2]": [VAR_N, ["lit", 1], ["lit", 2], ["arr", 2], ["in"]],
    '{a: 1, "b c": var.n}': [["lit", 1], VAR_N, ["obj", ["a", "b c"]]],
    "var.list[0].x": [["var", "list", "w", [0, "x"]]],
    'var.list[var.n]["a b"]': [["var", "list", "w", [VAR_N, "a b"]]],
    '"${var.n}"': [VAR_N],
    '"a ${var.s}!"': [["lit", "a "], VAR_S, ["lit", "!"], ["cat", 3]],
    '"a $${b"': [["lit", "a ${b"]],
    "ctx.instance_id": [["ctx", "instance_id", []]],
}


@pytest.mark.parametrize(("expression", "program"), PROGRAMS.items(), ids=PROGRAMS.keys())
def test_expression_becomes_this_program(
    compiled: Compiled, expression: str, program: list[object]
) -> None:
    assert program_of(compiled, expression) == program


ARGUMENTS = {
    '"plain"': ("plain", []),
    '"a $${b}"': ("a $${b}", []),
    "-3": (-3, []),
    "var.list[2].x": ("${var.list[2].x}", []),
    '"n=${var.n}, $${"': ("n=${var.n}, $${", []),
    "[1, [var.n], {k: null}]": ([1, ["${var.n}"], {"k": None}], []),
    "var.n + 1": (None, ["/x"]),
    '{"a/b": [true, len(var.s)], "t~": not var.n}': (
        {"a/b": [True, None], "t~": None},
        ["/x/a~1b/1", "/x/t~0"],
    ),
    'ctx.context["odd key"]': (None, ["/x"]),
    "var.list[var.n]": (None, ["/x"]),
}


@pytest.mark.parametrize(("value", "expected"), ARGUMENTS.items(), ids=ARGUMENTS.keys())
def test_argument_goes_into_the_template_or_a_binding(
    compiled: Compiled, value: str, expected: tuple[object, list[str]]
) -> None:
    spec = compiled(HEAD + f"action a = any.thing(x: {value}) }}")
    template, pointers = expected
    assert spec.templates[0].json_ == {"x": template}
    assert [row.pointer for row in spec.input_bindings] == pointers


def test_keys_count_per_kind_under_the_nearest_keyed_ancestor(compiled: Compiled) -> None:
    spec = compiled(
        HEAD + "set a = 1 if var.n { set a = 2 } else if var.n == 2 { set a = 3 }\n"
        "sequence q { if var.n { set a = 4 } repeat r: 2 { set a = 5 } set a = 6 } set a = 7 }"
    )
    assert [(node.key, node.generated) for node in spec.nodes] == [
        ("w", False),
        ("set_1", False),
        ("if_1", False),
        ("if_1.then", True),
        ("set_2", False),
        ("if_1.else", True),
        ("if_2", False),
        ("if_2.then", True),
        ("set_3", False),
        ("q", False),
        ("q.if_1", False),
        ("q.if_1.then", True),
        ("q.set_1", False),
        ("r", False),
        ("r.body", True),
        ("r.set_1", False),
        ("q.set_2", False),
        ("set_4", False),
    ]


def owners(spec: GraphSpec) -> list[tuple[str, str, str]]:
    return [(row.owner, row.name, row.kind) for row in spec.vars]


def test_undeclared_name_belongs_to_the_nearest_loop_branch_or_workflow(
    compiled: Compiled,
) -> None:
    spec = compiled(
        HEAD + "if var.n { set a = 1 }\n"
        "foreach i, j in var.list { sequence { set b = var.i } collect c = var.b }\n"
        "parallel { if var.n { set d = 1 } action t = any.thing() { set e = out } } }"
    )
    assert owners(spec) == [
        ("w", "a", "set"),
        ("w", "c", "set"),
        ("foreach_1.body", "i", "loop"),
        ("foreach_1.body", "j", "loop"),
        ("foreach_1.body", "b", "set"),
        ("if_2", "d", "set"),
        ("t", "e", "set"),
    ]


def test_collect_of_a_foreach_that_is_a_branch_belongs_to_it(compiled: Compiled) -> None:
    spec = compiled(
        HEAD + "parallel { foreach i in var.list { set b = var.i collect c = var.b } set z = 1 } }"
    )
    assert ("foreach_1", "c", "set") in owners(spec)


def test_inner_variable_hides_the_outer_one(compiled: Compiled) -> None:
    spec = compiled(
        HEAD + "var v : int = 1 sequence s { var v : int = var.v + 1 set v = var.v * 2 } }"
    )
    programs = {row.owner: row.program for row in spec.vars}
    assert programs["s"] == [["var", "v", "w", []], ["lit", 1], ["add"]]
    assert (spec.output_bindings[0].owner, spec.output_bindings[0].program) == (
        "s",
        [["var", "v", "s", []], ["lit", 2], ["mul"]],
    )


def test_bare_key_tests_the_result_code(compiled: Compiled) -> None:
    spec = compiled(HEAD + "action a = stock.reserve(order_id: var.s) if a { set y = 1 } }")
    (condition,) = [n.attributes["condition"] for n in spec.nodes if n.type == "IF"]
    assert condition == [["ctx", "task", ["a", "resultCode"]], ["lit", 0], ["ne"]]


def test_named_cases_become_integers(compiled: Compiled) -> None:
    spec = compiled(
        HEAD + "action a = stock.reserve(order_id: var.s)\n"
        "switch a { case ok {} case short, 5 {} default {} } }"
    )
    edges = [(edge.kind, edge.order, edge.case) for edge in spec.edges if edge.parent != "w"]
    assert edges == [("CASE", 0, [0]), ("CASE", 1, [1, 5]), ("DEFAULT", 2, None)]


@pytest.mark.parametrize(
    ("collection", "kind"),
    [
        ("var.list", "variable"),
        ("ctx.context.list", "context"),
        ("ctx.task.t.output.rows", "task_output"),
        ("[1, 2]", "program"),
        ("ctx.event.payload", "program"),
    ],
)
def test_collection_binding_says_where_the_array_is(
    compiled: Compiled, collection: str, kind: str
) -> None:
    spec = compiled(
        HEAD + f"action t = any.thing() foreach i in {collection} {{ set y = var.i }} }}"
    )
    assert [row.kind for row in spec.collection_bindings] == [kind]


def test_wait_events_bring_one_subscription_per_type(compiled: Compiled) -> None:
    spec = compiled('workflow w { wait_event a on "x" wait_event b on "y" wait_event c on "x" }')
    assert [(row.event_type, row.mode) for row in spec.subscriptions] == [
        ("x", "signal_wait"),
        ("y", "signal_wait"),
    ]


def test_positions_and_descriptions_are_not_hashed(compiled: Compiled) -> None:
    one = compiled('workflow w { description "a" set y = 1 }')
    other = compiled('# moved\nworkflow w {\n  description "b"\n  set y = 1\n}')
    assert one.source_map != other.source_map
    assert one.content_hash() == other.content_hash()


def test_content_is_hashed(compiled: Compiled) -> None:
    one, other = compiled("workflow w { set y = 1 }"), compiled("workflow w { set y = 2 }")
    assert one.content_hash() != other.content_hash()


def test_an_integer_and_a_decimal_of_one_value_make_two_programs() -> None:
    whole, tenths = (
        compile_text(f"workflow w {{ output {{ a = {number} }} }}\n", "w.wf").specs[0]
        for number in ("1", "1.0")
    )
    assert whole.content_hash() != tenths.content_hash()


def test_source_map_has_line_and_column_of_every_node(compiled: Compiled) -> None:
    spec = compiled("workflow w {\n  if true {\n    set y = 1\n  }\n}")
    assert spec.source_map is not None
    assert spec.source_map.nodes == {
        "w": (1, 10),
        "if_1": (2, 3),
        "if_1.then": (2, 11),
        "set_1": (3, 5),
    }


def test_spec_survives_its_text_form(compiled: Compiled) -> None:
    spec = compiled(HEAD + 'var d : number = 1.50 action a = any.thing(x: [1, "é${var.n}"]) }')
    again = parse_spec(dump_spec(spec))
    assert again == spec
    assert again.content_hash() == spec.content_hash()


def test_same_source_gives_the_same_bytes(catalog_path: Path) -> None:
    text = HEAD + "action a = any.thing(x: var.n + 1) foreach i in var.list { set q = var.i } }"
    dumps = {dump_spec(compile_text(text, "a.wf", [catalog_path]).specs[0]) for _ in range(2)}
    assert len(dumps) == 1


def test_nothing_is_lowered_when_there_is_an_error() -> None:
    result = compile_text("workflow a { set y = 1 }\nworkflow b { set y = var.nope }", "a.wf")
    assert result.specs == ()


def test_512_levels_compile(compiled: Compiled) -> None:
    depth = 511  # and the workflow's own braces
    spec = compiled("workflow w {" + "sequence {" * (depth - 1) + "set y = 1" + "}" * depth)
    assert len(spec.nodes) == depth + 1
    assert verify_spec(spec) == ()


def test_published_schema_is_current() -> None:
    from compiler.spec_schema import PATH, schema_text

    assert PATH.read_text("utf-8") == schema_text()


def test_spec_fits_its_published_schema(compiled: Compiled) -> None:
    import jsonschema

    from compiler.spec_schema import graphspec_schema

    spec = compiled(HEAD + "action a = any.thing(x: var.n + 1) fail -3 }")
    document = json.loads(dump_spec(spec))
    jsonschema.Draft202012Validator(graphspec_schema()).validate(document)


TYPED = """\
workflow w {
  input { list : list<int> = [1] }
  var a : int = 0
  sequence s {
    var b : string = "x"
    set q = [var.a, var.b]
  } on_error {
    var c : bool
    set c = true
  } finally { var d : number? = 1.5 set r = var.d }
  parallel p { sequence t { var e : list<int> = [] set u = var.e } sequence u2 {} }
  foreach f: x in var.list {
    var g : { h: int } = { h: 1 }
    if i: var.g.h { var j : "y" | "z" set j = "y" }
  }
  while k: var.a > 1 { var l : any = 1 set a = var.l }
  wait_event m on "e" { timeout 1s { var n : object = {} set v = var.n } }
}
"""


def test_every_declared_variable_has_its_type(compiled: Compiled) -> None:
    spec = compiled(TYPED)
    types = {row.id: row for row in spec.types}
    found = {
        f"{row.owner} {row.name}": types[row.type or 0].base
        for row in spec.vars
        if row.kind == "var"
    }
    assert found == {
        "w a": "int",
        "s b": "string",
        "s.on_error c": "bool",
        "s.finally d": "number",
        "t e": "list",
        "f.body g": "object",
        "i.then j": "string",
        "k.body l": "any",
        "m.timeout n": "object",
    }
    assert all(types[row.type or 0].parent is None for row in spec.vars if row.kind == "var")


def test_what_is_not_declared_has_no_type(compiled: Compiled) -> None:
    spec = compiled(TYPED)
    assert {row.type for row in spec.vars if row.kind != "var"} == {None}
