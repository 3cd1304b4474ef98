-- Version 1 to 2: roles, views for operators, limits over all workers, retry by an operator, types of
-- variables, reuse of iterations, execution scopes, the test bed. What was published before is not checked against types: its rows never change.
--
-- A clock that was moved stays moved, and its database counts as one for tests from now on.
insert into wf.wf_setting (name, value)
select 'test_database', 'true'
  from wf.wf_setting s
 where s.name = 'now';

-- Limits over all workers. They were stored and did not act, so that any number was accepted.
update wf.workflow_action a set max_concurrent = null where a.max_concurrent <= 0;
update wf.workflow_action a set rate_per_minute = null where a.rate_per_minute <= 0;
alter table wf.workflow_action
    add constraint ck_workflow_action_max_concurrent check (max_concurrent > 0),
    add constraint ck_workflow_action_rate_per_minute check (rate_per_minute > 0);
alter table wf.task
    add column max_concurrent integer,
    add column rate_per_minute integer,
    add column attempts_before integer not null default 0;
update wf.task t
   set max_concurrent = a.max_concurrent, rate_per_minute = a.rate_per_minute
  from wf.workflow_action a
 where a.action_id = t.action_id
   and (a.max_concurrent is not null or a.rate_per_minute is not null);
create index ix_task_limited on wf.task (action_id)
    where worker_id is not null and max_concurrent is not null;
create table wf.action_throttle (
    action_id    bigint  not null,
    claim_count  bigint  not null default 0,
    constraint pk_action_throttle primary key (action_id)
) with (fillfactor = 50);
create table wf.action_claim (
    action_id          bigint       not null,
    claimed_at         timestamptz  not null,
    node_execution_id  bigint       not null,
    lease_token        bigint       not null,
    constraint pk_action_claim primary key (action_id, claimed_at, node_execution_id, lease_token)
);
insert into wf.action_throttle (action_id) select a.action_id from wf.workflow_action a;

-- Types of variables. A literal was written unchecked, and still is.
alter table wf.variable_output_binding add column type_id integer;
alter table wf.node_scope_default add column is_constant boolean not null default false;
update wf.node_scope_default d
   set is_constant = true
 where d.variable_kind = 'var' and jsonb_array_length(d.program_json) = 1
   and d.program_json -> 0 ->> 0 = 'lit';

-- What publishing derives of inputs that are variables and nothing else.
alter table wf.workflow_node add column has_plain_inputs boolean;
alter table wf.workflow_input_binding
    add column variable_name text,
    add column variable_owner text;
update wf.workflow_input_binding b
   set variable_name = b.program_json -> 0 ->> 1, variable_owner = b.program_json -> 0 ->> 2
 where jsonb_array_length(b.program_json) = 1 and b.program_json -> 0 ->> 0 = 'var'
   and b.program_json -> 0 -> 3 = '[]' and cardinality(b.path) = 1;
update wf.workflow_node n
   set has_plain_inputs = not exists (
           select 1 from wf.workflow_input_binding b
            where b.node_id = n.node_id and b.variable_name is null)
       and not exists (
           select 1 from wf.workflow_input_template t
            where t.workflow_version_id = n.workflow_version_id and t.node_key = n.node_key
              and jsonb_typeof(t.template_json) <> 'object');

-- Nodes follow one another by id, in the order in which they were deployed.
alter table wf.workflow_node drop column node_order;

-- Execution scopes, validation plans, bundles of iterations, the test bed. Nothing wrote these tables
-- before.
alter table wf.workflow_instance add column execution_scope_id bigint;
create table wf.validation_plan (
    workflow_instance_id  bigint       not null,
    plan_hash             text         not null,
    applied_at            timestamptz  not null,
    constraint pk_validation_plan primary key (workflow_instance_id, plan_hash)
);
alter table wf.execution_scope add column created_at timestamptz;
update wf.execution_scope set created_at = pg_catalog.clock_timestamp();
alter table wf.execution_scope alter column created_at set not null;
alter table wf.join_counter add column skips_known boolean not null default false;
alter table wf.foreach_item
    add column content_key text,
    add column known_json jsonb;
drop table wf.foreach_bundle_entry;
create table wf.foreach_bundle_entry (
    content_key             text         not null,
    writer_id               bigint       not null,
    workflow_name           text         not null,
    node_key                text         not null,
    exported_json           jsonb        not null,
    created_by_instance_id  bigint       not null,
    created_at              timestamptz  not null,
    constraint pk_foreach_bundle_entry primary key (content_key, writer_id),
    constraint ck_foreach_bundle_entry_key check (content_key ~ '^[0-9a-f]{64}$')
);
create index ix_foreach_bundle_entry_created on wf.foreach_bundle_entry (created_at);
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

-- Signals to one instance, and how long events are kept.
alter table wf.event add column workflow_instance_id bigint;
create index ix_event_ingested on wf.event (ingested_at);

-- When an attempt that did not end its execution was claimed; unknown of older ones.
alter table wf.node_attempt add column claimed_at timestamptz;

-- Keys for gateways.
create table wf.api_key (
    key_id        text         not null,
    name          text         not null,
    roles         text[]       not null,
    source        text,
    event_types   text[]       not null,
    capabilities  text[]       not null,
    salt          bytea        not null,
    key_hash      bytea        not null,
    created_at    timestamptz  not null,
    expires_at    timestamptz,
    revoked_at    timestamptz,
    constraint pk_api_key primary key (key_id),
    constraint ck_api_key_name check (char_length(name) between 1 and 200)
);
create unique index uq_api_key_name on wf.api_key (name) where revoked_at is null;

create index ix_workflow_instance_open on wf.workflow_instance (workflow_instance_id)
    where ended_at is null;
