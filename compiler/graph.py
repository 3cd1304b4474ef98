"""The containment graph of a GraphSpec, as networkx sees it. All walks are iterative."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import networkx as nx

from compiler.spec import GraphSpec


def containment(spec: GraphSpec) -> nx.DiGraph[str]:
    """Returns the graph of parent-to-child edges between the nodes of a spec.

    Edges to unknown nodes are left out: whoever verifies a spec reports them first.
    """
    graph: nx.DiGraph[str] = nx.DiGraph()
    for node in spec.nodes:
        graph.add_node(node.key)
    graph.add_edges_from(
        (edge.parent, edge.child)
        for edge in spec.edges
        if edge.parent in graph and edge.child in graph
    )
    return graph


def roots(graph: nx.DiGraph[str]) -> list[str]:
    """Returns the nodes that nothing contains."""
    return [key for key, degree in graph.in_degree() if degree == 0]


def is_tree(graph: nx.DiGraph[str]) -> bool:
    """Whether everything hangs in one tree below one root."""
    return bool(nx.is_arborescence(graph))


def unreached(graph: nx.DiGraph[str], root: str) -> list[str]:
    """Returns the nodes that no path from the root leads to."""
    reached = nx.descendants(graph, root) | {root}
    return [key for key in graph if key not in reached]


def cycle(graph: nx.DiGraph[str]) -> list[str]:
    """Returns the nodes of one cycle in order, or nothing."""
    try:
        return [parent for parent, _child in nx.find_cycle(graph)]
    except nx.NetworkXNoCycle:
        return []


def levels(graph: nx.DiGraph[str], root: str, generated: Mapping[str, bool]) -> dict[str, int]:
    """Returns how many of the author's nodes lie above each node of a tree."""
    result = {root: 0}
    for parent, child in _edges_from(graph, root):
        result[child] = result[parent] + (0 if generated[child] else 1)
    return result


def _edges_from(graph: nx.DiGraph[str], root: str) -> Iterator[tuple[str, str]]:
    yield from nx.bfs_edges(graph, root)
