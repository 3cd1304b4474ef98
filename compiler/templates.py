"""Templates: an ACTION's input as JSON with `${…}` in its strings, turned into one program.

`{"to": "ops", "subject": "Short: ${var.order_id}"}`  becomes
`["lit", "ops"] ["lit", "Short: "] ["var", "order_id", …] ["cat", 2] ["obj", ["to", "subject"]]`,
with the programs of input bindings put in where their JSON pointers point. A template names
variables without their scope; `find_owner` says which node opens it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

Instructions = list[list[Any]]
FindOwner = Callable[[str], str | None]
"""Variable name → key of the node whose scope has it, or None when no scope around has it."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_QUOTED_KEY = re.compile(r'"(?:[^"\\]|\\.)*"')
_INDEX = re.compile(r"[0-9]{1,18}")
_SHORT_NUMBER = re.compile(r"[0-9]{1,9}")


def template_program(
    template: Any,
    bindings: Mapping[str, Instructions],
    find_owner: FindOwner,
) -> Instructions:
    """Returns the program that builds an input.

    Args:
      bindings: programs by JSON pointer into the template.
    """
    if not bindings and type(template) is dict and all(map(_is_constant, template.values())):
        # What most nodes have: nothing to fill in.
        keys = sorted(template, key=_fill_order) if len(template) > 1 else template
        return [["lit", {key: template[key] for key in keys}]]
    return _Builder(bindings, find_owner).build(template, "")


def _is_constant(value: Any) -> bool:
    """Whether a part of a template stands for itself; containers are looked into elsewhere."""
    if isinstance(value, str):
        return "$" not in value
    return not isinstance(value, dict | list | tuple)


class _Builder:
    def __init__(self, bindings: Mapping[str, Instructions], find_owner: FindOwner) -> None:
        self._bindings = bindings
        self._find_owner = find_owner

    def build(self, value: Any, pointer: str) -> Instructions:
        if pointer in self._bindings:
            return [list(instruction) for instruction in self._bindings[pointer]]
        if isinstance(value, str):
            return string_program(value, self._find_owner)
        if isinstance(value, dict):
            keys = sorted(value, key=_fill_order)
            parts = [self.build(value[key], f"{pointer}/{_pointer_token(key)}") for key in keys]
            return _joined(parts, ["obj", keys])
        if isinstance(value, list | tuple):
            parts = [self.build(child, f"{pointer}/{i}") for i, child in enumerate(value)]
            return _joined(parts, ["arr", len(parts)])
        return [["lit", value]]


def _fill_order(key: str) -> str:
    """Sorts keys in the order in which a template's places are filled, and so which error is met
    first: by code point, those that look like indexes by number. A database does not keep the
    order of the source."""
    return key.rjust(10, "0") if _SHORT_NUMBER.fullmatch(key) else key


def _pointer_token(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _joined(parts: list[Instructions], last: list[Any]) -> Instructions:
    """Puts parts together; parts that are all literals make one literal."""
    if all(len(part) == 1 and part[0][0] == "lit" for part in parts):
        values = [part[0][1] for part in parts]
        return [["lit", values if last[0] == "arr" else dict(zip(last[1], values, strict=True))]]
    return [*(instruction for part in parts for instruction in part), last]


def string_program(text: str, find_owner: FindOwner) -> Instructions:
    """Returns the program of one template string; exactly one placeholder keeps its type."""
    parts: Instructions = []
    literal: list[str] = []
    position = 0
    while position < len(text):
        if text.startswith("$${", position):
            literal.append("${")
            position += 3
        elif text.startswith("${", position):
            reference, position = _placeholder(text, position, find_owner)
            if reference[0] == "fault":
                return [reference]
            if literal:
                parts.append(["lit", "".join(literal)])
                literal.clear()
            parts.append(reference)
        else:
            # Everything up to the next dollar is plain, whatever it is.
            following = text.find("$", position + 1)
            stop = len(text) if following < 0 else following
            literal.append(text[position:stop])
            position = stop
    if literal or not parts:
        parts.append(["lit", "".join(literal)])
    return parts if len(parts) == 1 else [*parts, ["cat", len(parts)]]


def _placeholder(text: str, start: int, find_owner: FindOwner) -> tuple[list[Any], int]:
    """Reads `${reference}` at `start`; what is none becomes the fault 10002 of that string."""
    parser = _ReferenceParser(text, start + 2, find_owner)
    parser.skip_blanks()
    reference = parser.reference()
    parser.skip_blanks()
    if reference is not None and text.startswith("}", parser.position):
        return reference, parser.position + 1
    close = text.find("}", start)
    token = text[start : close + 1] if close >= 0 else text[start:]
    return ["fault", 10002, f"unsupported placeholder {token}"], len(text)


class _ReferenceParser:
    def __init__(self, text: str, position: int, find_owner: FindOwner) -> None:
        self.position = position
        self._text = text
        self._find_owner = find_owner

    def skip_blanks(self) -> None:
        while self._text.startswith((" ", "\t"), self.position):
            self.position += 1

    def _take(self, pattern: re.Pattern[str]) -> str | None:
        found = pattern.match(self._text, self.position)
        if found is None:
            return None
        self.position = found.end()
        return found.group()

    def _take_text(self, text: str) -> bool:
        if not self._text.startswith(text, self.position):
            return False
        self.position += len(text)
        return True

    def reference(self) -> list[Any] | None:
        """Returns a `var` or `ctx` instruction, or None when none stands here."""
        root = self._take(_NAME)
        if root not in ("var", "ctx"):
            return None
        steps = self._steps()
        if not steps or not isinstance(steps[0], str):
            return None
        if root == "ctx":
            return ["ctx", steps[0], steps[1:]]
        owner = self._find_owner(steps[0])
        return None if owner is None else ["var", steps[0], owner, steps[1:]]

    def _steps(self) -> list[Any] | None:
        steps: list[Any] = []
        while True:
            if self._take_text("."):
                step: Any = self._take(_NAME)
            elif self._take_text("["):
                step = self._bracket()
            else:
                return steps
            if step is None:
                return None
            steps.append(step)

    def _bracket(self) -> Any:
        step: Any
        quoted = self._take(_QUOTED_KEY)
        if quoted is not None:
            step = _unquoted(quoted)
        else:
            index = self._take(_INDEX)
            step = int(index) if index is not None else self.reference()
        return step if self._take_text("]") else None


def _unquoted(text: str) -> str | None:
    try:
        return str(json.loads(text))
    except json.JSONDecodeError:
        return None
