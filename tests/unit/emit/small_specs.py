"""One small GraphSpec per node type, and the spec that holds every awkward text."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from compiler.spec import (
    ActionRow,
    CollectionBindingRow,
    Dispatch,
    EdgeKind,
    EdgeRow,
    GraphSpec,
    InputBindingRow,
    InputRow,
    NodeRow,
    NodeType,
    OutputBindingRow,
    OutputRow,
    SourceMap,
    SubscriptionRow,
    TemplateRow,
    TypeRow,
    VarRow,
)

REVISION = "5f" * 32
Edge = tuple[str, str, EdgeKind] | tuple[str, str, EdgeKind, list[Any]]


def node(key: str, type_: NodeType, generated: bool = False, **attributes: Any) -> NodeRow:
    return NodeRow(key=key, type=type_, generated=generated, attributes=attributes)


def action(key: str, name: str = "stock.reserve", **attributes: Any) -> NodeRow:
    return node(key, "ACTION", action=name, revision=REVISION, **attributes)


def edges(*rows: Edge) -> list[EdgeRow]:
    """Edges with their order counted per parent."""
    counts: dict[str, int] = {}
    result = []
    for parent, child, kind, *case in rows:
        order = counts.setdefault(parent, 0)
        counts[parent] += 1
        values = case[0] if case else None
        result.append(EdgeRow(parent=parent, child=child, kind=kind, order=order, case=values))
    return result


def catalog_row(name: str, **more: Any) -> ActionRow:
    fields: dict[str, Any] = {
        "name": name,
        "revision": REVISION,
        "description": None,
        "version": None,
        "capability": name.partition(".")[0],
        "input_schema": None,
        "output_schema": None,
        "result_codes": {"0": "OK"},
        "idempotent": True,
        "timeout_ms": None,
        "sensitive": [],
        "dispatch": Dispatch(),
    }
    return ActionRow(**(fields | more))


def spec(name: str, nodes: Sequence[NodeRow], edge_rows: list[EdgeRow], **lists: Any) -> GraphSpec:
    names = {n.attributes["action"]: None for n in nodes if n.type == "ACTION"}
    fields: dict[str, Any] = {
        "spec_format": 1,
        "name": name,
        "description": None,
        "types": [],
        "inputs": [],
        "vars": [],
        "outputs": [],
        "nodes": list(nodes),
        "edges": edge_rows,
        "templates": [
            TemplateRow(node=n.key, json={"id": "${ctx.instance_id}"})
            for n in nodes
            if n.type == "ACTION"
        ],
        "input_bindings": [],
        "output_bindings": [],
        "collection_bindings": [],
        "actions": [catalog_row(action_name) for action_name in names],
        "subscriptions": [],
        "source_map": SourceMap(
            file=f"{name}.wf", nodes={n.key: (row, 3) for row, n in enumerate(nodes, 1)}
        ),
    }
    return GraphSpec(**(fields | lists))


def _action() -> GraphSpec:
    return spec(
        "one_action",
        [node("one_action", "SEQUENCE"), action("reserve", priority=5, lease_ms=60_000)],
        edges(("one_action", "reserve", "SEQUENCE")),
        description="reserves what was ordered",
        types=[
            TypeRow(
                id=0,
                parent=None,
                kind="root",
                name=None,
                base="string",
                required=True,
                nullable=False,
                enum=["a", "b"],
            )
        ],
        inputs=[InputRow(order=0, name="order_id", type=0, required=True, program=None)],
        vars=[
            VarRow(
                owner="one_action",
                order=0,
                name="reserved",
                kind="var",
                type=None,
                program=[["lit", Decimal("1.50")]],
            )
        ],
        outputs=[
            OutputRow(order=0, name="reserved", program=[["var", "reserved", "one_action", []]])
        ],
        input_bindings=[
            InputBindingRow(node="reserve", pointer="/n", program=[["lit", 1], ["lit", 2], ["add"]])
        ],
        output_bindings=[
            OutputBindingRow(
                node="reserve",
                order=0,
                kind="var",
                name="reserved",
                owner="one_action",
                program=[["out", ["quantity"]]],
            )
        ],
        actions=[
            catalog_row(
                "stock.reserve",
                description="reserves stock",
                version="2",
                input_schema={"type": "object"},
                timeout_ms=30_000,
                sensitive=["/card"],
                dispatch=Dispatch(max_per_worker=2, exclusive_worker=True),
            )
        ],
    )


def _sequence() -> GraphSpec:
    fail = {"code": -20, "message": [["lit", "no stock"]]}
    return spec(
        "steps",
        [node("steps", "SEQUENCE"), action("first"), node("fail_1", "SEQUENCE", fail=fail)],
        edges(("steps", "first", "SEQUENCE"), ("steps", "fail_1", "SEQUENCE")),
    )


def _parallel() -> GraphSpec:
    return spec(
        "both",
        [
            node("both", "SEQUENCE"),
            node("parallel_1", "PARALLEL", limit=2),
            action("a"),
            action("b"),
        ],
        edges(
            ("both", "parallel_1", "SEQUENCE"),
            ("parallel_1", "a", "PARALLEL"),
            ("parallel_1", "b", "PARALLEL"),
        ),
    )


def _if() -> GraphSpec:
    return spec(
        "choice",
        [
            node("choice", "SEQUENCE"),
            node("if_1", "IF", condition=[["var", "paid", "choice", []]]),
            node("if_1.then", "SEQUENCE", generated=True),
            action("ship"),
            node("if_1.else", "SEQUENCE", generated=True),
            action("remind"),
        ],
        edges(
            ("choice", "if_1", "SEQUENCE"),
            ("if_1", "if_1.then", "THEN"),
            ("if_1.then", "ship", "SEQUENCE"),
            ("if_1", "if_1.else", "ELSE"),
            ("if_1.else", "remind", "SEQUENCE"),
        ),
    )


def _switch() -> GraphSpec:
    return spec(
        "cases",
        [
            node("cases", "SEQUENCE"),
            node("switch_1", "SWITCH", subject=[["ctx", "task", ["a", "resultCode"]]]),
            node("switch_1.case_0", "SEQUENCE", generated=True),
            action("a"),
            node("switch_1.default", "SEQUENCE", generated=True),
            action("b"),
        ],
        edges(
            ("cases", "switch_1", "SEQUENCE"),
            ("switch_1", "switch_1.case_0", "CASE", [0, "zero", None]),
            ("switch_1.case_0", "a", "SEQUENCE"),
            ("switch_1", "switch_1.default", "DEFAULT"),
            ("switch_1.default", "b", "SEQUENCE"),
        ),
    )


def _loop(name: str, key: str, type_: NodeType, **attributes: Any) -> GraphSpec:
    loop_variables = [
        VarRow(
            owner=f"{key}.body", order=order, name=variable, kind="loop", type=None, program=None
        )
        for order, variable in enumerate(("item", "i") if type_ == "FOREACH" else ())
    ]
    bindings = CollectionBindingRow(
        node=key, kind="context", program=[["ctx", "context", ["items"]]]
    )
    collect = OutputBindingRow(
        node=key,
        order=0,
        kind="collect",
        name="parcels",
        owner=name,
        program=[["ctx", "task", ["pack", "output", "parcel"]]],
    )
    is_foreach = type_ == "FOREACH"
    return spec(
        name,
        [
            node(name, "SEQUENCE"),
            node(key, type_, **attributes),
            node(f"{key}.body", "SEQUENCE", generated=True),
            action("pack"),
        ],
        edges(
            (name, key, "SEQUENCE"),
            (key, f"{key}.body", "BODY"),
            (f"{key}.body", "pack", "SEQUENCE"),
        ),
        vars=loop_variables,
        collection_bindings=[bindings] if is_foreach else [],
        output_bindings=[collect] if is_foreach else [],
    )


def _wait_event() -> GraphSpec:
    return spec(
        "delivery",
        [
            node("delivery", "SEQUENCE"),
            node(
                "delivered",
                "WAIT_EVENT",
                event_type="courier.delivered",
                correlate=[["var", "order_id", "delivery", []]],
            ),
        ],
        edges(("delivery", "delivered", "SEQUENCE")),
        subscriptions=[
            SubscriptionRow(
                event_type="courier.delivered", mode="signal_wait", filter=[], inputs=[]
            )
        ],
    )


NODE_TYPES: dict[str, GraphSpec] = {
    "action": _action(),
    "sequence": _sequence(),
    "parallel": _parallel(),
    "if": _if(),
    "switch": _switch(),
    "repeat": _loop("again", "repeat_1", "REPEAT", count=[["lit", 3]], counter="i"),
    "while": _loop("until", "while_1", "WHILE", condition=[["lit", False]], max=10),
    "foreach": _loop(
        "each",
        "foreach_1",
        "FOREACH",
        item="item",
        index="i",
        parallel=4,
        reuse={"fingerprint": "7a" * 32, "reads": [["var", "i", "foreach_1.body", []]]},
    ),
    "wait_event": _wait_event(),
}

AWKWARD_TEXTS = (
    "it's",
    "back\\slash and \\n and trailing \\",
    "two\nlines\r\nthree",
    "\nGO\n",
    "go",
    "-- no comment; drop table x; /* */",
    "$(variable) $$(x) $ (y) $",
    "emoji 😀 and 漢字 and é",
    "line\u2028separator\u2029and\u202ebidi\u200bzero\ufeffbom",
    "tab\tbell\x07del\x7f",
    ":name :'name' %s ? @x {0}",
    "''''",
    " leading and trailing ",
    "",
)
LONG_TEXTS = ("x" * 4_001, "😀" * 2_001, "$(" * 2_500)


def awkward(texts: Sequence[str] = AWKWARD_TEXTS + LONG_TEXTS) -> GraphSpec:
    """Every awkward text in every kind of column that takes free text."""
    everything = "".join(texts)
    return spec(
        "awkward",
        [node("awkward", "SEQUENCE"), action("a", name="odd 'name' $(x)\n😀")],
        edges(("awkward", "a", "SEQUENCE")),
        description=everything,
        templates=[TemplateRow(node="a", json={text[:256]: text for text in texts})],
        actions=[
            catalog_row(
                "odd 'name' $(x)\n😀", description=everything, version="\u2028", capability="c"
            )
        ],
        source_map=SourceMap(file="it's $(x).wf", nodes={"awkward": (1, 1), "a": (2, 1)}),
    )


def wide(count: int) -> GraphSpec:
    """A sequence of `count` actions."""
    keys = [f"step_{number}" for number in range(count)]
    return spec(
        "wide",
        [node("wide", "SEQUENCE"), *(action(key) for key in keys)],
        edges(*(("wide", key, "SEQUENCE") for key in keys)),
    )
