-- The runtime's version, and what guards its settings. Twin: pg/wf_settings.sql

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

-- The version of the runtime in this database. Clients ask when they connect.
create or alter function wf.wf_runtime_version() returns int
as
begin
    return (select max(v.version) from wf.schema_version as v);
end;
GO

-- A name of this database that it keeps for good, also in a backup: when it was first installed.
-- Trace ids are made of it and the instance's id, so that those of two databases differ.
create or alter function wf.wf_database_id() returns nvarchar(40)
as
begin
    return (select convert(nvarchar(40), min(v.installed_at), 126) from wf.schema_version as v);
end;
GO

-- Refuses a runtime older than @version. Errors: 20006.
create or alter procedure wf.wf_require_runtime @version int
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_version int = wf.wf_runtime_version();
    declare @v_message nvarchar(2000) = concat(N'this script needs runtime version ', @version,
        N', the database has ', @v_version);

    if @version is null or @v_version is null or @v_version < @version
        throw 70006, @v_message, 1;
end;
GO

-- Refuses to move the clock outside of a test database (R22): one that was installed as such has the
-- row `test_database`. Errors: 20008.
if object_id(N'wf.tr_wf_setting_guard', N'TR') is not null drop trigger wf.tr_wf_setting_guard;
GO
create trigger wf.tr_wf_setting_guard on wf.wf_setting after insert, update
as
begin
    set nocount on;
    if exists (select 1 from inserted as i where i.name = N'now')
       and not exists (select 1 from wf.wf_setting as s where s.name = N'test_database')
        throw 70008, N'the clock moves in a test database only', 1;
end;
GO
