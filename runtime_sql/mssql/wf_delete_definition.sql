-- Deleting a workflow with all its versions. Twin: pg/wf_delete_definition.sql

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

-- Deletes a workflow: its versions, subscriptions, schedules and bundles. Refused while instances of
-- it run, unless @end_running cancels them, and while ended ones are there, unless @delete_history
-- removes them, a thousand at a time. Events stay; their deliveries forget the workflow.
-- Locks: the workflow_def row (by updating it), so that no deploy meets it; the gates of its instances
-- exclusive, ascending. Errors: 20002 unknown workflow; 20003 with how many instances stand in the way.
create or alter procedure wf.sp_delete_workflow_def
    @name nvarchar(4000),
    @end_running bit = 0,
    @delete_history bit = 0
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_owns_transaction bit = case when @@trancount = 0 then 1 else 0 end;
    declare @v_def_id bigint;
    declare @v_cancelled int;
    declare @v_ended int;
    declare @v_message nvarchar(2000);
    create table #removed (workflow_instance_id bigint not null primary key);

    begin try
        if @v_owns_transaction = 1 begin transaction;
        update wf.workflow_def set @v_def_id = workflow_def_id, description = description
         where name = @name and datalength(name) = datalength(cast(@name as nvarchar(120)))
           and len(@name + N'.') <= 121;
        if @v_def_id is null
        begin
            set @v_message = concat(N'there is no workflow ', left(@name, 200));
            throw 70002, @v_message, 1;
        end;
        exec wf.wf_cancel_workflow @workflow_def_id = @v_def_id, @end_running = @end_running,
            @cancelled_count = @v_cancelled output;
        select @v_ended = count(*) from wf.workflow_instance as i
         where i.workflow_def_id = @v_def_id;
        if @v_ended > 0 and coalesce(@delete_history, 0) = 0
        begin
            set @v_message = concat(@v_ended, N' ended instances of workflow ', @name,
                                    N' are there');
            throw 70003, @v_message, 1;
        end;
        while 1 = 1
        begin
            delete from #removed;
            insert into #removed (workflow_instance_id)
            select top (1000) i.workflow_instance_id
              from wf.workflow_instance as i
             where i.workflow_def_id = @v_def_id
             order by i.workflow_instance_id;
            if @@rowcount = 0 break;
            exec wf.wf_remove_instances;
        end;
        exec wf.wf_remove_definition @workflow_def_id = @v_def_id;
        insert into wf.audit_log (at, what, detail_json)
        values (wf.wf_now(), N'delete workflow',
                concat(N'{"workflow":', wf.wf_json_quote(@name), N'}'));
        if @v_owns_transaction = 1 commit transaction;
    end try
    begin catch
        if @v_owns_transaction = 1 and xact_state() <> 0 rollback transaction;
        throw;
    end catch;
    select @v_cancelled as cancelled_count, @v_ended as purged_count;
end;
GO

-- Cancels the instances of a workflow that have not ended, in the order of their ids. Answers how
-- many. Errors: 20003 there are some and @end_running does not say to.
create or alter procedure wf.wf_cancel_workflow
    @workflow_def_id bigint,
    @end_running bit,
    @cancelled_count int output
as
begin
    set nocount, xact_abort on;
    declare @v_id bigint = 0;
    declare @v_next_id bigint;
    declare @v_message nvarchar(2000);

    select @cancelled_count = count(*) from wf.workflow_instance as i
     where i.workflow_def_id = @workflow_def_id
       and i.status in (N'CREATED', N'RUNNING', N'PAUSED');
    if @cancelled_count > 0 and coalesce(@end_running, 0) = 0
    begin
        select @v_message = concat(@cancelled_count, N' instances of workflow ', d.name,
                                   N' have not ended')
          from wf.workflow_def as d
         where d.workflow_def_id = @workflow_def_id;
        throw 70003, @v_message, 1;
    end;
    while 1 = 1
    begin
        select @v_next_id = min(i.workflow_instance_id) from wf.workflow_instance as i
         where i.workflow_def_id = @workflow_def_id and i.workflow_instance_id > @v_id
           and i.status in (N'CREATED', N'RUNNING', N'PAUSED');
        if @v_next_id is null return;
        set @v_id = @v_next_id;
        exec wf.wf_cancel_instance @workflow_instance_id = @v_id,
            @reason = N'the workflow is deleted';
    end;
end;
GO

-- Removes the rows of a workflow that has no instances any more.
create or alter procedure wf.wf_remove_definition
    @workflow_def_id bigint
as
begin
    set nocount, xact_abort on;
    declare @v_version table (workflow_version_id bigint not null primary key);

    insert into @v_version (workflow_version_id)
    select v.workflow_version_id from wf.workflow_version as v
     where v.workflow_def_id = @workflow_def_id;
    update wf.event_delivery set workflow_def_id = null
     where workflow_def_id = @workflow_def_id;
    delete from wf.foreach_bundle_entry
     where workflow_name in (select d.name from wf.workflow_def as d
                              where d.workflow_def_id = @workflow_def_id);
    delete from wf.schedule where workflow_def_id = @workflow_def_id;
    delete from wf.event_subscription
     where workflow_version_id in (select v.workflow_version_id from @v_version as v);
    delete from wf.collection_binding
     where workflow_version_id in (select v.workflow_version_id from @v_version as v);
    delete from wf.node_scope_default
     where workflow_version_id in (select v.workflow_version_id from @v_version as v);
    delete from wf.variable_output_binding
     where workflow_version_id in (select v.workflow_version_id from @v_version as v);
    delete from wf.workflow_input_binding
     where workflow_version_id in (select v.workflow_version_id from @v_version as v);
    delete from wf.workflow_input_template
     where workflow_version_id in (select v.workflow_version_id from @v_version as v);
    delete from wf.workflow_edge
     where workflow_version_id in (select v.workflow_version_id from @v_version as v);
    delete from wf.workflow_node
     where workflow_version_id in (select v.workflow_version_id from @v_version as v);
    -- A type's parent goes with it in one statement; the check of its key comes at the end of it.
    delete from wf.data_type
     where workflow_version_id in (select v.workflow_version_id from @v_version as v);
    delete from wf.workflow_version_action
     where workflow_version_id in (select v.workflow_version_id from @v_version as v);
    delete from wf.workflow_version
     where workflow_version_id in (select v.workflow_version_id from @v_version as v);
    delete from wf.workflow_def where workflow_def_id = @workflow_def_id;
end;
GO
