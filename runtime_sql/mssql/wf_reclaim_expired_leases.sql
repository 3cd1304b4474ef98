-- Leases whose worker went silent. Twin: pg/wf_reclaim_expired_leases.sql

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

-- The pass over expired leases, for a caller that has the engine's tables; as wf_run_timers, call it before `begin transaction`. wf_reclaim_expired_leases is the entry of its own.
create or alter procedure wf.wf_reclaim_leases
    @limit int,
    @count int output
as
begin
    set nocount, xact_abort on;
end;
GO
