"""The verifier: a GraphSpec is sound, whoever made it.

Every spec the compiler makes goes through it (a finding is then our own fault), and so do specs
from elsewhere. Flow: keys and edges, then the tree, then what hangs on its nodes: edges and
attributes (`verify_nodes`), types, variables, templates, bindings, programs (`verify_data`). When
the tree is broken the rest is not looked at.

Of these checks publishing in a database makes those that keep its engine from running the graph,
with the same codes (`runtime_sql/pg/wf_verify_graph.sql`).
"""

from __future__ import annotations

import re
from collections import Counter

from compiler import codes
from compiler import graph as graphs
from compiler.spec import SPEC_FORMAT, GraphSpec
from compiler.verify_data import DataVerifier
from compiler.verify_finding import Finding, Findings
from compiler.verify_nodes import check_nodes
from compiler.verify_tree import Tree
from dsl.codes import Code

MAX_NESTING = 512
MAX_NAME = 120
MAX_KEY = 200

_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")


def verify_spec(spec: GraphSpec) -> tuple[Finding, ...]:
    """Returns everything that keeps a spec from being run; nothing when it is sound."""
    if spec.spec_format != SPEC_FORMAT:
        message = f"spec_format {spec.spec_format} is not known; {SPEC_FORMAT} is"
        return (Finding(code=codes.UNKNOWN_FORMAT, message=message, place="/spec_format"),)
    for check in (_check_keys, _check_tree):
        found = tuple(check(spec))
        if found:
            return found
    tree = Tree(spec)
    return (*_check_root(tree), *check_nodes(tree), *DataVerifier(tree).findings())


def _check_keys(spec: GraphSpec) -> Findings:
    if not (_NAME.fullmatch(spec.name) and len(spec.name) <= MAX_NAME):
        message = f"a workflow's name is an identifier of at most {MAX_NAME} characters"
        yield Finding(code=codes.BAD_NODE_KEY, message=message, place="/name")
    keys = Counter(node.key for node in spec.nodes)
    seen: set[str] = set()
    for place, node in enumerate(spec.nodes):
        message = ""
        if node.key in seen:
            message = f"key {node.key} is that of {keys[node.key]} nodes"
        elif not 1 <= len(node.key) <= MAX_KEY or node.key != node.key.strip():
            message = f"a key has 1 to {MAX_KEY} characters and no space at its ends"
        seen.add(node.key)
        if message:
            yield Finding(
                code=codes.BAD_NODE_KEY, message=message, node=node.key, place=f"/nodes/{place}"
            )
    if not spec.nodes:
        yield Finding(code=codes.WRONG_ROOT, message="there are no nodes", place="/nodes")
    yield from _check_ends(spec, keys)


def _check_ends(spec: GraphSpec, keys: Counter[str]) -> Findings:
    """Edges lead from a node to a node, and at most one to each."""
    parents = Counter(edge.child for edge in spec.edges)
    seen: set[str] = set()
    for index, edge in enumerate(spec.edges):
        place = f"/edges/{index}"
        for key in (edge.parent, edge.child):
            if key not in keys:
                message = f"an edge names node {key}, which is not there"
                yield Finding(code=codes.UNKNOWN_NODE, message=message, node=key, place=place)
        if edge.child in seen:
            message = f"node {edge.child} has {parents[edge.child]} parents"
            yield Finding(code=codes.TWO_PARENTS, message=message, node=edge.child, place=place)
        seen.add(edge.child)


def _check_tree(spec: GraphSpec) -> Findings:
    graph = graphs.containment(spec)
    tops = graphs.roots(graph)
    places = {node.key: f"/nodes/{index}" for index, node in enumerate(spec.nodes)}

    def finding(code: Code, message: str, key: str | None) -> Finding:
        place = "/nodes" if key is None else places[key]
        return Finding(code=code, message=message, node=key, place=place)

    if len(tops) != 1:
        message = f"there must be one root, not {len(tops)}"
        # The first is as a rule the root that was meant: the others are what went astray.
        yield finding(codes.WRONG_ROOT, message, tops[0] if tops else None)
    if not graphs.is_tree(graph):
        circle = graphs.cycle(graph)
        if circle:
            message = "nodes contain each other: " + " > ".join(circle)
            yield finding(codes.UNREACHED_NODE, message, circle[0])
        if len(tops) == 1:
            for key in graphs.unreached(graph, tops[0]):
                if key in circle:
                    continue
                message = f"node {key} is not reached from the root"
                yield finding(codes.UNREACHED_NODE, message, key)
    elif tops:
        generated = {node.key: node.generated for node in spec.nodes}
        for key, level in graphs.levels(graph, tops[0], generated).items():
            if level > MAX_NESTING:
                message = f"node {key} is nested deeper than {MAX_NESTING} levels"
                yield finding(codes.GRAPH_TOO_DEEP, message, key)
                break


def _check_root(tree: Tree) -> Findings:
    if tree.nodes[tree.root].type != "SEQUENCE":
        yield tree.at_node(codes.WRONG_ROOT, "the root must be a SEQUENCE", tree.root)


__all__ = ["MAX_NESTING", "Finding", "verify_spec"]
