"""The typed AST of a `.wf` file.

Every value is frozen. `span` takes no part in comparison, so two programs that differ only in
layout are equal. Sequences are tuples. Deep programs make deep trees: walk them with `dsl.walk`,
never by recursion (`==`, `repr` and `deepcopy` recurse too).
"""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

from dsl.quick_class import dataclass, field
from dsl.source import Span

# --- expressions -------------------------------------------------------------------------------

Number = int | Decimal
Scalar = str | int | Decimal | bool | None
ReferenceRoot = Literal["var", "ctx", "out", "code", "event"]
BinaryOperator = Literal[
    "??", "or", "and", "==", "!=", "<", "<=", ">", ">=", "in", "+", "-", "*", "//", "%"
]
UnaryOperator = Literal["not", "-"]


def _span() -> Span:
    return field(compare=False)  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """An identifier with its place."""

    text: str
    span: Span = _span()


@dataclass(frozen=True, slots=True, kw_only=True)
class LiteralExpr:
    """A JSON scalar: string without placeholders, number, `true`, `false` or `null`."""

    value: Scalar
    span: Span = _span()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyStep:
    """`.name` or `["odd key"]`."""

    key: str
    span: Span = _span()


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexStep:
    """`[3]` or `[var.i]`: `index` is a LiteralExpr with an int, or a Reference."""

    index: LiteralExpr | Reference
    span: Span = _span()


Step = KeyStep | IndexStep


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """`var.a.b[0]`, `ctx.task.pack.output.parcel`, `out.ok`, `code`, `event.payload.at`.

    `steps` are all steps after the root word; for `code` there are none. `${var.x}` written
    around a reference gives the same node.
    """

    root: ReferenceRoot
    steps: tuple[Step, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateString:
    """A string with at least one `${…}`; `parts` alternate as written, literal pieces unescaped.

    Exactly one part that is a Reference keeps the JSON type of what it names.
    """

    parts: tuple[str | Reference, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True, kw_only=True)
class ListExpr:
    items: tuple[Expr, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectEntry:
    key: str
    value: Expr
    key_span: Span = _span()


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectExpr:
    entries: tuple[ObjectEntry, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True, kw_only=True)
class Unary:
    operator: UnaryOperator
    operand: Expr
    span: Span = _span()
    operator_span: Span = _span()


@dataclass(frozen=True, slots=True, kw_only=True)
class Binary:
    operator: BinaryOperator
    left: Expr
    right: Expr
    span: Span = _span()
    operator_span: Span = _span()


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """`len(x)` or `defined(ref)`; any other name is for the compiler to refuse."""

    function: Name
    arguments: tuple[Expr, ...]
    span: Span = _span()


Expr = LiteralExpr | Reference | TemplateString | ListExpr | ObjectExpr | Unary | Binary | Call

# --- types -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedType:
    """`string int number bool any object`, or the name of an alias."""

    name: str
    span: Span = _span()


@dataclass(frozen=True, slots=True, kw_only=True)
class ListType:
    item: TypeExpr
    span: Span = _span()


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldType:
    name: str
    optional: bool
    type: TypeExpr
    name_span: Span = _span()


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectType:
    fields: tuple[FieldType, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True, kw_only=True)
class EnumType:
    values: tuple[str, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True, kw_only=True)
class NullableType:
    inner: TypeExpr
    span: Span = _span()


TypeExpr = NamedType | ListType | ObjectType | EnumType | NullableType

# --- declarations ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeAlias:
    name: Name
    type: TypeExpr
    span: Span = _span()


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    path: str
    span: Span = _span()


@dataclass(frozen=True, slots=True, kw_only=True)
class InputDecl:
    name: Name
    type: TypeExpr
    default: Expr | None
    span: Span = _span()


@dataclass(frozen=True, slots=True, kw_only=True)
class VarDecl:
    name: Name
    type: TypeExpr
    initial: Expr | None
    span: Span = _span()


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputDecl:
    name: Name
    value: Expr
    span: Span = _span()


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterTerm:
    """`where field == literal`; `path` is the dotted field of the payload."""

    path: tuple[str, ...]
    value: LiteralExpr
    span: Span = _span()


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """`on event "type" start|signal|start_or_signal { where …; input { name = expr } }`."""

    event_type: str
    mode: Literal["start", "signal", "start_or_signal"]
    filters: tuple[FilterTerm, ...]
    inputs: tuple[OutputDecl, ...]
    span: Span = _span()


# --- statements --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """`set name = expr` on a node, or `collect name = expr` at the top of a foreach body."""

    name: Name
    value: Expr
    span: Span = _span()


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """One attribute as written: `timeout 30s`, `limit 4`, `priority 5`, `keep_going`, …

    `words` are the values in order: durations as int milliseconds in a `Duration`, numbers,
    expressions, names. The builder checks the shape, the compiler the meaning.
    """

    name: Name
    values: tuple[Duration | Expr | Name, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True, kw_only=True)
class Duration:
    milliseconds: int
    span: Span = _span()


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    name: Name
    value: Expr
    span: Span = _span()


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A `{ … }` body: variables first, then statements.

    `collects` are only filled for the body of a foreach; the parser accepts them anywhere among
    the statements of a body, and the compiler refuses them elsewhere.
    """

    variables: tuple[VarDecl, ...]
    statements: tuple[Statement, ...]
    collects: tuple[Binding, ...] = ()
    span: Span = _span()


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    key: Name
    action: Name
    arguments: tuple[Argument, ...]
    attributes: tuple[Attribute, ...]
    bindings: tuple[Binding, ...]
    description: str | None = None
    span: Span = _span()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sequence:
    key: Name | None
    body: Block
    attributes: tuple[Attribute, ...] = ()
    on_error: Block | None = None
    finally_: Block | None = None
    description: str | None = None
    span: Span = _span()


@dataclass(frozen=True, slots=True, kw_only=True)
class Parallel:
    """`branches` holds the children in `statements`; a parallel has no variables of its own."""

    key: Name | None
    branches: Block
    attributes: tuple[Attribute, ...] = ()
    description: str | None = None
    span: Span = _span()


@dataclass(frozen=True, slots=True, kw_only=True)
class If:
    """`else if` is an `otherwise` whose only statement is an unkeyed `If` (`else_if` is True)."""

    key: Name | None
    condition: Expr | BareKey
    then: Block
    otherwise: Block | None
    else_if: bool = False
    description: str | None = None
    span: Span = _span()


@dataclass(frozen=True, slots=True, kw_only=True)
class BareKey:
    """A bare ACTION key where an expression may stand: `if reserve`, `switch reserve`."""

    name: str
    span: Span = _span()


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Values are LiteralExpr, or BareKey for the catalog's name of a result code."""

    values: tuple[LiteralExpr | BareKey, ...]
    body: Block
    span: Span = _span()


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    key: Name | None
    subject: Expr | BareKey
    cases: tuple[Case, ...]
    default: Block | None
    description: str | None = None
    span: Span = _span()


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    key: Name | None
    count: Expr
    counter: Name | None
    body: Block
    attributes: tuple[Attribute, ...] = ()
    description: str | None = None
    span: Span = _span()


@dataclass(frozen=True, slots=True, kw_only=True)
class While:
    """`max N` stands in `attributes`."""

    key: Name | None
    condition: Expr | BareKey
    body: Block
    attributes: tuple[Attribute, ...] = ()
    description: str | None = None
    span: Span = _span()


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreach:
    """`parallel [N]`, `batch N`, `tolerate N|P%`, `reuse`, `keep_going` stand in `attributes`."""

    key: Name | None
    item: Name
    index: Name | None
    collection: Expr
    body: Block
    attributes: tuple[Attribute, ...] = ()
    description: str | None = None
    span: Span = _span()


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitEvent:
    key: Name
    event_type: str
    correlate: Expr | None
    timeout: Duration | None
    timeout_body: Block | None
    bindings: tuple[Binding, ...]
    attributes: tuple[Attribute, ...] = ()
    description: str | None = None
    span: Span = _span()


@dataclass(frozen=True, slots=True, kw_only=True)
class Set:
    name: Name
    value: Expr
    span: Span = _span()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fail:
    code: Expr
    message: Expr | None
    span: Span = _span()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sleep:
    duration: Duration
    span: Span = _span()


Statement = (
    Action
    | Sequence
    | Parallel
    | If
    | Switch
    | Repeat
    | While
    | Foreach
    | WaitEvent
    | Set
    | Fail
    | Sleep
)

# --- files -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Workflow:
    name: Name
    description: str | None
    types: tuple[TypeAlias, ...]
    inputs: tuple[InputDecl, ...]
    variables: tuple[VarDecl, ...]
    outputs: tuple[OutputDecl, ...]
    subscriptions: tuple[Subscription, ...]
    body: Block
    attributes: tuple[Attribute, ...] = ()
    span: Span = _span()


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    imports: tuple[Import, ...]
    types: tuple[TypeAlias, ...]
    workflows: tuple[Workflow, ...]
    span: Span = _span()
