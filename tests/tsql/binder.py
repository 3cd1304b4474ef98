"""Whether the names in T-SQL scripts mean something: tables, columns, variables, parameters.

The binder reads CREATE scripts together, in the order of deployment, as if they were one database.
It knows SQL Server 2019, nothing of `sys` but what is declared here, and one name space for all
temporary tables; so those that a batch makes get names of their own first. A procedure may use a
table that its caller has made: it is bound to the widest one of that name in the scripts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import count
from typing import Any

from tests.tsql.dotnet import load

Complaint = tuple[int, int, str]
"""Line, column, message."""

_SYSTEM = """
create procedure sys.sp_getapplock @Resource nvarchar(255), @LockMode varchar(32),
    @LockOwner varchar(32) = 'Transaction', @LockTimeout int = null,
    @DbPrincipal sysname = 'dbo' as return 0
GO
create procedure sys.sp_releaseapplock @Resource nvarchar(255),
    @LockOwner varchar(32) = 'Transaction', @DbPrincipal sysname = 'dbo' as return 0
GO
create procedure sys.sp_set_session_context @key sysname, @value sql_variant,
    @read_only bit = 0 as return 0
GO
create view sys.indexes as
select cast(1 as int) as object_id, cast(N'' as sysname) as name, cast(1 as int) as index_id
GO
create view sys.dm_exec_sessions as
select cast(1 as smallint) as session_id, cast(1 as smallint) as transaction_isolation_level,
       cast(1 as int) as open_transaction_count
GO
create schema wf
GO
"""
# True of the binder's own world only.
_NOISE = re.compile(
    r"data-tier application|Cannot find the user 'dbo'|sp_executesql", re.IGNORECASE
)
_TOKEN = re.compile(
    r"--[^\n]*|/\*.*?\*/|N?'(?:[^']|'')*'|\[[^\]]*\]"
    r"|(?P<go>^[ \t]*GO[ \t]*$)|(?P<temporary>(?<![\w@#$])#\w+)",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)
_MADE = re.compile(
    r"create table (?P<name>#\w+)\s*\((?P<columns>.*?)\)\s*;", re.DOTALL | re.IGNORECASE
)
_numbers = count(1)


def bind(scripts: Mapping[str, str]) -> dict[str, list[Complaint]]:
    """Returns what is wrong, by the name of the script; nothing for one that is fine."""
    server, _system = load()
    management = server.Management.SqlParser
    provider = _provider()
    options = management.Parser.ParseOptions(
        "GO",
        True,
        management.Common.DatabaseCompatibilityLevel.Version150,
        management.Common.TransactSqlVersion.Version150,
    )
    parse = management.Parser.Parser.Parse
    shared = _shared_tables(scripts.values())
    parsed = {"": parse(_SYSTEM, options), "callers": parse(shared, options)}
    parsed |= {name: parse(_own_names(text), options) for name, text in scripts.items()}
    import System.Collections.Generic

    together = System.Collections.Generic.List[management.Parser.ParseResult]()
    for result in parsed.values():
        together.Add(result)
    binder = management.Binder.BinderProvider.CreateBinder(provider)
    binder.Bind(together, "app", management.Binder.BindMode.Build)
    found = {name: _complaints(result) for name, result in parsed.items()}
    return {name: complaints for name, complaints in found.items() if complaints}


def _complaints(result: Any) -> list[Complaint]:
    return [
        (error.Start.LineNumber, error.Start.ColumnNumber, str(error.Message).strip())
        for error in result.Errors
        if not _NOISE.search(error.Message)
    ]


@cache
def _provider_class() -> Any:
    load()
    from Microsoft.SqlServer.Management.SqlParser.MetadataProvider import MetadataProviderBase

    class Provider(MetadataProviderBase):  # type: ignore[misc]
        """Gives the binder a server that holds nothing yet."""

        __namespace__ = "Wfsql.Tests"

        def get_Server(self) -> Any:  # noqa: N802
            return self.server

        def get_BeforeBindHandler(self) -> None:  # noqa: N802
            return None

        def get_AfterBindHandler(self) -> None:  # noqa: N802
            return None

    return Provider


def _provider() -> Any:
    server, _system = load()
    management = server.Management.SqlParser
    make = management.MetadataProvider.MetadataFactory()
    collation = management.Metadata.CollationInfo.GetCollationInfo("SQL_Latin1_General_CP1_CI_AS")
    made = make.Server.Create("server", collation)
    for name in ("master", "app"):
        database = make.Database.Create(made, name, collation)
        database.CompatibilityLevel = management.Common.DatabaseCompatibilityLevel.Version150
        database.DefaultSchemaName = "dbo"
        for schema in ("dbo", "sys", "INFORMATION_SCHEMA"):
            database.Schemas.Add(make.Schema.Create(database, schema))
        made.Databases.Add(database)
    provider = _provider_class()()
    provider.server = made
    return provider


def _shared_tables(scripts: Iterable[str]) -> str:
    """Returns batches that make each temporary table as its callers do, as one that stays: the
    binder forgets temporary ones at the end of a batch."""
    widest: dict[str, str] = {}
    for script in scripts:
        for found in _MADE.finditer(script):
            name = found["name"].lower()
            widest[name] = max(widest.get(name, ""), found["columns"], key=len)
    return "\n".join(
        f"create table wf.shared__{name[1:]} ({columns});\nGO" for name, columns in widest.items()
    )


def _own_names(script: str) -> str:
    """Gives the temporary tables that a batch makes names of their own; lines stay."""
    parts, start = [], 0
    ends = [found.end() for found in _TOKEN.finditer(script) if found["go"]]
    for end in [*ends, len(script)]:
        batch, start = script[start:end], end
        made = {found["name"].lower() for found in _MADE.finditer(batch)}
        parts.append(_TOKEN.sub(_renamed(made, next(_numbers)), batch))
    return "".join(parts)


def _renamed(made: set[str], number: int) -> Callable[[re.Match[str]], str]:
    def rename(found: re.Match[str]) -> str:
        if not found["temporary"]:
            return found[0]
        if found[0].lower() in made:
            return f"{found[0]}__{number}"
        return f"wf.shared__{found[0][1:]}"

    return rename
