"""Rules over the syntax tree of T-SQL, for what grammar and binder let pass.

Some are faults in every script; those under `house` are ours: the subset that SQL Server and the
stand-in both run, and no dynamic SQL in a routine.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.tsql.binder import Complaint
from tests.tsql.dotnet import load

Step = tuple[Any, str]
"""A node and the name of its kind, which is asked of .NET once."""
Path = tuple[Step, ...]
"""What a node stands in, from the script down."""

_AGGREGATES = {"COUNT", "COUNT_BIG", "SUM", "MIN", "MAX", "AVG", "STRING_AGG"}
_BLANK = {"WhiteSpace", "SingleLineComment", "MultilineComment"}
_LATER_THAN_2019 = {
    "GREATEST", "LEAST", "JSON_OBJECT", "JSON_ARRAY", "JSON_PATH_EXISTS", "DATETRUNC", "BIT_COUNT",
}  # fmt: skip
_NOT_IN_THE_SUBSET = {
    "MergeStatement": "MERGE",
    "WaitForStatement": "WAITFOR",
    "CreateSynonymStatement": "a synonym",
    "ExecuteAsStatement": "EXECUTE AS",
}


def lint(script: str) -> list[Complaint]:
    """Returns what the rules say of a script that the grammar accepts."""
    load()
    from Microsoft.SqlServer.TransactSql.ScriptDom import TSql150Parser
    from System.IO import StringReader

    root, errors = TSql150Parser(True).Parse(StringReader(script))
    if root is None or errors.Count:
        return [(error.Line, error.Column, str(error.Message)) for error in errors]
    tokens = root.ScriptTokenStream
    found = {
        (node.StartLine, node.StartColumn, message)
        for (node, kind), path in _walk(root)
        for message in (*_faults(node, kind, path, tokens), *_house(node, kind, path))
    }
    return sorted(found)


def _kind(node: Any) -> str:
    return str(node.GetType().Name)


def _walk(root: Any) -> Iterator[tuple[Step, Path]]:
    """Yields every node with what it stands in: a long text in pieces is a very deep `+`."""
    pending: list[tuple[Any, Path]] = [(root, ())]
    while pending:
        node, path = pending.pop()
        step = (node, _kind(node))
        yield step, path
        inside = (*path, step)
        pending += [(child, inside) for child in _children(node)]


def _children(node: Any) -> Iterator[Any]:
    from Microsoft.SqlServer.TransactSql.ScriptDom import TSqlFragment

    for part in node.GetType().GetProperties():
        if part.Name == "ScriptTokenStream" or part.GetIndexParameters().Length:
            continue
        value = part.GetValue(node)
        if isinstance(value, TSqlFragment):
            yield value
        elif hasattr(value, "Count") and not isinstance(value, str | bytes):
            yield from (item for item in value if isinstance(item, TSqlFragment))


def _faults(node: Any, kind: str, path: Path, tokens: Any) -> Iterator[str]:
    """Yields what is wrong in any script."""
    above = [step_kind for _step, step_kind in path]
    if kind in ("ThrowStatement", "WithCtesAndXmlNamespaces"):
        yield from _unended(node, path, tokens)
    if kind == "ThrowStatement" and node.ErrorNumber is None and "TryCatchStatement" not in above:
        yield "THROW without arguments outside of CATCH"
    if kind == "ThrowStatement" and node.ErrorNumber is not None:
        yield from _throw_number(node)
    if kind in ("RollbackTransactionStatement", "CommitTransactionStatement"):
        name = _transaction_name(node)
        if name in ("THROW", "RETURN", "PRINT"):
            yield f"a transaction named {name}: a ; is missing"
    if kind == "ExecuteStatement" and _token(tokens, node.FirstTokenIndex) not in (
        "Exec",
        "Execute",
    ):
        yield "a procedure is called without EXEC: a misspelt keyword?"
    if kind == "InsertSpecification":
        yield from _insert(node)
    if kind == "BinaryQueryExpression":
        one, other = _width(node.FirstQueryExpression), _width(node.SecondQueryExpression)
        if None not in (one, other) and one != other:
            yield f"a set operation of {one} and {other} columns"
    is_value = kind == "ScalarSubquery" and above[-1:] not in (["ExistsPredicate"], ["InPredicate"])
    if is_value and (_width(node.QueryExpression) or 1) > 1:
        yield "a subquery gives more than one column here"
    if kind == "SchemaDeclarationItemOpenjson" and node.AsJson:
        yield from _as_json(node)
    if kind in ("BreakStatement", "ContinueStatement") and "WhileStatement" not in above:
        yield f"{kind.removesuffix('Statement').upper()} outside of WHILE"
    if kind == "FunctionCall" and _in_where(above):
        name = str(node.FunctionName.Value).upper()
        if node.OverClause is not None:
            yield "a window function in WHERE"
        elif name in _AGGREGATES:
            yield "an aggregate in WHERE"


def _token(tokens: Any, index: int) -> str:
    return str(tokens[index].TokenType)


def _unended(node: Any, path: Path, tokens: Any) -> Iterator[str]:
    """THROW and WITH are read as part of the statement before them, unless that ends in `;`."""
    is_with = _kind(node) == "WithCtesAndXmlNamespaces"
    statement = path[-1][0] if is_with else node
    holders = path[:-1] if is_with else path
    if not holders or holders[-1][1] != "StatementList":
        return
    if holders[-1][0].Statements[0].StartOffset == statement.StartOffset:
        return
    index = node.FirstTokenIndex - 1
    while index >= 0 and _token(tokens, index) in _BLANK:
        index -= 1
    if index >= 0 and _token(tokens, index) != "Semicolon":
        yield f"the statement before {'WITH' if is_with else 'THROW'} does not end in ;"


def _throw_number(node: Any) -> Iterator[str]:
    number = getattr(node.ErrorNumber, "Value", None)
    if number is not None and str(number).isdigit() and int(number) < 60_001:
        yield f"THROW {number}: ours are 50000 + a code of ours"


def _transaction_name(node: Any) -> str:
    identifier = None if node.Name is None else node.Name.Identifier
    return "" if identifier is None else str(identifier.Value).upper()


def _insert(node: Any) -> Iterator[str]:
    wanted = node.Columns.Count
    source = node.InsertSource
    if not wanted:
        yield "INSERT names no columns"
    elif _kind(source) == "ValuesInsertSource":
        for row in source.RowValues:
            if row.ColumnValues.Count != wanted:
                yield f"INSERT names {wanted} columns and gives {row.ColumnValues.Count} values"
    elif _kind(source) == "SelectInsertSource":
        given = _width(source.Select)
        if given not in (None, wanted):
            yield f"INSERT names {wanted} columns and selects {given}"


def _width(query: Any) -> int | None:
    """Returns how many columns a query has; None where `*` or FOR JSON hides it."""
    kind = _kind(query)
    if kind == "QueryParenthesisExpression":
        return _width(query.QueryExpression)
    if kind == "BinaryQueryExpression":
        return _width(query.FirstQueryExpression)
    if kind != "QuerySpecification" or query.ForClause is not None:
        return None
    if any(_kind(item) == "SelectStarExpression" for item in query.SelectElements):
        return None
    return int(query.SelectElements.Count)


def _as_json(node: Any) -> Iterator[str]:
    type_ = node.ColumnDefinition.DataType
    name = str(type_.Name.BaseIdentifier.Value).lower()
    lengths = [str(p.Value).lower() for p in type_.Parameters]
    if name != "nvarchar" or lengths != ["max"]:
        yield "an OPENJSON column AS JSON is nvarchar(max)"


def _in_where(above: list[str]) -> bool:
    if "WhereClause" not in above:
        return False
    below = above[len(above) - above[::-1].index("WhereClause") :]
    return not any(step in ("ScalarSubquery", "QueryDerivedTable") for step in below)


def _house(node: Any, kind: str, path: Path) -> Iterator[str]:
    """Yields where a script leaves the subset, or a routine makes SQL out of text."""
    if kind in _NOT_IN_THE_SUBSET:
        yield f"{_NOT_IN_THE_SUBSET[kind]} is not in the subset"
    if kind == "FunctionCall" and str(node.FunctionName.Value).upper() in _LATER_THAN_2019:
        yield f"{node.FunctionName.Value} is newer than SQL Server 2019"
    if kind not in ("ExecutableStringList", "ProcedureReference"):
        return
    in_routine = any(
        step_kind.endswith(("ProcedureStatement", "FunctionStatement")) for _step, step_kind in path
    )
    if in_routine and kind == "ExecutableStringList":
        yield "dynamic SQL in a routine"
    if in_routine and kind == "ProcedureReference" and node.Name is not None:
        if str(node.Name.BaseIdentifier.Value).lower() == "sp_executesql":
            yield "dynamic SQL in a routine"
        elif node.Name.SchemaIdentifier is None:
            yield f"{node.Name.BaseIdentifier.Value}: a procedure is named with its schema"
