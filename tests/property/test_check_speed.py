"""No text makes `wf check` slow: a second of CPU time for each 100 kB, findings shown included.

Limits are three times that, for slow machines; what these texts once took was ten times as much.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from compiler.pipeline import check_text
from dsl.render import render_text

SECONDS_PER_BYTE = 3.0 / 100_000


def duplicate_keys(indent: int, count: int) -> str:
    entries = ", ".join(f'"k":{number}' for number in range(count))
    return f"workflow w {{\n{' ' * indent}var x: any = {{{entries}}}\n}}\n"


def unknown_names() -> str:
    names = "".join(f"  var name_{k}_of_thing: int = 0\n" for k in range(1_500))
    reads = "".join(f"  set s_{k} = var.nmae_{k}_fothing\n" for k in range(1_500))
    return f"workflow w {{\n{names}{reads}}}\n"


TEXTS: dict[str, Callable[[], str]] = {
    "one long line with a finding every few letters": lambda: duplicate_keys(2, 12_000),
    "a line that begins with very much space": lambda: duplicate_keys(100_000, 500),
    "unknown names beside known ones": unknown_names,
    "an enum of very many values": lambda: (
        "workflow w { input { e: " + " | ".join(f'"v{k}"' for k in range(12_000)) + " } }\n"
    ),
    "a list of very many values": lambda: "workflow w { var x: any = [" + "1," * 50_000 + "] }\n",
    "very many branches": lambda: (
        "workflow w {\n  var y: int = 0\n" + "  if true { set y = 1 }\n" * 4_500 + "}\n"
    ),
    "branches in branches": lambda: (
        "workflow w {\n" + '  if true { if true { fail 1 "x" } }\n' * 2_800 + "}\n"
    ),
    "wide letters": lambda: (
        'workflow w {\n  var x: any = { "漢字": 1' + ', "漢字": 2' * 10_000 + " }\n}\n"
    ),
    "comments of another language": lambda: (
        "workflow w {\n" + "  set a = 1 // this isn't ours\n" * 3_000 + "}\n"
    ),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_check_takes_time_by_the_size_of_the_text(name: str) -> None:
    text = TEXTS[name]()
    check_text("workflow w { }", "warm.wf")
    began = time.process_time()
    render_text(check_text(text, "w.wf").diagnostics)
    taken = time.process_time() - began
    assert taken < SECONDS_PER_BYTE * len(text.encode())
