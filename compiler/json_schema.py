"""JSON Schema 2020-12 of what a workflow takes and gives, for tools: forms, editors, clients.

    input { order : string, qty : int = 1 }
    {"type": "object", "properties": {"order": {"type": "string"},
     "qty": {"type": "integer", "default": 1}}, "required": ["order"], …}

Engines check the type table (R5), never these. The two accept the same values, but that JSON Schema
calls `2.0` an integer and the type table does not. More fields than declared are allowed in both.
The schema of an output says what is known: of an action's output what its catalog says.
"""

from __future__ import annotations

from typing import Any

from compiler.expressions import NOT_LITERAL, literal_value, lone_reference, post_order
from compiler.infer import types_of
from compiler.model import Model
from compiler.type_model import Field, Type, json_schema
from dsl.nodes import Expr, ListExpr, ObjectExpr, Reference, TemplateString
from dsl.quick_class import replace

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def input_schema(model: Model) -> dict[str, Any]:
    """Returns the schema of a start context of a workflow in which no check found an error.

    `default` is given where it is written out; one that is computed is not.
    """
    properties: dict[str, Any] = {}
    required = []
    for variable in model.root.variables.values():
        if variable.kind != "input":
            continue
        schema = json_schema(variable.type)
        if variable.initial is None:
            required.append(variable.name)
        else:
            default = constant_value(variable.initial)
            schema |= {} if default is NOT_LITERAL else {"default": default}
        properties[variable.name] = schema
    return _document(model, "input", properties, required)


def output_schema(model: Model) -> dict[str, Any]:
    """Returns the schema of the output of an instance that has succeeded; null if it has none."""
    outputs = model.workflow.outputs
    if not outputs:
        return {"$schema": DIALECT, "title": f"output of {model.root.key}", "type": "null"}
    properties = {
        output.name.text: json_schema(_output_type(model, output.value)) for output in outputs
    }
    return _document(model, "output", properties, list(properties))


def _document(
    model: Model, what: str, properties: dict[str, Any], required: list[str]
) -> dict[str, Any]:
    schema: dict[str, Any] = {"$schema": DIALECT, "title": f"{what} of {model.root.key}"}
    if model.workflow.description is not None:
        schema["description"] = model.workflow.description
    schema |= {"type": "object", "properties": properties}
    return schema | ({"required": required} if required else {})


def constant_value(expr: Expr) -> Any:
    """Returns the JSON value that an expression writes out, or `NOT_LITERAL`."""
    done: dict[int, Any] = {}
    for part in post_order(expr):
        match part:
            case ListExpr(items=items):
                parts = [done[id(item)] for item in items]
                whole: Any = parts
            case ObjectExpr(entries=entries):
                parts = [done[id(entry.value)] for entry in entries]
                whole = {entry.key: done[id(entry.value)] for entry in entries}
            case _:
                parts, whole = [], literal_value(part)
        done[id(part)] = NOT_LITERAL if any(p is NOT_LITERAL for p in parts) else whole
    return done[id(expr)]


def _output_type(model: Model, expr: Expr) -> Type:
    """Returns the type of an output; a variable that may never be set gives null there (R16)."""
    known = types_of(model, expr)
    for part in post_order(expr):
        reference = lone_reference(part) if isinstance(part, Reference | TemplateString) else None
        if reference is not None and _may_be_unset(model, reference):
            known[id(part)] = replace(known[id(part)], nullable=True)
        elif isinstance(part, ListExpr):
            types = {known[id(item)] for item in part.items}
            known[id(part)] = Type("list", item=types.pop() if len(types) == 1 else None)
        elif isinstance(part, ObjectExpr):
            fields = tuple(Field(e.key, False, known[id(e.value)]) for e in part.entries)
            known[id(part)] = Type("object", fields=fields)
    return known[id(expr)]


def _may_be_unset(model: Model, reference: Reference) -> bool:
    variable = model.resolved.get(id(reference)) if reference.root == "var" else None
    return variable is not None and variable.kind != "input" and variable.initial is None
