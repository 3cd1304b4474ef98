-- Values that a program around the workflows keeps beside an instance, and what a gateway must know of
-- an ACTION before it submits. Twin: pg/wf_instance_extension.sql
--
-- The engine reads none of these values. They go when the instance is purged.

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

-- Writes one value beside an instance; a second time replaces it. Locks: the instance's gate shared,
-- so that it is not purged meanwhile. Errors: 20002 unknown instance; 20004 the name is out of bounds
-- or there is no value; 20005 the value has more than 16 MB.
create or alter procedure wf.wf_repo_upsert_instance_extension
    @workflow_instance_id bigint,
    @name nvarchar(4000),
    @value_json nvarchar(max)
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_owns_transaction bit = case when @@trancount = 0 then 1 else 0 end;
    declare @v_message nvarchar(2000);

    exec wf.wf_check_key @what = N'name', @value = @name;
    if @value_json is null throw 70004, N'value must be given', 1;
    exec wf.wf_check_json @what = N'value', @value_json = @value_json;
    begin try
        if @v_owns_transaction = 1 begin transaction;
        if @workflow_instance_id is not null
            exec wf.wf_take_gate @workflow_instance_id = @workflow_instance_id,
                @is_exclusive = 0;
        if not exists (select 1 from wf.workflow_instance as i
                        where i.workflow_instance_id = @workflow_instance_id)
        begin
            set @v_message = concat(N'there is no workflow instance ', @workflow_instance_id);
            throw 70002, @v_message, 1;
        end;
        exec wf.wf_write_extension @workflow_instance_id = @workflow_instance_id,
            @name = @name, @value_json = @value_json;
        if @v_owns_transaction = 1 commit transaction;
    end try
    begin catch
        if @v_owns_transaction = 1 and xact_state() <> 0 rollback transaction;
        throw;
    end catch;
end;
GO

-- Updates a value beside an instance, or inserts it. One that another call inserts at the same moment
-- is no failure, so nothing here may doom the transaction.
create or alter procedure wf.wf_write_extension
    @workflow_instance_id bigint,
    @name nvarchar(200),
    @value_json nvarchar(max)
as
begin
    set nocount on;
    declare @v_is_done bit = 0;

    while @v_is_done = 0
    begin
        update wf.instance_extension set value_json = @value_json
         where workflow_instance_id = @workflow_instance_id and name = @name;
        if @@rowcount > 0 break;
        set xact_abort off;
        begin try
            insert into wf.instance_extension (workflow_instance_id, name, value_json)
            values (@workflow_instance_id, @name, @value_json);
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

-- The values beside an instance by name: one, or all. Reads only. No error for what is not there.
create or alter procedure wf.wf_repo_get_instance_extension
    @workflow_instance_id bigint,
    @name nvarchar(4000) = null
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;

    select x.name, x.value_json
      from wf.instance_extension as x
     where x.workflow_instance_id = @workflow_instance_id
       and (@name is null or x.name = @name and datalength(x.name) = datalength(@name))
     order by x.name;
end;
GO

-- Where an ACTION stands and for whom: what a gateway checks a result against and writes into its log.
-- Of one that has ended the lease columns are null, input, attempt and worker are the last ones. Reads
-- only. No row for an unknown execution or one that is no ACTION.
create or alter procedure wf.wf_repo_get_action_submit_context
    @node_execution_id bigint
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;

    select e.node_execution_id, e.workflow_instance_id, d.name as workflow_name,
           i.status as instance_status, n.node_key,
           wf.wf_execution_path(e.node_execution_id) as path, n.action_name,
           case when t.worker_id is not null then N'RUNNING' else e.status end as status,
           coalesce(t.attempt_no, e.attempt_no) as attempt_no,
           coalesce(t.worker_id, e.worker_id) as worker_id,
           case when t.worker_id is not null then t.lease_token end as lease_token,
           t.lease_until as lease_until_utc,
           coalesce(t.input_json, e.input_json) as input_json, r.output_schema_json,
           i.execution_scope_id, r.result_codes_json, r.sensitive_json
      from wf.node_execution as e
      join wf.workflow_node as n on n.node_id = e.node_id
      join wf.workflow_instance as i on i.workflow_instance_id = e.workflow_instance_id
      join wf.workflow_def as d on d.workflow_def_id = i.workflow_def_id
      left join wf.task as t on t.node_execution_id = e.node_execution_id
      left join wf.workflow_action_revision as r
        on r.action_name = n.action_name and r.revision = n.action_revision
     where e.node_execution_id = @node_execution_id and n.node_type = N'ACTION';
end;
GO
