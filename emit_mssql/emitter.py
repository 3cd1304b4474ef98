"""Emits the T-SQL deploy script of a workflow, for SQL Server 2019 and newer and Azure SQL.

Before: a GraphSpec. After: one transaction over GO batches, for `sqlcmd` or any runner that knows
GO:

    settings · GO · begin, lock · GO · rows that are not there yet, a batch per statement · GO ·
    notes, publish, commit · GO

Deploys queue for one lock, under which `not exists` says what is there.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from compiler.emit import writer
from compiler.emit.base import Dialect
from compiler.emit.plan import DeployPlan, plan_deploy
from compiler.spec import GraphSpec
from emit_mssql import batches, literals
from emit_mssql.type_map import CAST_TYPES

DIALECT = Dialect(
    name="mssql",
    sqlglot_name="tsql",
    text=literals.text,
    json=literals.json,
    boolean=literals.boolean,
    cast_types=CAST_TYPES,
    has_on_conflict=False,
    max_rows=1_000,
)


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
    later: list[str] = []
    for plan in plans:
        later += writer.write_inserts(DIALECT, plan)
        later.append(_finish(plan, activate=activate, update_actions=update_actions))
    later[-1] += f"\n{batches.COMMIT}"
    # A script in ASCII reads the same in every encoding and needs no check.
    needs_check = not all(text.isascii() for text in later)
    first = f"{batches.UTF8_CHECK}\n{batches.BEGIN}" if needs_check else batches.BEGIN
    headers = [writer.header(DIALECT, plan) for plan in plans]
    return "\n".join(headers) + "\n\n" + batches.join_batches(first, later)


def _value(literal: exp.Expr) -> str:
    return writer.to_sql(literal, DIALECT.sqlglot_name)


def _finish(plan: DeployPlan, *, activate: bool, update_actions: bool) -> str:
    """Notes and publish. `exec` takes no expressions, so the values go through variables."""
    source_map = exp.null() if plan.source_map is None else literals.json(plan.source_map)
    description = exp.null() if plan.description is None else literals.text(plan.description)
    return "\n".join(
        (
            f"declare @v_name nvarchar(120) = {_value(literals.text(plan.name))};",
            f"declare @v_content_hash nvarchar(64) = {_value(literals.text(plan.content_hash))};",
            f"declare @v_source_map nvarchar(max) = {_value(source_map)};",
            f"declare @v_description nvarchar(max) = {_value(description)};",
            "exec wf.wf_set_version_notes @name = @v_name, @content_hash = @v_content_hash,",
            "    @source_map = @v_source_map, @description = @v_description;",
            "exec wf.wf_publish_workflow_version @name = @v_name, @content_hash = @v_content_hash,",
            f"    @activate = {int(activate)}, @update_actions = {int(update_actions)};",
        )
    )
