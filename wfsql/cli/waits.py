"""What an instance waits for, in one sentence per open node, and what could be done about it.

Flow: `Situation` is what `wf why` has read → `waits(situation)` → a `Wait` per open node, in their
order; those that say the same of many nodes are for the command to join. Nothing here reads or
writes anything, and all text still has to pass `plain`.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from runtime_sql.connection import Instance
from runtime_sql.operator_rows import OpenNode, Unclaimable
from wfsql.cli.operating import span
from wfsql.cli.output import counted, short_time

_PHASES = {
    "ON_ERROR": "its on_error is running",
    "FINALLY": "its finally is running",
    "WAITING": "it has its result and waits for a finally below it to end",
}
_PARTS = {"PARALLEL": ("branch", "branches"), "FOREACH": ("iteration", "iterations")}


@dataclass(frozen=True, slots=True)
class Wait:
    """`reason` is one word for programs; `advice` what could be done, None when nothing need be."""

    node: OpenNode
    reason: str
    sentence: str
    advice: str | None


@dataclass(frozen=True, slots=True)
class Situation:
    """`blocked`: by execution, what keeps a READY action from being claimed.

    `relative`: say how far away times are, too; for people who look now.
    """

    instance: Instance
    nodes: tuple[OpenNode, ...]
    blocked: Mapping[int, Unclaimable]
    now: datetime
    relative: bool

    def at(self, when: datetime | None) -> str:
        """Returns a time for people."""
        text = short_time(when)
        if when is None or not self.relative:
            return text
        seconds = (when - self.now).total_seconds()
        return f"{text} (in {span(seconds)})" if seconds >= 0 else f"{text} ({span(-seconds)} ago)"


def waits(situation: Situation) -> list[Wait]:
    """Returns what the open nodes wait for."""
    return [_wait(situation, node) for node in situation.nodes]


def headline(situation: Situation) -> str:
    """Returns how the instance itself is."""
    found = situation.instance
    name = f"{found.workflow} {found.instance_id}"
    match found.status:
        case "CREATED":
            return f"{name} was created and has not been started"
        case "SUCCEEDED":
            return f"{name} SUCCEEDED at {situation.at(found.ended_at)}; it waits for nothing"
        case "FAILED":
            return f"{name} FAILED at {situation.at(found.ended_at)}: {_error(found)}"
        case "CANCELLED":
            why = found.error_message or "no reason is known"
            return f"{name} was CANCELLED at {situation.at(found.ended_at)}: {why}"
        case "PAUSED":
            return (
                f"{name} is PAUSED: nothing of it is claimed and no timer acts until it is resumed"
            )
        case _:
            return f"{name} is {found.status} since {situation.at(found.started_at)}"


def instance_advice(found: Instance) -> str | None:
    """Returns what could be done about the instance as a whole."""
    match found.status:
        case "CREATED":
            return f"start it: select * from wf.sp_start_workflow_instance({found.instance_id})"
        case "PAUSED":
            return f"let it go on: wf resume {found.instance_id}"
        case "FAILED":
            return (
                f"see what happened: wf show {found.instance_id}, and of its actions: wf logs"
                f" {found.instance_id}; then try again what failed: wf retry {found.instance_id}"
            )
        case _:
            return None


def _error(found: Instance) -> str:
    code = found.engine_error_code if found.error_code is None else found.error_code
    place = f"{found.error_path}: " if found.error_path else ""
    text = (found.error_message or "").removeprefix(place)
    return f"{place}{text or 'no message'}" + ("" if code is None else f" ({code})")


def _wait(situation: Situation, node: OpenNode) -> Wait:
    if node.phase is not None:
        return Wait(node, node.phase, _PHASES.get(node.phase, node.phase), None)
    match node.waits_for:
        case "WORKER":
            return _claim(situation, node)
        case "RESULT":
            return _result(situation, node)
        case "EVENT":
            return _event(situation, node)
        case "TIME":
            return Wait(node, "SLEEP", f"it sleeps until {situation.at(node.due_at)}", None)
        case _:
            return Wait(node, "CHILDREN", _children(situation, node), None)


def _claim(situation: Situation, node: OpenNode) -> Wait:
    blocked = situation.blocked.get(node.execution_id)
    if blocked is None:
        sentence = f"it is ready for any worker with the capability {node.capability}"
        advice = "see who is at what, and what they may take: wf workers"
        return Wait(node, "READY", sentence + _attempt_in_brackets(node), advice)
    if blocked.reason == "DELAYED":
        return _later(situation, node)
    sentence = blocked.message + _attempt_in_brackets(node)
    advised = _claim_advice(situation.instance, node, blocked.reason)
    return Wait(node, blocked.reason, sentence, advised)


def _later(situation: Situation, node: OpenNode) -> Wait:
    due = situation.at(node.available_at)
    if node.attempt == 1:
        return Wait(node, "DELAYED", f"it is delayed until {due}", None)
    advice = f"see why it failed before: wf logs {situation.instance.instance_id}"
    sentence = f"attempt {node.attempt} of {_limit(node)} is due at {due}"
    return Wait(node, "RETRY", sentence, advice)


def _claim_advice(instance: Instance, node: OpenNode, reason: str) -> str | None:
    capability = _word(node.capability)
    match reason:
        case "NO_WORKER":
            return f"start a worker: wf worker --handlers MODULE --capability {capability}"
        case "NOT_ACTIVE":
            return "let a worker go on, or start another: wf drain WORKER --undo"
        case "BUSY":
            return f"start another worker with the capability {capability}, or wait"
        case "SILENT":
            return "look after the workers that are silent: wf workers"
        case "PIN_GONE" | "PIN_NOT_CAPABLE":
            return (
                "start that worker again, or free the task:"
                f" select * from wf.sp_release_affinity({instance.instance_id}, 'KEY')"
            )
        case "ACTION_PAUSED":
            return "unpause the action: set paused to false with wf.wf_repo_upsert_workflow_action"
        case "MAX_CONCURRENT":
            return "wait, or raise max_concurrent with wf.wf_repo_upsert_workflow_action"
        case _:
            return None


def _result(situation: Situation, node: OpenNode) -> Wait:
    since = f"worker {node.worker_id} is at it since {situation.at(node.claimed_at)}"
    if node.lease_until is not None and node.lease_until < situation.now:
        sentence = (
            f"{since}{_attempt(node)}; its lease ran out at {situation.at(node.lease_until)}:"
            " the next claim takes it from that worker"
        )
        return Wait(node, "LEASE_EXPIRED", sentence, "see whether that worker lives: wf workers")
    sentence = f"{since}{_attempt(node)}; its lease runs until {situation.at(node.lease_until)}"
    if node.deadline is not None:
        sentence += f", its time-out is at {situation.at(node.deadline)}"
    return Wait(node, "LEASED", sentence, None)


def _event(situation: Situation, node: OpenNode) -> Wait:
    until = (
        "without a time-out"
        if node.due_at is None
        else f"its time-out is at {situation.at(node.due_at)}"
    )
    if node.matches_nothing:
        sentence = f"its correlate gave null, so that no event ends it; {until}"
        return Wait(node, "EVENT", sentence, None)
    key = "any key" if node.correlation_key is None else f'the key "{node.correlation_key}"'
    send = f"wf events send {_word(node.event_type)}"
    if node.correlation_key is not None:
        send += f" --correlate {_word(node.correlation_key)}"
    sentence = f'it waits for the event "{node.event_type}" with {key}; {until}'
    return Wait(node, "EVENT", sentence, f"send it: {send} --payload JSON")


def _children(situation: Situation, node: OpenNode) -> str:
    one, many = _PARTS[node.type]
    total = node.total_count or 0
    ended = (node.succeeded_count or 0) + (node.failed_count or 0)
    sentence = f"{ended} of {total} {one if total == 1 else many} have ended"
    if ended == 1:
        sentence = sentence.replace(" have ", " has ", 1)
    if node.failed_count:
        sentence += f", {node.failed_count} failed"
    if node.needed_count is not None and node.needed_count != total:
        sentence += f"; {node.needed_count} have to succeed"
    if node.due_at is not None:
        sentence += f"; its time-out is at {situation.at(node.due_at)}"
    return sentence


def _attempt(node: OpenNode) -> str:
    """Returns which attempt it is, where that is worth telling."""
    said = []
    if node.attempt > 1 or _limit(node) > 1:
        said.append(f"attempt {node.attempt} of {_limit(node)}")
    if node.delivery_count > 1:
        said.append(f"handed out {counted(node.delivery_count, 'time')}")
    return "".join(f", {each}" for each in said)


def _attempt_in_brackets(node: OpenNode) -> str:
    if node.delivery_count:
        lost = f"handed out {counted(node.delivery_count, 'time')} before"
        return f" (attempt {node.attempt} of {_limit(node)}, {lost})"
    return f" (attempt {node.attempt} of {_limit(node)})" if node.attempt > 1 else ""


def _limit(node: OpenNode) -> int:
    return max(node.attempt_limit, node.attempt)


def _word(text: str | None) -> str:
    return shlex.quote(text or "")
