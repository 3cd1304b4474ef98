-- Attempts: whether a failed one is made again, and when (S7.1, R20). Twin: mssql/wf_retries.sql

-- Whether the retry policy of a node takes a failure: attempts remain, and the result code or the
-- engine's code is listed. p_failure is the code as text, or 'lease'.
create or replace function wf.wf_retry_takes(p_retry jsonb, p_attempt_no integer, p_failure text)
returns boolean
language sql immutable set search_path = pg_catalog, pg_temp as $$
    select coalesce(p_attempt_no <= (p_retry ->> 'limit')::integer
                    and exists (select 1 from jsonb_array_elements_text(p_retry -> 'on') o
                                 where o.value in ('any', p_failure)), false)
$$;

-- The delay after the failure of attempt k, in whole milliseconds: backoff times factor to the power
-- k - 1, floored at each multiplication, at most max; jitter scales it by (512 + h mod 513) / 1024,
-- h the first two bytes of SHA-256 of `instance/path#k`.
create or replace function wf.wf_retry_delay_ms(
    p_retry jsonb, p_attempt_no integer, p_place text
) returns bigint
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
declare
    v_max    bigint := coalesce((p_retry ->> 'max_ms')::bigint, 3600000);
    v_factor bigint := coalesce((p_retry ->> 'factor_hundredths')::bigint, 100);
    v_delay  bigint := least(coalesce((p_retry ->> 'backoff_ms')::bigint, 1000), v_max);
    v_hash   bytea;
begin
    for k in 2 .. p_attempt_no loop
        exit when v_delay >= v_max or v_factor = 100;
        v_delay := least(floor(v_delay::numeric * v_factor / 100), v_max)::bigint;
    end loop;
    if coalesce((p_retry ->> 'jitter')::boolean, false) then
        v_hash := sha256(convert_to(p_place || '#' || p_attempt_no, 'UTF8'));
        v_delay := v_delay * (512 + (get_byte(v_hash, 0) * 256 + get_byte(v_hash, 1)) % 513) / 1024;
    end if;
    return v_delay;
end
$$;

-- Puts a task back to READY for its next attempt, with a row in wf.node_attempt for the one that
-- failed (R4). The caller holds the task's row.
create or replace function wf.wf_retry_task(
    p_task wf.task, p_retry jsonb, p_result_code integer, p_engine_error_code integer,
    p_message text, p_output_json jsonb, p_now timestamptz
) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_due timestamptz := p_now + interval '1 millisecond' * wf.wf_retry_delay_ms(
        p_retry, p_task.attempt_no - p_task.attempts_before,
        p_task.workflow_instance_id || '/' || wf.wf_execution_path(p_task.node_execution_id));
begin
    insert into wf.node_attempt (node_execution_id, lease_token, attempt_no, worker_id, result_code,
        output_hash, answer, engine_error_code, engine_error_message, claimed_at, ended_at)
    values (p_task.node_execution_id, p_task.lease_token, p_task.attempt_no, p_task.worker_id,
            p_result_code, wf.wf_output_hash(p_output_json), 'OK', p_engine_error_code, p_message,
            p_task.claimed_at, p_now);
    update wf.task t
       set worker_id = null, lease_until = null, claimed_at = null, deadline_at = null,
           attempt_no = t.attempt_no + 1, delivery_count = 0,
           available_at = v_due,
           is_claimable = t.is_claimable and v_due <= p_now
     where t.node_execution_id = p_task.node_execution_id;
end
$$;

-- Tells two outputs of one attempt apart.
create or replace function wf.wf_output_hash(p_output_json jsonb) returns text
language sql immutable set search_path = pg_catalog, pg_temp as $$
    select encode(sha256(convert_to(coalesce(p_output_json::text, ''), 'UTF8')), 'hex')
$$;
