"""Which references are surely not null when they are evaluated.

`Settled` is what `flow.py` carries along the ways of a workflow: the places (a variable, a field of
it, a part of a task's output) that something has shown not to be null, and the tasks of which one
has asked how they ended. A condition shows it for its branch, and for what comes after when the
other branch always fails; a `set` shows it for the variable it writes. Writing a variable, or
running a task again, ends what was known of it. Undoing goes by a log, as in `flow.py`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Sequence

from compiler.expressions import (
    NOT_LITERAL,
    children,
    literal_value,
    lone_reference,
    step_key,
    task_key,
)
from compiler.model import Model, Node, Site, Variable
from dsl.nodes import (
    BareKey,
    Binary,
    Call,
    Expr,
    IndexStep,
    KeyStep,
    ListExpr,
    Reference,
    Unary,
)
from dsl.quick_class import dataclass, field

Place = tuple[Hashable, ...]
"""Where a reference leads: its root (a variable, a task's key, or words), then its steps."""
Outcome = tuple[set[Place], set[Place]]
"""What a path has added, and what it has taken away."""
_ORDERS = ("<", "<=", ">", ">=")


@dataclass(frozen=True, slots=True)
class _Inside:
    """What `and` and `or` show within one expression."""

    has_junction: bool
    shown: dict[int, frozenset[Place]] = field(default_factory=dict)
    """By `id` of a reference behind one of them: what its left side has shown, wholes included."""


class Settled:
    """Places that are surely not null here."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._held: set[Place] = set()
        self._log: list[tuple[Place, bool]] = []
        self._by_root: dict[Hashable, set[Place]] = {}
        self._writes: list[tuple[int, Variable]] | None = None
        self._last_inside: tuple[Site | None, _Inside] = (None, _Inside(False))

    # --- what is shown

    def assume(self, places: Iterable[Place]) -> None:
        """What is not null is a part of nothing that is null."""
        for place in places:
            for whole in _wholes(place):
                if whole not in self._held:
                    self._put(whole, True)

    def write(self, variable: Variable, not_null: bool) -> None:
        """A variable gets a value; what was known of the old one is over."""
        self.forget([variable])
        if not_null and variable.type.nullable:
            self.assume([(variable,)])

    def forget(self, roots: Iterable[Hashable]) -> None:
        for root in roots:
            for place in list(self._by_root.get(root, ())):
                if place in self._held:
                    self._put(place, False)

    def forget_inside(self, node: Node) -> None:
        """What a node below may change: it may have run, any number of times."""
        if self._held:
            self.forget(self._changed_in(node))

    def _changed_in(self, node: Node) -> list[Hashable]:
        """The roots that a node or one below it changes, looked for among the fewer: what stands
        there, or what is known of."""
        if self._writes is None:
            written = self._model.all_variables()
            pairs = ((write.node.index, v) for v in written for write in v.writes)
            self._writes = sorted(pairs, key=_index_of)
        first = bisect_left(self._writes, node.index, key=_index_of)
        last = bisect_right(self._writes, node.last, key=_index_of)
        if last - first + node.last - node.index < len(self._by_root):
            below = self._model.nodes[node.index : node.last + 1]
            keys = [n.key for n in below if self._model.by_key.get(n.key) is n]
            return [*dict.fromkeys(v for _index, v in self._writes[first:last]), *keys]
        return [root for root in self._by_root if self._is_changed_in(root, node)]

    def _is_changed_in(self, root: Hashable, node: Node) -> bool:
        if isinstance(root, Variable):
            return root.is_written_in(node)
        task = self._model.by_key.get(str(root))
        return task is not None and node.holds(task)

    # --- ways that part and meet

    def mark(self) -> int:
        return len(self._log)

    def take_back(self, mark: int) -> Outcome:
        """Undoes what came since the mark and returns it."""
        before: dict[Place, bool] = {}
        after = dict(self._log[mark:])
        while len(self._log) > mark:
            place, was_added = self._log.pop()
            before[place] = not was_added
            (self._held.discard if was_added else self._held.add)(place)
        changed = [place for place in after if after[place] != before[place]]
        added = {place for place in changed if after[place]}
        return added, {place for place in changed if not after[place]}

    def merge(self, outcomes: Sequence[Outcome]) -> None:
        """Goes on with what all of these paths have."""
        if outcomes:
            for _added, removed in outcomes:
                self._drop(removed)
            self.assume(set.intersection(*(added for added, _removed in outcomes)))

    def follow(self, outcome: Outcome) -> None:
        """Goes on after a path that was taken."""
        self._drop(outcome[1])
        self.assume(outcome[0])

    # --- reading

    def read(self, site: Site) -> Iterable[int]:
        """Yields the ids of the references of a site that are surely not null."""
        if self._held:
            for reference in site.references:
                if self._holds(reference):
                    yield id(reference)
        shown_inside = self._inside(site).shown
        for reference in site.references if shown_inside else ():
            shown = shown_inside.get(id(reference), frozenset())
            task = task_key(reference)
            if self.place_of(reference) in shown or (task is not None and ("asked", task) in shown):
                yield id(reference)

    def part_not_null(self, site: Site, reference: Reference, count: int) -> bool:
        """Whether the first `count` steps of a reference surely lead to something."""
        place = self._part_of(reference, count)
        if place is None:
            return True
        task = task_key(reference)
        if place in self._held or (task is not None and ("asked", task) in self._held):
            return True
        return place in self._inside(site).shown.get(id(reference), ())

    def read_part(self, site: Site, reference: Reference, count: int) -> None:
        """What has been read of something means that it was there, from then on."""
        place = self._part_of(reference, count)
        if place is not None and not self._inside(site).has_junction:
            self.assume([place])

    def _part_of(self, reference: Reference, count: int) -> Place | None:
        place = self.place_of(reference)
        return None if place is None else place[: count if reference.root == "var" else count + 1]

    def gives_value(self, expr: Expr | BareKey, nullable: bool) -> bool:
        """Whether the value of an expression, of a type that takes null or not, is none."""
        if isinstance(expr, BareKey) or literal_value(expr) is None:
            return False
        reference = lone_reference(expr)
        return not nullable or (reference is not None and self._holds(reference))

    def shown_by(self, condition: Expr | BareKey, holds: bool) -> list[Place]:
        """Returns the places that are not null where a condition is true, or false."""
        if isinstance(condition, BareKey):
            return [("asked", condition.name)]
        places: list[Place] = []
        pending: list[tuple[Expr, bool]] = [(condition, holds)]
        while pending:
            current, is_true = pending.pop()
            match current:
                case Unary(operator="not", operand=operand):
                    pending.append((operand, not is_true))
                case Binary(operator="and" | "or" as operator, left=left, right=right):
                    if (operator == "and") is is_true:
                        pending += [(left, is_true), (right, is_true)]
                case Binary():
                    places += self._compared(current, is_true)
                case Call(arguments=(argument,)):
                    if is_true and current.function.text == "defined":
                        places += self._places([argument])
                case _:
                    places += self._places([current] if is_true else ())
        return places

    def asked_by(self, site: Site) -> list[Place]:
        """The tasks whose result codes an expression reads: it asks how they ended."""
        if isinstance(site.expr, BareKey):
            return [("asked", site.expr.name)]
        keys = [task_key(r) for r in site.references if step_key(r, 2) == "resultCode"]
        return [("asked", key) for key in keys if key is not None]

    def _compared(self, comparison: Binary, is_true: bool) -> list[Place]:
        """What a comparison shows. One of order fails with null, whatever it says otherwise."""
        operator, left, right = comparison.operator, comparison.left, comparison.right
        both = self._places([left, right])
        if operator in _ORDERS:
            return both
        if operator in ("==", "!="):
            literals = [literal_value(side) for side in (left, right)]
            if None in literals:
                return both if (operator == "!=") is is_true else []
            is_equal = (operator == "==") is is_true
            return both if is_equal and any(x is not NOT_LITERAL for x in literals) else []
        return self._places([left]) if operator == "in" and is_true and _no_null(right) else []

    def _inside(self, site: Site) -> _Inside:
        """What is shown inside an expression: one walk for all of its references, of which it may
        hold hundreds."""
        if self._last_inside[0] is not site:
            found = _Inside(any(_is_junction(part) for part in site.parts))
            if found.has_junction and not isinstance(site.expr, BareKey):
                self._show_inside(site.expr, found)
            self._last_inside = (site, found)
        return self._last_inside[1]

    def _show_inside(self, expr: Expr, found: _Inside) -> None:
        pending: list[tuple[Expr, frozenset[Place]]] = [(expr, frozenset())]
        while pending:
            current, shown = pending.pop()
            if isinstance(current, Binary) and current.operator in ("and", "or"):
                *before, last = _operands(current)
                for operand in before:
                    pending.append((operand, shown))
                    more = self.shown_by(operand, current.operator == "and")
                    shown |= {whole for place in more for whole in _wholes(place)}
                pending.append((last, shown))
                continue
            if shown and isinstance(current, Reference):
                found.shown[id(current)] = shown
            pending += [(child, shown) for child in children(current)]

    def _places(self, exprs: Iterable[Expr]) -> list[Place]:
        found = (lone_reference(expr) for expr in exprs)
        places = (self.place_of(reference) for reference in found if reference is not None)
        return [place for place in places if place is not None]

    def place_of(self, reference: Reference) -> Place | None:
        """Returns where a reference leads; None when there is no such variable."""
        steps: list[Hashable] = []
        for step in reference.steps:
            match step:
                case KeyStep(key=key):
                    steps.append(key)
                case IndexStep(index=index):
                    inner = self.place_of(index) if isinstance(index, Reference) else index.value
                    if inner is None:
                        return None
                    steps.append(inner)
        if reference.root != "var":
            return (reference.root, *steps)
        variable = self._model.resolved.get(id(reference))
        return None if variable is None else (variable, *steps[1:])

    # --- the set

    def _holds(self, reference: Reference) -> bool:
        task = task_key(reference)
        if task is not None and ("asked", task) in self._held:
            return True
        return self.place_of(reference) in self._held

    def _put(self, place: Place, added: bool) -> None:
        (self._held.add if added else self._held.discard)(place)
        self._log.append((place, added))
        for root in _roots(place) if added else ():
            self._by_root.setdefault(root, set()).add(place)

    def _drop(self, places: Iterable[Place]) -> None:
        for place in places:
            if place in self._held:
                self._put(place, False)


def _index_of(pair: tuple[int, Variable]) -> int:
    return pair[0]


def _roots(place: Place) -> Iterable[Hashable]:
    """What a place depends on: variables, also those of indexes, and a task."""
    pending: list[Place] = [place]
    while pending:
        current = pending.pop()
        root = current[0]
        if isinstance(root, Variable) or root == "out":
            yield root
        elif root == "asked" or current[:2] == ("ctx", "task"):
            yield current[1 if root == "asked" else 2]
        pending += [step for step in current if isinstance(step, tuple)]


def _wholes(place: Place) -> Iterable[Place]:
    """Yields a place and all that it is a part of, of the same variable or task."""
    shortest = 1 if isinstance(place[0], Variable) else 3 if place[:2] == ("ctx", "task") else 2
    yield place
    yield from (place[:length] for length in range(len(place) - 1, shortest - 1, -1))


def _no_null(expr: Expr) -> bool:
    """Whether a list is written out, and null is not among its items."""
    if not isinstance(expr, ListExpr):
        return False
    return all(literal_value(item) not in (None, NOT_LITERAL) for item in expr.items)


def _operands(expr: Binary) -> list[Expr]:
    """Returns a, b, c and d of `a and b and c and d`, for it is written from the left."""
    right: list[Expr] = []
    left: Expr = expr
    while isinstance(left, Binary) and left.operator == expr.operator:
        right.append(left.right)
        left = left.left
    return [left, *reversed(right)]


def _is_junction(expr: Expr) -> bool:
    return isinstance(expr, Binary) and expr.operator in ("and", "or")
