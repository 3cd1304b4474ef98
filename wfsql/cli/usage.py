"""Says what Typer finds wrong with a command line, in the words of the rest of the command.

Typer's messages quote its own parts (`Input should be a valid integer, unable to parse …`), and
their form differs between its versions; so what is known is reworded and the rest is passed on.
"""

from __future__ import annotations

import re
from typing import Any

from wfsql.cli.main import CommandError, wrong_use

_LIMITS = {"greater than or equal to": "at least", "less than or equal to": "at most"}


def usage_error(error: Exception, command: str) -> CommandError | None:
    """Returns the error for a command line that Typer refuses; None for any other exception."""
    described: Any = getattr(error, "format_message", None)
    if described is None or getattr(error, "exit_code", None) != 2:
        return None
    text = " ".join(str(described()).split())
    return wrong_use(_in_our_words(text), _near(error, text) or f'see "wf {command} --help"')


def _in_our_words(text: str) -> str:
    if found := re.match(r"No such option:? '?([^\s']+)", text):
        return f"there is no option {found[1].rstrip('.')}"
    if found := re.match(r"Missing (?:argument|option|parameter) '?([^\s'.]+)", text):
        return f"{found[1].strip('{}').upper()} is missing"
    if found := re.match(r"Option '([^']+)' requires an argument", text):
        return f"{found[1]} needs a value"
    if found := re.match(r"Got unexpected extra arguments? ?(?:\(s\) )?\((\S+).*\)", text):
        return f'"{found[1]}" is one argument too many'
    if found := re.match(r"Invalid value for (.+?): (.*)", text):
        return _bad_value(found[1].replace("'", "").split(" / ")[0].strip("{}"), found[2])
    return text[:1].lower() + text[1:].rstrip(".")


def _bad_value(name: str, reason: str) -> str:
    if found := re.search(r"valid (integer|number|float)|not a valid (integer|float)", reason):
        is_integer = "integer" in (found[1], found[2])
        return f"{name} takes {'an integer' if is_integer else 'a number'}"
    if found := re.search(r"(greater than or equal to|less than or equal to) ([-\d.]+)", reason):
        return f"{name} is {_LIMITS[found[1]]} {found[2].rstrip('.')}"
    if found := re.search(r"'(.*)' is not one of (.*?)\.?$", reason):
        return f'{name}: "{found[1]}" is not one of ' + found[2].replace("'", '"')
    reason = reason.removeprefix("Value error, ")
    return f"{name}: {reason[:1].lower()}{reason[1:].rstrip('.')}"


def _near(error: Exception, text: str) -> str | None:
    """Returns the hint for a misspelt option."""
    wrong = getattr(error, "option_name", None)
    if wrong is None or not text.startswith("No such option"):
        return None
    from difflib import get_close_matches

    context = getattr(error, "ctx", None)
    names = [name for p in context.command.params for name in p.opts] if context else []
    close = get_close_matches(wrong, names, n=1)
    return f"did you mean {close[0]}?" if close else None
