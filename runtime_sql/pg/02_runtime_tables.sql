-- Run-time tables: what instances leave. Twin: mssql/02_runtime_tables.sql
--
-- None of them has a foreign key on the hot path (they cost a third of the rate); `wf db verify`
-- checks the references by query. Hot rows are narrow and are updated in place: no index holds a
-- status or a time of a row that is updated on every step, and the fill factors leave room for HOT.

-- One row per instance. Its row lock is the instance's gate: FOR KEY SHARE for calls that only
-- extend their own branch, FOR UPDATE for calls that may close other work (03_engine_core.sql).
-- events_after_id: the last event id given out when it started; later ones it may take (R33).
create table wf.workflow_instance (
    workflow_instance_id      bigint       generated always as identity,
    workflow_def_id           bigint       not null,
    workflow_version_id       bigint       not null,
    spec_format               integer      not null,
    status                    text         not null default 'CREATED',
    root_execution_id         bigint,
    priority                  integer      not null default 0,
    business_key              text,
    tags_json                 jsonb        not null default '{}',
    deadline_at               timestamptz,
    parent_node_execution_id  bigint,
    root_instance_id          bigint,
    continued_from_id         bigint,
    started_by                text,
    trace_parent              text,
    cancel_reason             text,
    execution_scope_id        bigint,
    events_after_id           bigint       not null default 0,
    created_at                timestamptz  not null,
    started_at                timestamptz,
    ended_at                  timestamptz,
    error_code                integer,
    engine_error_code         integer,
    engine_error_message      text,
    error_execution_id        bigint,
    constraint pk_workflow_instance primary key (workflow_instance_id),
    constraint ck_workflow_instance_status check
        (status in ('CREATED', 'RUNNING', 'PAUSED', 'SUCCEEDED', 'FAILED', 'CANCELLED')),
    constraint ck_workflow_instance_business_key check
        (char_length(business_key) between 1 and 200)
) with (fillfactor = 50);
create unique index uq_workflow_instance_business_key
    on wf.workflow_instance (workflow_def_id, business_key) where business_key is not null;
create index ix_workflow_instance_version on wf.workflow_instance (workflow_version_id);
-- The few that run among the many that have ended; only an instance's end touches it.
create index ix_workflow_instance_open on wf.workflow_instance (workflow_instance_id)
    where ended_at is null;

create table wf.instance_tag (
    workflow_instance_id  bigint  not null,
    name                  text    not null,
    value                 text    not null,
    constraint pk_instance_tag primary key (workflow_instance_id, name)
);
create index ix_instance_tag_value on wf.instance_tag (name, value);

-- The large documents of an instance, apart from its hot row.
create table wf.execution_context (
    workflow_instance_id  bigint  not null,
    context_json          jsonb   not null,
    event_json            jsonb,
    output_json           jsonb,
    constraint pk_execution_context primary key (workflow_instance_id)
);

create table wf.instance_extension (
    workflow_instance_id  bigint  not null,
    name                  text    not null,
    value_json            jsonb   not null,
    constraint pk_instance_extension primary key (workflow_instance_id, name)
);

-- A plan whose variables were merged into an instance (wf_apply_validation_plan.sql).
create table wf.validation_plan (
    workflow_instance_id  bigint       not null,
    plan_hash             text         not null,
    applied_at            timestamptz  not null,
    constraint pk_validation_plan primary key (workflow_instance_id, plan_hash)
);

-- One row per activation of a node, for all its attempts: inserted once, updated once when it ends.
-- Whether an ACTION is READY or RUNNING is read from wf.task; parent_execution_id 0 is the root's.
create table wf.node_execution (
    node_execution_id     bigint       not null,
    workflow_instance_id  bigint       not null,
    parent_execution_id   bigint       not null,
    node_id               bigint       not null,
    iteration_no          integer      not null default 0,
    scope_id              bigint       not null,
    join_parent_id        bigint       not null default 0,
    status                text         not null,
    attempt_no            integer      not null default 0,
    delivery_count        integer      not null default 0,
    result_code           integer,
    engine_error_code     integer,
    engine_error_message  text,
    error_execution_id    bigint,
    last_token            bigint,
    answered_code         integer,
    answer                text,
    worker_id             text,
    completed_by          text,
    payload_ref           text,
    created_at            timestamptz  not null,
    started_at            timestamptz,
    ended_at              timestamptz,
    input_json            jsonb,
    output_json           jsonb,
    progress_json         jsonb,
    constraint pk_node_execution primary key (node_execution_id),
    constraint ck_node_execution_status check
        (status in ('READY', 'RUNNING', 'SUCCEEDED', 'FAILED', 'SKIPPED', 'CANCELLED'))
) with (fillfactor = 70);
create unique index uq_node_execution_place on wf.node_execution
    (workflow_instance_id, parent_execution_id, node_id, iteration_no);
create sequence wf.node_execution_id_seq as bigint cache 1 owned by wf.node_execution.node_execution_id;

-- READY and leased ACTIONs, and nothing else: a row goes when its execution ends. The dispatch
-- columns are copied when the ACTION is activated, so a change of the catalog touches later ones (R24).
-- is_claimable: due and not paused; kept by the maintenance pass, so that the claim index holds
-- only what can be claimed (R15). attempts_before: attempts made before an operator's retry, which do
-- not count against the retry budget (R14).
create table wf.task (
    node_execution_id     bigint       not null,
    workflow_instance_id  bigint       not null,
    node_id               bigint       not null,
    action_id             bigint       not null,
    priority              integer      not null default 0,
    available_at          timestamptz  not null,
    is_claimable          boolean      not null,
    pinned_worker_id      text,
    affinity_key          text,
    max_per_worker        integer,
    max_concurrent        integer,
    rate_per_minute       integer,
    is_exclusive          boolean      not null default false,
    prefers_previous      boolean      not null default false,
    prefers_group         boolean      not null default false,
    requires_previous     boolean      not null default false,
    attempt_no            integer      not null default 1,
    attempts_before       integer      not null default 0,
    delivery_count        integer      not null default 0,
    worker_id             text,
    lease_token           bigint       not null default 0,
    lease_until           timestamptz,
    deadline_at           timestamptz,
    claimed_at            timestamptz,
    input_json            jsonb        not null,
    constraint pk_task primary key (node_execution_id),
    constraint ck_task_lease check ((worker_id is null) = (lease_until is null))
) with (fillfactor = 70);
create index ix_task_claim on wf.task (action_id, priority desc, available_at, node_execution_id)
    where is_claimable and worker_id is null and pinned_worker_id is null;
create index ix_task_claim_pinned
    on wf.task (pinned_worker_id, action_id, priority desc, available_at, node_execution_id)
    where is_claimable and worker_id is null and pinned_worker_id is not null;
create index ix_task_lease on wf.task (lease_until, node_execution_id) where worker_id is not null;
create index ix_task_worker on wf.task (worker_id, action_id) where worker_id is not null;
create index ix_task_limited on wf.task (action_id)
    where worker_id is not null and max_concurrent is not null;
create index ix_task_due on wf.task (available_at, node_execution_id) where not is_claimable;
create index ix_task_deadline on wf.task (deadline_at, node_execution_id)
    where deadline_at is not null;
create index ix_task_instance on wf.task (workflow_instance_id);
alter table wf.task set (autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 2000,
                         autovacuum_vacuum_cost_delay = 0);

-- Actions that are limited over all workers (max_concurrent, rate_per_minute). A claim of such an
-- action holds this row, so that two claims never spend the same room; it is updated, not only
-- locked, so that a claim under REPEATABLE READ that counted too early is refused.
create table wf.action_throttle (
    action_id    bigint  not null,
    claim_count  bigint  not null default 0,
    constraint pk_action_throttle primary key (action_id)
) with (fillfactor = 50);

-- The claims of actions with a rate_per_minute in the last minute; older rows go with the next claim.
create table wf.action_claim (
    action_id          bigint       not null,
    claimed_at         timestamptz  not null,
    node_execution_id  bigint       not null,
    lease_token        bigint       not null,
    constraint pk_action_claim primary key (action_id, claimed_at, node_execution_id, lease_token)
);

-- A row for each attempt that did not end its execution, and for each delivery of one whose lease was
-- lost (R4).
create table wf.node_attempt (
    node_execution_id     bigint       not null,
    lease_token           bigint       not null,
    attempt_no            integer      not null,
    worker_id             text,
    result_code           integer,
    output_hash           text,
    answer                text         not null,
    engine_error_code     integer,
    engine_error_message  text,
    claimed_at            timestamptz,
    ended_at              timestamptz  not null,
    constraint pk_node_attempt primary key (node_execution_id, lease_token)
);

-- Joins are decided by this counter, never by counting siblings. open_count: children started and
-- not ended. next_index: the first child or iteration not started yet. last_started: the one that
-- the latest update started, if it did. join_parent_id is the next counter above (R1 has the order
-- in which counters are touched). A composite that failed, or that a failure cancelled, keeps its row, and
-- those of wf.loop_state and wf.foreach_item, until it is purged: a retry goes on from them (R14).
-- skips_known: a FOREACH with `reuse`.
create table wf.join_counter (
    node_execution_id     bigint   not null,
    workflow_instance_id  bigint   not null,
    join_parent_id        bigint   not null default 0,
    total_count           integer  not null,
    next_index            integer  not null,
    open_count            integer  not null,
    succeeded_count       integer  not null default 0,
    failed_count          integer  not null default 0,
    last_started          integer,
    needed_count          integer,
    allowed_failures      integer  not null default 0,
    keeps_going           boolean  not null default false,
    skips_known           boolean  not null default false,
    first_failed_id       bigint,
    constraint pk_join_counter primary key (node_execution_id),
    constraint ck_join_counter check (open_count >= 0 and next_index <= total_count)
) with (fillfactor = 20);

-- An end that waits: a SEQUENCE in its on_error or finally with its verdict so far, or a composite
-- that has closed what was open below it and waits for finallys there (R13).
-- phase: ON_ERROR or FINALLY is running; WAITING for what is counted by the rows that name this one
-- in cancel_parent_id. is_cancelled: it will be CANCELLED in the end, and then tells cancel_parent_id.
-- verdict: SUCCEED, FAIL, or, for a SEQUENCE whose time is up, BODY_FAILED (it goes on to its on_error)
-- and HANDLER_FAILED (it was in its on_error and goes on to its finally).
create table wf.pending_end (
    node_execution_id     bigint   not null,
    workflow_instance_id  bigint   not null,
    phase                 text     not null,
    is_cancelled          boolean  not null default false,
    cancel_parent_id      bigint   not null default 0,
    verdict               text,
    result_code           integer,
    engine_error_code     integer,
    engine_error_message  text,
    error_execution_id    bigint,
    constraint pk_pending_end primary key (node_execution_id),
    constraint ck_pending_end_phase check (phase in ('ON_ERROR', 'FINALLY', 'WAITING')),
    constraint ck_pending_end_verdict check
        (verdict in ('SUCCEED', 'FAIL', 'BODY_FAILED', 'HANDLER_FAILED'))
);
create index ix_pending_end_cancel_parent on wf.pending_end (cancel_parent_id)
    where cancel_parent_id <> 0;

-- What happens by itself at a time: the time-out of a composite or a WAIT_EVENT, the end of a sleep.
create table wf.timer (
    node_execution_id     bigint       not null,
    workflow_instance_id  bigint       not null,
    due_at                timestamptz  not null,
    constraint pk_timer primary key (node_execution_id)
);
create index ix_timer_due on wf.timer (due_at, node_execution_id);
create index ix_timer_instance on wf.timer (workflow_instance_id, due_at);

-- How often a REPEAT runs: evaluated once, at activation.
create table wf.loop_state (
    node_execution_id     bigint  not null,
    workflow_instance_id  bigint  not null,
    total_count           bigint  not null,
    constraint pk_loop_state primary key (node_execution_id)
);

-- Items of a FOREACH whose iterations did not all start at once; with `reuse`, all of its items.
-- content_key: of the iteration, with `reuse`. known_json: what the iteration exported when it was
-- run before; it is skipped when its turn comes.
create table wf.foreach_item (
    node_execution_id     bigint   not null,
    iteration_no          integer  not null,
    item_json             jsonb    not null,
    content_key           text,
    known_json            jsonb,
    constraint pk_foreach_item primary key (node_execution_id, iteration_no)
);

-- What iterations of FOREACHs with `reuse` exported (S9): an object {collect name: value}. Of a key
-- the entry of the lowest writer_id counts. writer_id is the transaction that wrote it, so two that
-- write one key at once never wait for each other (wf_foreach_bundles.sql).
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

-- A scope is one activation of a node that has variables; its id is that execution's id.
create table wf.scope (
    scope_id              bigint  not null,
    parent_scope_id       bigint  not null,
    workflow_instance_id  bigint  not null,
    owner_key             text    not null,
    constraint pk_scope primary key (scope_id)
);

create table wf.scope_variable (
    scope_id              bigint  not null,
    name                  text    not null,
    value_json            jsonb   not null,
    constraint pk_scope_variable primary key (scope_id, name)
) with (fillfactor = 70);

-- Which worker completed the last task of an affinity key in an instance, and the last one whose
-- action requires the previous worker: later such tasks of the key are pinned to it. released_at
-- frees the pin.
create table wf.affinity (
    workflow_instance_id  bigint       not null,
    affinity_key          text         not null,
    worker_id             text         not null,
    pinned_worker_id      text,
    pinned_action_id      bigint,
    released_at           timestamptz,
    constraint pk_affinity primary key (workflow_instance_id, affinity_key)
);

-- Parameters under which instances run: a row never changes (wf_execution_scope.sql).
create table wf.execution_scope (
    execution_scope_id  bigint       generated always as identity,
    name                text         not null,
    content_hash        text         not null,
    parameters_json     jsonb        not null,
    created_at          timestamptz  not null,
    constraint pk_execution_scope primary key (execution_scope_id),
    constraint uq_execution_scope unique (name, content_hash)
);

-- What each ACTION produced under a scope; it stays when the instance is purged.
create table wf.execution_scope_action_entry (
    execution_scope_id  bigint       not null,
    node_execution_id   bigint       not null,
    action_name         text         not null,
    result_code         integer      not null,
    output_json         jsonb,
    recorded_at         timestamptz  not null,
    constraint pk_execution_scope_action_entry primary key (execution_scope_id, node_execution_id),
    constraint fk_execution_scope_action_entry_scope foreign key (execution_scope_id)
        references wf.execution_scope
);

-- Workers --------------------------------------------------------------------------------------

-- The row that a claim locks: claims of one worker queue, those of different workers never meet.
create table wf.worker (
    worker_id        text         not null,
    desired_state    text         not null default 'ACTIVE',
    max_concurrency  integer      not null default 1,
    build_id         text,
    registered_at    timestamptz  not null,
    constraint pk_worker primary key (worker_id),
    constraint ck_worker_id check (char_length(worker_id) between 1 and 200),
    constraint ck_worker_state check (desired_state in ('ACTIVE', 'DRAINING', 'STOPPING'))
);

create table wf.worker_capability (
    worker_id   text  not null,
    capability  text  not null,
    constraint pk_worker_capability primary key (worker_id, capability),
    constraint fk_worker_capability_worker foreign key (worker_id) references wf.worker on delete cascade
);

-- Tokens are random 256-bit strings, so a salted SHA-256 is enough; at most two live ones a worker.
create table wf.worker_token (
    worker_id    text         not null,
    token_id     text         not null,
    salt         bytea        not null,
    token_hash   bytea        not null,
    created_at   timestamptz  not null,
    expires_at   timestamptz,
    revoked_at   timestamptz,
    constraint pk_worker_token primary key (worker_id, token_id),
    constraint fk_worker_token_worker foreign key (worker_id) references wf.worker on delete cascade
);

-- Apart from wf.worker, so that a heartbeat never touches the row that claims lock.
create table wf.worker_presence (
    worker_id     text         not null,
    last_seen_at  timestamptz  not null,
    constraint pk_worker_presence primary key (worker_id),
    constraint fk_worker_presence_worker foreign key (worker_id) references wf.worker on delete cascade
) with (fillfactor = 50);

-- Keys of those who are no workers: random 256-bit strings, so a salted SHA-256 is enough.
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

-- Events ---------------------------------------------------------------------------------------

-- keep_for_ms: how long an event of the type is kept for waits that open later (R33); 30 days, also
-- for a type that has no row.
create table wf.event_type (
    event_type   text    not null,
    keep_for_ms  bigint  not null default 2592000000,
    constraint pk_event_type primary key (event_type),
    constraint ck_event_type check (char_length(event_type) between 1 and 200)
);

-- workflow_instance_id: of a signal to one instance, whose waits alone may take it; else null.
create table wf.event (
    event_id              bigint       generated always as identity,
    event_type            text         not null,
    source                text         not null,
    idempotency_key       text         not null,
    correlation_key       text,
    payload_json          jsonb        not null,
    occurred_at           timestamptz  not null,
    ingested_at           timestamptz  not null,
    duplicate_count       integer      not null default 0,
    workflow_instance_id  bigint,
    constraint pk_event primary key (event_id),
    constraint uq_event_idempotency unique (source, idempotency_key)
);
create index ix_event_type on wf.event (event_type, correlation_key, event_id);
create index ix_event_ingested on wf.event (ingested_at);

-- Where a wait and an event meet: both update this row before they look for the other (R2), so
-- that one of them sees the other's work. The key '' stands for waits without `correlate`.
create table wf.event_route (
    event_type       text    not null,
    correlation_key  text    not null,
    touched          bigint  not null default 0,
    constraint pk_event_route primary key (event_type, correlation_key)
) with (fillfactor = 50);

-- An open WAIT_EVENT; the row goes when the wait ends. correlation_key null matches any event of
-- the type, matches_nothing is a `correlate` that gave null.
create table wf.event_wait (
    node_execution_id     bigint       not null,
    workflow_instance_id  bigint       not null,
    event_type            text         not null,
    correlation_key       text,
    matches_nothing       boolean      not null default false,
    constraint pk_event_wait primary key (node_execution_id)
);
create index ix_event_wait_event on wf.event_wait (event_type, correlation_key, node_execution_id);
create index ix_event_wait_instance on wf.event_wait (workflow_instance_id);

create table wf.event_delivery (
    event_id              bigint       not null,
    delivery_no           integer      not null,
    workflow_def_id       bigint,
    workflow_instance_id  bigint,
    node_execution_id     bigint,
    outcome               text         not null,
    reason                text,
    delivered_at          timestamptz  not null,
    constraint pk_event_delivery primary key (event_id, delivery_no),
    constraint ck_event_delivery_outcome check (outcome in ('applied', 'ignored'))
);
create index ix_event_delivery_instance on wf.event_delivery (workflow_instance_id, event_id);

-- Housekeeping ---------------------------------------------------------------------------------

create table wf.schema_version (
    version       integer      not null,
    installed_at  timestamptz  not null default pg_catalog.clock_timestamp(),
    constraint pk_schema_version primary key (version)
);

create table wf.audit_log (
    audit_id     bigint       generated always as identity,
    at           timestamptz  not null,
    who          text         not null default session_user,
    what         text         not null,
    detail_json  jsonb        not null default '{}',
    constraint pk_audit_log primary key (audit_id)
);
