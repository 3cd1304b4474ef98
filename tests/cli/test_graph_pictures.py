"""Pictures of any workflow: labels are safe, sizes grow with the workflow, depth is no trouble."""

from __future__ import annotations

import re
from collections.abc import Callable
from xml.etree import ElementTree

import pytest

from compiler.picture.dot import render_dot
from compiler.picture.mermaid import render_mermaid
from compiler.picture.model import MAX_TEXT, Picture, draw
from compiler.picture.svg import render_svg
from compiler.picture.svg_layout import place
from compiler.picture.text_size import text_width, wrap
from compiler.picture.tree import render_tree
from dsl.parser import parse_text

RENDERERS: tuple[Callable[[Picture], str], ...] = (
    render_tree,
    render_dot,
    render_mermaid,
    render_svg,
)
NASTY = [
    'a \\"quoted\\" end',
    "end subgraph |pipes| (round) [square] {brace}",
    "<b>bold</b> & &amp; <script>alert(1)</script>",
    "]]> --> %% `code` #35; #quot;",
    "\\u001b[31mred \\u202e reversed",
    "日本語 🧪 déjà",
    "trailing backslash \\\\",
    "click n0 href javascript",
]


def picture(body: str) -> Picture:
    result = parse_text("workflow w {\n" + body + "\n}", "x.wf")
    assert result.file is not None, result.diagnostics
    return draw(result.file.workflows[0], result.source)


def described(text: str) -> Picture:
    return picture(
        f'action a = b.c() {{ description "{text}" }}\n'
        f'switch var.x["{text}"] {{ case "{text}" {{ fail -1 "{text}" }} }}'
    )


@pytest.mark.parametrize("text", NASTY)
def test_dot_strings_close_where_they_should(text: str) -> None:
    for line in render_dot(described(text)).split("\n"):
        rest = re.sub(r'"(?:[^"\\]|\\.)*"', "", line)
        assert '"' not in rest
        assert rest.isascii()
        assert "<" not in rest


@pytest.mark.parametrize("text", NASTY)
def test_mermaid_labels_hold_no_sign_that_mermaid_could_read(text: str) -> None:
    for label in re.findall(r'"([^"\n]*)"', render_mermaid(described(text))):
        plain = re.sub(r"#\d+;|<br/>", "", label)
        assert not set(plain) & set("\"'`<>&#;|{}\\%*!$?\x1b")


@pytest.mark.parametrize("text", NASTY)
def test_svg_shows_the_text_and_nothing_active(text: str) -> None:
    svg = render_svg(described(text))
    root = ElementTree.fromstring(svg)
    tags = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert tags <= {"svg", "title", "style", "rect", "text", "path", "circle"}
    assert not any(
        "href" in name or name.startswith("on") for e in root.iter() for name in e.attrib
    )


@pytest.mark.parametrize("render", RENDERERS)
def test_controls_never_reach_a_picture(render: Callable[[Picture], str]) -> None:
    text = render(described("\\u001b[31m\\u202e\\u2028"))
    assert not set(text) & set("\x1b\u202e\u2028")


def test_comments_in_a_condition_are_not_drawn() -> None:
    drawn = picture('if var.a # why "quote\n and "x # y" == var.b {}')
    assert drawn.boxes[1].headline == 'if var.a and "x # y" == var.b'


def test_long_text_is_cut() -> None:
    drawn = picture(f'set a = "{"x" * 1000}"')
    assert len(drawn.boxes[1].text) == MAX_TEXT
    assert drawn.boxes[1].text.endswith("…")


def test_else_if_is_a_lane_and_not_a_level() -> None:
    drawn = picture("if var.a {} else if var.b {} else if var.c {} else {}")
    assert [lane.label for lane in drawn.boxes[1].lanes] == [
        "then",
        "else if var.b",
        "else if var.c",
        "else",
    ]


@pytest.mark.parametrize("render", RENDERERS)
@pytest.mark.parametrize("wide", [False, True])
def test_pictures_grow_in_step_with_the_workflow(
    render: Callable[[Picture], str], wide: bool
) -> None:
    def size(count: int) -> int:
        nodes = " ".join(f"if var.a {{ action a{n:05} = b.c() }}" for n in range(count))
        return len(render(picture(f"parallel {{ {nodes} }}" if wide else nodes)))

    assert size(1000) < 11 * size(100)


@pytest.mark.parametrize("render", [render_dot, render_mermaid])
def test_a_box_is_written_once(render: Callable[[Picture], str]) -> None:
    text = render(picture("if var.a { action once = b.c() } action after = b.c()"))
    assert text.count("action once") == 1
    assert text.count("action after") == 1


def test_a_picture_that_mermaid_refuses_says_so_in_a_comment() -> None:
    text = render_mermaid(picture("set a = 1 " * 600))
    first, second, third, *_ = text.split("\n")
    assert re.fullmatch(r"%% \d+ characters and 601 arrows: Mermaid draws 50000 and 500\.", first)
    assert "maxTextSize and maxEdges" in second
    assert third == "flowchart TD"


def test_a_picture_that_mermaid_draws_has_no_comment() -> None:
    assert render_mermaid(picture("set a = 1 " * 20)).startswith("flowchart TD\n")


def test_svg_has_its_colours_where_no_style_sheet_is_read() -> None:
    root = ElementTree.fromstring(render_svg(picture("action a = b.c() while var.x { set y = 1 }")))
    shown = [e for e in root.iter() if e.tag.rpartition("}")[2] in ("rect", "text", "path")]
    assert shown
    assert all("fill" in e.attrib for e in shown)
    assert {e.get("font-size") for e in shown if e.text and e.text.strip()} <= {"13", "11"}


def test_the_only_style_sheet_is_for_the_dark() -> None:
    (style,) = re.findall(r"<style>(.*?)</style>", render_svg(picture("set a = 1")), re.DOTALL)
    assert style.strip().startswith("@media (prefers-color-scheme: dark) {")
    assert style.count("@media") == 1


@pytest.mark.parametrize("render", RENDERERS)
@pytest.mark.parametrize(
    "body",
    ["sequence { " * 511 + "}" * 511, "if var.a { set b = 1 } else " * 511 + "{}"],
    ids=["nested", "else_if"],
)
def test_the_deepest_workflow_can_be_drawn(render: Callable[[Picture], str], body: str) -> None:
    assert render(picture(body))


def test_a_fail_has_no_arrow_to_what_follows() -> None:
    text = render_dot(picture('fail -1 "x" set a = 1'))
    assert "n0 -> n1\n" in text
    assert "n1 ->" not in text


def test_an_if_without_else_leads_past_its_body() -> None:
    assert 'n1 -> n1_end [label="else"]' in render_dot(picture("if var.a { set b = 1 }"))


BODIES = [
    "action a = b.c() set b = 1",
    "switch var.a { case 1 { action b = c.d() set e = 1 } case 2 {} default { sleep 1s } }",
    "parallel { " + " ".join(f"action a{n} = b.c()" for n in range(40)) + " }",
    "sequence { set a = 1 } on_error { set b = 2 } finally { set c = 3 }",
    "foreach x in var.y { while var.a { if var.b { repeat 3 { set c = 1 } } } }",
]


@pytest.mark.parametrize("body", BODIES)
def test_boxes_stand_inside_the_box_around_them(body: str) -> None:
    drawn = picture(body)
    placed = place(drawn)
    for box, at in zip(drawn.boxes, placed, strict=True):
        for inner in (placed[number] for lane in box.lanes for number in lane.boxes):
            assert at.x < inner.x
            assert inner.x + inner.width < at.x + at.width
            assert at.y < inner.y
            assert inner.y + inner.height < at.y + at.height


@pytest.mark.parametrize("body", BODIES)
def test_boxes_of_one_box_do_not_overlap(body: str) -> None:
    drawn = picture(body)
    placed = place(drawn)
    for box in drawn.boxes:
        inner = [placed[number] for lane in box.lanes for number in lane.boxes]
        for n, a in enumerate(inner):
            for b in inner[n + 1 :]:
                apart_x = a.x + a.width <= b.x or b.x + b.width <= a.x
                apart_y = a.y + a.height <= b.y or b.y + b.height <= a.y
                assert apart_x or apart_y


@pytest.mark.parametrize("body", BODIES)
def test_text_fits_into_its_box(body: str) -> None:
    for at in place(picture(body)):
        assert all(text_width(line, 13, bold=True) <= at.width for line in at.title)
        assert all(text_width(line, 11) <= at.width for line in at.details)


def test_text_is_wrapped_at_blanks_and_cut_at_the_last_line() -> None:
    assert wrap("one two three four five", 9, 2) == ["one two", "three…"]
    assert wrap("ctx.task.reserve.output", 12, 3) == ["ctx.task.", "reserve.", "output"]
    assert wrap("", 9, 2) == []
