"""The tests of PostgreSQL's routines, played on a SQL Server: a connection that takes their words.

A test calls routines as `select … from wf.name(%s, …)` and looks into tables with plain `select`s.
`TsqlConnection` is as much of psycopg's connection as they use. A call becomes `exec wf.name`, with
parameter names, defaults and result columns from the contract; of other statements the few words
that differ are changed. What cannot be said so is PostgreSQL's own, and the test is skipped there
with the statement as its reason, so that a summary counts it.

An error of the runtime comes as a psycopg error with the SQLSTATE that the twin raises.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import psycopg
import pytest

from compiler import json_values
from runtime_sql.contract.model import Field, RoutineEntry, load_contract
from runtime_sql.go_batches import split_batches
from runtime_sql.mssql_driver import MssqlConnection, MssqlError
from tests.mssql_server import open_connection

ROUTINES = {routine.name: routine for routine in load_contract().routines}
# What the database answers for a text that is no value of the parameter's type, or too long.
_NO_VALUE = frozenset(
    {241, 242, 245, 248, 295, 8114, 8115, 8152, 2628, 220, 9420, 13609, 8169, 127, 1060}
)

_CALL = re.compile(
    r"^select\s+(?P<columns>.*?)\s+from\s+wf\.(?P<name>\w+)\((?P<arguments>.*)\)\s*(?:as\s+)?\w*\s*"
    r"(?P<order>order by .*)?$",
    re.DOTALL,
)
_VALUE = re.compile(r"^select\s+wf\.(?P<name>\w+)\((?P<arguments>.*)\)(?:::\w+)?$", re.DOTALL)
_FOR_EACH = re.compile(
    r"^select\s+wf\.(?P<name>\w+)\((?P<argument>[a-z_]+)\)\s+from\s+(?P<rest>wf\..*)$", re.DOTALL
)
_NAMED = re.compile(r"%\((\w+)\)s")
_CAST = re.compile(r"::(?:text|jsonb|int|integer|bigint|boolean|timestamptz|text\[\]|regclass)\b")
_INTERVAL = re.compile(
    r"(wf\.wf_now\(\)|[a-z_.]+_at|[a-z_.]+_until|[a-z_.]+_seen_at)\s*([+-])\s*"
    r"(?:%s \* )?interval '(\d+) ?(ms|s|sec|seconds?|min|minutes?|hours?|days?)'"
)
_UNITS = {"ms": "millisecond", "s": "second", "m": "minute", "h": "hour", "d": "day"}
# Words that T-SQL has not. A statement with one of them is for PostgreSQL alone.
_OWN_WORDS = re.compile(
    r"\blateral\b|\bunnest\b|\bjsonb?_\w+|\bto_jsonb\b|->|\bpg_\w+|\bextract\(|\blike '%"
    r"|\barray[\[(]"
    r"|\bon conflict\b|\breturning\b|\bfor update\b|\bdo \$|\bcreate \b|\balter \b|\bdrop \b|@>"
    r"|\busing \(|'infinity'|\bfilter \(|\bhashtext|\bmd5\(|\bgenerate_series|\bset_config"
    r"|\btruncate\b|\bisolation level\b"
    r"|\bis distinct\b|\b\w+ = any\b|\binterval\b"
)


class TsqlRefused(psycopg.DatabaseError):
    """What SQL Server answered, as psycopg would tell it."""

    def __init__(self, error: MssqlError) -> None:
        super().__init__(error.message)
        number = error.number or 0
        self.number = number
        self.message = error.message
        if 60_001 <= number < 70_000:
            self.sqlstate = f"WF{number - 60_000:03}"
        elif 70_001 <= number < 80_000:
            self.sqlstate = f"WA{number - 70_000:03}"
        elif number in _NO_VALUE:
            self.sqlstate = "22000"

    @property
    def diag(self) -> Any:
        return _Diagnostic(self.message, str(self.number - 50_000))


class _Diagnostic:
    def __init__(self, message: str, detail: str) -> None:
        self.message_primary = message
        self.message_detail = detail


class TsqlCursor:
    """The rows of one statement."""

    def __init__(self, connection: TsqlConnection | None, as_dict: bool = False) -> None:
        self._connection = connection
        self._as_dict = as_dict
        self._names: Sequence[str] = ()
        self._rows: list[tuple[Any, ...]] = []

    def __enter__(self) -> TsqlCursor:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __iter__(self) -> Iterator[Any]:
        return iter(self.fetchall())

    def execute(self, statement: Any, parameters: Any = ()) -> TsqlCursor:
        assert self._connection is not None
        done = self._connection.execute(statement, parameters)
        self._names, self._rows = done._names, done._rows
        return self

    def take(self, names: Sequence[str], rows: list[tuple[Any, ...]]) -> TsqlCursor:
        self._names, self._rows = names, rows
        return self

    def fetchall(self) -> list[Any]:
        rows, self._rows = self._rows, []
        if self._as_dict:
            return [dict(zip(self._names, row, strict=True)) for row in rows]
        return rows

    def fetchone(self) -> Any:
        rows = self.fetchall()
        self._rows = rows[1:]
        return rows[0] if rows else None


# Connections that tests have given back: a server may take seconds to learn the code anew.
_idle: dict[str, list[MssqlConnection]] = {}


class TsqlConnection:
    """One connection to a database with the runtime, in autocommit; closed, it is kept for the
    next test."""

    def __init__(self, url: str) -> None:
        self._url = url
        idle = _idle.setdefault(url, [])
        self._connection: MssqlConnection = idle.pop() if idle else open_connection(url)

    def __enter__(self) -> TsqlConnection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.rollback()
        _idle[self._url].append(self._connection)

    def rollback(self) -> None:
        self.rows("if @@trancount > 0 rollback transaction;")

    def rows(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Runs T-SQL as it is."""
        try:
            return self._connection.rows(statement, *parameters)
        except MssqlError as error:
            raise TsqlRefused(error) from None

    def run_script(self, text: str) -> None:
        try:
            for batch in split_batches(text):
                self.rows(batch.text)
        finally:
            self.rollback()

    def cursor(self, row_factory: Any = None) -> TsqlCursor:
        return TsqlCursor(self, as_dict=row_factory is psycopg.rows.dict_row)

    @contextmanager
    def transaction(self, force_rollback: bool = False) -> Iterator[None]:
        """One transaction; inside of one a savepoint. An error of the server dooms all of it."""
        [(outer,)] = self.rows("select @@trancount;")
        if outer:
            self.rows("save transaction inner_one;")
            yield
            assert force_rollback, "what is inside of a transaction is rolled back"
            self.rows("rollback transaction inner_one;")
            return
        self.rows("begin transaction;")
        try:
            yield
            if not force_rollback:
                self.rows("commit transaction;")
        finally:
            self.rollback()

    def execute(self, statement: Any, parameters: Any = ()) -> TsqlCursor:
        text = statement.decode() if isinstance(statement, bytes) else str(statement)
        text = " ".join(text.split()) if "'" not in text else text.strip()
        if isinstance(parameters, Mapping):
            names = _NAMED.findall(text)
            text, parameters = _NAMED.sub("%s", text), [parameters[name] for name in names]
        values = [sql_value(value) for value in parameters]
        if text in ("begin", "commit", "rollback"):
            pytest.skip("for PostgreSQL alone: two sessions that meet, seen in pg_locks")
        if text.startswith("set statement_timeout"):
            text = "set lock_timeout 20000;"
        if found := re.fullmatch(r"set lock_timeout = '(\d+)s'", text):
            text = f"set lock_timeout {found[1]}000;"
        if (found := _FOR_EACH.match(text)) and found["argument"] not in ("null", "default"):
            keys = self.rows(plain(f"select {found['argument']} from {found['rest']}"), *values)
            answers = [self._call(ROUTINES[found["name"]], ["%s"], list(key)) for key in keys]
            return TsqlCursor(None).take((), [row for _, rows in answers for row in rows])
        if (found := _VALUE.match(text)) and found["name"] in ROUTINES:
            names, rows = self._call(
                ROUTINES[found["name"]], split_arguments(found["arguments"]), values
            )
            return TsqlCursor(None).take(names, rows)
        if (found := _CALL.match(text)) and found["name"] in ROUTINES:
            return self._select(found, values)
        names = _column_names(text)
        rows = self.rows(plain(text), *values)
        return TsqlCursor(None).take(names, [_plain_row(names, row) for row in rows])

    def _select(self, found: re.Match[str], values: list[Any]) -> TsqlCursor:
        names, rows = self._call(
            ROUTINES[found["name"]], split_arguments(found["arguments"]), values
        )
        wanted = [part.strip() for part in found["columns"].split(",")]
        if found["order"]:
            rows.sort()
        if wanted == ["count(*)"]:
            return TsqlCursor(None).take(("count",), [(len(rows),)])
        if wanted[0].endswith("*"):
            return TsqlCursor(None).take(names, rows)
        places = []
        for column in wanted:
            plain_name = _CAST.sub("", column).rpartition(".")[2]
            if plain_name not in names:
                pytest.skip(f"for PostgreSQL alone: {found[0]}")
            places.append(list(names).index(plain_name))
        picked = [tuple(row[place] for place in places) for row in rows]
        return TsqlCursor(None).take([names[place] for place in places], picked)

    def _call(
        self, routine: RoutineEntry, written: Sequence[str], values: list[Any]
    ) -> tuple[Sequence[str], list[tuple[Any, ...]]]:
        moments = {
            place: self.rows(plain(f"select {argument}"))[0][0]
            for place, argument in enumerate(written)
            if argument.startswith("wf.wf_now()")
        }
        written = [
            f"'{moments[place].isoformat()}'" if place in moments else argument
            for place, argument in enumerate(written)
        ]
        given = _by_name(routine, written, list(values))
        columns = routine.columns or (Field(routine.name, routine.returns),)
        if routine.kinds["mssql"] == "function":
            marks = ["%s" if p.name in given else _default(p) for p in routine.parameters]
            ordered = [given[p.name] for p in routine.parameters if p.name in given]
            rows = self.rows(f"select wf.{routine.name}({', '.join(marks)});", *ordered)
        elif (
            routine.group == "engine_runtime"
            and routine.columns
            and "error_code" in {column.name for column in routine.columns}
        ):
            rows = self._outputs(routine, given)
        else:
            named = ", ".join(f"@{name} = %s" for name in given)
            rows = self.rows(f"exec wf.{routine.name} {named}".rstrip(), *given.values())
            if not routine.columns and routine.returns is None:
                rows = [(None,)]
        return [column.name for column in columns], [
            tuple(python_value(column, value) for column, value in zip(columns, row, strict=True))
            for row in rows
        ]

    def _outputs(self, routine: RoutineEntry, given: dict[str, Any]) -> list[tuple[Any, ...]]:
        named = "".join(f"@{name} = %s, " for name in given)
        return self.rows(
            "declare @v_value nvarchar(max), @v_code int, @v_message nvarchar(max);"
            f" exec wf.{routine.name} {named}@value_json = @v_value output,"
            " @error_code = @v_code output, @error_message = @v_message output;"
            " select @v_value, @v_code, @v_message;",
            *given.values(),
        )


# Values ---------------------------------------------------------------------------------------


def sql_value(value: Any) -> Any:
    """Returns a parameter as the drivers for SQL Server take it."""
    from psycopg.types.json import Json, Jsonb

    if isinstance(value, Json | Jsonb):
        return json_values.dumps(value.obj)
    if isinstance(value, list | tuple):
        return json.dumps(list(value), ensure_ascii=False)
    if isinstance(value, dict):
        return json_values.dumps(value)
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return str(value) if isinstance(value, Decimal) else value


def python_value(column: Field, value: Any) -> Any:
    """Returns a result as psycopg gives it."""
    if value is None:
        return None
    if column.type == "json":
        return json_values.read_stored(value)
    if column.type == "text_list":
        return json.loads(value)
    if column.type == "boolean":
        return bool(value)
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) else value


def _plain_row(names: Sequence[str], row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Reads what tables hold; a column's name tells what its text is."""
    read = []
    for place, value in enumerate(row):
        name = names[place] if len(names) == len(row) else ""
        if isinstance(value, str) and (name.endswith("_json") or name == "known"):
            value = json_values.read_stored(value)
        elif isinstance(value, str) and name in ("capabilities", "output_names", "event_types"):
            value = json.loads(value)
        elif isinstance(value, datetime):
            value = value.replace(tzinfo=UTC)
        read.append(value)
    return tuple(read)


# Texts ----------------------------------------------------------------------------------------


def split_arguments(text: str) -> list[str]:
    """Returns the arguments of a call, divided at the commas outside of strings and brackets."""
    parts, depth, start, quoted = [], 0, 0, False
    for place, letter in enumerate(text):
        if letter == "'":
            quoted = not quoted
        elif not quoted and letter in "([":
            depth += 1
        elif not quoted and letter in ")]":
            depth -= 1
        elif letter == "," and not quoted and depth == 0:
            parts.append(text[start:place].strip())
            start = place + 1
    return [*parts, text[start:].strip()] if text.strip() else []


def _by_name(routine: RoutineEntry, written: Sequence[str], values: list[Any]) -> dict[str, Any]:
    names = [parameter.name for parameter in routine.parameters]
    types = {parameter.name: parameter.type for parameter in routine.parameters}
    given: dict[str, Any] = {}
    for place, argument in enumerate(written):
        name = names[place] if place < len(names) else ""
        if "=>" in argument:
            name, argument = (part.strip() for part in argument.split("=>", 1))
            name = name.removeprefix("p_")
        given[name] = _argument(argument, values)
        if given[name] == "{}" and types.get(name) == "text_list":
            given[name] = "[]"
    return given


def _argument(written: str, values: list[Any]) -> Any:
    while (shorter := _CAST.sub("", written)) != written:
        written = shorter
    if written == "%s":
        return values.pop(0)
    if written == "null":
        return None
    if written in ("true", "false"):
        return int(written == "true")
    if re.fullmatch(r"-?\d+", written):
        return int(written)
    if re.fullmatch(r"'(?:[^']|'')*'", written):
        return written[1:-1].replace("''", "'")
    if found := re.fullmatch(r"array\[(.*)\]", written):
        return json.dumps([part.strip().strip("'") for part in found[1].split(",")])
    if found := re.fullmatch(r"repeat\('(.)', (\d+)\)", written):
        return found[1] * int(found[2])
    pytest.skip(f"for PostgreSQL alone: the argument {written}")


def _default(parameter: Field) -> str:
    return "default" if parameter.default is not None else "null"


def _column_names(text: str) -> list[str]:
    found = re.match(r"select\s+(?:distinct\s+)?(.*?)\s+from\s", text, re.DOTALL)
    parts = split_arguments(found[1]) if found else []
    return [re.split(r"[.\s]", _CAST.sub("", part))[-1] for part in parts]


def plain(text: str) -> str:
    """Returns a statement that looks into tables, in T-SQL."""
    if re.search(r"select \w::text", text):
        pytest.skip(f"for PostgreSQL alone: {text}")
    text = _CAST.sub("", text)
    text = _INTERVAL.sub(_moved, text)
    if "wf.wf_setting" in text:
        text = re.sub(r"\((dateadd\(.*?wf\.wf_now\(\)\))\)", r"wf.wf_time_text(\1)", text)
    if _OWN_WORDS.search(text):
        pytest.skip(f"for PostgreSQL alone: {' '.join(text.split())[:120]}")
    text = re.sub(r"\btrue\b", "1", text)
    text = re.sub(r"\bfalse\b", "0", text)
    text = re.sub(
        r"\b(where|and|or) (not )?((?:\w\.)?(?:is_\w+|paused))\b(?! *(?:=|is|in|<|>))",
        lambda m: f"{m[1]} {m[3]} = {0 if m[2] else 1}",
        text,
    )
    text = re.sub(r"\b(char_)?length\(", "len(", text)
    text = re.sub(r"\brepeat\(", "replicate(", text)
    if found := re.search(r" limit (\d+)$", text):
        text = re.sub(r"^select", f"select top ({found[1]})", text[: found.start()])
    if re.match(r"select (exists|\w+ is null)\b", text):
        text = re.sub(r"^select (.*)$", r"select case when \1 then 1 else 0 end", text, flags=re.S)
    if found := re.match(
        r"update wf\.(\w+) (\w)\s+set\b(.*?)(\sfrom\s.*|\swhere\s.*|$)", text, re.S
    ):
        table, alias, sets, rest = found.groups()
        join = f"from wf.{table} as {alias}"
        rest = rest.replace(" from ", f" {join}, ", 1) if rest.startswith(" from ") else join + rest
        text = f"update {alias} set{sets} {rest}"
    return text


def _moved(found: re.Match[str]) -> str:
    """`x + interval '2 s'` as dateadd; `%s * interval '1 s'` counts by a parameter."""
    at, sign, number, unit = found.groups()
    word = _UNITS["ms" if unit == "ms" else unit[0]]
    count = "%s" if "%s" in found[0] else number
    moved = f"dateadd({word}, {'-' if sign == '-' else ''}{count}, {at})"
    return moved


# The database -----------------------------------------------------------------------------------


def empty(url: str) -> None:
    """Takes everything out of a database that the installation did not put there."""
    with TsqlConnection(url) as connection:
        tables = connection.rows(
            "select t.name from sys.tables as t where t.schema_id = schema_id(N'wf');"
        )
        links = connection.rows(
            "select distinct object_name(f.parent_object_id), object_name(f.referenced_object_id)"
            " from sys.foreign_keys as f where f.schema_id = schema_id(N'wf');"
        )
        left = {name for (name,) in tables} - {"schema_version"}
        statements = []
        while left:
            named = {to for by, to in links if by in left and by != to}
            free = sorted(left - named)
            statements += [f"delete from wf.{name};" for name in free]
            left -= set(free)
        statements.append(
            "insert into wf.wf_setting (name, value) values (N'test_database', N'true');"
        )
        statements.append("alter sequence wf.node_execution_id_seq restart with 1;")
        connection.rows("".join(statements))
