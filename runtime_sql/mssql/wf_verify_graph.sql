-- What the rows of a version must be for the engine to run them. Twin: pg/wf_verify_graph.sql
--
-- Every refusal is 20007, and its text begins with the code that the compiler's own check
-- (compiler/verify.py, docs/diagnostics.md) gives for the same fault: "WF608: …". The twin checks
-- attributes as well (WF614), which here is still to be written.

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
                   case when c.type = 1 then concat(N'"', string_escape(c.value, 'json'), N'"')
                        when c.type = 0 then N'null' else c.value end, N' twice'), 1900)
          from wf.workflow_edge as d
         cross apply openjson(d.case_value) as c
         where d.workflow_version_id = @workflow_version_id and d.branch_kind = N'CASE'
         group by d.parent_key, c.type, c.value, datalength(c.value)
        having count(*) > 1
         order by d.parent_key;
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
