"""Loading handlers and turning what they do into outcomes."""

from __future__ import annotations

import asyncio
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from local_runner.handlers import (
    HandlerError,
    Handlers,
    Outcome,
    Result,
    TaskContext,
    action,
    load_handlers,
)

CONTEXT = TaskContext("w/a", 1, "the-instance")


def call(function: Any, input: Any = None) -> Outcome:
    return Handlers.from_functions({"do": function}).invoke("do", input or {}, CONTEXT)


def raising(error: BaseException) -> Any:
    def handler() -> None:
        raise error

    return handler


def test_a_handler_gets_the_input_as_keyword_arguments() -> None:
    assert call(lambda a, b: [b, a], {"a": 1, "b": Decimal("1.50")}).output == [Decimal("1.50"), 1]


def test_what_a_handler_returns_is_the_output_with_code_0() -> None:
    assert call(lambda: {"x": (1, 2.5)}) == Outcome(0, {"x": [1, Decimal("2.5")]}, None)


def test_a_result_carries_its_code_and_message() -> None:
    assert call(lambda: Result(-7, {"x": 1}, "why")) == Outcome(-7, {"x": 1}, "why")


def test_an_exception_is_code_minus_one() -> None:
    outcome = call(raising(ValueError("bad sku")))
    assert (outcome.code, outcome.message) == (-1, "ValueError: bad sku")


def test_an_exception_may_bring_its_result_code() -> None:
    class OutOfStock(Exception):
        result_code = -42

    assert call(raising(OutOfStock("no bolts"))).code == -42


@pytest.mark.parametrize("code", [0, 7, -(2**31) - 1, "-1", None, True])
def test_an_exception_never_succeeds(code: Any) -> None:
    error = ValueError("x")
    error.result_code = code  # type: ignore[attr-defined]
    assert call(raising(error)).code == -1


def test_the_output_of_an_exception_is_where_it_was_raised() -> None:
    def outer() -> None:
        raising(ValueError("bad sku"))()

    outcome = call(outer)
    assert isinstance(outcome.output, dict)
    lines = outcome.output["traceback"]
    assert [line.split(":")[0] for line in lines] == ["test_handlers.py"] * 2
    assert lines[-1].endswith(" in handler: raise error")


def test_a_long_message_is_cut() -> None:
    message = call(raising(ValueError("x" * 20_000))).message
    assert message is not None
    assert len(message) == 10_001
    assert message.endswith("x…")


def test_an_async_handler_is_cancelled_when_nobody_wants_its_result() -> None:
    seen: list[str] = []

    async def handler() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    context = TaskContext("w/k", 1, "1")
    context.cancelled.set()
    outcome = Handlers.from_functions({"a": handler}).invoke("a", {}, context)
    assert (outcome.code, outcome.message) == (-1, "CancelledError")
    assert seen == ["cancelled"]


def test_an_exception_without_text_is_named() -> None:
    assert call(raising(KeyError())).message == "KeyError"


def test_an_exit_is_a_failure_of_the_action_only() -> None:
    outcome = call(raising(SystemExit(3)))
    assert (outcome.code, outcome.message) == (-1, "SystemExit: 3")


def test_an_unexpected_argument_is_a_failure() -> None:
    outcome = call(lambda: None, {"sku": 1})
    assert outcome.code == -1
    assert outcome.message is not None
    assert "unexpected keyword argument 'sku'" in outcome.message


@pytest.mark.parametrize("output", [float("nan"), "\x00", "\ud800", object(), {1: 2}, {"a": {3}}])
def test_an_output_that_cannot_be_stored_is_a_failure(output: Any) -> None:
    outcome = call(lambda: output)
    assert (outcome.code, outcome.output) == (-1, None)
    assert outcome.message is not None
    assert outcome.message.startswith("the output cannot be stored: ")


@pytest.mark.parametrize("code", [True, "0", 1.0, 2**31, None])
def test_a_result_code_must_be_a_small_integer(code: Any) -> None:
    outcome = call(lambda: Result(code))
    assert (outcome.code, outcome.message) == (
        -1,
        f"the result code {code!r} is not a 32-bit integer",
    )


def test_a_message_is_made_storable() -> None:
    assert call(raising(ValueError("a\x00b\ud800"))).message == "ValueError: a\ufffdb\ufffd"


def test_a_handler_may_change_what_it_gets() -> None:
    given = {"items": [1, {"x": 2}]}

    def handler(items: list[Any]) -> None:
        items[1]["x"] = 3
        items.clear()

    assert call(handler, given).code == 0
    assert given == {"items": [1, {"x": 2}]}


def test_a_first_parameter_annotated_as_context_gets_it() -> None:
    def handler(task: TaskContext, n: int) -> Any:
        return [task.path, task.attempt, task.instance_id, task.cancelled.is_set(), n]

    assert call(handler, {"n": 5}).output == ["w/a", 1, "the-instance", False, 5]


def test_missing_names_are_sorted() -> None:
    handlers = Handlers.from_functions({"b": len})
    assert handlers.missing(["c", "b", "a", "c"]) == ("a", "c")


def test_the_decorator_leaves_the_function_as_it_is() -> None:
    @action("x.one")
    @action("x.two")
    def double(n: int) -> int:
        return 2 * n

    assert double(4) == 8


MODULE = """
from local_runner.handlers import action, TaskContext

@action("x.one")
@action("x.two")
def one(context: "TaskContext", n):
    return [context.path, n]

def not_marked():
    pass
"""


def write(folder: Path, text: str, name: str = "work.py") -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def error_of(reference: str) -> str:
    loaded = load_handlers(reference)
    assert isinstance(loaded, HandlerError)
    return loaded.message


@pytest.fixture(autouse=True)
def _own_import_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))


def test_load_from_a_file(tmp_path: Path) -> None:
    loaded = load_handlers(write(tmp_path, MODULE))
    assert isinstance(loaded, Handlers)
    assert loaded.names == ("x.one", "x.two")
    assert loaded.invoke("x.two", {"n": 1}, CONTEXT).output == ["w/a", 1]


def test_load_by_dotted_name_from_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "some_package").mkdir()
    write(tmp_path / "some_package", MODULE, "some_handlers.py")
    monkeypatch.chdir(tmp_path)
    loaded = load_handlers("some_package.some_handlers")
    assert isinstance(loaded, Handlers)
    assert loaded.names == ("x.one", "x.two")


def test_a_file_may_import_its_neighbour(tmp_path: Path) -> None:
    write(tmp_path, MODULE, "neighbour_of_work.py")
    assert isinstance(
        load_handlers(write(tmp_path, "from neighbour_of_work import one\n")), Handlers
    )


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    path = str(tmp_path / "gone.py")
    assert error_of(path) == f"{path}: no such file"


def test_a_module_that_is_not_there() -> None:
    expected = "gone_module.x: no such module; give its dotted name or a path to a .py file"
    assert error_of("gone_module.x") == expected


def test_a_module_whose_import_is_not_there(tmp_path: Path) -> None:
    path = write(tmp_path, "\nimport gone_module\n")
    expected = f"{path}: ModuleNotFoundError: No module named 'gone_module' ({path}:2)"
    assert error_of(path) == expected


def test_a_module_that_does_not_parse(tmp_path: Path) -> None:
    path = write(tmp_path, "x = 1\ndef :\n")
    message = error_of(path)
    assert message.startswith(f"{path}: SyntaxError: ")
    assert message.endswith(f"({path}:2)")


def test_a_module_without_handlers(tmp_path: Path) -> None:
    path = write(tmp_path, "x = 1\n")
    assert error_of(path) == f"{path}: no function is marked with @action"


def test_two_handlers_of_one_action(tmp_path: Path) -> None:
    text = (
        "from local_runner.handlers import action\n"
        "@action('x')\ndef a(): pass\n@action('x')\ndef b(): pass\n"
    )
    path = write(tmp_path, text)
    assert error_of(path) == f"{path}: action 'x' has two handlers"
