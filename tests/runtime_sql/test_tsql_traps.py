"""Where T-SQL does something else than one would think, each trap in a test of its own.

They run on the server of WF_MSSQL_URL and go through the runtime's own routines: a workflow is
deployed, started and worked on as a worker does it.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from compiler import json_values
from compiler.pipeline import compile_text
from runtime_sql.failures import ApiError
from runtime_sql.mssql_driver import MssqlConnection, MssqlError
from tests.mssql_server import open_connection
from wfsql.testing.engines import NotStarted, Session
from wfsql.testing.mssql import MssqlEngine

CATALOG = """\
actions:
  - name: a.b
    input: "{ v: any? }"
    output: "{ r: any? }"
"""


@pytest.fixture(scope="module")
def engine(mssql_url: str) -> Iterator[MssqlEngine]:
    opened = MssqlEngine(mssql_url)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def session(mssql_url: str) -> Iterator[MssqlConnection]:
    connection = open_connection(mssql_url)
    yield connection
    connection.close()


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    path = tmp_path / "traps.actions.yaml"
    path.write_text(CATALOG, encoding="utf-8")
    return path


def start(engine: MssqlEngine, text: str, context: Any, catalog: Path | None = None) -> Session:
    compiled = compile_text(text, "w.wf", [] if catalog is None else [catalog])
    errors = [d.message for d in compiled.diagnostics if d.severity == "error"]
    assert not errors, errors
    session = engine.start(compiled.specs[0], context)
    assert not isinstance(session, NotStarted), session
    return session


def output(engine: MssqlEngine, text: str, context: Any) -> Any:
    """Runs a workflow that needs no worker and returns its outputs."""
    trace = start(engine, text, context).remains().trace
    assert trace["status"] == "SUCCEEDED", trace
    return trace["output"]


def value(session: MssqlConnection, program: list[Any]) -> Any:
    """Evaluates a program that looks at no execution."""
    [(found, code, message)] = session.rows(
        "declare @v_value nvarchar(max), @v_code int, @v_message nvarchar(max);"
        " exec wf.wf_eval_expression @program = %s, @execution_id = 0,"
        " @value_json = @v_value output, @error_code = @v_code output,"
        " @error_message = @v_message output;"
        " select @v_value, @v_code, @v_message;",
        json_values.dumps(program),
    )
    assert code is None, (code, message)
    return json_values.loads(found)


def compare(session: MssqlConnection, left: Any, op: str, right: Any) -> Any:
    return value(session, [["lit", left], ["lit", right], [op]])


@pytest.mark.parametrize(("left", "right"), [("a", "a "), ("a", "A"), ("", " "), ("é", "e\u0301")])
def test_strings_that_a_collation_takes_for_equal_are_not(
    session: MssqlConnection, left: str, right: str
) -> None:
    assert compare(session, left, "eq", right) is False


def test_strings_are_ordered_by_code_point(session: MssqlConnection) -> None:
    assert compare(session, "\ufffd", "lt", "\U0001f600") is True
    assert compare(session, "B", "lt", "a") is True
    assert compare(session, "a", "lt", "a ") is True


_KEYS = """
workflow trap_keys {
  input { o : any }
  output { plain = var.o["k"], blank = var.o["k "], upper = var.o["K"] }
  var has_run : bool = false
  set has_run = true
}
"""


def test_keys_that_differ_in_case_or_a_trailing_blank_are_different(engine: MssqlEngine) -> None:
    found = output(engine, _KEYS, {"o": {"K": 3, "k ": 2, "k": 1}})
    assert found == {"plain": 1, "blank": 2, "upper": 3}


_ECHO = """
workflow trap_echo {
  input { v : any }
  output { v = var.v }
  var has_run : bool = false
  set has_run = true
}
"""


@pytest.mark.parametrize("length", [3_999, 4_000, 4_001, 8_001, 100_000])
def test_a_long_string_comes_out_whole(engine: MssqlEngine, length: int) -> None:
    text = "é" * (length - 1) + "!"
    assert output(engine, _ECHO, {"v": text}) == {"v": text}


@pytest.mark.parametrize("length", [4_001, 8_001])
def test_a_long_string_goes_to_a_worker_and_back(
    engine: MssqlEngine, catalog: Path, length: int
) -> None:
    session = start(
        engine,
        "workflow trap_long {\n  input { v : any }\n  output { r = ctx.task.x.output.r }\n"
        "  action x = a.b(v: var.v)\n}\n",
        {"v": "x" * length},
        catalog,
    )
    task = session.claim()
    assert task is not None
    assert task.input == {"v": "x" * length}
    session.submit(task, 0, {"r": "y" * length}, None)
    assert session.remains().trace["output"] == {"r": "y" * length}


@pytest.mark.parametrize(
    "number",
    [Decimal("1.50"), Decimal("1E+3"), 2**53 + 1, 2**63 - 1, Decimal("12345678901234567890.5"), 0],
)
def test_a_number_keeps_its_value(engine: MssqlEngine, number: Any) -> None:
    assert output(engine, _ECHO, {"v": number}) == {"v": number}


def test_a_number_passes_no_floating_point(session: MssqlConnection) -> None:
    assert compare(session, 2**53 + 1, "eq", 2**53) is False


def test_json_null_is_a_value_and_no_sql_null(engine: MssqlEngine) -> None:
    text = (
        "workflow trap_null {\n  input { v : any? }\n"
        "  output { v = var.v, is_null = var.v == null }\n"
        "  var has_run : bool = false\n  set has_run = true\n}\n"
    )
    assert output(engine, text, {"v": None}) == {"v": None, "is_null": True}


@pytest.mark.parametrize("empty", [[], {}, "", [[]], [{}]])
def test_what_is_empty_is_not_null(engine: MssqlEngine, empty: Any) -> None:
    assert output(engine, _ECHO, {"v": empty}) == {"v": empty}


def test_a_loop_over_an_empty_array_ends_at_once(engine: MssqlEngine) -> None:
    text = (
        "workflow trap_empty {\n  input { v : list<int> }\n  output { n = var.n }\n"
        "  var n : int = 0\n  foreach i in var.v {\n    set n = var.n + 1\n  }\n}\n"
    )
    assert output(engine, text, {"v": []}) == {"n": 0}


def test_the_length_of_a_key_counts_blanks_at_its_end(session: MssqlConnection) -> None:
    with pytest.raises(MssqlError) as found:
        session.rows(
            "exec wf.sp_register_worker @worker_id = %s, @worker_token = %s, @capabilities = %s,"
            " @max_concurrency = 1;",
            "worker ",
            "t" * 40,
            '["*"]',
        )
    assert found.value.number == 70004


def test_a_sleep_of_more_than_24_days_wakes_at_its_hour(engine: MssqlEngine) -> None:
    """dateadd takes milliseconds as an int, which ends after 24.8 days."""
    session = start(engine, "workflow trap_days {\n  sleep 40d\n}\n", {})
    session.advance_clock(40 * 86_400_000 - 1)
    assert session.remains().trace["status"] == "RUNNING"
    session.advance_clock(1)
    assert session.remains().trace["status"] == "SUCCEEDED"


def _transactions(connection: MssqlConnection) -> int:
    [(number,)] = connection.rows("select @@trancount;")
    return int(number)


ERRORS = {
    "20002": "exec wf.sp_start_workflow_instance @workflow_instance_id = -1;",
    "20001": (
        "exec wf.sp_worker_request_tasks @worker_id = N'nobody', @worker_token = N'nothing';"
    ),
    "20004": (
        "exec wf.wf_repo_create_workflow_instance @workflow_name = N'trap_echo',"
        " @context_json = N'[]';"
    ),
}


@pytest.mark.parametrize("code", ERRORS)
def test_an_error_leaves_no_transaction_open(session: MssqlConnection, code: str) -> None:
    with pytest.raises(MssqlError) as found:
        session.rows(ERRORS[code])
    assert found.value.number == 50_000 + int(code)
    assert _transactions(session) == 0


def test_an_error_within_a_callers_transaction_leaves_that_to_the_caller(
    session: MssqlConnection,
) -> None:
    """Under xact_abort it is doomed, but not gone: no procedure ends what it has not begun."""
    [(after, state)] = session.rows(
        "begin transaction; begin try"
        " exec wf.sp_start_workflow_instance @workflow_instance_id = -1;"
        " end try begin catch"
        " declare @v_after int = @@trancount, @v_state int = xact_state();"
        " rollback transaction;"
        " select @v_after, @v_state; end catch"
    )
    assert after == 1
    assert state in (-1, 1)
    assert _transactions(session) == 0


def test_a_doomed_transaction_does_not_hide_the_error(engine: MssqlEngine) -> None:
    """A CATCH that writes into a doomed transaction would answer 3930 in place of the cause."""
    failure = engine._client.create_and_start("trap_nothing", "{}")
    assert isinstance(failure, ApiError)
    assert failure.code == 20002


def test_calls_stay_far_from_32_levels(engine: MssqlEngine, session: MssqlConnection) -> None:
    """@@NESTLEVEL is counted where the engine is deepest: an evaluation inside of a handler."""
    session.rows(
        "if object_id(N'wf.nest_probe', N'U') is null create table wf.nest_probe (n int not null);"
    )
    session.rows("delete from wf.nest_probe;")
    session.rows(
        "create trigger wf.tr_nest_probe on wf.scope_variable after insert, update as"
        " begin set nocount on; insert into wf.nest_probe (n) values (@@nestlevel); end"
    )
    try:
        text = (
            "workflow trap_nest {\n  input { v : list<int> }\n  output { n = var.n }\n"
            "  var n : int = 0\n  foreach i in var.v {\n    if var.i > 0 {\n"
            "      set n = var.n + var.i\n    }\n  }\n}\n"
        )
        assert output(engine, text, {"v": [1, 2, 3]}) == {"n": 6}
        [(deepest,)] = session.rows("select max(p.n) from wf.nest_probe as p;")
    finally:
        session.rows("drop trigger wf.tr_nest_probe;")
        session.rows("drop table wf.nest_probe;")
    assert 0 < deepest <= 16
