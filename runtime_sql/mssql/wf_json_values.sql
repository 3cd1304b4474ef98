-- JSON values as text: what jsonb does by itself in the twin. Twin: none, the type jsonb.
--
-- A JSON value is nvarchar(max) with the text of any value ("a", 1.50, null, {…}); SQL null is
-- "nothing there". Values come out of OPENJSON, which decodes strings, and are written back by
-- wf.wf_json_text. A key is found by comparing it and its length: `=` pads with blanks, also under
-- BIN2. No JSON path is made from data. Numbers keep the spelling they came with; wherever one
-- becomes text or is compared its normal form counts (R6). Pure functions: they read no table, and
-- of a well-formed value none of them raises.
--
-- Positions are counted under BIN2, in UTF-16 units; a server that counts code points gives the
-- same answers, since characters above U+FFFF are looked at one by one.

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

-- The type of a value: string, number, boolean, null, array or object.
create or alter function wf.wf_json_type(@value nvarchar(max)) returns nvarchar(7)
as
begin
    declare @v_at int = 1;
    while unicode(substring(@value, @v_at, 1)) in (9, 10, 13, 32) set @v_at = @v_at + 1;
    return case unicode(substring(@value, @v_at, 1))
        when unicode(N'"') then N'string'
        when unicode(N'{') then N'object'
        when unicode(N'[') then N'array'
        when unicode(N't') then N'boolean'
        when unicode(N'f') then N'boolean'
        when unicode(N'n') then N'null'
        else case when @value is not null then N'number' end
        end;
end;
GO

-- \uXXXX for a UTF-16 unit, lower case.
create or alter function wf.wf_unicode_escape(@unit int) returns nvarchar(6)
as
begin
    declare @v_digits nvarchar(16) = N'0123456789abcdef';
    return concat(N'\u', substring(@v_digits, @unit / 4096 % 16 + 1, 1),
                  substring(@v_digits, @unit / 256 % 16 + 1, 1),
                  substring(@v_digits, @unit / 16 % 16 + 1, 1),
                  substring(@v_digits, @unit % 16 + 1, 1));
end;
GO

-- A text as a JSON string, with the escapes that jsonb writes; STRING_ESCAPE would write \/ too.
create or alter function wf.wf_json_quote(@text nvarchar(max)) returns nvarchar(max)
as
begin
    declare @v_text nvarchar(max) = @text;
    declare @v_mark nchar(1) = nchar(1);
    declare @v_code int = 1;
    -- A mark in place of the second backslash: REPLACE itself reads two in its new text as one on a
    -- server that takes them for an escape.
    if charindex(N'\', @v_text collate Latin1_General_100_BIN2) > 0
    begin
        if charindex(@v_mark, @v_text collate Latin1_General_100_BIN2) > 0
            set @v_mark = nchar(65535);
        set @v_text = replace(replace(@v_text collate Latin1_General_100_BIN2,
                                      N'\', N'\' + @v_mark), @v_mark, N'\');
    end;
    set @v_text = replace(@v_text collate Latin1_General_100_BIN2, N'"', N'\"');
    if @v_text like concat(N'%[', nchar(1), N'-', nchar(31), N']%')
            collate Latin1_General_100_BIN2
        while @v_code < 32
        begin
            set @v_text = replace(@v_text collate Latin1_General_100_BIN2, nchar(@v_code),
                case @v_code when 8 then N'\b' when 9 then N'\t' when 10 then N'\n'
                             when 12 then N'\f' when 13 then N'\r'
                             else wf.wf_unicode_escape(@v_code) end);
            set @v_code = @v_code + 1;
        end;
    return N'"' + @v_text + N'"';
end;
GO

-- A row of OPENJSON as JSON text again.
create or alter function wf.wf_json_text(@value nvarchar(max), @type int) returns nvarchar(max)
as
begin
    return case @type when 0 then N'null' when 1 then wf.wf_json_quote(@value) else @value end;
end;
GO

-- The text of a JSON string; null for what is none.
create or alter function wf.wf_json_string(@value nvarchar(max)) returns nvarchar(max)
as
begin
    return (select e.value from openjson(N'[' + @value + N']') as e where e.type = 1);
end;
GO

-- The member of an object that has this very key; null when there is none, or no object. Of equal
-- keys, which no door lets in, the last counts.
create or alter function wf.wf_json_member(@value nvarchar(max), @key nvarchar(max))
returns nvarchar(max)
as
begin
    declare @v_member nvarchar(max);
    declare @v_type int;
    if wf.wf_json_type(@value) = N'object'
        select @v_member = e.value, @v_type = e.type
          from openjson(@value) as e
         where e.[key] = @key collate Latin1_General_100_BIN2
           and datalength(e.[key]) = datalength(@key);
    return case when @v_type is not null then wf.wf_json_text(@v_member, @v_type) end;
end;
GO

-- The element of an array at an index from 0; null when there is none, or no array.
create or alter function wf.wf_json_item(@value nvarchar(max), @index int) returns nvarchar(max)
as
begin
    declare @v_item nvarchar(max);
    if wf.wf_json_type(@value) = N'array'
        select @v_item = wf.wf_json_text(e.value, e.type)
          from openjson(@value) as e
         where e.[key] = cast(@index as nvarchar(11)) collate Latin1_General_100_BIN2;
    return @v_item;
end;
GO

-- Numbers -----------------------------------------------------------------------------------------

-- The normal form of a number (R6): a plain decimal without exponent, the digits of its fraction
-- kept, no minus before a zero. One whose exponent has more than four digits, which no door lets
-- in, stays as it is.
create or alter function wf.wf_number_text(@number nvarchar(max)) returns nvarchar(max)
as
begin
    declare @v_number nvarchar(max) = @number;
    declare @v_minus nvarchar(1);
    declare @v_at int;
    declare @v_exponent int;
    declare @v_scale int = 0;

    if @v_number not like N'%[^0-9]%' collate Latin1_General_100_BIN2 return @v_number;
    set @v_number = lower(replace(replace(replace(replace(@v_number, N' ', N''),
        nchar(9), N''), nchar(10), N''), nchar(13), N''));
    set @v_minus = case when @v_number like N'-%' and @v_number like N'%[1-9]%'
                             and patindex(N'%[1-9]%', @v_number)
                                 < charindex(N'e', @v_number + N'e') then N'-' else N'' end;
    if @v_number like N'-%' set @v_number = substring(@v_number, 2, len(@v_number));
    set @v_at = charindex(N'e', @v_number);
    if @v_at = 0 return @v_minus + @v_number;

    set @v_exponent = try_cast(replace(substring(@v_number, @v_at + 1, 40), N'+', N'') as int);
    if @v_exponent is null or @v_exponent not between -9999 and 9999 return @number;
    set @v_number = left(@v_number, @v_at - 1);
    set @v_at = charindex(N'.', @v_number);
    if @v_at > 0
    begin
        set @v_scale = len(@v_number) - @v_at;
        set @v_number = stuff(@v_number, @v_at, 1, N'');
    end;
    set @v_scale = @v_scale - @v_exponent;
    if @v_scale <= 0
        set @v_number = @v_number + replicate(cast(N'0' as nvarchar(max)), -@v_scale);
    else
    begin
        if len(@v_number) <= @v_scale
            set @v_number = replicate(cast(N'0' as nvarchar(max)),
                                      @v_scale - len(@v_number) + 1) + @v_number;
        set @v_number = stuff(@v_number, len(@v_number) - @v_scale + 1, 0, N'.');
    end;
    while @v_number like N'0[0-9]%' set @v_number = substring(@v_number, 2, len(@v_number));
    return @v_minus + @v_number;
end;
GO

-- The text that equal numbers share (R6): the normal form without trailing zeros of the fraction.
create or alter function wf.wf_number_key(@number nvarchar(max)) returns nvarchar(max)
as
begin
    declare @v_number nvarchar(max) = wf.wf_number_text(@number);
    if charindex(N'.', @v_number) = 0 return @v_number;
    set @v_number = left(@v_number,
                         len(@v_number) + 1 - patindex(N'%[^0]%', reverse(@v_number)));
    return case when @v_number like N'%.' then left(@v_number, len(@v_number) - 1)
                else @v_number end;
end;
GO

-- The order of two numbers, -1, 0 or 1, by their digits: of any length, and exact.
create or alter function wf.wf_number_order(@left nvarchar(max), @right nvarchar(max)) returns int
as
begin
    declare @v_left nvarchar(max) = wf.wf_number_key(@left);
    declare @v_right nvarchar(max) = wf.wf_number_key(@right);
    declare @v_way int = 1;
    declare @v_left_length int;
    declare @v_right_length int;

    if @v_left = @v_right return 0;
    if @v_left like N'-%' and @v_right not like N'-%' return -1;
    if @v_left not like N'-%' and @v_right like N'-%' return 1;
    if @v_left like N'-%'
    begin
        set @v_way = -1;
        set @v_left = substring(@v_left, 2, len(@v_left));
        set @v_right = substring(@v_right, 2, len(@v_right));
    end;
    set @v_left_length = charindex(N'.', @v_left + N'.');
    set @v_right_length = charindex(N'.', @v_right + N'.');
    -- Integer parts of one length compare like texts, and so does what follows the point.
    return @v_way * case
        when @v_left_length < @v_right_length then -1
        when @v_left_length > @v_right_length then 1
        when @v_left < @v_right collate Latin1_General_100_BIN2 then -1
        else 1 end;
end;
GO

-- 64-bit arithmetic (S3.5): floor division, modulo with the sign of the divisor. The operands are
-- integers in normal form of any length. Answers the result, or a message.
create or alter procedure wf.wf_integer_result
    @sign nvarchar(2),
    @left nvarchar(max),
    @right nvarchar(max),
    @result nvarchar(20) output,
    @error_message nvarchar(max) output
as
begin
    set nocount, xact_abort on;
    declare @v_left bigint;
    declare @v_right bigint;
    declare @v_rest bigint;
    declare @v_result decimal(38, 0);

    set @result = null;
    set @error_message = null;
    if len(@left) <= 20 set @v_left = try_cast(@left as bigint);
    if len(@right) <= 20 set @v_right = try_cast(@right as bigint);
    if @v_left is null or @v_right is null
        set @error_message = N'integer overflow in ' + @sign;
    else if @v_right = 0 and @sign in (N'//', N'%')
        set @error_message = N'division by zero';
    else if @sign = N'+'
        set @v_result = cast(@v_left as decimal(19, 0)) + cast(@v_right as decimal(19, 0));
    else if @sign = N'-'
        set @v_result = cast(@v_left as decimal(19, 0)) - cast(@v_right as decimal(19, 0));
    else if @sign = N'*'
        set @v_result = cast(@v_left as decimal(19, 0)) * cast(@v_right as decimal(19, 0));
    else if @v_right = -1
        -- Apart, since the lowest integer divided by -1 is none.
        set @v_result = case @sign when N'//' then -cast(@v_left as decimal(19, 0)) else 0 end;
    else
    begin
        -- / and % truncate towards zero; the correction makes them floor.
        set @v_rest = @v_left % @v_right;
        set @v_result = case @sign when N'//' then @v_left / @v_right else @v_rest end;
        if @v_rest <> 0 and sign(@v_rest) <> sign(@v_right)
            set @v_result = @v_result + case @sign when N'//' then -1 else @v_right end;
    end;
    if @v_result not between -9223372036854775808 and 9223372036854775807
        set @error_message = N'integer overflow in ' + @sign;
    else
        set @result = cast(cast(@v_result as bigint) as nvarchar(20));
end;
GO

-- Texts -------------------------------------------------------------------------------------------

-- The order of two texts by code point (R34), -1, 0 or 1: blanks count, nothing is padded. At the
-- first unit that differs a surrogate stands above U+E000 to U+FFFF.
create or alter function wf.wf_text_order(@left nvarchar(max), @right nvarchar(max)) returns int
as
begin
    declare @v_left_length int = len((@left + N'.') collate Latin1_General_100_BIN2) - 1;
    declare @v_right_length int = len((@right + N'.') collate Latin1_General_100_BIN2) - 1;
    declare @v_low int = 0;   -- so many units are known to be equal
    declare @v_high int;      -- and more than so many are known not to be
    declare @v_middle int;
    declare @v_left_unit int;
    declare @v_right_unit int;

    set @v_high = case when @v_left_length < @v_right_length then @v_left_length
                       else @v_right_length end;
    while @v_low < @v_high
    begin
        set @v_middle = (@v_low + @v_high + 1) / 2;
        if left(@left collate Latin1_General_100_BIN2, @v_middle) + N'.'
                = left(@right collate Latin1_General_100_BIN2, @v_middle) + N'.'
            set @v_low = @v_middle;
        else
            set @v_high = @v_middle - 1;
    end;
    if @v_low = @v_left_length or @v_low = @v_right_length
        return sign(@v_left_length - @v_right_length);
    set @v_left_unit = unicode(substring(@left collate Latin1_General_100_BIN2, @v_low + 1, 1));
    set @v_right_unit = unicode(substring(@right collate Latin1_General_100_BIN2, @v_low + 1, 1));
    if @v_left_unit between 55296 and 57343 set @v_left_unit = @v_left_unit + 65536;
    if @v_right_unit between 55296 and 57343 set @v_right_unit = @v_right_unit + 65536;
    return sign(@v_left_unit - @v_right_unit);
end;
GO

-- The length of a text in code points, blanks at its end included.
create or alter function wf.wf_text_length(@text nvarchar(max)) returns int
as
begin
    declare @v_length int = len((@text + N'.') collate Latin1_General_100_BIN2) - 1;
    declare @v_high nvarchar(20) = concat(N'%[^', nchar(1), N'-', nchar(55295), N']%');
    declare @v_at int = 0;
    declare @v_step int = patindex(@v_high, @text collate Latin1_General_100_BIN2);
    declare @v_pairs int = 0;

    while @v_at < @v_length
    begin
        if @v_step = 0
            set @v_at = @v_at + 2000;  -- so much was looked at
        else
        begin
            set @v_at = @v_at + @v_step;
            if unicode(substring(@text collate Latin1_General_100_BIN2, @v_at, 1))
                    between 55296 and 56319
                set @v_pairs = @v_pairs + 1;
        end;
        set @v_step = patindex(@v_high, substring(@text collate Latin1_General_100_BIN2,
                                                  @v_at + 1, 2000));
    end;
    return @v_length - @v_pairs;
end;
GO

-- Values ------------------------------------------------------------------------------------------

-- A scalar as it stands inside of a string: the text of a string, a number's normal form.
create or alter function wf.wf_scalar_text(@value nvarchar(max)) returns nvarchar(max)
as
begin
    return case wf.wf_json_type(@value)
        when N'string' then wf.wf_json_string(@value)
        when N'number' then wf.wf_number_text(@value)
        else (select e.value from openjson(N'[' + @value + N']') as e)
        end;
end;
GO

-- Whether two values are equal scalars (S3.1): numbers by value, strings by every unit. Objects and
-- arrays equal nothing.
create or alter function wf.wf_scalars_equal(@left nvarchar(max), @right nvarchar(max)) returns bit
as
begin
    declare @v_type nvarchar(7) = wf.wf_json_type(@left);
    declare @v_left nvarchar(max);
    declare @v_right nvarchar(max);
    if @v_type in (N'array', N'object') or @v_type <> wf.wf_json_type(@right) return 0;
    if @v_type = N'null' return 1;
    set @v_left = case @v_type when N'number' then wf.wf_number_key(@left)
                               else wf.wf_scalar_text(@left) end;
    set @v_right = case @v_type when N'number' then wf.wf_number_key(@right)
                                else wf.wf_scalar_text(@right) end;
    return case when @v_left = @v_right collate Latin1_General_100_BIN2
                     and datalength(@v_left) = datalength(@v_right) then 1 else 0 end;
end;
GO

-- The word that messages use for the type of a value.
create or alter function wf.wf_type_word(@value nvarchar(max)) returns nvarchar(7)
as
begin
    declare @v_type nvarchar(7) = wf.wf_json_type(@value);
    return case when @v_type <> N'number' then @v_type
                when charindex(N'.', wf.wf_number_text(@value)) = 0 then N'integer'
                else N'decimal' end;
end;
GO

-- Whether a value is true (S3.4); null: it is no truth value and the caller fails with 10010.
create or alter function wf.wf_truth(@value nvarchar(max)) returns bit
as
begin
    return case wf.wf_type_word(@value)
        when N'boolean' then case wf.wf_scalar_text(@value) when N'true' then 1 else 0 end
        when N'null' then 0
        when N'integer' then case wf.wf_number_text(@value) when N'0' then 0 else 1 end
        end;
end;
GO

-- Why a value that an instance has built cannot be stored (R7), or null: deeper than 100 levels, or
-- more than 16 MB as text. The twin counts bytes of UTF-8, this counts characters: for a text that
-- is ASCII they are the same.
create or alter function wf.wf_storable_problem(@value nvarchar(max)) returns nvarchar(100)
as
begin
    declare @v_length int = len((@value + N'.') collate Latin1_General_100_BIN2) - 1;
    declare @v_depth int = 1;
    declare @v_row_count int = 1;
    declare @v_level table (depth int not null, value nvarchar(max) not null);

    if @v_length < 200 return null;
    if @v_length > 16777216 return N'a value of more than 16 MB cannot be stored';
    -- What has few brackets cannot be deep.
    if @v_length - len((replace(replace(@value collate Latin1_General_100_BIN2, N'[', N''),
                                N'{', N'') + N'.') collate Latin1_General_100_BIN2) + 1 <= 100
        return null;
    if wf.wf_json_type(@value) not in (N'array', N'object') return null;
    insert into @v_level (depth, value) values (1, @value);
    while @v_row_count > 0 and @v_depth <= 100
    begin
        set @v_depth = @v_depth + 1;
        insert into @v_level (depth, value)
        select @v_depth, e.value
          from @v_level as l
         cross apply openjson(l.value) as e
         where l.depth = @v_depth - 1 and e.type in (4, 5);
        set @v_row_count = @@rowcount;
    end;
    if exists (select 1 from @v_level as l where l.depth > 100)
        return N'a value nested deeper than 100 levels cannot be stored';
    return null;
end;
GO

-- Why a JSON text cannot be kept by every engine (R7), or null: an escape in it stands for U+0000 or
-- for half of a surrogate pair. jsonb refuses both by itself.
create or alter function wf.wf_escape_problem(@value nvarchar(max)) returns nvarchar(100)
as
begin
    -- Without the backslashes that are escaped themselves, so that each one left begins an escape.
    declare @v_text nvarchar(max) = lower(replace(@value collate Latin1_General_100_BIN2,
                                                  N'\\', N'__'));
    declare @v_at int;
    declare @v_digit nchar(1);

    if charindex(N'\u0000', @v_text) > 0 return N'U+0000 in a text cannot be stored';
    set @v_at = charindex(N'\ud', @v_text);
    while @v_at > 0
    begin
        set @v_digit = substring(@v_text, @v_at + 3, 1);
        if @v_digit in (N'c', N'd', N'e', N'f')
           or (@v_digit in (N'8', N'9', N'a', N'b')
               and (substring(@v_text, @v_at + 6, 3) <> N'\ud'
                    or substring(@v_text, @v_at + 9, 1) not in (N'c', N'd', N'e', N'f')))
            return N'half of a surrogate pair in a text cannot be stored';
        set @v_at = charindex(N'\ud', @v_text,
            @v_at + case when @v_digit in (N'8', N'9', N'a', N'b') then 12 else 6 end);
    end;
    return null;
end;
GO

-- Stacks of values --------------------------------------------------------------------------------

-- A stack is a text too: each value behind its length and a colon, the top first. A table variable
-- would cost more than the work on it, an array would add a level to what JSON may nest.
create or alter function wf.wf_stack_push(@stack nvarchar(max), @value nvarchar(max))
returns nvarchar(max)
as
begin
    return concat(len(@value + N'.') - 1, N':', @value, @stack);
end;
GO

-- The value at the top of a stack; null of an empty one.
create or alter function wf.wf_stack_top(@stack nvarchar(max)) returns nvarchar(max)
as
begin
    declare @v_colon int = charindex(N':', left(@stack, 12));
    if @v_colon = 0 return null;
    return substring(@stack, @v_colon + 1, cast(left(@stack, @v_colon - 1) as int));
end;
GO

-- What is below the top of a stack.
create or alter function wf.wf_stack_below(@stack nvarchar(max)) returns nvarchar(max)
as
begin
    declare @v_colon int = charindex(N':', left(@stack, 12));
    if @v_colon = 0 return N'';
    return substring(@stack, @v_colon + 1 + cast(left(@stack, @v_colon - 1) as int),
                     len(@stack + N'.'));
end;
GO
