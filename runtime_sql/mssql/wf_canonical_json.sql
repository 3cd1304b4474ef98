-- Canonical JSON (R35). Twin: pg/wf_canonical_json.sql

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

-- The canonical JSON of a value; null for null.
create or alter function wf.wf_canonical_json(@value nvarchar(max))
returns nvarchar(max)
as
begin
    return null;
end;
GO

-- SHA-256 of an ASCII text, as 64 lower-case hex digits.
create or alter function wf.wf_sha256_hex(@text varchar(max))
returns varchar(64)
as
begin
    return null;
end;
GO

-- SHA-256 of the canonical JSON of a value, as 64 lower-case hex digits.
create or alter function wf.wf_json_sha256(@value nvarchar(max))
returns varchar(64)
as
begin
    return null;
end;
GO
