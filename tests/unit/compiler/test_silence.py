"""Warnings silenced by `# wf: allow`, and comments that silence nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dsl.diagnostics import Diagnostic

Check = Callable[[str], tuple[Diagnostic, ...]]
AssertFound = Callable[[str, str, str], Diagnostic]


def test_warning_of_the_line_is_silenced(check: Check) -> None:
    assert (
        check("workflow w {\n  input { a : int } # wf: allow WF220 kept for later\n  fail -1\n}")
        == ()
    )


def test_several_codes_stand_in_one_comment(check: Check) -> None:
    text = "workflow w {\n  input { a : int } var b : int # wf: allow WF220, WF221\n  fail -1\n}"
    assert check(text) == ()


def test_warning_of_another_line_stays(check: Check) -> None:
    found = check("workflow w { # wf: allow WF220\n  input { a : int }\n  fail -1\n}")
    assert [d.code for d in found] == ["WF130", "WF220"]


def test_comment_inside_a_string_is_text(check: Check) -> None:
    found = check('workflow w { input { a : int } fail -1 "# wf: allow WF220" }')
    assert [d.code for d in found] == ["WF220"]


def test_comment_inside_a_block_string_is_text(check: Check) -> None:
    found = check('workflow w { input { a : int } fail -1 """x\n# wf: allow WF220 """ }')
    assert [d.code for d in found] == ["WF220"]


COMMENTS = {
    "nothing there": ("# wf: allow «WF220»", "there is no WF220 in this line to silence"),
    "unknown code": ("# wf: allow «WF999»", 'there is no code "WF999"'),
    "an error": ("# wf: allow «WF104»", "WF104 is an error and cannot be silenced"),
    "no code": ("«# wf: allow»", "this comment says nothing that wf understands"),
    "another word": ("«# wf: ignore WF220»", "this comment says nothing that wf understands"),
}


@pytest.mark.parametrize(("comment", "message"), COMMENTS.values(), ids=COMMENTS.keys())
def test_comment_that_silences_nothing(
    assert_found: AssertFound, comment: str, message: str
) -> None:
    found = assert_found(f"workflow w {{ {comment}\n  fail -1\n}}", "WF130", message)
    assert found.severity == "warning"


def test_error_is_not_silenced(check: Check) -> None:
    found = check("workflow w {\n  fail 1 # wf: allow WF116\n}")
    assert [d.code for d in found] == ["WF116", "WF130"]


def test_syntax_error_does_not_make_comments_idle(check: Check) -> None:
    found = check("workflow w {\n  input { a : int } # wf: allow WF220\n  fail\n}")
    assert "WF130" not in [d.code for d in found]
