"""The frame of the command: finding commands, help, exit codes, faults of ours."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

from wfsql.cli.main import COMMANDS, Command, main

Wf = Callable[..., Any]


def test_help_lists_every_command(wf: Wf) -> None:
    done = wf("--help")
    assert done.code == 0
    for command in COMMANDS:
        assert f"  {command.name} " in done.out


def test_no_arguments_is_wrong_use_and_shows_help(wf: Wf) -> None:
    done = wf()
    assert done.code == 2
    assert done.out == ""
    assert "Usage: wf" in done.err


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_each_command_has_help_with_an_example(wf: Wf, command: Command) -> None:
    done = wf(*command.name.split(), "--help")
    assert done.code == 0
    assert "Example:  wf " + command.name in done.out


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_each_command_says_its_purpose(command: Command) -> None:
    module = import_module(f"wfsql.cli.commands.{command.module}")
    assert module.__doc__.startswith(f"`wf {command.name}`")


def test_version_names_the_installed_version(wf: Wf) -> None:
    from importlib.metadata import version

    assert wf("--version").out == f"wf {version('wfsql')}\n"


def test_unknown_command_suggests_a_near_one(wf: Wf) -> None:
    done = wf("chekc", "order.wf")
    assert done.code == 2
    assert done.err == 'error: there is no command "wf chekc"\nhint: did you mean "wf check"?\n'


def test_unknown_second_word_suggests_a_near_one(wf: Wf) -> None:
    done = wf("db", "instal")
    assert done.code == 2
    assert done.err.endswith('hint: did you mean "wf db install"?\n')


def test_a_group_alone_lists_its_commands(wf: Wf) -> None:
    done = wf("db")
    assert done.code == 2
    assert 'hint: use "wf db install" or "wf db upgrade" or "wf db verify" or' in done.err


def test_help_of_a_group_shows_only_its_commands(wf: Wf) -> None:
    done = wf("db", "--help")
    assert done.code == 0
    assert "db install" in done.out
    assert "events send" not in done.out
    assert done.out.startswith("Usage: wf db COMMAND [OPTIONS]")


def test_unknown_option_is_wrong_use(wf: Wf) -> None:
    done = wf("ps", "--ulr", "x")
    assert done.code == 2
    assert done.err == "error: there is no option --ulr\nhint: did you mean --url?\n"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("ps", "--limit", "x"), "--limit takes an integer"),
        (("ps", "--limit", "0"), "--limit is at least 1"),
        (("ps", "--url"), "--url needs a value"),
        (("ps", "extra"), '"extra" is one argument too many'),
        (("show",), "ID is missing"),
        (("worker", "--idle-exit", "x"), "--idle-exit takes a number"),
        (
            ("compile", "a.wf", "--dialect", "oracle"),
            '--dialect: "oracle" is not one of "pg", "mssql", "spec"',
        ),
        (("check",), "FILE is missing"),
        (("check", "--catalog"), "--catalog needs a value"),
    ],
)
def test_wrong_use_has_one_form(wf: Wf, arguments: tuple[str, ...], error: str) -> None:
    done = wf(*arguments)
    hint = f'hint: see "wf {arguments[0]} --help"\n'
    assert (done.code, done.out, done.err) == (2, "", f"error: {error}\n{hint}")


def test_a_choice_of_check_that_is_none_names_the_choices(wf: Wf) -> None:
    done = wf("check", "a.wf", "--format", "x")
    assert done.code == 2
    assert done.err.startswith('error: --format: "x" is not one of "text", "json"')


def test_a_misspelt_option_of_check_suggests_the_right_one(wf: Wf) -> None:
    done = wf("check", "a.wf", "--jsno")
    assert done.err == "error: there is no option --jsno\nhint: did you mean --json?\n"


@pytest.mark.parametrize("name", ["check", "ps", "start", "db install", "events send"])
def test_usage_looks_the_same_from_both_parsers(wf: Wf, name: str) -> None:
    out = wf(*name.split(), "--help").out
    assert out.startswith(f"Usage: wf {name} [OPTIONS]")
    assert "{" not in out.splitlines()[0]
    assert "Show this message and exit." in out


def test_help_before_a_command_is_its_help(wf: Wf) -> None:
    assert wf("help", "ps") == wf("ps", "--help")
    assert wf("help", "db", "install") == wf("db", "install", "--help")
    assert wf("help", "db") == wf("db", "--help")


def test_a_fault_of_ours_is_one_line_and_exit_70(wf: Wf, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_arguments: list[str]) -> int:
        raise ValueError("bad state")

    monkeypatch.setattr("wfsql.cli.main._dispatch", broken)
    done = wf("ps")
    assert done.code == 70
    assert done.err.startswith("error: this is a fault of wfsql: ValueError: bad state\nhint: ")
    assert "Traceback" not in done.err


def test_wf_debug_shows_where_a_fault_happened(wf: Wf, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_arguments: list[str]) -> int:
        raise ValueError("bad state")

    monkeypatch.setattr("wfsql.cli.main._dispatch", broken)
    monkeypatch.setenv("WF_DEBUG", "1")
    assert "Traceback" in wf("ps").err


def test_interrupt_is_exit_130(wf: Wf, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_arguments: list[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("wfsql.cli.main._dispatch", interrupted)
    assert wf("ps").code == 130


def test_a_reader_that_goes_away_is_no_error() -> None:
    done = subprocess.run(
        f"{sys.executable} -m wfsql --help | head -c 1",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""


def test_data_in_errors_is_safe_for_a_terminal(wf: Wf) -> None:
    done = wf("\x1b[31mred")
    assert done.code == 2
    assert "\x1b" not in done.err
    assert "\\x1b[31mred" in done.err


def test_main_reads_the_process_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["wf", "--version"])
    assert main() == 0
