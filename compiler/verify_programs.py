"""Programs are sound: known instructions, jumps forward and in range, one value at the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

_UNARY = frozenset({"not", "neg", "len", "bool"})
_BINARY = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "in", "add", "sub", "mul", "div", "mod"})
_JUMPS = frozenset({"jf", "jt", "alt"})
_REFERENCES = frozenset({"var", "ctx", "out", "code", "event"})
_LENGTHS = {"lit": 2, "var": 4, "ctx": 3, "out": 2, "code": 1, "event": 2, "defined": 2}
_LENGTHS |= {"jf": 2, "jt": 2, "alt": 2, "arr": 2, "obj": 2, "cat": 2}
_LENGTHS |= dict.fromkeys(_UNARY | _BINARY, 1)


@dataclass(frozen=True, slots=True)
class Reference:
    """What a program refers to: a variable of an owner, or a task by key."""

    kind: Literal["variable", "task"]
    name: str
    owner: str | None = None


def check_program(program: Any) -> tuple[list[str], list[Reference]]:
    """Returns what is wrong with a program, and what it refers to."""
    if not isinstance(program, list) or not program:
        return ["it must be a list of instructions"], []
    checker = _Checker(program)
    return checker.problems(), checker.references


class _Checker:
    def __init__(self, program: list[Any]) -> None:
        self._program = program
        self._heights: dict[int, int] = {}
        self.references: list[Reference] = []

    def problems(self) -> list[str]:
        """Returns at most one problem: what follows a bad instruction would only echo it."""
        height = 0
        for place, instruction in enumerate(self._program):
            expected = self._heights.get(place, height)
            if expected != height:
                return [f"the ways to instruction {place} leave different stacks"]
            problem = self._shape(instruction)
            if problem is not None:
                return [f"instruction {place}: {problem}"]
            needed, left = _effect(instruction)
            if height < needed:
                return [f"instruction {place} needs {needed} values and finds {height}"]
            if instruction[0] in _JUMPS:
                problem = self._jump(place, instruction[1], height)
                if problem is not None:
                    return [problem]
            height += left - needed
        if self._heights.get(len(self._program), height) != height or height != 1:
            return [f"it leaves {height} values, not 1"]
        return []

    def _jump(self, place: int, distance: int, height: int) -> str | None:
        target = place + 1 + distance
        if distance < 1 or target > len(self._program):
            return f"instruction {place} jumps out of the program"
        if self._heights.setdefault(target, height) != height:
            return f"the ways to instruction {target} leave different stacks"
        return None

    def _shape(self, instruction: Any) -> str | None:
        if not isinstance(instruction, list) or not instruction:
            return "it must be a list that begins with a name"
        name = instruction[0]
        if not isinstance(name, str) or name not in _LENGTHS:
            return f"{name!r} is not known"
        if len(instruction) != _LENGTHS[name]:
            return f"{name} has {_LENGTHS[name] - 1} operands"
        if name in _REFERENCES:
            return self._reference(instruction)
        if name == "defined":
            return self._reference(instruction[1])
        return _operand(name, instruction)

    def _reference(self, instruction: Any) -> str | None:
        """Checks a reference and those that are its indexes, without recursion."""
        pending = [instruction]
        while pending:
            current = pending.pop()
            problem = self._one_reference(current)
            if problem is not None:
                return problem
            if current[0] != "code":
                pending.extend(step for step in current[-1] if isinstance(step, list))
        return None

    def _one_reference(self, current: Any) -> str | None:
        if not isinstance(current, list) or not current or current[0] not in _REFERENCES:
            return "a reference is wanted"
        name = current[0]
        if len(current) != _LENGTHS[name]:
            return f"{name} has {_LENGTHS[name] - 1} operands"
        if not all(isinstance(word, str) for word in current[1:-1]):
            return f"the names in {name} must be strings"
        if name == "code":
            return None
        steps = current[-1]
        if not isinstance(steps, list) or not all(_is_step(step) for step in steps):
            return "a step is a key, an index or a reference"
        self._note(current)
        return None

    def _note(self, current: list[Any]) -> None:
        if current[0] == "var":
            self.references.append(Reference("variable", current[1], current[2]))
        elif current[:2] == ["ctx", "task"] and current[2] and isinstance(current[2][0], str):
            self.references.append(Reference("task", current[2][0]))


def _is_step(step: Any) -> bool:
    if isinstance(step, bool):
        return False
    return isinstance(step, str | list) or (isinstance(step, int) and step >= 0)


def _operand(name: str, instruction: list[Any]) -> str | None:
    if name in _JUMPS or name in ("arr", "cat"):
        count = instruction[1]
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            return f"{name} takes a count"
    if name == "obj":
        keys = instruction[1]
        if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
            return "obj takes a list of keys"
        if len(set(keys)) != len(keys):
            return "obj has a key twice"
    return None


def _effect(instruction: list[Any]) -> tuple[int, int]:
    """Returns how many values an instruction takes and leaves when it does not jump."""
    name = instruction[0]
    if name in _UNARY:
        return 1, 1
    if name in _BINARY:
        return 2, 1
    if name in _JUMPS:
        return 1, 0
    if name in ("arr", "cat"):
        return instruction[1], 1
    if name == "obj":
        return len(instruction[1]), 1
    return 0, 1
