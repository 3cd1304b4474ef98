-- JSON values as text: what jsonb does by itself in the twin.

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

-- A text as a JSON string.
create or alter function wf.wf_json_quote(@text nvarchar(max))
returns nvarchar(max)
as
begin
    return null;
end;
GO

-- A value of OPENJSON as JSON text again.
create or alter function wf.wf_json_text(@value nvarchar(max), @type int)
returns nvarchar(max)
as
begin
    return null;
end;
GO

-- The type of a JSON value: string, number, boolean, null, array or object.
create or alter function wf.wf_json_type(@value nvarchar(max))
returns nvarchar(7)
as
begin
    return null;
end;
GO

-- The text of a JSON string.
create or alter function wf.wf_json_string(@value nvarchar(max))
returns nvarchar(max)
as
begin
    return null;
end;
GO

-- The member of a JSON object that has this very key, as JSON text; null: not there.
create or alter function wf.wf_json_member(@value nvarchar(max), @key nvarchar(max))
returns nvarchar(max)
as
begin
    return null;
end;
GO

-- The element of a JSON array at an index, as JSON text; null: not there.
create or alter function wf.wf_json_item(@value nvarchar(max), @index int)
returns nvarchar(max)
as
begin
    return null;
end;
GO

-- The normal form of a JSON number (R6).
create or alter function wf.wf_number_text(@number nvarchar(max))
returns nvarchar(max)
as
begin
    return null;
end;
GO

-- -1, 0 or 1: the order of two JSON numbers.
create or alter function wf.wf_number_order(@left nvarchar(max), @right nvarchar(max))
returns int
as
begin
    return null;
end;
GO

-- -1, 0 or 1: the order of two texts by code point (R34).
create or alter function wf.wf_text_order(@left nvarchar(max), @right nvarchar(max))
returns int
as
begin
    return null;
end;
GO

-- The length of a text in code points.
create or alter function wf.wf_text_length(@text nvarchar(max))
returns int
as
begin
    return null;
end;
GO

-- A scalar as it stands inside of a string: a string's text, a number in normal form.
create or alter function wf.wf_scalar_text(@value nvarchar(max))
returns nvarchar(max)
as
begin
    return null;
end;
GO

-- The word that messages use for the type of a value.
create or alter function wf.wf_type_word(@value nvarchar(max))
returns nvarchar(7)
as
begin
    return null;
end;
GO

-- Whether a value is true (S3.4); null: it is no truth value and the caller fails with 10010.
create or alter function wf.wf_truth(@value nvarchar(max))
returns bit
as
begin
    return null;
end;
GO

-- Why a value that an instance has built cannot be stored (R7, 10018), or null.
create or alter function wf.wf_storable_problem(@value nvarchar(max))
returns nvarchar(100)
as
begin
    return null;
end;
GO
