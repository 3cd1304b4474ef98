-- The engine's clock. Twin: pg/03_engine_core.sql
--
-- The engine's routines follow in this file; publishing needs no more of them than the clock.

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

-- The only clock of the engine: UTC, whole milliseconds, cut and not rounded. A row `now` in
-- wf.wf_setting, which only the owner can write, moves it in tests.
create or alter function wf.wf_now() returns datetime2(3)
as
begin
    declare @v_now datetime2(7) = coalesce(
        (select try_convert(datetime2(7), s.value, 127) from wf.wf_setting as s
          where s.name = N'now'),
        sysutcdatetime());
    return dateadd(nanosecond, -(datepart(nanosecond, @v_now) % 1000000), @v_now);
end;
GO

-- @ms milliseconds after @at.
create or alter function wf.wf_add_ms(@at datetime2(3), @ms bigint) returns datetime2(3)
as
begin
    return dateadd(millisecond, @ms % 86400000, dateadd(day, @ms / 86400000, @at));
end;
GO

-- Takes the gate of an instance (R1), in a transaction. @waits 1: 70009 when it cannot be had in time. 0: at once or not at all, and @is_taken tells.
create or alter procedure wf.wf_take_gate
    @workflow_instance_id bigint,
    @is_exclusive bit,
    @waits bit = 1,
    @is_taken bit = null output
as
begin
    set nocount, xact_abort on;
end;
GO

-- Adds a START step to #step.
create or alter procedure wf.wf_start_step
    @ordinal int,
    @parent_execution_id bigint,
    @workflow_instance_id bigint,
    @node_id bigint,
    @iteration_no int = 0
as
begin
    set nocount, xact_abort on;
end;
GO

-- Adds a SUCCEED step to #step.
create or alter procedure wf.wf_succeed_step
    @ordinal int,
    @node_execution_id bigint,
    @workflow_instance_id bigint,
    @result_code int = 0
as
begin
    set nocount, xact_abort on;
end;
GO

-- Adds a FAIL step to #step; the message gets the node's path.
create or alter procedure wf.wf_fail_step
    @ordinal int,
    @node_execution_id bigint,
    @workflow_instance_id bigint,
    @engine_error_code int,
    @text nvarchar(max)
as
begin
    set nocount, xact_abort on;
end;
GO

-- Evaluates a condition in the place of an execution.
create or alter procedure wf.wf_eval_condition
    @program_json nvarchar(max),
    @node_execution_id bigint,
    @is_true bit output,
    @error_code int output,
    @error_message nvarchar(max) output
as
begin
    set nocount, xact_abort on;
end;
GO

-- Carries out #step, which is empty then, and adds the entries of the next level to #next.
create or alter procedure wf.wf_engine_apply
as
begin
    set nocount, xact_abort on;
end;
GO

-- Makes #next the level in work: moves it to #agenda, which is empty, numbered from 1.
create or alter procedure wf.wf_engine_turn
as
begin
    set nocount, xact_abort on;
end;
GO

-- Drops from #agenda what no longer counts.
create or alter procedure wf.wf_engine_alive
as
begin
    set nocount, xact_abort on;
end;
GO

-- Works off #agenda until nothing is left to do in this call. Reads #call (now) and #exclusive. The caller looks at #call.restart_instance_id afterwards: when it is not null, roll back to the savepoint and start over with that gate exclusive.
create or alter procedure wf.wf_engine_run
as
begin
    set nocount, xact_abort on;
end;
GO
