-- How long events are kept, and the removal of those whose time is over (R33).
-- Twin: pg/wf_event_retention.sql
--
-- An event is kept for waits that open after it came, for as long as its type says. After that no
-- wait takes it, whether it has been removed or not, so that what an instance does never depends on
-- when somebody purges.

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

-- How long events of a type are kept, in milliseconds: 30 days when nobody has said otherwise.
create or alter function wf.wf_event_keep_for(@event_type nvarchar(200)) returns bigint
as
begin
    return coalesce((select t.keep_for_ms from wf.event_type as t
                      where t.event_type = @event_type
                        and datalength(t.event_type) = datalength(@event_type)), 2592000000);
end;
GO

-- Says for how long events of a type are kept; 0: only waits that are open when one comes take it.
-- Errors: 20004 an argument is missing or out of bounds.
create or alter procedure wf.wf_repo_upsert_event_type
    @event_type nvarchar(4000),
    @keep_for_seconds bigint
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;

    exec wf.wf_check_key @what = N'event_type', @value = @event_type;
    if @keep_for_seconds is null or @keep_for_seconds not between 0 and 3153600000
        throw 70004, N'keep_for_seconds must be between 0 and 3153600000', 1;
    update wf.event_type set keep_for_ms = @keep_for_seconds * 1000
     where event_type = @event_type and datalength(event_type) = datalength(@event_type);
    if @@rowcount = 0
        insert into wf.event_type (event_type, keep_for_ms)
        values (@event_type, @keep_for_seconds * 1000);
end;
GO

-- Removes up to @limit events, with their deliveries, that are older than their type is kept for and
-- that no instance which is still there has taken; the oldest first. Call it until it answers 0. An
-- event that was removed is forgotten: the same source and idempotency key are a new event then.
-- Locks: the events; that none was taken meanwhile is asked again as each goes.
-- Errors: 20004 limit is out of bounds.
create or alter procedure wf.sp_purge_events
    @limit int = 1000
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_owns_transaction bit = case when @@trancount = 0 then 1 else 0 end;
    declare @v_now datetime2(3) = wf.wf_now();
    declare @v_count int;
    declare @v_due table (event_id bigint not null primary key);
    declare @v_gone table (event_id bigint not null primary key);

    if @limit is null or @limit not between 1 and 10000
        throw 70004, N'limit must be between 1 and 10000', 1;
    begin try
        if @v_owns_transaction = 1 begin transaction;
        insert into @v_due (event_id)
        select top (@limit) v.event_id
          from wf.event as v with (readpast)
         where datediff_big(millisecond, v.ingested_at, @v_now)
               >= wf.wf_event_keep_for(v.event_type)
           and not exists (
               select 1
                 from wf.event_delivery as d
                 join wf.workflow_instance as i
                   on i.workflow_instance_id = d.workflow_instance_id
                where d.event_id = v.event_id and d.outcome = N'applied')
         order by v.ingested_at;
        delete v
        output deleted.event_id into @v_gone (event_id)
          from wf.event as v
         where v.event_id in (select q.event_id from @v_due as q)
           and not exists (
               select 1
                 from wf.event_delivery as d
                 join wf.workflow_instance as i
                   on i.workflow_instance_id = d.workflow_instance_id
                where d.event_id = v.event_id and d.outcome = N'applied');
        select @v_count = count(*) from @v_gone as g;
        delete d
          from wf.event_delivery as d
         where d.event_id in (select g.event_id from @v_gone as g);
        if @v_owns_transaction = 1 commit transaction;
    end try
    begin catch
        if @v_owns_transaction = 1 and xact_state() <> 0 rollback transaction;
        throw;
    end catch;
    select @v_count as purged_count;
end;
GO
