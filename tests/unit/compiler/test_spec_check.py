"""Findings on a graph in a file have a code, a line and a column; sound graphs have none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler import json_values
from compiler.json_places import places
from compiler.spec import dump_spec
from compiler.spec_check import check_spec, read_spec
from tests.unit.emit.small_specs import awkward

CASES = sorted((Path(__file__).parents[2] / "corpus" / "err").glob("WF6*/*.spec.json"))

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=15,
)


@given(VALUES, st.sampled_from([None, 0, 3]))
def test_every_value_is_found_at_its_place(value: Any, indent: int | None) -> None:
    text = json.dumps(value, indent=indent)
    found = places(text)
    pending = [("", value)]
    count = 0
    while pending:
        pointer, item = pending.pop()
        count += 1
        span = found[pointer]
        assert json.loads(text[span.start : span.end]) == item
        pairs = (
            item.items()
            if isinstance(item, dict)
            else enumerate(item)
            if isinstance(item, list)
            else ()
        )
        pending += [(f"{pointer}/{_escaped(str(key))}", child) for key, child in pairs]
    assert len(found) == count


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def test_a_deep_document_is_no_concern_of_the_stack() -> None:
    assert len(places("[" * 5000 + "]" * 5000)) == 5000


def test_a_sound_graph_is_read() -> None:
    spec, found = read_spec(dump_spec(awkward()), "awkward.spec.json")
    assert found == ()
    assert spec == awkward()


@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_case_has_no_finding_of_another_code(path: Path) -> None:
    found = check_spec(path.read_bytes(), path.name)
    assert {finding.code for finding in found} == {path.parent.name}


def test_a_finding_stands_at_its_row() -> None:
    text = '{"spec_format": 1,\n "edges": [{}, 3],\n "x": 0}'
    found = check_spec(text, "x.json")
    shown = [(d.source.position(d.span.start), d.message) for d in found]
    assert [(place.line, place.column, message) for place, message in shown][1:] == [
        (2, 12, "missing here: parent, child, kind, order, case"),
        (2, 16, "row 1 of edges should be an object"),
        (3, 7, "x is not known here"),
    ]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\xff", "byte 0 is not UTF-8"),
        (b"", "no JSON: expecting value"),
        (b"[1,", "no JSON: expecting value"),
        (b"[]", "a graph should be an object"),
        (b"[" * 200 + b"]" * 200, "nested deeper than 100 levels"),
        (b'{"a": 1e999}', "number 1e999 takes more than 400 characters when written out"),
        (b'"\\u0000"', "a string contains U+0000"),
    ],
)
def test_a_document_that_is_no_graph(data: bytes, message: str) -> None:
    (found,) = check_spec(data, "x.json")
    assert (found.code, found.message) == ("WF601", message)


@pytest.mark.parametrize("given_format", [0, 2, -1, 10**30])
def test_an_unknown_format_is_all_that_is_said(given_format: int) -> None:
    (found,) = check_spec(json_values.dumps({"spec_format": given_format, "x": 1}), "x.json")
    assert (found.code, found.span.start) == ("WF602", 15)


@pytest.mark.parametrize("given_format", ["1", None, True, {}])
def test_a_format_that_is_no_number_is_no_graph(given_format: Any) -> None:
    found = check_spec(json_values.dumps({"spec_format": given_format}), "x.json")
    assert {finding.code for finding in found} == {"WF601"}
