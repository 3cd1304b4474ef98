"""The LALR machine: states and values, one token at a time.

It builds the AST as it reduces and keeps every stack in lists, so that no depth of input can
overflow Python's own stack. Beside each value it keeps where the value begins and ends and how
deep it nests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dsl.builder import Builder
from dsl.source import Span
from dsl.table import Table
from dsl.tokens import Token

MAX_DEPTH = 512

# Rules that add a level of nesting, and rules from which it is counted anew.
_DEEPENS = frozenset(
    (
        "binary",
        "unary",
        "negative",
        "parenthesis",
        "list",
        "object",
        "call",
        "index_step",
        "list_type",
        "object_type",
        "nullable_type",
        "block",
        "else_if",
    )
)
_RESETS = frozenset(
    (
        "value",
        "condition",
        "case_value",
        "input_decl",
        "var_decl",
        "type_alias",
        "attribute",
        "message",
        "filter",
    )
)
# Rules with items between braces (or in the file): where recovery can take up again.
CONTEXTS = frozenset(
    (
        "@top_item",
        "@workflow_item",
        "@block_item",
        "@action_item",
        "@wait_item",
        "@switch_item",
        "@sub_item",
        "@input_decl",
        "@output_decl",
    )
)


class _Splice(list[Any]):
    """The children of a rule that is spliced into its parent."""


class Machine:
    """`too_deep` is called with the span of the first value that nests deeper than MAX_DEPTH."""

    def __init__(self, table: Table, builder: Builder, too_deep: Callable[[Span], None]) -> None:
        self._table = table
        self._actions = table.actions
        self._methods = [getattr(builder, rule.method, None) for rule in table.rules]
        # Rules that pass their only child on: most of a reduction can be spared.
        self._passes = [
            method is None
            and rule.size == 1
            and not rule.origin.startswith("_")
            and rule.method not in _RESETS
            for method, rule in zip(self._methods, table.rules, strict=True)
        ]
        self._too_deep: Callable[[Span], None] | None = too_deep
        self.states = [table.start]
        self.values: list[Any] = []
        self.spans: list[tuple[int, int]] = []
        self._depths: list[int] = []
        self.result: Any = None

    def feed(self, token: Token) -> bool:
        """Takes a token, or returns False when it cannot stand here.

        Reductions made before a refusal stay made: the table is LALR(1), so they are right.
        """
        type_ = token.type
        while True:
            action = self._actions[self.states[-1]].get(type_)
            if action is None:
                return False
            if action > 0:
                self._push(action - 1, token, (token.start, token.end), 0)
                return True
            self._reduce(-action - 1)
            if type_ == "$END" and self.states[-1] == self._table.end:
                self.result = self.values[-1]
                return True

    def _push(self, state: int, value: Any, span: tuple[int, int], depth: int) -> None:
        self.states.append(state)
        self.values.append(value)
        self.spans.append(span)
        self._depths.append(depth)

    def _reduce(self, number: int) -> None:
        rule = self._table.rules[number]
        if self._passes[number]:
            self.states.pop()
            self.states.append(self._actions[self.states[-1]][rule.goto] - 1)
            return
        size = rule.size
        children: list[Any] = []
        span = self._empty_span()
        depth = 0
        if size:
            children = self.values[-size:]
            span = (self.spans[-size][0], self.spans[-1][1])
            depth = self._measure(rule.method, max(self._depths[-size:]), span)
            self.pop_to(len(self.values) - size)
        value = self._value(number, rule.origin, children, span)
        self._push(self._actions[self.states[-1]][rule.goto] - 1, value, span, depth)

    def _empty_span(self) -> tuple[int, int]:
        end = self.spans[-1][1] if self.spans else 0
        return (end, end)

    def _measure(self, method: str, depth: int, span: tuple[int, int]) -> int:
        if method in _RESETS:
            return 0
        if method not in _DEEPENS:
            return depth
        if depth >= MAX_DEPTH and self._too_deep:
            self._too_deep(Span(*span))
            self._too_deep = None
        return depth + 1

    def _value(self, number: int, origin: str, children: list[Any], span: tuple[int, int]) -> Any:
        if origin.startswith("_"):
            return _spliced(children)
        method = self._methods[number]
        if method is None:
            return children[0]
        return method(_flat(children), Span(*span))

    def pop_to(self, height: int) -> None:
        """Drops values until `height` are left."""
        del self.values[height:], self.spans[height:], self._depths[height:]
        del self.states[height + 1 :]

    # --- questions, which change nothing

    def accepts(self, *types: str) -> bool:
        """Whether tokens of these types could stand here, one after the other."""
        states = list(self.states)
        return all(self._simulate(states, type_) for type_ in types)

    def accepted(self) -> set[str]:
        """The types of all tokens that could stand here."""
        candidates = self._table.terminals & self._actions[self.states[-1]].keys()
        return {type_ for type_ in candidates if self.accepts(type_)}

    def _simulate(self, states: list[int], type_: str) -> bool:
        while True:
            action = self._actions[states[-1]].get(type_)
            if action is None:
                return False
            if action > 0:
                states.append(action - 1)
                return True
            rule = self._table.rules[-action - 1]
            if rule.size:
                del states[-rule.size :]
            states.append(self._actions[states[-1]][rule.goto] - 1)
            if type_ == "$END" and states[-1] == self._table.end:
                return True

    def context_height(self, below: int) -> int | None:
        """The height, at most `below`, of the nearest place where items may follow."""
        for height in range(below, -1, -1):
            if not CONTEXTS.isdisjoint(self._actions[self.states[height]]):
                return height
        return None

    def contexts(self) -> frozenset[str]:
        """The kinds of item that may begin here."""
        return CONTEXTS & self._actions[self.states[-1]].keys()


def _spliced(children: list[Any]) -> _Splice:
    """Extends the first child in place, so that long lists take linear time."""
    if children and isinstance(children[0], _Splice):
        result = children[0]
        for child in children[1:]:
            result.extend(child) if isinstance(child, _Splice) else result.append(child)
        return result
    return _Splice(_flat(children))


def _flat(children: list[Any]) -> list[Any]:
    if not any(isinstance(child, _Splice) for child in children):
        return children
    flat: list[Any] = []
    for child in children:
        flat.extend(child) if isinstance(child, _Splice) else flat.append(child)
    return flat
