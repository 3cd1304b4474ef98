"""Creating, starting and deploying in PostgreSQL (R3, R18, R19)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.runtime_sql import drive

CREATE = (
    "select workflow_instance_id, created"
    " from wf.wf_repo_create_workflow_instance(%s, %s, p_business_key => %s)"
)


@pytest.fixture
def connection(any_url: str) -> Iterator[psycopg.Connection[Any]]:
    with drive.connect(any_url) as connection:
        yield connection


@pytest.fixture
def greeting(connection: psycopg.Connection[Any], tmp_path: Path) -> str:
    """A deployed workflow with one required and one defaulted input."""
    text = """
        workflow greeting {
          input { who: string, items: list<{ sku: string, qty: int }> = [] }
          action greet = t.do(who: var.who, n: len(var.items))
        }
    """
    drive.deploy(connection, drive.compile_text(tmp_path, text))
    return "greeting"


def test_a_business_key_gives_the_same_instance_again(
    connection: psycopg.Connection[Any], greeting: str
) -> None:
    first = connection.execute(CREATE, (greeting, drive.json({"who": "a"}), "k1")).fetchone()
    again = connection.execute(CREATE, (greeting, drive.json({"who": "a"}), "k1")).fetchone()

    assert first is not None
    assert first[1] is True
    assert again == (first[0], False)


def test_a_business_key_with_another_context_is_refused(
    connection: psycopg.Connection[Any], greeting: str
) -> None:
    connection.execute(CREATE, (greeting, drive.json({"who": "a"}), "k1"))

    with pytest.raises(psycopg.Error) as refused:
        connection.execute(CREATE, (greeting, drive.json({"who": "b"}), "k1"))

    assert refused.value.diag.message_detail == "20010"


@pytest.mark.parametrize(
    ("name", "context", "key", "code"),
    [
        ("nobody", {}, None, "20002"),
        ("greeting", [], None, "20004"),
        ("greeting", "text", None, "20004"),
        ("greeting", {}, "", "20004"),
        ("greeting", {}, "k" * 201, "20004"),
        ("greeting", {}, "line\nend", "20004"),
    ],
)
def test_a_create_that_cannot_be_is_refused(
    connection: psycopg.Connection[Any],
    greeting: str,
    name: str,
    context: Any,
    key: str | None,
    code: str,
) -> None:
    with pytest.raises(psycopg.Error) as refused:
        connection.execute(CREATE, (name, drive.json(context), key))

    assert refused.value.diag.message_detail == code
    assert connection.execute("select count(*) from wf.workflow_instance").fetchone() == (0,)


@pytest.mark.parametrize(
    ("context", "message"),
    [
        ({}, "input who: is missing"),
        ({"who": 1}, "input who: must be string, not integer"),
        (
            {"who": "x", "items": [{"sku": "a", "qty": 1}, {"sku": "b", "qty": "2"}]},
            "input items[1].qty: must be an integer, not string",
        ),
        ({"who": "x", "items": [{"qty": 1}]}, "input items[0].sku: is missing"),
    ],
)
def test_an_input_that_does_not_fit_starts_nothing(
    connection: psycopg.Connection[Any], greeting: str, context: Any, message: str
) -> None:
    row = connection.execute(CREATE, (greeting, drive.json(context), None)).fetchone()
    assert row is not None

    with pytest.raises(psycopg.Error) as refused:
        connection.execute("select wf.sp_start_workflow_instance(%s)", (row[0],))

    assert refused.value.sqlstate == "WF015"
    assert refused.value.diag.message_primary == message
    left = connection.execute(
        "select i.status, (select count(*) from wf.node_execution)"
        "  from wf.workflow_instance i where i.workflow_instance_id = %s",
        (row[0],),
    ).fetchone()
    assert left == ("CREATED", 0)


def test_a_start_repeated_answers_the_same(
    connection: psycopg.Connection[Any], greeting: str
) -> None:
    row = connection.execute(CREATE, (greeting, drive.json({"who": "a"}), None)).fetchone()
    assert row is not None
    start = "select instance_status, next_ready_count from wf.sp_start_workflow_instance(%s)"

    first = connection.execute(start, (row[0],)).fetchone()
    again = connection.execute(start, (row[0],)).fetchone()

    assert first == again == ("RUNNING", 1)
    assert connection.execute("select count(*) from wf.node_execution").fetchone() == (2,)


def test_an_unknown_instance_cannot_start(connection: psycopg.Connection[Any]) -> None:
    with pytest.raises(psycopg.Error) as refused:
        connection.execute("select wf.sp_start_workflow_instance(12345)")

    assert refused.value.diag.message_detail == "20002"


def test_running_instances_keep_the_version_they_started_with(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    drive.deploy(
        connection,
        drive.compile_text(tmp_path, "workflow v { action a = t.do() action old = t.do() }"),
    )
    instance = drive.start(connection, "v", {})
    drive.deploy(
        connection,
        drive.compile_text(tmp_path, "workflow v { action a = t.do() action new = t.do() }"),
    )
    newer = drive.start(connection, "v", {})
    drive.drain(connection, drive.Scripted())

    paths = [[n["path"] for n in drive.trace(connection, i)["nodes"]] for i in (instance, newer)]

    assert paths == [["v", "v/a", "v/old"], ["v", "v/a", "v/new"]]


def test_deploying_known_content_makes_it_active_again(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    first = drive.compile_text(tmp_path, "workflow v { action a = t.do() }")
    second = drive.compile_text(tmp_path, "workflow v { action b = t.do() }")
    for spec in (first, second, first):
        drive.deploy(connection, spec)

    rows = connection.execute(
        "select version_no, is_active from wf.workflow_version order by version_no"
    ).fetchall()

    assert rows == [(1, True), (2, False)]


def test_rows_of_a_published_version_cannot_be_added(
    connection: psycopg.Connection[Any], greeting: str
) -> None:
    with pytest.raises(psycopg.Error) as refused:
        connection.execute(
            "insert into wf.workflow_node (workflow_version_id, node_key, node_type,"
            " is_generated) select workflow_version_id, 'extra', 'SEQUENCE', false"
            " from wf.workflow_version"
        )

    assert refused.value.diag.message_detail == "20003"


def bare_version(connection: psycopg.Connection[Any], nodes: str, edges: str) -> None:
    """Inserts a version that no compiler would write."""
    connection.execute("insert into wf.workflow_def (name) values ('g')")
    connection.execute(
        "insert into wf.workflow_version (workflow_def_id, content_hash, spec_format)"
        " select workflow_def_id, repeat('a', 64), 1 from wf.workflow_def"
    )
    connection.execute(
        "insert into wf.workflow_node (workflow_version_id, node_key, node_type,"
        " is_generated) select v.workflow_version_id, r.* from wf.workflow_version v,"
        f" (values {nodes}) r"  # type: ignore[arg-type]
    )
    if edges:
        connection.execute(
            "insert into wf.workflow_edge (workflow_version_id, parent_key, child_key, branch_kind,"
            " child_order, case_value) select v.workflow_version_id, r.a, r.b, r.c, r.d, r.e::jsonb"
            f" from wf.workflow_version v, (values {edges}) r(a, b, c, d, e)"  # type: ignore[arg-type]
        )


ROOT = "('g', 'SEQUENCE', false)"
TWO_BODIES = "('b', 'SEQUENCE', true), ('c', 'SEQUENCE', true)"


@pytest.mark.parametrize(
    ("nodes", "edges", "found"),
    [
        (f"{ROOT}, ('h', 'SEQUENCE', false)", "", "WF603: there are several roots: g, h"),
        (
            "('g', 'SEQUENCE', false), ('h', 'SEQUENCE', false)",
            "('g', 'h', 'SEQUENCE', 0, null), ('h', 'g', 'SEQUENCE', 0, null)",
            "WF603: there is no root",
        ),
        (
            f"{ROOT}, ('h', 'SEQUENCE', false)",
            "('g', 'h', 'THEN', 0, null)",
            "WF608: node g, of type SEQUENCE, has an edge of kind THEN",
        ),
        (
            f"{ROOT}, ('h', 'SEQUENCE', false)",
            "('g', 'h', 'SEQUENCE', 1, null)",
            "WF610: the edges of g are not numbered from 0 without a gap",
        ),
        (
            f"{ROOT}, ('w', 'WHILE', false), {TWO_BODIES}",
            "('g', 'w', 'SEQUENCE', 0, null), ('w', 'b', 'BODY', 0, null),"
            " ('w', 'c', 'BODY', 1, null)",
            "WF608: node w has 2 edges of kind BODY",
        ),
        (
            f"{ROOT}, ('s', 'SWITCH', false), {TWO_BODIES}",
            "('g', 's', 'SEQUENCE', 0, null), ('s', 'b', 'CASE', 0, '[1]'),"
            " ('s', 'c', 'CASE', 1, '[2, 1]')",
            "WF611: s has the case value 1 twice",
        ),
        (
            f"{ROOT}, ('x', 'SEQUENCE', false), ('y', 'SEQUENCE', false)",
            "('x', 'y', 'SEQUENCE', 0, null), ('y', 'x', 'SEQUENCE', 0, null)",
            "WF605: node x is not reached from the root",
        ),
    ],
)
def test_a_graph_that_no_compiler_wrote_is_refused(
    connection: psycopg.Connection[Any], nodes: str, edges: str, found: str
) -> None:
    bare_version(connection, nodes, edges)

    with pytest.raises(psycopg.Error) as refused:
        connection.execute("select wf.wf_publish_workflow_version('g', repeat('a', 64))")

    assert refused.value.diag.message_detail == "20007"
    assert refused.value.diag.message_primary == found


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        ("1", "a program is an array of instructions"),
        ("[]", "a program is an array of instructions"),
        ('[["lit", 1], ["lit", 2]]', "it leaves 2 values"),
        ('[["frob"]]', "instruction 1 (frob) is not known"),
        ('[["lit", 1], ["eq"]]', "instruction 2 (eq) has no two operands"),
        ('[["lit", 1], ["jf", 9], ["lit", 2]]', "instruction 2 (jf) jumps out of the program"),
        ('[["var", "x"]]', "instruction 1 is no reference"),
        ('[["ctx", "task", [{}]]]', "instruction 1 is no reference"),
        ('[["defined", ["lit", 1]]]', "instruction 1 (defined) has no reference"),
        ('[["cat", 2]]', "instruction 1 (cat) takes more than there is"),
    ],
)
def test_a_program_that_cannot_run_is_refused(
    connection: psycopg.Connection[Any], program: str, problem: str
) -> None:
    bare_version(connection, f"{ROOT}, ('i', 'SWITCH', false)", "('g', 'i', 'SEQUENCE', 0, null)")
    connection.execute(
        "update wf.workflow_node set attributes_json = %s::jsonb where node_key = 'i'",
        (f'{{"subject": {program}}}',),
    )

    with pytest.raises(psycopg.Error) as refused:
        connection.execute("select wf.wf_publish_workflow_version('g', repeat('a', 64))")

    assert refused.value.diag.message_primary == (f"WF612: the program of i (subject): {problem}")


def test_publishing_what_is_not_there_is_refused(connection: psycopg.Connection[Any]) -> None:
    with pytest.raises(psycopg.Error) as refused:
        connection.execute("select wf.wf_publish_workflow_version('ghost', repeat('a', 64))")

    assert refused.value.diag.message_detail == "20002"


def test_a_catalog_that_differs_is_refused_until_it_is_taken_over(
    connection: psycopg.Connection[Any], tmp_path: Path
) -> None:
    text = "workflow v { action a = t.do() }"
    drive.deploy(connection, drive.compile_text(tmp_path, text))
    changed = drive.compile_text(
        tmp_path, "workflow v { action b = t.do() }", "actions: [{name: t.do, capability: other}]"
    )

    with pytest.raises(psycopg.Error) as refused:
        drive.deploy(connection, changed)
    connection.rollback()

    assert refused.value.diag.message_detail == "20010"
    assert refused.value.diag.message_primary == (
        'the catalog says of action t.do: capability "other"; this database has: capability "t"'
    )


def test_a_name_that_differs_only_in_case_is_refused(
    connection: psycopg.Connection[Any], greeting: str, tmp_path: Path
) -> None:
    other = drive.compile_text(tmp_path, "workflow Greeting { action a = t.do() }")

    with pytest.raises(psycopg.Error) as refused:
        drive.deploy(connection, other)

    assert refused.value.diag.message_detail == "20010"
    assert refused.value.diag.message_primary == (
        "workflow Greeting differs from workflow greeting only in case"
    )


def test_an_instance_cancelled_before_its_start_cannot_start(
    connection: psycopg.Connection[Any], greeting: str
) -> None:
    row = connection.execute(CREATE, (greeting, drive.json({"who": "a"}), None)).fetchone()
    assert row is not None
    connection.execute("select wf.sp_cancel_workflow_instance(%s)", (row[0],))

    with pytest.raises(psycopg.Error) as refused:
        connection.execute("select wf.sp_start_workflow_instance(%s)", (row[0],))

    assert refused.value.diag.message_detail == "20003"
