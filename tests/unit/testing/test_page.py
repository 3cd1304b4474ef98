"""The example of docs/wf-test.md passes, and the page names every key and code there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from wfsql.testing.codes import TEST_CODES
from wfsql.testing.coverage import measure
from wfsql.testing.local import LocalEngine
from wfsql.testing.reader import read_cases, wftest_schema
from wfsql.testing.report import text_of
from wfsql.testing.runner import Runner
from wfsql.testing.workflows import Workflows

PAGE = (Path(__file__).parents[3] / "docs" / "wf-test.md").read_text(encoding="utf-8")
NAMES = ("stock.reserve", "mail.send", "card.charge", "parcel.pack")


def _block(language: str) -> str:
    found = re.search(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found.group(1)


def test_the_example_passes_and_takes_nearly_every_edge(tmp_path: Path) -> None:
    (tmp_path / "order.wf").write_text(_block("wf"), encoding="utf-8")
    (tmp_path / "order.wftest.yaml").write_text(_block("yaml"), encoding="utf-8")
    entries = "".join(f"  - name: {name}\n" for name in NAMES)
    (tmp_path / "order.actions.yaml").write_text(f"actions:\n{entries}", encoding="utf-8")
    read = read_cases(tmp_path / "order.wftest.yaml")
    assert read.file is not None, [found.message for found in read.diagnostics]
    results = list(Runner(LocalEngine(), Workflows(), is_strict=True).run_file(read.file))
    assert [result.verdict for result in results] == ["passed"] * 2, [*map(text_of, results)]
    [covered] = measure(results)
    assert covered.missed == ()


@pytest.mark.parametrize("code", [code.code for code in TEST_CODES])
def test_every_code_is_on_the_page(code: str) -> None:
    assert code in PAGE


def test_every_key_of_the_schema_is_on_the_page() -> None:
    definitions = wftest_schema()["$defs"]
    case = definitions["case"]["properties"]
    keys = {*wftest_schema()["properties"], *case, *case["expect"]["properties"]}
    keys |= {*definitions["result"]["properties"], *definitions["step"]["properties"]}
    assert sorted(key for key in keys if f"`{key}" not in PAGE and f"{key}:" not in PAGE) == []
