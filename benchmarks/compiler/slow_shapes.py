"""Texts of 100 kB, each of one thing again and again: what a checker is slow with, if anything.

`python -m benchmarks.compiler.slow_shapes` checks each in a new process and prints the seconds per
100 kB. `SHAPES` is name → text; the catalog of `shapes.py` stands beside them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.compiler import shapes
from benchmarks.measure import ROOT, Command, machine, median, run_once

SIZE = 100_000
RESULT = ROOT / "benchmarks" / "results" / "slow_shapes.json"
_HEAD = "workflow w {\n"


def repeated(item: Callable[[int], str], head: str = _HEAD, tail: str = "}\n") -> str:
    """Returns `head`, then items 0, 1, 2 … as long as there is room, then `tail`."""
    parts, length, number = [head], len(head) + len(tail), 0
    while length + len(part := item(number)) <= SIZE:
        parts.append(part)
        length += len(part)
        number += 1
    return "".join([*parts, tail])


def _sets(value: str, variables: str) -> str:
    return repeated(lambda _: f"set x = {value}\n", _HEAD + variables)


def _wide(fields: int, more: str = "") -> str:
    return "{ " + ", ".join(f"f{number} : int" for number in range(fields)) + more + " }"


def _enum(count: int) -> str:
    return " | ".join(f'"v{number}"' for number in range(count))


def _behind(head: str, item: Callable[[int], str], tail: str = "}\n") -> str:
    return repeated(item, head, tail)


def _ifs_in_ifs(_number: int) -> str:
    return "if true { " * 200 + "set a = 1" + " }" * 200 + "\n"


_INT = "var x : int = 0\n"
SHAPES: dict[str, Callable[[], str]] = {
    "one long string": lambda: f'{_HEAD}var x : string = "{"a" * 99_900}"\n}}\n',
    "placeholders in a string": lambda: _behind(
        f'{_HEAD}var a : int = 1\nvar x : string = "', lambda _: "${var.a}", '"\n}\n'
    ),
    "strings with a placeholder": lambda: _behind(
        f"{_HEAD}var a : int = 1\nvar x : any = [", lambda _: '"${var.a}", ', '""]\n}\n'
    ),
    "numbers in a list": lambda: _behind(
        f"{_HEAD}var x : list<int> = [", lambda n: f"{n % 10}, ", "1]\n}\n"
    ),
    "an object of many keys": lambda: _behind(
        f"{_HEAD}var x : any = {{", lambda n: f"k{n}: {n}, ", "z: 1 }\n}\n"
    ),
    "parentheses, 400 deep": lambda: _sets("(" * 400 + "1" + ")" * 400, _INT),
    "sums of 400 numbers": lambda: _sets(" + ".join(["1"] * 400), _INT),
    "minus signs": lambda: _sets("- " * 200 + "1", _INT),
    "100 comparisons and-ed": lambda: _sets(
        " and ".join(["var.y == 1"] * 100), "var x : bool = true\nvar y : int = 0\n"
    ),
    "100 references, each the ?? of one": lambda: _sets(
        " ?? ".join(["var.o"] * 100), "input { o : int? }\nvar x : int = 0\n"
    ),
    "actions": lambda: repeated(lambda n: f"action a{n} = t.do(x: 1)\n"),
    "actions that nobody knows": lambda: repeated(lambda n: f"action a{n} = t.doo(x: 1)\n"),
    "one argument again and again": lambda: _behind(
        f"{_HEAD}action a = t.do(", lambda _: "x: 1, ", "x: 1)\n}\n"
    ),
    "each action reads the one before": lambda: _behind(
        f"{_HEAD}action a0 = t.do(x: 1)\n",
        lambda n: f"action a{n + 1} = t.do(x: ctx.task.a{n}.output.v)\n",
    ),
    "comments": lambda: repeated(lambda n: f"# comment {n}\n"),
    "an alias of an alias …": lambda: _behind(
        "type T0 = int\n", lambda n: f"type T{n + 1} = T{n}\n", f"{_HEAD}}}\n"
    ),
    "aliases nested too deep": lambda: _behind(
        "type T0 = { a : int }\n",
        lambda n: f"type T{n + 1} = {{ a : T{n}, b : T{n} }}\n",
        f"{_HEAD}}}\n",
    ),
    "users of a wide type": lambda: _behind(
        f"type Big = {_wide(600)}\n", lambda n: f"type B{n} = {{ a : Big }}\n", f"{_HEAD}}}\n"
    ),
    "users of a wide type with a fault": lambda: _behind(
        f"type Big = {_wide(600, ', g : nope')}\n",
        lambda n: f"type B{n} = {{ a : Big }}\n",
        f"{_HEAD}}}\n",
    ),
    "types that nobody knows": lambda: repeated(
        lambda n: f"type T{n} = {{ a : U{n} }}\n", "", f"{_HEAD}}}\n"
    ),
    "workflows beside types": lambda: _behind(
        "".join(f"type T{n} = {{ a : int }}\n" for n in range(2_000)),
        lambda n: f"workflow w{n} {{ }}\n",
        "",
    ),
    "an enum and words that are not in it": lambda: _behind(
        f"{_HEAD}var l : list<{_enum(4_800)}> = [\n", lambda n: f'"x{n}", ', '"v1"]\n}\n'
    ),
    "references to a wide type": lambda: _behind(
        f"{_HEAD}input {{ x : {_wide(900)} }}\nvar l : any = [", lambda _: "var.x, ", "1]\n}\n"
    ),
    "fields that a wide type has not": lambda: _behind(
        f"{_HEAD}input {{ x : {_wide(900)} }}\n", lambda n: f"set z = var.x.g{n}\n"
    ),
    "names that nobody knows": lambda: repeated(lambda n: f"set z{n} = var.q{n}\n"),
    "unknown names beside 20": lambda: _behind(
        _HEAD + "".join(f"var abd{n} : int = 0\n" for n in range(20)),
        lambda n: f"set z = var.abc{n}\n",
    ),
    "long unknown names beside 500": lambda: _behind(
        _HEAD + "".join(f"var a{'b' * 80}{n} : int = 0\n" for n in range(500)),
        lambda n: f"set z = var.a{'b' * 80}c{n}\n",
    ),
    "names in other scripts": lambda: repeated(lambda n: f"set näme{n} = 1\n"),
    "ifs over what may be null": lambda: _behind(
        f"{_HEAD}input {{ o : {{ a : int }}? }}\nvar z : int = 0\noutput {{ z = var.z }}\n",
        lambda n: f"if var.o.a == {n} {{ set z = {n} }}\n",
    ),
    "ifs in ifs, 200 deep": lambda: repeated(_ifs_in_ifs),
    "loops": lambda: _behind(
        f"{_HEAD}var n : int = 0\n", lambda _: "while var.n < 3 max 5 { set n = var.n + 1 }\n"
    ),
    "a switch of many cases": lambda: _behind(
        f"{_HEAD}var s : int = 0\nswitch var.s {{\n",
        lambda n: f"case {n} {{ set a = 1 }}\n",
        "default { }\n}\n}\n",
    ),
    "a parallel of many branches": lambda: _behind(
        f"{_HEAD}parallel {{\n", lambda n: f"set a{n} = 1\n", "}\n}\n"
    ),
    "imports of nothing": lambda: repeated(lambda n: f'import "./x{n}.wf"\n', "", f"{_HEAD}}}\n"),
    "a syntax error a line": lambda: repeated(lambda n: f"set a{n} 1\n"),
    "elif again and again": lambda: _behind(
        f"{_HEAD}if true {{ set a = 1 }}\n", lambda _: "elif true { set a = 1 }\n"
    ),
    "braces that nobody closes": lambda: repeated(lambda _: "if true {\n", tail=""),
    "quotes": lambda: f"{_HEAD}" + '"' * 99_900 + "\n}\n",
    "commas": lambda: f"{_HEAD}var x : any = [{',' * 99_900}]\n}}\n",
}


def measured(folder: Path, rounds: int, timeout: float) -> dict[str, float]:
    """Checks every shape in new processes; returns the median CPU seconds, start included."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "w.actions.yaml").write_text(shapes.CATALOG, encoding="utf-8")
    wf = Path(sys.executable).with_name("wf")
    seconds: dict[str, float] = {}
    for number, (name, text) in enumerate(SHAPES.items()):
        path = folder / f"shape_{number}.wf"
        path.write_text(text(), encoding="utf-8")
        # Some of these are right and most are wrong: either is an answer.
        command = Command(name, (str(wf), "check", str(path)), expected=(0, 1))
        samples = [run_once(command, timeout) for _ in range(rounds)]
        seconds[name] = round(median([sample.cpu_seconds for sample in samples]), 3)
    return seconds


def table(seconds: dict[str, float]) -> str:
    lines = ["| 100 kB of | CPU s |", "| --- | ---: |"]
    slowest_first = sorted(seconds.items(), key=lambda pair: -pair[1])
    return "\n".join([*lines, *(f"| {name} | {value:.2f} |" for name, value in slowest_first)])


def main(folder: Path, rounds: int = 3, timeout: float = 60.0) -> None:
    """Prints the table and writes the result."""
    seconds = measured(folder, rounds, timeout)
    print(table(seconds))
    result = {"machine": machine(), "rounds": rounds, "cpu_seconds": seconds}
    RESULT.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    from benchmarks.compiler.peers import cache_folder

    main(cache_folder() / "slow_shapes")
