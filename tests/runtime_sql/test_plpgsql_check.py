"""Every routine is clean under plpgsql_check, where the server has that extension."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

# Each trigger function is checked against a table that it is for.
ROUTINES = """
select p.oid::regprocedure::text,
       coalesce((select min(t.tgrelid::regclass::text) from pg_trigger t where t.tgfoid = p.oid),
                '0')
  from pg_proc p
  join pg_language l on l.oid = p.prolang
 where p.pronamespace = 'wf'::regnamespace and l.lanname = 'plpgsql'
 order by 1
"""
FINDINGS = """
select f.level || ' ' || f.sqlstate || ' line ' || coalesce(f.lineno::text, '?') || ': '
       || f.message || coalesce(' (' || f.detail || ')', '')
  from plpgsql_check_function_tb(%s::regprocedure, %s::regclass,
                                 extra_warnings => false, performance_warnings => false) f
 where f.sqlstate <> '42804' or f.detail not like 'cast "text" value to %%'
"""
"""All but the one that a literal such as '{}' is no array before it is read as one."""


def test_every_plpgsql_routine_is_clean(runtime_connection: psycopg.Connection[Any]) -> None:
    connection = runtime_connection
    try:
        there = connection.execute(
            "select 1 from pg_available_extensions where name = 'plpgsql_check'"
        ).fetchone()
        if there is None:
            pytest.skip("the server has no plpgsql_check")
        connection.execute("create extension plpgsql_check")
        routines = connection.execute(ROUTINES).fetchall()
        assert len(routines) > 50
        findings = [
            f"{name}: {line}"
            for name, table in routines
            for (line,) in connection.execute(FINDINGS, (name, table)).fetchall()
        ]
        assert findings == [], "\n".join(findings)
    finally:
        connection.rollback()
