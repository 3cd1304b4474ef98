"""The LALR machine: states and values, one token at a time.

It builds the AST as it reduces and keeps every stack in lists, so that no depth of input can
overflow Python's own stack. Beside each value it keeps where the value begins and ends and how
deep it nests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dsl.builder import Builder
from dsl.quick_class import dataclass
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


@dataclass(slots=True, eq=False, repr=False)
class _Reduction:
    """A rule, prepared for the machine: what to do is looked up once, not at every reduction."""

    size: int
    goto: str
    method: Callable[[list[Any], Any], Any] | None
    asks_span: bool
    splices: bool
    left_first: bool
    deepens: bool
    resets: bool


class _Splice(list[Any]):
    """The children of a rule that is spliced into its parent."""


class Machine:
    """`too_deep` is called with the span of the first value that nests deeper than MAX_DEPTH."""

    def __init__(self, table: Table, builder: Builder, too_deep: Callable[[Span], None]) -> None:
        self._table = table
        self._actions = table.actions
        methods = {rule.method: getattr(builder, rule.method, None) for rule in table.rules}
        rules = [
            _Reduction(
                size=rule.size,
                goto=rule.goto,
                method=methods[rule.method],
                asks_span=_asks_span(methods[rule.method]),
                splices=rule.origin.startswith("_"),
                left_first=rule.method == "binary",
                deepens=rule.method in _DEEPENS,
                resets=rule.method in _RESETS,
            )
            for rule in table.rules
        ]
        # The last rule first, so that the action -n - 1 finds rule n by its own number.
        self._rules = rules[::-1]
        # Rules that pass their only child on: most of a reduction can be spared.
        self._passes = [
            r.goto if r.method is None and r.size == 1 and not r.splices and not r.resets else None
            for r in self._rules
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
        return self.run([token], 0) == 1

    def run(self, tokens: list[Token], i: int, stops: frozenset[int] = frozenset()) -> int:
        """Takes tokens from index `i` on, and returns the index of the first that cannot stand
        where it is or is one of `stops`; their number when there is none."""
        actions, states, values, passes = self._actions, self.states, self.values, self._passes
        shift_span, shift_depth = self.spans.append, self._depths.append
        while i < len(tokens) and i not in stops:
            token = tokens[i]
            type_ = token.type
            while True:
                action = actions[states[-1]].get(type_)
                if action is None:
                    if type_ != ">=" or not self._feed_halves(token):
                        return i
                    break
                if action > 0:
                    states.append(action - 1)
                    values.append(token)
                    shift_span((token.start, token.end))
                    shift_depth(0)
                    break
                if (goto := passes[action]) is not None:
                    states[-1] = actions[states[-2]][goto] - 1
                else:
                    self._reduce(self._rules[action])
                if type_ == "$END" and states[-1] == self._table.end:
                    self.result = values[-1]
                    break
            i += 1
        return i

    def _feed_halves(self, token: Token) -> bool:
        """`list<int>= 3`: the first half ends the type, the second begins its value."""
        if not self.accepts(">", "="):
            return False
        middle = token.start + 1
        return self.feed(Token(">", ">", token.start, middle)) and self.feed(
            Token("=", "=", middle, token.end)
        )

    def _reduce(self, rule: _Reduction) -> None:
        size, values, spans, depths = rule.size, self.values, self.spans, self._depths
        if size == 1:
            if rule.deepens:
                depths[-1] = self._deeper(depths[-1], spans[-1])
            self.states[-1] = self._actions[self.states[-2]][rule.goto] - 1
            values[-1] = _value(rule, values[-1:], spans[-1])
        else:
            self._reduce_many(rule)
        if rule.resets:
            depths[-1] = 0

    def _reduce_many(self, rule: _Reduction) -> None:
        size, values, spans, depths = rule.size, self.values, self.spans, self._depths
        children: list[Any] = []
        depth = 0
        if size == 0:
            end = spans[-1][1] if spans else 0
            span = (end, end)
        else:
            children = values[-size:]
            span = (spans[-size][0], spans[-1][1])
            depth = max(depths[-size:])
            if rule.deepens:
                depth = self._deeper(depth, spans[-2] if rule.left_first else span)
            del values[-size:], spans[-size:], depths[-size:], self.states[-size:]
        self.states.append(self._actions[self.states[-1]][rule.goto] - 1)
        values.append(_value(rule, children, span))
        spans.append(span)
        depths.append(depth)

    def _deeper(self, depth: int, place: tuple[int, int]) -> int:
        """One level more than `depth`; in `1 + 1 + …` the last operator is the one too many."""
        if depth >= MAX_DEPTH and self._too_deep:
            self._too_deep(Span(*place))
            self._too_deep = None
        return depth + 1

    def pop_to(self, height: int) -> None:
        """Drops values until `height` are left."""
        del self.values[height:], self.spans[height:], self._depths[height:]
        del self.states[height + 1 :]

    # --- questions, which change nothing

    def accepts(self, *types: str, drop: int = 0) -> bool:
        """Whether tokens of these types could stand here, one after the other; with `drop`, after
        that many values were taken away."""
        states = self.states[: len(self.states) - drop]
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


def _value(rule: _Reduction, children: list[Any], span: tuple[int, int]) -> Any:
    if rule.splices:
        return _spliced(children)
    if rule.method is None:
        return children[0]
    return rule.method(_flat(children), Span(*span) if rule.asks_span else None)


def _asks_span(method: Any) -> bool:
    """Whether a method of the builder looks at the span: one that does not calls it `_span`."""
    return method is not None and method.__code__.co_varnames[2] != "_span"


def _spliced(children: list[Any]) -> _Splice:
    """Extends the first child in place, so that long lists take linear time."""
    if children and isinstance(children[0], _Splice):
        result = children[0]
        for child in children[1:]:
            result.extend(child) if isinstance(child, _Splice) else result.append(child)
        return result
    return _Splice(_flat(children))


def _flat(children: list[Any]) -> list[Any]:
    for child in children:
        if type(child) is _Splice:
            break
    else:
        return children
    flat: list[Any] = []
    for child in children:
        flat.extend(child) if type(child) is _Splice else flat.append(child)
    return flat
