"""The contract as typed values: what `db_objects.yaml` says, and what a tree or a database has.

`load_contract` reads the file and refuses what it does not understand, since a word that nobody
reads would be a promise that nobody checks. A `Schema` has one shape for both sides, so that
comparing is one routine (`comparison.py`) whatever was read: files or a catalogue.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, get_args

from runtime_sql.scripts import Dialect

FILE = "db_objects.yaml"
GROUPS = (
    "worker_api",
    "event_api",
    "repository_api",
    "engine_runtime",
    "admin",
    "definition",
    "run_time",
    "view",
)
ROWS = ("none", "one", "zero_or_one", "many")
ROLES = ("wf_author", "wf_gateway", "wf_operator", "wf_reader")
"""Those that get rights; wf_owner has them all."""
ENGINE_CODES = range(10001, 10019)
API_CODES = range(20001, 20011)


class ContractError(ValueError):
    """`db_objects.yaml` says something that has no meaning."""


@dataclass(frozen=True, slots=True)
class Field:
    """A parameter or a column.

    A type of None is not known; `nullable` is None where it has no meaning. `default` is the SQL
    of a parameter's default, None when the parameter is required.
    """

    name: str
    type: str | None
    nullable: bool | None = None
    default: str | None = None

    def __str__(self) -> str:
        parts = [self.name, self.type or "?"]
        if self.nullable is not None:
            parts.append("null" if self.nullable else "not null")
        if self.default is not None:
            parts.append(f"default {self.default}")
        return " ".join(parts)


@dataclass(frozen=True, slots=True)
class Routine:
    """A routine answers columns, or one value (`returns`), or nothing."""

    kind: str
    parameters: tuple[Field, ...]
    columns: tuple[Field, ...] = ()
    returns: str | None = None


@dataclass(frozen=True, slots=True)
class Relation:
    """A table or a view; None for `columns` means that they are not known."""

    kind: str
    columns: tuple[Field, ...] | None


@dataclass(frozen=True, slots=True)
class Schema:
    """What schema wf holds. A name may stand for several routines (overloads).

    `rights`: by role and object, the words that were granted (execute, select, insert …), PUBLIC
    among the roles. `uses_roles`: false where everything belongs to the installing login. `faults`:
    what only a catalogue can tell, as lines by object.
    """

    routines: Mapping[str, tuple[Routine, ...]]
    relations: Mapping[str, Relation]
    rights: Mapping[tuple[str, str], frozenset[str]] = field(default_factory=dict)
    uses_roles: bool = False
    faults: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class RoutineEntry:
    name: str
    group: str
    kinds: Mapping[str, str]
    parameters: tuple[Field, ...]
    columns: tuple[Field, ...]
    returns: str | None
    rows: str
    errors: tuple[int, ...]
    roles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RelationEntry:
    """`only_in`: columns that one dialect needs and the other does not have.

    `roles` read a view; those of a table read it and add rows.
    """

    name: str
    group: str
    kind: str
    columns: tuple[Field, ...]
    only_in: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    roles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Planned:
    """An object of the design that does not exist yet."""

    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class Contract:
    """The whole file. Types are the contract's own words; `types` has each dialect's."""

    types: Mapping[str, Mapping[str, str]]
    routines: tuple[RoutineEntry, ...]
    relations: tuple[RelationEntry, ...]
    planned: tuple[Planned, ...]

    def names(self) -> frozenset[str]:
        """Returns the name of every object that must exist."""
        return frozenset([r.name for r in self.routines] + [r.name for r in self.relations])

    def rights(self) -> dict[tuple[str, str], frozenset[str]]:
        """Returns what each role must be granted, by role and object; nothing else may be."""
        wanted = {(role, r.name): frozenset({"execute"}) for r in self.routines for role in r.roles}
        for relation in self.relations:
            words = {"select"} if relation.kind == "view" else {"select", "insert"}
            wanted |= {(role, relation.name): frozenset(words) for role in relation.roles}
        return wanted

    def sql_type(self, word: str | None, dialect: Dialect) -> str | None:
        return None if word is None else self.types[word][dialect]

    def sql_fields(self, given: Sequence[Field], dialect: Dialect) -> tuple[Field, ...]:
        """Returns fields with the types of a dialect."""
        return tuple(
            Field(f.name, self.sql_type(f.type, dialect), f.nullable, f.default) for f in given
        )


def load_contract() -> Contract:
    """Reads the contract that is part of this package."""
    import yaml

    text = (files("runtime_sql.contract") / FILE).read_text(encoding="utf-8")
    return read_contract(yaml.safe_load(text))


def read_contract(document: Any) -> Contract:
    """Returns the contract of a YAML document.

    Raises:
      ContractError: for an unknown word, a missing one, or a name that stands twice.
    """
    _check_keys("the file", document, ("types", "routines", "views", "tables", "planned"))
    contract = Contract(
        types=document["types"],
        routines=tuple(_routine(entry) for entry in document["routines"]),
        relations=(
            *(_relation(entry, "view") for entry in document["views"]),
            *(_relation(entry, "table") for entry in document["tables"]),
        ),
        planned=tuple(_planned(entry) for entry in document["planned"]),
    )
    _check(contract)
    return contract


def _check_keys(
    place: str, entry: Any, required: Sequence[str], optional: Sequence[str] = ()
) -> None:
    if not isinstance(entry, dict):
        raise ContractError(f"{place}: must be a mapping")
    missing = [key for key in required if key not in entry]
    unknown = [key for key in entry if key not in required and key not in optional]
    if missing or unknown:
        raise ContractError(f"{place}: missing {missing}, unknown {unknown}")


def _place(entry: Any) -> str:
    return str(entry.get("name", "an entry")) if isinstance(entry, dict) else "an entry"


def _routine(entry: Any) -> RoutineEntry:
    required = ("name", "group", "kind", "roles", "parameters", "rows", "errors")
    _check_keys(_place(entry), entry, required, ("columns", "returns"))
    return RoutineEntry(
        name=entry["name"],
        group=entry["group"],
        kinds=entry["kind"],
        parameters=tuple(_parameter(*item) for item in entry["parameters"].items()),
        columns=tuple(Field(*item) for item in entry.get("columns", {}).items()),
        returns=entry.get("returns"),
        rows=entry["rows"],
        errors=tuple(entry["errors"]),
        roles=tuple(entry["roles"]),
    )


def _parameter(name: str, given: Any) -> Field:
    if isinstance(given, str):
        return Field(name, given)
    _check_keys(name, given, ("type", "default"))
    return Field(name, given["type"], default=_sql_literal(given["default"]))


def _sql_literal(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return f"'{value}'" if isinstance(value, str) else str(value)


def _relation(entry: Any, kind: str) -> RelationEntry:
    required = ("name", "group", "columns", *(["roles"] if kind == "view" else []))
    _check_keys(_place(entry), entry, required, ("only_in", "roles"))
    return RelationEntry(
        name=entry["name"],
        group=entry["group"],
        kind=kind,
        columns=tuple(_column(kind, *item) for item in entry["columns"].items()),
        only_in={key: tuple(names) for key, names in entry.get("only_in", {}).items()},
        roles=tuple(entry.get("roles", ())),
    )


def _column(kind: str, name: str, written: str) -> Field:
    # A view's columns may all be null as far as a catalogue knows.
    nullable = None if kind == "view" else written.endswith("?")
    return Field(name, written.removesuffix("?"), nullable)


def _planned(entry: Any) -> Planned:
    _check_keys(_place(entry), entry, ("name", "kind"))
    return Planned(entry["name"], entry["kind"])


def _check(contract: Contract) -> None:
    names = [r.name for r in contract.routines] + [r.name for r in contract.relations]
    names += [p.name for p in contract.planned]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ContractError(f"listed twice: {', '.join(twice)}")
    for word, sql in contract.types.items():
        _check_keys(f"type {word}", sql, get_args(Dialect))
    for relation in contract.relations:
        _check_words(contract, relation.name, relation.group, relation.columns)
    for name, roles in [(e.name, e.roles) for e in contract.routines] + [
        (e.name, e.roles) for e in contract.relations
    ]:
        strange = sorted(set(roles) - set(ROLES))
        if strange:
            raise ContractError(f"{name}: there is no role {', '.join(strange)}")
    for routine in contract.routines:
        _check_routine(contract, routine)


def _check_routine(contract: Contract, entry: RoutineEntry) -> None:
    value = () if entry.returns is None else (Field("returns", entry.returns),)
    _check_words(contract, entry.name, entry.group, (*entry.parameters, *entry.columns, *value))
    _check_keys(f"{entry.name}: kind", entry.kinds, get_args(Dialect))
    answers = bool(entry.columns) + bool(value)
    if entry.rows not in ROWS or answers > 1 or (entry.rows == "none") != (answers == 0):
        raise ContractError(f"{entry.name}: rows {entry.rows} does not fit what it answers")
    unknown = [c for c in entry.errors if c not in ENGINE_CODES and c not in API_CODES]
    if unknown or list(entry.errors) != sorted(set(entry.errors)):
        raise ContractError(f"{entry.name}: errors must be known codes, ascending, each once")


def _check_words(contract: Contract, name: str, group: str, fields: Sequence[Field]) -> None:
    if group not in GROUPS:
        raise ContractError(f"{name}: there is no group {group}")
    for given in fields:
        if given.type not in contract.types:
            raise ContractError(f"{name}: {given.name} has the unknown type {given.type}")
