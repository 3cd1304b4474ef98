"""`wf trace`: the trace document of an instance, the same from every engine."""

from __future__ import annotations

from typing import Any

from compiler import json_values
from wfsql.cli.database import (
    INSTANCES_HINT,
    InstanceArgument,
    JsonOption,
    UrlOption,
    good,
    open_client,
)
from wfsql.cli.output import Crop, cropped, say, write_json, write_table

_OUTPUT_CELLS = 60
_CROPS = {"OUTPUT": Crop(12), "PATH": Crop(20, keep="end"), "TYPE": Crop(6)}


def command(
    instance_id: InstanceArgument,
    url: UrlOption = None,
    json: JsonOption = False,
) -> int:
    """Write what an instance did, node by node, without times, ids and worker names.

    --json writes the whole document, which is equal for equal runs in every engine.

    Example:  wf trace 17 --json > run.json
    """
    text = good(open_client(url).trace(instance_id), INSTANCES_HINT)
    document = json_values.read_stored(text)
    if json:
        write_json(document, indent=2)
        return 0
    say(f"{document['workflow']}: {document['status']}")
    columns = ("PATH", "TYPE", "STATUS", "CODE", "OUTPUT")
    write_table(columns, [_cells(node) for node in document["nodes"]], _CROPS)
    return 0


def _cells(node: dict[str, Any]) -> tuple[str, ...]:
    code = "" if node["result_code"] is None else str(node["result_code"])
    output = node["output"] if node["error"] is None else node["error"]["message"]
    text = "" if output is None else json_values.dumps(output)
    return (node["path"], node["type"], node["status"], code, cropped(text, _OUTPUT_CELLS))
