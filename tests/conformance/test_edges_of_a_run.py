"""What a conformance case cannot show, because it stands outside one run of one workflow."""

from __future__ import annotations

from pathlib import Path

import pytest

from compiler import json_values
from compiler.pipeline import compile_file
from emit_pg.emitter import emit
from runtime_sql.connection import PostgresClient, connect

HERE = Path(__file__).parent


def test_an_event_from_before_the_start_is_not_taken_in_the_same_millisecond(pg_url: str) -> None:
    import psycopg

    with psycopg.connect(pg_url, autocommit=True) as connection:
        connection.execute(
            "insert into wf.wf_setting (name, value) values ('now', '2026-01-01T00:00:00Z')"
        )
    client = connect(pg_url)
    assert isinstance(client, PostgresClient)
    specs = {spec.name: spec for spec in compile_file(HERE / "waits.wf").specs}
    assert client.run_script(emit(specs["any_event"])) is None
    client.ingest_event("start.now", "test", "before", '{"n": 1}', None)
    created = client.create_instance("any_event", "{}")
    started = client.start_instance(getattr(created, "instance_id", 0))
    client.close()
    assert getattr(started, "status", started) == "RUNNING"


def test_nesting_of_101_levels_is_refused_at_the_door() -> None:
    with pytest.raises(json_values.UnstorableValue):
        json_values.loads("[" * 101 + "]" * 101)
