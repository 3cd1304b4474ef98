"""Cases on SQL Server: where its engine is opened, and why there is none yet."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from wfsql.testing.engines import EngineProblem

if TYPE_CHECKING:
    from wfsql.testing.engines import Engine

URL_VARIABLE = "WF_MSSQL_URL"


def open_mssql(url: str | None = None) -> Engine:
    """Opens the engine on the server named, or on that of the environment.

    Raises:
      EngineProblem: no server is named, or its runtime cannot run instances.
    """
    named = url or os.environ.get(URL_VARIABLE)
    if not named:
        raise EngineProblem(
            "no SQL Server is named, so cases cannot run on one",
            f"name it with --url or {URL_VARIABLE}, as mssql://user@host:1433/database",
        )
    raise EngineProblem(
        "the runtime for SQL Server cannot run instances yet: it has tables and publishing only",
        "run the cases with --engine local or --engine pg",
    )
