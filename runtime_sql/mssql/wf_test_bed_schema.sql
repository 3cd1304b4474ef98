-- The tables of the test bed: runs of workflows with scripted results (wf_test_bed_run.sql).
-- Twin: pg/wf_test_bed_schema.sql

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

-- One run of a workflow with scripted results. mismatch: what differed from `expect`, null: nothing.
create table wf.test_bed_run (
    test_bed_run_id       bigint identity(1, 1) not null,
    workflow_name         nvarchar(200) collate Latin1_General_100_BIN2 not null,
    workflow_instance_id  bigint not null,
    script_json           nvarchar(max) collate Latin1_General_100_BIN2 not null,
    instance_status       nvarchar(20) collate Latin1_General_100_BIN2 not null,
    output_json           nvarchar(max) collate Latin1_General_100_BIN2 null,
    task_count            int not null,
    mismatch              nvarchar(max) collate Latin1_General_100_BIN2 null,
    started_at            datetime2(3) not null,
    ended_at              datetime2(3) not null,
    constraint pk_test_bed_run primary key (test_bed_run_id),
    constraint ck_test_bed_run_script_json check (isjson(script_json) = 1),
    constraint ck_test_bed_run_output_json check (isjson(N'[' + output_json + N']') = 1)
);

-- One row per task that a run claimed, in order; no result_code: the script let it hang.
create table wf.test_bed_task_log (
    test_bed_run_id    bigint not null,
    task_no            int not null,
    node_execution_id  bigint not null,
    node_key           nvarchar(200) collate Latin1_General_100_BIN2 not null,
    path               nvarchar(max) collate Latin1_General_100_BIN2 not null,
    action_name        nvarchar(200) collate Latin1_General_100_BIN2 not null,
    attempt_no         int not null,
    input_json         nvarchar(max) collate Latin1_General_100_BIN2 not null,
    result_code        int null,
    output_json        nvarchar(max) collate Latin1_General_100_BIN2 null,
    message            nvarchar(max) collate Latin1_General_100_BIN2 null,
    logged_at          datetime2(3) not null,
    constraint pk_test_bed_task_log primary key (test_bed_run_id, task_no),
    constraint fk_test_bed_task_log_run foreign key (test_bed_run_id)
        references wf.test_bed_run (test_bed_run_id) on delete cascade,
    constraint ck_test_bed_task_log_input_json check (isjson(N'[' + input_json + N']') = 1),
    constraint ck_test_bed_task_log_output_json check (isjson(N'[' + output_json + N']') = 1)
);
GO
