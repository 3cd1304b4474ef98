"""Reuse of iterations in PostgreSQL (S9, R8): keys, hits, what is skipped, what is kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from compiler import json_values
from compiler.spec import GraphSpec
from tests.runtime_sql import drive

Connection = psycopg.Connection[Any]

FINGERPRINT = "ab" * 32

EACH = """
    workflow w {
      input { xs : list<any> }
      output { got = var.got }
      foreach x in var.xs {
        action a = t.do(x: var.x)
        collect got = ctx.task.a.output
      }
    }
"""


@pytest.fixture
def connection(pg_url: str) -> Iterator[Connection]:
    with drive.connect(pg_url) as connection:
        drive.stop_clock(connection)
        yield connection


def reusing(spec: GraphSpec, key: str = "foreach_1", reads: list[Any] | None = None) -> GraphSpec:
    """The graph with `reuse` on one of its FOREACHs."""
    nodes = [
        node.model_copy(
            update={
                "attributes": node.attributes
                | {"reuse": {"fingerprint": FINGERPRINT, "reads": reads or []}}
            }
        )
        if node.key == key
        else node
        for node in spec.nodes
    ]
    return spec.model_copy(update={"nodes": nodes})


def deploy(connection: Connection, folder: Path, text: str = EACH, **more: Any) -> None:
    drive.deploy(connection, reusing(drive.compile_text(folder, text), **more))


def run(connection: Connection, context: dict[str, Any], **results: Any) -> dict[str, Any]:
    """Runs workflow w to its end and answers its trace."""
    instance = drive.start(connection, "w", context)
    drive.drain(connection, drive.Scripted({k: list(v) for k, v in results.items()}))
    return drive.trace(connection, instance)


def statuses(document: dict[str, Any], type_: str = "SEQUENCE") -> dict[str, str]:
    return {
        n["path"]: n["status"]
        for n in document["nodes"]
        if n["type"] == type_ and n["path"].endswith("]")
    }


def test_what_ran_before_is_skipped_with_what_it_exported(
    connection: Connection, tmp_path: Path
) -> None:
    deploy(connection, tmp_path)
    first = run(connection, {"xs": [1, 2]}, a=[(0, "one"), (0, "two")])
    again = run(connection, {"xs": [2, 3, 1]}, a=[(0, "three")])

    assert set(statuses(first).values()) == {"SUCCEEDED"}
    assert statuses(again) == {
        "w/foreach_1[0]": "SKIPPED",
        "w/foreach_1[1]": "SUCCEEDED",
        "w/foreach_1[2]": "SKIPPED",
    }
    assert again["output"] == {"got": ["two", "three", "one"]}
    assert [n["path"] for n in again["nodes"] if n["type"] == "ACTION"] == ["w/foreach_1[1]/a"]
