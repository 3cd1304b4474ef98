-- The evaluator of programs (S3). Twin: pg/wf_expressions.sql

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

-- Evaluates a program (S3) in the place of an execution. Pure: errors are values.
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
    set @value_json = null;
    set @error_code = null;
    set @error_message = null;
end;
GO
