"""Checks of ACTIONs and SWITCHes against the action catalog."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any, cast

from compiler import codes
from compiler.catalog import CatalogAction
from compiler.checks.finding import finding
from compiler.expressions import NOT_LITERAL, literal_value, step_key, task_key
from compiler.flow import analyse
from compiler.infer import type_of
from compiler.model import Model, Node
from compiler.suggest import did_you_mean
from compiler.type_model import Type
from dsl.diagnostics import Diagnostic
from dsl.nodes import Action, BareKey, Binary, LiteralExpr, Reference, Switch
from dsl.source import Span


def _actions(model: Model) -> Iterator[tuple[Node, Action]]:
    for node in model.nodes:
        if isinstance(node.statement, Action):
            yield node, node.statement


def check_unknown_action(model: Model) -> Iterator[Diagnostic]:
    if model.catalog == "broken":
        return
    for _node, action in _actions(model):
        name = action.action
        if model.catalog == "missing":
            message = "there is no action catalog, so no action is known"
            hint = "put a file *.actions.yaml beside this one, or name one with --catalog"
            yield finding(model, codes.NO_CATALOG, name.span, message, hint)
            return
        if name.text not in model.actions:
            hint_text = did_you_mean(name.text, model.actions)
            message = f'unknown action "{name.text}"'
            yield finding(model, codes.UNKNOWN_ACTION, name.span, message, hint_text)


def check_arguments(model: Model) -> Iterator[Diagnostic]:
    for _node, action in _actions(model):
        seen: dict[str, Span] = {}
        for argument in action.arguments:
            name = argument.name
            if name.text in seen:
                message = f'argument "{name.text}" is given twice'
                yield finding(
                    model,
                    codes.DUPLICATE_ARGUMENT,
                    name.span,
                    message,
                    "remove one",
                    seen[name.text],
                )
            seen.setdefault(name.text, name.span)
        described = model.actions.get(action.action.text)
        if described is not None:
            yield from _check_against(model, action, described)


def _check_against(model: Model, action: Action, described: CatalogAction) -> Iterator[Diagnostic]:
    fields = described.input_type.fields
    if described.input_schema is None or fields is None:
        return
    known = {field.name for field in fields}
    given = {argument.name.text for argument in action.arguments}
    for argument in action.arguments:
        if argument.name.text not in known:
            message = f'{described.name} takes no argument "{argument.name.text}"'
            hint = did_you_mean(argument.name.text, described.input_type.field_names())
            yield finding(model, codes.UNKNOWN_ARGUMENT, argument.name.span, message, hint)
    for field in fields:
        if not field.optional and field.name not in given:
            message = f'{described.name} needs argument "{field.name}"'
            hint = f"add `{field.name}: …`"
            yield finding(model, codes.MISSING_ARGUMENT, action.action.span, message, hint)


def switch_action(model: Model, switch: Switch) -> CatalogAction | None:
    """Returns the action whose result codes a SWITCH is over, when it is over one's."""
    node = model.by_key.get(_switch_key(switch) or "")
    if node is None or not isinstance(node.statement, Action):
        return None
    return model.actions.get(node.statement.action.text)


def _switch_key(switch: Switch) -> str | None:
    subject = switch.subject
    if isinstance(subject, BareKey):
        return subject.name
    if isinstance(subject, Reference) and step_key(subject, 2) == "resultCode":
        return task_key(subject)
    return None


def check_case_types(model: Model) -> Iterator[Diagnostic]:
    """Cases that no value of the subject's type can equal."""
    for node in model.nodes:
        switch = node.statement
        if not isinstance(switch, Switch) or isinstance(switch.subject, BareKey):
            continue
        subject = type_of(model, switch.subject)
        yield from _check_values_left(model, switch, subject)
        for case in switch.cases:
            for value in case.values:
                literal = NOT_LITERAL if isinstance(value, BareKey) else literal_value(value)
                if _never_fits(subject, literal):
                    message = f"the subject is {subject.describe()}, so {_shown(value)} never fits"
                    hint = did_you_mean(str(literal), subject.enum or ())
                    yield finding(model, codes.NEVER_FITS, value.span, message, hint)


def _check_values_left(model: Model, switch: Switch, subject: Type) -> Iterator[Diagnostic]:
    """A switch without default over an enum, some of whose values have no case."""
    if subject.enum is None or switch.default is not None or not switch.cases:
        return
    given = {
        literal_value(value)
        for case in switch.cases
        for value in case.values
        if not isinstance(value, BareKey)
    }
    left = [value for value in subject.enum if value not in given]
    if left:
        shown = ", ".join(f'"{value}"' for value in left[:_MOST_SHOWN])
        more = ", …" if len(left) > _MOST_SHOWN else ""
        message = f"this switch leaves out {shown}{more}, and fails when it is that"
        hint = "add the case, or a default"
        yield finding(model, codes.OPEN_ENUM, switch.subject.span, message, hint)


_MOST_SHOWN = 5


def _never_fits(subject: Type, literal: Any) -> bool:
    if isinstance(literal, str):
        if subject.enum is not None:
            return literal not in subject.enum
        return subject.base in ("int", "number", "bool")
    if isinstance(literal, int) and not isinstance(literal, bool):
        return subject.base in ("string", "bool")
    return False


def check_cases(model: Model) -> Iterator[Diagnostic]:
    for node in model.nodes:
        if isinstance(node.statement, Switch):
            yield from _check_switch(model, node.statement)


def _check_switch(model: Model, switch: Switch) -> Iterator[Diagnostic]:
    if not switch.cases:
        what = "always takes its default" if switch.default is not None else "always fails"
        message = f"this switch has no case, so it {what}"
        yield finding(model, codes.NO_CASE, switch.subject.span, message, "add a case")
    described = switch_action(model, switch)
    seen: dict[Any, Span] = {}
    named = False
    for case in switch.cases:
        for value in case.values:
            named = named or isinstance(value, BareKey)
            meaning, problem = _case_meaning(model, described, value)
            if isinstance(value, BareKey) and described is None and _is_reported(model, switch):
                continue
            if problem is not None:
                yield problem
            if meaning is NOT_LITERAL:
                continue
            if meaning in seen:
                message = f"case {_shown(value)} is given twice"
                first = seen[meaning]
                yield finding(model, codes.DUPLICATE_CASE, value.span, message, "remove one", first)
            seen.setdefault(meaning, value.span)
    yield from _check_negative(model, switch)
    if named and described is not None and switch.default is None:
        yield from _check_open(model, switch, described, seen)


def _check_negative(model: Model, switch: Switch) -> Iterator[Diagnostic]:
    """Cases for result codes below 0, where the action has surely succeeded: they never fit."""
    key = _switch_key(switch)
    if key is None or id(switch.subject) not in analyse(model).succeeded:
        return
    described = switch_action(model, switch)
    for case in switch.cases:
        for value in case.values:
            code: Any = None
            if isinstance(value, LiteralExpr):
                code = literal_value(value)
            elif described is not None:
                code = described.code_of(value.name)
            if isinstance(code, int) and code < 0:
                message = f'"{key}" has succeeded here, so its result code is never {code}'
                yield finding(model, codes.NEVER_FITS, value.span, message, _ask_in_on_error(key))


def _ask_in_on_error(key: str) -> str:
    return f'put "{key}" into a `sequence {{ … }}`, and ask in its `on_error {{ … }}`'


def check_code_comparisons(model: Model) -> Iterator[Diagnostic]:
    """Comparisons that ask whether an action failed, where it has surely succeeded."""
    succeeded = analyse(model).succeeded
    for site in model.sites:
        if not any(id(reference) in succeeded for reference in site.references):
            continue
        for part in site.parts:
            if not isinstance(part, Binary) or id(part.left) not in succeeded:
                continue
            key, asked = task_key(cast(Reference, part.left)), literal_value(part.right)
            if step_key(cast(Reference, part.left), 2) == "resultCode" and _asks_for_failure(
                part.operator, asked
            ):
                assert key is not None
                message = f'"{key}" has succeeded here, so its result code is not below 0'
                hint = _ask_in_on_error(key)
                yield finding(model, codes.NEVER_EQUAL, part.span, message, hint)


def _asks_for_failure(operator: str, code: Any) -> bool:
    if not isinstance(code, int) or isinstance(code, bool):
        return False
    return (operator in ("==", "!=", "<=") and code < 0) or (operator in ("<", ">=") and code <= 0)


def _case_meaning(
    model: Model, described: CatalogAction | None, value: LiteralExpr | BareKey
) -> tuple[Any, Diagnostic | None]:
    """Returns what a case compares with, or NOT_LITERAL when there is nothing to compare."""
    if isinstance(value, BareKey):
        return _named_code(model, described, value)
    literal = literal_value(value)
    if isinstance(literal, bool | Decimal) or literal is None:
        message = (
            f"a case is an integer, a string or the name of a result code, not {_shown(value)}"
        )
        hint = "use `if` for it"
        return NOT_LITERAL, finding(model, codes.BAD_CASE, value.span, message, hint)
    return literal, None


def _named_code(
    model: Model, described: CatalogAction | None, value: BareKey
) -> tuple[Any, Diagnostic | None]:
    if described is None:
        message = f'"{value.name}" can name a result code only in a switch over an action'
        hint = "write `switch KEY`, or put the value in quotes"
        return NOT_LITERAL, finding(model, codes.UNKNOWN_RESULT_CODE, value.span, message, hint)
    number = described.code_of(value.name)
    if number is None:
        message = f'{described.name} has no result code "{value.name}"'
        hint_text = did_you_mean(value.name, described.result_codes.values())
        return NOT_LITERAL, finding(
            model, codes.UNKNOWN_RESULT_CODE, value.span, message, hint_text
        )
    return number, None


def _is_reported(model: Model, switch: Switch) -> bool:
    """Whether it is said elsewhere that the switch's key, or the action it runs, is unknown."""
    key = _switch_key(switch)
    node = model.by_key.get(key or "")
    return key is not None and (node is None or isinstance(node.statement, Action))


def _shown(value: LiteralExpr | BareKey) -> str:
    if isinstance(value, BareKey):
        return f'"{value.name}"'
    words = {None: "null", True: "true", False: "false"}
    if value.value is None or isinstance(value.value, bool):
        return words[value.value]
    return f'"{value.value}"' if isinstance(value.value, str) else str(value.value)


def _check_open(
    model: Model, switch: Switch, described: CatalogAction, seen: dict[Any, Span]
) -> Iterator[Diagnostic]:
    left = [
        name
        for code, name in described.result_codes.items()
        if int(code) >= 0 and int(code) not in seen
    ]
    if left:
        message = f"this switch leaves out the result code {', '.join(left)} of {described.name}"
        hint = "add the case, or a default"
        yield finding(model, codes.OPEN_SWITCH, switch.subject.span, message, hint)
