-- The handlers of the node types. Twin: pg/wf_nodes.sql

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

create or alter function wf.wf_add_priorities(@one int, @other int) returns int
as
begin
    return 0;
end;
GO

-- Reads #entry, queues tasks, adds to #step.
create or alter procedure wf.wf_action_activate
as
begin
    set nocount, xact_abort on;
end;
GO

-- Runs the `set`s of a node that has succeeded.
create or alter procedure wf.wf_apply_output_bindings
    @node_execution_id bigint,
    @output_json nvarchar(max),
    @result_code int,
    @event_json nvarchar(max),
    @error_code int output,
    @error_message nvarchar(max) output
as
begin
    set nocount, xact_abort on;
end;
GO
