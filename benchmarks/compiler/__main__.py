"""`python -m benchmarks.compiler`: files of three sizes through four checkers, and a table.

Flow: make the files → install the other checkers → run all in turn, size by size → print the
table, write the JSON beside it; then the slow shapes. Every run is a new process.
"""

from __future__ import annotations

import argparse
import json
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.compiler import shapes, slow_shapes
from benchmarks.compiler.peers import Peers, cache_folder, install
from benchmarks.measure import ROOT, Command, Sample, as_data, in_turn, machine, median

OURS = "wf check"
RESULT = ROOT / "benchmarks" / "results" / "compiler.json"
MEGABYTE = 1_000_000


def main() -> int:
    options = _options()
    folder = cache_folder()
    peers = install(folder)
    settings = {"rounds": options.rounds, "timeout_seconds": options.timeout}
    result: dict[str, Any] = {
        "machine": machine(),
        "versions": peers.versions | {"lark": _lark_version()},
        "settings": settings,
        "sizes": {},
    }
    rows: list[tuple[str, ...]] = []
    measured: dict[int, dict[str, list[Sample]]] = {}
    for size in options.sizes:
        commands = _commands(_files(folder / "files", size), peers, folder)
        measured[size] = in_turn(commands, options.rounds, options.timeout)
        result["sizes"][str(size)] = as_data(measured[size])
        rows += _rows(size, measured[size])
        print(f"{size} nodes: done", file=sys.stderr)
    print(_table(rows))
    print(_growth(measured))
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    slow_shapes.main(folder / "slow_shapes", options.rounds, options.timeout)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compiler", description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 1_000, 10_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for one run")
    parser.add_argument("--json", type=Path, default=RESULT)
    return parser.parse_args()


def _files(folder: Path, size: int) -> dict[str, Path]:
    place = folder / str(size)
    place.mkdir(parents=True, exist_ok=True)
    texts = {
        "w.wf": shapes.wf_text(size),
        "w.actions.yaml": shapes.CATALOG,
        "w.wdl": shapes.wdl_text(size),
        "w.asl.json": shapes.asl_text(size),
    }
    for name, text in texts.items():
        (place / name).write_text(text, encoding="utf-8")
    return {name: place / name for name in texts}


def _commands(files: dict[str, Path], peers: Peers, folder: Path) -> list[Command]:
    wf = Path(sys.executable).with_name("wf")
    alone = Path(__file__).with_name("lark_alone.py")
    floor = (sys.executable, str(alone), str(files["w.wf"]), str(folder / "lark.cache"))
    commands = [
        Command(OURS, (str(wf), "check", str(files["w.wf"]))),
        Command("wf fmt --check", (str(wf), "fmt", "--check", str(files["w.wf"]))),
        Command("lark alone", floor),
    ]
    if peers.asl_validator is not None:
        asl = (str(peers.asl_validator), "--json-path", str(files["w.asl.json"]))
        commands.append(Command("asl-validator", asl))
    if peers.miniwdl is not None:
        wdl = (str(peers.miniwdl), "check", "--no-shellcheck", str(files["w.wdl"]))
        commands.append(Command("miniwdl check", wdl))
    return commands


def _rows(size: int, samples: dict[str, list[Sample]]) -> list[tuple[str, ...]]:
    ours = samples[OURS]
    return [(f"{size:,}", name, *_cells(runs, ours)) for name, runs in samples.items()]


def _cells(runs: list[Sample], ours: list[Sample]) -> tuple[str, ...]:
    if runs[0].timed_out:
        return (f"over {runs[0].wall_seconds:.0f}", *[""] * 6)
    wall, cpu = [s.wall_seconds for s in runs], [s.cpu_seconds for s in runs]
    peak = max(s.peak_bytes for s in runs) / MEGABYTE
    return (
        f"{median(wall):.2f}",
        f"{min(wall):.2f}–{max(wall):.2f}",
        f"{median(cpu):.2f}",
        f"{min(cpu):.2f}–{max(cpu):.2f}",
        f"{peak:.0f}",
        f"{median(wall) / median([s.wall_seconds for s in ours]):.2f}",
        f"{median(cpu) / median([s.cpu_seconds for s in ours]):.2f}",
    )


def _table(rows: list[tuple[str, ...]]) -> str:
    head = ("nodes", "command", "wall s", "range", "CPU s", "range", "MB", "× wall", "× CPU")
    lines = [head, ("---:", "---", *["---:"] * 7), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def _growth(measured: dict[int, dict[str, list[Sample]]]) -> str:
    """Says how the time of each command grows with the size; the start of a process is in it."""
    lines = []
    sizes = sorted(measured)
    for small, large in pairwise(sizes):
        for name, runs in measured[large].items():
            before = measured[small][name]
            if runs[0].timed_out or before[0].timed_out:
                continue
            times = median([s.cpu_seconds for s in runs]) / median([s.cpu_seconds for s in before])
            lines.append(f"{name}: {large // small} times the nodes, {times:.1f} times the CPU")
    return "\n".join(lines)


def _lark_version() -> str:
    from importlib.metadata import version

    return version("lark")


if __name__ == "__main__":
    sys.exit(main())
