"""A sound tree of nodes, with what the checks of its parts ask: edges, parents, variables."""

from __future__ import annotations

from compiler.spec import EdgeRow, GraphSpec
from compiler.verify_finding import Finding
from dsl.codes import Code


class Tree:
    """The nodes of a spec whose edges form one tree.

    `edges` gives the edges of each node in their order, `places` the pointer of each node's row,
    `variables` the pairs of owner and name that a program may name.
    """

    def __init__(self, spec: GraphSpec) -> None:
        self.spec = spec
        self.nodes = {node.key: node for node in spec.nodes}
        self.places = {node.key: f"/nodes/{index}" for index, node in enumerate(spec.nodes)}
        self.parents = {edge.child: edge.parent for edge in spec.edges}
        self.edges: dict[str, list[EdgeRow]] = {key: [] for key in self.nodes}
        for edge in spec.edges:
            self.edges[edge.parent].append(edge)
        for edges in self.edges.values():
            edges.sort(key=lambda edge: edge.order)
        self.root = next(key for key in self.nodes if key not in self.parents)
        self.variables = {(row.owner, row.name) for row in spec.vars}
        self.variables |= {(self.root, row.name) for row in spec.inputs}

    def at_node(self, code: Code, message: str, key: str) -> Finding:
        """Returns a finding about a node, at the node's row."""
        return Finding(code=code, message=message, node=key, place=self.places.get(key, ""))

    def is_around(self, owner: str | None, node: str) -> bool:
        """Whether `owner` is the node itself or contains it."""
        current: str | None = node
        while current is not None:
            if current == owner:
                return True
            current = self.parents.get(current)
        return False

    def owner_of(self, name: str, node: str) -> str | None:
        """Returns the nearest node, from `node` upwards, whose scope declares a name."""
        current: str | None = node
        while current is not None and (current, name) not in self.variables:
            current = self.parents.get(current)
        return current
