-- The evaluator of programs (S3): a loop over a stack, never recursion. Twin: pg/wf_expressions.sql
--
-- Values are JSON texts (wf_json_values.sql). wf.wf_storable_problem and wf.wf_integer_result, which
-- the twin has here, stand there.

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

-- The answer of a comparison, or null: the two cannot be compared (10010). Equality takes two
-- scalars, or null with anything; order takes two numbers or two strings.
create or alter function wf.wf_compared(
    @op nvarchar(max), @left nvarchar(max), @right nvarchar(max)
) returns nvarchar(5)
as
begin
    declare @v_left_type nvarchar(7) = wf.wf_json_type(@left);
    declare @v_right_type nvarchar(7) = wf.wf_json_type(@right);
    declare @v_order int;
    if @op in (N'eq', N'ne')
    begin
        if @v_left_type <> N'null' and @v_right_type <> N'null'
           and (@v_left_type in (N'object', N'array') or @v_right_type in (N'object', N'array'))
            return null;
        return case when wf.wf_scalars_equal(@left, @right)
                         = case @op when N'eq' then 1 else 0 end
                    then N'true' else N'false' end;
    end;
    if @v_left_type <> @v_right_type or @v_left_type not in (N'number', N'string') return null;
    if @v_left_type = N'number'
        set @v_order = wf.wf_number_order(@left, @right);
    else
        set @v_order = wf.wf_text_order(wf.wf_json_string(@left), wf.wf_json_string(@right));
    return case when @op = N'lt' and @v_order < 0 or @op = N'le' and @v_order <= 0
                     or @op = N'gt' and @v_order > 0 or @op = N'ge' and @v_order >= 0
                then N'true' else N'false' end;
end;
GO

-- The length of a string in code points, of an array, of an object; null for other values.
create or alter function wf.wf_value_length(@value nvarchar(max)) returns int
as
begin
    declare @v_type nvarchar(7) = wf.wf_json_type(@value);
    if @v_type = N'string' return wf.wf_text_length(wf.wf_json_string(@value));
    if @v_type in (N'array', N'object') return (select count(*) from openjson(@value) as e);
    return null;
end;
GO

-- Whether an array has an element that equals a scalar; elements that are arrays or objects do not.
create or alter function wf.wf_is_element(@value nvarchar(max), @array nvarchar(max)) returns bit
as
begin
    return case when exists (
        select 1 from openjson(@array) as e
         where e.type < 4
           and wf.wf_scalars_equal(wf.wf_json_text(e.value, e.type), @value) = 1)
        then 1 else 0 end;
end;
GO

-- Evaluates a program (S3) in the place of an execution. @output_json, @result_code and @event_json
-- are what `out`, `code` and `event` read; @unset_is_null as in wf_resolve_reference.
create or alter procedure wf.wf_eval_expression
    @program nvarchar(max),
    @execution_id bigint,
    @output_json nvarchar(max) = null,
    @result_code int = null,
    @event_json nvarchar(max) = null,
    @unset_is_null bit = 0,
    @value_json nvarchar(max) output,
    @error_code int output,
    @error_message nvarchar(max) output
as
begin
    set nocount, xact_abort on;
    declare @v_program table (
        place int not null primary key,
        op nvarchar(20) null,
        step nvarchar(max) not null
    );
    declare @v_stack table (
        place int not null primary key,
        value nvarchar(max) null  -- null is the mark "missing" that only `alt` meets
    );
    declare @v_made int = 0;      -- so many places of the stack have a row
    declare @v_top int = 0;
    declare @v_size int;
    declare @v_at int = 0;
    declare @v_step nvarchar(max);
    declare @v_op nvarchar(20);
    declare @v_count int;
    declare @v_operand nvarchar(max);
    declare @v_left nvarchar(max);
    declare @v_right nvarchar(max);
    declare @v_value nvarchar(max);   -- what the instruction leaves at the top
    declare @v_truth bit;
    declare @v_sign nvarchar(2);
    declare @v_result nvarchar(20);
    declare @v_scope_id bigint;
    declare @v_grows bit = 0;

    set @value_json = null;
    set @error_code = null;
    set @error_message = null;
    insert into @v_program (place, op, step)
    select cast(e.[key] as int) + 1, left(json_value(e.value, '$[0]'), 20), e.value
      from openjson(@program) as e;
    set @v_size = @@rowcount;

    while @v_at < @v_size
    begin
        set @v_at = @v_at + 1;
        select @v_op = p.op, @v_step = p.step from @v_program as p where p.place = @v_at;

        if @v_op = N'lit'
        begin
            select @v_value = wf.wf_json_text(e.value, e.type)
              from openjson(@v_step) as e
             where e.[key] = N'1';
            set @v_top = @v_top + 1;
        end;
        else if @v_op in (N'var', N'ctx', N'out', N'code', N'event')
        begin
            if @v_scope_id is null and @v_op = N'var'
                select @v_scope_id = e.scope_id
                  from wf.node_execution as e
                 where e.node_execution_id = @execution_id;
            exec wf.wf_resolve_reference @ref = @v_step, @execution_id = @execution_id,
                @output_json = @output_json, @result_code = @result_code,
                @event_json = @event_json, @unset_is_null = @unset_is_null,
                @scope_id = @v_scope_id, @value_json = @v_value output,
                @error_code = @error_code output, @error_message = @error_message output;
            if @error_code is not null
            begin
                if @error_code <> 10001 or not exists (
                    select 1 from @v_program as p where p.place = @v_at + 1 and p.op = N'alt')
                    return;
                set @error_code = null;
                set @error_message = null;
                set @v_value = null;
            end;
            set @v_top = @v_top + 1;
        end;
        else if @v_op in (N'eq', N'ne', N'lt', N'le', N'gt', N'ge', N'in', N'add', N'sub', N'mul',
                          N'div', N'mod', N'neg')
        begin
            select @v_right = s.value from @v_stack as s where s.place = @v_top;
            if @v_op = N'neg'
                set @v_left = N'0';
            else
            begin
                set @v_top = @v_top - 1;
                select @v_left = s.value from @v_stack as s where s.place = @v_top;
            end;
            if @v_op in (N'eq', N'ne', N'lt', N'le', N'gt', N'ge')
            begin
                set @v_value = wf.wf_compared(@v_op, @v_left, @v_right);
                if @v_value is null
                begin
                    set @error_code = 10010;
                    set @error_message = concat(N'cannot compare ', wf.wf_type_word(@v_left),
                                                N' with ', wf.wf_type_word(@v_right));
                    return;
                end;
            end;
            else if @v_op = N'in'
            begin
                if wf.wf_json_type(@v_left) in (N'object', N'array')
                begin
                    set @error_code = 10010;
                    set @error_message = concat(N'in takes a scalar on the left, not ',
                                                wf.wf_json_type(@v_left));
                    return;
                end;
                if wf.wf_json_type(@v_right) <> N'array'
                begin
                    set @error_code = 10010;
                    set @error_message = concat(N'in takes an array on the right, not ',
                                                wf.wf_type_word(@v_right));
                    return;
                end;
                set @v_value = case wf.wf_is_element(@v_left, @v_right)
                                    when 1 then N'true' else N'false' end;
            end;
            else
            begin
                set @v_sign = case @v_op when N'add' then N'+' when N'mul' then N'*'
                                         when N'div' then N'//' when N'mod' then N'%'
                                         else N'-' end;
                if wf.wf_type_word(@v_left) <> N'integer'
                    set @v_right = @v_left;
                if wf.wf_type_word(@v_right) <> N'integer'
                begin
                    set @error_code = 10011;
                    set @error_message = concat(@v_sign, N' takes integers, not ',
                                                wf.wf_type_word(@v_right));
                    return;
                end;
                set @v_left = wf.wf_number_text(@v_left);
                set @v_right = wf.wf_number_text(@v_right);
                exec wf.wf_integer_result @sign = @v_sign, @left = @v_left, @right = @v_right,
                    @result = @v_result output, @error_message = @error_message output;
                if @error_message is not null
                begin
                    set @error_code = 10011;
                    return;
                end;
                set @v_value = @v_result;
            end;
        end;
        else if @v_op in (N'not', N'bool', N'jf', N'jt')
        begin
            select @v_left = s.value from @v_stack as s where s.place = @v_top;
            set @v_truth = wf.wf_truth(@v_left);
            if @v_truth is null
            begin
                set @error_code = 10010;
                set @error_message = concat(
                    N'a condition takes a boolean, an integer or null, not ',
                    wf.wf_type_word(@v_left));
                return;
            end;
            if @v_op in (N'jf', N'jt')
            begin
                if @v_truth <> case @v_op when N'jt' then 1 else 0 end
                begin
                    set @v_top = @v_top - 1;
                    continue;
                end;
                set @v_at = @v_at + cast(json_value(@v_step, '$[1]') as int);
            end;
            set @v_value = case when @v_truth = case @v_op when N'not' then 0 else 1 end
                                then N'true' else N'false' end;
        end;
        else if @v_op = N'alt'
        begin
            select @v_left = s.value from @v_stack as s where s.place = @v_top;
            if @v_left is null or wf.wf_json_type(@v_left) = N'null'
                set @v_top = @v_top - 1;
            else
                set @v_at = @v_at + cast(json_value(@v_step, '$[1]') as int);
            continue;
        end;
        else if @v_op in (N'cat', N'arr')
        begin
            set @v_count = cast(json_value(@v_step, '$[1]') as int);
            set @v_top = @v_top - @v_count + 1;
            if @v_op = N'cat'
            begin
                set @v_left = null;
                select top (1) @v_left = wf.wf_json_type(s.value)
                  from @v_stack as s
                 where s.place between @v_top and @v_top + @v_count - 1
                   and wf.wf_json_type(s.value) in (N'null', N'array', N'object')
                 order by s.place;
                if @v_left is not null
                begin
                    set @error_code = 10017;
                    set @error_message = @v_left + N' cannot stand inside a string';
                    return;
                end;
                select @v_left = string_agg(wf.wf_scalar_text(s.value), N'')
                                     within group (order by s.place)
                  from @v_stack as s
                 where s.place between @v_top and @v_top + @v_count - 1;
                if len(@v_left + N'.') - 1 > 16777216
                begin
                    set @error_code = 10018;
                    set @error_message = N'a value of more than 16 MB cannot be stored';
                    return;
                end;
                set @v_value = wf.wf_json_quote(coalesce(@v_left, N''));
            end;
            else
            begin
                select @v_value = concat(N'[', string_agg(s.value, N',')
                                                   within group (order by s.place), N']')
                  from @v_stack as s
                 where s.place between @v_top and @v_top + @v_count - 1;
                set @v_grows = 1;
            end;
        end;
        else if @v_op = N'obj'
        begin
            select @v_operand = e.value from openjson(@v_step) as e where e.[key] = N'1';
            set @v_top = @v_top - (select count(*) from openjson(@v_operand) as k) + 1;
            select @v_value = concat(N'{', string_agg(
                       concat(wf.wf_json_quote(k.value), N':', s.value), N',')
                           within group (order by s.place), N'}')
              from openjson(@v_operand) as k
              join @v_stack as s on s.place = @v_top + cast(k.[key] as int);
            set @v_grows = 1;
        end;
        else if @v_op = N'len'
        begin
            select @v_left = s.value from @v_stack as s where s.place = @v_top;
            set @v_value = cast(wf.wf_value_length(@v_left) as nvarchar(20));
            if @v_value is null
            begin
                set @error_code = 10010;
                set @error_message = concat(
                    N'len takes a string, an array or an object, not ', wf.wf_type_word(@v_left));
                return;
            end;
        end;
        else if @v_op = N'defined'
        begin
            select @v_operand = e.value from openjson(@v_step) as e where e.[key] = N'1';
            exec wf.wf_resolve_reference @ref = @v_operand, @execution_id = @execution_id,
                @output_json = @output_json, @result_code = @result_code,
                @event_json = @event_json, @value_json = @v_value output,
                @error_code = @error_code output, @error_message = @error_message output;
            if @error_code <> 10001 return;
            set @v_value = case when @error_code is null then N'true' else N'false' end;
            set @error_code = null;
            set @error_message = null;
            set @v_top = @v_top + 1;
        end;
        else if @v_op = N'fault'
        begin
            set @error_code = cast(json_value(@v_step, '$[1]') as int);
            select @error_message = e.value from openjson(@v_step) as e where e.[key] = N'2';
            return;
        end;
        else
        begin
            set @error_code = 10002;
            set @error_message = N'unknown instruction ' + coalesce(@v_op, N'null');
            return;
        end;

        if @v_top > @v_made
        begin
            insert into @v_stack (place, value) values (@v_top, @v_value);
            set @v_made = @v_top;
        end;
        else
            update @v_stack set value = @v_value where place = @v_top;
    end;
    select @value_json = s.value from @v_stack as s where s.place = @v_top;
    if @v_grows = 1
    begin
        set @error_message = wf.wf_storable_problem(@value_json);
        if @error_message is not null
        begin
            set @error_code = 10018;
            set @value_json = null;
        end;
    end;
end;
GO
