"""`wf show`: one instance and its nodes, as a list or as its graph."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from runtime_sql.connection import ExecutionRow, Instance, RuntimeClient
from wfsql.cli.database import INSTANCES_HINT, good, open_client
from wfsql.cli.main import wrong_use
from wfsql.cli.operating import operator_parser, parse_one_id, watch_seconds
from wfsql.cli.output import Crop, say, write, write_json, write_lines, write_table
from wfsql.cli.views import (
    ENDED,
    instance_json,
    node_json,
    say_outcome,
    took_ms,
    write_instances,
)
from wfsql.cli.watching import show

if TYPE_CHECKING:
    from compiler.picture.model import Picture

_CROPS = {
    "WORKER": Crop(8, keep="ends"),
    "ACTION": Crop(10, keep="ends"),
    "PATH": Crop(20, keep="end"),
}


def run(arguments: Sequence[str]) -> int:
    """Shows an instance once, or again and again."""
    parser = operator_parser(
        "show",
        "ID",
        "Show one instance: its state, its output or error, and every node it has\nreached.",
        "wf show 17\n          wf show 17 --graph\n          wf show 17 --graph order.svg",
        watch=True,
    )
    parser.add_argument(
        "--graph",
        nargs="?",
        const="",
        metavar="FILE.svg",
        help="Draw its graph with the state of each node: as a tree, or into an SVG file.",
    )
    options = parse_one_id(parser, arguments)
    if options.graph and not options.graph.endswith(".svg"):
        raise wrong_use(f"--graph {options.graph}: not the name of an SVG file", "end it in .svg")
    if options.graph is not None and options.json:
        raise wrong_use("--graph and --json exclude each other", "leave one of them out")
    seconds = watch_seconds(options)
    client = open_client(options.url)
    return show(lambda: _draw(client, options), seconds)


def _draw(client: RuntimeClient, options: argparse.Namespace) -> bool:
    found = good(client.get_instance(options.id), INSTANCES_HINT)
    if options.graph is not None:
        _write_graph(client, found, options.graph)
        return found.status not in ENDED
    rows = good(client.executions(options.id))
    names = good(client.output_names(options.id))
    if options.json:
        nodes = [node_json(row) for row in rows]
        write_json(instance_json(found, names) | {"nodes": nodes})
        return found.status not in ENDED
    write_instances([found])
    write("")
    columns = ("PATH", "TYPE", "STATUS", "CODE", "TOOK", "ACTION", "WORKER")
    write_table(columns, [_cells(row) for row in rows], _CROPS)
    if found.ended_at is not None:
        say_outcome(found, names)
    return found.status not in ENDED


def _write_graph(client: RuntimeClient, found: Instance, file: str) -> None:
    from wfsql.cli.instance_graph import draw_instance

    nodes = good(client.graph(found.instance_id))
    counts = good(client.node_counts(found.instance_id))
    name = f"{found.workflow} {found.instance_id}"
    picture = draw_instance(name, found.status, nodes, counts)
    if file:
        _save_svg(picture, file)
    else:
        from compiler.picture.tree import render_tree

        write_lines(render_tree(picture).splitlines())


def _save_svg(picture: Picture, file: str) -> None:
    from compiler.picture.svg import render_svg
    from wfsql.cli.files import save

    save(file, render_svg(picture), inputs=())
    say(f"written to {file}")


def _cells(row: ExecutionRow) -> tuple[str, ...]:
    took = took_ms(row)
    code = row.engine_error_code if row.result_code is None else row.result_code
    return (
        row.path,
        row.type,
        row.status,
        "" if code is None else str(code),
        "" if took is None else f"{took} ms",
        row.action or "",
        row.worker_id or "",
    )
