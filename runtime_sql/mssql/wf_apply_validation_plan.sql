-- Validation plans: variables that a planning step worked out for a running instance.
-- Twin: pg/wf_apply_validation_plan.sql

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

-- Writes the variables of a plan, {"variables": {name: value}}, into the instance's own scope: all of
-- them or none. The names must be inputs or variables of the workflow, the values fit their types. A
-- plan that was applied before (the same canonical hash) changes nothing: applied = 0.
-- Locks: the instance's gate exclusive, so that no branch reads half a plan. Errors: 20002 unknown
-- instance; 20003 it is not running; 20004 the plan has another form, a name is not declared, or a
-- value does not fit; 20005 it has more than 16 MB.
create or alter procedure wf.wf_apply_validation_plan
    @workflow_instance_id bigint,
    @plan_json nvarchar(max)
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_owns_transaction bit = case when @@trancount = 0 then 1 else 0 end;
    declare @v_status nvarchar(20);
    declare @v_hash nvarchar(64);
    declare @v_is_applied bit = 0;
    declare @v_message nvarchar(2000);

    begin try
        if @v_owns_transaction = 1 begin transaction;
        exec wf.wf_lock_instance @workflow_instance_id = @workflow_instance_id,
            @status = @v_status output;
        if @v_status <> N'RUNNING'
        begin
            set @v_message = concat(N'instance ', @workflow_instance_id, N' is ',
                                    lower(@v_status), N', not running');
            throw 70003, @v_message, 1;
        end;
        exec wf.wf_check_object @what = N'plan', @value_json = @plan_json;
        if coalesce(wf.wf_json_type(wf.wf_json_member(@plan_json, N'variables')), N'')
               <> N'object'
           or (select count(*) from openjson(@plan_json) as m) <> 1
            throw 70004, N'a plan is {"variables": {name: value}} and nothing else', 1;
        set @v_hash = wf.wf_json_sha256(@plan_json, 0);
        -- The gate is exclusive: no other call can insert the row meanwhile.
        if not exists (select 1 from wf.validation_plan as p
                        where p.workflow_instance_id = @workflow_instance_id
                          and p.plan_hash = @v_hash)
        begin
            insert into wf.validation_plan (workflow_instance_id, plan_hash, applied_at)
            values (@workflow_instance_id, @v_hash, wf.wf_now());
            exec wf.wf_write_plan @workflow_instance_id = @workflow_instance_id,
                @plan_json = @plan_json;
            set @v_is_applied = 1;
        end;
        if @v_owns_transaction = 1 commit transaction;
    end try
    begin catch
        if @v_owns_transaction = 1 and xact_state() <> 0 rollback transaction;
        throw;
    end catch;
    select @v_is_applied as applied, @v_hash as plan_hash;
end;
GO

-- Checks the variables of a plan and writes them into the instance's own scope. Errors: 20004.
create or alter procedure wf.wf_write_plan
    @workflow_instance_id bigint,
    @plan_json nvarchar(max)
as
begin
    set nocount, xact_abort on;
    declare @v_variables_json nvarchar(max) = wf.wf_json_member(@plan_json, N'variables');
    declare @v_root_id bigint;
    declare @v_version_id bigint;
    declare @v_owner_key nvarchar(200);
    declare @v_problem nvarchar(max);

    select @v_root_id = i.root_execution_id, @v_version_id = i.workflow_version_id,
           @v_owner_key = n.node_key
      from wf.workflow_instance as i
      join wf.workflow_version as v on v.workflow_version_id = i.workflow_version_id
      join wf.workflow_node as n on n.node_id = v.root_node_id
     where i.workflow_instance_id = @workflow_instance_id;
    exec wf.wf_plan_misfit @version_id = @v_version_id, @owner_key = @v_owner_key,
        @variables_json = @v_variables_json, @misfit = @v_problem output;
    if @v_problem is not null exec wf.wf_raise @code = 20004, @message = @v_problem;
    update v
       set value_json = wf.wf_json_text(p.value, p.type)
      from wf.scope_variable as v
      join openjson(@v_variables_json) as p
        on p.[key] collate Latin1_General_100_BIN2 = v.name
     where v.scope_id = @v_root_id;
    insert into wf.scope_variable (scope_id, name, value_json)
    select @v_root_id, p.[key], wf.wf_json_text(p.value, p.type)
      from openjson(@v_variables_json) as p
     where not exists (select 1 from wf.scope_variable as v
                        where v.scope_id = @v_root_id
                          and v.name = p.[key] collate Latin1_General_100_BIN2);
end;
GO

-- The first name, in order, that the workflow does not declare, or the first value, in the order of
-- the declarations, that does not fit its type; null: the plan fits.
create or alter procedure wf.wf_plan_misfit
    @version_id bigint,
    @owner_key nvarchar(200),
    @variables_json nvarchar(max),
    @misfit nvarchar(max) output
as
begin
    set nocount, xact_abort on;

    set @misfit = null;
    select top (1) @misfit = concat(N'the workflow has no variable ', left(k.[key], 200))
      from openjson(@variables_json) as k
     where not exists (select 1 from wf.node_scope_default as d
                        where d.workflow_version_id = @version_id
                          and d.owner_key = @owner_key
                          and d.name = k.[key] collate Latin1_General_100_BIN2
                          and datalength(d.name) = datalength(cast(k.[key] as nvarchar(4000))))
     order by k.[key] collate Latin1_General_100_BIN2;
    if @misfit is null
        exec wf.wf_declared_misfit @version_id = @version_id, @owner_key = @owner_key,
            @variables_json = @variables_json, @misfit = @misfit output;
end;
GO

-- The first of some values, in the order of the declarations, that does not fit the type that node
-- @owner_key declares for its name; null: all fit.
create or alter procedure wf.wf_declared_misfit
    @version_id bigint,
    @owner_key nvarchar(200),
    @variables_json nvarchar(max),
    @misfit nvarchar(max) output
as
begin
    set nocount, xact_abort on;
    create table #check (
        ordinal int not null, place nvarchar(max) not null, type_id int null,
        value_json nvarchar(max) null
    );

    insert into #check (ordinal, place, type_id, value_json)
    select row_number() over (order by d.variable_kind, d.variable_order),
           concat(N'var ', d.name), d.type_id, wf.wf_json_text(p.value, p.type)
      from wf.node_scope_default as d
      join openjson(@variables_json) as p
        on p.[key] collate Latin1_General_100_BIN2 = d.name
       and datalength(cast(p.[key] as nvarchar(4000))) = datalength(d.name)
     where d.workflow_version_id = @version_id and d.owner_key = @owner_key
       and d.type_id is not null;
    exec wf.wf_check_values @version_id = @version_id, @misfit = @misfit output;
end;
GO
