"""What has surely, or possibly, been set and run when an expression is evaluated.

One walk over the tree in the order of execution carries two sets of facts (a variable that has a
value, a node that has run): `definite` holds on every path that leads here, `possible` on some
path. Branches that exclude each other are walked from the same state and merged; a path that
fails contributes nothing to what is after it. Undoing goes by a log, so no set is ever copied.

The walk is a stack of generators, one per open node: a node yields the child to be walked next.
A reference under `??` or `defined` may find nothing, so it is never noted; `defined(var.x)` in a
condition is a fact where the condition holds. What is surely not null goes along in `Settled`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

from compiler import attributes as written
from compiler.expressions import literal_value, step_key, task_key
from compiler.guards import Fact, Guards, guards_of
from compiler.infer import nullable_parts, types_at
from compiler.model import Model, Node, Site, Use, Variable
from compiler.settled import Outcome, Settled
from dsl.nodes import (
    BareKey,
    Fail,
    Foreach,
    If,
    ListExpr,
    Parallel,
    Reference,
    Repeat,
    WaitEvent,
    While,
)
from dsl.quick_class import dataclass, field

Walk = Iterator[Node]


@dataclass(frozen=True, slots=True)
class Reading:
    """A read of something that may not be there; `never` when no path has made it."""

    site: Site
    reference: Reference | BareKey
    what: Variable | Node
    never: bool
    timed_out: bool = False
    """Whether it is the output of a wait whose time may be over: then it has none."""


@dataclass(slots=True, eq=False)
class FlowResult:
    readings: list[Reading] = field(default_factory=list)
    unreachable: list[tuple[Node, Node | None]] = field(default_factory=list)
    """Nodes that nothing leads to: behind a node that always fails (given), or behind a constant
    condition."""
    failing: set[int] = field(default_factory=set)
    """The indexes of nodes that never succeed."""
    settled: set[int] = field(default_factory=set)
    """The ids of references that are surely not null."""
    missing_parts: list[tuple[Reference, int, Site]] = field(default_factory=list)
    """References that step into what may be null: after so many steps."""
    succeeded: set[int] = field(default_factory=set)
    """The ids of references to tasks, and of bare keys, that have surely succeeded."""
    evaluated: set[int] = field(default_factory=set)
    """The ids of the expressions that some way leads to."""


@dataclass(frozen=True, slots=True)
class _End:
    """What a path that gets to its end has added."""

    definite: list[Fact]
    settled: Outcome


def analyse(model: Model) -> FlowResult:
    """Walks a workflow once and returns what may be missing, and what is never reached."""
    if model.flow is None:
        flow = _Flow(model)
        flow.run()
        model.flow = flow.result
    return model.flow


class _Facts:
    """A set that remembers the order of what was added, so that it can be undone."""

    def __init__(self) -> None:
        self._held: set[Fact] = set()
        self._log: list[Fact] = []

    def __contains__(self, fact: Fact) -> bool:
        return fact in self._held

    def add(self, facts: Iterable[Fact]) -> None:
        for fact in facts:
            if fact not in self._held:
                self._held.add(fact)
                self._log.append(fact)

    def mark(self) -> int:
        return len(self._log)

    def undo(self, mark: int) -> list[Fact]:
        """Takes back what was added since the mark and returns it."""
        added = self._log[mark:]
        del self._log[mark:]
        self._held.difference_update(added)
        return added


class _Flow:
    def __init__(self, model: Model) -> None:
        self.result = FlowResult()
        self._model = model
        self._definite = _Facts()
        self._possible = _Facts()
        self._settled = Settled(model)
        self._dead = False
        self._sites: dict[int, list[Site]] = {}
        self._outputs: list[Site] = []
        for site in model.sites:
            if site.use == "output":
                self._outputs.append(site)
            elif site.use != "event_input":
                self._sites.setdefault(site.node.index, []).append(site)
        self._collected: dict[int, list[Variable]] = {}
        for target in model.targets:
            if target.kind == "collect":
                self._collected.setdefault(target.node.index, []).append(target.variable)
        self._tracked = {v for v in model.all_variables() if _is_tracked(v)}
        self._writes = sorted(
            ((write.node.index, v) for v in self._tracked for write in v.writes),
            key=lambda pair: pair[0],
        )
        self._tasks = self._referenced_tasks()
        self._in_order = sorted(self._tasks.values(), key=_index_of_node)

    def _referenced_tasks(self) -> dict[str, Node]:
        keys = set()
        for site in self._model.sites:
            if isinstance(site.expr, BareKey):
                keys.add(site.expr.name)
                continue
            keys.update(key for key in map(task_key, site.references) if key is not None)
        return {key: self._model.by_key[key] for key in keys if key in self._model.by_key}

    # --- the stack ---

    def run(self) -> None:
        open_: list[Walk] = [self._visit(self._model.root)]
        while open_:
            child = next(open_[-1], None)
            if child is None:
                open_.pop()
            else:
                open_.append(self._visit(child))
        if not self._dead:
            for site in self._outputs:
                self._read(site)

    def _visit(self, node: Node) -> Walk:
        for site in self._sites.get(node.index, ()):
            if site.use in ("initial", "default"):
                self._read(site)
                if site.use == "initial":
                    self._write(site)
        match node.type:
            case "SEQUENCE":
                yield from self._sequence(node)
            case "PARALLEL":
                yield from self._parallel(node)
            case "IF":
                yield from self._if(node)
            case "SWITCH":
                self._evaluate(node, "subject")
                for site in self._sites.get(node.index, ()):
                    if site.use == "subject":
                        self._settled.assume(self._settled.asked_by(site))
                yield from self._branches(node, node.children)
            case "REPEAT" | "WHILE" | "FOREACH":
                yield from self._loop(node)
            case "ACTION":
                self._evaluate(node, "argument")
                self._settled.forget([node.key])
                self._complete(node)
            case "WAIT_EVENT":
                yield from self._wait(node)
        if self._dead:
            self.result.failing.add(node.index)
        elif node.key in self._tasks and self._tasks[node.key] is node:
            self._definite.add([node])
            self._possible.add([node])

    # --- one node ---

    def _sequence(self, node: Node) -> Walk:
        if isinstance(node.statement, Fail):
            self._evaluate(node, "message")
            self._dead = True
            return
        handlers = {c.edge: c for c in node.children if c.edge in ("ON_ERROR", "FINALLY")}
        before = self._mark()
        yield from self._in_a_row(node)
        self._complete(node)
        self._evaluate(node, "collect")
        on_error, finally_ = handlers.get("ON_ERROR"), handlers.get("FINALLY")
        if on_error is None and finally_ is None:
            return
        outcomes = [self._outcome(before)]
        if on_error is not None:
            self._dead = False
            self._settled.forget_inside(node)
            yield on_error
            outcomes.append(self._outcome(before))
        if finally_ is None:
            self._merge(outcomes)
            return
        # Whatever failed, `finally` runs, so it may count on nothing of the body.
        self._dead = False
        self._settled.forget_inside(node)
        yield finally_
        outcome = self._outcome(before)
        self._merge(outcomes)
        if outcome is None:
            self._dead = True
        else:
            self._follow(outcome)

    def _in_a_row(self, node: Node) -> Walk:
        previous: Node | None = None
        for child in node.children:
            if child.edge != "SEQUENCE":
                continue
            if self._dead:
                self.result.unreachable.append((child, previous))
                return
            yield child
            previous = child

    def _complete(self, node: Node) -> None:
        """Runs the `set`s of a node."""
        if self._dead:
            return
        self._settled.forget(["out"])
        for site in self._sites.get(node.index, ()):
            if site.use in ("binding", "set"):
                self._read(site)
                self._write(site)
                if site.target in self._tracked:
                    assert site.target is not None
                    self._definite.add([site.target])
                    self._possible.add([site.target])

    def _write(self, site: Site) -> None:
        variable = site.target
        if variable is None or not variable.type.nullable:
            return
        nullable = not isinstance(site.expr, BareKey) and (
            types_at(self._model, site)[id(site.expr)].nullable
        )
        self._settled.write(variable, self._settled.gives_value(site.expr, nullable))

    def _parallel(self, node: Node) -> Walk:
        self._possible.add(self._written_inside(node))
        self._possible.add(self._tasks_inside(node))
        before = self._mark()
        outcomes = []
        for child in node.children:
            self._dead = False
            yield child
            outcomes.append(self._outcome(before))
        self._dead = False
        assert isinstance(node.statement, Parallel)
        needed = written.join_count(node.statement.attributes)
        if needed is not None and needed < len(outcomes):
            self._dead = sum(outcome is not None for outcome in outcomes) < needed
            self._settled.forget_inside(node)
            return
        for outcome in outcomes:
            self._dead = self._dead or outcome is None
            if outcome is not None:
                self._follow(outcome)

    def _if(self, node: Node) -> Walk:
        assert isinstance(node.statement, If)
        guards = self._evaluate(node, "condition")
        constant = _constant(node.statement.condition)
        branches: list[Node | None] = [None, None]
        for child in node.children:
            branches[0 if child.edge == "THEN" else 1] = child
        before, possible = self._mark(), self._possible.mark()
        outcomes, seen = [], []
        asked = [p for s in self._sites.get(node.index, ()) for p in self._settled.asked_by(s)]
        for branch, holds in zip(branches, (True, False), strict=True):
            self._dead = constant is not None and constant is not holds
            if branch is not None and self._dead:
                self.result.unreachable.append((branch, None))
            else:
                shown = self._settled.shown_by(node.statement.condition, holds)
                self._settled.assume([*asked, *shown])
            if branch is not None and not self._dead:
                facts = guards.when(holds)
                self._definite.add(facts)
                self._possible.add(facts)
                yield branch
            outcomes.append(self._outcome(before))
            seen.extend(self._possible.undo(possible))
        self._possible.add(seen)
        self._merge(outcomes)

    def _branches(self, node: Node, branches: list[Node]) -> Walk:
        """Walks branches of which exactly one is taken: no case and no default is a failure."""
        before, possible = self._mark(), self._possible.mark()
        outcomes, seen = [], []
        for branch in branches:
            self._dead = False
            yield branch
            outcomes.append(self._outcome(before))
            seen.extend(self._possible.undo(possible))
        self._possible.add(seen)
        self._merge(outcomes)

    def _loop(self, node: Node) -> Walk:
        inside = self._written_inside(node)
        self._evaluate(node, "collection")
        self._evaluate(node, "count")
        constant, guards = _loop_constant(node), Guards()
        self._settled.forget_inside(node)
        before, possible = self._mark(), self._possible.mark()
        self._possible.add(variable for variable in inside if not node.holds(variable.owner))
        if node.type == "WHILE":
            mark = self._possible.mark()
            self._possible.add(self._tasks_inside(node))
            guards = self._evaluate(node, "condition")
            self._possible.undo(mark)
            self._definite.add(guards.when(True))
            self._settle_loop(node, holds=True)
        body = next(iter(node.children), None)
        if body is not None and constant is False:
            self.result.unreachable.append((body, None))
            self._possible.undo(possible)
        elif body is not None:
            yield body
        runs = constant is True and node.type == "REPEAT"
        outcome = self._outcome(before)
        self._dead = runs and outcome is None
        if runs and outcome is not None:
            self._follow(outcome)
        if self._dead:
            return
        if node.type == "WHILE":
            self._settle_loop(node, holds=False)
        collected = self._collected.get(node.index, ())
        self._definite.add([*collected, *guards.when(False)])
        self._possible.add(collected)

    def _settle_loop(self, node: Node, *, holds: bool) -> None:
        assert isinstance(node.statement, While)
        self._settled.assume(self._settled.shown_by(node.statement.condition, holds))

    def _wait(self, node: Node) -> Walk:
        self._evaluate(node, "correlate")
        self._settled.forget([node.key])
        before = self._mark()
        self._complete(node)
        if not node.children:
            return
        # Either the event comes and the `set`s run, or the time is up and the body does.
        outcomes = [self._outcome(before)]
        yield node.children[0]
        outcomes.append(self._outcome(before))
        self._merge(outcomes)

    # --- state ---

    def _mark(self) -> tuple[int, int]:
        return self._definite.mark(), self._settled.mark()

    def _outcome(self, mark: tuple[int, int]) -> _End | None:
        """Takes back what a path added and returns it; None for a path that does not get here."""
        end = _End(self._definite.undo(mark[0]), self._settled.take_back(mark[1]))
        outcome = None if self._dead else end
        self._dead = False
        return outcome

    def _follow(self, outcome: _End) -> None:
        """Goes on after a path that was surely taken."""
        self._definite.add(outcome.definite)
        self._settled.follow(outcome.settled)

    def _merge(self, outcomes: list[_End | None]) -> None:
        """Goes on with what every path has, of those that get here."""
        alive = [outcome for outcome in outcomes if outcome is not None]
        self._dead = not alive
        if alive:
            common = set(alive[0].definite).intersection(*(end.definite for end in alive[1:]))
            self._definite.add(fact for fact in alive[0].definite if fact in common)
            self._settled.merge([end.settled for end in alive])

    def _written_inside(self, node: Node) -> list[Variable]:
        first = bisect_left(self._writes, node.index, key=_index_of)
        last = bisect_right(self._writes, node.last, key=_index_of)
        return [variable for _index, variable in self._writes[first:last]]

    def _tasks_inside(self, node: Node) -> list[Node]:
        first = bisect_left(self._in_order, node.index, key=_index_of_node)
        last = bisect_right(self._in_order, node.last, key=_index_of_node)
        return self._in_order[first:last]

    # --- reading ---

    def _evaluate(self, node: Node, use: Use) -> Guards:
        guards = Guards()
        if not self._dead:
            for site in self._sites.get(node.index, ()):
                if site.use == use:
                    guards = self._read(site)
        return guards

    def _read(self, site: Site) -> Guards:
        self.result.evaluated.add(id(site.expr))
        self.result.settled.update(self._settled.read(site))
        if isinstance(site.expr, BareKey):
            task = self._tasks.get(site.expr.name)
            if task is not None:
                self._note(site, site.expr, task)
            return Guards()
        guards = guards_of(self._model, site)
        for reference in site.references:
            if id(reference) in guards.safe:
                continue
            self._read_parts(site, reference)
            what: Variable | Node | None = None
            if reference.root == "var":
                what = self._model.resolved.get(id(reference))
                if what is not None and what not in self._tracked:
                    what = None
            elif reference.root == "ctx" and step_key(reference, 0) == "task":
                what = self._tasks.get(task_key(reference) or "")
            if what is not None:
                self._note(site, reference, what)
            if isinstance(what, Node) and what in self._definite and _may_lack_output(what):
                asked = id(reference) in self.result.settled
                if step_key(reference, 2) == "output" and not asked:
                    self.result.readings.append(Reading(site, reference, what, False, True))
        return guards

    def _read_parts(self, site: Site, reference: Reference) -> None:
        node = site.node if site.use == "binding" else None
        for count in nullable_parts(self._model, reference, node):
            if not self._settled.part_not_null(site, reference, count):
                self.result.missing_parts.append((reference, count, site))
                self._settled.read_part(site, reference, count)
                return

    def _note(self, site: Site, reference: Reference | BareKey, what: Variable | Node) -> None:
        if what in self._definite:
            if isinstance(what, Node):
                self.result.succeeded.add(id(reference))
        else:
            never = what not in self._possible
            self.result.readings.append(Reading(site, reference, what, never))


def _index_of(pair: tuple[int, Variable]) -> int:
    return pair[0]


def _index_of_node(node: Node) -> int:
    return node.index


def _is_tracked(variable: Variable) -> bool:
    """Whether a variable may be without a value: one with a first value, or of a loop, never is."""
    return variable.kind == "set" or (variable.kind == "var" and variable.initial is None)


def _may_lack_output(task: Node) -> bool:
    """Whether a task may succeed without an output: a wait that runs a body instead."""
    return isinstance(task.statement, WaitEvent) and bool(task.children)


def _constant(condition: object) -> bool | None:
    """Returns the truth of a condition that is a literal."""
    if isinstance(condition, BareKey):
        return None
    value = literal_value(condition)  # type: ignore[arg-type]
    if value is None or isinstance(value, bool | int):
        return bool(value)
    return None


def _loop_constant(node: Node) -> bool | None:
    """Returns whether a loop surely runs, surely does not; None when it depends."""
    statement = node.statement
    if isinstance(statement, Repeat):
        count = written.literal_integer(statement.count)
        return None if count is None else count > 0
    if isinstance(statement, While):
        return _constant(statement.condition)
    if isinstance(statement, Foreach):
        empty = isinstance(statement.collection, ListExpr) and not statement.collection.items
        return False if empty else None
    return None
