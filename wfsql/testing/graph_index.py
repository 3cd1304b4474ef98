"""What a test file may name in a workflow: keys and paths of nodes, variables.

A path may leave its root segment out (R9), so `foreach_1[1]/pack` and `order/foreach_1[1]/pack` are
the same place. `Place` is a place that was understood; it says which rows of a trace it means.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compiler.spec import GraphSpec

LOOPS = frozenset({"FOREACH", "REPEAT", "WHILE"})
_ITERATION = re.compile(r"\[[0-9]+\]")


@dataclass(frozen=True, slots=True)
class Place:
    """A key, or a path without its root segment; `node` is the key of the node there."""

    node: str
    path: str | None

    def means(self, row: dict[str, Any], root: str) -> bool:
        """Whether a row of a trace is at this place."""
        path: str = row["path"]
        if self.path is not None:
            return _without_root(path, root) == self.path
        return path.rpartition("/")[2] == self.node


class GraphIndex:
    """The names of one workflow."""

    def __init__(self, spec: GraphSpec) -> None:
        self.spec = spec
        self.types = {node.key: node.type for node in spec.nodes}
        self.generated = {node.key for node in spec.nodes if node.generated}
        self.parents = {edge.child: edge for edge in spec.edges}
        self.root = next(node.key for node in spec.nodes if node.key not in self.parents)
        self._patterns: dict[str, str] = {}
        for node in spec.nodes:
            pattern, key = self._pattern(node.key), node.key
            if key in self.generated and self.is_iteration(key):
                self._patterns.setdefault(pattern, key)
            elif key not in self.generated:
                self._patterns[pattern] = key

    @property
    def author_keys(self) -> tuple[str, ...]:
        return tuple(key for key in self.types if key not in self.generated)

    @property
    def action_keys(self) -> tuple[str, ...]:
        return tuple(key for key, type_ in self.types.items() if type_ == "ACTION")

    @property
    def variables(self) -> frozenset[str]:
        """The names that the instance's own scope may have."""
        own = {var.name for var in self.spec.vars if var.owner == self.root}
        return frozenset(own | {row.name for row in self.spec.inputs})

    @property
    def has_waits(self) -> bool:
        return "WAIT_EVENT" in self.types.values()

    def is_iteration(self, key: str) -> bool:
        """Whether a node is the body of a loop, whose executions are iterations."""
        edge = self.parents.get(key)
        return edge is not None and edge.kind == "BODY" and self.types[edge.parent] in LOOPS

    def place(self, text: str) -> Place | None:
        """Understands a key or a path as a test file has it; None when there is no such node."""
        if text in self.types and text not in self.generated:
            return Place(text, None)
        pattern = _ITERATION.sub("[]", text)
        found = self._patterns.get(_without_root(pattern, self.root))
        if found is None:
            return None
        return Place(found, _without_root(text, self.root))

    def known_paths(self) -> tuple[str, ...]:
        """The forms that `place` understands, for a hint; `[]` stands for an iteration."""
        return tuple(dict.fromkeys([*self.author_keys, *self._patterns]))

    def _pattern(self, key: str) -> str:
        """The path of a node without its root, `[]` where an iteration number stands."""
        steps: list[str] = []
        iteration = ""
        at: str | None = key
        while at is not None and at in self.parents:
            if self.is_iteration(at):
                iteration = "[]"
            elif at not in self.generated:
                steps.append(at + iteration)
                iteration = ""
            at = self.parents[at].parent
        return "/".join(reversed(steps))


def _without_root(path: str, root: str) -> str:
    if path == root:
        return ""
    return path.removeprefix(root + "/")


def find_rows(nodes: list[dict[str, Any]], place: Place, root: str) -> list[dict[str, Any]]:
    """Returns the rows of a trace at a place, in the trace's order."""
    return [row for row in nodes if place.means(row, root)]
