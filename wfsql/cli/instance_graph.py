"""An instance's graph with the state of each node, as the picture that `wf graph` draws, too.

What is drawn is what was deployed, so conditions, which are kept as programs, have no text here. A
node that the compiler made (the body of a loop, a branch) is not drawn; what is inside it stands in
a lane of its parent's. A node that was reached says how many of its executions have which status.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from compiler.picture.model import MAX_TEXT, Box, Kind, Lane, Picture
from dsl.plain import plain
from runtime_sql.operator_rows import GraphNode, NodeCount

# Of a node's statuses the first of these that it has colours it.
_WORST = ("FAILED", "RUNNING", "READY", "CANCELLED", "SUCCEEDED", "SKIPPED")
_KINDS: dict[str, Kind] = {
    "ACTION": "action",
    "SEQUENCE": "sequence",
    "PARALLEL": "parallel",
    "IF": "if",
    "SWITCH": "switch",
    "REPEAT": "repeat",
    "WHILE": "while",
    "FOREACH": "foreach",
    "WAIT_EVENT": "wait_event",
}
_UNITS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000}
_LABELS = {
    "THEN": "then",
    "ELSE": "else",
    "DEFAULT": "default",
    "ON_ERROR": "on error",
    "FINALLY": "finally",
    "TIMEOUT": "timeout",
}


@dataclass(slots=True)
class _Draft:
    node: GraphNode
    lanes: list[tuple[str, list[int]]] = field(default_factory=list)


def draw_instance(
    workflow: str, status: str, nodes: Sequence[GraphNode], counts: Sequence[NodeCount]
) -> Picture:
    """Returns the picture of an instance; `nodes` has at least the root."""
    states: dict[str, dict[str, int]] = {}
    for count in counts:
        states.setdefault(count.node_key, {})[count.status] = count.count
    root, *others = (_box(draft, states) for draft in _drafts(nodes))
    top = Box("workflow", _short(workflow), "", "", (status,), root.lanes, root.state)
    return Picture((top, *others))


def _drafts(nodes: Sequence[GraphNode]) -> list[_Draft]:
    """All nodes that are drawn, in tree order; no walk recurses."""
    children: dict[str | None, list[GraphNode]] = {}
    for node in nodes:
        children.setdefault(node.parent_key, []).append(node)
    root = _Draft(children[None][0])
    drafts = [root]
    pending = _inside(root, children)
    while pending:
        lane, node = pending.pop()
        draft = _Draft(node)
        lane.append(len(drafts))
        drafts.append(draft)
        pending += _inside(draft, children)
    return drafts


def _inside(
    draft: _Draft, children: Mapping[str | None, Sequence[GraphNode]]
) -> list[tuple[list[int], GraphNode]]:
    """The nodes inside a node with the lanes they go to, last first."""
    found: list[tuple[list[int], GraphNode]] = []
    line: list[int] | None = None
    for child in children.get(draft.node.node_key, ()):
        if child.branch_kind == "SEQUENCE":
            if line is None:
                line = []
                draft.lanes.append(("", line))
            found += [(line, each) for each in _drawn(child, children)]
            continue
        lane: list[int] = []
        draft.lanes.append((_label(child), lane))
        found += [(lane, each) for each in _drawn(child, children)]
    found.reverse()
    return found


def _drawn(
    node: GraphNode, children: Mapping[str | None, Sequence[GraphNode]]
) -> Sequence[GraphNode]:
    """A node, or what is in it where the compiler made it to hold that."""
    if node.is_generated and node.type == "SEQUENCE" and node.delay_ms is None:
        inside = children.get(node.node_key, ())
        if all(child.branch_kind == "SEQUENCE" for child in inside):
            return inside
    return (node,)


def _label(node: GraphNode) -> str:
    if node.branch_kind != "CASE":
        return _LABELS.get(node.branch_kind or "", "")
    value = json.loads(node.case_json or "null")
    values = value if isinstance(value, list) else [value]
    return _short("case " + ", ".join(json.dumps(each, ensure_ascii=False) for each in values))


def _box(draft: _Draft, states: Mapping[str, Mapping[str, int]]) -> Box:
    node = draft.node
    kind: Kind = "sleep" if node.delay_ms is not None else _KINDS[node.type]
    text = ""
    if kind == "action":
        text = node.action or ""
    elif kind == "wait_event":
        text = f'"{node.event_type}"'
    elif kind == "sleep":
        text = _duration(node.delay_ms or 0)
    found = states.get(node.node_key, {})
    lanes = tuple(Lane(label, tuple(boxes)) for label, boxes in draft.lanes)
    state = next((status for status in _WORST if status in found), "")
    details = (counts_text(found),) if found else ()
    return Box(kind, _short(node.node_key), _short(text), "", details, lanes, state)


def _duration(ms: int) -> str:
    """Writes a duration as the language does, in the largest unit that keeps it whole."""
    for unit, size in _UNITS.items():
        if ms % size == 0:
            return f"{ms // size}{unit}"
    return f"{ms}ms"


def counts_text(found: Mapping[str, int]) -> str:
    """Returns `SUCCEEDED` for one execution, `RUNNING 2, SUCCEEDED 40` for more."""
    if sum(found.values()) == 1:
        return next(iter(found))
    return ", ".join(f"{status} {found[status]}" for status in _WORST if status in found)


def _short(text: str) -> str:
    text = plain(text)
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
