"""wf.wf_canonical_json writes what compiler.json_values.canonical writes (R35)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compiler import json_values

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
KEYS = TEXTS | st.sampled_from(
    ["a", "a b", "a!", 'a"', "a\\", "A", "ä", "\U0001f600", "\x7f", "\t"]
)
# Exponents stay small: what R6 refuses by its length does not come this far.
NUMBERS = st.integers() | st.builds(
    lambda digits, exponent: Decimal(digits).scaleb(exponent),
    st.integers(-(10**20), 10**20),
    st.integers(-60, 60),
)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=20,
)


@pytest.fixture(scope="module")
def connection(pg_server: Any, pg_template: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(pg_server.url(pg_template)) as opened:
        yield opened


def canonical(connection: psycopg.Connection[Any], document: str) -> str:
    row = connection.execute("select wf.wf_canonical_json(%s::jsonb)", [document]).fetchone()
    assert row is not None
    return str(row[0])


@given(VALUES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_a_value_has_one_text_in_both_languages(
    connection: psycopg.Connection[Any], value: Any
) -> None:
    text = json_values.dumps(value)
    assert canonical(connection, text) == json_values.canonical(value)


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ("null", "null"),
        ("1.50", "1.5"),
        ("-0.0", "0"),
        ("-0", "0"),
        ("0.000", "0"),
        ("1e3", "1000"),
        ("1e-3", "0.001"),
        ("100", "100"),
        ("1e400", "1" + "0" * 400),
        ('"\\u0000x"'.replace("0000", "0001"), '"\\u0001x"'),
        ('"\\b\\f\\n\\r\\t\\"\\\\/"', '"\\b\\f\\n\\r\\t\\"\\\\/"'),
        ('"\x7f"', '"\\u007f"'),
        ('"é"', '"\\u00e9"'),
        ('"\\ud83d\\ude00"', '"\\ud83d\\ude00"'),
        ('"\U0010ffff"', '"\\udbff\\udfff"'),
        ('{"a": 1, "a!": 2, "a b": 3}', '{"a b":3,"a!":2,"a":1}'),
        ('{"bb": {}, "c": [], "a": [[1, {"z": null}]]}', '{"a":[[1,{"z":null}]],"bb":{},"c":[]}'),
        ('{"\U0001f600": 1, "\uff00": 2, "z": 3}', '{"\\ud83d\\ude00":1,"\\uff00":2,"z":3}'),
    ],
)  # fmt: skip
def test_an_edge_of_the_form(
    connection: psycopg.Connection[Any], document: str, expected: str
) -> None:
    assert canonical(connection, document) == expected


def test_null_has_no_text(connection: psycopg.Connection[Any]) -> None:
    assert connection.execute("select wf.wf_canonical_json(null)").fetchone() == (None,)


def test_a_deep_value_has_a_text(connection: psycopg.Connection[Any]) -> None:
    document = "[" * 400 + "1" + "]" * 400
    assert canonical(connection, document) == document


def test_a_megabyte_is_written_at_once(connection: psycopg.Connection[Any]) -> None:
    one = {"key": "n", "é": "ß" * 9, "list": [Decimal("1.50"), None]}
    rows = [one | {"number": i} for i in range(20_000)]
    document = json_values.dumps(rows)
    assert len(document) > 1_000_000
    expected = json_values.canonical(json_values.loads(document))
    # A text made one value at a time would take minutes.
    assert canonical(connection, document) == expected


def test_the_hash_is_that_of_the_text(connection: psycopg.Connection[Any]) -> None:
    value = {"b": [1, "ü"], "a": None}
    row = connection.execute("select wf.wf_json_sha256(%s)", [json.dumps(value)]).fetchone()
    assert row == (json_values.sha256_hex(value),)


def test_an_exact_hash_tells_a_decimal_from_an_integer(connection: psycopg.Connection[Any]) -> None:
    for text in ('{"n": 1}', '{"n": 1.0}', '{"n": 1.50}', '{"n": [0.0, 10, 1e3]}'):
        row = connection.execute("select wf.wf_json_sha256(%s, true)", [text]).fetchone()
        assert row == (json_values.exact_sha256_hex(json_values.loads(text)),), text
