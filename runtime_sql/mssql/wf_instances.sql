-- Creating and starting instances. Twin: pg/wf_instances.sql

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

-- Creates an instance of a workflow; it starts with sp_start_workflow_instance.
-- @workflow_version null: the active one. (workflow, @business_key) is unique until purge: a
-- repeat answers the existing instance with created = 0, also when both calls come at once.
-- Errors: 20002 unknown workflow or version; 20004 the context is no object, or a key is out of
-- bounds; 20005 context over 16 MB; 20010 the business key was used with another context.
create or alter procedure wf.wf_repo_create_workflow_instance
    @workflow_name nvarchar(4000),
    @context_json nvarchar(max),
    @workflow_version int = null,
    @business_key nvarchar(4000) = null,
    @priority int = 0,
    @tags_json nvarchar(max) = null
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_id bigint;
    declare @v_created bit;

    exec wf.wf_create_instance @workflow_name = @workflow_name, @context_json = @context_json,
        @workflow_version = @workflow_version, @business_key = @business_key,
        @priority = @priority, @tags_json = @tags_json, @workflow_instance_id = @v_id output,
        @created = @v_created output;
    select i.workflow_instance_id, i.workflow_version_id, @v_created as created
      from wf.workflow_instance as i
     where i.workflow_instance_id = @v_id;
end;
GO

-- The work of wf_repo_create_workflow_instance.
create or alter procedure wf.wf_create_instance
    @workflow_name nvarchar(4000),
    @context_json nvarchar(max),
    @workflow_version int,
    @business_key nvarchar(4000),
    @priority int,
    @tags_json nvarchar(max),
    @workflow_instance_id bigint output,
    @created bit output
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_owns_transaction bit = case when @@trancount = 0 then 1 else 0 end;
    declare @v_version_id bigint;
    declare @v_message nvarchar(2000);

    set @created = 1;
    exec wf.wf_check_json @what = N'context', @value_json = @context_json;
    if coalesce(wf.wf_json_type(@context_json), N'') <> N'object'
        throw 70004, N'the context must be a JSON object', 1;
    exec wf.wf_check_tags @tags_json = @tags_json;
    if @business_key is not null
        exec wf.wf_check_key @what = N'business_key', @value = @business_key;
    select @v_version_id = v.workflow_version_id
      from wf.workflow_def as d
      join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id
     where d.name = @workflow_name and datalength(d.name) = datalength(@workflow_name)
       and v.published_at is not null
       and (@workflow_version is null and v.is_active = 1 or v.version_no = @workflow_version);
    if @v_version_id is null
    begin
        set @v_message = concat(N'there is no workflow ', left(@workflow_name, 200),
            coalesce(N' of version ' + cast(@workflow_version as nvarchar(20)),
                     N' with an active version'));
        throw 70002, @v_message, 1;
    end;
    begin try
        if @v_owns_transaction = 1 begin transaction;
        exec wf.wf_insert_instance @workflow_version_id = @v_version_id,
            @business_key = @business_key, @priority = @priority, @tags_json = @tags_json,
            @workflow_instance_id = @workflow_instance_id output;
        if @workflow_instance_id is null
        begin
            set @created = 0;
            exec wf.wf_find_instance @workflow_version_id = @v_version_id,
                @business_key = @business_key, @context_json = @context_json,
                @workflow_instance_id = @workflow_instance_id output;
        end
        else
        begin
            insert into wf.execution_context (workflow_instance_id, context_json)
            values (@workflow_instance_id, @context_json);
            insert into wf.instance_tag (workflow_instance_id, name, value)
            select @workflow_instance_id, t.[key], t.value from openjson(@tags_json) as t;
        end;
        if @v_owns_transaction = 1 commit transaction;
    end try
    begin catch
        if @v_owns_transaction = 1 and xact_state() <> 0 rollback transaction;
        throw;
    end catch;
end;
GO

-- Refuses tags that cannot be stored and looked up: 20004.
create or alter procedure wf.wf_check_tags
    @tags_json nvarchar(max)
as
begin
    set nocount, xact_abort on;
    declare @v_name nvarchar(4000);

    if @tags_json is null return;
    exec wf.wf_check_json @what = N'tags', @value_json = @tags_json, @has_limit = 0;
    if wf.wf_json_type(@tags_json) <> N'object'
        throw 70004, N'the tags must be a JSON object', 1;
    declare v_tag cursor local static for select t.[key] from openjson(@tags_json) as t;
    open v_tag;
    fetch next from v_tag into @v_name;
    while @@fetch_status = 0
    begin
        exec wf.wf_check_key @what = N'a tag', @value = @v_name;
        fetch next from v_tag into @v_name;
    end;
    close v_tag;
    deallocate v_tag;
    if exists (select 1 from openjson(@tags_json) as t
                where t.type in (0, 4, 5) or len(t.value + N'.') - 1 > 200)
        throw 70004, N'the value of a tag must be a string, a number or a boolean, of at most 200 characters', 1;
end;
GO

-- Inserts the row of an instance; @workflow_instance_id null: its business key is in use. That is no
-- failure, so nothing here may doom the transaction.
create or alter procedure wf.wf_insert_instance
    @workflow_version_id bigint,
    @business_key nvarchar(200),
    @priority int,
    @tags_json nvarchar(max),
    @workflow_instance_id bigint output
as
begin
    set nocount on;
    set xact_abort off;

    set @workflow_instance_id = null;
    begin try
        insert into wf.workflow_instance (workflow_def_id, workflow_version_id, spec_format,
                                          priority, business_key, tags_json, created_at)
        select v.workflow_def_id, v.workflow_version_id, v.spec_format, coalesce(@priority, 0),
               @business_key, coalesce(@tags_json, N'{}'), wf.wf_now()
          from wf.workflow_version as v
         where v.workflow_version_id = @workflow_version_id;
        set @workflow_instance_id = scope_identity();
    end try
    begin catch
        if @business_key is null or error_number() not in (2601, 2627) throw;
    end catch;
    set xact_abort on;
end;
GO

-- The instance that has a business key already. Errors: 20010 it has another context.
create or alter procedure wf.wf_find_instance
    @workflow_version_id bigint,
    @business_key nvarchar(200),
    @context_json nvarchar(max),
    @workflow_instance_id bigint output
as
begin
    set nocount, xact_abort on;
    declare @v_context_json nvarchar(max);
    declare @v_message nvarchar(2000);

    select @workflow_instance_id = i.workflow_instance_id, @v_context_json = x.context_json
      from wf.workflow_version as v
      join wf.workflow_instance as i
        on i.workflow_def_id = v.workflow_def_id and i.business_key = @business_key
      join wf.execution_context as x on x.workflow_instance_id = i.workflow_instance_id
     where v.workflow_version_id = @workflow_version_id;
    if wf.wf_is_same_json(@v_context_json, @context_json) = 0
    begin
        select @v_message = concat(N'business key ', @business_key, N' of workflow ', d.name,
                                   N' was used with another context')
          from wf.workflow_version as v
          join wf.workflow_def as d on d.workflow_def_id = v.workflow_def_id
         where v.workflow_version_id = @workflow_version_id;
        throw 70010, @v_message, 1;
    end;
end;
GO

-- Starts a CREATED instance: checks its input, opens its scope, activates its root. Repeated, it
-- answers the same. An input that does not fit is 10015: nothing has started.
-- Locks: the instance's gate exclusive. Errors: 20002 unknown, 20003 cancelled before its start;
-- 10015 or the error of a variable that cannot be computed.
create or alter procedure wf.sp_start_workflow_instance
    @workflow_instance_id bigint
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_status nvarchar(20);
    declare @v_ready_count int;

    exec wf.wf_begin_instance @workflow_instance_id = @workflow_instance_id,
        @status = @v_status output, @ready_count = @v_ready_count output;
    select @v_status as instance_status, @v_ready_count as next_ready_count;
end;
GO

-- The work of sp_start_workflow_instance.
create or alter procedure wf.wf_begin_instance
    @workflow_instance_id bigint,
    @status nvarchar(20) output,
    @ready_count int output
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_owns_transaction bit = case when @@trancount = 0 then 1 else 0 end;
    declare @v_status nvarchar(20);
    declare @v_started_at datetime2(3);
    declare @v_error_code int;
    declare @v_message nvarchar(max);
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
        select @v_started_at = i.started_at
          from wf.workflow_instance as i
         where i.workflow_instance_id = @workflow_instance_id;
        if @v_status = N'CANCELLED' and @v_started_at is null
        begin
            set @v_message = concat(N'instance ', @workflow_instance_id,
                                    N' was cancelled before its start');
            exec wf.wf_raise @code = 20003, @message = @v_message;
        end;
        if @v_status = N'CREATED'
        begin
            insert into #call (now, first_new_id, work_left, work_limit, has_closed)
            values (wf.wf_now(), 0, 0, 0, 0);
            exec wf.wf_start_instance @workflow_instance_id = @workflow_instance_id,
                @error_code = @v_error_code output, @error_message = @v_message output;
            if @v_error_code is not null
                exec wf.wf_raise @code = @v_error_code, @message = @v_message;
        end;
        select @status = i.status from wf.workflow_instance as i
         where i.workflow_instance_id = @workflow_instance_id;
        select @ready_count = count(*) from wf.task as t
         where t.workflow_instance_id = @workflow_instance_id and t.worker_id is null;
        if @v_owns_transaction = 1 commit transaction;
    end try
    begin catch
        if @v_owns_transaction = 1 and xact_state() <> 0 rollback transaction;
        throw;
    end catch;
end;
GO

-- Opens an instance and runs what its root activates. An error is answered: the caller rolls back.
-- The caller holds the gate exclusive and has the engine's tables; #agenda is empty.
create or alter procedure wf.wf_start_instance
    @workflow_instance_id bigint,
    @error_code int output,
    @error_message nvarchar(max) output
as
begin
    set nocount, xact_abort on;
    declare @v_root_id bigint;

    exec wf.wf_open_instance @workflow_instance_id = @workflow_instance_id,
        @root_execution_id = @v_root_id output, @error_code = @error_code output,
        @error_message = @error_message output;
    if @error_code is not null return;
    if not exists (select 1 from #exclusive as x
                    where x.workflow_instance_id = @workflow_instance_id)
        insert into #exclusive (workflow_instance_id) values (@workflow_instance_id);
    insert into #agenda (ordinal, node_execution_id, workflow_instance_id, kind)
    values (1, @v_root_id, @workflow_instance_id, N'A');
    exec wf.wf_engine_run;
end;
GO

-- Inserts the root execution and its scope, fills it from the context, and sets the instance
-- RUNNING. Answers the root execution's id, or 10015 or the error of a default. Reads #call (now).
create or alter procedure wf.wf_open_instance
    @workflow_instance_id bigint,
    @root_execution_id bigint output,
    @error_code int output,
    @error_message nvarchar(max) output
as
begin
    set nocount, xact_abort on;
    declare @v_now datetime2(3) = (select top (1) c.now from #call as c);

    set @root_execution_id = next value for wf.node_execution_id_seq;
    insert into wf.node_execution (node_execution_id, workflow_instance_id, parent_execution_id,
        node_id, scope_id, status, attempt_no, created_at)
    select @root_execution_id, i.workflow_instance_id, 0, v.root_node_id, @root_execution_id,
           N'RUNNING', 1, @v_now
      from wf.workflow_instance as i
      join wf.workflow_version as v on v.workflow_version_id = i.workflow_version_id
     where i.workflow_instance_id = @workflow_instance_id;
    insert into wf.timer (node_execution_id, workflow_instance_id, due_at)
    select @root_execution_id, i.workflow_instance_id, wf.wf_add_ms(@v_now, n.timeout_ms)
      from wf.workflow_instance as i
      join wf.workflow_version as v on v.workflow_version_id = i.workflow_version_id
      join wf.workflow_node as n on n.node_id = v.root_node_id
     where i.workflow_instance_id = @workflow_instance_id and n.timeout_ms is not null;
    -- An event that another call is just taking in counts as one after the start.
    update wf.workflow_instance
       set status = N'RUNNING', started_at = @v_now, root_execution_id = @root_execution_id,
           events_after_id = coalesce((select max(v.event_id) from wf.event as v
                                         with (readpast)), 0)
     where workflow_instance_id = @workflow_instance_id;
    exec wf.wf_init_instance_scope_from_context @instance_id = @workflow_instance_id,
        @root_execution_id = @root_execution_id, @error_code = @error_code output,
        @error_message = @error_message output;
end;
GO
