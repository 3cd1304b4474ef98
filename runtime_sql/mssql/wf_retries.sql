-- Attempts: whether a failed one is made again, and when (S7.1, R20). Twin: pg/wf_retries.sql

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

-- Whether the retry policy of a node takes a failure: attempts remain, and the result code or the
-- engine's code is listed. @failure is the code as text, or 'lease'.
create or alter function wf.wf_retry_takes(
    @retry_json nvarchar(max),
    @attempt_no int,
    @failure nvarchar(20)
) returns bit
as
begin
    if @attempt_no <= cast(json_value(@retry_json, N'$.limit') as int)
       and exists (select 1 from openjson(@retry_json, N'$.on') as o
                    where o.value collate Latin1_General_100_BIN2 in (N'any', @failure))
        return 1;
    return 0;
end;
GO

-- The delay after the failure of attempt k, in whole milliseconds: backoff times factor to the power
-- k - 1, floored at each multiplication, at most max; jitter scales it by (512 + h mod 513) / 1024,
-- h the first two bytes of SHA-256 of `instance/path#k`.
create or alter function wf.wf_retry_delay_ms(
    @retry_json nvarchar(max),
    @attempt_no int,
    @place nvarchar(max)
) returns bigint
as
begin
    declare @v_max bigint =
        coalesce(cast(json_value(@retry_json, N'$.max_ms') as bigint), 3600000);
    declare @v_factor bigint =
        coalesce(cast(json_value(@retry_json, N'$.factor_hundredths') as bigint), 100);
    declare @v_delay bigint =
        coalesce(cast(json_value(@retry_json, N'$.backoff_ms') as bigint), 1000);
    declare @v_next decimal(38, 0);
    declare @v_hash varchar(64);
    declare @v_no int = 2;

    if @v_delay > @v_max set @v_delay = @v_max;
    while @v_no <= @attempt_no and @v_delay < @v_max and @v_factor <> 100
    begin
        set @v_next = cast(@v_delay as decimal(38, 0)) * @v_factor;
        set @v_next = (@v_next - @v_next % 100) / 100;
        set @v_delay = case when @v_next > @v_max then @v_max else cast(@v_next as bigint) end;
        set @v_no = @v_no + 1;
    end;
    if json_value(@retry_json, N'$.jitter') = N'true'
    begin
        set @v_hash = wf.wf_sha256_hex(cast(concat(@place, N'#', @attempt_no) as varchar(max)));
        set @v_delay = @v_delay
            * (512 + cast(convert(varbinary(2), left(@v_hash, 4), 2) as int) % 513) / 1024;
    end;
    return @v_delay;
end;
GO

-- Puts a task back to READY for its next attempt, with a row in wf.node_attempt for the one that
-- failed (R4). The caller holds the task's row. Reads #call (now).
create or alter procedure wf.wf_retry_task
    @node_execution_id bigint,
    @retry_json nvarchar(max),
    @result_code int,
    @engine_error_code int,
    @message nvarchar(max),
    @output_json nvarchar(max)
as
begin
    set nocount, xact_abort on;
    declare @v_now datetime2(3);
    declare @v_due datetime2(3);

    select @v_now = c.now from #call as c;
    select @v_due = wf.wf_add_ms(@v_now, wf.wf_retry_delay_ms(@retry_json,
               t.attempt_no - t.attempts_before,
               concat(t.workflow_instance_id, N'/', wf.wf_execution_path(t.node_execution_id))))
      from wf.task as t
     where t.node_execution_id = @node_execution_id;
    insert into wf.node_attempt (node_execution_id, lease_token, attempt_no, worker_id, result_code,
        output_hash, answer, engine_error_code, engine_error_message, claimed_at, ended_at)
    select t.node_execution_id, t.lease_token, t.attempt_no, t.worker_id, @result_code,
           wf.wf_output_hash(@output_json), N'OK', @engine_error_code, @message,
           t.claimed_at, @v_now
      from wf.task as t
     where t.node_execution_id = @node_execution_id;
    update wf.task
       set worker_id = null, lease_until = null, claimed_at = null, deadline_at = null,
           attempt_no = attempt_no + 1, delivery_count = 0, available_at = @v_due,
           is_claimable = case when @v_due <= @v_now then is_claimable else 0 end
     where node_execution_id = @node_execution_id;
end;
GO

-- Tells two outputs of one attempt apart.
create or alter function wf.wf_output_hash(@output_json nvarchar(max)) returns nvarchar(64)
as
begin
    return coalesce(wf.wf_json_sha256(@output_json, 0), wf.wf_sha256_hex(''));
end;
GO
