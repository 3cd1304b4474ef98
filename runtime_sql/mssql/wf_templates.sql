-- Templates: placeholders compiled to programs, and the inputs of ACTIONs. Twin: pg/wf_templates.sql
--
-- Pure routines: they lock nothing, change no row, and errors are values.
--
-- Characters are compared by their code or under BIN2: the default collation takes wide forms and
-- upper case for equal, and `=` pads with blanks.

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

-- The identifier that starts at position @at of a text, or null.
create or alter function wf.wf_identifier_at(@text nvarchar(max), @at int) returns nvarchar(300)
as
begin
    declare @v_head nvarchar(300) = substring(@text, @at, 299);
    if patindex(N'[A-Za-z_]%', @v_head collate Latin1_General_100_BIN2) = 0 return null;
    return left(@v_head, patindex(N'%[^A-Za-z0-9_]%',
        concat(@v_head, N'.') collate Latin1_General_100_BIN2) - 1);
end;
GO

-- The key of the node whose scope has variable @name for node @node_id: the nearest one upwards,
-- itself included, that declares it; null when none does.
create or alter function wf.wf_owner_of_variable(@node_id bigint, @name nvarchar(300))
returns nvarchar(200)
as
begin
    declare @v_node_id bigint = @node_id;
    declare @v_owner nvarchar(200);
    declare @v_parent_id bigint;
    while @v_node_id is not null
    begin
        set @v_parent_id = null;
        select @v_parent_id = n.parent_node_id, @v_owner = d.owner_key
          from wf.workflow_node as n
          left join wf.node_scope_default as d
            on d.workflow_version_id = n.workflow_version_id
           and d.owner_key = n.node_key and d.name = @name
         where n.node_id = @v_node_id;
        if @v_owner is not null return @v_owner;
        set @v_node_id = @v_parent_id;
    end;
    return null;
end;
GO

-- Reads one `${…}` of @text, which starts after the `${` at position @from. Answers the instruction
-- and the position after its `}`; a null instruction: it is no reference. An index that is a
-- reference sets the outer one aside in @v_open.
create or alter procedure wf.wf_parse_placeholder
    @text nvarchar(max),
    @from int,
    @node_id bigint,
    @instruction nvarchar(max) output,
    @next int output
as
begin
    set nocount, xact_abort on;
    declare @v_open table (
        depth int not null primary key,
        head nvarchar(max) not null,
        steps nvarchar(max) not null
    );
    declare @v_depth int = 0;
    declare @v_at int = @from;
    declare @v_end int;
    declare @v_is_reference bit = 1;
    declare @v_root nvarchar(4);
    declare @v_name nvarchar(300);
    declare @v_owner nvarchar(200);
    declare @v_digits nvarchar(20);
    declare @v_step nvarchar(max);

    set @instruction = null;
    set @next = null;
    while unicode(substring(@text, @v_at, 1)) in (9, 32) set @v_at = @v_at + 1;
    while 1 = 1
    begin
        if @v_is_reference = 1
        begin
            set @v_root = substring(@text, @v_at, 4);
            if @v_root collate Latin1_General_100_BIN2 not in (N'var.', N'ctx.') return;
            set @v_name = wf.wf_identifier_at(@text, @v_at + 4);
            if @v_name is null return;
            set @v_owner = null;
            if @v_root = N'var.'
            begin
                set @v_owner = wf.wf_owner_of_variable(@node_id, @v_name);
                if @v_owner is null return;
            end;
            set @v_at = @v_at + 4 + len(@v_name);
            set @v_depth = @v_depth + 1;
            insert into @v_open (depth, head, steps)
            values (@v_depth,
                    concat(N'["', left(@v_root, 3), N'","', @v_name, N'"', N',"' + @v_owner + N'"'),
                    N'');
            set @v_is_reference = 0;
        end;
        set @v_step = null;
        if unicode(substring(@text, @v_at, 1)) = unicode(N'.')
        begin
            set @v_name = wf.wf_identifier_at(@text, @v_at + 1);
            if @v_name is null return;
            set @v_step = concat(N'"', @v_name, N'"');
            set @v_at = @v_at + 1 + len(@v_name);
        end
        else if unicode(substring(@text, @v_at, 2)) = unicode(N'[')
            and substring(@text, @v_at + 1, 4) collate Latin1_General_100_BIN2
                in (N'var.', N'ctx.')
        begin
            set @v_at = @v_at + 1;
            set @v_is_reference = 1;
        end
        else if unicode(substring(@text, @v_at, 1)) = unicode(N'[')
            and unicode(substring(@text, @v_at + 1, 1)) = unicode(N'"')
        begin
            set @v_end = @v_at + 2;
            while unicode(substring(@text, @v_end, 1)) <> unicode(N'"')
                set @v_end = @v_end + case unicode(substring(@text, @v_end, 1))
                                           when unicode(N'\') then 2 else 1 end;
            set @v_step = substring(@text, @v_at + 1, @v_end - @v_at);
            if isjson(concat(N'[', @v_step, N']')) = 0 return;
            set @v_at = @v_end + 1;
            if coalesce(unicode(substring(@text, @v_at, 1)), 0) <> unicode(N']') return;
            set @v_at = @v_at + 1;
        end
        else if unicode(substring(@text, @v_at, 1)) = unicode(N'[')
        begin
            set @v_digits = substring(@text, @v_at + 1, 19);
            set @v_digits = left(@v_digits, patindex(N'%[^0-9]%',
                concat(@v_digits, N'.') collate Latin1_General_100_BIN2) - 1);
            if len(@v_digits) not between 1 and 18 return;
            set @v_at = @v_at + 1 + len(@v_digits);
            if coalesce(unicode(substring(@text, @v_at, 1)), 0) <> unicode(N']') return;
            set @v_step = cast(cast(@v_digits as bigint) as nvarchar(20));
            set @v_at = @v_at + 1;
        end
        else if @v_depth > 1 and unicode(substring(@text, @v_at, 1)) = unicode(N']')
        begin
            select @v_step = concat(o.head, N',[', o.steps, N']]')
              from @v_open as o
             where o.depth = @v_depth;
            delete from @v_open where depth = @v_depth;
            set @v_depth = @v_depth - 1;
            set @v_at = @v_at + 1;
        end
        else
        begin
            while unicode(substring(@text, @v_at, 1)) in (9, 32) set @v_at = @v_at + 1;
            if @v_depth > 1 or coalesce(unicode(substring(@text, @v_at, 1)), 0) <> unicode(N'}')
                return;
            select @instruction = concat(o.head, N',[', o.steps, N']]')
              from @v_open as o
             where o.depth = 1;
            set @next = @v_at + 1;
            return;
        end;
        if @v_step is not null
            update @v_open
               set steps = concat(steps, case when datalength(steps) > 0 then N',' end, @v_step)
             where depth = @v_depth;
    end;
end;
GO

-- The program of one template string of node @node_id: a string that is exactly one placeholder
-- keeps the type of what it names; `$${` stands for `${`. 10002: a placeholder that is none.
create or alter procedure wf.wf_compile_template_string
    @text nvarchar(max),
    @version_id bigint,
    @node_id bigint,
    @program_json nvarchar(max) output,
    @error_code int output,
    @error_message nvarchar(max) output
as
begin
    set nocount, xact_abort on;
    declare @v_from int = 1;
    declare @v_at int;
    declare @v_literal nvarchar(max) = N'';
    declare @v_parts nvarchar(max) = N'';
    declare @v_part_count int = 0;
    declare @v_instruction nvarchar(max);
    declare @v_next int;
    declare @v_end int;

    set @program_json = null;
    set @error_code = null;
    set @error_message = null;
    while 1 = 1
    begin
        set @v_at = charindex(N'${', @text collate Latin1_General_100_BIN2, @v_from);
        if @v_at = 0
        begin
            set @v_literal = concat(@v_literal, substring(@text, @v_from, 1000000000));
            break;
        end;
        if @v_at > @v_from and unicode(substring(@text, @v_at - 1, 1)) = unicode(N'$')
        begin
            set @v_literal = concat(@v_literal,
                substring(@text, @v_from, @v_at - 1 - @v_from), N'${');
            set @v_from = @v_at + 2;
            continue;
        end;
        set @v_literal = concat(@v_literal, substring(@text, @v_from, @v_at - @v_from));
        set @v_from = @v_at + 2;
        exec wf.wf_parse_placeholder @text = @text, @from = @v_from, @node_id = @node_id,
            @instruction = @v_instruction output, @next = @v_next output;
        if @v_instruction is null
        begin
            set @v_end = charindex(N'}', @text collate Latin1_General_100_BIN2, @v_from);
            set @error_code = 10002;
            set @error_message = concat(N'unsupported placeholder ${', substring(@text, @v_from,
                case when @v_end > 0 then @v_end - @v_from + 1 else 1000000000 end));
            return;
        end;
        if datalength(@v_literal) > 0
        begin
            set @v_parts = concat(@v_parts, N'["lit",', wf.wf_json_quote(@v_literal), N'],');
            set @v_part_count = @v_part_count + 1;
            set @v_literal = N'';
        end;
        set @v_parts = concat(@v_parts, @v_instruction, N',');
        set @v_part_count = @v_part_count + 1;
        set @v_from = @v_next;
    end;
    if datalength(@v_literal) > 0 or @v_part_count = 0
    begin
        set @v_parts = concat(@v_parts, N'["lit",', wf.wf_json_quote(@v_literal), N'],');
        set @v_part_count = @v_part_count + 1;
    end;
    set @program_json = concat(N'[', left(@v_parts, len(@v_parts) - 1),
        case when @v_part_count > 1 then concat(N',["cat",', @v_part_count, N']') end, N']');
end;
GO

-- The strings of a template that hold `${` (so also `$${`), with where they stand: `pointer` is the
-- JSON pointer, `path` the same as a JSON array of texts. Keys are never expanded.
create or alter function wf.wf_template_bindings(@template nvarchar(max))
returns @found table (
    pointer nvarchar(max) collate Latin1_General_100_BIN2 not null,
    path nvarchar(max) collate Latin1_General_100_BIN2 not null,
    text_value nvarchar(max) collate Latin1_General_100_BIN2 not null
)
as
begin
    declare @v_level_no int = 0;
    declare @v_row_count int = 1;
    declare @v_place table (
        level_no int not null,
        pointer nvarchar(max) collate Latin1_General_100_BIN2 not null,
        steps nvarchar(max) not null,  -- of the path, with commas
        type int not null,
        value nvarchar(max) null
    );

    if coalesce(charindex(N'${', @template), 0) = 0 return;
    insert into @v_place (level_no, pointer, steps, type, value)
    select 0, N'', N'', e.type, e.value from openjson(N'[' + @template + N']') as e;
    while @v_row_count > 0
    begin
        insert into @v_place (level_no, pointer, steps, type, value)
        select @v_level_no + 1,
               concat(p.pointer, N'/', replace(replace(e.[key], N'~', N'~0'), N'/', N'~1')),
               concat(p.steps, case when @v_level_no > 0 then N',' end,
                      wf.wf_json_quote(e.[key])),
               e.type, e.value
          from @v_place as p
         cross apply openjson(case when p.type in (4, 5) then p.value end) as e
         where p.level_no = @v_level_no;
        set @v_row_count = @@rowcount;
        set @v_level_no = @v_level_no + 1;
    end;
    insert into @found (pointer, path, text_value)
    select p.pointer, concat(N'[', p.steps, N']'), p.value
      from @v_place as p
     where p.type = 1 and charindex(N'${', p.value collate Latin1_General_100_BIN2) > 0;
    return;
end;
GO

-- A text by which the places of a template sort, and so which error is met first: by path, keys by
-- code (in UTF-16 units), array indexes by number. @path is a JSON array of texts.
create or alter function wf.wf_path_order(@path nvarchar(max)) returns nvarchar(max)
as
begin
    return (select string_agg(case when len(s.value) between 1 and 9
                                        and s.value not like N'%[^0-9]%'
                                            collate Latin1_General_100_BIN2
                                   then right(concat(N'000000000', s.value), 10)
                                   else s.value end, nchar(1))
                       within group (order by cast(s.[key] as int))
              from openjson(@path) as s);
end;
GO

-- A document with values put at places: reads #fill (pointer nvarchar(max), value_json
-- nvarchar(max)), which the caller makes. A place that is not there is added when what it belongs
-- to is an object, and left out otherwise. The document is taken apart on the way to the places
-- only, then put together from the deepest level up.
create or alter procedure wf.wf_fill_template
    @template nvarchar(max),
    @value_json nvarchar(max) output
as
begin
    set nocount, xact_abort on;
    declare @v_level_no int = 0;
    declare @v_row_count int = 1;
    declare @v_part table (
        level_no int not null,
        part_id int identity(1, 1) not null,
        parent_id int not null,
        pointer nvarchar(max) collate Latin1_General_100_BIN2 not null,
        lead nvarchar(max) not null,  -- in an object: the key and a colon
        type int not null,
        written nvarchar(max) not null,
        is_open bit not null,
        primary key (level_no, part_id)
    );

    set @value_json = @template;
    select @value_json = f.value_json from #fill as f where datalength(f.pointer) = 0;
    if not exists (select 1 from #fill as f where datalength(f.pointer) > 0) return;
    insert into @v_part (level_no, parent_id, pointer, lead, type, written, is_open)
    select 0, 0, N'', N'', e.type, e.value, 1
      from openjson(N'[' + @template + N']') as e
     where e.type in (4, 5);
    set @v_row_count = @@rowcount;
    while @v_row_count > 0
    begin
        set @v_level_no = @v_level_no + 1;
        insert into @v_part (level_no, parent_id, pointer, lead, type, written, is_open)
        select @v_level_no, c.part_id, c.pointer, c.lead, c.kind, c.written,
               case when c.kind in (4, 5) and exists (
                   select 1 from #fill as f
                    where charindex(c.pointer + N'/',
                                    f.pointer collate Latin1_General_100_BIN2) = 1)
                    then 1 else 0 end
          from (select p.part_id, e.type as kind,
                       concat(p.pointer, N'/',
                              replace(replace(e.[key], N'~', N'~0'), N'/', N'~1')) as pointer,
                       row_number() over (partition by p.part_id
                                          order by (select null)) as place,
                       case p.type when 5 then wf.wf_json_quote(e.[key]) + N':'
                                   else N'' end as lead,
                       wf.wf_json_text(e.value, e.type) as written
                  from @v_part as p
                 cross apply openjson(case when p.is_open = 1 then p.written end) as e
                 where p.level_no = @v_level_no - 1) as c
         order by c.part_id, c.place;
        set @v_row_count = @@rowcount;

        -- What an object does not have yet.
        insert into @v_part (level_no, parent_id, pointer, lead, type, written, is_open)
        select @v_level_no, p.part_id, f.pointer,
               wf.wf_json_quote(replace(replace(x.token, N'~1', N'/'), N'~0', N'~')) + N':', 0,
               N'null', 0
          from @v_part as p
          join #fill as f
            on charindex(p.pointer + N'/', f.pointer collate Latin1_General_100_BIN2) = 1
         cross apply (select substring(f.pointer, len(p.pointer + N'.') + 1,
                                       len(f.pointer + N'.')) as token) as x
         where p.level_no = @v_level_no - 1 and p.is_open = 1 and p.type = 5
           and charindex(N'/', x.token) = 0
           and not exists (
               select 1 from @v_part as c
                where c.level_no = @v_level_no
                  and c.pointer = f.pointer and datalength(c.pointer) = datalength(f.pointer));
        update p
           set written = f.value_json, is_open = 0
          from @v_part as p
          join #fill as f
            on f.pointer = p.pointer and datalength(f.pointer) = datalength(p.pointer)
         where p.level_no = @v_level_no;
    end;
    while @v_level_no > 1
    begin
        set @v_level_no = @v_level_no - 1;
        update p
           set written = case p.type when 5 then concat(N'{', c.written, N'}')
                                     else concat(N'[', c.written, N']') end
          from @v_part as p
          join (select k.parent_id,
                       string_agg(concat(k.lead, k.written), N',')
                           within group (order by k.part_id) as written
                  from @v_part as k
                 where k.level_no = @v_level_no
                 group by k.parent_id) as c on c.parent_id = p.part_id
         where p.level_no = @v_level_no - 1;
    end;
    select @value_json = p.written from @v_part as p where p.level_no = 0;
end;
GO

-- Fills any template in the place of an execution: each string with placeholders is compiled and
-- evaluated. Values are never expanded a second time.
create or alter procedure wf.wf_resolve_placeholders
    @template nvarchar(max),
    @execution_id bigint,
    @value_json nvarchar(max) output,
    @error_code int output,
    @error_message nvarchar(max) output
as
begin
    set nocount, xact_abort on;
    declare @v_node_id bigint;
    declare @v_version_id bigint;
    declare @v_place int = 0;
    declare @v_text nvarchar(max);
    declare @v_pointer nvarchar(max);
    declare @v_program nvarchar(max);
    declare @v_value nvarchar(max);
    declare @v_binding table (
        place int not null primary key,
        pointer nvarchar(max) not null,
        text_value nvarchar(max) not null
    );
    create table #fill (
        pointer nvarchar(max) collate Latin1_General_100_BIN2 not null,
        value_json nvarchar(max) not null
    );

    set @value_json = null;
    set @error_code = null;
    set @error_message = null;
    select @v_node_id = n.node_id, @v_version_id = n.workflow_version_id
      from wf.node_execution as e
      join wf.workflow_node as n on n.node_id = e.node_id
     where e.node_execution_id = @execution_id;
    insert into @v_binding (place, pointer, text_value)
    select row_number() over (
               order by wf.wf_path_order(b.path) collate Latin1_General_100_BIN2),
           b.pointer, b.text_value
      from wf.wf_template_bindings(@template) as b;
    while 1 = 1
    begin
        set @v_text = null;
        select top (1) @v_place = b.place, @v_pointer = b.pointer, @v_text = b.text_value
          from @v_binding as b
         where b.place > @v_place
         order by b.place;
        if @v_text is null break;
        exec wf.wf_compile_template_string @text = @v_text, @version_id = @v_version_id,
            @node_id = @v_node_id, @program_json = @v_program output,
            @error_code = @error_code output, @error_message = @error_message output;
        if @error_code is null
            exec wf.wf_eval_expression @program = @v_program, @execution_id = @execution_id,
                @value_json = @v_value output, @error_code = @error_code output,
                @error_message = @error_message output;
        if @error_code is not null return;
        insert into #fill (pointer, value_json) values (@v_pointer, @v_value);
    end;
    exec wf.wf_fill_template @template = @template, @value_json = @value_json output;
end;
GO

-- The input of an ACTION (S4.1): its node's template with every binding put in. The bindings of
-- strings with placeholders were derived when the version was published.
create or alter procedure wf.wf_build_input_json_for_action
    @execution_id bigint,
    @value_json nvarchar(max) output,
    @error_code int output,
    @error_message nvarchar(max) output
as
begin
    set nocount, xact_abort on;
    declare @v_node_id bigint;
    declare @v_template nvarchar(max);
    declare @v_place int = 0;
    declare @v_pointer nvarchar(max);
    declare @v_program nvarchar(max);
    declare @v_value nvarchar(max);
    declare @v_binding table (
        place int not null primary key,
        pointer nvarchar(max) not null,
        program_json nvarchar(max) not null
    );
    create table #fill (
        pointer nvarchar(max) collate Latin1_General_100_BIN2 not null,
        value_json nvarchar(max) not null
    );

    set @value_json = null;
    set @error_code = null;
    set @error_message = null;
    select @v_node_id = n.node_id, @v_template = coalesce(t.template_json, N'{}')
      from wf.node_execution as e
      join wf.workflow_node as n on n.node_id = e.node_id
      left join wf.workflow_input_template as t
        on t.workflow_version_id = n.workflow_version_id and t.node_key = n.node_key
     where e.node_execution_id = @execution_id;
    insert into @v_binding (place, pointer, program_json)
    select row_number() over (
               order by wf.wf_path_order(b.path) collate Latin1_General_100_BIN2),
           b.pointer, b.program_json
      from wf.workflow_input_binding as b
     where b.node_id = @v_node_id;
    if @@rowcount = 0
    begin
        set @value_json = @v_template;
        return;
    end;
    while 1 = 1
    begin
        set @v_program = null;
        select top (1) @v_place = b.place, @v_pointer = b.pointer, @v_program = b.program_json
          from @v_binding as b
         where b.place > @v_place
         order by b.place;
        if @v_program is null break;
        exec wf.wf_eval_expression @program = @v_program, @execution_id = @execution_id,
            @value_json = @v_value output, @error_code = @error_code output,
            @error_message = @error_message output;
        if @error_code is not null return;
        insert into #fill (pointer, value_json) values (@v_pointer, @v_value);
    end;
    exec wf.wf_fill_template @template = @v_template, @value_json = @value_json output;
    set @error_message = wf.wf_storable_problem(@value_json);
    if @error_message is not null
    begin
        set @error_code = 10018;
        set @value_json = null;
    end;
end;
GO

-- The inputs of many ACTIONs (S4.1). Reads and writes #input (node_execution_id bigint, value_json
-- nvarchar(max) null, error_code int null, error_message nvarchar(max) null), which the caller
-- makes with the ids only. Where every binding of a node is one variable the values are read as a
-- set; for the others, and where a variable has no value or what came of it is large, each input is
-- built by wf.wf_build_input_json_for_action.
create or alter procedure wf.wf_build_inputs
as
begin
    set nocount, xact_abort on;
    declare @v_execution_id bigint = -1;
    declare @v_id bigint;
    declare @v_value nvarchar(max);
    declare @v_error_code int;
    declare @v_error_message nvarchar(max);
    declare @v_part table (
        node_execution_id bigint not null,
        name nvarchar(max) collate Latin1_General_100_BIN2 not null,
        value_json nvarchar(max) null
    );

    -- What of an object a variable replaces, then what is left of its template.
    insert into @v_part (node_execution_id, name, value_json)
    select i.node_execution_id, s.value, v.value_json
      from #input as i
      join wf.node_execution as e on e.node_execution_id = i.node_execution_id
      join wf.workflow_node as n on n.node_id = e.node_id and n.has_plain_inputs = 1
      join wf.workflow_input_binding as b on b.node_id = n.node_id
     cross apply openjson(b.path) as s
      left join wf.scope_variable as v
        on v.scope_id = wf.wf_find_scope(e.scope_id, b.variable_owner)
       and v.name = b.variable_name
     where s.[key] = N'0';
    insert into @v_part (node_execution_id, name, value_json)
    select i.node_execution_id, m.[key], wf.wf_json_text(m.value, m.type)
      from #input as i
      join wf.node_execution as e on e.node_execution_id = i.node_execution_id
      join wf.workflow_node as n on n.node_id = e.node_id and n.has_plain_inputs = 1
      join wf.workflow_input_template as t
        on t.workflow_version_id = n.workflow_version_id and t.node_key = n.node_key
     cross apply openjson(t.template_json) as m
      left join @v_part as p
        on p.node_execution_id = i.node_execution_id
       and p.name = m.[key] collate Latin1_General_100_BIN2
       and datalength(p.name) = datalength(m.[key])
     where p.node_execution_id is null;
    update i
       set value_json = concat(N'{', p.members, N'}')
      from #input as i
      join wf.node_execution as e on e.node_execution_id = i.node_execution_id
      join wf.workflow_node as n on n.node_id = e.node_id and n.has_plain_inputs = 1
      left join (select k.node_execution_id,
                        string_agg(concat(wf.wf_json_quote(k.name), N':', k.value_json), N',')
                            within group (order by k.name) as members,
                        count(*) as member_count, count(k.value_json) as value_count,
                        sum(datalength(k.value_json)) as size
                   from @v_part as k
                  group by k.node_execution_id) as p
        on p.node_execution_id = i.node_execution_id
     where p.node_execution_id is null
        or p.member_count = p.value_count and p.size <= 2000;

    while 1 = 1
    begin
        set @v_id = null;
        select top (1) @v_id = i.node_execution_id
          from #input as i
         where i.node_execution_id > @v_execution_id and i.value_json is null
         order by i.node_execution_id;
        if @v_id is null return;
        set @v_execution_id = @v_id;
        exec wf.wf_build_input_json_for_action @execution_id = @v_id,
            @value_json = @v_value output, @error_code = @v_error_code output,
            @error_message = @v_error_message output;
        update #input
           set value_json = @v_value, error_code = @v_error_code, error_message = @v_error_message
         where node_execution_id = @v_id;
    end;
end;
GO
