"""Builds the AST while the parser reduces: one method for each rule of the grammar.

A method gets all children of its rule, signs included, and the span they cover, and returns a node
of `dsl.nodes`, or one of the small carriers below for parts that have no node of their own (a
body before it is known whose it is). What the grammar lets pass but the language does not is
reported from here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any, TypeVar, cast, get_args

from dsl import codes, nodes
from dsl.diagnostics import Label
from dsl.plain import plain
from dsl.quick_class import dataclass
from dsl.source import Span
from dsl.tokens import Token

Children = list[Any]
Report = Callable[[codes.Code, str, Span, str | None, tuple[Label, ...]], None]
_T = TypeVar("_T")

_EXPRESSIONS = get_args(nodes.Expr)
_TYPES = get_args(nodes.TypeExpr)
_STATEMENTS = get_args(nodes.Statement)
_ROOT_WORDS = frozenset(("var", "ctx", "out", "code", "event"))
_MODES = ("start", "signal", "start_or_signal")
_WORDS: dict[str, nodes.Scalar] = {"true": True, "false": False, "null": None}


@dataclass(slots=True, eq=False, repr=False)
class _Description:
    text: str
    span: Span


@dataclass(slots=True, eq=False, repr=False)
class _Declarations:
    kind: str
    entries: tuple[Any, ...]
    span: Span


@dataclass(slots=True, eq=False, repr=False)
class _Body:
    """The inside of `{ … }`, before its owner takes the description and the attributes out."""

    items: list[Any]
    span: Span


@dataclass(slots=True, eq=False, repr=False)
class _Role:
    """A part named for what it does: the counter of a repeat, the on_error of a sequence, …"""

    role: str
    value: Any
    span: Span
    extra: Any = None


def _all(children: Iterable[Any], kind: type[_T]) -> tuple[_T, ...]:
    return tuple(child for child in children if isinstance(child, kind))


def _one(children: Iterable[Any], kind: type[_T]) -> _T | None:
    return next((child for child in children if isinstance(child, kind)), None)


def _exprs(children: Children) -> tuple[nodes.Expr, ...]:
    return tuple(child for child in children if isinstance(child, _EXPRESSIONS))


def _type(children: Children) -> nodes.TypeExpr:
    return cast("nodes.TypeExpr", next(c for c in children if isinstance(c, _TYPES)))


def _string(children: Children) -> str:
    return str(next(c for c in children if isinstance(c, Token) and c.type == "STRING").value)


def _role(children: Children, role: str) -> _Role | None:
    return next((c for c in children if isinstance(c, _Role) and c.role == role), None)


def _braced(attribute: nodes.Attribute) -> str:
    return f"`{{ {attribute.name.text} … }}`"


def _span_of(item: Any) -> Span:
    return Span(item.start, item.end) if isinstance(item, Token) else cast("Span", item.span)


class Builder:
    """Holds nothing but where to report; all state is in the children."""

    def __init__(self, report: Report) -> None:
        self._report = report

    def _fault(
        self,
        code: codes.Code,
        message: str,
        span: Span,
        hint: str | None = None,
        first: Any = None,
        label: str = "first here",
    ) -> None:
        labels = () if first is None else (Label(span=_span_of(first), message=label),)
        self._report(code, message, span, hint, labels)

    # --- files and declarations

    def start(self, c: Children, span: Span) -> nodes.File:
        return nodes.File(
            imports=_all(c, nodes.Import),
            types=_all(c, nodes.TypeAlias),
            workflows=_all(c, nodes.Workflow),
            span=span,
        )

    def import_decl(self, c: Children, span: Span) -> nodes.Import:
        return nodes.Import(path=_string(c), span=span)

    def type_alias(self, c: Children, span: Span) -> nodes.TypeAlias:
        return nodes.TypeAlias(name=c[1], type=_type(c), span=span)

    def workflow(self, c: Children, span: Span) -> nodes.Workflow:
        items = [item for item in c[3:] if not isinstance(item, Token)]
        self._check_head_first(items)
        statements = tuple(item for item in items if isinstance(item, _STATEMENTS))
        collects = tuple(i.value for i in items if isinstance(i, _Role) and i.role == "collect")
        variables = _all(items, nodes.VarDecl)
        return nodes.Workflow(
            name=c[1],
            description=self._description(items),
            types=_all(items, nodes.TypeAlias),
            inputs=self._declared(items, "input"),
            variables=variables,
            outputs=self._declared(items, "output"),
            subscriptions=_all(items, nodes.Subscription),
            body=nodes.Block(
                variables=(),
                statements=statements,
                collects=collects,
                span=Span(_span_of(c[2]).start, span.end),
            ),
            attributes=self._attributes(items),
            span=span,
        )

    def _declared(self, items: list[Any], kind: str) -> tuple[Any, ...]:
        blocks = [i for i in items if isinstance(i, _Declarations) and i.kind == kind]
        for extra in blocks[1:]:
            message = f"`{kind}` is given twice"
            self._fault(codes.GIVEN_TWICE, message, extra.span, "put all into one", blocks[0])
        return tuple(entry for block in blocks for entry in block.entries)

    def _check_head_first(self, items: list[Any]) -> None:
        first: Any = None
        before: Any = None
        for item in items:
            if isinstance(item, _STATEMENTS):
                first = first or item
            elif first is not None and not isinstance(item, _Role):
                hint = "move it up"
                if isinstance(item, nodes.Attribute) and isinstance(before, nodes.Action):
                    hint = f"move it up; that of an action stands in its braces: {_braced(item)}"
                self._fault(
                    codes.LATE_HEAD,
                    f"{_what(item)} must stand before the first node",
                    _span_of(item),
                    hint,
                    first,
                    "the first node",
                )
            before = item

    def _description(self, items: Iterable[Any]) -> str | None:
        found = _all(items, _Description)
        for extra in found[1:]:
            self._fault(
                codes.GIVEN_TWICE, "`description` is given twice", extra.span, first=found[0]
            )
        return found[0].text if found else None

    def _attributes(self, items: Iterable[Any]) -> tuple[nodes.Attribute, ...]:
        found = _all(items, nodes.Attribute)
        seen: dict[str, nodes.Attribute] = {}
        for attribute in found:
            name = attribute.name.text
            if name in seen:
                message = f"`{name}` is given twice"
                self._fault(codes.GIVEN_TWICE, message, attribute.span, first=seen[name])
            seen.setdefault(name, attribute)
        return found

    def description(self, c: Children, span: Span) -> _Description:
        return _Description(_string(c), span)

    def input_block(self, c: Children, span: Span) -> _Declarations:
        return _Declarations("input", _all(c, nodes.InputDecl), span)

    def input_decl(self, c: Children, span: Span) -> nodes.InputDecl:
        default = _exprs(c)
        return nodes.InputDecl(
            name=c[0], type=_type(c), default=default[0] if default else None, span=span
        )

    def var_decl(self, c: Children, span: Span) -> nodes.VarDecl:
        initial = _exprs(c)
        return nodes.VarDecl(
            name=c[1], type=_type(c), initial=initial[0] if initial else None, span=span
        )

    def output_block(self, c: Children, span: Span) -> _Declarations:
        return _Declarations("output", _all(c, nodes.OutputDecl), span)

    def output_decl(self, c: Children, span: Span) -> nodes.OutputDecl:
        return nodes.OutputDecl(name=c[0], value=c[2], span=span)

    def subscription(self, c: Children, span: Span) -> nodes.Subscription:
        mode = _one(c, nodes.Name)
        assert mode is not None
        if mode.text not in _MODES:
            self._fault(
                codes.UNEXPECTED,
                f'"{plain(mode.text)}" is not a way to take an event',
                mode.span,
                "write start, signal or start_or_signal",
            )
        inputs = [i for i in c if isinstance(i, _Declarations)]
        return nodes.Subscription(
            event_type=_string(c),
            mode=cast("Any", mode.text),
            filters=_all(c, nodes.FilterTerm),
            inputs=tuple(entry for block in inputs for entry in block.entries),
            span=span,
        )

    def filter(self, c: Children, span: Span) -> nodes.FilterTerm:
        return nodes.FilterTerm(path=c[0].value, value=c[2], span=span)

    def dotted(self, c: Children, span: Span) -> _Role:
        if len(c) == 1:
            return _Role("dotted", (c[0].text,), span)
        return _Role("dotted", (*c[0].value, c[2].text), span)

    def sub_input(self, c: Children, span: Span) -> _Declarations:
        return self.output_block(c, span)

    # --- types

    def named_type(self, c: Children, span: Span) -> nodes.NamedType:
        return nodes.NamedType(name=c[0].text, span=span)

    def nullable_type(self, c: Children, span: Span) -> nodes.NullableType:
        return nodes.NullableType(inner=c[0], span=span)

    def list_type(self, c: Children, span: Span) -> nodes.ListType:
        if c[0].text != "list":
            self._fault(
                codes.UNEXPECTED,
                f'"{plain(c[0].text)}" takes no type of its own',
                c[0].span,
                "a list is written `list<…>`",
            )
        return nodes.ListType(item=c[2], span=span)

    def object_type(self, c: Children, span: Span) -> nodes.ObjectType:
        return nodes.ObjectType(fields=_all(c, nodes.FieldType), span=span)

    def enum_type(self, c: Children, span: Span) -> nodes.EnumType:
        return nodes.EnumType(values=tuple(token.value for token in c[::2]), span=span)

    def field(self, c: Children, _span: Span) -> nodes.FieldType:
        return nodes.FieldType(
            name=c[0].text, optional=len(c) == 4, type=_type(c), name_span=c[0].span
        )

    # --- bodies

    def block(self, c: Children, span: Span) -> _Body:
        items = [item for item in c if not isinstance(item, Token)]
        self._check_head_first(items)
        return _Body(items, span)

    def _plain_block(self, body: _Body) -> nodes.Block:
        """A body that carries no description or attribute of a node."""
        for item in body.items:
            if isinstance(item, (_Description, nodes.Attribute)):
                message = f"{_what(item)} cannot stand here"
                hint = "it belongs to a node's own body"
                if isinstance(item, nodes.Attribute):
                    hint = f"put it into a `sequence` in here: `sequence {_braced(item)[1:]}"
                self._fault(codes.MISPLACED, message, item.span, hint)
        return _to_block(body)

    def _owned(self, body: _Body, header: Children) -> dict[str, Any]:
        """Description and attributes of the node that owns `body`."""
        return {
            "description": self._description(body.items),
            "attributes": self._attributes([*header, *body.items]),
        }

    def _key(self, name: nodes.Name) -> nodes.Name:
        if name.text in _ROOT_WORDS:
            message = f"`{name.text}` cannot be the key of a node"
            self._fault(codes.MISPLACED, message, name.span, "it begins a reference")
        return name

    def action(self, c: Children, span: Span) -> nodes.Action:
        body = _role(c, "action_body")
        items = body.value if body else []
        dotted: Token = c[3]
        return nodes.Action(
            key=self._key(c[1]),
            action=nodes.Name(text=dotted.text, span=_span_of(dotted)),
            arguments=_all(c, nodes.Argument),
            attributes=self._attributes(items),
            bindings=_all(items, nodes.Binding),
            description=self._description(items),
            span=span,
        )

    def argument(self, c: Children, span: Span) -> nodes.Argument:
        return nodes.Argument(name=c[0], value=c[2], span=span)

    def action_body(self, c: Children, span: Span) -> _Role:
        return _Role("action_body", c[1:-1], span)

    def binding(self, c: Children, span: Span) -> nodes.Binding:
        return nodes.Binding(name=c[1], value=c[3], span=span)

    def sequence(self, c: Children, span: Span) -> nodes.Sequence:
        body = cast("_Body", _one(c, _Body))
        on_error, finally_ = _role(c, "on_error"), _role(c, "finally")
        return nodes.Sequence(
            key=_one(c, nodes.Name),
            body=_to_block(body),
            on_error=on_error.value if on_error else None,
            finally_=finally_.value if finally_ else None,
            span=span,
            **self._owned(body, c),
        )

    def on_error(self, c: Children, span: Span) -> _Role:
        return _Role("on_error", self._plain_block(c[1]), span)

    def finally_block(self, c: Children, span: Span) -> _Role:
        return _Role("finally", self._plain_block(c[1]), span)

    def parallel(self, c: Children, span: Span) -> nodes.Parallel:
        body = cast("_Body", _one(c, _Body))
        for variable in _all(body.items, nodes.VarDecl):
            hint = "declare it around the parallel, or in a branch"
            message = "a parallel has no variables of its own"
            self._fault(codes.MISPLACED, message, variable.span, hint)
        return nodes.Parallel(
            key=_one(c, nodes.Name), branches=_to_block(body), span=span, **self._owned(body, c)
        )

    def if_statement(self, c: Children, span: Span) -> nodes.If:
        return self._if(c, span, else_if=False)

    def else_if(self, c: Children, span: Span) -> nodes.If:
        return self._if(c, span, else_if=True)

    def _if(self, c: Children, span: Span, *, else_if: bool) -> nodes.If:
        body = cast("_Body", _one(c, _Body))
        description = self._description(body.items)
        then = _Body([i for i in body.items if not isinstance(i, _Description)], body.span)
        return nodes.If(
            key=_one(c, nodes.Name),
            condition=_condition(c),
            then=self._plain_block(then),
            otherwise=_one(c, nodes.Block),
            else_if=else_if,
            description=description,
            span=span,
        )

    def else_block(self, c: Children, _span: Span) -> nodes.Block:
        if isinstance(c[1], _Body):
            return self._plain_block(c[1])
        return nodes.Block(variables=(), statements=(c[1],), span=c[1].span)

    def bare_key(self, c: Children, span: Span) -> nodes.BareKey:
        return nodes.BareKey(name=c[0].text, span=span)

    def switch(self, c: Children, span: Span) -> nodes.Switch:
        defaults = [i for i in c if isinstance(i, _Role) and i.role == "default"]
        for extra in defaults[1:]:
            self._fault(
                codes.GIVEN_TWICE, "`default` is given twice", extra.span, first=defaults[0]
            )
        cases = _all(c, nodes.Case)
        if defaults and cases and cases[-1].span.start > defaults[0].span.start:
            message = "a case cannot stand after `default`"
            self._fault(codes.MISPLACED, message, cases[-1].span, "`default` is the last")
        return nodes.Switch(
            key=_one(c, nodes.Name),
            subject=_condition(c),
            cases=cases,
            default=defaults[0].value if defaults else None,
            description=self._description(c),
            span=span,
        )

    def case(self, c: Children, span: Span) -> nodes.Case:
        values = tuple(i for i in c if isinstance(i, (nodes.LiteralExpr, nodes.BareKey)))
        return nodes.Case(values=values, body=self._plain_block(c[-1]), span=span)

    def default(self, c: Children, span: Span) -> _Role:
        return _Role("default", self._plain_block(c[1]), span)

    def repeat(self, c: Children, span: Span) -> nodes.Repeat:
        body, counter = cast("_Body", _one(c, _Body)), _role(c, "counter")
        return nodes.Repeat(
            key=_one(c, nodes.Name),
            count=_exprs(c)[0],
            counter=counter.value if counter else None,
            body=_to_block(body),
            span=span,
            **self._owned(body, c),
        )

    def counter(self, c: Children, span: Span) -> _Role:
        return _Role("counter", c[1], span)

    def while_statement(self, c: Children, span: Span) -> nodes.While:
        body = cast("_Body", _one(c, _Body))
        return nodes.While(
            key=_one(c, nodes.Name),
            condition=_condition(c),
            body=_to_block(body),
            span=span,
            **self._owned(body, c),
        )

    def foreach(self, c: Children, span: Span) -> nodes.Foreach:
        body = cast("_Body", _one(c, _Body))
        label, names = _role(c, "label"), cast("_Role", _role(c, "loop_names")).value
        return nodes.Foreach(
            key=self._key(label.value) if label else None,
            item=names[0],
            index=names[1] if len(names) > 1 else None,
            collection=_exprs(c)[0],
            body=_to_block(body),
            span=span,
            **self._owned(body, c),
        )

    def label(self, c: Children, span: Span) -> _Role:
        return _Role("label", c[0], span)

    def loop_names(self, c: Children, span: Span) -> _Role:
        return _Role("loop_names", _all(c, nodes.Name), span)

    def wait_event(self, c: Children, span: Span) -> nodes.WaitEvent:
        body = _role(c, "wait_body")
        items: list[Any] = body.value if body else []
        correlate, timeout = self._single(items, "correlate"), self._single(items, "timeout")
        return nodes.WaitEvent(
            key=self._key(c[1]),
            event_type=_string(c),
            correlate=correlate.value if correlate else None,
            timeout=timeout.value if timeout else None,
            timeout_body=timeout.extra if timeout else None,
            bindings=_all(items, nodes.Binding),
            attributes=self._attributes(items),
            description=self._description(items),
            span=span,
        )

    def _single(self, items: list[Any], role: str) -> _Role | None:
        found = [i for i in items if isinstance(i, _Role) and i.role == role]
        for extra in found[1:]:
            message = f"`{role}` is given twice"
            self._fault(codes.GIVEN_TWICE, message, extra.span, first=found[0])
        return found[0] if found else None

    def wait_body(self, c: Children, span: Span) -> _Role:
        return _Role("wait_body", c[1:-1], span)

    def correlate(self, c: Children, span: Span) -> _Role:
        return _Role("correlate", c[1], span)

    def wait_timeout(self, c: Children, span: Span) -> _Role:
        body = _one(c, _Body)
        block = self._plain_block(body) if body else None
        return _Role("timeout", _duration(c[1]), span, block)

    def set_statement(self, c: Children, span: Span) -> nodes.Set:
        return nodes.Set(name=c[1], value=c[3], span=span)

    def collect(self, c: Children, span: Span) -> _Role:
        return _Role("collect", nodes.Binding(name=c[1], value=c[3], span=span), span)

    def fail(self, c: Children, span: Span) -> nodes.Fail:
        return nodes.Fail(code=c[1], message=c[2] if len(c) > 2 else None, span=span)

    def sleep(self, c: Children, span: Span) -> nodes.Sleep:
        return nodes.Sleep(duration=_duration(c[1]), span=span)

    # --- attributes

    def attribute(self, c: Children, span: Span) -> nodes.Attribute:
        name = c[0] if isinstance(c[0], nodes.Name) else self.word(c[:1], _span_of(c[0]))
        values = [
            _duration(v) if isinstance(v, Token) else v
            for v in c[1:]
            if not isinstance(v, Token) or v.type == "DURATION"
        ]
        return nodes.Attribute(name=name, values=tuple(values), span=span)

    def sign_name(self, c: Children, span: Span) -> nodes.Name:
        return self.word(c, span)

    def flag(self, c: Children, span: Span) -> nodes.Name:
        return self.word(c, span)

    # --- expressions

    def literal_token(self, c: Children, span: Span) -> nodes.LiteralExpr:
        return nodes.LiteralExpr(value=c[0].value, span=span)

    def word_literal(self, c: Children, span: Span) -> nodes.LiteralExpr:
        return nodes.LiteralExpr(value=_WORDS[c[0].type], span=span)

    def negative(self, c: Children, span: Span) -> nodes.Expr:
        """`-20` is a literal, as in JSON; a minus before anything else is an operator."""
        operand = c[1]
        if isinstance(operand, nodes.LiteralExpr):
            value = operand.value
            if isinstance(value, (int, Decimal)) and not isinstance(value, bool) and value >= 0:
                return nodes.LiteralExpr(value=-value if value else value, span=span)
        return self.unary(c, span)

    def unary(self, c: Children, span: Span) -> nodes.Unary:
        return nodes.Unary(
            operator=c[0].type, operand=c[1], span=span, operator_span=_span_of(c[0])
        )

    def binary(self, c: Children, span: Span) -> nodes.Binary:
        return nodes.Binary(
            operator=c[1].type, left=c[0], right=c[2], span=span, operator_span=_span_of(c[1])
        )

    def parenthesis(self, c: Children, _span: Span) -> nodes.Expr:
        return cast("nodes.Expr", c[1])

    def list(self, c: Children, span: Span) -> nodes.ListExpr:
        return nodes.ListExpr(items=_exprs(c), span=span)

    def object(self, c: Children, span: Span) -> nodes.ObjectExpr:
        return nodes.ObjectExpr(entries=_all(c, nodes.ObjectEntry), span=span)

    def entry(self, c: Children, _span: Span) -> nodes.ObjectEntry:
        key = c[0].value if isinstance(c[0], Token) else c[0].text
        return nodes.ObjectEntry(key=key, value=c[2], key_span=_span_of(c[0]))

    def call(self, c: Children, span: Span) -> nodes.Call:
        return nodes.Call(function=c[0], arguments=_exprs(c), span=span)

    def named_reference(self, c: Children, span: Span) -> nodes.Reference:
        steps = tuple(i for i in c if isinstance(i, (nodes.KeyStep, nodes.IndexStep)))
        return nodes.Reference(root=c[0].type, steps=steps, span=span)

    def wrapped_reference(self, c: Children, span: Span) -> nodes.Reference:
        return nodes.Reference(root=c[1].root, steps=c[1].steps, span=span)

    def key_step(self, c: Children, span: Span) -> nodes.KeyStep:
        return nodes.KeyStep(key=c[1].text if c[0].type == "." else c[1].value, span=span)

    def index_step(self, c: Children, span: Span) -> nodes.IndexStep:
        return nodes.IndexStep(index=c[1], span=span)

    def template(self, c: Children, span: Span) -> nodes.TemplateString:
        parts = tuple(i for i in c if isinstance(i, (str, nodes.Reference)))
        return nodes.TemplateString(parts=parts, span=span)

    def piece(self, c: Children, _span: Span) -> str:
        return str(c[0].value)

    def placeholder(self, c: Children, _span: Span) -> nodes.Reference:
        return cast("nodes.Reference", c[1])

    # --- names

    def word(self, c: Children, span: Span) -> nodes.Name:
        return nodes.Name(text=c[0].text, span=span)

    attribute_word = word
    root_word = word


def _duration(token: Token) -> nodes.Duration:
    return nodes.Duration(milliseconds=token.value, span=_span_of(token))


def _condition(children: Children) -> nodes.Expr | nodes.BareKey:
    found = (c for c in children if isinstance(c, (*_EXPRESSIONS, nodes.BareKey)))
    return cast("nodes.Expr | nodes.BareKey", next(found))


def _to_block(body: _Body) -> nodes.Block:
    return nodes.Block(
        variables=_all(body.items, nodes.VarDecl),
        statements=tuple(i for i in body.items if isinstance(i, _STATEMENTS)),
        collects=tuple(i.value for i in body.items if isinstance(i, _Role)),
        span=body.span,
    )


def _what(item: Any) -> str:
    """What a declaration is called in a message."""
    match item:
        case _Description():
            return "`description`"
        case _Declarations():
            return f"`{item.kind}`"
        case nodes.VarDecl():
            return "`var`"
        case nodes.TypeAlias():
            return "`type`"
        case nodes.Subscription():
            return "`on`"
        case nodes.Attribute():
            return f"`{item.name.text}`"
        case _:
            return "this"
