"""README.md, docs/ and the examples' pages: what they show compiles, runs and can be found."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from compiler.pipeline import compile_file
from compiler.supported import ATTRIBUTES
from dsl.printer import format_text
from local_runner.clock import VirtualClock
from local_runner.engine import LocalWorkflowEngine, RunResult
from local_runner.handlers import Result, TaskContext
from wfsql.cli.main import COMMANDS, main

ROOT = Path(__file__).parents[3]
LANGUAGE = ROOT / "docs" / "language.md"
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "examples").rglob("README.md")),
]
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_SAVED = re.compile(
    r"[Ss]ave this as\s+`([\w.]+)`:\n\n```\w+\n(.*?)^```$", re.DOTALL | re.MULTILINE
)
_LINK = re.compile(r"\]\(([^)\s]+)\)")

WAITING = ["delivery", "reminded"]
"""The programs of the language page that wait for an event: they run in a database only."""

# What the other programs of the language page start with.
CONTEXTS: dict[str, dict[str, Any]] = {
    "formatted": {"order": "A1"},
    "labelled": {"shop": "corner", "skus": ["a", "b"]},
    "smallest": {"to": "a@example.com"},
    "words": {"to": "a@example.com"},
    "references": {"order": "A1", "qtys": [1, 2]},
    "operators": {"n": 5},
    "declarations": {"items": [{"sku": "S1", "size": "small", "note": None}]},
    "settled": {"to": "a@example.com", "copies": ["b@example.com", None]},
    "one_action": {"order": "A1"},
    "grouped": {"order": "A1"},
    "side_by_side": {"order": "A1"},
    "branches": {"order": "A1", "qty": 1},
    "cases": {"order": "A1", "country": "at"},
    "three_reminders": {"to": "a@example.com"},
    "attempts": {"order": "A1"},
    "packing": {"boxes": [{"skus": ["S1", "S2"]}, {"skus": []}]},
    "verdict": {"score": 5},
    "invoice": {"lines": [{"sku": "S1", "price": {"cents": 250, "currency": "EUR"}}]},
    "started_by_events": {"order": "A1"},
    "silenced": {"order": "A1"},
    "tried_again": {"order": "busy"},
    "dispatched": {"order": "A1"},
    "guarded": {"order": "blocked"},
    "first_answer": {"order": "A1"},
    "in_batches": {"skus": ["S1", "S2", "broken", "S4", "S5"]},
    "in_time": {"order": "A1"},
    "endless": {"order": "A1"},
}
OUTPUTS: dict[str, dict[str, Any]] = {
    "smallest": {"id": "M1"},
    "references": {"reservation": "A1/1", "left": 8},
    "operators": {"half": 2, "odd": True, "text": "nothing said"},
    "declarations": {"count": 1, "never_set": None},
    "one_action": {"receipt": "none", "code": 0},
    "packing": {"parcels": [["0-0", "0-1"], []]},
    "invoice": {"cents": 250},
    "tried_again": {"receipt": "none", "attempts": 2},
    "guarded": {"state": "open", "reason": "no money at guarded/paying/charge"},
    "first_answer": {"left": 9},
    "in_batches": {"parcels": ["box 0", None, "box 2"]},
}
# How long they take by the clock, in seconds; a jitter makes 2 s of backoff at least 1 s.
PASSED = {"in_time": (1200, 1200), "tried_again": (3601, 3602)}


def reserve(order: str, qty: int) -> dict[str, Any]:
    return {"reservation": order, "left": 10 - qty}


def charge(task: TaskContext, order: str, attempt: int) -> Result:
    if order == "blocked":
        return Result(-5, message="no money")
    if order == "busy" and task.attempt == 1:
        return Result(-3)
    return Result(0, {"ok": attempt > 1, "receipt": None})


def send(to: str, subject: str, body: object = None) -> dict[str, Any]:
    return {"id": "M1"}


def pack(sku: str, label: str) -> Result:
    return Result(-1) if sku == "broken" else Result(0, {"parcel": label})


HANDLERS: dict[str, Callable[..., Any]] = {
    "stock.reserve": reserve,
    "card.charge": charge,
    "mail.send": send,
    "parcel.pack": pack,
}


def blocks(page: Path, language: str) -> list[str]:
    """Returns the fenced blocks of one language, in order."""
    found = _FENCE.findall(page.read_text(encoding="utf-8"))
    return [text for name, text in found if name == language]


def shown_programs() -> list[str]:
    """Returns the programs of the language page, without the file that one of them imports."""
    return [text for text in blocks(LANGUAGE, "wf") if not text.startswith("# shared/")]


def programs() -> Iterator[object]:
    for text in shown_programs():
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
    result = compile_file(write(program, tmp_path))
    errors = [found.message for found in result.diagnostics if found.severity == "error"]
    assert (errors, len(result.specs)) == ([], 1)


@pytest.mark.parametrize("program", list(programs()))
def test_a_program_of_the_language_page_has_the_canonical_form(program: str) -> None:
    result = format_text(program, "page.wf")
    assert result.text == program


def write(program: str, folder: Path) -> Path:
    """Writes a program of the page beside its catalog and the file to import."""
    (catalog,) = blocks(LANGUAGE, "yaml")
    (folder / "page.actions.yaml").write_text(catalog, encoding="utf-8")
    (shared,) = (text for text in blocks(LANGUAGE, "wf") if text.startswith("# shared/types.wf"))
    (folder / "shared").mkdir()
    (folder / "shared" / "types.wf").write_text(shared, encoding="utf-8")
    (folder / "wf.toml").write_text("", encoding="utf-8")
    (folder / "page.wf").write_text(program, encoding="utf-8")
    return folder / "page.wf"


def run(program: str, folder: Path, clock: VirtualClock | None = None) -> RunResult:
    (spec,) = compile_file(write(program, folder)).specs
    engine = LocalWorkflowEngine(spec, HANDLERS)
    result = engine.run(CONTEXTS[spec.name], clock=clock or VirtualClock())
    assert isinstance(result, RunResult)
    return result


def program_named(name: str) -> str:
    (text,) = (text for text in shown_programs() if f"workflow {name} {{" in text)
    return text


def test_a_comment_of_the_language_page_silences_its_warning(tmp_path: Path) -> None:
    assert compile_file(write(program_named("silenced"), tmp_path)).diagnostics == ()


@pytest.mark.parametrize("name", PASSED)
def test_a_program_of_the_language_page_takes_its_time(name: str, tmp_path: Path) -> None:
    clock = VirtualClock()
    run(program_named(name), tmp_path, clock)
    least, most = PASSED[name]
    assert least * 1000 <= clock.now_ms() <= most * 1000


def test_the_finally_of_the_language_page_runs_after_its_on_error(tmp_path: Path) -> None:
    rows: Any = run(program_named("guarded"), tmp_path).trace["nodes"]
    (told,) = (row["input"] for row in rows if row["path"] == "guarded/paying/tell")
    reason = "no money at guarded/paying/charge"
    assert (told["subject"], told["body"]) == ("Order blocked is open", reason)


def test_every_program_of_the_language_page_that_can_run_here_is_run() -> None:
    shown = re.findall(r"^workflow (\w+)", "\n".join(shown_programs()), re.MULTILINE)
    assert sorted(shown) == sorted([*CONTEXTS, *WAITING])


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
    specs = compile_file(write("\n".join(shown_programs()), tmp_path)).specs
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


def test_every_attribute_stands_on_the_language_page() -> None:
    text = LANGUAGE.read_text(encoding="utf-8")
    names = {name for attributes in ATTRIBUTES.values() for name in attributes}
    assert [name for name in sorted(names) if not re.search(rf"`[^`]*\b{name}\b", text)] == []


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


def test_every_rule_that_a_comment_cites_stands_in_a_page() -> None:
    known = {
        number
        for page in ("semantics.md", "rulings.md")
        for number in re.findall(
            r"\b[RS]\d+(?:\.\d+)?\b", (ROOT / "docs" / page).read_text(encoding="utf-8")
        )
    }
    packages = ("dsl", "compiler", "emit_pg", "emit_mssql", "runtime_sql", "local_runner", "wfsql")
    files = [path for name in packages for path in (ROOT / name).rglob("*")]
    cited = {
        (number, path.relative_to(ROOT).as_posix())
        for path in files
        if path.suffix in (".py", ".sql")
        for number in re.findall(r"\bR\d+\b", path.read_text(encoding="utf-8"))
    }
    assert {(number, place) for number, place in cited if number not in known} == set()
