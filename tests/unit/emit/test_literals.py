"""String literals: whatever the text, the database reads the same text."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import sqlglot
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sqlglot import exp

import emit_mssql.literals as mssql
import emit_pg.literals as pg
from compiler import json_values
from compiler.emit.base import INVISIBLE
from compiler.emit.writer import to_sql
from tests.unit.emit.read_back import value
from tests.unit.emit.small_specs import AWKWARD_TEXTS, LONG_TEXTS
from wfsql.embedded import EmbeddedServer

TEXTS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00"), max_size=60)
TRICKY = st.lists(
    st.sampled_from(
        ["$", "(", "'", "\\", "\n", "\r", "GO", "--", ";", "😀", "\u2028", " ", "é", '"']
    )
).map("".join)
ANY_TEXT = st.one_of(TEXTS, TRICKY, st.sampled_from(AWKWARD_TEXTS + LONG_TEXTS))

# How long an example takes says something about the machine only.
no_deadline = settings(deadline=None)


def _read(sql: str, dialect: str) -> object:
    tree = sqlglot.parse_one(f"select {sql}", read=dialect)
    assert isinstance(tree, exp.Select)
    return value(tree.expressions[0])


@no_deadline
@given(ANY_TEXT)
def test_a_text_reads_back_equal_in_postgresql(text: str) -> None:
    assert _read(to_sql(pg.text(text), "postgres"), "postgres") == text


@no_deadline
@given(ANY_TEXT)
def test_a_text_reads_back_equal_in_tsql(text: str) -> None:
    assert _read(to_sql(mssql.text(text), "tsql"), "tsql") == text


@no_deadline
@given(ANY_TEXT)
def test_a_json_string_reads_back_equal_in_postgresql(text: str) -> None:
    document = _read(to_sql(pg.json(json_values.dumps({text[:256]: text})), "postgres"), "postgres")
    assert json_values.loads(str(document)) == {text[:256]: text}


@no_deadline
@given(ANY_TEXT)
def test_a_json_string_reads_back_equal_in_tsql(text: str) -> None:
    document = _read(to_sql(mssql.json(json_values.dumps({text[:256]: text})), "tsql"), "tsql")
    assert json_values.loads(str(document)) == {text[:256]: text}


@no_deadline
@given(ANY_TEXT)
@example("a\u2028b")
def test_no_literal_holds_a_character_that_cannot_be_seen(text: str) -> None:
    document = json_values.dumps([text])
    literals = [pg.text(text), pg.json(document)], [mssql.text(text), mssql.json(document)]
    for dialect, trees in zip(("postgres", "tsql"), literals, strict=True):
        for tree in trees:
            assert INVISIBLE.search(to_sql(tree, dialect)) is None


@no_deadline
@given(ANY_TEXT)
@example("$(a)")
def test_no_tsql_literal_holds_a_sqlcmd_variable(text: str) -> None:
    assert "$(" not in to_sql(mssql.text(text), "tsql")


@no_deadline
@given(ANY_TEXT)
@example("é😀")
def test_tsql_json_is_ascii(text: str) -> None:
    assert to_sql(mssql.json(json_values.dumps(text)), "tsql").isascii()


@pytest.mark.parametrize("text", ["x" * 9_000, "😀" * 4_500, "$(" * 4_000, "'" * 9_000])
def test_a_long_tsql_text_is_a_sum_of_short_pieces_of_nvarchar_max(text: str) -> None:
    sql = to_sql(mssql.text(text), "tsql")
    pieces = [p.replace("''", "'") for p in re.findall(r"N'((?:[^']|'')*)'", sql)]
    assert sql.startswith("cast(N'' as nvarchar(max)) + N'")
    assert max(len(p.encode("utf-16-le")) // 2 for p in pieces) <= 4_000
    assert "".join(pieces) == text


def test_a_tsql_text_of_4000_characters_is_one_literal() -> None:
    assert to_sql(mssql.text("x" * 4_000), "tsql") == "N'" + "x" * 4_000 + "'"


def test_a_text_of_thousands_of_pieces_is_written_and_read_without_recursion() -> None:
    text = "line\n" * 1_500
    assert _read(to_sql(mssql.text(text), "tsql"), "tsql") == text


@settings(max_examples=15, deadline=None)
@given(st.lists(ANY_TEXT, min_size=1, max_size=20))
@example(list(AWKWARD_TEXTS + LONG_TEXTS))
def test_psql_reads_every_text_and_json_string_equal(
    pg_server: EmbeddedServer, psql: Path, texts: list[str]
) -> None:
    rows = [
        f"({to_sql(pg.text(t), 'postgres')}, {to_sql(pg.json(json_values.dumps([t])), 'postgres')})"
        for t in texts
    ]
    script = (
        "set client_encoding = 'UTF8';\n"
        "select encode(convert_to(r.t, 'UTF8'), 'hex') || ' ' ||\n"
        "       encode(convert_to(cast(r.j as jsonb) ->> 0, 'UTF8'), 'hex')\n"
        "from (values\n" + ",\n".join(rows) + "\n) as r(t, j);\n"
    )
    done = subprocess.run(
        [str(psql), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", pg_server.url()],
        input=script.encode(),
        capture_output=True,
        check=True,
    )
    expected = [f"{t.encode().hex()} {t.encode().hex()}" for t in texts]
    assert done.stdout.decode().splitlines() == expected
