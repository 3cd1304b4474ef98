-- The evaluator of programs (S3): a loop over a stack, never recursion. Twin: pg/wf_expressions.sql
--
-- Values are JSON texts (wf_json_values.sql). wf.wf_storable_problem and wf.wf_integer_result,
-- which the twin has here, stand there.

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
--
-- The top of the stack is @v_top, what is below it @v_below. What is missing, which only `alt`
-- meets, stands there as null. Only a long program is unpacked into a table.
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
    declare @v_size int = (select count(*) from openjson(@program) as e);
    declare @v_at int = 0;
    declare @v_step nvarchar(max);
    declare @v_op nvarchar(20);
    declare @v_count int;
    declare @v_keys nvarchar(max);
    declare @v_top nvarchar(max);
    declare @v_below nvarchar(max) = N'';
    declare @v_left nvarchar(max);
    declare @v_value nvarchar(max);   -- what the instruction leaves at the top
    declare @v_type nvarchar(7);
    declare @v_bad_type nvarchar(7);
    declare @v_truth bit;
    declare @v_sign nvarchar(2);
    declare @v_result nvarchar(20);
    declare @v_scope_id bigint;
    declare @v_grows bit = 0;

    set @value_json = null;
    set @error_code = null;
    set @error_message = null;
    if @v_size > 50
    begin
        declare @v_program table (place int not null primary key, step nvarchar(max) not null);
        insert into @v_program (place, step)
        select cast(e.[key] as int) + 1, e.value from openjson(@program) as e;
    end;

    while @v_at < @v_size
    begin
        if @v_size > 50
            select @v_step = p.step from @v_program as p where p.place = @v_at + 1;
        else
            select @v_step = e.value
              from openjson(@program) as e
             where e.[key] = cast(@v_at as nvarchar(20));
        set @v_op = left(json_value(@v_step, '$[0]'), 20);
        set @v_at = @v_at + 1;

        if @v_op in (N'lit', N'var', N'ctx', N'out', N'code', N'event', N'defined')
        begin
            if @v_top is not null set @v_below = wf.wf_stack_push(@v_below, @v_top);
            if @v_op = N'var' and @v_scope_id is null and @v_size > 1
                select @v_scope_id = e.scope_id
                  from wf.node_execution as e
                 where e.node_execution_id = @execution_id;
            if @v_op in (N'lit', N'defined')
                select @v_value = wf.wf_json_text(e.value, e.type)
                  from openjson(@v_step) as e
                 where e.[key] = N'1';
            if @v_op = N'defined'
            begin
                set @v_step = @v_value;
                exec wf.wf_resolve_reference @ref = @v_step, @execution_id = @execution_id,
                    @output_json = @output_json, @result_code = @result_code,
                    @event_json = @event_json, @value_json = @v_value output,
                    @error_code = @error_code output, @error_message = @error_message output;
                if @error_code <> 10001 return;
                set @v_value = case when @error_code is null then N'true' else N'false' end;
                set @error_code = null;
                set @error_message = null;
            end;
            else if @v_op <> N'lit'
            begin
                exec wf.wf_resolve_reference @ref = @v_step, @execution_id = @execution_id,
                    @output_json = @output_json, @result_code = @result_code,
                    @event_json = @event_json, @unset_is_null = @unset_is_null,
                    @scope_id = @v_scope_id, @value_json = @v_value output,
                    @error_code = @error_code output, @error_message = @error_message output;
                if @error_code is not null
                begin
                    if @error_code <> 10001 or not exists (
                        select 1 from openjson(@program) as e
                         where e.[key] = cast(@v_at as nvarchar(20))
                           and json_value(e.value, '$[0]') = N'alt')
                        return;
                    set @error_code = null;
                    set @error_message = null;
                    set @v_value = N'null';
                end;
            end;
        end;
        else if @v_op in (N'eq', N'ne', N'lt', N'le', N'gt', N'ge')
        begin
            set @v_left = wf.wf_stack_top(@v_below);
            set @v_below = wf.wf_stack_below(@v_below);
            set @v_value = wf.wf_compared(@v_op, @v_left, @v_top);
            if @v_value is null
            begin
                set @error_code = 10010;
                set @error_message = concat(N'cannot compare ', wf.wf_type_word(@v_left),
                                            N' with ', wf.wf_type_word(@v_top));
                return;
            end;
        end;
        else if @v_op in (N'not', N'bool', N'jf', N'jt')
        begin
            set @v_truth = wf.wf_truth(@v_top);
            if @v_truth is null
            begin
                set @error_code = 10010;
                set @error_message = concat(
                    N'a condition takes a boolean, an integer or null, not ',
                    wf.wf_type_word(@v_top));
                return;
            end;
            set @v_value = case when @v_truth = case @v_op when N'not' then 0 else 1 end
                                then N'true' else N'false' end;
            if @v_op in (N'jf', N'jt')
            begin
                if @v_truth = case @v_op when N'jt' then 1 else 0 end
                    set @v_at = @v_at + cast(json_value(@v_step, '$[1]') as int);
                else
                begin
                    set @v_value = wf.wf_stack_top(@v_below);
                    set @v_below = wf.wf_stack_below(@v_below);
                end;
            end;
        end;
        else if @v_op in (N'add', N'sub', N'mul', N'div', N'mod', N'neg')
        begin
            set @v_left = N'0';
            if @v_op <> N'neg'
            begin
                set @v_left = wf.wf_stack_top(@v_below);
                set @v_below = wf.wf_stack_below(@v_below);
            end;
            set @v_sign = case @v_op when N'add' then N'+' when N'mul' then N'*'
                                     when N'div' then N'//' when N'mod' then N'%' else N'-' end;
            set @v_type = wf.wf_type_word(@v_left);
            if @v_type = N'integer' set @v_type = wf.wf_type_word(@v_top);
            if @v_type <> N'integer'
            begin
                set @error_code = 10011;
                set @error_message = concat(@v_sign, N' takes integers, not ', @v_type);
                return;
            end;
            set @v_left = wf.wf_number_text(@v_left);
            set @v_top = wf.wf_number_text(@v_top);
            exec wf.wf_integer_result @sign = @v_sign, @left = @v_left, @right = @v_top,
                @result = @v_result output, @error_message = @error_message output;
            if @error_message is not null
            begin
                set @error_code = 10011;
                return;
            end;
            set @v_value = @v_result;
        end;
        else if @v_op = N'alt'
        begin
            set @v_value = @v_top;
            if wf.wf_json_type(@v_top) <> N'null'
                set @v_at = @v_at + cast(json_value(@v_step, '$[1]') as int);
            else
            begin
                set @v_value = wf.wf_stack_top(@v_below);
                set @v_below = wf.wf_stack_below(@v_below);
            end;
        end;
        else if @v_op in (N'cat', N'arr', N'obj')
        begin
            set @v_keys = case when @v_op = N'obj' then json_query(@v_step, '$[1]') end;
            set @v_count = case @v_op
                when N'obj' then (select count(*) from openjson(@v_keys) as k)
                else cast(json_value(@v_step, '$[1]') as int) end;
            -- With nothing to take the top stays where it is.
            if @v_count = 0 and @v_top is not null
                set @v_below = wf.wf_stack_push(@v_below, @v_top);
            set @v_value = N'';
            set @v_bad_type = null;
            while @v_count > 0
            begin
                set @v_count = @v_count - 1;
                if @v_op = N'cat'
                begin
                    set @v_type = wf.wf_json_type(@v_top);
                    if @v_type in (N'null', N'array', N'object')
                        set @v_bad_type = @v_type;
                    else
                        set @v_value = wf.wf_scalar_text(@v_top) + @v_value;
                end;
                else if @v_op = N'obj'
                    select @v_value = concat(N',', wf.wf_json_quote(k.value), N':', @v_top,
                                             @v_value)
                      from openjson(@v_keys) as k
                     where k.[key] = cast(@v_count as nvarchar(20));
                else
                    set @v_value = concat(N',', @v_top, @v_value);
                if @v_count > 0
                begin
                    set @v_top = wf.wf_stack_top(@v_below);
                    set @v_below = wf.wf_stack_below(@v_below);
                end;
            end;
            if @v_bad_type is not null
            begin
                set @error_code = 10017;
                set @error_message = @v_bad_type + N' cannot stand inside a string';
                return;
            end;
            if @v_op = N'cat' and len(@v_value + N'.') - 1 > 16777216
            begin
                set @error_code = 10018;
                set @error_message = N'a value of more than 16 MB cannot be stored';
                return;
            end;
            set @v_value = case @v_op
                when N'cat' then wf.wf_json_quote(@v_value)
                when N'obj' then concat(N'{', stuff(@v_value, 1, 1, N''), N'}')
                else concat(N'[', stuff(@v_value, 1, 1, N''), N']') end;
            if @v_op <> N'cat' set @v_grows = 1;
        end;
        else if @v_op = N'in'
        begin
            set @v_left = wf.wf_stack_top(@v_below);
            set @v_below = wf.wf_stack_below(@v_below);
            if wf.wf_json_type(@v_left) in (N'object', N'array')
            begin
                set @error_code = 10010;
                set @error_message = concat(N'in takes a scalar on the left, not ',
                                            wf.wf_json_type(@v_left));
                return;
            end;
            if wf.wf_json_type(@v_top) <> N'array'
            begin
                set @error_code = 10010;
                set @error_message = concat(N'in takes an array on the right, not ',
                                            wf.wf_type_word(@v_top));
                return;
            end;
            set @v_value = case wf.wf_is_element(@v_left, @v_top)
                                when 1 then N'true' else N'false' end;
        end;
        else if @v_op = N'len'
        begin
            set @v_value = cast(wf.wf_value_length(@v_top) as nvarchar(20));
            if @v_value is null
            begin
                set @error_code = 10010;
                set @error_message = concat(
                    N'len takes a string, an array or an object, not ', wf.wf_type_word(@v_top));
                return;
            end;
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
        set @v_top = @v_value;
    end;
    set @value_json = @v_top;
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
