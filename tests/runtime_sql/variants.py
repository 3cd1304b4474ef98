"""Routines that a test changes in its own database: a stop at a chosen place, or a broken rule.

A change replaces a text of the routine's real source and fails when the text is not there, so a
variant can never be the routine as it is.
"""

from __future__ import annotations

from typing import Any

import psycopg

from tests.runtime_sql.sessions import STOP


def replace_in(connection: psycopg.Connection[Any], routine: str, old: str, new: str) -> None:
    """Replaces a text in the source of a routine of schema wf, everywhere it stands."""
    row = connection.execute(
        "select pg_get_functiondef(p.oid) from pg_proc p"
        " where p.pronamespace = 'wf'::regnamespace and p.proname = %s",
        (routine,),
    ).fetchone()
    assert row is not None, f"there is no routine wf.{routine}"
    assert old in row[0], f"wf.{routine} has no {old!r}"
    connection.execute(row[0].replace(old, new).encode())


def put_stop(connection: psycopg.Connection[Any], routine: str, before: str) -> None:
    """Lets a routine wait, before a text, while `sessions.stopped` holds it; once is enough."""
    replace_in(
        connection,
        routine,
        before,
        f"perform pg_catalog.pg_advisory_xact_lock_shared({STOP});\n{before}",
    )
