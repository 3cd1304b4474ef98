"""Writing files: whole, and never over what was read."""

from __future__ import annotations

from pathlib import Path

import pytest

from wfsql.cli.files import save
from wfsql.cli.main import CommandError
from wfsql.cli.sources import files_read


def test_an_input_is_not_written(tmp_path: Path) -> None:
    source = tmp_path / "x.wf"
    source.write_text("workflow x {}")
    with pytest.raises(CommandError) as caught:
        save(str(source), "begin;", inputs=[source])
    assert caught.value.code == 2
    assert "would be lost" in caught.value.message
    assert source.read_text() == "workflow x {}"


def test_an_input_is_known_through_a_link(tmp_path: Path) -> None:
    source = tmp_path / "x.wf"
    source.write_text("workflow x {}")
    (tmp_path / "link").symlink_to(source)
    with pytest.raises(CommandError):
        save(str(tmp_path / "link"), "begin;", inputs=[source])
    assert source.read_text() == "workflow x {}"


def test_an_input_is_known_by_another_spelling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.wf").write_text("workflow x {}")
    with pytest.raises(CommandError):
        save("../" + tmp_path.name + "/x.wf", "begin;", inputs=["x.wf"])


def test_another_file_is_replaced(tmp_path: Path) -> None:
    target = tmp_path / "out.sql"
    target.write_text("old")
    save(str(target), "new", inputs=[tmp_path / "x.wf"])
    assert target.read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["out.sql"]


def test_the_catalogs_beside_a_file_count_as_read(tmp_path: Path) -> None:
    catalog = tmp_path / "x.actions.yaml"
    catalog.write_text("actions: []")
    assert files_read(str(tmp_path / "x.wf")) == [tmp_path / "x.wf", catalog]


def test_named_catalogs_and_other_files_count_as_read() -> None:
    found = files_read("x.wf", ["c.yaml"], "context.json", None, "-")
    assert found == [Path("x.wf"), Path("c.yaml"), Path("context.json")]


def test_stdin_is_no_file() -> None:
    assert files_read("-") == []
