"""What hangs on a sound tree: types, variables, templates, bindings, subscriptions, programs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from compiler import codes
from compiler.spec import ActionRow
from compiler.templates import string_program
from compiler.verify_attributes import subscription_problems
from compiler.verify_finding import Finding, Findings
from compiler.verify_nodes import MOST_INTEGER, MOST_MILLISECONDS
from compiler.verify_programs import Reference, check_program
from compiler.verify_tree import Tree

_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_REVISION = re.compile("[0-9a-f]{64}")
_POSITIVE = ("max_per_worker", "max_concurrent", "rate_per_minute", "max_deliveries")


class DataVerifier:
    """Checks what hangs on the nodes of a sound tree."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._spec = tree.spec
        self._templates = {row.node: row.json_ for row in tree.spec.templates}

    def findings(self) -> Findings:
        yield from self._check_node_programs()
        yield from self._check_types()
        yield from self._check_names()
        yield from self._check_variables()
        yield from self._check_interface()
        yield from self._check_actions()
        yield from self._check_templates()
        yield from self._check_input_bindings()
        yield from self._check_collections()
        yield from self._check_output_bindings()
        yield from self._check_subscriptions()

    # --- types and variables ---

    def _check_types(self) -> Findings:
        known: dict[int, str] = {}
        fields: set[tuple[int | None, str]] = set()
        for index, row in enumerate(self._spec.types):
            for problem in _type_problems(row, known, fields):
                yield Finding(code=codes.BAD_TYPE_ROW, message=problem, place=f"/types/{index}")
            known[row.id] = row.kind
        used = [(row.type, f"/inputs/{index}") for index, row in enumerate(self._spec.inputs)]
        used += [
            (row.type, f"/vars/{index}")
            for index, row in enumerate(self._spec.vars)
            if row.type is not None
        ]
        for type_id, place in used:
            if known.get(type_id) != "root":
                message = f"type {type_id} is used and is no root type"
                yield Finding(code=codes.BAD_TYPE_ROW, message=message, place=place)

    def _check_names(self) -> Findings:
        lists: dict[str, list[tuple[str | None, str]]] = {
            "inputs": [(self._tree.root, row.name) for row in self._spec.inputs],
            "vars": [(row.owner, row.name) for row in self._spec.vars],
            "outputs": [(None, row.name) for row in self._spec.outputs],
        }
        seen: set[tuple[str | None, str]] = set()
        for field, names in lists.items():
            for index, (owner, name) in enumerate(names):
                message = ""
                if not _NAME.fullmatch(name):
                    message = f"{name!r} is no identifier"
                elif (owner, name) in seen:
                    what = "output" if owner is None else "variable"
                    message = f"{what} {name} stands twice in one scope"
                seen.add((owner, name))
                if message:
                    yield Finding(
                        code=codes.BAD_NODE_KEY,
                        message=message,
                        node=owner,
                        place=f"/{field}/{index}",
                    )

    def _check_variables(self) -> Findings:
        orders: dict[str, list[int]] = {}
        for index, row in enumerate(self._spec.vars):
            orders.setdefault(row.owner, []).append(row.order)
            place = f"/vars/{index}"
            if row.owner not in self._tree.nodes:
                message = f"variable {row.name} belongs to node {row.owner}, which is not there"
                yield Finding(code=codes.UNKNOWN_NODE, message=message, place=place)
            elif row.program is not None:
                yield from self._check_program(
                    row.program, row.owner, f"variable {row.name}", place
                )
        for owner, found in orders.items():
            if sorted(found) != list(range(len(found))):
                message = "the orders of its variables do not count up from 0"
                yield self._tree.at_node(codes.ORDER_GAP, message, owner)

    def _check_interface(self) -> Findings:
        """Inputs and outputs: their orders, and the programs of both."""
        root = self._tree.root
        for field, rows in (("inputs", self._spec.inputs), ("outputs", self._spec.outputs)):
            if sorted(row.order for row in rows) != list(range(len(rows))):
                message = f"the orders of the {field} do not count up from 0"
                yield Finding(code=codes.ORDER_GAP, message=message, place=f"/{field}")
        for index, item in enumerate(self._spec.inputs):
            place = f"/inputs/{index}"
            if item.required == (item.program is not None):
                message = f"input {item.name} is required or has a default, not both"
                yield Finding(code=codes.BAD_PROGRAM, message=message, place=place)
            if item.program is not None:
                yield from self._check_program(item.program, root, f"input {item.name}", place)
        for index, output in enumerate(self._spec.outputs):
            yield from self._check_program(
                output.program, root, f"output {output.name}", f"/outputs/{index}"
            )

    # --- actions, templates, bindings ---

    def _check_actions(self) -> Findings:
        seen: set[str] = set()
        for index, row in enumerate(self._spec.actions):
            problems = list(_action_problems(row))
            if row.name in seen:
                problems.append(f"action {row.name} is described twice")
            seen.add(row.name)
            for problem in problems:
                yield Finding(
                    code=codes.UNDESCRIBED_ACTION, message=problem, place=f"/actions/{index}"
                )
        described = {(row.name, row.revision) for row in self._spec.actions}
        for node in self._spec.nodes:
            if node.type == "ACTION":
                action = node.attributes.get("action")
                if (action, node.attributes.get("revision")) not in described:
                    message = f"action {action} is not described"
                    if action in seen:
                        message = f"action {action} is described in another revision"
                    yield self._tree.at_node(codes.UNDESCRIBED_ACTION, message, node.key)

    def _check_templates(self) -> Findings:
        nodes = self._tree.nodes
        actions = [node.key for node in nodes.values() if node.type == "ACTION"]
        rows = [row.node for row in self._spec.templates]
        yield from self._one_each(actions, rows, "templates", "template", "an ACTION")
        for index, row in enumerate(self._spec.templates):
            if row.node in nodes:
                yield from self._check_placeholders(row.node, row.json_, f"/templates/{index}")

    def _check_placeholders(self, key: str, template: Any, place: str) -> Findings:
        find_owner = partial(self._tree.owner_of, node=key)
        for text in _strings(template):
            program = string_program(text, find_owner)
            if program[0][0] == "fault":
                message = str(program[0][2])
                yield Finding(code=codes.WRONG_BINDING, message=message, node=key, place=place)
            else:
                yield from self._check_program(program, key, "template", place)

    def _one_each(
        self, wanted: Iterable[str], rows: list[str], field: str, what: str, kind: str
    ) -> Findings:
        wanted = dict.fromkeys(wanted)
        counts = Counter(rows)
        for key in wanted:
            if counts[key] != 1:
                message = f"{kind} needs one {what}, not {counts[key]}"
                yield self._tree.at_node(codes.WRONG_BINDING, message, key)
        for index, key in enumerate(rows):
            place = f"/{field}/{index}"
            if key not in self._tree.nodes:
                message = f"a {what} names node {key}, which is not there"
                yield Finding(code=codes.UNKNOWN_NODE, message=message, node=key, place=place)
            elif key not in wanted:
                message = f"a {what} belongs to {kind}, and {key} is none"
                yield Finding(code=codes.WRONG_BINDING, message=message, node=key, place=place)

    def _check_input_bindings(self) -> Findings:
        seen: set[tuple[str, str]] = set()
        for index, row in enumerate(self._spec.input_bindings):
            place = f"/input_bindings/{index}"
            if row.node not in self._tree.nodes:
                message = f"a binding names node {row.node}, which is not there"
                yield Finding(code=codes.UNKNOWN_NODE, message=message, node=row.node, place=place)
                continue
            message = ""
            if (row.node, row.pointer) in seen:
                message = f"input binding {row.pointer} stands twice"
            elif not _points_into(self._templates.get(row.node), row.pointer):
                message = f"input binding {row.pointer} points nowhere"
            if message:
                yield Finding(code=codes.WRONG_BINDING, message=message, node=row.node, place=place)
            seen.add((row.node, row.pointer))
            yield from self._check_program(row.program, row.node, row.pointer, place)

    def _check_collections(self) -> Findings:
        nodes = self._tree.nodes
        loops = [node.key for node in nodes.values() if node.type == "FOREACH"]
        rows = self._spec.collection_bindings
        yield from self._one_each(
            loops, [row.node for row in rows], "collection_bindings", "collection binding",
            "a FOREACH",
        )  # fmt: skip
        for index, row in enumerate(rows):
            if row.node in nodes:
                place = f"/collection_bindings/{index}"
                yield from self._check_program(row.program, row.node, "collection", place)

    def _check_output_bindings(self) -> Findings:
        orders: dict[str, list[int]] = {}
        for index, row in enumerate(self._spec.output_bindings):
            place = f"/output_bindings/{index}"
            node = self._tree.nodes.get(row.node)
            orders.setdefault(row.node, []).append(row.order)
            if node is None:
                message = f"a binding names node {row.node}, which is not there"
                yield Finding(code=codes.UNKNOWN_NODE, message=message, node=row.node, place=place)
                continue
            at_row = partial(Finding, node=row.node, place=place)
            is_loop = node.type == "FOREACH"
            if row.kind == "collect" and not is_loop:
                yield at_row(code=codes.WRONG_BINDING, message="a collect belongs to a FOREACH")
            if row.kind == "var" and (is_loop or node.generated):
                message = "a set belongs to no FOREACH and no generated node"
                yield at_row(code=codes.WRONG_BINDING, message=message)
            if (row.owner, row.name) not in self._tree.variables:
                message = f"{row.kind} {row.name}: no such variable of {row.owner}"
                yield at_row(code=codes.UNKNOWN_OWNED_VARIABLE, message=message)
            elif not self._tree.is_around(row.owner, row.node):
                message = f"{row.kind} {row.name}: {row.owner} is not around it"
                yield at_row(code=codes.UNKNOWN_OWNED_VARIABLE, message=message)
            body = self._tree.edges[row.node][:1] if row.kind == "collect" else []
            inside = body[0].child if body else row.node
            yield from self._check_program(row.program, inside, f"{row.kind} {row.name}", place)
        for key, found in orders.items():
            if sorted(found) != list(range(len(found))):
                message = "the orders of its bindings do not count up from 0"
                yield self._tree.at_node(codes.ORDER_GAP, message, key)

    def _check_subscriptions(self) -> Findings:
        inputs = {row.name for row in self._spec.inputs}
        for index, row in enumerate(self._spec.subscriptions):
            place = f"/subscriptions/{index}"
            problems, programs = subscription_problems(row, inputs)
            if not row.event_type:
                problems.append("an event type has at least one character")
            for problem in problems:
                message = f"subscription to {row.event_type}: {problem}"
                yield Finding(code=codes.WRONG_SUBSCRIPTION, message=message, place=place)
            for name, program in programs:
                yield from self._check_program(
                    program, self._tree.root, f"event input {name}", place
                )

    # --- programs ---

    def _check_node_programs(self) -> Findings:
        for node in self._spec.nodes:
            place = self._tree.places[node.key]
            programs: dict[str, Any] = {
                name: node.attributes[name]
                for name in ("condition", "subject", "count", "correlate")
                if name in node.attributes
            }
            fail = node.attributes.get("fail")
            if isinstance(fail, dict) and "message" in fail:
                programs["message"] = fail["message"]
            for name, program in programs.items():
                yield from self._check_program(program, node.key, name, place)
            reuse = node.attributes.get("reuse")
            reads = reuse.get("reads") if isinstance(reuse, dict) else None
            # Their shape is a matter of the attribute; here it is what they name, in the body.
            body = next((edge.child for edge in self._tree.edges[node.key]), node.key)
            for reference in check_program(reads)[1] if isinstance(reads, list) else ():
                yield from self._check_reference(reference, body, "reuse", place)

    def _check_program(self, program: Any, node: str, what: str, place: str) -> Findings:
        problems, references = check_program(program)
        for problem in problems:
            message = f"program of {what}: {problem}"
            yield Finding(code=codes.BAD_PROGRAM, message=message, node=node, place=place)
        for reference in references:
            yield from self._check_reference(reference, node, what, place)

    def _check_reference(self, reference: Reference, node: str, what: str, place: str) -> Findings:
        finding = partial(Finding, node=node, place=place)
        if reference.kind == "task":
            if reference.name not in self._tree.nodes:
                message = f"program of {what}: no node {reference.name}"
                yield finding(code=codes.UNKNOWN_NODE, message=message)
        elif (reference.owner, reference.name) not in self._tree.variables:
            message = f"program of {what}: no variable {reference.name} of {reference.owner}"
            yield finding(code=codes.UNKNOWN_OWNED_VARIABLE, message=message)
        elif not self._tree.is_around(reference.owner, node):
            message = f"program of {what}: {reference.owner} is not around it"
            yield finding(code=codes.UNKNOWN_OWNED_VARIABLE, message=message)


def _type_problems(
    row: Any, known: Mapping[int, str], fields: set[tuple[int | None, str]]
) -> Iterable[str]:
    if row.id in known:
        yield f"type {row.id} stands twice"
    if abs(row.id) > MOST_INTEGER:
        yield f"type {row.id}: an id is at most {MOST_INTEGER}"
    if (row.kind == "root") != (row.parent is None):
        yield f"type {row.id} is a root or has a parent, not both"
    elif row.parent is not None and row.parent not in known:
        yield f"type {row.id} stands before its parent {row.parent}"
    if (row.kind == "field") != (row.name is not None):
        yield f"type {row.id}: a field, and nothing else, has a name"
    elif row.kind == "field":
        if (row.parent, row.name) in fields:
            yield f"type {row.id}: field {row.name} stands twice"
        fields.add((row.parent, row.name))


def _action_problems(row: ActionRow) -> Iterable[str]:
    if not 1 <= len(row.name) <= 200:
        yield "an action's name has 1 to 200 characters"
    if not _REVISION.fullmatch(row.revision):
        yield f"action {row.name}: a revision is 64 lower-case hex digits"
    if not row.capability:
        yield f"action {row.name}: a capability has at least one character"
    if row.timeout_ms is not None and not 0 < row.timeout_ms <= MOST_MILLISECONDS:
        yield f"action {row.name}: timeout_ms is from 1 to {MOST_MILLISECONDS}"
    for name in _POSITIVE:
        value = getattr(row.dispatch, name)
        if value is not None and not 0 < value <= MOST_INTEGER:
            yield f"action {row.name}: {name} is from 1 to {MOST_INTEGER}"


def _strings(template: Any) -> Iterable[str]:
    """Yields the strings of a template that may hold a placeholder."""
    pending = [template]
    while pending:
        value = pending.pop()
        if isinstance(value, str):
            if "${" in value:
                yield value
        elif isinstance(value, dict):
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(value)


def _points_into(template: Any, pointer: str) -> bool:
    """Whether a JSON pointer names a place of a template, and that place is null."""
    current = template
    if not pointer.startswith("/"):
        return False
    for step in pointer[1:].split("/"):
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(current, dict) and key in current:
            current = current[key]
        elif (
            isinstance(current, list)
            and key.isascii()
            and key.isdecimal()
            and int(key) < len(current)
        ):
            current = current[int(key)]
        else:
            return False
    return current is None
