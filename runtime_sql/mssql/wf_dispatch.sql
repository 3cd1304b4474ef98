-- Dispatch: which worker may take which task, and in what order (semantics §10, R15, R41).
-- Twin: pg/wf_dispatch.sql, whose header has the rules.
--
-- What differs: a claim takes a task by one update that re-checks it, where the twin locks it first; a
-- limited action is held by the application lock 'wf.a.<action_id>', without waiting. The hints
-- (readpast) only spare a claim waits; nothing depends on them.

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

if object_id(N'wf.wf_dispatch_of', N'IF') is not null drop function wf.wf_dispatch_of;
GO

-- The dispatch columns of a task that is being activated: the catalog's live ones, overridden by the
-- author's, and the affinity key: the named field of the input as text. A text over 200 characters, or
-- one that ends in a blank (`=` would not see it), is stood for by its SHA-256.
create function wf.wf_dispatch_of(
    @action_id bigint,
    @overrides_json nvarchar(max),
    @input_json nvarchar(max)
)
returns table
as
return (
    select case when len(f.field_text + N'.') - 1 > 200 or right(f.field_text, 1) = N' '
                then wf.wf_sha256_hex(convert(varchar(max), cast(f.field_text as varbinary(max)), 2))
                else cast(f.field_text as nvarchar(200)) end
               as affinity_key,
           coalesce(cast(json_value(@overrides_json, N'$.max_per_worker') as int),
                    a.max_per_worker) as max_per_worker,
           coalesce(cast(json_value(@overrides_json, N'$.exclusive_worker') as bit),
                    a.exclusive_worker) as is_exclusive,
           coalesce(cast(json_value(@overrides_json, N'$.prefer_previous_worker') as bit),
                    a.prefer_previous_worker) as prefers_previous,
           coalesce(cast(json_value(@overrides_json, N'$.prefer_continue_group') as bit),
                    a.prefer_continue_group) as prefers_group,
           coalesce(cast(json_value(@overrides_json, N'$.require_previous_worker') as bit),
                    a.require_previous_worker) as requires_previous,
           coalesce(cast(json_value(@overrides_json, N'$.max_concurrent') as int),
                    a.max_concurrent) as max_concurrent,
           coalesce(cast(json_value(@overrides_json, N'$.rate_per_minute') as int),
                    a.rate_per_minute) as rate_per_minute
      from wf.workflow_action as a
     outer apply (
        select top (1) j.value as field_text
          from openjson(case when left(@input_json, 1) = N'{'
                              and coalesce(json_value(@overrides_json, N'$.affinity_key_field'),
                                           a.affinity_key_field) is not null
                             then @input_json else N'{}' end) as j
         where j.[key] collate Latin1_General_100_BIN2
                   = coalesce(json_value(@overrides_json, N'$.affinity_key_field'),
                              a.affinity_key_field) collate Latin1_General_100_BIN2
           and datalength(j.[key])
                   = datalength(coalesce(json_value(@overrides_json, N'$.affinity_key_field'),
                                         cast(a.affinity_key_field as nvarchar(4000))))
           and j.type <> 0) as f
     where a.action_id = @action_id
);
GO

-- The worker that a task of this action and key is pinned to, or null: the one that completed the
-- most recent pinned action of the key, unless that was a run of this same action.
create or alter function wf.wf_pinned_worker(
    @workflow_instance_id bigint,
    @action_id bigint,
    @affinity_key nvarchar(200)
) returns nvarchar(200)
as
begin
    return (select f.pinned_worker_id
              from wf.affinity as f
             where f.workflow_instance_id = @workflow_instance_id
               and f.affinity_key = @affinity_key
               and f.released_at is null
               and f.pinned_action_id <> @action_id);
end;
GO

-- Remembers who completed an action of an affinity key; @pinned_action_id not null: later tasks of the
-- key are pinned to the worker. Locks: the affinity row. A row that another call inserts at the same
-- moment is no failure, so nothing here may doom the transaction.
create or alter procedure wf.wf_write_affinity
    @workflow_instance_id bigint,
    @affinity_key nvarchar(200),
    @worker_id nvarchar(200),
    @pinned_action_id bigint
as
begin
    set nocount on;
    declare @v_is_done bit = 0;

    while @v_is_done = 0
    begin
        update wf.affinity
           set worker_id = @worker_id,
               pinned_worker_id = case when @pinned_action_id is null then pinned_worker_id
                                       else @worker_id end,
               pinned_action_id = coalesce(@pinned_action_id, pinned_action_id),
               released_at = case when @pinned_action_id is null then released_at end
         where workflow_instance_id = @workflow_instance_id and affinity_key = @affinity_key;
        if @@rowcount > 0 break;
        set xact_abort off;
        begin try
            insert into wf.affinity (workflow_instance_id, affinity_key, worker_id,
                                     pinned_worker_id, pinned_action_id)
            values (@workflow_instance_id, @affinity_key, @worker_id,
                    case when @pinned_action_id is not null then @worker_id end,
                    @pinned_action_id);
            set @v_is_done = 1;
        end try
        begin catch
            if error_number() not in (2601, 2627) throw;
        end catch;
        set xact_abort on;
    end;
    set xact_abort on;
end;
GO

-- Remembers who completed the executions of #completed (ordinal, node_execution_id), a table of the
-- caller, by their affinity keys, and pins the waiting tasks of a key whose pinned action has just
-- succeeded. Locks: affinity rows in key order, then task rows.
create or alter procedure wf.wf_remember_workers
as
begin
    set nocount, xact_abort on;
    declare @v_row table (
        seq int identity(1, 1) not null primary key,
        workflow_instance_id bigint not null,
        affinity_key nvarchar(200) collate Latin1_General_100_BIN2 not null,
        worker_id nvarchar(200) collate Latin1_General_100_BIN2 null,
        action_id bigint null,
        requires_previous bit not null
    );
    declare @v_seq int = 0;
    declare @v_instance_id bigint;
    declare @v_key nvarchar(200);
    declare @v_worker_id nvarchar(200);
    declare @v_action_id bigint;
    declare @v_pins bit;

    insert into @v_row (workflow_instance_id, affinity_key, worker_id, action_id,
                        requires_previous)
    select e.workflow_instance_id, d.affinity_key, e.worker_id,
           case when d.requires_previous = 1 then n.action_id end, d.requires_previous
      from #completed as u
      join wf.node_execution as e on e.node_execution_id = u.node_execution_id
      join wf.workflow_node as n on n.node_id = e.node_id
     cross apply wf.wf_dispatch_of(n.action_id, json_query(n.attributes_json, N'$.dispatch'),
                                   e.input_json) as d
     where e.status = N'SUCCEEDED' and d.affinity_key is not null
     order by e.workflow_instance_id, d.affinity_key, u.ordinal;
    while 1 = 1
    begin
        set @v_key = null;
        select top (1) @v_seq = r.seq, @v_instance_id = r.workflow_instance_id,
               @v_key = r.affinity_key, @v_worker_id = r.worker_id, @v_action_id = r.action_id,
               @v_pins = r.requires_previous
          from @v_row as r
         where r.seq > @v_seq
         order by r.seq;
        if @v_key is null break;
        exec wf.wf_write_affinity @workflow_instance_id = @v_instance_id, @affinity_key = @v_key,
            @worker_id = @v_worker_id, @pinned_action_id = @v_action_id;
        if @v_pins = 1
            update wf.task
               set pinned_worker_id = @v_worker_id
             where workflow_instance_id = @v_instance_id and affinity_key = @v_key
               and worker_id is null and requires_previous = 1 and is_exclusive = 0
               and action_id <> @v_action_id;
    end;
end;
GO

-- Leases up to @max_tasks tasks to a worker, best first; they are added to #claimed, a table of the
-- caller (wf_worker_api.sql). The caller holds the worker's row, so that its live leases cannot
-- change meanwhile.
-- Locks: the application locks of limited actions, at once or not at all; task rows, one by one by
-- primary key.
create or alter procedure wf.wf_claim_lock
    @worker_id nvarchar(200),
    @capability nvarchar(200),
    @max_lease_seconds int,
    @max_tasks int,
    @now datetime2(3)
as
begin
    set nocount, xact_abort on;
    declare @v_candidate table (
        position int identity(1, 1) not null primary key,
        node_execution_id bigint not null,
        action_id bigint not null,
        max_per_worker int null,
        is_exclusive bit not null,
        max_concurrent int null,
        rate_per_minute int null
    );
    -- Limited actions: held by this claim, or by another one.
    declare @v_throttle table (action_id bigint not null primary key, is_held bit not null);
    declare @v_heads int = case when @max_tasks > 16 then @max_tasks + 16 else 32 end;
    declare @v_page int = 1;
    declare @v_position int;
    declare @v_last int;
    declare @v_taken int = 0;
    declare @v_ends bit = 0;
    declare @v_is_held bit;
    declare @v_id bigint;
    declare @v_action_id bigint;
    declare @v_cap int;
    declare @v_is_exclusive bit;
    declare @v_max_concurrent int;
    declare @v_rate int;

    if exists (select 1 from wf.task as t where t.worker_id = @worker_id and t.is_exclusive = 1)
        return;
    -- A page of heads that others hold is read on, at most four times (R15).
    while @v_page <= 4 and @v_ends = 0 and @v_taken < @max_tasks
    begin
        -- The number of a row goes on rising over the pages.
        set @v_last = coalesce((select max(c.position) from @v_candidate as c), 0);
        delete from @v_candidate;
        insert into @v_candidate (node_execution_id, action_id, max_per_worker, is_exclusive,
                                  max_concurrent, rate_per_minute)
        select c.node_execution_id, c.action_id, c.max_per_worker, c.is_exclusive,
               c.max_concurrent, c.rate_per_minute
          from wf.wf_claim_candidates(@worker_id, @capability, @v_heads) as c
         order by c.priority desc, c.is_own desc, c.is_group desc, c.available_at,
                  c.node_execution_id;
        set @v_position = @v_last;
        while @v_ends = 0 and @v_taken < @max_tasks
        begin
            set @v_id = null;
            select top (1) @v_position = c.position, @v_id = c.node_execution_id,
                   @v_action_id = c.action_id, @v_cap = c.max_per_worker,
                   @v_is_exclusive = c.is_exclusive, @v_max_concurrent = c.max_concurrent,
                   @v_rate = c.rate_per_minute
              from @v_candidate as c
             where c.position > @v_position
             order by c.position;
            if @v_id is null break;
            if @v_cap <= (select count(*) from wf.task as t
                           where t.worker_id = @worker_id and t.action_id = @v_action_id)
                continue;
            if @v_max_concurrent is not null or @v_rate is not null
            begin
                set @v_is_held = null;
                select @v_is_held = h.is_held from @v_throttle as h
                 where h.action_id = @v_action_id;
                if @v_is_held is null
                begin
                    exec wf.wf_hold_throttle @action_id = @v_action_id,
                        @is_held = @v_is_held output;
                    insert into @v_throttle (action_id, is_held) values (@v_action_id, @v_is_held);
                end;
                if @v_is_held = 0 continue;
                exec wf.wf_is_throttled @action_id = @v_action_id,
                    @max_concurrent = @v_max_concurrent, @rate_per_minute = @v_rate, @now = @now,
                    @is_throttled = @v_is_held output;
                if @v_is_held = 1 continue;
            end;
            update t
               set worker_id = @worker_id, claimed_at = @now,
                   lease_until = wf.wf_add_ms(@now,
                       case when n.lease_ms < @max_lease_seconds * cast(1000 as bigint)
                            then n.lease_ms else @max_lease_seconds * cast(1000 as bigint) end),
                   lease_token = t.lease_token + 1, delivery_count = t.delivery_count + 1,
                   deadline_at = wf.wf_add_ms(@now, n.timeout_ms)
              from wf.task as t with (rowlock, readpast)
              join wf.workflow_node as n on n.node_id = t.node_id
             where t.node_execution_id = @v_id and t.worker_id is null
               and (t.pinned_worker_id is null or t.pinned_worker_id = @worker_id);
            if @@rowcount = 0 continue;
            set @v_taken = @v_taken + 1;
            set @v_ends = @v_is_exclusive;
            exec wf.wf_note_claim @node_execution_id = @v_id, @rate_per_minute = @v_rate,
                @now = @now;
        end;
        if (select count(*) from @v_candidate as c) < @v_heads break;
        set @v_heads = @v_heads * 4;
        set @v_page = @v_page + 1;
    end;
end;
GO

-- Adds the task that was just leased to #claimed, and to wf.action_claim when its action is rated.
create or alter procedure wf.wf_note_claim
    @node_execution_id bigint,
    @rate_per_minute int,
    @now datetime2(3)
as
begin
    set nocount, xact_abort on;

    insert into #claimed (node_execution_id, workflow_instance_id, node_key, action_name,
        capability, attempt_no, input_json, iteration_no, lease_token, lease_until_utc,
        deadline_utc, path)
    select t.node_execution_id, t.workflow_instance_id, n.node_key, n.action_name, a.capability,
           t.attempt_no, t.input_json, wf.wf_iteration_no(t.node_execution_id), t.lease_token,
           t.lease_until, t.deadline_at, wf.wf_execution_path(t.node_execution_id)
      from wf.task as t
      join wf.workflow_node as n on n.node_id = t.node_id
      join wf.workflow_action as a on a.action_id = t.action_id
     where t.node_execution_id = @node_execution_id;
    if @rate_per_minute is not null
        insert into wf.action_claim (action_id, claimed_at, node_execution_id, lease_token)
        select t.action_id, @now, t.node_execution_id, t.lease_token
          from wf.task as t
         where t.node_execution_id = @node_execution_id;
end;
GO

-- Takes the throttle of an action for this claim; @is_held 0: another claim has it.
-- Locks: the application lock 'wf.a.<action_id>', without waiting.
create or alter procedure wf.wf_hold_throttle
    @action_id bigint,
    @is_held bit output
as
begin
    set nocount, xact_abort on;
    declare @v_resource nvarchar(255) = concat(N'wf.a.', @action_id);
    declare @v_result int;

    exec @v_result = sys.sp_getapplock @Resource = @v_resource, @LockMode = N'Exclusive',
        @LockOwner = N'Transaction', @LockTimeout = 0;
    set @is_held = case when @v_result >= 0 then 1 else 0 end;
end;
GO

-- Whether an action has no room left over all workers: as many live leases, or claims within the last
-- minute, as the task to be claimed allows. The caller holds the action's throttle.
create or alter procedure wf.wf_is_throttled
    @action_id bigint,
    @max_concurrent int,
    @rate_per_minute int,
    @now datetime2(3),
    @is_throttled bit output
as
begin
    set nocount, xact_abort on;

    set @is_throttled = 0;
    if @max_concurrent <= (select count(*) from wf.task as t
                            where t.action_id = @action_id and t.worker_id is not null
                              and t.max_concurrent is not null)
        set @is_throttled = 1;
    if @is_throttled = 1 or @rate_per_minute is null return;
    delete from wf.action_claim
     where action_id = @action_id and claimed_at <= dateadd(minute, -1, @now);
    if @rate_per_minute <= (select count(*) from wf.action_claim as c
                             where c.action_id = @action_id)
        set @is_throttled = 1;
end;
GO

if object_id(N'wf.wf_claim_candidates', N'IF') is not null
    drop function wf.wf_claim_candidates;
GO

-- Candidates of a claim, read without a lock: of each action that the worker may take, the first
-- @heads rows of the claim index, and of the rows pinned to it (R15). Soft preferences act among
-- these only. Best first is: priority desc, is_own desc, is_group desc, available_at, id.
create function wf.wf_claim_candidates(
    @worker_id nvarchar(200),
    @capability nvarchar(200),
    @heads int
)
returns table
as
return (
    select h.node_execution_id, h.action_id, h.priority, h.available_at, h.max_per_worker,
           h.is_exclusive, h.max_concurrent, h.rate_per_minute,
           case when h.prefers_previous = 1 and f.worker_id = @worker_id then 1 else 0 end
               as is_own,
           case when h.prefers_group = 1 and f.worker_id is not null then 1 else 0 end as is_group
      from (select x.node_execution_id, x.action_id, x.priority, x.available_at,
                   x.workflow_instance_id, x.affinity_key, x.prefers_previous, x.prefers_group,
                   x.max_per_worker, x.is_exclusive, x.max_concurrent, x.rate_per_minute
              from wf.workflow_action as a
             cross apply (
                select top (@heads) t.node_execution_id, t.action_id, t.priority, t.available_at,
                       t.workflow_instance_id, t.affinity_key, t.prefers_previous,
                       t.prefers_group, t.max_per_worker, t.is_exclusive, t.max_concurrent,
                       t.rate_per_minute
                  from wf.task as t with (readpast)
                 where t.action_id = a.action_id and t.is_claimable = 1 and t.worker_id is null
                   and t.pinned_worker_id is null
                 order by t.priority desc, t.available_at, t.node_execution_id) as x
             where a.paused = 0 and (@capability is null or a.capability = @capability)
               and exists (select 1 from wf.worker_capability as c
                            where c.worker_id = @worker_id
                              and (c.capability = a.capability or c.capability = N'*'))
            union all
            select x.node_execution_id, x.action_id, x.priority, x.available_at,
                   x.workflow_instance_id, x.affinity_key, x.prefers_previous, x.prefers_group,
                   x.max_per_worker, x.is_exclusive, x.max_concurrent, x.rate_per_minute
              from wf.workflow_action as a
             cross apply (
                select top (@heads) t.node_execution_id, t.action_id, t.priority, t.available_at,
                       t.workflow_instance_id, t.affinity_key, t.prefers_previous,
                       t.prefers_group, t.max_per_worker, t.is_exclusive, t.max_concurrent,
                       t.rate_per_minute
                  from wf.task as t with (readpast)
                 where t.pinned_worker_id = @worker_id and t.action_id = a.action_id
                   and t.is_claimable = 1 and t.worker_id is null
                 order by t.priority desc, t.available_at, t.node_execution_id) as x
             where a.paused = 0 and (@capability is null or a.capability = @capability)
               and exists (select 1 from wf.worker_capability as c
                            where c.worker_id = @worker_id
                              and (c.capability = a.capability or c.capability = N'*'))) as h
      left join wf.affinity as f
        on (h.prefers_previous = 1 or h.prefers_group = 1)
       and f.workflow_instance_id = h.workflow_instance_id and f.affinity_key = h.affinity_key
);
GO

-- Frees the tasks of an affinity key that are pinned to a worker, when it is gone. Answers how many.
-- Locks: the affinity row, then its task rows. Errors: 20002 the key has no pin in this instance.
create or alter procedure wf.sp_release_affinity
    @workflow_instance_id bigint,
    @affinity_key nvarchar(4000)
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_owns_transaction bit = case when @@trancount = 0 then 1 else 0 end;
    declare @v_message nvarchar(2000);
    declare @v_count int;

    begin try
        if @v_owns_transaction = 1 begin transaction;
        update wf.affinity set released_at = wf.wf_now()
         where workflow_instance_id = @workflow_instance_id and affinity_key = @affinity_key
           and datalength(affinity_key) = datalength(@affinity_key)
           and pinned_worker_id is not null;
        if @@rowcount = 0
        begin
            set @v_message = concat(N'instance ', @workflow_instance_id, N' has no pinned key ',
                                    left(@affinity_key, 200));
            throw 70002, @v_message, 1;
        end;
        update wf.task set pinned_worker_id = null
         where workflow_instance_id = @workflow_instance_id and affinity_key = @affinity_key
           and worker_id is null and pinned_worker_id is not null;
        set @v_count = @@rowcount;
        if @v_owns_transaction = 1 commit transaction;
    end try
    begin catch
        if @v_owns_transaction = 1 and xact_state() <> 0 rollback transaction;
        throw;
    end catch;
    select @v_count as released_count;
end;
GO
