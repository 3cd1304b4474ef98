"""What workers call: enroll, request tasks, submit, heartbeat, fail, release, read the actions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from compiler import json_values
from runtime_sql.connection import Claim, Task
from runtime_sql.failures import ApiError, DatabaseProblem, Failure
from runtime_sql.gateway_client import Answer, GatewayClient, Result, WorkerProfile
from runtime_sql.trace_ids import with_traces
from wfsql.gateway import models
from wfsql.gateway.answers import task_answer
from wfsql.gateway.operations import Call, Gateway, Operation, Reply
from wfsql.gateway.problems import of_failure

_COMMANDS = {"ACTIVE": "NONE", "DRAINING": "DRAIN", "STOPPING": "STOP"}
_MOST_UNRECORDED = 1000
_STATES = {command: state for state, command in _COMMANDS.items()}


async def enroll(gateway: Gateway, call: Call) -> Reply:
    body: models.Enrolment = call.body
    await gateway.pool.run(
        lambda client: client.enroll_worker(
            call.token, body.worker_id, body.worker_token, body.capabilities, body.max_concurrency
        )
    )
    return Reply(
        {
            "worker_id": body.worker_id,
            "capabilities": sorted(set(body.capabilities)),
            "max_concurrency": body.max_concurrency,
        }
    )


async def actions(gateway: Gateway, call: Call) -> Reply:
    if call.worker_id is not None:
        worker_id, token = call.worker_id, call.token
        await gateway.pool.run(lambda client: client.worker_profile(worker_id, token))
    found = await gateway.pool.run(lambda client: client.action_capabilities())
    rows = [{"action": action, "capability": found[action]} for action in sorted(found)]
    return Reply({"actions": rows})


# Claiming ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Claimed:
    """`profile` is there when nothing was claimed."""

    tasks: tuple[Task, ...]
    desired_state: str
    profile: WorkerProfile | None

    @property
    def is_worth_telling(self) -> bool:
        return bool(self.tasks) or self.desired_state != "ACTIVE"


async def request_tasks(gateway: Gateway, call: Call) -> Reply:
    body: models.TaskRequest = call.body
    give_up_at = time.monotonic() + body.wait_seconds
    claimed = await _claim_in_turn(gateway, call, give_up_at)
    can_wait = claimed.profile is not None and not gateway.hub.stopping
    if not claimed.is_worth_telling and body.wait_seconds and can_wait:
        claimed = await _wait_and_claim(gateway, call, claimed, give_up_at)
    return Reply(
        {
            "tasks": [task_answer(task) for task in claimed.tasks],
            "desired_state": claimed.desired_state,
            "command": _COMMANDS[claimed.desired_state],
        }
    )


async def _wait_and_claim(
    gateway: Gateway, call: Call, claimed: _Claimed, give_up_at: float
) -> _Claimed:
    """Waits at the hub and claims when it says so, until there is something to tell."""
    body: models.TaskRequest = call.body
    profile = claimed.profile
    assert profile is not None
    assert call.receive is not None
    waiter = gateway.hub.enter(
        body.worker_id, profile.capabilities, body.capability, body.max_tasks
    )
    gone = asyncio.ensure_future(call.receive())
    gone.add_done_callback(lambda _message: waiter.woken.set())
    try:
        while not claimed.is_worth_telling:
            left = give_up_at - time.monotonic()
            if left <= 0 or not await gateway.hub.wait(waiter, left) or gone.done():
                break
            claimed = await _claim_in_turn(gateway, call, give_up_at)
            gateway.hub.claimed(waiter, len(claimed.tasks))
        if gone.done() and claimed.tasks:
            await _give_back(gateway, call, claimed.tasks)
    finally:
        gateway.hub.leave(waiter)
        gone.cancel()
    return claimed


async def _claim(gateway: Gateway, call: Call) -> _Claimed:
    body: models.TaskRequest = call.body
    token = call.token

    def claim(client: GatewayClient) -> _Claimed | Failure:
        began = time.perf_counter()
        found = client.request_tasks(
            body.worker_id, token, body.capability, body.lease_seconds, body.max_tasks
        )
        if not isinstance(found, Claim):
            return found
        gateway.metrics.observe_claim(time.perf_counter() - began, len(found.tasks))
        if found.tasks or found.command != "NONE":
            tasks = _traced(gateway, client, found.tasks)
            return _Claimed(tasks, _STATES[found.command], None)
        profile = client.worker_profile(body.worker_id, token)
        if not isinstance(profile, WorkerProfile):
            return profile
        return _Claimed((), profile.desired_state, profile)

    return await gateway.pool.run(claim)


def _traced(gateway: Gateway, client: GatewayClient, tasks: tuple[Task, ...]) -> tuple[Task, ...]:
    """Gives tasks the context of their traces; none when the database does not say its name."""
    if tasks and gateway.known.database_id is None:
        found = client.database_id()
        if isinstance(found, ApiError | DatabaseProblem):
            return tasks
        gateway.known.database_id = found
    return with_traces(tasks, gateway.known.database_id or "")


async def _claim_in_turn(gateway: Gateway, call: Call, give_up_at: float) -> _Claimed:
    """Claims when its turn comes: claims never take all connections, and polls can wait.

    So a thousand workers that come back at once do not keep results from being handed in.
    """
    patience = max(give_up_at - time.monotonic(), gateway.pool.wait_seconds)
    try:
        async with asyncio.timeout(patience):
            await gateway.claims.acquire()
    except TimeoutError:
        if call.body.wait_seconds:
            return _Claimed((), "ACTIVE", None)
        raise gateway.pool.exhausted() from None
    try:
        return await _claim(gateway, call)
    finally:
        gateway.claims.release()


async def _give_back(gateway: Gateway, call: Call, tasks: Sequence[Task]) -> None:
    """Releases what was claimed for a worker that went away before it could be told."""
    worker_id, token = call.body.worker_id, call.token

    def release(client: GatewayClient) -> Failure | None:
        for task in tasks:
            answer = client.give_back(task.execution_id, task.lease_token, worker_id, token)
            if isinstance(answer, ApiError | DatabaseProblem):
                return answer
        return None

    answer = await gateway.pool.ask(release)
    gateway.log.info("given_back", request_id=call.request_id, tasks=len(tasks), failure=answer)
    gateway.hub.kick()


# Results -------------------------------------------------------------------------------------


async def submit(gateway: Gateway, call: Call) -> Reply:
    body: models.Submit = call.body
    output = None if body.output is None else json_values.dumps(body.output)
    result = Result(call.id("task_id"), body.lease_token, body.result_code, output, body.message)
    return Reply(_answer(await _hand_in(gateway, call, body.worker_id, result)))


async def fail(gateway: Gateway, call: Call) -> Reply:
    body: models.FailIn = call.body
    code = body.result_code if body.result_code < 0 else -1
    result = Result(call.id("task_id"), body.lease_token, code, None, body.message)
    return Reply(_answer(await _hand_in(gateway, call, body.worker_id, result)))


async def _hand_in(gateway: Gateway, call: Call, worker_id: str, result: Result) -> Answer:
    token = call.token

    def submit_and_record(client: GatewayClient) -> tuple[Answer, Failure | None] | Failure:
        began = time.perf_counter()
        answer = client.submit_one(worker_id, token, result)
        gateway.metrics.submit_seconds.observe(time.perf_counter() - began)
        if not isinstance(answer, Answer):
            return answer
        return answer, _record(gateway, client, [answer])

    answer, failure = await gateway.pool.run(submit_and_record)
    _note(gateway, call, [answer], failure)
    return answer


async def submit_many(gateway: Gateway, call: Call) -> Reply:
    body: models.SubmitMany = call.body
    token = call.token
    results = [
        Result(
            each.task_id,
            each.lease_token,
            each.result_code,
            None if each.output is None else json_values.dumps(each.output),
            each.message,
        )
        for each in body.results
    ]

    def submit_all(
        client: GatewayClient,
    ) -> tuple[list[Answer | ApiError], Failure | None] | Failure:
        began = time.perf_counter()
        answers = _submit_all(client, body.worker_id, token, results)
        gateway.metrics.submit_seconds.observe(time.perf_counter() - began)
        if isinstance(answers, ApiError | DatabaseProblem):
            return answers
        return answers, _record(gateway, client, [a for a in answers if isinstance(a, Answer)])

    answers, failure = await gateway.pool.run(submit_all)
    _note(gateway, call, [a for a in answers if isinstance(a, Answer)], failure)
    return Reply(
        {
            "answers": [
                _answer_of_one(result.execution_id, answer)
                for result, answer in zip(results, answers, strict=True)
            ]
        }
    )


def _submit_all(
    client: GatewayClient, worker_id: str, token: str, results: list[Result]
) -> list[Answer | ApiError] | Failure:
    """Hands in all at once; when one of them is refused, one by one."""
    together = client.submit_many(worker_id, token, results)
    if isinstance(together, list):
        return list(together)
    if isinstance(together, DatabaseProblem) or together.code == 20001:
        return together
    answers: list[Answer | ApiError] = []
    for result in results:
        answer = client.submit_one(worker_id, token, result)
        if isinstance(answer, DatabaseProblem):
            return answer
        answers.append(answer)
    return answers


def _record(gateway: Gateway, client: GatewayClient, answers: Sequence[Answer]) -> Failure | None:
    """Writes accepted results down under their execution scope; what fails there is only logged.

    With them go those that the database could not write down before. Two threads may take the same
    ones along, which does no harm: a second time replaces the first.
    """
    accepted = [answer.execution_id for answer in answers if answer.accepted]
    if not accepted:
        return None
    late = gateway.known.unrecorded
    failed = client.record_scope_entries(sorted(late.union(accepted)))
    if isinstance(failed, DatabaseProblem):
        kept = late.union(accepted)
        gateway.known.unrecorded = kept if len(kept) <= _MOST_UNRECORDED else late
    elif late:
        gateway.known.unrecorded = gateway.known.unrecorded - late
    return failed


def _note(gateway: Gateway, call: Call, answers: Sequence[Answer], failure: Failure | None) -> None:
    for answer in answers:
        gateway.metrics.results.labels(answer.reason).inc()
        if answer.reason == "STALE":
            gateway.metrics.leases_lost.labels("submit").inc()
    if failure is not None:
        gateway.metrics.scope_errors.inc()
        gateway.log.warning(
            "scope_sync_failed",
            request_id=call.request_id,
            tasks=[answer.execution_id for answer in answers],
            code=failure.code if isinstance(failure, ApiError) else failure.kind,
        )
    if any(answer.next_ready_count for answer in answers):
        gateway.hub.kick()


def _answer(answer: Answer) -> dict[str, Any]:
    return {
        "accepted": answer.accepted,
        "reason": answer.reason,
        "instance_status": answer.instance_status,
        "next_ready_count": answer.next_ready_count,
    }


def _answer_of_one(task_id: int, answer: Answer | ApiError) -> dict[str, Any]:
    if isinstance(answer, Answer):
        return {"task_id": task_id, **_answer(answer)}
    return {
        "task_id": task_id,
        "accepted": False,
        "reason": None,
        "instance_status": None,
        "next_ready_count": 0,
        "problem": {"code": answer.code, "detail": answer.message},
    }


# Leases --------------------------------------------------------------------------------------


async def heartbeat(gateway: Gateway, call: Call) -> Reply:
    body: models.HeartbeatIn = call.body
    task_id, token = call.id("task_id"), call.token
    beat = await gateway.pool.run(
        lambda client: client.extend_lease(
            task_id, body.lease_token, body.worker_id, token, body.extend_seconds
        )
    )
    if not beat.rows_updated:
        gateway.metrics.leases_lost.labels("heartbeat").inc()
    return Reply(
        {
            "rows_updated": beat.rows_updated,
            "desired_state": beat.desired_state,
            "command": beat.command,
        }
    )


async def heartbeat_many(gateway: Gateway, call: Call) -> Reply:
    body: models.HeartbeatMany = call.body
    answers = await gateway.pool.run(_extend_all(body, call.token))
    lost = sum(1 for answer in answers if not answer["rows_updated"])
    if lost:
        gateway.metrics.leases_lost.labels("heartbeat").inc(lost)
    return Reply({"answers": answers})


def _extend_all(
    body: models.HeartbeatMany, token: str
) -> Callable[[GatewayClient], list[dict[str, Any]] | Failure]:
    def extend(client: GatewayClient) -> list[dict[str, Any]] | Failure:
        answers = []
        for lease in body.leases:
            beat = client.extend_lease(
                lease.task_id, lease.lease_token, body.worker_id, token, body.extend_seconds
            )
            if isinstance(beat, ApiError | DatabaseProblem):
                return beat
            answers.append(
                {
                    "task_id": lease.task_id,
                    "rows_updated": beat.rows_updated,
                    "desired_state": beat.desired_state,
                    "command": beat.command,
                }
            )
        return answers

    return extend


async def release(gateway: Gateway, call: Call) -> Reply:
    body: models.ReleaseIn = call.body
    task_id, token = call.id("task_id"), call.token
    answer = await gateway.pool.ask(
        lambda client: client.give_back(task_id, body.lease_token, body.worker_id, token)
    )
    if isinstance(answer, ApiError | DatabaseProblem):
        raise of_failure(answer)
    if answer:
        gateway.hub.kick()
    return Reply({"accepted": bool(answer), "reason": "OK" if answer else "STALE"})


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        name="enroll_worker",
        method="POST",
        path="/v1/workers/enroll",
        summary="Register a worker, or renew it, with a key of role enroll",
        handler=enroll,
        caller="key",
        roles=frozenset({"enroll"}),
        body=models.Enrolment,
        answer=models.Enrolled,
    ),
    Operation(
        name="request_tasks",
        method="POST",
        path="/v1/workers/tasks/request",
        summary="Claim tasks; with wait_seconds wait until there are some, or a command",
        handler=request_tasks,
        caller="worker",
        body=models.TaskRequest,
        answer=models.Tasks,
    ),
    Operation(
        name="submit_results",
        method="POST",
        path="/v1/workers/tasks/submit",
        summary="Hand in results of many tasks; each is answered for itself",
        handler=submit_many,
        caller="worker",
        body=models.SubmitMany,
        answer=models.SubmitManyAnswer,
    ),
    Operation(
        name="extend_leases",
        method="POST",
        path="/v1/workers/tasks/heartbeat",
        summary="Extend the leases of many tasks",
        handler=heartbeat_many,
        caller="worker",
        body=models.HeartbeatMany,
        answer=models.HeartbeatManyAnswer,
    ),
    Operation(
        name="submit_result",
        method="POST",
        path="/v1/workers/tasks/{task_id}/submit",
        summary="Hand in the result of a task; a repeat is answered as the first",
        handler=submit,
        caller="worker",
        body=models.Submit,
        answer=models.SubmitAnswer,
        refusals=(404,),
    ),
    Operation(
        name="extend_lease",
        method="POST",
        path="/v1/workers/tasks/{task_id}/heartbeat",
        summary="Extend the lease of a task and hear what the worker is told",
        handler=heartbeat,
        caller="worker",
        body=models.HeartbeatIn,
        answer=models.HeartbeatAnswer,
        refusals=(404,),
    ),
    Operation(
        name="fail_task",
        method="POST",
        path="/v1/workers/tasks/{task_id}/fail",
        summary="Say that a task failed: a submit with a negative code, -1 for another",
        handler=fail,
        caller="worker",
        body=models.FailIn,
        answer=models.SubmitAnswer,
        refusals=(404,),
    ),
    Operation(
        name="release_task",
        method="POST",
        path="/v1/workers/tasks/{task_id}/release",
        summary="Give a task back; no attempt is used",
        handler=release,
        caller="worker",
        body=models.ReleaseIn,
        answer=models.ReleaseAnswer,
        refusals=(404,),
    ),
    Operation(
        name="list_actions",
        method="GET",
        path="/v1/actions",
        summary="Every action with the capability that it needs",
        handler=actions,
        caller="worker_or_key",
        answer=models.Actions,
    ),
)
