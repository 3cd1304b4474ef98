"""The grammar and its table: strict, cached, and safe against a bad cache."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsl import table
from dsl.builder import Builder
from dsl.table import build_document, file_text, load_table

GRAMMAR = Path(table.__file__).with_name("grammar.lark").read_text(encoding="utf-8")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WFSQL_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(table, "_SHIPPED", tmp_path / "none.json")
    return tmp_path


def only_file(cache: Path) -> Path:
    (file,) = (cache / "wfsql").iterdir()
    return file


def test_the_grammar_has_no_conflict_in_strict_mode() -> None:
    assert len(build_document(GRAMMAR)["actions"]) > 400


def test_strict_mode_refuses_a_conflict() -> None:
    from lark.exceptions import GrammarError

    with pytest.raises(GrammarError):
        build_document("start: a | b\na: X\nb: X\n%declare X\n")


def test_every_rule_is_built_or_passes_one_child_on() -> None:
    lost = [
        rule.method
        for rule in load_table().rules
        if not hasattr(Builder, rule.method) and not rule.origin.startswith("_") and rule.size != 1
    ]
    assert lost == []


def test_the_shipped_table_is_that_of_the_grammar() -> None:
    shipped = Path(table.__file__).with_name("table.json").read_text(encoding="utf-8")
    current = file_text(build_document(GRAMMAR))
    assert shipped == current, "run `python -m dsl.table`"


def test_the_shipped_table_is_read_without_building(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "build_document", lambda _: pytest.fail("built again"))
    monkeypatch.setattr(table, "_cache_path", lambda _: pytest.fail("asked the cache"))
    assert load_table().rules


def test_a_shipped_table_of_another_grammar_is_not_used(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = build_document("start: X\n%declare X\n")
    table._SHIPPED.write_text(file_text(other), encoding="utf-8")
    assert len(load_table().rules) > 1


def test_a_second_load_reads_the_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = load_table()
    monkeypatch.setattr(table, "build_document", lambda _: pytest.fail("built again"))
    assert load_table() == first


def test_a_damaged_cache_is_built_anew(cache: Path) -> None:
    first = load_table()
    only_file(cache).write_text("00000000\n{broken", encoding="utf-8")
    assert load_table().rules == first.rules
    assert "{broken" not in only_file(cache).read_text(encoding="utf-8")


def test_a_cache_that_cannot_be_written_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("", encoding="utf-8")
    monkeypatch.setenv("WFSQL_CACHE_DIR", str(blocked))
    monkeypatch.setattr(table, "_SHIPPED", blocked)
    assert load_table().rules
