"""Which edges of a workflow the cases took, and which none did.

An edge is taken when its child was activated below its parent. An IF without `else` has one more
way to go, which is taken when an IF has succeeded without a child.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from wfsql.testing.engines import ExecutionInfo
from wfsql.testing.graph_index import GraphIndex
from wfsql.testing.runner import CaseResult

_WORDS = {
    "THEN": "then",
    "ELSE": "else",
    "DEFAULT": "default",
    "BODY": "body",
    "ON_ERROR": "on_error",
    "FINALLY": "finally",
    "TIMEOUT": "timeout",
}


@dataclass(frozen=True, slots=True)
class EdgeCoverage:
    """One way through the graph; `line` is 0 when the graph has no source."""

    parent: str
    way: str
    line: int
    taken_count: int


@dataclass(frozen=True, slots=True)
class WorkflowCoverage:
    workflow: str
    file: str
    edges: tuple[EdgeCoverage, ...]

    @property
    def missed(self) -> tuple[EdgeCoverage, ...]:
        return tuple(edge for edge in self.edges if edge.taken_count == 0)


def measure(results: Iterable[CaseResult]) -> list[WorkflowCoverage]:
    """Returns the coverage of every workflow that a case was played on."""
    indexes: dict[int, GraphIndex] = {}
    counts: dict[int, Counter[tuple[str, str]]] = {}
    for result in results:
        if result.index is None:
            continue
        key = id(result.index)
        indexes[key] = result.index
        taken = counts.setdefault(key, Counter())
        if result.played is not None and result.played.remains is not None:
            taken.update(_taken(result.index, result.played.remains.executions))
    return [_of_workflow(indexes[key], counts[key]) for key in indexes]


def _taken(index: GraphIndex, executions: tuple[ExecutionInfo, ...]) -> Iterable[tuple[str, str]]:
    keys = {execution.id: execution.node_key for execution in executions}
    with_child = {execution.parent_id for execution in executions}
    for execution in executions:
        parent = keys.get(execution.parent_id)
        if parent is not None:
            yield parent, execution.node_key
        is_if = index.types[execution.node_key] == "IF"
        if is_if and execution.id not in with_child and execution.status == "SUCCEEDED":
            yield execution.node_key, ""


def _of_workflow(index: GraphIndex, taken: Counter[tuple[str, str]]) -> WorkflowCoverage:
    spec = index.spec
    lines = {} if spec.source_map is None else spec.source_map.nodes
    edges: list[EdgeCoverage] = []
    with_else = {edge.parent for edge in spec.edges if edge.kind == "ELSE"}
    for edge in spec.edges:
        place = lines.get(edge.child) or lines.get(edge.parent) or (0, 0)
        way = edge.child
        if edge.kind == "CASE":
            way = "case " + ", ".join(str(value) for value in edge.case or ())
        elif edge.kind in _WORDS:
            way = _WORDS[edge.kind]
        edges.append(EdgeCoverage(edge.parent, way, place[0], taken[edge.parent, edge.child]))
        if edge.kind == "THEN" and edge.parent not in with_else:
            line = (lines.get(edge.parent) or (0, 0))[0]
            edges.append(EdgeCoverage(edge.parent, "no else", line, taken[edge.parent, ""]))
    file = "" if spec.source_map is None else spec.source_map.file
    return WorkflowCoverage(spec.name, file, tuple(edges))
