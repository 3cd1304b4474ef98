"""Types: from `.wf` syntax and JSON Schema to one model, and out to the type table (R5).

`TypeExpr --resolve--> Type --type_rows--> rows of the type table`, and `Type --json_schema-->` for
tools. A schema from a catalog comes in through `from_schema`; what the model cannot say becomes
`any`, so a check never refuses what the schema might allow.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Literal, assert_never

from dsl.nodes import EnumType, ListType, NamedType, NullableType, ObjectType, TypeExpr
from dsl.quick_class import dataclass, replace
from dsl.source import Span

Base = Literal["string", "int", "number", "bool", "any", "object", "list"]
MAX_TYPE_DEPTH = 64
MAX_TYPE_ROWS = 10_000
BUILTIN: tuple[Base, ...] = ("string", "int", "number", "bool", "any", "object")


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    optional: bool
    type: Type


@dataclass(frozen=True, slots=True)
class Type:
    """`fields` is None for an object of which nothing is known, `item` for such a list."""

    base: Base
    nullable: bool = False
    enum: tuple[str, ...] | None = None
    fields: tuple[Field, ...] | None = None
    item: Type | None = None

    def field(self, name: str) -> Field | None:
        fields = self.fields or ()
        if len(fields) > _FEW:
            return _index_of(fields).by_name.get(name)
        return next((field for field in fields if field.name == name), None)

    def field_names(self) -> tuple[str, ...]:
        return _index_of(self.fields or ()).names

    def describe(self) -> str:
        """Returns the type in the words of an error message."""
        words = {
            "string": "a string",
            "int": "an integer",
            "number": "a number",
            "bool": "a boolean",
            "any": "anything",
            "object": "an object",
            "list": "a list",
        }[self.base]
        if self.enum is not None:
            words = "one of " + ", ".join(f'"{value}"' for value in self.enum[:_MOST_SHOWN])
            if len(self.enum) > _MOST_SHOWN:
                words += f", … ({len(self.enum)} values)"
        return words + (" or null" if self.nullable else "")


ANY = Type("any")
_FEW = 8  # fields that are quicker looked through than looked up
_MOST_SHOWN = 20
_MOST_KEPT = 64
_indexes: dict[int, _Index] = {}


@dataclass(frozen=True, slots=True)
class _Index:
    """The fields of a type by name, of two the first; with the fields themselves, so that no others
    take their place in memory."""

    fields: tuple[Field, ...]
    by_name: dict[str, Field]
    names: tuple[str, ...]


def _index_of(fields: tuple[Field, ...]) -> _Index:
    """Kept, for a type may have thousands of fields and be asked for each of them."""
    found = _indexes.get(id(fields))
    if found is None:
        if len(_indexes) >= _MOST_KEPT:
            _indexes.clear()
        by_name: dict[str, Field] = {}
        for field in fields:
            by_name.setdefault(field.name, field)
        found = _indexes[id(fields)] = _Index(fields, by_name, tuple(by_name))
    return found


Report = Callable[[str, Span, str], None]
"""Takes a kind (`unknown`, `cycle`, `deep`, `duplicate`), the place and the name concerned."""


@dataclass(frozen=True, slots=True)
class KnownAlias:
    """What an alias stands for, the rows that takes, and the levels below it."""

    type: Type
    rows: int
    height: int


class OwnKnown:
    """What is known to one workflow alone of the `changed` names, and to all of the others."""

    def __init__(self, shared: dict[str, KnownAlias], changed: Collection[str]) -> None:
        self._shared = shared
        self._changed = changed
        self._own: dict[str, KnownAlias] = {}

    def get(self, name: str) -> KnownAlias | None:
        return (self._own if name in self._changed else self._shared).get(name)

    def __setitem__(self, name: str, known: KnownAlias) -> None:
        (self._own if name in self._changed else self._shared)[name] = known


class TypeResolver:
    """Resolves type expressions against the aliases in sight; misfits go to `report`.

    An alias is resolved once, with `any` where it has a misfit: what is wrong with it is said at
    its own text, not at every use. So a circle, or an alias too deep by itself, is `any` to others.
    """

    def __init__(
        self,
        aliases: Mapping[str, TypeExpr],
        report: Report,
        known: dict[str, KnownAlias] | OwnKnown | None = None,
    ) -> None:
        """`known` keeps what was resolved for another resolver of the same aliases."""
        self._aliases = aliases
        self._report = report
        self._open: list[str] = []
        self._circular: set[str] = set()
        self._known: dict[str, KnownAlias] | OwnKnown = {} if known is None else known
        self._rows = 0
        self._deepest = 0
        self._too_deep = 0
        self.used: set[str] = set()
        """The aliases that something refers to."""

    def resolve(self, expr: TypeExpr) -> Type:
        self._rows = 0
        return self._resolve(expr, 0)

    def check_aliases(self, names: Iterable[str]) -> None:
        """Resolves aliases for their misfits: one that nobody uses may be wrong, too."""
        for name in names:
            self._rows = 0
            self._named(name, self._aliases[name].span, 0)

    def _resolve(self, expr: TypeExpr, depth: int) -> Type:
        # The depth is bounded here, so this recursion is, too.
        self._rows += 1
        self._deepest = max(self._deepest, depth)
        if depth > MAX_TYPE_DEPTH or self._rows > MAX_TYPE_ROWS:
            self._too_deep += 1
            if self._rows <= MAX_TYPE_ROWS + 1:
                self._report("deep", expr.span, "")
                self._rows = MAX_TYPE_ROWS + 1
            return ANY
        match expr:
            case NamedType(name=name):
                return self._named(name, expr.span, depth)
            case ListType(item=item):
                return Type("list", item=self._resolve(item, depth + 1))
            case NullableType(inner=inner):
                return replace(self._resolve(inner, depth + 1), nullable=True)
            case EnumType(values=values):
                self._no_duplicates(values, expr.span)
                return Type("string", enum=values)
            case ObjectType():
                return self._object(expr, depth)
            case _:
                assert_never(expr)

    def _object(self, expr: ObjectType, depth: int) -> Type:
        seen: set[str] = set()
        fields = []
        for field in expr.fields:
            if field.name in seen:
                self._report("duplicate", field.name_span, field.name)
                continue
            seen.add(field.name)
            fields.append(Field(field.name, field.optional, self._resolve(field.type, depth + 1)))
        return Type("object", fields=tuple(fields))

    def _no_duplicates(self, values: tuple[str, ...], span: Span) -> None:
        seen: set[str] = set()
        for value in values:
            if value in seen:
                self._report("duplicate", span, value)
                return
            seen.add(value)

    def _named(self, name: str, span: Span, depth: int) -> Type:
        if name in self._aliases:
            self.used.add(name)
            if name in self._open:
                if name not in self._circular:
                    self._report("cycle", span, name)
                # One finding per circle, whichever of its names it is entered by.
                self._circular.update(self._open[self._open.index(name) :])
                return ANY
            return self._alias(name, depth + 1)
        for base in BUILTIN:
            if name == base:
                return Type(base)
        self._report("unknown", span, name)
        return ANY

    def _alias(self, name: str, depth: int) -> Type:
        """Resolves what an alias stands for, `depth` levels below the root."""
        known = self._known.get(name)
        if (
            known is not None
            and depth + known.height <= MAX_TYPE_DEPTH
            and self._rows + known.rows <= MAX_TYPE_ROWS
        ):
            self._rows += known.rows
            self._deepest = max(self._deepest, depth + known.height)
            return known.type
        rows, deepest, too_deep = self._rows, self._deepest, self._too_deep
        self._deepest = depth
        self._open.append(name)
        try:
            found = self._resolve(self._aliases[name], depth)
        finally:
            self._open.pop()
        if self._too_deep == too_deep:
            self._known[name] = KnownAlias(found, self._rows - rows, self._deepest - depth)
        elif depth <= 1:
            self._known[name] = KnownAlias(ANY, 1, 0)
        self._deepest = max(deepest, self._deepest)
        return found


def type_rows(root: Type, first_id: int) -> list[dict[str, Any]]:
    """Returns the rows of the type table for one root type, parents before children."""
    rows: list[dict[str, Any]] = []
    pending: list[tuple[Type, int | None, str, str | None, bool]] = [
        (root, None, "root", None, True)
    ]
    while pending:
        current, parent, kind, name, required = pending.pop()
        row_id = first_id + len(rows)
        rows.append(
            {
                "id": row_id,
                "parent": parent,
                "kind": kind,
                "name": name,
                "base": current.base,
                "required": required,
                "nullable": current.nullable,
                "enum": None if current.enum is None else list(current.enum),
            }
        )
        if current.item is not None:
            pending.append((current.item, row_id, "item", None, True))
        for field in reversed(current.fields or ()):
            pending.append((field.type, row_id, "field", field.name, not field.optional))
    return rows


_SCHEMA_TYPES: dict[str, str] = {"int": "integer", "bool": "boolean", "list": "array"}


def json_schema(root: Type) -> dict[str, Any]:
    """Returns the JSON Schema 2020-12 that says the same as a type; surplus fields are allowed."""
    if root.base == "any":
        return {}
    name = _SCHEMA_TYPES.get(root.base, root.base)
    schema: dict[str, Any] = {"type": [name, "null"] if root.nullable else name}
    if root.enum is not None:
        schema["enum"] = [*root.enum, None] if root.nullable else list(root.enum)
    if root.item is not None:
        schema["items"] = json_schema(root.item)
    if root.fields is not None:
        schema["properties"] = {field.name: json_schema(field.type) for field in root.fields}
        required = [field.name for field in root.fields if not field.optional]
        if required:
            schema["required"] = required
    return schema


_BASES: dict[str, Base] = {
    "string": "string",
    "integer": "int",
    "number": "number",
    "boolean": "bool",
    "object": "object",
    "array": "list",
}
_UNMODELLED = ("$dynamicRef", "allOf", "anyOf", "oneOf", "not", "if")
_NAMED = {"$defs", "definitions"}


def from_schema(schema: object) -> Type:
    """Returns what the model can say of a JSON Schema; `any` where it cannot.

    `$ref` is followed inside the schema only (`#/$defs/name`): nothing is ever fetched. A schema
    that contains itself is `any` from its second time on.
    """
    return _from_schema(schema, schema, (), [MAX_TYPE_ROWS])


def _from_schema(schema: object, root: object, open_: tuple[str, ...], left: list[int]) -> Type:
    # The nesting is bounded here, so this recursion is, too; `left` counts what may still be made.
    left[0] -= 1
    if not isinstance(schema, dict) or len(open_) > MAX_TYPE_DEPTH or left[0] < 0:
        return ANY
    if "$ref" in schema:
        return _referred(schema, root, open_, left)
    if any(word in schema for word in _UNMODELLED):
        return ANY
    if "const" in schema:
        return _from_values([schema["const"]])
    names = schema.get("type", "object" if "properties" in schema else None)
    if names is None and isinstance(schema.get("enum"), list):
        return _from_values(schema["enum"])
    names = [names] if isinstance(names, str) else names
    if not isinstance(names, list):
        return ANY
    nullable = "null" in names
    others = [name for name in names if name != "null"]
    if len(others) != 1 or others[0] not in _BASES:
        return ANY
    base = _BASES[others[0]]
    inner = (*open_, "")
    return Type(
        base,
        nullable=nullable,
        enum=_string_enum(schema, base),
        fields=_schema_fields(schema, root, inner, left) if base == "object" else None,
        item=_from_schema(schema["items"], root, inner, left) if "items" in schema else None,
    )


def _referred(
    schema: dict[str, Any], root: object, open_: tuple[str, ...], left: list[int]
) -> Type:
    """The type that a local `$ref` leads to, when nothing else narrows it."""
    reference = schema["$ref"]
    beside = schema.keys() - {"$ref", "description", "title", "$comment", "default"} - _NAMED
    if beside or not isinstance(reference, str) or not reference.startswith("#/"):
        return ANY
    if reference in open_:
        return ANY
    target = root
    for step in reference[2:].split("/"):
        step = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(target, dict) or step not in target:
            return ANY
        target = target[step]
    return _from_schema(target, root, (*open_, reference), left)


def _from_values(values: list[Any]) -> Type:
    """The type of values that are written out: all strings, perhaps null among them."""
    words = [value for value in values if value is not None]
    nullable = len(words) < len(values)
    if words and all(isinstance(value, str) for value in words):
        return Type("string", nullable=nullable, enum=tuple(words))
    if words and all(isinstance(value, bool) for value in words):
        return Type("bool", nullable=nullable)
    if words and all(isinstance(value, int) and not isinstance(value, bool) for value in words):
        return Type("int", nullable=nullable)
    return ANY


def _string_enum(schema: dict[str, Any], base: Base) -> tuple[str, ...] | None:
    values = schema.get("enum")
    if base != "string" or not isinstance(values, list):
        return None
    return tuple(value for value in values if isinstance(value, str))


def _schema_fields(
    schema: dict[str, Any], root: object, open_: tuple[str, ...], left: list[int]
) -> tuple[Field, ...] | None:
    """Returns the fields of an object schema, or None when it is open to others."""
    properties = schema.get("properties")
    if not isinstance(properties, dict) or "patternProperties" in schema:
        return None
    if schema.get("additionalProperties", False) is not False:
        return None
    required = schema.get("required", [])
    return tuple(
        Field(name, name not in required, _from_schema(child, root, open_, left))
        for name, child in properties.items()
    )
