"""The runtime as one file that `psql` or `sqlcmd` runs, for people who have no Python there.

Before: the files of a tree. After, for PostgreSQL: one transaction that installs into an empty
database, upgrades an older runtime, changes nothing where this version is, and stops at a newer
one. `psql` chooses between them by `\\if`. For SQL Server see `mssql_installer`.
"""

from __future__ import annotations

from runtime_sql.installer import LOCK_KEY
from runtime_sql.mssql_installer import mssql_script_text
from runtime_sql.scripts import (
    DROP_CODE,
    MIGRATIONS,
    RUNTIME_VERSION,
    SCRIPTS,
    TABLE_SCRIPTS,
    Dialect,
    read_script,
)

_PG_HEAD = f"""\
-- The wfsql runtime, version {RUNTIME_VERSION}, for PostgreSQL 14 and newer. Run it with psql:
--     psql -d DATABASE -f FILE
-- It installs, or upgrades an older version, in one transaction; where this version is already,
-- it changes nothing. To do without roles: PGOPTIONS="-c wf.roles=none" psql ...
\\set ON_ERROR_STOP on
begin;
set local client_encoding = 'UTF8';
set local standard_conforming_strings = on;
set local check_function_bodies = off;
select pg_catalog.pg_advisory_xact_lock({LOCK_KEY}) \\g /dev/null
select to_regclass('wf.schema_version') is not null as wf_is_there \\gset
\\if :wf_is_there
select max(v.version) as wf_version from wf.schema_version as v \\gset
\\else
\\set wf_version 0
\\endif
select :wf_version = 0 as wf_installs,
       :wf_version between 1 and {RUNTIME_VERSION - 1} as wf_upgrades,
       :wf_version < {RUNTIME_VERSION} as wf_changes,
       :wf_version > {RUNTIME_VERSION} as wf_is_newer \\gset
\\if :wf_is_newer
do $$ begin raise exception 'the database has a newer runtime'; end $$;
\\endif
"""
_PG_END = f"""\
insert into wf.schema_version (version) values ({RUNTIME_VERSION});
\\endif
commit;
"""


def script_text(dialect: Dialect) -> str:
    """Returns one self-contained script of the whole runtime."""
    return _postgres() if dialect == "pg" else mssql_script_text()


def _postgres() -> str:
    roles, *others = SCRIPTS["pg"]
    tables = [name for name in others if name in TABLE_SCRIPTS]
    code = [name for name in others if name not in TABLE_SCRIPTS]
    parts = [_PG_HEAD, "\\if :wf_changes", _file("pg", roles), "\\if :wf_installs"]
    parts += [_file("pg", name) for name in tables]
    parts += ["\\endif", "\\if :wf_upgrades", _file("pg", DROP_CODE), "\\endif"]
    for version, name in sorted(MIGRATIONS.items()):
        parts += [
            f"select :wf_version between 1 and {version} as wf_migrates \\gset",
            "\\if :wf_migrates",
            _file("pg", name),
            "\\endif",
        ]
    parts += [_file("pg", name) for name in code]
    return "\n".join([*parts, _PG_END])


def _file(dialect: Dialect, name: str) -> str:
    return f"-- {name} {'-' * (95 - len(name))}\n{read_script(dialect, name)}"
