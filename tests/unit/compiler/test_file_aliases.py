"""Aliases of a file mean what the workflow they are used in makes of the names in them."""

from __future__ import annotations

from compiler.pipeline import CheckResult, check_text

_FILE = "type T = { a : A }\ntype S = T\n"


def checked(*workflows: str) -> CheckResult:
    return check_text(_FILE + "".join(workflows), "w.wf")


def workflow(name: str, own: str = "") -> str:
    return f"workflow {name} {{\n{own}input {{ x : S }}\noutput {{ y = var.x.a }}\n}}\n"


def bases_of_a(result: CheckResult) -> list[str]:
    """Returns the base of `x.a` in each workflow."""
    found = []
    for model in result.models:
        (fields,) = [v.type.fields for v in model.all_variables() if v.name == "x"]
        assert fields is not None
        found.append(fields[0].type.base)
    return found


def errors(result: CheckResult) -> list[tuple[str, int]]:
    return [(d.code, d.span.start) for d in result.diagnostics if d.severity == "error"]


def test_each_workflow_sees_its_own_meaning() -> None:
    result = checked(workflow("v", "type A = int\n"), workflow("w", "type A = string\n"))
    assert bases_of_a(result) == ["int", "string"]
    assert errors(result) == []


def test_what_one_declares_is_unknown_in_the_next() -> None:
    result = checked(
        workflow("v", "type A = int\n"), workflow("w"), workflow("x", "type A = int\n")
    )
    assert bases_of_a(result) == ["int", "any", "int"]
    assert errors(result) == [("WF210", _FILE.index("A }"))]


def test_an_alias_that_only_one_workflow_makes_a_circle_is_found_there() -> None:
    result = checked(workflow("u"), workflow("v", "type A = S\n"))
    assert sorted(code for code, _start in errors(result)) == ["WF210", "WF211"]


def test_an_own_alias_hides_that_of_the_file() -> None:
    result = checked("type A = bool\n", workflow("v", "type A = int\n"), workflow("w"))
    assert bases_of_a(result) == ["int", "bool"]


def test_of_two_own_aliases_the_first_counts() -> None:
    result = checked(workflow("v", "type A = int\ntype A = string\n"))
    assert bases_of_a(result) == ["int"]
    assert [code for code, _start in errors(result)] == ["WF204"]


def test_what_is_wrong_with_an_own_alias_that_hides_one_is_said_in_each_workflow() -> None:
    text = "type A = bool\n" + workflow("v", "type A = no\n") + workflow("w", "type A = nope\n")
    assert [code for code, _start in errors(checked(text))] == ["WF210", "WF210"]


def test_what_a_second_meaning_breaks_is_said_where_it_is_used() -> None:
    result = checked(workflow("u", "type A = int\n"), workflow("v", "type A = S\n"))
    assert [code for code, _start in errors(result)] == ["WF211"]


def test_an_alias_of_the_file_that_fits_nowhere_is_found_in_the_first_workflow() -> None:
    text = "type B = { a : A, b : nope }\n"
    own = "type A = int\n"
    result = checked(text, workflow("v", own), workflow("w", own))
    assert [code for code, _start in errors(result)] == ["WF210"]
