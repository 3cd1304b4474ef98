"""`wf schema`: the schema of one workflow on stdout, and what is wrong on stderr."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Wf = Callable[..., Any]

TEXT = """\
workflow order {
  description "One order."
  input { id : string, qty : int = 1 }
  output { qty = var.qty }
  set done = var.id
}
"""
OTHER = "workflow other { set x = 1 }\n"


def test_schema_of_the_inputs(wf: Wf) -> None:
    Path("order.wf").write_text(TEXT, encoding="utf-8")
    done = wf("schema", "order.wf")
    assert done.code == 0
    assert json.loads(done.out) == {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "input of order",
        "description": "One order.",
        "type": "object",
        "properties": {"id": {"type": "string"}, "qty": {"type": "integer", "default": 1}},
        "required": ["id"],
    }


def test_schema_of_the_output_from_stdin(wf: Wf) -> None:
    done = wf("schema", "-", "--of", "output", stdin=TEXT.encode())
    assert json.loads(done.out)["properties"] == {"qty": {"type": "integer"}}


def test_one_of_several_workflows(wf: Wf) -> None:
    Path("two.wf").write_text(TEXT + OTHER, encoding="utf-8")
    assert json.loads(wf("schema", "two.wf", "--workflow", "other").out)["properties"] == {}


def test_several_workflows_need_a_name(wf: Wf) -> None:
    Path("two.wf").write_text(TEXT + OTHER, encoding="utf-8")
    done = wf("schema", "two.wf")
    assert (done.code, done.out) == (2, "")
    assert "give --workflow with one of: order, other" in done.err


def test_unknown_workflow(wf: Wf) -> None:
    Path("order.wf").write_text(TEXT, encoding="utf-8")
    done = wf("schema", "order.wf", "--workflow", "ordre")
    assert (done.code, done.out) == (2, "")
    assert 'order.wf has no workflow "ordre"' in done.err


def test_file_with_an_error_has_no_schema(wf: Wf) -> None:
    Path("order.wf").write_text(TEXT.replace("var.id", "var.di"), encoding="utf-8")
    done = wf("schema", "order.wf")
    assert (done.code, done.out) == (1, "")
    assert "error[WF201]" in done.err


def test_catalog_is_read(wf: Wf) -> None:
    Path("a.yaml").write_text('actions: [{name: a.b, output: "{ n: int }"}]', encoding="utf-8")
    Path("w.wf").write_text(
        "workflow w { output { n = ctx.task.k.output.n } action k = a.b() }", encoding="utf-8"
    )
    done = wf("schema", "w.wf", "--of", "output", "--catalog", "a.yaml")
    assert json.loads(done.out)["properties"] == {"n": {"type": "integer"}}
