"""Reads the JSON that a command is given: inline, from a file, or from stdin (`-`)."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from compiler import json_values
from wfsql.cli.main import CommandError, wrong_use

ContextOption = Annotated[
    str | None, typer.Option("--context", metavar="JSON", help="The inputs, as a JSON object.")
]
ContextFileOption = Annotated[
    str | None,
    typer.Option("--context-file", metavar="FILE", help="A file with the inputs; - is stdin."),
]


def read_context(inline: str | None, file: str | None) -> dict[str, json_values.JsonValue]:
    """Returns the start context; without either option it is empty."""
    if inline is not None and file is not None:
        raise wrong_use("--context and --context-file exclude each other", "give one of them")
    if inline is None and file is None:
        return {}
    where = "--context" if inline is not None else shown(str(file))
    value = parse_json(inline if inline is not None else read_text(str(file)), where)
    if not isinstance(value, dict):
        raise wrong_use(f"{where}: the context must be a JSON object", 'such as {"order_id": "A1"}')
    return value


def parse_json(text: str, where: str) -> json_values.JsonValue:
    """Returns the value of a JSON text, or ends the command."""
    try:
        return json_values.loads(text)
    except json.JSONDecodeError as error:
        raise wrong_use(
            f"{where}: not JSON: {error.msg.lower()} at line {error.lineno} column {error.colno}",
            "check the quotes and commas there",
        ) from error
    except json_values.UnstorableValue as error:
        raise wrong_use(f"{where}: {error} ({error.code})", "no engine can store it") from error


def shown(name: str) -> str:
    """Returns what a file is called in a message."""
    return "stdin" if name == "-" else name


def read_text(name: str) -> str:
    """Reads a UTF-8 file, or stdin for `-`, or ends the command."""
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CommandError(
            f"{shown(name)}: not UTF-8 at byte {error.start}", "save the file as UTF-8"
        ) from error
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise wrong_use(f"{shown(name)}: {reason}", "check the path") from error
