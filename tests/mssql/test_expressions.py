"""Programs, references and templates on SQL Server: the cases of tests/runtime_sql."""

from __future__ import annotations

from tests.runtime_sql.test_expressions import *  # noqa: F403
