-- References: what `var`, `ctx`, `out`, `code` and `event` name. Twin: pg/05_runtime_parity.sql

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

-- The path of an execution, as the twin's 07_trace.sql has it.
create or alter function wf.wf_execution_path(@execution_id bigint)
returns nvarchar(max)
as
begin
    return null;
end;
GO

-- What a reference names (S3.6). Pure: errors are values.
create or alter procedure wf.wf_resolve_reference
    @ref nvarchar(max),
    @execution_id bigint,
    @output_json nvarchar(max) = null,
    @result_code int = null,
    @event_json nvarchar(max) = null,
    @unset_is_null bit = 0,
    @scope_id bigint = null,
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

-- The value of a variable of the nearest scope, outwards, that @owner_key opened; 10001.
create or alter procedure wf.wf_get_scope_variable_json
    @scope_id bigint,
    @owner_key nvarchar(200),
    @name nvarchar(200),
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
