"""`wf check`, `wf compile` and `wf run`, with good files and with bad ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Wf = Callable[..., Any]


# check ------------------------------------------------------------------------------------------


def test_check_of_a_good_file_is_fine(wf: Wf, greeting: Path) -> None:
    done = wf("check", "greeting.wf")
    assert (done.code, done.out, done.err) == (0, "", "1 file: no findings\n")


def test_check_shows_place_line_and_hint(wf: Wf, greeting: Path) -> None:
    text = (greeting / "greeting.wf").read_text().replace("greet.hello(", "greet.helo(")
    (greeting / "greeting.wf").write_text(text)
    done = wf("check", "greeting.wf")
    assert done.code == 1
    assert 'greeting.wf:4:18: error[WF104]: unknown action "greet.helo"\n' in done.err
    assert '  hint: did you mean "greet.hello"?\n' in done.err
    assert done.err.endswith("1 file: 1 error\n")


def test_check_writes_json_for_programs(wf: Wf, greeting: Path) -> None:
    text = (greeting / "greeting.wf").read_text().replace("var.text", "var.txt")
    (greeting / "greeting.wf").write_text(text)
    done = wf("check", "greeting.wf", "--format", "json")
    [found] = [row for row in json.loads(done.out) if row["severity"] == "error"]
    assert done.code == 1
    assert found["file"] == "greeting.wf"
    assert found["span"]["start"] == {"line": 3, "column": 19, "utf16_column": 19, "offset": 64}


def test_check_of_a_good_file_as_json_is_an_empty_list(wf: Wf, greeting: Path) -> None:
    assert json.loads(wf("check", "greeting.wf", "--format", "json").out) == []


def test_json_of_check_is_its_format_json(wf: Wf, greeting: Path) -> None:
    assert wf("check", "greeting.wf", "--json") == wf("check", "greeting.wf", "--format", "json")


def test_check_reads_stdin(wf: Wf, greeting: Path) -> None:
    text = (greeting / "greeting.wf").read_bytes()
    done = wf("check", "-", "--catalog", "greeting.actions.yaml", stdin=text)
    assert done.code == 0


def test_check_goes_through_every_file(wf: Wf, greeting: Path) -> None:
    (greeting / "bad.wf").write_text("workflow {")
    done = wf("check", "bad.wf", "greeting.wf", "missing.wf")
    assert done.code == 1
    assert "bad.wf:1:" in done.err
    assert "missing.wf" in done.err
    assert "3 files: " in done.err


def test_check_without_a_file_is_wrong_use(wf: Wf) -> None:
    assert wf("check").code == 2


BAD_FILES: dict[str, bytes] = {
    "empty": b"",
    "binary": bytes(range(256)) * 8,
    "invalid UTF-8": b'workflow w { description "\xff" }',
    "50 MB": b"# comment\n" * 5_000_000,
}


@pytest.mark.parametrize("content", BAD_FILES.values(), ids=BAD_FILES.keys())
def test_check_of_a_file_that_is_no_workflow(wf: Wf, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "bad.wf").write_bytes(content)
    done = wf("check", "bad.wf")
    assert done.code == 1
    assert done.err.count("error[") == 1
    assert done.err.startswith("bad.wf:")
    assert "  hint: " in done.err or "at most 5 MB" in done.err
    assert len(done.err) < 1000


def test_check_of_a_missing_file(wf: Wf) -> None:
    done = wf("check", "nope.wf")
    assert done.code == 1
    assert "error[WF004]" in done.err
    assert "  hint: " in done.err


def test_check_of_a_directory(wf: Wf, tmp_path: Path) -> None:
    (tmp_path / "folder.wf").mkdir()
    done = wf("check", "folder.wf")
    assert done.code == 1
    assert "error[WF004]" in done.err


def test_check_without_a_catalog_says_where_to_put_one(wf: Wf, greeting: Path) -> None:
    (greeting / "greeting.actions.yaml").unlink()
    done = wf("check", "greeting.wf")
    assert done.code == 1
    assert "there is no action catalog" in done.err
    assert "--catalog" in done.err


@pytest.mark.parametrize("text", ["actions: [", "\x00\x01", "- just\n- a list\n", "actions: 3\n"])
def test_check_with_a_catalog_that_is_none(wf: Wf, greeting: Path, text: str) -> None:
    (greeting / "greeting.actions.yaml").write_text(text)
    done = wf("check", "greeting.wf")
    assert done.code == 1
    assert done.err.startswith("greeting.actions.yaml:")
    assert done.err.count("error[") == 1


def test_check_with_a_catalog_that_is_missing(wf: Wf, greeting: Path) -> None:
    done = wf("check", "greeting.wf", "--catalog", "nope.yaml")
    assert done.code == 1
    assert "nope.yaml" in done.err


def test_check_is_quick_from_a_cold_start(greeting: Path) -> None:
    """0.5 s is the promise; user time is measured, so that a busy machine does not matter."""
    command = [sys.executable, "-m", "wfsql", "check", "greeting.wf"]
    subprocess.run(command, cwd=greeting, check=True, capture_output=True)  # fills the caches
    before = os.times().children_user
    subprocess.run(command, cwd=greeting, check=True, capture_output=True)
    assert os.times().children_user - before < 0.5


# compile ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", ["pg", "mssql"])
def test_compile_writes_a_script(wf: Wf, greeting: Path, dialect: str) -> None:
    done = wf("compile", "greeting.wf", "--dialect", dialect)
    assert done.code == 0
    assert "wf_publish_workflow_version" in done.out


def test_compile_writes_the_spec(wf: Wf, greeting: Path) -> None:
    from compiler.spec import parse_spec

    done = wf("compile", "greeting.wf", "--dialect", "spec")
    assert parse_spec(done.out).name == "greeting"


def test_compile_is_the_same_every_time(wf: Wf, greeting: Path) -> None:
    assert wf("compile", "greeting.wf").out == wf("compile", "greeting.wf").out


def test_compile_writes_to_a_file(wf: Wf, greeting: Path) -> None:
    done = wf("compile", "greeting.wf", "-o", "out.sql")
    assert (done.code, done.out) == (0, "")
    assert (greeting / "out.sql").read_text() == wf("compile", "greeting.wf").out


def test_compile_of_a_bad_file_writes_nothing(wf: Wf, greeting: Path) -> None:
    (greeting / "bad.wf").write_text("workflow bad { action a = greet.nope() }")
    done = wf("compile", "bad.wf", "-o", "out.sql")
    assert done.code == 1
    assert not (greeting / "out.sql").exists()
    assert done.err.endswith("error: bad.wf: 1 error\n")


def test_compile_to_a_folder_that_is_missing(wf: Wf, greeting: Path) -> None:
    done = wf("compile", "greeting.wf", "-o", "no/out.sql")
    assert done.code == 1
    assert done.err.startswith("error: no/out.sql: cannot be written: no such file or directory\n")


def test_compile_of_several_workflows_needs_a_name(wf: Wf, tmp_path: Path) -> None:
    (tmp_path / "two.wf").write_text("workflow a { set x = 1 }\nworkflow b { set x = 1 }\n")
    done = wf("compile", "two.wf")
    assert done.code == 2
    assert done.err.endswith("hint: give --workflow with one of: a, b\n")
    assert wf("compile", "two.wf", "--workflow", "b").code == 0


def test_compile_for_an_unknown_dialect_is_wrong_use(wf: Wf, greeting: Path) -> None:
    assert wf("compile", "greeting.wf", "--dialect", "oracle").code == 2


# run --------------------------------------------------------------------------------------------

RUN = ("run", "greeting.wf", "--handlers", "greeting_handlers.py")


def test_run_writes_the_output(wf: Wf, greeting: Path) -> None:
    done = wf(*RUN, "--context", '{"name": "Ada"}')
    assert done.code == 0
    assert json.loads(done.out) == {"text": "Hello Ada"}
    assert "greeting/hello  greet.hello -> 0" in done.err


def test_run_reads_the_context_from_stdin(wf: Wf, greeting: Path) -> None:
    done = wf(*RUN, "--context-file", "-", stdin=b'{"name": "Bob"}')
    assert json.loads(done.out) == {"text": "Hello Bob"}


def test_run_writes_json_for_programs(wf: Wf, greeting: Path) -> None:
    done = wf(*RUN, "--context", '{"name": "Ada"}', "--json")
    assert json.loads(done.out) == {
        "workflow": "greeting",
        "status": "SUCCEEDED",
        "output": {"text": "Hello Ada"},
        "error": None,
    }
    assert done.err == ""


def test_run_writes_the_trace(wf: Wf, greeting: Path) -> None:
    wf(*RUN, "--context", '{"name": "Ada"}', "--trace", "trace.json")
    trace = json.loads((greeting / "trace.json").read_text())
    assert [node["path"] for node in trace["nodes"]] == ["greeting", "greeting/hello"]


def test_run_of_a_workflow_that_fails_is_exit_1(wf: Wf, greeting: Path) -> None:
    (greeting / "greeting_handlers.py").write_text(
        "from wfsql import action, Result\n"
        "@action('greet.hello')\ndef hello(name):\n    return Result(-7, None, 'no voice')\n"
    )
    done = wf(*RUN, "--context", '{"name": "Ada"}')
    assert done.code == 1
    assert done.err.endswith("greeting: FAILED\nerror -7: no voice\n  at greeting/hello\n")


def test_run_with_a_missing_input_is_exit_1(wf: Wf, greeting: Path) -> None:
    done = wf(*RUN)
    assert done.code == 1
    assert "error 10015: input name: is missing\n" in done.err


def test_run_with_a_handler_module_that_is_missing(wf: Wf, greeting: Path) -> None:
    done = wf("run", "greeting.wf", "--handlers", "nope.py")
    assert done.code == 2
    assert done.err.startswith("error: nope.py: no such file\nhint: ")


def test_run_with_a_dotted_module_that_is_missing(wf: Wf, greeting: Path) -> None:
    done = wf("run", "greeting.wf", "--handlers", "no.such.module")
    assert done.code == 2
    assert done.err.startswith("error: no.such.module: no such module")


def test_run_with_a_handler_module_that_breaks(wf: Wf, greeting: Path) -> None:
    (greeting / "broken.py").write_text("raise RuntimeError('half way')\n")
    done = wf("run", "greeting.wf", "--handlers", "broken.py")
    assert done.code == 2
    assert "broken.py: RuntimeError: half way" in done.err
    assert "Traceback" not in done.err


def test_run_without_handlers_names_the_actions(wf: Wf, greeting: Path) -> None:
    done = wf("run", "greeting.wf", "--context", '{"name": "Ada"}')
    assert done.code == 1
    assert "without a handler: greet.hello" in done.err
    assert "--handlers" in done.err


def test_run_takes_handlers_of_several_modules(wf: Wf, greeting: Path) -> None:
    (greeting / "more.py").write_text(
        "from wfsql import action\n@action('greet.other')\ndef other():\n    return {}\n"
    )
    done = wf(*RUN, "--handlers", "more.py", "--context", '{"name": "Ada"}', "--json")
    assert json.loads(done.out)["output"] == {"text": "Hello Ada"}


def test_run_refuses_two_handlers_for_an_action(wf: Wf, greeting: Path) -> None:
    (greeting / "again.py").write_text((greeting / "greeting_handlers.py").read_text())
    done = wf(*RUN, "--handlers", "again.py")
    assert done.code == 2
    assert 'action "greet.hello" is in greeting_handlers.py and in again.py' in done.err


def test_run_refuses_a_workflow_that_waits(wf: Wf, tmp_path: Path) -> None:
    (tmp_path / "w.wf").write_text('workflow w { wait_event news on "a.b" }\n')
    done = wf("run", "w.wf")
    assert done.code == 1
    assert "waits for events (news)" in done.err
    assert 'use "wf deploy" and "wf start"' in done.err
