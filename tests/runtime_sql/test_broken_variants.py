"""Each lock rule, broken on purpose: the test that guards it must then fail.

A variant replaces a text in the source of a routine in the test's own database (`variants.py`),
then the body of a test from another file runs and has to fail. What is replaced and why it is wrong
stands beside each.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.runtime_sql import drive, sessions, test_concurrency, test_pairs
from tests.runtime_sql.variants import replace_in

Body = Callable[..., None]


@dataclass(frozen=True)
class Variant:
    """A broken rule: what becomes of the text `old` of a routine, and the tests that notice.

    `also`: further changes, where something else would keep the calls apart by chance.
    """

    rule: str
    routine: str
    old: str
    new: str
    bodies: tuple[Body, ...]
    options: tuple[Any, ...] = ()
    also: tuple[tuple[str, str, str], ...] = ()


PRESENCE = """\
        insert into wf.worker_presence (worker_id, last_seen_at) values (p_worker_id, v_now)
            on conflict (worker_id) do update set last_seen_at = excluded.last_seen_at;"""
ROUTE_UPDATE = "do update set touched = r.touched + 1"
GATE_NEEDED = "if v_wait.workflow_instance_id <> all (p_gates) then"
COUNTED = """\
      and false
    returning c.* into v_counter;
    select c.* into v_counter from wf.join_counter c
     where c.node_execution_id = v_child.parent_execution_id;
    v_counter.open_count := (select count(*) from wf.node_execution e
                              where e.parent_execution_id = v_child.parent_execution_id
                                and e.status in ('READY', 'RUNNING'));"""

VARIANTS = (
    # Without the shared gate a failure does not wait for calls that are about to activate something
    # below what it cancels.
    Variant(
        "gate shared",
        "wf_take_gates",
        "for key share",
        "",
        (test_concurrency.test_a_failure_waits_for_open_calls_and_cancels_what_they_activated,),
    ),
    # Shared is compatible with shared, so a call that closes work must not stop at it.
    Variant(
        "gate exclusive",
        "wf_take_gates",
        "for update",
        "for key share",
        (test_concurrency.test_a_failure_waits_for_open_calls_and_cancels_what_they_activated,),
    ),
    Variant(
        "gate exclusive for operators",
        "wf_lock_instance",
        "for update",
        "for key share",
        (
            test_concurrency.test_a_cancel_waits_for_open_calls_and_takes_what_they_activated,
            test_pairs.test_of_two_retries_at_once_the_second_is_refused,
        ),
    ),
    Variant(
        "gate exclusive for a start",
        "sp_start_workflow_instance",
        "for update",
        "",
        (test_pairs.test_two_starts_at_once_start_once,),
    ),
    # Right, but branches would follow one another.
    Variant(
        "gate not stronger than needed",
        "wf_take_gates",
        "for key share",
        "for update",
        (test_concurrency.test_branches_that_only_extend_themselves_do_not_wait_for_each_other,),
    ),
    # A failure that turns up under a shared gate closes work that others are extending.
    Variant(
        "WFX01 restart",
        "wf_engine_level",
        "if v_closer.workflow_instance_id <> all (p_exclusive) then",
        "if false then",
        (test_concurrency.test_a_submit_that_finds_late_that_it_fails_takes_the_gate_exclusive,),
    ),
    # Each of two last branches counts under its own snapshot and sees the other still open.
    Variant(
        "decrement, not count",
        "wf_join_ended",
        "    returning c.* into v_counter;\n    if not found then\n        return;\n    end if;",
        COUNTED,
        (test_concurrency.test_two_last_branches_complete_their_parent_once,),
    ),
    # A batch would hold a lower counter while it waits for a higher one.
    Variant(
        "hold-back",
        "wf_engine_hold_back",
        "a.parent_execution_id < p_first_new_id",
        "false",
        (test_concurrency.test_a_batch_holds_no_lower_counter_while_a_higher_one_may_follow,),
        ("inner",),
    ),
    Variant(
        "counters from the highest down",
        "wf_engine_release",
        "h.counter_id desc",
        "h.counter_id",
        (test_concurrency.test_counters_are_released_from_the_highest_down,),
    ),
    # The counters that follow are not waited for.
    Variant(
        "counters below one that may follow",
        "wf_engine_release",
        "h.counter_id > (select max(x.join_parent_id) from h x)",
        "true",
        (test_concurrency.test_counters_below_one_that_may_still_follow_wait,),
    ),
    # Both only look whether the route is there, and each looks for the other before it is there.
    # (An insert that meets a row which another is updating waits for it, so one of the two alone
    # would do.)
    Variant(
        "wait and event update their route",
        "wf_wait_register",
        ROUTE_UPDATE,
        "do nothing",
        (
            test_pairs.test_a_wait_that_opens_while_an_event_of_a_known_route_comes_takes_it,
            test_pairs.test_an_event_of_a_known_route_waits_for_the_wait_that_opens,
        ),
        also=(("wf_take_route", ROUTE_UPDATE, "do nothing"),),
    ),
    # An event that does not hold the common route is not waited for by a wait without a key.
    Variant(
        "an event shares the common route",
        "wf_take_route",
        "for share",
        "",
        (test_pairs.test_a_wait_without_a_key_that_opens_while_an_event_comes_takes_it,),
    ),
    # A wait without a key that does not update the common route is not waited for by an event.
    Variant(
        "a wait without a key updates the common route",
        "wf_wait_register",
        ROUTE_UPDATE,
        "do nothing",
        (test_pairs.test_an_event_waits_for_a_wait_without_a_key_that_opens,),
    ),
    # A wait that opened after the gates were chosen is passed by.
    Variant(
        "the waits are read again",
        "wf_apply_event",
        GATE_NEEDED,
        f"continue when {GATE_NEEDED[3:-5]};\n        if false then",
        (
            test_concurrency.test_an_event_that_comes_while_the_wait_opens_is_not_lost,
            test_pairs.test_a_signal_that_comes_while_the_wait_opens_is_not_lost,
        ),
    ),
    # A pass, which runs inside every claim, waits for an instance that a call is at.
    Variant(
        "SKIP LOCKED for timers",
        "wf_run_timers",
        "for update skip locked",
        "for update",
        (test_concurrency.test_a_pass_never_waits_for_an_instance_that_a_call_is_at,),
    ),
    Variant(
        "SKIP LOCKED for leases",
        "wf_reclaim_expired_leases",
        "for update skip locked",
        "for update",
        (
            test_concurrency.test_a_reclaim_does_not_wait_for_a_submit_of_the_same_lease,
            test_pairs.test_a_reclaim_passes_by_a_lease_that_a_heartbeat_extends,
        ),
    ),
    Variant(
        "SKIP LOCKED for the last lease",
        "wf_lose_task",
        "for update skip locked",
        "for update",
        (test_pairs.test_a_pass_never_waits_for_a_heartbeat_of_a_lease_that_would_be_the_last,),
    ),
    Variant(
        "SKIP LOCKED for claims",
        "wf_claim_lock",
        "for update skip locked",
        "for update",
        (test_concurrency.test_claims_of_two_workers_do_not_wait_and_never_share_a_task,),
    ),
    Variant(
        "SKIP LOCKED for purges",
        "sp_purge_instances",
        "for update skip locked",
        "for update",
        (test_pairs.test_a_purge_passes_by_an_instance_that_is_being_retried,),
    ),
    # Two claims of one worker each count its leases without the other's.
    Variant(
        "worker row lock for caps",
        "sp_worker_request_tasks",
        "w.worker_id = p_worker_id for update of w",
        "w.worker_id = p_worker_id",
        (
            test_pairs.test_claims_of_one_worker_queue_so_that_its_cap_holds,
            test_concurrency.test_a_worker_that_is_told_to_drain_gets_nothing_from_a_claim_that_waited,
        ),
        # The row that says when a worker was last seen would keep them apart, too.
        also=(("sp_worker_request_tasks", PRESENCE, "null;"),),
    ),
    # Two claims of different workers both spend the last room of a limited action.
    Variant(
        "throttle row",
        "wf_hold_throttle",
        "return found",
        "return true",
        (test_pairs.test_claims_of_two_workers_never_spend_the_same_room,),
        ("max_concurrent",),
    ),
    # What was read without a lock is taken for true under the lock.
    Variant(
        "re-check of the lease",
        "wf_claim_lock",
        "and t.worker_id is null",
        "",
        (test_pairs.test_a_claim_that_read_before_another_took_the_task_does_not_take_it_too,),
    ),
    Variant(
        "re-check of what can be claimed",
        "wf_claim_lock",
        "found and v_is_claimable",
        "found",
        (
            test_pairs.test_a_claim_that_read_before_a_pause_does_not_take_afterwards,
            test_pairs.test_a_claim_that_read_before_a_task_was_put_off_does_not_take_it_early,
        ),
    ),
    # A task of a paused instance is made claimable by what was read before the pause.
    Variant(
        "a pass shares the gates of what it releases",
        "wf_release_due_tasks",
        "for key share of i skip locked",
        "",
        (test_pairs.test_a_pass_that_read_before_a_pause_does_not_release_a_task_of_it,),
    ),
    # Under REPEATABLE READ the lock of a row that others only locked says nothing of what they did.
    Variant(
        "an operator's snapshot is as new as the gate",
        "wf_check_snapshot",
        "pg_xact_status(q.id::text::xid8) = 'committed'",
        "false",
        (test_pairs.test_a_pause_with_an_old_snapshot_is_refused_under_repeatable_read,),
    ),
    # An instance is created while its workflow goes.
    Variant(
        "a create holds its workflow",
        "wf_repo_create_workflow_instance",
        "for key share of d",
        "",
        (
            test_pairs.test_a_create_that_waited_for_the_deletion_of_its_workflow_is_refused,
            test_pairs.test_a_deletion_that_waited_for_a_create_takes_the_instance_with_it,
        ),
    ),
    # Publishing FOR UPDATE would stop every create of the workflow.
    Variant(
        "a publish lets creates pass",
        "wf_publish_workflow_version",
        "for no key update",
        "for update",
        (test_pairs.test_a_create_passes_by_a_publish_and_takes_the_version_that_was_active,),
    ),
)


CASES = [
    pytest.param(variant, body, id=f"{variant.rule}-{body.__name__[5:45]}")
    for variant in VARIANTS
    for body in variant.bodies
]


@pytest.mark.parametrize(("variant", "body"), CASES)
def test_a_broken_rule_is_noticed(
    pg_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variant: Variant, body: Body
) -> None:
    monkeypatch.setattr(sessions, "PATIENCE_SECONDS", 5.0)
    with (
        drive.connect(pg_url) as a,
        drive.connect(pg_url) as b,
        drive.connect(pg_url) as look,
    ):
        for session in (a, b, look):
            # What waits for good in a variant ends with this.
            session.execute("set lock_timeout = '20s'")
        changes = ((variant.routine, variant.old, variant.new), *variant.also)
        for routine, old, new in changes:
            replace_in(a, routine, old, new)
        takes_folder = "tmp_path" in inspect.signature(body).parameters
        with pytest.raises((AssertionError, psycopg.Error, pytest.fail.Exception)) as failure:
            body((a, b, look), *([tmp_path] if takes_folder else []), *variant.options)
        # The rule is broken, not the routine.
        assert not isinstance(failure.value, psycopg.ProgrammingError), failure.value
