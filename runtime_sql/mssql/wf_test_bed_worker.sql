-- The worker of the test bed: answers tasks from a script. Twin: pg/wf_test_bed_worker.sql, whose
-- header has the form of a script.

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

-- Whether an object has a member whose name is none of a list of names with commas around each.
create or alter function wf.wf_has_other_member(@value nvarchar(max), @names nvarchar(200))
returns bit
as
begin
    return case when exists (
        select 1 from openjson(@value) as m
         where charindex(concat(N',', m.[key], N','),
                         @names collate Latin1_General_100_BIN2) = 0) then 1 else 0 end;
end;
GO

-- Whether a value is a list of results of a script.
create or alter function wf.wf_is_test_bed_results(@value nvarchar(max), @type int) returns bit
as
begin
    if @type <> 4 return 0;
    if not exists (select 1 from openjson(@value) as x) return 0;
    if exists (select 1 from openjson(@value) as x where x.type <> 5) return 0;
    return case when exists (
        select 1 from openjson(@value) as x
         where wf.wf_has_other_member(x.value, N',code,output,message,hang,') = 1
            or wf.wf_json_type(coalesce(wf.wf_json_member(x.value, N'code'), N'0')) <> N'number')
        then 0 else 1 end;
end;
GO

-- What is wrong with the form of a script, for workflow version @version_id; null: nothing.
create or alter function wf.wf_test_bed_script_problem(
    @script nvarchar(max),
    @version_id bigint
) returns nvarchar(400)
as
begin
    declare @v_key nvarchar(200);
    declare @v_results nvarchar(max) = coalesce(wf.wf_json_member(@script, N'results'), N'{}');
    declare @v_expect nvarchar(max) = coalesce(wf.wf_json_member(@script, N'expect'), N'{}');

    if @script is null or wf.wf_json_type(@script) <> N'object'
       or wf.wf_has_other_member(@script, N',results,events,expect,') = 1
       or wf.wf_json_type(@v_results) <> N'object'
       or wf.wf_json_type(coalesce(wf.wf_json_member(@script, N'events'), N'[]')) <> N'array'
       or wf.wf_json_type(@v_expect) <> N'object'
       or wf.wf_has_other_member(@v_expect, N',status,output,') = 1
        return N'a script is {"results": {node: […]}, "events": […], '
             + N'"expect": {"status", "output"}}';
    select top (1) @v_key = left(r.[key], 200)
      from openjson(@v_results) as r
     where wf.wf_is_test_bed_results(r.value, r.type) = 0
     order by r.[key] collate Latin1_General_100_BIN2;
    if @v_key is not null
        return concat(N'the results of ', @v_key,
                      N' must be a list of {"code", "output", "message", "hang"}');
    select top (1) @v_key = left(k.[key], 200)
      from openjson(@v_results) as k
     where not exists (select 1 from wf.workflow_node as n
                        where n.workflow_version_id = @version_id
                          and n.node_key = k.[key] collate Latin1_General_100_BIN2
                          and n.node_type = N'ACTION')
     order by k.[key] collate Latin1_General_100_BIN2;
    if @v_key is not null return concat(N'the workflow has no action ', @v_key);
    return null;
end;
GO

-- Claims one task, best first, and submits what the script has for it. Answers whether there was one,
-- and logs it. Locks and errors: those of wf_claim and wf_submit.
create or alter procedure wf.wf_test_bed_step
    @test_bed_run_id bigint,
    @task_no int,
    @script nvarchar(max),
    @worker_id nvarchar(200),
    @worker_token nvarchar(200),
    @has_claimed bit output
as
begin
    set nocount, xact_abort on;
    declare @v_state nvarchar(20);
    declare @v_node_key nvarchar(200);
    declare @v_listed nvarchar(max);
    declare @v_visit int;
    declare @v_last int;
    declare @v_result nvarchar(max);
    declare @v_code int;
    declare @v_output nvarchar(max);
    declare @v_message nvarchar(max);
    declare @v_hangs bit;
    create table #claimed (
        position int identity(1, 1) not null primary key, node_execution_id bigint not null,
        workflow_instance_id bigint not null, node_key nvarchar(200) not null,
        action_name nvarchar(200) not null, capability nvarchar(200) not null,
        attempt_no int not null, input_json nvarchar(max) null, iteration_no int not null,
        lease_token bigint not null, lease_until_utc datetime2(3) not null,
        deadline_utc datetime2(3) null, path nvarchar(max) null
    );
    create table #submit_item (
        position int not null primary key, node_execution_id bigint null, lease_token bigint null,
        result_code int null, message nvarchar(max) null, output_json nvarchar(max) null,
        is_done bit not null default 0
    );
    create table #submit_answer (
        position int not null primary key, node_execution_id bigint not null,
        accepted bit not null, instance_status nvarchar(20) null, next_ready_count int not null,
        reason nvarchar(20) not null
    );
    -- A day's lease: the clock of a run moves by itself, and no result is late.
    exec wf.wf_claim @worker_id = @worker_id, @worker_token = @worker_token, @capability = null,
        @max_lease_seconds = 86400, @max_tasks = 1, @desired_state = @v_state output;
    select @v_node_key = c.node_key from #claimed as c;
    set @has_claimed = case when @v_node_key is null then 0 else 1 end;
    if @v_node_key is null return;
    set @v_listed = coalesce(wf.wf_json_member(wf.wf_json_member(@script, N'results'),
                                               @v_node_key), N'[{}]');
    select @v_visit = count(*) from wf.test_bed_task_log as l
     where l.test_bed_run_id = @test_bed_run_id and l.node_key = @v_node_key;
    select @v_last = count(*) - 1 from openjson(@v_listed) as r;
    set @v_result = wf.wf_json_item(@v_listed,
                                    case when @v_visit < @v_last then @v_visit else @v_last end);
    set @v_hangs = case when wf.wf_json_member(@v_result, N'hang') = N'true' then 1 else 0 end;
    set @v_code = coalesce(cast(nullif(wf.wf_json_member(@v_result, N'code'), N'null') as int), 0);
    set @v_output = coalesce(wf.wf_json_member(@v_result, N'output'), N'{}');
    set @v_message = wf.wf_scalar_text(nullif(wf.wf_json_member(@v_result, N'message'),
                                              N'null'));
    insert into wf.test_bed_task_log (test_bed_run_id, task_no, node_execution_id, node_key, path,
        action_name, attempt_no, input_json, result_code, output_json, message, logged_at)
    select @test_bed_run_id, @task_no, c.node_execution_id, c.node_key, c.path, c.action_name,
           c.attempt_no, c.input_json, case when @v_hangs = 0 then @v_code end,
           case when @v_hangs = 0 then @v_output end, @v_message, wf.wf_now()
      from #claimed as c;
    if @v_hangs = 1 return;
    insert into #submit_item (position, node_execution_id, lease_token, result_code, message,
                              output_json)
    select 1, c.node_execution_id, c.lease_token, @v_code, @v_message, @v_output
      from #claimed as c;
    exec wf.wf_submit @worker_id = @worker_id;
end;
GO
