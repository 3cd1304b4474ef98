"""What `wf db verify` looks at beyond the contract: objects, references, settings.

Run-time tables have no foreign keys, since every step would pay for them, so `broken_references`
looks for rows that point at nothing. It reads whole tables: minutes on a large database.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runtime_sql.connection import connect_driver
from runtime_sql.failures import DatabaseProblem, Failure, from_driver_error
from runtime_sql.mssql_url import is_mssql
from runtime_sql.scripts import declared_objects

if TYPE_CHECKING:
    import psycopg

_PRESENT = """
select c.relname::text from pg_catalog.pg_class as c where c.relnamespace = to_regnamespace('wf')
union
select p.proname::text from pg_catalog.pg_proc as p where p.pronamespace = to_regnamespace('wf')
"""


@dataclass(frozen=True, slots=True)
class Reference:
    """`table.column` names a row of `target` by its primary key; 0 and null name none."""

    table: str
    column: str
    target: str
    target_column: str


def _to(target: str, key: str, *places: str) -> tuple[Reference, ...]:
    pairs = (place.split(".") for place in places)
    return tuple(Reference(table, column, target, key) for table, column in pairs)


REFERENCES: tuple[Reference, ...] = (
    *_to("workflow_def", "workflow_def_id", "workflow_instance.workflow_def_id"),
    *_to("workflow_version", "workflow_version_id", "workflow_instance.workflow_version_id"),
    *_to("workflow_node", "node_id", "node_execution.node_id", "task.node_id"),
    *_to(
        "workflow_action",
        "action_id",
        "task.action_id",
        "action_throttle.action_id",
        "action_claim.action_id",
    ),
    *_to("scope", "scope_id", "node_execution.scope_id", "scope_variable.scope_id"),
    *_to(
        "workflow_instance",
        "workflow_instance_id",
        "execution_context.workflow_instance_id",
        "instance_tag.workflow_instance_id",
        "instance_extension.workflow_instance_id",
        "affinity.workflow_instance_id",
        "validation_plan.workflow_instance_id",
        "node_execution.workflow_instance_id",
        "scope.workflow_instance_id",
        "task.workflow_instance_id",
        "join_counter.workflow_instance_id",
        "loop_state.workflow_instance_id",
        "pending_end.workflow_instance_id",
        "timer.workflow_instance_id",
        "event_wait.workflow_instance_id",
    ),
    *_to(
        "node_execution",
        "node_execution_id",
        "workflow_instance.root_execution_id",
        "workflow_instance.error_execution_id",
        "node_execution.parent_execution_id",
        "node_execution.join_parent_id",
        "node_execution.error_execution_id",
        "node_attempt.node_execution_id",
        "scope.scope_id",
        "task.node_execution_id",
        "join_counter.node_execution_id",
        "foreach_item.node_execution_id",
        "loop_state.node_execution_id",
        "pending_end.node_execution_id",
        "timer.node_execution_id",
        "event_wait.node_execution_id",
    ),
)


def missing_objects(url: str) -> tuple[str, ...] | Failure:
    """Returns the names of the runtime's objects that a database does not have, sorted."""
    if is_mssql(url):
        from runtime_sql.mssql_installer import missing_mssql_objects

        return missing_mssql_objects(url)
    return _look(url, _missing)


def faults(url: str) -> tuple[str, ...] | Failure:
    """Returns a line for each reference to nothing and each setting that must not be."""
    if is_mssql(url):
        from runtime_sql.mssql_installer import read_mssql_rows

        return read_mssql_rows(url, _faults)
    return _look(url, lambda connection: _faults(lambda query: _all(connection, query)))


def _look(url: str, read: Any) -> tuple[str, ...] | Failure:
    import psycopg

    connection = connect_driver(url)
    if isinstance(connection, DatabaseProblem):
        return connection
    with connection:
        try:
            # One snapshot, so that a row and what it names are seen together.
            with connection.transaction():
                connection.execute("set transaction isolation level repeatable read, read only")
                lines: tuple[str, ...] = read(connection)
                return lines
        except psycopg.Error as error:
            failure = from_driver_error(error)
            if failure is None:
                raise
            return failure


def _missing(connection: psycopg.Connection[Any]) -> tuple[str, ...]:
    there = {row[0] for row in connection.execute(_PRESENT).fetchall()}
    return tuple(sorted(declared_objects() - there))


def _all(connection: psycopg.Connection[Any], query: str) -> list[tuple[Any, ...]]:
    return connection.execute(query.encode()).fetchall()


def _faults(rows: Callable[[str], list[tuple[Any, ...]]]) -> tuple[str, ...]:
    """Asks in words that both dialects know."""
    lines = []
    for reference in REFERENCES:
        table, column, target = reference.table, reference.column, reference.target
        [(count, first)] = rows(
            f"select count(*), min(c.{column}) from wf.{table} as c where c.{column} <> 0"
            f" and not exists (select 1 from wf.{target} as p"
            f" where p.{reference.target_column} = c.{column})"
        )
        if count:
            lines.append(
                f"table {table}: {count} rows name no {target} by {column} (first: {first})"
            )
    [(moved,)] = rows(
        "select count(*) from wf.wf_setting as s where s.name = 'now' and not exists"
        " (select 1 from wf.wf_setting as t where t.name = 'test_database')"
    )
    if moved:
        lines.append("wf_setting: the clock is moved, and this is no test database")
    return tuple(lines)
