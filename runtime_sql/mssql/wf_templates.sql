-- Templates: placeholders compiled to programs. Twin: pg/wf_templates.sql
--
-- Publishing needs the programs of template strings; that is what stands here. The evaluation of
-- programs follows in this file. Pure routines: they lock nothing, and errors are values.
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
            set @v_parts = concat(@v_parts, N'["lit","', string_escape(@v_literal, 'json'), N'"],');
            set @v_part_count = @v_part_count + 1;
            set @v_literal = N'';
        end;
        set @v_parts = concat(@v_parts, @v_instruction, N',');
        set @v_part_count = @v_part_count + 1;
        set @v_from = @v_next;
    end;
    if datalength(@v_literal) > 0 or @v_part_count = 0
    begin
        set @v_parts = concat(@v_parts, N'["lit","', string_escape(@v_literal, 'json'), N'"],');
        set @v_part_count = @v_part_count + 1;
    end;
    set @program_json = concat(N'[', left(@v_parts, len(@v_parts) - 1),
        case when @v_part_count > 1 then concat(N',["cat",', @v_part_count, N']') end, N']');
end;
GO

-- Fills any template in the place of an execution. Pure: errors are values.
create or alter procedure wf.wf_resolve_placeholders
    @template nvarchar(max),
    @execution_id bigint,
    @value_json nvarchar(max) output,
    @error_code int output,
    @error_message nvarchar(max) output
as
begin
    set nocount, xact_abort on;
    set @value_json = null;
    set @error_code = null;
    set @error_message = null;
end;
GO

-- The input of an ACTION (S4.1): its node's template with every binding put in.
create or alter procedure wf.wf_build_input_json_for_action
    @execution_id bigint,
    @value_json nvarchar(max) output,
    @error_code int output,
    @error_message nvarchar(max) output
as
begin
    set nocount, xact_abort on;
    set @value_json = null;
    set @error_code = null;
    set @error_message = null;
end;
GO

-- The inputs of many ACTIONs (S4.1). Reads and writes #input (node_execution_id bigint,
-- value_json nvarchar(max) null, error_code int null, error_message nvarchar(max) null), which the
-- caller makes with the ids only.
create or alter procedure wf.wf_build_inputs
as
begin
    set nocount, xact_abort on;
end;
GO
