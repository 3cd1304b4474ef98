"""The scripted results of one case: which one a visit gets, and which were never used.

A script by path goes before one by key. A list is used up by attempts, then visits, and its last
entry does not repeat; a single result stands for every visit (R29). In an output `${input.…}` is a
part of the action's input and keeps its type when it is all of the string; `$${` is `${`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compiler import json_values
from wfsql.testing.cases import Script, ScriptedResult
from wfsql.testing.graph_index import GraphIndex, Place

if TYPE_CHECKING:
    from decimal import Decimal

_PLACEHOLDER = re.compile(r"\$\$\{|\$\{([^}]*)\}")
_STEP = re.compile(r"\.([A-Za-z_][A-Za-z0-9_]*)|\[([0-9]+)\]")
_ABSENT = object()


@dataclass(frozen=True, slots=True)
class Answer:
    """What a scripted action answers."""

    code: int
    output: Any
    message: str | None
    takes_ms: int


class PlaceholderProblem(Exception):
    """A placeholder of an output finds nothing, or no text, in the action's input."""

    def __init__(self, message: str, result: ScriptedResult) -> None:
        super().__init__(message)
        self.message = message
        self.result = result


class Scripts:
    """The scripts of a case that was found to fit its workflow."""

    def __init__(self, scripts: tuple[Script, ...], index: GraphIndex) -> None:
        self._root = index.root
        self._by_place: dict[Place, Script] = {}
        for script in scripts:
            place = index.place(script.place)
            if place is not None:
                self._by_place[place] = script
        self._used = dict.fromkeys(self._by_place, 0)

    def take(self, node_key: str, path: str, given: Any) -> Answer | None:
        """Returns the next result for a visit, or None when no script has one.

        Raises:
          PlaceholderProblem: its output cannot be made from this input.
        """
        place = self._find(node_key, path)
        if place is None:
            return None
        script = self._by_place[place]
        used = self._used[place]
        if script.is_list and used >= len(script.results):
            return None
        self._used[place] = used + 1
        result = script.results[used if script.is_list else 0]
        return Answer(
            result.code, _filled(result, result.output, given), result.message, result.takes_ms
        )

    def used_up(self, node_key: str, path: str) -> Script | None:
        """Returns the list that has no entry left for this visit, None when no script is there."""
        place = self._find(node_key, path)
        return None if place is None else self._by_place[place]

    def unused(self) -> list[tuple[Script, Place, int]]:
        """Returns the scripts that were not used, or not wholly, with how often they were."""
        return [
            (script, place, self._used[place])
            for place, script in self._by_place.items()
            if self._used[place] < (len(script.results) if script.is_list else 1)
        ]

    def _find(self, node_key: str, path: str) -> Place | None:
        row = {"path": path}
        for place in self._by_place:
            if place.path is not None and place.means(row, self._root):
                return place
        by_key = Place(node_key, None)
        return by_key if by_key in self._by_place else None


def _filled(result: ScriptedResult, value: Any, given: Any) -> Any:
    """Returns a value with its placeholders filled; its depth is bounded by the reader."""
    if isinstance(value, str):
        return _filled_text(result, value, given)
    if isinstance(value, list):
        return [_filled(result, item, given) for item in value]
    if isinstance(value, dict):
        return {key: _filled(result, item, given) for key, item in value.items()}
    return value


def _filled_text(result: ScriptedResult, text: str, given: Any) -> Any:
    whole = _PLACEHOLDER.fullmatch(text)
    if whole is not None and whole.group(1) is not None:
        return _look_up(result, whole.group(1), given)

    def fill(match: re.Match[str]) -> str:
        if match.group(1) is None:
            return "${"
        value = _look_up(result, match.group(1), given)
        return _as_text(result, match.group(), value)

    return _PLACEHOLDER.sub(fill, text)


def _as_text(result: ScriptedResult, written: str, value: str | int | Decimal | bool | Any) -> str:
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, dict | list):
        raise PlaceholderProblem(f"{written} is no text, number or boolean", result)
    return json_values.dumps(value)


def _look_up(result: ScriptedResult, reference: str, given: Any) -> Any:
    head, rest = reference[:5], reference[5:]
    if head != "input" or _STEP.sub("", rest) != "":
        raise PlaceholderProblem(
            f"${{{reference}}} is no reference such as ${{input.items[0]}}", result
        )
    value = given
    for match in _STEP.finditer(rest):
        value = _step(value, match)
        if value is _ABSENT:
            raise PlaceholderProblem(f"${{{reference}}} is not in the action's input", result)
    return value


def _step(value: Any, match: re.Match[str]) -> Any:
    name, number = match.group(1), match.group(2)
    if name is not None:
        return value.get(name, _ABSENT) if isinstance(value, dict) else _ABSENT
    position = int(number)
    if isinstance(value, list) and position < len(value):
        return value[position]
    return _ABSENT
