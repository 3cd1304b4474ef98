"""The `wf` command.

Flow: find the command's name in `COMMANDS` → import its module, and no other → let Typer read the
arguments for the module's `command` function → it returns the exit code. Importing only what was
asked for is what keeps `wf check` quick; it has a `run` of its own, because Typer would cost it as
much time as everything else together.

Exit codes: 0 fine · 1 the user's file, run or database failed · 2 wrong use · 70 our fault.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from io import TextIOWrapper
from typing import Any, NoReturn

from dsl.quick_class import dataclass

EXIT_FINE = 0
EXIT_FAILED = 1
EXIT_WRONG_USE = 2
EXIT_OUR_FAULT = 70
EXIT_INTERRUPTED = 130

_HELP = frozenset({"-h", "--help"})
USAGE = "Usage: wf COMMAND [OPTIONS] [ARGUMENTS]\n       wf --version\n"
GROUP_USAGE = "Usage: wf {group} COMMAND [OPTIONS] [ARGUMENTS]\n"


@dataclass(frozen=True, slots=True)
class Command:
    """`name` as it is typed (`db install` has two words); `module` holds its function."""

    name: str
    module: str
    summary: str
    group: str


COMMANDS: tuple[Command, ...] = (
    Command("check", "check", "read workflow files and say what is wrong with them", "Authors"),
    Command("compile", "compile", "write the SQL script or the GraphSpec of a workflow", "Authors"),
    Command("fmt", "fmt", "write workflow files in the canonical form", "Authors"),
    Command("graph", "graph", "draw a workflow: as a tree, for dot or Mermaid, as SVG", "Authors"),
    Command("schema", "schema", "write the JSON Schema of a workflow's inputs", "Authors"),
    Command("explain", "explain", "say what a diagnostic code means and how to mend it", "Authors"),
    Command("run", "run", "run a workflow in this process, without a database", "Authors"),
    Command("test", "test", "run the cases of *.wftest.yaml files on an engine", "Authors"),
    Command("cache ls", "cache_ls", "list what iterations have stored for reuse", "Authors"),
    Command("cache rm", "cache_rm", "remove entries of the reuse cache", "Authors"),
    Command("cache verify", "cache_verify", "prove every entry of the reuse cache", "Authors"),
    Command("db install", "db_install", "install the runtime into a database", "Database"),
    Command("db upgrade", "db_upgrade", "bring an older runtime up to this version", "Database"),
    Command("db verify", "db_verify", "say which runtime a database has", "Database"),
    Command("db uninstall", "db_uninstall", "remove the runtime from a database", "Database"),
    Command("db script", "db_script", "write the runtime as one file for psql", "Database"),
    Command("db test-bed", "db_test_bed", "run the test bed's workflows in a database", "Database"),
    Command("deploy", "deploy", "compile a file and put its workflows into a database", "Database"),
    Command("start", "start", "start an instance of a deployed workflow", "Database"),
    Command("events send", "events_send", "hand an event to the workflows", "Database"),
    Command("ps", "ps", "list instances", "Operators"),
    Command("show", "show", "show one instance and its nodes, or its graph", "Operators"),
    Command("why", "why", "say what an instance waits for, and what could be done", "Operators"),
    Command("trace", "trace", "write the trace document of an instance", "Operators"),
    Command("logs", "logs", "list the attempts at an instance's actions", "Operators"),
    Command("events", "events", "list events and what came of them", "Operators"),
    Command("workers", "workers", "list the workers and what they have in hand", "Operators"),
    Command(
        "export-spans", "export_spans", "send traces to an OpenTelemetry collector", "Operators"
    ),
    Command("cancel", "cancel", "end instances", "Operators"),
    Command("pause", "pause", "keep instances from going on", "Operators"),
    Command("resume", "resume", "let paused instances go on", "Operators"),
    Command("retry", "retry", "try again what failed instances", "Operators"),
    Command("drain", "drain", "let a worker finish what it has and end", "Operators"),
    Command("dev", "dev", "run everything on this machine, and follow the files", "Processes"),
    Command("worker", "worker", "claim tasks and run Python handlers for them", "Processes"),
    Command("gateway", "gateway", "serve the HTTP API for workers and programs", "Processes"),
    Command("key create", "key_create", "make a key for the gateway's API", "Processes"),
    Command("key ls", "key_ls", "list the keys of the gateway's API", "Processes"),
    Command("key revoke", "key_revoke", "end a key of the gateway's API", "Processes"),
)


class CommandError(Exception):
    """Ends a command with one line for the user: what is wrong, and what to do."""

    def __init__(self, message: str, hint: str | None = None, code: int = EXIT_FAILED) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code


def wrong_use(message: str, hint: str | None = None) -> CommandError:
    """Returns the error for arguments that make no sense (exit code 2)."""
    return CommandError(message, hint, EXIT_WRONG_USE)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code; `argv` is without the program's name."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _dispatch(arguments)
        sys.stdout.flush()
        return code
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else EXIT_WRONG_USE
    except CommandError as error:
        _say_error(error.message, error.hint)
        return error.code
    except BrokenPipeError:
        # The reader of a pipe has gone; keep the interpreter from complaining about it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return EXIT_FINE
    except KeyboardInterrupt:
        _say_error("interrupted", None)
        return EXIT_INTERRUPTED
    except Exception as error:
        return _report_fault(error)


def _dispatch(arguments: list[str]) -> int:
    if len(arguments) > 1 and arguments[0] == "help":
        arguments = [*arguments[1:], "--help"]
    if len(arguments) == 2 and arguments[1] in _HELP and _is_only_group(arguments[0]):
        sys.stdout.write(help_text(arguments[0]))
        return EXIT_FINE
    if not arguments or arguments[0] in {*_HELP, "help"}:
        (sys.stdout if arguments else sys.stderr).write(help_text())
        return EXIT_FINE if arguments else EXIT_WRONG_USE
    if arguments[0] in {"-V", "--version"}:
        sys.stdout.write(f"wf {_version()}\n")
        return EXIT_FINE
    command, rest = _find(arguments)
    module = import_module(f"wfsql.cli.commands.{command.module}")
    if hasattr(module, "run"):
        code: int = module.run(rest)
        return code
    return run_command(module.command, command, rest)


def _find(arguments: list[str]) -> tuple[Command, list[str]]:
    for words in (2, 1):
        name = " ".join(arguments[:words])
        for command in COMMANDS:
            if command.name == name:
                return command, arguments[words:]
    _unknown(arguments)


def _unknown(arguments: list[str]) -> NoReturn:
    """Says which command was meant; for a group without a command (`wf db`) lists its commands."""
    from difflib import get_close_matches

    first = arguments[0]
    members = _members(first)
    if members and (len(arguments) < 2 or arguments[1].startswith("-")):
        names = " or ".join(f'"wf {name}"' for name in members)
        raise wrong_use(f'"wf {first}" needs a command', f"use {names}")
    typed = " ".join(arguments[:2]) if members else first
    close = get_close_matches(typed, [command.name for command in COMMANDS], n=1, cutoff=0.6)
    hint = f'did you mean "wf {close[0]}"?' if close else 'see "wf --help"'
    raise wrong_use(f'there is no command "wf {typed}"', hint)


def _is_only_group(word: str) -> bool:
    """Whether a word begins commands and is none itself (`db`, not `events`)."""
    return bool(_members(word)) and all(command.name != word for command in COMMANDS)


def _members(group: str) -> list[str]:
    return [command.name for command in COMMANDS if command.name.startswith(group + " ")]


def run_command(function: Callable[..., int], command: Command, arguments: list[str]) -> int:
    """Lets Typer read the arguments of one command and call its function."""
    import typer

    result: list[int] = []
    interrupts: list[KeyboardInterrupt] = []

    # Typer reads the parameters of what it is given, so the wrapper has to look like the function.
    from functools import wraps

    @wraps(function)
    def call(*args: object, **options: object) -> None:
        try:
            result.append(function(*args, **options))
        except KeyboardInterrupt as interrupt:
            # Typer would make an exit code of it, which its versions pass on differently.
            interrupts.append(interrupt)

    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.command(context_settings={"help_option_names": ["-h", "--help"]})(call)
    parser = typer.main.get_command(app)
    _plain_operands(parser)
    try:
        parser.main(args=arguments, prog_name=f"wf {command.name}", standalone_mode=False)
    except Exception as error:
        from wfsql.cli.usage import usage_error

        found = usage_error(error, command.name)
        if found is None:
            raise
        raise found from error
    if interrupts:
        raise interrupts[0]
    # Nothing was called when only help was asked for.
    return result[0] if result else EXIT_FINE


def _plain_operands(parser: Any) -> None:
    """Takes the braces off the operands in the usage line: `{FILE}` reads like a choice."""
    collect = parser.collect_usage_pieces
    parser.collect_usage_pieces = lambda context: [p.strip("{}") for p in collect(context)]


def help_text(group: str | None = None) -> str:
    """Returns the list of commands; with `group`, only those of one word, such as `db`."""
    usage = USAGE if group is None else GROUP_USAGE.format(group=group)
    lines = [usage, "Workflows that run inside your database."]
    shown = [c for c in COMMANDS if group is None or c.name.startswith(group + " ")]
    for heading in dict.fromkeys(command.group for command in shown):
        lines.append(f"\n{heading}:")
        lines += [f"  {c.name:<12} {c.summary}" for c in shown if c.group == heading]
    lines.append('\n"wf COMMAND --help" tells more and shows examples.')
    lines.append("Exit codes: 0 fine, 1 the file or run failed, 2 wrong use, 70 a fault of wfsql.")
    return "\n".join(lines) + "\n"


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("wfsql")
    except PackageNotFoundError:
        return "0 (not installed)"


def _say_error(message: str, hint: str | None) -> None:
    from wfsql.cli.output import say_error

    say_error(message, hint)


def _first_line(error: Exception) -> str:
    lines = str(error).splitlines()
    return lines[0] if lines else "no message"


def _report_fault(error: Exception) -> int:
    if os.environ.get("WF_DEBUG") == "1":
        import traceback

        traceback.print_exc()
    _say_error(
        f"this is a fault of wfsql: {type(error).__name__}: {_first_line(error)}",
        "please report it with the command you ran; WF_DEBUG=1 shows where it happened",
    )
    return EXIT_OUR_FAULT
