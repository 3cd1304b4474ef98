"""The order in which the runtime's SQL files are executed, per dialect.

Both trees use the same file names. An upgrade replaces all code and migrates the tables. A file
that is no part of the runtime but ships with it (a seed, a demonstration graph) is named in
`NOT_INSTALLED`, so that no file is forgotten: a test compares these lists with the folders.
"""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Literal

Dialect = Literal["pg", "mssql"]

RUNTIME_VERSION = 2
"""Rises by one with every change of the runtime's SQL that is released."""

MIGRATIONS: dict[int, str] = {1: "migrations/001_to_002.sql"}
"""By the version that it starts from: what an upgrade to the next one does to tables and rows."""

DROP_CODE = "migrations/drop_code.sql"
"""What an upgrade begins with; then come migrations, then all scripts but `TABLE_SCRIPTS`."""

TABLE_SCRIPTS: frozenset[str] = frozenset(
    {"01_definition_tables.sql", "02_runtime_tables.sql", "wf_test_bed_schema.sql"}
)
"""The only files that make what an upgrade must keep."""

_FILES = (
    "00_roles.sql",
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
    "wf_sql_collection_bindings.sql",
    "wf_foreach_bundles.sql",
    "wf_closing.sql",
    "wf_retries.sql",
    "wf_timers.sql",
    "wf_retry_failed_node.sql",
    "wf_event_retention.sql",
    "wf_event_plane.sql",
    "wf_instances.sql",
    "wf_execution_scope.sql",
    "wf_apply_validation_plan.sql",
    "wf_instance_extension.sql",
    "wf_dispatch.sql",
    "wf_worker_api.sql",
    "wf_api_keys.sql",
    "wf_gateway_calls.sql",
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
    "wf_settings.sql",
    "wf_operator_views.sql",
    "wf_operator_details.sql",
    "99_permissions.sql",
)
"""In the order in which they build on each other; the same names in both trees."""

_JSON_AT = _FILES.index("02_runtime_tables.sql") + 1
SCRIPTS: dict[Dialect, tuple[str, ...]] = {
    "pg": _FILES,
    # What PostgreSQL has built in.
    "mssql": (*_FILES[:_JSON_AT], "wf_json_values.sql", *_FILES[_JSON_AT:]),
}

NOT_INSTALLED: frozenset[str] = frozenset(
    {
        "workflow_seed_examples.sql",
        "workflow_tree_seed_example.sql",
        "wf_two_group_test_seed.sql",
        "wf_mc_two_group_test_seed.sql",
    }
)


_CREATES = re.compile(
    r"^create (?:or replace )?"
    r"(?:unlogged table|table|view|sequence|type|function|procedure) wf\.(\w+)",
    re.MULTILINE | re.IGNORECASE,
)


def declared_objects() -> frozenset[str]:
    """Returns the names of the tables, views, sequences and routines that the scripts make."""
    text = "\n".join(read_script("pg", name) for name in SCRIPTS["pg"])
    return frozenset(_CREATES.findall(text))


def install_steps() -> tuple[str, ...]:
    """Returns the files of a new installation in PostgreSQL, in their order."""
    return SCRIPTS["pg"]


def upgrade_steps(version: int) -> tuple[str, ...]:
    """Returns the files that bring a runtime of an older version up to this one."""
    roles, *others = SCRIPTS["pg"]
    code = [name for name in others if name not in TABLE_SCRIPTS]
    migrations = [MIGRATIONS[older] for older in range(version, RUNTIME_VERSION)]
    return (roles, DROP_CODE, *migrations, *code)


def read_script(dialect: Dialect, name: str) -> str:
    """Returns the text of one file of a tree."""
    return (files("runtime_sql") / dialect / name).read_text(encoding="utf-8")
