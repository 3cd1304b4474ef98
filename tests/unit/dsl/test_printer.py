"""The canonical form, rule by rule; each case shows a text and what becomes of it."""

from __future__ import annotations

from textwrap import dedent

import pytest

from dsl.parser import parse_text
from dsl.printer import comments_of, format_text


def formatted(text: str) -> str:
    result = format_text(dedent(text), "x.wf")
    assert result.text is not None, result.diagnostics
    return result.text


def inside(text: str) -> str:
    """What becomes of the items of a workflow, without its indentation."""
    lines = formatted("workflow w {\n" + dedent(text) + "\n}\n").split("\n")
    assert lines[0] == "workflow w {"
    assert lines[-2:] == ["}", ""]
    return "\n".join(line.removeprefix("  ") for line in lines[1:-2])


def is_canonical(text: str) -> bool:
    text = dedent(text).strip("\n")
    return inside(text) == text


# --- lines and blank lines


def test_items_stand_on_lines_of_their_own() -> None:
    assert inside("set a = 1 set bb = 2") == "set a  = 1\nset bb = 2"


def test_bodies_are_indented_by_two() -> None:
    text = "sequence { while var.a {\nset b = 1\nset c = 2 } }"
    expected = "sequence {\n  while var.a {\n    set b = 1\n    set c = 2\n  }\n}"
    assert inside(text) == expected


def test_one_blank_line_between_groups_stays() -> None:
    assert inside("set a = 1\n\n\n\nset b = 2") == "set a = 1\n\nset b = 2"


def test_blank_lines_at_the_ends_of_a_body_go() -> None:
    assert inside("\n\nsequence {\n\n set a = 1\n\n}\n\n") == "sequence {\n  set a = 1\n}"


def test_workflows_are_parted_by_a_blank_line() -> None:
    text = "workflow a {}\n# about b\nworkflow b {}\ntype T = int"
    assert formatted(text) == "workflow a {}\n\n# about b\nworkflow b {}\ntype T = int\n"


def test_a_text_ends_in_one_line_end() -> None:
    assert formatted("type T = int\n\n\n") == "type T = int\n"
    assert formatted("type T = int") == "type T = int\n"


def test_line_ends_and_a_byte_order_mark_become_plain() -> None:
    result = format_text(b"\xef\xbb\xbftype A = int\r\ntype B = int\r", "x.wf")
    assert result.text == "type A = int\ntype B = int\n"
    assert result.changed


def test_a_canonical_text_has_not_changed() -> None:
    assert not format_text(b"type A = int\n", "x.wf").changed


# --- bodies on one line


@pytest.mark.parametrize(
    "text",
    [
        "sequence { set a = 1 }",
        "action a = b.c() { set d = out.e }",
        "switch var.a {\n  case 1 {}\n  default { set b = 1 }\n}",
        'wait_event a on "b" {\n  timeout 3d { set c = 1 }\n}',
    ],
)
def test_a_body_of_one_item_stays_on_the_line_it_was_written_on(text: str) -> None:
    assert is_canonical(text)


def test_a_body_written_over_several_lines_stays_so() -> None:
    assert is_canonical("sequence {\n  set a = 1\n}")


def test_a_body_with_a_body_in_it_takes_several_lines() -> None:
    assert inside("sequence { sequence { set a = 1 } }") == (
        "sequence {\n  sequence { set a = 1 }\n}"
    )


def test_bodies_of_an_if_with_an_else_take_several_lines() -> None:
    text = "if var.a { set b = 1 } else if var.c { set b = 2 } else { set b = 3 }"
    expected = "if var.a {\n  set b = 1\n} else if var.c {\n  set b = 2\n} else {\n  set b = 3\n}"
    assert inside(text) == expected


def test_declarations_on_one_line_are_parted_by_commas() -> None:
    assert inside("input { a:int b:string='' }".replace("''", '""')) == (
        'input { a : int, b : string = "" }'
    )


def test_declarations_on_several_lines_have_no_commas() -> None:
    assert inside("output {\na = 1, bb = 2,\n}") == "output {\n  a  = 1\n  bb = 2\n}"


# --- lists


def test_a_short_list_stays_on_one_line_without_a_last_comma() -> None:
    assert inside("set a = [1,2 , {b:3,},]") == "set a = [1, 2, { b: 3 }]"


def test_a_list_with_a_line_end_after_its_bracket_has_an_element_a_line() -> None:
    text = "action a = b.c(\n  d: 1, e: 2)"
    assert inside(text) == "action a = b.c(\n  d: 1,\n  e: 2,\n)"


def test_a_list_that_goes_past_column_100_has_an_element_a_line() -> None:
    long = ", ".join(f'argument_{n}: "{n * 11111}"' for n in range(4))
    fits = f"action a = b.c({long})"
    assert len("  " + fits) == 96
    assert is_canonical(fits)
    assert inside(f"action longer = b.c({long})").count("\n") == 5


def test_columns_are_counted_to_100_and_not_further() -> None:
    at_limit = f'action a = b.c(x: "{"y" * 77}")'
    assert len("  " + at_limit) == 100
    assert is_canonical(at_limit)
    assert "\n" in inside(at_limit.replace("y", "yy", 1))


def test_the_opening_of_a_body_counts_as_part_of_the_line_before() -> None:
    text = f'action a = b.c(x: "{"y" * 75}") ' + "{\n  lease 1m\n}"
    assert inside(text).startswith("action a = b.c(x: ")
    longer = f'action a = b.c(x: "{"y" * 76}") ' + "{\n  lease 1m\n}"
    assert inside(longer).startswith("action a = b.c(\n  x: ")


def test_only_the_lists_that_must_are_broken() -> None:
    text = "set a = {\n b: [1, 2], c: { d: 3 } }"
    assert inside(text) == "set a = {\n  b: [1, 2],\n  c: { d: 3 },\n}"


# --- expressions


def test_references_lose_the_signs_they_do_not_need() -> None:
    assert inside('set a = ${ var . b [ ${var.i} ] ["odd key"] }') == (
        'set a = var.b[var.i]["odd key"]'
    )


def test_a_string_that_is_one_placeholder_stays_a_string() -> None:
    assert inside('set a = "${ var . b }"') == 'set a = "${var.b}"'


def test_text_around_placeholders_is_untouched() -> None:
    assert is_canonical(r'set a = " ${var.b}  $${c} \u00e9 ${var.d[\"odd  key\"]}# "')


def test_operators_stand_between_blanks() -> None:
    text = "set a = not(var.b*-(2)+1)==- -3//var.c%2"
    assert inside(text) == "set a = not (var.b * -(2) + 1) == - -3 // var.c % 2"


def test_types_are_written_closely() -> None:
    assert inside("var a:list < list<int ? > > ? =null") == "var a : list<list<int?>>? = null"


def test_two_question_marks_of_a_type_do_not_become_an_operator() -> None:
    assert is_canonical("var a : int? ?")


def test_a_long_condition_is_broken_before_its_loosest_operators() -> None:
    parts = " or ".join(f"var.a_long_name_{n} and var.b{n}" for n in range(4))
    assert inside(f"if {parts} " + "{\n set a = 1 }") == (
        "if var.a_long_name_0 and var.b0\n"
        "    or var.a_long_name_1 and var.b1\n"
        "    or var.a_long_name_2 and var.b2\n"
        "    or var.a_long_name_3 and var.b3 {\n"
        "  set a = 1\n"
        "}"
    )


def test_a_broken_condition_that_fits_is_joined() -> None:
    assert inside("while var.a\n  and var.b {}") == "while var.a and var.b {}"


# --- block strings


def test_a_block_string_moves_with_its_item() -> None:
    text = 'set a = """\n            one\n              two\n\n            """'
    assert inside(text) == 'set a = """\n  one\n    two\n\n  """'


def test_a_block_string_keeps_its_value() -> None:
    text = 'workflow w {\nset a = """\n\t\t x\n\t\t\n\t\t   """\n}'
    result = formatted(text)
    assert parse_text(result, "x.wf").file == parse_text(text, "x.wf").file


def test_a_block_string_that_starts_at_once_is_untouched() -> None:
    text = 'workflow w {\n  set a = """one\n two"""\n}\n'
    assert formatted(text) == text


# --- alignment


def test_the_signs_of_like_lines_line_up() -> None:
    text = """\
        input {
          a      : int
          longer : list<string> = []
          b      : bool         = true
        }
        var n     : int    = 0
        var other : string = "x"

        action book = c.b()
        action it   = d.e()
    """
    assert is_canonical(text)


def test_a_blank_line_or_a_comment_ends_a_run() -> None:
    assert is_canonical("set a = 1\n\nset longer = 2\n# note\nset other_name = 3")


def test_an_item_of_several_lines_is_not_lined_up() -> None:
    assert is_canonical("set a = 1\nset longer = [\n  2,\n]\nset b = 3")


def test_lines_that_would_grow_past_column_100_are_not_lined_up() -> None:
    assert is_canonical(f'set a_name = "{"x" * 83}"\nset a_longer_name = 1')


def test_comments_of_adjacent_lines_line_up() -> None:
    assert inside("set a = 1 # one\nset b = [1, 2]   # two\nset c = 3") == (
        "set a = 1       # one\nset b = [1, 2]  # two\nset c = 3"
    )


# --- comments


def test_comments_keep_their_places_between_items() -> None:
    text = """\
        # first
        set a = 1  # beside

        # before b
        #   indented
        set b = 2
        # last
    """
    assert is_canonical(text)


def test_a_comment_in_a_list_makes_it_take_several_lines() -> None:
    assert inside("set a = [1, # one\n 2\n # end\n]") == (
        "set a = [\n  1,  # one\n  2,\n  # end\n]"
    )


def test_a_comment_after_an_opening_brace_stays_beside_it() -> None:
    assert is_canonical("sequence {  # why\n  set a = 1\n}")


def test_a_comment_in_an_empty_body_stays_inside() -> None:
    assert is_canonical("sequence {\n  # nothing yet\n}")


def test_a_comment_before_else_stays_before_it() -> None:
    text = "if var.a {\n  set b = 1\n}  # why\nelse {\n  set b = 2\n}"
    assert is_canonical(text)


def test_a_comment_inside_an_expression_ends_its_line() -> None:
    assert inside("set a = 1 + # why\n 2") == "set a = 1 +  # why\n    2"


def test_a_comment_loses_only_the_blanks_at_its_end() -> None:
    assert formatted("#!x  #  y \t\ntype T = int") == "#!x  #  y\ntype T = int\n"


def test_comments_of_a_text_come_in_order() -> None:
    text = '# a\ntype T = "# no" # b\n# c'
    assert comments_of(text) == ("# a", "# b", "# c")


def test_a_line_that_ends_in_a_directive_is_not_broken() -> None:
    parts = ", ".join(f'argument_{n}: "{n * 11111}"' for n in range(5))
    assert is_canonical(f"action a = b.c({parts})  # wf: allow WF225")
    assert not is_canonical(f"action a = b.c({parts})  # about wf")
    condition = " or ".join(f"var.a_rather_long_name_{n}" for n in range(5))
    assert is_canonical(f"set a = {condition}  # wf: allow WF225")


# --- faults


def test_a_text_with_an_error_has_no_canonical_form() -> None:
    result = format_text("workflow w { set = }", "x.wf")
    assert result.text is None
    assert [(d.code, d.span.start) for d in result.diagnostics] == [("WF001", 17)]


def test_a_file_that_cannot_be_read_is_a_finding() -> None:
    assert [d.code for d in format_text(b"\xff", "x.wf").diagnostics] == ["WF004"]
