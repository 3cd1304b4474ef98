-- Ends: joins, failures, on_error, finally, cancellation. Twin: pg/wf_closing.sql

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

-- Cancels every open execution below one; the finallys that start are added to #step. The gate is exclusive. Reads #call (now).
create or alter procedure wf.wf_cancel_below
    @ordinal int,
    @workflow_instance_id bigint,
    @node_execution_id bigint,
    @is_operator bit
as
begin
    set nocount, xact_abort on;
end;
GO

-- Makes the executions of #open (node_execution_id bigint), a table of the caller, CANCELLED. Reads #call (now).
create or alter procedure wf.wf_cancel_executions
    @is_for_good bit
as
begin
    set nocount, xact_abort on;
end;
GO

-- Removes the counters, items and counts of the executions of #open (node_execution_id bigint), a table of the caller.
create or alter procedure wf.wf_forget_progress
as
begin
    set nocount, xact_abort on;
end;
GO

-- Ends an instance whose root has ended; its error is the root's. Reads #call (now).
create or alter procedure wf.wf_end_instance
    @workflow_instance_id bigint,
    @status nvarchar(20),
    @root_execution_id bigint
as
begin
    set nocount, xact_abort on;
end;
GO

-- The root has succeeded. Reads #call (now).
create or alter procedure wf.wf_finish_instance
    @workflow_instance_id bigint,
    @root_execution_id bigint
as
begin
    set nocount, xact_abort on;
end;
GO
