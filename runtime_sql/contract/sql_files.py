"""Reads what the two SQL trees declare in schema wf, without a database.

The trees are hand-written in one style, so that the heads of their statements can be read with a
few patterns: comments and bodies go first, then each `create` up to the end of its head. What is
read is checked against a live catalogue by a test, so a statement that these patterns do not
understand is noticed.

Parameter names lose their dialect's prefix (`p_`, `@`). Of a view only the names of its columns can
be read here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from runtime_sql.contract.model import Field, Relation, Routine, Schema
from runtime_sql.scripts import SCRIPTS, Dialect, read_script

_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_PG_BODY = re.compile(r"\$(\w*)\$.*?\$\1\$", re.DOTALL)
_TABLE = re.compile(r"\bcreate (?:unlogged )?table wf\.(\w+)\s*\(", re.IGNORECASE)
_VIEW = re.compile(
    r"\bcreate (?:or (?:replace|alter) )?view wf\.(\w+)\s+as\s(.*?);", re.IGNORECASE | re.DOTALL
)
_SELECTED = re.compile(r"\bselect\s(.*?)\sfrom\s", re.IGNORECASE | re.DOTALL)
_STRING = re.compile(r"'(?:[^']|'')*'")
_INNERMOST = re.compile(r"\([^()]*\)")
_ROUTINE = re.compile(
    r"\bcreate (?:or (?:replace|alter) )?(function|procedure) wf\.(\w+)", re.IGNORECASE
)
_PG_RETURNS = re.compile(r"\s*returns\s+(.*?)\s+language\b", re.IGNORECASE | re.DOTALL)
_MSSQL_END = re.compile(r"\n(?:with\s+[^\n]*\n)?as\b", re.IGNORECASE)
_NO_COLUMN = frozenset({"constraint", "primary", "unique", "foreign", "check", "exclude", "index"})
_TYPE_END = re.compile(
    r"\s(?:not|null|default|constraint|generated|check|primary|references|collate|unique|identity)"
    r"\b.*",
    re.IGNORECASE | re.DOTALL,
)
_PG_PARAMETER = re.compile(
    r"(?:(inout|in|out|variadic)\s+)?(\w+)\s+(.*?)(?:\s+default\s+(.*)|\s*:?=\s*(.*))?",
    re.IGNORECASE | re.DOTALL,
)
_MSSQL_PARAMETER = re.compile(
    r"@(\w+)\s+(?:as\s+)?([\w.]+(?:\s*\([^)]*\))?)(?:\s*=\s*(\S+))?(\s+out(?:put)?)?(?:\s+readonly)?",
    re.IGNORECASE,
)
_GRANT = re.compile(
    r"\bgrant\s+((?:execute|select|insert)(?:,\s*insert)?)\s*(?:\([^)]*\)\s*)?on\s+"
    r"(?:function\s+)?(wf\..*?)\s+"
    r"to\s+(.*?);",
    re.IGNORECASE | re.DOTALL,
)
_OTHER_NAMES = {
    "timestamp with time zone": "timestamptz",
    "int": "integer",
    "int4": "integer",
    "int8": "bigint",
    "bool": "boolean",
    "character varying": "text",
}


def plain_type(written: str) -> str:
    """Returns a PostgreSQL type under the one name that is used in comparisons."""
    text = " ".join(written.lower().split())
    return _OTHER_NAMES.get(text, text)


def plain_default(written: str) -> str:
    """Returns a default without the cast that a catalogue adds."""
    text = re.sub(r"::[a-z_. ]+(\[\])?$", "", written.strip())
    return text.lower() if "'" not in text else text


def read_tree(dialect: Dialect) -> Schema:
    """Returns what the installed files of a tree declare."""
    return read_text("\n".join(read_script(dialect, name) for name in SCRIPTS[dialect]), dialect)


def read_text(text: str, dialect: Dialect) -> Schema:
    """Returns what a text of SQL declares."""
    text = _COMMENT.sub("", text)
    rights = _rights(text)
    if dialect == "pg":
        text = _PG_BODY.sub("$$", text)
    routines: dict[str, tuple[Routine, ...]] = {}
    for name, routine in _routines(text, dialect):
        routines[name] = (*routines.get(name, ()), routine)
    relations = {**dict(_tables(text, dialect)), **dict(_views(text))}
    return Schema(routines, relations, rights, uses_roles=dialect == "pg")


def _rights(text: str) -> dict[tuple[str, str], frozenset[str]]:
    """Returns what is granted, in a block too. The grants of a version's server are not read."""
    rights: dict[tuple[str, str], frozenset[str]] = {}
    for words, names, roles in _GRANT.findall(text):
        for name in re.findall(r"wf\.(\w+)", names):
            for role in re.findall(r"\w+", roles):
                key = role, name.lower()
                rights[key] = rights.get(key, frozenset()) | {
                    word.strip() for word in words.lower().split(",")
                }
    return rights


def _tables(text: str, dialect: Dialect) -> Iterator[tuple[str, Relation]]:
    for found in _TABLE.finditer(text):
        items = _split(_inside(text, found.end()))
        columns = [_column(item, dialect) for item in items if not _is_constraint(item)]
        keys = {name for item in items if "primary key" in item for name in _key_names(item)}
        yield (
            found[1],
            Relation(
                "table",
                tuple(replace(c, nullable=False) if c.name in keys else c for c in columns),
            ),
        )


def _is_constraint(item: str) -> bool:
    return item.split(None, 1)[0].lower() in _NO_COLUMN


def _key_names(item: str) -> list[str]:
    if not _is_constraint(item):
        return [item.split(None, 1)[0]]
    return re.findall(r"\w+", item[item.index("(") :])


def _column(item: str, dialect: Dialect) -> Field:
    name, rest = item.split(None, 1)
    # T-SQL: `name as expression` has no written type.
    is_computed = rest.lower().startswith("as ")
    written = _TYPE_END.sub("", " " + rest).strip()
    nullable = re.search(r"\bnot null\b|\bgenerated\b", rest, re.IGNORECASE) is None
    if dialect == "mssql":
        return Field(name, None if is_computed else _mssql_type(written), nullable)
    return Field(name, plain_type(written), nullable)


def _views(text: str) -> Iterator[tuple[str, Relation]]:
    for name, query in _VIEW.findall(_STRING.sub("''", text)):
        # Without what stands in parentheses, the first select is the one that names the columns.
        plain, count = _INNERMOST.subn(" ", query)
        while count:
            plain, count = _INNERMOST.subn(" ", plain)
        found = _SELECTED.search(plain)
        selected = "" if found is None else found[1]
        names = [re.findall(r"\w+", item)[-1] for item in _split(selected)]
        yield name, Relation("view", tuple(Field(column, None) for column in names))


def _routines(text: str, dialect: Dialect) -> Iterator[tuple[str, Routine]]:
    for found in _ROUTINE.finditer(text):
        rest = text[found.end() :]
        head = _pg_head(rest) if dialect == "pg" else _mssql_head(rest)
        columns = head.columns
        parameters = []
        for mode, given in head.parameters:
            if mode in ("out", "inout"):
                columns = (*columns, replace(given, default=None))
            if mode != "out":
                parameters.append(given)
        yield (
            found[2].lower(),
            Routine(found[1].lower(), tuple(parameters), columns, head.returns),
        )


@dataclass(frozen=True, slots=True)
class _Head:
    parameters: tuple[tuple[str, Field], ...]
    columns: tuple[Field, ...] = ()
    returns: str | None = None


def _pg_head(rest: str) -> _Head:
    start = rest.index("(") + 1
    inside = _inside(rest, start)
    parameters = tuple(_pg_parameter(item) for item in _split(inside))
    found = _PG_RETURNS.match(rest, start + len(inside) + 1)
    if found is None or plain_type(found[1]) == "void":
        return _Head(parameters)
    if re.match(r"table\s*\(", found[1], re.IGNORECASE):
        items = _split(_inside(found[1], found[1].index("(") + 1))
        columns = tuple(Field(n, plain_type(t)) for n, t in (i.split(None, 1) for i in items))
        return _Head(parameters, columns)
    return _Head(parameters, (), plain_type(found[1]))


def _pg_parameter(item: str) -> tuple[str, Field]:
    found = _PG_PARAMETER.fullmatch(item)
    assert found is not None, item
    mode, name, written, default, other = found.groups()
    default = default or other
    return (mode or "in").lower(), Field(
        name.removeprefix("p_"),
        plain_type(written),
        default=None if default is None else plain_default(default),
    )


def _mssql_head(rest: str) -> _Head:
    end = _MSSQL_END.search(rest)
    head = rest if end is None else rest[: end.start()]
    # What a function returns follows its parameters.
    head = re.split(r"\breturns\b", head, maxsplit=1, flags=re.IGNORECASE)[0]
    return _Head(tuple(_mssql_parameter(found) for found in _MSSQL_PARAMETER.finditer(head)))


def _mssql_parameter(found: re.Match[str]) -> tuple[str, Field]:
    mode = "out" if found[4] else "in"
    return mode, Field(found[1], _mssql_type(found[2]), default=found[3])


def _mssql_type(written: str) -> str:
    """Returns a type without its length, which is a matter of the dialect."""
    return re.split(r"[\s(]", written.strip().lower(), maxsplit=1)[0]


def _inside(text: str, start: int) -> str:
    """Returns the text from `start` up to the parenthesis that closes."""
    depth = 1
    for index in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[index], 0)
        if depth == 0:
            return text[start:index]
    raise ValueError("a parenthesis is not closed")


def _split(text: str) -> list[str]:
    """Returns the parts between the commas that stand outside of parentheses."""
    parts = [""]
    depth = 0
    for character in text:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]
