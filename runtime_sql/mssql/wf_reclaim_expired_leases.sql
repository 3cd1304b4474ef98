-- Leases whose worker went silent. Twin: pg/wf_reclaim_expired_leases.sql

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

-- Takes back up to @limit leases that have ended (R20). A loss counts as a failed attempt when the
-- node's retry policy takes it; otherwise the same attempt is offered again, up to the action's
-- max_deliveries, and then, or at the first loss of an action that is not idempotent, the node fails
-- with 10014. Answers how many leases were taken back. For a caller that has the engine's tables; as
-- all passes, called before `begin transaction` (wf_timers.sql).
-- Locks: a task row; where an attempt ends, first its instance's gate exclusive without waiting.
create or alter procedure wf.wf_reclaim_leases
    @limit int,
    @count int output
as
begin
    set nocount, xact_abort on;
    declare @v_now datetime2(3);
    declare @v_id bigint;
    declare @v_instance_id bigint;
    declare @v_is_lost bit;
    declare @v_is_taken_back bit;
    declare @v_lease table (
        position bigint not null primary key,
        node_execution_id bigint not null,
        workflow_instance_id bigint not null,
        is_lost bit not null
    );

    set @count = 0;
    if @limit is null or @limit > 10000 set @limit = 10000;
    if @limit <= 0 return;
    select @v_now = c.now from #call as c;
    insert into @v_lease (position, node_execution_id, workflow_instance_id, is_lost)
    select row_number() over (order by q.lease_until, q.node_execution_id), q.node_execution_id,
           q.workflow_instance_id, q.is_lost
      from (select top (@limit) t.node_execution_id, t.workflow_instance_id, t.lease_until,
                   case when wf.wf_retry_takes(n.retry_json, t.attempt_no - t.attempts_before,
                                               N'lease') = 1
                          or t.delivery_count >= coalesce(
                                cast(json_value(n.attributes_json, N'$.dispatch.max_deliveries')
                                     as int), a.max_deliveries)
                          or coalesce(json_value(n.attributes_json, N'$.dispatch.idempotent'),
                                      case r.idempotent when 0 then N'false' else N'true' end)
                             = N'false'
                        then 1 else 0 end as is_lost
              from wf.task as t with (readpast)
              join wf.workflow_action as a on a.action_id = t.action_id
              join wf.workflow_node as n on n.node_id = t.node_id
              left join wf.workflow_action_revision as r
                on r.action_name = n.action_name and r.revision = n.action_revision
             where t.worker_id is not null and t.lease_until < @v_now
             order by t.lease_until, t.node_execution_id) as q;
    declare v_lease cursor local static for
        select l.node_execution_id, l.workflow_instance_id, l.is_lost from @v_lease as l
         order by l.position;
    open v_lease;
    fetch next from v_lease into @v_id, @v_instance_id, @v_is_lost;
    while @@fetch_status = 0
    begin
        set @v_is_taken_back = 0;
        if @v_is_lost = 1
            exec wf.wf_lose_task @node_execution_id = @v_id,
                @workflow_instance_id = @v_instance_id, @is_lost = @v_is_taken_back output;
        else
        begin
            -- The attempt goes on under its number; who lost it, and when, stays known (R4).
            update t
               set worker_id = null, lease_until = null, deadline_at = null
            output deleted.node_execution_id, deleted.lease_token, deleted.attempt_no,
                   deleted.worker_id, N'OK', 10014,
                   N'the lease was lost; the attempt is offered again', deleted.claimed_at, @v_now
              into wf.node_attempt (node_execution_id, lease_token, attempt_no, worker_id, answer,
                                    engine_error_code, engine_error_message, claimed_at, ended_at)
              from wf.task as t with (rowlock, readpast)
             where t.node_execution_id = @v_id and t.worker_id is not null
               and t.lease_until < @v_now;
            if @@rowcount > 0 set @v_is_taken_back = 1;
        end;
        set @count = @count + case when @v_is_taken_back = 1 then 1 else 0 end;
        fetch next from v_lease into @v_id, @v_instance_id, @v_is_lost;
    end;
    close v_lease;
    deallocate v_lease;
end;
GO

-- Ends an attempt whose lease was lost (10014), in a transaction of its own: whatever one instance
-- makes of its loss, the others are taken back. Does nothing when another call holds the instance's
-- gate or the lease was extended meanwhile.
create or alter procedure wf.wf_lose_task
    @node_execution_id bigint,
    @workflow_instance_id bigint,
    @is_lost bit output
as
begin
    set nocount, xact_abort on;
    declare @v_owns_transaction bit = case when @@trancount = 0 then 1 else 0 end;
    declare @v_now datetime2(3);
    declare @v_is_taken bit;
    declare @v_retry nvarchar(max);
    declare @v_message nvarchar(2000);

    set @is_lost = 0;
    select @v_now = c.now from #call as c;
    begin try
        if @v_owns_transaction = 1 begin transaction;
        delete from #exclusive;
        delete from #agenda;
        exec wf.wf_take_gate @workflow_instance_id = @workflow_instance_id, @is_exclusive = 1,
            @waits = 0, @is_taken = @v_is_taken output;
        if @v_is_taken = 1
        begin
            insert into #exclusive (workflow_instance_id) values (@workflow_instance_id);
            -- The update that changes nothing takes the row, so that no heartbeat extends the lease
            -- meanwhile.
            update wf.task
               set lease_until = lease_until
             where node_execution_id = @node_execution_id and lease_until < @v_now;
            if @@rowcount > 0
            begin
                select @v_retry = n.retry_json
                  from wf.task as t
                  join wf.workflow_node as n on n.node_id = t.node_id
                 where t.node_execution_id = @node_execution_id;
                exec wf.wf_fail_attempt @node_execution_id = @node_execution_id,
                    @retry_json = @v_retry, @failure = N'lease', @engine_error_code = 10014,
                    @text = N'the lease was lost after its last delivery';
                set @is_lost = 1;
            end;
        end;
        if @v_owns_transaction = 1 commit transaction;
    end try
    begin catch
        if @v_owns_transaction = 0 throw;
        if xact_state() <> 0 rollback transaction;
        set @is_lost = 0;
        set @v_message = concat(N'instance ', @workflow_instance_id,
            N' could not be told of a lost lease: ', left(error_message(), 1500));
        raiserror (N'%s', 10, 1, @v_message) with nowait;
    end catch;
end;
GO

-- The pass as a call of its own: answers how many leases were taken back.
create or alter procedure wf.wf_reclaim_expired_leases
    @limit int = 100
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_count int;
    create table #call (now datetime2(3) not null, first_new_id bigint not null, work_left bigint not null, work_limit bigint not null, has_closed bit not null, restart_instance_id bigint null);
    create table #exclusive (workflow_instance_id bigint not null primary key);
    create table #agenda (ordinal int not null, node_execution_id bigint not null, workflow_instance_id bigint not null, kind nchar(1) not null);   -- the level in work
    create table #next (seq bigint identity(1, 1) not null, ordinal int not null, node_execution_id bigint not null, workflow_instance_id bigint not null, kind nchar(1) not null);     -- what it leads to
    create table #held (ordinal int not null, node_execution_id bigint not null, workflow_instance_id bigint not null);
    create table #waits (seq bigint identity(1, 1) not null, node_execution_id bigint not null, workflow_instance_id bigint not null);
    create table #entry (ordinal int not null, node_execution_id bigint not null, workflow_instance_id bigint not null, kind nchar(1) not null);    -- the entries a handler takes
    create table #step (seq bigint identity(1, 1) not null, ordinal int not null, rank int not null, step nvarchar(7) not null, node_execution_id bigint not null, workflow_instance_id bigint not null, node_id bigint null, iteration_no int null, item_json nvarchar(max) null, result_code int null, engine_error_code int null, message nvarchar(max) null, error_execution_id bigint null);

    insert into #call (now, first_new_id, work_left, work_limit, has_closed)
    values (wf.wf_now(), 0, 0, 0, 0);
    exec wf.wf_reclaim_leases @limit = @limit, @count = @v_count output;
    select @v_count as wf_reclaim_expired_leases;
end;
GO
