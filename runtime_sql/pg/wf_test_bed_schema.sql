-- The tables of the test bed: runs of workflows with scripted results (wf_test_bed_run.sql).
-- Twin: mssql/wf_test_bed_schema.sql

-- One run of a workflow with scripted results. mismatch: what differed from `expect`, null: nothing.
create table wf.test_bed_run (
    test_bed_run_id       bigint       generated always as identity,
    workflow_name         text         not null,
    workflow_instance_id  bigint       not null,
    script_json           jsonb        not null,
    instance_status       text         not null,
    output_json           jsonb,
    task_count            integer      not null,
    mismatch              text,
    started_at            timestamptz  not null,
    ended_at              timestamptz  not null,
    constraint pk_test_bed_run primary key (test_bed_run_id)
);

-- One row per task that a run claimed, in order; no result_code: the script let it hang.
create table wf.test_bed_task_log (
    test_bed_run_id    bigint       not null,
    task_no            integer      not null,
    node_execution_id  bigint       not null,
    node_key           text         not null,
    path               text         not null,
    action_name        text         not null,
    attempt_no         integer      not null,
    input_json         jsonb        not null,
    result_code        integer,
    output_json        jsonb,
    message            text,
    logged_at          timestamptz  not null,
    constraint pk_test_bed_task_log primary key (test_bed_run_id, task_no),
    constraint fk_test_bed_task_log_run foreign key (test_bed_run_id)
        references wf.test_bed_run on delete cascade
);
