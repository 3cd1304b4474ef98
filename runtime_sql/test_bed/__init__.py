"""The test bed: workflows that ship with the runtime, and a run of each of them in a database.

Flow: `missing_file(folder)` names the first file that a folder of seeds lacks → `deploy_seeds` runs
the scripts → `run_examples` plays every instance context with `wf.sp_test_bed_run_workflow`. The
`.wf` files beside this module are the sources of the scripts in `pg/` and `mssql/`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from runtime_sql.failures import Failure
from runtime_sql.mssql_url import is_mssql

if TYPE_CHECKING:
    from runtime_sql.connection import RuntimeClient

SEED_SCRIPTS = {
    "flat_demo": "workflow_seed_examples.sql",
    "tree_demo": "workflow_tree_seed_example.sql",
    "two_groups": "wf_two_group_test_seed.sql",
    "mc_two_groups": "wf_mc_two_group_test_seed.sql",
}
"""The script of each workflow of the test bed, in the order of their deployment."""

CONTEXTS = "instance_context_examples"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleRun:
    """One run. `mismatch` says how it differs from what its example expects; null: it passed."""

    name: str
    run_id: int
    instance_id: int
    status: str
    task_count: int
    mismatch: str | None


_PG = Path(__file__).parent.parent / "pg"
_MSSQL = _PG.with_name("mssql")


def default_folder(url: str = "") -> Path:
    """Returns the folder of the seeds that ship with the runtime, for the database of a URL."""
    return _MSSQL if is_mssql(url) else _PG


def missing_file(folder: Path) -> str | None:
    """Returns the first file that a folder of seeds lacks, relative to it; None: it is whole."""
    for name in SEED_SCRIPTS.values():
        if not (folder / name).is_file():
            return name
    for name in SEED_SCRIPTS:
        if not _context(folder, name).is_file():
            return f"{CONTEXTS}/{name}.json"
    return None


def _context(folder: Path, name: str) -> Path:
    """The T-SQL tree plays the contexts of its twin."""
    return (_PG if folder == _MSSQL else folder) / CONTEXTS / f"{name}.json"


def deploy_seeds(client: RuntimeClient, folder: Path) -> Failure | None:
    """Runs the scripts of a whole folder of seeds; deploying them again changes nothing."""
    for name in SEED_SCRIPTS.values():
        failure = client.run_script((folder / name).read_text(encoding="utf-8"))
        if failure is not None:
            return failure
    return None


def run_examples(client: RuntimeClient, folder: Path) -> list[ExampleRun] | Failure:
    """Plays the instance contexts of a whole folder of seeds, one after the other.

    Raises:
      ValueError: a file is not JSON, or not {"workflow", "context", "script"}; it names the file.
    """
    runs = []
    for name in SEED_SCRIPTS:
        example = _read_example(_context(folder, name))
        run = client.run_test_bed(
            str(example["workflow"]), json.dumps(example["context"]), json.dumps(example["script"])
        )
        if not isinstance(run, tuple):
            return run
        run_id, instance_id, status, task_count, mismatch = run
        runs.append(
            ExampleRun(
                name=name,
                run_id=run_id,
                instance_id=instance_id,
                status=status,
                task_count=task_count,
                mismatch=mismatch,
            )
        )
    return runs


def _read_example(path: Path) -> dict[str, object]:
    try:
        example = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path}: not JSON: {error}") from error
    if not isinstance(example, dict) or set(example) != {"workflow", "context", "script"}:
        raise ValueError(f'{path}: not {{"workflow", "context", "script"}}')
    return example
