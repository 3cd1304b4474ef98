"""What the operators' commands share: their options, ids, times.

They use argparse, not Typer, which knows no option whose value may be left out (`--watch`).
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from wfsql.cli.arguments import Parser
from wfsql.cli.main import wrong_use

MOST_ID = 2**63 - 1
MOST_ROWS = 100_000
_DEFAULT_SECONDS = "2"
_LEAST_SECONDS = 0.05


def operator_parser(
    name: str, operands: str, description: str, example: str, *, watch: bool = False
) -> Parser:
    """Returns a parser with `--url`, `--json` and, if wanted, `--watch`."""
    parser = Parser(name, operands, description, example)
    parser.add_argument(
        "--url",
        metavar="URL",
        default=os.environ.get("WF_URL"),
        help="The database, as postgresql://user@host/name or mssql://user@host/name; WF_URL is"
        " the default.",
    )
    parser.add_argument("--json", action="store_true", help="Write JSON, for programs.")
    if watch:
        parser.add_argument(
            "--watch",
            nargs="?",
            const=_DEFAULT_SECONDS,
            metavar="SECONDS",
            help="Show it again every SECONDS (2) until Ctrl-C; in a pipe, when it has changed.",
        )
    return parser


def add_limit(parser: Parser, default: int, what: str) -> None:
    """Adds `--limit`."""
    parser.add_argument(
        "--limit",
        type=integer(1, MOST_ROWS),
        default=default,
        metavar="N",
        help=f"Show at most this many {what} ({default}).",
    )


def parse_one_id(parser: Parser, arguments: Sequence[str]) -> argparse.Namespace:
    """Parses the arguments of a command about one instance, whose id ends up in `id`.

    A number right after an option whose value may be left out is the id, if there is no other.
    """
    parser.add_argument("id", nargs="?", metavar="ID", help="The instance's id.")
    options = parser.parse_args(arguments)
    for name, default in (("watch", _DEFAULT_SECONDS), ("graph", "")):
        value = getattr(options, name, None)
        if options.id is None and value is not None and value.isdecimal() and value != default:
            options.id = value
            setattr(options, name, default)
    if options.id is None:
        parser.error("the following arguments are required: ID")
    try:
        options.id = integer(1, MOST_ID)(options.id)
    except argparse.ArgumentTypeError as error:
        raise wrong_use(f"ID {error}", f'see "{parser.prog} --help"') from error
    return options


def integer(least: int, most: int) -> Callable[[str], int]:
    """Returns what reads an integer between these, for argparse."""

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError("takes an integer") from None
        if value < least:
            raise argparse.ArgumentTypeError(f"is at least {least}")
        if value > most:
            raise argparse.ArgumentTypeError(f"is at most {most}")
        return value

    return read


def watch_seconds(options: argparse.Namespace) -> float | None:
    """Returns the pause of `--watch`; None without it."""
    if options.watch is None:
        return None
    try:
        seconds = float(options.watch)
    except ValueError:
        raise wrong_use("--watch takes a number of seconds", "such as --watch 5") from None
    if not _LEAST_SECONDS <= seconds <= 86_400:
        raise wrong_use(f"--watch is at least {_LEAST_SECONDS} and at most 86400 seconds")
    return seconds


def timestamp(at: datetime | None) -> str | None:
    """Returns a time for programs: RFC 3339 in UTC, to the millisecond."""
    if at is None:
        return None
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def span(seconds: float) -> str:
    """Returns a length of time for people: `850 ms`, `12 s`, `5 min`, `3 h`, `2 days`."""
    if seconds < 1:
        return f"{round(seconds * 1000)} ms"
    if seconds < 120:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    if seconds < 7_200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h" if seconds < 172_800 else f"{seconds / 86_400:.0f} days"
