"""wf.wf_canonical_json on SQL Server writes what compiler.json_values.canonical writes (R35)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from compiler import json_values
from tests.mssql.conftest import MssqlGraphDatabase

DOCUMENTS = [
    "null",
    "1.50",
    "-0.0",
    "0.000",
    "1e3",
    "1e-3",
    "100",
    '"\\u0001x"',
    '"\\b\\f\\n\\r\\t\\"\\\\/"',
    '"\x7f"',
    '"é é ü"',
    '"\U0010ffff\U0001f600"',
    '[{}, [], "", [[]], { }, [ ]]',
    '{"a": 1, "a!": 2, "a b": 3, "A": 4, "a ": 5}',
    '{"bb": {}, "c": [], "a": [[1, {"z": null, "y": true}]]}',
    '{"\U0001f600": 1, "\uff00": 2, "z": 3, "\\"": 4, "\\\\": 5}',
    "[" * 90 + "1" + "]" * 90,
    f"[{', '.join(str(i) for i in range(30))}]",
]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_value_has_one_text_in_both_languages(
    database: MssqlGraphDatabase, document: str
) -> None:
    expected = json_values.canonical(json_values.loads(document))
    assert database.row("select wf.wf_canonical_json(%s, 0)", document) == (expected,)


def test_null_has_no_text(database: MssqlGraphDatabase) -> None:
    assert database.row("select wf.wf_canonical_json(null, 0)") == (None,)


def test_a_value_of_many_parts_is_written_at_once(database: MssqlGraphDatabase) -> None:
    rows: list[Any] = [
        {"key": "n", "é": "ß" * 9, "list": [Decimal("1.50"), None], "number": i} for i in range(200)
    ]
    expected = json_values.canonical(rows)
    assert database.row("select wf.wf_canonical_json(%s, 0)", json_values.dumps(rows)) == (
        expected,
    )


def test_the_hash_is_that_of_the_text(database: MssqlGraphDatabase) -> None:
    value = {"b": [1, "ü"], "a": None, "long": "x" * 9_000}
    assert database.row("select wf.wf_json_sha256(%s, 0)", json_values.dumps(value)) == (
        json_values.sha256_hex(value),
    )
