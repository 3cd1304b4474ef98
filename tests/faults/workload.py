"""The workload: instances of `fan`, and what must be so when all of them have ended.

`start` begins the instances; `Workload.finish` waits for them and judges: traces as without a
fault, every effect under a lease of its own and a second one only after the lease of the first had
ended, one result taken for each execution, the invariants of the tables.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compiler import json_values
from compiler.spec import GraphSpec
from local_runner.engine import LocalWorkflowEngine, RunResult
from runtime_sql.connection import Created, PostgresClient, connect
from tests.faults.effects import Effect
from tests.faults.scene import HERE, Scene, wait_for
from tests.runtime_sql.invariants import broken
from wfsql.compare import differences
from wfsql.handler_modules import load_all

ACTIONS_OF_ONE = 9
_PATIENCE_SECONDS = 240.0


@dataclass(frozen=True, slots=True)
class Judged:
    """What a fault has done. `recovered_seconds`: from the end of the fault until the last task
    that was in hand at its beginning had its result; `pause_seconds`: the longest time from the
    beginning of the fault without a result of anybody."""

    recovered_seconds: float
    pause_seconds: float
    lost: int
    effects_twice: int
    counted_twice: int
    wrong: tuple[str, ...]


@dataclass(slots=True)
class Workload:
    scene: Scene
    instances: dict[int, int]
    began_at: float = 0.0
    ended_at: float = 0.0
    in_hand: tuple[int, ...] = ()

    def accepted_count(self) -> int:
        [(count,)] = self.scene.ask(
            "select count(*) from faults.lease as l join wf.node_execution as e"
            " using (node_execution_id) where l.is_accepted and e.workflow_instance_id = any (%s)",
            list(self.instances),
        )
        return int(count)

    def wait_until_under_way(self) -> None:
        """Waits until an eighth of the results are there, and marks the beginning of the fault."""
        wanted = len(self.instances) * ACTIONS_OF_ONE // 8
        wait_for(lambda: self.accepted_count() >= wanted, "the work is under way")
        self.begin()

    def begin(self) -> None:
        """The fault begins: notes the time, and what is in hand."""
        rows = self.scene.ask(
            "select t.node_execution_id from wf.task as t where t.worker_id is not null"
        )
        self.in_hand = tuple(row[0] for row in rows)
        self.began_at = self.ended_at = time.time()

    def end(self) -> None:
        """The fault is over: the network is mended, what was killed is started again."""
        self.ended_at = time.time()

    def finish(self) -> Judged:
        """Waits for the end of all instances, and judges."""
        ids = list(self.instances)
        wait_for(
            lambda: (
                not self.scene.ask(
                    "select 1 from wf.workflow_instance as i"
                    " where i.workflow_instance_id = any (%s)"
                    " and i.status not in ('SUCCEEDED', 'FAILED', 'CANCELLED') limit 1",
                    ids,
                )
            ),
            "all instances end",
            _PATIENCE_SECONDS,
            0.1,
        )
        leases = _leases(self.scene, ids)
        effects = _effects_of(self)
        wrong = [*_other_traces(self), *bad_effects(effects, leases)]
        with self.scene.connect() as connection:
            wrong += [f"{name}: {rows}" for name, rows in broken(connection).items()]
        taken = sorted(row.ended_at for rows in leases.values() for row in rows if row.is_accepted)
        after = [at for at in taken if at > self.began_at]
        gaps = [b - a for a, b in zip([self.began_at, *after], after, strict=False)]
        hit = [
            row.ended_at
            for execution in self.in_hand
            for row in leases.get(execution, ())
            if row.is_accepted
        ]
        return Judged(
            recovered_seconds=max(max(hit, default=self.ended_at) - self.ended_at, 0.0),
            pause_seconds=max(gaps, default=0.0),
            lost=max(len(ids) * ACTIONS_OF_ONE - len(taken), 0),
            effects_twice=sum(len(calls) - 1 for calls in effects.values()),
            counted_twice=sum(
                max(sum(row.is_accepted for row in rows) - 1, 0) for rows in leases.values()
            ),
            wrong=tuple(wrong),
        )


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease that has ended, and where: `place` is the instance and the path."""

    place: tuple[int, str]
    claimed_at: float
    until: float
    ended_at: float
    is_accepted: bool


def start(scene: Scene, count: int) -> Workload:
    client = connect(scene.url)
    assert isinstance(client, PostgresClient)
    instances = {}
    for order in range(count):
        made = client.create_and_start("fan", json_values.dumps({"order": order}))
        assert isinstance(made, Created), made
        instances[made.instance_id] = order
    client.close()
    return Workload(scene, instances)


def _leases(scene: Scene, ids: list[int]) -> dict[int, list[Lease]]:
    rows = scene.ask(
        "select l.node_execution_id, e.workflow_instance_id, e.path,"
        " extract(epoch from l.claimed_at)::float8, extract(epoch from l.lease_until)::float8,"
        " extract(epoch from l.ended_at)::float8, l.is_accepted"
        " from faults.lease as l join wf.v_node_execution as e using (node_execution_id)"
        " where e.workflow_instance_id = any (%s) order by l.ended_at",
        ids,
    )
    found: dict[int, list[Lease]] = defaultdict(list)
    for execution, instance, path, claimed, until, ended, accepted in rows:
        found[execution].append(Lease((instance, path), claimed, until, ended, accepted))
    return found


def _effects_of(load: Workload) -> dict[tuple[int, str], list[Effect]]:
    found: dict[tuple[int, str], list[Effect]] = defaultdict(list)
    for effect in load.scene.effects.begun:
        if effect.instance in load.instances:
            found[effect.instance, effect.path].append(effect)
    return {place: sorted(calls, key=lambda call: call.at) for place, calls in found.items()}


def _other_traces(load: Workload) -> list[str]:
    """Says where a trace is not that of the local runner, which meets no fault."""
    client = connect(load.scene.url)
    assert isinstance(client, PostgresClient)
    wrong = []
    for instance, order in load.instances.items():
        stored = client.trace(instance)
        assert isinstance(stored, str), stored
        found = differences(
            json_values.read_stored(stored), _local_trace(load.scene.spec, instance, order)
        )
        wrong += [f"instance {instance}: {place}: {a}, not {b}" for place, a, b in found[:3]]
    client.close()
    return wrong


def _local_trace(spec: GraphSpec, instance: int, order: int) -> Any:
    handlers = load_all([str(HERE / "handlers.py")])
    engine = LocalWorkflowEngine(spec, handlers, parallel_workers=1)  # type: ignore[arg-type]
    result = engine.run({"order": order}, instance_id=str(instance))
    assert isinstance(result, RunResult), result
    return result.trace


def bad_effects(
    effects: Mapping[tuple[int, str], Sequence[Effect]], leases: Mapping[int, Sequence[Lease]]
) -> list[str]:
    """Says which effects are not as they may be. Both are in the order of time."""
    wrong = []
    unseen = set(effects)
    for rows in leases.values():
        place = rows[0].place
        unseen.discard(place)
        calls = effects.get(place, ())
        expired = sorted(row.ended_at for row in rows if row.ended_at >= row.until)
        if sum(row.is_accepted for row in rows) != 1:
            wrong.append(f"{place}: {rows}")
        if not calls:
            wrong.append(f"{place}: a result without an effect")
        if len(calls) > len(rows):
            wrong.append(f"{place}: {len(calls)} effects under {len(rows)} leases")
        for number, call in enumerate(calls[1:]):
            if number >= len(expired) or call.at < expired[number]:
                wrong.append(f"{place}: an effect before the lease of the last had ended")
    wrong += [f"{place}: an effect without a result" for place in unseen]
    return wrong
