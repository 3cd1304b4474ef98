"""The lists of SQL files and the folders say the same."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from runtime_sql.scripts import NOT_INSTALLED, SCRIPTS, Dialect, declared_objects, read_script

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("dialect", ["pg", "mssql"])
def test_every_sql_file_is_listed_once(dialect: Dialect) -> None:
    files = {path.name for path in (ROOT / "runtime_sql" / dialect).glob("*.sql")}
    assert sorted(SCRIPTS[dialect]) == sorted(files - NOT_INSTALLED)


@pytest.mark.parametrize("name", SCRIPTS["pg"])
def test_no_file_ends_the_transaction_it_is_installed_in(name: str) -> None:
    statements = [line.strip().lower() for line in read_script("pg", name).splitlines()]
    assert not {"commit;", "rollback;", "begin;"} & set(statements)


def test_the_worker_api_is_among_the_declared_objects() -> None:
    assert {"sp_worker_request_tasks", "workflow_instance", "v_instance"} <= declared_objects()


@pytest.mark.parametrize("dialect", ["pg", "mssql"])
def test_no_routine_is_written_twice(dialect: Dialect) -> None:
    text = "".join(read_script(dialect, name) for name in SCRIPTS[dialect])
    made = re.findall(r"^create or \w+ (?:function|procedure) (wf\.\w+)", text, re.MULTILINE)
    assert [name for name, count in Counter(made).items() if count > 1] == []
