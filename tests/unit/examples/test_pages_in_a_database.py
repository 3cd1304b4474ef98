"""The database commands of README.md and of order_delivery's page, as a reader would type them.

And the workflows of docs/language.md that need events.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from wfsql.cli.main import main

ROOT = Path(__file__).parents[3]


class Shell:
    """Runs `wf …` lines in the current folder; a worker in a process of its own, until idle."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self.capture = capture

    def type(self, line: str) -> str:
        """Runs one line, which must succeed, and returns what it wrote to stdout."""
        words = shlex.split(line, comments=True)[1:]
        if words[0] == "worker":
            command = [sys.executable, "-m", "wfsql", *words, "--idle-exit", "0.3"]
            subprocess.run(command, check=True, capture_output=True, timeout=60)
            return ""
        self.capture.readouterr()
        code = main(words)
        written = self.capture.readouterr()
        assert code == 0, f"{line}\n{written.err}"
        return written.out


@pytest.fixture
def shell(
    tmp_path: Path,
    empty_pg_url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Shell:
    monkeypatch.setenv("WF_URL", empty_pg_url)
    monkeypatch.setenv("WFSQL_WORK", str(tmp_path / "work"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.chdir(tmp_path)
    return Shell(capsys)


def command_lines(text: str) -> list[str]:
    """Returns the `wf …` lines of a text's plain blocks, continuation lines joined."""
    joined = "\n".join(re.findall(r"^```\n(.*?)^```$", text, re.DOTALL | re.MULTILINE))
    return [line for line in joined.replace("\\\n", " ").splitlines() if line.startswith("wf ")]


def test_the_database_commands_of_the_readme_do_what_it_says(shell: Shell, tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for name, content in re.findall(
        r"[Ss]ave this as\s+`([\w.]+)`:\n\n```\w+\n(.*?)^```$", text, re.DOTALL | re.MULTILINE
    ):
        (tmp_path / name).write_text(content, encoding="utf-8")
    section = text.partition("## In a database")[2].partition("\n## ")[0]
    written = {line.split("#")[0].strip(): shell.type(line) for line in command_lines(section)}

    trace = json.loads(written["wf trace 1 --json"])
    assert (trace["status"], trace["output"]) == ("SUCCEEDED", {"counts": [2, 4], "total": 6})


def test_the_commands_of_order_delivery_bring_the_instance_to_its_end(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (ROOT / "examples" / "order_delivery" / "README.md").read_text(encoding="utf-8")
    monkeypatch.chdir(ROOT)
    shell.type("wf db install")
    lines = command_lines(text)
    for line in lines:
        shell.type(line)
    (worker,) = (line for line in lines if line.startswith("wf worker"))
    shell.type(worker)  # on the page it still runs when the event comes

    trace = json.loads(shell.type("wf trace 1 --json"))
    assert (trace["status"], trace["output"]["complete"]) == ("SUCCEEDED", True)


@pytest.fixture
def language_page(shell: Shell, tmp_path: Path) -> Callable[[str], None]:
    """Returns a function that deploys a program of docs/language.md."""
    text = (ROOT / "docs" / "language.md").read_text(encoding="utf-8")
    (catalog,) = re.findall(r"^```yaml\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    (tmp_path / "page.actions.yaml").write_text(catalog, encoding="utf-8")
    shell.type("wf db install")

    def deploy(name: str) -> None:
        blocks = re.findall(r"^```wf\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
        (program,) = (block for block in blocks if f"workflow {name} {{" in block)
        (tmp_path / f"{name}.wf").write_text(program, encoding="utf-8")
        shell.type(f"wf deploy {name}.wf")

    return deploy


def contexts(url: str) -> list[object]:
    """Returns the start contexts of all instances, oldest first."""
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "select context_json from wf.execution_context order by workflow_instance_id"
        ).fetchall()
    return [row[0] for row in rows]


def test_an_event_that_fits_its_filter_starts_an_instance_with_its_payload(
    shell: Shell, language_page: Callable[[str], None], empty_pg_url: str
) -> None:
    language_page("started_by_events")
    for region in ("us", "eu"):
        payload = {"region": region, "customer": {"vip": True}, "order": region, "qty": 2}
        send = f"wf events send order.created --payload '{json.dumps(payload)}'"
        shell.type(send)
    assert contexts(empty_pg_url) == [{"order": "eu", "qty": 2}]


def test_an_event_starts_an_instance_with_the_inputs_that_are_written(
    shell: Shell, language_page: Callable[[str], None], empty_pg_url: str
) -> None:
    language_page("started_by_events")
    shell.type("""wf events send shop.sold --payload '{"number": "A7", "order": "no"}'""")
    assert contexts(empty_pg_url) == [{"order": "A7"}]


def test_an_event_without_the_input_it_should_give_starts_nothing(
    shell: Shell, language_page: Callable[[str], None], empty_pg_url: str
) -> None:
    language_page("started_by_events")
    shell.type("wf events send shop.sold --payload '{}'")
    assert contexts(empty_pg_url) == []


def test_a_signal_that_does_not_fit_its_filter_does_not_end_the_wait(
    shell: Shell, language_page: Callable[[str], None]
) -> None:
    language_page("reminded")
    shell.type("""wf start reminded --context '{"order": "A1"}'""")
    for currency, status in (("USD", "RUNNING"), ("EUR", "SUCCEEDED")):
        payload = json.dumps({"amount": {"currency": currency}})
        shell.type(f"wf events send order.paid --correlate A1 --payload '{payload}'")
        assert json.loads(shell.type("wf trace 1 --json"))["status"] == status
