"""`wf db script`: writes the runtime as one file, to run without this program."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from runtime_sql.script_text import script_text
from wfsql.cli.output import write


class ScriptDialect(StrEnum):
    """Which tree."""

    PG = "pg"
    MSSQL = "mssql"


def command(
    dialect: Annotated[
        ScriptDialect, typer.Option("--dialect", help="The database it is for.")
    ] = ScriptDialect.PG,
) -> int:
    """Write one self-contained script that installs or upgrades the runtime.

    For PostgreSQL it is run with psql, for SQL Server with sqlcmd -b, as often as you like.

    Example:  wf db script > runtime.sql && psql -d orders -f runtime.sql
    """
    write(script_text(dialect.value).rstrip("\n"))
    return 0
