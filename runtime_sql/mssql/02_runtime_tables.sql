-- Run-time tables: what instances leave. Twin: pg/02_runtime_tables.sql
--
-- None of them has a foreign key on the hot path (they cost a third of the rate); `wf db verify`
-- checks the references by query. The gate of an instance is not its row here but the application
-- lock 'wf.i.<id>' (R1). A document that may be a scalar is checked inside an array, since ISJSON
-- knows only objects and arrays before SQL Server 2022.

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

create table wf.workflow_instance (
    workflow_instance_id      bigint identity(1, 1) not null,
    workflow_def_id           bigint not null,
    workflow_version_id       bigint not null,
    spec_format               int not null,
    status                    nvarchar(20) collate Latin1_General_100_BIN2 not null
        constraint df_workflow_instance_status default N'CREATED',
    root_execution_id         bigint null,
    priority                  int not null constraint df_workflow_instance_priority default 0,
    business_key              nvarchar(200) collate Latin1_General_100_BIN2 null,
    tags_json                 nvarchar(max) collate Latin1_General_100_BIN2 not null
        constraint df_workflow_instance_tags_json default N'{}',
    deadline_at               datetime2(3) null,
    parent_node_execution_id  bigint null,
    root_instance_id          bigint null,
    continued_from_id         bigint null,
    started_by                nvarchar(max) collate Latin1_General_100_BIN2 null,
    trace_parent              nvarchar(max) collate Latin1_General_100_BIN2 null,
    cancel_reason             nvarchar(max) collate Latin1_General_100_BIN2 null,
    execution_scope_id        bigint null,
    events_after_id           bigint not null constraint df_workflow_instance_events_after_id default 0,
    created_at                datetime2(3) not null,
    started_at                datetime2(3) null,
    ended_at                  datetime2(3) null,
    error_code                int null,
    engine_error_code         int null,
    engine_error_message      nvarchar(max) collate Latin1_General_100_BIN2 null,
    error_execution_id        bigint null,
    constraint pk_workflow_instance primary key (workflow_instance_id),
    constraint ck_workflow_instance_status check
        (status in (N'CREATED', N'RUNNING', N'PAUSED', N'SUCCEEDED', N'FAILED', N'CANCELLED')),
    constraint ck_workflow_instance_business_key check (len(business_key) >= 1),
    constraint ck_workflow_instance_tags_json check (isjson(tags_json) = 1)
);
create unique index uq_workflow_instance_business_key
    on wf.workflow_instance (workflow_def_id, business_key) where business_key is not null;
create index ix_workflow_instance_version on wf.workflow_instance (workflow_version_id);
-- The few that run among the many that have ended; only an instance's end touches it.
create index ix_workflow_instance_open on wf.workflow_instance (workflow_instance_id)
    where ended_at is null;

create table wf.instance_tag (
    workflow_instance_id  bigint not null,
    name                  nvarchar(200) collate Latin1_General_100_BIN2 not null,
    value                 nvarchar(200) collate Latin1_General_100_BIN2 not null,
    constraint pk_instance_tag primary key (workflow_instance_id, name)
);
create index ix_instance_tag_value on wf.instance_tag (name, value);

-- The large documents of an instance, apart from its hot row.
create table wf.execution_context (
    workflow_instance_id  bigint not null,
    context_json          nvarchar(max) collate Latin1_General_100_BIN2 not null,
    event_json            nvarchar(max) collate Latin1_General_100_BIN2 null,
    output_json           nvarchar(max) collate Latin1_General_100_BIN2 null,
    constraint pk_execution_context primary key (workflow_instance_id),
    constraint ck_execution_context_context_json check (isjson(context_json) = 1),
    constraint ck_execution_context_event_json check (isjson(event_json) = 1),
    constraint ck_execution_context_output_json check (isjson(N'[' + output_json + N']') = 1)
);

create table wf.instance_extension (
    workflow_instance_id  bigint not null,
    name                  nvarchar(200) collate Latin1_General_100_BIN2 not null,
    value_json            nvarchar(max) collate Latin1_General_100_BIN2 not null,
    constraint pk_instance_extension primary key (workflow_instance_id, name),
    constraint ck_instance_extension_value_json check (isjson(N'[' + value_json + N']') = 1)
);

-- A plan whose variables were merged into an instance (wf_apply_validation_plan.sql).
create table wf.validation_plan (
    workflow_instance_id  bigint not null,
    plan_hash             nvarchar(64) collate Latin1_General_100_BIN2 not null,
    applied_at            datetime2(3) not null,
    constraint pk_validation_plan primary key (workflow_instance_id, plan_hash)
);

-- One row per activation of a node, for all its attempts: inserted once, updated once when it ends.
-- Whether an ACTION is READY or RUNNING is read from wf.task; parent_execution_id 0 is the root's.
create table wf.node_execution (
    node_execution_id     bigint not null,
    workflow_instance_id  bigint not null,
    parent_execution_id   bigint not null,
    node_id               bigint not null,
    iteration_no          int not null constraint df_node_execution_iteration_no default 0,
    scope_id              bigint not null,
    join_parent_id        bigint not null constraint df_node_execution_join_parent_id default 0,
    status                nvarchar(20) collate Latin1_General_100_BIN2 not null,
    attempt_no            int not null constraint df_node_execution_attempt_no default 0,
    delivery_count        int not null constraint df_node_execution_delivery_count default 0,
    result_code           int null,
    engine_error_code     int null,
    engine_error_message  nvarchar(max) collate Latin1_General_100_BIN2 null,
    error_execution_id    bigint null,
    last_token            bigint null,
    answered_code         int null,
    answer                nvarchar(20) collate Latin1_General_100_BIN2 null,
    worker_id             nvarchar(200) collate Latin1_General_100_BIN2 null,
    completed_by          nvarchar(max) collate Latin1_General_100_BIN2 null,
    payload_ref           nvarchar(max) collate Latin1_General_100_BIN2 null,
    created_at            datetime2(3) not null,
    started_at            datetime2(3) null,
    ended_at              datetime2(3) null,
    input_json            nvarchar(max) collate Latin1_General_100_BIN2 null,
    output_json           nvarchar(max) collate Latin1_General_100_BIN2 null,
    progress_json         nvarchar(max) collate Latin1_General_100_BIN2 null,
    constraint pk_node_execution primary key (node_execution_id),
    constraint ck_node_execution_status check
        (status in (N'READY', N'RUNNING', N'SUCCEEDED', N'FAILED', N'SKIPPED', N'CANCELLED')),
    constraint ck_node_execution_input_json check (isjson(N'[' + input_json + N']') = 1),
    constraint ck_node_execution_output_json check (isjson(N'[' + output_json + N']') = 1),
    constraint ck_node_execution_progress_json check (isjson(N'[' + progress_json + N']') = 1)
);
create unique index uq_node_execution_place on wf.node_execution
    (workflow_instance_id, parent_execution_id, node_id, iteration_no);
create sequence wf.node_execution_id_seq as bigint start with 1 increment by 1 cache 100;

-- READY and leased ACTIONs, and nothing else: a row goes when its execution ends. The dispatch
-- columns are copied when the ACTION is activated, so a change of the catalog touches later ones (R24).
-- is_claimable: due and not paused; kept by the maintenance pass, so that the claim index holds
-- only what can be claimed (R15).
create table wf.task (
    node_execution_id     bigint not null,
    workflow_instance_id  bigint not null,
    node_id               bigint not null,
    action_id             bigint not null,
    priority              int not null constraint df_task_priority default 0,
    available_at          datetime2(3) not null,
    is_claimable          bit not null,
    pinned_worker_id      nvarchar(200) collate Latin1_General_100_BIN2 null,
    affinity_key          nvarchar(200) collate Latin1_General_100_BIN2 null,
    max_per_worker        int null,
    max_concurrent        int null,
    rate_per_minute       int null,
    is_exclusive          bit not null constraint df_task_is_exclusive default 0,
    prefers_previous      bit not null constraint df_task_prefers_previous default 0,
    prefers_group         bit not null constraint df_task_prefers_group default 0,
    requires_previous     bit not null constraint df_task_requires_previous default 0,
    attempt_no            int not null constraint df_task_attempt_no default 1,
    attempts_before       int not null constraint df_task_attempts_before default 0,
    delivery_count        int not null constraint df_task_delivery_count default 0,
    worker_id             nvarchar(200) collate Latin1_General_100_BIN2 null,
    lease_token           bigint not null constraint df_task_lease_token default 0,
    lease_until           datetime2(3) null,
    deadline_at           datetime2(3) null,
    claimed_at            datetime2(3) null,
    input_json            nvarchar(max) collate Latin1_General_100_BIN2 not null,
    constraint pk_task primary key (node_execution_id),
    constraint ck_task_lease check
        ((worker_id is null and lease_until is null)
        or (worker_id is not null and lease_until is not null)),
    constraint ck_task_input_json check (isjson(N'[' + input_json + N']') = 1)
);
create index ix_task_claim on wf.task (action_id, priority desc, available_at, node_execution_id)
    where is_claimable = 1 and worker_id is null and pinned_worker_id is null;
create index ix_task_claim_pinned
    on wf.task (pinned_worker_id, action_id, priority desc, available_at, node_execution_id)
    where is_claimable = 1 and worker_id is null and pinned_worker_id is not null;
create index ix_task_lease on wf.task (lease_until, node_execution_id) where worker_id is not null;
create index ix_task_worker on wf.task (worker_id, action_id) where worker_id is not null;
create index ix_task_limited on wf.task (action_id)
    where worker_id is not null and max_concurrent is not null;
create index ix_task_due on wf.task (available_at, node_execution_id) where is_claimable = 0;
create index ix_task_deadline on wf.task (deadline_at, node_execution_id)
    where deadline_at is not null;
create index ix_task_instance on wf.task (workflow_instance_id);
GO

create view wf.task_lease as
select t.node_execution_id, t.workflow_instance_id, t.action_id, t.worker_id, t.lease_token,
       t.lease_until, t.claimed_at, t.attempt_no
  from wf.task as t
 where t.worker_id is not null;
GO

-- Actions that are limited over all workers (max_concurrent, rate_per_minute). A claim of such an
-- action holds this row, so that two claims never spend the same room.
create table wf.action_throttle (
    action_id    bigint not null,
    claim_count  bigint not null constraint df_action_throttle_claim_count default 0,
    constraint pk_action_throttle primary key (action_id)
);

-- The claims of actions with a rate_per_minute in the last minute; older rows go with the next claim.
create table wf.action_claim (
    action_id          bigint not null,
    claimed_at         datetime2(3) not null,
    node_execution_id  bigint not null,
    lease_token        bigint not null,
    constraint pk_action_claim primary key (action_id, claimed_at, node_execution_id, lease_token)
);

-- A row for each attempt that did not end its execution, and for each delivery of one whose lease was
-- lost (R4).
create table wf.node_attempt (
    node_execution_id     bigint not null,
    lease_token           bigint not null,
    attempt_no            int not null,
    worker_id             nvarchar(200) collate Latin1_General_100_BIN2 null,
    result_code           int null,
    output_hash           nvarchar(64) collate Latin1_General_100_BIN2 null,
    answer                nvarchar(20) collate Latin1_General_100_BIN2 not null,
    engine_error_code     int null,
    engine_error_message  nvarchar(max) collate Latin1_General_100_BIN2 null,
    claimed_at            datetime2(3) null,
    ended_at              datetime2(3) not null,
    constraint pk_node_attempt primary key (node_execution_id, lease_token)
);

-- Joins are decided by this counter, never by counting siblings. open_count: children started and
-- not ended. next_index: the first child or iteration not started yet. last_started: the one that
-- the latest update started, if it did. join_parent_id is the next counter above (R1 has the order
-- in which counters are touched). skips_known: a FOREACH with `reuse`.
create table wf.join_counter (
    node_execution_id     bigint not null,
    workflow_instance_id  bigint not null,
    join_parent_id        bigint not null constraint df_join_counter_join_parent_id default 0,
    total_count           int not null,
    next_index            int not null,
    open_count            int not null,
    succeeded_count       int not null constraint df_join_counter_succeeded_count default 0,
    failed_count          int not null constraint df_join_counter_failed_count default 0,
    last_started          int null,
    needed_count          int null,
    allowed_failures      int not null constraint df_join_counter_allowed_failures default 0,
    keeps_going           bit not null constraint df_join_counter_keeps_going default 0,
    skips_known           bit not null constraint df_join_counter_skips_known default 0,
    first_failed_id       bigint null,
    constraint pk_join_counter primary key (node_execution_id),
    constraint ck_join_counter check (open_count >= 0 and next_index <= total_count)
);

-- An end that waits: a SEQUENCE in its on_error or finally with its verdict so far, or a composite
-- that has closed what was open below it and waits for finallys there (R13).
-- phase: ON_ERROR or FINALLY is running; WAITING for what is counted by the rows that name this one
-- in cancel_parent_id. is_cancelled: it will be CANCELLED in the end, and then tells cancel_parent_id.
-- verdict: SUCCEED, FAIL, or, for a SEQUENCE whose time is up, BODY_FAILED (it goes on to its on_error)
-- and HANDLER_FAILED (it was in its on_error and goes on to its finally).
create table wf.pending_end (
    node_execution_id     bigint not null,
    workflow_instance_id  bigint not null,
    phase                 nvarchar(20) collate Latin1_General_100_BIN2 not null,
    is_cancelled          bit not null constraint df_pending_end_is_cancelled default 0,
    cancel_parent_id      bigint not null constraint df_pending_end_cancel_parent_id default 0,
    verdict               nvarchar(20) collate Latin1_General_100_BIN2 null,
    result_code           int null,
    engine_error_code     int null,
    engine_error_message  nvarchar(max) collate Latin1_General_100_BIN2 null,
    error_execution_id    bigint null,
    constraint pk_pending_end primary key (node_execution_id),
    constraint ck_pending_end_phase check (phase in (N'ON_ERROR', N'FINALLY', N'WAITING')),
    constraint ck_pending_end_verdict check
        (verdict in (N'SUCCEED', N'FAIL', N'BODY_FAILED', N'HANDLER_FAILED'))
);
create index ix_pending_end_cancel_parent on wf.pending_end (cancel_parent_id)
    where cancel_parent_id <> 0;

-- What happens by itself at a time: the time-out of a composite or a WAIT_EVENT, the end of a sleep.
create table wf.timer (
    node_execution_id     bigint not null,
    workflow_instance_id  bigint not null,
    due_at                datetime2(3) not null,
    constraint pk_timer primary key (node_execution_id)
);
create index ix_timer_due on wf.timer (due_at, node_execution_id);
create index ix_timer_instance on wf.timer (workflow_instance_id, due_at);

-- How often a REPEAT runs: evaluated once, at activation.
create table wf.loop_state (
    node_execution_id     bigint not null,
    workflow_instance_id  bigint not null,
    total_count           bigint not null,
    constraint pk_loop_state primary key (node_execution_id)
);

-- Items of a FOREACH whose iterations did not all start at once; with `reuse`, all of its items.
-- content_key: of the iteration, with `reuse`. known_json: what the iteration exported when it was
-- run before; it is skipped when its turn comes.
create table wf.foreach_item (
    node_execution_id  bigint not null,
    iteration_no       int not null,
    item_json          nvarchar(max) collate Latin1_General_100_BIN2 not null,
    content_key        nvarchar(64) collate Latin1_General_100_BIN2 null,
    known_json         nvarchar(max) collate Latin1_General_100_BIN2 null,
    constraint pk_foreach_item primary key (node_execution_id, iteration_no),
    constraint ck_foreach_item_item_json check (isjson(N'[' + item_json + N']') = 1),
    constraint ck_foreach_item_known_json check (isjson(known_json) = 1)
);

-- What iterations of FOREACHs with `reuse` exported (S9): an object {collect name: value}. Of a key
-- the entry of the lowest writer_id counts. writer_id is the transaction that wrote it, so two that
-- write one key at once never wait for each other (wf_foreach_bundles.sql).
create table wf.foreach_bundle_entry (
    content_key             nvarchar(64) collate Latin1_General_100_BIN2 not null,
    writer_id               bigint not null,
    workflow_name           nvarchar(200) collate Latin1_General_100_BIN2 not null,
    node_key                nvarchar(200) collate Latin1_General_100_BIN2 not null,
    exported_json           nvarchar(max) collate Latin1_General_100_BIN2 not null,
    created_by_instance_id  bigint not null,
    created_at              datetime2(3) not null,
    constraint pk_foreach_bundle_entry primary key (content_key, writer_id),
    constraint ck_foreach_bundle_entry_key check
        (len(content_key) = 64 and content_key not like N'%[^0-9a-f]%'),
    constraint ck_foreach_bundle_entry_exported_json check (isjson(exported_json) = 1)
);
create index ix_foreach_bundle_entry_created on wf.foreach_bundle_entry (created_at);

-- A scope is one activation of a node that has variables; its id is that execution's id.
create table wf.scope (
    scope_id              bigint not null,
    parent_scope_id       bigint not null,
    workflow_instance_id  bigint not null,
    owner_key             nvarchar(200) collate Latin1_General_100_BIN2 not null,
    constraint pk_scope primary key (scope_id)
);

create table wf.scope_variable (
    scope_id    bigint not null,
    name        nvarchar(200) collate Latin1_General_100_BIN2 not null,
    value_json  nvarchar(max) collate Latin1_General_100_BIN2 not null,
    constraint pk_scope_variable primary key (scope_id, name),
    constraint ck_scope_variable_value_json check (isjson(N'[' + value_json + N']') = 1)
);

-- Which worker completed the last task of an affinity key in an instance, and the last one whose
-- action requires the previous worker: later such tasks of the key are pinned to it. released_at
-- frees the pin.
create table wf.affinity (
    workflow_instance_id  bigint not null,
    affinity_key          nvarchar(200) collate Latin1_General_100_BIN2 not null,
    worker_id             nvarchar(200) collate Latin1_General_100_BIN2 not null,
    pinned_worker_id      nvarchar(200) collate Latin1_General_100_BIN2 null,
    pinned_action_id      bigint null,
    released_at           datetime2(3) null,
    constraint pk_affinity primary key (workflow_instance_id, affinity_key)
);

-- Parameters under which instances run: a row never changes (wf_execution_scope.sql).
create table wf.execution_scope (
    execution_scope_id  bigint identity(1, 1) not null,
    name                nvarchar(200) collate Latin1_General_100_BIN2 not null,
    content_hash        nvarchar(64) collate Latin1_General_100_BIN2 not null,
    parameters_json     nvarchar(max) collate Latin1_General_100_BIN2 not null,
    created_at          datetime2(3) not null,
    constraint pk_execution_scope primary key (execution_scope_id),
    constraint uq_execution_scope unique (name, content_hash),
    constraint ck_execution_scope_parameters_json check (isjson(parameters_json) = 1)
);

-- What each ACTION produced under a scope; it stays when the instance is purged.
create table wf.execution_scope_action_entry (
    execution_scope_id  bigint not null,
    node_execution_id   bigint not null,
    action_name         nvarchar(200) collate Latin1_General_100_BIN2 not null,
    result_code         int not null,
    output_json         nvarchar(max) collate Latin1_General_100_BIN2 null,
    recorded_at         datetime2(3) not null,
    constraint pk_execution_scope_action_entry primary key
        (execution_scope_id, node_execution_id),
    constraint fk_execution_scope_action_entry_scope foreign key (execution_scope_id)
        references wf.execution_scope (execution_scope_id),
    constraint ck_execution_scope_action_entry_output_json
        check (isjson(N'[' + output_json + N']') = 1)
);

-- Workers --------------------------------------------------------------------------------------

-- The row that a claim locks: claims of one worker queue, those of different workers never meet.
create table wf.worker (
    worker_id        nvarchar(200) collate Latin1_General_100_BIN2 not null,
    desired_state    nvarchar(20) collate Latin1_General_100_BIN2 not null
        constraint df_worker_desired_state default N'ACTIVE',
    max_concurrency  int not null constraint df_worker_max_concurrency default 1,
    build_id         nvarchar(max) collate Latin1_General_100_BIN2 null,
    registered_at    datetime2(3) not null,
    constraint pk_worker primary key (worker_id),
    constraint ck_worker_id check (len(worker_id) >= 1),
    constraint ck_worker_state check (desired_state in (N'ACTIVE', N'DRAINING', N'STOPPING'))
);

create table wf.worker_capability (
    worker_id   nvarchar(200) collate Latin1_General_100_BIN2 not null,
    capability  nvarchar(200) collate Latin1_General_100_BIN2 not null,
    constraint pk_worker_capability primary key (worker_id, capability),
    constraint fk_worker_capability_worker foreign key (worker_id)
        references wf.worker (worker_id) on delete cascade
);

-- Tokens are random 256-bit strings, so a salted SHA-256 is enough; at most two live ones a worker.
create table wf.worker_token (
    worker_id   nvarchar(200) collate Latin1_General_100_BIN2 not null,
    token_id    nvarchar(200) collate Latin1_General_100_BIN2 not null,
    salt        varbinary(64) not null,
    token_hash  varbinary(64) not null,
    created_at  datetime2(3) not null,
    expires_at  datetime2(3) null,
    revoked_at  datetime2(3) null,
    constraint pk_worker_token primary key (worker_id, token_id),
    constraint fk_worker_token_worker foreign key (worker_id)
        references wf.worker (worker_id) on delete cascade
);

-- Apart from wf.worker, so that a heartbeat never touches the row that claims lock.
create table wf.worker_presence (
    worker_id     nvarchar(200) collate Latin1_General_100_BIN2 not null,
    last_seen_at  datetime2(3) not null,
    constraint pk_worker_presence primary key (worker_id),
    constraint fk_worker_presence_worker foreign key (worker_id)
        references wf.worker (worker_id) on delete cascade
);

-- Keys of those who are no workers: random 256-bit strings, so a salted SHA-256 is enough. Lists are
-- JSON arrays.
create table wf.api_key (
    key_id        nvarchar(200) collate Latin1_General_100_BIN2 not null,
    name          nvarchar(200) collate Latin1_General_100_BIN2 not null,
    roles         nvarchar(max) collate Latin1_General_100_BIN2 not null,
    source        nvarchar(200) collate Latin1_General_100_BIN2 null,
    event_types   nvarchar(max) collate Latin1_General_100_BIN2 not null,
    capabilities  nvarchar(max) collate Latin1_General_100_BIN2 not null,
    salt          varbinary(64) not null,
    key_hash      varbinary(64) not null,
    created_at    datetime2(3) not null,
    expires_at    datetime2(3) null,
    revoked_at    datetime2(3) null,
    constraint pk_api_key primary key (key_id),
    constraint ck_api_key_name check (len(name + N'.') - 1 between 1 and 200),
    constraint ck_api_key_roles check (isjson(roles) = 1),
    constraint ck_api_key_event_types check (isjson(event_types) = 1),
    constraint ck_api_key_capabilities check (isjson(capabilities) = 1)
);
create unique index uq_api_key_name on wf.api_key (name) where revoked_at is null;

-- Events ---------------------------------------------------------------------------------------

-- keep_for_ms: how long an event of the type is kept for waits that open later (R33); 30 days, also
-- for a type that has no row.
create table wf.event_type (
    event_type  nvarchar(200) collate Latin1_General_100_BIN2 not null,
    keep_for_ms    bigint not null constraint df_event_type_keep_for_ms default 2592000000,
    constraint pk_event_type primary key (event_type),
    constraint ck_event_type check (len(event_type) >= 1)
);

-- workflow_instance_id: of a signal to one instance, whose waits alone may take it; else null.
create table wf.event (
    event_id              bigint identity(1, 1) not null,
    event_type            nvarchar(200) collate Latin1_General_100_BIN2 not null,
    source                nvarchar(200) collate Latin1_General_100_BIN2 not null,
    idempotency_key       nvarchar(200) collate Latin1_General_100_BIN2 not null,
    correlation_key       nvarchar(200) collate Latin1_General_100_BIN2 null,
    payload_json          nvarchar(max) collate Latin1_General_100_BIN2 not null,
    occurred_at           datetime2(3) not null,
    ingested_at           datetime2(3) not null,
    duplicate_count       int not null constraint df_event_duplicate_count default 0,
    workflow_instance_id  bigint null,
    constraint pk_event primary key (event_id),
    constraint uq_event_idempotency unique (source, idempotency_key),
    constraint ck_event_payload_json check (isjson(N'[' + payload_json + N']') = 1)
);
create index ix_event_type on wf.event (event_type, correlation_key, event_id);
create index ix_event_ingested on wf.event (ingested_at);

-- Where a wait and an event meet: both update this row before they look for the other (R2), so
-- that one of them sees the other's work. The key '' stands for waits without `correlate`.
create table wf.event_route (
    event_type       nvarchar(200) collate Latin1_General_100_BIN2 not null,
    correlation_key  nvarchar(200) collate Latin1_General_100_BIN2 not null,
    touched          bigint not null constraint df_event_route_touched default 0,
    constraint pk_event_route primary key (event_type, correlation_key)
);

-- An open WAIT_EVENT; the row goes when the wait ends. correlation_key null matches any event of
-- the type, matches_nothing is a `correlate` that gave null.
create table wf.event_wait (
    node_execution_id     bigint not null,
    workflow_instance_id  bigint not null,
    event_type            nvarchar(200) collate Latin1_General_100_BIN2 not null,
    correlation_key       nvarchar(200) collate Latin1_General_100_BIN2 null,
    matches_nothing       bit not null constraint df_event_wait_matches_nothing default 0,
    constraint pk_event_wait primary key (node_execution_id)
);
create index ix_event_wait_event on wf.event_wait (event_type, correlation_key, node_execution_id);
create index ix_event_wait_instance on wf.event_wait (workflow_instance_id);

create table wf.event_delivery (
    event_id              bigint not null,
    delivery_no           int not null,
    workflow_def_id       bigint null,
    workflow_instance_id  bigint null,
    node_execution_id     bigint null,
    outcome               nvarchar(20) collate Latin1_General_100_BIN2 not null,
    reason                nvarchar(max) collate Latin1_General_100_BIN2 null,
    delivered_at          datetime2(3) not null,
    constraint pk_event_delivery primary key (event_id, delivery_no),
    constraint ck_event_delivery_outcome check (outcome in (N'applied', N'ignored'))
);
create index ix_event_delivery_instance on wf.event_delivery (workflow_instance_id, event_id);

-- Housekeeping ---------------------------------------------------------------------------------

create table wf.schema_version (
    version       int not null,
    installed_at  datetime2(3) not null
        constraint df_schema_version_installed_at default sysutcdatetime(),
    constraint pk_schema_version primary key (version)
);

create table wf.audit_log (
    audit_id     bigint identity(1, 1) not null,
    at           datetime2(3) not null,
    who          nvarchar(128) not null constraint df_audit_log_who default original_login(),
    what         nvarchar(max) collate Latin1_General_100_BIN2 not null,
    detail_json  nvarchar(max) collate Latin1_General_100_BIN2 not null
        constraint df_audit_log_detail_json default N'{}',
    constraint pk_audit_log primary key (audit_id),
    constraint ck_audit_log_detail_json check (isjson(detail_json) = 1)
);
GO
