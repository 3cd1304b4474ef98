"""The T-SQL tree and emitted scripts, without a server: names and rules (`make test-more`).

The grammar is checked in every run, by tests/unit/emit/test_tsql_grammar.py.
"""

from __future__ import annotations

import re

import pytest

from emit_mssql.emitter import emit
from runtime_sql.scripts import SCRIPTS, read_script
from tests.tsql.binder import bind
from tests.tsql.dotnet import missing_packages
from tests.tsql.lint import lint
from tests.unit.emit.small_specs import NODE_TYPES, awkward, wide

pytestmark = pytest.mark.skipif(
    bool(missing_packages()),
    reason=f"the binder of SQL Server is not here: {', '.join(missing_packages())}",
)
TREE = {name: read_script("mssql", name) for name in SCRIPTS["mssql"]}
EMITTED = {f"{name}.sql": emit(spec) for name, spec in NODE_TYPES.items()} | {
    "awkward.sql": emit(awkward()),
    "wide.sql": emit(wide(1_100)),
}


# The binder loses the columns of OPENJSON on the way into a subquery or an aggregate, SQL Server
# does not: each refers to a row of an OPENJSON, or of a table made of one, around it.
_LOST = {
    "wf_execution_scope.sql": {"p.key"},
    "wf_apply_validation_plan.sql": {"p.key", "k.key"},
    "wf_repo_create_workflow_graph.sql": {"k.key", "value", "x.name", "x.revision"},
    "wf_repo_actions.sql": {"max_per_worker"},
    "wf_test_bed_worker.sql": {"k.key"},
}


def test_every_name_in_the_tree_and_in_emitted_scripts_means_something() -> None:
    left = {
        name: [said for said in complaints if not _is_lost(name, said[2])]
        for name, complaints in bind(TREE | EMITTED).items()
    }
    assert {name: complaints for name, complaints in left.items() if complaints} == {}


def _is_lost(file: str, message: str) -> bool:
    found = re.search(r'(?:identifier "|column name \')([\w.]+)["\']', message)
    return found is not None and found[1] in _LOST.get(file, ())


@pytest.mark.parametrize("name", TREE)
def test_the_tree_keeps_the_rules(name: str) -> None:
    assert lint(TREE[name]) == []


@pytest.mark.parametrize("name", EMITTED)
def test_emitted_scripts_keep_the_rules(name: str) -> None:
    assert lint(EMITTED[name]) == []


_PLANT = """\
create table wf.planted (planted_id bigint not null, name nvarchar(50) null);
GO
create procedure wf.plant @planted_id bigint, @name nvarchar(50) = null as
begin
    set nocount, xact_abort on;
    declare @v_count int = 0;
    {body}
end;
GO
create procedure wf.take_plant as
begin
    exec wf.plant @planted_id = 1;
end;
GO
"""
# What was planted, and what must be said of it.
FAULTS = {
    "unknown table": ("select x.planted_id from wf.plnted as x;", "plnted"),
    "unknown column": ("select x.planted from wf.planted as x;", "planted"),
    "unknown variable": ("set @v_cuont = 1;", "@v_cuont"),
    "parameter that is not there": ("exec wf.plant @planted_id = 1, @nme = N'a';", "@nme"),
    "argument that is missing": ("exec wf.plant @name = N'a';", "@planted_id"),
    "procedure with too many arguments": ("exec wf.plant 1, N'a', 2;", "too many arguments"),
    "throw after a statement without its end": (
        "rollback transaction\n    throw 70003, N'no', 1;",
        "a ; is missing|does not end in ;|syntax",
    ),
    "insert with a value too few": (
        "insert into wf.planted (planted_id, name) values (1);",
        "names 2 columns and gives 1",
    ),
    "insert that selects a column too many": (
        "insert into wf.planted (planted_id) select 1, N'a';",
        "names 1 columns and selects 2",
    ),
    "json column of a length": (
        "select j.a from openjson(N'{}') with (a nvarchar(400) as json) as j;",
        "nvarchar\\(max\\)",
    ),
    "union of unequal widths": ("select 1 as a union all select 1, 2;", "of 1 and 2 columns"),
    "throw of a number that is not ours": ("throw 50003, N'no', 1;", "50000 \\+"),
    "dynamic SQL": ("exec (N'select 1;');", "dynamic SQL"),
    "break outside of a loop": ("break;", "BREAK"),
}


def _say(body: str) -> str:
    script = _PLANT.format(body=body)
    said = [*bind({"planted.sql": script}).get("planted.sql", []), *lint(script)]
    return "\n".join(message for _line, _column, message in said)


def test_a_script_without_a_fault_is_left_alone() -> None:
    assert _say("select x.planted_id from wf.planted as x where x.name = @name;") == ""


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_caught(name: str) -> None:
    body, wanted = FAULTS[name]
    assert re.search(wanted, _say(body), re.IGNORECASE), _say(body)


def test_a_fault_is_said_with_its_line() -> None:
    script = _PLANT.format(body="set @v_cuont = 1;")
    assert {line for line, _column, _message in bind({"a.sql": script})["a.sql"]} == {7}
