"""The plan of a deploy script: which rows go into which table, in which order.

Before: a GraphSpec, flat and keyed. After: a `DeployPlan`, the same content as rows of the
definition tables (`runtime_sql/pg/01_definition_tables.sql` and its twin), still without any
dialect: a cell is None, bool, int or str, and a JSON cell is the text of its document.

Rows keep the order of the spec. Only the rows that versions share (actions and their revisions)
are sorted by name, so that two deploys at once lock them in one order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from compiler import json_values
from compiler.spec import GraphSpec

Cell = None | bool | int | str
Row = tuple[Cell, ...]
Kind = Literal["text", "integer", "bigint", "boolean", "json"]

# Who a row belongs to, which says when it is inserted:
# shared      unless a row with the same key is there, whatever the version
# definition  likewise, and the row carries the id of the workflow's definition
# version     only while the version is not published; the row carries the version's id
Owner = Literal["shared", "definition", "version"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    name: str
    kind: Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A definition table: `key` identifies a row that may be there already, `order_by` is the
    column in whose order rows get their generated ids."""

    name: str
    owner: Owner
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    order_by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRows:
    table: Table
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeployPlan:
    """`inserts` in an order that satisfies the foreign keys; tables without rows are left out."""

    name: str
    content_hash: str
    spec_format: int
    inserts: tuple[TableRows, ...]
    source_map: str | None
    description: str | None


def _columns(text: str) -> tuple[Column, ...]:
    """Reads `name:kind name:kind …`; a name alone is text."""
    return tuple(
        Column(name=name, kind=kind or "text")  # type: ignore[arg-type]
        for name, _, kind in (word.partition(":") for word in text.split())
    )


_DISPATCH = (
    "capability max_per_worker:integer exclusive_worker:boolean affinity_key_field "
    "prefer_previous_worker:boolean prefer_continue_group:boolean require_previous_worker:boolean "
    "max_concurrent:integer rate_per_minute:integer max_deliveries:integer"
)

WORKFLOW_DEF = Table(name="workflow_def", owner="shared", columns=_columns("name"), key=("name",))
WORKFLOW_VERSION = Table(
    name="workflow_version",
    owner="definition",
    columns=_columns("content_hash spec_format:integer outputs_json:json"),
    key=("workflow_def_id", "content_hash"),
)
WORKFLOW_ACTION = Table(
    name="workflow_action",
    owner="shared",
    columns=_columns(f"action_name {_DISPATCH}"),
    key=("action_name",),
    order_by="action_name",
)
WORKFLOW_ACTION_REVISION = Table(
    name="workflow_action_revision",
    owner="shared",
    columns=_columns(
        "action_name revision description version input_schema_json:json output_schema_json:json "
        "result_codes_json:json idempotent:boolean timeout_ms:bigint sensitive_json:json"
    ),
    key=("action_name", "revision"),
    order_by="action_name",
)
WORKFLOW_VERSION_ACTION = Table(
    name="workflow_version_action",
    owner="version",
    columns=_columns(f"action_name revision {_DISPATCH}"),
)
DATA_TYPE = Table(
    name="data_type",
    owner="version",
    columns=_columns(
        "type_id:integer parent_type_id:integer path_kind name base_type is_required:boolean "
        "is_nullable:boolean enum_json:json"
    ),
)
WORKFLOW_NODE = Table(
    name="workflow_node",
    owner="version",
    columns=_columns(
        "node_key node_type is_generated:boolean action_name action_revision attributes_json:json"
    ),
)
WORKFLOW_EDGE = Table(
    name="workflow_edge",
    owner="version",
    columns=_columns("parent_key child_key branch_kind child_order:integer case_value:json"),
)
WORKFLOW_INPUT_TEMPLATE = Table(
    name="workflow_input_template",
    owner="version",
    columns=_columns("node_key template_json:json"),
)
WORKFLOW_INPUT_BINDING = Table(
    name="workflow_input_binding",
    owner="version",
    columns=_columns("node_key pointer program_json:json"),
)
VARIABLE_OUTPUT_BINDING = Table(
    name="variable_output_binding",
    owner="version",
    columns=_columns(
        "node_key binding_order:integer binding_kind name owner_key program_json:json"
    ),
)
NODE_SCOPE_DEFAULT = Table(
    name="node_scope_default",
    owner="version",
    columns=_columns(
        "owner_key variable_order:integer name variable_kind type_id:integer is_required:boolean "
        "program_json:json"
    ),
)
COLLECTION_BINDING = Table(
    name="collection_binding",
    owner="version",
    columns=_columns("node_key binding_kind program_json:json"),
)
EVENT_SUBSCRIPTION = Table(
    name="event_subscription",
    owner="version",
    columns=_columns(
        "subscription_order:integer event_type mode filter_json:json inputs_json:json"
    ),
)


def _json(value: Any) -> str:
    json_values.check_storable(value)
    return json_values.dumps(value)


def _checked(rows: list[Row]) -> tuple[Row, ...]:
    """Text cells are checked here, JSON cells were when they became text."""
    for row in rows:
        json_values.check_storable(row)
    return tuple(rows)


def _json_or_null(value: Any) -> str | None:
    """For columns where no value is SQL's null; elsewhere JSON's null is a value like others."""
    return None if value is None else _json(value)


def _root_key(spec: GraphSpec) -> str:
    children = {edge.child for edge in spec.edges}
    return next(node.key for node in spec.nodes if node.key not in children)


def _version_rows(spec: GraphSpec, content_hash: str) -> list[Row]:
    outputs = [{"order": o.order, "name": o.name, "program": o.program} for o in spec.outputs]
    return [(content_hash, spec.spec_format, _json(outputs))]


def _dispatch_cells(spec: GraphSpec, position: int) -> Row:
    action = spec.actions[position]
    dispatch = action.dispatch
    return (
        action.capability,
        dispatch.max_per_worker,
        dispatch.exclusive_worker,
        dispatch.affinity_key_field,
        dispatch.prefer_previous_worker,
        dispatch.prefer_continue_group,
        dispatch.require_previous_worker,
        dispatch.max_concurrent,
        dispatch.rate_per_minute,
        dispatch.max_deliveries,
    )


def _action_rows(spec: GraphSpec) -> list[Row]:
    return sorted(
        ((a.name, *_dispatch_cells(spec, i)) for i, a in enumerate(spec.actions)),
        key=lambda row: str(row[0]),
    )


def _revision_rows(spec: GraphSpec) -> list[Row]:
    rows: list[Row] = [
        (
            a.name,
            a.revision,
            a.description,
            a.version,
            _json_or_null(a.input_schema),
            _json_or_null(a.output_schema),
            _json(a.result_codes),
            a.idempotent,
            a.timeout_ms,
            _json(a.sensitive),
        )
        for a in spec.actions
    ]
    return sorted(rows, key=lambda row: (str(row[0]), str(row[1])))


def _version_action_rows(spec: GraphSpec) -> list[Row]:
    return [(a.name, a.revision, *_dispatch_cells(spec, i)) for i, a in enumerate(spec.actions)]


def _type_rows(spec: GraphSpec) -> list[Row]:
    return [
        (t.id, t.parent, t.kind, t.name, t.base, t.required, t.nullable, _json_or_null(t.enum))
        for t in spec.types
    ]


def _node_rows(spec: GraphSpec) -> list[Row]:
    rows: list[Row] = []
    for node in spec.nodes:
        # Two attributes have columns of their own: what they say stands in one place only.
        rest = {k: v for k, v in node.attributes.items() if k not in ("action", "revision")}
        action, revision = node.attributes.get("action"), node.attributes.get("revision")
        rows.append((node.key, node.type, node.generated, action, revision, _json(rest)))
    return rows


def _edge_rows(spec: GraphSpec) -> list[Row]:
    return [(e.parent, e.child, e.kind, e.order, _json_or_null(e.case)) for e in spec.edges]


def _template_rows(spec: GraphSpec) -> list[Row]:
    return [(t.node, _json(t.json_)) for t in spec.templates]


def _input_binding_rows(spec: GraphSpec) -> list[Row]:
    return [(b.node, b.pointer, _json(b.program)) for b in spec.input_bindings]


def _output_binding_rows(spec: GraphSpec) -> list[Row]:
    return [
        (b.node, b.order, b.kind, b.name, b.owner, _json(b.program)) for b in spec.output_bindings
    ]


def _scope_rows(spec: GraphSpec) -> list[Row]:
    root = _root_key(spec)
    inputs: list[Row] = [
        (root, i.order, i.name, "input", i.type, i.required, _json_or_null(i.program))
        for i in spec.inputs
    ]
    variables: list[Row] = [
        (v.owner, v.order, v.name, v.kind, v.type, False, _json_or_null(v.program))
        for v in spec.vars
    ]
    return inputs + variables


def _collection_rows(spec: GraphSpec) -> list[Row]:
    return [(b.node, b.kind, _json(b.program)) for b in spec.collection_bindings]


def _subscription_rows(spec: GraphSpec) -> list[Row]:
    return [
        (order, s.event_type, s.mode, _json(s.filter), _json(s.inputs))
        for order, s in enumerate(spec.subscriptions)
    ]


def plan_deploy(spec: GraphSpec) -> DeployPlan:
    """Turns a GraphSpec into the rows of its deploy script.

    Raises:
      json_values.UnstorableValue: the spec holds a value that no database can store.
    """
    json_values.check_storable([spec.name, spec.description])
    content_hash = spec.content_hash()
    inserts: tuple[tuple[Table, list[Row]], ...] = (
        (WORKFLOW_DEF, [(spec.name,)]),
        (WORKFLOW_VERSION, _version_rows(spec, content_hash)),
        (WORKFLOW_ACTION, _action_rows(spec)),
        (WORKFLOW_ACTION_REVISION, _revision_rows(spec)),
        (WORKFLOW_VERSION_ACTION, _version_action_rows(spec)),
        (DATA_TYPE, _type_rows(spec)),
        (WORKFLOW_NODE, _node_rows(spec)),
        (WORKFLOW_EDGE, _edge_rows(spec)),
        (WORKFLOW_INPUT_TEMPLATE, _template_rows(spec)),
        (WORKFLOW_INPUT_BINDING, _input_binding_rows(spec)),
        (VARIABLE_OUTPUT_BINDING, _output_binding_rows(spec)),
        (NODE_SCOPE_DEFAULT, _scope_rows(spec)),
        (COLLECTION_BINDING, _collection_rows(spec)),
        (EVENT_SUBSCRIPTION, _subscription_rows(spec)),
    )
    source_map = None if spec.source_map is None else spec.source_map.model_dump(mode="python")
    return DeployPlan(
        name=spec.name,
        content_hash=content_hash,
        spec_format=spec.spec_format,
        inserts=tuple(
            TableRows(table=table, rows=_checked(rows)) for table, rows in inserts if rows
        ),
        source_map=_json_or_null(source_map),
        description=spec.description,
    )
