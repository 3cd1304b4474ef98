"""Attributes: what they become in the spec, and which values are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compiler.pipeline import compile_text
from compiler.spec import GraphSpec
from compiler.verify import verify_spec
from dsl.diagnostics import Diagnostic

Compiled = Callable[[str], GraphSpec]
AssertFound = Callable[[str, str, str], Diagnostic]

HEAD = "workflow w { input { n : int list : list<any> }\n"
ANY_RETRY = {"limit": 3, "backoff_ms": 1000, "factor_hundredths": 100, "max_ms": 3_600_000}
ANY_RETRY |= {"jitter": False, "on": ["any"]}


def attributes(spec: GraphSpec, key: str) -> dict[str, Any]:
    (found,) = [node.attributes for node in spec.nodes if node.key == key]
    return {k: v for k, v in found.items() if k not in ("action", "revision")}


LOWERED = {
    "timeout": ("action k = any.thing() { timeout 1m30s }", {"timeout_ms": 90_000}),
    "delay": ("action k = any.thing() { delay 2s }", {"delay_ms": 2_000}),
    "retry": ("action k = any.thing() { retry 3 }", {"retry": ANY_RETRY}),
    "retry 0": ("action k = any.thing() { retry 0 }", {}),
    "retry in full": (
        "action k = stock.reserve(order_id: 'x') { retry 3 on lease, broken, -9, 10013 "
        "# a, b\n max 1m jitter factor 1.25 backoff 2s }".replace("'", '"'),
        {
            "retry": {
                "limit": 3,
                "backoff_ms": 2_000,
                "factor_hundredths": 125,
                "max_ms": 60_000,
                "jitter": True,
                "on": ["lease", -7, -9, 10013],
            }
        },
    ),
    "dispatch": (
        'action k = any.thing() { exclusive_worker idempotent false affinity_key_field "id" }',
        {
            "dispatch": {
                "exclusive_worker": True,
                "idempotent": False,
                "affinity_key_field": "id",
            }
        },
    ),
    "limits": (
        "action k = any.thing() { max_concurrent 3 rate_per_minute 60 max_deliveries 2 "
        "idempotent }",
        {
            "dispatch": {
                "max_concurrent": 3,
                "rate_per_minute": 60,
                "max_deliveries": 2,
                "idempotent": True,
            }
        },
    ),
    "sequence": ("sequence k timeout 5s { set y = 1 }", {"timeout_ms": 5_000}),
    "sequence, inside": ("sequence k { timeout 5s set y = 1 }", {"timeout_ms": 5_000}),
    "join any": ("parallel k join any { set a = 1 set b = 2 }", {"join": 1}),
    "join all": ("parallel k join all { set a = 1 set b = 2 }", {}),
    "join 2": (
        "parallel k limit 2 join 2 keep_going timeout 1s { set a = 1 set b = 2 set c = 3 }",
        {"limit": 2, "join": 2, "keep_going": True, "timeout_ms": 1_000},
    ),
    "repeat": (
        "repeat k: 2 keep 3 timeout 1s { set a = 1 }",
        {"count": [["lit", 2]], "keep": 3, "timeout_ms": 1_000},
    ),
    "foreach": (
        "foreach k: x in var.list parallel 4 batch 10 tolerate 3 keep_going { set y = var.x }",
        {
            "item": "x",
            "parallel": 4,
            "batch": 10,
            "tolerate": {"count": 3},
            "keep_going": True,
        },
    ),
    "tolerate percent": (
        "foreach k: x in var.list tolerate 5% { set y = var.x }",
        {"item": "x", "parallel": 1, "tolerate": {"percent": 5}},
    ),
    "wait": (
        'wait_event k on "e" { timeout 3d { set y = 1 } }',
        {"event_type": "e", "timeout_ms": 259_200_000},
    ),
}


@pytest.mark.parametrize(("statement", "expected"), LOWERED.values(), ids=LOWERED.keys())
def test_attribute_becomes_this(
    compiled: Compiled, statement: str, expected: dict[str, Any]
) -> None:
    spec = compiled(HEAD + statement + "\n}")
    assert attributes(spec, "k") == expected
    assert verify_spec(spec) == ()


def test_sleep_becomes_a_sequence_of_its_own(compiled: Compiled) -> None:
    spec = compiled("workflow w { sleep 1500ms }")
    assert [(n.key, n.type, n.generated, n.attributes) for n in spec.nodes[1:]] == [
        ("sleep_1", "SEQUENCE", False, {"sleep_ms": 1_500})
    ]


def test_timeout_of_the_workflow_stands_at_the_root(compiled: Compiled) -> None:
    assert attributes(compiled("workflow w { timeout 1h set y = 1 }"), "w") == {
        "timeout_ms": 3_600_000
    }


def test_handlers_are_generated_bodies_after_the_children(compiled: Compiled) -> None:
    spec = compiled(
        "workflow w { sequence s { set a = 1 set b = 2 } on_error { set c = ctx.error.code }\n"
        "finally { set d = 4 } }"
    )
    edges = [(e.kind, e.order, e.child) for e in spec.edges if e.parent == "s"]
    assert edges == [
        ("SEQUENCE", 0, "s.set_1"),
        ("SEQUENCE", 1, "s.set_2"),
        ("ON_ERROR", 2, "s.on_error"),
        ("FINALLY", 3, "s.finally"),
    ]
    assert {n.key for n in spec.nodes if n.generated} == {"s.on_error", "s.finally"}


def test_timeout_body_hangs_on_a_timeout_edge(compiled: Compiled) -> None:
    spec = compiled('workflow w { wait_event k on "e" { timeout 1s { set y = 1 } } }')
    assert [(e.kind, e.child) for e in spec.edges if e.parent == "k"] == [("TIMEOUT", "k.timeout")]


def test_item_of_a_batch_is_a_list(assert_found: AssertFound) -> None:
    assert_found(
        "workflow w { input { l : list<{ sku: string }> }\n"
        "foreach x in var.l batch 2 { set y = var.x«.sku» } }",
        "WF213",
        'a list has no field "sku"',
    )


# --- subscriptions -----------------------------------------------------------------------------


def test_on_event_becomes_a_subscription(compiled: Compiled) -> None:
    spec = compiled(
        "workflow w { input { a : int b : int = 1 }\n"
        'on event "e" start_or_signal { where region.code == "eu" where n == 2 '
        "input { a = event.payload.x } }\nset y = var.a + var.b }"
    )
    (row,) = spec.subscriptions
    assert (row.event_type, row.mode) == ("e", "start_or_signal")
    assert row.filter == [
        {"path": ["region", "code"], "value": "eu"},
        {"path": ["n"], "value": 2},
    ]
    assert row.inputs == [{"name": "a", "program": [["event", ["payload", "x"]]]}]


def test_event_that_names_no_input_gives_its_payload(compiled: Compiled) -> None:
    spec = compiled('workflow w { input { a : int } on event "e" start set y = var.a }')
    assert spec.subscriptions[0].inputs == [{"name": "a", "program": [["event", ["payload", "a"]]]}]


def test_declared_signal_takes_the_place_of_the_unfiltered_one(compiled: Compiled) -> None:
    spec = compiled(
        'workflow w { on event "e" signal { where a == 1 }\n'
        'wait_event x on "e" { timeout 1s } wait_event y on "f" { timeout 1s } }'
    )
    assert [(row.event_type, len(row.filter)) for row in spec.subscriptions] == [("e", 1), ("f", 0)]


# --- the catalog -------------------------------------------------------------------------------

CATALOG = """\
actions:
  - name: a.b
    timeout: 30s
    retry: {attempts: 2, backoff: 2s, factor: 1.5, jitter: true}
    sensitive: [/input/password]
    dispatch: {max_per_worker: 3, exclusive_worker: true}
"""


@pytest.fixture
def with_catalog(tmp_path: Path) -> Callable[[str, str], tuple[Any, tuple[Diagnostic, ...]]]:
    def compile_with(catalog: str, text: str) -> tuple[Any, tuple[Diagnostic, ...]]:
        path = tmp_path / "own.actions.yaml"
        path.write_text(catalog, "utf-8")
        result = compile_text(text, "w.wf", [path])
        return (result.specs[0] if result.specs else None), result.diagnostics

    return compile_with


def test_times_of_the_catalog_stand_in_the_node(with_catalog: Any) -> None:
    spec, _found = with_catalog(CATALOG, "workflow w { action k = a.b() }")
    found = attributes(spec, "k")
    assert found["timeout_ms"] == 30_000
    assert found["retry"] == {
        "limit": 2,
        "backoff_ms": 2_000,
        "factor_hundredths": 150,
        "max_ms": 3_600_000,
        "jitter": True,
        "on": ["any"],
    }
    (action,) = spec.actions
    assert (action.timeout_ms, action.sensitive) == (30_000, ["/input/password"])
    assert (action.dispatch.max_per_worker, action.dispatch.exclusive_worker) == (3, True)


def test_own_times_win_over_the_catalog(with_catalog: Any) -> None:
    spec, _found = with_catalog(CATALOG, "workflow w { action k = a.b() { timeout 1s retry 0 } }")
    assert attributes(spec, "k") == {"timeout_ms": 1_000}


@pytest.mark.parametrize("change", [("30s", "31s"), ("attempts: 2", "attempts: 3")])
def test_times_are_part_of_the_revision(with_catalog: Any, change: tuple[str, str]) -> None:
    text = "workflow w { action k = a.b() }"
    one, _found = with_catalog(CATALOG, text)
    other, _found = with_catalog(CATALOG.replace(*change), text)
    assert one.actions[0].revision != other.actions[0].revision


def test_dispatch_is_no_part_of_the_revision(with_catalog: Any) -> None:
    text = "workflow w { action k = a.b() }"
    one, _found = with_catalog(CATALOG, text)
    other, _found = with_catalog(CATALOG.replace("worker: 3", "worker: 4"), text)
    assert one.actions[0].revision == other.actions[0].revision


@pytest.mark.parametrize(
    ("old", "new", "message", "place"),
    [
        ("30s", "0s", "a duration must be longer than nothing", (3, 14)),
        ("2s", "1s1s", "a unit stands twice in one duration", (4, 35)),
        ("1.5", "1.505", "a factor has at most two decimal places", (4, 47)),
    ],
)
def test_catalog_with_bad_times(
    with_catalog: Any, old: str, new: str, message: str, place: tuple[int, int]
) -> None:
    _spec, found = with_catalog(CATALOG.replace(old, new), "workflow w { action k = a.b() }")
    position = found[0].source.position(found[0].span.start)
    assert [(d.code, d.message) for d in found] == [("WF303", message)]
    assert (position.line, position.column) == place


# --- what is refused ---------------------------------------------------------------------------

ACTION = 'action a = stock.reserve(order_id: "x") {{ {} }}'
REFUSED = {
    "join past the branches": (
        "parallel join «3» { set a = 1 set b = 2 }",
        "WF109",
        "`join 3` can never be: this parallel has 2 branches",
    ),
    "join some": (
        "parallel join «some» { set a = 1 }",
        "WF109",
        "`join` takes `all`, `any` or an integer, not `some`",
    ),
    "batch 0": (
        "foreach x in var.list batch «0» { set y = var.x }",
        "WF109",
        "`batch 0` is out of range: 1 to 2147483647",
    ),
    "101 percent": (
        "foreach x in var.list tolerate «101»% { set y = var.x }",
        "WF109",
        "`tolerate 101` is out of range: 0 to 100",
    ),
    "max_concurrent 0": (
        ACTION.format("max_concurrent «0»"),
        "WF109",
        "`max_concurrent 0` is out of range: 1 to 2147483647",
    ),
    "rate_per_minute of a variable": (
        ACTION.format("rate_per_minute «var.n»"),
        "WF109",
        "`rate_per_minute` takes an integer, written out",
    ),
    "max_deliveries -1": (
        ACTION.format("max_deliveries «-1»"),
        "WF109",
        "`max_deliveries -1` is out of range: 1 to 2147483647",
    ),
    "keep 0": (
        "repeat 2 keep «0» { set a = 1 }",
        "WF109",
        "`keep 0` is out of range: 1 to 2147483647",
    ),
    "no time": (
        ACTION.format("timeout «0s»"),
        "WF109",
        "`timeout` takes a duration longer than nothing",
    ),
    "no sleep": ("sleep «0s»", "WF109", "`sleep` takes a duration longer than nothing"),
    "no wait": (
        'wait_event e on "x" { timeout «0s» }',
        "WF109",
        "`timeout` takes a duration longer than nothing",
    ),
    "retry twice": (
        ACTION.format("retry 2 max 5s «max» 6s"),
        "WF109",
        "`max` is given twice in this `retry`",
    ),
    "factor": (
        ACTION.format("retry 2 factor «0.5»"),
        "WF109",
        "`factor` takes a number from 1 to 100 with at most two decimal places",
    ),
    "max under backoff": (
        ACTION.format("retry 2 backoff 5s max «2s»"),
        "WF109",
        "`max` is shorter than `backoff`, so every delay is `max`",
    ),
    "engine code": (
        ACTION.format("retry 2 on «10009»"),
        "WF109",
        "a retry is on a negative result code or 10013",
    ),
    "unknown code": (
        ACTION.format("retry 2 on «brocken»"),
        "WF112",
        'stock.reserve has no result code "brocken"',
    ),
    "success": (
        ACTION.format("retry 2 on any, «short»"),
        "WF109",
        '"short" is a success, and only failures are tried again',
    ),
    "ctx.error outside": (
        "set a = «ctx.error.code»",
        "WF203",
        "`ctx.error` stands only inside `on_error` and `finally`",
    ),
    "ctx.error field": (
        "sequence { set a = 1 } on_error { set b = ctx.error«.kode» }",
        "WF213",
        'unknown field "kode"',
    ),
    "longer timeout": (
        "sequence { timeout 5s " + ACTION.format("timeout «6s»") + " }",
        "WF123",
        "this timeout is longer than the one around it, so it is never reached",
    ),
    "wait for ever": (
        'wait_event «e» on "x"',
        "WF124",
        "this waits for ever when the event does not come",
    ),
    "shared wait": (
        'foreach x in var.list parallel { set y = var.x wait_event «e» on "x" { timeout 1s } }',
        "WF307",
        "each event of this type ends only one of these waits, and any of them",
    ),
}


@pytest.mark.parametrize(("statement", "code", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_makes_no_sense_is_found(
    assert_found: AssertFound, statement: str, code: str, message: str
) -> None:
    assert_found(HEAD + statement + "\n}", code, message)


SUBSCRIPTIONS = {
    "missing input": (
        '«on event "e" start» { input { a = event.payload.a } }',
        "WF131",
        "this event cannot start the workflow: it gives no input b",
    ),
    "unknown input": (
        'on event "e" start { input { a = 1, b = 2, «c» = 3 } }',
        "WF131",
        'the workflow has no input "c"',
    ),
    "input of a signal": (
        'on event "e" signal { input { «a» = 1 } }',
        "WF131",
        "an event that only signals gives no input",
    ),
    "variable": (
        'on event "e" start { input { a = «var.b», b = 2 } }',
        "WF203",
        "`var` cannot be read here: only the event is there yet",
    ),
    "field of the event": (
        'on event "e" start { input { a = event«.pay».a, b = 2 } }',
        "WF213",
        'an event has no field "pay"',
    ),
}


@pytest.mark.parametrize(
    ("declaration", "code", "message"), SUBSCRIPTIONS.values(), ids=SUBSCRIPTIONS.keys()
)
def test_subscription_that_does_not_fit(
    assert_found: AssertFound, declaration: str, code: str, message: str
) -> None:
    text = f"workflow w {{ input {{ a : int b : int }}\n{declaration}\nset y = var.a + var.b }}"
    assert_found(text, code, message)
