"""Walks give pre-order with parents, and do not recurse."""

from __future__ import annotations

from dsl import nodes
from dsl.parser import parse_text
from dsl.source import Span
from dsl.walk import fold, references, walk_expr, walk_expressions, walk_statements

TEXT = """workflow w {
  sequence a { set x = 1 } on_error { set y = 2 } finally { set z = 3 }
  if k { set t = 1 } else { sequence b { fail -1 } }
  switch k { case 1 { set c = 1 } default { set d = 1 } }
}"""


def parsed(text: str) -> nodes.Workflow:
    file = parse_text(text, "t").file
    assert file is not None
    return file.workflows[0]


def test_statements_come_in_the_order_of_the_source_with_their_roles() -> None:
    found = [(type(v.statement).__name__, v.role, v.depth) for v in walk_statements(parsed(TEXT))]
    assert found == [
        ("Sequence", "body", 0),
        ("Set", "body", 1),
        ("Set", "on_error", 1),
        ("Set", "finally", 1),
        ("If", "body", 0),
        ("Set", "then", 1),
        ("Sequence", "else", 1),
        ("Fail", "body", 2),
        ("Switch", "body", 0),
        ("Set", "case_0", 1),
        ("Set", "default", 1),
    ]


def test_a_visit_knows_its_ancestors() -> None:
    fail = next(v for v in walk_statements(parsed(TEXT)) if isinstance(v.statement, nodes.Fail))
    assert [type(v.statement).__name__ for v in fail.ancestors()] == ["Sequence", "If"]


def test_expressions_come_with_parent_and_role() -> None:
    statement = parsed(
        'workflow w { set x = [1, "${var.a}"] ?? len(var.b[var.i]) }'
    ).body.statements[0]
    assert isinstance(statement, nodes.Set)
    found = [(type(v.expr).__name__, v.role) for v in walk_expressions(statement.value)]
    assert found == [
        ("Binary", "root"),
        ("ListExpr", "left"),
        ("LiteralExpr", "item"),
        ("TemplateString", "item"),
        ("Reference", "part"),
        ("Call", "right"),
        ("Reference", "argument"),
        ("Reference", "index"),
    ]
    assert len(list(references(statement.value))) == 3


def deep(levels: int) -> nodes.Expr:
    expr: nodes.Expr = nodes.LiteralExpr(value=1, span=Span(0, 0))
    for _ in range(levels):
        expr = nodes.Unary(operator="-", operand=expr, span=Span(0, 0), operator_span=Span(0, 0))
    return expr


def test_a_deep_tree_is_walked_and_folded_without_recursion() -> None:
    assert sum(1 for _ in walk_expr(deep(50_000))) == 50_001
    assert fold(deep(50_000), lambda _, below: 1 + sum(below)) == 50_001


def test_fold_gives_the_values_of_the_children_in_order() -> None:
    statement = parsed("workflow w { set x = [1, 2 + 3] }").body.statements[0]
    assert isinstance(statement, nodes.Set)

    def show(expr: nodes.Expr, below: list[str]) -> str:
        return str(expr.value) if isinstance(expr, nodes.LiteralExpr) else f"({' '.join(below)})"

    assert fold(statement.value, show) == "(1 (2 3))"
