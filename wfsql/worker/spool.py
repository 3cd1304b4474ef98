"""Results on disk, from the end of their handler until they are accepted or refused for good.

A file is written and renamed into place when the handler has ended, which a kill of the worker
survives; it is forced to the disk when the first attempt to hand it in fails, from when on it has
to last. (A power failure in the moment between takes what it would have taken a moment earlier,
while the handler ran.) A worker that starts hands in first what it finds.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from compiler import json_values
from wfsql.worker.source import Finished
from wfsql.worker.state import sync_folder, write_whole

_FORMAT = 1


class Spool:
    """Belongs to one worker at one gateway (or database): `owner` names both.

    Files of another owner, and what is no result, are set aside and logged.
    """

    def __init__(self, folder: Path, owner: str, log: Callable[[str], None]) -> None:
        self._results = folder / "results"
        self._aside = folder / "aside"
        self._owner = owner
        self._log = log
        self._results.mkdir(mode=0o700, exist_ok=True)

    def put(self, done: Finished) -> None:
        """Keeps a result; when the disk refuses, it is logged and the result lives in memory."""
        try:
            write_whole(self._path(done), self._text(done), secured=False)
        except OSError as error:
            self._log(f"a result cannot be kept on disk: {error.strerror or error}")

    def secure(self, results: Iterable[Finished]) -> None:
        """Makes results last that could not be handed in."""
        try:
            for done in results:
                with open(self._path(done), "rb") as file:
                    os.fsync(file.fileno())
            sync_folder(self._results)
        except OSError as error:
            self._log(f"a result cannot be kept on disk: {error.strerror or error}")

    def remove(self, done: Finished) -> None:
        self._path(done).unlink(missing_ok=True)

    @property
    def size(self) -> int:
        """How many results are kept."""
        return sum(not path.name.startswith(".") for path in self._results.iterdir())

    def load(self) -> Sequence[Finished]:
        """Returns what is there, the oldest first."""
        found = []
        for path in sorted(self._results.iterdir(), key=lambda path: path.stat().st_mtime_ns):
            if path.name.startswith("."):  # half written when the worker was killed
                path.unlink(missing_ok=True)
                continue
            done = self._read(path)
            if done is not None:
                found.append(done)
        return found

    def _read(self, path: Path) -> Finished | None:
        """Returns the result in a file; one that is none, or not ours, is set aside."""
        try:
            return self._result(path)
        except (OSError, ValueError, TypeError, KeyError) as error:
            self._set_aside(path, str(error) or type(error).__name__)
            return None

    def _result(self, path: Path) -> Finished:
        row = json_values.read_stored(path.read_text(encoding="utf-8"))
        if row["format"] != _FORMAT:
            raise ValueError(f"it has format {row['format']}")
        if row["owner"] != self._owner:
            raise ValueError(f"it is of {row['owner']}")
        output = json_values.dumps(row["output"]) if "output" in row else None
        done = Finished(
            task_id=_integer(row["task_id"]),
            lease_token=_integer(row["lease_token"]),
            code=_integer(row["result_code"]),
            output_json=output,
            message=row["message"],
            name=str(row["name"]),
        )
        if path != self._path(done):
            raise ValueError("its name is not that of its task")
        return done

    def _set_aside(self, path: Path, why: str) -> None:
        self._log(f"{path} cannot be handed in: {why}; it is kept in {self._aside}")
        try:
            self._aside.mkdir(mode=0o700, exist_ok=True)
            os.replace(path, self._aside / path.name)
        except OSError as error:
            self._log(f"{path} cannot be moved: {error.strerror or error}")

    def _path(self, done: Finished) -> Path:
        return self._results / f"{done.task_id}-{done.lease_token}.json"

    def _text(self, done: Finished) -> str:
        head = json.dumps(
            {
                "format": _FORMAT,
                "owner": self._owner,
                "name": done.name,
                "task_id": done.task_id,
                "lease_token": done.lease_token,
                "result_code": done.code,
                "message": done.message,
            }
        )
        output = "" if done.output_json is None else f', "output": {done.output_json}'
        return f"{head[:-1]}{output}}}\n"


def _integer(value: object) -> int:
    if type(value) is not int:
        raise ValueError(f"{value!r} is not an integer")
    return value
