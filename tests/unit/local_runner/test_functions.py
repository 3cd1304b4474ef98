"""A program that comes back runs as a function, and gives what the loop gives."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local_runner.expressions import compile_program, evaluate, interpret
from local_runner.operators import BINARY, UNARY
from local_runner.values import MISSING, EngineError
from tests.unit.local_runner.test_expressions import Names

Instructions = list[list[Any]]

READER = Names(n=3, text="é", none=None, list=[1, [2]], object={"k": "v", "i": 1}, no=False)
VALUES = (0, 1, -7, 2**63 - 1, Decimal("1.0"), "", "a", None, True, False, [], [1], {}, {"a": 1})

_leaves = st.one_of(
    st.sampled_from(VALUES).map(lambda value: [["lit", value]]),
    st.sampled_from(["n", "text", "none", "list", "object", "no", "nowhere"]).flatmap(
        lambda name: st.sampled_from([[], ["k"], [0], [["var", "nowhere", "w", []]]]).map(
            lambda steps: [["var", name, "w", steps]]
        )
    ),
    st.just([["fault", 10002, "unsupported placeholder"]]),
    st.just([["defined", ["var", "nowhere", "w", []]]]),
)


def _flat(parts: list[Instructions]) -> Instructions:
    return [instruction for part in parts for instruction in part]


def _joined(children: st.SearchStrategy[Instructions]) -> st.SearchStrategy[Instructions]:
    pairs = st.tuples(children, children)
    return st.one_of(
        st.tuples(children, st.sampled_from(sorted(UNARY))).map(lambda x: [*x[0], [x[1]]]),
        st.tuples(pairs, st.sampled_from(sorted(BINARY))).map(
            lambda x: [*x[0][0], *x[0][1], [x[1]]]
        ),
        st.tuples(pairs, st.sampled_from(["jf", "jt"])).map(
            lambda x: [*x[0][0], [x[1], len(x[0][1]) + 1], *x[0][1], ["bool"]]
        ),
        pairs.map(lambda x: [*x[0], ["alt", len(x[1])], *x[1]]),
        st.lists(children, max_size=3).map(lambda x: [*_flat(x), ["arr", len(x)]]),
        st.lists(children, max_size=3).map(
            lambda x: [*_flat(x), ["obj", ["a", "b", "c"][: len(x)]]]
        ),
        st.lists(children, min_size=1, max_size=3).map(lambda x: [*_flat(x), ["cat", len(x)]]),
    )


@settings(max_examples=400, deadline=None)
@given(st.recursive(_leaves, _joined, max_leaves=12))
def test_the_function_gives_what_the_loop_gives(instructions: Instructions) -> None:
    program = compile_program(instructions)
    stepwise = interpret(program, READER)
    again = [evaluate(program, READER) for _ in range(3)]
    assert program.constant is not MISSING or program.run is not None
    assert [repr(value) for value in again] == [repr(stepwise)] * 3


def test_a_program_is_made_a_function_when_it_comes_back() -> None:
    program = compile_program([["var", "n", "w", []], ["lit", 1], ["add"]])
    assert (evaluate(program, READER), program.run) == (4, None)
    assert evaluate(program, READER) == 4
    assert program.run is not None


@pytest.mark.parametrize("count", [10, 50_000])
def test_however_deep_a_program_is_it_can_be_run_again(count: int) -> None:
    program = compile_program([["lit", 0], *([["var", "n", "w", []], ["add"]] * count)])
    assert [evaluate(program, READER) for _ in range(3)] == [3 * count] * 3
    assert (program.run is None) == (count > 10)


def test_a_chain_of_ors_to_the_right_can_be_run_again() -> None:
    program: Instructions = [["lit", True]]
    for _ in range(3_000):
        program = [["var", "no", "w", []], ["jt", len(program) + 1], *program, ["bool"]]
    made = compile_program(program)
    assert [evaluate(made, READER) for _ in range(3)] == [True] * 3


def test_what_a_function_builds_must_be_storable() -> None:
    deep: Any = 1
    for _ in range(100):
        deep = [deep]
    program = compile_program([["var", "deep", "w", []], ["arr", 1]])
    results = [evaluate(program, Names(deep=deep)) for _ in range(3)]
    assert [r.code if isinstance(r, EngineError) else None for r in results] == [10018] * 3


def test_each_evaluation_builds_a_value_of_its_own() -> None:
    program = compile_program([["var", "n", "w", []], ["obj", ["a"]]])
    first, second, third = (evaluate(program, READER) for _ in range(3))
    assert first == second == third == {"a": 3}
    assert first is not second
    assert second is not third
