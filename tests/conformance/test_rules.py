"""Every rule of docs/semantics.md is cited by a case, or says why no case can show it."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.conformance.test_conformance import FILES

PAGE = Path(__file__).parents[2] / "docs" / "semantics.md"
_RULE = re.compile(r"^- \*\*([SR][0-9]+(?:\.[0-9]+)?)\*\* ", re.MULTILINE)
_EXCEPTION = re.compile(r"^\| ([SR][0-9]+(?:\.[0-9]+)?) \| (.+?) \| (.+?) \|$", re.MULTILINE)


def _rules() -> list[str]:
    return _RULE.findall(PAGE.read_text(encoding="utf-8"))


def _exceptions() -> dict[str, str]:
    found = _EXCEPTION.findall(PAGE.read_text(encoding="utf-8"))
    return {rule: reason for rule, reason, _ in found}


def _citations() -> Counter[str]:
    return Counter(rule for file in FILES for case in file.cases for rule in set(case.rules))


def test_every_rule_is_cited_or_excepted(capsys: pytest.CaptureFixture[str]) -> None:
    cited, excepted = _citations(), _exceptions()
    with capsys.disabled():
        print("\n" + _table(_rules(), cited, excepted))
    assert [rule for rule in _rules() if not cited[rule] and rule not in excepted] == []


def _table(rules: list[str], cited: Counter[str], excepted: dict[str, str]) -> str:
    cells = [f"{rule} {cited[rule] or '—'}" for rule in rules]
    rows = [cells[start : start + 8] for start in range(0, len(cells), 8)]
    lines = ["Rules of docs/semantics.md and the cases that cite them:"]
    lines += ["  " + "".join(cell.ljust(11) for cell in row).rstrip() for row in rows]
    shown = sum(1 for rule in rules if cited[rule])
    lines.append(f"  {shown} of {len(rules)} cited, {len(excepted)} not coverable by a case")
    return "\n".join(lines)


def test_no_rule_stands_twice() -> None:
    assert [rule for rule, count in Counter(_rules()).items() if count > 1] == []


def test_cases_cite_only_rules_that_exist() -> None:
    assert sorted(set(_citations()) - set(_rules())) == []


def test_every_case_cites_a_rule() -> None:
    assert [case.name for file in FILES for case in file.cases if not case.rules] == []


def test_an_exception_is_a_rule_that_no_case_cites() -> None:
    rules, cited = _rules(), _citations()
    assert [rule for rule in _exceptions() if rule not in rules or cited[rule]] == []
