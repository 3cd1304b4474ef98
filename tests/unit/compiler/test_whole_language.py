"""All that an author can write compiles, in one program, and becomes a script in both dialects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

from compiler.checks.references import CTX_NAMES
from compiler.pipeline import compile_file
from compiler.spec import EdgeKind, GraphSpec, NodeType
from compiler.supported import ATTRIBUTES, DISPATCH
from compiler.verify import verify_spec
from compiler.verify_programs import _BINARY, _UNARY
from emit_mssql.emitter import emit as emit_mssql
from emit_pg.emitter import emit as emit_pg

PROGRAM = Path(__file__).with_name("programs") / "whole" / "whole.wf"
WRITTEN_OTHERWISE = {"lease": "lease_ms", "delay": "delay_ms", "timeout": "timeout_ms"}


@pytest.fixture(scope="module")
def specs() -> tuple[GraphSpec, ...]:
    result = compile_file(PROGRAM)
    assert [found.message for found in result.diagnostics if found.severity == "error"] == []
    return result.specs


@pytest.fixture(scope="module")
def whole(specs: tuple[GraphSpec, ...]) -> GraphSpec:
    return specs[1]


def instructions(value: Any) -> Iterator[list[Any]]:
    """Yields every list within a document that begins with a string, instructions among them."""
    pending = [value]
    while pending:
        current = pending.pop()
        if isinstance(current, dict):
            pending.extend(current.values())
        elif isinstance(current, list):
            pending.extend(current)
            if current and isinstance(current[0], str):
                yield current


def test_it_is_sound(specs: tuple[GraphSpec, ...]) -> None:
    assert [verify_spec(spec) for spec in specs] == [(), ()]


@pytest.mark.parametrize("emit", [emit_pg, emit_mssql], ids=["pg", "mssql"])
def test_it_becomes_a_script(
    specs: tuple[GraphSpec, ...], emit: Callable[[GraphSpec], str]
) -> None:
    assert all("wf_publish_workflow_version" in emit(spec) for spec in specs)


def test_it_has_every_type_of_node_and_edge(whole: GraphSpec) -> None:
    assert {node.type for node in whole.nodes} == set(get_args(NodeType))
    assert {edge.kind for edge in whole.edges} == set(get_args(EdgeKind))


def test_it_has_every_attribute(whole: GraphSpec) -> None:
    given: dict[str, set[str]] = {}
    for node in whole.nodes:
        names = {*node.attributes, *node.attributes.get("dispatch", {})}
        given.setdefault(node.type.lower(), set()).update(names)
    missing = [
        (kind, name)
        for kind, names in ATTRIBUTES.items()
        for name in names
        if WRITTEN_OTHERWISE.get(name, name)
        not in given.get(kind.replace("workflow", "sequence"), ())
    ]
    assert missing == []


def test_it_says_every_dispatch_column_in_the_catalog(whole: GraphSpec) -> None:
    (action,) = [action for action in whole.actions if action.name == "stock.reserve"]
    columns = action.dispatch.model_dump()
    assert {name for name, value in columns.items() if value} == set(DISPATCH) - {"idempotent"}
    assert (action.idempotent, action.sensitive) == (
        False,
        ["/input/order_id", "/output/rows/0/id"],
    )


def test_it_has_every_operator(whole: GraphSpec) -> None:
    found = {instruction[0] for instruction in instructions(whole.to_json_value())}
    wanted = _UNARY | _BINARY | {"jf", "jt", "alt", "defined", "arr", "obj", "cat", "lit"}
    assert wanted - found == set()


def test_it_reads_every_entry_of_ctx() -> None:
    text = PROGRAM.read_text(encoding="utf-8")
    assert [name for name in (*CTX_NAMES, "error") if f"ctx.{name}" not in text] == []
