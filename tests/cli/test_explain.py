"""`wf explain`: codes as they are typed, sections of the page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from compiler.codes import COMPILER_CODES
from dsl.codes import SYNTAX_CODES
from wfsql.cli.commands.explain import sections

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
    assert listed == sorted(code.code for code in (*SYNTAX_CODES, *COMPILER_CODES))


@pytest.mark.parametrize("typed", ["WF104", "wf104", "104"])
def test_a_code_may_be_typed_in_any_way(wf: Wf, typed: str) -> None:
    done = wf("explain", typed)
    assert done.code == 0
    assert "WF104" in done.out.splitlines()[0]
    assert "unknown action" in done.out


def test_an_unknown_code_is_wrong_use(wf: Wf) -> None:
    done = wf("explain", "E1")
    assert done.code == 2
    assert done.err.startswith('error: there is no diagnostic code "E1"\nhint: ')


def test_a_section_shows_a_program_and_what_is_said_about_it(wf: Wf) -> None:
    out = wf("explain", "WF104").out
    assert out.startswith("## WF104 unknown action\n")
    assert "```wf\n" in out
    assert "error[WF104]: unknown action" in out
