"""Lowering: from the model of a checked workflow to its GraphSpec (R9, R10).

Before: a tree of nodes with resolved names. After: flat lists in tree order, complete in
themselves. It may only be called when the checks found no error; it reports nothing.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from compiler import attributes as written
from compiler import spec
from compiler.catalog import CatalogAction
from compiler.checks.actions import switch_action
from compiler.expressions import literal_value, lone_reference, step_key
from compiler.model import Model, Node, Variable, foreach_parallel
from compiler.programs import (
    Program,
    lower_arguments,
    lower_condition,
    lower_expr,
    lower_subject,
)
from compiler.reuse import Fingerprints, reads_of
from compiler.supported import DISPATCH
from compiler.type_model import type_rows
from dsl.diagnostics import InternalError
from dsl.nodes import (
    Action,
    BareKey,
    Expr,
    Fail,
    Foreach,
    If,
    Name,
    Parallel,
    Repeat,
    Sequence,
    Sleep,
    Subscription,
    Switch,
    WaitEvent,
    While,
)

DEFAULT_WHILE_MAX = 10_000
_MODES: dict[str, Any] = {
    "start": "start_instance",
    "signal": "signal_wait",
    "start_or_signal": "start_or_signal",
}


def lower(model: Model) -> spec.GraphSpec:
    """Returns the GraphSpec of a workflow in which no check found an error."""
    return _Lowering(model).run()


class _Lowering:
    def __init__(self, model: Model) -> None:
        self._model = model
        self._types: list[spec.TypeRow] = []
        self._input_bindings: list[spec.InputBindingRow] = []

    def run(self) -> spec.GraphSpec:
        model = self._model
        inputs, variables = self._inputs(), self._vars()
        made = spec.GraphSpec(
            spec_format=spec.SPEC_FORMAT,
            name=model.root.key,
            description=model.workflow.description,
            types=self._types,
            inputs=inputs,
            vars=variables,
            outputs=self._outputs(),
            nodes=[self._node(node) for node in model.nodes],
            edges=self._edges(),
            templates=self._templates(),
            input_bindings=self._input_bindings,
            output_bindings=self._output_bindings(),
            collection_bindings=self._collection_bindings(),
            actions=self._actions(),
            subscriptions=self._subscriptions(),
            source_map=self._source_map(),
        )
        self._fill_reuse(made)
        return made

    def _fill_reuse(self, made: spec.GraphSpec) -> None:
        """Puts in what `reuse` comes to, which needs all rows of a body to be there."""
        loops = [node for node in self._model.nodes if _reuses(node)]
        fingerprints = Fingerprints(made) if loops else None
        for loop in loops:
            assert fingerprints is not None
            made.nodes[loop.index].attributes["reuse"] = {
                "fingerprint": fingerprints.of(loop),
                "reads": reads_of(self._model, loop),
            }

    # --- declarations ---

    def _type(self, variable: Variable) -> int:
        first = len(self._types) + 1
        self._types.extend(spec.TypeRow(**row) for row in type_rows(variable.type, first))
        return first

    def _initial(self, variable: Variable) -> Program | None:
        return None if variable.initial is None else lower_expr(self._model, variable.initial)

    def _inputs(self) -> list[spec.InputRow]:
        return [
            spec.InputRow(
                order=variable.order,
                name=variable.name,
                type=self._type(variable),
                required=variable.initial is None,
                program=self._initial(variable),
            )
            for variable in self._model.root.variables.values()
            if variable.kind == "input"
        ]

    def _vars(self) -> list[spec.VarRow]:
        rows = []
        for variable in self._model.all_variables():
            if variable.kind != "input":
                rows.append(
                    spec.VarRow(
                        owner=variable.owner.key,
                        order=variable.order,
                        name=variable.name,
                        kind=variable.kind,
                        type=self._type(variable) if variable.kind == "var" else None,
                        program=self._initial(variable),
                    )
                )
        return rows

    def _outputs(self) -> list[spec.OutputRow]:
        return [
            spec.OutputRow(
                order=order, name=output.name.text, program=lower_expr(self._model, output.value)
            )
            for order, output in enumerate(self._model.workflow.outputs)
        ]

    # --- the tree ---

    def _node(self, node: Node) -> spec.NodeRow:
        return spec.NodeRow(
            key=node.key,
            type=node.type,
            generated=node.generated,
            attributes=self._attributes(node),
        )

    def _attributes(self, node: Node) -> dict[str, Any]:
        model, statement = self._model, node.statement
        if node.parent is None:
            timeout = written.milliseconds(model.workflow.attributes, "timeout")
            return _kept(timeout_ms=timeout)
        match statement:
            case Action():
                return self._action_attributes(statement)
            case Sequence(attributes=attributes):
                return _kept(timeout_ms=written.milliseconds(attributes, "timeout"))
            case Parallel(attributes=attributes):
                return self._parallel_attributes(attributes)
            case If(condition=condition):
                return {"condition": lower_condition(model, condition)}
            case While(condition=condition, attributes=attributes):
                limit = written.integer(attributes, "max") or DEFAULT_WHILE_MAX
                program = lower_condition(model, condition)
                return {"condition": program, "max": limit, **_loop_attributes(attributes)}
            case Switch(subject=subject):
                return {"subject": lower_subject(model, subject)}
            case Repeat(count=count, counter=counter, attributes=attributes):
                own = _kept(count=lower_expr(model, count), counter=_text(counter))
                return {**own, **_loop_attributes(attributes)}
            case Foreach():
                return _foreach_attributes(statement)
            case WaitEvent():
                return self._wait_attributes(statement)
            case Sleep(duration=duration):
                return {"sleep_ms": duration.milliseconds}
            case Fail():
                return {"fail": self._fail(statement)}
            case _:
                return {}

    def _action_attributes(self, action: Action) -> dict[str, Any]:
        described = self._model.actions[action.action.text]
        attributes = action.attributes
        timeout = written.milliseconds(attributes, "timeout")
        return _kept(
            action=described.name,
            revision=described.revision,
            priority=written.integer(attributes, "priority"),
            lease_ms=written.milliseconds(attributes, "lease"),
            timeout_ms=described.timeout_ms if timeout is None else timeout,
            delay_ms=written.milliseconds(attributes, "delay"),
            retry=self._retry(action, described),
            dispatch=written.dispatch(attributes, DISPATCH),
        )

    def _retry(self, action: Action, described: CatalogAction) -> dict[str, Any] | None:
        """The catalog's retry and time-out stand in the node, so that a version freezes them."""
        attribute = written.find(action.attributes, "retry")
        if attribute is None:
            return None if described.retry is None else dict(described.retry)
        retry = written.read_retry(attribute, self._model.source.text)
        factor = None if retry.factor is None else literal_value(retry.factor)
        return written.retry_value(
            written.literal_integer(retry.limit) or 0,
            None if retry.backoff is None else retry.backoff.milliseconds,
            factor,
            None if retry.max is None else retry.max.milliseconds,
            retry.jitter,
            [_retry_code(value, described) for value in retry.on],
        )

    def _parallel_attributes(self, attributes: written.Attributes) -> dict[str, Any]:
        return _kept(
            limit=written.integer(attributes, "limit"),
            join=written.join_count(attributes),
            keep_going=_flag(attributes, "keep_going"),
            timeout_ms=written.milliseconds(attributes, "timeout"),
        )

    def _wait_attributes(self, wait: WaitEvent) -> dict[str, Any]:
        return _kept(
            event_type=wait.event_type,
            correlate=None if wait.correlate is None else lower_expr(self._model, wait.correlate),
            timeout_ms=None if wait.timeout is None else wait.timeout.milliseconds,
        )

    def _fail(self, statement: Fail) -> dict[str, Any]:
        code = literal_value(statement.code)
        message: Program = [["lit", f"result code {code}"]]
        if statement.message is not None:
            message = lower_expr(self._model, statement.message)
        return {"code": code, "message": message}

    def _edges(self) -> list[spec.EdgeRow]:
        rows = []
        for node in self._model.nodes:
            for order, child in enumerate(node.children):
                if child.edge is None:
                    raise InternalError(f"node {child.key} has a parent and no edge")
                rows.append(
                    spec.EdgeRow(
                        parent=node.key,
                        child=child.key,
                        kind=child.edge,
                        order=order,
                        case=self._case(node, child),
                    )
                )
        return rows

    def _case(self, node: Node, child: Node) -> list[Any] | None:
        if child.case is None or not isinstance(node.statement, Switch):
            return None
        described = switch_action(self._model, node.statement)
        return [
            described.code_of(value.name)
            if isinstance(value, BareKey) and described is not None
            else literal_value(value)  # type: ignore[arg-type]
            for value in child.case.values
        ]

    # --- bindings ---

    def _templates(self) -> list[spec.TemplateRow]:
        rows = []
        for node in self._model.nodes:
            if isinstance(node.statement, Action):
                arguments = [(a.name.text, a.value) for a in node.statement.arguments]
                template, bindings = lower_arguments(self._model, arguments)
                rows.append(spec.TemplateRow(node=node.key, json_=template))
                self._input_bindings.extend(
                    spec.InputBindingRow(node=node.key, pointer=pointer, program=program)
                    for pointer, program in bindings
                )
        return rows

    def _output_bindings(self) -> list[spec.OutputBindingRow]:
        orders: dict[str, int] = {}
        rows = []
        for target in sorted(self._model.targets, key=lambda target: target.node.index):
            order = orders.get(target.node.key, 0)
            orders[target.node.key] = order + 1
            rows.append(
                spec.OutputBindingRow(
                    node=target.node.key,
                    order=order,
                    kind=target.kind,
                    name=target.variable.name,
                    owner=target.variable.owner.key,
                    program=lower_expr(self._model, target.binding.value),
                )
            )
        return rows

    def _collection_bindings(self) -> list[spec.CollectionBindingRow]:
        return [
            spec.CollectionBindingRow(
                node=node.key,
                kind=_collection_kind(node.statement.collection),
                program=lower_expr(self._model, node.statement.collection),
            )
            for node in self._model.nodes
            if isinstance(node.statement, Foreach)
        ]

    def _actions(self) -> list[spec.ActionRow]:
        used = dict.fromkeys(
            node.statement.action.text
            for node in self._model.nodes
            if isinstance(node.statement, Action)
        )
        rows = []
        for name in used:
            described = self._model.actions[name]
            rows.append(
                spec.ActionRow(
                    name=name,
                    revision=described.revision,
                    description=described.description,
                    version=described.version,
                    capability=described.capability,
                    input_schema=described.input_schema,
                    output_schema=described.output_schema,
                    result_codes=dict(described.result_codes),
                    idempotent=described.idempotent,
                    timeout_ms=described.timeout_ms,
                    sensitive=list(described.sensitive),
                    dispatch=spec.Dispatch(**described.dispatch),
                )
            )
        return rows

    def _subscriptions(self) -> list[spec.SubscriptionRow]:
        """The declared ones, then an unfiltered one for each awaited type that none narrows."""
        rows = [self._subscription(item) for item in self._model.workflow.subscriptions]
        narrowed = {row.event_type for row in rows if row.mode != "start_instance"}
        awaited = dict.fromkeys(
            node.statement.event_type
            for node in self._model.nodes
            if isinstance(node.statement, WaitEvent)
        )
        rows.extend(
            spec.SubscriptionRow(event_type=event_type, mode="signal_wait", filter=[], inputs=[])
            for event_type in awaited
            if event_type not in narrowed
        )
        return rows

    def _subscription(self, item: Subscription) -> spec.SubscriptionRow:
        return spec.SubscriptionRow(
            event_type=item.event_type,
            mode=_MODES[item.mode],
            filter=[
                {"path": list(term.path), "value": literal_value(term.value)}
                for term in item.filters
            ],
            inputs=self._event_inputs(item),
        )

    def _event_inputs(self, item: Subscription) -> list[dict[str, Any]]:
        if item.inputs or item.mode == "signal":
            return [
                {"name": given.name.text, "program": lower_expr(self._model, given.value)}
                for given in item.inputs
            ]
        names = [declared.name.text for declared in self._model.workflow.inputs]
        return [{"name": name, "program": [["event", ["payload", name]]]} for name in names]

    def _source_map(self) -> spec.SourceMap:
        source = self._model.source
        places = {}
        for node in self._model.nodes:
            position = source.position(node.span.start)
            places[node.key] = (position.line, position.column)
        # The name only: the same source gives the same bytes on every machine.
        return spec.SourceMap(file=PurePath(source.name).name, nodes=places)


def _kept(**attributes: Any) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if value is not None}


def _text(name: Name | None) -> str | None:
    return None if name is None else name.text


def _flag(attributes: written.Attributes, name: str) -> bool | None:
    return True if written.has(attributes, name) else None


def _loop_attributes(attributes: written.Attributes) -> dict[str, Any]:
    """What WHILE and REPEAT have in common."""
    return _kept(
        keep=written.integer(attributes, "keep"),
        timeout_ms=written.milliseconds(attributes, "timeout"),
    )


def _foreach_attributes(loop: Foreach) -> dict[str, Any]:
    attributes = loop.attributes
    return _kept(
        item=loop.item.text,
        index=_text(loop.index),
        parallel=foreach_parallel(loop),
        batch=written.integer(attributes, "batch"),
        tolerate=written.tolerance(attributes),
        keep_going=_flag(attributes, "keep_going"),
        reuse=_flag(attributes, "reuse"),
        timeout_ms=written.milliseconds(attributes, "timeout"),
    )


def _reuses(node: Node) -> bool:
    return isinstance(node.statement, Foreach) and written.has(node.statement.attributes, "reuse")


def _retry_code(value: Name | Expr, described: CatalogAction) -> str | int:
    if not isinstance(value, Name):
        number: int = literal_value(value)
        return number
    if value.text in ("any", "lease"):
        return value.text
    code = described.code_of(value.text)
    if code is None:
        raise InternalError(f"result code {value.text} was not checked")
    return code


def _collection_kind(expr: Expr) -> Any:
    """Returns the kind of a collection binding (R39)."""
    reference = lone_reference(expr)
    if reference is None:
        return "program"
    if reference.root == "var":
        return "variable"
    if reference.root == "ctx":
        first = step_key(reference, 0)
        if first == "context":
            return "context"
        if first == "task" and step_key(reference, 2) == "output":
            return "task_output"
    return "program"
