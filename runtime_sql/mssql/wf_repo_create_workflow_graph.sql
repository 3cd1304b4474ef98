-- Deploying a GraphSpec as one JSON document. Twin: pg/wf_repo_create_workflow_graph.sql
--
-- It writes the rows that a deploy script writes and publishes them with the same routine (R3), so a
-- version is the same whichever way it came. The constraints of the tables are checks too: what one
-- of them refuses is a fault of the graph, and wf.graph_constraint says which code it has.

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

if object_id(N'wf.graph_field', N'V') is not null drop view wf.graph_field;
GO

-- The fields of a GraphSpec: list '' is the document itself. A kind with ? may be null. What is not
-- here is refused, so that nothing a newer compiler says is silently dropped.
create view wf.graph_field as
select l.list collate Latin1_General_100_BIN2 as list,
       cast(left(p.pair, charindex(N' ', p.pair) - 1) as nvarchar(200))
           collate Latin1_General_100_BIN2 as field,
       replace(substring(p.pair, charindex(N' ', p.pair) + 1, 20), N'?', N'') as kind,
       case when right(p.pair, 1) = N'?' then 1 else 0 end as is_nullable,
       case when l.list = N'dispatch' then 0 else 1 end as is_needed
  from (values
    (N'', N'spec_format integer,name text,description text?,types array,inputs array,vars array,'
        + N'outputs array,nodes array,edges array,templates array,input_bindings array,'
        + N'output_bindings array,collection_bindings array,actions array,subscriptions array,'
        + N'source_map object?'),
    (N'types', N'id integer,parent integer?,kind text,name text?,base text,required boolean,'
             + N'nullable boolean,enum texts?'),
    (N'inputs', N'order integer,name text,type integer,required boolean,program array?'),
    (N'vars', N'owner text,order integer,name text,kind text,type integer?,program array?'),
    (N'outputs', N'order integer,name text,program array'),
    (N'nodes', N'key text,type text,generated boolean,attributes object'),
    (N'edges', N'parent text,child text,kind text,order integer,case array?'),
    (N'templates', N'node text,json any?'),
    (N'input_bindings', N'node text,pointer text,program array'),
    (N'output_bindings', N'node text,order integer,kind text,name text,owner text,'
                       + N'program array'),
    (N'collection_bindings', N'node text,kind text,program array'),
    (N'actions', N'name text,revision text,description text?,version text?,capability text,'
               + N'input_schema object?,output_schema object?,result_codes object,'
               + N'idempotent boolean,timeout_ms bigint?,sensitive texts,dispatch object'),
    (N'dispatch', N'max_per_worker integer?,exclusive_worker boolean,affinity_key_field text?,'
                + N'prefer_previous_worker boolean,prefer_continue_group boolean,'
                + N'require_previous_worker boolean,max_concurrent integer?,'
                + N'rate_per_minute integer?,max_deliveries integer'),
    (N'subscriptions', N'event_type text,mode text,filter array,inputs array')) as l(list, fields)
 cross apply (select s.value as pair from string_split(l.fields, N',') as s) as p;
GO

if object_id(N'wf.graph_constraint', N'V') is not null drop view wf.graph_constraint;
GO

-- What a constraint of the definition tables says of a graph, by code; others are WF601.
create view wf.graph_constraint as
select c.code, n.value as name
  from (values
    (N'WF604', N'uq_workflow_edge_child'),
    (N'WF606', N'uq_workflow_node_key ck_workflow_node_key ck_workflow_def_name '
             + N'pk_node_scope_default'),
    (N'WF607', N'fk_workflow_edge_parent fk_workflow_edge_child fk_workflow_input_template_node '
             + N'fk_workflow_input_binding_node fk_variable_output_binding_node '
             + N'fk_node_scope_default_owner fk_collection_binding_node'),
    (N'WF610', N'pk_workflow_edge ck_workflow_edge_order pk_variable_output_binding '
             + N'uq_node_scope_default_order'),
    (N'WF611', N'ck_workflow_edge_case'),
    (N'WF614', N'ck_workflow_node_action'),
    (N'WF615', N'pk_workflow_input_template pk_workflow_input_binding pk_collection_binding'),
    (N'WF616', N'fk_workflow_node_revision pk_workflow_version_action ck_workflow_action_name '
             + N'ck_workflow_action_revision_hash ck_workflow_action_max_per_worker '
             + N'ck_workflow_action_max_deliveries'),
    (N'WF617', N'pk_data_type fk_data_type_parent ck_data_type_parent '
             + N'fk_node_scope_default_type')) as c(code, names)
 cross apply string_split(c.names, N' ') as n;
GO

-- Whether a value of OPENJSON is of a kind of wf.graph_field.
create or alter function wf.wf_is_graph_value(
    @value nvarchar(max),
    @type int,
    @kind nvarchar(20)
) returns bit
as
begin
    if @kind = N'any' return 1;
    if @kind = N'text' return case when @type = 1 then 1 else 0 end;
    if @kind = N'boolean' return case when @type = 3 then 1 else 0 end;
    if @kind = N'array' return case when @type = 4 then 1 else 0 end;
    if @kind = N'object' return case when @type = 5 then 1 else 0 end;
    if @kind = N'texts'
    begin
        if @type <> 4 return 0;
        return case when exists (select 1 from openjson(@value) as e where e.type <> 1)
                    then 0 else 1 end;
    end;
    if @type <> 2 or wf.wf_is_digits(@value, 18) = 0 return 0;
    if @kind = N'bigint' return 1;
    return case when cast(@value as bigint) between -2147483647 and 2147483647 then 1 else 0 end;
end;
GO

-- What keeps a document from being a GraphSpec, with its code, or null. Everything after it may
-- take every field for granted.
create or alter procedure wf.wf_graph_problem
    @spec nvarchar(max),
    @problem nvarchar(2000) output
as
begin
    set nocount, xact_abort on;
    declare @v_format nvarchar(max);
    declare @v_rows_json nvarchar(max);
    declare @v_field nvarchar(200) = N'';
    declare @v_next nvarchar(200);

    set @problem = null;
    if coalesce(wf.wf_json_type(@spec), N'') <> N'object'
    begin
        set @problem = N'WF601: a graph is an object';
        return;
    end;
    set @problem = N'WF601: ' + wf.wf_storable_problem(@spec);
    if @problem is not null return;
    set @v_format = wf.wf_json_member(@spec, N'spec_format');
    if wf.wf_json_type(@v_format) = N'number' and wf.wf_number_text(@v_format) <> N'1'
    begin
        set @problem = concat(N'WF602: this runtime does not know spec_format ',
                              left(@v_format, 20));
        return;
    end;
    set @v_rows_json = concat(N'[', @spec, N']');
    exec wf.wf_graph_row_problem @list = N'', @rows_json = @v_rows_json,
        @problem = @problem output;
    while @problem is null
    begin
        select @v_next = min(f.field) from wf.graph_field as f
         where f.list = N'' and f.kind = N'array' and f.field > @v_field;
        if @v_next is null break;
        set @v_field = @v_next;
        set @v_rows_json = wf.wf_json_member(@spec, @v_field);
        exec wf.wf_graph_row_problem @list = @v_field, @rows_json = @v_rows_json,
            @problem = @problem output;
    end;
    if @problem is not null return;
    select @v_rows_json = concat(N'[', string_agg(wf.wf_json_member(a.value, N'dispatch'), N',')
               within group (order by cast(a.[key] as int)), N']')
      from openjson(wf.wf_json_member(@spec, N'actions')) as a;
    exec wf.wf_graph_row_problem @list = N'dispatch', @rows_json = @v_rows_json,
        @problem = @problem output;
end;
GO

-- The first thing that is wrong with the rows of a list, a JSON array, or null.
create or alter procedure wf.wf_graph_row_problem
    @list nvarchar(200),
    @rows_json nvarchar(max),
    @problem nvarchar(2000) output
as
begin
    set nocount, xact_abort on;

    set @problem = null;
    select top (1) @problem = concat(N'WF601: row ', r.[key], N' of ', @list, N' is no object')
      from openjson(@rows_json) as r
     where r.type <> 5
     order by cast(r.[key] as int);
    if @problem is not null return;
    select top (1) @problem = concat(N'WF601: ', e.field,
               case when @list <> N'' then concat(N' in row ', e.ordinal, N' of ', @list) end,
               N' ', e.problem)
      from (select cast(r.[key] as int) as ordinal, f.field,
                   case when m.type is null then N'is missing' else N'has another type' end
                       as problem
              from openjson(@rows_json) as r
             cross join wf.graph_field as f
             outer apply (select top (1) o.value, o.type from openjson(r.value) as o
                           where o.[key] collate Latin1_General_100_BIN2 = f.field) as m
             where f.list = @list
               and case when m.type is null then f.is_needed
                        when m.type = 0
                        then case when f.is_nullable = 0 and f.kind <> N'any' then 1 else 0 end
                        else 1 - wf.wf_is_graph_value(m.value, m.type, f.kind) end = 1
            union all
            select cast(r.[key] as int),
                   left(k.[key], 40) collate Latin1_General_100_BIN2, N'is not known'
              from openjson(@rows_json) as r
             cross apply openjson(r.value) as k
             where not exists (select 1 from wf.graph_field as f
                                where f.list = @list
                                  and f.field = k.[key] collate Latin1_General_100_BIN2)) as e
     order by e.ordinal, e.field;
end;
GO

-- An object without some of its members, a list of names with commas around each.
create or alter function wf.wf_json_without(@value nvarchar(max), @names nvarchar(1000))
returns nvarchar(max)
as
begin
    return concat(N'{', (
        select string_agg(concat(wf.wf_json_quote(m.[key]), N':',
                                 wf.wf_json_text(m.value, m.type)), N',')
          from openjson(@value) as m
         where charindex(concat(N',', m.[key], N','),
                         @names collate Latin1_General_100_BIN2) = 0), N'}');
end;
GO

-- The dispatch columns of an action of a graph, those that are left out at their defaults.
create or alter function wf.wf_graph_dispatch(@action_json nvarchar(max)) returns nvarchar(max)
as
begin
    declare @v_given nvarchar(max) = wf.wf_json_member(@action_json, N'dispatch');
    return concat(N'{', (
        select string_agg(concat(wf.wf_json_quote(d.[key]), N':', coalesce(
                   wf.wf_json_member(@v_given, d.[key]), wf.wf_json_text(d.value, d.type))), N',')
          from openjson(N'{"max_per_worker":null,"exclusive_worker":false,'
                   + N'"affinity_key_field":null,"prefer_previous_worker":false,'
                   + N'"prefer_continue_group":false,"require_previous_worker":false,'
                   + N'"max_concurrent":null,"rate_per_minute":null,"max_deliveries":5}') as d),
        N'}');
end;
GO

-- The hash of what a graph says (R11): without positions and descriptions, dispatch columns that
-- are left out at their defaults. Equal to GraphSpec.content_hash() in Python.
create or alter function wf.wf_graph_hash(@spec nvarchar(max)) returns nvarchar(64)
as
begin
    declare @v_rest nvarchar(max) = wf.wf_json_without(@spec, N',source_map,description,actions,');
    declare @v_actions nvarchar(max) = (
        select string_agg(concat(
                   left(x.action_json, len(x.action_json + N'.') - 2), N',"dispatch":',
                   wf.wf_graph_dispatch(x.value), N'}'), N',') within group (order by x.position)
          from (select cast(a.[key] as int) as position, a.value,
                       wf.wf_json_without(a.value, N',description,dispatch,') as action_json
                  from openjson(wf.wf_json_member(@spec, N'actions')) as a) as x);
    return wf.wf_json_sha256(concat(left(@v_rest, len(@v_rest + N'.') - 2), N',"actions":[',
                                    @v_actions, N']}'), 1);
end;
GO

-- Deploys a workflow from its GraphSpec (compiler/graphspec.schema.json) and makes it the active
-- version unless told not to. Known content adds no rows and becomes active again, as with a script.
--
-- Answers one row. Locks: the lock of all deploys, then the workflow_def row.
-- Errors: 20005 more than 16 MB; 20006 unknown spec_format; 20007 the graph is refused, its text
-- begins with the code; 20010 a name that differs from another in case only, or dispatch columns
-- that differ from the stored ones (R24). After an error nothing has changed.
create or alter procedure wf.wf_repo_create_workflow_graph
    @spec nvarchar(max),
    @activate bit = 1,
    @update_actions bit = 0
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_owns_transaction bit = case when @@trancount = 0 then 1 else 0 end;
    declare @v_problem nvarchar(2000);
    declare @v_number int;
    declare @v_name nvarchar(max);
    declare @v_hash nvarchar(64);

    if len(@spec + N'.') - 1 > 16777216 throw 70005, N'the graph has more than 16 MB', 1;
    if coalesce(isjson(@spec), 0) = 0 throw 70007, N'WF601: a graph is an object', 1;
    exec wf.wf_graph_problem @spec = @spec, @problem = @v_problem output;
    if @v_problem is not null
    begin
        set @v_number = case when @v_problem like N'WF602%' then 70006 else 70007 end;
        throw @v_number, @v_problem, 1;
    end;
    set @v_name = wf.wf_json_string(wf.wf_json_member(@spec, N'name'));
    if len(@v_name + N'.') - 1 > 120
        throw 70007, N'WF606: the name of a workflow has at most 120 characters', 1;
    set @v_hash = wf.wf_graph_hash(@spec);
    begin try
        if @v_owns_transaction = 1 begin transaction;
        exec wf.wf_deploy_graph @spec = @spec, @name = @v_name, @hash = @v_hash,
            @activate = @activate, @update_actions = @update_actions;
        if @v_owns_transaction = 1 commit transaction;
    end try
    begin catch
        if @v_owns_transaction = 1 and xact_state() <> 0 rollback transaction;
        -- What a constraint of the definition tables refuses, or does not fit a column.
        if error_number() not in (245, 515, 547, 2601, 2627, 2628, 8114, 8115, 8152) throw;
        set @v_problem = error_message();
        set @v_problem = left(concat(coalesce(
            (select min(c.code) from wf.graph_constraint as c
              where charindex(concat(N'"', c.name, N'"'), @v_problem) > 0
                 or charindex(concat(N'''', c.name, N''''), @v_problem) > 0), N'WF601'),
            N': ', @v_problem), 2000);
        throw 70007, @v_problem, 1;
    end catch;
    select v.workflow_def_id, v.workflow_version_id, v.root_node_id, d.name
      from wf.workflow_def as d
      join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id
     where d.name = @v_name and v.content_hash = @v_hash;
end;
GO

-- Inserts what is not there yet of a graph: the rows of compiler/emit/plan.py, in its order; and
-- publishes it. Locks: the application lock 'wf.deploy', as a deploy script.
create or alter procedure wf.wf_deploy_graph
    @spec nvarchar(max),
    @name nvarchar(120),
    @hash nvarchar(64),
    @activate bit,
    @update_actions bit
as
begin
    set nocount, xact_abort on;
    declare @v_result int;
    declare @v_version_id bigint;
    declare @v_version_no int;
    declare @v_is_published bit;
    declare @v_is_new bit;
    declare @v_source_map nvarchar(max) = wf.wf_json_member(@spec, N'source_map');
    declare @v_description nvarchar(max) = wf.wf_json_member(@spec, N'description');
    declare @v_message nvarchar(2000);

    exec @v_result = sys.sp_getapplock @Resource = N'wf.deploy', @LockMode = N'Exclusive',
        @LockOwner = N'Transaction', @LockTimeout = 60000;
    if @v_result < 0 throw 70009, N'another deploy is running', 1;
    select @v_message = concat(N'workflow ', @name, N' differs from workflow ', d.name,
                               N' only in case')
      from wf.workflow_def as d
     where d.name_folded = lower(@name) and d.name <> @name;
    if @v_message is not null throw 70010, @v_message, 1;
    insert into wf.workflow_def (name)
    select @name where not exists (select 1 from wf.workflow_def as d where d.name = @name);
    insert into wf.workflow_version (workflow_def_id, content_hash, spec_format, outputs_json)
    select d.workflow_def_id, @hash, 1, wf.wf_json_member(@spec, N'outputs')
      from wf.workflow_def as d
     where d.name = @name
       and not exists (select 1 from wf.workflow_version as v
                        where v.workflow_def_id = d.workflow_def_id and v.content_hash = @hash);
    select @v_version_id = v.workflow_version_id,
           @v_is_published = case when v.published_at is not null then 1 else 0 end
      from wf.workflow_def as d
      join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id
     where d.name = @name and v.content_hash = @hash;
    exec wf.wf_insert_graph_actions @spec = @spec, @version_id = @v_version_id,
        @is_published = @v_is_published;
    if @v_is_published = 0
    begin
        exec wf.wf_insert_graph_nodes @spec = @spec, @version_id = @v_version_id;
        exec wf.wf_insert_graph_data @spec = @spec, @version_id = @v_version_id;
        exec wf.wf_insert_graph_scopes @spec = @spec, @version_id = @v_version_id;
    end;
    set @v_source_map = nullif(@v_source_map, N'null');
    set @v_description = case when @v_description <> N'null'
                              then wf.wf_json_string(@v_description) end;
    exec wf.wf_set_version_notes @name = @name, @content_hash = @hash,
        @source_map = @v_source_map, @description = @v_description;
    exec wf.wf_publish_version @name = @name, @content_hash = @hash, @activate = @activate,
        @update_actions = @update_actions, @workflow_version_id = @v_version_id output,
        @version_no = @v_version_no output, @was_new = @v_is_new output;
end;
GO

-- Actions and their revisions, which versions share, and the dispatch columns of this version.
create or alter procedure wf.wf_insert_graph_actions
    @spec nvarchar(max),
    @version_id bigint,
    @is_published bit
as
begin
    set nocount, xact_abort on;
    declare @v_actions_json nvarchar(max) = wf.wf_json_member(@spec, N'actions');

    insert into wf.workflow_action (action_name, capability, max_per_worker, exclusive_worker,
        affinity_key_field, prefer_previous_worker, prefer_continue_group,
        require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
    select x.name, x.capability, d.max_per_worker, d.exclusive_worker, d.affinity_key_field,
           d.prefer_previous_worker, d.prefer_continue_group, d.require_previous_worker,
           d.max_concurrent, d.rate_per_minute, d.max_deliveries
      from openjson(@v_actions_json) as a
     cross apply openjson(a.value)
           with (name nvarchar(4000), capability nvarchar(4000)) as x
     cross apply openjson(wf.wf_graph_dispatch(a.value))
           with (max_per_worker int, exclusive_worker bit, affinity_key_field nvarchar(4000),
                 prefer_previous_worker bit, prefer_continue_group bit,
                 require_previous_worker bit, max_concurrent int, rate_per_minute int,
                 max_deliveries int) as d
     where not exists (select 1 from wf.workflow_action as o
                        where o.action_name = x.name collate Latin1_General_100_BIN2);
    insert into wf.workflow_action_revision (action_name, revision, description, version,
        input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms,
        sensitive_json)
    select x.name, x.revision, x.description, x.version,
           nullif(wf.wf_json_member(a.value, N'input_schema'), N'null'),
           nullif(wf.wf_json_member(a.value, N'output_schema'), N'null'),
           wf.wf_json_member(a.value, N'result_codes'), x.idempotent, x.timeout_ms,
           wf.wf_json_member(a.value, N'sensitive')
      from openjson(@v_actions_json) as a
     cross apply openjson(a.value)
           with (name nvarchar(4000), revision nvarchar(4000), description nvarchar(max),
                 version nvarchar(max), idempotent bit, timeout_ms bigint) as x
     where not exists (select 1 from wf.workflow_action_revision as o
                        where o.action_name = x.name collate Latin1_General_100_BIN2
                          and o.revision = x.revision collate Latin1_General_100_BIN2);
    if @is_published = 1 return;
    insert into wf.workflow_version_action (workflow_version_id, action_name, revision,
        capability, max_per_worker, exclusive_worker, affinity_key_field,
        prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent,
        rate_per_minute, max_deliveries)
    select @version_id, x.name, x.revision, x.capability, d.max_per_worker, d.exclusive_worker,
           d.affinity_key_field, d.prefer_previous_worker, d.prefer_continue_group,
           d.require_previous_worker, d.max_concurrent, d.rate_per_minute, d.max_deliveries
      from openjson(@v_actions_json) as a
     cross apply openjson(a.value)
           with (name nvarchar(4000), revision nvarchar(4000), capability nvarchar(4000)) as x
     cross apply openjson(wf.wf_graph_dispatch(a.value))
           with (max_per_worker int, exclusive_worker bit, affinity_key_field nvarchar(4000),
                 prefer_previous_worker bit, prefer_continue_group bit,
                 require_previous_worker bit, max_concurrent int, rate_per_minute int,
                 max_deliveries int) as d;
end;
GO

-- Types, nodes and edges. Node ids rise in the order of the graph.
create or alter procedure wf.wf_insert_graph_nodes
    @spec nvarchar(max),
    @version_id bigint
as
begin
    set nocount, xact_abort on;

    insert into wf.data_type (workflow_version_id, type_id, parent_type_id, path_kind, name,
                              base_type, is_required, is_nullable, enum_json)
    select @version_id, x.id, x.parent, x.kind, x.name, x.base, x.required, x.nullable,
           nullif(wf.wf_json_member(t.value, N'enum'), N'null')
      from openjson(wf.wf_json_member(@spec, N'types')) as t
     cross apply openjson(t.value)
           with (id int, parent int, kind nvarchar(4000), name nvarchar(max),
                 base nvarchar(4000), required bit, nullable bit) as x;
    insert into wf.workflow_node (workflow_version_id, node_key, node_type, is_generated,
                                  action_name, action_revision, attributes_json)
    select @version_id, x.node_key, x.type, x.generated, a.action, a.revision,
           wf.wf_json_without(wf.wf_json_member(n.value, N'attributes'), N',action,revision,')
      from openjson(wf.wf_json_member(@spec, N'nodes')) as n
     cross apply openjson(n.value)
           with (node_key nvarchar(4000) '$.key', type nvarchar(4000), generated bit) as x
     cross apply openjson(wf.wf_json_member(n.value, N'attributes'))
           with (action nvarchar(4000), revision nvarchar(4000)) as a
     order by cast(n.[key] as int);
    insert into wf.workflow_edge (workflow_version_id, parent_key, child_key, branch_kind,
                                  child_order, case_value)
    select @version_id, x.parent, x.child, x.kind, x.child_order,
           nullif(wf.wf_json_member(e.value, N'case'), N'null')
      from openjson(wf.wf_json_member(@spec, N'edges')) as e
     cross apply openjson(e.value)
           with (parent nvarchar(4000), child nvarchar(4000), kind nvarchar(4000),
                 child_order int '$.order') as x;
end;
GO

-- What hangs on nodes: templates, bindings, subscriptions.
create or alter procedure wf.wf_insert_graph_data
    @spec nvarchar(max),
    @version_id bigint
as
begin
    set nocount, xact_abort on;

    insert into wf.workflow_input_template (workflow_version_id, node_key, template_json)
    select @version_id, json_value(t.value, N'$.node'), wf.wf_json_member(t.value, N'json')
      from openjson(wf.wf_json_member(@spec, N'templates')) as t;
    insert into wf.workflow_input_binding (workflow_version_id, node_key, pointer, program_json)
    select @version_id, json_value(b.value, N'$.node'), json_value(b.value, N'$.pointer'),
           wf.wf_json_member(b.value, N'program')
      from openjson(wf.wf_json_member(@spec, N'input_bindings')) as b;
    insert into wf.variable_output_binding (workflow_version_id, node_key, binding_order,
                                            binding_kind, name, owner_key, program_json)
    select @version_id, x.node, x.binding_order, x.kind, x.name, x.owner,
           wf.wf_json_member(b.value, N'program')
      from openjson(wf.wf_json_member(@spec, N'output_bindings')) as b
     cross apply openjson(b.value)
           with (node nvarchar(4000), binding_order int '$.order', kind nvarchar(4000),
                 name nvarchar(4000), owner nvarchar(4000)) as x;
    insert into wf.collection_binding (workflow_version_id, node_key, binding_kind, program_json)
    select @version_id, json_value(b.value, N'$.node'), json_value(b.value, N'$.kind'),
           wf.wf_json_member(b.value, N'program')
      from openjson(wf.wf_json_member(@spec, N'collection_bindings')) as b;
    insert into wf.event_subscription (workflow_version_id, subscription_order, event_type, mode,
                                       filter_json, inputs_json)
    select @version_id, cast(s.[key] as int), json_value(s.value, N'$.event_type'),
           json_value(s.value, N'$.mode'), wf.wf_json_member(s.value, N'filter'),
           wf.wf_json_member(s.value, N'inputs')
      from openjson(wf.wf_json_member(@spec, N'subscriptions')) as s;
end;
GO

-- The variables of scopes. The inputs are variables of the root, the first node that is nobody's
-- child.
create or alter procedure wf.wf_insert_graph_scopes
    @spec nvarchar(max),
    @version_id bigint
as
begin
    set nocount, xact_abort on;
    declare @v_root_key nvarchar(200);

    select top (1) @v_root_key = n.node_key
      from wf.workflow_node as n
     where n.workflow_version_id = @version_id
       and not exists (select 1 from wf.workflow_edge as e
                        where e.workflow_version_id = @version_id
                          and e.child_key = n.node_key)
     order by n.node_id;
    insert into wf.node_scope_default (workflow_version_id, owner_key, variable_order, name,
                                       variable_kind, type_id, is_required, program_json)
    select @version_id, @v_root_key, x.variable_order, x.name, N'input', x.type, x.required,
           nullif(wf.wf_json_member(i.value, N'program'), N'null')
      from openjson(wf.wf_json_member(@spec, N'inputs')) as i
     cross apply openjson(i.value)
           with (variable_order int '$.order', name nvarchar(4000), type int, required bit) as x
     where @v_root_key is not null;
    insert into wf.node_scope_default (workflow_version_id, owner_key, variable_order, name,
                                       variable_kind, type_id, is_required, program_json)
    select @version_id, x.owner, x.variable_order, x.name, x.kind, x.type, 0,
           nullif(wf.wf_json_member(v.value, N'program'), N'null')
      from openjson(wf.wf_json_member(@spec, N'vars')) as v
     cross apply openjson(v.value)
           with (owner nvarchar(4000), variable_order int '$.order', name nvarchar(4000),
                 kind nvarchar(4000), type int) as x;
end;
GO
