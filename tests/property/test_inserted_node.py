"""One node more in a workflow is a small change of its script, in both dialects.

Only rows of the new node come, and only the order of the siblings after it changes; apart from
these stands the source map, which is one document. Nodes here have keys of their own: automatic
ones count on (R11).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.pipeline import compile_text
from compiler.spec import GraphSpec
from emit_mssql.emitter import emit as emit_mssql
from emit_pg.emitter import emit as emit_pg

EMITTERS: dict[str, Callable[[GraphSpec], str]] = {"pg": emit_pg, "mssql": emit_mssql}
INSERTED = "action inserted = any.thing(x: var.n + 1) { timeout 5s }"

HEADS = {
    "sequence": "sequence {key}",
    "parallel": "parallel {key}",
    "if": "if {key}: var.n > 1",
    "foreach": "foreach {key}: item in [1, 2]",
    "repeat": "repeat {key}: 2",
}

Tree = list["tuple[str, Tree]"]
"""The statements of a body: the kind of each, and what is below it."""

_LEAVES = st.sampled_from(["action", "typed"]).map(lambda kind: (kind, []))
_BODIES: st.SearchStrategy[Tree] = st.recursive(
    st.lists(_LEAVES, min_size=1, max_size=3),
    lambda inner: st.lists(
        _LEAVES | st.tuples(st.sampled_from(sorted(HEADS)), inner), min_size=1, max_size=4
    ),
    max_leaves=10,
)


class Program:
    """A tree written as a workflow, with the new node in the `place`-th gap of its bodies."""

    def __init__(self, tree: Tree, place: int | None = None) -> None:
        self._place = place
        self._key_count = 0
        self.gap_count = 0
        body = self._body(tree)
        self.text = f"workflow w {{ input {{ n : int }}\n{body}\naction z = any.thing(y: -var.n) }}"

    def _body(self, tree: Tree) -> str:
        lines = []
        for statement in [*tree, None]:
            if self.gap_count == self._place:
                lines.append(INSERTED)
            self.gap_count += 1
            if statement is not None:
                lines.append(self._statement(*statement))
        return "\n".join(lines)

    def _statement(self, kind: str, below: Tree) -> str:
        self._key_count += 1
        key = f"k{self._key_count}"
        if kind == "action":
            return f"action {key} = any.thing(x: var.n, y: var.n * 2)"
        if kind == "typed":
            return (
                f"sequence {key} {{ var v : list<int> = [] action {key}_a = any.thing(x: var.v) }}"
            )
        return f"{HEADS[kind].format(key=key)} {{\n{self._body(below)}\n}}"


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("catalog") / "c.actions.yaml"
    path.write_text("actions: [{name: any.thing}]", encoding="utf-8")
    return path


def script(program: Program, catalog: Path, dialect: str) -> list[str]:
    """Returns the lines of a program's script, without what every change of it changes."""
    result = compile_text(program.text, "w.wf", [catalog])
    assert [found for found in result.diagnostics if found.severity == "error"] == []
    spec = result.specs[0].model_copy(update={"source_map": None})
    text = EMITTERS[dialect](spec).replace(spec.content_hash(), "HASH")
    return [line.rstrip(",") for line in text.splitlines()]


_EDGE = re.compile(r"^  \(N?'([\w.]+)', N?'([\w.]+)', N?'[A-Z_]+', (\d+), ")


def edges(lines: list[str]) -> dict[str, tuple[str, int]]:
    """Returns parent and order by child."""
    found = (_EDGE.match(line) for line in lines)
    return {m[2]: (m[1], int(m[3])) for m in found if m is not None}


@pytest.mark.parametrize("dialect", EMITTERS)
@given(tree=_BODIES, data=st.data())
@settings(max_examples=25, deadline=None)
def test_only_the_rows_of_the_node_and_the_order_of_its_siblings_change(
    dialect: str, catalog: Path, tree: Tree, data: st.DataObject
) -> None:
    plain = Program(tree)
    place = data.draw(st.integers(0, plain.gap_count - 1))
    before = script(plain, catalog, dialect)
    after = script(Program(tree, place), catalog, dialect)

    parent, order = edges(after)["inserted"]
    moved = {child for child, (p, o) in edges(before).items() if p == parent and o >= order}
    kept = [line for line in after if "'inserted'" not in line]
    changed = [pair for pair in zip(before, kept, strict=True) if pair[0] != pair[1]]
    assert len(kept) == len(before)
    assert {edges([old]).popitem()[0] for old, _new in changed} == moved
    for old, new in changed:
        ((child, (above, number)),) = edges([old]).items()
        assert edges([new]) == {child: (above, number + 1)}
