-- What the rows of a version must be for the engine to run them. Twin: pg/wf_verify_graph.sql
--
-- Every refusal is 20007, and its text begins with the code that the compiler's own check
-- (compiler/verify.py, docs/diagnostics.md) gives for the same fault: "WF608: …". That check finds
-- more: whether variables are visible, whether bindings fit their templates, types, subscriptions.

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

if object_id(N'wf.edge_rule', N'V') is not null drop view wf.edge_rule;
GO

-- Which kinds of edge a node may have to its children, how many of each, and which it must have.
create view wf.edge_rule as
select r.node_type, r.branch_kind, r.max_count,
       cast(case when r.branch_kind in (N'THEN', N'BODY', N'PARALLEL') then 1 else 0 end as bit)
           as is_needed
  from (values (N'SEQUENCE', N'SEQUENCE', cast(null as int)), (N'SEQUENCE', N'ON_ERROR', 1),
               (N'SEQUENCE', N'FINALLY', 1), (N'PARALLEL', N'PARALLEL', null), (N'IF', N'THEN', 1),
               (N'IF', N'ELSE', 1), (N'SWITCH', N'CASE', null), (N'SWITCH', N'DEFAULT', 1),
               (N'REPEAT', N'BODY', 1), (N'WHILE', N'BODY', 1), (N'FOREACH', N'BODY', 1),
               (N'WAIT_EVENT', N'TIMEOUT', 1)) as r(node_type, branch_kind, max_count);
GO

if object_id(N'wf.attribute_rule', N'V') is not null drop view wf.attribute_rule;
GO

-- The attributes of nodes: which a type of node may have or must have, of which kind, in which range.
-- Kinds: integer, text, flag (true, or left out), program, object. What action and revision say stands
-- in columns. A row of type `retry` is a field of that attribute.
create view wf.attribute_rule as
select t.node_type, a.name as attribute, a.kind, n.is_needed, a.least,
       cast(case when right(a.name, 3) = N'_ms' then 3162240000000 else 2147483647 end as bigint)
           as most
  from (values
    (N'ACTION', N'', N'priority lease_ms timeout_ms delay_ms retry dispatch branch_variable'),
    (N'SEQUENCE', N'', N'fail sleep_ms timeout_ms'),
    (N'PARALLEL', N'', N'limit join keep_going timeout_ms'),
    (N'IF', N'condition', N''),
    (N'SWITCH', N'subject', N''),
    (N'REPEAT', N'count', N'counter keep timeout_ms'),
    (N'WHILE', N'condition max', N'keep timeout_ms'),
    (N'FOREACH', N'item parallel', N'index batch tolerate keep_going reuse timeout_ms'),
    (N'WAIT_EVENT', N'event_type', N'correlate timeout_ms'),
    (N'retry', N'limit backoff_ms factor_hundredths max_ms', N''))
    as t(node_type, needed, allowed)
 cross apply (
    select u.value as name, cast(1 as bit) as is_needed
      from string_split(t.needed, N' ') as u
    union all
    select u.value, cast(0 as bit) from string_split(t.allowed, N' ') as u) as n
  join (values
    (N'limit', N'integer', 1), (N'join', N'integer', 1), (N'max', N'integer', 1),
    (N'keep', N'integer', 1), (N'batch', N'integer', 1), (N'parallel', N'integer', 0),
    (N'lease_ms', N'integer', 1), (N'timeout_ms', N'integer', 1), (N'delay_ms', N'integer', 0),
    (N'sleep_ms', N'integer', 0), (N'backoff_ms', N'integer', 0), (N'max_ms', N'integer', 0),
    (N'factor_hundredths', N'integer', 100), (N'priority', N'integer', -2147483647),
    (N'keep_going', N'flag', null), (N'reuse', N'object', null), (N'item', N'text', null),
    (N'index', N'text', null), (N'counter', N'text', null), (N'branch_variable', N'text', null),
    (N'event_type', N'text', null), (N'condition', N'program', null),
    (N'subject', N'program', null), (N'count', N'program', null),
    (N'correlate', N'program', null), (N'retry', N'object', null),
    (N'dispatch', N'object', null), (N'fail', N'object', null),
    (N'tolerate', N'object', null)) as a(name, kind, least) on a.name = n.name;
GO

-- Verifies the rows of a version. Errors: 20007 with the first fault that was found.
create or alter procedure wf.wf_verify_graph
    @workflow_version_id bigint
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_found nvarchar(1900);

    exec wf.wf_verify_root @workflow_version_id = @workflow_version_id, @found = @v_found output;
    if @v_found is null
        exec wf.wf_verify_edges @workflow_version_id = @workflow_version_id,
            @found = @v_found output;
    if @v_found is null
        exec wf.wf_verify_cases @workflow_version_id = @workflow_version_id,
            @found = @v_found output;
    if @v_found is null
        exec wf.wf_verify_reachable @workflow_version_id = @workflow_version_id,
            @found = @v_found output;
    if @v_found is null
        exec wf.wf_verify_attributes @workflow_version_id = @workflow_version_id,
            @found = @v_found output;
    if @v_found is null
        exec wf.wf_verify_programs @workflow_version_id = @workflow_version_id,
            @found = @v_found output;
    if @v_found is null
        select top (1) @v_found = concat(N'WF615: FOREACH ', n.node_key,
                                         N' has no collection binding')
          from wf.workflow_node as n
         where n.workflow_version_id = @workflow_version_id and n.node_type = N'FOREACH'
           and not exists (select 1 from wf.collection_binding as b
                            where b.workflow_version_id = n.workflow_version_id
                              and b.node_key = n.node_key)
         order by n.node_id;
    if @v_found is not null throw 70007, @v_found, 1;
end;
GO

-- What is wrong with the root, or null.
create or alter procedure wf.wf_verify_root
    @workflow_version_id bigint,
    @found nvarchar(1900) output
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;

    select @found = left(case
               when count(*) = 0 then N'WF603: there is no root'
               when count(*) > 1 then concat(N'WF603: there are several roots: ',
                   string_agg(cast(n.node_key as nvarchar(max)), N', ')
                       within group (order by n.node_id))
               when max(n.node_type) <> N'SEQUENCE'
               then N'WF603: the root must be a SEQUENCE' end, 1900)
      from wf.workflow_node as n
     where n.workflow_version_id = @workflow_version_id
       and not exists (select 1 from wf.workflow_edge as d
                        where d.workflow_version_id = n.workflow_version_id
                          and d.child_key = n.node_key);
end;
GO

-- The first edge or node that breaks wf.edge_rule, or the numbering of children; or null.
create or alter procedure wf.wf_verify_edges
    @workflow_version_id bigint,
    @found nvarchar(1900) output
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;

    set @found = null;
    select top (1) @found = case
               when r.node_type is null
               then concat(N'WF608: node ', p.node_key, N', of type ', p.node_type,
                           N', has an edge of kind ', d.branch_kind)
               else concat(N'WF608: the ', d.branch_kind, N' edge of ', p.node_key,
                           N' leads to ', c.node_key, N', which is no generated SEQUENCE') end
      from wf.workflow_edge as d
      join wf.workflow_node as p
        on p.workflow_version_id = d.workflow_version_id and p.node_key = d.parent_key
      join wf.workflow_node as c
        on c.workflow_version_id = d.workflow_version_id and c.node_key = d.child_key
      left join wf.edge_rule as r
        on r.node_type = p.node_type and r.branch_kind = d.branch_kind
     where d.workflow_version_id = @workflow_version_id
       and (r.node_type is null
            or d.branch_kind not in (N'SEQUENCE', N'PARALLEL')
               and not (c.node_type = N'SEQUENCE' and c.is_generated = 1))
     order by p.node_id, d.child_order;
    if @found is null
        select top (1) @found = case
                   when r.max_count is null or count(d.child_key) = 0
                   then concat(N'WF609: node ', n.node_key, N' has no ', r.branch_kind, N' edge')
                   else concat(N'WF608: node ', n.node_key, N' has ', count(d.child_key),
                               N' edges of kind ', r.branch_kind) end
          from wf.workflow_node as n
          join wf.edge_rule as r on r.node_type = n.node_type
          left join wf.workflow_edge as d
            on d.workflow_version_id = n.workflow_version_id and d.parent_key = n.node_key
           and d.branch_kind = r.branch_kind
         where n.workflow_version_id = @workflow_version_id
         group by n.node_key, n.node_id, r.branch_kind, r.max_count, r.is_needed
        having count(d.child_key) > r.max_count or r.is_needed = 1 and count(d.child_key) = 0
         order by n.node_id;
    if @found is null
        select top (1) @found = concat(N'WF610: the edges of ', d.parent_key,
                                       N' are not numbered from 0 without a gap')
          from wf.workflow_edge as d
         where d.workflow_version_id = @workflow_version_id
         group by d.parent_key
        having max(d.child_order) <> count(*) - 1 or min(d.child_order) <> 0
         order by d.parent_key;
end;
GO

-- The first case value that is no scalar, or stands twice in its SWITCH; or null. Values are
-- compared as they are written, so 1 and 1.0 are two values to this check.
create or alter procedure wf.wf_verify_cases
    @workflow_version_id bigint,
    @found nvarchar(1900) output
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;

    set @found = null;
    select top (1) @found = concat(N'WF611: the values of ', d.child_key,
                                   N' are no list of scalars')
      from wf.workflow_edge as d
     where d.workflow_version_id = @workflow_version_id and d.branch_kind = N'CASE'
       and (left(ltrim(d.case_value), 1) <> N'['
            or not exists (select 1 from openjson(d.case_value) as c)
            or exists (select 1 from openjson(d.case_value) as c where c.type in (4, 5)));
    if @found is null
        select top (1) @found = left(concat(N'WF611: ', d.parent_key, N' has the case value ',
                   wf.wf_json_text(c.value, c.type), N' twice'), 1900)
          from wf.workflow_edge as d
         cross apply openjson(d.case_value) as c
         where d.workflow_version_id = @workflow_version_id and d.branch_kind = N'CASE'
         group by d.parent_key, c.type, c.value, datalength(c.value)
        having count(*) > 1
         order by d.parent_key;
end;
GO

-- The first attribute that is missing, does not belong to its node or cannot be; or null.
create or alter procedure wf.wf_verify_attributes
    @workflow_version_id bigint,
    @found nvarchar(1900) output
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_owner table (
        seq int identity(1, 1) not null primary key,
        node_key nvarchar(200) collate Latin1_General_100_BIN2 not null,
        node_id bigint not null,
        rules nvarchar(20) collate Latin1_General_100_BIN2 not null,
        given_json nvarchar(max) collate Latin1_General_100_BIN2 not null
    );
    declare @v_given table (
        owner_seq int not null,
        name nvarchar(4000) collate Latin1_General_100_BIN2 not null,
        value nvarchar(max) collate Latin1_General_100_BIN2 null,
        type int not null
    );

    set @found = null;
    insert into @v_owner (node_key, node_id, rules, given_json)
    select n.node_key, n.node_id, n.node_type, n.attributes_json
      from wf.workflow_node as n
     where n.workflow_version_id = @workflow_version_id
    union all
    select n.node_key, n.node_id, N'retry', json_query(n.attributes_json, N'$.retry')
      from wf.workflow_node as n
     where n.workflow_version_id = @workflow_version_id
       and left(json_query(n.attributes_json, N'$.retry'), 1) = N'{';
    insert into @v_given (owner_seq, name, value, type)
    select o.seq, g.[key], g.value, g.type
      from @v_owner as o
     cross apply openjson(o.given_json) as g;
    select top (1) @found = concat(N'WF614: node ', p.node_key, N' ', p.problem)
      from (select o.node_key, o.node_id, concat(N'needs attribute ', r.attribute) as problem
              from @v_owner as o
              join wf.attribute_rule as r on r.node_type = o.rules and r.is_needed = 1
             where not exists (select 1 from @v_given as g
                                where g.owner_seq = o.seq and g.name = r.attribute)
            union all
            select o.node_key, o.node_id, concat(N'has no attribute ', left(g.name, 40))
              from @v_owner as o
              join @v_given as g on g.owner_seq = o.seq
             where o.rules <> N'retry'
               and not exists (select 1 from wf.attribute_rule as r
                                where r.node_type = o.rules and r.attribute = g.name)
            union all
            select o.node_key, o.node_id, concat(N'has a bad value of ', r.attribute)
              from @v_owner as o
              join @v_given as g on g.owner_seq = o.seq
              join wf.attribute_rule as r on r.node_type = o.rules and r.attribute = g.name
             where case r.kind
                   when N'integer' then case when g.type = 2 and wf.wf_is_digits(g.value, 18) = 1
                       and try_cast(g.value as bigint) between r.least and r.most then 1 else 0 end
                   when N'flag' then case when g.type = 3 and g.value = N'true' then 1 else 0 end
                   when N'text' then case when g.type = 1 and datalength(g.value) > 0
                                          then 1 else 0 end
                   when N'program' then 1
                   else case when g.type = 5 then 1 else 0 end end = 0
            union all
            select o.node_key, o.node_id, N'has a bad code of fail'
              from @v_owner as o
              join @v_given as g on g.owner_seq = o.seq and g.name = N'fail'
             where not exists (
                select 1 from openjson(case when g.type = 5 then g.value else N'{}' end) as f
                 where f.[key] collate Latin1_General_100_BIN2 = N'code' and f.type = 2
                   and left(f.value, 1) = N'-' and wf.wf_is_digits(f.value, 10) = 1
                   and try_cast(f.value as bigint) between -2147483648 and -1)) as p
     order by p.node_id, p.problem;
end;
GO

-- Sets depth and parent of every node that the root reaches, level by level, and says which it does
-- not reach (a cycle beside the tree), or null.
create or alter procedure wf.wf_verify_reachable
    @workflow_version_id bigint,
    @found nvarchar(1900) output
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_depth int = 0;
    declare @v_row_count int = 1;

    update n set depth = 0
      from wf.workflow_node as n
     where n.workflow_version_id = @workflow_version_id
       and not exists (select 1 from wf.workflow_edge as d
                        where d.workflow_version_id = n.workflow_version_id
                          and d.child_key = n.node_key);
    while @v_row_count > 0
    begin
        update c
           set depth = @v_depth + 1, parent_node_id = p.node_id, parent_type = p.node_type,
               edge_kind = d.branch_kind, child_order = d.child_order
          from wf.workflow_node as c
          join wf.workflow_edge as d
            on d.workflow_version_id = c.workflow_version_id and d.child_key = c.node_key
          join wf.workflow_node as p
            on p.workflow_version_id = d.workflow_version_id and p.node_key = d.parent_key
         where d.workflow_version_id = @workflow_version_id and p.depth = @v_depth;
        set @v_row_count = @@rowcount;
        set @v_depth = @v_depth + 1;
    end;
    set @found = (select top (1) concat(N'WF605: node ', n.node_key,
                                        N' is not reached from the root')
                    from wf.workflow_node as n
                   where n.workflow_version_id = @workflow_version_id and n.depth is null
                   order by n.node_id);
end;
GO
