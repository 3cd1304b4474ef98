"""`python -m benchmarks.engine`: what claim, submit and loops cost as tables and instances grow.

Flow: a fresh durable server → each question in a database of its own size → a table, and the JSON
beside it. Costs of one call are medians of several calls; ratios are of one run.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.engine.server import TOKEN, WORKER, Backend, Cost, fill, fresh_database
from benchmarks.measure import ROOT, machine, median

RESULT = ROOT / "benchmarks" / "results" / "engine.json"
CALLS = 21
ONE = "workflow one { action a = t.do() }"
LOOP = """workflow loop { var n : int = 0
  while var.n < 20000 max 20000 { action a = t.do(n: var.n) { set n = var.n + 1 } } }"""
WIDE = """workflow wide { input { xs : list<int> }
  foreach x in var.xs parallel { action a = t.do(x: var.x) } }"""


def main() -> int:
    options = _options()
    result: dict[str, Any] = {"machine": machine(), "calls": CALLS}
    with fresh_database() as (url, settings):
        result["settings"] = settings
        backend = Backend(url)
        for name, question in QUESTIONS.items():
            if not options.only or name in options.only:
                result[name] = question(backend, options)
                print(f"{name}: done", file=sys.stderr)
        result["settings_at_the_end"] = {
            "server_version": backend.execute("show server_version")[0][0]
        }
        backend.connection.close()
    print(_table(result))
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine", description=__doc__)
    parser.add_argument("--small", type=int, default=1_000, help="rows of the small tables")
    parser.add_argument("--large", type=int, default=1_000_000, help="rows of the large tables")
    parser.add_argument("--iterations", type=int, default=10_000)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--only", nargs="+", choices=sorted(QUESTIONS))
    parser.add_argument("--json", type=Path, default=RESULT)
    return parser.parse_args()


def _deep(backend: Backend, options: argparse.Namespace) -> dict[str, Any]:
    """512 composites within one another, and many nodes without an ACTION, end in one submit."""
    nested = "action a = t.do()"
    for _level in range(511):
        nested = f"sequence {{ {nested} }}"
    backend.deploy(f"workflow deep {{ {nested} }}")
    chain = "\n".join(f"set x{n} = {n}" for n in range(options.nodes))
    backend.deploy(f"workflow chain {{ action a = t.do()\n{chain} }}")
    found = {}
    for name in ("deep", "chain"):
        instance = backend.start(name, {})
        before = backend.cpu_seconds()
        backend.submit(*backend.claim())
        found[f"{name}_submit_cpu_seconds"] = round(backend.cpu_seconds() - before, 2)
        ((status,),) = backend.execute(
            "select status from wf.workflow_instance where workflow_instance_id = %s", instance
        )
        found[f"{name}_status"] = status
    return found


def _loop(backend: Backend, options: argparse.Namespace) -> dict[str, Any]:
    """One iteration of a WHILE, claim and submit, near its beginning and far on."""
    backend.deploy(LOOP)
    backend.start("loop", {})
    found: dict[str, Any] = {}
    done = 0
    for at in (10, options.iterations):
        while done < at:
            backend.submit(*backend.claim())
            done += 1
        costs = [_explained_step(backend) for _call in range(CALLS)]
        done += CALLS
        found[str(at)] = _middle([claim for claim, _ in costs], [submit for _, submit in costs])
    backend.execute(
        "select wf.sp_cancel_workflow_instance(max(workflow_instance_id)) from wf.workflow_instance"
    )
    return found


def _wide(backend: Backend, options: argparse.Namespace) -> dict[str, Any]:
    """A FOREACH over many items, activated by one start."""
    backend.deploy(WIDE)
    before = backend.cpu_seconds()
    instance = backend.start("wide", {"xs": list(range(options.items))})
    cpu = backend.cpu_seconds() - before
    backend.execute("select wf.sp_cancel_workflow_instance(%s)", instance)
    return {"items": options.items, "start_cpu_seconds": round(cpu, 2)}


def _tables(backend: Backend, options: argparse.Namespace) -> dict[str, Any]:
    """claim(1) and submit beside few and many READY tasks and ended executions."""
    backend.deploy(ONE)
    backend.start("one", {})
    found: dict[str, Any] = {}
    filled = 0
    for size in (options.small, options.large):
        fill(backend, "one", size - filled, size - filled)
        filled = size
        _explained_step(backend)  # plans are made once per session
        costs = [_explained_step(backend) for _call in range(CALLS)]
        found[str(size)] = _middle([claim for claim, _ in costs], [submit for _, submit in costs])
    return found


QUESTIONS: dict[str, Callable[[Backend, argparse.Namespace], dict[str, Any]]] = {
    "deep": _deep,
    "loop": _loop,
    "wide": _wide,
    "tables": _tables,
}


def _explained_step(backend: Backend) -> tuple[Cost, Cost]:
    """A claim and the submit of what it took, each explained; the task is found in the tables."""
    claim = backend.explained("select * from wf.sp_worker_request_task(%s, %s)", WORKER, TOKEN)
    ((execution, token),) = backend.execute(
        "select node_execution_id, lease_token from wf.task where worker_id = %s", WORKER
    )
    submit = backend.explained(
        "select * from wf.sp_worker_submit_result(%s, %s, %s, 0, '{}', %s)",
        execution,
        WORKER,
        TOKEN,
        token,
    )
    return claim, submit


def _middle(claims: list[Cost], submits: list[Cost]) -> dict[str, Any]:
    return {
        "claim": asdict(_median_cost(claims)),
        "submit": asdict(_median_cost(submits)),
        "all_claims": [asdict(cost) for cost in claims],
        "all_submits": [asdict(cost) for cost in submits],
    }


def _median_cost(costs: list[Cost]) -> Cost:
    return Cost(
        buffers=int(median([cost.buffers for cost in costs])),
        milliseconds=round(median([cost.milliseconds for cost in costs]), 3),
    )


def _table(result: dict[str, Any]) -> str:
    lines = []
    for name in ("tables", "loop"):
        if name not in result:
            continue
        (small, low), (large, high) = result[name].items()
        for call in ("claim", "submit"):
            one, other = low[call], high[call]
            lines.append(
                f"{name} {call}: {one['buffers']} buffers and {one['milliseconds']} ms at {small},"
                f" {other['buffers']} and {other['milliseconds']} ms at {large}:"
                f" {other['buffers'] / one['buffers']:.2f} and"
                f" {other['milliseconds'] / one['milliseconds']:.2f} times"
            )
    for name in ("wide", "deep"):
        if name in result:
            lines.append(f"{name}: {result[name]}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
