"""README.md, docs/ and the examples' pages: what they show compiles, runs and can be found."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compiler.pipeline import compile_file
from compiler.supported import CATALOG_NOT_YET, NOT_YET
from local_runner.engine import LocalWorkflowEngine, RunResult
from wfsql.cli.main import COMMANDS, main

ROOT = Path(__file__).parents[3]
LANGUAGE = ROOT / "docs" / "language.md"
PAGES = [
    ROOT / "README.md",
    ROOT / "docs" / "README.md",
    LANGUAGE,
    *sorted((ROOT / "examples").rglob("README.md")),
]
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_SAVED = re.compile(
    r"[Ss]ave this as\s+`([\w.]+)`:\n\n```\w+\n(.*?)^```$", re.DOTALL | re.MULTILINE
)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_MAIL = 'action a = mail.send(to: "t", subject: "s")'
_WARN = 'action b = mail.send(to: "t", subject: "s")'

# One program for each thing that the grammar knows and the engines do not run yet.
REFUSED = {
    word: f"workflow refused {{ input {{ list : list<int> = [] }} {body} }}"
    for word, body in {
        "on_error": f"sequence {{ {_MAIL} }} on_error {{ {_WARN} }}",
        "finally": f"sequence {{ {_MAIL} }} finally {{ {_WARN} }}",
        "timeout": f"{_MAIL} {{ timeout 5s }}",
        "wait_event": f'wait_event w on "e" {{ timeout 5s {{ {_MAIL} }} }}',
        "retry": f"{_MAIL} {{ retry 2 }}",
        "delay": f"{_MAIL} {{ delay 5s }}",
        "sleep": "sleep 5s",
        "join": f"parallel join any {{ {_MAIL} {_WARN} }}",
        "parallel": f"parallel keep_going {{ {_MAIL} {_WARN} }}",
        "batch": f"foreach x in var.list batch 2 {{ {_MAIL} }}",
        "tolerate": f"foreach x in var.list tolerate 1 {{ {_MAIL} }}",
        "reuse": f"foreach x in var.list reuse {{ {_MAIL} }}",
        "keep_going": f"foreach x in var.list keep_going {{ {_MAIL} }}",
        "on event": f'on event "e" start {_MAIL}',
    }.items()
}

# What the programs of the language page start with; `delivery` waits for an event.
CONTEXTS: dict[str, dict[str, Any]] = {
    "formatted": {"order": "A1"},
    "smallest": {"to": "a@example.com"},
    "words": {"to": "a@example.com"},
    "references": {"order": "A1", "qtys": [1, 2]},
    "operators": {"n": 5},
    "declarations": {"items": [{"sku": "S1", "size": "small", "note": None}]},
    "one_action": {"order": "A1"},
    "grouped": {"order": "A1"},
    "side_by_side": {"order": "A1"},
    "branches": {"order": "A1", "qty": 1},
    "cases": {"order": "A1", "country": "at"},
    "three_reminders": {"to": "a@example.com"},
    "attempts": {"order": "A1"},
    "packing": {"boxes": [{"skus": ["S1", "S2"]}, {"skus": []}]},
    "verdict": {"score": 5},
}
OUTPUTS: dict[str, dict[str, Any]] = {
    "smallest": {"id": "M1"},
    "references": {"reservation": "A1/1", "left": 8},
    "operators": {"half": 2, "odd": True, "text": "nothing said"},
    "declarations": {"count": 1, "never_set": None},
    "one_action": {"receipt": "none", "code": 0},
    "packing": {"parcels": [["0-0", "0-1"], []]},
}


def reserve(order: str, qty: int) -> dict[str, Any]:
    return {"reservation": order, "left": 10 - qty}


def charge(order: str, attempt: int) -> dict[str, Any]:
    return {"ok": attempt > 1, "receipt": None}


def send(to: str, subject: str, body: object = None) -> dict[str, Any]:
    return {"id": "M1"}


def pack(sku: str, label: str) -> dict[str, Any]:
    return {"parcel": label}


HANDLERS = {
    "stock.reserve": reserve,
    "card.charge": charge,
    "mail.send": send,
    "parcel.pack": pack,
}


def blocks(page: Path, language: str) -> list[str]:
    """Returns the fenced blocks of one language, in order."""
    found = _FENCE.findall(page.read_text(encoding="utf-8"))
    return [text for name, text in found if name == language]


def programs() -> Iterator[object]:
    for text in blocks(LANGUAGE, "wf"):
        name = re.search(r"^workflow (\w+)", text, re.MULTILINE)
        assert name is not None
        yield pytest.param(text, id=name[1])


def saved_files() -> dict[str, str]:
    """Returns the files that the README asks its reader to save."""
    return dict(_SAVED.findall((ROOT / "README.md").read_text(encoding="utf-8")))


def command_lines() -> Iterator[object]:
    """Returns every `wf …` line that a page asks its reader to type."""
    for page in PAGES:
        for block in blocks(page, ""):
            for line in block.replace("\\\n", " ").splitlines():
                if line.startswith("wf "):
                    yield pytest.param(shlex.split(line, comments=True)[1:], id=line.split("#")[0])


def anchor(heading: str) -> str:
    """Returns the anchor that a heading gets on a page."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@pytest.mark.parametrize("program", list(programs()))
def test_a_program_of_the_language_page_compiles(program: str, tmp_path: Path) -> None:
    (catalog,) = blocks(LANGUAGE, "yaml")
    (tmp_path / "page.actions.yaml").write_text(catalog, encoding="utf-8")
    (tmp_path / "page.wf").write_text(program, encoding="utf-8")
    result = compile_file(tmp_path / "page.wf")
    errors = [found.message for found in result.diagnostics if found.severity == "error"]
    assert (errors, len(result.specs)) == ([], 1)


def run(program: str, folder: Path) -> RunResult:
    (catalog,) = blocks(LANGUAGE, "yaml")
    (folder / "page.actions.yaml").write_text(catalog, encoding="utf-8")
    (folder / "page.wf").write_text(program, encoding="utf-8")
    (spec,) = compile_file(folder / "page.wf").specs
    result = LocalWorkflowEngine(spec, HANDLERS).run(CONTEXTS[spec.name])
    assert isinstance(result, RunResult)
    return result


def program_named(name: str) -> str:
    (text,) = (text for text in blocks(LANGUAGE, "wf") if f"workflow {name} {{" in text)
    return text


def test_every_program_of_the_language_page_that_can_run_here_is_run() -> None:
    shown = re.findall(r"^workflow (\w+)", "\n".join(blocks(LANGUAGE, "wf")), re.MULTILINE)
    assert sorted(shown) == sorted([*CONTEXTS, "delivery"])


@pytest.mark.parametrize("name", CONTEXTS)
def test_a_program_of_the_language_page_succeeds(name: str, tmp_path: Path) -> None:
    result = run(program_named(name), tmp_path)
    assert (result.status, result.error) == ("SUCCEEDED", None)


@pytest.mark.parametrize("name", OUTPUTS)
def test_a_program_of_the_language_page_gives_its_output(name: str, tmp_path: Path) -> None:
    assert run(program_named(name), tmp_path).output == OUTPUTS[name]


def test_strings_are_what_the_language_page_says(tmp_path: Path) -> None:
    rows: Any = run(program_named("words"), tmp_path).trace["nodes"]
    (sent,) = (row["input"] for row in rows if row["type"] == "ACTION")
    assert sent["subject"] == "3 things, and a price of ${5}"
    assert sent["body"]["exact"] == 3
    assert sent["body"]["odd key"] == "Dear a@example.com,\n  this line is indented by two.\n"


def test_the_language_page_shows_every_node_type(tmp_path: Path) -> None:
    (catalog,) = blocks(LANGUAGE, "yaml")
    (tmp_path / "page.actions.yaml").write_text(catalog, encoding="utf-8")
    (tmp_path / "page.wf").write_text("\n".join(blocks(LANGUAGE, "wf")), encoding="utf-8")
    specs = compile_file(tmp_path / "page.wf").specs
    assert {node.type for spec in specs for node in spec.nodes} == {
        "ACTION",
        "SEQUENCE",
        "PARALLEL",
        "IF",
        "SWITCH",
        "REPEAT",
        "WHILE",
        "FOREACH",
        "WAIT_EVENT",
    }


@pytest.mark.parametrize("word", REFUSED)
def test_what_the_page_calls_not_yet_is_refused(word: str, tmp_path: Path) -> None:
    (catalog,) = blocks(LANGUAGE, "yaml")
    (tmp_path / "page.actions.yaml").write_text(catalog, encoding="utf-8")
    (tmp_path / "page.wf").write_text(REFUSED[word], encoding="utf-8")
    found = compile_file(tmp_path / "page.wf").diagnostics
    assert [one.code for one in found if one.severity == "error"] == ["WF090"]


@pytest.mark.parametrize(
    "word", sorted({name for _, name in NOT_YET} | set(CATALOG_NOT_YET) | set(REFUSED))
)
def test_what_is_refused_stands_on_the_page(word: str) -> None:
    section = LANGUAGE.read_text(encoding="utf-8").partition("## Not yet")[2]
    assert re.search(rf"`{word}\b", section)


def test_the_workflow_of_the_readme_has_fifteen_lines() -> None:
    assert len(saved_files()["words.wf"].splitlines()) == 15


def test_the_misspelt_workflow_gives_the_message_that_the_readme_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, content in saved_files().items():
        misspelt = content.replace("count-words", "count-word") if name.endswith(".wf") else content
        (tmp_path / name).write_text(misspelt, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    code = main(["check", "words.wf"])
    (shown,) = blocks(ROOT / "README.md", "text")
    assert (code, shown in capsys.readouterr().err) == (1, True)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    broken = []
    for link in _LINK.findall(page.read_text(encoding="utf-8")):
        if "://" in link:
            continue
        target, _, fragment = link.partition("#")
        file = (page.parent / target).resolve() if target else page
        if not file.exists():
            broken.append(link)
        elif fragment:
            headings = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
            if fragment not in map(anchor, headings):
                broken.append(link)
    assert broken == []


@pytest.mark.parametrize("folder", ["examples", "dsl", "compiler", "local_runner", "wfsql"])
def test_a_folder_that_the_readme_names_exists(folder: str) -> None:
    assert f"`{folder}/`" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert (ROOT / folder).is_dir()


@pytest.mark.parametrize("words", list(command_lines()))
def test_a_command_that_a_page_shows_exists(
    words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    names = {command.name for command in COMMANDS}
    name = next(" ".join(words[:n]) for n in (2, 1) if " ".join(words[:n]) in names)
    main([*name.split(), "--help"])
    help_text = capsys.readouterr().out
    assert [word for word in words if word.startswith("--") and word not in help_text] == []


def test_every_page_of_docs_stands_in_its_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert {page for page in pages if f"]({page})" not in index} == set()
