-- Runs a whole workflow inside the database, with scripted results and no worker.
-- Twin: pg/wf_test_bed_run.sql

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

-- Creates an instance, starts it, and plays it to its end as ruling R12 says: claim one task, submit its
-- result; when nothing can be claimed, hand in the next event of the script; when there is none left,
-- move the clock to the next time that something is due. All of it is one transaction, so the clock
-- that it stops and moves is its own: other sessions never see it, and it goes on at the end. The run,
-- its tasks and the instance stay (wf_test_bed_worker.sql has the form of a script).
-- mismatch: how the outcome differs from the script's `expect` (status SUCCEEDED by default; output,
-- when given), or why the run got stuck, which cancels the instance; null: it passed.
-- Locks: those of the calls it makes. Errors: 20002 unknown workflow or version; 20003 other instances
-- are running, whose tasks it would take; 20004 the script or the context has another form; those of
-- wf_repo_create_workflow_instance and sp_start_workflow_instance.
create or alter procedure wf.sp_test_bed_run_workflow
    @workflow_name nvarchar(4000),
    @context_json nvarchar(max),
    @script_json nvarchar(max) = N'{}',
    @workflow_version int = null
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_owns_transaction bit = case when @@trancount = 0 then 1 else 0 end;
    declare @v_running int;
    declare @v_run_id bigint;
    declare @v_message nvarchar(2000);

    exec wf.wf_check_json @what = N'script', @value_json = @script_json;
    begin try
        if @v_owns_transaction = 1 begin transaction;
        select @v_running = count(*) from wf.workflow_instance as i
         where i.status in (N'RUNNING', N'PAUSED');
        if @v_running > 0
        begin
            set @v_message = concat(@v_running,
                N' other instances are running; a test bed has a database of its own');
            throw 70003, @v_message, 1;
        end;
        exec wf.wf_test_bed_run @workflow_name = @workflow_name, @context_json = @context_json,
            @script = @script_json, @workflow_version = @workflow_version,
            @test_bed_run_id = @v_run_id output;
        if @v_owns_transaction = 1 commit transaction;
    end try
    begin catch
        if @v_owns_transaction = 1 and xact_state() <> 0 rollback transaction;
        throw;
    end catch;
    select r.test_bed_run_id, r.workflow_instance_id, r.instance_status, r.task_count,
           r.output_json, r.mismatch
      from wf.test_bed_run as r
     where r.test_bed_run_id = @v_run_id;
end;
GO

-- The run, under a clock that stands still and goes on afterwards.
create or alter procedure wf.wf_test_bed_run
    @workflow_name nvarchar(4000),
    @context_json nvarchar(max),
    @script nvarchar(max),
    @workflow_version int,
    @test_bed_run_id bigint output
as
begin
    set nocount, xact_abort on;
    declare @v_clock nvarchar(max);
    declare @v_instance_id bigint;
    declare @v_version_id bigint;
    declare @v_created bit;
    declare @v_status nvarchar(20);
    declare @v_count int;
    declare @v_problem nvarchar(max);

    select @v_clock = s.value from wf.wf_setting as s where s.name = N'now';
    if @v_clock is null
        insert into wf.wf_setting (name, value) values (N'now', wf.wf_time_text(wf.wf_now()));
    exec wf.wf_create_instance @workflow_name = @workflow_name, @context_json = @context_json,
        @workflow_version = @workflow_version, @business_key = null, @priority = 0,
        @tags_json = null, @workflow_instance_id = @v_instance_id output,
        @created = @v_created output;
    select @v_version_id = i.workflow_version_id from wf.workflow_instance as i
     where i.workflow_instance_id = @v_instance_id;
    set @v_problem = wf.wf_test_bed_script_problem(@script, @v_version_id);
    if @v_problem is not null exec wf.wf_raise @code = 20004, @message = @v_problem;
    insert into wf.test_bed_run (workflow_name, workflow_instance_id, script_json,
        instance_status, task_count, started_at, ended_at)
    values (@workflow_name, @v_instance_id, @script, N'CREATED', 0, wf.wf_now(), wf.wf_now());
    set @test_bed_run_id = scope_identity();
    exec wf.wf_begin_instance @workflow_instance_id = @v_instance_id, @status = @v_status output,
        @ready_count = @v_count output;
    exec wf.wf_test_bed_play @test_bed_run_id = @test_bed_run_id,
        @workflow_instance_id = @v_instance_id, @script = @script, @task_count = @v_count output,
        @problem = @v_problem output;
    update r
       set instance_status = i.status, output_json = x.output_json, ended_at = wf.wf_now(),
           task_count = @v_count,
           mismatch = coalesce(@v_problem, wf.wf_test_bed_mismatch(
               wf.wf_json_member(@script, N'expect'), i.status, x.output_json,
               i.engine_error_message))
      from wf.test_bed_run as r
      join wf.workflow_instance as i on i.workflow_instance_id = r.workflow_instance_id
      join wf.execution_context as x on x.workflow_instance_id = i.workflow_instance_id
     where r.test_bed_run_id = @test_bed_run_id;
    if @v_clock is null delete from wf.wf_setting where name = N'now';
end;
GO

-- A time as the setting `now` has it.
create or alter function wf.wf_time_text(@at datetime2(3)) returns nvarchar(30)
as
begin
    return concat(convert(nvarchar(19), @at, 126), N'.',
                  right(concat(N'000', datepart(millisecond, @at)), 3), N'Z');
end;
GO

-- Plays a started instance to its end. Answers how many tasks it claimed, and why it got stuck, which
-- cancels the instance. The worker it does so as is gone afterwards.
create or alter procedure wf.wf_test_bed_play
    @test_bed_run_id bigint,
    @workflow_instance_id bigint,
    @script nvarchar(max),
    @task_count int output,
    @problem nvarchar(max) output
as
begin
    set nocount, xact_abort on;
    declare @v_worker_id nvarchar(200) = concat(N'wf-test-bed-', @test_bed_run_id);
    declare @v_token nvarchar(200) = cast(newid() as nvarchar(36));
    declare @v_events nvarchar(max) = coalesce(wf.wf_json_member(@script, N'events'), N'[]');
    declare @v_event nvarchar(max);
    declare @v_event_no int = 0;
    declare @v_moves int = 0;
    declare @v_task_no int;
    declare @v_has_acted bit;

    set @task_count = 0;
    set @problem = null;
    exec wf.sp_register_worker @worker_id = @v_worker_id, @worker_token = @v_token,
        @capabilities = N'["*"]', @max_concurrency = 1000;
    while @problem is null and exists (
        select 1 from wf.workflow_instance as i
         where i.workflow_instance_id = @workflow_instance_id and i.status = N'RUNNING')
    begin
        set @v_task_no = @task_count + 1;
        exec wf.wf_test_bed_step @test_bed_run_id = @test_bed_run_id, @task_no = @v_task_no,
            @script = @script, @worker_id = @v_worker_id, @worker_token = @v_token,
            @has_claimed = @v_has_acted output;
        set @v_event = wf.wf_json_item(@v_events, @v_event_no);
        if @v_has_acted = 1
            set @task_count = @v_task_no;
        else if @v_event is not null
        begin
            exec wf.wf_test_bed_send @event = @v_event, @source = @v_worker_id,
                @event_no = @v_event_no;
            set @v_event_no = @v_event_no + 1;
        end
        else
        begin
            exec wf.wf_test_bed_move_clock @workflow_instance_id = @workflow_instance_id,
                @has_moved = @v_has_acted output;
            set @v_moves = @v_moves + 1;
            if @v_has_acted = 0
                set @problem = N'still running: nothing can be claimed and nothing is due';
        end;
        if @problem is null and (@task_count >= 100000 or @v_moves >= 100000)
            set @problem = concat(N'still running after ', @task_count, N' tasks and ', @v_moves,
                                  N' moves of the clock');
    end;
    if @problem is not null
        exec wf.wf_cancel_instance @workflow_instance_id = @workflow_instance_id,
            @reason = @problem;
    delete from wf.worker where worker_id = @v_worker_id;
end;
GO

-- Hands in an event of a script.
create or alter procedure wf.wf_test_bed_send
    @event nvarchar(max),
    @source nvarchar(200),
    @event_no int
as
begin
    set nocount, xact_abort on;
    declare @v_type nvarchar(4000) = json_value(@event, N'$.type');
    declare @v_key nvarchar(4000) = json_value(@event, N'$.correlation_key');
    declare @v_payload nvarchar(max) = wf.wf_json_member(@event, N'payload');
    declare @v_idempotency_key nvarchar(200) = cast(@event_no as nvarchar(20));
    declare @v_event_id bigint;
    declare @v_is_duplicate bit;
    declare @v_applied int;
    declare @v_ignored int;

    exec wf.wf_ingest_event @event_type = @v_type, @source = @source,
        @idempotency_key = @v_idempotency_key, @payload_json = @v_payload,
        @correlation_key = @v_key, @occurred_at_utc = null, @event_id = @v_event_id output,
        @duplicate = @v_is_duplicate output, @applied_count = @v_applied output,
        @ignored_count = @v_ignored output;
end;
GO

-- Moves the stopped clock to the next deadline, delay or timer of an instance and applies what is due
-- then. Answers whether there was one.
create or alter procedure wf.wf_test_bed_move_clock
    @workflow_instance_id bigint,
    @has_moved bit output
as
begin
    set nocount, xact_abort on;
    declare @v_now datetime2(3) = wf.wf_now();
    declare @v_due datetime2(3);
    declare @v_ignored int;

    select @v_due = min(q.due_at)
      from (select t.due_at from wf.timer as t
             where t.workflow_instance_id = @workflow_instance_id
            union all
            select k.deadline_at from wf.task as k
             where k.workflow_instance_id = @workflow_instance_id
            union all
            select k.available_at from wf.task as k
             where k.workflow_instance_id = @workflow_instance_id and k.is_claimable = 0) as q;
    set @has_moved = case when @v_due is null then 0 else 1 end;
    if @v_due is null return;
    if @v_due > @v_now
        update wf.wf_setting set value = wf.wf_time_text(@v_due) where name = N'now';
    exec wf.wf_run_passes @reclaimed_count = @v_ignored output,
        @timer_count = @v_ignored output, @released_count = @v_ignored output;
end;
GO

-- How an outcome differs from what a script expects; null: it does not.
create or alter function wf.wf_test_bed_mismatch(
    @expect nvarchar(max),
    @status nvarchar(20),
    @output nvarchar(max),
    @message nvarchar(max)
) returns nvarchar(max)
as
begin
    declare @v_status nvarchar(max) = coalesce(
        wf.wf_scalar_text(nullif(wf.wf_json_member(@expect, N'status'), N'null')), N'SUCCEEDED');
    declare @v_output nvarchar(max) = wf.wf_json_member(@expect, N'output');

    if @status <> @v_status collate Latin1_General_100_BIN2
        return concat(N'status ', @status, N', not ', @v_status, N': ' + @message);
    if @v_output is not null and wf.wf_is_same_json(@output, @v_output) = 0
        return concat(N'output ', coalesce(@output, N'none'), N', not ', @v_output);
    return null;
end;
GO
