"""`wf show --graph`: an instance's graph with the state of each node."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from runtime_sql.operator_rows import GraphNode, NodeCount
from tests.cli.conftest import Wf
from tests.cli.scene import Scene
from wfsql.cli.instance_graph import counts_text, draw_instance

TEXT = """
    workflow order {
      input { kind: string }
      action first = t.do()
      foreach x in [1, 2, 3] parallel 2 { action each = t.do() }
      switch var.kind {
        case "a", "b" { action one = u.do() }
        default { wait_event seen on "parcel.seen" }
      }
      sequence tidy { sleep 90s } on_error { action mend = u.do() }
        finally { action sweep = u.do() }
    }
"""


@pytest.fixture
def begun(scene: Scene) -> Scene:
    """One of three iterations is done, one is in hand, one is ready."""
    scene.register("w1", "t", slots=3)
    scene.begin(TEXT, {"kind": "z"})
    scene.submit("w1", scene.take("w1")[0])
    first, _second = scene.take("w1", 2)
    scene.submit("w1", first)
    return scene


def test_the_tree_has_every_node_with_its_state(wf: Wf, begun: Scene) -> None:
    done = wf("show", "1", "--graph")
    assert done.code == 0
    assert done.out.splitlines() == [
        "workflow order 1 · RUNNING",
        "├─ action first = t.do · SUCCEEDED",
        "├─ foreach foreach_1 · RUNNING",
        "│  └─ action each = t.do · RUNNING 1, READY 1, SUCCEEDED 1",
        "├─ switch switch_1",
        '│  ├─ case "a", "b"',
        "│  │  └─ action one = u.do",
        "│  └─ default",
        '│     └─ wait_event seen on "parcel.seen"',
        "└─ sequence tidy",
        "   ├─ sleep tidy.sleep_1: 90s",
        "   ├─ on error",
        "   │  └─ action mend = u.do",
        "   └─ finally",
        "      └─ action sweep = u.do",
    ]


def test_the_svg_colours_what_was_reached(wf: Wf, begun: Scene, tmp_path: Path) -> None:
    done = wf("show", "1", "--graph", "out.svg")
    assert (done.code, done.out, done.err) == (0, "", "written to out.svg\n")
    root = ET.fromstring((tmp_path / "out.svg").read_text(encoding="utf-8"))
    classes = {
        (box.findtext("{*}title") or "").split(" · ")[0]: box.get("class", "").split()
        for box in root.iterfind("{*}rect[@class]")
        if box.find("{*}title") is not None
    }
    assert "SUCCEEDED" in classes["action first = t.do"]
    assert "RUNNING" in classes["action each = t.do"]
    assert classes["action one = u.do"] == ["box", "action"]


def test_an_id_after_graph_is_the_id(wf: Wf, begun: Scene) -> None:
    assert wf("show", "--graph", "1").out.startswith("workflow order 1 · RUNNING\n")


def test_the_graph_of_an_instance_that_is_not_there(wf: Wf, scene: Scene) -> None:
    assert wf("show", "9", "--graph").err.startswith("error: instance 9 is not known (20002)\n")


@pytest.mark.parametrize(
    ("found", "text"),
    [
        ({"FAILED": 1}, "FAILED"),
        ({"SUCCEEDED": 40}, "SUCCEEDED 40"),
        ({"SUCCEEDED": 2, "FAILED": 1, "CANCELLED": 3}, "FAILED 1, CANCELLED 3, SUCCEEDED 2"),
    ],
    ids=["one", "many", "kinds"],
)
def test_counts_are_told_worst_first(found: dict[str, int], text: str) -> None:
    assert counts_text(found) == text


def node(key: str, parent: str | None, kind: str = "SEQUENCE", action: str = "a.do") -> GraphNode:
    of_type = "SEQUENCE" if parent is None else "ACTION"
    edge = None if parent is None else kind
    return GraphNode(key, of_type, parent, edge, None, False, False, action, None, None)


def test_a_deep_graph_needs_no_recursion() -> None:
    nodes = [node("n0", None)]
    for depth in range(1, 5_000):
        nodes.append(
            GraphNode(
                f"n{depth}",
                "SEQUENCE",
                f"n{depth - 1}",
                "SEQUENCE",
                None,
                False,
                False,
                None,
                None,
                None,
            )
        )
    assert len(draw_instance("deep", "RUNNING", nodes, []).boxes) == 5_000


def test_names_are_made_harmless() -> None:
    nodes = [node("root", None), node("a\x1b[31m", "root", action="b\u202e")]
    picture = draw_instance("w", "RUNNING", nodes, [NodeCount("a\x1b[31m", "READY", 1)])
    assert picture.boxes[1].headline == "action a\\x1b[31m = b\\u202e"
    assert picture.boxes[1].state == "READY"
