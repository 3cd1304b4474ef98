"""Builds the wheel and looks inside."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("dsl", "compiler", "emit_pg", "emit_mssql", "runtime_sql", "local_runner", "wfsql")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The project's wheel, built by its own build back end."""
    folder = tmp_path_factory.mktemp("wheel")
    script = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"
    subprocess.run(
        [sys.executable, "-c", script, str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    [path] = folder.glob("*.whl")
    return zipfile.ZipFile(path)


@pytest.fixture(scope="module")
def names(wheel: zipfile.ZipFile) -> set[str]:
    return set(wheel.namelist())


@pytest.mark.parametrize(
    "name",
    [
        "dsl/grammar.lark",
        "dsl/table.json",
        "compiler/diagnostics.md",
        "runtime_sql/contract/db_objects.yaml",
        "runtime_sql/errors.md",
        "wfsql/testing/wftest.schema.json",
    ],
)
def test_what_is_no_module_is_inside(names: set[str], name: str) -> None:
    assert name in names


@pytest.mark.parametrize("dialect", ["pg", "mssql"])
def test_every_sql_file_of_a_tree_is_inside(names: set[str], dialect: str) -> None:
    files = {p.relative_to(ROOT).as_posix() for p in ROOT.glob(f"runtime_sql/{dialect}/*.sql")}
    assert files, f"no SQL files for {dialect}"
    assert files <= names


def test_every_schema_is_inside(names: set[str]) -> None:
    schemas = {p.relative_to(ROOT).as_posix() for p in ROOT.glob("compiler/*.schema.json")}
    assert schemas
    assert schemas <= names


def test_every_module_is_inside(names: set[str]) -> None:
    modules = {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
    }
    assert modules <= names


def test_nothing_but_the_packages_ships(names: set[str]) -> None:
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == set(PACKAGES)


def test_no_tests_and_no_caches_ship(names: set[str]) -> None:
    assert [n for n in names if "tests/" in n or "__pycache__" in n or n.endswith(".pyc")] == []


def test_the_wf_command_is_an_entry_point(wheel: zipfile.ZipFile, names: set[str]) -> None:
    [entry_points] = [name for name in names if name.endswith("entry_points.txt")]
    assert "wf = wfsql.cli.main:main" in wheel.read(entry_points).decode()


def test_drivers_and_server_are_extras(wheel: zipfile.ZipFile, names: set[str]) -> None:
    [metadata] = [name for name in names if name.endswith(".dist-info/METADATA")]
    lines = wheel.read(metadata).decode().splitlines()
    plain = [line for line in lines if line.startswith("Requires-Dist:") and "extra ==" not in line]
    assert plain
    assert [line for line in plain if "psycopg" in line or "embedded" in line] == []
