"""What a text means: the AST, literals, names, and where things stand."""

from __future__ import annotations

from decimal import Decimal

import pytest

from dsl import nodes
from dsl.parser import parse_text


def workflow(body: str) -> nodes.Workflow:
    result = parse_text(f"workflow w {{ {body} }}", "t.wf")
    assert result.diagnostics == ()
    assert result.file is not None
    return result.file.workflows[0]


def value(text: str) -> nodes.Expr:
    (statement,) = workflow(f"set x = {text}").body.statements
    assert isinstance(statement, nodes.Set)
    return statement.value


def literal(text: str) -> nodes.Scalar:
    found = value(text)
    assert isinstance(found, nodes.LiteralExpr)
    return found.value


def shape(expr: nodes.Expr) -> str:
    """An expression in full parentheses."""
    match expr:
        case nodes.Binary():
            return f"({shape(expr.left)} {expr.operator} {shape(expr.right)})"
        case nodes.Unary():
            return f"({expr.operator} {shape(expr.operand)})"
        case nodes.Reference():
            return ".".join(s.key for s in expr.steps if isinstance(s, nodes.KeyStep))
        case nodes.LiteralExpr():
            return str(expr.value)
        case _:
            return type(expr).__name__


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("1", 1),
        ("1e3", 1000),
        ("-20", -20),
        ("-0", 0),
        ("1.0", Decimal("1.0")),
        ("1.50e1", Decimal("15.0")),
        ("-0.0", Decimal("0.0")),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("true", True),
        ("null", None),
        (r'"a\"\\\/\n\u00e9\ud83d\ude00"', 'a"\\/\né😀'),
        ('"$${x} $ $x"', "${x} $ $x"),
        ('""', ""),
    ],
)
def test_a_literal_has_its_value(text: str, meaning: object) -> None:
    found = literal(text)
    assert found == meaning
    assert type(found) is type(meaning)
    assert str(found) == str(meaning)


def test_a_block_string_loses_its_shared_indentation() -> None:
    assert literal('"""\n      one\n        two\n\n      three\n      """') == (
        "one\n  two\n\nthree\n"
    )


def test_a_block_string_takes_quotes_and_placeholders() -> None:
    found = value('"""say "${var.a["b c"]}" """')
    assert isinstance(found, nodes.TemplateString)
    first, reference, last = found.parts
    assert (first, last) == ('say "', '" ')
    assert isinstance(reference, nodes.Reference)
    assert [s.key for s in reference.steps if isinstance(s, nodes.KeyStep)] == ["a", "b c"]


def test_a_string_of_one_placeholder_is_a_template_of_one_reference() -> None:
    found = value('"${var.item[\\"odd key\\"]}"')
    assert isinstance(found, nodes.TemplateString)
    (part,) = found.parts
    assert isinstance(part, nodes.Reference)
    assert len(part.steps) == 2


def test_a_wrapped_reference_equals_a_bare_one() -> None:
    assert value("${var.a.b}") == value("var.a.b")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("var.a ?? var.b or var.c and not var.d", "(a ?? (b or (c and (not d))))"),
        ("not var.a == 1", "(not (a == 1))"),
        ("var.a + 2 * 3 - 4", "((a + (2 * 3)) - 4)"),
        ("var.a // 2 % 3", "((a // 2) % 3)"),
        ("-var.a * 2", "((- a) * 2)"),
        ("(var.a + 2) * 3", "((a + 2) * 3)"),
        ("var.a in [1] == null", None),
    ],
)
def test_operators_bind_as_the_language_says(text: str, expected: str | None) -> None:
    if expected is None:
        assert parse_text(f"workflow w {{ set x = {text} }}", "t").file is None
    else:
        assert shape(value(text)) == expected


KEYWORDS = (
    *("import", "type", "workflow", "description", "input", "output", "on", "where"),
    *("action", "set", "sequence", "on_error", "finally", "if", "else", "switch", "case"),
    *("default", "repeat", "as", "while", "foreach", "wait_event", "correlate", "collect"),
    *("fail", "sleep", "retry", "lease", "priority", "delay", "backoff", "factor"),
    *("jitter", "timeout", "limit", "join", "keep_going", "max", "keep", "parallel"),
    *("batch", "tolerate", "reuse", "var", "ctx", "out", "code", "event", "and", "or"),
    *("not", "in", "true", "false", "null", "start", "any"),
    *("max_per_worker", "max_concurrent", "rate_per_minute", "max_deliveries", "idempotent"),
)


@pytest.mark.parametrize("word", KEYWORDS)
def test_a_keyword_may_be_a_name(word: str) -> None:
    found = workflow(
        f"""
        input {{ {word} : int = 1 {word}_2 : {{ {word}: string, {word}?: int }} = {{ {word}: 2 }} }}
        var {word} : any
        output {{ {word} = var.{word}.{word} }}
        action a = b.c({word}: var.{word}, other: {{ {word}: 1 }}) {{ set {word} = out.{word} }}
        set {word} = "${{var.{word}}}"
        """
    )
    assert found.inputs[0].name.text == word
    assert found.variables[0].name.text == word
    assert found.outputs[0].name.text == word
    assert isinstance(found.body.statements[1], nodes.Set)
    assert found.body.statements[1].name.text == word


ROOTS = ("var", "ctx", "out", "code", "event")
VALUES = ("and", "or", "not", "in", "true", "false", "null")
HEADS = ("timeout", "limit", "join", "keep_going", "max", "keep", "parallel", "batch", "tolerate")
KEYS = [word for word in KEYWORDS if word not in (*ROOTS, *VALUES)]


@pytest.mark.parametrize("word", KEYS)
def test_a_keyword_may_be_a_key_and_a_name_of_a_loop(word: str) -> None:
    result = parse_text(
        f"""
        workflow {word} {{
          action {word} = a.b() if {word} {{}} if k: {word} {{}} while {word} {{}}
          switch {word} {{}}
          if {word}: true {{}}
          repeat {word}: 3 as {word} {{}}
          foreach {word}: {word}, {word} in [1] {{ collect {word} = 1 }}
          wait_event {word} on "e"
        }}""",
        "t",
    )
    assert result.diagnostics == ()


@pytest.mark.parametrize("word", [word for word in KEYS if word not in (*HEADS, "reuse")])
def test_a_keyword_may_be_the_key_of_a_body(word: str) -> None:
    assert workflow(f"sequence {word} {{}} parallel {word} {{ sleep 1s }}")


@pytest.mark.parametrize("word", ["var", "ctx", "out", "code", "event"])
def test_a_root_word_cannot_be_a_key(word: str) -> None:
    (found,) = parse_text(f"workflow w {{ action {word} = a.b() }}", "t").diagnostics
    assert (found.code, found.span.start) == ("WF011", 20)


def test_bare_keys_and_keyed_conditions_differ() -> None:
    bare, keyed = workflow("if reserve {} if reserve: var.x {}").body.statements
    assert isinstance(bare, nodes.If)
    assert bare.key is None
    assert bare.condition == nodes.BareKey(name="reserve", span=bare.span)
    assert isinstance(keyed, nodes.If)
    assert keyed.key is not None
    assert keyed.key.text == "reserve"


def test_else_if_is_an_unkeyed_if_alone_in_the_otherwise() -> None:
    (found,) = workflow("if var.a {} else if var.b {} else { set x = 1 }").body.statements
    assert isinstance(found, nodes.If)
    assert found.otherwise is not None
    (inner,) = found.otherwise.statements
    assert isinstance(inner, nodes.If)
    assert inner.else_if
    assert inner.otherwise is not None
    assert len(inner.otherwise.statements) == 1


def test_a_duration_is_whole_milliseconds() -> None:
    (found,) = workflow("sleep 1h30m500ms").body.statements
    assert isinstance(found, nodes.Sleep)
    assert found.duration.milliseconds == 5_400_500


def test_an_action_name_may_hold_hyphens() -> None:
    (found,) = workflow("action trim = sample.trim-fastq(a: 1)").body.statements
    assert isinstance(found, nodes.Action)
    assert found.action.text == "sample.trim-fastq"
    assert (found.action.span.start, found.action.span.end) == (27, 44)


def test_collects_stand_apart_from_statements() -> None:
    (found,) = workflow("foreach x, i in var.xs { collect y = var.x }").body.statements
    assert isinstance(found, nodes.Foreach)
    assert [c.name.text for c in found.body.collects] == ["y"]
    assert found.body.statements == ()


def test_layout_takes_no_part_in_equality() -> None:
    one = parse_text("workflow w { set x = 1 }", "a").file
    two = parse_text("# note\nworkflow w {\n\n  set x = 1\r\n}\n", "b").file
    assert one == two
