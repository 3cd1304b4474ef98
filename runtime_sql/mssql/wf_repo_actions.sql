-- The repository of actions: names with their live dispatch columns, revisions with what versions
-- freeze (R24). Twin: pg/wf_repo_actions.sql

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

-- Adds an action or changes its live columns: the capability, and those that @dispatch_json names
-- (fields of `dispatch` in wf.graph_field); the others stay. What is activated later goes by the new
-- values; each change of an action that was there is a row of wf.audit_log.
-- Answers one row. Locks: the application lock of all deploys. Errors: 20004 a bad name, capability or
-- column.
create or alter procedure wf.wf_repo_upsert_workflow_action
    @action_name nvarchar(4000),
    @capability nvarchar(4000),
    @dispatch_json nvarchar(max) = N'{}'
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_owns_transaction bit = case when @@trancount = 0 then 1 else 0 end;
    declare @v_result int;
    declare @v_action_id bigint;
    declare @v_created bit = 0;

    exec wf.wf_check_key @what = N'action_name', @value = @action_name;
    exec wf.wf_check_key @what = N'capability', @value = @capability;
    exec wf.wf_check_dispatch @dispatch_json = @dispatch_json;
    begin try
        if @v_owns_transaction = 1 begin transaction;
        exec @v_result = sys.sp_getapplock @Resource = N'wf.deploy', @LockMode = N'Exclusive',
            @LockOwner = N'Transaction', @LockTimeout = 60000;
        if @v_result < 0 throw 70009, N'another deploy is running', 1;
        if not exists (select 1 from wf.workflow_action as a where a.action_name = @action_name)
        begin
            insert into wf.workflow_action (action_name, capability)
            values (@action_name, @capability);
            set @v_created = 1;
        end;
        select @v_action_id = a.action_id from wf.workflow_action as a
         where a.action_name = @action_name;
        exec wf.wf_change_action @action_id = @v_action_id, @capability = @capability,
            @dispatch_json = @dispatch_json, @is_new = @v_created;
        if @v_owns_transaction = 1 commit transaction;
    end try
    begin catch
        if @v_owns_transaction = 1 and xact_state() <> 0 rollback transaction;
        throw;
    end catch;
    select a.action_id, a.action_name, @v_created as created
      from wf.workflow_action as a
     where a.action_id = @v_action_id;
end;
GO

-- Checks the dispatch columns of an action. Errors: 20004.
create or alter procedure wf.wf_check_dispatch
    @dispatch_json nvarchar(max)
as
begin
    set nocount, xact_abort on;
    declare @v_rows_json nvarchar(max) = concat(N'[', @dispatch_json, N']');
    declare @v_problem nvarchar(2000);

    if @dispatch_json is null throw 70004, N'dispatch_json: is null', 1;
    exec wf.wf_check_json @what = N'dispatch_json', @value_json = @dispatch_json,
        @has_limit = 0;
    exec wf.wf_graph_row_problem @list = N'dispatch', @rows_json = @v_rows_json,
        @problem = @v_problem output;
    if @v_problem is not null
    begin
        set @v_problem = concat(N'dispatch_json: ', substring(@v_problem, 8, 2000));
        throw 70004, @v_problem, 1;
    end;
    if exists (select 1 from openjson(@dispatch_json) as d
                where d.type = 2 and cast(d.value as bigint) < 1)
        throw 70004, N'dispatch_json: a number must be at least 1', 1;
end;
GO

-- Writes the live columns of an action, and what a change was into wf.audit_log.
create or alter procedure wf.wf_change_action
    @action_id bigint,
    @capability nvarchar(200),
    @dispatch_json nvarchar(max),
    @is_new bit
as
begin
    set nocount, xact_abort on;
    declare @v_old_json nvarchar(max);
    declare @v_new_json nvarchar(max);
    declare @v_name nvarchar(200);

    select @v_name = a.action_name from wf.workflow_action as a where a.action_id = @action_id;
    set @v_old_json = (select a.* from wf.workflow_action as a where a.action_id = @action_id
                          for json path, without_array_wrapper, include_null_values);
    update a
       set capability = @capability,
           max_per_worker = case when g.fields like N'%,max[_]per[_]worker,%'
               then d.max_per_worker else a.max_per_worker end,
           exclusive_worker = coalesce(d.exclusive_worker, a.exclusive_worker),
           affinity_key_field = case when g.fields like N'%,affinity[_]key[_]field,%'
               then d.affinity_key_field else a.affinity_key_field end,
           prefer_previous_worker = coalesce(d.prefer_previous_worker, a.prefer_previous_worker),
           prefer_continue_group = coalesce(d.prefer_continue_group, a.prefer_continue_group),
           require_previous_worker =
               coalesce(d.require_previous_worker, a.require_previous_worker),
           max_concurrent = case when g.fields like N'%,max[_]concurrent,%'
               then d.max_concurrent else a.max_concurrent end,
           rate_per_minute = case when g.fields like N'%,rate[_]per[_]minute,%'
               then d.rate_per_minute else a.rate_per_minute end,
           max_deliveries = coalesce(d.max_deliveries, a.max_deliveries)
      from wf.workflow_action as a
     cross join (select concat(N',', string_agg(cast(m.[key] as nvarchar(max)), N','), N',')
                            as fields
                   from openjson(@dispatch_json) as m) as g
     cross join (select x.* from openjson(@dispatch_json)
           with (max_per_worker int, exclusive_worker bit, affinity_key_field nvarchar(200),
                 prefer_previous_worker bit, prefer_continue_group bit,
                 require_previous_worker bit, max_concurrent int, rate_per_minute int,
                 max_deliveries int) as x) as d
     where a.action_id = @action_id;
    set @v_new_json = (select a.* from wf.workflow_action as a where a.action_id = @action_id
                          for json path, without_array_wrapper, include_null_values);
    if @is_new = 1 or @v_old_json = @v_new_json collate Latin1_General_100_BIN2 return;
    insert into wf.audit_log (at, what, detail_json)
    values (wf.wf_now(), N'update action', concat(N'{"action":', wf.wf_json_quote(@v_name),
            N',"from":', @v_old_json, N',"to":', @v_new_json, N'}'));
end;
GO

-- Adds a revision of an action: an object that may have description, version, input_schema,
-- output_schema, result_codes, idempotent, timeout_ms and sensitive. The revision is the hash of what
-- it says (the description apart), so the same schema again adds nothing.
-- Answers one row. Errors: 20002 unknown action; 20004 a bad schema.
create or alter procedure wf.wf_repo_upsert_action_schema
    @action_name nvarchar(4000),
    @schema_json nvarchar(max)
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_owns_transaction bit = case when @@trancount = 0 then 1 else 0 end;
    declare @v_full_json nvarchar(max);
    declare @v_revision nvarchar(64);
    declare @v_created bit;
    declare @v_result int;
    declare @v_message nvarchar(2000);

    if not exists (select 1 from wf.workflow_action as a
                    where a.action_name = @action_name
                      and datalength(a.action_name) = datalength(@action_name))
    begin
        set @v_message = concat(N'there is no action ', left(@action_name, 200));
        throw 70002, @v_message, 1;
    end;
    exec wf.wf_fill_schema @schema_json = @schema_json, @full_json = @v_full_json output;
    set @v_revision = wf.wf_json_sha256(concat(N'{"name":', wf.wf_json_quote(@action_name), N',',
        substring(wf.wf_json_without(@v_full_json, N',description,'), 2, 1000000000)), 0);
    begin try
        if @v_owns_transaction = 1 begin transaction;
        exec @v_result = sys.sp_getapplock @Resource = N'wf.deploy', @LockMode = N'Exclusive',
            @LockOwner = N'Transaction', @LockTimeout = 60000;
        if @v_result < 0 throw 70009, N'another deploy is running', 1;
        insert into wf.workflow_action_revision (action_name, revision, description, version,
            input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms,
            sensitive_json)
        select @action_name, @v_revision, x.description, x.version,
               nullif(wf.wf_json_member(@v_full_json, N'input_schema'), N'null'),
               nullif(wf.wf_json_member(@v_full_json, N'output_schema'), N'null'),
               wf.wf_json_member(@v_full_json, N'result_codes'), x.idempotent, x.timeout_ms,
               wf.wf_json_member(@v_full_json, N'sensitive')
          from openjson(@v_full_json)
               with (description nvarchar(max), version nvarchar(max), idempotent bit,
                     timeout_ms bigint) as x
         where not exists (select 1 from wf.workflow_action_revision as o
                            where o.action_name = @action_name and o.revision = @v_revision);
        set @v_created = case when @@rowcount > 0 then 1 else 0 end;
        if @v_owns_transaction = 1 commit transaction;
    end try
    begin catch
        if @v_owns_transaction = 1 and xact_state() <> 0 rollback transaction;
        throw;
    end catch;
    select cast(@action_name as nvarchar(200)) as action_name, @v_revision as revision,
           @v_created as created;
end;
GO

-- A schema with the defaults of what it leaves out. Errors: 20004.
create or alter procedure wf.wf_fill_schema
    @schema_json nvarchar(max),
    @full_json nvarchar(max) output
as
begin
    set nocount, xact_abort on;
    declare @v_rows_json nvarchar(max);
    declare @v_problem nvarchar(2000);

    exec wf.wf_check_json @what = N'schema_json', @value_json = @schema_json, @has_limit = 0;
    if coalesce(wf.wf_json_type(@schema_json), N'') <> N'object'
        throw 70004, N'schema_json must be an object', 1;
    if exists (select 1 from openjson(@schema_json) as m
                where m.[key] collate Latin1_General_100_BIN2
                      in (N'name', N'revision', N'capability', N'dispatch'))
        throw 70004,
            N'schema_json: a schema has no name, revision, capability or dispatch', 1;
    set @v_problem = wf.wf_storable_problem(@schema_json);
    select @full_json = concat(N'{', string_agg(concat(wf.wf_json_quote(x.name), N':',
               x.value_json), N','), N'}')
      from (select d.[key] as name, wf.wf_json_text(d.value, d.type) as value_json
              from openjson(N'{"description":null,"version":null,"input_schema":null,'
                  + N'"output_schema":null,"result_codes":{},"idempotent":true,'
                  + N'"timeout_ms":null,"sensitive":[]}') as d
             where not exists (select 1 from openjson(@schema_json) as m
                                where m.[key] collate Latin1_General_100_BIN2
                                      = d.[key] collate Latin1_General_100_BIN2)
            union all
            select m.[key], wf.wf_json_text(m.value, m.type) from openjson(@schema_json) as m
           ) as x;
    if @v_problem is null
    begin
        -- The same fields as in the graph's own list of actions, where these four stand too.
        set @v_rows_json = concat(N'[{"name":"","revision":"","capability":"","dispatch":{},',
                                  substring(@full_json, 2, 1000000000), N']');
        exec wf.wf_graph_row_problem @list = N'actions', @rows_json = @v_rows_json,
            @problem = @v_problem output;
        set @v_problem = replace(replace(@v_problem, N'WF601: ', N''),
                                 N' in row 0 of actions', N'');
    end;
    if @v_problem is null and cast(json_value(@full_json, N'$.timeout_ms') as bigint) < 1
        set @v_problem = N'timeout_ms must be at least 1';
    if @v_problem is not null
    begin
        set @v_problem = concat(N'schema_json: ', @v_problem);
        throw 70004, @v_problem, 1;
    end;
end;
GO

-- One revision of an action; null: the one that the newest published version with the action has, or
-- when none has it the only one. No row when there is none.
create or alter procedure wf.wf_repo_get_action_schema
    @action_name nvarchar(4000),
    @revision nvarchar(4000) = null
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;

    select top (1) r.action_name, r.revision, r.description, r.version, r.input_schema_json,
           r.output_schema_json, r.result_codes_json, r.idempotent, r.timeout_ms,
           r.sensitive_json
      from wf.workflow_action_revision as r
     outer apply (
        select max(v.workflow_version_id) as newest_id
          from wf.workflow_version_action as c
          join wf.workflow_version as v on v.workflow_version_id = c.workflow_version_id
         where c.action_name = r.action_name and c.revision = r.revision
           and v.published_at is not null) as u
     where r.action_name = @action_name
       and datalength(r.action_name) = datalength(@action_name)
       and (@revision is not null and r.revision = @revision
            or @revision is null and (u.newest_id is not null or 1 = (
                select count(*) from wf.workflow_action_revision as o
                 where o.action_name = @action_name)))
     order by case when u.newest_id is null then 1 else 0 end, u.newest_id desc;
end;
GO

-- Every action with its live columns, by name.
create or alter procedure wf.wf_repo_list_actions
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;

    select a.action_id, a.action_name, a.capability, a.max_per_worker, a.exclusive_worker,
           a.affinity_key_field, a.prefer_previous_worker, a.prefer_continue_group,
           a.require_previous_worker, a.max_concurrent, a.rate_per_minute, a.max_deliveries,
           a.paused, (select count(*) from wf.workflow_action_revision as r
                       where r.action_name = a.action_name) as revision_count
      from wf.workflow_action as a
     order by a.action_name;
end;
GO
