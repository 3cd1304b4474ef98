"""Imports of type aliases: what they bring, and everything that can be wrong with one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from compiler.pipeline import CheckResult, check_file, compile_file
from dsl.diagnostics import Diagnostic

Project = Callable[..., Path]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Writes files below a project's root and returns the first of them."""
    root = tmp_path / "project"

    def write(**files: str) -> Path:
        (root / "flows").mkdir(parents=True, exist_ok=True)
        (root / "wf.toml").touch()
        for name, text in files.items():
            (root / "flows" / f"{name}.wf").write_text(text, "utf-8")
        return root / "flows" / f"{next(iter(files))}.wf"

    return write


def places(result: CheckResult) -> list[tuple[str, int, str, str]]:
    """Returns file, line, code and message of every finding."""

    def place(found: Diagnostic) -> tuple[str, int, str, str]:
        line = found.source.position(found.span.start).line
        return Path(found.source.name).name, line, found.code, found.message

    return [place(found) for found in result.diagnostics]


USE = "\nworkflow w { input { a : A }\noutput { a = var.a }\nif len(var.a) > 0 { fail -1 }\n}"


def test_imported_alias_is_a_type(project: Project) -> None:
    path = project(main='import "types.wf"' + USE, types="type B = { x: int }\ntype A = list<B>")
    (spec,) = compile_file(path).specs
    assert [(row.kind, row.name, row.base) for row in spec.types] == [
        ("root", None, "list"),
        ("item", None, "object"),
        ("field", "x", "int"),
    ]


def test_imports_of_an_import_are_seen(project: Project) -> None:
    path = project(
        main='import "one.wf"' + USE,
        one='import "two.wf"\ntype C = int',
        two="type A = string",
    )
    assert places(check_file(path)) == []


def test_file_imported_on_two_ways_is_one(project: Project) -> None:
    path = project(
        main='import "one.wf"\nimport "two.wf"\ntype D = { c: C, a: A }'
        "\nworkflow w { input { a : D } output { a = var.a } if defined(var.a.c) { fail -1 } }",
        one='import "two.wf"\ntype C = A',
        two="type A = string",
    )
    assert places(check_file(path)) == []


def test_circle_is_one_error_where_it_closes(project: Project) -> None:
    path = project(
        main='import "one.wf"' + USE,
        one='import "two.wf"\ntype A = string',
        two='\nimport "one.wf"\ntype B = string',
    )
    assert places(check_file(path)) == [
        ("two.wf", 2, "WF128", "imports go round in a circle: one.wf > two.wf > one.wf")
    ]


def test_import_of_itself_is_a_circle(project: Project) -> None:
    path = project(main='import "main.wf"\ntype A = string' + USE)
    assert ("main.wf", 1, "WF128", "imports go round in a circle: main.wf > main.wf") in places(
        check_file(path)
    )


def test_wrong_alias_is_reported_in_its_own_file_once(project: Project) -> None:
    path = project(main='import "types.wf"' + USE, types="type Z = int\ntype A = list<Strin>")
    assert places(check_file(path)) == [("types.wf", 2, "WF210", 'unknown type "Strin"')]


def test_alias_of_the_importer_is_not_seen_by_the_import(project: Project) -> None:
    path = project(main='import "types.wf"\ntype B = int' + USE, types="type A = list<B>")
    assert ("types.wf", 1, "WF210", 'unknown type "B"') in places(check_file(path))


def test_syntax_error_names_the_imported_file(project: Project) -> None:
    path = project(main='import "types.wf"' + USE, types="type A = }")
    assert places(check_file(path))[-1][:3] == ("types.wf", 1, "WF001")


def test_own_alias_of_an_imported_name_is_declared_twice(project: Project) -> None:
    path = project(
        main='import "types.wf"\ntype A = list<int>' + USE, types="type A = list<string>"
    )
    assert ("main.wf", 2, "WF204", 'type "A" is declared twice') in places(check_file(path))


def test_one_name_from_two_files(project: Project) -> None:
    path = project(
        main='import "one.wf"\nimport "two.wf"' + USE,
        one="type A = string",
        two="type A = string",
    )
    found = [place[:3] for place in places(check_file(path))]
    assert ("main.wf", 2, "WF204") in found


def test_unused_import_is_a_warning(project: Project) -> None:
    path = project(main='import "types.wf"\ntype A = string' + USE, types="type B = int")
    assert places(check_file(path)) == [("main.wf", 1, "WF129", 'nothing of "types.wf" is used')]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("gone.wf", '"gone.wf" cannot be imported: there is no such file'),
        ("types.txt", "only `.wf` files can be imported"),
        ("/etc/types.wf", "an import is relative to the file it stands in"),
        ("https://example.com/t.wf", "an import is a file of this project, not an address"),
        ("a\\\\b.wf", "this path has a character that is not allowed"),
        ("../../outside.wf", '"../../outside.wf" leads out of the project'),
    ],
)
def test_path_that_cannot_be_imported(project: Project, path: str, message: str) -> None:
    main = project(main=f'import "{path}"\ntype A = string' + USE)
    (main.parents[2] / "outside.wf").write_text("type B = int", "utf-8")
    found = [place for place in places(check_file(main)) if place[2] == "WF127"]
    assert found == [("main.wf", 1, "WF127", message)]


@pytest.mark.parametrize("chained", [False, True])
def test_import_past_the_limit_is_an_error(
    project: Project, monkeypatch: pytest.MonkeyPatch, chained: bool
) -> None:
    monkeypatch.setattr("compiler.imports.MAX_FILES", 2)
    head = ['import "a.wf"\n', 'import "b.wf"\n', 'import "c.wf"\n']
    main, a, b = (head[0], head[1], head[2]) if chained else ("".join(head), "", "")
    path = project(main=main, a=f"{a}type A = int", b=f"{b}type B = int", c="type C = int")
    where = ("b.wf", 1) if chained else ("main.wf", 3)
    message = '"c.wf" is not read: a file imports at most 2 files'
    assert places(check_file(path)) == [(*where, "WF127", message)]


def test_as_many_imports_as_the_limit_are_read(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compiler.imports.MAX_FILES", 2)
    again = 'import "a.wf"\nimport "b.wf"\ntype M = { a : A, b : B }'
    path = project(main=again, a='import "b.wf"\ntype A = B', b="type B = int")
    assert places(check_file(path)) == []


def test_link_does_not_lead_out_of_the_project(project: Project) -> None:
    main = project(main='import "link.wf"\ntype A = string' + USE)
    outside = main.parents[2] / "outside.wf"
    outside.write_text("type B = int", "utf-8")
    (main.parent / "link.wf").symlink_to(outside)
    assert ("main.wf", 1, "WF127", '"link.wf" leads out of the project') in places(check_file(main))


def test_links_in_a_circle_are_a_file_that_cannot_be_read(project: Project) -> None:
    main = project(main='import "round.wf"\ntype A = string' + USE)
    (main.parent / "round.wf").symlink_to("round.wf")
    message = (
        '"round.wf" cannot be imported: the file cannot be read: too many levels of symbolic links'
    )
    assert ("main.wf", 1, "WF127", message) in places(check_file(main))


def test_file_of_types_alone_is_checked(project: Project) -> None:
    path = project(types="type A = list<Strin>")
    assert places(check_file(path)) == [("types.wf", 1, "WF210", 'unknown type "Strin"')]
