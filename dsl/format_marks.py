"""What the grammar says about the tokens of a valid text, for whoever lays them out anew.

`MarkBuilder` stands in for the AST builder: the same machine feeds it, and instead of nodes it
notes, by offset, which brackets are bodies, where items begin, which signs stand close to their
neighbours and which tokens a canonical text does without.
"""

from __future__ import annotations

from typing import Any, Literal, cast

from dsl.quick_class import dataclass, field
from dsl.source import Span
from dsl.tokens import Token

Children = list[Any]
# A body holds items, declarations hold entries that may take commas, a list needs them.
GroupKind = Literal["body", "declarations", "list"]

_LOOSE_OPERATORS = frozenset(("??", "or", "and"))


@dataclass(frozen=True, slots=True)
class Value:
    """A whole expression: where it ends, and the operators at which it may be broken."""

    end: int
    breaks: tuple[int, ...]


@dataclass(slots=True)
class Marks:
    """Everything by the offset at which a token begins.

    `groups` are the brackets that may be laid out over several lines, `always_open` those of them
    that are, when anything stands in them. `items` begin a line of a body. `align` are the signs
    that line up in a run of items of one `kind`.
    """

    groups: dict[int, GroupKind] = field(default_factory=dict)
    always_open: set[int] = field(default_factory=set)
    items: dict[int, str] = field(default_factory=dict)
    align: dict[int, str] = field(default_factory=dict)
    close_before: set[int] = field(default_factory=set)
    close_after: set[int] = field(default_factory=set)
    spaced: set[int] = field(default_factory=set)
    dropped: set[int] = field(default_factory=set)
    values: dict[int, Value] = field(default_factory=dict)


@dataclass(slots=True)
class _Chain:
    """A binary expression: its operators of one strength, in order."""

    operator: str
    places: list[int]


@dataclass(slots=True)
class _Bodies:
    """The openers of the bodies of one statement."""

    openers: list[int]


def _tokens(children: Children, type_: str) -> list[Token]:
    return [c for c in children if isinstance(c, Token) and c.type == type_]


class MarkBuilder:
    """One method per rule of the grammar that matters here; the others pass their first child."""

    def __init__(self) -> None:
        self.marks = Marks()

    # --- items

    def _item(self, c: Children, span: Span) -> Any:
        first = c[0].type if isinstance(c[0], Token) else ""
        self.marks.items.setdefault(span.start, first)
        return c[0]

    top_item = workflow_item = block_item = _item
    action_item = wait_item = switch_item = sub_item = _item

    def input_decl(self, c: Children, span: Span) -> Token:
        self.marks.items[span.start] = "input"
        self._typed(c)
        return cast("Token", c[0])

    def output_decl(self, c: Children, span: Span) -> Token:
        self.marks.items[span.start] = "output"
        self._align_equals(c, "output")
        return cast("Token", c[0])

    def var_decl(self, c: Children, _span: Span) -> Token:
        self._typed(c)
        return cast("Token", c[0])

    def _typed(self, c: Children) -> None:
        for sign in (*_tokens(c, ":"), *_tokens(c, "=")):
            self.marks.spaced.add(sign.start)
            self.marks.align[sign.start] = sign.type

    def _align_equals(self, c: Children, _kind: str) -> None:
        for sign in _tokens(c, "="):
            self.marks.align[sign.start] = "="

    def _named(self, c: Children, _span: Span) -> Token:
        self._align_equals(c, "")
        return cast("Token", c[0])

    type_alias = binding = set_statement = collect = _named

    # --- bodies

    def _body(self, c: Children, kind: GroupKind = "body", *, always_open: bool = False) -> int:
        opener = _tokens(c, "{")[0].start
        self.marks.groups[opener] = kind
        if always_open:
            self.marks.always_open.add(opener)
        return opener

    def workflow(self, c: Children, _span: Span) -> Token:
        self._body(c, always_open=True)
        return cast("Token", c[0])

    def switch(self, c: Children, _span: Span) -> Token:
        self._body(c, always_open=True)
        return cast("Token", c[0])

    def subscription(self, c: Children, _span: Span) -> Token:
        if _tokens(c, "{"):
            self._body(c)
        return cast("Token", c[0])

    def block(self, c: Children, _span: Span) -> _Bodies:
        return _Bodies([self._body(c)])

    action_body = wait_body = block

    def _declarations(self, c: Children, _span: Span) -> Token:
        self._body(c, "declarations")
        self._drop_commas(c)
        return cast("Token", c[0])

    input_block = output_block = sub_input = _declarations

    def _chain_of_bodies(self, c: Children, _span: Span) -> Any:
        """Several bodies of one statement are all laid out over several lines, or none is."""
        openers = [o for part in c if isinstance(part, _Bodies) for o in part.openers]
        if len(openers) > 1:
            self.marks.always_open.update(openers)
        return c[0]

    sequence = if_statement = _chain_of_bodies

    def _part(self, c: Children, _span: Span) -> _Bodies:
        return _Bodies([o for part in c if isinstance(part, _Bodies) for o in part.openers])

    on_error = finally_block = else_block = else_if = _part

    def case(self, c: Children, _span: Span) -> Token:
        if isinstance(c[-2], Token) and c[-2].type == ",":
            self.marks.dropped.add(c[-2].start)
        return cast("Token", c[0])

    # --- lists

    def _list(self, c: Children, _span: Span) -> Token:
        self.marks.groups[c[0].start] = "list"
        self._drop_commas(c)
        return cast("Token", c[0])

    list = object = object_type = _list

    def action(self, c: Children, _span: Span) -> Token:
        opener = _tokens(c, "(")[0].start
        self.marks.groups[opener] = "list"
        self.marks.close_before.add(opener)
        self._drop_commas(c)
        self._align_equals(c, "action")
        return cast("Token", c[0])

    def _drop_commas(self, c: Children) -> None:
        self.marks.dropped.update(comma.start for comma in _tokens(c, ","))

    # --- signs

    def call(self, c: Children, _span: Span) -> Token:
        self.marks.close_before.add(_tokens(c, "(")[0].start)
        return cast("Token", c[0])

    def key_step(self, c: Children, _span: Span) -> Token:
        self.marks.close_before.add(c[0].start)
        return cast("Token", c[0])

    index_step = key_step

    def list_type(self, c: Children, _span: Span) -> Token:
        opener, closer = _tokens(c, "<")[0].start, _tokens(c, ">")[-1].start
        self.marks.close_before.update((opener, closer))
        self.marks.close_after.add(opener)
        return cast("Token", c[0])

    def negative(self, c: Children, _span: Span) -> Token:
        self.marks.close_after.add(c[0].start)
        return cast("Token", c[0])

    def sign_name(self, c: Children, _span: Span) -> Token:
        if c[0].type == "%":
            self.marks.close_before.add(c[0].start)
        return cast("Token", c[0])

    def wrapped_reference(self, c: Children, _span: Span) -> Token:
        self.marks.dropped.update((c[0].start, c[2].start))
        return cast("Token", c[0])

    # --- expressions

    def binary(self, c: Children, _span: Span) -> Any:
        operator = cast("Token", c[1])
        if operator.type not in _LOOSE_OPERATORS:
            return c[0] if isinstance(c[0], Token) else operator
        if isinstance(c[0], _Chain) and c[0].operator == operator.type:
            c[0].places.append(operator.start)
            return c[0]
        return _Chain(operator.type, [operator.start])

    def value(self, c: Children, span: Span) -> Any:
        if isinstance(c[0], _Chain):
            self.marks.values[span.start] = Value(span.end, tuple(c[0].places))
        return c[0]
