"""The order in which the runtime's SQL files are executed, per dialect.

Both trees use the same file names. A file that is no part of the runtime but ships with it (a
seed, a demonstration graph) is named in `NOT_INSTALLED`, so that no file is forgotten: a test
compares these lists with the folders.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Literal

Dialect = Literal["pg", "mssql"]

RUNTIME_VERSION = 1
"""Rises by one with every change of the runtime's SQL that is released."""

SCRIPTS: dict[Dialect, tuple[str, ...]] = {
    "pg": (
        "01_definition_tables.sql",
        "02_runtime_tables.sql",
        "03_engine_core.sql",
        "04_admin.sql",
        "05_runtime_parity.sql",
        "wf_canonical_json.sql",
        "wf_expressions.sql",
        "wf_templates.sql",
        "06_scopes_and_types.sql",
        "07_trace.sql",
        "wf_nodes.sql",
        "08_foreach_support.sql",
        "wf_foreach_bundles.sql",
        "wf_closing.sql",
        "wf_retries.sql",
        "wf_timers.sql",
        "wf_retry_failed_node.sql",
        "wf_event_plane.sql",
        "wf_instances.sql",
        "wf_execution_scope.sql",
        "wf_apply_validation_plan.sql",
        "wf_instance_extension.sql",
        "wf_dispatch.sql",
        "wf_worker_api.sql",
        "wf_reclaim_expired_leases.sql",
        "wf_verify_programs.sql",
        "wf_verify_graph.sql",
        "wf_publish_workflow_version.sql",
        "wf_repo_create_workflow_graph.sql",
        "wf_repo_actions.sql",
        "wf_repo_instances.sql",
        "wf_delete_definition.sql",
        "wf_test_bed_schema.sql",
        "wf_test_bed_worker.sql",
        "wf_test_bed_run.sql",
        "99_permissions.sql",
    ),
    "mssql": (
        "01_definition_tables.sql",
        "02_runtime_tables.sql",
        "wf_json_values.sql",
        "03_engine_core.sql",
        "05_runtime_parity.sql",
        "wf_canonical_json.sql",
        "wf_expressions.sql",
        "wf_templates.sql",
        "06_scopes_and_types.sql",
        "wf_verify_programs.sql",
        "wf_verify_graph.sql",
        "wf_publish_workflow_version.sql",
        "wf_test_bed_schema.sql",
    ),
}

NOT_INSTALLED: frozenset[str] = frozenset(
    {
        "workflow_seed_examples.sql",
        "workflow_tree_seed_example.sql",
        "wf_two_group_test_seed.sql",
        "wf_mc_two_group_test_seed.sql",
    }
)


def read_script(dialect: Dialect, name: str) -> str:
    """Returns the text of one file of a tree."""
    return (files("runtime_sql") / dialect / name).read_text(encoding="utf-8")
