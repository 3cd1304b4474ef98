-- Publishing a version: the last step of every deploy. Twin: pg/wf_publish_workflow_version.sql
--
-- Every procedure here runs in the caller's transaction, or in one of its own when there is none;
-- xact_abort is on, so an error rolls back the whole. Errors are thrown as 50000 + code (R23).

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

-- Refuses a name that differs from another only in case (R19): in a case-insensitive database the two
-- would be one. Deploys follow one another, so none slips in between. 20010.
if object_id(N'wf.tr_workflow_def_name', N'TR') is not null drop trigger wf.tr_workflow_def_name;
GO
create trigger wf.tr_workflow_def_name on wf.workflow_def after insert
as
begin
    set nocount on;
    declare @v_message nvarchar(2000) = (
        select top (1) concat(N'workflow ', i.name, N' differs from workflow ', d.name,
                              N' only in case')
          from inserted as i
          join wf.workflow_def as d
            on d.name_folded = lower(i.name) and d.workflow_def_id <> i.workflow_def_id);

    if @v_message is not null throw 70010, @v_message, 1;
end;
GO

-- The triggers refuse rows for a version that is published already (R3). 20003.
if object_id(N'wf.tr_workflow_node_published', N'TR') is not null
    drop trigger wf.tr_workflow_node_published;
GO
create trigger wf.tr_workflow_node_published on wf.workflow_node after insert
as
begin
    set nocount on;
    if exists (select 1 from inserted as i
                 join wf.workflow_version as v on v.workflow_version_id = i.workflow_version_id
                where v.published_at is not null)
        throw 70003, N'the version is published; its rows never change', 1;
end;
GO

if object_id(N'wf.tr_workflow_edge_published', N'TR') is not null
    drop trigger wf.tr_workflow_edge_published;
GO
create trigger wf.tr_workflow_edge_published on wf.workflow_edge after insert
as
begin
    set nocount on;
    if exists (select 1 from inserted as i
                 join wf.workflow_version as v on v.workflow_version_id = i.workflow_version_id
                where v.published_at is not null)
        throw 70003, N'the version is published; its rows never change', 1;
end;
GO

if object_id(N'wf.tr_data_type_published', N'TR') is not null
    drop trigger wf.tr_data_type_published;
GO
create trigger wf.tr_data_type_published on wf.data_type after insert
as
begin
    set nocount on;
    if exists (select 1 from inserted as i
                 join wf.workflow_version as v on v.workflow_version_id = i.workflow_version_id
                where v.published_at is not null)
        throw 70003, N'the version is published; its rows never change', 1;
end;
GO

if object_id(N'wf.tr_workflow_input_template_published', N'TR') is not null
    drop trigger wf.tr_workflow_input_template_published;
GO
create trigger wf.tr_workflow_input_template_published on wf.workflow_input_template after insert
as
begin
    set nocount on;
    if exists (select 1 from inserted as i
                 join wf.workflow_version as v on v.workflow_version_id = i.workflow_version_id
                where v.published_at is not null)
        throw 70003, N'the version is published; its rows never change', 1;
end;
GO

if object_id(N'wf.tr_workflow_input_binding_published', N'TR') is not null
    drop trigger wf.tr_workflow_input_binding_published;
GO
create trigger wf.tr_workflow_input_binding_published on wf.workflow_input_binding after insert
as
begin
    set nocount on;
    if exists (select 1 from inserted as i
                 join wf.workflow_version as v on v.workflow_version_id = i.workflow_version_id
                where v.published_at is not null)
        throw 70003, N'the version is published; its rows never change', 1;
end;
GO

if object_id(N'wf.tr_variable_output_binding_published', N'TR') is not null
    drop trigger wf.tr_variable_output_binding_published;
GO
create trigger wf.tr_variable_output_binding_published on wf.variable_output_binding after insert
as
begin
    set nocount on;
    if exists (select 1 from inserted as i
                 join wf.workflow_version as v on v.workflow_version_id = i.workflow_version_id
                where v.published_at is not null)
        throw 70003, N'the version is published; its rows never change', 1;
end;
GO

if object_id(N'wf.tr_node_scope_default_published', N'TR') is not null
    drop trigger wf.tr_node_scope_default_published;
GO
create trigger wf.tr_node_scope_default_published on wf.node_scope_default after insert
as
begin
    set nocount on;
    if exists (select 1 from inserted as i
                 join wf.workflow_version as v on v.workflow_version_id = i.workflow_version_id
                where v.published_at is not null)
        throw 70003, N'the version is published; its rows never change', 1;
end;
GO

if object_id(N'wf.tr_collection_binding_published', N'TR') is not null
    drop trigger wf.tr_collection_binding_published;
GO
create trigger wf.tr_collection_binding_published on wf.collection_binding after insert
as
begin
    set nocount on;
    if exists (select 1 from inserted as i
                 join wf.workflow_version as v on v.workflow_version_id = i.workflow_version_id
                where v.published_at is not null)
        throw 70003, N'the version is published; its rows never change', 1;
end;
GO

if object_id(N'wf.tr_event_subscription_published', N'TR') is not null
    drop trigger wf.tr_event_subscription_published;
GO
create trigger wf.tr_event_subscription_published on wf.event_subscription after insert
as
begin
    set nocount on;
    if exists (select 1 from inserted as i
                 join wf.workflow_version as v on v.workflow_version_id = i.workflow_version_id
                where v.published_at is not null)
        throw 70003, N'the version is published; its rows never change', 1;
end;
GO

if object_id(N'wf.tr_workflow_version_action_published', N'TR') is not null
    drop trigger wf.tr_workflow_version_action_published;
GO
create trigger wf.tr_workflow_version_action_published on wf.workflow_version_action after insert
as
begin
    set nocount on;
    if exists (select 1 from inserted as i
                 join wf.workflow_version as v on v.workflow_version_id = i.workflow_version_id
                where v.published_at is not null)
        throw 70003, N'the version is published; its rows never change', 1;
end;
GO

-- Source positions and the description are no part of a version's content (R11), so a deploy of
-- known content refreshes them. Errors: 20002 no such version; 20004 a source map that is no JSON
-- value.
create or alter procedure wf.wf_set_version_notes
    @name nvarchar(4000),
    @content_hash nvarchar(4000),
    @source_map nvarchar(max),
    @description nvarchar(max)
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_version_id bigint;
    declare @v_def_id bigint;
    declare @v_message nvarchar(2000);

    -- `=` pads with blanks even under a BIN2 collation, so the lengths are compared too.
    select @v_version_id = v.workflow_version_id, @v_def_id = d.workflow_def_id
      from wf.workflow_version as v
      join wf.workflow_def as d on d.workflow_def_id = v.workflow_def_id
     where d.name = @name and datalength(d.name) = datalength(@name)
       and v.content_hash = @content_hash;
    if @v_version_id is null
    begin
        set @v_message = concat(N'workflow ', left(@name, 200), N' has no version ',
                                left(@content_hash, 64));
        throw 70002, @v_message, 1;
    end;
    exec wf.wf_check_json @what = N'source_map', @value_json = @source_map, @has_limit = 0;
    update wf.workflow_version set source_map = @source_map
     where workflow_version_id = @v_version_id;
    update wf.workflow_def set description = @description where workflow_def_id = @v_def_id;
end;
GO

-- Makes the version with this content visible: verifies its graph, fills the derived columns, takes
-- the next version number and activates it (@activate). For a version that is published already it
-- only activates: that is how a deploy of known content rolls back.
--
-- Answers one row: workflow_version_id, version_no, was_new.
-- Locks: the workflow_def row (by updating it), so that two deploys of one workflow follow one
-- another.
-- Errors: 20002 no such version; 20003 a caller under SNAPSHOT; 20006 unknown spec_format; 20007
-- the graph is refused; 20010 the catalog's dispatch columns differ from the stored ones and
-- @update_actions is 0 (R24).
create or alter procedure wf.wf_publish_workflow_version
    @name nvarchar(4000),
    @content_hash nvarchar(4000),
    @activate bit = 1,
    @update_actions bit = 0
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_version_id bigint;
    declare @v_version_no int;
    declare @v_is_new bit;

    exec wf.wf_publish_version @name = @name, @content_hash = @content_hash,
        @activate = @activate, @update_actions = @update_actions,
        @workflow_version_id = @v_version_id output, @version_no = @v_version_no output,
        @was_new = @v_is_new output;
    select @v_version_id as workflow_version_id, @v_version_no as version_no, @v_is_new as was_new;
end;
GO

-- The work of wf_publish_workflow_version.
create or alter procedure wf.wf_publish_version
    @name nvarchar(4000),
    @content_hash nvarchar(4000),
    @activate bit,
    @update_actions bit,
    @workflow_version_id bigint output,
    @version_no int output,
    @was_new bit output
as
begin
    set nocount, xact_abort on;
    if exists (select 1 from sys.dm_exec_sessions as s
                where s.session_id = @@spid and s.transaction_isolation_level = 5)
        throw 70003, N'publishing does not run under SNAPSHOT isolation', 1;
    set transaction isolation level read committed;
    declare @v_is_own_transaction bit = case when @@trancount = 0 then 1 else 0 end;
    declare @v_def_id bigint;
    declare @v_spec_format int;
    declare @v_is_active bit;
    declare @v_detail nvarchar(max);
    declare @v_message nvarchar(2000);

    set @workflow_version_id = null;
    if @v_is_own_transaction = 1 begin transaction;
    update wf.workflow_def set @v_def_id = workflow_def_id, description = description
     where name = @name and datalength(name) = datalength(@name);
    select @workflow_version_id = v.workflow_version_id, @version_no = v.version_no,
           @v_spec_format = v.spec_format, @v_is_active = v.is_active,
           @was_new = case when v.published_at is null then 1 else 0 end
      from wf.workflow_version as v
     where v.workflow_def_id = @v_def_id and v.content_hash = @content_hash;
    if @workflow_version_id is null
    begin
        set @v_message = concat(N'workflow ', left(@name, 200), N' has no version ',
                                left(@content_hash, 64));
        throw 70002, @v_message, 1;
    end;
    exec wf.wf_publish_actions @workflow_version_id = @workflow_version_id, @update = @update_actions;
    if @was_new = 1
    begin
        if @v_spec_format <> 1
        begin
            set @v_message = concat(N'WF602: this runtime does not know spec_format ', @v_spec_format);
            throw 70006, @v_message, 1;
        end;
        exec wf.wf_verify_graph @workflow_version_id = @workflow_version_id;
        exec wf.wf_derive_version @workflow_version_id = @workflow_version_id;
        select @version_no = 1 + coalesce(max(o.version_no), 0)
          from wf.workflow_version as o
         where o.workflow_def_id = @v_def_id;
        update wf.workflow_version set published_at = wf.wf_now(), version_no = @version_no
         where workflow_version_id = @workflow_version_id;
    end;
    if @activate = 1 and @v_is_active = 0
    begin
        update wf.workflow_version set is_active = 0
         where workflow_def_id = @v_def_id and is_active = 1;
        update wf.workflow_version set is_active = 1
         where workflow_version_id = @workflow_version_id;
        set @v_detail = (select @name as workflow, @version_no as version_no
                            for json path, without_array_wrapper);
        insert into wf.audit_log (at, what, detail_json)
        values (wf.wf_now(), N'activate', @v_detail);
    end;
    if @v_is_own_transaction = 1 commit transaction;
end;
GO

-- Compares the dispatch columns of the version's catalog with the live ones of each action.
-- A difference is refused with 20010, or taken over with a row in wf.audit_log for each action.
create or alter procedure wf.wf_publish_actions
    @workflow_version_id bigint,
    @update bit
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_action_name nvarchar(200);
    declare @v_catalog_json nvarchar(max);
    declare @v_stored_json nvarchar(max);
    declare @v_detail nvarchar(max);
    declare @v_message nvarchar(2000);

    while 1 = 1
    begin
        set @v_action_name = null;
        -- `except` compares nulls as equal.
        select top (1) @v_action_name = c.action_name
          from wf.workflow_version_action as c
          join wf.workflow_action as a on a.action_name = c.action_name
         where c.workflow_version_id = @workflow_version_id
           and exists (select c.capability, c.max_per_worker, c.exclusive_worker,
                               c.affinity_key_field, c.prefer_previous_worker,
                               c.prefer_continue_group, c.require_previous_worker,
                               c.max_concurrent, c.rate_per_minute, c.max_deliveries
                       except
                       select a.capability, a.max_per_worker, a.exclusive_worker,
                               a.affinity_key_field, a.prefer_previous_worker,
                               a.prefer_continue_group, a.require_previous_worker,
                               a.max_concurrent, a.rate_per_minute, a.max_deliveries)
         order by c.action_name;
        if @v_action_name is null break;
        set @v_catalog_json = (
            select c.action_name, c.capability, c.max_per_worker, c.exclusive_worker,
                   c.affinity_key_field, c.prefer_previous_worker, c.prefer_continue_group,
                   c.require_previous_worker, c.max_concurrent, c.rate_per_minute,
                   c.max_deliveries
              from wf.workflow_version_action as c
             where c.workflow_version_id = @workflow_version_id
               and c.action_name = @v_action_name
               for json path, without_array_wrapper, include_null_values);
        set @v_stored_json = (
            select a.action_name, a.capability, a.max_per_worker, a.exclusive_worker,
                   a.affinity_key_field, a.prefer_previous_worker, a.prefer_continue_group,
                   a.require_previous_worker, a.max_concurrent, a.rate_per_minute,
                   a.max_deliveries
              from wf.workflow_action as a
             where a.action_name = @v_action_name
               for json path, without_array_wrapper, include_null_values);
        if @update = 0
        begin
            set @v_message = left(concat(N'the catalog says of action ', @v_action_name, N': ',
                wf.wf_json_difference(@v_catalog_json, @v_stored_json), N'; this database has: ',
                wf.wf_json_difference(@v_stored_json, @v_catalog_json)), 2000);
            throw 70010, @v_message, 1;
        end;
        update a
           set capability = c.capability,
               max_per_worker = c.max_per_worker,
               exclusive_worker = c.exclusive_worker,
               affinity_key_field = c.affinity_key_field,
               prefer_previous_worker = c.prefer_previous_worker,
               prefer_continue_group = c.prefer_continue_group,
               require_previous_worker = c.require_previous_worker,
               max_concurrent = c.max_concurrent,
               rate_per_minute = c.rate_per_minute,
               max_deliveries = c.max_deliveries
          from wf.workflow_action as a
          join wf.workflow_version_action as c on c.action_name = a.action_name
         where c.workflow_version_id = @workflow_version_id and a.action_name = @v_action_name;
        set @v_detail = (select @v_action_name as [action], json_query(@v_stored_json) as [from],
                                json_query(@v_catalog_json) as [to]
                            for json path, without_array_wrapper);
        insert into wf.audit_log (at, what, detail_json)
        values (wf.wf_now(), N'update action', @v_detail);
    end;
    exec wf.wf_add_throttles @workflow_version_id = @workflow_version_id;
end;
GO

-- Gives each action of a version its row of wf.action_throttle.
-- Locks: the application lock 'wf.throttles', when a row is missing: two deploys may bring one action.
create or alter procedure wf.wf_add_throttles
    @workflow_version_id bigint
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_locked int;

    if not exists (select 1 from wf.workflow_version_action as u
                     join wf.workflow_action as a on a.action_name = u.action_name
                    where u.workflow_version_id = @workflow_version_id
                      and not exists (select 1 from wf.action_throttle as t
                                       where t.action_id = a.action_id))
        return;
    exec @v_locked = sys.sp_getapplock @Resource = N'wf.throttles', @LockMode = N'Exclusive',
        @LockOwner = N'Transaction', @LockTimeout = 60000;
    if @v_locked < 0 throw 70009, N'other deploys are at it; try again', 1;
    insert into wf.action_throttle (action_id)
    select a.action_id
      from wf.workflow_version_action as u
      join wf.workflow_action as a on a.action_name = u.action_name
     where u.workflow_version_id = @workflow_version_id
       and not exists (select 1 from wf.action_throttle as t where t.action_id = a.action_id);
end;
GO

-- The entries of @one that @other has not, or has otherwise, as text for a message.
create or alter function wf.wf_json_difference(@one nvarchar(max), @other nvarchar(max))
returns nvarchar(max)
as
begin
    return coalesce((
        select string_agg(cast(concat(e.[key], N' ', wf.wf_json_text(e.value, e.type)) as nvarchar(max)), N', ') within group (order by e.[key])
          from openjson(@one) as e
         where not exists (select 1 from openjson(@other) as o
                            where o.[key] = e.[key] and o.type = e.type
                              and (o.type = 0 or o.value = e.value))), N'nothing');
end;
GO

-- Fills what the engine reads instead of working it out: links between nodes, what a node opens and
-- carries, and the bindings that the placeholders of templates stand for.
create or alter procedure wf.wf_derive_version
    @workflow_version_id bigint
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;

    update b set node_id = n.node_id, path = wf.wf_pointer_path(b.pointer)
      from wf.workflow_input_binding as b
      join wf.workflow_node as n
        on n.workflow_version_id = b.workflow_version_id and n.node_key = b.node_key
     where b.workflow_version_id = @workflow_version_id;
    update b set node_id = n.node_id
      from wf.variable_output_binding as b
      join wf.workflow_node as n
        on n.workflow_version_id = b.workflow_version_id and n.node_key = b.node_key
     where b.workflow_version_id = @workflow_version_id;
    update b set node_id = n.node_id
      from wf.node_scope_default as b
      join wf.workflow_node as n
        on n.workflow_version_id = b.workflow_version_id and n.node_key = b.owner_key
     where b.workflow_version_id = @workflow_version_id;
    update b set node_id = n.node_id
      from wf.collection_binding as b
      join wf.workflow_node as n
        on n.workflow_version_id = b.workflow_version_id and n.node_key = b.node_key
     where b.workflow_version_id = @workflow_version_id;
    exec wf.wf_derive_template_bindings @workflow_version_id = @workflow_version_id;
    update b
       set variable_name = json_value(b.program_json, N'$[0][1]'),
           variable_owner = json_value(b.program_json, N'$[0][2]')
      from wf.workflow_input_binding as b
     where b.workflow_version_id = @workflow_version_id
       and json_value(b.program_json, N'$[0][0]') = N'var'
       and not exists (select 1 from openjson(b.program_json) as i
                        where i.[key] collate Latin1_General_100_BIN2 <> N'0')
       and not exists (select 1 from openjson(b.program_json, N'$[0][3]') as t)
       and (select count(*) from openjson(b.path) as t) = 1;
    exec wf.wf_derive_variable_types @workflow_version_id = @workflow_version_id;
    exec wf.wf_derive_nodes @workflow_version_id = @workflow_version_id;
    exec wf.wf_derive_closing @workflow_version_id = @workflow_version_id;

    update v
       set root_node_id = (select n.node_id from wf.workflow_node as n
                            where n.workflow_version_id = v.workflow_version_id
                              and n.parent_node_id is null),
           has_deadlines = case when exists (
               select 1 from wf.workflow_node as n
                where n.workflow_version_id = v.workflow_version_id
                  and n.timeout_ms is not null) then 1 else 0 end,
           -- Where no expression is evaluated after a submit, none can fail late.
           may_fail_late = case when v.outputs_json <> N'[]' or exists (
               select 1 from wf.workflow_node as n
                where n.workflow_version_id = v.workflow_version_id
                  and (n.has_input_bindings = 1 or n.has_output_bindings = 1
                       or n.has_scope_defaults = 1 or n.collect_node_id is not null
                       or n.node_type not in (N'ACTION', N'SEQUENCE', N'PARALLEL')
                       or json_query(n.attributes_json, N'$.fail') is not null
                       or json_value(n.attributes_json, N'$.keep_going') is not null
                       or n.needed_count is not null or n.on_error_node_id is not null
                       or n.finally_node_id is not null or n.timeout_ms is not null))
               then 1 else 0 end
      from wf.workflow_version as v
     where v.workflow_version_id = @workflow_version_id;
end;
GO

-- Fills the derived columns of the version's nodes, but for those of closing.
create or alter procedure wf.wf_derive_nodes
    @workflow_version_id bigint
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;

    update n
       set action_id = (select a.action_id from wf.workflow_action as a
                         where a.action_name = n.action_name),
           child_count = (select count(*) from wf.workflow_node as c
                           where c.parent_node_id = n.node_id),
           first_child_id = (select top (1) c.node_id from wf.workflow_node as c
                              where c.parent_node_id = n.node_id
                                and c.edge_kind in (N'SEQUENCE', N'PARALLEL', N'BODY')
                              order by c.child_order),
           next_node_id = (select top (1) s.node_id from wf.workflow_node as s
                            where s.parent_node_id = n.parent_node_id
                              and n.edge_kind = N'SEQUENCE' and s.edge_kind = N'SEQUENCE'
                              and s.child_order > n.child_order
                            order by s.child_order),
           on_error_node_id = (select c.node_id from wf.workflow_node as c
                                where c.parent_node_id = n.node_id
                                  and c.edge_kind = N'ON_ERROR'),
           finally_node_id = (select c.node_id from wf.workflow_node as c
                               where c.parent_node_id = n.node_id
                                 and c.edge_kind = N'FINALLY'),
           timeout_node_id = (select c.node_id from wf.workflow_node as c
                               where c.parent_node_id = n.node_id
                                 and c.edge_kind = N'TIMEOUT'),
           is_loop_body = case when n.edge_kind = N'BODY' then 1 else 0 end,
           opens_scope = case when n.parent_node_id is null
               or exists (select 1 from wf.node_scope_default as d where d.node_id = n.node_id)
               then 1 else 0 end,
           has_scope_defaults = case when exists (
               select 1 from wf.node_scope_default as d
                where d.node_id = n.node_id and d.variable_kind = N'var'
                  and d.program_json is not null) then 1 else 0 end,
           has_input_bindings = case when exists (
               select 1 from wf.workflow_input_binding as b
                where b.node_id = n.node_id) then 1 else 0 end,
           has_plain_inputs = case when exists (
               select 1 from wf.workflow_input_binding as b
                where b.node_id = n.node_id and b.variable_name is null)
               or exists (
               select 1 from wf.workflow_input_template as t
                cross apply openjson(concat(N'[', t.template_json, N']')) as j
                where t.workflow_version_id = n.workflow_version_id
                  and t.node_key = n.node_key and j.type <> 5) then 0 else 1 end,
           has_output_bindings = case when exists (
               select 1 from wf.variable_output_binding as b
                where b.node_id = n.node_id and b.binding_kind = N'var') then 1 else 0 end,
           -- A FOREACH that collects, and its body; of one with `reuse` the body alone.
           collect_node_id = coalesce(
               (select top (1) b.node_id from wf.variable_output_binding as b
                 where b.node_id = n.node_id and b.binding_kind = N'collect'),
               (select top (1) p.node_id from wf.workflow_node as p
                 where n.edge_kind = N'BODY' and p.node_id = n.parent_node_id
                   and (json_query(p.attributes_json, N'$.reuse') is not null
                        or exists (select 1 from wf.variable_output_binding as b
                                    where b.node_id = p.node_id
                                      and b.binding_kind = N'collect')))),
           branch_limit = case n.node_type
               when N'PARALLEL' then cast(json_value(n.attributes_json, N'$.limit') as int)
               when N'FOREACH' then
                   coalesce(cast(json_value(n.attributes_json, N'$.parallel') as int), 1) end,
           needed_count = case when n.node_type = N'PARALLEL'
               then cast(json_value(n.attributes_json, N'$.join') as int) end,
           priority = coalesce(cast(json_value(n.attributes_json, N'$.priority') as int), 0),
           lease_ms = cast(json_value(n.attributes_json, N'$.lease_ms') as bigint),
           delay_ms = coalesce(cast(json_value(n.attributes_json, N'$.delay_ms') as bigint),
                               cast(json_value(n.attributes_json, N'$.sleep_ms') as bigint)),
           timeout_ms = coalesce(cast(json_value(n.attributes_json, N'$.timeout_ms') as bigint),
               (select r.timeout_ms from wf.workflow_action_revision as r
                 where r.action_name = n.action_name and r.revision = n.action_revision)),
           retry_json = json_query(n.attributes_json, N'$.retry')
      from wf.workflow_node as n
     where n.workflow_version_id = @workflow_version_id;

    -- The loop variables of a body stand in the attributes of its loop.
    update b
       set loop_item_name = json_value(p.attributes_json, N'$.item'),
           loop_index_name = coalesce(json_value(p.attributes_json, N'$.index'),
                                      json_value(p.attributes_json, N'$.counter'))
      from wf.workflow_node as b
      join wf.workflow_node as p on p.node_id = b.parent_node_id
     where b.workflow_version_id = @workflow_version_id and b.edge_kind = N'BODY';
end;
GO

-- Which writes are checked against a type, and which initialisers need no check because they are one
-- literal of a variable without a type (R5). The twin spares literals of any type that fits.
create or alter procedure wf.wf_derive_variable_types
    @workflow_version_id bigint
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;

    update b set type_id = d.type_id
      from wf.variable_output_binding as b
      join wf.node_scope_default as d
        on d.workflow_version_id = b.workflow_version_id and d.owner_key = b.owner_key
       and d.name = b.name
      join wf.data_type as t
        on t.workflow_version_id = d.workflow_version_id and t.type_id = d.type_id
     where b.workflow_version_id = @workflow_version_id and t.base_type <> N'any';
    update d set is_constant = 1
      from wf.node_scope_default as d
     where d.workflow_version_id = @workflow_version_id and d.variable_kind = N'var'
       and d.type_id is null and json_value(d.program_json, N'$[0][0]') = N'lit'
       and not exists (select 1 from openjson(d.program_json) as i
                        where i.[key] collate Latin1_General_100_BIN2 <> N'0');
end;
GO

-- Which successes may close other work: those of a PARALLEL's branches when fewer than all are
-- needed and it does not keep going, and so every completion below such a branch (R1).
create or alter procedure wf.wf_derive_closing
    @workflow_version_id bigint
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_row_count int = 1;

    update c
       set success_may_close = case when p.node_type = N'PARALLEL'
               and p.needed_count < p.child_count
               and json_value(p.attributes_json, N'$.keep_going') is null then 1 else 0 end,
           may_close = case when p.node_type = N'PARALLEL' and p.needed_count < p.child_count
               and json_value(p.attributes_json, N'$.keep_going') is null then 1 else 0 end
      from wf.workflow_node as c
      left join wf.workflow_node as p on p.node_id = c.parent_node_id
     where c.workflow_version_id = @workflow_version_id;
    while @v_row_count > 0
    begin
        update n set may_close = 1
          from wf.workflow_node as n
          join wf.workflow_node as p on p.node_id = n.parent_node_id
         where n.workflow_version_id = @workflow_version_id and n.may_close = 0
           and p.may_close = 1;
        set @v_row_count = @@rowcount;
    end;
end;
GO

-- The steps of a JSON pointer, unescaped, as a JSON array of strings; '' names the whole document.
create or alter function wf.wf_pointer_path(@pointer nvarchar(600)) returns nvarchar(max)
as
begin
    -- Each `/` is where one step ends.
    declare @v_steps nvarchar(max) = replace(
        wf.wf_json_quote(cast(substring(@pointer, 2, 600) as nvarchar(max))), N'/', N'","');
    if datalength(@pointer) = 0 return N'[]';
    return concat(N'[', replace(replace(@v_steps, N'~1', N'/'), N'~0', N'~'), N']');
end;
GO

-- Makes a binding of every string of a template that holds a placeholder, level by level. The
-- program of a string comes from wf.wf_compile_template_string (wf_templates.sql). Errors:
-- 20007 naming the node and the placeholder that is not understood.
create or alter procedure wf.wf_derive_template_bindings
    @workflow_version_id bigint
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_place table (
        place_id bigint identity(1, 1) not null primary key,
        level_no int not null,
        node_id bigint not null,
        pointer nvarchar(max) collate Latin1_General_100_BIN2 not null,
        value nvarchar(max) collate Latin1_General_100_BIN2 null,
        type int not null
    );
    declare @v_level_no int = 0;
    declare @v_row_count int;
    declare @v_place_id bigint = 0;
    declare @v_node_id bigint;
    declare @v_pointer nvarchar(max);
    declare @v_value nvarchar(max);
    declare @v_program nvarchar(max);
    declare @v_error_code int;
    declare @v_error_message nvarchar(max);
    declare @v_message nvarchar(2000);

    -- A document inside an array is read like any other value: its type comes with it.
    insert into @v_place (level_no, node_id, pointer, value, type)
    select 0, n.node_id, N'', j.value, j.type
      from wf.workflow_input_template as t
      join wf.workflow_node as n
        on n.workflow_version_id = t.workflow_version_id and n.node_key = t.node_key
     cross apply openjson(concat(N'[', t.template_json, N']')) as j
     where t.workflow_version_id = @workflow_version_id
       and charindex(N'${', t.template_json) > 0
     order by n.node_id;
    set @v_row_count = @@rowcount;
    while @v_row_count > 0
    begin
        insert into @v_place (level_no, node_id, pointer, value, type)
        select @v_level_no + 1, p.node_id,
               concat(p.pointer, N'/', replace(replace(j.[key], N'~', N'~0'), N'/', N'~1')),
               j.value, j.type
          from @v_place as p
         cross apply openjson(p.value) as j
         where p.level_no = @v_level_no and p.type in (4, 5)
         order by p.place_id, j.[key];
        set @v_row_count = @@rowcount;
        set @v_level_no = @v_level_no + 1;
    end;
    while 1 = 1
    begin
        set @v_node_id = null;
        select top (1) @v_place_id = p.place_id, @v_node_id = p.node_id, @v_pointer = p.pointer,
                       @v_value = p.value
          from @v_place as p
         where p.place_id > @v_place_id and p.type = 1 and charindex(N'${', p.value) > 0
         order by p.place_id;
        if @v_node_id is null break;
        exec wf.wf_compile_template_string @text = @v_value,
            @version_id = @workflow_version_id, @node_id = @v_node_id,
            @program_json = @v_program output, @error_code = @v_error_code output,
            @error_message = @v_error_message output;
        if @v_error_code is not null
        begin
            select @v_message = left(concat(N'WF615: input of ', n.node_key, N' at "', @v_pointer,
                                            N'": ', @v_error_message), 2000)
              from wf.workflow_node as n
             where n.node_id = @v_node_id;
            throw 70007, @v_message, 1;
        end;
        insert into wf.workflow_input_binding (workflow_version_id, node_key, pointer, program_json,
                                               is_derived, path, node_id)
        select @workflow_version_id, n.node_key, @v_pointer, @v_program, 1,
               wf.wf_pointer_path(@v_pointer), n.node_id
          from wf.workflow_node as n
         where n.node_id = @v_node_id;
    end;
end;
GO
