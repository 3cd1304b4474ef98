"""GO, as sqlcmd reads it."""

from __future__ import annotations

import pytest

from emit_mssql.emitter import emit
from runtime_sql.go_batches import split_batches
from tests.unit.emit.small_specs import awkward


def texts(script: str) -> list[str]:
    return [batch.text for batch in split_batches(script)]


def test_batches_come_without_the_lines_between_them() -> None:
    assert texts("select 1;\nGO\nselect 2;\ngo\n") == ["select 1;", "select 2;"]


def test_blanks_and_a_comment_may_follow_go() -> None:
    assert texts("select 1;\n  GO \t-- next\nselect 2;") == ["select 1;", "select 2;"]


def test_a_carriage_return_may_follow_go() -> None:
    assert texts("select 1;\r\nGO\r\nselect 2;\r\n") == ["select 1;", "select 2;"]


@pytest.mark.parametrize(
    "script",
    [
        "select N'a\nGO\nb';",
        "select N'it''s\nGO\nb';",
        'select 1 as "a\nGO\nb";',
        "select 1 as [a\nGO\nb];",
        "/* a\nGO\n*/ select 1;",
        "/* a /* b */\nGO\n*/ select 1;",
        "select 1 as go\n, 2 as goes;",
        "-- it's\nselect 1;",
    ],
)
def test_what_only_looks_like_go_does_not_split(script: str) -> None:
    assert texts(script) == [script]


def test_a_quote_in_a_comment_opens_nothing() -> None:
    assert texts("-- it's\nselect 1;\nGO\nselect 2;") == ["-- it's\nselect 1;", "select 2;"]


def test_a_batch_knows_its_line() -> None:
    assert [batch.line for batch in split_batches("\n\nselect 1;\nGO\n\nselect 2;")] == [3, 6]


def test_blank_batches_are_left_out() -> None:
    assert texts("GO\n\nGO\nselect 1;\nGO\n") == ["select 1;"]


def test_an_emitted_script_splits_where_its_maker_put_go() -> None:
    script = emit(awkward())
    assert len(texts(script)) == script.count("\nGO\n")
