"""The tables of both dialects have the same names, columns and indexes, in the same order."""

from __future__ import annotations

import re

import pytest

from compiler.emit import plan
from compiler.emit.plan import Table
from runtime_sql.scripts import Dialect, read_script

FILES = ("01_definition_tables.sql", "02_runtime_tables.sql", "wf_test_bed_schema.sql")
# SQL Server has no index over an expression, so this twin needs a computed column.
ONLY_MSSQL = {"workflow_def": {"name_folded"}}
# A constraint would answer before a trigger can, and with an error that is not ours.
NOT_UNIQUE = {"ix_workflow_def_name_folded": "uq_workflow_def_name_folded"}


def _tables(dialect: Dialect, name: str) -> dict[str, list[str]]:
    script = re.sub(r"--[^\n]*", "", read_script(dialect, name))
    return {
        match[1]: re.findall(r"^    (?!constraint\b)([a-z_]+) ", match[2], re.M)
        for match in re.finditer(r"^create table wf\.(\w+) \(\n(.*?)^\)", script, re.M | re.S)
    }


# What a column without a value gets is the same in both; T-SQL names its defaults and writes its
# own literals. Clocks and logins are each server's own.
_CLOCKS = re.compile(r"clock_timestamp|sysutcdatetime|session_user|original_login", re.I)


def _rules(dialect: Dialect, name: str) -> dict[tuple[str, str], tuple[bool, str | None]]:
    """Whether each column may be null, and its default in a spelling that both share."""
    script = re.sub(r"--[^\n]*", "", read_script(dialect, name))
    rules = {}
    for table in re.finditer(r"^create table wf\.(\w+) \(\n(.*?)^\)", script, re.M | re.S):
        columns = re.finditer(
            r"^    (?!constraint\b)([a-z_]+) (.*?)(?=^    [a-z]|\Z)", table[2], re.M | re.S
        )
        for column in columns:
            text = " ".join(column[2].split())
            default = re.search(r"\bdefault ([^,]+)", text)
            rules[table[1], column[1]] = (
                "not null" not in text and "identity" not in text,
                None if default is None else _literal(default[1]),
            )
    return rules


def _literal(text: str) -> str:
    text = text.strip().removeprefix("N")
    if _CLOCKS.search(text):
        return "the server's own"
    return {"false": "0", "true": "1"}.get(text, text)


@pytest.mark.parametrize("name", FILES)
def test_columns_have_the_same_defaults_and_the_same_need_of_a_value(name: str) -> None:
    pg, mssql = _rules("pg", name), _rules("mssql", name)
    different = {
        f"{table}.{column}": (pg[table, column], mssql[table, column])
        for table, column in pg
        if pg[table, column] != mssql[table, column]
    }
    assert different == {}


def _named(dialect: Dialect, name: str) -> set[str]:
    """Indexes, sequences, and keys of every kind; checks of JSON exist in T-SQL only."""
    script = re.sub(r"--[^\n]*", "", read_script(dialect, name))
    return set(
        re.findall(
            r"(?:create (?:unique )?index|constraint|create sequence) ((?!df_)[\w.]+)", script
        )
    )


@pytest.mark.parametrize("name", FILES)
def test_both_dialects_have_the_same_tables(name: str) -> None:
    assert list(_tables("mssql", name)) == list(_tables("pg", name))


@pytest.mark.parametrize("name", FILES)
def test_tables_have_the_same_columns_in_the_same_order(name: str) -> None:
    mssql = {
        table: [column for column in columns if column not in ONLY_MSSQL.get(table, ())]
        for table, columns in _tables("mssql", name).items()
    }
    assert mssql == _tables("pg", name)


@pytest.mark.parametrize("name", FILES)
def test_keys_checks_and_indexes_have_the_same_names(name: str) -> None:
    json_checks = re.compile(
        r"ck_\w+_(json|path|labels|source_map|case_value|event_types|capabilities|roles)"
    )
    mssql = {
        NOT_UNIQUE.get(found, found)
        for found in _named("mssql", name)
        if not json_checks.fullmatch(found)
    }
    assert mssql == _named("pg", name)


def _planned() -> list[Table]:
    return [value for value in vars(plan).values() if isinstance(value, Table)]


@pytest.mark.parametrize("table", _planned(), ids=lambda table: table.name)
def test_the_emitters_name_columns_that_exist(table: Table) -> None:
    columns = _tables("pg", FILES[0])[table.name]
    assert {column.name for column in table.columns} <= set(columns)
