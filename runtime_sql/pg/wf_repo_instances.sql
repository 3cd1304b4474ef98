-- The repository's writers of instances and executions, for repairs by hand. Twin:
-- mssql/wf_repo_instances.sql
--
-- None of them writes a state that the engine would not: each takes the instance's gate exclusive,
-- asks whether the change is one that the engine could make now (20003 when it is not), and lets the
-- engine make it, with everything that follows. They are the owner's, no client's (R22).

-- Sets the status of an instance: RUNNING starts or resumes it, PAUSED pauses, CANCELLED cancels. It
-- succeeds and fails by its nodes alone. The status it has already changes nothing.
-- Locks: the gate exclusive. Errors: 10015 the input does not fit; 20002; 20003; 20004 no status.
create or replace function wf.wf_repo_set_instance_status(p_workflow_instance_id bigint, p_status text)
returns table (workflow_instance_id bigint, instance_status text, changed boolean)
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off
set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
    v_status text := wf.wf_lock_instance(p_workflow_instance_id);
begin
    if p_status is null or p_status not in ('CREATED', 'RUNNING', 'PAUSED', 'SUCCEEDED', 'FAILED',
                                            'CANCELLED') then
        perform wf.wf_raise(20004, 'status must be one of those of an instance');
    end if;
    if v_status = p_status then
        null;
    elsif v_status = 'CREATED' and p_status = 'RUNNING' then
        perform wf.sp_start_workflow_instance(p_workflow_instance_id);
    elsif v_status = 'PAUSED' and p_status = 'RUNNING' then
        perform wf.sp_resume_workflow_instance(p_workflow_instance_id);
    elsif v_status = 'RUNNING' and p_status = 'PAUSED' then
        perform wf.sp_pause_workflow_instance(p_workflow_instance_id);
    elsif v_status in ('CREATED', 'RUNNING', 'PAUSED') and p_status = 'CANCELLED' then
        perform wf.sp_cancel_workflow_instance(p_workflow_instance_id, 'set in the repository');
    else
        perform wf.wf_raise(20003, format('instance %s is %s and cannot become %s',
                                          p_workflow_instance_id, v_status, p_status));
    end if;
    return query
    select i.workflow_instance_id, i.status, v_status <> p_status
      from wf.workflow_instance i where i.workflow_instance_id = p_workflow_instance_id;
end
$$;

-- Takes the gate of an execution's instance exclusive and answers the instance, which must be open.
-- Errors: 20002 unknown execution, 20003 its instance is not RUNNING or PAUSED.
create or replace function wf.wf_lock_open_execution(p_node_execution_id bigint) returns bigint
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_instance_id bigint;
begin
    select e.workflow_instance_id into v_instance_id
      from wf.node_execution e where e.node_execution_id = p_node_execution_id;
    if not found then
        perform wf.wf_raise(20002, format('there is no node execution %s', p_node_execution_id));
    end if;
    perform wf.wf_check_instance_open(v_instance_id, wf.wf_lock_instance(v_instance_id));
    return v_instance_id;
end
$$;

create or replace function wf.wf_check_instance_open(p_workflow_instance_id bigint, p_status text)
returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    if p_status not in ('RUNNING', 'PAUSED') then
        perform wf.wf_raise(20003, format('instance %s is %s, not open', p_workflow_instance_id,
                                          p_status));
    end if;
end
$$;

-- Starts the execution that is missing: the root of an instance that was created, or the child that
-- its parent would start next. An execution that is there already is answered with created = false.
-- Locks: the gate exclusive. Errors: 20002 unknown instance, parent or node; 20003 the parent would
-- not start it now; the children of PARALLEL and FOREACH are counted, so it starts them itself.
create or replace function wf.wf_repo_insert_node_execution(
    p_workflow_instance_id bigint, p_parent_execution_id bigint, p_node_key text,
    p_iteration_no integer default 0
) returns table (node_execution_id bigint, node_status text, created boolean)
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off
set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
    v_status  text := wf.wf_lock_instance(p_workflow_instance_id);
    v_now     timestamptz := wf.wf_now();
    v_node    wf.workflow_node;
    v_problem text;
    v_found   bigint;
    v_created boolean := false;
begin
    select n.* into v_node
      from wf.workflow_instance i
      join wf.workflow_node n
        on n.workflow_version_id = i.workflow_version_id and n.node_key = p_node_key
     where i.workflow_instance_id = p_workflow_instance_id;
    if not found then
        perform wf.wf_raise(20002, format('instance %s has no node %s', p_workflow_instance_id,
                                          left(p_node_key, 200)));
    end if;
    v_found := wf.wf_execution_at(p_workflow_instance_id, p_parent_execution_id, v_node.node_id,
                                       p_iteration_no);
    if v_found is null then
        if v_status = 'CREATED' and p_parent_execution_id = 0 and v_node.parent_node_id is null then
            perform wf.sp_start_workflow_instance(p_workflow_instance_id);
        else
            perform wf.wf_check_instance_open(p_workflow_instance_id, v_status);
            v_problem := wf.wf_start_problem(p_workflow_instance_id, p_parent_execution_id,
                                                  v_node, p_iteration_no);
            if v_problem is not null then
                perform wf.wf_raise(20003, format('node %s cannot start now: %s', p_node_key,
                                                  v_problem));
            end if;
            perform wf.wf_engine_run(wf.wf_engine_apply(array[row(1, 0, 'START',
                p_parent_execution_id, p_workflow_instance_id, v_node.node_id, p_iteration_no, null,
                null, null, null, null)::wf.agenda_step], v_now),
                array[p_workflow_instance_id], v_now);
        end if;
        v_found := wf.wf_execution_at(p_workflow_instance_id, p_parent_execution_id,
                                           v_node.node_id, p_iteration_no);
        v_created := true;
    end if;
    return query
    select e.node_execution_id, e.status, v_created
      from wf.node_execution e where e.node_execution_id = v_found;
end
$$;

create or replace function wf.wf_execution_at(
    p_workflow_instance_id bigint, p_parent_execution_id bigint, p_node_id bigint,
    p_iteration_no integer
) returns bigint
language sql stable set search_path = pg_catalog, pg_temp as $$
    select e.node_execution_id
      from wf.node_execution e
     where e.workflow_instance_id = p_workflow_instance_id
       and e.parent_execution_id = p_parent_execution_id and e.node_id = p_node_id
       and e.iteration_no = p_iteration_no
$$;

-- Why a parent would not start this child now, or null.
create or replace function wf.wf_start_problem(
    p_workflow_instance_id bigint, p_parent_execution_id bigint, p_node wf.workflow_node,
    p_iteration_no integer
) returns text
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_parent   record;
    v_is_loop  boolean := coalesce(p_node.parent_type in ('REPEAT', 'WHILE'), false);
    v_previous text;
    v_count    bigint;
begin
    select e.node_id, e.status into v_parent
      from wf.node_execution e
     where e.node_execution_id = p_parent_execution_id
       and e.workflow_instance_id = p_workflow_instance_id;
    if not found then
        perform wf.wf_raise(20002, format('there is no node execution %s in instance %s',
                                          p_parent_execution_id, p_workflow_instance_id));
    end if;
    if v_parent.node_id is distinct from p_node.parent_node_id then
        return 'it is no child of the parent''s node';
    elsif v_parent.status <> 'RUNNING' or exists (
        select 1 from wf.pending_end q where q.node_execution_id = p_parent_execution_id) then
        return 'the parent is not running, or about to end';
    elsif p_node.parent_type in ('PARALLEL', 'FOREACH') then
        return format('a %s starts its children itself', p_node.parent_type);
    elsif p_node.edge_kind in ('ON_ERROR', 'FINALLY', 'TIMEOUT') then
        return 'a handler starts by what happens in its parent';
    elsif p_iteration_no < 0 or p_iteration_no > 0 and not v_is_loop then
        return 'its parent has no such iteration';
    end if;
    if p_node.parent_type in ('IF', 'SWITCH') or v_is_loop then
        select l.total_count into v_count
          from wf.loop_state l where l.node_execution_id = p_parent_execution_id;
        if p_node.parent_type = 'REPEAT' and p_iteration_no >= coalesce(v_count, 0) then
            return 'the loop does not run that often';
        end if;
        -- Nothing else has been started below, except the iterations before this one.
        select count(*) into v_count
          from wf.node_execution e
         where e.parent_execution_id = p_parent_execution_id
           and e.workflow_instance_id = p_workflow_instance_id;
        if v_count <> p_iteration_no then
            return 'it is not the next one';
        end if;
    end if;
    select coalesce(max(e.status), 'none') into v_previous
      from wf.node_execution e
      join wf.workflow_node n on n.node_id = e.node_id
     where e.parent_execution_id = p_parent_execution_id
       and e.workflow_instance_id = p_workflow_instance_id
       and case when v_is_loop then e.iteration_no = p_iteration_no - 1
                else n.next_node_id = p_node.node_id end;
    if v_previous <> 'SUCCEEDED' and (p_iteration_no > 0 or p_node.parent_type = 'SEQUENCE'
                                      and p_node.child_order > 0) then
        return 'the one before it has not succeeded';
    end if;
    return null;
end
$$;

-- Ends an ACTION by hand: SUCCEEDED with a result code from 0 (left out: 0), or FAILED with a
-- negative one (left out: -1). Whoever holds its lease is told that it is stale; no retry is made. The
-- `set`s run and the workflow goes on, as after a submit. Every other node ends by its children. The
-- status it has already changes nothing.
-- Locks: the gate exclusive, the task. Errors: 20002; 20003; 20004 a code that does not fit; 20005.
create or replace function wf.wf_repo_update_node_execution_status(
    p_node_execution_id bigint, p_status text, p_result_code integer default null,
    p_output_json jsonb default null, p_message text default null
) returns table (node_execution_id bigint, node_status text, instance_status text, changed boolean)
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set enable_seqscan = off
set enable_bitmapscan = off as $$
#variable_conflict use_column
declare
    v_instance_id bigint := wf.wf_lock_open_execution(p_node_execution_id);
    v_now         timestamptz := wf.wf_now();
    v_code        integer := coalesce(p_result_code, case p_status when 'SUCCEEDED' then 0 else -1 end);
    v_old         text;
begin
    select case when t.worker_id is not null then 'RUNNING' else e.status end into v_old
      from wf.node_execution e
      left join wf.task t on t.node_execution_id = e.node_execution_id
     where e.node_execution_id = p_node_execution_id;
    if v_old is distinct from p_status then
        if p_status is null or p_status not in ('SUCCEEDED', 'FAILED')
           or not exists (select 1 from wf.task t
                           where t.node_execution_id = p_node_execution_id) then
            perform wf.wf_raise(20003, format('node execution %s is %s and cannot become %s by hand',
                                              p_node_execution_id, v_old, coalesce(p_status, 'null')));
        end if;
        if (p_status = 'SUCCEEDED') <> (v_code >= 0) then
            perform wf.wf_raise(20004, format('%s does not go with result code %s', p_status, v_code));
        end if;
        if pg_column_size(p_output_json) > 16777216 then
            perform wf.wf_raise(20005, 'the output has more than 16 MB');
        end if;
        perform wf.wf_end_action_by_hand(p_node_execution_id, v_code, p_output_json, p_message, v_now);
        insert into wf.audit_log (at, what, detail_json)
        values (v_now, 'end action', jsonb_build_object('execution', p_node_execution_id,
                                                        'result_code', v_code));
    end if;
    return query
    select e.node_execution_id, e.status, i.status, v_old is distinct from p_status
      from wf.node_execution e
      join wf.workflow_instance i on i.workflow_instance_id = e.workflow_instance_id
     where e.node_execution_id = p_node_execution_id;
end
$$;

-- What a submit does with one task, whoever holds it. The caller has the gate exclusive.
create or replace function wf.wf_end_action_by_hand(
    p_node_execution_id bigint, p_result_code integer, p_output_json jsonb, p_message text,
    p_now timestamptz
) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_task wf.task;
    v_kind text;
begin
    delete from wf.task t where t.node_execution_id = p_node_execution_id returning t.* into v_task;
    update wf.node_execution e
       set status = case when p_result_code >= 0 then 'SUCCEEDED' else 'FAILED' end,
           result_code = p_result_code, output_json = p_output_json,
           engine_error_message = case when p_result_code < 0
               then coalesce(p_message, 'result code ' || p_result_code) end,
           error_execution_id = case when p_result_code < 0 then e.node_execution_id end,
           input_json = v_task.input_json, attempt_no = v_task.attempt_no,
           delivery_count = v_task.delivery_count, last_token = v_task.lease_token,
           answer = 'BY_HAND', completed_by = current_user, started_at = v_task.claimed_at,
           ended_at = p_now
      from wf.workflow_node n
     where e.node_execution_id = p_node_execution_id and n.node_id = e.node_id
    returning case when p_result_code < 0 then 'F' when n.success_may_close then 'J' else 'S' end
      into v_kind;
    perform wf.wf_engine_run(wf.wf_complete_items(array[wf.wf_agenda_entry(
        1, p_node_execution_id, v_task.workflow_instance_id, v_kind)]),
        array[v_task.workflow_instance_id], p_now);
end
$$;

-- Puts the number of iterations of a running REPEAT back that has lost it. The number that is there
-- already is answered with created = false.
-- Locks: the gate exclusive. Errors: 20002; 20003 no running REPEAT, or another number is there;
-- 20004 fewer than the iterations there are.
create or replace function wf.wf_repo_insert_loop_state(
    p_node_execution_id bigint, p_total_count bigint
) returns table (node_execution_id bigint, total_count bigint, created boolean)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    v_instance_id bigint := wf.wf_lock_open_execution(p_node_execution_id);
    v_old         bigint;
    v_iterations  bigint;
begin
    if not exists (select 1 from wf.node_execution e
                     join wf.workflow_node n on n.node_id = e.node_id
                    where e.node_execution_id = p_node_execution_id
                      and n.node_type = 'REPEAT' and e.status = 'RUNNING') then
        perform wf.wf_raise(20003, format('node execution %s is no running REPEAT',
                                          p_node_execution_id));
    end if;
    select count(*) into v_iterations
      from wf.node_execution e
     where e.workflow_instance_id = v_instance_id and e.parent_execution_id = p_node_execution_id;
    if p_total_count is null or p_total_count < greatest(v_iterations, 1) then
        perform wf.wf_raise(20004, format('total_count must be at least %s',
                                          greatest(v_iterations, 1)));
    end if;
    select l.total_count into v_old
      from wf.loop_state l where l.node_execution_id = p_node_execution_id;
    if v_old <> p_total_count then
        perform wf.wf_raise(20003, format('node execution %s runs %s times', p_node_execution_id,
                                          v_old));
    end if;
    insert into wf.loop_state (node_execution_id, workflow_instance_id, total_count)
    select p_node_execution_id, v_instance_id, p_total_count where v_old is null;
    return query select p_node_execution_id, p_total_count, v_old is null;
end
$$;

-- Sets a variable where an execution sees it: in the nearest scope around it that declares the name.
-- Locks: the gate exclusive. Errors: 20002; 20003 the instance is not open, or the scope is not;
-- 20004 no such variable, or a value that does not fit its type.
create or replace function wf.wf_repo_set_scope_variable(
    p_node_execution_id bigint, p_name text, p_value_json jsonb
) returns table (scope_id bigint, owner_key text, name text)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    v_instance_id bigint := wf.wf_lock_open_execution(p_node_execution_id);
    v_row         record;
    v_owner       text;
    v_problem     text;
begin
    select e.scope_id, n.node_id, n.workflow_version_id into v_row
      from wf.node_execution e
      join wf.workflow_node n on n.node_id = e.node_id
     where e.node_execution_id = p_node_execution_id;
    v_owner := wf.wf_owner_of_variable(v_row.node_id, p_name);
    if v_owner is null then
        v_problem := 'there is no variable ' || coalesce(left(p_name, 200), 'null');
    elsif p_value_json is null then
        v_problem := 'value_json is null';
    else
        v_problem := wf.wf_storable_problem(p_value_json);
    end if;
    if v_problem is null then
        select c.error_message into v_problem
          from wf.node_scope_default d
         cross join lateral wf.wf_check_variable(v_row.workflow_version_id, d.type_id, p_name,
                                                 p_value_json) c
         where d.workflow_version_id = v_row.workflow_version_id and d.owner_key = v_owner
           and d.name = p_name;
    end if;
    if v_problem is not null then
        perform wf.wf_raise(20004, v_problem);
    end if;
    if not wf.wf_set_scope_variable(v_row.scope_id, v_owner, p_name, p_value_json) then
        perform wf.wf_raise(20003, format('the scope of %s is not open', v_owner));
    end if;
    return query
    with recursive around as (
        select s.scope_id, s.parent_scope_id, s.owner_key from wf.scope s
         where s.scope_id = v_row.scope_id
        union all
        select s.scope_id, s.parent_scope_id, s.owner_key
          from around a join wf.scope s on s.scope_id = a.parent_scope_id
         where a.owner_key <> v_owner
    )
    select a.scope_id, a.owner_key, p_name from around a where a.owner_key = v_owner;
end
$$;

-- The result code of the execution of a node that ended last, in the whole instance. Never raises:
-- no row when there is none.
create or replace function wf.wf_repo_try_latest_task_result_code(
    p_workflow_instance_id bigint, p_node_key text
) returns table (node_execution_id bigint, node_status text, result_code integer)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
    return query
    select e.node_execution_id, e.status, e.result_code
      from wf.node_execution e
      join wf.workflow_node n on n.node_id = e.node_id
     where e.workflow_instance_id = p_workflow_instance_id and n.node_key = p_node_key
       and e.ended_at is not null
     order by e.ended_at desc, e.node_execution_id desc limit 1;
end
$$;
