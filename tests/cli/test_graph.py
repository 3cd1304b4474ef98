"""`wf graph`: the command and what each picture looks like."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Wf = Callable[..., Any]

ORDER = """\
workflow order {
  description "One order."
  action reserve = stock.reserve() { timeout 30s }
  switch reserve {
    case ok, 1 { set left = out_of["x"] }
    default { fail -20 "no stock" }
  }
  foreach item, i in var.items parallel 4 {
    if big: var.item.qty > 3 {
      action pack = w.pack()
    }
    collect parcels = ctx.task.pack.output
  }
  parallel both limit 2 {
    sequence ship { sleep 5s }
    wait_event gone on "courier.gone" { timeout 3d { set late = true } }
  }
}
""".replace('out_of["x"]', "ctx.context.left")

TREE = """\
workflow order · One order.
├─ action reserve = stock.reserve · timeout 30s
├─ switch reserve
│  ├─ case ok, 1
│  │  └─ set left = ctx.context.left
│  └─ default
│     └─ fail -20 "no stock"
├─ foreach item, i in var.items · parallel 4 · collect parcels
│  └─ if big: var.item.qty > 3
│     └─ then
│        └─ action pack = w.pack
└─ parallel both · limit 2
   ├─ sequence ship
   │  └─ sleep 5s
   └─ wait_event gone on "courier.gone"
      └─ timeout 3d
         └─ set late = true
"""

MERMAID = """\
flowchart TD
  subgraph s0["workflow w"]
    n0["workflow w"]
    subgraph s1["while"]
      n1{"while var.a #60; 3"}
      n2["action b = c.d"]:::action
      n1_end((" "))
    end
    n0_end((" "))
  end
  n0 --> n1
  n1_end --> n0_end
  n1 --> n2
  n2 --> n1_end
  n1_end -.->|"next"| n1
"""

DOT = """\
  subgraph cluster_0 {
    label="workflow w"
    n0 [label="workflow w"]
    subgraph cluster_1 {
      label="while"
      n1 [label="while var.a < 3", shape=diamond, style=filled]
      n2 [label="action b = c.d", fillcolor="#dbeafe"]
      n1_end [shape=point, width=0.08, label=""]
    }
    n0_end [shape=point, width=0.08, label=""]
  }
  n0 -> n1
  n1_end -> n0_end
  n1 -> n2
  n2 -> n1_end
  n1_end -> n1 [label="next", style=dashed, constraint=false]
}
"""
LOOP = b"workflow w { while var.a < 3 { action b = c.d() } }"


def test_the_tree_shows_every_node_once_with_conditions_and_cases(wf: Wf, tmp_path: Path) -> None:
    (tmp_path / "order.wf").write_text(ORDER)
    done = wf("graph", "order.wf")
    assert (done.code, done.out, done.err) == (0, TREE, "")


def test_mermaid(wf: Wf) -> None:
    assert wf("graph", "-", "--format", "mermaid", stdin=LOOP).out.startswith(MERMAID)


def test_dot(wf: Wf) -> None:
    assert wf("graph", "-", "--format", "dot", stdin=LOOP).out.endswith(DOT)


def test_svg_is_written_to_a_file(wf: Wf, tmp_path: Path) -> None:
    done = wf("graph", "-", "--format", "svg", "-o", "w.svg", stdin=LOOP)
    assert (done.code, done.out) == (0, "")
    assert (tmp_path / "w.svg").read_text().startswith('<svg xmlns="http://www.w3.org/2000/svg"')


def test_several_workflows_are_several_trees(wf: Wf) -> None:
    done = wf("graph", "-", stdin=b"workflow a {} workflow b {}")
    assert done.out == "workflow a\n\nworkflow b\n"


def test_one_of_several_workflows(wf: Wf) -> None:
    done = wf("graph", "-", "--workflow", "b", stdin=b"workflow a {} workflow b {}")
    assert done.out == "workflow b\n"


@pytest.mark.parametrize("format_", ["dot", "mermaid", "svg"])
def test_a_picture_shows_one_workflow(wf: Wf, format_: str) -> None:
    done = wf("graph", "-", "--format", format_, stdin=b"workflow a {} workflow b {}")
    assert done.code == 2
    assert done.err.endswith("hint: give --workflow with one of: a, b\n")


def test_an_unknown_workflow_is_wrong_use(wf: Wf) -> None:
    done = wf("graph", "-", "--workflow", "c", stdin=b"workflow a {}")
    assert done.code == 2
    assert done.err == 'error: - has no workflow "c"\nhint: it has: a\n'


def test_a_file_of_types_has_nothing_to_draw(wf: Wf) -> None:
    assert wf("graph", "-", stdin=b"type T = int").code == 1


def test_a_file_that_does_not_parse_shows_why(wf: Wf) -> None:
    done = wf("graph", "-", stdin=b"workflow w { set a 1 }")
    assert done.code == 1
    assert done.err.startswith("<stdin>:1:19: error[WF001]: ")


def test_an_unfinished_workflow_can_be_drawn(wf: Wf) -> None:
    done = wf("graph", "-", stdin=b"workflow w { action a = not.known(x: var.nowhere) }")
    assert (done.code, done.out) == (0, "workflow w\n└─ action a = not.known\n")


def test_a_picture_too_large_for_mermaid_comes_with_a_warning(wf: Wf) -> None:
    actions = " ".join(f"action a{n} = b.c()" for n in range(600))
    done = wf("graph", "-", "--format", "mermaid", stdin=f"workflow w {{ {actions} }}".encode())
    assert done.code == 0
    assert done.err.startswith("warning: Mermaid refuses")
