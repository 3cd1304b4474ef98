"""A small builder of GraphSpecs, so that tests of the runner do not lean on the compiler.

`workflow([action("a", "x.do"), …])` numbers edges, makes the generated bodies and fills the rows.
The root's key is `w`; programs are written out, with `var` and `lit` as short forms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from compiler.spec import GraphSpec

Instructions = list[list[Any]]


@dataclass
class Part:
    key: str
    type: str
    attributes: dict[str, Any] = field(default_factory=dict)
    edges: list[tuple[str, list[Any] | None, Part]] = field(default_factory=list)
    generated: bool = False
    template: Any = None
    bindings: dict[str, Instructions] = field(default_factory=dict)
    sets: list[tuple[str, str, Instructions]] = field(default_factory=list)
    collects: list[tuple[str, str, Instructions]] = field(default_factory=list)
    collection: Instructions | None = None
    variables: list[tuple[str, str, Instructions | None]] = field(default_factory=list)


def lit(value: Any) -> Instructions:
    return [["lit", value]]


def var(name: str, *steps: Any, owner: str = "w") -> Instructions:
    return [["var", name, owner, list(steps)]]


def ctx(root: str, *steps: Any) -> Instructions:
    return [["ctx", root, list(steps)]]


def action(key: str, name: str = "do", template: Any = None, **more: Any) -> Part:
    sets, bindings = more.pop("sets", []), more.pop("bindings", {})
    return Part(
        key,
        "ACTION",
        {"action": name, "revision": "r", **more},
        template={} if template is None else template,
        sets=_owned(sets),
        bindings=bindings,
    )


def _owned(sets: Sequence[tuple[Any, ...]]) -> list[tuple[str, str, Instructions]]:
    return [entry if len(entry) == 3 else (entry[0], "w", entry[1]) for entry in sets]


def assign(key: str, name: str, program: Instructions, owner: str = "w") -> Part:
    return Part(key, "SEQUENCE", sets=[(name, owner, program)])


def fail(key: str, code: int, message: Instructions) -> Part:
    return Part(key, "SEQUENCE", {"fail": {"code": code, "message": message}})


def sequence(key: str, children: Sequence[Part], generated: bool = False, **more: Any) -> Part:
    edges: list[Any] = [("SEQUENCE", None, child) for child in children]
    return Part(key, "SEQUENCE", {}, edges, generated, **more)


def guarded(
    key: str,
    children: Sequence[Part],
    on_error: Sequence[Part] | None = None,
    final: Sequence[Part] | None = None,
    timeout_ms: int | None = None,
) -> Part:
    """A sequence with `on_error { … }` and `finally { … }`."""
    part = sequence(key, children)
    if timeout_ms is not None:
        part.attributes["timeout_ms"] = timeout_ms
    if on_error is not None:
        part.edges.append(("ON_ERROR", None, sequence(f"{key}.on_error", on_error, True)))
    if final is not None:
        part.edges.append(("FINALLY", None, sequence(f"{key}.finally", final, True)))
    return part


def sleep(key: str, sleep_ms: int) -> Part:
    return Part(key, "SEQUENCE", {"sleep_ms": sleep_ms})


def parallel(key: str, children: Sequence[Part], limit: int | None = None, **more: Any) -> Part:
    edges = [("PARALLEL", None, child) for child in children]
    return Part(key, "PARALLEL", more if limit is None else {"limit": limit, **more}, edges)


def if_(
    key: str, condition: Instructions, then: Sequence[Part], otherwise: Sequence[Part] | None = None
) -> Part:
    edges: list[Any] = [("THEN", None, sequence(f"{key}.then", then, True))]
    if otherwise is not None:
        edges.append(("ELSE", None, sequence(f"{key}.else", otherwise, True)))
    return Part(key, "IF", {"condition": condition}, edges)


def switch(
    key: str,
    subject: Instructions,
    cases: Sequence[tuple[list[Any], Sequence[Part]]],
    default: Sequence[Part] | None = None,
) -> Part:
    edges: list[Any] = [
        ("CASE", values, sequence(f"{key}.case_{number}", children, True))
        for number, (values, children) in enumerate(cases)
    ]
    if default is not None:
        edges.append(("DEFAULT", None, sequence(f"{key}.default", default, True)))
    return Part(key, "SWITCH", {"subject": subject}, edges)


def _loop(key: str, type: str, attributes: dict[str, Any], children: Sequence[Part]) -> Part:
    names = [attributes[name] for name in ("item", "index", "counter") if name in attributes]
    body = sequence(
        f"{key}.body", children, True, variables=[(name, "loop", None) for name in names]
    )
    return Part(key, type, attributes, [("BODY", None, body)])


def repeat(
    key: str, count: Instructions, children: Sequence[Part], counter: str | None = None
) -> Part:
    attributes: dict[str, Any] = {"count": count}
    if counter is not None:
        attributes["counter"] = counter
    return _loop(key, "REPEAT", attributes, children)


def while_(key: str, condition: Instructions, children: Sequence[Part], max: int = 10_000) -> Part:
    return _loop(key, "WHILE", {"condition": condition, "max": max}, children)


def foreach(
    key: str,
    item: str,
    collection: Instructions,
    children: Sequence[Part],
    parallel: int = 1,
    index: str | None = None,
    collects: Sequence[tuple[Any, ...]] = (),
    **more: Any,
) -> Part:
    attributes: dict[str, Any] = {"item": item, "parallel": parallel, **more}
    if index is not None:
        attributes["index"] = index
    part = _loop(key, "FOREACH", attributes, children)
    part.collection = collection
    part.collects = _owned(collects)
    return part


def workflow(
    children: Sequence[Part],
    inputs: Sequence[dict[str, Any]] = (),
    types: Sequence[dict[str, Any]] = (),
    variables: Sequence[tuple[str, str, Instructions | None]] = (),
    outputs: Sequence[tuple[str, Instructions]] = (),
    timeout_ms: int | None = None,
) -> GraphSpec:
    root = sequence("w", children, variables=list(variables))
    if timeout_ms is not None:
        root.attributes["timeout_ms"] = timeout_ms
    rows: dict[str, list[Any]] = {
        name: []
        for name in ("vars", "nodes", "edges", "templates", "input_bindings", "output_bindings")
    }
    rows["collection_bindings"] = []
    pending = [root]
    while pending:
        part = pending.pop()
        _add(part, rows)
        pending.extend(child for _kind, _case, child in reversed(part.edges))
    return GraphSpec.model_validate(
        {
            "spec_format": 1,
            "name": "w",
            "description": None,
            "types": list(types),
            "inputs": [{"order": i, **row} for i, row in enumerate(inputs)],
            "outputs": [{"order": i, "name": n, "program": p} for i, (n, p) in enumerate(outputs)],
            "actions": [],
            "subscriptions": [],
            "source_map": None,
            **rows,
        }
    )


def _add(part: Part, rows: dict[str, list[Any]]) -> None:
    key = part.key
    rows["nodes"].append(
        {
            "key": key,
            "type": part.type,
            "generated": part.generated,
            "attributes": part.attributes,
        }
    )
    for order, (kind, case, child) in enumerate(part.edges):
        rows["edges"].append(
            {"parent": key, "child": child.key, "kind": kind, "order": order, "case": case}
        )
    for order, (name, kind, program) in enumerate(part.variables):
        rows["vars"].append(
            {
                "owner": key,
                "order": order,
                "name": name,
                "kind": kind,
                "type": None,
                "program": program,
            }
        )
    if part.type == "ACTION":
        rows["templates"].append({"node": key, "json": part.template})
    for pointer, program in part.bindings.items():
        rows["input_bindings"].append({"node": key, "pointer": pointer, "program": program})
    for kind, entries in (("var", part.sets), ("collect", part.collects)):
        for order, (name, owner, program) in enumerate(entries):
            rows["output_bindings"].append(
                {
                    "node": key,
                    "order": order,
                    "kind": kind,
                    "name": name,
                    "owner": owner,
                    "program": program,
                }
            )
    if part.collection is not None:
        rows["collection_bindings"].append(
            {"node": key, "kind": "program", "program": part.collection}
        )
