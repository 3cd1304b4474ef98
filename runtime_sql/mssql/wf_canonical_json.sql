-- Canonical JSON (R35): one text for one value, so that a hash over it means the same in SQL and in
-- Python. Twin: pg/wf_canonical_json.sql
--
-- The text is ASCII: no blanks, every other character as \uXXXX (lower case, two of them above
-- U+FFFF), the two-character escapes only for " \ \b \f \n \r \t. The keys of an object are sorted
-- by the bytes of their escaped form, quotes included. Numbers are plain decimals without trailing
-- zeros of a fraction; these stay where 1 and 1.0 must not be one text (@is_exact).
-- compiler/json_values.py (`canonical`) writes the same. Pure, never raises.

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

-- Replaces what is not ASCII in a JSON text by escapes; outside of its strings there is nothing to
-- replace. Most texts have nothing and are answered as they are; each turn takes one character
-- wherever it stands.
create or alter function wf.wf_ascii_json(@json nvarchar(max)) returns nvarchar(max)
as
begin
    -- Apart, since not every server counts U+007F as outside of the range below.
    declare @v_json nvarchar(max) = replace(@json collate Latin1_General_100_BIN2, nchar(127),
                                            N'\u007f');
    declare @v_other nvarchar(20) = concat(N'%[^', nchar(1), N'-', nchar(126), N']%');
    declare @v_at int = patindex(@v_other, @v_json collate Latin1_General_100_BIN2);
    declare @v_letter nvarchar(2);
    declare @v_code int;

    while @v_at > 0
    begin
        set @v_letter = substring(@v_json collate Latin1_General_100_BIN2, @v_at, 1);
        set @v_code = unicode(@v_letter collate Latin1_General_100_BIN2);
        set @v_json = replace(@v_json collate Latin1_General_100_BIN2, @v_letter,
            case when @v_code < 65536 then wf.wf_unicode_escape(@v_code)
                 else concat(wf.wf_unicode_escape(55296 + (@v_code - 65536) / 1024),
                             wf.wf_unicode_escape(56320 + (@v_code - 65536) % 1024)) end);
        set @v_at = patindex(@v_other, @v_json collate Latin1_General_100_BIN2);
    end;
    return @v_json;
end;
GO

-- The canonical JSON of a value; null (SQL) for null. The value is taken apart level by level, then
-- put together from the deepest level up: no step works on one value at a time.
create or alter function wf.wf_canonical_json(@value nvarchar(max), @is_exact bit = 0)
returns nvarchar(max)
as
begin
    declare @v_level_no int = 0;
    declare @v_row_count int = 1;
    declare @v_part table (
        level_no int not null,
        part_id int identity(1, 1) not null,
        parent_id int not null,
        place int not null,           -- in an array
        lead nvarchar(4000) collate Latin1_General_100_BIN2 not null,  -- in an object: key, colon
        type int not null,
        raw nvarchar(max) null,       -- as it came, of an array or an object
        written nvarchar(max) null,
        primary key (level_no, part_id)
    );

    insert into @v_part (level_no, parent_id, place, lead, type, raw, written)
    select 0, 0, 0, N'', e.type, case when e.type in (4, 5) then e.value end,
           case e.type when 2 then case @is_exact when 1 then wf.wf_number_text(e.value)
                                                  else wf.wf_number_key(e.value) end
                       when 4 then N'[]' when 5 then N'{}'
                       else wf.wf_ascii_json(wf.wf_json_text(e.value, e.type)) end
      from openjson(N'[' + @value + N']') as e;
    while @v_row_count > 0
    begin
        set @v_level_no = @v_level_no + 1;
        insert into @v_part (level_no, parent_id, place, lead, type, raw, written)
        select @v_level_no, p.part_id,
               case p.type when 4 then try_cast(e.[key] as int) else 0 end,
               case p.type when 5 then wf.wf_ascii_json(wf.wf_json_quote(e.[key])) + N':'
                           else N'' end,
               e.type, case when e.type in (4, 5) then e.value end,
               case e.type when 2 then case @is_exact when 1 then wf.wf_number_text(e.value)
                                                  else wf.wf_number_key(e.value) end
                       when 4 then N'[]' when 5 then N'{}'
                           else wf.wf_ascii_json(wf.wf_json_text(e.value, e.type)) end
          from @v_part as p
         cross apply openjson(p.raw) as e
         where p.level_no = @v_level_no - 1;
        set @v_row_count = @@rowcount;
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
                           within group (order by k.place, k.lead) as written
                  from @v_part as k
                 where k.level_no = @v_level_no
                 group by k.parent_id) as c on c.parent_id = p.part_id
         where p.level_no = @v_level_no - 1;
    end;
    return (select p.written from @v_part as p where p.level_no = 0);
end;
GO

-- SHA-256 of an ASCII text, as 64 lower-case hex digits.
create or alter function wf.wf_sha256_hex(@text varchar(max)) returns varchar(64)
as
begin
    return lower(convert(varchar(64), hashbytes('SHA2_256', @text), 2));
end;
GO

-- SHA-256 of the canonical JSON of a value, as 64 lower-case hex digits.
create or alter function wf.wf_json_sha256(@value nvarchar(max), @is_exact bit = 0)
returns varchar(64)
as
begin
    return wf.wf_sha256_hex(cast(wf.wf_canonical_json(@value, @is_exact) as varchar(max)));
end;
GO
