"""The argument parser of the commands that have to start quickly.

They use argparse, the others Typer; help and errors look the same from both.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from typing import NoReturn

from wfsql.cli.main import wrong_use


class Parser(argparse.ArgumentParser):
    """An `ArgumentParser` whose errors end the command like every other wrong use."""

    _width: int | None = 80

    def __init__(self, name: str, operands: str, description: str, example: str) -> None:
        """Makes the parser of `wf NAME [OPTIONS] OPERANDS`; `example` is without its label."""
        super().__init__(
            prog=f"wf {name}",
            usage=f"wf {name} [OPTIONS] {operands}".rstrip(),
            formatter_class=_Formatter,
            description=description,
            epilog=f"Example:  {example}",
            allow_abbrev=False,
            add_help=False,
        )
        self._positionals.title = "Arguments"
        self._optionals.title = "Options"
        self.add_argument("-h", "--help", action="help", help="Show this message and exit.")

    def _get_formatter(self) -> argparse.HelpFormatter:
        """As it is, but that it does not ask for the terminal's width until help is to be shown.

        argparse makes a formatter for every argument that is added, and each imports `shutil`.
        """
        return _Formatter(prog=self.prog, width=self._width)

    def format_help(self) -> str:
        """Returns the help text, as wide as the terminal."""
        self._width = None
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        """Ends the command with argparse's message in our words."""
        text, near = _in_our_words(message, list(self._option_names()))
        raise wrong_use(text, near or f'see "{self.prog} --help"')

    def _option_names(self) -> Iterator[str]:
        for action in self._actions:
            yield from action.option_strings


class _Formatter(argparse.RawDescriptionHelpFormatter):
    def add_usage(
        self,
        usage: str | None,
        actions: object,
        groups: object,
        prefix: str | None = None,
    ) -> None:
        super().add_usage(usage, actions, groups, "Usage: ")  # type: ignore[arg-type]


def _in_our_words(message: str, options: list[str]) -> tuple[str, str | None]:
    """Returns the error and, for a misspelt option, the hint that names the right one."""
    if found := re.fullmatch(r"the following arguments are required: (.*)", message):
        return f"{found[1]} is missing", None
    if found := re.fullmatch(r"argument (\S+): expected (?:one|at least one) argument", message):
        return f"{found[1]} needs a value", None
    if found := re.fullmatch(
        r"argument (\S+): invalid choice: '(.*)' \(choose from (.*)\)", message
    ):
        return f'{found[1]}: "{found[2]}" is not one of {_quoted(found[3])}', None
    if found := re.fullmatch(r"argument (\S+): ((?:takes|is) .*)", message):
        return f"{found[1]} {found[2]}", None
    if found := re.fullmatch(r"argument (\S+): not allowed with argument (\S+)", message):
        return f"{found[2]} and {found[1]} exclude each other", None
    if found := re.fullmatch(r"unrecognized arguments: (\S+).*", message):
        return _surplus(found[1], options)
    return message, None


def _surplus(word: str, options: list[str]) -> tuple[str, str | None]:
    if not word.startswith("-"):
        return f'"{word}" is one argument too many', None
    from difflib import get_close_matches

    close = get_close_matches(word, options, n=1)
    return f"there is no option {word}", f"did you mean {close[0]}?" if close else None


def _quoted(choices: str) -> str:
    return ", ".join(f'"{choice}"' for choice in re.split(r",\s*", choices.replace("'", "")))
