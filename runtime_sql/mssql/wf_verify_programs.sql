-- Checks that the programs of a version can be run: known instructions, a stack that ends at one value,
-- jumps that go forward and stay inside (R10). Twin: pg/wf_verify_programs.sql
--
-- The compiler's verify_spec finds the same and more; this is for graphs that came without it.

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

-- Whether a value is a reference instruction: ["var", name, owner, steps], ["ctx", root, steps],
-- ["out", steps], ["event", steps] or ["code"]. A step is a string, an integer or a reference; the
-- references inside are looked at level by level.
create or alter function wf.wf_is_reference(@value nvarchar(max)) returns bit
as
begin
    declare @v_level int = 0;
    declare @v_row_count int = 1;
    declare @v_refs table (level_no int not null, ref nvarchar(max) not null);

    insert into @v_refs (level_no, ref) values (0, @value);
    while @v_row_count > 0
    begin
        if exists (
            select 1
              from @v_refs as r
             cross apply (
                select count(*) as size,
                       max(case when e.[key] = N'0' and e.type = 1 then e.value end) as name,
                       sum(case when e.type = 1 then 1 else 0 end) as texts,
                       max(case when e.type = 4 then cast(e.[key] as int) end) as steps_at
                  from openjson(r.ref) as e) as i
             where r.level_no = @v_level
               and not (i.name = N'code' and i.size = 1
                        or i.name = N'var' and i.size = 4 and i.texts = 3 and i.steps_at = 3
                        or i.name = N'ctx' and i.size = 3 and i.texts = 2 and i.steps_at = 2
                        or i.name in (N'out', N'event') and i.size = 2 and i.texts = 1
                           and i.steps_at = 1)
                or r.level_no = @v_level and i.name is null)
            return 0;
        if exists (
            select 1
              from @v_refs as r
             cross apply openjson(r.ref) as l
             cross apply openjson(case when l.type = 4 then l.value end) as s
             where r.level_no = @v_level
               and not (s.type in (1, 4) or s.type = 2 and s.value not like N'%[^0-9]%'))
            return 0;
        insert into @v_refs (level_no, ref)
        select @v_level + 1, s.value
          from @v_refs as r
         cross apply openjson(r.ref) as l
         cross apply openjson(case when l.type = 4 then l.value end) as s
         where r.level_no = @v_level and s.type = 4;
        set @v_row_count = @@rowcount;
        set @v_level = @v_level + 1;
    end;
    return 1;
end;
GO

-- What is wrong with a program, or null.
create or alter function wf.wf_program_problem(@program nvarchar(max)) returns nvarchar(400)
as
begin
    declare @v_size int;
    declare @v_depth int = 0;
    declare @v_at int = 0;
    declare @v_step nvarchar(max);
    declare @v_op nvarchar(40);
    declare @v_length int;
    declare @v_operand nvarchar(max);
    declare @v_operand_type int;
    declare @v_count int;
    declare @v_place nvarchar(80);
    declare @v_steps table (place int not null primary key, step nvarchar(max), type int not null);
    declare @v_ways table (place int not null primary key, depth int not null);

    if @program is null or isjson(@program) = 0 or left(ltrim(@program), 1) <> N'['
        return N'a program is an array of instructions';
    insert into @v_steps (place, step, type)
    select cast(e.[key] as int) + 1, e.value, e.type from openjson(@program) as e;
    set @v_size = (select count(*) from @v_steps);
    if @v_size = 0 return N'a program is an array of instructions';
    while @v_at < @v_size
    begin
        set @v_at = @v_at + 1;
        if exists (select 1 from @v_ways as w where w.place = @v_at and w.depth <> @v_depth)
            return concat(N'the ways to instruction ', @v_at, N' leave different stacks');
        set @v_step = (select case when s.type = 4 then s.step end
                         from @v_steps as s where s.place = @v_at);
        select @v_length = count(*),
               @v_op = max(case when e.[key] = N'0' and e.type = 1
                                then left(e.value, 40) end),
               @v_operand = max(case when e.[key] = N'1' then e.value end),
               @v_operand_type = max(case when e.[key] = N'1' then e.type end)
          from openjson(@v_step) as e;
        if @v_step is null or @v_op is null
            return concat(N'instruction ', @v_at, N' is no array that begins with a name');
        set @v_place = concat(N'instruction ', @v_at, N' (', @v_op, N')');
        set @v_count = case when @v_operand_type = 2 and len(@v_operand) <= 6
                                 and @v_operand not like N'%[^0-9]%'
                            then cast(@v_operand as int) end;
        if @v_op in (N'var', N'ctx', N'out', N'code', N'event')
        begin
            if wf.wf_is_reference(@v_step) = 0
                return concat(N'instruction ', @v_at, N' is no reference');
            set @v_depth = @v_depth + 1;
        end;
        else if @v_op = N'defined'
        begin
            if @v_length <> 2 or @v_operand_type <> 4 or wf.wf_is_reference(@v_operand) = 0
                return concat(@v_place, N' has no reference');
            set @v_depth = @v_depth + 1;
        end;
        else if @v_op = N'lit' and @v_length = 2
            set @v_depth = @v_depth + 1;
        else if @v_op in (N'not', N'neg', N'len', N'bool') and @v_length = 1
        begin
            if @v_depth < 1 return concat(@v_place, N' has no operand');
        end;
        else if @v_op in (N'eq', N'ne', N'lt', N'le', N'gt', N'ge', N'in', N'add', N'sub', N'mul',
                          N'div', N'mod') and @v_length = 1
        begin
            if @v_depth < 2 return concat(@v_place, N' has no two operands');
            set @v_depth = @v_depth - 1;
        end;
        else if @v_op in (N'jf', N'jt', N'alt') and @v_length = 2 and @v_count is not null
        begin
            if @v_depth < 1 or @v_count < 1 or @v_at + @v_count > @v_size
                return concat(@v_place, N' jumps out of the program');
            if exists (select 1 from @v_ways as w
                        where w.place = @v_at + @v_count + 1 and w.depth <> @v_depth)
                return concat(N'the ways to instruction ', @v_at + @v_count + 1,
                              N' leave different stacks');
            insert into @v_ways (place, depth)
            select @v_at + @v_count + 1, @v_depth
             where not exists (select 1 from @v_ways as w
                                where w.place = @v_at + @v_count + 1);
            set @v_depth = @v_depth - 1;
        end;
        else if @v_op in (N'arr', N'cat') and @v_length = 2 and @v_count is not null
        begin
            if @v_depth < @v_count return concat(@v_place, N' takes more than there is');
            set @v_depth = @v_depth - @v_count + 1;
        end;
        else if @v_op = N'obj' and @v_length = 2 and @v_operand_type = 4
        begin
            if exists (select 1 from openjson(@v_operand) as k where k.type <> 1)
               or exists (select 1 from openjson(@v_operand) as k
                           group by k.value collate Latin1_General_100_BIN2, datalength(k.value)
                          having count(*) > 1)
                return concat(@v_place, N' has keys that are no texts, or one twice');
            set @v_count = (select count(*) from openjson(@v_operand) as k);
            if @v_depth < @v_count return concat(@v_place, N' takes more than there is');
            set @v_depth = @v_depth - @v_count + 1;
        end;
        else
            return concat(@v_place, N' is not known');
    end;
    if exists (select 1 from @v_ways as w where w.place = @v_size + 1 and w.depth <> @v_depth)
        return concat(N'the ways to instruction ', @v_size + 1, N' leave different stacks');
    if @v_depth <> 1 return concat(N'it leaves ', @v_depth, N' values');
    return null;
end;
GO

-- The first program of a version that cannot be run, as text for a refusal (WF612), or null.
create or alter procedure wf.wf_verify_programs
    @workflow_version_id bigint,
    @found nvarchar(1900) output
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;

    set @found = null;
    select top (1) @found = left(concat(N'WF612: the program of ', p.node_key, N' (', p.place,
                                        N'): ', x.problem), 1900)
      from (select b.node_key, concat(N'set or collect ', b.name) as place, b.program_json
              from wf.variable_output_binding as b
             where b.workflow_version_id = @workflow_version_id
            union all
            select b.node_key, concat(N'input ', b.pointer), b.program_json
              from wf.workflow_input_binding as b
             where b.workflow_version_id = @workflow_version_id
            union all
            select d.owner_key, concat(N'variable ', d.name), d.program_json
              from wf.node_scope_default as d
             where d.workflow_version_id = @workflow_version_id and d.program_json is not null
            union all
            select c.node_key, N'collection', c.program_json
              from wf.collection_binding as c
             where c.workflow_version_id = @workflow_version_id
            union all
            select n.node_key, a.[key], a.value
              from wf.workflow_node as n
             cross apply openjson(n.attributes_json) as a
             where n.workflow_version_id = @workflow_version_id
               and a.[key] in (N'condition', N'subject', N'count', N'correlate')
            union all
            select n.node_key, N'fail', json_query(n.attributes_json, '$.fail.message')
              from wf.workflow_node as n
             where n.workflow_version_id = @workflow_version_id
               and json_query(n.attributes_json, '$.fail') is not null
            union all
            select N'output', json_value(o.value, '$.name'), json_query(o.value, '$.program')
              from wf.workflow_version as v
             cross apply openjson(v.outputs_json) as o
             where v.workflow_version_id = @workflow_version_id
            union all
            select concat(N'subscription to ', e.event_type),
                   concat(N'event input ', json_value(i.value, '$.name')),
                   json_query(i.value, '$.program')
              from wf.event_subscription as e
             cross apply openjson(e.inputs_json) as i
             where e.workflow_version_id = @workflow_version_id)
           as p(node_key, place, program_json)
     cross apply (select wf.wf_program_problem(p.program_json) as problem) as x
     where x.problem is not null;
end;
GO
