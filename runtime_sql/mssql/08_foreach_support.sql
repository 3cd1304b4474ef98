-- FOREACH: its collection, its iterations, what they export. Twin: pg/08_foreach_support.sql

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

-- Reads #entry, adds to #step. With `reuse` it calls wf.wf_foreach_start_unknown @ordinal, @node_execution_id, @items_json, @width, which adds to #step.
create or alter procedure wf.wf_foreach_activate
as
begin
    set nocount, xact_abort on;
end;
GO
