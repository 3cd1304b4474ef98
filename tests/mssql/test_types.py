"""The type table, the start context and the opening of scopes on SQL Server."""

from __future__ import annotations

from tests.runtime_sql.test_types import *  # noqa: F403
