"""Tasks straight from a database.

Each thread has a connection of its own, made when it first asks and made anew after it was lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from threading import Lock, local
from typing import TypeVar

from runtime_sql.connection import Claim, Lease, RuntimeClient, SubmitItem, Submitted, Task
from runtime_sql.failures import ApiError, DatabaseProblem, Failure, first_line
from runtime_sql.trace_ids import with_traces
from wfsql.worker.source import Finished, Trouble, trouble_of

T = TypeVar("T")
Connect = Callable[[], RuntimeClient | Failure]

# So many dead rows make claiming slow before autovacuum comes round.
_DEAD_ROWS_LIMIT = 20_000


class DatabaseSource:
    """A `TaskSource` over `RuntimeClient`s."""

    longest_wait_seconds = 0

    def __init__(
        self,
        connect: Connect,
        worker_id: str,
        token: str,
        lease_seconds: int,
        note: Callable[[str], object] = lambda _text: None,
    ) -> None:
        self._connect = connect
        self._note = note
        self._unrecorded: set[int] = set()
        self._worker_id = worker_id
        self._token = token
        self._lease_seconds = lease_seconds
        self._database_id: str | None = None
        self._threads = local()
        self._clients: list[RuntimeClient] = []
        self._lock = Lock()

    def request(self, max_tasks: int, wait_seconds: int) -> Claim | Trouble:
        claim = self._call(
            lambda client: client.request_tasks(
                self._worker_id, self._token, None, self._lease_seconds, max_tasks
            )
        )
        if isinstance(claim, Trouble) or not claim.tasks:
            return claim
        return replace(claim, tasks=self._traced(claim.tasks))

    def _traced(self, tasks: tuple[Task, ...]) -> tuple[Task, ...]:
        """Gives tasks the context of their traces; without the database's name they have none."""
        if self._database_id is None:
            found = self._call(lambda client: client.database_id())
            if isinstance(found, Trouble):
                return tasks
            self._database_id = found
        return with_traces(tasks, self._database_id)

    def submit(self, results: Sequence[Finished]) -> Sequence[Submitted | Trouble] | Trouble:
        """One result or many, the same call of the runtime: all of them or none."""
        items = [
            SubmitItem(done.task_id, done.lease_token, done.code, done.output_json, done.message)
            for done in results
        ]
        answers = self._call(
            lambda client: client.submit_results(self._worker_id, self._token, items)
        )
        if not isinstance(answers, Trouble):
            self._record(
                done.task_id
                for done, answer in zip(results, answers, strict=True)
                if answer.accepted
            )
        return answers

    def _record(self, accepted: Iterable[int]) -> None:
        """Writes down under their execution scope what actions produced, as a gateway does.

        The results stand, whatever becomes of this. What the database could not do now is tried
        again with the next result, and by `tick`.
        """
        with self._lock:
            wanted = sorted(self._unrecorded.union(accepted))
        if not wanted:
            return
        failed = self._call(lambda client: client.record_scope_entries(wanted))
        with self._lock:
            # Refused, it would be again; only what passes is kept.
            is_kept = failed is not None and failed.code is None
            self._unrecorded = (
                self._unrecorded.union(wanted) if is_kept else self._unrecorded.difference(wanted)
            )
        if failed is not None:
            self._note(f"not written down under the execution scope yet: {failed.message}")

    def fail(self, task_id: int, lease_token: int, code: int, message: str) -> Submitted | Trouble:
        item = SubmitItem(task_id, lease_token, code, None, message)
        answer = self._call(
            lambda client: client.submit_results(self._worker_id, self._token, [item])
        )
        if isinstance(answer, Trouble):
            return answer
        if answer[0].accepted:
            self._record([task_id])
        return answer[0]

    def release(self, task_id: int, lease_token: int) -> Trouble | None:
        return self._call(
            lambda client: client.release_task(
                Lease(task_id, lease_token), self._worker_id, self._token
            )
        )

    def actions(self) -> Mapping[str, str] | Trouble:
        return self._call(lambda client: client.action_capabilities())

    def renew(self) -> bool:
        return False

    def interrupt(self) -> None:
        """Nothing to do: a request does not wait here."""

    def tick(self) -> Trouble | None:
        """Moves the timers on, and vacuums the task queue when claiming has become slow."""
        ticked = self._call(lambda client: client.tick())
        self._record(())
        dead = self._call(lambda client: client.dead_task_rows())
        if isinstance(dead, int) and dead > _DEAD_ROWS_LIMIT:
            # A login that may not do it gets a warning of the server, and nothing breaks.
            self._call(lambda client: client.vacuum_tasks())
        return ticked

    def close(self) -> None:
        with self._lock:
            clients, self._clients = self._clients, []
        for client in clients:
            client.close()

    def _call(self, action: Callable[[RuntimeClient], T | Failure]) -> T | Trouble:
        client: RuntimeClient | None = getattr(self._threads, "client", None)
        if client is None:
            made = self._connect()
            if isinstance(made, ApiError | DatabaseProblem):
                return trouble_of(made)
            client = self._threads.client = made
            with self._lock:
                self._clients.append(made)
        try:
            answer = action(client)
        except Exception as error:
            # What the driver raises and nobody expects is about this call; a worker serves others.
            self._forget(client)
            return Trouble(first_line(error), code=0)
        if not isinstance(answer, ApiError | DatabaseProblem):
            return answer
        if isinstance(answer, DatabaseProblem) and answer.kind == "unreachable":
            self._forget(client)
        return trouble_of(answer)

    def _forget(self, client: RuntimeClient) -> None:
        self._threads.client = None
        with self._lock:
            if client in self._clients:
                self._clients.remove(client)
        client.close()
