"""Compares the contract with what a tree or a database has; every difference is one line.

`compare` looks both ways, for PostgreSQL: what the contract lists must be there with the same
parameters and columns, and nothing may be public that it does not list. `compare_stems` asks less,
of a tree that is not complete: what it has must have the same names of parameters and columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from runtime_sql.contract.model import (
    Contract,
    Field,
    Relation,
    RelationEntry,
    Routine,
    RoutineEntry,
    Schema,
)
from runtime_sql.scripts import declared_objects

PUBLIC_PREFIXES = ("sp_", "wf_repo_")
PUBLIC_VIEW_PREFIX = "v_"


@dataclass(frozen=True, slots=True)
class Difference:
    """One line about one object. `missing`: the object is not there at all."""

    kind: Literal["missing", "unlisted", "changed"]
    name: str
    text: str

    def __str__(self) -> str:
        return self.text


def compare(contract: Contract, found: Schema) -> tuple[Difference, ...]:
    """Returns every difference between the contract and a PostgreSQL schema, by object."""
    differences = [
        *missing_objects(contract, found),
        *_unlisted(contract, found),
        *_planned(contract, found),
        *_rights(contract, found),
        *_faults(contract, found),
    ]
    for routine in contract.routines:
        differences += _compare_routine(contract, routine, found.routines.get(routine.name, ()))
    for relation in contract.relations:
        there = found.relations.get(relation.name)
        if there is not None:
            differences += _compare_relation(contract, relation, there)
    return tuple(sorted(differences, key=lambda d: d.name))


def missing_objects(contract: Contract, found: Schema) -> Iterator[Difference]:
    """Yields what the contract lists and a schema does not have."""
    groups = ((contract.routines, found.routines), (contract.relations, found.relations))
    for entries, there in groups:
        for entry in entries:
            if entry.name not in there:
                yield Difference("missing", entry.name, f"missing in schema wf: {entry.name}")


def _unlisted(contract: Contract, found: Schema) -> Iterator[Difference]:
    public = {name: r[0].kind for name, r in found.routines.items() if _is_public(name)} | {
        name: relation.kind
        for name, relation in found.relations.items()
        if relation.kind.endswith("view") and name.startswith(PUBLIC_VIEW_PREFIX)
    }
    known = contract.names() | {planned.name for planned in contract.planned}
    for name, kind in public.items():
        if name not in known:
            yield Difference("unlisted", name, f"{kind} {name}: not in the contract")


def _is_public(name: str) -> bool:
    return name.startswith(PUBLIC_PREFIXES)


def _planned(contract: Contract, found: Schema) -> Iterator[Difference]:
    for planned in contract.planned:
        if planned.name in found.routines or planned.name in found.relations:
            text = f"{planned.kind} {planned.name}: exists, but the contract has it as planned"
            yield Difference("changed", planned.name, text)


def _rights(contract: Contract, found: Schema) -> Iterator[Difference]:
    """Says which role may do more, or less, than the contract gives it."""
    granted = contract.rights() if found.uses_roles else {}
    for role, name in sorted({*granted, *found.rights}):
        if name not in found.routines and name not in found.relations:
            continue
        should = granted.get((role, name), frozenset())
        may = found.rights.get((role, name), frozenset())
        for word in sorted(should ^ may):
            text = f"{name}: {role} {'lacks' if word in should else 'must not have'} {word}"
            yield Difference("changed", name, text)


def _faults(contract: Contract, found: Schema) -> Iterator[Difference]:
    """What people put into schema wf themselves may belong to anybody."""
    ours = contract.names() | declared_objects() | {"wf"}
    for name, text in found.faults:
        if name in ours:
            yield Difference("changed", name, text)


def _compare_routine(
    contract: Contract, entry: RoutineEntry, there: Sequence[Routine]
) -> Iterator[Difference]:
    wanted = Routine(
        entry.kinds["pg"],
        contract.sql_fields(entry.parameters, "pg"),
        contract.sql_fields(entry.columns, "pg"),
        contract.sql_type(entry.returns, "pg"),
    )
    if wanted in there:
        if len(there) > 1:
            text = f"{wanted.kind} {entry.name}: exists {len(there)} times with other parameters"
            yield Difference("changed", entry.name, text)
        return
    for routine in there:
        for text in _routine_lines(wanted, routine):
            yield Difference("changed", entry.name, f"{routine.kind} {entry.name}: {text}")


def _routine_lines(wanted: Routine, there: Routine) -> Iterator[str]:
    if there.kind != wanted.kind:
        yield f"must be a {wanted.kind}"
    yield from _ordered_lines("parameter", wanted.parameters, there.parameters)
    if wanted.returns != there.returns:
        yield f"must return {wanted.returns or 'no value'}, not {there.returns or 'none'}"
    yield from _ordered_lines("result column", wanted.columns, there.columns)


def _ordered_lines(what: str, wanted: Sequence[Field], there: Sequence[Field]) -> Iterator[str]:
    """Says what differs where places count."""
    for number in range(1, max(len(wanted), len(there)) + 1):
        one = wanted[number - 1] if number <= len(wanted) else None
        other = there[number - 1] if number <= len(there) else None
        if one is None:
            yield f"{what} {number} ({other}) is not in the contract"
        elif other is None:
            yield f"{what} {number} ({one}) is missing"
        elif not _fits(one, other):
            yield f"{what} {number} must be {one}, not {other}"


def _fits(wanted: Field, there: Field) -> bool:
    if there.type is None:
        return wanted.name == there.name
    return wanted == there


def _compare_relation(
    contract: Contract, entry: RelationEntry, there: Relation
) -> Iterator[Difference]:
    wanted = contract.sql_fields(entry.columns, "pg")
    lines: list[str] = []
    if there.kind != entry.kind:
        lines.append(f"must be a {entry.kind}")
    elif entry.kind == "view":
        lines += _ordered_lines("column", wanted, there.columns or ())
    else:
        extra = entry.only_in.get("pg", ())
        lines += _named_lines(wanted, [c for c in there.columns or () if c.name not in extra])
    for text in lines:
        yield Difference("changed", entry.name, f"{there.kind} {entry.name}: {text}")


def _named_lines(wanted: Sequence[Field], there: Sequence[Field]) -> Iterator[str]:
    """Says what differs where names count and places do not: an upgrade adds columns at the end."""
    by_name = {column.name: column for column in there}
    for column in wanted:
        other = by_name.pop(column.name, None)
        if other is None:
            yield f"column {column} is missing"
        elif not _fits(column, other):
            yield f"column {column.name} must be {column}, not {other}"
    for other in by_name.values():
        yield f"column {other} is not in the contract"


# The other tree -----------------------------------------------------------------------------------


def compare_stems(
    contract: Contract, found: Schema, *, knows_defaults: bool = True
) -> tuple[Difference, ...]:
    """Returns where what a T-SQL tree has differs in kinds, names or base types.

    Args:
      knows_defaults: false for a live database, whose catalogue does not tell which parameters
        have a default.
    """
    differences: list[Difference] = []
    for entry in contract.routines:
        for routine in found.routines.get(entry.name, ()):
            differences += _routine_stems(contract, entry, routine, knows_defaults)
    for relation in contract.relations:
        there = found.relations.get(relation.name)
        if there is not None:
            differences += _relation_stems(contract, relation, there)
    for name, routines in found.routines.items():
        if _is_public(name) and name not in contract.names():
            text = f"{routines[0].kind} {name}: not in the contract"
            differences.append(Difference("unlisted", name, text))
    return tuple(differences)


def _routine_stems(
    contract: Contract, entry: RoutineEntry, there: Routine, knows_defaults: bool
) -> Iterator[Difference]:
    wanted: Sequence[Field] = contract.sql_fields(entry.parameters, "mssql")
    if not knows_defaults:
        wanted = [replace(parameter, default=None) for parameter in wanted]
    lines: list[str] = []
    if there.kind != entry.kinds["mssql"]:
        lines.append(f"must be a {entry.kinds['mssql']}")
    lines += _ordered_lines("parameter", _without_values(wanted), _without_values(there.parameters))
    # A result set is not written in the head; OUTPUT parameters are.
    if there.columns:
        columns = contract.sql_fields(entry.columns, "mssql")
        lines += _ordered_lines("output parameter", columns, there.columns)
    for text in lines:
        yield Difference("changed", entry.name, f"{there.kind} {entry.name}: {text}")


def _without_values(fields: Sequence[Field]) -> tuple[Field, ...]:
    """Keeps whether there is a default: the dialects write its value in different ways."""
    return tuple(Field(f.name, f.type, default="…" if f.default else None) for f in fields)


def _relation_stems(
    contract: Contract, entry: RelationEntry, there: Relation
) -> Iterator[Difference]:
    wanted = contract.sql_fields(entry.columns, "mssql")
    extra = entry.only_in.get("mssql", ())
    columns = [column for column in there.columns or () if column.name not in extra]
    for text in _named_lines(wanted, columns):
        yield Difference("changed", entry.name, f"{there.kind} {entry.name}: {text}")
