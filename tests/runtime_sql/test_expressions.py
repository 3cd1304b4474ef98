"""Programs, references and templates in a database: truth tables, `ctx`, both engines alike.

tests/mssql/test_expressions.py runs these cases on SQL Server; here they run in PostgreSQL.
"""

from __future__ import annotations

from decimal import Decimal
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compiler import json_values
from local_runner.expressions import compile_program, evaluate
from local_runner.values import MISSING, EngineError

if TYPE_CHECKING:
    from tests.runtime_sql.conftest import GraphDatabase

BIG, MAX, MIN = 2**53 + 1, 2**63 - 1, -(2**63)
COMPOSED, DECOMPOSED, EMOJI = "\u00e9", "e\u0301", "\U0001f600"

# Each in ascending order of its kind; values in one inner list are equal.
NUMBERS: list[list[Any]] = [[0], [Decimal("0.1")], [1, Decimal("1.0")], [BIG], [MAX]]
STRINGS: list[list[Any]] = [
    [""],
    ["A"],
    ["a"],
    ["a "],
    [DECOMPOSED],
    [COMPOSED],
    ["\ufffd"],
    [EMOJI],
]
PLAIN: list[list[Any]] = [[None], [False], [True]]
CONTAINERS: list[Any] = [[], {}]
SCALARS = [value for group in NUMBERS + STRINGS + PLAIN for value in group]
VALUES = [*SCALARS, *CONTAINERS]

WORDS = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    Decimal: "decimal",
    str: "string",
    list: "array",
    dict: "object",
}


def word(value: Any) -> str:
    return WORDS[type(value)]


def place(value: Any, groups: list[list[Any]]) -> int | None:
    """Returns the position of the group that holds exactly this value (1 is not True here)."""
    for position, group in enumerate(groups):
        if any(type(value) is type(member) and value == member for member in group):
            return position
    return None


def lit(value: Any) -> list[Any]:
    return ["lit", value]


@pytest.fixture
def root(database: GraphDatabase) -> int:
    database.node("w", "SEQUENCE")
    return database.execution("w")


# Operators ----------------------------------------------------------------------------------------


def expected_equality(left: Any, right: Any) -> Any:
    if left is not None and right is not None and {type(left), type(right)} & {list, dict}:
        return (10010, f"cannot compare {word(left)} with {word(right)}")
    for groups in (NUMBERS, STRINGS, PLAIN):
        if place(left, groups) is not None:
            return place(left, groups) == place(right, groups)
    return False


def test_eq_and_ne_follow_their_truth_table(database: GraphDatabase, root: int) -> None:
    pairs = list(product(VALUES, VALUES))
    expected = [expected_equality(*pair) for pair in pairs]
    assert database.evaluate_all([[lit(a), lit(b), ["eq"]] for a, b in pairs], root) == expected
    assert database.evaluate_all([[lit(a), lit(b), ["ne"]] for a, b in pairs], root) == [
        answer if isinstance(answer, tuple) else not answer for answer in expected
    ]


@pytest.mark.parametrize(
    ("operation", "holds"),
    [
        ("lt", lambda left, right: left < right),
        ("le", lambda left, right: left <= right),
        ("gt", lambda left, right: left > right),
        ("ge", lambda left, right: left >= right),
    ],
)
def test_order_follows_its_truth_table(
    database: GraphDatabase, root: int, operation: str, holds: Any
) -> None:
    def expected(left: Any, right: Any) -> Any:
        for groups in (NUMBERS, STRINGS):
            places = place(left, groups), place(right, groups)
            if None not in places:
                return holds(*places)
        return (10010, f"cannot compare {word(left)} with {word(right)}")

    pairs = list(product(VALUES, VALUES))
    answers = database.evaluate_all([[lit(a), lit(b), [operation]] for a, b in pairs], root)
    assert answers == [expected(*pair) for pair in pairs]


def test_in_finds_equal_scalars_only(database: GraphDatabase, root: int) -> None:
    array = [1, "a", None, [], {}, [True]]
    answers = database.evaluate_all([[lit(value), lit(array), ["in"]] for value in VALUES], root)
    expected: list[Any] = [
        value is None or place(value, NUMBERS) == 2 or (type(value) is str and value == "a")
        for value in SCALARS
    ]
    expected += [
        (10010, f"in takes a scalar on the left, not {word(value)}") for value in CONTAINERS
    ]
    assert answers == expected


def test_in_takes_an_array_on_the_right(database: GraphDatabase, root: int) -> None:
    values = [value for value in VALUES if type(value) is not list]
    assert database.evaluate_all([[lit(1), lit(value), ["in"]] for value in values], root) == [
        (10010, f"in takes an array on the right, not {word(value)}") for value in values
    ]


def expected_truth(value: Any) -> Any:
    if value is None or type(value) is bool or type(value) is int:
        return bool(value)
    return (10010, f"a condition takes a boolean, an integer or null, not {word(value)}")


def test_not_follows_its_truth_table(database: GraphDatabase, root: int) -> None:
    assert database.evaluate_all([[lit(value), ["not"]] for value in VALUES], root) == [
        truth if isinstance(truth, tuple) else not truth for truth in map(expected_truth, VALUES)
    ]


def test_and_and_or_give_booleans_and_do_not_look_further(
    database: GraphDatabase, root: int
) -> None:
    def expected(left: Any, right: Any, stops: bool) -> Any:
        first = expected_truth(left)
        return first if isinstance(first, tuple) or first is stops else expected_truth(right)

    pairs = list(product(VALUES, VALUES))
    for jump, stops in (("jf", False), ("jt", True)):
        programs = [[lit(a), [jump, 2], lit(b), ["bool"]] for a, b in pairs]
        assert database.evaluate_all(programs, root) == [expected(a, b, stops) for a, b in pairs]


def test_len_counts_code_points_elements_and_keys(database: GraphDatabase, root: int) -> None:
    def expected(value: Any) -> Any:
        if type(value) in (str, list, dict):
            return len(value)
        return (10010, f"len takes a string, an array or an object, not {word(value)}")

    values = [*VALUES, [1, [2, 3]], {"a": 1, "b": {"c": 1}}]
    answers = database.evaluate_all([[lit(value), ["len"]] for value in values], root)
    assert answers == [expected(value) for value in values]


@pytest.mark.parametrize(
    ("operation", "sign"), [("add", "+"), ("sub", "-"), ("mul", "*"), ("div", "//"), ("mod", "%")]
)
def test_arithmetic_takes_integers_and_names_the_first_other_operand(
    database: GraphDatabase, root: int, operation: str, sign: str
) -> None:
    pairs = [
        (left, right)
        for left, right in product(VALUES, VALUES)
        if type(left) is not int or type(right) is not int
    ]
    answers = database.evaluate_all([[lit(a), lit(b), [operation]] for a, b in pairs], root)
    assert answers == [
        (10011, f"{sign} takes integers, not {word(a if type(a) is not int else b)}")
        for a, b in pairs
    ]


@pytest.mark.parametrize(
    ("operation", "sign", "work"),
    [
        ("add", "+", lambda a, b: a + b),
        ("sub", "-", lambda a, b: a - b),
        ("mul", "*", lambda a, b: a * b),
        ("div", "//", lambda a, b: a // b),
        ("mod", "%", lambda a, b: a % b),
    ],
)
def test_arithmetic_is_exact_within_64_bits(
    database: GraphDatabase, root: int, operation: str, sign: str, work: Any
) -> None:
    integers = [0, 1, -1, 2, -2, 3, -3, 7, -7, BIG, -BIG, MAX, MIN, MAX - 1, 2**63, MIN - 1]

    def expected(left: int, right: int) -> Any:
        overflow = (10011, f"integer overflow in {sign}")
        if not (MIN <= left <= MAX and MIN <= right <= MAX):
            return overflow
        if right == 0 and sign in ("//", "%"):
            return (10011, "division by zero")
        result = work(left, right)
        return result if MIN <= result <= MAX else overflow

    pairs = list(product(integers, integers))
    answers = database.evaluate_all([[lit(a), lit(b), [operation]] for a, b in pairs], root)
    assert answers == [expected(*pair) for pair in pairs]


def test_minus_negates_integers(database: GraphDatabase, root: int) -> None:
    assert database.evaluate_all([[lit(v), ["neg"]] for v in (5, 0, MAX, MIN, "5")], root) == [
        -5,
        0,
        -MAX,
        (10011, "integer overflow in -"),
        (10011, "- takes integers, not string"),
    ]


def test_cat_joins_scalars_as_text(database: GraphDatabase, root: int) -> None:
    parts = ["a ", 1, Decimal("1.50"), True, False, BIG, EMOJI]
    program = [*map(lit, parts), ["cat", len(parts)]]
    assert database.evaluate(program, root) == f"a 11.50truefalse{BIG}{EMOJI}"


@pytest.mark.parametrize("value", [None, [], {}])
def test_cat_refuses_what_is_no_scalar(database: GraphDatabase, root: int, value: Any) -> None:
    assert database.evaluate([lit("a"), lit(value), ["cat", 2]], root) == (
        10017,
        f"{word(value)} cannot stand inside a string",
    )


def test_arr_and_obj_gather_from_the_stack(database: GraphDatabase, root: int) -> None:
    program = [lit(0), lit(1), lit(None), ["arr", 2], lit("x"), ["obj", ["b", "a key"]], ["arr", 2]]
    assert database.evaluate(program, root) == [0, {"b": [1, None], "a key": "x"}]


def test_empty_arr_and_obj(database: GraphDatabase, root: int) -> None:
    assert database.evaluate([["arr", 0], ["obj", []], ["arr", 2]], root) == [[], {}]


@pytest.mark.parametrize("value", VALUES)
def test_a_literal_keeps_its_value_and_its_digits(
    database: GraphDatabase, root: int, value: Any
) -> None:
    answer = database.evaluate([lit(value)], root)
    assert (type(answer), str(answer)) == (type(value), str(value))


# Variables and steps ------------------------------------------------------------------------------


def var(name: str, *steps: Any, owner: str = "w") -> list[Any]:
    return ["var", name, owner, list(steps)]


@pytest.fixture
def data(database: GraphDatabase, root: int) -> int:
    database.give(
        root,
        items=[{"sku": "a"}, {"sku": "b", "odd key": {"\u00e9": 1}}],
        i=1,
        text="abc",
        nothing=None,
        half=Decimal("0.5"),
        minus=-1,
        pick=[1],
    )
    return root


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        (var("items", 0, "sku"), "a"),
        (var("items", 1, "odd key", "\u00e9"), 1),
        (var("items", var("i"), "sku"), "b"),
        (var("items", var("pick", 0), "sku"), "b"),
        (
            var("items", var("pick", var("minus"), "z")),
            (10001, "var.pick[var.minus].z is not there"),
        ),
        (var("nothing"), None),
        (var("unknown"), (10001, "var.unknown is not there")),
        (var("i", owner="elsewhere"), (10001, "var.i is not there")),
        (var("items", 2), (10001, "var.items[2] is not there")),
        (var("items", var("minus")), (10001, "var.items[var.minus] is not there")),
        (var("items", "0"), (10001, 'var.items["0"] is not there')),
        (var("items", 0, "odd key"), (10001, 'var.items[0]["odd key"] is not there')),
        (var("text", 0), (10001, "var.text[0] is not there")),
        (var("text", "length"), (10001, "var.text.length is not there")),
        (var("nothing", "a"), (10001, "var.nothing.a is not there")),
        (var("items", var("text")), (10010, "an index takes an integer, not string")),
        (var("items", var("half")), (10010, "an index takes an integer, not decimal")),
        (var("items", var("nothing")), (10010, "an index takes an integer, not null")),
        (var("items", var("gone", "x")), (10001, "var.gone.x is not there")),
        (["out", ["ok"]], True),
        (["out", ["gone", 0]], (10001, "out.gone[0] is not there")),
        (["code"], 3),
        (["event", ["payload", "at"]], (10001, "event.payload.at is not there")),
    ],
)
def test_a_reference_finds_its_value_or_says_how_it_is_written(
    database: GraphDatabase, data: int, reference: Any, expected: Any
) -> None:
    assert database.evaluate([reference], data, output={"ok": True}, code=3) == expected


def test_alt_takes_the_right_side_for_missing_and_null(database: GraphDatabase, data: int) -> None:
    programs = [
        [left, ["alt", 1], lit("right")]
        for left in (var("gone"), var("nothing"), var("i"), var("items", var("gone")))
    ]
    assert database.evaluate_all(programs, data) == ["right", "right", 1, "right"]


def test_alt_lets_other_errors_through(database: GraphDatabase, data: int) -> None:
    program = [var("items", var("text")), ["alt", 1], lit(1)]
    assert database.evaluate(program, data) == (10010, "an index takes an integer, not string")


def test_alts_in_a_row_take_the_first_that_is_there(database: GraphDatabase, data: int) -> None:
    program = [var("gone"), ["alt", 1], var("nothing"), ["alt", 1], lit("last")]
    assert database.evaluate(program, data) == "last"


def test_defined_tells_whether_something_is_there(database: GraphDatabase, data: int) -> None:
    programs = [
        [["defined", reference]]
        for reference in (var("nothing"), var("gone"), var("items", 0, "sku"), var("items", 9))
    ]
    assert database.evaluate_all(programs, data) == [True, False, True, False]


@pytest.mark.parametrize("operation", ["eq", "lt", "in", "add", "not", "len", "neg"])
def test_an_operator_on_something_missing_is_10001(
    database: GraphDatabase, data: int, operation: str
) -> None:
    assert database.evaluate([var("gone"), var("gone"), [operation]], data) == (
        10001,
        "var.gone is not there",
    )


def test_a_variable_is_found_by_its_owner_through_the_scopes(database: GraphDatabase) -> None:
    database.node("w", "SEQUENCE")
    database.node("loop", "REPEAT", "w")
    database.node("loop.body", "SEQUENCE", "loop", "BODY")
    root = database.execution("w")
    body = database.execution("loop.body", database.execution("loop", root))
    database.give(root, x="outer")
    database.give(body, x="inner")
    assert database.evaluate([var("x", owner="w")], body) == "outer"
    assert database.evaluate([var("x", owner="loop.body")], body) == "inner"
    assert database.evaluate([var("x", owner="loop.body")], root) == (10001, "var.x is not there")


def test_output_reads_an_unset_undeclared_name_as_null(database: GraphDatabase, root: int) -> None:
    database.variable("w", "late", kind="set")
    database.variable("w", "declared", kind="var")
    for name, expected in (("late", None), ("declared", (10001, "var.declared is not there"))):
        program = [["var", name, "w", []]]
        assert database.evaluate(program, root, unset_is_null=True) == expected


def test_a_value_is_set_in_the_scope_of_its_owner(database: GraphDatabase) -> None:
    database.node("w", "SEQUENCE")
    database.node("loop", "REPEAT", "w")
    database.node("loop.body", "SEQUENCE", "loop", "BODY")
    root = database.execution("w")
    body = database.execution("loop.body", database.execution("loop", root))
    for value in (1, 2):
        assert database.set_variable(body, "w", "x", value)
    assert (database.variables(root), database.variables(body)) == ({"x": 2}, {})


def test_a_scope_variable_is_found_from_a_scope(database: GraphDatabase, data: int) -> None:
    def answer(name: str) -> Any:
        return database.answer(
            "wf_get_scope_variable_json", scope_id=data, owner_key="w", name=name
        )

    assert answer("text") == "abc"
    assert answer("gone") == (10001, "var.gone is not there")


def test_setting_a_variable_of_a_scope_that_is_not_open_tells_so(
    database: GraphDatabase, root: int
) -> None:
    assert not database.set_variable(root, "elsewhere", "x", 1)
    assert database.variables(root) == {}


def test_a_program_of_ten_thousand_operands_is_evaluated(
    database: GraphDatabase, root: int
) -> None:
    program = [lit(0), *([lit(1), ["add"]] * 10_000)]
    database.variable("w", "x", program=program)
    (value,) = database.row(
        "select r.value_json from wf.node_scope_default d"
        " cross join lateral wf.wf_eval_expression(d.program_json, %s) r",
        root,
    )
    assert value == 10_000


def test_an_unknown_instruction_is_an_error_and_not_an_exception(
    database: GraphDatabase, root: int
) -> None:
    assert database.evaluate([["sqrt"]], root) == (10002, "unknown instruction sqrt")


# ctx ----------------------------------------------------------------------------------------------


def ctx(root: str, *steps: Any) -> list[Any]:
    return [["ctx", root, list(steps)]]


def test_ctx_of_the_instance(database: GraphDatabase, root: int) -> None:
    database.context({"a": {"b": [7]}, "forceRerun": True}, {"type": "t", "payload": {"n": 1}})
    programs = [
        ctx("instance_id"),
        ctx("workflow"),
        ctx("version"),
        ctx("node"),
        ctx("context", "a", "b", 0),
        ctx("forceRerun"),
        ctx("event", "payload", "n"),
    ]
    assert database.evaluate_all(programs, root) == [
        str(database.instance_id),
        "w",
        "0123456789ab",
        "w",
        7,
        True,
        1,
    ]


def test_ctx_without_what_it_asks_for(database: GraphDatabase, root: int) -> None:
    programs = [
        ctx("event"),
        ctx("item"),
        ctx("iterationNo"),
        ctx("sequenceIndex"),
        ctx("parallelIndex"),
        ctx("parent", "resultCode"),
        ctx("attempt"),
        ctx("nonsense", "x"),
        ctx("task", "k", "output", "odd key"),
        ctx("task", "k"),
    ]
    texts = (
        "ctx.event|ctx.item|ctx.iterationNo|ctx.sequenceIndex|ctx.parallelIndex"
        '|ctx.parent.resultCode|ctx.attempt|ctx.nonsense.x|ctx.task.k.output["odd key"]|ctx.task.k'
    )
    assert database.evaluate_all(programs, root) == [
        (10001, f"{text} is not there") for text in texts.split("|")
    ]


def test_force_rerun_is_false_when_absent(database: GraphDatabase, root: int) -> None:
    assert database.evaluate(ctx("forceRerun"), root) is False


def test_attempt_is_read_in_a_set_only(database: GraphDatabase) -> None:
    database.node("w", "SEQUENCE")
    database.node("a", "ACTION", "w")
    action = database.execution("a", database.execution("w"))
    assert database.evaluate(ctx("attempt"), action, code=0) == 1
    assert database.evaluate(ctx("attempt"), action) == (10001, "ctx.attempt is not there")


@pytest.fixture
def nested(database: GraphDatabase) -> dict[str, int]:
    """w: a, fan (each i: b, par (p, q)), c; iterations 0 and 1 of fan."""
    database.node("w", "SEQUENCE")
    database.node("a", "ACTION", "w")
    database.node("fan", "FOREACH", "w", item="it", parallel=1)
    database.node("fan.body", "SEQUENCE", "fan", "BODY")
    database.node("b", "ACTION", "fan.body")
    database.node("par", "PARALLEL", "fan.body")
    database.node("p", "ACTION", "par", "PARALLEL")
    database.node("q", "ACTION", "par", "PARALLEL")
    database.node("c", "ACTION", "w")
    found = {"w": database.execution("w")}
    found["a"] = database.execution("a", found["w"], 0, "SUCCEEDED", 4, {"x": 1})
    found["fan"] = database.execution("fan", found["w"])
    for i in (0, 1):
        body = found[f"body{i}"] = database.execution("fan.body", found["fan"], i)
        database.give(body, it=f"item {i}")
        found[f"b{i}"] = database.execution("b", body, 0, "SUCCEEDED", 10 + i, f"b{i}")
        found[f"par{i}"] = database.execution("par", body)
        found[f"p{i}"] = database.execution("p", found[f"par{i}"], 0, "FAILED", -5, "p")
        found[f"q{i}"] = database.execution("q", found[f"par{i}"], 0, "READY")
    found["c"] = database.execution("c", found["w"])
    return found


def test_ctx_of_the_nearest_loop(database: GraphDatabase, nested: dict[str, int]) -> None:
    programs = [ctx("item"), ctx("index"), ctx("iterationNo")]
    assert database.evaluate_all(programs, nested["q1"]) == ["item 1", 1, 2]
    assert database.evaluate_all(programs, nested["body0"]) == ["item 0", 0, 1]


def test_sequence_and_parallel_index(database: GraphDatabase, nested: dict[str, int]) -> None:
    programs = [ctx("sequenceIndex"), ctx("parallelIndex")]
    assert database.evaluate_all(programs, nested["q0"]) == [1, 1]
    assert database.evaluate_all(programs, nested["c"]) == [
        2,
        (10001, "ctx.parallelIndex is not there"),
    ]


def test_parent_result_code_is_the_previous_siblings(
    database: GraphDatabase, nested: dict[str, int]
) -> None:
    program = ctx("parent", "resultCode")
    assert database.evaluate(program, nested["q1"]) == 11
    assert database.evaluate(program, nested["fan"]) == 4
    missing = (10001, "ctx.parent.resultCode is not there")
    assert database.evaluate(program, nested["b0"]) == missing
    assert database.evaluate(program, nested["c"]) == missing  # fan has not ended


def test_task_sees_its_own_iteration_first(database: GraphDatabase, nested: dict[str, int]) -> None:
    program = ctx("task", "b", "output")
    assert database.evaluate(program, nested["q0"]) == "b0"
    assert database.evaluate(program, nested["q1"]) == "b1"


def test_task_sees_the_last_iteration_of_a_loop_left_behind(
    database: GraphDatabase, nested: dict[str, int]
) -> None:
    assert database.evaluate(ctx("task", "b", "output"), nested["c"]) == "b1"


def test_task_is_seen_from_the_composite_around_it(
    database: GraphDatabase, nested: dict[str, int]
) -> None:
    assert database.evaluate(ctx("task", "b", "resultCode"), nested["fan"]) == 11


def test_nothing_is_seen_inside_a_parallel_loop_from_outside(
    database: GraphDatabase, nested: dict[str, int]
) -> None:
    database.attribute("fan", item="it", parallel=0)
    assert database.evaluate(ctx("task", "b", "output"), nested["c"]) == (
        10001,
        "ctx.task.b.output is not there",
    )
    assert database.evaluate(ctx("task", "b", "output"), nested["q0"]) == "b0"


def test_task_output_needs_success_and_its_code_only_an_end(
    database: GraphDatabase, nested: dict[str, int]
) -> None:
    programs = [
        ctx("task", "p", "output"),
        ctx("task", "p", "resultCode"),
        ctx("task", "q", "resultCode"),
        ctx("task", "a", "output", "x"),
    ]
    assert database.evaluate_all(programs, nested["q1"]) == [
        (10001, "ctx.task.p.output is not there"),
        -5,
        (10001, "ctx.task.q.resultCode is not there"),
        1,
    ]


# Templates ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${var.items}", [["var", "items", "w", []]]),
        ("${var.items[0].sku}", [["var", "items", "w", [0, "sku"]]]),
        ('${var.items["odd \\"key\\""]}', [["var", "items", "w", ['odd "key"']]]),
        ("${var.items[var.i].sku}", [["var", "items", "w", [["var", "i", "w", []], "sku"]]]),
        (
            "${var.items[var.pick[var.i]]}",
            [["var", "items", "w", [["var", "pick", "w", [["var", "i", "w", []]]]]]],
        ),
        ("${ctx.task.pack.output}", [["ctx", "task", ["pack", "output"]]]),
        ("$${var.i}", [["lit", "${var.i}"]]),
        ("$$${x", [["lit", "$${x"]]),
        (
            "a ${var.i}, $${b} ${ctx.node}",
            [
                ["lit", "a "],
                ["var", "i", "w", []],
                ["lit", ", ${b} "],
                ["ctx", "node", []],
                ["cat", 4],
            ],
        ),
    ],
)
def test_a_template_string_becomes_a_program(
    database: GraphDatabase, root: int, text: str, expected: Any
) -> None:
    for name in ("items", "i", "pick"):
        database.variable("w", name)
    assert database.compiled(text, "w") == expected


@pytest.mark.parametrize(
    ("text", "token"),
    [
        ("a ${nonsense} b", "${nonsense}"),
        ("${var.unknown}", "${var.unknown}"),
        ("${var.i + 1}", "${var.i + 1}"),
        ("${var.i", "${var.i"),
        ("${var.i[-1]}", "${var.i[-1]}"),
        ("${var.i[}", "${var.i[}"),
        ('${var.i["\\x"]}', '${var.i["\\x"]}'),
        ("${}", "${}"),
    ],
)
def test_what_is_no_placeholder_is_10002(
    database: GraphDatabase, root: int, text: str, token: str
) -> None:
    database.variable("w", "i")
    assert database.compiled(text, "w") == (10002, f"unsupported placeholder {token}")


def test_the_nearest_node_that_declares_a_name_owns_it(database: GraphDatabase) -> None:
    database.node("w", "SEQUENCE")
    database.node("loop", "REPEAT", "w")
    database.node("loop.body", "SEQUENCE", "loop", "BODY")
    a = database.node("a", "ACTION", "loop.body")
    database.variable("w", "x")
    database.variable("loop.body", "x", kind="loop")
    assert database.row("select wf.wf_owner_of_variable(%s, 'x')", a) == ("loop.body",)


def test_template_bindings_are_found_at_every_depth(database: GraphDatabase) -> None:
    template = '{"a": "${var.x}", "b/c~": [1, {"d": "$${"}, ["${"]], "${k}": "plain", "e": "$"}'
    assert database.template_bindings(template) == [
        ("/a", ["a"], "${var.x}"),
        ("/b~1c~0/1/d", ["b/c~", "1", "d"], "$${"),
        ("/b~1c~0/2/0", ["b/c~", "2", "0"], "${"),
    ]


def resolved(database: GraphDatabase, template: str, execution_id: int) -> Any:
    return database.answer("wf_resolve_placeholders", template=template, execution_id=execution_id)


def test_placeholders_are_filled_and_never_expanded_twice(
    database: GraphDatabase, root: int
) -> None:
    for name in ("n", "lure"):
        database.variable("w", name)
    database.give(root, n=Decimal("1.0"), lure="${var.n}")
    template = '{"a": ["${var.n}", "n=${var.n}"], "b": "${var.lure}", "c": "<${var.lure}>"}'
    assert resolved(database, template, root) == {
        "a": [Decimal("1.0"), "n=1.0"],
        "b": "${var.n}",
        "c": "<${var.n}>",
    }


def test_a_template_that_is_one_string_is_replaced_whole(
    database: GraphDatabase, root: int
) -> None:
    database.variable("w", "n")
    database.give(root, n=[1])
    assert resolved(database, '"${var.n}"', root) == [1]


def test_the_first_place_in_path_order_reports_its_error(
    database: GraphDatabase, root: int
) -> None:
    for name in ("x", "y"):
        database.variable("w", name)
    array = ["0"] * 11
    array[2], array[10] = '"${var.x}"', '"${var.y}"'
    assert resolved(database, f'{{"l": [{", ".join(array)}]}}', root) == (
        10001,
        "var.x is not there",
    )


def test_the_input_of_an_action_is_its_template_with_the_bindings(database: GraphDatabase) -> None:
    database.node("w", "SEQUENCE")
    database.node("a", "ACTION", "w")
    root = database.execution("w")
    action = database.execution("a", root)
    database.give(root, n=41)
    database.template(
        "a",
        {"fixed": {"x": None}, "list": [1, None]},
        {
            "/list/1": [["var", "n", "w", []], ["lit", 1], ["add"]],
            "/fixed/x": [["lit", "$${"]],
        },
    )

    def answer() -> Any:
        return database.answer("wf_build_input_json_for_action", execution_id=action)

    assert answer() == {"fixed": {"x": "$${"}, "list": [1, 42]}
    database.rows("delete from wf.scope_variable")
    assert answer() == (10001, "var.n is not there")


def test_a_placeholder_that_is_none_is_an_error_of_the_whole_template(
    database: GraphDatabase, root: int
) -> None:
    assert resolved(database, '{"a": "${env.HOME}"}', root) == (
        10002,
        "unsupported placeholder ${env.HOME}",
    )


# Both engines -------------------------------------------------------------------------------------

VARIABLES: dict[str, Any] = {
    "n": 7,
    "zero": 0,
    "dec": Decimal("7.0"),
    "big": MAX,
    "s": "a " + COMPOSED,
    "t": True,
    "nothing": None,
    "list": [1, Decimal("1.0"), "a", None, [2], {"k": 1}],
    "obj": {"k": {"odd key": [0, 1]}, "n": 7},
}


class _Reader:
    """What the local runner's evaluator reads in place of a node execution."""

    out: Any = VARIABLES["obj"]
    code: Any = 3
    event: Any = MISSING

    def variable(self, owner: str, name: str) -> Any:
        return VARIABLES.get(name, MISSING)

    def context(self, root: str, head: tuple[str, ...]) -> Any:
        return MISSING


def references(depth: int) -> st.SearchStrategy[list[Any]]:
    names = st.sampled_from([*VARIABLES, "gone"])
    step: st.SearchStrategy[Any] = st.sampled_from(["k", "odd key", "n", 0, 1, 5])
    if depth > 0:
        step = step | references(depth - 1)
    steps = st.lists(step, max_size=3)
    return st.one_of(
        st.builds(lambda name, steps: ["var", name, "w", steps], names, steps),
        st.builds(lambda steps: ["out", steps], steps),
        st.builds(lambda steps: ["event", steps], steps),
        st.just(["code"]),
    )


SAMPLES = st.sampled_from([*VALUES, 2, -3, MIN, Decimal("2.50"), "b", [1, "a"], {"k": None}])
LEAVES = st.one_of(
    SAMPLES.map(lambda value: [["lit", value]]),
    references(1).map(lambda reference: [reference]),
    references(1).map(lambda reference: [["defined", reference]]),
)
BINARY = st.sampled_from(
    ["eq", "ne", "lt", "le", "gt", "ge", "in", "add", "sub", "mul", "div", "mod"]
)


def _grow(inner: st.SearchStrategy[list[Any]]) -> st.SearchStrategy[list[Any]]:
    return st.one_of(
        st.builds(lambda a, b, op: [*a, *b, [op]], inner, inner, BINARY),
        st.builds(lambda a, op: [*a, [op]], inner, st.sampled_from(["not", "neg", "len", "bool"])),
        st.builds(
            lambda a, b, op: [*a, [op, len(b) + 1], *b, ["bool"]],
            inner,
            inner,
            st.sampled_from(["jf", "jt"]),
        ),
        st.builds(
            lambda a, b: [a, ["alt", len(b)], *b],
            references(1),
            inner,
        ),
        st.builds(lambda a, b: [*a, ["alt", len(b)], *b], inner, inner),
        st.lists(inner, max_size=3).map(
            lambda parts: [*(i for part in parts for i in part), ["arr", len(parts)]]
        ),
        st.lists(inner, min_size=1, max_size=3).map(
            lambda parts: [*(i for part in parts for i in part), ["cat", len(parts)]]
        ),
        st.lists(inner, max_size=3).map(
            lambda parts: [
                *(i for part in parts for i in part),
                ["obj", [f"k{n}" for n in range(len(parts))]],
            ]
        ),
    )


PROGRAMS = st.recursive(LEAVES, _grow, max_leaves=8)


@settings(
    max_examples=300,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(program=PROGRAMS)
def test_both_engines_evaluate_alike(
    differential: tuple[GraphDatabase, int], program: list[Any]
) -> None:
    database, root = differential
    local = evaluate(compile_program(program), _Reader())
    answer = database.evaluate(program, root, output=VARIABLES["obj"], code=3)
    if isinstance(local, EngineError):
        assert answer == (local.code, local.text)
    else:
        assert json_values.dumps(answer, sort_keys=True) == json_values.dumps(local, sort_keys=True)


@pytest.fixture
def differential(database: GraphDatabase, root: int) -> tuple[GraphDatabase, int]:
    database.give(root, **VARIABLES)
    return database, root
