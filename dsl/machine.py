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
from dsl.table import Rule, Table
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
    passes: bool
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
                passes=_passes(rule, methods[rule.method]),
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
        self._chains: dict[tuple[int, int, str], int] = {}
        self._only: dict[int, int] = {}
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
        actions, states, rules, chains = self._actions, self.states, self._rules, self._chains
        shift_value, shift_state = self.values.append, states.append
        shift_span, shift_depth = self.spans.append, self._depths.append
        while i < len(tokens) and i not in stops:
            token = tokens[i]
            type_ = token.type
            while (action := actions[states[-1]].get(type_)) is not None and action < 0:
                rule = rules[action]
                if rule.passes:
                    place = (states[-2], states[-1], type_)
                    states[-1] = chains.get(place) or self._chain(*place)
                elif rule.size == 1:
                    self._reduce_one(rule)
                else:
                    self._reduce(rule)
            if action is not None:
                shift_state(action - 1)
                shift_value(token)
                shift_span((token.start, token.end))
                shift_depth(0)
            elif states[-1] == self._table.end:
                self.result = self.values[-1]
            elif type_ != ">=" or not self._feed_halves(token):
                return i
            i += 1
        return i

    def _chain(self, below: int, top: int, type_: str) -> int:
        """The state that `top` becomes before a token by all reductions which pass a value on: a
        number in a list is nine of them, so each way is walked once."""
        state = top
        while (action := self._actions[state].get(type_, 0)) < 0 and self._rules[action].passes:
            state = self._actions[below][self._rules[action].goto] - 1
        self._chains[below, top, type_] = state
        return state

    def _feed_halves(self, token: Token) -> bool:
        """`list<int>= 3`: the first half ends the type, the second begins its value."""
        if not self.accepts(">", "="):
            return False
        middle = token.start + 1
        return self.feed(Token(">", ">", token.start, middle)) and self.feed(
            Token("=", "=", middle, token.end)
        )

    def _reduce_one(self, rule: _Reduction) -> None:
        """What a rule of one child comes to, in the child's place."""
        child, depths = self.values[-1], self._depths
        if rule.deepens:
            depths[-1] = self._deeper(depths[-1], self.spans[-1])
        elif rule.resets:
            depths[-1] = 0
        self.states[-1] = self._actions[self.states[-2]][rule.goto] - 1
        if rule.splices:
            self.values[-1] = child if type(child) is _Splice else _Splice((child,))
        elif rule.method is not None:
            children = list(child) if type(child) is _Splice else [child]
            span = Span(*self.spans[-1]) if rule.asks_span else None
            self.values[-1] = rule.method(children, span)

    def _reduce(self, rule: _Reduction) -> None:
        size, values, spans, depths = rule.size, self.values, self.spans, self._depths
        depth = 0
        if size == 0:
            end = spans[-1][1] if spans else 0
            children, span = [], (end, end)
        else:
            children, span = values[-size:], (spans[-size][0], spans[-1][1])
            if not rule.resets:
                depth = max(depths[-size:])
            if rule.deepens:
                depth = self._deeper(depth, spans[-2] if rule.left_first else span)
            del values[-size:], spans[-size:], depths[-size:], self.states[-size:]
        self.states.append(self._actions[self.states[-1]][rule.goto] - 1)
        if rule.splices:
            values.append(_spliced(children))
        elif rule.method is None:
            values.append(children[0])
        else:
            values.append(rule.method(_flat(children), Span(*span) if rule.asks_span else None))
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
        height, above = len(self.states) - drop, list[int]()
        for type_ in types:
            while (action := self._row(height, above).get(type_, 0)) < 0:
                height = self._reduce_ahead(height, above, self._table.rules[-action - 1])
                if type_ == "$END" and above[-1] == self._table.end:
                    return True
            if action == 0:
                return False
            above.append(action - 1)
        return True

    def accepted(self) -> set[str]:
        """The types of all tokens that could stand here.

        Those that reduce the same rules are followed as one: where hundreds of bodies end here,
        that is hundreds of rules.
        """
        found: set[str] = set()
        pending = [(len(self.states), list[int](), self._table.terminals)]
        while pending:
            height, above, types = pending.pop()
            row = self._row(height, above)
            while (only := self._only_reduction(row)) < 0:
                types &= row.keys()
                height = self._reduce_ahead(height, above, self._table.rules[-only - 1])
                row = self._row(height, above)
            by_action: dict[int, set[str]] = {}
            for type_ in types & row.keys():
                by_action.setdefault(min(row[type_], 0), set()).add(type_)
            found |= by_action.pop(0, set())
            for action, some in by_action.items():
                over = above.copy()
                left = self._reduce_ahead(height, over, self._table.rules[-action - 1])
                if over[-1] == self._table.end:
                    found |= some
                pending.append((left, over, frozenset(some)))
        return found

    def _only_reduction(self, row: dict[str, int]) -> int:
        """The reduction that all tokens lead to which can follow; 0 when there are others."""
        found = self._only.get(id(row))
        if found is None:
            actions = {row[type_] for type_ in self._table.terminals & row.keys()}
            found = self._only[id(row)] = min(actions) if len(actions) == 1 else 0
        return min(found, 0)

    def _row(self, height: int, above: list[int]) -> dict[str, int]:
        """What can follow the first `height` states of the machine and those `above`."""
        return self._actions[above[-1] if above else self.states[height - 1]]

    def _reduce_ahead(self, height: int, above: list[int], rule: Rule) -> int:
        """Reduces a rule in `above`; returns how many of the machine's own states are left."""
        cut = len(above) - rule.size
        del above[max(cut, 0) :]
        height += min(cut, 0)
        above.append(self._row(height, above)[rule.goto] - 1)
        return height

    def context_height(self, below: int) -> int | None:
        """The height, at most `below`, of the nearest place where items may follow."""
        for height in range(below, -1, -1):
            if not CONTEXTS.isdisjoint(self._actions[self.states[height]]):
                return height
        return None

    def contexts(self) -> frozenset[str]:
        """The kinds of item that may begin here."""
        return CONTEXTS & self._actions[self.states[-1]].keys()


def _passes(rule: Rule, method: Any) -> bool:
    """Whether all that a rule does is to pass its only child on."""
    spliced = rule.origin.startswith("_")
    return method is None and rule.size == 1 and not spliced and rule.method not in _RESETS


def _asks_span(method: Any) -> bool:
    """Whether a method of the builder looks at the span: one that does not calls it `_span`."""
    return method is not None and method.__code__.co_varnames[2] != "_span"


def _spliced(children: list[Any]) -> _Splice:
    """Extends the first child in place, so that long lists take linear time."""
    result = children[0] if children and type(children[0]) is _Splice else None
    if result is None:
        return _Splice(_flat(children))
    for child in children[1:]:
        if type(child) is _Splice:
            result.extend(child)
        else:
            result.append(child)
    return result


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
