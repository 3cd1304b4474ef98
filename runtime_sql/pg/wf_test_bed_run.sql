-- Runs a whole workflow inside the database, with scripted results and no worker.
-- Twin: mssql/wf_test_bed_run.sql

-- Creates an instance, starts it, and plays it to its end as ruling R12 says: claim one task, submit its
-- result; when nothing can be claimed, hand in the next event of the script; when there is none left,
-- move the clock to the next time that something is due. All of it is one transaction, so the clock
-- that it stops and moves is its own: other sessions never see it, and it goes on at the end. The run,
-- its tasks and the instance stay (wf_test_bed_worker.sql has the form of a script).
-- mismatch: how the outcome differs from the script's `expect` (status SUCCEEDED by default; output,
-- when given), or why the run got stuck, which cancels the instance; null: it passed.
-- Locks: those of the calls it makes. Errors: 20002 unknown workflow or version; 20003 other instances
-- are running, whose tasks it would take; 20004 the script or the context has another form; those of
-- wf_repo_create_workflow_instance and sp_start_workflow_instance.
create or replace function wf.sp_test_bed_run_workflow(
    p_workflow_name text, p_context_json jsonb, p_script_json jsonb default '{}',
    p_workflow_version integer default null
) returns table (test_bed_run_id bigint, workflow_instance_id bigint, instance_status text,
                 task_count integer, output_json jsonb, mismatch text)
language plpgsql set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off
set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
    v_running bigint;
    v_created record;
    v_problem text;
    v_run_id  bigint;
    v_played  record;
    v_clock   text;
begin
    select count(*) into v_running
      from wf.workflow_instance i where i.status in ('RUNNING', 'PAUSED');
    if v_running > 0 then
        perform wf.wf_raise(20003, format('%s other instances are running; a test bed has a '
                                          'database of its own', v_running));
    end if;
    select s.value into v_clock from wf.wf_setting s where s.name = 'now';
    insert into wf.wf_setting (name, value) values ('now', wf.wf_now()::text)
    on conflict (name) do nothing;
    select * into v_created
      from wf.wf_repo_create_workflow_instance(p_workflow_name, p_context_json,
                                               p_workflow_version);
    v_problem := wf.wf_test_bed_script_problem(p_script_json, v_created.workflow_version_id);
    if v_problem is not null then
        perform wf.wf_raise(20004, v_problem);
    end if;
    insert into wf.test_bed_run as r (workflow_name, workflow_instance_id, script_json,
        instance_status, task_count, started_at, ended_at)
    values (p_workflow_name, v_created.workflow_instance_id, p_script_json, 'CREATED', 0,
            wf.wf_now(), wf.wf_now())
    returning r.test_bed_run_id into v_run_id;
    perform wf.sp_start_workflow_instance(v_created.workflow_instance_id);
    v_played := wf.wf_test_bed_play(v_run_id, v_created.workflow_instance_id, p_script_json);
    update wf.test_bed_run r
       set instance_status = i.status, output_json = x.output_json, ended_at = wf.wf_now(),
           task_count = v_played.task_count,
           mismatch = coalesce(v_played.problem, wf.wf_test_bed_mismatch(
               p_script_json -> 'expect', i.status, x.output_json, i.engine_error_message))
      from wf.workflow_instance i
      join wf.execution_context x on x.workflow_instance_id = i.workflow_instance_id
     where r.test_bed_run_id = v_run_id
       and i.workflow_instance_id = v_created.workflow_instance_id;
    if v_clock is null then
        delete from wf.wf_setting s where s.name = 'now';
    end if;
    return query
    select r.test_bed_run_id, r.workflow_instance_id, r.instance_status, r.task_count,
           r.output_json, r.mismatch
      from wf.test_bed_run r where r.test_bed_run_id = v_run_id;
end
$$;

-- Plays a started instance to its end. Answers how many tasks it claimed, and why it got stuck, which
-- cancels the instance. The worker it does so as is gone afterwards.
create or replace function wf.wf_test_bed_play(
    p_test_bed_run_id bigint, p_workflow_instance_id bigint, p_script jsonb,
    out task_count integer, out problem text
)
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_worker   text := 'wf-test-bed-' || p_test_bed_run_id;
    v_token    text := gen_random_uuid()::text;
    v_event_no integer := 0;
    v_moves    integer := 0;
begin
    task_count := 0;
    perform wf.sp_register_worker(v_worker, v_token, array['*'], 1000);
    loop
        exit when not exists (select 1 from wf.workflow_instance i
                               where i.workflow_instance_id = p_workflow_instance_id
                                 and i.status = 'RUNNING');
        if greatest(task_count, v_moves) >= 100000 then
            problem := format('still running after %s tasks and %s moves of the clock', task_count,
                              v_moves);
            exit;
        end if;
        if wf.wf_test_bed_step(p_test_bed_run_id, task_count + 1, p_script, v_worker, v_token) then
            task_count := task_count + 1;
        elsif v_event_no < jsonb_array_length(coalesce(p_script -> 'events', '[]')) then
            perform wf.sp_ingest_event(v.value ->> 'type', v_worker, v_event_no::text,
                                       v.value -> 'payload', v.value ->> 'correlation_key')
               from (select p_script -> 'events' -> v_event_no as value) v;
            v_event_no := v_event_no + 1;
        elsif wf.wf_test_bed_move_clock(p_workflow_instance_id) then
            v_moves := v_moves + 1;
        else
            problem := 'still running: nothing can be claimed and nothing is due';
            exit;
        end if;
    end loop;
    if problem is not null then
        perform wf.sp_cancel_workflow_instance(p_workflow_instance_id, problem);
    end if;
    delete from wf.worker w where w.worker_id = v_worker;
end
$$;

-- Moves the stopped clock to the next deadline, delay or timer of an instance and applies what is due
-- then. Answers whether there was one.
create or replace function wf.wf_test_bed_move_clock(p_workflow_instance_id bigint)
returns boolean
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_due timestamptz;
begin
    select min(q.due_at) into v_due
      from (select t.due_at from wf.timer t
             where t.workflow_instance_id = p_workflow_instance_id
            union all
            select least(k.deadline_at, case when not k.is_claimable then k.available_at end)
              from wf.task k
             where k.workflow_instance_id = p_workflow_instance_id) q;
    if v_due is null then
        return false;
    end if;
    update wf.wf_setting s set value = greatest(v_due, wf.wf_now())::text where s.name = 'now';
    perform wf.sp_tick();
    return true;
end
$$;

-- How an outcome differs from what a script expects; null: it does not.
create or replace function wf.wf_test_bed_mismatch(
    p_expect jsonb, p_status text, p_output jsonb, p_message text
) returns text
language sql immutable set search_path = pg_catalog, pg_temp as $$
    select case
        when p_status <> coalesce(p_expect ->> 'status', 'SUCCEEDED') then
            format('status %s, not %s', p_status, coalesce(p_expect ->> 'status', 'SUCCEEDED'))
            || coalesce(': ' || p_message, '')
        when p_expect ? 'output' and p_output is distinct from p_expect -> 'output' then
            format('output %s, not %s', coalesce(p_output::text, 'none'), p_expect -> 'output') end
$$;
