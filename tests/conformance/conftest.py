"""The engines that the conformance suite runs on: each once per test process, one database."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from wfsql.embedded import EmbeddedServer
from wfsql.testing.local import LocalEngine
from wfsql.testing.mssql import MssqlEngine
from wfsql.testing.postgres import PostgresEngine
from wfsql.testing.workflows import Workflows

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def workflows() -> Workflows:
    return Workflows()


@pytest.fixture(scope="session")
def local_engine() -> LocalEngine:
    return LocalEngine()


@pytest.fixture(scope="session")
def postgres_engine(pg_server: EmbeddedServer, pg_template: str) -> Iterator[PostgresEngine]:
    name = f"conformance_{os.getpid()}"
    engine = PostgresEngine(pg_server.create_database(name, pg_template))
    yield engine
    engine.close()
    pg_server.drop_database(name)


@pytest.fixture(scope="session")
def mssql_engine(mssql_url: str) -> Iterator[MssqlEngine]:
    engine = MssqlEngine(mssql_url)
    yield engine
    engine.close()
