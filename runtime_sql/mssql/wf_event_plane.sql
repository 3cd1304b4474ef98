-- Events and the WAIT_EVENTs that take them. Twin: pg/wf_event_plane.sql
--
-- No lost wake-up (R2): a wait and an event that match both take their route before they look for the
-- other; whoever comes second sees the first. The route of a type and a key is a row of wf.event_route,
-- which both update. The route of waits without `correlate` is the application lock 'wf.e.<type>':
-- such a wait takes it exclusive, every event of the type shared.

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

-- WAIT_EVENT: evaluates `correlate` and opens the wait. It meets its events at the end of the call
-- (wf_wait_register). Reads #entry, adds to #step.
create or alter procedure wf.wf_wait_activate
as
begin
    set nocount, xact_abort on;
    declare @v_ordinal int = -2147483648;
    declare @v_id bigint;
    declare @v_instance_id bigint;
    declare @v_attributes_json nvarchar(max);
    declare @v_program_json nvarchar(max);
    declare @v_value_json nvarchar(max);
    declare @v_key nvarchar(max);
    declare @v_never bit;
    declare @v_error_code int;
    declare @v_error_message nvarchar(max);

    while 1 = 1
    begin
        set @v_id = null;
        select top (1) @v_ordinal = a.ordinal, @v_id = a.node_execution_id,
               @v_instance_id = a.workflow_instance_id, @v_attributes_json = n.attributes_json
          from #entry as a
          join wf.node_execution as e on e.node_execution_id = a.node_execution_id
          join wf.workflow_node as n on n.node_id = e.node_id
         where a.ordinal > @v_ordinal
         order by a.ordinal;
        if @v_id is null return;
        set @v_program_json = json_query(@v_attributes_json, N'$.correlate');
        set @v_key = null;
        set @v_never = 0;
        set @v_error_code = null;
        if @v_program_json is not null
        begin
            exec wf.wf_eval_expression @program = @v_program_json, @execution_id = @v_id,
                @value_json = @v_value_json output,
                @error_code = @v_error_code output, @error_message = @v_error_message output;
            if @v_error_code is null
               and wf.wf_type_word(@v_value_json) not in (N'string', N'integer', N'null')
            begin
                set @v_error_code = 10010;
                set @v_error_message = concat(N'correlate takes a string or an integer, not ',
                                              wf.wf_type_word(@v_value_json));
            end;
            if @v_error_code is null and wf.wf_json_type(@v_value_json) <> N'null'
                set @v_key = wf.wf_scalar_text(@v_value_json);
            -- A key that no event can have (R7) would not fit the column, or `=` would take it for
            -- another one.
            if @v_key is null or len(@v_key + N'.') - 1 not between 1 and 200
               or right(@v_key, 1) = N' '
                select @v_never = 1, @v_key = null;
        end;
        if @v_error_code is not null
            exec wf.wf_fail_step @ordinal = @v_ordinal, @node_execution_id = @v_id,
                @workflow_instance_id = @v_instance_id, @engine_error_code = @v_error_code,
                @text = @v_error_message;
        else
            insert into wf.event_wait (node_execution_id, workflow_instance_id, event_type,
                                       correlation_key, matches_nothing)
            values (@v_id, @v_instance_id, json_value(@v_attributes_json, N'$.event_type'),
                    @v_key, @v_never);
    end;
end;
GO

-- Lets the waits of #waits, which this call opened, meet the events that came before them: takes their
-- routes in key order, then gives each the oldest event since the instance's start that the instance
-- has not consumed (S8.4). Adds the entries of waits that completed by it to #agenda.
-- An instance held shared that has such an event is named in #call.restart_instance_id: to consume it
-- is for the exclusive gate.
create or alter procedure wf.wf_wait_register
as
begin
    set nocount, xact_abort on;
    declare @v_wait_id bigint = 0;
    declare @v_instance_id bigint;
    declare @v_version_id bigint;
    declare @v_after_id bigint;
    declare @v_event_type nvarchar(200);
    declare @v_key nvarchar(200);
    declare @v_event_id bigint;
    declare @v_ordinal int = 0;

    exec wf.wf_take_wait_routes;
    while 1 = 1
    begin
        set @v_event_type = null;
        select top (1) @v_wait_id = w.node_execution_id, @v_instance_id = w.workflow_instance_id,
               @v_version_id = i.workflow_version_id, @v_after_id = i.events_after_id,
               @v_event_type = w.event_type, @v_key = w.correlation_key
          from #waits as a
          join wf.event_wait as w on w.node_execution_id = a.node_execution_id
          join wf.workflow_instance as i on i.workflow_instance_id = w.workflow_instance_id
         where w.matches_nothing = 0 and w.node_execution_id > @v_wait_id
         order by w.node_execution_id;
        if @v_event_type is null return;
        set @v_event_id = null;
        select top (1) @v_event_id = v.event_id
          from wf.event as v
         where v.event_type = @v_event_type
           and (@v_key is null or v.correlation_key = @v_key)
           and v.event_id > @v_after_id
           and coalesce(v.workflow_instance_id, @v_instance_id) = @v_instance_id
           and datediff_big(millisecond, v.ingested_at, (select c.now from #call as c))
               < wf.wf_event_keep_for(v.event_type)
           and wf.wf_event_fits_version(@v_version_id, v.event_type, v.payload_json) = 1
           and not exists (select 1 from wf.event_delivery as d
                            where d.workflow_instance_id = @v_instance_id
                              and d.event_id = v.event_id and d.outcome = N'applied')
         order by v.event_id;
        if @v_event_id is null continue;
        if not exists (select 1 from #exclusive as x
                        where x.workflow_instance_id = @v_instance_id)
        begin
            update #call set restart_instance_id = @v_instance_id;
            return;
        end;
        set @v_ordinal = @v_ordinal + 1;
        exec wf.wf_wait_complete @node_execution_id = @v_wait_id, @event_id = @v_event_id,
            @ordinal = @v_ordinal;
    end;
end;
GO

-- Takes the routes of the waits of #waits, in the order of types and keys.
create or alter procedure wf.wf_take_wait_routes
as
begin
    set nocount, xact_abort on;
    declare @v_route table (
        seq int identity(1, 1) not null primary key,
        event_type nvarchar(200) collate Latin1_General_100_BIN2 not null,
        correlation_key nvarchar(200) collate Latin1_General_100_BIN2 not null
    );
    declare @v_seq int = 0;
    declare @v_event_type nvarchar(200);
    declare @v_key nvarchar(200);

    insert into @v_route (event_type, correlation_key)
    select distinct w.event_type, coalesce(w.correlation_key, N'') as correlation_key
      from #waits as a
      join wf.event_wait as w on w.node_execution_id = a.node_execution_id
     where w.matches_nothing = 0
     order by w.event_type, correlation_key;
    while 1 = 1
    begin
        set @v_event_type = null;
        select top (1) @v_seq = r.seq, @v_event_type = r.event_type, @v_key = r.correlation_key
          from @v_route as r
         where r.seq > @v_seq
         order by r.seq;
        if @v_event_type is null return;
        if @v_key = N''
            exec wf.wf_take_open_route @event_type = @v_event_type, @mode = N'Exclusive';
        else
            exec wf.wf_touch_route @event_type = @v_event_type, @correlation_key = @v_key;
    end;
end;
GO

-- Takes the route of waits without `correlate`. Errors: 20009 it cannot be had in time.
create or alter procedure wf.wf_take_open_route
    @event_type nvarchar(200),
    @mode nvarchar(20)
as
begin
    set nocount, xact_abort on;
    declare @v_resource nvarchar(255) = concat(N'wf.e.', @event_type);
    declare @v_result int;

    exec @v_result = sys.sp_getapplock @Resource = @v_resource, @LockMode = @mode,
        @LockOwner = N'Transaction', @LockTimeout = 60000;
    if @v_result < 0 throw 70009, N'events of this type are busy; try again', 1;
end;
GO

-- Takes the route of a type and a key by updating its row, which is made when there is none. A row
-- that another call makes at the same moment is no failure, so nothing here may doom the transaction.
create or alter procedure wf.wf_touch_route
    @event_type nvarchar(200),
    @correlation_key nvarchar(200)
as
begin
    set nocount on;
    declare @v_is_done bit = 0;

    while @v_is_done = 0
    begin
        update wf.event_route set touched = touched + 1
         where event_type = @event_type and correlation_key = @correlation_key;
        if @@rowcount > 0 break;
        set xact_abort off;
        begin try
            insert into wf.event_route (event_type, correlation_key)
            values (@event_type, @correlation_key);
            set @v_is_done = 1;
        end try
        begin catch
            if error_number() not in (2601, 2627) throw;
        end catch;
        set xact_abort on;
    end;
    set xact_abort on;
end;
GO

-- Takes the routes of an event: that of waits without `correlate` shared, then its own key's.
create or alter procedure wf.wf_take_route
    @event_type nvarchar(200),
    @correlation_key nvarchar(200)
as
begin
    set nocount, xact_abort on;

    exec wf.wf_take_open_route @event_type = @event_type, @mode = N'Shared';
    if @correlation_key is not null
        exec wf.wf_touch_route @event_type = @event_type, @correlation_key = @correlation_key;
end;
GO

-- What programs see of an event.
create or alter function wf.wf_event_document(@event_id bigint) returns nvarchar(max)
as
begin
    return (
        select concat(
                   N'{"id":', v.event_id,
                   N',"type":', wf.wf_json_quote(v.event_type),
                   N',"source":', wf.wf_json_quote(v.source),
                   N',"correlation_key":',
                   coalesce(wf.wf_json_quote(v.correlation_key), N'null'),
                   N',"payload":', v.payload_json,
                   N',"occurred_at":"', convert(nvarchar(19), v.occurred_at, 126), N'.',
                   right(concat(N'000', datepart(millisecond, v.occurred_at)), 3), N'Z"}')
          from wf.event as v
         where v.event_id = @event_id);
end;
GO

-- Completes one wait with one event: result code 0, the payload as output, ctx.event set, its
-- `set`s run, a delivery row. Needs the exclusive gate. Adds the entry, S, J or F, to #agenda. Reads
-- #call (now).
create or alter procedure wf.wf_wait_complete
    @node_execution_id bigint,
    @event_id bigint,
    @ordinal int
as
begin
    set nocount, xact_abort on;
    declare @v_now datetime2(3) = (select top (1) c.now from #call as c);
    declare @v_event_json nvarchar(max) = wf.wf_event_document(@event_id);
    declare @v_payload_json nvarchar(max);
    declare @v_instance_id bigint;
    declare @v_def_id bigint;
    declare @v_kind nchar(1);
    declare @v_error_code int;
    declare @v_error_message nvarchar(max);

    select @v_payload_json = v.payload_json from wf.event as v where v.event_id = @event_id;
    select @v_instance_id = e.workflow_instance_id, @v_def_id = i.workflow_def_id,
           @v_kind = case when n.success_may_close = 1 then N'J' else N'S' end
      from wf.node_execution as e
      join wf.workflow_node as n on n.node_id = e.node_id
      join wf.workflow_instance as i on i.workflow_instance_id = e.workflow_instance_id
     where e.node_execution_id = @node_execution_id;
    delete from wf.event_wait where node_execution_id = @node_execution_id;
    delete from wf.timer where node_execution_id = @node_execution_id;
    update wf.node_execution
       set status = N'SUCCEEDED', result_code = 0, output_json = @v_payload_json,
           ended_at = @v_now
     where node_execution_id = @node_execution_id;
    update wf.execution_context set event_json = @v_event_json
     where workflow_instance_id = @v_instance_id;
    exec wf.wf_add_delivery @event_id = @event_id, @workflow_def_id = @v_def_id,
        @workflow_instance_id = @v_instance_id, @node_execution_id = @node_execution_id,
        @outcome = N'applied', @reason = null;
    exec wf.wf_apply_output_bindings @node_execution_id = @node_execution_id,
        @output_json = @v_payload_json, @result_code = 0, @event_json = @v_event_json,
        @error_code = @v_error_code output, @error_message = @v_error_message output;
    if @v_error_code is not null
    begin
        exec wf.wf_fail_completed @node_execution_id = @node_execution_id,
            @engine_error_code = @v_error_code, @text = @v_error_message;
        set @v_kind = N'F';
    end;
    insert into #agenda (ordinal, node_execution_id, workflow_instance_id, kind)
    values (@ordinal, @node_execution_id, @v_instance_id, @v_kind);
end;
GO

-- Whether a payload has every field that a filter names, with an equal value (S3.1); a field that is
-- not there is unequal. A filter is an array of {path, value}.
create or alter function wf.wf_filter_fits(
    @filter_json nvarchar(max),
    @payload_json nvarchar(max)
) returns bit
as
begin
    if exists (
        select 1 from openjson(@filter_json) as f
         where wf.wf_is_same_json(wf.wf_json_at(@payload_json, wf.wf_json_member(f.value, N'path')),
                                  wf.wf_json_member(f.value, N'value')) = 0)
        return 0;
    return 1;
end;
GO

-- The value at a path, a JSON array of keys and indexes, as JSON text; null: not there.
create or alter function wf.wf_json_at(@value_json nvarchar(max), @path_json nvarchar(max))
returns nvarchar(max)
as
begin
    declare @v_value_json nvarchar(max) = @value_json;
    declare @v_index int = 0;
    declare @v_step nvarchar(max);
    declare @v_type nvarchar(7);

    while @v_value_json is not null
    begin
        set @v_step = null;
        select @v_step = p.value from openjson(@path_json) as p
         where p.[key] = cast(@v_index as nvarchar(20));
        if @v_step is null return @v_value_json;
        set @v_type = wf.wf_json_type(@v_value_json);
        set @v_value_json = case
            when @v_type = N'object' then wf.wf_json_member(@v_value_json, @v_step)
            when @v_type = N'array' and wf.wf_is_digits(@v_step, 9) = 1
            then wf.wf_json_item(@v_value_json, cast(@v_step as int)) end;
        set @v_index = @v_index + 1;
    end;
    return null;
end;
GO

-- Whether the waits of a version take an event: one of its signal subscriptions of the type fits, or
-- it has none (R18).
create or alter function wf.wf_event_fits_version(
    @workflow_version_id bigint,
    @event_type nvarchar(200),
    @payload_json nvarchar(max)
) returns bit
as
begin
    if not exists (select 1 from wf.event_subscription as s
                    where s.workflow_version_id = @workflow_version_id
                      and s.event_type = @event_type and s.enabled = 1
                      and s.mode in (N'signal_wait', N'start_or_signal'))
        return 1;
    if exists (select 1 from wf.event_subscription as s
                where s.workflow_version_id = @workflow_version_id
                  and s.event_type = @event_type and s.enabled = 1
                  and s.mode in (N'signal_wait', N'start_or_signal')
                  and wf.wf_filter_fits(s.filter_json, @payload_json) = 1)
        return 1;
    return 0;
end;
GO

-- Adds to #wait the open waits that an event matches, one per instance: the one that was activated
-- first (R33). The caller makes #wait (node_execution_id bigint, workflow_instance_id bigint).
create or alter procedure wf.wf_event_waits
    @event_type nvarchar(200),
    @correlation_key nvarchar(200),
    @payload_json nvarchar(max),
    @workflow_instance_id bigint
as
begin
    set nocount, xact_abort on;

    insert into #wait (node_execution_id, workflow_instance_id)
    select min(w.node_execution_id), w.workflow_instance_id
      from wf.event_wait as w
      join wf.workflow_instance as i on i.workflow_instance_id = w.workflow_instance_id
     where w.event_type = @event_type
       and w.matches_nothing = 0
       and (w.correlation_key is null or w.correlation_key = @correlation_key)
       and (@workflow_instance_id is null or w.workflow_instance_id = @workflow_instance_id)
       and wf.wf_event_fits_version(i.workflow_version_id, @event_type, @payload_json) = 1
     group by w.workflow_instance_id;
end;
GO

-- Takes the gates of #gate and applies what is due in those of #exclusive: a time-out that is due wins
-- over an event (R21). Fills #call, and #timed_out (node_execution_id) with the waits that the event
-- would have completed but for a time-out. #call.restart_instance_id as wf_engine_run.
create or alter procedure wf.wf_event_gates
    @event_type nvarchar(200),
    @correlation_key nvarchar(200),
    @payload_json nvarchar(max),
    @workflow_instance_id bigint
as
begin
    set nocount, xact_abort on;

    exec wf.wf_take_gates;
    insert into #call (now, first_new_id, work_left, work_limit, has_closed)
    values (wf.wf_now(), 0, 0, 0, 0);
    delete from #wait;
    exec wf.wf_event_waits @event_type = @event_type, @correlation_key = @correlation_key,
        @payload_json = @payload_json, @workflow_instance_id = @workflow_instance_id;
    insert into #timed_out (node_execution_id)
    select w.node_execution_id
      from #wait as w
      join #exclusive as x on x.workflow_instance_id = w.workflow_instance_id
      join wf.workflow_instance as i on i.workflow_instance_id = w.workflow_instance_id
     where i.status = N'RUNNING';
    delete from #wait;
    exec wf.wf_apply_all_due;
    delete from #timed_out
     where node_execution_id in (select w.node_execution_id from wf.event_wait as w);
end;
GO

-- Writes down that an event came too late for the waits of #timed_out.
create or alter procedure wf.wf_add_timeouts
    @event_id bigint
as
begin
    set nocount, xact_abort on;
    declare @v_id bigint = 0;
    declare @v_next_id bigint;
    declare @v_def_id bigint;
    declare @v_instance_id bigint;

    while 1 = 1
    begin
        select @v_next_id = min(t.node_execution_id) from #timed_out as t
         where t.node_execution_id > @v_id;
        if @v_next_id is null return;
        set @v_id = @v_next_id;
        select @v_def_id = i.workflow_def_id, @v_instance_id = i.workflow_instance_id
          from wf.node_execution as e
          join wf.workflow_instance as i on i.workflow_instance_id = e.workflow_instance_id
         where e.node_execution_id = @v_id;
        exec wf.wf_add_delivery @event_id = @event_id, @workflow_def_id = @v_def_id,
            @workflow_instance_id = @v_instance_id, @node_execution_id = @v_id,
            @outcome = N'ignored', @reason = N'timeout';
    end;
end;
GO

-- Completes the waits of #wait with an event, in the order of their instances, and runs what follows.
-- The first whose instance is not in #exclusive is named in #call.restart_instance_id instead.
create or alter procedure wf.wf_complete_waits
    @event_id bigint
as
begin
    set nocount, xact_abort on;
    declare @v_instance_id bigint = 0;
    declare @v_wait_id bigint;
    declare @v_ordinal int = 0;

    update #call set restart_instance_id = (
        select min(w.workflow_instance_id) from #wait as w
         where w.workflow_instance_id not in (select x.workflow_instance_id from #exclusive as x));
    if exists (select 1 from #call as c where c.restart_instance_id is not null) return;
    while 1 = 1
    begin
        set @v_wait_id = null;
        select top (1) @v_wait_id = w.node_execution_id, @v_instance_id = w.workflow_instance_id
          from #wait as w
         where w.workflow_instance_id > @v_instance_id
         order by w.workflow_instance_id;
        if @v_wait_id is null break;
        set @v_ordinal = @v_ordinal + 1;
        exec wf.wf_wait_complete @node_execution_id = @v_wait_id, @event_id = @event_id,
            @ordinal = @v_ordinal;
    end;
    if @v_ordinal > 0 exec wf.wf_engine_run;
end;
GO

-- One outcome of an event. Reads #call (now).
create or alter procedure wf.wf_add_delivery
    @event_id bigint,
    @workflow_def_id bigint,
    @workflow_instance_id bigint,
    @node_execution_id bigint,
    @outcome nvarchar(20),
    @reason nvarchar(max)
as
begin
    set nocount, xact_abort on;

    insert into wf.event_delivery (event_id, delivery_no, workflow_def_id, workflow_instance_id,
                                   node_execution_id, outcome, reason, delivered_at)
    select @event_id, 1 + (select count(*) from wf.event_delivery as d
                            where d.event_id = @event_id),
           @workflow_def_id, @workflow_instance_id, @node_execution_id, @outcome, @reason, c.now
      from #call as c;
end;
GO

-- What an event does beyond completing waits, for each subscription of an active version that it
-- fits: `start_instance` starts an instance, `start_or_signal` does so when nothing of that workflow
-- was waiting, and a signal that met no wait is ignored (S8.2). An instance whose input does not fit
-- is not started, and the delivery says why (R19).
create or alter procedure wf.wf_deliver_to_subscriptions
    @event_id bigint
as
begin
    set nocount, xact_abort on;
    declare @v_row table (
        seq int identity(1, 1) not null primary key,
        mode nvarchar(20) collate Latin1_General_100_BIN2 not null,
        inputs_json nvarchar(max) collate Latin1_General_100_BIN2 not null,
        workflow_def_id bigint not null,
        workflow_version_id bigint not null
    );
    declare @v_seq int = 0;
    declare @v_mode nvarchar(20);
    declare @v_inputs_json nvarchar(max);
    declare @v_def_id bigint;
    declare @v_version_id bigint;
    declare @v_is_applied bit;

    insert into @v_row (mode, inputs_json, workflow_def_id, workflow_version_id)
    select s.mode, s.inputs_json, v.workflow_def_id, v.workflow_version_id
      from wf.event as e
      join wf.event_subscription as s on s.event_type = e.event_type
      join wf.workflow_version as v on v.workflow_version_id = s.workflow_version_id
     where e.event_id = @event_id and s.enabled = 1 and v.is_active = 1
       and wf.wf_filter_fits(s.filter_json, e.payload_json) = 1
     order by v.workflow_def_id, s.subscription_order;
    while 1 = 1
    begin
        set @v_mode = null;
        select top (1) @v_seq = r.seq, @v_mode = r.mode, @v_inputs_json = r.inputs_json,
               @v_def_id = r.workflow_def_id, @v_version_id = r.workflow_version_id
          from @v_row as r
         where r.seq > @v_seq
         order by r.seq;
        if @v_mode is null return;
        -- One that is being deleted is waited for, and then is none (wf_delete_definition.sql).
        if not exists (select 1 from wf.workflow_def as d with (holdlock)
                        where d.workflow_def_id = @v_def_id) continue;
        set @v_is_applied = case when exists (
            select 1 from wf.event_delivery as d
             where d.event_id = @event_id and d.workflow_def_id = @v_def_id
               and d.outcome = N'applied') then 1 else 0 end;
        if @v_mode = N'start_instance' or @v_mode = N'start_or_signal' and @v_is_applied = 0
            exec wf.wf_start_by_event @event_id = @event_id, @workflow_def_id = @v_def_id,
                @workflow_version_id = @v_version_id, @inputs_json = @v_inputs_json;
        else if not exists (
            select 1 from wf.event_delivery as d
             where d.event_id = @event_id and d.workflow_def_id = @v_def_id)
            exec wf.wf_add_delivery @event_id = @event_id, @workflow_def_id = @v_def_id,
                @workflow_instance_id = null, @node_execution_id = null,
                @outcome = N'ignored', @reason = N'nothing was waiting';
    end;
end;
GO

-- Starts an instance by an event, which it has consumed (R33). The engine's own refusals (10015, or a
-- variable that cannot be computed) are an outcome of the delivery.
create or alter procedure wf.wf_start_by_event
    @event_id bigint,
    @workflow_def_id bigint,
    @workflow_version_id bigint,
    @inputs_json nvarchar(max)
as
begin
    set nocount, xact_abort on;
    declare @v_event_json nvarchar(max) = wf.wf_event_document(@event_id);
    declare @v_context_json nvarchar(max);
    declare @v_id bigint;
    declare @v_error_code int;
    declare @v_error_message nvarchar(max);

    exec wf.wf_build_event_context @inputs_json = @inputs_json, @event_json = @v_event_json,
        @context_json = @v_context_json output, @error_message = @v_error_message output;
    if @v_error_message is null
    begin
        save transaction wf_start;
        insert into wf.workflow_instance (workflow_def_id, workflow_version_id, spec_format,
                                          created_at)
        select @workflow_def_id, v.workflow_version_id, v.spec_format, c.now
          from wf.workflow_version as v
         cross join #call as c
         where v.workflow_version_id = @workflow_version_id;
        set @v_id = scope_identity();
        insert into wf.execution_context (workflow_instance_id, context_json, event_json)
        values (@v_id, @v_context_json, @v_event_json);
        exec wf.wf_add_delivery @event_id = @event_id, @workflow_def_id = @workflow_def_id,
            @workflow_instance_id = @v_id, @node_execution_id = null, @outcome = N'applied',
            @reason = null;
        exec wf.wf_take_gate @workflow_instance_id = @v_id, @is_exclusive = 1;
        exec wf.wf_start_instance @workflow_instance_id = @v_id,
            @error_code = @v_error_code output, @error_message = @v_error_message output;
        if @v_error_code is null return;
        rollback transaction wf_start;
    end;
    exec wf.wf_add_delivery @event_id = @event_id, @workflow_def_id = @workflow_def_id,
        @workflow_instance_id = null, @node_execution_id = null, @outcome = N'ignored',
        @reason = @v_error_message;
end;
GO

-- The context of an instance that an event starts, or why there is none. What the event does not have
-- is left to the input's default, or to the check of inputs.
create or alter procedure wf.wf_build_event_context
    @inputs_json nvarchar(max),
    @event_json nvarchar(max),
    @context_json nvarchar(max) output,
    @error_message nvarchar(max) output
as
begin
    set nocount, xact_abort on;
    declare @v_index int = 0;
    declare @v_input_json nvarchar(max);
    declare @v_name_json nvarchar(max);
    declare @v_program_json nvarchar(max);
    declare @v_value_json nvarchar(max);
    declare @v_error_code int;
    declare @v_members nvarchar(max) = N'';

    set @error_message = null;
    while 1 = 1
    begin
        set @v_input_json = null;
        select @v_input_json = i.value from openjson(@inputs_json) as i
         where i.[key] = cast(@v_index as nvarchar(20));
        if @v_input_json is null break;
        set @v_index = @v_index + 1;
        set @v_name_json = wf.wf_json_member(@v_input_json, N'name');
        set @v_program_json = wf.wf_json_member(@v_input_json, N'program');
        exec wf.wf_eval_expression @program = @v_program_json, @execution_id = 0,
            @event_json = @event_json, @value_json = @v_value_json output,
            @error_code = @v_error_code output, @error_message = @error_message output;
        if @v_error_code = 10001
        begin
            set @error_message = null;
            continue;
        end;
        if @v_error_code is not null
        begin
            set @error_message = concat(N'input ', wf.wf_json_string(@v_name_json), N': ',
                                        @error_message);
            return;
        end;
        set @v_members = concat(@v_members, case when @v_members <> N'' then N',' end,
                                @v_name_json, N':', @v_value_json);
    end;
    set @context_json = concat(N'{', @v_members, N'}');
end;
GO

-- Completes the waits of one instance, or of all, that an event of this type and key would: an event
-- without a source. Answers how many. Locks and errors as sp_ingest_event.
create or alter procedure wf.sp_signal_wait
    @event_type nvarchar(4000),
    @correlation_key nvarchar(4000),
    @payload_json nvarchar(max) = null,
    @workflow_instance_id bigint = null
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_owns_transaction bit = case when @@trancount = 0 then 1 else 0 end;
    declare @v_payload_json nvarchar(max) = coalesce(@payload_json, N'{}');
    declare @v_status nvarchar(20);
    declare @v_event_id bigint;
    declare @v_count int;
    create table #call (now datetime2(3) not null, first_new_id bigint not null, work_left bigint not null, work_limit bigint not null, has_closed bit not null, restart_instance_id bigint null);
    create table #exclusive (workflow_instance_id bigint not null primary key);
    create table #agenda (ordinal int not null, node_execution_id bigint not null, workflow_instance_id bigint not null, kind nchar(1) not null);   -- the level in work
    create table #next (seq bigint identity(1, 1) not null, ordinal int not null, node_execution_id bigint not null, workflow_instance_id bigint not null, kind nchar(1) not null);     -- what it leads to
    create table #held (ordinal int not null, node_execution_id bigint not null, workflow_instance_id bigint not null);
    create table #waits (seq bigint identity(1, 1) not null, node_execution_id bigint not null, workflow_instance_id bigint not null);
    create table #entry (ordinal int not null, node_execution_id bigint not null, workflow_instance_id bigint not null, kind nchar(1) not null);    -- the entries a handler takes
    create table #step (seq bigint identity(1, 1) not null, ordinal int not null, rank int not null, step nvarchar(7) not null, node_execution_id bigint not null, workflow_instance_id bigint not null, node_id bigint null, iteration_no int null, item_json nvarchar(max) null, result_code int null, engine_error_code int null, message nvarchar(max) null, error_execution_id bigint null);
    create table #gate (workflow_instance_id bigint not null primary key);
    create table #wait (node_execution_id bigint not null, workflow_instance_id bigint not null);
    create table #timed_out (node_execution_id bigint not null);

    exec wf.wf_check_key @what = N'event_type', @value = @event_type;
    if @correlation_key is not null
        exec wf.wf_check_key @what = N'correlation_key', @value = @correlation_key;
    exec wf.wf_check_json @what = N'payload', @value_json = @payload_json;
    begin try
        if @v_owns_transaction = 1 begin transaction;
        if @workflow_instance_id is not null
            exec wf.wf_lock_instance @workflow_instance_id = @workflow_instance_id,
                @status = @v_status output;
        if @v_status in (N'SUCCEEDED', N'FAILED', N'CANCELLED')
        begin
            if @v_owns_transaction = 1 commit transaction;
            select 0 as applied_count;
            return;
        end;
        exec wf.wf_event_waits @event_type = @event_type, @correlation_key = @correlation_key,
            @payload_json = @v_payload_json, @workflow_instance_id = @workflow_instance_id;
        insert into #gate (workflow_instance_id) select w.workflow_instance_id from #wait as w;
        insert into #exclusive (workflow_instance_id)
        select w.workflow_instance_id from #wait as w;
        exec wf.wf_event_gates @event_type = @event_type, @correlation_key = @correlation_key,
            @payload_json = @v_payload_json, @workflow_instance_id = @workflow_instance_id;
        exec wf.wf_take_route @event_type = @event_type, @correlation_key = @correlation_key;
        exec wf.wf_insert_event @event_type = @event_type, @source = N'wf.sp_signal_wait',
            @idempotency_key = null, @payload_json = @v_payload_json,
            @correlation_key = @correlation_key, @occurred_at = null,
            @workflow_instance_id = @workflow_instance_id, @event_id = @v_event_id output;
        exec wf.wf_add_timeouts @event_id = @v_event_id;
        -- What waits now, of the instances whose gates were taken.
        delete from #wait;
        exec wf.wf_event_waits @event_type = @event_type, @correlation_key = @correlation_key,
            @payload_json = @v_payload_json, @workflow_instance_id = @workflow_instance_id;
        delete from #wait
         where workflow_instance_id not in (select x.workflow_instance_id from #exclusive as x);
        select @v_count = count(*) from #wait as w;
        exec wf.wf_complete_waits @event_id = @v_event_id;
        if @v_owns_transaction = 1 commit transaction;
    end try
    begin catch
        if @v_owns_transaction = 1 and xact_state() <> 0 rollback transaction;
        throw;
    end catch;
    select @v_count as applied_count;
end;
GO

-- Takes in an event and completes the waits that match it, one per instance. The second of two with
-- equal source and idempotency_key is a duplicate and has no effect, also when both come at once.
-- Answers one row: event_id, duplicate, applied_count, ignored_count, and differs: of a duplicate,
-- whether the first one had another type, correlation key or payload.
-- Locks: gates of the candidate instances exclusive, ascending; the routes; the event.
-- Errors: 20004 an argument is missing or out of bounds; 20005 payload over 16 MB; 20009 the
-- candidates changed five times meanwhile, try again.
create or alter procedure wf.sp_ingest_event
    @event_type nvarchar(4000),
    @source nvarchar(4000),
    @idempotency_key nvarchar(4000),
    @payload_json nvarchar(max) = null,
    @correlation_key nvarchar(4000) = null,
    @occurred_at_utc datetime2(3) = null
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_event_id bigint;
    declare @v_is_duplicate bit;
    declare @v_applied int;
    declare @v_ignored int;
    declare @v_differs bit;

    exec wf.wf_ingest_event @event_type = @event_type, @source = @source,
        @idempotency_key = @idempotency_key, @payload_json = @payload_json,
        @correlation_key = @correlation_key, @occurred_at_utc = @occurred_at_utc,
        @event_id = @v_event_id output, @duplicate = @v_is_duplicate output,
        @applied_count = @v_applied output, @ignored_count = @v_ignored output,
        @differs = @v_differs output;
    select @v_event_id as event_id, @v_is_duplicate as duplicate, @v_applied as applied_count,
           @v_ignored as ignored_count, @v_differs as differs;
end;
GO

-- The work of sp_ingest_event.
create or alter procedure wf.wf_ingest_event
    @event_type nvarchar(4000),
    @source nvarchar(4000),
    @idempotency_key nvarchar(4000),
    @payload_json nvarchar(max),
    @correlation_key nvarchar(4000),
    @occurred_at_utc datetime2(3),
    @event_id bigint output,
    @duplicate bit output,
    @applied_count int output,
    @ignored_count int output,
    @differs bit = null output
as
begin
    set nocount, xact_abort on;
    set transaction isolation level read committed;
    declare @v_owns_transaction bit = case when @@trancount = 0 then 1 else 0 end;
    declare @v_payload_json nvarchar(max) = coalesce(@payload_json, N'{}');
    -- A table variable keeps its rows when the attempt is rolled back.
    declare @v_gate table (workflow_instance_id bigint not null primary key);
    declare @v_try int = 1;
    declare @v_restart_id bigint;
    create table #call (now datetime2(3) not null, first_new_id bigint not null, work_left bigint not null, work_limit bigint not null, has_closed bit not null, restart_instance_id bigint null);
    create table #exclusive (workflow_instance_id bigint not null primary key);
    create table #agenda (ordinal int not null, node_execution_id bigint not null, workflow_instance_id bigint not null, kind nchar(1) not null);   -- the level in work
    create table #next (seq bigint identity(1, 1) not null, ordinal int not null, node_execution_id bigint not null, workflow_instance_id bigint not null, kind nchar(1) not null);     -- what it leads to
    create table #held (ordinal int not null, node_execution_id bigint not null, workflow_instance_id bigint not null);
    create table #waits (seq bigint identity(1, 1) not null, node_execution_id bigint not null, workflow_instance_id bigint not null);
    create table #entry (ordinal int not null, node_execution_id bigint not null, workflow_instance_id bigint not null, kind nchar(1) not null);    -- the entries a handler takes
    create table #step (seq bigint identity(1, 1) not null, ordinal int not null, rank int not null, step nvarchar(7) not null, node_execution_id bigint not null, workflow_instance_id bigint not null, node_id bigint null, iteration_no int null, item_json nvarchar(max) null, result_code int null, engine_error_code int null, message nvarchar(max) null, error_execution_id bigint null);
    create table #gate (workflow_instance_id bigint not null primary key);
    create table #wait (node_execution_id bigint not null, workflow_instance_id bigint not null);
    create table #timed_out (node_execution_id bigint not null);

    exec wf.wf_check_key @what = N'event_type', @value = @event_type;
    exec wf.wf_check_key @what = N'source', @value = @source;
    exec wf.wf_check_key @what = N'idempotency_key', @value = @idempotency_key;
    if @correlation_key is not null
        exec wf.wf_check_key @what = N'correlation_key', @value = @correlation_key;
    exec wf.wf_check_json @what = N'payload', @value_json = @payload_json;
    begin try
        if @v_owns_transaction = 1 begin transaction;
        exec wf.wf_event_waits @event_type = @event_type, @correlation_key = @correlation_key,
            @payload_json = @v_payload_json, @workflow_instance_id = null;
        insert into @v_gate (workflow_instance_id) select w.workflow_instance_id from #wait as w;
        while 1 = 1
        begin
            save transaction wf_attempt;
            insert into #gate (workflow_instance_id)
            select g.workflow_instance_id from @v_gate as g;
            insert into #exclusive (workflow_instance_id)
            select g.workflow_instance_id from @v_gate as g;
            exec wf.wf_ingest_attempt @event_type = @event_type, @source = @source,
                @idempotency_key = @idempotency_key, @payload_json = @v_payload_json,
                @correlation_key = @correlation_key, @occurred_at = @occurred_at_utc,
                @event_id = @event_id output, @duplicate = @duplicate output,
                @differs = @differs output;
            set @v_restart_id = (select top (1) c.restart_instance_id from #call as c);
            if @v_restart_id is null break;
            if @v_try = 5
                throw 70009, N'the waiting instances keep changing; try again', 1;
            rollback transaction wf_attempt;
            insert into @v_gate (workflow_instance_id) values (@v_restart_id);
            set @v_try = @v_try + 1;
        end;
        select @applied_count = count(case when d.outcome = N'applied' then 1 end),
               @ignored_count = count(case when d.outcome = N'ignored' then 1 end)
          from wf.event_delivery as d
         where d.event_id = @event_id and @duplicate = 0;
        if @v_owns_transaction = 1 commit transaction;
    end try
    begin catch
        if @v_owns_transaction = 1 and xact_state() <> 0 rollback transaction;
        throw;
    end catch;
end;
GO

-- One attempt at an ingest with the gates of #gate, all exclusive. #call.restart_instance_id names
-- an instance whose wait matches too.
create or alter procedure wf.wf_ingest_attempt
    @event_type nvarchar(200),
    @source nvarchar(200),
    @idempotency_key nvarchar(200),
    @payload_json nvarchar(max),
    @correlation_key nvarchar(200),
    @occurred_at datetime2(3),
    @event_id bigint output,
    @duplicate bit output,
    @differs bit output
as
begin
    set nocount, xact_abort on;

    set @duplicate = 0;
    set @differs = 0;
    exec wf.wf_event_gates @event_type = @event_type, @correlation_key = @correlation_key,
        @payload_json = @payload_json, @workflow_instance_id = null;
    if exists (select 1 from #call as c where c.restart_instance_id is not null) return;
    exec wf.wf_take_route @event_type = @event_type, @correlation_key = @correlation_key;
    exec wf.wf_insert_event @event_type = @event_type, @source = @source,
        @idempotency_key = @idempotency_key, @payload_json = @payload_json,
        @correlation_key = @correlation_key, @occurred_at = @occurred_at,
        @workflow_instance_id = null, @event_id = @event_id output;
    if @event_id is null
    begin
        set @duplicate = 1;
        update wf.event set @event_id = event_id, duplicate_count = duplicate_count + 1
         where source = @source and idempotency_key = @idempotency_key;
        select @differs = case when e.event_type = @event_type
                                and coalesce(e.correlation_key, N'') = coalesce(@correlation_key, N'')
                                and wf.wf_is_same_json(e.payload_json, @payload_json) = 1
                               then 0 else 1 end
          from wf.event as e
         where e.event_id = @event_id;
        return;
    end;
    exec wf.wf_add_timeouts @event_id = @event_id;
    delete from #wait;
    exec wf.wf_event_waits @event_type = @event_type, @correlation_key = @correlation_key,
        @payload_json = @payload_json, @workflow_instance_id = null;
    exec wf.wf_complete_waits @event_id = @event_id;
    if exists (select 1 from #call as c where c.restart_instance_id is not null) return;
    exec wf.wf_deliver_to_subscriptions @event_id = @event_id;
end;
GO

-- Inserts an event; @event_id null: its source has used the key before. That is no failure, so
-- nothing here may doom the transaction. @idempotency_key null: a new one. @workflow_instance_id: the
-- only instance that may take it, null for any. Reads #call (now).
create or alter procedure wf.wf_insert_event
    @event_type nvarchar(200),
    @source nvarchar(200),
    @idempotency_key nvarchar(200),
    @payload_json nvarchar(max),
    @correlation_key nvarchar(200),
    @occurred_at datetime2(3),
    @workflow_instance_id bigint,
    @event_id bigint output
as
begin
    set nocount on;
    set xact_abort off;

    set @event_id = null;
    begin try
        insert into wf.event (event_type, source, idempotency_key, correlation_key, payload_json,
                              occurred_at, ingested_at, workflow_instance_id)
        select @event_type, @source,
               coalesce(@idempotency_key, lower(cast(newid() as nvarchar(36)))),
               @correlation_key, @payload_json, coalesce(@occurred_at, c.now), c.now,
               @workflow_instance_id
          from #call as c;
        set @event_id = scope_identity();
    end try
    begin catch
        if error_number() not in (2601, 2627) throw;
    end catch;
    set xact_abort on;
end;
GO

-- Arguments ---------------------------------------------------------------------------------------

-- Refuses a key that not every engine could hold and compare alike (R7): 20004.
create or alter procedure wf.wf_check_key
    @what nvarchar(200),
    @value nvarchar(4000)
as
begin
    set nocount, xact_abort on;
    declare @v_controls nvarchar(60) = concat(N'%[', nchar(1), N'-', nchar(31), nchar(127), N'-',
                                              nchar(159), N']%');
    declare @v_message nvarchar(2000);

    if @value is null or len(@value + N'.') - 1 not between 1 and 200
       or left(@value, 1) = N' ' or right(@value, 1) = N' '
       or @value like @v_controls collate Latin1_General_100_BIN2
    begin
        set @v_message = concat(@what, N' must have 1 to 200 characters, none of them a control ',
                                N'character, and no space at either end');
        throw 70004, @v_message, 1;
    end;
end;
GO

-- Refuses a text that is no JSON value: 20004, and one over 16 MB: 20005 (R7). Null is let through.
-- What is one value in an array and in an object is one value, and nothing beside it.
create or alter procedure wf.wf_check_json
    @what nvarchar(200),
    @value_json nvarchar(max),
    @has_limit bit = 1
as
begin
    set nocount, xact_abort on;
    declare @v_problem nvarchar(2000);

    if @value_json is null return;
    if @has_limit = 1 and len(@value_json + N'.') - 1 > 16777216
    begin
        set @v_problem = concat(N'the ', @what, N' has more than 16 MB');
        throw 70005, @v_problem, 1;
    end;
    if isjson(concat(N'[', @value_json, N']')) = 0
       or isjson(concat(N'{"v":', @value_json, N'}')) = 0
    begin
        set @v_problem = concat(N'the ', @what, N' is no JSON value');
        throw 70004, @v_problem, 1;
    end;
    if charindex(N'\u', @value_json) = 0 return;
    -- Escapes may stand for what not every engine can keep.
    set @v_problem = wf.wf_escape_problem(@value_json);
    if @v_problem is not null
    begin
        set @v_problem = concat(N'the ', @what, N': ', @v_problem);
        throw 70004, @v_problem, 1;
    end;
end;
GO
