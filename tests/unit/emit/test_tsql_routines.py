"""What every routine of the T-SQL tree has to have, read from its text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import pytest

from runtime_sql.contract.comparison import compare_stems
from runtime_sql.contract.model import load_contract
from runtime_sql.contract.sql_files import read_tree
from runtime_sql.go_batches import split_batches
from runtime_sql.scripts import SCRIPTS, read_script

_HEAD = re.compile(r"^create or alter (procedure|function) wf\.(\w+)", re.M)
_SHARED = re.compile(
    r"^ *create table #(call|exclusive|agenda|next|held|waits|entry|step) \(", re.M
)
_SETTINGS = re.compile(r"^\s*set quoted_identifier, ansi_nulls, ansi_padding", re.M)


def _routines() -> Iterator[tuple[str, str, str, str]]:
    """Yields file, kind, name, text."""
    for file in SCRIPTS["mssql"]:
        for batch in split_batches(read_script("mssql", file)):
            found = _HEAD.search(batch.text)
            if found is not None:
                yield file, found[1], found[2], batch.text


ROUTINES = {name: (file, kind, text) for file, kind, name, text in _routines()}
PUBLIC = {entry.name for entry in load_contract().routines}
ENTRIES = [name for name, (_, _, text) in ROUTINES.items() if _SHARED.search(text)]


def _block(text: str) -> str:
    """The part of an entry procedure that makes the tables it shares with what it calls."""
    return "\n".join(_statement(text, found.start()) for found in _SHARED.finditer(text))


def _statement(text: str, start: int) -> str:
    return " ".join(text[start : text.index(";", start) + 1].split())


def test_there_are_entry_procedures() -> None:
    assert len(ENTRIES) >= 3


@pytest.mark.parametrize("name", ENTRIES)
def test_entry_procedures_make_the_same_shared_tables(name: str) -> None:
    """Otherwise a procedure below reads a column that one of its callers did not make."""
    blocks = Counter(_block(ROUTINES[entry][2]) for entry in ENTRIES)
    [(usual, _)] = blocks.most_common(1)
    assert _block(ROUTINES[name][2]) == usual


# A pure routine answers by OUTPUT parameters, never raises and opens no transaction (R23).
ACTING = [
    name
    for name, (_, kind, text) in ROUTINES.items()
    if name in PUBLIC and kind == "procedure" and "@error_code int output" not in text
]


@pytest.mark.parametrize("name", ACTING)
def test_a_public_procedure_sets_what_it_relies_on(name: str) -> None:
    body = ROUTINES[name][2].partition("\nas\n")[2]
    assert "set nocount, xact_abort on;" in body
    assert "set transaction isolation level read committed;" in body


@pytest.mark.parametrize("name", sorted(ROUTINES))
def test_a_routine_that_begins_a_transaction_rolls_back_its_own_only(name: str) -> None:
    text = ROUTINES[name][2]
    if not re.search(r"^\s*begin transaction;", text, re.M):
        return
    for rollback in re.finditer(r"rollback transaction;", text):
        line = text[text.rfind("\n", 0, rollback.start()) : rollback.end()]
        handed_up = "if @v_owns_transaction = 0 throw;" in text[: rollback.start()]
        assert handed_up or "@v_owns_transaction = 1" in line, line


@pytest.mark.parametrize("file", SCRIPTS["mssql"])
def test_a_file_sets_the_session_before_it_makes_anything(file: str) -> None:
    first, *_ = split_batches(read_script("mssql", file))
    assert _SETTINGS.search(first.text)


def test_the_tree_keeps_the_contract() -> None:
    assert [str(d) for d in compare_stems(load_contract(), read_tree("mssql"))] == []


def test_routines_have_the_names_of_their_twins_or_a_name_of_their_own() -> None:
    """What is public in one tree is so in the other."""
    twins = set(read_tree("pg").routines)
    strangers = {name for name in ROUTINES if name.startswith(("sp_", "wf_repo_"))} - twins
    assert strangers == set()


def test_every_routine_of_the_contract_is_there() -> None:
    assert sorted(PUBLIC - set(ROUTINES)) == []
