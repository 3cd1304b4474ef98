"""What a gateway asks of a database beyond what a worker or the command does.

Flow: `connect_gateway(url)` gives a `GatewayClient` or a `Failure`: the client of a dialect with
`GatewayCalls` before it. Calls about a task name it by its id and lease token, since a gateway does
not keep what it handed out. JSON goes in and out as text.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from runtime_sql.connection import Heartbeat, Ingested, PostgresClient, RuntimeClient, connect
from runtime_sql.failures import ApiError, DatabaseProblem, Failure
from runtime_sql.operating import OperatorCalls

if TYPE_CHECKING:
    from runtime_sql.mssql_client import MssqlClient


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyGrant:
    """What a key that is about to be made may do; see `wf.sp_create_api_key`."""

    name: str
    roles: tuple[str, ...]
    source: str | None = None
    event_types: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class KeyOwner:
    """What the owner of a key may do."""

    key_id: str
    name: str
    roles: frozenset[str]
    source: str | None
    event_types: frozenset[str]
    capabilities: frozenset[str]
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class KeyRow:
    """One row of `wf.v_api_key`."""

    key_id: str
    name: str
    roles: tuple[str, ...]
    source: str | None
    event_types: tuple[str, ...]
    capabilities: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    is_live: bool


@dataclass(frozen=True, slots=True)
class WorkerProfile:
    """What a worker may claim, and ACTIVE, DRAINING or STOPPING."""

    capabilities: frozenset[str]
    desired_state: str


@dataclass(frozen=True, slots=True)
class Claimable:
    """A row of `wf.wf_claimable_capabilities`; there stands what is None when."""

    capability: str | None
    worker_id: str | None
    task_count: int


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """A row of `wf.wf_queue_depth`."""

    capability: str
    ready_count: int
    oldest_ready_ms: int
    leased_count: int
    expired_count: int


@dataclass(frozen=True, slots=True)
class Result:
    """A result to hand in; `output_json` is JSON text, None for no output."""

    execution_id: int
    lease_token: int
    code: int
    output_json: str | None
    message: str | None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a result was answered."""

    execution_id: int
    accepted: bool
    instance_status: str | None
    next_ready_count: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event to hand in; `occurred_at` None: now."""

    event_type: str
    source: str
    idempotency_key: str
    payload_json: str
    correlation_key: str | None = None
    occurred_at: datetime | None = None


class GatewayClient(RuntimeClient, Protocol):
    """What a gateway needs from a database, whatever its dialect."""

    def ping(self) -> Failure | None: ...

    def create_api_key(self, key: str, grant: KeyGrant) -> str | Failure: ...

    def revoke_api_key(self, key_id: str) -> Failure | None: ...

    def list_api_keys(self) -> list[KeyRow] | Failure: ...

    def authenticate_key(self, key: str) -> KeyOwner | Failure: ...

    def enroll_worker(
        self,
        key: str,
        worker_id: str,
        token: str,
        capabilities: Sequence[str],
        max_concurrency: int,
    ) -> Failure | None: ...

    def set_worker_token_expiry(
        self, worker_id: str, expires_at: datetime | None, token_id: str | None = None
    ) -> int | Failure: ...

    def revoke_worker_token(self, worker_id: str, token_id: str | None = None) -> int | Failure: ...

    def worker_profile(self, worker_id: str, token: str) -> WorkerProfile | Failure: ...

    def claimable(self) -> list[Claimable] | Failure: ...

    def queue_depth(self) -> list[QueueDepth] | Failure: ...

    def submit_one(self, worker_id: str, token: str, result: Result) -> Answer | Failure: ...

    def submit_many(
        self, worker_id: str, token: str, results: Sequence[Result]
    ) -> list[Answer] | Failure: ...

    def record_scope_entries(self, execution_ids: Sequence[int]) -> Failure | None: ...

    def extend_lease(
        self, execution_id: int, lease_token: int, worker_id: str, token: str, seconds: int
    ) -> Heartbeat | Failure: ...

    def give_back(
        self, execution_id: int, lease_token: int, worker_id: str, token: str
    ) -> int | Failure: ...

    def take_event(self, event: Event) -> Ingested | Failure: ...


def connect_gateway(url: str) -> GatewayClient | Failure:
    """Connects as `connection.connect` does; the client has a gateway's calls, too."""
    client = connect(url)
    if isinstance(client, ApiError | DatabaseProblem):
        return client
    if isinstance(client, PostgresClient):
        return PostgresGatewayClient(client._connection)
    return _mssql(client)


class GatewayCalls(OperatorCalls):
    """A gateway's calls, written once: `GatewayClient` says what there is."""

    @abstractmethod
    def _list(self, values: Sequence[str]) -> object:
        """Returns a list of texts as a parameter of the dialect."""

    def ping(self) -> Failure | None:
        """Asks for something that costs nothing."""
        return _failure(self._select("k.key_id", "wf.v_api_key as k", "1 = 0", "k.key_id", 1))

    # Keys and tokens --------------------------------------------------------------------------

    def create_api_key(self, key: str, grant: KeyGrant) -> str | Failure:
        rows = self._routine(
            "sp_create_api_key",
            key=key,
            name=grant.name,
            roles=self._list(grant.roles),
            source=grant.source,
            event_types=self._list(grant.event_types),
            capabilities=self._list(grant.capabilities),
            expires_at=_plain_utc(grant.expires_at),
        )
        return rows if isinstance(rows, ApiError | DatabaseProblem) else str(rows[0][0])

    def revoke_api_key(self, key_id: str) -> Failure | None:
        return _failure(self._routine("sp_revoke_api_key", key_id=key_id))

    def list_api_keys(self) -> list[KeyRow] | Failure:
        rows = self._select(
            "k.key_id, k.name, k.roles, k.source, k.event_types, k.capabilities, k.created_at,"
            " k.expires_at, k.revoked_at, k.is_live",
            "wf.v_api_key as k",
            "1 = 1",
            "k.created_at, k.key_id",
            100_000,
        )
        if isinstance(rows, ApiError | DatabaseProblem):
            return rows
        return [_key_row(row) for row in rows]

    def authenticate_key(self, key: str) -> KeyOwner | Failure:
        rows = self._routine("wf_api_key_authenticate", key=key)
        if isinstance(rows, ApiError | DatabaseProblem):
            return rows
        key_id, name, roles, source, types, capabilities, expires_at = rows[0]
        return KeyOwner(
            key_id,
            name,
            frozenset(_names(roles)),
            source,
            frozenset(_names(types)),
            frozenset(_names(capabilities)),
            _aware(expires_at),
        )

    def enroll_worker(
        self,
        key: str,
        worker_id: str,
        token: str,
        capabilities: Sequence[str],
        max_concurrency: int,
    ) -> Failure | None:
        """Registers a worker on behalf of the owner of a key of role enroll."""
        return _failure(
            self._routine(
                "sp_enroll_worker",
                key=key,
                worker_id=worker_id,
                worker_token=token,
                capabilities=self._list(capabilities),
                max_concurrency=max_concurrency,
            )
        )

    def set_worker_token_expiry(
        self, worker_id: str, expires_at: datetime | None, token_id: str | None = None
    ) -> int | Failure:
        """Says when the tokens of a worker end, None: never; returns how many."""
        rows = self._routine(
            "sp_set_worker_token_expiry",
            worker_id=worker_id,
            expires_at=_plain_utc(expires_at),
            token_id=token_id,
        )
        return rows if isinstance(rows, ApiError | DatabaseProblem) else int(rows[0][0])

    def revoke_worker_token(self, worker_id: str, token_id: str | None = None) -> int | Failure:
        """Ends the tokens of a worker for good; returns how many."""
        rows = self._routine("sp_revoke_worker_token", worker_id=worker_id, token_id=token_id)
        return rows if isinstance(rows, ApiError | DatabaseProblem) else int(rows[0][0])

    # Claiming ---------------------------------------------------------------------------------

    def worker_profile(self, worker_id: str, token: str) -> WorkerProfile | Failure:
        rows = self._routine("wf_worker_profile", worker_id=worker_id, worker_token=token)
        if isinstance(rows, ApiError | DatabaseProblem):
            return rows
        return WorkerProfile(frozenset(_names(rows[0][0])), rows[0][1])

    def claimable(self) -> list[Claimable] | Failure:
        rows = self._routine("wf_claimable_capabilities")
        if isinstance(rows, ApiError | DatabaseProblem):
            return rows
        return [Claimable(*row) for row in rows]

    def queue_depth(self) -> list[QueueDepth] | Failure:
        rows = self._routine("wf_queue_depth")
        if isinstance(rows, ApiError | DatabaseProblem):
            return rows
        return [QueueDepth(*row) for row in rows]

    # Results ----------------------------------------------------------------------------------

    def submit_one(self, worker_id: str, token: str, result: Result) -> Answer | Failure:
        rows = self._routine(
            "sp_worker_submit_result",
            node_execution_id=result.execution_id,
            worker_id=worker_id,
            worker_token=token,
            result_code=result.code,
            output_json=result.output_json,
            lease_token=result.lease_token,
            message=result.message,
        )
        if isinstance(rows, ApiError | DatabaseProblem):
            return rows
        accepted, status, ready, reason = rows[0]
        return Answer(result.execution_id, bool(accepted), status, ready or 0, reason)

    def submit_many(
        self, worker_id: str, token: str, results: Sequence[Result]
    ) -> list[Answer] | Failure:
        """Hands in results, all or nothing; the answers in their order."""
        rows = self._routine(
            "sp_worker_submit_results",
            worker_id=worker_id,
            worker_token=token,
            results_json=_results_json(results),
        )
        if isinstance(rows, ApiError | DatabaseProblem):
            return rows
        return [Answer(row[0], bool(row[1]), row[2], row[3] or 0, row[4]) for row in rows]

    def extend_lease(
        self, execution_id: int, lease_token: int, worker_id: str, token: str, seconds: int
    ) -> Heartbeat | Failure:
        rows = self._routine(
            "sp_worker_heartbeat",
            node_execution_id=execution_id,
            worker_id=worker_id,
            worker_token=token,
            extend_seconds=seconds,
            lease_token=lease_token,
        )
        return rows if isinstance(rows, ApiError | DatabaseProblem) else Heartbeat(*rows[0])

    def give_back(
        self, execution_id: int, lease_token: int, worker_id: str, token: str
    ) -> int | Failure:
        """Gives a task back; returns 0 when the lease is not current any more."""
        rows = self._routine(
            "sp_worker_release_task",
            node_execution_id=execution_id,
            worker_id=worker_id,
            worker_token=token,
            lease_token=lease_token,
        )
        return rows if isinstance(rows, ApiError | DatabaseProblem) else int(rows[0][0])

    def take_event(self, event: Event) -> Ingested | Failure:
        rows = self._routine(
            "sp_ingest_event",
            event_type=event.event_type,
            source=event.source,
            idempotency_key=event.idempotency_key,
            payload_json=event.payload_json,
            correlation_key=event.correlation_key,
            occurred_at_utc=_plain_utc(event.occurred_at),
        )
        if isinstance(rows, ApiError | DatabaseProblem):
            return rows
        event_id, duplicate, applied, ignored, differs = rows[0]
        return Ingested(event_id, bool(duplicate), applied, ignored, bool(differs))


class PostgresGatewayClient(GatewayCalls, PostgresClient):
    """A gateway's client for PostgreSQL."""

    def _list(self, values: Sequence[str]) -> object:
        return list(values)


def _mssql(client: RuntimeClient) -> GatewayClient:
    from runtime_sql.mssql_client import MssqlClient

    assert isinstance(client, MssqlClient)
    return _over(client)


def _over(client: MssqlClient) -> GatewayClient:
    from runtime_sql.mssql_client import MssqlClient

    class MssqlGatewayClient(GatewayCalls, MssqlClient):
        """A gateway's client for SQL Server; lists are JSON arrays there."""

        def _list(self, values: Sequence[str]) -> object:
            return json.dumps(list(values))

    return MssqlGatewayClient(client._connection, client._patience)


def _failure(answer: object) -> Failure | None:
    return answer if isinstance(answer, ApiError | DatabaseProblem) else None


def _names(value: Any) -> tuple[str, ...]:
    """Reads a list: an array in PostgreSQL, JSON text in T-SQL."""
    return tuple(json.loads(value) if isinstance(value, str) else value)


def _aware(at: datetime | None) -> datetime | None:
    return at.replace(tzinfo=UTC) if at is not None and at.tzinfo is None else at


def _plain_utc(at: datetime | None) -> datetime | None:
    """Returns a time in UTC, in which T-SQL keeps it without its zone."""
    return None if at is None else at.astimezone(UTC)


def _results_json(results: Sequence[Result]) -> str:
    """Writes results as the routine reads them; an output keeps the digits of its numbers."""
    parts = []
    for each in results:
        message = "null" if each.message is None else json.dumps(each.message)
        output = "" if each.output_json is None else f', "output": {each.output_json}'
        parts.append(
            f'{{"node_execution_id": {each.execution_id}, "lease_token": {each.lease_token},'
            f' "result_code": {each.code}, "message": {message}{output}}}'
        )
    return f"[{', '.join(parts)}]"


def _key_row(row: tuple[Any, ...]) -> KeyRow:
    key_id, name, roles, source, types, capabilities, created_at, expires_at, revoked_at, live = row
    return KeyRow(
        key_id,
        name,
        _names(roles),
        source,
        _names(types),
        _names(capabilities),
        created_at,
        expires_at,
        revoked_at,
        bool(live),
    )
