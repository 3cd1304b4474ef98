-- What a gateway asks on behalf of many waiting workers. Twin: pg/wf_gateway_calls.sql

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

-- What a worker may claim, a JSON array, and what it is told, when its token is good. Errors: 20001.
create or alter procedure wf.wf_worker_profile
    @worker_id nvarchar(4000),
    @worker_token nvarchar(4000)
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;

    exec wf.wf_worker_authenticate @worker_id = @worker_id, @worker_token = @worker_token;
    select concat(N'[', (select string_agg(wf.wf_json_quote(c.capability), N',')
                                    within group (order by c.capability)
                           from wf.worker_capability as c
                          where c.worker_id = w.worker_id), N']') as capabilities,
           w.desired_state
      from wf.worker as w
     where w.worker_id = @worker_id;
end;
GO

-- For whom a claim may find something now: one row per capability with tasks that any worker may take
-- (of one action at most 100 are counted), one per capability and worker with tasks pinned to it, and
-- one without a capability per worker that was heard of within five minutes and is told to drain or
-- stop. Limits of actions and workers are left out of account: a claim may come back empty.
-- Reads the heads of the claim indexes; takes no lock.
create or alter procedure wf.wf_claimable_capabilities
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;

    select a.capability, cast(null as nvarchar(200)) as worker_id, sum(h.task_count) as task_count
      from wf.workflow_action as a
     cross apply (
        select count(*) as task_count
          from (select top (100) t.node_execution_id
                  from wf.task as t with (readpast)
                 where t.action_id = a.action_id and t.is_claimable = 1 and t.worker_id is null
                   and t.pinned_worker_id is null) as o) as h
     where a.paused = 0 and h.task_count > 0
     group by a.capability
    union all
    select a.capability, t.pinned_worker_id, count(*)
      from wf.task as t with (readpast)
      join wf.workflow_action as a on a.action_id = t.action_id
     where t.is_claimable = 1 and t.worker_id is null and t.pinned_worker_id is not null
       and a.paused = 0
     group by a.capability, t.pinned_worker_id
    union all
    select null, w.worker_id, 0
      from wf.worker as w with (readpast)
      join wf.worker_presence as p on p.worker_id = w.worker_id
     where w.desired_state <> N'ACTIVE' and p.last_seen_at > dateadd(minute, -5, wf.wf_now());
end;
GO

-- One row per capability of the catalog, for monitoring: how much waits and could be claimed as far as
-- its time and its instance go, for how long the oldest of it has, how much is in hand, and how much of
-- that has a lease that ran out. Reads all of wf.task that nobody is changing; takes no lock.
create or alter procedure wf.wf_queue_depth
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_now datetime2(3) = wf.wf_now();

    select a.capability,
           sum(case when t.worker_id is null and t.is_claimable = 1 then 1 else 0 end)
               as ready_count,
           coalesce(datediff_big(millisecond,
               min(case when t.worker_id is null and t.is_claimable = 1 then t.available_at end),
               @v_now), 0) as oldest_ready_ms,
           sum(case when t.worker_id is not null then 1 else 0 end) as leased_count,
           sum(case when t.lease_until < @v_now then 1 else 0 end) as expired_count
      from wf.workflow_action as a
      left join wf.task as t with (readpast) on t.action_id = a.action_id
     group by a.capability;
end;
GO
