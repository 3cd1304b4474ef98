-- Attempts: whether a failed one is made again, and when. Twin: pg/wf_retries.sql

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

-- Whether the retry policy of a node takes a failure: its code as text, or 'lease'.
create or alter function wf.wf_retry_takes(@retry_json nvarchar(max), @attempt_no int, @failure nvarchar(20)) returns bit
as
begin
    return 0;
end;
GO

-- Tells two outputs of one attempt apart.
create or alter function wf.wf_output_hash(@output_json nvarchar(max)) returns nvarchar(64)
as
begin
    return null;
end;
GO

-- Puts a task back to READY for its next attempt. The caller holds the task's row. Reads #call (now).
create or alter procedure wf.wf_retry_task
    @node_execution_id bigint,
    @retry_json nvarchar(max),
    @result_code int,
    @engine_error_code int,
    @message nvarchar(max),
    @output_json nvarchar(max)
as
begin
    set nocount, xact_abort on;
end;
GO
