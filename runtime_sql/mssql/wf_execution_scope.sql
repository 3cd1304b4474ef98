-- Execution scopes: named sets of parameters under which instances run.
-- Twin: pg/wf_execution_scope.sql, whose header says what they are for.

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

-- Puts a CREATED instance under a scope, which is made if it is new; once. Locks: the instance's gate
-- exclusive. Errors: 20002 unknown instance; 20003 it has started, ended or has a scope; 20004 the
-- name is out of bounds or the parameters are no object; 20005 they have more than 16 MB.
create or alter procedure wf.wf_apply_execution_scope
    @workflow_instance_id bigint,
    @name nvarchar(4000),
    @parameters_json nvarchar(max)
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_owns_transaction bit = case when @@trancount = 0 then 1 else 0 end;
    declare @v_status nvarchar(20);
    declare @v_scope_id bigint;
    declare @v_hash nvarchar(64);
    declare @v_message nvarchar(2000);

    begin try
        if @v_owns_transaction = 1 begin transaction;
        exec wf.wf_lock_instance @workflow_instance_id = @workflow_instance_id,
            @status = @v_status output;
        exec wf.wf_check_key @what = N'name', @value = @name;
        exec wf.wf_check_object @what = N'parameters', @value_json = @parameters_json;
        exec wf.wf_check_member_names @what = N'the name of a parameter',
            @value_json = @parameters_json;
        select @v_scope_id = i.execution_scope_id from wf.workflow_instance as i
         where i.workflow_instance_id = @workflow_instance_id;
        if @v_status <> N'CREATED' or @v_scope_id is not null
        begin
            set @v_message = concat(N'instance ', @workflow_instance_id, case
                when @v_status <> N'CREATED'
                then concat(N' is ', lower(@v_status), N', not created')
                else N' has an execution scope' end);
            throw 70003, @v_message, 1;
        end;
        set @v_hash = wf.wf_json_sha256(@parameters_json, 0);
        exec wf.wf_add_execution_scope @name = @name, @content_hash = @v_hash,
            @parameters_json = @parameters_json;
        select @v_scope_id = s.execution_scope_id from wf.execution_scope as s
         where s.name = @name and s.content_hash = @v_hash;
        update wf.workflow_instance set execution_scope_id = @v_scope_id
         where workflow_instance_id = @workflow_instance_id;
        if @v_owns_transaction = 1 commit transaction;
    end try
    begin catch
        if @v_owns_transaction = 1 and xact_state() <> 0 rollback transaction;
        throw;
    end catch;
    select @v_scope_id as execution_scope_id, @v_hash as content_hash;
end;
GO

-- Inserts a scope unless it is there. One that another call inserts at the same moment is no failure,
-- so nothing here may doom the transaction.
create or alter procedure wf.wf_add_execution_scope
    @name nvarchar(200),
    @content_hash nvarchar(64),
    @parameters_json nvarchar(max)
as
begin
    set nocount on;
    set xact_abort off;

    begin try
        if not exists (select 1 from wf.execution_scope as s
                        where s.name = @name and s.content_hash = @content_hash)
            insert into wf.execution_scope (name, content_hash, parameters_json, created_at)
            values (@name, @content_hash, @parameters_json, wf.wf_now());
    end try
    begin catch
        if error_number() not in (2601, 2627) throw;
    end catch;
    set xact_abort on;
end;
GO

-- Refuses what is no JSON object (20004) or has more than 16 MB (20005).
create or alter procedure wf.wf_check_object
    @what nvarchar(200),
    @value_json nvarchar(max)
as
begin
    set nocount, xact_abort on;
    declare @v_message nvarchar(2000);

    exec wf.wf_check_json @what = @what, @value_json = @value_json;
    if @value_json is null or wf.wf_json_type(@value_json) <> N'object'
    begin
        set @v_message = concat(N'the ', @what, N' must be a JSON object');
        throw 70004, @v_message, 1;
    end;
end;
GO

-- Refuses an object with a name that is no key (R7): 20004.
create or alter procedure wf.wf_check_member_names
    @what nvarchar(200),
    @value_json nvarchar(max)
as
begin
    set nocount, xact_abort on;
    declare @v_name table (
        seq int identity(1, 1) not null primary key,
        name nvarchar(4000) collate Latin1_General_100_BIN2 not null
    );
    declare @v_seq int = 1;
    declare @v_value nvarchar(4000);

    insert into @v_name (name) select m.[key] from openjson(@value_json) as m;
    while exists (select 1 from @v_name as n where n.seq = @v_seq)
    begin
        select @v_value = n.name from @v_name as n where n.seq = @v_seq;
        exec wf.wf_check_key @what = @what, @value = @v_value;
        set @v_seq = @v_seq + 1;
    end;
end;
GO

-- The parameters of the scope that an instance runs under; {} without one.
create or alter function wf.wf_scope_parameters(@workflow_instance_id bigint)
returns nvarchar(max)
as
begin
    return coalesce((select s.parameters_json
                       from wf.workflow_instance as i
                       join wf.execution_scope as s
                         on s.execution_scope_id = i.execution_scope_id
                      where i.workflow_instance_id = @workflow_instance_id), N'{}');
end;
GO

-- The parameters that become variables of node @owner_key: those that are no inputs, which take theirs
-- apart, and no variables with an initialiser, which wins over them.
create or alter function wf.wf_parameters_for_variables(
    @version_id bigint,
    @owner_key nvarchar(200),
    @parameters_json nvarchar(max)
) returns nvarchar(max)
as
begin
    return concat(N'{', (
        select string_agg(concat(wf.wf_json_quote(p.[key]), N':',
                                 wf.wf_json_text(p.value, p.type)), N',')
          from openjson(@parameters_json) as p
         where not exists (
            select 1 from wf.node_scope_default as d
             where d.workflow_version_id = @version_id and d.owner_key = @owner_key
               and d.name = p.[key] collate Latin1_General_100_BIN2
               and (d.variable_kind = N'input' or d.program_json is not null))), N'}');
end;
GO

-- Writes down what an ACTION produced under a scope; a second time replaces it. Locks: the entry's
-- row. Errors: 20002 unknown scope; 20004 an argument is missing or out of bounds.
create or alter procedure wf.wf_repo_upsert_execution_scope_action_entry
    @execution_scope_id bigint,
    @node_execution_id bigint,
    @action_name nvarchar(4000),
    @result_code int,
    @output_json nvarchar(max) = null
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_owns_transaction bit = case when @@trancount = 0 then 1 else 0 end;
    declare @v_message nvarchar(2000);

    exec wf.wf_check_key @what = N'action_name', @value = @action_name;
    exec wf.wf_check_json @what = N'output', @value_json = @output_json;
    if @node_execution_id is null or @result_code is null
        throw 70004, N'node_execution_id and result_code must be given', 1;
    if not exists (select 1 from wf.execution_scope as s
                    where s.execution_scope_id = @execution_scope_id)
    begin
        set @v_message = concat(N'there is no execution scope ', @execution_scope_id);
        throw 70002, @v_message, 1;
    end;
    begin try
        if @v_owns_transaction = 1 begin transaction;
        exec wf.wf_write_scope_entry @execution_scope_id = @execution_scope_id,
            @node_execution_id = @node_execution_id, @action_name = @action_name,
            @result_code = @result_code, @output_json = @output_json;
        if @v_owns_transaction = 1 commit transaction;
    end try
    begin catch
        if @v_owns_transaction = 1 and xact_state() <> 0 rollback transaction;
        throw;
    end catch;
end;
GO

-- Updates the entry of an ACTION under a scope, or inserts it. One that another call inserts at the
-- same moment is no failure, so nothing here may doom the transaction.
create or alter procedure wf.wf_write_scope_entry
    @execution_scope_id bigint,
    @node_execution_id bigint,
    @action_name nvarchar(200),
    @result_code int,
    @output_json nvarchar(max)
as
begin
    set nocount on;
    declare @v_now datetime2(3) = wf.wf_now();
    declare @v_is_done bit = 0;

    while @v_is_done = 0
    begin
        update wf.execution_scope_action_entry
           set action_name = @action_name, result_code = @result_code,
               output_json = @output_json, recorded_at = @v_now
         where execution_scope_id = @execution_scope_id
           and node_execution_id = @node_execution_id;
        if @@rowcount > 0 break;
        set xact_abort off;
        begin try
            insert into wf.execution_scope_action_entry (execution_scope_id, node_execution_id,
                action_name, result_code, output_json, recorded_at)
            values (@execution_scope_id, @node_execution_id, @action_name, @result_code,
                    @output_json, @v_now);
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

-- Writes down what a submitted ACTION produced, when its instance runs under a scope. A gateway calls
-- it after a submit and may ignore its errors. Answers whether there was something to write down.
-- Locks: the entry's row; no gate, since it reads what has ended. Errors: 20002 unknown execution.
create or alter procedure wf.sync_execution_scope_action_entry_after_submit
    @node_execution_id bigint
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_is_there bit = 0;
    declare @v_scope_id bigint;
    declare @v_action_name nvarchar(200);
    declare @v_result_code int;
    declare @v_output_json nvarchar(max);
    declare @v_is_recorded bit = 0;
    declare @v_message nvarchar(2000);

    select @v_is_there = 1, @v_scope_id = i.execution_scope_id, @v_action_name = n.action_name,
           @v_result_code = e.result_code, @v_output_json = e.output_json
      from wf.node_execution as e
      join wf.workflow_node as n on n.node_id = e.node_id
      join wf.workflow_instance as i on i.workflow_instance_id = e.workflow_instance_id
     where e.node_execution_id = @node_execution_id;
    if @v_is_there = 0
    begin
        set @v_message = concat(N'there is no execution ', @node_execution_id);
        throw 70002, @v_message, 1;
    end;
    if @v_scope_id is not null and @v_action_name is not null and @v_result_code is not null
    begin
        exec wf.wf_repo_upsert_execution_scope_action_entry @execution_scope_id = @v_scope_id,
            @node_execution_id = @node_execution_id, @action_name = @v_action_name,
            @result_code = @v_result_code, @output_json = @v_output_json;
        set @v_is_recorded = 1;
    end;
    select @v_is_recorded as recorded;
end;
GO
