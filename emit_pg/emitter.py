"""Emits the PostgreSQL deploy script of a workflow.

Before: a GraphSpec. After: one transaction for `psql` or any driver (no backslash commands):

    begin · settings, runtime, lock · rows that are not there yet · notes · publish · commit

A failing statement leaves the transaction aborted, so the commit at the end is then a rollback.
Run twice, the script inserts nothing: rows of a version are only inserted while it is unpublished.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from compiler.emit import writer
from compiler.emit.base import Dialect
from compiler.emit.plan import DeployPlan, plan_deploy
from compiler.spec import GraphSpec
from emit_pg import literals
from emit_pg.type_map import CAST_TYPES

DIALECT = Dialect(
    name="postgresql",
    sqlglot_name="postgres",
    text=literals.text,
    json=literals.json,
    boolean=literals.boolean,
    cast_types=CAST_TYPES,
    has_on_conflict=True,
    max_rows=None,
)

NEEDED_RUNTIME = 2
"""The oldest version of the runtime that has all that a script names."""

# The settings are local, so that nothing of the script stays in a pooled session. Deploys queue for
# one lock: `on conflict` names one unique index, and a definition has two.
BEGIN = f"""\
begin isolation level read committed;
set local standard_conforming_strings = on;
set local client_encoding = 'UTF8';
select wf.wf_require_runtime(p_version => {NEEDED_RUNTIME});
select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('wf.deploy', 0));"""


def emit(spec: GraphSpec, *, activate: bool = True, update_actions: bool = False) -> str:
    """Returns the deploy script, the same bytes for the same spec on every machine.

    Args:
      spec: a verified graph.
      activate: make this version the one that new instances get.
      update_actions: take over the catalog's dispatch columns where the database has others;
        without it such a difference is refused (20010).

    Raises:
      compiler.json_values.UnstorableValue: a value that no database can store.
    """
    return emit_all([spec], activate=activate, update_actions=update_actions)


def emit_all(
    specs: Sequence[GraphSpec], *, activate: bool = True, update_actions: bool = False
) -> str:
    """Returns one script that deploys several workflows in one transaction: all or none."""
    plans = [plan_deploy(spec) for spec in specs]
    statements = [BEGIN]
    for plan in plans:
        statements += [
            *writer.write_inserts(DIALECT, plan),
            _notes(plan),
            _publish(plan, activate=activate, update_actions=update_actions),
        ]
    headers = [writer.header(DIALECT, plan) for plan in plans]
    return "\n".join(headers) + "\n\n" + "\n\n".join([*statements, "commit;"]) + "\n"


def _call(routine: str, arguments: dict[str, exp.Expr]) -> exp.Expr:
    pairs = [exp.Kwarg(this=exp.var(name), expression=value) for name, value in arguments.items()]
    return exp.Dot(
        this=exp.to_identifier("wf"), expression=exp.Anonymous(this=routine, expressions=pairs)
    )


def _name_and_hash(plan: DeployPlan) -> dict[str, exp.Expr]:
    return {
        "p_name": literals.text(plan.name),
        "p_content_hash": literals.text(plan.content_hash),
    }


def _notes(plan: DeployPlan) -> str:
    source_map = exp.null() if plan.source_map is None else literals.json(plan.source_map)
    description = exp.null() if plan.description is None else literals.text(plan.description)
    call = _call(
        "wf_set_version_notes",
        _name_and_hash(plan)
        | {"p_source_map": exp.cast(source_map, "jsonb"), "p_description": description},
    )
    return writer.to_sql(exp.select(call), DIALECT.sqlglot_name) + ";"


def _publish(plan: DeployPlan, *, activate: bool, update_actions: bool) -> str:
    call = _call(
        "wf_publish_workflow_version",
        _name_and_hash(plan)
        | {
            "p_activate": literals.boolean(activate),
            "p_update_actions": literals.boolean(update_actions),
        },
    )
    select = writer.to_sql(exp.select(call), DIALECT.sqlglot_name).removeprefix("select ")
    return f"select p.workflow_version_id, p.version_no, p.was_new\nfrom {select} as p;"
