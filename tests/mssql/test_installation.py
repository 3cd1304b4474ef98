"""The commands about the runtime itself, in a SQL Server database of their own.

They make the database: on a server with one only (a stand-in), run this file alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from runtime_sql.contract.validate_contract import validate_database
from runtime_sql.failures import DAMAGED, DatabaseProblem
from runtime_sql.installer import Installed, Removed, install, installed_version, uninstall
from runtime_sql.scripts import RUNTIME_VERSION
from runtime_sql.test_bed import SEED_SCRIPTS
from runtime_sql.verification import faults, missing_objects
from tests.mssql_server import open_connection, scratch_database, server_url
from wfsql.cli.main import main


@pytest.fixture(scope="module")
def sql_server_url() -> Iterator[str]:
    with scratch_database(server_url()) as url:
        assert install(url, test=True) == Installed(RUNTIME_VERSION, changed=True)
        yield url


def test_sql_server_holds_the_contract(sql_server_url: str) -> None:
    assert missing_objects(sql_server_url) == ()
    assert install(sql_server_url) == Installed(RUNTIME_VERSION, changed=False)
    found = validate_database(sql_server_url)
    if found == DAMAGED:
        pytest.skip("the catalogue cannot be read: this server has no sys.parameters")
    assert found == ()


def test_sql_server_plays_the_test_bed(
    sql_server_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["db", "test-bed", "--url", sql_server_url, "--json"]) == 0
    runs = json.loads(capsys.readouterr().out)["runs"]
    assert [(r["example"], r["status"], r["mismatch"]) for r in runs] == [
        (name, "SUCCEEDED", None) for name in SEED_SCRIPTS
    ]
    assert faults(sql_server_url) == ()


def test_sql_server_names_rows_that_point_at_nothing(sql_server_url: str) -> None:
    connection = open_connection(sql_server_url)
    connection.rows("insert into wf.action_throttle (action_id) values (987654);")
    connection.rows("delete from wf.wf_setting where name = N'now';")
    line = "table action_throttle: 1 rows name no workflow_action by action_id (first: 987654)"
    assert faults(sql_server_url) == (line,)
    connection.rows("delete from wf.action_throttle where action_id = 987654;")
    connection.close()


def test_sql_server_is_left_alone_by_uninstall_until_it_may_take_everything(
    sql_server_url: str,
) -> None:
    refused = uninstall(sql_server_url)
    assert isinstance(refused, DatabaseProblem)
    assert refused.kind == "in_use"
    connection = open_connection(sql_server_url)
    connection.rows("create table wf.theirs (n int not null);")
    refused = uninstall(sql_server_url, delete_data=True)
    assert isinstance(refused, DatabaseProblem)
    assert refused.message == "schema wf holds what is not the runtime's: theirs"
    connection.rows("drop table wf.theirs;")
    assert installed_version(sql_server_url) == RUNTIME_VERSION

    removed = uninstall(sql_server_url, delete_data=True)

    assert isinstance(removed, Removed)
    assert (removed.version, removed.instances > 0) == (RUNTIME_VERSION, True)
    assert connection.rows("select schema_id(N'wf');") == [(None,)]
    assert uninstall(sql_server_url) == Removed(None, 0)
    assert install(sql_server_url, roles=False) == Installed(RUNTIME_VERSION, changed=True)
    connection.close()
