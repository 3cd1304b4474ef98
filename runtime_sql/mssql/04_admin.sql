-- Administration: workers and instances. Twin: pg/04_admin.sql

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

-- Throws an error of the engine or the API: 50000 + code (R23).
create or alter procedure wf.wf_raise
    @code int,
    @message nvarchar(max)
as
begin
    set nocount, xact_abort on;
    declare @v_number int = 50000 + @code;
    declare @v_message nvarchar(2000) = left(@message, 2000);

    throw @v_number, @v_message, 1;
end;
GO

-- Registers a worker or renews it: its capabilities, a JSON array of texts (`*`: all actions), and
-- its token. A worker has at most two live tokens, so that one can be rotated while the other is in
-- use; the older goes. Locks: the application lock 'wf.w.<worker_id>', then the worker's rows.
-- Errors: 20004 an argument is out of bounds.
create or alter procedure wf.sp_register_worker
    @worker_id nvarchar(4000),
    @worker_token nvarchar(4000),
    @capabilities nvarchar(max),
    @max_concurrency int = 1
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_owns_transaction bit = case when @@trancount = 0 then 1 else 0 end;
    declare @v_capability table (
        capability nvarchar(200) collate Latin1_General_100_BIN2 not null primary key
    );

    exec wf.wf_check_key @what = N'worker_id', @value = @worker_id;
    if @worker_token is null or len(@worker_token + N'.') - 1 not between 20 and 200
        throw 70004, N'worker_token must have 20 to 200 characters', 1;
    exec wf.wf_check_capabilities @capabilities = @capabilities;
    if @max_concurrency is null or @max_concurrency not between 1 and 1000
        throw 70004, N'max_concurrency must be between 1 and 1000', 1;
    insert into @v_capability (capability)
    select distinct c.value collate Latin1_General_100_BIN2 from openjson(@capabilities) as c;
    begin try
        if @v_owns_transaction = 1 begin transaction;
        exec wf.wf_write_worker @worker_id = @worker_id, @max_concurrency = @max_concurrency,
            @worker_token = @worker_token;
        delete from wf.worker_capability
         where worker_id = @worker_id
           and capability not in (select c.capability from @v_capability as c);
        insert into wf.worker_capability (worker_id, capability)
        select @worker_id, c.capability
          from @v_capability as c
         where not exists (select 1 from wf.worker_capability as o
                            where o.worker_id = @worker_id and o.capability = c.capability);
        if @v_owns_transaction = 1 commit transaction;
    end try
    begin catch
        if @v_owns_transaction = 1 and xact_state() <> 0 rollback transaction;
        throw;
    end catch;
end;
GO

-- Checks a list of capabilities: a JSON array of keys, or null. Errors: 20004.
create or alter procedure wf.wf_check_capabilities
    @capabilities nvarchar(max)
as
begin
    set nocount, xact_abort on;
    declare @v_index int = 0;
    declare @v_value nvarchar(4000);
    declare @v_type int;

    if @capabilities is null return;
    exec wf.wf_check_json @what = N'capabilities', @value_json = @capabilities;
    if wf.wf_json_type(@capabilities) <> N'array'
        throw 70004, N'capabilities must be a JSON array of texts', 1;
    while 1 = 1
    begin
        set @v_type = null;
        select @v_type = c.type, @v_value = cast(c.value as nvarchar(4000))
          from openjson(@capabilities) as c
         where c.[key] = cast(@v_index as nvarchar(20));
        if @v_type is null break;
        if @v_type <> 1 throw 70004, N'capabilities must be a JSON array of texts', 1;
        exec wf.wf_check_key @what = N'capability', @value = @v_value;
        set @v_index = @v_index + 1;
    end;
end;
GO

-- Writes the row of a worker, its presence and a token; of its tokens the two newest live ones stay.
create or alter procedure wf.wf_write_worker
    @worker_id nvarchar(200),
    @max_concurrency int,
    @worker_token nvarchar(4000)
as
begin
    set nocount, xact_abort on;
    declare @v_resource nvarchar(255) = concat(N'wf.w.', @worker_id);
    declare @v_result int;
    declare @v_now datetime2(3) = wf.wf_now();
    declare @v_salt varbinary(64) = cast(newid() as binary(16));
    declare @v_token_id nvarchar(200) = lower(convert(varchar(200), @v_salt, 2));

    exec @v_result = sys.sp_getapplock @Resource = @v_resource, @LockMode = N'Exclusive',
        @LockOwner = N'Transaction', @LockTimeout = 60000;
    if @v_result < 0 throw 70009, N'the worker is being registered; try again', 1;
    update wf.worker set max_concurrency = @max_concurrency, desired_state = N'ACTIVE'
     where worker_id = @worker_id;
    if @@rowcount = 0
        insert into wf.worker (worker_id, max_concurrency, registered_at)
        values (@worker_id, @max_concurrency, @v_now);
    insert into wf.worker_token (worker_id, token_id, salt, token_hash, created_at)
    values (@worker_id, @v_token_id, @v_salt, wf.wf_token_digest(@v_salt, @worker_token), @v_now);
    delete from wf.worker_token
     where worker_id = @worker_id
       and token_id not in (
        select top (2) o.token_id
          from wf.worker_token as o
         where o.worker_id = @worker_id and o.revoked_at is null
         order by case when o.token_id = @v_token_id then 0 else 1 end, o.created_at desc);
    update wf.worker_presence set last_seen_at = @v_now where worker_id = @worker_id;
    if @@rowcount = 0
        insert into wf.worker_presence (worker_id, last_seen_at) values (@worker_id, @v_now);
end;
GO

-- Sets what a worker is told at its next claim or heartbeat: ACTIVE, DRAINING or STOPPING.
-- Locks: the worker's row. Errors: 20002 unknown worker, 20004 unknown state.
create or alter procedure wf.sp_set_worker_state
    @worker_id nvarchar(4000),
    @desired_state nvarchar(4000)
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_message nvarchar(2000);

    if @desired_state is null
       or @desired_state collate Latin1_General_100_BIN2
          not in (N'ACTIVE', N'DRAINING', N'STOPPING')
        throw 70004, N'desired_state must be ACTIVE, DRAINING or STOPPING', 1;
    update wf.worker set desired_state = @desired_state
     where worker_id = @worker_id and datalength(worker_id) = datalength(@worker_id);
    if @@rowcount = 0
    begin
        set @v_message = concat(N'there is no worker ', left(@worker_id, 200));
        throw 70002, @v_message, 1;
    end;
end;
GO

-- Instances ---------------------------------------------------------------------------------------

-- Takes an instance's gate exclusive, in the caller's transaction, and answers its status.
-- Errors: 20002 unknown instance.
create or alter procedure wf.wf_lock_instance
    @workflow_instance_id bigint,
    @status nvarchar(20) output
as
begin
    set nocount, xact_abort on;
    declare @v_message nvarchar(2000);

    set @status = null;
    if @workflow_instance_id is not null
        exec wf.wf_take_gate @workflow_instance_id = @workflow_instance_id, @is_exclusive = 1;
    select @status = i.status from wf.workflow_instance as i
     where i.workflow_instance_id = @workflow_instance_id;
    if @status is null
    begin
        set @v_message = concat(N'there is no workflow instance ', @workflow_instance_id);
        throw 70002, @v_message, 1;
    end;
end;
GO

-- Cancels an instance: everything open ends at once and neither on_error nor finally runs (R13). A
-- worker with a task of it hears CANCEL at its next heartbeat. Cancelling a cancelled one again
-- changes nothing. Locks: the gate exclusive. Errors: 20002; 20003 it has succeeded or failed.
create or alter procedure wf.sp_cancel_workflow_instance
    @workflow_instance_id bigint,
    @reason nvarchar(max) = null
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;

    exec wf.wf_cancel_instance @workflow_instance_id = @workflow_instance_id, @reason = @reason;
    select N'CANCELLED' as instance_status;
end;
GO

-- The work of sp_cancel_workflow_instance; the deletion of a workflow calls it too.
create or alter procedure wf.wf_cancel_instance
    @workflow_instance_id bigint,
    @reason nvarchar(max)
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_owns_transaction bit = case when @@trancount = 0 then 1 else 0 end;
    declare @v_status nvarchar(20);
    declare @v_now datetime2(3);
    declare @v_root_id bigint;
    declare @v_message nvarchar(2000);
    create table #call (now datetime2(3) not null, first_new_id bigint not null, work_left bigint not null, work_limit bigint not null, has_closed bit not null, restart_instance_id bigint null);
    create table #exclusive (workflow_instance_id bigint not null primary key);
    create table #agenda (ordinal int not null, node_execution_id bigint not null, workflow_instance_id bigint not null, kind nchar(1) not null);   -- the level in work
    create table #next (seq bigint identity(1, 1) not null, ordinal int not null, node_execution_id bigint not null, workflow_instance_id bigint not null, kind nchar(1) not null);     -- what it leads to
    create table #held (ordinal int not null, node_execution_id bigint not null, workflow_instance_id bigint not null);
    create table #waits (seq bigint identity(1, 1) not null, node_execution_id bigint not null, workflow_instance_id bigint not null);
    create table #entry (ordinal int not null, node_execution_id bigint not null, workflow_instance_id bigint not null, kind nchar(1) not null);    -- the entries a handler takes
    create table #step (seq bigint identity(1, 1) not null, ordinal int not null, rank int not null, step nvarchar(7) not null, node_execution_id bigint not null, workflow_instance_id bigint not null, node_id bigint null, iteration_no int null, item_json nvarchar(max) null, result_code int null, engine_error_code int null, message nvarchar(max) null, error_execution_id bigint null);
    begin try
        if @v_owns_transaction = 1 begin transaction;
        exec wf.wf_lock_instance @workflow_instance_id = @workflow_instance_id,
            @status = @v_status output;
        if @v_status in (N'SUCCEEDED', N'FAILED')
        begin
            set @v_message = concat(N'instance ', @workflow_instance_id, N' has ',
                                    lower(@v_status));
            throw 70003, @v_message, 1;
        end;
        if @v_status <> N'CANCELLED'
        begin
            set @v_now = wf.wf_now();
            insert into #call (now, first_new_id, work_left, work_limit, has_closed)
            values (@v_now, 0, 0, 0, 0);
            select @v_root_id = i.root_execution_id from wf.workflow_instance as i
             where i.workflow_instance_id = @workflow_instance_id;
            if @v_root_id is not null
            begin
                exec wf.wf_cancel_below @ordinal = 1,
                    @workflow_instance_id = @workflow_instance_id,
                    @node_execution_id = @v_root_id, @is_operator = 1;
                exec wf.wf_cancel_root @root_execution_id = @v_root_id;
            end;
            update wf.workflow_instance
               set status = N'CANCELLED', ended_at = @v_now, cancel_reason = @reason,
                   engine_error_code = 10016,
                   engine_error_message = concat(N'cancelled by an operator', N': ' + @reason),
                   error_execution_id = @v_root_id
             where workflow_instance_id = @workflow_instance_id;
            insert into wf.audit_log (at, what, detail_json)
            values (@v_now, N'cancel', concat(N'{"instance":', @workflow_instance_id,
                    N',"reason":', coalesce(wf.wf_json_quote(@reason), N'null'), N'}'));
        end;
        if @v_owns_transaction = 1 commit transaction;
    end try
    begin catch
        if @v_owns_transaction = 1 and xact_state() <> 0 rollback transaction;
        throw;
    end catch;
end;
GO

-- Makes the root execution of an instance CANCELLED for good. Reads #call (now).
create or alter procedure wf.wf_cancel_root
    @root_execution_id bigint
as
begin
    set nocount, xact_abort on;
    create table #open (node_execution_id bigint not null);

    insert into #open (node_execution_id) values (@root_execution_id);
    exec wf.wf_cancel_executions @is_for_good = 1;
    delete from wf.timer where node_execution_id = @root_execution_id;
end;
GO

-- Pauses a running instance: nothing of it is claimed and no timer acts until it is resumed; results,
-- heartbeats and events are taken as ever, and what they activate waits (R14).
-- Locks: the gate exclusive. Errors: 20002; 20003 it is not running.
create or alter procedure wf.sp_pause_workflow_instance
    @workflow_instance_id bigint
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;

    exec wf.wf_pause_instance @workflow_instance_id = @workflow_instance_id;
    select N'PAUSED' as instance_status;
end;
GO

-- The work of sp_pause_workflow_instance.
create or alter procedure wf.wf_pause_instance
    @workflow_instance_id bigint
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_owns_transaction bit = case when @@trancount = 0 then 1 else 0 end;
    declare @v_status nvarchar(20);
    declare @v_message nvarchar(2000);

    begin try
        if @v_owns_transaction = 1 begin transaction;
        exec wf.wf_lock_instance @workflow_instance_id = @workflow_instance_id,
            @status = @v_status output;
        if @v_status not in (N'RUNNING', N'PAUSED')
        begin
            set @v_message = concat(N'instance ', @workflow_instance_id, N' is ',
                                    lower(@v_status), N', not running');
            throw 70003, @v_message, 1;
        end;
        update wf.workflow_instance set status = N'PAUSED'
         where workflow_instance_id = @workflow_instance_id;
        update wf.task set is_claimable = 0
         where workflow_instance_id = @workflow_instance_id;
        if @v_owns_transaction = 1 commit transaction;
    end try
    begin catch
        if @v_owns_transaction = 1 and xact_state() <> 0 rollback transaction;
        throw;
    end catch;
end;
GO

-- Resumes a paused instance; timers that came due meanwhile act now, in due order.
-- Locks: the gate exclusive. Errors: 20002; 20003 it is not paused.
create or alter procedure wf.sp_resume_workflow_instance
    @workflow_instance_id bigint
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_status nvarchar(20);

    exec wf.wf_resume_instance @workflow_instance_id = @workflow_instance_id,
        @status = @v_status output;
    select @v_status as instance_status;
end;
GO

-- The work of sp_resume_workflow_instance.
create or alter procedure wf.wf_resume_instance
    @workflow_instance_id bigint,
    @status nvarchar(20) output
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_owns_transaction bit = case when @@trancount = 0 then 1 else 0 end;
    declare @v_status nvarchar(20);
    declare @v_now datetime2(3);
    declare @v_message nvarchar(2000);
    create table #call (now datetime2(3) not null, first_new_id bigint not null, work_left bigint not null, work_limit bigint not null, has_closed bit not null, restart_instance_id bigint null);
    create table #exclusive (workflow_instance_id bigint not null primary key);
    create table #agenda (ordinal int not null, node_execution_id bigint not null, workflow_instance_id bigint not null, kind nchar(1) not null);   -- the level in work
    create table #next (seq bigint identity(1, 1) not null, ordinal int not null, node_execution_id bigint not null, workflow_instance_id bigint not null, kind nchar(1) not null);     -- what it leads to
    create table #held (ordinal int not null, node_execution_id bigint not null, workflow_instance_id bigint not null);
    create table #waits (seq bigint identity(1, 1) not null, node_execution_id bigint not null, workflow_instance_id bigint not null);
    create table #entry (ordinal int not null, node_execution_id bigint not null, workflow_instance_id bigint not null, kind nchar(1) not null);    -- the entries a handler takes
    create table #step (seq bigint identity(1, 1) not null, ordinal int not null, rank int not null, step nvarchar(7) not null, node_execution_id bigint not null, workflow_instance_id bigint not null, node_id bigint null, iteration_no int null, item_json nvarchar(max) null, result_code int null, engine_error_code int null, message nvarchar(max) null, error_execution_id bigint null);
    begin try
        if @v_owns_transaction = 1 begin transaction;
        exec wf.wf_lock_instance @workflow_instance_id = @workflow_instance_id,
            @status = @v_status output;
        if @v_status not in (N'RUNNING', N'PAUSED')
        begin
            set @v_message = concat(N'instance ', @workflow_instance_id, N' is ',
                                    lower(@v_status), N', not paused');
            throw 70003, @v_message, 1;
        end;
        if @v_status = N'PAUSED'
        begin
            set @v_now = wf.wf_now();
            insert into #call (now, first_new_id, work_left, work_limit, has_closed)
            values (@v_now, 0, 0, 0, 0);
            insert into #exclusive (workflow_instance_id) values (@workflow_instance_id);
            update wf.workflow_instance set status = N'RUNNING'
             where workflow_instance_id = @workflow_instance_id;
            update wf.task
               set is_claimable = case when available_at <= @v_now then 1 else 0 end
             where workflow_instance_id = @workflow_instance_id;
            exec wf.wf_apply_due @workflow_instance_id = @workflow_instance_id;
        end;
        select @status = i.status from wf.workflow_instance as i
         where i.workflow_instance_id = @workflow_instance_id;
        if @v_owns_transaction = 1 commit transaction;
    end try
    begin catch
        if @v_owns_transaction = 1 and xact_state() <> 0 rollback transaction;
        throw;
    end catch;
end;
GO

-- Removes up to @limit instances that ended before @ended_before, with all their rows; events and
-- bundles stay. Call it until it answers 0. Locks: the gates of the instances it removes, at once or
-- not at all. Errors: 20004 an argument is missing or out of bounds.
create or alter procedure wf.sp_purge_instances
    @ended_before datetime2(3),
    @limit int = 1000
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_owns_transaction bit = case when @@trancount = 0 then 1 else 0 end;
    declare @v_id bigint = 0;
    declare @v_next_id bigint;
    declare @v_is_taken bit;
    declare @v_count int;
    create table #removed (workflow_instance_id bigint not null primary key);

    if @ended_before is null or @limit is null or @limit not between 1 and 10000
        throw 70004, N'ended_before must be a time and limit between 1 and 10000', 1;
    begin try
        if @v_owns_transaction = 1 begin transaction;
        insert into #removed (workflow_instance_id)
        select top (@limit) i.workflow_instance_id
          from wf.workflow_instance as i
         where i.status in (N'SUCCEEDED', N'FAILED', N'CANCELLED')
           and i.ended_at < @ended_before
         order by i.workflow_instance_id;
        while 1 = 1
        begin
            select @v_next_id = min(r.workflow_instance_id) from #removed as r
             where r.workflow_instance_id > @v_id;
            if @v_next_id is null break;
            set @v_id = @v_next_id;
            exec wf.wf_take_gate @workflow_instance_id = @v_id, @is_exclusive = 1, @waits = 0,
                @is_taken = @v_is_taken output;
            -- Another call may have retried or removed it before the gate was had.
            if @v_is_taken = 0 or not exists (
                select 1 from wf.workflow_instance as i
                 where i.workflow_instance_id = @v_id
                   and i.status in (N'SUCCEEDED', N'FAILED', N'CANCELLED')
                   and i.ended_at < @ended_before)
                delete from #removed where workflow_instance_id = @v_id;
        end;
        select @v_count = count(*) from #removed as r;
        exec wf.wf_remove_instances;
        if @v_owns_transaction = 1 commit transaction;
    end try
    begin catch
        if @v_owns_transaction = 1 and xact_state() <> 0 rollback transaction;
        throw;
    end catch;
    select @v_count as purged_count;
end;
GO

-- Removes the instances of #removed (workflow_instance_id), which have ended, with all their rows;
-- the caller holds their gates exclusive.
create or alter procedure wf.wf_remove_instances
as
begin
    set nocount, xact_abort on;
    create table #open (node_execution_id bigint not null);

    delete from wf.scope_variable
     where scope_id in (select s.scope_id from wf.scope as s
                          join #removed as r on r.workflow_instance_id = s.workflow_instance_id);
    delete from wf.scope
     where workflow_instance_id in (select r.workflow_instance_id from #removed as r);
    delete from wf.node_attempt
     where node_execution_id in (
        select e.node_execution_id from wf.node_execution as e
          join #removed as r on r.workflow_instance_id = e.workflow_instance_id);
    insert into #open (node_execution_id)
    select e.node_execution_id
      from wf.node_execution as e
      join #removed as r on r.workflow_instance_id = e.workflow_instance_id
     where e.status in (N'FAILED', N'CANCELLED');
    exec wf.wf_forget_progress;
    delete from wf.node_execution
     where workflow_instance_id in (select r.workflow_instance_id from #removed as r);
    delete from wf.execution_context
     where workflow_instance_id in (select r.workflow_instance_id from #removed as r);
    delete from wf.instance_extension
     where workflow_instance_id in (select r.workflow_instance_id from #removed as r);
    delete from wf.validation_plan
     where workflow_instance_id in (select r.workflow_instance_id from #removed as r);
    delete from wf.instance_tag
     where workflow_instance_id in (select r.workflow_instance_id from #removed as r);
    delete from wf.affinity
     where workflow_instance_id in (select r.workflow_instance_id from #removed as r);
    delete from wf.workflow_instance
     where workflow_instance_id in (select r.workflow_instance_id from #removed as r);
end;
GO
