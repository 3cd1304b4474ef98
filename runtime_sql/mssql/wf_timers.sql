-- What happens by itself at a time. Twin: pg/wf_timers.sql

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

-- Applies every timer of one instance that is due. The gate is exclusive. #agenda must be empty, and is empty afterwards; uses the engine's tables.
create or alter procedure wf.wf_apply_due
    @workflow_instance_id bigint,
    @has_acted bit = null output
as
begin
    set nocount, xact_abort on;
end;
GO

-- An attempt that the engine itself ends with an error. The gate is exclusive, the task's row is the caller's. Runs the engine.
create or alter procedure wf.wf_fail_attempt
    @node_execution_id bigint,
    @retry_json nvarchar(max),
    @failure nvarchar(20),
    @engine_error_code int,
    @text nvarchar(max)
as
begin
    set nocount, xact_abort on;
end;
GO

-- The pass over what is due. Outside a transaction each instance has a transaction of its own, so that one that fails holds no other up: call it before `begin transaction`.
create or alter procedure wf.wf_run_timers
    @limit int,
    @count int output
as
begin
    set nocount, xact_abort on;
end;
GO

-- Makes delayed tasks claimable whose time has come.
create or alter procedure wf.wf_release_due_tasks
    @limit int,
    @count int output
as
begin
    set nocount, xact_abort on;
end;
GO
