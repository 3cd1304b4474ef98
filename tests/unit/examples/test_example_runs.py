"""The examples and the README's workflow, compiled and run by the local runner."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from compiler.pipeline import compile_file
from local_runner.engine import LocalWorkflowEngine, RunResult, WaitEventUnsupported
from local_runner.handlers import Handlers, load_handlers

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples"
NAMES = ["order_delivery", "order_fulfilment", "sample_preparation"]
RUNS = [
    ("order_fulfilment", "happy"),
    ("order_fulfilment", "short"),
    ("order_fulfilment", "declined"),
    ("order_fulfilment", "heavy"),
    ("sample_preparation", "study"),
    ("sample_preparation", "fresh"),
    ("sample_preparation", "spoiled"),
]


def handlers_of(path: Path) -> Handlers:
    handlers = load_handlers(str(path))
    assert isinstance(handlers, Handlers)
    return handlers


def run(example: str, name: str, *, parallel_workers: int = 1) -> RunResult:
    folder = EXAMPLES / example
    (spec,) = compile_file(folder / f"{example}.wf").specs
    engine = LocalWorkflowEngine(
        spec, handlers_of(folder / "handlers.py"), parallel_workers=parallel_workers
    )
    context = json.loads((folder / "inputs" / f"{name}.json").read_text(encoding="utf-8"))
    result = engine.run(context)
    assert isinstance(result, RunResult)
    return result


def paths(result: RunResult, kind: str = "ACTION") -> list[str]:
    """Returns the paths of a trace's rows of one type, without the root."""
    rows: Any = result.trace["nodes"]
    return [row["path"].partition("/")[2] for row in rows if row["type"] == kind]


@pytest.mark.parametrize("example", NAMES)
def test_an_example_compiles_without_a_finding(example: str) -> None:
    result = compile_file(EXAMPLES / example / f"{example}.wf")
    assert [found.message for found in result.diagnostics] == []


@pytest.mark.parametrize("example", NAMES)
def test_an_example_has_a_handler_for_each_action_and_no_other(example: str) -> None:
    (spec,) = compile_file(EXAMPLES / example / f"{example}.wf").specs
    handlers = handlers_of(EXAMPLES / example / "handlers.py")
    assert set(handlers.names) == {action.name for action in spec.actions}


@pytest.mark.parametrize("example", NAMES)
def test_every_input_of_an_example_is_run_by_a_test(example: str) -> None:
    found = {path.stem for path in (EXAMPLES / example / "inputs").glob("*.json")}
    assert found == {name for other, name in RUNS if other == example} | (
        {"delivered"} if example == "order_delivery" else set()
    )


@pytest.mark.usefixtures("work")
def test_a_good_order_succeeds_at_the_second_card() -> None:
    result = run("order_fulfilment", "happy")
    assert (result.status, result.error) == ("SUCCEEDED", None)
    assert isinstance(result.output, dict)
    assert result.output["attempts"] == 2


@pytest.mark.usefixtures("work")
def test_a_good_order_collects_its_parcels_in_the_order_of_the_items() -> None:
    result = run("order_fulfilment", "happy", parallel_workers=4)
    assert isinstance(result.output, dict)
    labels = [parcel["label"] for parcel in result.output["parcels"]]
    assert labels == ["A2-0", "A2-1", "A2-2"]


@pytest.mark.usefixtures("work")
def test_a_good_order_visits_every_branch_it_should() -> None:
    assert paths(run("order_fulfilment", "happy")) == [
        "reserve",
        "while_1[0]/charge",
        "while_1[1]/charge",
        "foreach_1[0]/pack",
        "foreach_1[1]/pack",
        "foreach_1[2]/pack",
        "hand_over/ship/book",
        "hand_over/ship/ship.if_1/announce",
        "hand_over/ship/free",
        "hand_over/bill/invoice",
    ]


@pytest.mark.usefixtures("work")
def test_an_order_short_on_stock_fails_with_its_code() -> None:
    result = run("order_fulfilment", "short")
    assert result.error is not None
    assert (result.status, result.error.code, result.error.message) == (
        "FAILED",
        -20,
        "order A1 cannot be filled",
    )


@pytest.mark.usefixtures("work")
def test_an_order_short_on_stock_is_told_and_never_charged() -> None:
    assert paths(run("order_fulfilment", "short")) == ["reserve", "switch_1/tell"]


@pytest.mark.usefixtures("work")
def test_an_unpaid_order_fails_after_three_cards() -> None:
    result = run("order_fulfilment", "declined")
    assert result.error is not None
    assert (result.error.code, result.error.message) == (
        -21,
        "order A3 is not paid after 3 attempts",
    )
    assert paths(result)[1:4] == [f"while_1[{n}]/charge" for n in range(3)]


@pytest.mark.usefixtures("work")
def test_an_order_too_heavy_for_the_van_goes_on_without_a_courier() -> None:
    result = run("order_fulfilment", "heavy")
    assert isinstance(result.output, dict)
    assert (result.status, result.output["tracking"]) == ("SUCCEEDED", "to be booked")
    shipped = [path for path in paths(result) if path.startswith("hand_over/ship/")]
    assert shipped == ["hand_over/ship/book", "hand_over/ship/ask", "hand_over/ship/free"]


def test_the_local_runner_refuses_the_delivery_by_name() -> None:
    folder = EXAMPLES / "order_delivery"
    (spec,) = compile_file(folder / "order_delivery.wf").specs
    refusal = LocalWorkflowEngine(spec, handlers_of(folder / "handlers.py")).run({})
    assert isinstance(refusal, WaitEventUnsupported)
    assert refusal.keys == ("delivered",)


@pytest.mark.usefixtures("work")
def test_a_study_rejects_the_sample_that_cannot_be_saved() -> None:
    result = run("sample_preparation", "study")
    assert isinstance(result.output, dict)
    states = [library["state"] for library in result.output["libraries"]]
    assert (result.status, states) == ("SUCCEEDED", ["prepared"] * 4 + ["rejected"])
    assert result.output["outcome"] == "partial: 1 rejected"


@pytest.mark.usefixtures("work")
def test_a_worn_library_is_repaired_until_it_passes() -> None:
    result = run("sample_preparation", "study")
    assert isinstance(result.output, dict)
    repairs = {
        sample["sample"]: [library["repairs"] for library in sample["libraries"]]
        for sample in result.output["libraries"]
    }
    assert (repairs["gentian"], repairs["arnica"], repairs["larch"]) == (
        [0, 0, 0],
        [1, 1, 1],
        [4, 4, 4],
    )


@pytest.mark.usefixtures("work")
def test_the_gate_ends_with_a_measure_that_is_good() -> None:
    inside = "foreach_1[3]/foreach_2[0]/"
    visited = [p.removeprefix(inside) for p in paths(run("sample_preparation", "study"))]
    gate = [path for path in visited if path.startswith("gate[4]/")]
    assert gate == ["gate[4]/measure"]


@pytest.mark.usefixtures("work")
def test_a_fresh_study_is_complete() -> None:
    result = run("sample_preparation", "fresh")
    assert isinstance(result.output, dict)
    assert (result.output["outcome"], result.output["reads"]) == ("complete", 2 * 2 * 24)


@pytest.mark.usefixtures("work")
def test_a_spoiled_study_fails_with_its_code() -> None:
    result = run("sample_preparation", "spoiled")
    assert result.error is not None
    assert (result.status, result.error.code) == ("FAILED", -30)


@pytest.mark.usefixtures("work")
@pytest.mark.parametrize(("example", "name"), RUNS)
def test_a_run_leaves_the_same_trace_with_one_and_with_four_workers(
    example: str, name: str
) -> None:
    assert run(example, name).trace == run(example, name, parallel_workers=4).trace


@pytest.mark.parametrize(("example", "name"), RUNS)
def test_no_folder_of_this_machine_shows_in_a_trace(example: str, name: str, work: Path) -> None:
    assert str(work) not in json.dumps(run(example, name).trace, default=str)


def test_the_workflow_of_the_readme_runs(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    saved = re.findall(
        r"[Ss]ave this as\s+`([\w.]+)`:\n\n```\w+\n(.*?)^```$", text, re.DOTALL | re.MULTILINE
    )
    for name, content in saved:
        (tmp_path / name).write_text(content, encoding="utf-8")
    (context,) = re.findall(r"wf run words\.wf .*--context '(.*?)'", text)
    (expected,) = re.findall(r"The result is `(.*?)`", text)

    (spec,) = compile_file(tmp_path / "words.wf").specs
    result = LocalWorkflowEngine(spec, handlers_of(tmp_path / "words.py")).run(json.loads(context))
    assert isinstance(result, RunResult)
    assert result.output == json.loads(expected)
