"""Programs, references and templates on SQL Server: cases of tests/runtime_sql, and its traps."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from local_runner.expressions import compile_program, evaluate
from tests.mssql.conftest import MssqlGraphDatabase
from tests.runtime_sql.test_expressions import *  # noqa: F403
from tests.runtime_sql.test_expressions import EMOJI, lit, var

LONG = 9_000  # beyond what JSON_VALUE and a plain nvarchar hold


def test_a_program_of_ten_thousand_operands_is_evaluated(
    database: MssqlGraphDatabase, root: int
) -> None:
    """A tenth of it here: a program this long is unpacked into a table."""
    program = [lit(0), *([lit(1), ["add"]] * 1_000)]
    assert database.evaluate(program, root) == 1_000


@pytest.mark.parametrize("length", [3_999, 4_001, LONG])
def test_a_long_string_keeps_every_character(
    database: MssqlGraphDatabase, root: int, length: int
) -> None:
    text = "é" * (length - 2) + 'x"'
    database.give(root, text=text, inside={"deep": [text]})
    assert database.evaluate([var("text")], root) == text
    assert database.evaluate([var("inside", "deep", 0), ["len"]], root) == length
    assert database.evaluate([lit("<"), var("text"), ["cat", 2]], root) == "<" + text
    assert database.evaluate([var("text"), lit(text), ["eq"]], root) is True
    assert database.evaluate([var("text"), lit(text + "y"), ["lt"]], root) is True


def test_blanks_at_the_end_of_keys_and_values_count(
    database: MssqlGraphDatabase, root: int
) -> None:
    database.give(root, o={"a": 1, "a ": 2, "A": 3}, s="x ")
    keys = ("a", "a ", "A", "a  ")
    assert database.evaluate_all([[var("o", key)] for key in keys], root) == [
        1,
        2,
        3,
        (10001, 'var.o["a  "] is not there'),
    ]
    programs = [
        [var("s"), lit("x"), ["eq"]],
        [var("s"), lit(["x", "X "]), ["in"]],
        [var("s"), ["len"]],
        [lit("x"), var("s"), ["lt"]],
        [lit("x\t"), lit("x"), ["lt"]],
    ]
    assert database.evaluate_all(programs, root) == [False, False, 2, True, False]


NUMBERS_AS_WRITTEN = [
    # spelled, normal form, equal to
    ("1e3", "1000", "1000.0"),
    ("1.50e1", "15.0", "15"),
    ("1.5E-3", "0.0015", "0.00150"),
    ("12e-1", "1.2", "1.20"),
    ("0e5", "0", "0.0"),
    ("-0", "0", "0"),
    ("-0.0", "0.0", "0"),
    ("0.5e1", "5", "5.0"),
    ("-1.20e+2", "-120", "-1.2e2"),
    ("123456789012345678901234567890.10", "123456789012345678901234567890.10",
     "123456789012345678901234567890.1"),
]  # fmt: skip


@pytest.mark.parametrize(("spelled", "normal", "equal"), NUMBERS_AS_WRITTEN)
def test_a_number_counts_by_its_normal_form(
    database: MssqlGraphDatabase, root: int, spelled: str, normal: str, equal: str
) -> None:
    assert database.row("select wf.wf_number_text(%s)", spelled) == (normal,)
    assert database.row("select wf.wf_scalars_equal(%s, %s)", spelled, equal) == (True,)
    assert database.row("select wf.wf_scalar_text(%s)", spelled) == (normal,)


def test_numbers_of_any_length_are_ordered_exactly(database: MssqlGraphDatabase) -> None:
    ascending = [
        "-1e30", "-12345678901234567890.5", "-10", "-9.51", "-9.5", "-0.1", "0", "1e-30", "0.09",
        "0.1", "9.5", "9.51", "10", "99", "100", "12345678901234567890", "12345678901234567890.1",
        "1e30",
    ]  # fmt: skip
    for at, left in enumerate(ascending):
        row = database.row(
            "select string_agg(cast(wf.wf_number_order(%s, e.value) as varchar(2)), ',')"
            " within group (order by cast(e.[key] as int)) from openjson(%s) as e",
            left,
            f"[{', '.join(ascending)}]",
        )
        assert row[0].split(",") == [
            "1" if at > other else "-1" if at < other else "0" for other in range(len(ascending))
        ]


def test_texts_are_ordered_by_code_point(database: MssqlGraphDatabase) -> None:
    ascending = ["", "\t", " ", "A", "Z", "a", "a\t", "a ", "aa", "\ud7ff", "\ue000", "\uffff",
                 EMOJI, "\U0010ffff"]  # fmt: skip
    for at, left in enumerate(ascending):
        orders = [
            database.row("select wf.wf_text_order(%s, %s)", left, right)[0] for right in ascending
        ]
        assert orders == [(at > other) - (at < other) for other in range(len(ascending))]


@pytest.mark.parametrize(
    "text", ["", " ", EMOJI, "a" + EMOJI * 3 + "b ", "x" * 5_000 + EMOJI + "\ue000" * 3_000]
)
def test_a_length_is_in_code_points(database: MssqlGraphDatabase, text: str) -> None:
    assert database.row("select wf.wf_text_length(%s)", text) == (len(text),)


def test_what_an_expression_builds_may_be_a_hundred_deep_and_no_deeper(
    database: MssqlGraphDatabase, root: int
) -> None:
    filler = "x" * 300
    deepest: Any = [filler]
    for _ in range(98):
        deepest = [deepest]
    database.give(root, v=deepest)
    assert database.evaluate([var("v"), ["arr", 1]], root) == [deepest]
    assert database.evaluate([var("v"), ["arr", 1], ["arr", 1]], root) == (
        10018,
        "a value nested deeper than 100 levels cannot be stored",
    )


def test_control_characters_and_slashes_are_written_as_jsonb_writes_them(
    database: MssqlGraphDatabase,
) -> None:
    assert database.row("select wf.wf_json_quote(%s)", 'a/b\\"\b\t\n\f\r\x01\x1f') == (
        '"a/b\\\\\\"\\b\\t\\n\\f\\r\\u0001\\u001f"',
    )


MIXED = [
    [lit(Decimal("1.0")), lit([2, 1]), ["in"]],
    [var("gone"), ["alt", 1], lit({"a": [None]}), lit("x"), ["arr", 2]],
    [lit(1), ["jf", 4], lit("a"), lit("b"), ["lt"], ["bool"], ["not"]],
    [lit(0), ["jt", 2], lit(None), ["bool"], lit("é"), ["obj", ["b", 'odd "key"']]],
    [lit(7), lit(-2), ["mod"], lit(-7), lit(2), ["div"], ["mul"], ["neg"]],
    [["arr", 0], lit("s"), ["cat", 1], ["arr", 2]],
]


class _Nothing:
    out: Any = None
    code: Any = None
    event: Any = None

    def variable(self, owner: str, name: str) -> Any:
        from local_runner.values import MISSING

        return MISSING

    context = variable


def test_the_stack_is_kept_as_in_the_local_runner(database: MssqlGraphDatabase, root: int) -> None:
    assert database.evaluate_all(MIXED, root) == [
        evaluate(compile_program(program), _Nothing()) for program in MIXED
    ]


@pytest.mark.parametrize("pointer", ["", "/a", "/a/1/b~1c~0", "/a/0", "/new"])
def test_a_value_is_put_at_its_place_and_the_rest_stays(
    database: MssqlGraphDatabase, pointer: str
) -> None:
    template = {"a": [1, {"b/c~": "x", "k": [{"é": None}]}], "z": Decimal("1.50")}
    expected: Any = {
        "": {"v": 1},
        "/a": {**template, "a": {"v": 1}},
        "/a/1/b~1c~0": {
            **template, "a": [1, {"b/c~": {"v": 1}, "k": [{"é": None}]}]},
        "/a/0": {**template, "a": [{"v": 1}, template["a"][1]]},  # type: ignore[index]
        "/new": {**template, "new": {"v": 1}},
    }[pointer]  # fmt: skip
    from compiler import json_values

    (value,) = database.row(
        "create table #fill (pointer nvarchar(max) not null, value_json nvarchar(max) not null);"
        " insert into #fill values (%s, '{\"v\":1}'); declare @v nvarchar(max);"
        " exec wf.wf_fill_template @template = %s, @value_json = @v output;"
        " drop table #fill; select @v",
        pointer,
        json_values.dumps(template),
    )
    assert json_values.loads(value) == expected
