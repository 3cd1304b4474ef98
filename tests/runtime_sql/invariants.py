"""What must hold in the tables of a database at any moment between two calls, each as a query.

`INVARIANTS` maps a name to a query that answers the rows in which it does not hold. Composites that
failed or were cancelled keep their counters, loops and items for a retry (R14).
"""

from __future__ import annotations

from typing import Any

import psycopg

_ENDED = "('SUCCEEDED', 'FAILED', 'CANCELLED')"
_OPEN = "('READY', 'RUNNING')"

INVARIANTS = {
    "no open execution in an instance that has ended": f"""
        select e.node_execution_id, e.status, i.status
          from wf.workflow_instance i join wf.node_execution e using (workflow_instance_id)
         where i.status in {_ENDED} and e.status in {_OPEN}""",
    "no task, wait, timer or pending end in an instance that has ended": f"""
        select l.what, l.node_execution_id, i.status
          from (select 'task' as what, node_execution_id, workflow_instance_id from wf.task
                union all select 'wait', node_execution_id, workflow_instance_id from wf.event_wait
                union all select 'timer', node_execution_id, workflow_instance_id from wf.timer
                union all select 'pending end', node_execution_id, workflow_instance_id
                            from wf.pending_end) l
          left join wf.workflow_instance i using (workflow_instance_id)
         where i.status is null or i.status in {_ENDED}""",
    "a task, wait or timer belongs to an open execution": f"""
        select l.what, l.node_execution_id, e.status
          from (select 'task' as what, node_execution_id from wf.task
                union all select 'wait', node_execution_id from wf.event_wait
                union all select 'timer', node_execution_id from wf.timer
                union all select 'pending end', node_execution_id from wf.pending_end) l
          left join wf.node_execution e using (node_execution_id)
         where e.status is null or e.status not in {_OPEN}""",
    "a counter, loop or item is of an open execution or kept for a retry": """
        select l.what, l.node_execution_id, e.status
          from (select 'counter' as what, node_execution_id from wf.join_counter
                union all select 'loop', node_execution_id from wf.loop_state
                union all select 'item', node_execution_id from wf.foreach_item) l
          left join wf.node_execution e using (node_execution_id)
         where e.status is null or e.status not in ('RUNNING', 'FAILED', 'CANCELLED')""",
    "every open ACTION has its task": """
        select e.node_execution_id, n.node_key
          from wf.node_execution e join wf.workflow_node n using (node_id)
         where n.node_type = 'ACTION' and e.status = 'READY'
           and not exists (select 1 from wf.task t
                            where t.node_execution_id = e.node_execution_id)""",
    "every open WAIT_EVENT waits": """
        select e.node_execution_id, n.node_key
          from wf.node_execution e join wf.workflow_node n using (node_id)
         where n.node_type = 'WAIT_EVENT' and e.status = 'READY'
           and not exists (select 1 from wf.event_wait w
                            where w.node_execution_id = e.node_execution_id)""",
    "an open execution lies in an open one": f"""
        select e.node_execution_id, p.status
          from wf.node_execution e
          left join wf.node_execution p on p.node_execution_id = e.parent_execution_id
         where e.status in {_OPEN} and e.parent_execution_id <> 0
           and (p.status is null or p.status not in {_OPEN})
           -- A cancelled SEQUENCE that runs its finally is below what was cancelled with it (R13).
           and not exists (select 1 from wf.pending_end q
                            where q.node_execution_id = e.node_execution_id and q.is_cancelled)""",
    "an open composite has something that will move it": f"""
        select e.node_execution_id, n.node_key, n.node_type
          from wf.node_execution e join wf.workflow_node n using (node_id)
         where e.status = 'RUNNING'
           and not exists (select 1 from wf.node_execution c
                            where c.workflow_instance_id = e.workflow_instance_id
                              and c.parent_execution_id = e.node_execution_id
                              and c.status in {_OPEN})
           and not exists (select 1 from wf.timer t
                            where t.node_execution_id = e.node_execution_id)
           -- It waits for finallys further down.
           and not exists (select 1 from wf.pending_end q
                            where q.cancel_parent_id = e.node_execution_id)""",
    "counters say what can be counted": f"""
        select c.node_execution_id, c.open_count, x.open, c.succeeded_count, x.succeeded,
               c.failed_count, x.failed, c.next_index, x.started
          from wf.join_counter c
          join wf.node_execution e using (node_execution_id)
         cross join lateral (
            select count(*) filter (where k.status in {_OPEN}) as open,
                   count(*) filter (where k.status in ('SUCCEEDED', 'SKIPPED')) as succeeded,
                   count(*) filter (where k.status = 'FAILED') as failed, count(*) as started
              from wf.node_execution k
             where k.workflow_instance_id = e.workflow_instance_id
               and k.parent_execution_id = e.node_execution_id) x
         where e.status = 'RUNNING'
           and not exists (select 1 from wf.pending_end p
                            where p.node_execution_id = c.node_execution_id)
           and (c.open_count, c.succeeded_count, c.failed_count, c.next_index)
               is distinct from (x.open, x.succeeded, x.failed, x.started)""",
    "a SEQUENCE that has succeeded has run each of its children once": """
        select e.node_execution_id, n.node_key, n.child_count, x.succeeded
          from wf.node_execution e join wf.workflow_node n using (node_id)
         cross join lateral (
            select count(*) filter (where k.status = 'SUCCEEDED') as succeeded, count(*) as started
              from wf.node_execution k join wf.workflow_node m using (node_id)
             where k.workflow_instance_id = e.workflow_instance_id
               and k.parent_execution_id = e.node_execution_id
               and m.edge_kind = 'SEQUENCE') x
         where n.node_type = 'SEQUENCE' and e.status = 'SUCCEEDED'
           and n.on_error_node_id is null
           and x.succeeded <> (select count(*) from wf.workflow_node m
                                where m.parent_node_id = n.node_id and m.edge_kind = 'SEQUENCE')""",
    "an event was applied to an instance at most once": """
        select d.event_id, d.workflow_instance_id, count(*)
          from wf.event_delivery d
         where d.outcome = 'applied' and d.workflow_instance_id is not null
         group by d.event_id, d.workflow_instance_id having count(*) > 1""",
    "a wait that an event completed has one delivery": """
        select e.node_execution_id, count(d.event_id)
          from wf.node_execution e join wf.workflow_node n using (node_id)
          left join wf.event_delivery d
            on d.node_execution_id = e.node_execution_id and d.outcome = 'applied'
         where n.node_type = 'WAIT_EVENT' and e.status = 'SUCCEEDED' and e.result_code = 0
         group by e.node_execution_id having count(d.event_id) <> 1""",
    "no event waits for a wait that it fits": """
        select w.node_execution_id, v.event_id
          from wf.event_wait w
          join wf.workflow_instance i using (workflow_instance_id)
          join wf.event v on v.event_type = w.event_type
           and (w.correlation_key is null or v.correlation_key = w.correlation_key)
           and v.event_id > i.events_after_id
         where not w.matches_nothing
           and not exists (select 1 from wf.event_delivery d
                            where d.event_id = v.event_id and d.outcome = 'applied'
                              and d.workflow_instance_id = w.workflow_instance_id)""",
    "an instance runs while its root is open": f"""
        select i.workflow_instance_id, i.status, e.status
          from wf.workflow_instance i
          left join wf.node_execution e on e.node_execution_id = i.root_execution_id
         where i.status in ('RUNNING', 'PAUSED') and e.status is distinct from 'RUNNING'
            or i.status in ('SUCCEEDED', 'FAILED') and e.status <> i.status
            or (i.ended_at is null) = (i.status in {_ENDED})""",
    "nothing is left of what was purged": """
        select l.what, l.id
          from (select 'execution' as what, e.node_execution_id as id, e.workflow_instance_id
                  from wf.node_execution e
                union all
                select 'scope', s.scope_id, s.workflow_instance_id from wf.scope s
                union all
                select 'context', x.workflow_instance_id, x.workflow_instance_id
                  from wf.execution_context x
                union all
                select 'affinity', a.workflow_instance_id, a.workflow_instance_id
                  from wf.affinity a) l
         where not exists (select 1 from wf.workflow_instance i
                            where i.workflow_instance_id = l.workflow_instance_id)
        union all
        select 'variable', v.scope_id from wf.scope_variable v
         where not exists (select 1 from wf.scope s where s.scope_id = v.scope_id)
        union all
        select 'attempt', a.node_execution_id from wf.node_attempt a
         where not exists (select 1 from wf.node_execution e
                            where e.node_execution_id = a.node_execution_id)""",
    "a limited action has no more leases than it may": """
        select a.action_name, count(*)
          from wf.task t join wf.workflow_action a using (action_id)
         where t.worker_id is not null and t.max_concurrent is not null
         group by a.action_name, a.max_concurrent having count(*) > a.max_concurrent""",
    "what a paused instance has is not claimable": """
        select t.node_execution_id
          from wf.task t join wf.workflow_instance i using (workflow_instance_id)
         where i.status = 'PAUSED' and t.is_claimable""",
}


def broken(connection: psycopg.Connection[Any]) -> dict[str, list[tuple[Any, ...]]]:
    """The invariants that do not hold, each with up to ten of its rows, all of one moment."""
    found = {}
    with connection.transaction():
        connection.execute("set transaction isolation level repeatable read")
        for name, query in INVARIANTS.items():
            rows = connection.execute(f"select * from ({query}) q limit 10".encode()).fetchall()
            if rows:
                found[name] = rows
    return found
