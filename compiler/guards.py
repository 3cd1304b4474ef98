"""Which references of an expression may find nothing, and what a condition says of the rest.

`a ?? b` and `defined(a)` take a missing `a`. `defined(var.x) and …` is evaluated on the right only
where `var.x` is there; so is the THEN branch of an IF over it.
"""

from __future__ import annotations

from collections.abc import Iterable

from compiler.expressions import lone_reference, references, task_key
from compiler.model import Model, Node, Site, Variable
from dsl.nodes import Binary, Call, Expr, Reference, Unary
from dsl.quick_class import dataclass, field

Fact = Variable | Node
"""A variable that has a value, or a node that has run."""


@dataclass(slots=True)
class Guards:
    """`safe` holds the ids of references that may find nothing."""

    safe: set[int] = field(default_factory=set)
    if_true: frozenset[Fact] = frozenset()
    if_false: frozenset[Fact] = frozenset()

    def when(self, holds: bool) -> frozenset[Fact]:
        return self.if_true if holds else self.if_false


_NOTHING: tuple[frozenset[Fact], frozenset[Fact]] = (frozenset(), frozenset())


def guards_of(model: Model, site: Site) -> Guards:
    """Returns what the expression of a site guards."""
    guards = Guards()
    if len(site.parts) < 2 or not site.references:
        return guards
    facts: dict[int, tuple[frozenset[Fact], frozenset[Fact]]] = {}
    for part in site.parts:
        match part:
            case Call() if part.function.text == "defined" and len(part.arguments) == 1:
                reference = lone_reference(part.arguments[0])
                if reference is not None:
                    guards.safe.add(id(reference))
                    facts[id(part)] = (frozenset(_facts(model, [reference])), frozenset())
            case Unary(operator="not", operand=operand) if id(operand) in facts:
                true, false = facts[id(operand)]
                facts[id(part)] = (false, true)
            case Binary(operator="??", left=left):
                _guard_left(guards, left)
            case Binary(operator="and" | "or"):
                _short_circuit(model, guards, facts, part)
            case _:
                pass
    guards.if_true, guards.if_false = facts.get(id(site.expr), _NOTHING)
    return guards


def _guard_left(guards: Guards, left: Expr) -> None:
    """The reference right before `??`: the left side, or the last of a chain of them."""
    last = left.right if isinstance(left, Binary) and left.operator == "??" else left
    reference = lone_reference(last)
    if reference is not None:
        guards.safe.add(id(reference))


def _short_circuit(
    model: Model,
    guards: Guards,
    facts: dict[int, tuple[frozenset[Fact], frozenset[Fact]]],
    part: Binary,
) -> None:
    left, right = facts.get(id(part.left), _NOTHING), facts.get(id(part.right), _NOTHING)
    is_and = part.operator == "and"
    known = left[0] if is_and else left[1]
    if known:
        guards.safe.update(
            id(reference)
            for reference in references(part.right)
            if any(fact in known for fact in _facts(model, [reference]))
        )
    if is_and and (left[0] or right[0]):
        facts[id(part)] = (left[0] | right[0], frozenset())
    elif not is_and and (left[1] or right[1]):
        facts[id(part)] = (frozenset(), left[1] | right[1])


def _facts(model: Model, found: Iterable[Reference]) -> Iterable[Fact]:
    for reference in found:
        fact: Fact | None = None
        if reference.root == "var":
            fact = model.resolved.get(id(reference))
        elif (key := task_key(reference)) is not None:
            fact = model.by_key.get(key)
        if fact is not None:
            yield fact
