"""Programs: made ready once (`compile_program`), then evaluated as often as needed (`evaluate`).

`["var", "n", "root", []], ["lit", 1], ["add"]`  becomes  a `Program`: a tuple of (operation,
argument) pairs with references resolved to `Reference` objects. Its first evaluation is one loop
over a stack; a program that comes back is made into nested functions, which take a third of the
time. The meaning of the instructions stands in `compiler/spec.py`, that of the operators in the
semantics §3. Errors are values: `evaluate` returns an `EngineError` instead of raising.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from local_runner.functions import Code, Run, function_of
from local_runner.operators import BINARY, UNARY, join
from local_runner.references import (
    NO_NAMES,
    Reader,
    compile_reference,
    read,
    read_or_missing,
)
from local_runner.values import MISSING, EngineError, JsonValue, storable_problem, truth


@dataclass(slots=True, eq=False)
class Program:
    """A program made ready; `constant` is its value when it is one literal.

    `run` is there from the second evaluation on, if the program can be made into a function.
    """

    code: Code
    constant: JsonValue = MISSING
    builds: bool = False
    run: Run | None = None
    was_run: bool = False


def compile_program(
    instructions: Sequence[Sequence[Any]], unset_is_null: frozenset[tuple[str, str]] = NO_NAMES
) -> Program:
    """Makes a program ready.

    Args:
      unset_is_null: (owner, name) of variables that read as null while they were never set; the
        workflow's `output` reads so (R16).
    """
    if len(instructions) == 1 and instructions[0][0] == "lit":
        value = instructions[0][1]
        return Program((("lit", value),), value)
    code: list[tuple[str, Any]] = []
    for position, instruction in enumerate(instructions):
        operation = instruction[0]
        following = instructions[position + 1][0] if position + 1 < len(instructions) else ""
        match operation:
            case "var" | "ctx" | "out" | "code" | "event":
                reference = compile_reference(instruction, unset_is_null)
                code.append(("ref_or_missing" if following == "alt" else "ref", reference))
            case "defined":
                code.append(("defined", compile_reference(instruction[1])))
            case "lit" | "jf" | "jt" | "alt" | "arr" | "obj" | "cat":
                code.append((operation, instruction[1]))
            case "fault":
                code.append(("fault", EngineError(instruction[1], instruction[2])))
            case _:
                code.append(_operator(operation))
    # Only arrays and objects can nest deeper than what they are built from.
    builds = any(operation in ("arr", "obj") for operation, _argument in code)
    return Program(tuple(code), builds=builds)


def _operator(operation: str) -> tuple[str, Any]:
    if operation in UNARY:
        return ("unary", UNARY[operation])
    return ("binary", BINARY[operation])


def evaluate(program: Program, reader: Reader) -> JsonValue:
    """Runs a program and returns its value, or an `EngineError`."""
    run = program.run
    if run is not None:
        return run(reader)
    if program.constant is not MISSING:
        return program.constant
    if program.was_run:
        program.run = function_of(program.code, checks_size=program.builds)
    program.was_run = True
    return interpret(program, reader)


def interpret(program: Program, reader: Reader) -> JsonValue:
    """Runs a program step by step, whatever its shape and depth."""
    code = program.code
    stack: list[JsonValue] = []
    position, end = 0, len(code)
    while position < end:
        operation, argument = code[position]
        position += 1
        if operation == "ref":
            value = read(argument, reader)
        elif operation == "lit":
            value = argument
        elif operation == "binary":
            right = stack.pop()
            value = argument(stack.pop(), right)
        elif operation == "unary":
            value = argument(stack.pop())
        elif operation in ("jf", "jt"):
            value = truth(stack.pop())
            if type(value) is bool:
                if value is (operation == "jf"):
                    continue
                position += argument
        elif operation == "ref_or_missing":
            value = read_or_missing(argument, reader)
        elif operation == "alt":
            value = stack.pop()
            if value is MISSING or value is None:
                continue
            position += argument
        elif operation == "defined":
            value = read_or_missing(argument, reader)
            if type(value) is not EngineError:
                value = value is not MISSING
        elif operation == "fault":
            value = argument
        else:
            value = _gather(operation, argument, stack)
        if type(value) is EngineError:
            return value
        stack.append(value)
    if program.builds:
        problem = storable_problem(stack[-1])
        if problem is not None:
            return problem
    return stack[-1]


def _gather(operation: str, argument: Any, stack: list[JsonValue]) -> JsonValue:
    """Takes the operands of `arr`, `obj` or `cat` off the stack and joins them."""
    count = len(argument) if operation == "obj" else argument
    start = len(stack) - count
    values = stack[start:]
    del stack[start:]
    if operation == "arr":
        return values
    if operation == "obj":
        return dict(zip(argument, values, strict=True))
    return join(values)
