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
