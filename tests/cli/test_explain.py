"""`wf explain`: codes as they are typed, sections of the pages."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compiler.codes import COMPILER_CODES
from dsl.codes import SYNTAX_CODES
from wfsql.cli.commands.explain import error_sections, sections
from wfsql.testing.codes import TEST_CODES

Wf = Callable[..., Any]

PAGE = """\
# Diagnostics

## Structure

### WF101 · key used twice

Text.

```wf
# WF999 is no heading
## WF998
```

#### The fix

More.

### WF102 · unknown key

Last.

## Data
"""


def test_a_section_ends_at_the_next_of_its_level() -> None:
    found = sections(PAGE)
    assert list(found) == ["WF101", "WF102"]
    assert found["WF101"].startswith("### WF101 · key used twice\n\nText.")
    assert found["WF101"].endswith("#### The fix\n\nMore.\n")
    assert found["WF102"] == "### WF102 · unknown key\n\nLast.\n"


def test_without_a_code_all_are_listed(wf: Wf) -> None:
    done = wf("explain")
    assert done.code == 0
    listed = [line.split()[0] for line in done.out.splitlines()]
    diagnostics = [code.code for code in (*SYNTAX_CODES, *COMPILER_CODES, *TEST_CODES)]
    assert listed[: len(diagnostics)] == sorted(diagnostics)
    assert listed[len(diagnostics)] == "10001"


@pytest.mark.parametrize("typed", ["WF104", "wf104", "104"])
def test_a_code_may_be_typed_in_any_way(wf: Wf, typed: str) -> None:
    done = wf("explain", typed)
    assert done.code == 0
    assert "WF104" in done.out.splitlines()[0]
    assert "unknown action" in done.out


def test_an_unknown_code_is_wrong_use(wf: Wf) -> None:
    done = wf("explain", "E1")
    assert done.code == 2
    assert done.err.startswith('error: there is no code "E1"\nhint: ')


@pytest.mark.parametrize("typed", ["20002", "WA002", "wa002"])
def test_an_error_of_the_runtime_is_explained(wf: Wf, typed: str) -> None:
    done = wf("explain", typed)
    assert done.code == 0
    assert done.out.startswith("## 20002 there is no such thing\n\n- **Means:**")
    assert "20003" not in done.out


def test_an_unknown_number_is_not_taken_for_another(wf: Wf) -> None:
    done = wf("explain", "20099")
    assert (done.code, done.err) == (
        2,
        'error: there is no code "20099"\nhint: see "wf explain" for all codes\n',
    )


def test_an_unknown_diagnostic_is_not_taken_for_another(wf: Wf) -> None:
    assert "did you mean" not in wf("explain", "WF1").err


def _answered() -> set[str]:
    """Every code that the contract, the engines' sources or the gateway's can answer."""
    root = Path(__file__).parents[2]
    contract = (root / "runtime_sql/contract/db_objects.yaml").read_text()
    found = {code for row in re.findall(r"errors: \[(.*)\]", contract) for code in row.split(", ")}
    for path in (*root.glob("runtime_sql/pg/*.sql"), *root.glob("local_runner/*.py")):
        found |= set(re.findall(r"\b(?:100[0-9]{2}|200[01][0-9])\b", path.read_text()))
    for path in root.glob("wfsql/gateway/*.py"):
        text = path.read_text()
        found |= set(re.findall(r"(?:Refusal\(|bad_request\()\s*(?:\d{3},\s*)?\"(\w+)\"", text))
        found |= set(re.findall(r"\b200[01][0-9]\b", text))
    return found - {"", "10000", "20000"}


def test_every_code_that_can_be_answered_has_its_section() -> None:
    page = (Path(__file__).parents[2] / "docs/errors.md").read_text()
    explained = error_sections(page)
    answered = _answered()
    assert {"10015", "20002", "pool_exhausted", "not_json", "role"} <= answered
    assert answered - set(explained) == set()
    for code, text in explained.items():
        marks = re.findall(r"^- \*\*(.*?):\*\* ", text, re.M)
        assert marks == ["Means", "Usual cause", "Do"], code


def test_the_page_that_ships_is_the_one_to_read() -> None:
    root = Path(__file__).parents[2]
    assert (root / "runtime_sql/errors.md").read_text() == (root / "docs/errors.md").read_text()


def test_a_section_shows_a_program_and_what_is_said_about_it(wf: Wf) -> None:
    out = wf("explain", "WF104").out
    assert out.startswith("## WF104 unknown action\n")
    assert "```wf\n" in out
    assert "error[WF104]: unknown action" in out
