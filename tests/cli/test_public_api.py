"""What `import wfsql` offers, and that it costs nothing before it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import wfsql


def test_every_exported_name_can_be_looked_up() -> None:
    for name in wfsql.__all__:
        assert getattr(wfsql, name) is not None


def test_exports_and_their_homes_are_the_same_names() -> None:
    assert set(wfsql.__all__) == set(wfsql._HOMES)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = wfsql.nothing


def test_importing_wfsql_imports_no_library() -> None:
    script = (
        "import sys, wfsql; heavy = {'lark', 'pydantic', 'networkx', 'sqlglot', 'psycopg', 'rich',"
        " 'typer', 'jsonschema'}; print(sorted(heavy & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
