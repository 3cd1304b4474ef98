-- The runtime as version 1 installed it, whole; upgrades are tested from here. Never edit it.
set local check_function_bodies = off;

-- Definition tables: what an author deploys. Twin: mssql/01_definition_tables.sql
--
-- A deploy script inserts these rows and ends in wf.wf_publish_workflow_version, which checks the
-- graph, fills the derived columns of wf.workflow_node and makes the version visible, all in the
-- script's one transaction. Rows name each other by key, never by id, so that a script reads the
-- same in every database. Rows of a published version never change (trigger below); publishing is
-- what sets workflow_version.published_at.

create schema if not exists wf;

-- The time of one call: wf.wf_now() is the only clock the engine reads. A test moves it by the
-- row `now` of wf.wf_setting; the file 03_engine_core.sql holds the function.
create table wf.wf_setting (
    name        text        not null,
    value       text        not null,
    constraint pk_wf_setting primary key (name)
);

create table wf.workflow_def (
    workflow_def_id  bigint       generated always as identity,
    name             text         not null,
    description      text,
    created_at       timestamptz  not null default pg_catalog.clock_timestamp(),
    constraint pk_workflow_def primary key (workflow_def_id),
    constraint uq_workflow_def_name unique (name),
    constraint ck_workflow_def_name check (name ~ '^[A-Za-z_][A-Za-z0-9_]*$' and char_length(name) <= 120)
);
-- Two names that differ only in case would be one name on a case-insensitive SQL Server (R19).
create unique index uq_workflow_def_name_folded on wf.workflow_def (lower(name));

create table wf.workflow_version (
    workflow_version_id  bigint       generated always as identity,
    workflow_def_id      bigint       not null,
    version_no           integer,
    content_hash         text         not null,
    spec_format          integer      not null,
    is_active            boolean      not null default false,
    published_at         timestamptz,
    root_node_id         bigint,
    may_fail_late        boolean      not null default true,
    has_deadlines        boolean      not null default false,
    outputs_json         jsonb        not null default '[]',
    source_map           jsonb,
    source_text          text,
    labels               jsonb,
    deprecated_at        timestamptz,
    constraint pk_workflow_version primary key (workflow_version_id),
    constraint fk_workflow_version_def foreign key (workflow_def_id) references wf.workflow_def,
    constraint uq_workflow_version_hash unique (workflow_def_id, content_hash),
    constraint uq_workflow_version_no unique (workflow_def_id, version_no),
    constraint ck_workflow_version_hash check (content_hash ~ '^[0-9a-f]{64}$'),
    constraint ck_workflow_version_active check (not is_active or published_at is not null)
);
create unique index uq_workflow_version_active on wf.workflow_version (workflow_def_id) where is_active;

-- The action as its name is known to dispatch: live, shared by all versions (R24).
create table wf.workflow_action (
    action_id                bigint    generated always as identity,
    action_name              text      not null,
    capability               text      not null,
    max_per_worker           integer,
    exclusive_worker         boolean   not null default false,
    affinity_key_field       text,
    prefer_previous_worker   boolean   not null default false,
    prefer_continue_group    boolean   not null default false,
    require_previous_worker  boolean   not null default false,
    max_concurrent           integer,
    rate_per_minute          integer,
    max_deliveries           integer   not null default 5,
    paused                   boolean   not null default false,
    constraint pk_workflow_action primary key (action_id),
    constraint uq_workflow_action_name unique (action_name),
    constraint ck_workflow_action_name check (char_length(action_name) between 1 and 200),
    constraint ck_workflow_action_max_per_worker check (max_per_worker > 0),
    constraint ck_workflow_action_max_deliveries check (max_deliveries > 0)
);
create index ix_workflow_action_capability on wf.workflow_action (capability);

-- What a version freezes of an action: schemas, codes, retry behaviour. Never changes.
create table wf.workflow_action_revision (
    action_name         text     not null,
    revision            text     not null,
    description         text,
    version             text,
    input_schema_json   jsonb,
    output_schema_json  jsonb,
    result_codes_json   jsonb    not null default '{}',
    idempotent          boolean  not null default true,
    timeout_ms          bigint,
    sensitive_json      jsonb    not null default '[]',
    constraint pk_workflow_action_revision primary key (action_name, revision),
    constraint fk_workflow_action_revision_action foreign key (action_name)
        references wf.workflow_action (action_name),
    constraint ck_workflow_action_revision_hash check (revision ~ '^[0-9a-f]{64}$')
);

-- The dispatch columns as the catalog of this version had them; publishing compares them with
-- wf.workflow_action and refuses a difference (20010) unless it is told to take them over.
create table wf.workflow_version_action (
    workflow_version_id      bigint    not null,
    action_name              text      not null,
    revision                 text      not null,
    capability               text      not null,
    max_per_worker           integer,
    exclusive_worker         boolean   not null,
    affinity_key_field       text,
    prefer_previous_worker   boolean   not null,
    prefer_continue_group    boolean   not null,
    require_previous_worker  boolean   not null,
    max_concurrent           integer,
    rate_per_minute          integer,
    max_deliveries           integer   not null,
    constraint pk_workflow_version_action primary key (workflow_version_id, action_name),
    constraint fk_workflow_version_action_version foreign key (workflow_version_id)
        references wf.workflow_version,
    constraint fk_workflow_version_action_revision foreign key (action_name, revision)
        references wf.workflow_action_revision
);
create index ix_workflow_version_action_revision on wf.workflow_version_action (action_name, revision);

-- The type table (R5): a root row per type; fields and the item of a list hang below it.
create table wf.data_type (
    workflow_version_id  bigint    not null,
    type_id              integer   not null,
    parent_type_id       integer,
    path_kind            text      not null,
    name                 text,
    base_type            text      not null,
    is_required          boolean   not null,
    is_nullable          boolean   not null,
    enum_json            jsonb,
    constraint pk_data_type primary key (workflow_version_id, type_id),
    constraint fk_data_type_version foreign key (workflow_version_id) references wf.workflow_version,
    constraint fk_data_type_parent foreign key (workflow_version_id, parent_type_id)
        references wf.data_type,
    constraint ck_data_type_path_kind check (path_kind in ('root', 'field', 'item')),
    constraint ck_data_type_parent check ((path_kind = 'root') = (parent_type_id is null)),
    constraint ck_data_type_base check
        (base_type in ('string', 'int', 'number', 'bool', 'any', 'object', 'list'))
);
create index ix_data_type_parent on wf.data_type (workflow_version_id, parent_type_id);

-- One row per node. The columns below the line are derived: publishing fills them from the edges
-- and attributes, so that the engine reads one row and needs no join to know what comes next.
create table wf.workflow_node (
    node_id              bigint    generated always as identity,
    workflow_version_id  bigint    not null,
    node_key             text      not null,
    node_order           integer   not null,
    node_type            text      not null,
    is_generated         boolean   not null,
    action_name          text,
    action_revision      text,
    attributes_json      jsonb     not null default '{}',
    -- derived -----------------------------------------------------------------------------------
    action_id            bigint,
    parent_node_id       bigint,
    parent_type          text,
    edge_kind            text,
    child_order          integer,
    child_count          integer,
    first_child_id       bigint,
    next_node_id         bigint,
    depth                integer,
    opens_scope          boolean,
    is_loop_body         boolean,
    counter_node_id      bigint,
    may_close            boolean,
    has_scope_defaults   boolean,
    has_input_bindings   boolean,
    has_output_bindings  boolean,
    collect_node_id      bigint,
    loop_item_name       text,
    loop_index_name      text,
    branch_limit         integer,
    needed_count         integer,
    success_may_close    boolean,
    on_error_node_id     bigint,
    finally_node_id      bigint,
    timeout_node_id      bigint,
    priority             integer,
    lease_ms             bigint,
    delay_ms             bigint,
    timeout_ms           bigint,
    retry_json           jsonb,
    constraint pk_workflow_node primary key (node_id),
    constraint uq_workflow_node_key unique (workflow_version_id, node_key),
    constraint fk_workflow_node_version foreign key (workflow_version_id) references wf.workflow_version,
    constraint fk_workflow_node_revision foreign key (action_name, action_revision)
        references wf.workflow_action_revision,
    constraint ck_workflow_node_type check (node_type in ('ACTION', 'SEQUENCE', 'PARALLEL', 'IF',
        'SWITCH', 'REPEAT', 'WHILE', 'FOREACH', 'WAIT_EVENT')),
    constraint ck_workflow_node_key check (char_length(node_key) between 1 and 200),
    constraint ck_workflow_node_action check ((node_type = 'ACTION') = (action_name is not null))
);
create index ix_workflow_node_parent on wf.workflow_node (parent_node_id);
create index ix_workflow_node_action on wf.workflow_node (action_name, action_revision);

create table wf.workflow_edge (
    workflow_version_id  bigint    not null,
    parent_key           text      not null,
    child_key            text      not null,
    branch_kind          text      not null,
    child_order          integer   not null,
    case_value           jsonb,
    constraint pk_workflow_edge primary key (workflow_version_id, parent_key, child_order),
    constraint uq_workflow_edge_child unique (workflow_version_id, child_key),
    constraint fk_workflow_edge_parent foreign key (workflow_version_id, parent_key)
        references wf.workflow_node (workflow_version_id, node_key),
    constraint fk_workflow_edge_child foreign key (workflow_version_id, child_key)
        references wf.workflow_node (workflow_version_id, node_key),
    constraint ck_workflow_edge_kind check (branch_kind in ('SEQUENCE', 'PARALLEL', 'THEN', 'ELSE',
        'CASE', 'DEFAULT', 'BODY', 'ON_ERROR', 'FINALLY', 'TIMEOUT')),
    constraint ck_workflow_edge_order check (child_order >= 0),
    constraint ck_workflow_edge_case check ((branch_kind = 'CASE') = (case_value is not null))
);

create table wf.workflow_input_template (
    workflow_version_id  bigint    not null,
    node_key             text      not null,
    template_json        jsonb     not null,
    constraint pk_workflow_input_template primary key (workflow_version_id, node_key),
    constraint fk_workflow_input_template_node foreign key (workflow_version_id, node_key)
        references wf.workflow_node (workflow_version_id, node_key)
);

-- What fills a place of a template. Rows with is_derived were made by publishing, one for each
-- string of the template that holds a placeholder; a deploy never inserts them.
create table wf.workflow_input_binding (
    workflow_version_id  bigint    not null,
    node_key             text      not null,
    pointer              text      not null,
    program_json         jsonb     not null,
    is_derived           boolean   not null default false,
    path                 text[],
    node_id              bigint,
    constraint pk_workflow_input_binding primary key (workflow_version_id, node_key, pointer),
    constraint fk_workflow_input_binding_node foreign key (workflow_version_id, node_key)
        references wf.workflow_node (workflow_version_id, node_key)
);
create index ix_workflow_input_binding_node on wf.workflow_input_binding (node_id);

-- `set` (var) and `collect`: written when the node, or an iteration of the FOREACH, succeeds.
create table wf.variable_output_binding (
    workflow_version_id  bigint    not null,
    node_key             text      not null,
    binding_order        integer   not null,
    binding_kind         text      not null,
    name                 text      not null,
    owner_key            text      not null,
    program_json         jsonb     not null,
    node_id              bigint,
    constraint pk_variable_output_binding primary key (workflow_version_id, node_key, binding_order),
    constraint fk_variable_output_binding_node foreign key (workflow_version_id, node_key)
        references wf.workflow_node (workflow_version_id, node_key),
    constraint ck_variable_output_binding_kind check (binding_kind in ('var', 'collect'))
);
create index ix_variable_output_binding_node on wf.variable_output_binding (node_id);

-- The variables of the scope that node owner_key opens: the inputs of the workflow (owner: the
-- root), declared variables, loop variables, and names that only a `set` brings into being (R16).
create table wf.node_scope_default (
    workflow_version_id  bigint    not null,
    owner_key            text      not null,
    variable_order       integer   not null,
    name                 text      not null,
    variable_kind        text      not null,
    type_id              integer,
    is_required          boolean   not null default false,
    program_json         jsonb,
    node_id              bigint,
    constraint pk_node_scope_default primary key (workflow_version_id, owner_key, name),
    constraint uq_node_scope_default_order
        unique (workflow_version_id, owner_key, variable_kind, variable_order),
    constraint fk_node_scope_default_owner foreign key (workflow_version_id, owner_key)
        references wf.workflow_node (workflow_version_id, node_key),
    constraint fk_node_scope_default_type foreign key (workflow_version_id, type_id)
        references wf.data_type,
    constraint ck_node_scope_default_kind check (variable_kind in ('input', 'var', 'loop', 'set'))
);
create index ix_node_scope_default_type on wf.node_scope_default (workflow_version_id, type_id);
create index ix_node_scope_default_node on wf.node_scope_default (node_id);

create table wf.collection_binding (
    workflow_version_id  bigint    not null,
    node_key             text      not null,
    binding_kind         text      not null,
    program_json         jsonb     not null,
    node_id              bigint,
    constraint pk_collection_binding primary key (workflow_version_id, node_key),
    constraint fk_collection_binding_node foreign key (workflow_version_id, node_key)
        references wf.workflow_node (workflow_version_id, node_key),
    constraint ck_collection_binding_kind check
        (binding_kind in ('variable', 'context', 'task_output', 'program'))
);
create index ix_collection_binding_node on wf.collection_binding (node_id);

-- Subscriptions of a version. Those that start instances act only while the version is active.
create table wf.event_subscription (
    workflow_version_id  bigint    not null,
    subscription_order   integer   not null,
    event_type           text      not null,
    mode                 text      not null,
    filter_json          jsonb     not null default '[]',
    inputs_json          jsonb     not null default '[]',
    enabled              boolean   not null default true,
    constraint pk_event_subscription primary key (workflow_version_id, subscription_order),
    constraint fk_event_subscription_version foreign key (workflow_version_id)
        references wf.workflow_version,
    constraint ck_event_subscription_mode check
        (mode in ('start_instance', 'signal_wait', 'start_or_signal'))
);
create index ix_event_subscription_type on wf.event_subscription (event_type);

-- Reserved for timed starts: cron text, zone, what to do when runs overlap or were missed.
create table wf.schedule (
    schedule_id        bigint       generated always as identity,
    workflow_def_id    bigint       not null,
    cron               text         not null,
    time_zone          text         not null default 'UTC',
    overlap_policy     text         not null default 'skip',
    catch_up_seconds   integer      not null default 0,
    context_json       jsonb        not null default '{}',
    enabled            boolean      not null default true,
    next_due_at        timestamptz,
    constraint pk_schedule primary key (schedule_id),
    constraint fk_schedule_def foreign key (workflow_def_id) references wf.workflow_def,
    constraint ck_schedule_overlap check (overlap_policy in ('skip', 'allow', 'queue'))
);
create index ix_schedule_def on wf.schedule (workflow_def_id);

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
-- only what can be claimed (R15).
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
    is_exclusive          boolean      not null default false,
    prefers_previous      boolean      not null default false,
    prefers_group         boolean      not null default false,
    requires_previous     boolean      not null default false,
    attempt_no            integer      not null default 1,
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
create index ix_task_due on wf.task (available_at, node_execution_id) where not is_claimable;
create index ix_task_deadline on wf.task (deadline_at, node_execution_id)
    where deadline_at is not null;
create index ix_task_instance on wf.task (workflow_instance_id);
alter table wf.task set (autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 2000,
                         autovacuum_vacuum_cost_delay = 0);

create view wf.task_lease as
select t.node_execution_id, t.workflow_instance_id, t.action_id, t.worker_id, t.lease_token,
       t.lease_until, t.claimed_at, t.attempt_no
  from wf.task t
 where t.worker_id is not null;

-- A row for each attempt that did not end its execution (R4).
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
    ended_at              timestamptz  not null,
    constraint pk_node_attempt primary key (node_execution_id, lease_token)
);

-- Joins are decided by this counter, never by counting siblings. open_count: children started and
-- not ended. next_index: the first child or iteration not started yet. last_started: the one that
-- the latest update started, if it did. join_parent_id is the next counter above (R1 has the order
-- in which counters are touched).
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

-- Items of a FOREACH whose iterations did not all start at once.
create table wf.foreach_item (
    node_execution_id     bigint   not null,
    iteration_no          integer  not null,
    item_json             jsonb    not null,
    constraint pk_foreach_item primary key (node_execution_id, iteration_no)
);

create table wf.foreach_bundle_entry (
    content_key           text         not null,
    workflow_def_id       bigint       not null,
    node_key              text         not null,
    exported_json         jsonb        not null,
    created_at            timestamptz  not null,
    constraint pk_foreach_bundle_entry primary key (content_key),
    constraint ck_foreach_bundle_entry_key check (content_key ~ '^[0-9a-f]{64}$')
);
create index ix_foreach_bundle_entry_def on wf.foreach_bundle_entry (workflow_def_id);

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

create table wf.execution_scope (
    execution_scope_id  bigint  generated always as identity,
    name                text    not null,
    content_hash        text    not null,
    parameters_json     jsonb   not null,
    constraint pk_execution_scope primary key (execution_scope_id),
    constraint uq_execution_scope unique (name, content_hash)
);

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

-- Events ---------------------------------------------------------------------------------------

create table wf.event_type (
    event_type   text    not null,
    keep_for_ms  bigint  not null default 2592000000,
    constraint pk_event_type primary key (event_type),
    constraint ck_event_type check (char_length(event_type) between 1 and 200)
);

create table wf.event (
    event_id         bigint       generated always as identity,
    event_type       text         not null,
    source           text         not null,
    idempotency_key  text         not null,
    correlation_key  text,
    payload_json     jsonb        not null,
    occurred_at      timestamptz  not null,
    ingested_at      timestamptz  not null,
    duplicate_count  integer      not null default 0,
    constraint pk_event primary key (event_id),
    constraint uq_event_idempotency unique (source, idempotency_key)
);
create index ix_event_type on wf.event (event_type, correlation_key, event_id);

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

-- The engine's loop: a work list, never recursion. Twin: mssql/03_engine_core.sql
--
-- A call that changes instances makes AGENDA ENTRIES and hands them to wf.wf_engine_run, which
-- works them off level by level (rules S1.6, R12). An entry is one execution and what is to be
-- looked at:
--     A  it was activated just now         S  it has succeeded        F  it has failed
--     J  it has succeeded, which may decide a join or end a cancelled SEQUENCE
--     T  its time is up                    C  it has succeeded, and the counter of its join may be
--                                             touched now
-- A handler takes the entries of one kind and answers STEPS: START a child, or let an execution
-- SUCCEED or FAIL. wf.wf_engine_apply carries the steps out in set-based statements and answers the
-- entries of the next level. One handler per node type stands in this file, FOREACH's in
-- 08_foreach_support.sql, WAIT_EVENT's in wf_event_plane.sql.
--
-- Gate (R1). Every caller holds the gate of each instance it hands in: the workflow_instance row,
-- FOR KEY SHARE when it can only extend its own branch, FOR UPDATE when it may close other work.
-- A failure that turns up under a shared gate raises WFX01 with the instance id in DETAIL; the
-- caller rolls back to its savepoint and starts over with that gate exclusive.
--
-- Lock order: gates by instance id, tasks, own executions, affinity, join counters, event routes.

create type wf.agenda_entry as (
    ordinal               integer,
    node_execution_id     bigint,
    workflow_instance_id  bigint,
    kind                  text
);

-- step START: node_execution_id is the parent, node_id and iteration_no the child's, item_json a
-- FOREACH's item. SUCCEED and FAIL: node_execution_id is what ends; item_json is its output.
create type wf.agenda_step as (
    ordinal               integer,
    seq                   integer,
    step                  text,
    node_execution_id     bigint,
    workflow_instance_id  bigint,
    node_id               bigint,
    iteration_no          integer,
    item_json             jsonb,
    result_code           integer,
    engine_error_code     integer,
    message               text,
    error_execution_id    bigint
);

-- The only clock of the engine: UTC, whole milliseconds. A row `now` in wf.wf_setting, which only
-- the owner can write, moves it in tests.
create or replace function wf.wf_now() returns timestamptz
language sql stable set search_path = pg_catalog, pg_temp as $$
    select date_trunc('milliseconds', coalesce(
        (select s.value::timestamptz from wf.wf_setting s where s.name = 'now'),
        clock_timestamp()))
$$;

-- Raises an API error: errcode WA001 for 20001 and so on, the code in DETAIL (R23).
create or replace function wf.wf_raise(p_code integer, p_message text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    raise exception using
        errcode = 'WA' || lpad((p_code - 20000)::text, 3, '0'),
        message = p_message,
        detail = p_code::text;
end
$$;

-- The steps that handlers answer most.
create or replace function wf.wf_start_step(
    p_ordinal integer, p_parent_execution_id bigint, p_workflow_instance_id bigint, p_node_id bigint
) returns wf.agenda_step
language sql immutable set search_path = pg_catalog, pg_temp as $$
    select row(p_ordinal, 0, 'START', p_parent_execution_id, p_workflow_instance_id, p_node_id, 0,
               null, null, null, null, null)::wf.agenda_step
$$;

create or replace function wf.wf_succeed_step(
    p_ordinal integer, p_node_execution_id bigint, p_workflow_instance_id bigint,
    p_result_code integer default 0
) returns wf.agenda_step
language sql immutable set search_path = pg_catalog, pg_temp as $$
    select row(p_ordinal, 0, 'SUCCEED', p_node_execution_id, p_workflow_instance_id, null, null,
               null, p_result_code, null, null, null)::wf.agenda_step
$$;

-- A FAIL step of an execution that the engine itself fails; the message gets the node's path.
create or replace function wf.wf_fail_step(
    p_ordinal integer, p_node_execution_id bigint, p_workflow_instance_id bigint,
    p_engine_error_code integer, p_text text
) returns wf.agenda_step
language sql stable set search_path = pg_catalog, pg_temp as $$
    select row(p_ordinal, 0, 'FAIL', p_node_execution_id, p_workflow_instance_id,
               null, null, null, null, p_engine_error_code,
               wf.wf_execution_path(p_node_execution_id) || ': ' || p_text,
               p_node_execution_id)::wf.agenda_step
$$;

-- Whether a value is true (S3.4); null: it is no truth value and the caller fails with 10010.
create or replace function wf.wf_truth(p_value jsonb) returns boolean
language sql immutable set search_path = pg_catalog, pg_temp as $$
    select case jsonb_typeof(p_value)
        when 'boolean' then p_value = 'true'::jsonb
        when 'null' then false
        when 'number' then case when scale((p_value #>> '{}')::numeric) = 0
                                then (p_value #>> '{}')::numeric <> 0 end
        end
$$;

-- The word that messages use for the type of a value.
create or replace function wf.wf_type_word(p_value jsonb) returns text
language sql immutable set search_path = pg_catalog, pg_temp as $$
    select case when jsonb_typeof(p_value) <> 'number' then jsonb_typeof(p_value)
                when scale((p_value #>> '{}')::numeric) = 0 then 'integer'
                else 'decimal' end
$$;

-- Evaluates a condition in the place of an execution: its truth, or an engine error.
create or replace function wf.wf_eval_condition(
    p_program jsonb, p_node_execution_id bigint,
    out is_true boolean, out error_code integer, out error_message text
)
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_value jsonb;
begin
    select x.value_json, x.error_code, x.error_message into v_value, error_code, error_message
      from wf.wf_eval_expression(p_program, p_node_execution_id) x;
    if error_code is null then
        is_true := wf.wf_truth(v_value);
        if is_true is null then
            error_code := 10010;
            error_message := 'a condition takes a boolean, an integer or null, not '
                || wf.wf_type_word(v_value);
        end if;
    end if;
end
$$;

-- Carrying out steps ------------------------------------------------------------------------------

-- Carries out the steps of one level: ends executions, starts children, and answers the entries of
-- the next level in the order of the entries that caused them. Ids rise in that order too.
create or replace function wf.wf_engine_apply(p_steps wf.agenda_step[], p_now timestamptz)
returns wf.agenda_entry[]
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_ended    wf.agenda_step[] := array(select s from unnest(p_steps) s where s.step <> 'START');
    v_started  wf.agenda_step[] := array(select s from unnest(p_steps) s where s.step = 'START');
    v_deciding bigint[] := '{}';
begin
    if cardinality(v_ended) > 0 then
        select x.ended, x.deciding into v_ended, v_deciding
          from wf.wf_engine_end(v_ended, p_now) x;
    end if;
    return array(
        select row(row_number() over (order by x.ordinal, x.seq), x.node_execution_id,
                   x.workflow_instance_id, x.kind)::wf.agenda_entry
          from (select s.ordinal, s.seq, s.node_execution_id, s.workflow_instance_id,
                       case when s.step = 'FAIL' then 'F'
                            when s.node_execution_id = any (v_deciding) then 'J'
                            else 'S' end as kind
                  from unnest(v_ended) s
                union all
                select * from wf.wf_engine_start(v_started, p_now)) x
         order by x.ordinal, x.seq);
end
$$;

-- Ends executions: lets FOREACHs collect, writes the rows, and forgets what only an open PARALLEL,
-- FOREACH or REPEAT needs. Answers the steps as they turned out, and which successes may close other
-- work: those that may decide a join, and finallys of cancelled SEQUENCEs.
create or replace function wf.wf_engine_end(
    p_ended wf.agenda_step[], p_now timestamptz, out ended wf.agenda_step[], out deciding bigint[]
)
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_collects boolean;
    v_joins    bigint[];
    v_loops    bigint[];
    v_timed    bigint[];
begin
    ended := p_ended;
    select bool_or(n.collect_node_id is not null and s.step = 'SUCCEED'),
           array_agg(e.node_execution_id) filter (where n.node_type in ('PARALLEL', 'FOREACH')),
           array_agg(e.node_execution_id) filter (where n.node_type = 'REPEAT'),
           array_agg(e.node_execution_id) filter (where n.timeout_ms is not null),
           coalesce(array_agg(e.node_execution_id) filter (where n.success_may_close
               or n.edge_kind = 'FINALLY' and exists (
                    select 1 from wf.pending_end q
                     where q.node_execution_id = e.parent_execution_id and q.is_cancelled)), '{}')
      into v_collects, v_joins, v_loops, v_timed, deciding
      from unnest(p_ended) s
      join wf.node_execution e on e.node_execution_id = s.node_execution_id
      join wf.workflow_node n on n.node_id = e.node_id;
    if v_collects then
        ended := wf.wf_foreach_collect(ended);
    end if;
    update wf.node_execution e
       set status = case s.step when 'SUCCEED' then 'SUCCEEDED' else 'FAILED' end,
           attempt_no = greatest(e.attempt_no, 1),
           result_code = s.result_code, output_json = s.item_json, ended_at = p_now,
           engine_error_code = s.engine_error_code, engine_error_message = s.message,
           error_execution_id = s.error_execution_id
      from unnest(ended) s
     where e.node_execution_id = s.node_execution_id;
    if v_joins is not null then
        delete from wf.join_counter c where c.node_execution_id = any (v_joins);
        delete from wf.foreach_item f where f.node_execution_id = any (v_joins);
    end if;
    if v_loops is not null then
        delete from wf.loop_state l where l.node_execution_id = any (v_loops);
    end if;
    if v_timed is not null then
        delete from wf.timer t where t.node_execution_id = any (v_timed);
    end if;
end
$$;

-- Inserts the executions, scopes and loop variables of all START steps in one statement.
create or replace function wf.wf_engine_start(p_steps wf.agenda_step[], p_now timestamptz)
returns table (ordinal integer, seq integer, node_execution_id bigint,
               workflow_instance_id bigint, kind text)
language plpgsql set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    if cardinality(p_steps) = 0 then
        return;
    end if;
    return query
    with started as materialized (
        select nextval('wf.node_execution_id_seq') as new_id, q.*
          from (select s.ordinal, s.seq, s.workflow_instance_id, s.iteration_no, s.item_json,
                       s.node_execution_id as parent_execution_id, n.node_id, n.node_key,
                       n.node_type, n.opens_scope, n.loop_item_name, n.loop_index_name,
                       case when n.node_type <> 'ACTION' then n.timeout_ms end as timeout_ms,
                       p.scope_id as parent_scope_id,
                       case when n.parent_type in ('PARALLEL', 'FOREACH')
                            then p.node_execution_id else p.join_parent_id end as join_parent_id
                  from unnest(p_steps) s
                  join wf.node_execution p on p.node_execution_id = s.node_execution_id
                  join wf.workflow_node n on n.node_id = s.node_id
                 order by s.ordinal, s.seq) q
    ), executions as (
        insert into wf.node_execution (node_execution_id, workflow_instance_id,
            parent_execution_id, node_id, iteration_no, scope_id, join_parent_id, status,
            attempt_no, created_at)
        select x.new_id, x.workflow_instance_id, x.parent_execution_id, x.node_id, x.iteration_no,
               case when x.opens_scope then x.new_id else x.parent_scope_id end, x.join_parent_id,
               case when x.node_type in ('ACTION', 'WAIT_EVENT') then 'READY' else 'RUNNING' end,
               case x.node_type when 'ACTION' then 0 else 1 end, p_now
          from started x
    ), scopes as (
        insert into wf.scope (scope_id, parent_scope_id, workflow_instance_id, owner_key)
        select x.new_id, x.parent_scope_id, x.workflow_instance_id, x.node_key
          from started x
         where x.opens_scope
    ), timers as (
        insert into wf.timer (node_execution_id, workflow_instance_id, due_at)
        select x.new_id, x.workflow_instance_id, p_now + x.timeout_ms * interval '1 millisecond'
          from started x
         where x.timeout_ms is not null
    ), items as (
        insert into wf.scope_variable (scope_id, name, value_json)
        select x.new_id, x.loop_item_name, x.item_json
          from started x
         where x.loop_item_name is not null
    ), indexes as (
        insert into wf.scope_variable (scope_id, name, value_json)
        select x.new_id, x.loop_index_name, to_jsonb(x.iteration_no)
          from started x
         where x.loop_index_name is not null
    )
    select x.ordinal, x.seq, x.new_id, x.workflow_instance_id, 'A'
      from started x;
end
$$;

-- The loop ----------------------------------------------------------------------------------------

-- Answers the steps of entries that cannot close other work, handler by handler, and what must wait:
-- joins whose counters may not be touched yet (held), and waits, which meet their events last.
create or replace function wf.wf_engine_steps(
    p_entries wf.agenda_entry[], p_first_new_id bigint, p_exclusive bigint[], p_now timestamptz,
    out steps wf.agenda_step[], out held wf.agenda_entry[], out waits wf.agenda_entry[]
)
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_part   record;
    v_scopes record;
    v_joins  record;
begin
    steps := '{}';
    held := '{}';
    waits := '{}';
    for v_part in
        select case a.kind when 'A' then n.node_type when 'C' then 'JOIN'
                           else 'IN_' || coalesce(n.parent_type, 'INSTANCE') end as handler,
               bool_or(a.kind = 'A' and n.has_scope_defaults and n.parent_node_id is not null)
                   as opens_scopes,
               array_agg(a::wf.agenda_entry order by a.ordinal) as entries
          from unnest(p_entries) a
          join wf.node_execution e on e.node_execution_id = a.node_execution_id
          join wf.workflow_node n on n.node_id = e.node_id
         group by 1
    loop
        if v_part.opens_scopes then
            select * into v_scopes from wf.wf_engine_open_scopes(v_part.entries);
            steps := steps || v_scopes.failed;
            v_part.entries := v_scopes.opened;
        end if;
        if v_part.handler in ('IN_PARALLEL', 'IN_FOREACH') then
            select * into v_joins
              from wf.wf_engine_hold_back(v_part.entries, p_first_new_id, p_exclusive);
            held := held || v_joins.held;
            v_part.entries := v_joins.kept;
        elsif v_part.handler = 'WAIT_EVENT' then
            waits := waits || v_part.entries;
        end if;
        if cardinality(v_part.entries) > 0 then
            steps := steps || wf.wf_engine_handle(v_part.handler, v_part.entries, p_now);
        end if;
    end loop;
end
$$;

-- Evaluates the variables of the scopes that open with these activations (S2.3); an execution whose
-- variable cannot be computed fails.
create or replace function wf.wf_engine_open_scopes(
    p_entries wf.agenda_entry[], out opened wf.agenda_entry[], out failed wf.agenda_step[]
)
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    failed := array(
        select wf.wf_fail_step(a.ordinal, a.node_execution_id, a.workflow_instance_id,
                               o.error_code, o.error_message)
          from wf.wf_open_scopes(array(
                select e.node_execution_id
                  from unnest(p_entries) a
                  join wf.node_execution e on e.node_execution_id = a.node_execution_id
                  join wf.workflow_node n on n.node_id = e.node_id
                 where n.has_scope_defaults
                 order by a.ordinal)) o
          join unnest(p_entries) a on a.node_execution_id = o.node_execution_id
         where o.error_code is not null);
    opened := array(
        select a from unnest(p_entries) a
         where a.node_execution_id <> all (
            array(select s.node_execution_id from unnest(failed) s))
         order by a.ordinal);
end
$$;

-- The table of handlers. A new node type gets a line here.
create or replace function wf.wf_engine_handle(
    p_handler text, p_entries wf.agenda_entry[], p_now timestamptz
) returns wf.agenda_step[]
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    case p_handler
        when 'ACTION' then
            return array(select s from wf.wf_action_activate(p_entries, p_now) s);
        when 'SEQUENCE' then
            return array(select s from wf.wf_sequence_activate(p_entries, p_now) s);
        when 'PARALLEL' then
            return array(select s from wf.wf_parallel_activate(p_entries) s);
        when 'IF' then
            return array(select s from wf.wf_if_activate(p_entries) s);
        when 'SWITCH' then
            return array(select s from wf.wf_switch_activate(p_entries) s);
        when 'REPEAT' then
            return array(select s from wf.wf_repeat_activate(p_entries) s);
        when 'WHILE' then
            return array(select wf.wf_while_test(a.ordinal, a.node_execution_id,
                                                 a.workflow_instance_id, 0)
                           from unnest(p_entries) a);
        when 'FOREACH' then
            return array(select s from wf.wf_foreach_activate(p_entries) s);
        when 'WAIT_EVENT' then
            return array(select s from wf.wf_wait_activate(p_entries) s);
        when 'IN_SEQUENCE' then
            return wf.wf_sequence_continue(p_entries, p_now);
        when 'IN_IF', 'IN_SWITCH' then
            return wf.wf_branch_continue(p_entries);
        when 'IN_REPEAT' then
            return wf.wf_repeat_continue(p_entries);
        when 'IN_WHILE' then
            return wf.wf_while_continue(p_entries);
        when 'IN_PARALLEL', 'IN_FOREACH', 'JOIN' then
            return wf.wf_join_continue(p_entries, p_now);
        when 'IN_WAIT_EVENT' then
            return wf.wf_wait_continue(p_entries);
        when 'IN_INSTANCE' then
            perform wf.wf_finish_instance(a.workflow_instance_id, a.node_execution_id, p_now)
               from unnest(p_entries) a;
            return '{}';
    end case;
end
$$;

-- Entries that still count: an execution that is open and was not cancelled for its finally to run,
-- or one that ended under a parent that listens to it: not closing, and a SEQUENCE to its on_error or
-- its finally alone once that has begun. A time that is up counts while nothing else has decided.
create or replace function wf.wf_engine_alive(p_entries wf.agenda_entry[])
returns wf.agenda_entry[]
language sql stable set search_path = pg_catalog, pg_temp as $$
    select coalesce(array_agg(a::wf.agenda_entry order by a.ordinal), '{}')
      from unnest(p_entries) a
      join wf.node_execution e on e.node_execution_id = a.node_execution_id
      join wf.workflow_node n on n.node_id = e.node_id
      left join wf.node_execution p on p.node_execution_id = e.parent_execution_id
     where case when a.kind = 'A' then e.status in ('READY', 'RUNNING') and not exists (
                    select 1 from wf.pending_end q
                     where q.node_execution_id = e.node_execution_id)
                when a.kind = 'T' then e.status in ('READY', 'RUNNING') and not exists (
                    select 1 from wf.pending_end q
                     where q.node_execution_id = e.node_execution_id and q.phase <> 'ON_ERROR')
                when e.parent_execution_id = 0 then true
                else p.status = 'RUNNING' and not exists (
                    select 1 from wf.pending_end q
                     where q.node_execution_id = e.parent_execution_id
                       and q.phase <> n.edge_kind) end
$$;

-- Splits the ended children of joins: held are those whose counter existed before this call and
-- whose instance is held shared (R1); they come back as C entries.
create or replace function wf.wf_engine_hold_back(
    p_entries wf.agenda_entry[], p_first_new_id bigint, p_exclusive bigint[],
    out kept wf.agenda_entry[], out held wf.agenda_entry[]
)
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    select coalesce(array_agg(q.entry order by q.ordinal) filter (where not q.is_held), '{}'),
           coalesce(array_agg(row(q.ordinal, q.node_execution_id, q.workflow_instance_id, 'C')
                              ::wf.agenda_entry order by q.ordinal) filter (where q.is_held), '{}')
      into kept, held
      from (select a::wf.agenda_entry as entry, a.ordinal, a.node_execution_id,
                   a.workflow_instance_id,
                   e.parent_execution_id < p_first_new_id
                       and a.workflow_instance_id <> all (p_exclusive) as is_held
              from unnest(p_entries) a
              join wf.node_execution e on e.node_execution_id = a.node_execution_id) q;
end
$$;

-- The counters that may be touched now: all above the highest counter that still may follow, in
-- descending order; the rest stay held (R1).
create or replace function wf.wf_engine_release(
    p_held wf.agenda_entry[], out released wf.agenda_entry[], out held wf.agenda_entry[]
)
language sql stable set search_path = pg_catalog, pg_temp as $$
    with h as (
        select a.ordinal, a.node_execution_id, a.workflow_instance_id,
               e.parent_execution_id as counter_id, p.join_parent_id
          from unnest(p_held) a
          join wf.node_execution e on e.node_execution_id = a.node_execution_id
          join wf.node_execution p on p.node_execution_id = e.parent_execution_id
    ), ranked as (
        select h.*, h.counter_id > (select max(x.join_parent_id) from h x) as is_free,
               row_number() over (order by h.counter_id desc, h.ordinal) as position
          from h
    )
    select coalesce(array_agg(row(r.position, r.node_execution_id, r.workflow_instance_id, 'C')
                              ::wf.agenda_entry order by r.position) filter (where r.is_free), '{}'),
           coalesce(array_agg(row(r.position, r.node_execution_id, r.workflow_instance_id, 'C')
                              ::wf.agenda_entry order by r.position)
                    filter (where not r.is_free), '{}')
      from ranked r
$$;

-- The work limit of one call (R25): the activations of a level that would go past it, as steps that
-- fail them with 10019. Every test of a loop that goes on activates a body, so loops count too.
create or replace function wf.wf_engine_over_limit(
    p_entries wf.agenda_entry[], p_left bigint, p_limit bigint,
    out within_limit wf.agenda_entry[], out refused wf.agenda_step[]
)
language sql stable set search_path = pg_catalog, pg_temp as $$
    select coalesce(array_agg(q.entry order by q.ordinal) filter (where q.so_far <= p_left), '{}'),
           coalesce(array_agg(wf.wf_fail_step(q.ordinal, q.node_execution_id,
                        q.workflow_instance_id, 10019,
                        format('more than %s activations in one call', p_limit))
                    order by q.ordinal) filter (where q.so_far > p_left), '{}')
      from (select a::wf.agenda_entry as entry, a.ordinal, a.node_execution_id,
                   a.workflow_instance_id,
                   case when a.kind = 'A'
                        then count(*) filter (where a.kind = 'A') over (order by a.ordinal)
                        else 0 end as so_far
              from unnest(p_entries) a) q
$$;

-- Works off an agenda until nothing is left to do in this call.
-- p_exclusive: the instances whose gate the caller holds FOR UPDATE.
-- Raises WFX01 (DETAIL: instance id) when an instance held shared needs its gate exclusive.
create or replace function wf.wf_engine_run(
    p_entries wf.agenda_entry[], p_exclusive bigint[], p_now timestamptz
) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_first_new_id bigint := nextval('wf.node_execution_id_seq');
    v_level        wf.agenda_entry[] := p_entries;
    v_held         wf.agenda_entry[] := '{}';
    v_waits        wf.agenda_entry[] := '{}';
    v_done         record;
    v_has_closed   boolean := false;
    v_work_limit   bigint := coalesce((select s.value::bigint from wf.wf_setting s
                                        where s.name = 'max_activations_per_call'), 1000000);
    v_work_left    bigint := v_work_limit;
begin
    loop
        if v_has_closed then
            v_level := wf.wf_engine_alive(v_level);
        end if;
        if cardinality(v_level) = 0 and cardinality(v_held) > 0 then
            if v_has_closed then
                v_held := wf.wf_engine_alive(v_held);
            end if;
            select r.released, r.held into v_level, v_held from wf.wf_engine_release(v_held) r;
        end if;
        if cardinality(v_level) = 0 then
            -- Waits meet their events last, after every counter of this call (R1, R2).
            exit when cardinality(v_waits) = 0;
            v_level := wf.wf_wait_register(v_waits, p_exclusive, p_now);
            v_waits := '{}';
            continue;
        end if;
        select * into v_done
          from wf.wf_engine_level(v_level, v_first_new_id, p_exclusive, v_work_left, v_work_limit,
                                  p_now);
        v_level := v_done.next_level;
        v_held := v_held || v_done.held;
        v_waits := v_waits || v_done.waits;
        v_work_left := v_done.work_left;
        v_has_closed := v_has_closed or v_done.has_closed;
    end loop;
end
$$;

-- One level. Entries that cannot close other work are taken as one set; one that may (F, J, T) is
-- taken alone, after the earlier and before the later entries, and what it closed is dropped from the
-- later ones (R12).
create or replace function wf.wf_engine_level(
    p_level wf.agenda_entry[], p_first_new_id bigint, p_exclusive bigint[], p_work_left bigint,
    p_work_limit bigint, p_now timestamptz,
    out next_level wf.agenda_entry[], out held wf.agenda_entry[], out waits wf.agenda_entry[],
    out work_left bigint, out has_closed boolean
)
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_level  wf.agenda_entry[] := p_level;
    v_set    wf.agenda_entry[];
    v_closer wf.agenda_entry;
    v_done   record;
begin
    next_level := '{}';
    held := '{}';
    waits := '{}';
    work_left := p_work_left;
    has_closed := false;
    loop
        select a.* into v_closer
          from unnest(v_level) a where a.kind in ('F', 'J', 'T') order by a.ordinal limit 1;
        v_set := v_level;
        if v_closer.ordinal is not null then
            v_set := array(select a from unnest(v_level) a
                            where a.ordinal < v_closer.ordinal order by a.ordinal);
        end if;
        if cardinality(v_set) > 0 then
            select * into v_done
              from wf.wf_engine_set(v_set, p_first_new_id, p_exclusive, work_left, p_work_limit,
                                    p_now);
            next_level := next_level || v_done.next_level;
            held := held || v_done.held;
            waits := waits || v_done.waits;
            work_left := v_done.work_left;
        end if;
        exit when v_closer.ordinal is null;
        if v_closer.workflow_instance_id <> all (p_exclusive) then
            raise exception 'the gate of instance % is needed exclusive',
                v_closer.workflow_instance_id
                using errcode = 'WFX01', detail = v_closer.workflow_instance_id::text;
        end if;
        next_level := next_level || wf.wf_engine_apply(
            array(select s from wf.wf_engine_close(v_closer, p_now) s), p_now);
        has_closed := true;
        v_level := wf.wf_engine_alive(
            array(select a from unnest(v_level) a where a.ordinal > v_closer.ordinal));
        exit when cardinality(v_level) = 0;
    end loop;
    if has_closed then
        -- Several sets made this level; number its entries in the order in which they came to be.
        next_level := array(
            select row(x.position, x.node_execution_id, x.workflow_instance_id, x.kind)
                   ::wf.agenda_entry
              from unnest(next_level) with ordinality
                   x(ordinal, node_execution_id, workflow_instance_id, kind, position)
             order by x.position);
    end if;
end
$$;

-- Entries that cannot close other work, as one set, within the work limit.
create or replace function wf.wf_engine_set(
    p_set wf.agenda_entry[], p_first_new_id bigint, p_exclusive bigint[], p_work_left bigint,
    p_work_limit bigint, p_now timestamptz,
    out next_level wf.agenda_entry[], out held wf.agenda_entry[], out waits wf.agenda_entry[],
    out work_left bigint
)
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_set     wf.agenda_entry[] := p_set;
    v_refused wf.agenda_step[] := '{}';
    v_done    record;
begin
    work_left := p_work_left - (select count(*) from unnest(p_set) a where a.kind = 'A');
    if work_left < 0 then
        select w.within_limit, w.refused into v_set, v_refused
          from wf.wf_engine_over_limit(p_set, p_work_left, p_work_limit) w;
        work_left := 0;
    end if;
    select * into v_done from wf.wf_engine_steps(v_set, p_first_new_id, p_exclusive, p_now);
    next_level := wf.wf_engine_apply(v_done.steps || v_refused, p_now);
    held := v_done.held;
    waits := v_done.waits;
end
$$;

-- Administration: workers and instances. Twin: mssql/04_admin.sql

-- Registers a worker or renews it: its capabilities (`*`: all actions), and its token. A worker has
-- at most two live tokens, so that one can be rotated while the other is in use; the older goes.
-- Errors: 20004 an argument is out of bounds.
create or replace function wf.sp_register_worker(
    p_worker_id text, p_worker_token text, p_capabilities text[], p_max_concurrency integer default 1
) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    v_now      timestamptz := wf.wf_now();
    v_salt     bytea := uuid_send(gen_random_uuid());
    v_token_id text;
begin
    perform wf.wf_check_key('worker_id', p_worker_id);
    if p_worker_token is null or char_length(p_worker_token) not between 20 and 200 then
        perform wf.wf_raise(20004, 'worker_token must have 20 to 200 characters');
    end if;
    perform wf.wf_check_key('capability', c) from unnest(p_capabilities) c;
    if p_max_concurrency is null or p_max_concurrency not between 1 and 1000 then
        perform wf.wf_raise(20004, 'max_concurrency must be between 1 and 1000');
    end if;
    insert into wf.worker as w (worker_id, max_concurrency, registered_at)
    values (p_worker_id, p_max_concurrency, v_now)
    on conflict (worker_id) do update
        set max_concurrency = excluded.max_concurrency, desired_state = 'ACTIVE';
    delete from wf.worker_capability c
     where c.worker_id = p_worker_id and c.capability <> all (coalesce(p_capabilities, '{}'));
    insert into wf.worker_capability (worker_id, capability)
    select distinct p_worker_id, c from unnest(coalesce(p_capabilities, '{}')) c
    on conflict do nothing;
    v_token_id := encode(v_salt, 'hex');
    insert into wf.worker_token (worker_id, token_id, salt, token_hash, created_at)
    values (p_worker_id, v_token_id, v_salt,
            sha256(v_salt || convert_to(p_worker_token, 'UTF8')), v_now);
    delete from wf.worker_token t
     where t.worker_id = p_worker_id
       and t.token_id not in (select o.token_id from wf.worker_token o
                               where o.worker_id = p_worker_id and o.revoked_at is null
                               order by (o.token_id = v_token_id) desc, o.created_at desc limit 2);
    insert into wf.worker_presence (worker_id, last_seen_at) values (p_worker_id, v_now)
        on conflict (worker_id) do update set last_seen_at = excluded.last_seen_at;
end
$$;

-- Sets what a worker is told at its next claim or heartbeat: ACTIVE, DRAINING or STOPPING.
-- Locks: the worker's row. Errors: 20002 unknown worker, 20004 unknown state.
create or replace function wf.sp_set_worker_state(p_worker_id text, p_desired_state text)
returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    if p_desired_state is null or p_desired_state not in ('ACTIVE', 'DRAINING', 'STOPPING') then
        perform wf.wf_raise(20004, 'desired_state must be ACTIVE, DRAINING or STOPPING');
    end if;
    update wf.worker w set desired_state = p_desired_state where w.worker_id = p_worker_id;
    if not found then
        perform wf.wf_raise(20002, format('there is no worker %s', left(p_worker_id, 200)));
    end if;
end
$$;

-- Instances ---------------------------------------------------------------------------------------

-- Takes an instance's gate exclusive and answers its status. Errors: 20002 unknown instance.
create or replace function wf.wf_lock_instance(p_workflow_instance_id bigint) returns text
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_status text;
begin
    select i.status into v_status
      from wf.workflow_instance i
     where i.workflow_instance_id = p_workflow_instance_id for update;
    if not found then
        perform wf.wf_raise(20002, format('there is no workflow instance %s',
                                          p_workflow_instance_id));
    end if;
    return v_status;
end
$$;

-- Cancels an instance: everything open ends at once and neither on_error nor finally runs (R13). A
-- worker with a task of it hears CANCEL at its next heartbeat. Cancelling a cancelled one again
-- changes nothing. Locks: the gate exclusive. Errors: 20002; 20003 it has succeeded or failed.
create or replace function wf.sp_cancel_workflow_instance(
    p_workflow_instance_id bigint, p_reason text default null
) returns table (instance_status text)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    v_status text := wf.wf_lock_instance(p_workflow_instance_id);
    v_now    timestamptz := wf.wf_now();
    v_root   bigint;
begin
    if v_status in ('SUCCEEDED', 'FAILED') then
        perform wf.wf_raise(20003, format('instance %s has %s', p_workflow_instance_id,
                                          lower(v_status)));
    end if;
    if v_status <> 'CANCELLED' then
        select i.root_execution_id into v_root
          from wf.workflow_instance i where i.workflow_instance_id = p_workflow_instance_id;
        perform wf.wf_cancel_below(1, p_workflow_instance_id, v_root, true, v_now);
        perform wf.wf_cancel_executions(array_remove(array[v_root], null), v_now);
        delete from wf.timer t where t.node_execution_id = v_root;
        update wf.workflow_instance i
           set status = 'CANCELLED', ended_at = v_now, cancel_reason = p_reason,
               engine_error_code = 10016,
               engine_error_message = 'cancelled by an operator' || coalesce(': ' || p_reason, ''),
               error_execution_id = v_root
         where i.workflow_instance_id = p_workflow_instance_id;
        insert into wf.audit_log (at, what, detail_json)
        values (v_now, 'cancel', jsonb_build_object('instance', p_workflow_instance_id,
                                                    'reason', p_reason));
    end if;
    return query select 'CANCELLED'::text;
end
$$;

-- Pauses a running instance: nothing of it is claimed and no timer acts until it is resumed; results,
-- heartbeats and events are taken as ever, and what they activate waits (R14).
-- Locks: the gate exclusive. Errors: 20002; 20003 it is not running.
create or replace function wf.sp_pause_workflow_instance(p_workflow_instance_id bigint)
returns table (instance_status text)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    v_status text := wf.wf_lock_instance(p_workflow_instance_id);
begin
    if v_status not in ('RUNNING', 'PAUSED') then
        perform wf.wf_raise(20003, format('instance %s is %s, not running',
                                          p_workflow_instance_id, lower(v_status)));
    end if;
    update wf.workflow_instance i set status = 'PAUSED'
     where i.workflow_instance_id = p_workflow_instance_id;
    update wf.task t set is_claimable = false
     where t.workflow_instance_id = p_workflow_instance_id;
    return query select 'PAUSED'::text;
end
$$;

-- Resumes a paused instance; timers that came due meanwhile act now, in due order.
-- Locks: the gate exclusive. Errors: 20002; 20003 it is not paused.
create or replace function wf.sp_resume_workflow_instance(p_workflow_instance_id bigint)
returns table (instance_status text)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    v_status text := wf.wf_lock_instance(p_workflow_instance_id);
    v_now    timestamptz := wf.wf_now();
begin
    if v_status not in ('RUNNING', 'PAUSED') then
        perform wf.wf_raise(20003, format('instance %s is %s, not paused',
                                          p_workflow_instance_id, lower(v_status)));
    end if;
    if v_status = 'PAUSED' then
        update wf.workflow_instance i set status = 'RUNNING'
         where i.workflow_instance_id = p_workflow_instance_id;
        update wf.task t set is_claimable = t.available_at <= v_now
         where t.workflow_instance_id = p_workflow_instance_id;
        perform wf.wf_apply_due(p_workflow_instance_id, v_now);
    end if;
    return query select i.status from wf.workflow_instance i
                  where i.workflow_instance_id = p_workflow_instance_id;
end
$$;

-- Removes up to p_limit instances that ended before p_ended_before, with all their rows; events and
-- bundles stay. Call it until it answers 0. Locks: the gates of the instances it removes, with SKIP
-- LOCKED. Errors: 20004 an argument is missing or out of bounds.
create or replace function wf.sp_purge_instances(
    p_ended_before timestamptz, p_limit integer default 1000
) returns table (purged_count integer)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    v_ids bigint[];
begin
    if p_ended_before is null or p_limit is null or p_limit not between 1 and 10000 then
        perform wf.wf_raise(20004, 'ended_before must be a time and limit between 1 and 10000');
    end if;
    v_ids := array(
        select i.workflow_instance_id
          from wf.workflow_instance i
         where i.status in ('SUCCEEDED', 'FAILED', 'CANCELLED') and i.ended_at < p_ended_before
         order by i.workflow_instance_id
         limit p_limit
           for update skip locked);
    perform wf.wf_remove_instances(v_ids);
    return query select coalesce(cardinality(v_ids), 0);
end
$$;

-- Removes instances that have ended, with all their rows; the caller holds their rows locked.
create or replace function wf.wf_remove_instances(p_instances bigint[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    delete from wf.scope_variable v using wf.scope s
     where s.workflow_instance_id = any (p_instances) and v.scope_id = s.scope_id;
    delete from wf.scope s where s.workflow_instance_id = any (p_instances);
    delete from wf.node_attempt a using wf.node_execution e
     where e.workflow_instance_id = any (p_instances) and a.node_execution_id = e.node_execution_id;
    delete from wf.node_execution e where e.workflow_instance_id = any (p_instances);
    delete from wf.execution_context x where x.workflow_instance_id = any (p_instances);
    delete from wf.instance_extension x where x.workflow_instance_id = any (p_instances);
    delete from wf.instance_tag t where t.workflow_instance_id = any (p_instances);
    delete from wf.affinity a where a.workflow_instance_id = any (p_instances);
    delete from wf.workflow_instance i where i.workflow_instance_id = any (p_instances);
end
$$;

-- References: what `var`, `ctx`, `out`, `code` and `event` name. Twin: mssql/05_runtime_parity.sql
--
-- A program (compiler/spec.py) is a postfix list of instructions; wf.wf_eval_expression runs it
-- with one loop over a stack. wf.wf_resolve_reference finds what `var`, `ctx`, `out`, `code` and
-- `event` name. Nothing here changes a row, takes a lock, runs text from a row or calls itself.
--
-- None of these routines raises: they answer value_json, or error_code with error_message (rule
-- S5's codes; the text has no path, the engine puts it before). A JSON null is jsonb 'null'; SQL
-- null is "nothing there". The place of an evaluation is an execution: its scope chain holds the
-- variables, the executions above it are what `ctx` looks at.
--
-- The evaluator is in every step's path, so types and truth are worked out in place there rather
-- than through wf.wf_type_word and wf.wf_truth, which cost more than the comparison they serve.

-- References --------------------------------------------------------------------------------------

-- A reference as an author writes it, for messages: var.items[3], var.a["odd key"], var.a[var.i].
create or replace function wf.wf_reference_text(p_ref jsonb) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
declare
    v_todo  jsonb[] := array[p_ref];  -- what is still to be written, last first; a string is text
    v_count integer := 1;
    v_item  jsonb;
    v_path  jsonb;
    v_step  jsonb;
    v_text  text := '';
begin
    while v_count > 0 loop
        v_item := v_todo[v_count];
        v_count := v_count - 1;
        if jsonb_typeof(v_item) = 'string' then
            v_text := v_text || (v_item #>> '{}');
            continue;
        end if;
        v_text := v_text || (v_item ->> 0)
            || case when v_item ->> 0 in ('var', 'ctx') then '.' || (v_item ->> 1) else '' end;
        v_path := case v_item ->> 0 when 'code' then '[]'::jsonb else v_item -> -1 end;
        for v_index in reverse jsonb_array_length(v_path) - 1 .. 0 loop
            v_step := v_path -> v_index;
            case jsonb_typeof(v_step)
                when 'array' then
                    v_todo[v_count + 1] := to_jsonb(']'::text);
                    v_todo[v_count + 2] := v_step;
                    v_todo[v_count + 3] := to_jsonb('['::text);
                    v_count := v_count + 3;
                when 'number' then
                    v_count := v_count + 1;
                    v_todo[v_count] := to_jsonb('[' || (v_step #>> '{}') || ']');
                else
                    v_count := v_count + 1;
                    v_todo[v_count] := to_jsonb(
                        case when v_step #>> '{}' ~ '^[A-Za-z_][A-Za-z0-9_]*$'
                             then '.' || (v_step #>> '{}')
                             else '[' || v_step::text || ']' end);
            end case;
        end loop;
    end loop;
    return v_text;
end
$$;

-- The execution of node p_task_key that a reader at p_execution_id sees (R27), or null: from the
-- deepest execution around the reader that is above that node, down its static chain, in loops by
-- the latest iteration; into a parallel FOREACH nothing is seen from outside.
-- Reader and node climb by turns until they meet, so that a sibling costs one step.
create or replace function wf.wf_find_task_execution(p_execution_id bigint, p_task_key text)
returns bigint
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_reader       record;
    v_node         record;
    v_down         bigint[] := '{}';  -- from the task's node upwards
    v_execution_id bigint;
begin
    select e.node_execution_id, e.workflow_instance_id, e.parent_execution_id, e.node_id,
           n.workflow_version_id, n.depth
      into v_reader
      from wf.node_execution e
      join wf.workflow_node n on n.node_id = e.node_id
     where e.node_execution_id = p_execution_id;
    if not found then
        return null;
    end if;
    select k.node_id, k.parent_node_id, k.depth, k.is_loop_body into v_node
      from wf.workflow_node k
     where k.workflow_version_id = v_reader.workflow_version_id and k.node_key = p_task_key;
    if not found then
        return null;
    end if;

    loop
        if v_reader.depth >= v_node.depth then
            select e.node_execution_id, e.workflow_instance_id, e.parent_execution_id, e.node_id,
                   n.workflow_version_id, n.depth
              into v_reader
              from wf.node_execution e
              join wf.workflow_node n on n.node_id = e.node_id
             where e.node_execution_id = v_reader.parent_execution_id;
            if not found then
                return null;
            end if;
            continue;
        end if;
        v_down := v_down || v_node.node_id;
        if v_node.is_loop_body and exists (
            select 1
              from wf.workflow_node p
             where p.node_id = v_node.parent_node_id and p.node_type = 'FOREACH'
               and coalesce(p.attributes_json ->> 'parallel', '1') <> '1')
        then
            return null;
        end if;
        exit when v_node.parent_node_id = v_reader.node_id;
        select k.node_id, k.parent_node_id, k.depth, k.is_loop_body into v_node
          from wf.workflow_node k
         where k.node_id = v_node.parent_node_id;
    end loop;

    v_execution_id := v_reader.node_execution_id;
    for v_at in reverse cardinality(v_down) .. 1 loop
        select e.node_execution_id into v_execution_id
          from wf.node_execution e
         where e.workflow_instance_id = v_reader.workflow_instance_id
           and e.parent_execution_id = v_execution_id
           and e.node_id = v_down[v_at]
         order by e.iteration_no desc
         limit 1;
        if not found then
            return null;
        end if;
    end loop;
    return v_execution_id;
end
$$;

-- `ctx.task.K.resultCode`: the code of the ended execution of K that the reader sees, else 10001.
create or replace function wf.wf_try_task_result_code(
    p_execution_id bigint, p_task_key text,
    out value_json jsonb, out error_code integer, out error_message text
)
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    select to_jsonb(e.result_code) into value_json
      from wf.node_execution e
     where e.node_execution_id = wf.wf_find_task_execution(p_execution_id, p_task_key)
       and e.status not in ('READY', 'RUNNING');
    if value_json is null then
        error_code := 10001;
        error_message := wf.wf_reference_text(jsonb_build_array('ctx', 'task',
            jsonb_build_array(p_task_key, 'resultCode'))) || ' is not there';
    end if;
end
$$;

-- `ctx.task.K.output`: the output of the succeeded execution of K that the reader sees, else 10001.
create or replace function wf.wf_try_task_output_json(
    p_execution_id bigint, p_task_key text,
    out value_json jsonb, out error_code integer, out error_message text
)
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    select coalesce(e.output_json, 'null') into value_json
      from wf.node_execution e
     where e.node_execution_id = wf.wf_find_task_execution(p_execution_id, p_task_key)
       and e.status = 'SUCCEEDED';
    if value_json is null then
        error_code := 10001;
        error_message := wf.wf_reference_text(jsonb_build_array('ctx', 'task',
            jsonb_build_array(p_task_key, 'output'))) || ' is not there';
    end if;
end
$$;

-- `ctx.item`, `index`, `iterationNo`: of the nearest iteration around the execution, itself
-- included; null outside of loops, and for the item of a loop that has none.
create or replace function wf.wf_loop_entry(p_execution_id bigint, p_root text) returns jsonb
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_execution_id bigint := p_execution_id;
    v_row          record;
begin
    loop
        select e.parent_execution_id, e.iteration_no, n.is_loop_body, n.parent_node_id into v_row
          from wf.node_execution e
          join wf.workflow_node n on n.node_id = e.node_id
         where e.node_execution_id = v_execution_id;
        if not found then
            return null;
        end if;
        exit when v_row.is_loop_body;
        v_execution_id := v_row.parent_execution_id;
    end loop;
    return case p_root
        when 'index' then to_jsonb(v_row.iteration_no)
        when 'iterationNo' then to_jsonb(v_row.iteration_no + 1)
        else (select v.value_json
                from wf.workflow_node p
                join wf.scope_variable v
                  on v.scope_id = v_execution_id and v.name = p.attributes_json ->> 'item'
               where p.node_id = v_row.parent_node_id and p.node_type = 'FOREACH')
        end;
end
$$;

-- `ctx.sequenceIndex` and `parallelIndex`: the child order of the nearest execution, itself
-- included, that hangs on such an edge.
create or replace function wf.wf_nearest_child_order(p_execution_id bigint, p_edge_kind text)
returns jsonb
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_execution_id bigint := p_execution_id;
    v_row          record;
begin
    loop
        select e.parent_execution_id, n.edge_kind, n.child_order into v_row
          from wf.node_execution e
          join wf.workflow_node n on n.node_id = e.node_id
         where e.node_execution_id = v_execution_id;
        if not found then
            return null;
        end if;
        exit when v_row.edge_kind = p_edge_kind;
        v_execution_id := v_row.parent_execution_id;
    end loop;
    return to_jsonb(v_row.child_order);
end
$$;

-- `ctx.parent.resultCode`: from the nearest execution, itself included, whose parent is a SEQUENCE,
-- the code of the sibling before it.
create or replace function wf.wf_previous_result_code(p_execution_id bigint) returns jsonb
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_execution_id bigint := p_execution_id;
    v_row          record;
begin
    loop
        select e.workflow_instance_id, e.parent_execution_id, n.parent_node_id, n.parent_type,
               n.child_order
          into v_row
          from wf.node_execution e
          join wf.workflow_node n on n.node_id = e.node_id
         where e.node_execution_id = v_execution_id;
        if not found then
            return null;
        end if;
        exit when v_row.parent_type = 'SEQUENCE';
        v_execution_id := v_row.parent_execution_id;
    end loop;
    return (select to_jsonb(e.result_code)
              from wf.workflow_node n
              join wf.node_execution e
                on e.workflow_instance_id = v_row.workflow_instance_id
               and e.parent_execution_id = v_row.parent_execution_id
               and e.node_id = n.node_id
               and e.iteration_no = 0
             where n.parent_node_id = v_row.parent_node_id
               and n.child_order = v_row.child_order - 1);
end
$$;

-- `ctx.error` (S6.9): the error that the nearest on_error or finally around the reader handles, as it
-- was when that began; null outside of one, and in a finally after success or cancellation.
create or replace function wf.wf_error_entry(p_execution_id bigint) returns jsonb
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_row record;
    v_id  bigint := p_execution_id;
begin
    loop
        select e.parent_execution_id, e.workflow_instance_id, n.edge_kind into v_row
          from wf.node_execution e
          join wf.workflow_node n on n.node_id = e.node_id
         where e.node_execution_id = v_id;
        if not found then
            return null;
        end if;
        exit when v_row.edge_kind in ('ON_ERROR', 'FINALLY');
        v_id := v_row.parent_execution_id;
    end loop;
    return (
        select jsonb_build_object('code', p.result_code, 'engine_code', p.engine_error_code,
                   'message', coalesce(p.engine_error_message, ''), 'node', n.node_key,
                   'path', wf.wf_execution_path(p.error_execution_id))
          from wf.pending_end p
          join wf.node_execution o on o.node_execution_id = p.error_execution_id
          join wf.workflow_node n on n.node_id = o.node_id
         where p.node_execution_id = v_row.parent_execution_id
           and p.verdict = 'FAIL');
end
$$;

-- What a `ctx` reference starts from (R27): value_json, null when it is not there, and how many of
-- its steps that took (`task` takes key and field, `parent` its field).
create or replace function wf.wf_context_entry(
    p_execution_id bigint, p_root text, p_steps jsonb, p_result_code integer,
    out value_json jsonb, out steps_taken integer
)
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    steps_taken := case p_root when 'task' then 2 when 'parent' then 1 else 0 end;
    if jsonb_array_length(p_steps) < steps_taken then
        return;
    end if;
    case p_root
        when 'task' then
            if jsonb_typeof(p_steps -> 0) = 'string' and p_steps -> 1 = '"output"' then
                select t.value_json into value_json
                  from wf.wf_try_task_output_json(p_execution_id, p_steps ->> 0) t;
            elsif jsonb_typeof(p_steps -> 0) = 'string' and p_steps -> 1 = '"resultCode"' then
                select t.value_json into value_json
                  from wf.wf_try_task_result_code(p_execution_id, p_steps ->> 0) t;
            end if;
        when 'error' then
            value_json := wf.wf_error_entry(p_execution_id);
        when 'item', 'index', 'iterationNo' then
            value_json := wf.wf_loop_entry(p_execution_id, p_root);
        when 'parent' then
            if p_steps -> 0 = '"resultCode"' then
                value_json := wf.wf_previous_result_code(p_execution_id);
            end if;
        when 'sequenceIndex' then
            value_json := wf.wf_nearest_child_order(p_execution_id, 'SEQUENCE');
        when 'parallelIndex' then
            value_json := wf.wf_nearest_child_order(p_execution_id, 'PARALLEL');
        when 'attempt' then
            -- Only in a `set`, which is where there is a result code (R27).
            if p_result_code is not null then
                select to_jsonb(greatest(coalesce(t.attempt_no, e.attempt_no), 1)) into value_json
                  from wf.node_execution e
                  left join wf.task t on t.node_execution_id = e.node_execution_id
                 where e.node_execution_id = p_execution_id;
            end if;
        when 'node' then
            select to_jsonb(n.node_key) into value_json
              from wf.node_execution e
              join wf.workflow_node n on n.node_id = e.node_id
             where e.node_execution_id = p_execution_id;
        when 'workflow', 'version', 'instance_id' then
            select to_jsonb(case p_root when 'workflow' then d.name
                                        when 'version' then left(w.content_hash, 12)
                                        else i.workflow_instance_id::text end)
              into value_json
              from wf.workflow_instance i
              join wf.workflow_version w on w.workflow_version_id = i.workflow_version_id
              join wf.workflow_def d on d.workflow_def_id = w.workflow_def_id
             where i.workflow_instance_id = wf.wf_instance_of_execution(p_execution_id);
        when 'context', 'forceRerun', 'event' then
            select case p_root
                       when 'context' then c.context_json
                       when 'event' then c.event_json
                       else coalesce(c.context_json -> 'forceRerun', 'false') end
              into value_json
              from wf.execution_context c
             where c.workflow_instance_id = wf.wf_instance_of_execution(p_execution_id);
        else
            null;
    end case;
end
$$;

-- The instance of an execution. While inputs are checked the root has a scope and no row yet.
create or replace function wf.wf_instance_of_execution(p_execution_id bigint) returns bigint
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    return coalesce(
        (select e.workflow_instance_id from wf.node_execution e
          where e.node_execution_id = p_execution_id),
        (select s.workflow_instance_id from wf.scope s where s.scope_id = p_execution_id));
end
$$;

-- What a reference names (S3.6). A step that is itself a reference is resolved by setting the outer
-- one aside: entry i of the v_outer arrays waits for the index that entry i + 1 is to give.
-- p_unset_is_null: variables that only a `set` brings into being read as null until then; the
-- workflow's `output` reads so (R16). p_scope_id: the execution's innermost scope, if the caller
-- knows it; an execution without a row (the root, while its inputs are read) is its own scope.
create or replace function wf.wf_resolve_reference(
    p_ref jsonb, p_execution_id bigint, p_output_json jsonb default null,
    p_result_code integer default null, p_event_json jsonb default null,
    p_unset_is_null boolean default false, p_scope_id bigint default null,
    out value_json jsonb, out error_code integer, out error_message text
)
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_ref         jsonb := p_ref;
    v_value       jsonb;
    v_steps       jsonb;
    v_step        jsonb;
    v_at          integer;
    v_count       integer;
    v_index       numeric;
    v_scope_id    bigint;
    v_owner       text;
    v_parent      bigint;
    v_entry       record;
    v_depth       integer := 0;
    v_outer_ref   jsonb[];
    v_outer_value jsonb[];
    v_outer_at    integer[];
begin
    <<reference>>
    loop
        v_at := 0;
        case v_ref ->> 0
            when 'var' then
                v_steps := v_ref -> 3;
                -- Single reads by primary key: as quick as a join, and so under every plan.
                v_scope_id := p_scope_id;
                if v_scope_id is null then
                    select e.scope_id into v_scope_id
                      from wf.node_execution e
                     where e.node_execution_id = p_execution_id;
                    if not found then
                        v_scope_id := p_execution_id;
                    end if;
                end if;
                loop
                    select s.owner_key, s.parent_scope_id into v_owner, v_parent
                      from wf.scope s
                     where s.scope_id = v_scope_id;
                    exit when not found or v_owner = v_ref ->> 2;
                    v_scope_id := v_parent;
                end loop;
                select v.value_json into v_value
                  from wf.scope_variable v
                 where v.scope_id = v_scope_id and v.name = v_ref ->> 1;
                if v_value is null and p_unset_is_null and v_depth = 0
                   and wf.wf_is_set_only_variable(p_execution_id, v_ref ->> 2, v_ref ->> 1) then
                    v_value := 'null';
                end if;
            when 'ctx' then
                v_steps := v_ref -> 2;
                v_entry := wf.wf_context_entry(p_execution_id, v_ref ->> 1, v_steps, p_result_code);
                v_value := v_entry.value_json;
                v_at := v_entry.steps_taken;
            when 'out' then
                v_steps := v_ref -> 1;
                v_value := coalesce(p_output_json, 'null');
            when 'code' then
                v_steps := '[]';
                v_value := to_jsonb(p_result_code);
            else
                v_steps := v_ref -> 1;
                v_value := p_event_json;
        end case;
        v_count := jsonb_array_length(v_steps);

        loop
            if v_value is null then
                error_code := 10001;
                error_message := wf.wf_reference_text(v_ref) || ' is not there';
                return;
            end if;
            if v_at < v_count then
                v_step := v_steps -> v_at;
                v_at := v_at + 1;
                if jsonb_typeof(v_step) = 'array' then
                    v_depth := v_depth + 1;
                    v_outer_ref[v_depth] := v_ref;
                    v_outer_value[v_depth] := v_value;
                    v_outer_at[v_depth] := v_at;
                    v_ref := v_step;
                    continue reference;
                end if;
            elsif v_depth = 0 then
                value_json := v_value;
                return;
            else
                -- An index is complete: back to the reference that it stands in.
                v_step := v_value;
                v_ref := v_outer_ref[v_depth];
                v_value := v_outer_value[v_depth];
                v_at := v_outer_at[v_depth];
                v_depth := v_depth - 1;
                v_steps := v_ref -> -1;
                v_count := jsonb_array_length(v_steps);
                if not (case jsonb_typeof(v_step) when 'number' then scale(v_step::numeric) = 0
                        else false end) then
                    error_code := 10010;
                    error_message := 'an index takes an integer, not ' || wf.wf_type_word(v_step);
                    return;
                end if;
            end if;
            if jsonb_typeof(v_step) = 'string' then
                v_value := case when jsonb_typeof(v_value) = 'object'
                                then v_value -> (v_step #>> '{}') end;
            elsif jsonb_typeof(v_value) = 'array' then
                -- A negative index would count from the end.
                v_index := v_step::numeric;
                v_value := case when v_index >= 0 and v_index < jsonb_array_length(v_value)
                                then v_value -> v_index::integer end;
            else
                v_value := null;
            end if;
        end loop;
    end loop;
end
$$;

-- The value of variable p_name of the nearest scope, from p_scope_id outwards, that node
-- p_owner_key opened; 10001 when it has none.
create or replace function wf.wf_get_scope_variable_json(
    p_scope_id bigint, p_owner_key text, p_name text,
    out value_json jsonb, out error_code integer, out error_message text
)
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    select r.value_json, r.error_code, r.error_message into value_json, error_code, error_message
      from wf.wf_resolve_reference(jsonb_build_array('var', p_name, p_owner_key, '[]'::jsonb), 0,
                                   p_scope_id => p_scope_id) r;
end
$$;

-- Whether the variable is one that only a `set` or `collect` brings into being (R16).
create or replace function wf.wf_is_set_only_variable(
    p_execution_id bigint, p_owner_key text, p_name text
) returns boolean
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    return exists (
        select 1
          from wf.node_execution e
          join wf.workflow_node n on n.node_id = e.node_id
          join wf.node_scope_default d
            on d.workflow_version_id = n.workflow_version_id
           and d.owner_key = p_owner_key and d.name = p_name
         where e.node_execution_id = p_execution_id
           and d.variable_kind = 'set');
end
$$;


-- The evaluator of programs (S3): a loop over a stack, never recursion. Twin: mssql/wf_expressions.sql

-- Why a value that an instance has built cannot be stored (R7), or null: deeper than 100 levels, or
-- more than 16 MB as text. A small value can be neither.
create or replace function wf.wf_storable_problem(p_value jsonb) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
begin
    if pg_column_size(p_value) <= 800 then
        return null;
    elsif pg_column_size(p_value) > 4194304 and octet_length(p_value::text) > 16777216 then
        return 'a value of more than 16 MB cannot be stored';
    elsif jsonb_path_exists(p_value, 'strict $.**{100 to last} ? (@.type() == "array"'
                                     ' || @.type() == "object")', '{}', true) then
        return 'a value nested deeper than 100 levels cannot be stored';
    end if;
    return null;
end
$$;

-- Programs ----------------------------------------------------------------------------------------

-- Evaluates a program (S3) in the place of an execution. p_output_json, p_result_code and
-- p_event_json are what `out`, `code` and `event` read; p_unset_is_null as in wf_resolve_reference.
create or replace function wf.wf_eval_expression(
    p_program jsonb, p_execution_id bigint, p_output_json jsonb default null,
    p_result_code integer default null, p_event_json jsonb default null,
    p_unset_is_null boolean default false,
    out value_json jsonb, out error_code integer, out error_message text
)
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_size       integer := jsonb_array_length(p_program);
    v_program    jsonb := p_program;
    v_at         integer := 0;
    v_top        integer := 0;
    v_stack      jsonb[];        -- an SQL null in it is the mark "missing" that only `alt` meets
    v_step       jsonb;
    v_op         text;
    v_left       jsonb;
    v_right      jsonb;
    v_left_type  text;
    v_right_type text;
    v_truth      boolean;
    v_sign       text;
    v_text       text;
    v_found      record;
    v_scope_id   bigint;
    v_grows      boolean := false;
begin
    if v_size = 1 then
        v_step := p_program -> 0;
        v_op := v_step ->> 0;
        if v_op = 'lit' then
            value_json := v_step -> 1;
            return;
        elsif v_op in ('var', 'ctx', 'out', 'code', 'event') then
            v_found := wf.wf_resolve_reference(v_step, p_execution_id, p_output_json,
                p_result_code, p_event_json, p_unset_is_null);
            value_json := v_found.value_json;
            error_code := v_found.error_code;
            error_message := v_found.error_message;
            return;
        end if;
    end if;

    if v_size > 50 then
        -- A stored program may be compressed; this unpacks it once instead of at every step.
        v_program := p_program || '[]';
    end if;
    while v_at < v_size loop
        v_step := v_program -> v_at;
        v_op := v_step ->> 0;
        v_at := v_at + 1;

        if v_op = 'lit' then
            v_top := v_top + 1;
            v_stack[v_top] := v_step -> 1;

        elsif v_op in ('var', 'ctx', 'out', 'code', 'event') then
            if v_scope_id is null and v_op = 'var' then
                select e.scope_id into v_scope_id
                  from wf.node_execution e
                 where e.node_execution_id = p_execution_id;
            end if;
            v_found := wf.wf_resolve_reference(v_step, p_execution_id, p_output_json,
                p_result_code, p_event_json, p_unset_is_null, v_scope_id);
            if v_found.error_code is not null and not coalesce(
                   v_found.error_code = 10001 and v_program -> v_at ->> 0 = 'alt', false) then
                error_code := v_found.error_code;
                error_message := v_found.error_message;
                return;
            end if;
            v_top := v_top + 1;
            v_stack[v_top] := v_found.value_json;

        elsif v_op in ('eq', 'ne', 'lt', 'le', 'gt', 'ge') then
            v_right := v_stack[v_top];
            v_top := v_top - 1;
            v_left := v_stack[v_top];
            v_left_type := jsonb_typeof(v_left);
            v_right_type := jsonb_typeof(v_right);
            if (case when v_op in ('eq', 'ne')
                     then (v_left_type in ('object', 'array')
                           or v_right_type in ('object', 'array'))
                          and v_left_type <> 'null' and v_right_type <> 'null'
                     else v_left_type <> v_right_type
                          or v_left_type not in ('number', 'string') end) then
                error_code := 10010;
                error_message := 'cannot compare ' || wf.wf_type_word(v_left)
                    || ' with ' || wf.wf_type_word(v_right);
                return;
            end if;
            if v_op = 'eq' then
                -- jsonb equality is S3.1's for scalars: numbers by value, strings by their bytes.
                v_truth := v_left = v_right;
            elsif v_op = 'ne' then
                v_truth := v_left <> v_right;
            elsif v_left_type = 'number' then
                v_truth := case v_op when 'lt' then v_left::numeric < v_right::numeric
                                     when 'le' then v_left::numeric <= v_right::numeric
                                     when 'gt' then v_left::numeric > v_right::numeric
                                     else v_left::numeric >= v_right::numeric end;
            else
                -- Under "C" UTF-8 sorts by code point (R34).
                v_truth := case v_op
                    when 'lt' then (v_left #>> '{}') collate "C" < (v_right #>> '{}')
                    when 'le' then (v_left #>> '{}') collate "C" <= (v_right #>> '{}')
                    when 'gt' then (v_left #>> '{}') collate "C" > (v_right #>> '{}')
                    else (v_left #>> '{}') collate "C" >= (v_right #>> '{}') end;
            end if;
            v_stack[v_top] := case when v_truth then 'true'::jsonb else 'false'::jsonb end;

        elsif v_op in ('not', 'bool', 'jf', 'jt') then
            v_left := v_stack[v_top];
            v_left_type := jsonb_typeof(v_left);
            v_truth := case v_left_type
                when 'boolean' then v_left = 'true'
                when 'null' then false
                when 'number' then case when scale(v_left::numeric) = 0
                                        then v_left::numeric <> 0 end
                end;
            if v_truth is null then
                error_code := 10010;
                error_message := 'a condition takes a boolean, an integer or null, not '
                    || wf.wf_type_word(v_left);
                return;
            end if;
            if v_op = 'jf' or v_op = 'jt' then
                if v_truth = (v_op = 'jt') then
                    v_at := v_at + (v_step ->> 1)::integer;
                else
                    v_top := v_top - 1;
                    continue;
                end if;
            elsif v_op = 'not' then
                v_truth := not v_truth;
            end if;
            v_stack[v_top] := case when v_truth then 'true'::jsonb else 'false'::jsonb end;

        elsif v_op in ('add', 'sub', 'mul', 'div', 'mod', 'neg') then
            if v_op = 'neg' then
                v_left := '0';
                v_right := v_stack[v_top];
            else
                v_right := v_stack[v_top];
                v_top := v_top - 1;
                v_left := v_stack[v_top];
            end if;
            v_sign := case v_op when 'add' then '+' when 'mul' then '*' when 'div' then '//'
                                when 'mod' then '%' else '-' end;
            v_truth := case jsonb_typeof(v_left) when 'number' then scale(v_left::numeric) = 0
                       else false end;
            if not v_truth
               or not (case jsonb_typeof(v_right) when 'number' then scale(v_right::numeric) = 0
                       else false end) then
                error_code := 10011;
                error_message := v_sign || ' takes integers, not '
                    || wf.wf_type_word(case when v_truth then v_right else v_left end);
                return;
            end if;
            v_found := wf.wf_integer_result(v_sign, v_left::numeric, v_right::numeric);
            if v_found.error_message is not null then
                error_code := 10011;
                error_message := v_found.error_message;
                return;
            end if;
            v_stack[v_top] := to_jsonb(v_found.result);

        elsif v_op = 'alt' then
            v_left := v_stack[v_top];
            if v_left is null or v_left = 'null' then
                v_top := v_top - 1;
            else
                v_at := v_at + (v_step ->> 1)::integer;
            end if;

        elsif v_op = 'cat' then
            v_top := v_top - (v_step ->> 1)::integer;
            v_text := '';
            for v_index in 1 .. (v_step ->> 1)::integer loop
                v_left := v_stack[v_top + v_index];
                if jsonb_typeof(v_left) in ('null', 'array', 'object') then
                    error_code := 10017;
                    error_message := jsonb_typeof(v_left) || ' cannot stand inside a string';
                    return;
                end if;
                -- jsonb writes numbers in normal form (R6).
                v_text := v_text || (v_left #>> '{}');
                if octet_length(v_text) > 16777216 then
                    error_code := 10018;
                    error_message := 'a value of more than 16 MB cannot be stored';
                    return;
                end if;
            end loop;
            v_top := v_top + 1;
            v_stack[v_top] := to_jsonb(v_text);

        elsif v_op = 'in' then
            v_right := v_stack[v_top];
            v_top := v_top - 1;
            v_left := v_stack[v_top];
            if jsonb_typeof(v_left) in ('object', 'array') then
                error_code := 10010;
                error_message := 'in takes a scalar on the left, not ' || jsonb_typeof(v_left);
                return;
            elsif jsonb_typeof(v_right) <> 'array' then
                error_code := 10010;
                error_message := 'in takes an array on the right, not '
                    || wf.wf_type_word(v_right);
                return;
            end if;
            -- An array contains a scalar when one of its elements equals it.
            v_stack[v_top] := to_jsonb(v_right @> v_left);

        elsif v_op = 'len' then
            v_left := v_stack[v_top];
            case jsonb_typeof(v_left)
                when 'string' then
                    v_stack[v_top] := to_jsonb(char_length(v_left #>> '{}'));
                when 'array' then
                    v_stack[v_top] := to_jsonb(jsonb_array_length(v_left));
                when 'object' then
                    v_stack[v_top] := to_jsonb((select count(*) from jsonb_object_keys(v_left)));
                else
                    error_code := 10010;
                    error_message := 'len takes a string, an array or an object, not '
                        || wf.wf_type_word(v_left);
                    return;
            end case;

        elsif v_op = 'defined' then
            v_found := wf.wf_resolve_reference(v_step -> 1, p_execution_id, p_output_json,
                p_result_code, p_event_json);
            if v_found.error_code <> 10001 then
                error_code := v_found.error_code;
                error_message := v_found.error_message;
                return;
            end if;
            v_top := v_top + 1;
            v_stack[v_top] := to_jsonb(v_found.error_code is null);

        elsif v_op = 'arr' then
            v_top := v_top - (v_step ->> 1)::integer + 1;
            v_stack[v_top] := case when v_step ->> 1 = '0' then '[]'::jsonb
                else to_jsonb(v_stack[v_top : v_top - 1 + (v_step ->> 1)::integer]) end;
            v_grows := true;

        elsif v_op = 'obj' then
            v_top := v_top - jsonb_array_length(v_step -> 1) + 1;
            v_stack[v_top] := coalesce(
                (select jsonb_object_agg(k.key, v_stack[v_top - 1 + k.ordinal::integer])
                   from jsonb_array_elements_text(v_step -> 1) with ordinality k(key, ordinal)),
                '{}');
            v_grows := true;

        elsif v_op = 'fault' then
            error_code := (v_step ->> 1)::integer;
            error_message := v_step ->> 2;
            return;

        else
            error_code := 10002;
            error_message := 'unknown instruction ' || coalesce(v_op, 'null');
            return;
        end if;
    end loop;
    if v_grows then
        error_message := wf.wf_storable_problem(v_stack[v_top]);
        if error_message is not null then
            error_code := 10018;
            return;
        end if;
    end if;
    value_json := v_stack[v_top];
end
$$;

-- 64-bit arithmetic (S3.5): floor division, modulo with the sign of the divisor.
create or replace function wf.wf_integer_result(
    p_sign text, p_left numeric, p_right numeric, out result numeric, out error_message text
)
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
declare
    c_min constant numeric := -9223372036854775808;
    c_max constant numeric := 9223372036854775807;
begin
    if p_left not between c_min and c_max or p_right not between c_min and c_max then
        error_message := 'integer overflow in ' || p_sign;
    elsif p_right = 0 and p_sign in ('//', '%') then
        error_message := 'division by zero';
    else
        result := case p_sign
            when '+' then p_left + p_right
            when '-' then p_left - p_right
            when '*' then p_left * p_right
            -- div and % truncate towards zero; the correction makes them floor.
            when '//' then div(p_left, p_right)
                - case when p_left % p_right <> 0 and (p_left < 0) <> (p_right < 0)
                       then 1 else 0 end
            else p_left % p_right
                + case when p_left % p_right <> 0 and (p_left < 0) <> (p_right < 0)
                       then p_right else 0 end
            end;
        if result not between c_min and c_max then
            result := null;
            error_message := 'integer overflow in ' || p_sign;
        end if;
    end if;
end
$$;


-- Templates: placeholders compiled to programs, and the inputs of ACTIONs. Twin: mssql/wf_templates.sql

-- Templates ---------------------------------------------------------------------------------------

-- The strings of a template that hold `${` (so also `$${`), with where they stand: `pointer` is
-- the JSON pointer, `path` the same for jsonb_set. Keys are never expanded.
create or replace function wf.wf_template_bindings(p_template jsonb)
returns table (pointer text, path text[], text_value text)
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
declare
    v_pointers text[] := array[''];
    v_paths    jsonb[] := array['[]'::jsonb];  -- text[] of differing lengths do not make one array
    v_values   jsonb[] := array[p_template];
begin
    if strpos(p_template::text, '${') = 0 then
        return;
    end if;
    while v_values is not null loop
        return query
        select u.pointer, array(select jsonb_array_elements_text(u.path)), u.value #>> '{}'
          from unnest(v_pointers, v_paths, v_values) u(pointer, path, value)
         where jsonb_typeof(u.value) = 'string' and strpos(u.value #>> '{}', '${') > 0;

        select array_agg(u.pointer || '/' || replace(replace(c.key, '~', '~0'), '/', '~1')),
               array_agg(u.path || to_jsonb(c.key)),
               array_agg(c.value)
          into v_pointers, v_paths, v_values
          from unnest(v_pointers, v_paths, v_values) u(pointer, path, value)
         cross join lateral (
            select o.key, o.value
              from jsonb_each(case jsonb_typeof(u.value) when 'object' then u.value end) o
            union all
            select (a.ordinal - 1)::text, a.value
              from jsonb_array_elements(case jsonb_typeof(u.value) when 'array' then u.value end)
                   with ordinality a(value, ordinal)
         ) c;
    end loop;
end
$$;

-- The key of the node whose scope has variable p_name for node p_node_id: the nearest one upwards,
-- itself included, that declares it; null when none does.
create or replace function wf.wf_owner_of_variable(p_node_id bigint, p_name text) returns text
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_node_id bigint := p_node_id;
    v_row     record;
begin
    while v_node_id is not null loop
        select n.node_key, n.parent_node_id, d.name into v_row
          from wf.workflow_node n
          left join wf.node_scope_default d
            on d.workflow_version_id = n.workflow_version_id
           and d.owner_key = n.node_key and d.name = p_name
         where n.node_id = v_node_id;
        exit when not found;
        if v_row.name is not null then
            return v_row.node_key;
        end if;
        v_node_id := v_row.parent_node_id;
    end loop;
    return null;
end
$$;

-- Reads one `${…}` at the head of p_text, which starts after the `${`. Answers the instruction and
-- how many characters it took with its `}`; a null instruction: it is no reference.
-- An index that is a reference sets the outer one aside, as in wf_resolve_reference.
create or replace function wf.wf_parse_placeholder(
    p_text text, p_node_id bigint, out instruction jsonb, out length integer
)
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_rest   text := regexp_replace(p_text, '^[ \t]+', '');
    v_refs   jsonb[];
    v_steps  jsonb[];
    v_depth  integer := 0;
    v_match  text[];
    v_owner  text;
    v_step   jsonb;
begin
    <<reference>>
    loop
        v_match := regexp_match(v_rest, '^(var|ctx)\.([A-Za-z_][A-Za-z0-9_]*)');
        if v_match is null then
            return;
        end if;
        v_rest := substr(v_rest, char_length(v_match[1] || v_match[2]) + 2);
        v_depth := v_depth + 1;
        v_steps[v_depth] := '[]';
        v_refs[v_depth] := jsonb_build_array(v_match[1], v_match[2]);
        if v_match[1] = 'var' then
            v_owner := wf.wf_owner_of_variable(p_node_id, v_match[2]);
            if v_owner is null then
                return;
            end if;
            v_refs[v_depth] := v_refs[v_depth] || to_jsonb(v_owner);
        end if;

        loop
            v_step := null;
            if v_rest ~ '^\.[A-Za-z_]' then
                v_match := regexp_match(v_rest, '^\.([A-Za-z_][A-Za-z0-9_]*)');
                v_step := to_jsonb(v_match[1]);
                v_rest := substr(v_rest, char_length(v_match[1]) + 2);
            elsif v_rest ~ '^\[[0-9]{1,18}\]' then
                v_match := regexp_match(v_rest, '^\[([0-9]+)\]');
                v_step := to_jsonb(v_match[1]::bigint);
                v_rest := substr(v_rest, char_length(v_match[1]) + 3);
            elsif v_rest ~ '^\["' then
                v_match := regexp_match(v_rest, '^\[("(?:[^"\\]|\\.)*")\]');
                if v_match is null then
                    return;
                end if;
                begin
                    v_step := v_match[1]::jsonb;
                exception when data_exception or invalid_text_representation then
                    return;
                end;
                v_rest := substr(v_rest, char_length(v_match[1]) + 3);
            elsif v_rest ~ '^\[(var|ctx)\.' then
                v_rest := substr(v_rest, 2);
                continue reference;
            elsif v_depth > 1 and v_rest ~ '^\]' then
                v_step := v_refs[v_depth] || jsonb_build_array(v_steps[v_depth]);
                v_depth := v_depth - 1;
                v_rest := substr(v_rest, 2);
            elsif v_depth = 1 and v_rest ~ '^[ \t]*\}' then
                instruction := v_refs[1] || jsonb_build_array(v_steps[1]);
                length := char_length(p_text) - char_length(v_rest) + strpos(v_rest, '}');
                return;
            else
                return;
            end if;
            v_steps[v_depth] := v_steps[v_depth] || jsonb_build_array(v_step);
        end loop;
    end loop;
end
$$;

-- The program of one template string of node p_node_id: a string that is exactly one placeholder
-- keeps the type of what it names; `$${` stands for `${`. 10002: a placeholder that is none.
create or replace function wf.wf_compile_template_string(
    p_text text, p_version_id bigint, p_node_id bigint,
    out program_json jsonb, out error_code integer, out error_message text
)
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_rest    text := p_text;
    v_literal text := '';
    v_parts   jsonb := '[]';
    v_at      integer;
    v_found   record;
begin
    loop
        v_at := strpos(v_rest, '${');
        if v_at = 0 then
            v_literal := v_literal || v_rest;
            exit;
        end if;
        if v_at > 1 and substr(v_rest, v_at - 1, 1) = '$' then
            v_literal := v_literal || left(v_rest, v_at - 2) || '${';
            v_rest := substr(v_rest, v_at + 2);
            continue;
        end if;
        v_literal := v_literal || left(v_rest, v_at - 1);
        v_rest := substr(v_rest, v_at + 2);
        v_found := wf.wf_parse_placeholder(v_rest, p_node_id);
        if v_found.instruction is null then
            error_code := 10002;
            error_message := 'unsupported placeholder ${' || case when strpos(v_rest, '}') > 0
                then left(v_rest, strpos(v_rest, '}')) else v_rest end;
            return;
        end if;
        if v_literal <> '' then
            v_parts := v_parts || jsonb_build_array(jsonb_build_array('lit', v_literal));
            v_literal := '';
        end if;
        v_parts := v_parts || jsonb_build_array(v_found.instruction);
        v_rest := substr(v_rest, v_found.length + 1);
    end loop;
    if v_literal <> '' or v_parts = '[]' then
        v_parts := v_parts || jsonb_build_array(jsonb_build_array('lit', v_literal));
    end if;
    program_json := case when jsonb_array_length(v_parts) = 1 then v_parts
        else v_parts || jsonb_build_array(
            jsonb_build_array('cat', jsonb_array_length(v_parts))) end;
end
$$;

-- Puts p_value at p_path of a document; an empty path is the whole document, which jsonb_set would
-- leave as it is.
create or replace function wf.wf_json_put(p_document jsonb, p_path text[], p_value jsonb)
returns jsonb
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
begin
    return case when p_path = '{}' then p_value else jsonb_set(p_document, p_path, p_value) end;
end
$$;

-- The order in which the places of a template are filled, and so which error is met first: by path,
-- keys by code point, array indexes by number. A path without digits is its own key.
create or replace function wf.wf_path_order(p_path text[]) returns text[]
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
begin
    return array(
        select case when u.step ~ '^[0-9]{1,9}$' then lpad(u.step, 10, '0') else u.step end
          from unnest(p_path) with ordinality u(step, ordinal)
         order by u.ordinal);
end
$$;

-- Fills any template in the place of an execution: each string with placeholders is compiled and
-- evaluated. Values are never expanded a second time.
create or replace function wf.wf_resolve_placeholders(
    p_template jsonb, p_execution_id bigint,
    out value_json jsonb, out error_code integer, out error_message text
)
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_node   record;
    v_row    record;
    v_value  record;
    v_result jsonb := p_template;
begin
    select n.node_id, n.workflow_version_id into v_node
      from wf.node_execution e
      join wf.workflow_node n on n.node_id = e.node_id
     where e.node_execution_id = p_execution_id;
    for v_row in
        select b.pointer, b.path, c.program_json, c.error_code, c.error_message
          from wf.wf_template_bindings(p_template) b
         cross join lateral wf.wf_compile_template_string(
             b.text_value, v_node.workflow_version_id, v_node.node_id) c
         order by (case when b.pointer ~ '/[0-9]' then wf.wf_path_order(b.path)
                        else b.path end) collate "C"
    loop
        error_code := v_row.error_code;
        error_message := v_row.error_message;
        if error_code is null then
            v_value := wf.wf_eval_expression(v_row.program_json, p_execution_id);
            error_code := v_value.error_code;
            error_message := v_value.error_message;
        end if;
        if error_code is not null then
            return;
        end if;
        v_result := wf.wf_json_put(v_result, v_row.path, v_value.value_json);
    end loop;
    value_json := v_result;
end
$$;

-- The input of an ACTION (S4.1): its node's template with every binding put in. The bindings of
-- strings with placeholders were derived when the version was published.
create or replace function wf.wf_build_input_json_for_action(
    p_execution_id bigint,
    out value_json jsonb, out error_code integer, out error_message text
)
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_node_id bigint;
    v_result  jsonb;
    v_row     record;
    v_value   record;
    v_grows   boolean := false;
begin
    select n.node_id, coalesce(t.template_json, '{}') into v_node_id, v_result
      from wf.node_execution e
      join wf.workflow_node n on n.node_id = e.node_id
      left join wf.workflow_input_template t
        on t.workflow_version_id = n.workflow_version_id and t.node_key = n.node_key
     where e.node_execution_id = p_execution_id;
    for v_row in
        select b.path, b.program_json
          from wf.workflow_input_binding b
         where b.node_id = v_node_id
         order by (case when b.pointer ~ '/[0-9]' then wf.wf_path_order(b.path)
                        else b.path end) collate "C"
    loop
        v_value := wf.wf_eval_expression(v_row.program_json, p_execution_id);
        if v_value.error_code is not null then
            error_code := v_value.error_code;
            error_message := v_value.error_message;
            return;
        end if;
        v_result := wf.wf_json_put(v_result, v_row.path, v_value.value_json);
        v_grows := true;
    end loop;
    if v_grows then
        error_message := wf.wf_storable_problem(v_result);
    end if;
    if error_message is not null then
        error_code := 10018;
    else
        value_json := v_result;
    end if;
end
$$;

-- Scopes, the start context and the type table (R5). Twin: mssql/06_scopes_and_types.sql
--
-- A scope row is one activation of a node that has variables. The engine inserts it with the
-- execution; what stands here fills it: the instance's inputs and variables at start, the
-- initialisers of a body when it opens (S2.3), `set` afterwards. Errors are values, as in
-- 05_runtime_parity.sql. No locks beyond the rows written, which belong to the caller's own
-- executions.

-- Checks values against the type table, level by level: the values, then their fields and items,
-- and so on. Answers the text of the first misfit (level, then declaration order and index), or
-- null. A value that is SQL null is missing.
create or replace function wf.wf_check_values(
    p_version_id bigint, p_places text[], p_type_ids integer[], p_values jsonb[]
) returns text
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_places   text[] := p_places;
    v_type_ids integer[] := p_type_ids;
    v_values   jsonb[] := p_values;
    v_misfit   text;
begin
    while v_type_ids is not null loop
        select u.place || ': ' || m.misfit into v_misfit
          from unnest(v_places, v_type_ids, v_values)
               with ordinality u(place, type_id, value, ordinal)
          join wf.data_type t
            on t.workflow_version_id = p_version_id and t.type_id = u.type_id
         cross join lateral wf.wf_type_misfit(
             u.value, t.base_type, t.is_required, t.is_nullable, t.enum_json) m(misfit)
         where m.misfit is not null
         order by u.ordinal
         limit 1;
        if v_misfit is not null then
            return v_misfit;
        end if;

        select array_agg(b.place order by b.ordinal, b.index, b.type_id),
               array_agg(b.type_id order by b.ordinal, b.index, b.type_id),
               array_agg(b.value order by b.ordinal, b.index, b.type_id)
          into v_places, v_type_ids, v_values
          from (select u.ordinal, 0 as index, f.type_id, u.value -> f.name as value,
                       u.place || case when f.name ~ '^[A-Za-z_][A-Za-z0-9_]*$' then '.' || f.name
                                       else '[' || to_jsonb(f.name)::text || ']' end as place
                  from unnest(v_places, v_type_ids, v_values)
                       with ordinality u(place, type_id, value, ordinal)
                  join wf.data_type f
                    on f.workflow_version_id = p_version_id
                   and f.parent_type_id = u.type_id and f.path_kind = 'field'
                 where jsonb_typeof(u.value) = 'object'
                union all
                select u.ordinal, i.ordinal, f.type_id, i.value,
                       u.place || '[' || (i.ordinal - 1)::text || ']'
                  from unnest(v_places, v_type_ids, v_values)
                       with ordinality u(place, type_id, value, ordinal)
                  join wf.data_type f
                    on f.workflow_version_id = p_version_id
                   and f.parent_type_id = u.type_id and f.path_kind = 'item'
                 cross join lateral jsonb_array_elements(
                     case jsonb_typeof(u.value) when 'array' then u.value end)
                     with ordinality i(value, ordinal)) b;
    end loop;
    return null;
end
$$;

-- What is wrong with one value by one row of the type table, not looking inside; null: nothing.
create or replace function wf.wf_type_misfit(
    p_value jsonb, p_base_type text, p_is_required boolean, p_is_nullable boolean, p_enum jsonb
) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
declare
    v_type text := jsonb_typeof(p_value);
    v_fits boolean;
    v_null text := case when p_is_nullable then ' or null' else '' end;
begin
    if p_value is null then
        return case when p_is_required then 'is missing' end;
    end if;
    if p_base_type = 'any' or (v_type = 'null' and p_is_nullable) then
        return null;
    end if;
    v_fits := case p_base_type
        when 'string' then v_type = 'string'
        when 'bool' then v_type = 'boolean'
        when 'number' then v_type = 'number'
        when 'int' then case v_type when 'number' then scale(p_value::numeric) = 0 else false end
        when 'object' then v_type = 'object'
        else v_type = 'array' end;
    if jsonb_typeof(p_enum) = 'array' and p_enum <> '[]' then
        if v_fits and p_enum @> p_value then
            return null;
        end if;
        return 'must be one of '
            || (select string_agg(e.value::text, ', ' order by e.ordinal)
                  from jsonb_array_elements(p_enum) with ordinality e(value, ordinal))
            || v_null;
    end if;
    if v_fits then
        return null;
    end if;
    return 'must be '
        || case p_base_type when 'string' then 'string' when 'int' then 'an integer'
                            when 'number' then 'a number' when 'bool' then 'a boolean'
                            when 'object' then 'an object' else 'a list' end
        || v_null || ', not ' || wf.wf_type_word(p_value);
end
$$;

-- The first misfit of one value, called `input <p_name>` in the text, or null.
create or replace function wf.wf_check_value_type(
    p_version_id bigint, p_type_id integer, p_value jsonb, p_name text
) returns text
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    return wf.wf_check_values(p_version_id, array['input ' || p_name], array[p_type_id],
                              array[p_value]);
end
$$;

-- Opens the instance's scope: each input from the start context or its default, then the check of
-- their types (10015), then the workflow's variables, each seeing those before it. After an error
-- nothing of the scope is left.
create or replace function wf.wf_init_instance_scope_from_context(
    p_instance_id bigint, p_root_execution_id bigint,
    out error_code integer, out error_message text
)
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_root     record;
    v_context  jsonb;
    v_row      record;
    v_value    record;
    v_places   text[];
    v_type_ids integer[];
    v_values   jsonb[];
begin
    select n.node_id, n.node_key, n.workflow_version_id,
           case jsonb_typeof(c.context_json) when 'object' then c.context_json
                                             else '{}'::jsonb end as context_json
      into v_root
      from wf.workflow_instance i
      join wf.workflow_version w on w.workflow_version_id = i.workflow_version_id
      join wf.workflow_node n on n.node_id = w.root_node_id
      left join wf.execution_context c on c.workflow_instance_id = i.workflow_instance_id
     where i.workflow_instance_id = p_instance_id;
    v_context := coalesce(v_root.context_json, '{}');

    insert into wf.scope (scope_id, parent_scope_id, workflow_instance_id, owner_key)
    values (p_root_execution_id, 0, p_instance_id, v_root.node_key)
    on conflict on constraint pk_scope do nothing;

    for v_row in
        select d.name, d.type_id, d.program_json, d.is_required,
               v_context -> d.name as value_json
          from wf.node_scope_default d
         where d.workflow_version_id = v_root.workflow_version_id
           and d.owner_key = v_root.node_key and d.variable_kind = 'input'
         order by d.variable_order
    loop
        if v_row.value_json is null and v_row.program_json is not null then
            v_value := wf.wf_eval_expression(v_row.program_json, p_root_execution_id);
            error_code := v_value.error_code;
            error_message := v_value.error_message;
            exit when error_code is not null;
            v_row.value_json := v_value.value_json;
        end if;
        if v_row.value_json is not null then
            insert into wf.scope_variable (scope_id, name, value_json)
            values (p_root_execution_id, v_row.name, v_row.value_json);
        end if;
        v_places := v_places || ('input ' || v_row.name);
        v_type_ids := v_type_ids || v_row.type_id;
        v_values := array_append(v_values, v_row.value_json);
        if v_row.value_json is null and v_row.is_required and v_row.type_id is null then
            error_code := 10015;
            error_message := 'input ' || v_row.name || ': is missing';
            exit;
        end if;
    end loop;

    if error_code is null then
        error_message := wf.wf_check_values(v_root.workflow_version_id, v_places, v_type_ids,
                                            v_values);
        if error_message is not null then
            error_code := 10015;
        else
            v_value := wf.wf_fill_scope(p_root_execution_id, v_root.workflow_version_id,
                                        v_root.node_key);
            error_code := v_value.error_code;
            error_message := v_value.error_message;
        end if;
    end if;
    if error_code is not null then
        delete from wf.scope_variable v where v.scope_id = p_root_execution_id;
        delete from wf.scope s where s.scope_id = p_root_execution_id;
    end if;
end
$$;

-- Evaluates the initialisers of the variables that node p_owner_key declares, in order, into the
-- scope of execution p_execution_id; each sees those before it.
create or replace function wf.wf_fill_scope(
    p_execution_id bigint, p_version_id bigint, p_owner_key text,
    out error_code integer, out error_message text
)
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_row   record;
    v_value record;
begin
    for v_row in
        select d.name, d.program_json
          from wf.node_scope_default d
         where d.workflow_version_id = p_version_id and d.owner_key = p_owner_key
           and d.variable_kind = 'var' and d.program_json is not null
         order by d.variable_order
    loop
        v_value := wf.wf_eval_expression(v_row.program_json, p_execution_id);
        if v_value.error_code is not null then
            error_code := v_value.error_code;
            error_message := v_value.error_message;
            return;
        end if;
        insert into wf.scope_variable (scope_id, name, value_json)
        values (p_execution_id, v_row.name, v_value.value_json)
        on conflict on constraint pk_scope_variable
            do update set value_json = excluded.value_json;
    end loop;
end
$$;

-- Fills the scopes of executions whose node declares variables (not the root; the scope rows are
-- there). Answers a row for each execution whose initialisers failed, in the order given. Nodes
-- whose initialisers are all literals are filled in one statement.
create or replace function wf.wf_open_scopes(p_execution_ids bigint[])
returns table (node_execution_id bigint, error_code integer, error_message text)
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_row   record;
    v_value record;
begin
    insert into wf.scope_variable (scope_id, name, value_json)
    select u.execution_id, d.name, d.program_json -> 0 -> 1
      from unnest(p_execution_ids) u(execution_id)
      join wf.node_execution e on e.node_execution_id = u.execution_id
      join wf.workflow_node n on n.node_id = e.node_id
      join wf.node_scope_default d
        on d.workflow_version_id = n.workflow_version_id and d.owner_key = n.node_key
     where d.variable_kind = 'var' and d.program_json is not null
       and not wf.wf_has_computed_variable(n.workflow_version_id, n.node_key)
    on conflict on constraint pk_scope_variable do update set value_json = excluded.value_json;

    for v_row in
        select u.execution_id, n.workflow_version_id, n.node_key
          from unnest(p_execution_ids) with ordinality u(execution_id, ordinal)
          join wf.node_execution e on e.node_execution_id = u.execution_id
          join wf.workflow_node n on n.node_id = e.node_id
         where wf.wf_has_computed_variable(n.workflow_version_id, n.node_key)
         order by u.ordinal
    loop
        v_value := wf.wf_fill_scope(v_row.execution_id, v_row.workflow_version_id,
                                    v_row.node_key);
        if v_value.error_code is not null then
            node_execution_id := v_row.execution_id;
            error_code := v_value.error_code;
            error_message := v_value.error_message;
            return next;
        end if;
    end loop;
end
$$;

-- Whether some variable that a node declares has an initialiser that is more than one literal.
create or replace function wf.wf_has_computed_variable(p_version_id bigint, p_owner_key text)
returns boolean
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    return exists (
        select 1
          from wf.node_scope_default d
         where d.workflow_version_id = p_version_id and d.owner_key = p_owner_key
           and d.variable_kind = 'var' and d.program_json is not null
           and (jsonb_array_length(d.program_json) <> 1 or d.program_json -> 0 ->> 0 <> 'lit'));
end
$$;

-- Writes variable p_name of the nearest scope, from p_scope_id outwards, that node p_owner_key
-- opened. Answers whether there is such a scope. The caller holds the instance's gate; parallel
-- branches never write one variable (S2.5).
create or replace function wf.wf_set_scope_variable(
    p_scope_id bigint, p_owner_key text, p_name text, p_value jsonb
) returns boolean
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_scope_id bigint := p_scope_id;
    v_owner    text;
    v_parent   bigint;
begin
    loop
        select s.owner_key, s.parent_scope_id into v_owner, v_parent
          from wf.scope s
         where s.scope_id = v_scope_id;
        if not found then
            return false;
        end if;
        exit when v_owner = p_owner_key;
        v_scope_id := v_parent;
    end loop;
    insert into wf.scope_variable (scope_id, name, value_json)
    values (v_scope_id, p_name, p_value)
    on conflict on constraint pk_scope_variable do update set value_json = excluded.value_json;
    return true;
end
$$;

-- Paths, the trace document (semantics §11), the views that people read. Twin: mssql/07_trace.sql
--
-- Everything here reads; nothing locks. Paths are worked out, never stored (R9): an execution's
-- path is its parent's and its node's key, a loop body's is its loop's with the iteration, another
-- generated node's is its parent's.

-- The path of an execution.
create or replace function wf.wf_execution_path(p_execution_id bigint) returns text
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_execution_id bigint := p_execution_id;
    v_row          record;
    v_path         text;
    v_iteration    text := '';
begin
    loop
        select e.parent_execution_id, e.iteration_no, n.node_key, n.is_generated, n.is_loop_body
          into v_row
          from wf.node_execution e
          join wf.workflow_node n on n.node_id = e.node_id
         where e.node_execution_id = v_execution_id;
        exit when not found;
        if v_row.is_loop_body then
            v_iteration := '[' || v_row.iteration_no::text || ']';
        elsif not v_row.is_generated then
            v_path := concat_ws('/', v_row.node_key || v_iteration, v_path);
            v_iteration := '';
        end if;
        v_execution_id := v_row.parent_execution_id;
    end loop;
    return v_path;
end
$$;

-- The instance's own id inside data as "$instance_id" (R27): a string that is the id and nothing
-- else. In the text of a jsonb value such a string is the digits between two quotes, of which the
-- first is not escaped; a key is followed by a colon and stays.
create or replace function wf.wf_mask_instance_id(p_value jsonb, p_instance_id bigint)
returns jsonb
language sql immutable set search_path = pg_catalog, pg_temp as $$
    select case when strpos(p_value::text, '"' || p_instance_id || '"') = 0 then p_value
                else regexp_replace(p_value::text, '(?<!\\)"' || p_instance_id || '"(?!:)',
                                    '"$instance_id"', 'g')::jsonb end
$$;

-- An error as the trace writes it; null when there is none. p_execution_id: where it arose. Engine
-- errors hold no data, so only the message of a `fail` or an action can be the instance's id.
create or replace function wf.wf_trace_error(
    p_instance_id bigint, p_code integer, p_engine_code integer, p_message text,
    p_execution_id bigint
) returns jsonb
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    return jsonb_build_object(
        'code', p_code,
        'engine_code', p_engine_code,
        'message', case when p_engine_code is null
                        then wf.wf_mask_instance_id(to_jsonb(coalesce(p_message, '')),
                                                    p_instance_id)
                        else to_jsonb(p_message) end,
        'node', (select n.node_key
                   from wf.node_execution e
                   join wf.workflow_node n on n.node_id = e.node_id
                  where e.node_execution_id = p_execution_id),
        'path', wf.wf_execution_path(p_execution_id));
end
$$;

-- The variables of a scope that have a value, as an object.
create or replace function wf.wf_scope_variables(p_scope_id bigint) returns jsonb
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    return coalesce((select jsonb_object_agg(v.name, v.value_json)
                       from wf.scope_variable v
                      where v.scope_id = p_scope_id), '{}');
end
$$;

-- The rows of a trace: every execution but generated ones that are no loop body, in pre-order by
-- child order, then iteration.
create or replace function wf.wf_trace_nodes(p_workflow_instance_id bigint) returns jsonb
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    return coalesce((
        with recursive tree as (
            select e.node_execution_id, e.node_id, n.node_key as path, n.node_type,
                   n.is_generated and not n.is_loop_body as is_hidden,
                   array[]::integer[] as place
              from wf.node_execution e
              join wf.workflow_node n on n.node_id = e.node_id
             where e.workflow_instance_id = p_workflow_instance_id
               and e.parent_execution_id = 0
            union all
            select e.node_execution_id, e.node_id,
                   t.path || case when n.is_loop_body then '[' || e.iteration_no::text || ']'
                                  when n.is_generated then ''
                                  else '/' || n.node_key end,
                   n.node_type, n.is_generated and not n.is_loop_body,
                   t.place || n.child_order || e.iteration_no
              from tree t
              join wf.node_execution e
                on e.workflow_instance_id = p_workflow_instance_id
               and e.parent_execution_id = t.node_execution_id
              join wf.workflow_node n on n.node_id = e.node_id
        )
        select jsonb_agg(
                   jsonb_build_object(
                       'path', t.path,
                       'type', t.node_type,
                       'status', case when e.status in ('READY', 'RUNNING')
                                           and t.node_type = 'ACTION'
                                      then case when k.worker_id is null then 'READY'
                                                else 'RUNNING' end
                                      else e.status end,
                       'attempts', case when t.node_type = 'ACTION'
                                        then coalesce(k.attempt_no, e.attempt_no) else 1 end,
                       'result_code', e.result_code,
                       'input', case when t.node_type = 'ACTION' then wf.wf_mask_instance_id(
                           coalesce(k.input_json, e.input_json), p_workflow_instance_id) end,
                       'output', wf.wf_mask_instance_id(e.output_json, p_workflow_instance_id),
                       'error', case when e.status = 'FAILED' then wf.wf_trace_error(
                           p_workflow_instance_id, e.result_code, e.engine_error_code,
                           e.engine_error_message,
                           coalesce(e.error_execution_id, e.node_execution_id)) end)
                   || case when s.scope_id is null or t.place = '{}' then '{}'::jsonb
                           else jsonb_build_object('variables', wf.wf_mask_instance_id(
                               wf.wf_scope_variables(s.scope_id), p_workflow_instance_id)) end
                   order by t.place)
          from tree t
          join wf.node_execution e on e.node_execution_id = t.node_execution_id
          left join wf.task k on k.node_execution_id = t.node_execution_id
          left join wf.scope s on s.scope_id = t.node_execution_id
         where not t.is_hidden), '[]');
end
$$;

-- The trace document, which two engines agree on as JSON; null for an unknown instance.
create or replace function wf.wf_trace_instance(p_workflow_instance_id bigint) returns jsonb
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    return (
        select jsonb_build_object(
                   'trace_format', 1,
                   'workflow', d.name,
                   'status', i.status,
                   'error', case when i.status = 'FAILED' then wf.wf_trace_error(
                       i.workflow_instance_id, i.error_code, i.engine_error_code,
                       i.engine_error_message,
                       coalesce(i.error_execution_id, i.root_execution_id)) end,
                   'output', wf.wf_mask_instance_id(c.output_json, i.workflow_instance_id),
                   'variables', wf.wf_mask_instance_id(
                       wf.wf_scope_variables(i.root_execution_id), i.workflow_instance_id),
                   'nodes', wf.wf_trace_nodes(i.workflow_instance_id))
          from wf.workflow_instance i
          join wf.workflow_def d on d.workflow_def_id = i.workflow_def_id
          left join wf.execution_context c on c.workflow_instance_id = i.workflow_instance_id
         where i.workflow_instance_id = p_workflow_instance_id);
end
$$;

-- One row per instance.
create or replace view wf.v_instance as
select i.workflow_instance_id, d.name as workflow_name, w.version_no, i.status, i.business_key,
       i.created_at, i.started_at, i.ended_at, i.error_code, i.engine_error_code,
       i.engine_error_message, n.node_key as error_node_key,
       wf.wf_execution_path(i.error_execution_id) as error_path
  from wf.workflow_instance i
  join wf.workflow_def d on d.workflow_def_id = i.workflow_def_id
  join wf.workflow_version w on w.workflow_version_id = i.workflow_version_id
  left join wf.node_execution e on e.node_execution_id = i.error_execution_id
  left join wf.workflow_node n on n.node_id = e.node_id;

-- One row per execution, with its path. READY and RUNNING of an ACTION are read from its task.
create or replace view wf.v_node_execution as
select e.node_execution_id, e.workflow_instance_id,
       wf.wf_execution_path(e.node_execution_id) as path,
       n.node_key, n.node_type, e.iteration_no,
       case when t.node_execution_id is null then e.status
            when t.worker_id is null then 'READY'
            else 'RUNNING' end as status,
       coalesce(t.attempt_no, e.attempt_no) as attempt_no,
       e.result_code, e.engine_error_code, e.engine_error_message,
       coalesce(t.worker_id, e.worker_id) as worker_id,
       e.created_at, coalesce(e.started_at, t.claimed_at) as started_at, e.ended_at
  from wf.node_execution e
  join wf.workflow_node n on n.node_id = e.node_id
  left join wf.task t on t.node_execution_id = e.node_execution_id;

-- One instance with its output; no row for an unknown id.
create or replace function wf.wf_repo_get_workflow_instance(p_workflow_instance_id bigint)
returns table (
    workflow_instance_id bigint, workflow_name text, version_no integer, instance_status text,
    created_at timestamptz, started_at timestamptz, ended_at timestamptz, business_key text,
    output_json jsonb, error_code integer, engine_error_code integer, error_message text
)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
    return query
    select v.workflow_instance_id, v.workflow_name, v.version_no, v.status, v.created_at,
           v.started_at, v.ended_at, v.business_key, c.output_json, v.error_code,
           v.engine_error_code, v.engine_error_message
      from wf.v_instance v
      left join wf.execution_context c on c.workflow_instance_id = v.workflow_instance_id
     where v.workflow_instance_id = p_workflow_instance_id;
end
$$;

-- The instances that are RUNNING or PAUSED, oldest first.
create or replace function wf.wf_repo_get_running_instances()
returns table (
    workflow_instance_id bigint, workflow_name text, version_no integer, instance_status text,
    created_at timestamptz, started_at timestamptz, ended_at timestamptz, business_key text,
    output_json jsonb, error_code integer, engine_error_code integer, error_message text
)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
    return query
    select v.workflow_instance_id, v.workflow_name, v.version_no, v.status, v.created_at,
           v.started_at, v.ended_at, v.business_key, null::jsonb, v.error_code,
           v.engine_error_code, v.engine_error_message
      from wf.v_instance v
     where v.status in ('RUNNING', 'PAUSED')
     order by v.workflow_instance_id;
end
$$;

-- The handlers of the node types: what activating a node, or the success of a child, leads to.
-- Twin: mssql/wf_nodes.sql
--
-- A handler takes agenda entries and answers steps (03_engine_core.sql). FOREACH's stand in
-- 08_foreach_support.sql, WAIT_EVENT's in wf_event_plane.sql.

-- Activation: one handler per node type ---------------------------------------------------------

-- The priority of a task: its node's and its instance's, within the column's bounds.
create or replace function wf.wf_add_priorities(p_one integer, p_other integer) returns integer
language sql immutable set search_path = pg_catalog, pg_temp as $$
    select greatest(least(coalesce(p_one, 0)::bigint + coalesce(p_other, 0), 2147483647),
                    -2147483648)::integer
$$;

-- ACTION: builds the input and queues the task, with its dispatch columns (wf_dispatch.sql). A failure
-- to build fails the node (S4.1).
create or replace function wf.wf_action_activate(p_entries wf.agenda_entry[], p_now timestamptz)
returns setof wf.agenda_step
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    return query
    with built as materialized (
        select a.ordinal, a.node_execution_id, a.workflow_instance_id, e.node_id, n.action_id,
               wf.wf_add_priorities(n.priority, i.priority) as priority, coalesce(n.delay_ms, 0) as delay_ms,
               i.status = 'RUNNING' as is_running,
               n.attributes_json -> 'dispatch' as overrides_json,
               b.value_json, b.error_code, b.error_message
          from unnest(p_entries) a
          join wf.node_execution e on e.node_execution_id = a.node_execution_id
          join wf.workflow_node n on n.node_id = e.node_id
          join wf.workflow_instance i on i.workflow_instance_id = a.workflow_instance_id
         cross join lateral wf.wf_build_input_json_for_action(a.node_execution_id) b
    ), queued as (
        insert into wf.task (node_execution_id, workflow_instance_id, node_id, action_id, priority,
                             available_at, is_claimable, input_json, affinity_key, max_per_worker,
                             is_exclusive, prefers_previous, prefers_group, requires_previous,
                             pinned_worker_id)
        select b.node_execution_id, b.workflow_instance_id, b.node_id, b.action_id, b.priority,
               p_now + b.delay_ms * interval '1 millisecond', b.delay_ms = 0 and b.is_running,
               b.value_json, d.affinity_key, d.max_per_worker, d.is_exclusive, d.prefers_previous,
               d.prefers_group, d.requires_previous,
               wf.wf_pinned_worker(b.workflow_instance_id, b.action_id, d.affinity_key,
                                   d.requires_previous and not d.is_exclusive)
          from built b
         cross join lateral wf.wf_dispatch_of(b.action_id, b.overrides_json, b.value_json) d
         where b.error_code is null
         order by b.ordinal
    )
    select f.*
      from built b
     cross join lateral wf.wf_fail_step(b.ordinal, b.node_execution_id, b.workflow_instance_id,
                                        b.error_code, b.error_message) f
     where b.error_code is not null;
end
$$;

-- SEQUENCE: its first child; without children it ends at once, after the `set` or `fail` that it
-- carries, or when its `sleep` is over (wf_timers.sql).
create or replace function wf.wf_sequence_activate(
    p_entries wf.agenda_entry[], p_now timestamptz
) returns setof wf.agenda_step
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_row   record;
    v_error record;
begin
    for v_row in
        select a.*, n.node_id, n.first_child_id, n.has_output_bindings, n.delay_ms,
               n.attributes_json -> 'fail' as fail_json
          from unnest(p_entries) a
          join wf.node_execution e on e.node_execution_id = a.node_execution_id
          join wf.workflow_node n on n.node_id = e.node_id
         order by a.ordinal
    loop
        if v_row.first_child_id is not null then
            return next wf.wf_start_step(v_row.ordinal, v_row.node_execution_id,
                                         v_row.workflow_instance_id, v_row.first_child_id);
            continue;
        end if;
        if v_row.fail_json is not null then
            return next wf.wf_fail_statement(v_row.ordinal, v_row.node_execution_id,
                                             v_row.workflow_instance_id, v_row.fail_json);
            continue;
        end if;
        if v_row.delay_ms > 0 then
            insert into wf.timer (node_execution_id, workflow_instance_id, due_at)
            values (v_row.node_execution_id, v_row.workflow_instance_id,
                    p_now + v_row.delay_ms * interval '1 millisecond');
            continue;
        end if;
        if v_row.has_output_bindings then
            select * into v_error
              from wf.wf_apply_output_bindings(v_row.node_execution_id, null, null, null);
            if v_error.error_code is not null then
                return next wf.wf_fail_step(v_row.ordinal, v_row.node_execution_id,
                    v_row.workflow_instance_id, v_error.error_code, v_error.error_message);
                continue;
            end if;
        end if;
        return next wf.wf_succeed_step(v_row.ordinal, v_row.node_execution_id,
                                           v_row.workflow_instance_id);
    end loop;
end
$$;

-- `fail CODE "message"`: builds the message, then fails with the code and no engine code (R32).
create or replace function wf.wf_fail_statement(
    p_ordinal integer, p_node_execution_id bigint, p_workflow_instance_id bigint, p_fail jsonb
) returns wf.agenda_step
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_message record;
begin
    select * into v_message
      from wf.wf_eval_expression(p_fail -> 'message', p_node_execution_id);
    if v_message.error_code is null and jsonb_typeof(v_message.value_json) <> 'string' then
        v_message.error_code := 10017;
        v_message.error_message :=
            wf.wf_type_word(v_message.value_json) || ' cannot stand inside a string';
    end if;
    if v_message.error_code is not null then
        return wf.wf_fail_step(p_ordinal, p_node_execution_id, p_workflow_instance_id,
                               v_message.error_code, v_message.error_message);
    end if;
    return row(p_ordinal, 0, 'FAIL', p_node_execution_id, p_workflow_instance_id, null, null, null,
               (p_fail ->> 'code')::integer, null, v_message.value_json #>> '{}',
               p_node_execution_id)::wf.agenda_step;
end
$$;

-- PARALLEL: all children, or the first `limit`; the counter knows how many are open.
create or replace function wf.wf_parallel_activate(p_entries wf.agenda_entry[])
returns setof wf.agenda_step
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    insert into wf.join_counter (node_execution_id, workflow_instance_id, join_parent_id,
                                 total_count, next_index, open_count, needed_count,
                                 allowed_failures, keeps_going)
    select a.node_execution_id, a.workflow_instance_id, e.join_parent_id, n.child_count,
           least(n.child_count, coalesce(n.branch_limit, n.child_count)),
           least(n.child_count, coalesce(n.branch_limit, n.child_count)),
           n.needed_count, n.child_count - least(n.child_count, coalesce(n.needed_count, n.child_count)),
           n.attributes_json ? 'keep_going'
      from unnest(p_entries) a
      join wf.node_execution e on e.node_execution_id = a.node_execution_id
      join wf.workflow_node n on n.node_id = e.node_id
     where n.child_count > 0;

    return query
    select a.ordinal, c.child_order, 'START', a.node_execution_id, a.workflow_instance_id,
           c.node_id, 0, null::jsonb, null::integer, null::integer, null::text, null::bigint
      from unnest(p_entries) a
      join wf.node_execution e on e.node_execution_id = a.node_execution_id
      join wf.workflow_node n on n.node_id = e.node_id
      join wf.workflow_node c on c.parent_node_id = n.node_id
     where c.child_order < coalesce(n.branch_limit, n.child_count)
    union all
    select a.ordinal, 0, 'SUCCEED', a.node_execution_id, a.workflow_instance_id,
           null, null, null, 0, null, null, null
      from unnest(p_entries) a
      join wf.node_execution e on e.node_execution_id = a.node_execution_id
      join wf.workflow_node n on n.node_id = e.node_id
     where n.child_count = 0;
end
$$;

-- IF: the branch that the condition chooses; false without an else succeeds (S6.4).
create or replace function wf.wf_if_activate(p_entries wf.agenda_entry[])
returns setof wf.agenda_step
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_row record;
begin
    for v_row in
        select a.*, c.is_true, c.error_code, c.error_message, b.node_id as branch_node_id
          from unnest(p_entries) a
          join wf.node_execution e on e.node_execution_id = a.node_execution_id
          join wf.workflow_node n on n.node_id = e.node_id
         cross join lateral wf.wf_eval_condition(n.attributes_json -> 'condition',
                                                 a.node_execution_id) c
          left join wf.workflow_node b
            on b.parent_node_id = n.node_id
           and b.edge_kind = case when c.is_true then 'THEN' else 'ELSE' end
         order by a.ordinal
    loop
        if v_row.error_code is not null then
            return next wf.wf_fail_step(v_row.ordinal, v_row.node_execution_id,
                v_row.workflow_instance_id, v_row.error_code, v_row.error_message);
        elsif v_row.branch_node_id is not null then
            return next wf.wf_start_step(v_row.ordinal, v_row.node_execution_id,
                                         v_row.workflow_instance_id, v_row.branch_node_id);
        elsif v_row.is_true then
            return next wf.wf_fail_step(v_row.ordinal, v_row.node_execution_id,
                v_row.workflow_instance_id, 10003, 'the if has no branch to take');
        else
            return next wf.wf_succeed_step(v_row.ordinal, v_row.node_execution_id,
                                           v_row.workflow_instance_id);
        end if;
    end loop;
end
$$;

-- SWITCH: the first case that holds an equal value (S3.1), else default, else 10004.
create or replace function wf.wf_switch_activate(p_entries wf.agenda_entry[])
returns setof wf.agenda_step
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_row    record;
    v_branch bigint;
begin
    for v_row in
        select a.*, n.node_id, n.workflow_version_id, n.node_key,
               s.value_json, s.error_code, s.error_message
          from unnest(p_entries) a
          join wf.node_execution e on e.node_execution_id = a.node_execution_id
          join wf.workflow_node n on n.node_id = e.node_id
         cross join lateral wf.wf_eval_expression(n.attributes_json -> 'subject',
                                                  a.node_execution_id) s
         order by a.ordinal
    loop
        if v_row.error_code is null and jsonb_typeof(v_row.value_json) in ('object', 'array') then
            -- Only null may be compared with an object or an array (S3.1).
            select 10010, 'cannot compare ' || jsonb_typeof(v_row.value_json) || ' with '
                          || wf.wf_type_word(v.value)
              into v_row.error_code, v_row.error_message
              from wf.workflow_edge d
             cross join lateral jsonb_array_elements(d.case_value) with ordinality v(value, position)
             where d.workflow_version_id = v_row.workflow_version_id
               and d.parent_key = v_row.node_key and v.value <> 'null'
             order by d.child_order, v.position
             limit 1;
        end if;
        if v_row.error_code is not null then
            return next wf.wf_fail_step(v_row.ordinal, v_row.node_execution_id,
                v_row.workflow_instance_id, v_row.error_code, v_row.error_message);
            continue;
        end if;
        -- jsonb equality is S3.1's for scalars: numbers by value, strings exactly.
        select b.node_id into v_branch
          from wf.workflow_edge d
          join wf.workflow_node b
            on b.workflow_version_id = d.workflow_version_id and b.node_key = d.child_key
         where d.workflow_version_id = v_row.workflow_version_id
           and d.parent_key = v_row.node_key
           and (d.branch_kind = 'DEFAULT'
                or exists (select 1 from jsonb_array_elements(d.case_value) v
                            where v.value = v_row.value_json))
         order by d.branch_kind = 'DEFAULT', d.child_order
         limit 1;
        if v_branch is null then
            return next wf.wf_fail_step(v_row.ordinal, v_row.node_execution_id,
                v_row.workflow_instance_id, 10004, 'no case fits and there is no default');
        else
            return next wf.wf_start_step(v_row.ordinal, v_row.node_execution_id,
                                         v_row.workflow_instance_id, v_branch);
        end if;
    end loop;
end
$$;

-- REPEAT: evaluates the count once and starts iteration 0; n <= 0 succeeds at once (S6.6).
create or replace function wf.wf_repeat_activate(p_entries wf.agenda_entry[])
returns setof wf.agenda_step
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_row   record;
    v_count numeric;
begin
    for v_row in
        select a.*, n.first_child_id, c.value_json, c.error_code, c.error_message
          from unnest(p_entries) a
          join wf.node_execution e on e.node_execution_id = a.node_execution_id
          join wf.workflow_node n on n.node_id = e.node_id
         cross join lateral wf.wf_eval_expression(n.attributes_json -> 'count',
                                                  a.node_execution_id) c
         order by a.ordinal
    loop
        if v_row.error_code is null and wf.wf_type_word(v_row.value_json) <> 'integer' then
            v_row.error_code := 10010;
            v_row.error_message := 'repeat takes an integer, not '
                || wf.wf_type_word(v_row.value_json);
        end if;
        if v_row.error_code is null and v_row.first_child_id is null then
            v_row.error_code := 10005;
            v_row.error_message := 'the repeat has no body';
        end if;
        if v_row.error_code is not null then
            return next wf.wf_fail_step(v_row.ordinal, v_row.node_execution_id,
                v_row.workflow_instance_id, v_row.error_code, v_row.error_message);
            continue;
        end if;
        v_count := (v_row.value_json #>> '{}')::numeric;
        if v_count <= 0 then
            return next wf.wf_succeed_step(v_row.ordinal, v_row.node_execution_id,
                                           v_row.workflow_instance_id);
            continue;
        end if;
        insert into wf.loop_state (node_execution_id, workflow_instance_id, total_count)
        values (v_row.node_execution_id, v_row.workflow_instance_id,
                least(v_count, 9223372036854775807)::bigint);
        return next wf.wf_start_step(v_row.ordinal, v_row.node_execution_id,
                                         v_row.workflow_instance_id, v_row.first_child_id);
    end loop;
end
$$;

-- WHILE: the test before iteration p_iteration_no of each entry's loop; shared by activation and
-- continuation. Passing `max` with the condition still true is 10012.
create or replace function wf.wf_while_test(
    p_ordinal integer, p_node_execution_id bigint, p_workflow_instance_id bigint,
    p_iteration_no integer
) returns wf.agenda_step
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_node  record;
    v_test  record;
    v_max   bigint;
begin
    select n.first_child_id, n.attributes_json into v_node
      from wf.node_execution e
      join wf.workflow_node n on n.node_id = e.node_id
     where e.node_execution_id = p_node_execution_id;
    if v_node.first_child_id is null then
        return wf.wf_fail_step(p_ordinal, p_node_execution_id, p_workflow_instance_id,
                               10006, 'the while has no body');
    end if;
    select * into v_test
      from wf.wf_eval_condition(v_node.attributes_json -> 'condition', p_node_execution_id);
    if v_test.error_code is not null then
        return wf.wf_fail_step(p_ordinal, p_node_execution_id, p_workflow_instance_id,
                               v_test.error_code, v_test.error_message);
    end if;
    if not v_test.is_true then
        return wf.wf_succeed_step(p_ordinal, p_node_execution_id, p_workflow_instance_id);
    end if;
    v_max := coalesce((v_node.attributes_json ->> 'max')::bigint, 10000);
    if p_iteration_no >= v_max then
        return wf.wf_fail_step(p_ordinal, p_node_execution_id, p_workflow_instance_id,
                               10012, 'while passed its max of ' || v_max);
    end if;
    return row(p_ordinal, 0, 'START', p_node_execution_id, p_workflow_instance_id,
               v_node.first_child_id, p_iteration_no, null, null, null, null, null
              )::wf.agenda_step;
end
$$;

-- Continuation: what follows when a child has succeeded -------------------------------------------

-- The next child of the SEQUENCE, or its end; by way of its finally, if it has one.
create or replace function wf.wf_sequence_continue(
    p_entries wf.agenda_entry[], p_now timestamptz
) returns wf.agenda_step[]
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_steps wf.agenda_step[];
    v_done  wf.agenda_entry[];
begin
    select array_agg(row(s.ordinal, 0, case when n.next_node_id is null then 'SUCCEED' else 'START' end,
                         e.parent_execution_id, s.workflow_instance_id, n.next_node_id, 0, null,
                         case when n.next_node_id is null then 0 end, null, null, null
                        )::wf.agenda_step) filter (where c.is_plain),
           array_agg(s::wf.agenda_entry order by s.ordinal) filter (where not c.is_plain)
      into v_steps, v_done
      from unnest(p_entries) s
      join wf.node_execution e on e.node_execution_id = s.node_execution_id
      join wf.workflow_node n on n.node_id = e.node_id
      join wf.workflow_node p on p.node_id = n.parent_node_id
     cross join lateral (select n.edge_kind = 'SEQUENCE'
        and (n.next_node_id is not null or p.finally_node_id is null) as is_plain) c;
    if v_done is not null then
        v_steps := v_steps || array(
            select d
              from unnest(v_done) s
              join wf.node_execution e on e.node_execution_id = s.node_execution_id
              join wf.workflow_node n on n.node_id = e.node_id
             cross join lateral wf.wf_sequence_done(s.ordinal, s.node_execution_id,
                                                    n.edge_kind, p_now) d
             order by s.ordinal);
    end if;
    return v_steps;
end
$$;

-- An IF or a SWITCH ends with its branch.
create or replace function wf.wf_branch_continue(p_entries wf.agenda_entry[])
returns wf.agenda_step[]
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    return array(
        select wf.wf_succeed_step(s.ordinal, e.parent_execution_id, s.workflow_instance_id)
          from unnest(p_entries) s
          join wf.node_execution e on e.node_execution_id = s.node_execution_id);
end
$$;

-- The next iteration of a REPEAT, or its end.
create or replace function wf.wf_repeat_continue(p_entries wf.agenda_entry[])
returns wf.agenda_step[]
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    return array(
        select row(s.ordinal, 0, case when e.iteration_no + 1 < l.total_count then 'START' else 'SUCCEED' end,
                   e.parent_execution_id, s.workflow_instance_id,
                   e.node_id, e.iteration_no + 1, null,
                   case when e.iteration_no + 1 < l.total_count then null else 0 end,
                   null, null, null)::wf.agenda_step
          from unnest(p_entries) s
          join wf.node_execution e on e.node_execution_id = s.node_execution_id
          join wf.loop_state l on l.node_execution_id = e.parent_execution_id);
end
$$;

-- The next test of a WHILE.
create or replace function wf.wf_while_continue(p_entries wf.agenda_entry[])
returns wf.agenda_step[]
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    return array(
        select wf.wf_while_test(s.ordinal, e.parent_execution_id, s.workflow_instance_id,
                                e.iteration_no + 1)
          from unnest(p_entries) s
          join wf.node_execution e on e.node_execution_id = s.node_execution_id);
end
$$;

-- A WAIT_EVENT ends with its timeout body, with result code 1 (S8.5).
create or replace function wf.wf_wait_continue(p_entries wf.agenda_entry[])
returns wf.agenda_step[]
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    return array(
        select wf.wf_succeed_step(s.ordinal, e.parent_execution_id, s.workflow_instance_id, 1)
          from unnest(p_entries) s
          join wf.node_execution e on e.node_execution_id = s.node_execution_id);
end
$$;

-- PARALLEL and FOREACH: takes the ended children off their counters, one after the other in the order
-- of p_entries; wf.wf_engine_run hands counters of instances held shared in descending order (R1).
create or replace function wf.wf_join_continue(p_entries wf.agenda_entry[], p_now timestamptz)
returns wf.agenda_step[]
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_entry wf.agenda_entry;
    v_steps wf.agenda_step[] := '{}';
begin
    foreach v_entry in array p_entries loop
        v_steps := v_steps || array(
            select s from wf.wf_join_ended(v_entry.ordinal, v_entry.node_execution_id, true, p_now) s);
    end loop;
    return v_steps;
end
$$;

-- Completion --------------------------------------------------------------------------------------

-- Runs the `set`s of a node that has succeeded, in order, each seeing those before it (S2.4). The
-- first error ends it and is answered.
create or replace function wf.wf_apply_output_bindings(
    p_node_execution_id bigint, p_output_json jsonb, p_result_code integer, p_event_json jsonb,
    out error_code integer, out error_message text
)
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_binding record;
    v_value   record;
begin
    for v_binding in
        select b.name, b.owner_key, b.program_json, e.scope_id
          from wf.node_execution e
          join wf.variable_output_binding b on b.node_id = e.node_id
         where e.node_execution_id = p_node_execution_id and b.binding_kind = 'var'
         order by b.binding_order
    loop
        select * into v_value
          from wf.wf_eval_expression(v_binding.program_json, p_node_execution_id, p_output_json,
                                     p_result_code, p_event_json);
        if v_value.error_code is not null then
            error_code := v_value.error_code;
            error_message := v_value.error_message;
            return;
        end if;
        perform wf.wf_set_scope_variable(v_binding.scope_id, v_binding.owner_key, v_binding.name,
                                         v_value.value_json);
    end loop;
end
$$;


-- FOREACH: its collection, its iterations, what they export. Twin: mssql/08_foreach_support.sql

-- Reads the collection once (S6.8) and starts the first iterations. The counter counts iterations;
-- items of those that start later are kept in wf.foreach_item, so that the array is never indexed
-- again. An empty array succeeds at once.
create or replace function wf.wf_foreach_activate(p_entries wf.agenda_entry[])
returns setof wf.agenda_step
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_row   record;
    v_total integer;
    v_width integer;
begin
    for v_row in
        select a.*, e.join_parent_id, n.first_child_id, n.branch_limit, n.attributes_json,
               c.value_json, c.error_code, c.error_message
          from unnest(p_entries) a
          join wf.node_execution e on e.node_execution_id = a.node_execution_id
          join wf.workflow_node n on n.node_id = e.node_id
          left join wf.collection_binding b on b.node_id = n.node_id
         cross join lateral wf.wf_eval_expression(coalesce(b.program_json, '[["lit",null]]'),
                                                  a.node_execution_id) c
         order by a.ordinal
    loop
        if v_row.error_code is null and jsonb_typeof(v_row.value_json) = 'null' then
            v_row.error_code := 10001;
            v_row.error_message := 'the collection is null';
        elsif v_row.error_code is null and jsonb_typeof(v_row.value_json) <> 'array' then
            v_row.error_code := 10009;
            v_row.error_message := 'the collection is an array or nothing else, not '
                || wf.wf_type_word(v_row.value_json);
        end if;
        if v_row.error_code is not null then
            return next wf.wf_fail_step(v_row.ordinal, v_row.node_execution_id,
                v_row.workflow_instance_id, v_row.error_code, v_row.error_message);
            continue;
        end if;
        if v_row.attributes_json ? 'batch' then
            v_row.value_json := wf.wf_batches(v_row.value_json,
                                              (v_row.attributes_json ->> 'batch')::integer);
        end if;
        v_total := jsonb_array_length(v_row.value_json);
        if v_total = 0 then
            return next wf.wf_succeed_step(v_row.ordinal, v_row.node_execution_id,
                                           v_row.workflow_instance_id);
            continue;
        end if;
        v_width := least(v_total, coalesce(nullif(v_row.branch_limit, 0), v_total));
        insert into wf.join_counter (node_execution_id, workflow_instance_id, join_parent_id,
                                     total_count, next_index, open_count, allowed_failures,
                                     keeps_going)
        values (v_row.node_execution_id, v_row.workflow_instance_id, v_row.join_parent_id,
                v_total, v_width, v_width,
                wf.wf_tolerated(v_row.attributes_json -> 'tolerate', v_total),
                v_row.attributes_json ? 'keep_going');
        insert into wf.foreach_item (node_execution_id, iteration_no, item_json)
        select v_row.node_execution_id, i.position - 1, i.value
          from jsonb_array_elements(v_row.value_json) with ordinality i(value, position)
         where i.position > v_width;
        return query
        select v_row.ordinal, (i.position - 1)::integer, 'START', v_row.node_execution_id,
               v_row.workflow_instance_id, v_row.first_child_id, (i.position - 1)::integer, i.value,
               null::integer, null::integer, null::text, null::bigint
          from jsonb_array_elements(v_row.value_json) with ordinality i(value, position)
         where i.position <= v_width;
    end loop;
end
$$;

-- An array cut into lists of p_size items, the last one perhaps shorter (R31).
create or replace function wf.wf_batches(p_items jsonb, p_size integer) returns jsonb
language sql immutable set search_path = pg_catalog, pg_temp as $$
    select coalesce(jsonb_agg(b.items order by b.batch_no), '[]')
      from (select (i.position - 1) / p_size as batch_no,
                   jsonb_agg(i.value order by i.position) as items
              from jsonb_array_elements(p_items) with ordinality i(value, position)
             group by 1) b
$$;

-- How many iterations may fail: `tolerate N`, or the largest number that is at most P % (R31).
create or replace function wf.wf_tolerated(p_tolerate jsonb, p_total integer) returns integer
language sql immutable set search_path = pg_catalog, pg_temp as $$
    select coalesce((p_tolerate ->> 'count')::integer,
                    floor((p_tolerate ->> 'percent')::numeric * p_total / 100)::integer, 0)
$$;

-- Looks at the SUCCEED steps of a level. An iteration of a FOREACH that collects gets what it
-- exports as its output, or fails if that cannot be evaluated; a FOREACH that succeeds writes the
-- arrays of its iterations' exports, in iteration order, null where there is none (S2.5, R31).
create or replace function wf.wf_foreach_collect(p_steps wf.agenda_step[])
returns wf.agenda_step[]
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_steps   wf.agenda_step[] := p_steps;
    v_row     record;
    v_export  record;
    v_problem text;
begin
    for v_row in
        select s.position, s.node_execution_id, s.workflow_instance_id, s.ordinal,
               n.collect_node_id, n.collect_node_id = n.node_id as is_foreach
          from unnest(p_steps) with ordinality
               s(ordinal, seq, step, node_execution_id, workflow_instance_id, child_id, iteration_no,
                 item_json, result_code, engine_error_code, message, error_execution_id, position)
          join wf.node_execution e on e.node_execution_id = s.node_execution_id
          join wf.workflow_node n on n.node_id = e.node_id
         where s.step = 'SUCCEED' and n.collect_node_id is not null
    loop
        if v_row.is_foreach then
            v_problem := wf.wf_foreach_write_collected(v_row.node_execution_id);
            if v_problem is not null then
                v_steps[v_row.position] := wf.wf_fail_step(v_row.ordinal, v_row.node_execution_id,
                    v_row.workflow_instance_id, 10018, v_problem);
            end if;
            continue;
        end if;
        select * into v_export
          from wf.wf_foreach_export(v_row.node_execution_id, v_row.collect_node_id);
        if v_export.error_code is null then
            v_steps[v_row.position].item_json := v_export.value_json;
        else
            v_steps[v_row.position] := wf.wf_fail_step(v_row.ordinal, v_row.node_execution_id,
                v_row.workflow_instance_id, v_export.error_code, v_export.error_message);
        end if;
    end loop;
    return v_steps;
end
$$;

-- What one iteration exports: the object {collect name: value}, evaluated in its own scope.
create or replace function wf.wf_foreach_export(
    p_node_execution_id bigint, p_foreach_node_id bigint,
    out value_json jsonb, out error_code integer, out error_message text
)
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_binding record;
    v_value   record;
begin
    value_json := '{}';
    for v_binding in
        select b.name, b.program_json
          from wf.variable_output_binding b
         where b.node_id = p_foreach_node_id and b.binding_kind = 'collect'
         order by b.binding_order
    loop
        select * into v_value from wf.wf_eval_expression(v_binding.program_json, p_node_execution_id);
        if v_value.error_code is not null then
            value_json := null;
            error_code := v_value.error_code;
            error_message := v_value.error_message;
            return;
        end if;
        value_json := value_json || jsonb_build_object(v_binding.name, v_value.value_json);
    end loop;
end
$$;

-- Writes the variables of a FOREACH's collects. Iterations that were never started contribute
-- null, as do those that exported nothing. Answers why an array cannot be stored, or null.
create or replace function wf.wf_foreach_write_collected(p_node_execution_id bigint) returns text
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_binding record;
    v_values  jsonb;
    v_problem text;
begin
    for v_binding in
        select b.name, b.owner_key, e.workflow_instance_id, e.scope_id, n.first_child_id,
               coalesce(c.total_count, 0) as total_count
          from wf.node_execution e
          join wf.workflow_node n on n.node_id = e.node_id
          join wf.variable_output_binding b on b.node_id = e.node_id
          left join wf.join_counter c on c.node_execution_id = e.node_execution_id
         where e.node_execution_id = p_node_execution_id and b.binding_kind = 'collect'
         order by b.binding_order
    loop
        select coalesce(jsonb_agg(coalesce(x.output_json -> v_binding.name, 'null')
                                  order by g.iteration_no), '[]')
          into v_values
          from generate_series(0, v_binding.total_count - 1) g(iteration_no)
          left join wf.node_execution x
            on x.workflow_instance_id = v_binding.workflow_instance_id
           and x.parent_execution_id = p_node_execution_id
           and x.node_id = v_binding.first_child_id
           and x.iteration_no = g.iteration_no;
        v_problem := wf.wf_storable_problem(v_values);
        exit when v_problem is not null;
        perform wf.wf_set_scope_variable(v_binding.scope_id, v_binding.owner_key, v_binding.name,
                                         v_values);
    end loop;
    return v_problem;
end
$$;

-- Ends: joins, failures, on_error, finally, cancellation, the end of an instance.
-- Twin: mssql/wf_closing.sql
--
-- Everything here that closes other work needs the instance's gate exclusive. The engine's loop
-- takes such entries alone (kinds F, J and T of 03_engine_core.sql) and has checked the gate.
--
-- What a closing composite waits for (R13): a SEQUENCE with a finally that is cancelled stays
-- RUNNING, runs it, and is CANCELLED then. Rows of wf.pending_end make a tree of those that wait:
-- cancel_parent_id names who is told when a cancelled SEQUENCE is done.

-- Steps ---------------------------------------------------------------------------------------------

-- Lets an execution fail with the error of another, which it copies (R13).
create or replace function wf.wf_fail_by_step(
    p_ordinal integer, p_node_execution_id bigint, p_workflow_instance_id bigint,
    p_failed_execution_id bigint
) returns wf.agenda_step
language sql stable set search_path = pg_catalog, pg_temp as $$
    select row(p_ordinal, 0, 'FAIL', p_node_execution_id, p_workflow_instance_id, null, null, null,
               e.result_code, e.engine_error_code, e.engine_error_message, e.error_execution_id
              )::wf.agenda_step
      from wf.node_execution e
     where e.node_execution_id = p_failed_execution_id
$$;

-- Lets an execution take the verdict that stands on its row of wf.pending_end, which goes.
create or replace function wf.wf_take_verdict(
    p_ordinal integer, p_node_execution_id bigint
) returns setof wf.agenda_step
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_end wf.pending_end;
begin
    update wf.pending_end p set verdict = 'FAIL', phase = 'ON_ERROR'
     where p.node_execution_id = p_node_execution_id and p.verdict = 'HANDLER_FAILED';
    if found then
        return query select * from wf.wf_sequence_finally(p_ordinal, p_node_execution_id);
        return;
    end if;
    delete from wf.pending_end p where p.node_execution_id = p_node_execution_id
    returning p.* into v_end;
    if v_end.verdict = 'BODY_FAILED' then
        return query select * from wf.wf_sequence_body_failed(p_ordinal, v_end);
    elsif v_end.verdict = 'SUCCEED' then
        return next wf.wf_succeed_step(p_ordinal, p_node_execution_id, v_end.workflow_instance_id);
    else
        return next row(p_ordinal, 0, 'FAIL', p_node_execution_id, v_end.workflow_instance_id, null,
                        null, null, v_end.result_code, v_end.engine_error_code,
                        v_end.engine_error_message, v_end.error_execution_id)::wf.agenda_step;
    end if;
end
$$;

-- Joins ---------------------------------------------------------------------------------------------

-- One child of a PARALLEL or FOREACH has ended. Closes the join when it is decided (N successes, or
-- one failure too many), unless it keeps going; else starts the next child while there is one, and
-- decides when none is open (S6.3, S6.8, R31, R32).
-- Locks: the counter's row.
create or replace function wf.wf_join_ended(
    p_ordinal integer, p_child_execution_id bigint, p_has_succeeded boolean, p_now timestamptz
) returns setof wf.agenda_step
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_child   record;
    v_counter wf.join_counter;
begin
    select e.workflow_instance_id, e.parent_execution_id, n.parent_node_id, n.parent_type
      into v_child
      from wf.node_execution e
      join wf.workflow_node n on n.node_id = e.node_id
     where e.node_execution_id = p_child_execution_id;
    update wf.join_counter c
       set open_count = c.open_count - case when c.next_index < c.total_count then 0 else 1 end,
           last_started = case when c.next_index < c.total_count then c.next_index end,
           next_index = least(c.next_index + 1, c.total_count),
           succeeded_count = c.succeeded_count + p_has_succeeded::integer,
           failed_count = c.failed_count + (not p_has_succeeded)::integer,
           first_failed_id = case when p_has_succeeded then c.first_failed_id
                                  else coalesce(c.first_failed_id, p_child_execution_id) end
     where c.node_execution_id = v_child.parent_execution_id
    returning c.* into v_counter;
    if not found then
        return;
    end if;
    if not v_counter.keeps_going and v_counter.failed_count > v_counter.allowed_failures then
        return query select * from wf.wf_close(p_ordinal, v_child.workflow_instance_id,
            v_child.parent_execution_id, 'FAIL', v_counter.first_failed_id, p_now);
    elsif not v_counter.keeps_going and v_counter.succeeded_count = v_counter.needed_count
          and v_counter.needed_count < v_counter.total_count then
        return query select * from wf.wf_close(p_ordinal, v_child.workflow_instance_id,
            v_child.parent_execution_id, 'SUCCEED', null, p_now);
    elsif v_counter.last_started is not null then
        return query select * from wf.wf_join_start_next(
            p_ordinal, v_child.parent_execution_id, v_child.workflow_instance_id,
            v_child.parent_node_id, v_child.parent_type, v_counter.last_started);
    elsif v_counter.open_count > 0 then
        return;
    elsif v_counter.failed_count <= v_counter.allowed_failures then
        return next wf.wf_succeed_step(p_ordinal, v_child.parent_execution_id,
                                       v_child.workflow_instance_id);
    else
        return next wf.wf_fail_by_step(p_ordinal, v_child.parent_execution_id,
                                       v_child.workflow_instance_id, v_counter.first_failed_id);
    end if;
end
$$;

-- The child or iteration number p_index of a PARALLEL or FOREACH, as a START step.
create or replace function wf.wf_join_start_next(
    p_ordinal integer, p_parent_execution_id bigint, p_workflow_instance_id bigint,
    p_parent_node_id bigint, p_parent_type text, p_index integer
) returns setof wf.agenda_step
language sql stable set search_path = pg_catalog, pg_temp as $$
    select row(p_ordinal, 0, 'START', p_parent_execution_id, p_workflow_instance_id, c.node_id,
               case when p_parent_type = 'FOREACH' then p_index else 0 end, f.item_json,
               null, null, null, null)::wf.agenda_step
      from wf.workflow_node c
      left join wf.foreach_item f
        on f.node_execution_id = p_parent_execution_id and f.iteration_no = p_index
     where c.parent_node_id = p_parent_node_id
       and c.child_order = case when p_parent_type = 'FOREACH' then 0 else p_index end
$$;

-- Cancelling ----------------------------------------------------------------------------------------

-- Closes what is open below a composite and gives it its verdict: at once when nothing is left open,
-- else when the finallys of the SEQUENCEs it cancelled are done.
-- p_failed_execution_id: whose error a FAIL copies.
create or replace function wf.wf_close(
    p_ordinal integer, p_workflow_instance_id bigint, p_node_execution_id bigint, p_verdict text,
    p_failed_execution_id bigint, p_now timestamptz
) returns setof wf.agenda_step
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    insert into wf.pending_end (node_execution_id, workflow_instance_id, phase, verdict,
        result_code, engine_error_code, engine_error_message, error_execution_id)
    select p_node_execution_id, p_workflow_instance_id, 'WAITING', p_verdict, e.result_code,
           e.engine_error_code, e.engine_error_message, e.error_execution_id
      from (select 1) one
      left join wf.node_execution e on e.node_execution_id = p_failed_execution_id;
    return query
    select * from wf.wf_close_below(p_ordinal, p_workflow_instance_id, p_node_execution_id, p_now);
end
$$;

-- The second half of wf_close, for a composite that has its row in wf.pending_end.
create or replace function wf.wf_close_below(
    p_ordinal integer, p_workflow_instance_id bigint, p_node_execution_id bigint, p_now timestamptz
) returns setof wf.agenda_step
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    return query select * from wf.wf_cancel_below(p_ordinal, p_workflow_instance_id,
                                                  p_node_execution_id, false, p_now);
    delete from wf.timer t where t.node_execution_id = p_node_execution_id;
    if not exists (select 1 from wf.pending_end p where p.cancel_parent_id = p_node_execution_id) then
        return query select * from wf.wf_take_verdict(p_ordinal, p_node_execution_id);
    end if;
end
$$;

-- Cancels every open execution below one, level by level: READY and leased tasks go, waits, timers
-- and counters go, the rows become CANCELLED. SEQUENCEs with a finally are kept: they get a row in
-- wf.pending_end, and the finallys of those with nothing kept below them start (the steps answered,
-- in the order in which the SEQUENCEs were activated).
-- p_operator: an operator cancels; nothing is kept, and finallys that are running end too.
-- The caller holds the gate exclusive, so no other call completes them meanwhile; a claim that just
-- took such a task has its row deleted under it and hears CANCEL at the next heartbeat.
create or replace function wf.wf_cancel_below(
    p_ordinal integer, p_workflow_instance_id bigint, p_node_execution_id bigint,
    p_operator boolean, p_now timestamptz
) returns setof wf.agenda_step
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_row     record;
    v_ids     bigint[] := array[p_node_execution_id];
    v_tells   bigint[] := array[p_node_execution_id];
    v_next    bigint[];
    v_telling bigint[];
    v_open    bigint[] := '{}';
    v_kept    bigint[] := '{}';
begin
    while cardinality(v_ids) > 0 loop
        v_next := '{}';
        v_telling := '{}';
        for v_row in
            select c.node_execution_id, n.finally_node_id, q.phase, q.is_cancelled, u.tells
              from unnest(v_ids, v_tells) u(id, tells)
              join wf.node_execution c
                on c.workflow_instance_id = p_workflow_instance_id
               and c.parent_execution_id = u.id
               and c.status in ('READY', 'RUNNING')
              join wf.workflow_node n on n.node_id = c.node_id
              left join wf.pending_end q on q.node_execution_id = c.node_execution_id
             order by c.node_execution_id
        loop
            if not p_operator and (v_row.phase = 'FINALLY' or v_row.is_cancelled) then
                -- Its finally goes on, or it waits for those below it: it only has to tell us now.
                update wf.pending_end q
                   set is_cancelled = true, cancel_parent_id = v_row.tells
                 where q.node_execution_id = v_row.node_execution_id;
            elsif not p_operator and v_row.finally_node_id is not null then
                insert into wf.pending_end as q (node_execution_id, workflow_instance_id, phase,
                                                 is_cancelled, cancel_parent_id)
                values (v_row.node_execution_id, p_workflow_instance_id, 'WAITING', true,
                        v_row.tells)
                on conflict (node_execution_id) do update
                    set phase = 'WAITING', is_cancelled = true,
                        cancel_parent_id = excluded.cancel_parent_id, verdict = null,
                        result_code = null, engine_error_code = null, engine_error_message = null,
                        error_execution_id = null;
                v_kept := v_kept || v_row.node_execution_id;
                v_next := v_next || v_row.node_execution_id;
                v_telling := v_telling || v_row.node_execution_id;
            else
                -- Whom it was waiting for tells the one above it from now on.
                update wf.pending_end q set cancel_parent_id = v_row.tells
                 where q.cancel_parent_id = v_row.node_execution_id;
                v_open := v_open || v_row.node_execution_id;
                v_next := v_next || v_row.node_execution_id;
                v_telling := v_telling || v_row.tells;
            end if;
        end loop;
        v_ids := v_next;
        v_tells := v_telling;
    end loop;
    delete from wf.timer t where t.node_execution_id = any (v_open || v_kept);
    perform wf.wf_cancel_executions(v_open, p_now);
    return query
    select s.ordinal, (row_number() over (order by k))::integer, s.step, s.node_execution_id,
           s.workflow_instance_id, s.node_id, s.iteration_no, s.item_json, s.result_code,
           s.engine_error_code, s.message, s.error_execution_id
      from unnest(v_kept) k
     cross join lateral wf.wf_start_finally(p_ordinal, k) s
     order by k;
end
$$;

-- Starts the finally of a cancelled SEQUENCE when no other one is left below it.
create or replace function wf.wf_start_finally(p_ordinal integer, p_node_execution_id bigint)
returns setof wf.agenda_step
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    if exists (select 1 from wf.pending_end p where p.cancel_parent_id = p_node_execution_id) then
        return;
    end if;
    update wf.pending_end p set phase = 'FINALLY' where p.node_execution_id = p_node_execution_id;
    return query
    select wf_s.*
      from wf.node_execution e
      join wf.workflow_node n on n.node_id = e.node_id
     cross join lateral wf.wf_start_step(p_ordinal, e.node_execution_id, e.workflow_instance_id,
                                         n.finally_node_id) wf_s
     where e.node_execution_id = p_node_execution_id;
end
$$;

-- Makes open executions CANCELLED and removes what only open ones have.
create or replace function wf.wf_cancel_executions(p_open bigint[], p_now timestamptz) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    if cardinality(p_open) = 0 then
        return;
    end if;
    with gone as (
        delete from wf.task t where t.node_execution_id = any (p_open) returning t.*
    )
    update wf.node_execution e
       set status = 'CANCELLED', ended_at = p_now,
           input_json = g.input_json, worker_id = g.worker_id, started_at = g.claimed_at,
           attempt_no = g.attempt_no - case when g.claimed_at is null then 1 else 0 end,
           delivery_count = g.delivery_count, last_token = nullif(g.lease_token, 0)
      from gone g
     where e.node_execution_id = g.node_execution_id;
    update wf.node_execution e
       set status = 'CANCELLED', ended_at = p_now
     where e.node_execution_id = any (p_open) and e.status in ('READY', 'RUNNING');
    delete from wf.event_wait w where w.node_execution_id = any (p_open);
    delete from wf.join_counter c where c.node_execution_id = any (p_open);
    delete from wf.loop_state l where l.node_execution_id = any (p_open);
    delete from wf.foreach_item f where f.node_execution_id = any (p_open);
    delete from wf.pending_end p where p.node_execution_id = any (p_open);
end
$$;

-- SEQUENCEs with on_error and finally -----------------------------------------------------------------

-- The body of a SEQUENCE has failed with the error on p_end: on_error runs if there is one, else
-- finally, else the SEQUENCE fails.
create or replace function wf.wf_sequence_body_failed(p_ordinal integer, p_end wf.pending_end)
returns setof wf.agenda_step
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_node record;
begin
    select n.on_error_node_id, n.finally_node_id into v_node
      from wf.node_execution e
      join wf.workflow_node n on n.node_id = e.node_id
     where e.node_execution_id = p_end.node_execution_id;
    p_end.verdict := 'FAIL';
    if v_node.on_error_node_id is not null then
        p_end.phase := 'ON_ERROR';
    elsif v_node.finally_node_id is not null then
        p_end.phase := 'FINALLY';
    else
        return next row(p_ordinal, 0, 'FAIL', p_end.node_execution_id, p_end.workflow_instance_id,
                        null, null, null, p_end.result_code, p_end.engine_error_code,
                        p_end.engine_error_message, p_end.error_execution_id)::wf.agenda_step;
        return;
    end if;
    if p_end.phase = 'FINALLY' then
        delete from wf.timer t where t.node_execution_id = p_end.node_execution_id;
    end if;
    insert into wf.pending_end values (p_end.*);
    return next wf.wf_start_step(p_ordinal, p_end.node_execution_id, p_end.workflow_instance_id,
                                 coalesce(v_node.on_error_node_id, v_node.finally_node_id));
end
$$;

-- The error of a failed execution as the verdict of its parent.
create or replace function wf.wf_verdict_of(p_failed_execution_id bigint) returns wf.pending_end
language sql stable set search_path = pg_catalog, pg_temp as $$
    select row(e.parent_execution_id, e.workflow_instance_id, 'WAITING', false, 0, 'FAIL',
               e.result_code, e.engine_error_code, e.engine_error_message, e.error_execution_id
              )::wf.pending_end
      from wf.node_execution e
     where e.node_execution_id = p_failed_execution_id
$$;

-- A child of a SEQUENCE has failed: its body, its on_error or its finally.
create or replace function wf.wf_sequence_failed(
    p_ordinal integer, p_child_execution_id bigint, p_edge_kind text, p_now timestamptz
) returns setof wf.agenda_step
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_new wf.pending_end := wf.wf_verdict_of(p_child_execution_id);
    v_old wf.pending_end;
begin
    if p_edge_kind = 'SEQUENCE' then
        return query select * from wf.wf_sequence_body_failed(p_ordinal, v_new);
        return;
    end if;
    select p.* into v_old from wf.pending_end p where p.node_execution_id = v_new.node_execution_id;
    if p_edge_kind = 'ON_ERROR' then
        update wf.pending_end p
           set result_code = v_new.result_code, engine_error_code = v_new.engine_error_code,
               engine_error_message = v_new.engine_error_message,
               error_execution_id = v_new.error_execution_id
         where p.node_execution_id = v_new.node_execution_id;
        return query select * from wf.wf_sequence_finally(p_ordinal, v_new.node_execution_id);
    elsif v_old.is_cancelled then
        return query select * from wf.wf_cancelled_done(p_ordinal, v_old, p_now);
    elsif v_old.verdict = 'SUCCEED' then
        delete from wf.pending_end p where p.node_execution_id = v_old.node_execution_id;
        return next wf.wf_fail_by_step(p_ordinal, v_old.node_execution_id,
                                       v_old.workflow_instance_id, p_child_execution_id);
    else
        update wf.pending_end p
           set engine_error_message = concat(p.engine_error_message, ' (and in finally: ',
                                             v_new.engine_error_message, ')')
         where p.node_execution_id = v_old.node_execution_id;
        return query select * from wf.wf_take_verdict(p_ordinal, v_old.node_execution_id);
    end if;
end
$$;

-- Goes on from on_error, or from a body that succeeded, with the verdict on the row: to the finally,
-- if there is one, else to the end.
create or replace function wf.wf_sequence_finally(p_ordinal integer, p_node_execution_id bigint)
returns setof wf.agenda_step
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_row record;
begin
    select e.workflow_instance_id, n.finally_node_id into v_row
      from wf.node_execution e
      join wf.workflow_node n on n.node_id = e.node_id
     where e.node_execution_id = p_node_execution_id;
    if v_row.finally_node_id is null then
        return query select * from wf.wf_take_verdict(p_ordinal, p_node_execution_id);
        return;
    end if;
    -- Once the finally has begun, the time-out no longer applies.
    delete from wf.timer t where t.node_execution_id = p_node_execution_id;
    update wf.pending_end p set phase = 'FINALLY' where p.node_execution_id = p_node_execution_id;
    return next wf.wf_start_step(p_ordinal, p_node_execution_id, v_row.workflow_instance_id,
                                 v_row.finally_node_id);
end
$$;

-- The last child of a body, an on_error or a finally has succeeded.
create or replace function wf.wf_sequence_done(
    p_ordinal integer, p_child_execution_id bigint, p_edge_kind text, p_now timestamptz
) returns setof wf.agenda_step
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_row record;
    v_end wf.pending_end;
begin
    select e.parent_execution_id as node_execution_id, e.workflow_instance_id into v_row
      from wf.node_execution e where e.node_execution_id = p_child_execution_id;
    if p_edge_kind = 'SEQUENCE' then
        insert into wf.pending_end (node_execution_id, workflow_instance_id, phase, verdict)
        values (v_row.node_execution_id, v_row.workflow_instance_id, 'FINALLY', 'SUCCEED');
        return query select * from wf.wf_sequence_finally(p_ordinal, v_row.node_execution_id);
        return;
    end if;
    select p.* into v_end from wf.pending_end p where p.node_execution_id = v_row.node_execution_id;
    if p_edge_kind = 'ON_ERROR' then
        update wf.pending_end p
           set verdict = 'SUCCEED', result_code = null, engine_error_code = null,
               engine_error_message = null, error_execution_id = null
         where p.node_execution_id = v_row.node_execution_id;
        return query select * from wf.wf_sequence_finally(p_ordinal, v_row.node_execution_id);
    elsif v_end.is_cancelled then
        return query select * from wf.wf_cancelled_done(p_ordinal, v_end, p_now);
    else
        return query select * from wf.wf_take_verdict(p_ordinal, v_row.node_execution_id);
    end if;
end
$$;

-- The finally of a cancelled SEQUENCE has ended, whatever it gave: the SEQUENCE is CANCELLED, and the
-- one it tells goes on when this was the last it waited for.
create or replace function wf.wf_cancelled_done(
    p_ordinal integer, p_end wf.pending_end, p_now timestamptz
)
returns setof wf.agenda_step
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_above wf.pending_end;
begin
    delete from wf.pending_end p where p.node_execution_id = p_end.node_execution_id;
    update wf.node_execution e
       set status = 'CANCELLED', ended_at = p_now
     where e.node_execution_id = p_end.node_execution_id;
    if exists (select 1 from wf.pending_end p where p.cancel_parent_id = p_end.cancel_parent_id) then
        return;
    end if;
    select p.* into v_above from wf.pending_end p
     where p.node_execution_id = p_end.cancel_parent_id;
    if v_above.is_cancelled then
        return query select * from wf.wf_start_finally(p_ordinal, v_above.node_execution_id);
    else
        return query select * from wf.wf_take_verdict(p_ordinal, v_above.node_execution_id);
    end if;
end
$$;

-- Closing entries -------------------------------------------------------------------------------------

-- One entry that may close other work: a failure (F), a success that may decide its parent (J), a
-- time that is up (T). Needs the exclusive gate.
create or replace function wf.wf_engine_close(p_entry wf.agenda_entry, p_now timestamptz)
returns setof wf.agenda_step
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_row record;
begin
    select e.parent_execution_id, n.parent_type, n.edge_kind into v_row
      from wf.node_execution e
      join wf.workflow_node n on n.node_id = e.node_id
     where e.node_execution_id = p_entry.node_execution_id;
    if p_entry.kind = 'T' then
        return query select * from wf.wf_time_is_up(p_entry, p_now);
    elsif v_row.parent_execution_id = 0 then
        perform wf.wf_end_instance(p_entry.workflow_instance_id, 'FAILED',
                                   p_entry.node_execution_id, p_now);
    elsif v_row.parent_type in ('PARALLEL', 'FOREACH') then
        return query select * from wf.wf_join_ended(p_entry.ordinal, p_entry.node_execution_id,
                                                    p_entry.kind = 'J', p_now);
    elsif p_entry.kind = 'J' then
        return query select * from wf.wf_sequence_done(p_entry.ordinal, p_entry.node_execution_id,
                                                       v_row.edge_kind, p_now);
    elsif v_row.parent_type = 'SEQUENCE' then
        return query select * from wf.wf_sequence_failed(p_entry.ordinal, p_entry.node_execution_id,
                                                         v_row.edge_kind, p_now);
    else
        return next wf.wf_fail_by_step(p_entry.ordinal, v_row.parent_execution_id,
                                       p_entry.workflow_instance_id, p_entry.node_execution_id);
    end if;
end
$$;

-- The time of a composite or a WAIT_EVENT is up (S7.3, S8.5): what is open below a composite is
-- cancelled and it fails with 10013, a SEQUENCE by way of its on_error and finally; a WAIT_EVENT runs
-- its timeout body, or fails.
create or replace function wf.wf_time_is_up(p_entry wf.agenda_entry, p_now timestamptz)
returns setof wf.agenda_step
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_row     record;
    v_message text;
begin
    select n.node_type, n.timeout_ms, n.timeout_node_id into v_row
      from wf.node_execution e
      join wf.workflow_node n on n.node_id = e.node_id
     where e.node_execution_id = p_entry.node_execution_id;
    delete from wf.event_wait w where w.node_execution_id = p_entry.node_execution_id;
    if v_row.timeout_node_id is not null then
        update wf.node_execution e set status = 'RUNNING'
         where e.node_execution_id = p_entry.node_execution_id;
        return next wf.wf_start_step(p_entry.ordinal, p_entry.node_execution_id,
                                     p_entry.workflow_instance_id, v_row.timeout_node_id);
        return;
    end if;
    v_message := format('%s: timed out after %s ms',
                        wf.wf_execution_path(p_entry.node_execution_id), v_row.timeout_ms);
    insert into wf.pending_end (node_execution_id, workflow_instance_id, phase, verdict,
        engine_error_code, engine_error_message, error_execution_id)
    values (p_entry.node_execution_id, p_entry.workflow_instance_id, 'WAITING',
            case v_row.node_type when 'SEQUENCE' then 'BODY_FAILED' else 'FAIL' end,
            10013, v_message, p_entry.node_execution_id)
    -- The time of a SEQUENCE is up in its on_error, which ends and is not tried again.
    on conflict (node_execution_id) do update
        set phase = 'WAITING', verdict = 'HANDLER_FAILED', result_code = null,
            engine_error_code = excluded.engine_error_code,
            engine_error_message = excluded.engine_error_message,
            error_execution_id = excluded.error_execution_id;
    return query select * from wf.wf_close_below(p_entry.ordinal, p_entry.workflow_instance_id,
                                                 p_entry.node_execution_id, p_now);
end
$$;

-- Instances -------------------------------------------------------------------------------------------

-- Ends an instance whose root has ended; its error is the root's.
create or replace function wf.wf_end_instance(
    p_workflow_instance_id bigint, p_status text, p_root_execution_id bigint, p_now timestamptz
) returns void
language sql set search_path = pg_catalog, pg_temp as $$
    update wf.workflow_instance i
       set status = p_status, ended_at = p_now,
           error_code = case when p_status = 'FAILED' then e.result_code end,
           engine_error_code = case when p_status = 'FAILED' then e.engine_error_code end,
           engine_error_message = case when p_status = 'FAILED' then e.engine_error_message end,
           error_execution_id = case when p_status = 'FAILED' then e.error_execution_id end
      from wf.node_execution e
     where i.workflow_instance_id = p_workflow_instance_id
       and e.node_execution_id = p_root_execution_id
$$;
-- The root has succeeded: evaluates `output` in the root's scope and ends the instance. A name that
-- only a `set` would have brought into being, and none has, gives null; any other error fails the
-- instance at the root (R16).
create or replace function wf.wf_finish_instance(
    p_workflow_instance_id bigint, p_root_execution_id bigint, p_now timestamptz
) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_output record;
    v_value  record;
    v_result jsonb;
    v_code   integer;
    v_text   text;
begin
    for v_output in
        select o.value ->> 'name' as name, o.value -> 'program' as program_json
          from wf.workflow_instance i
          join wf.workflow_version v on v.workflow_version_id = i.workflow_version_id
         cross join lateral jsonb_array_elements(v.outputs_json) with ordinality o(value, position)
         where i.workflow_instance_id = p_workflow_instance_id
         order by o.position
    loop
        select * into v_value
          from wf.wf_eval_expression(v_output.program_json, p_root_execution_id,
                                     p_unset_is_null => true);
        v_code := v_value.error_code;
        v_text := v_value.error_message;
        exit when v_code is not null;
        v_result := coalesce(v_result, '{}')
            || jsonb_build_object(v_output.name, v_value.value_json);
    end loop;
    if v_code is null and v_result is not null then
        v_text := wf.wf_storable_problem(v_result);
        v_code := case when v_text is not null then 10018 end;
    end if;
    if v_code is not null then
        update wf.node_execution e
           set status = 'FAILED', result_code = null, error_execution_id = p_root_execution_id,
               engine_error_code = v_code,
               engine_error_message = wf.wf_execution_path(p_root_execution_id) || ': ' || v_text
         where e.node_execution_id = p_root_execution_id;
        perform wf.wf_end_instance(p_workflow_instance_id, 'FAILED', p_root_execution_id, p_now);
        return;
    end if;
    if v_result is not null then
        update wf.execution_context x set output_json = v_result
         where x.workflow_instance_id = p_workflow_instance_id;
    end if;
    perform wf.wf_end_instance(p_workflow_instance_id, 'SUCCEEDED', p_root_execution_id, p_now);
end
$$;

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
        p_retry, p_task.attempt_no,
        p_task.workflow_instance_id || '/' || wf.wf_execution_path(p_task.node_execution_id));
begin
    insert into wf.node_attempt (node_execution_id, lease_token, attempt_no, worker_id, result_code,
        output_hash, answer, engine_error_code, engine_error_message, ended_at)
    values (p_task.node_execution_id, p_task.lease_token, p_task.attempt_no, p_task.worker_id,
            p_result_code, wf.wf_output_hash(p_output_json), 'OK', p_engine_error_code, p_message,
            p_now);
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

-- What happens by itself at a time: time-outs, sleeps, tasks that become due. Twin: mssql/wf_timers.sql
--
-- No process of its own (R21): the passes run within a claim and in sp_tick, bounded and backed by
-- an index. A deadline counts from the moment it is due: a submit or an event first applies what is
-- due in its instance (wf_apply_due), so it loses against a deadline that no pass has seen yet.

-- Applies every timer of one instance that is due, in due order, and the time-outs of its leased
-- ACTIONs. Answers whether there was one. Needs the instance's gate exclusive.
create or replace function wf.wf_apply_due(p_workflow_instance_id bigint, p_now timestamptz)
returns boolean
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_row   record;
    v_found boolean := false;
begin
    loop
        select q.node_execution_id, q.is_task into v_row
          from (select t.node_execution_id, t.due_at, false as is_task
                  from wf.timer t
                 where t.workflow_instance_id = p_workflow_instance_id and t.due_at <= p_now
                union all
                select k.node_execution_id, k.deadline_at, true
                  from wf.task k
                 where k.workflow_instance_id = p_workflow_instance_id and k.deadline_at <= p_now) q
         order by q.due_at, q.node_execution_id
         limit 1;
        exit when not found;
        v_found := true;
        if v_row.is_task then
            perform wf.wf_time_out_task(v_row.node_execution_id, p_workflow_instance_id, p_now);
        else
            delete from wf.timer t where t.node_execution_id = v_row.node_execution_id;
            perform wf.wf_engine_run(wf.wf_timer_entry(v_row.node_execution_id,
                                                       p_workflow_instance_id, p_now),
                                     array[p_workflow_instance_id], p_now);
        end if;
    end loop;
    return v_found;
end
$$;

-- The agenda of one timer that is due: a sleep has succeeded, anything else has timed out.
create or replace function wf.wf_timer_entry(
    p_node_execution_id bigint, p_workflow_instance_id bigint, p_now timestamptz
) returns wf.agenda_entry[]
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_node record;
begin
    select n.node_type = 'SEQUENCE' and n.delay_ms is not null as is_sleep, n.success_may_close
      into v_node
      from wf.node_execution e
      join wf.workflow_node n on n.node_id = e.node_id
     where e.node_execution_id = p_node_execution_id;
    if v_node.is_sleep then
        update wf.node_execution e set status = 'SUCCEEDED', result_code = 0, ended_at = p_now
         where e.node_execution_id = p_node_execution_id;
    end if;
    return array[row(1, p_node_execution_id, p_workflow_instance_id,
                     case when not v_node.is_sleep then 'T'
                          when v_node.success_may_close then 'J' else 'S' end)::wf.agenda_entry];
end
$$;

-- An ACTION ran past its timeout: the attempt fails with 10013, and may be made again. Needs the
-- exclusive gate.
create or replace function wf.wf_time_out_task(
    p_node_execution_id bigint, p_workflow_instance_id bigint, p_now timestamptz
) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_task wf.task;
    v_node record;
begin
    select t.* into v_task from wf.task t
     where t.node_execution_id = p_node_execution_id and t.deadline_at <= p_now for update;
    if not found then
        return;
    end if;
    select n.retry_json, n.timeout_ms into v_node
      from wf.workflow_node n where n.node_id = v_task.node_id;
    perform wf.wf_fail_attempt(v_task, v_node.retry_json, '10013', 10013,
        format('timed out after %s ms', v_node.timeout_ms), p_now);
end
$$;

-- An attempt that the engine itself ends with an error: made again when the retry policy takes
-- p_failure, else its node fails. Needs the exclusive gate and the task's row.
create or replace function wf.wf_fail_attempt(
    p_task wf.task, p_retry jsonb, p_failure text, p_engine_error_code integer, p_text text,
    p_now timestamptz
) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_message text := wf.wf_execution_path(p_task.node_execution_id) || ': ' || p_text;
begin
    if wf.wf_retry_takes(p_retry, p_task.attempt_no, p_failure) then
        perform wf.wf_retry_task(p_task, p_retry, null, p_engine_error_code, v_message, null, p_now);
        return;
    end if;
    delete from wf.task t where t.node_execution_id = p_task.node_execution_id;
    update wf.node_execution e
       set status = 'FAILED', result_code = null, engine_error_code = p_engine_error_code,
           engine_error_message = v_message, error_execution_id = p_task.node_execution_id,
           input_json = p_task.input_json, worker_id = p_task.worker_id,
           attempt_no = p_task.attempt_no, delivery_count = p_task.delivery_count,
           last_token = p_task.lease_token, started_at = p_task.claimed_at, ended_at = p_now
     where e.node_execution_id = p_task.node_execution_id;
    perform wf.wf_engine_run(
        array[row(1, p_task.node_execution_id, p_task.workflow_instance_id, 'F')::wf.agenda_entry],
        array[p_task.workflow_instance_id], p_now);
end
$$;

-- Makes delayed tasks claimable whose time has come; those of a paused instance wait. Answers how
-- many. Locks: task rows with SKIP LOCKED.
create or replace function wf.wf_release_due_tasks(p_limit integer, p_now timestamptz)
returns integer
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_count integer;
begin
    update wf.task t
       set is_claimable = true
     where t.node_execution_id in (
        select o.node_execution_id
          from wf.task o
          join wf.workflow_instance i on i.workflow_instance_id = o.workflow_instance_id
         where not o.is_claimable and o.available_at <= p_now and i.status = 'RUNNING'
         order by o.available_at, o.node_execution_id
         limit p_limit
           for update of o skip locked);
    get diagnostics v_count = row_count;
    return v_count;
end
$$;

-- Applies what is due, instance by instance, in due order; an instance that another call is at, or
-- that is paused, is left for the next pass. Answers how many instances it went through.
-- Locks: gates exclusive with SKIP LOCKED, so no call ever waits here.
create or replace function wf.wf_run_timers(p_limit integer, p_now timestamptz) returns integer
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_id    bigint;
    v_count integer := 0;
begin
    for v_id in
        select q.workflow_instance_id
          from ((select t.workflow_instance_id, t.due_at from wf.timer t
                  where t.due_at <= p_now order by t.due_at, t.node_execution_id limit p_limit)
                union all
                (select k.workflow_instance_id, k.deadline_at from wf.task k
                  where k.deadline_at <= p_now order by k.deadline_at, k.node_execution_id
                  limit p_limit)) q
         group by q.workflow_instance_id
         order by min(q.due_at), q.workflow_instance_id
    loop
        perform 1 from wf.workflow_instance i
          where i.workflow_instance_id = v_id and i.status = 'RUNNING' for update skip locked;
        continue when not found;
        -- In a savepoint: whatever one instance makes of its timers, the others' act.
        begin
            if wf.wf_apply_due(v_id, p_now) then
                v_count := v_count + 1;
            end if;
        exception when others then
            raise warning 'timers of instance % could not act: %', v_id, sqlerrm;
        end;
    end loop;
    return v_count;
end
$$;

-- The periodic pass of workers and gateways, who call it every few seconds, so that a graph that only
-- waits moves too: expired leases, timers, delayed tasks. Bounded: at most 100 of each.
create or replace function wf.sp_tick()
returns table (reclaimed_count integer, timer_count integer, released_count integer)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    v_now timestamptz := wf.wf_now();
begin
    reclaimed_count := wf.wf_reclaim_expired_leases(100);
    timer_count := wf.wf_run_timers(100, v_now);
    released_count := wf.wf_release_due_tasks(100, v_now);
    return next;
end
$$;

-- Events and the WAIT_EVENTs that take them. Twin: mssql/wf_event_plane.sql
--
-- No lost wake-up (R2): a wait and an event that match both update the row of wf.event_route for
-- their type and correlation key before they look for the other; whoever comes second sees the
-- first. The key '' stands for waits without `correlate`.

-- WAIT_EVENT: evaluates `correlate` and opens the wait. It meets its events at the end of the call
-- (wf_wait_register).
create or replace function wf.wf_wait_activate(p_entries wf.agenda_entry[])
returns setof wf.agenda_step
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_row record;
begin
    for v_row in
        select a.*, n.attributes_json ->> 'event_type' as event_type,
               n.attributes_json ? 'correlate' as has_correlate,
               c.value_json, c.error_code, c.error_message
          from unnest(p_entries) a
          join wf.node_execution e on e.node_execution_id = a.node_execution_id
          join wf.workflow_node n on n.node_id = e.node_id
         cross join lateral wf.wf_eval_expression(
                coalesce(n.attributes_json -> 'correlate', '[["lit",null]]'),
                a.node_execution_id) c
         order by a.ordinal
    loop
        if v_row.error_code is null and v_row.has_correlate
           and wf.wf_type_word(v_row.value_json) not in ('string', 'integer', 'null') then
            v_row.error_code := 10010;
            v_row.error_message := 'correlate takes a string or an integer, not '
                || wf.wf_type_word(v_row.value_json);
        end if;
        if v_row.error_code is not null then
            return next wf.wf_fail_step(v_row.ordinal, v_row.node_execution_id,
                v_row.workflow_instance_id, v_row.error_code, v_row.error_message);
            continue;
        end if;
        insert into wf.event_wait (node_execution_id, workflow_instance_id, event_type,
                                   correlation_key, matches_nothing)
        values (v_row.node_execution_id, v_row.workflow_instance_id, v_row.event_type,
                v_row.value_json #>> '{}',
                v_row.has_correlate and jsonb_typeof(v_row.value_json) = 'null');
    end loop;
end
$$;

-- Lets the waits that this call opened meet the events that came before them: takes their routes in
-- key order, then gives each the oldest event since the instance's start that the instance has not
-- consumed (S8.4). Answers the entries of waits that completed by it.
-- Raises WFX01 when an instance held shared has such an event: to consume it is for the exclusive gate.
create or replace function wf.wf_wait_register(
    p_waits wf.agenda_entry[], p_exclusive bigint[], p_now timestamptz
) returns wf.agenda_entry[]
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_row   record;
    v_event bigint;
    v_level wf.agenda_entry[] := '{}';
begin
    for v_row in
        select distinct w.event_type, coalesce(w.correlation_key, '') as correlation_key
          from unnest(p_waits) a
          join wf.event_wait w on w.node_execution_id = a.node_execution_id
         where not w.matches_nothing
         order by 1, 2
    loop
        insert into wf.event_route as r (event_type, correlation_key)
        values (v_row.event_type, v_row.correlation_key)
        on conflict (event_type, correlation_key) do update set touched = r.touched + 1;
    end loop;
    for v_row in
        select w.*, i.events_after_id, i.workflow_version_id, row_number() over (order by w.node_execution_id) as position
          from unnest(p_waits) a
          join wf.event_wait w on w.node_execution_id = a.node_execution_id
          join wf.workflow_instance i on i.workflow_instance_id = w.workflow_instance_id
         where not w.matches_nothing
         order by w.node_execution_id
    loop
        select v.event_id into v_event
          from wf.event v
         where v.event_type = v_row.event_type
           and (v_row.correlation_key is null or v.correlation_key = v_row.correlation_key)
           and v.event_id > v_row.events_after_id
           and wf.wf_event_fits_version(v_row.workflow_version_id, v.event_type, v.payload_json)
           and not exists (select 1 from wf.event_delivery d
                            where d.workflow_instance_id = v_row.workflow_instance_id
                              and d.event_id = v.event_id and d.outcome = 'applied')
         order by v.event_id
         limit 1;
        continue when v_event is null;
        if v_row.workflow_instance_id <> all (p_exclusive) then
            raise exception 'the gate of instance % is needed exclusive', v_row.workflow_instance_id
                using errcode = 'WFX01', detail = v_row.workflow_instance_id::text;
        end if;
        v_level := v_level || wf.wf_wait_complete(v_row.node_execution_id, v_event,
                                                  v_row.position::integer, p_now);
    end loop;
    return v_level;
end
$$;

-- What programs see of an event.
create or replace function wf.wf_event_document(p_event_id bigint) returns jsonb
language sql stable set search_path = pg_catalog, pg_temp as $$
    select jsonb_build_object(
        'id', v.event_id, 'type', v.event_type, 'source', v.source,
        'correlation_key', v.correlation_key, 'payload', v.payload_json,
        'occurred_at', to_char(v.occurred_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))
      from wf.event v where v.event_id = p_event_id
$$;

-- Completes one wait with one event: result code 0, the payload as output, ctx.event set, its
-- `set`s run, a delivery row. Needs the exclusive gate. Answers the agenda entry, S or F.
create or replace function wf.wf_wait_complete(
    p_node_execution_id bigint, p_event_id bigint, p_ordinal integer, p_now timestamptz
) returns wf.agenda_entry
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_wait  wf.event_wait;
    v_event jsonb := wf.wf_event_document(p_event_id);
    v_error record;
    v_kind  text;
begin
    delete from wf.event_wait w where w.node_execution_id = p_node_execution_id returning w.* into v_wait;
    delete from wf.timer t where t.node_execution_id = p_node_execution_id;
    select case when n.success_may_close then 'J' else 'S' end into v_kind
      from wf.node_execution e
      join wf.workflow_node n on n.node_id = e.node_id
     where e.node_execution_id = p_node_execution_id;
    update wf.node_execution e
       set status = 'SUCCEEDED', result_code = 0, output_json = v_event -> 'payload', ended_at = p_now
     where e.node_execution_id = p_node_execution_id;
    update wf.execution_context x set event_json = v_event
     where x.workflow_instance_id = v_wait.workflow_instance_id;
    perform wf.wf_add_delivery(p_event_id, i.workflow_def_id, i.workflow_instance_id,
                               p_node_execution_id, 'applied', null, p_now)
       from wf.workflow_instance i
      where i.workflow_instance_id = v_wait.workflow_instance_id;
    select * into v_error
      from wf.wf_apply_output_bindings(p_node_execution_id, v_event -> 'payload', 0, v_event);
    if v_error.error_code is not null then
        perform wf.wf_fail_completed(p_node_execution_id, v_error.error_code, v_error.error_message);
        v_kind := 'F';
    end if;
    return row(p_ordinal, p_node_execution_id, v_wait.workflow_instance_id, v_kind)::wf.agenda_entry;
end
$$;

-- Whether a payload has every field that a filter names, with an equal value (S3.1); a field that is
-- not there is unequal. A filter is an array of {path, value}.
create or replace function wf.wf_filter_fits(p_filter jsonb, p_payload jsonb) returns boolean
language sql immutable set search_path = pg_catalog, pg_temp as $$
    select not exists (
        select 1 from jsonb_array_elements(p_filter) f
         where (p_payload #> array(select jsonb_array_elements_text(f.value -> 'path')))
               is distinct from f.value -> 'value')
$$;

-- Whether the waits of a version take an event: one of its signal subscriptions of the type fits, or
-- it has none (R18).
create or replace function wf.wf_event_fits_version(
    p_workflow_version_id bigint, p_event_type text, p_payload jsonb
) returns boolean
language sql stable set search_path = pg_catalog, pg_temp as $$
    select coalesce(bool_or(wf.wf_filter_fits(s.filter_json, p_payload)), true)
      from wf.event_subscription s
     where s.workflow_version_id = p_workflow_version_id and s.event_type = p_event_type
       and s.enabled and s.mode in ('signal_wait', 'start_or_signal')
$$;

-- The open waits that an event matches, one per instance: the one that was activated first (R33).
create or replace function wf.wf_event_waits(
    p_event_type text, p_correlation_key text, p_payload jsonb, p_workflow_instance_id bigint
) returns table (node_execution_id bigint, workflow_instance_id bigint)
language sql stable set search_path = pg_catalog, pg_temp as $$
    select min(w.node_execution_id), w.workflow_instance_id
      from wf.event_wait w
      join wf.workflow_instance i on i.workflow_instance_id = w.workflow_instance_id
     where w.event_type = p_event_type
       and wf.wf_event_fits_version(i.workflow_version_id, p_event_type, p_payload)
       and not w.matches_nothing
       and (w.correlation_key is null or w.correlation_key = p_correlation_key)
       and (p_workflow_instance_id is null or w.workflow_instance_id = p_workflow_instance_id)
     group by w.workflow_instance_id
     order by w.workflow_instance_id
$$;

-- One outcome of an event.
create or replace function wf.wf_add_delivery(
    p_event_id bigint, p_workflow_def_id bigint, p_workflow_instance_id bigint,
    p_node_execution_id bigint, p_outcome text, p_reason text, p_now timestamptz
) returns void
language sql set search_path = pg_catalog, pg_temp as $$
    insert into wf.event_delivery (event_id, delivery_no, workflow_def_id, workflow_instance_id,
                                   node_execution_id, outcome, reason, delivered_at)
    select p_event_id, 1 + count(*), p_workflow_def_id, p_workflow_instance_id,
           p_node_execution_id, p_outcome, p_reason, p_now
      from wf.event_delivery d
     where d.event_id = p_event_id
$$;

-- What an event does beyond completing waits, for each subscription of an active version that it
-- fits: `start_instance` starts an instance, `start_or_signal` does so when nothing of that workflow
-- was waiting, and a signal that met no wait is ignored (S8.2). An instance whose input does not fit
-- is not started, and the delivery says why (R19).
create or replace function wf.wf_deliver_to_subscriptions(p_event_id bigint, p_now timestamptz)
returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_row     record;
    v_applied boolean;
begin
    for v_row in
        select s.mode, s.inputs_json, v.workflow_def_id, v.workflow_version_id
          from wf.event e
          join wf.event_subscription s on s.event_type = e.event_type
          join wf.workflow_version v on v.workflow_version_id = s.workflow_version_id
         where e.event_id = p_event_id and s.enabled and v.is_active
           and wf.wf_filter_fits(s.filter_json, e.payload_json)
         order by v.workflow_def_id, s.subscription_order
    loop
        v_applied := exists (
            select 1 from wf.event_delivery d
             where d.event_id = p_event_id and d.workflow_def_id = v_row.workflow_def_id
               and d.outcome = 'applied');
        if v_row.mode = 'start_instance' or v_row.mode = 'start_or_signal' and not v_applied then
            perform wf.wf_start_by_event(p_event_id, v_row.workflow_def_id,
                                         v_row.workflow_version_id, v_row.inputs_json, p_now);
        elsif not v_applied then
            perform wf.wf_add_delivery(p_event_id, v_row.workflow_def_id, null, null, 'ignored',
                                       'nothing was waiting', p_now);
        end if;
    end loop;
end
$$;

-- Starts an instance by an event, which it has consumed (R33).
create or replace function wf.wf_start_by_event(
    p_event_id bigint, p_workflow_def_id bigint, p_workflow_version_id bigint, p_inputs jsonb,
    p_now timestamptz
) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_event   jsonb := wf.wf_event_document(p_event_id);
    v_context jsonb := '{}';
    v_row     record;
    v_id      bigint;
begin
    for v_row in
        select i.value ->> 'name' as name, x.value_json, x.error_code, x.error_message
          from jsonb_array_elements(p_inputs) i
         cross join lateral wf.wf_eval_expression(i.value -> 'program', 0, null, null, v_event) x
    loop
        -- What the event does not have is left to the input's default, or to the check of inputs.
        continue when v_row.error_code = 10001;
        if v_row.error_code is not null then
            perform wf.wf_add_delivery(p_event_id, p_workflow_def_id, null, null, 'ignored',
                format('input %s: %s', v_row.name, v_row.error_message), p_now);
            return;
        end if;
        v_context := v_context || jsonb_build_object(v_row.name, v_row.value_json);
    end loop;
    begin
        insert into wf.workflow_instance as i (workflow_def_id, workflow_version_id, spec_format,
                                               created_at)
        select p_workflow_def_id, v.workflow_version_id, v.spec_format, p_now
          from wf.workflow_version v where v.workflow_version_id = p_workflow_version_id
        returning i.workflow_instance_id into v_id;
        insert into wf.execution_context (workflow_instance_id, context_json, event_json)
        values (v_id, v_context, v_event);
        perform wf.wf_add_delivery(p_event_id, p_workflow_def_id, v_id, null, 'applied', null, p_now);
        perform wf.sp_start_workflow_instance(v_id);
    exception when others then
        -- The engine's own refusals (10015, or a variable that cannot be computed) are an outcome of
        -- the delivery; anything else is none.
        if sqlstate not like 'WF___' or sqlstate = 'WFX01' then
            raise;
        end if;
        perform wf.wf_add_delivery(p_event_id, p_workflow_def_id, null, null, 'ignored', sqlerrm,
                                   p_now);
    end;
end
$$;

-- Completes the waits of one instance, or of all, that an event of this type and key would: an event
-- without a source. Answers how many. Locks and errors as sp_ingest_event.
create or replace function wf.sp_signal_wait(
    p_event_type text, p_correlation_key text, p_payload_json jsonb default null,
    p_workflow_instance_id bigint default null
) returns table (applied_count integer)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    v_gates  bigint[] := '{}';
    v_now    timestamptz;
    v_event  bigint;
    v_wait   record;
    v_level  wf.agenda_entry[] := '{}';
begin
    perform wf.wf_check_key('event_type', p_event_type);
    if p_correlation_key is not null then
        perform wf.wf_check_key('correlation_key', p_correlation_key);
    end if;
    if pg_column_size(p_payload_json) > 16777216 then
        perform wf.wf_raise(20005, 'the payload has more than 16 MB');
    end if;
    if p_workflow_instance_id is not null then
        perform wf.wf_lock_instance(p_workflow_instance_id);
    end if;
    select coalesce(array_agg(w.workflow_instance_id), '{}') into v_gates
      from wf.wf_event_waits(p_event_type, p_correlation_key, coalesce(p_payload_json, '{}'),
                             p_workflow_instance_id) w;
    perform wf.wf_take_gates(v_gates, v_gates);
    v_now := wf.wf_now();
    perform wf.wf_take_route(p_event_type, p_correlation_key);
    insert into wf.event as v (event_type, source, idempotency_key, correlation_key, payload_json,
                               occurred_at, ingested_at)
    values (p_event_type, 'wf.sp_signal_wait', gen_random_uuid()::text, p_correlation_key,
            coalesce(p_payload_json, '{}'), v_now, v_now)
    returning v.event_id into v_event;
    for v_wait in
        select w.*
          from wf.wf_event_waits(p_event_type, p_correlation_key, coalesce(p_payload_json, '{}'),
                                 p_workflow_instance_id) w
         where w.workflow_instance_id = any (v_gates)
    loop
        v_level := v_level || wf.wf_wait_complete(v_wait.node_execution_id, v_event,
                                                  cardinality(v_level) + 1, v_now);
    end loop;
    if cardinality(v_level) > 0 then
        perform wf.wf_engine_run(v_level, v_gates, v_now);
    end if;
    return query select cardinality(v_level);
end
$$;

-- Takes in an event and completes the waits that match it, one per instance. The second of two with
-- equal source and idempotency_key is a duplicate and has no effect, also when both come at once.
-- Answers one row: event_id, duplicate, applied_count, ignored_count.
-- Locks: gates of the candidate instances exclusive, ascending; the route row ('' shared); the event.
-- Errors: 20004 an argument is missing or out of bounds; 20005 payload over 16 MB; 20009 the
-- candidates changed five times meanwhile, try again.
create or replace function wf.sp_ingest_event(
    p_event_type text, p_source text, p_idempotency_key text, p_payload_json jsonb default null,
    p_correlation_key text default null, p_occurred_at_utc timestamptz default null
) returns table (event_id bigint, duplicate boolean, applied_count integer, ignored_count integer)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    v_gates bigint[] := '{}';
    v_detail text;
begin
    perform wf.wf_check_key('event_type', p_event_type);
    perform wf.wf_check_key('source', p_source);
    perform wf.wf_check_key('idempotency_key', p_idempotency_key);
    if p_correlation_key is not null then
        perform wf.wf_check_key('correlation_key', p_correlation_key);
    end if;
    if pg_column_size(p_payload_json) > 16777216 then
        perform wf.wf_raise(20005, 'the payload has more than 16 MB');
    end if;
    select coalesce(array_agg(w.workflow_instance_id), '{}') into v_gates
      from wf.wf_event_waits(p_event_type, p_correlation_key, coalesce(p_payload_json, '{}'),
                             null) w;
    for v_try in 1 .. 5 loop
        begin
            return query
            select * from wf.wf_ingest_attempt(p_event_type, p_source, p_idempotency_key,
                coalesce(p_payload_json, '{}'), p_correlation_key, p_occurred_at_utc, v_gates);
            return;
        exception when sqlstate 'WFX01' then
            get stacked diagnostics v_detail = pg_exception_detail;
            v_gates := v_gates || v_detail::bigint;
        end;
    end loop;
    perform wf.wf_raise(20009, 'the waiting instances keep changing; try again');
end
$$;

-- One attempt at an ingest with the gates of p_gates. Raises WFX01 for a wait of another instance.
create or replace function wf.wf_ingest_attempt(
    p_event_type text, p_source text, p_idempotency_key text, p_payload_json jsonb,
    p_correlation_key text, p_occurred_at timestamptz, p_gates bigint[]
) returns table (event_id bigint, duplicate boolean, applied_count integer, ignored_count integer)
language plpgsql set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    v_now   timestamptz;
    v_id    bigint;
    v_wait  record;
    v_level wf.agenda_entry[] := '{}';
begin
    perform wf.wf_take_gates(p_gates, p_gates);
    v_now := wf.wf_now();
    -- A time-out that is due wins over the event (R21).
    perform wf.wf_apply_due(i.workflow_instance_id, v_now)
       from wf.workflow_instance i
      where i.workflow_instance_id = any (p_gates) and i.status = 'RUNNING';
    perform wf.wf_take_route(p_event_type, p_correlation_key);
    insert into wf.event as v (event_type, source, idempotency_key, correlation_key, payload_json,
                               occurred_at, ingested_at)
    values (p_event_type, p_source, p_idempotency_key, p_correlation_key, p_payload_json,
            coalesce(p_occurred_at, v_now), v_now)
    on conflict (source, idempotency_key) do nothing
    returning v.event_id into v_id;
    if v_id is null then
        update wf.event v set duplicate_count = v.duplicate_count + 1
         where v.source = p_source and v.idempotency_key = p_idempotency_key
        returning v.event_id into v_id;
        return query select v_id, true, 0, 0;
        return;
    end if;
    for v_wait in
        select * from wf.wf_event_waits(p_event_type, p_correlation_key, p_payload_json, null)
    loop
        if v_wait.workflow_instance_id <> all (p_gates) then
            raise exception 'the gate of instance % is needed exclusive',
                v_wait.workflow_instance_id
                using errcode = 'WFX01', detail = v_wait.workflow_instance_id::text;
        end if;
        v_level := v_level || wf.wf_wait_complete(v_wait.node_execution_id, v_id,
                                                  cardinality(v_level) + 1, v_now);
    end loop;
    if cardinality(v_level) > 0 then
        perform wf.wf_engine_run(v_level, p_gates, v_now);
    end if;
    perform wf.wf_deliver_to_subscriptions(v_id, v_now);
    return query
    select v_id, false, count(*) filter (where d.outcome = 'applied')::integer,
           count(*) filter (where d.outcome = 'ignored')::integer
      from wf.event_delivery d where d.event_id = v_id;
end
$$;

-- Locks the route of an event: its own key by an update, the key '' shared, since an event of the
-- type matches waits without `correlate` too.
create or replace function wf.wf_take_route(p_event_type text, p_correlation_key text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    insert into wf.event_route (event_type, correlation_key) values (p_event_type, '')
        on conflict (event_type, correlation_key) do nothing;
    perform 1 from wf.event_route r
      where r.event_type = p_event_type and r.correlation_key = '' for share;
    if p_correlation_key is not null then
        insert into wf.event_route as r (event_type, correlation_key)
        values (p_event_type, p_correlation_key)
        on conflict (event_type, correlation_key) do update set touched = r.touched + 1;
    end if;
end
$$;

-- Refuses a key that not every engine could hold and compare alike (R7): 20004.
create or replace function wf.wf_check_key(p_what text, p_value text) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
begin
    if p_value is null or char_length(p_value) not between 1 and 200
       or p_value ~ '^ | $|[\x01-\x1f\x7f-\x9f]' then
        perform wf.wf_raise(20004, format('%s must have 1 to 200 characters, none of them a control '
            'character, and no space at either end', p_what));
    end if;
end
$$;

-- Creating and starting instances. Twin: mssql/wf_instances.sql

-- Creates an instance of a workflow; it starts with sp_start_workflow_instance.
-- p_workflow_version null: the active one. (workflow, p_business_key) is unique until purge: a
-- repeat answers the existing instance with created = false, also when both calls come at once.
-- Errors: 20002 unknown workflow or version; 20004 the context is no object, or a key is out of
-- bounds; 20005 context over 16 MB; 20010 the business key was used with another context.
create or replace function wf.wf_repo_create_workflow_instance(
    p_workflow_name text, p_context_json jsonb, p_workflow_version integer default null,
    p_business_key text default null, p_priority integer default 0,
    p_tags_json jsonb default null
) returns table (workflow_instance_id bigint, workflow_version_id bigint, created boolean)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    v_version  wf.workflow_version;
    v_id       bigint;
    v_existing record;
begin
    if p_context_json is null or jsonb_typeof(p_context_json) <> 'object' then
        perform wf.wf_raise(20004, 'the context must be a JSON object');
    end if;
    if p_tags_json is not null and jsonb_typeof(p_tags_json) <> 'object' then
        perform wf.wf_raise(20004, 'the tags must be a JSON object');
    end if;
    if pg_column_size(p_context_json) > 16777216 then
        perform wf.wf_raise(20005, 'the context has more than 16 MB');
    end if;
    if p_business_key is not null then
        perform wf.wf_check_key('business_key', p_business_key);
    end if;
    select v.* into v_version
      from wf.workflow_def d
      join wf.workflow_version v on v.workflow_def_id = d.workflow_def_id
     where d.name = p_workflow_name
       and v.published_at is not null
       and case when p_workflow_version is null then v.is_active
                else v.version_no = p_workflow_version end;
    if not found then
        perform wf.wf_raise(20002, format('there is no workflow %s%s', left(p_workflow_name, 200),
            coalesce(' of version ' || p_workflow_version, ' with an active version')));
    end if;
    insert into wf.workflow_instance as i (workflow_def_id, workflow_version_id, spec_format,
        priority, business_key, tags_json, created_at)
    values (v_version.workflow_def_id, v_version.workflow_version_id, v_version.spec_format,
            coalesce(p_priority, 0), p_business_key, coalesce(p_tags_json, '{}'), wf.wf_now())
    on conflict (workflow_def_id, business_key) where business_key is not null do nothing
    returning i.workflow_instance_id into v_id;
    if v_id is null then
        select i.workflow_instance_id, i.workflow_version_id, x.context_json into v_existing
          from wf.workflow_instance i
          join wf.execution_context x on x.workflow_instance_id = i.workflow_instance_id
         where i.workflow_def_id = v_version.workflow_def_id and i.business_key = p_business_key;
        if v_existing.context_json <> p_context_json then
            perform wf.wf_raise(20010, format(
                'business key %s of workflow %s was used with another context', p_business_key,
                p_workflow_name));
        end if;
        return query select v_existing.workflow_instance_id, v_existing.workflow_version_id, false;
        return;
    end if;
    insert into wf.execution_context (workflow_instance_id, context_json)
    values (v_id, p_context_json);
    insert into wf.instance_tag (workflow_instance_id, name, value)
    select v_id, t.key, t.value from jsonb_each_text(coalesce(p_tags_json, '{}')) t;
    return query select v_id, v_version.workflow_version_id, true;
end
$$;

-- Starts a CREATED instance: checks its input, opens its scope, activates its root. Repeated, it
-- answers the same. An input that does not fit is WF015 (10015): nothing has started.
-- Locks: the instance's gate exclusive. Errors: 20002 unknown, 20003 cancelled before its start.
create or replace function wf.sp_start_workflow_instance(p_workflow_instance_id bigint)
returns table (instance_status text, next_ready_count integer)
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan as $$
declare
    v_now    timestamptz;
    v_status text;
begin
    select i.status into v_status
      from wf.workflow_instance i
     where i.workflow_instance_id = p_workflow_instance_id for update;
    if not found then
        perform wf.wf_raise(20002, format('there is no workflow instance %s',
                                          p_workflow_instance_id));
    end if;
    if v_status = 'CANCELLED' and not exists (
        select 1 from wf.workflow_instance i
         where i.workflow_instance_id = p_workflow_instance_id and i.started_at is not null)
    then
        perform wf.wf_raise(20003, format('instance %s was cancelled before its start',
                                          p_workflow_instance_id));
    end if;
    if v_status = 'CREATED' then
        v_now := wf.wf_now();
        perform wf.wf_engine_run(
            array[row(1, wf.wf_open_instance(p_workflow_instance_id, v_now),
                      p_workflow_instance_id, 'A')::wf.agenda_entry],
            array[p_workflow_instance_id], v_now);
    end if;
    return query
    select i.status, (select count(*)::integer from wf.task t
                       where t.workflow_instance_id = p_workflow_instance_id
                         and t.worker_id is null)
      from wf.workflow_instance i where i.workflow_instance_id = p_workflow_instance_id;
end
$$;

-- Inserts the root execution and its scope, fills it from the context, and sets the instance
-- RUNNING. Answers the root execution's id. Errors: WF015 (10015), or the error of a default.
create or replace function wf.wf_open_instance(p_workflow_instance_id bigint, p_now timestamptz)
returns bigint
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_root  bigint := nextval('wf.node_execution_id_seq');
    v_error record;
begin
    insert into wf.node_execution (node_execution_id, workflow_instance_id, parent_execution_id,
        node_id, scope_id, status, attempt_no, created_at)
    select v_root, i.workflow_instance_id, 0, v.root_node_id, v_root, 'RUNNING', 1, p_now
      from wf.workflow_instance i
      join wf.workflow_version v on v.workflow_version_id = i.workflow_version_id
     where i.workflow_instance_id = p_workflow_instance_id;
    insert into wf.timer (node_execution_id, workflow_instance_id, due_at)
    select v_root, i.workflow_instance_id, p_now + n.timeout_ms * interval '1 millisecond'
      from wf.workflow_instance i
      join wf.workflow_version v on v.workflow_version_id = i.workflow_version_id
      join wf.workflow_node n on n.node_id = v.root_node_id
     where i.workflow_instance_id = p_workflow_instance_id and n.timeout_ms is not null;
    update wf.workflow_instance i
       set status = 'RUNNING', started_at = p_now, root_execution_id = v_root,
           events_after_id = (select case when q.is_called then q.last_value else 0 end
                                from wf.event_event_id_seq q)
     where i.workflow_instance_id = p_workflow_instance_id;
    select * into v_error
      from wf.wf_init_instance_scope_from_context(p_workflow_instance_id, v_root);
    if v_error.error_code is not null then
        raise exception using
            errcode = 'WF' || lpad((v_error.error_code - 10000)::text, 3, '0'),
            message = v_error.error_message, detail = v_error.error_code::text;
    end if;
    return v_root;
end
$$;

-- Dispatch: which worker may take which task, and in what order (semantics §10, R15, R41).
-- Twin: mssql/wf_dispatch.sql
--
-- Order: priority (higher first), then the soft preferences, then the longest available, then id.
-- Hard rules: the worker's capabilities, max_per_worker (live leases of the action, counted under the
-- lock of the worker's row), exclusive_worker (while such a lease lives the worker gets nothing else),
-- and the pin of require_previous_worker. Preferences and pins hold within an instance.

-- The dispatch columns of a task that is being activated: the catalog's live ones, overridden by the
-- author's, and the affinity key: the named field of the input as text. A text over 200 characters is
-- stood for by its SHA-256, so that the key always fits its column.
create or replace function wf.wf_dispatch_of(
    p_action_id bigint, p_overrides jsonb, p_input_json jsonb,
    out affinity_key text, out max_per_worker integer, out is_exclusive boolean,
    out prefers_previous boolean, out prefers_group boolean, out requires_previous boolean
)
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_field text;
begin
    select coalesce(p_overrides ->> 'affinity_key_field', a.affinity_key_field),
           coalesce((p_overrides ->> 'max_per_worker')::integer, a.max_per_worker),
           coalesce((p_overrides ->> 'exclusive_worker')::boolean, a.exclusive_worker),
           coalesce((p_overrides ->> 'prefer_previous_worker')::boolean, a.prefer_previous_worker),
           coalesce((p_overrides ->> 'prefer_continue_group')::boolean, a.prefer_continue_group),
           coalesce((p_overrides ->> 'require_previous_worker')::boolean, a.require_previous_worker)
      into v_field, max_per_worker, is_exclusive, prefers_previous, prefers_group, requires_previous
      from wf.workflow_action a
     where a.action_id = p_action_id;
    if v_field is not null and jsonb_typeof(p_input_json) = 'object'
       and jsonb_typeof(p_input_json -> v_field) <> 'null' then
        affinity_key := p_input_json ->> v_field;
        if char_length(affinity_key) > 200 then
            affinity_key := encode(sha256(convert_to(affinity_key, 'UTF8')), 'hex');
        end if;
    end if;
end
$$;

-- The worker that a task of this action and key is pinned to, or null: the one that completed the
-- most recent pinned action of the key, unless that was a run of this same action.
create or replace function wf.wf_pinned_worker(
    p_workflow_instance_id bigint, p_action_id bigint, p_affinity_key text, p_is_pinned boolean
) returns text
language sql stable set search_path = pg_catalog, pg_temp as $$
    select f.pinned_worker_id
      from wf.affinity f
     where p_is_pinned
       and f.workflow_instance_id = p_workflow_instance_id
       and f.affinity_key = p_affinity_key
       and f.released_at is null
       and f.pinned_action_id <> p_action_id
$$;

-- Remembers who completed these executions, by their affinity keys, and pins the waiting tasks of a
-- key whose pinned action has just succeeded. Locks: affinity rows in key order, then task rows.
create or replace function wf.wf_remember_workers(p_node_execution_ids bigint[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_row record;
begin
    if cardinality(p_node_execution_ids) = 0 then
        return;
    end if;
    for v_row in
        select e.workflow_instance_id, d.affinity_key, e.worker_id, n.action_id, d.requires_previous
          from unnest(p_node_execution_ids) with ordinality u(id, position)
          join wf.node_execution e on e.node_execution_id = u.id
          join wf.workflow_node n on n.node_id = e.node_id
         cross join lateral wf.wf_dispatch_of(n.action_id, n.attributes_json -> 'dispatch',
                                              e.input_json) d
         where e.status = 'SUCCEEDED' and d.affinity_key is not null
         order by e.workflow_instance_id, d.affinity_key, u.position
    loop
        insert into wf.affinity as f (workflow_instance_id, affinity_key, worker_id,
                                      pinned_worker_id, pinned_action_id)
        values (v_row.workflow_instance_id, v_row.affinity_key, v_row.worker_id,
                case when v_row.requires_previous then v_row.worker_id end,
                case when v_row.requires_previous then v_row.action_id end)
        on conflict (workflow_instance_id, affinity_key) do update
            set worker_id = excluded.worker_id,
                pinned_worker_id = coalesce(excluded.pinned_worker_id, f.pinned_worker_id),
                pinned_action_id = coalesce(excluded.pinned_action_id, f.pinned_action_id),
                released_at = case when excluded.pinned_worker_id is null then f.released_at end;
        if v_row.requires_previous then
            update wf.task t
               set pinned_worker_id = v_row.worker_id
             where t.workflow_instance_id = v_row.workflow_instance_id
               and t.affinity_key = v_row.affinity_key and t.worker_id is null
               and t.requires_previous and not t.is_exclusive
               and t.action_id <> v_row.action_id;
        end if;
    end loop;
end
$$;

-- Locks up to p_max_tasks tasks for a worker and answers their ids, best first. The caller holds the
-- worker's row, so that its live leases cannot change meanwhile.
-- Locks: task rows, one by one by primary key, with SKIP LOCKED.
create or replace function wf.wf_claim_lock(
    p_worker_id text, p_capability text, p_max_tasks integer
) returns bigint[]
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_taken bigint[] := '{}';
    v_heads integer := greatest(p_max_tasks + 16, 32);
    v_row   record;
    v_seen  integer;
    v_ends  boolean := false;
begin
    if exists (select 1 from wf.task t where t.worker_id = p_worker_id and t.is_exclusive) then
        return v_taken;
    end if;
    -- A page of heads that others hold is read on, at most four times (R15).
    for v_page in 1 .. 4 loop
        v_seen := 0;
        for v_row in select * from wf.wf_claim_candidates(p_worker_id, p_capability, v_heads) loop
            exit when v_ends or cardinality(v_taken) >= p_max_tasks;
            v_seen := v_seen + 1;
            continue when v_row.node_execution_id = any (v_taken)
                or wf.wf_is_at_cap(p_worker_id, v_row.action_id, v_row.max_per_worker, v_taken);
            -- Re-checked by worker_id and pin alone: a condition that repeats the claim index's would
            -- make the planner read that index again.
            perform 1 from wf.task t
              where t.node_execution_id = v_row.node_execution_id and t.worker_id is null
                and coalesce(t.pinned_worker_id, p_worker_id) = p_worker_id
                for update skip locked;
            if found then
                v_taken := v_taken || v_row.node_execution_id;
                v_ends := v_row.is_exclusive;
            end if;
        end loop;
        exit when v_ends or cardinality(v_taken) >= p_max_tasks or v_seen < v_heads;
        v_heads := v_heads * 4;
    end loop;
    return v_taken;
end
$$;

-- Whether a worker holds as many live leases of an action as it may, those taken in this call among
-- them.
create or replace function wf.wf_is_at_cap(
    p_worker_id text, p_action_id bigint, p_max_per_worker integer, p_taken bigint[]
) returns boolean
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    if p_max_per_worker is null then
        return false;
    end if;
    return p_max_per_worker <= (
        select count(*) from wf.task t
         where t.worker_id = p_worker_id and t.action_id = p_action_id) + (
        select count(*) from wf.task t
         where t.node_execution_id = any (p_taken) and t.action_id = p_action_id);
end
$$;

-- Candidates of a claim, best first, read without a lock: of each action that the worker may take,
-- the first p_heads rows of the claim index, and of the rows pinned to it (R15). Soft preferences act
-- among these only.
create or replace function wf.wf_claim_candidates(
    p_worker_id text, p_capability text, p_heads integer
) returns table (node_execution_id bigint, action_id bigint, max_per_worker integer,
                 is_exclusive boolean)
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    return query
    with mine as materialized (
        select a.action_id
          from wf.workflow_action a
         where not a.paused
           and (p_capability is null or a.capability = p_capability)
           and exists (select 1 from wf.worker_capability c
                        where c.worker_id = p_worker_id and c.capability in (a.capability, '*'))
    ), heads as materialized (
        select h.*
          from mine m
         cross join lateral (
            select t.node_execution_id, t.action_id, t.priority, t.available_at,
                   t.workflow_instance_id, t.affinity_key, t.prefers_previous, t.prefers_group,
                   t.max_per_worker, t.is_exclusive
              from wf.task t
             where t.action_id = m.action_id
               and t.is_claimable and t.worker_id is null and t.pinned_worker_id is null
             order by t.priority desc, t.available_at, t.node_execution_id
             limit p_heads) h
        union all
        select h.*
          from mine m
         cross join lateral (
            select t.node_execution_id, t.action_id, t.priority, t.available_at,
                   t.workflow_instance_id, t.affinity_key, t.prefers_previous, t.prefers_group,
                   t.max_per_worker, t.is_exclusive
              from wf.task t
             where t.pinned_worker_id = p_worker_id and t.action_id = m.action_id
               and t.is_claimable and t.worker_id is null
             order by t.priority desc, t.available_at, t.node_execution_id
             limit p_heads) h
    )
    select h.node_execution_id, h.action_id, h.max_per_worker, h.is_exclusive
      from heads h
      left join wf.affinity f
        on (h.prefers_previous or h.prefers_group)
       and f.workflow_instance_id = h.workflow_instance_id and f.affinity_key = h.affinity_key
     order by h.priority desc,
              h.prefers_previous and coalesce(f.worker_id = p_worker_id, false) desc,
              h.prefers_group and f.worker_id is not null desc,
              h.available_at, h.node_execution_id;
end
$$;

-- Frees the tasks of an affinity key that are pinned to a worker, when it is gone. Answers how many.
-- Locks: the affinity row, then its task rows. Errors: 20002 the key has no pin in this instance.
create or replace function wf.sp_release_affinity(
    p_workflow_instance_id bigint, p_affinity_key text
) returns table (released_count integer)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    v_count integer;
begin
    update wf.affinity f set released_at = wf.wf_now()
     where f.workflow_instance_id = p_workflow_instance_id and f.affinity_key = p_affinity_key
       and f.pinned_worker_id is not null;
    if not found then
        perform wf.wf_raise(20002, format('instance %s has no pinned key %s',
                                          p_workflow_instance_id, p_affinity_key));
    end if;
    update wf.task t set pinned_worker_id = null
     where t.workflow_instance_id = p_workflow_instance_id and t.affinity_key = p_affinity_key
       and t.worker_id is null and t.pinned_worker_id is not null;
    get diagnostics v_count = row_count;
    return query select v_count;
end
$$;

-- What a worker calls: claim, submit, heartbeat, fail, release. Twin: mssql/wf_worker_api.sql
--
-- Every call names the worker and its token. A claim hands out a lease with a token that only grows
-- per execution; a call under a lease token that is no longer current changes nothing (R4).

-- Checks a worker's token. Raises 20001; says the same whether the worker or the token is unknown.
-- The digest is compared whole, so no prefix leaks.
create or replace function wf.wf_worker_authenticate(p_worker_id text, p_worker_token text)
returns void
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    if p_worker_id is null or p_worker_token is null or not exists (
        select 1 from wf.worker_token t
         where t.worker_id = p_worker_id
           and t.revoked_at is null
           and (t.expires_at is null or t.expires_at > wf.wf_now())
           and t.token_hash = sha256(t.salt || convert_to(p_worker_token, 'UTF8')))
    then
        perform wf.wf_raise(20001, 'the worker is not known or its token is not valid');
    end if;
end
$$;

-- The number of the iteration a task runs in, from 1: that of its nearest loop; 0 outside loops.
create or replace function wf.wf_iteration_no(p_node_execution_id bigint) returns integer
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_row record;
    v_id  bigint := p_node_execution_id;
begin
    loop
        select e.parent_execution_id, e.iteration_no, n.is_loop_body into v_row
          from wf.node_execution e
          join wf.workflow_node n on n.node_id = e.node_id
         where e.node_execution_id = v_id;
        if not found then
            return 0;
        end if;
        if v_row.is_loop_body then
            return v_row.iteration_no + 1;
        end if;
        v_id := v_row.parent_execution_id;
    end loop;
end
$$;

-- Takes up to p_max_tasks tasks that this worker may do, best first (wf_dispatch.sql has the rules).
-- p_capability narrows to one of the worker's capabilities; null means all of them.
-- Locks: the worker's row (claims of one worker queue, of different workers never do), then task
-- rows with SKIP LOCKED. Never a gate.
-- Errors: 20001; 20004 p_max_tasks or p_max_lease_seconds out of range.
create or replace function wf.sp_worker_request_tasks(
    p_worker_id text, p_worker_token text, p_capability text default null,
    p_max_lease_seconds integer default 300, p_max_tasks integer default 1
) returns table (
    node_execution_id bigint, workflow_instance_id bigint, node_key text, action_name text,
    capability text, attempt_no integer, input_json jsonb, iteration_no integer,
    desired_state text, command text, lease_token bigint, lease_until_utc timestamptz,
    deadline_utc timestamptz, path text
)
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    v_now   timestamptz;
    v_state text;
    v_taken bigint[] := '{}';
begin
    perform wf.wf_worker_authenticate(p_worker_id, p_worker_token);
    if p_max_tasks is null or p_max_tasks not between 1 and 1000 then
        perform wf.wf_raise(20004, 'max_tasks must be between 1 and 1000');
    end if;
    if p_max_lease_seconds is null or p_max_lease_seconds not between 1 and 86400 then
        perform wf.wf_raise(20004, 'max_lease_seconds must be between 1 and 86400');
    end if;
    v_now := wf.wf_now();
    perform wf.wf_reclaim_expired_leases(100);
    perform wf.wf_run_timers(100, v_now);
    perform wf.wf_release_due_tasks(100, v_now);
    select w.desired_state into v_state from wf.worker w where w.worker_id = p_worker_id for update;
    insert into wf.worker_presence (worker_id, last_seen_at) values (p_worker_id, v_now)
        on conflict (worker_id) do update set last_seen_at = excluded.last_seen_at;
    if v_state = 'ACTIVE' then
        v_taken := wf.wf_claim_lock(p_worker_id, p_capability, p_max_tasks);
    end if;
    return query
    with leased as (
        update wf.task t
           set worker_id = p_worker_id, claimed_at = v_now,
               lease_until = v_now + make_interval(secs =>
                   least(p_max_lease_seconds::double precision,
                         coalesce(n.lease_ms / 1000.0, p_max_lease_seconds))),
               lease_token = t.lease_token + 1, delivery_count = t.delivery_count + 1,
               deadline_at = v_now + n.timeout_ms * interval '1 millisecond'
          from unnest(v_taken) k(node_execution_id)
          join wf.task o on o.node_execution_id = k.node_execution_id
          join wf.workflow_node n on n.node_id = o.node_id
         where t.node_execution_id = k.node_execution_id
        returning t.*, n.node_key, n.action_name
    )
    select l.node_execution_id, l.workflow_instance_id, l.node_key, l.action_name, a.capability,
           l.attempt_no, l.input_json, wf.wf_iteration_no(l.node_execution_id),
           v_state, case v_state when 'DRAINING' then 'DRAIN' when 'STOPPING' then 'STOP'
                                 else 'NONE' end,
           l.lease_token, l.lease_until, l.deadline_at, wf.wf_execution_path(l.node_execution_id)
      from leased l
      join wf.workflow_action a on a.action_id = l.action_id
     order by array_position(v_taken, l.node_execution_id);
end
$$;

-- One task, as exactly one row: the task's columns are null when there is none. See the batch form.
create or replace function wf.sp_worker_request_task(
    p_worker_id text, p_worker_token text, p_capability text default null,
    p_max_lease_seconds integer default 300
) returns table (
    node_execution_id bigint, workflow_instance_id bigint, node_key text, action_name text,
    capability text, attempt_no integer, input_json jsonb, iteration_no integer,
    desired_state text, command text, lease_token bigint, lease_until_utc timestamptz,
    deadline_utc timestamptz, path text
)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    return query select * from wf.sp_worker_request_tasks(p_worker_id, p_worker_token, p_capability,
                                                          p_max_lease_seconds, 1);
    if not found then
        return query
        select null::bigint, null::bigint, null::text, null::text, null::text, null::integer,
               null::jsonb, null::integer, w.desired_state,
               case w.desired_state when 'DRAINING' then 'DRAIN' when 'STOPPING' then 'STOP'
                                    else 'NONE' end,
               null::bigint, null::timestamptz, null::timestamptz, null::text
          from wf.worker w
         where w.worker_id = p_worker_id;
    end if;
end
$$;

create type wf.submit_item as (
    position           integer,
    node_execution_id  bigint,
    lease_token        bigint,
    result_code        integer,
    message            text,
    output_json        jsonb
);

-- Completes many tasks of one worker in one transaction. The single calls are this with one item.
-- Locks: gates (ascending), task rows, executions, then what the continuation touches
-- (03_engine_core.sql). Where something may turn out to close other work under a shared gate, the
-- attempt runs in a savepoint and starts over with that gate exclusive.
create or replace function wf.wf_submit(p_worker_id text, p_items wf.submit_item[])
returns table (item_position integer, accepted boolean, instance_status text,
               next_ready_count integer, reason text)
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_shared     bigint[];
    v_exclusive  bigint[];
    v_fails_late boolean;
    v_detail     text;
begin
    select coalesce(array_agg(distinct t.workflow_instance_id
                              order by t.workflow_instance_id), '{}'),
           coalesce(array_agg(distinct t.workflow_instance_id order by t.workflow_instance_id)
                    filter (where n.may_close
                               or i.result_code < 0 and not wf.wf_retry_takes(
                                    n.retry_json, t.attempt_no, i.result_code::text)
                               or v.has_deadlines and wf.wf_has_due(t.workflow_instance_id)), '{}'),
           -- A lowered work limit can fail any activation.
           coalesce(bool_or(v.may_fail_late), false) or exists (
               select 1 from wf.wf_setting s where s.name = 'max_activations_per_call')
      into v_shared, v_exclusive, v_fails_late
      from unnest(p_items) i
      join wf.task t on t.node_execution_id = i.node_execution_id
      join wf.workflow_node n on n.node_id = t.node_id
      join wf.workflow_version v on v.workflow_version_id = n.workflow_version_id;
    loop
        if not v_fails_late or v_shared <@ v_exclusive then
            return query select * from wf.wf_submit_attempt(p_worker_id, p_items, v_shared, v_exclusive);
            return;
        end if;
        begin
            return query select * from wf.wf_submit_attempt(p_worker_id, p_items, v_shared, v_exclusive);
            return;
        exception when sqlstate 'WFX01' then
            get stacked diagnostics v_detail = pg_exception_detail;
            v_exclusive := v_exclusive || v_detail::bigint;
        end;
    end loop;
end
$$;

-- Whether an instance has a deadline that is due.
create or replace function wf.wf_has_due(p_workflow_instance_id bigint) returns boolean
language sql stable set search_path = pg_catalog, pg_temp as $$
    select exists (select 1 from wf.timer t
                    where t.workflow_instance_id = p_workflow_instance_id
                      and t.due_at <= wf.wf_now())
        or exists (select 1 from wf.task k
                    where k.workflow_instance_id = p_workflow_instance_id
                      and k.deadline_at <= wf.wf_now())
$$;

-- Takes the gates of a call in ascending order, each in its strength.
create or replace function wf.wf_take_gates(p_instances bigint[], p_exclusive bigint[])
returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_id bigint;
begin
    if cardinality(p_exclusive) = 0 then
        perform 1 from wf.workflow_instance i
          where i.workflow_instance_id = any (p_instances)
          order by i.workflow_instance_id
            for key share;
        return;
    end if;
    foreach v_id in array array(select distinct u from unnest(p_instances || p_exclusive) u order by u)
    loop
        if v_id = any (p_exclusive) then
            perform 1 from wf.workflow_instance i where i.workflow_instance_id = v_id for update;
        else
            perform 1 from wf.workflow_instance i where i.workflow_instance_id = v_id for key share;
        end if;
    end loop;
end
$$;

-- One attempt at a submit: takes the gates, completes what is under a current lease, runs the
-- continuation, and answers every item.
create or replace function wf.wf_submit_attempt(
    p_worker_id text, p_items wf.submit_item[], p_instances bigint[], p_exclusive bigint[]
)
returns table (item_position integer, accepted boolean, instance_status text,
               next_ready_count integer, reason text)
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_now   timestamptz;
    v_id    bigint;
    v_done  integer[];
    v_again integer[];
    v_keys  bigint[];
    v_level wf.agenda_entry[];
begin
    perform wf.wf_take_gates(p_instances, p_exclusive);
    v_now := wf.wf_now();
    foreach v_id in array p_exclusive loop
        -- What is due wins over what is submitted now (R21).
        perform wf.wf_apply_due(v_id, v_now)
          from wf.workflow_instance i
         where i.workflow_instance_id = v_id and i.status = 'RUNNING';
    end loop;
    v_again := wf.wf_retry_items(p_worker_id, p_items, v_now);
    -- Every entry is S until its `set`s have run; wf_complete_items turns the failed ones.
    with gone as (
        delete from wf.task t
         using unnest(p_items) i
         where t.node_execution_id = i.node_execution_id
           and t.worker_id = p_worker_id
           and t.lease_token = coalesce(i.lease_token, t.lease_token)
        returning t.*, i.position, i.result_code, i.message, i.output_json
    ), ended as (
        update wf.node_execution e
           set status = case when g.result_code >= 0 then 'SUCCEEDED' else 'FAILED' end,
               result_code = g.result_code,
               engine_error_message = case when g.result_code >= 0 then null
                   else coalesce(g.message, 'result code ' || g.result_code) end,
               error_execution_id = case when g.result_code >= 0 then null
                                         else e.node_execution_id end,
               output_json = g.output_json, input_json = g.input_json, worker_id = g.worker_id,
               attempt_no = g.attempt_no, delivery_count = g.delivery_count,
               last_token = g.lease_token, answered_code = g.result_code, answer = 'OK',
               started_at = g.claimed_at, ended_at = v_now
          from gone g
          join wf.workflow_node n on n.node_id = g.node_id
         where e.node_execution_id = g.node_execution_id
        returning g.position, e.node_execution_id, e.workflow_instance_id,
                  case when g.result_code < 0 then 'F'
                       when n.success_may_close then 'J' else 'S' end as kind,
                  g.affinity_key
    )
    select coalesce(array_agg(row(x.position, x.node_execution_id, x.workflow_instance_id, x.kind)
                              ::wf.agenda_entry order by x.position), '{}'),
           coalesce(array_agg(x.position), '{}'),
           coalesce(array_agg(x.node_execution_id) filter (
               where x.affinity_key is not null and x.kind <> 'F'), '{}')
      into v_level, v_done, v_keys
      from ended x;
    v_level := wf.wf_complete_items(v_level);
    if cardinality(v_level) > 0 then
        perform wf.wf_remember_workers(v_keys);
        perform wf.wf_engine_run(v_level, p_exclusive, v_now);
    end if;
    return query
    select i.position, a.accepted or i.position = any (v_again), a.instance_status,
           case when i.position = any (v_done) then
               (select count(*)::integer from wf.task t
                 where t.workflow_instance_id = a.workflow_instance_id and t.worker_id is null
                   and t.available_at = v_now) else 0 end,
           case when i.position = any (v_done || v_again) then 'OK' else a.reason end
      from unnest(p_items) i
     cross join lateral wf.wf_submit_answer(i, p_worker_id) a
     order by i.position;
end
$$;

-- Puts the tasks back to READY whose failure their retry policy takes; answers the positions of those
-- items. Locks: the task rows.
create or replace function wf.wf_retry_items(
    p_worker_id text, p_items wf.submit_item[], p_now timestamptz
) returns integer[]
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_item wf.submit_item;
    v_task wf.task;
    v_node record;
    v_done integer[] := '{}';
begin
    foreach v_item in array p_items loop
        continue when v_item.result_code >= 0;
        select t.* into v_task from wf.task t
         where t.node_execution_id = v_item.node_execution_id and t.worker_id = p_worker_id
           and t.lease_token = coalesce(v_item.lease_token, t.lease_token) for update;
        continue when not found;
        select n.retry_json into v_node from wf.workflow_node n where n.node_id = v_task.node_id;
        if wf.wf_retry_takes(v_node.retry_json, v_task.attempt_no, v_item.result_code::text) then
            perform wf.wf_retry_task(v_task, v_node.retry_json, v_item.result_code, null,
                coalesce(v_item.message, 'result code ' || v_item.result_code), v_item.output_json,
                p_now);
            v_done := v_done || v_item.position;
        end if;
    end loop;
    return v_done;
end
$$;

-- Runs the `set`s of completed ACTIONs. One that fails fails its node (R20); the entry becomes F.
create or replace function wf.wf_complete_items(p_level wf.agenda_entry[])
returns wf.agenda_entry[]
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_level wf.agenda_entry[] := p_level;
    v_row   record;
    v_error record;
begin
    for v_row in
        select l.position, l.node_execution_id, e.output_json, e.result_code
          from unnest(p_level) with ordinality
               l(ordinal, node_execution_id, workflow_instance_id, kind, position)
          join wf.node_execution e on e.node_execution_id = l.node_execution_id
          join wf.workflow_node n on n.node_id = e.node_id
         where l.kind in ('S', 'J') and n.has_output_bindings
         order by l.position
    loop
        select * into v_error
          from wf.wf_apply_output_bindings(v_row.node_execution_id, v_row.output_json,
                                           v_row.result_code, null);
        if v_error.error_code is not null then
            v_level[v_row.position].kind := 'F';
            perform wf.wf_fail_completed(v_row.node_execution_id, v_error.error_code,
                                         v_error.error_message);
        end if;
    end loop;
    return v_level;
end
$$;

-- Turns an execution that has just succeeded into one that failed by an engine error; its output
-- stays.
create or replace function wf.wf_fail_completed(
    p_node_execution_id bigint, p_engine_error_code integer, p_text text
) returns void
language sql set search_path = pg_catalog, pg_temp as $$
    update wf.node_execution e
       set status = 'FAILED', result_code = null, engine_error_code = p_engine_error_code,
           engine_error_message = wf.wf_execution_path(p_node_execution_id) || ': ' || p_text,
           error_execution_id = p_node_execution_id
     where e.node_execution_id = p_node_execution_id
$$;

-- What a submit is answered when it completed nothing, and the instance's status in any case:
-- REPEATED the same result again under a token already answered; CANCELLED and ENDED say why there
-- is no lease any more; STALE another token is current, or the execution is not this worker's.
create or replace function wf.wf_submit_answer(
    p_item wf.submit_item, p_worker_id text,
    out accepted boolean, out instance_status text, out reason text,
    out workflow_instance_id bigint
)
language sql stable set search_path = pg_catalog, pg_temp as $$
    select q.answer in ('OK', 'REPEATED'), q.status, q.answer, q.workflow_instance_id
      from (select i.status, i.workflow_instance_id,
                   case when e.worker_id = p_worker_id and e.answer = 'OK'
                             and e.last_token = coalesce(p_item.lease_token, e.last_token)
                             and e.answered_code = p_item.result_code
                             and e.output_json is not distinct from p_item.output_json
                        then 'REPEATED'
                        when exists (
                            select 1 from wf.node_attempt t
                             where t.node_execution_id = e.node_execution_id
                               and t.lease_token = p_item.lease_token
                               and t.worker_id = p_worker_id
                               and t.result_code = p_item.result_code
                               and t.output_hash = wf.wf_output_hash(p_item.output_json))
                        then 'REPEATED'
                        when e.status = 'CANCELLED' then 'CANCELLED'
                        when i.status in ('SUCCEEDED', 'FAILED', 'CANCELLED') then 'ENDED'
                        else 'STALE' end as answer
              from (select 1) one
              left join wf.node_execution e on e.node_execution_id = (p_item).node_execution_id
              left join wf.workflow_instance i on i.workflow_instance_id = e.workflow_instance_id
           ) q
$$;

-- Checks what every submit must hold. Errors: 20002 unknown execution, 20004 no result code,
-- 20005 output over 16 MB.
create or replace function wf.wf_check_submit(p_items wf.submit_item[]) returns void
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
declare
    v_item wf.submit_item;
begin
    foreach v_item in array p_items loop
        if v_item.result_code is null then
            perform wf.wf_raise(20004, 'result_code must be a number');
        end if;
        if pg_column_size(v_item.output_json) > 16777216 then
            perform wf.wf_raise(20005, 'the output has more than 16 MB');
        end if;
        if v_item.node_execution_id is null or not exists (
            select 1 from wf.node_execution e
             where e.node_execution_id = v_item.node_execution_id) then
            perform wf.wf_raise(20002, format('there is no node execution %s',
                                              v_item.node_execution_id));
        end if;
    end loop;
end
$$;

-- Submits a result. A negative result_code fails the node, with p_message if there is one.
-- Answers one row; reason is OK, REPEATED, STALE, CANCELLED or ENDED (R4).
-- Errors: 20001, 20002, 20004, 20005.
create or replace function wf.sp_worker_submit_result(
    p_node_execution_id bigint, p_worker_id text, p_worker_token text, p_result_code integer,
    p_output_json jsonb default null, p_lease_token bigint default null,
    p_message text default null
) returns table (accepted boolean, instance_status text, next_ready_count integer, reason text)
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan as $$
declare
    v_items wf.submit_item[] := array[row(1, p_node_execution_id, p_lease_token, p_result_code,
                                          p_message, p_output_json)::wf.submit_item];
begin
    perform wf.wf_worker_authenticate(p_worker_id, p_worker_token);
    perform wf.wf_check_submit(v_items);
    return query
    select s.accepted, s.instance_status, s.next_ready_count, s.reason
      from wf.wf_submit(p_worker_id, v_items) s;
end
$$;

-- Whether a value has the shape of one result of a batch submit, its numbers within their columns.
create or replace function wf.wf_is_result(p_value jsonb) returns boolean
language sql immutable set search_path = pg_catalog, pg_temp as $$
    select coalesce(
        jsonb_typeof(p_value) = 'object'
        and p_value ->> 'node_execution_id' ~ '^-?[0-9]{1,18}$'
        and p_value ->> 'result_code' ~ '^-?[0-9]{1,9}$'
        and coalesce(p_value ->> 'lease_token' ~ '^-?[0-9]{1,18}$', true)
        and coalesce(jsonb_typeof(p_value -> 'message') in ('string', 'null'), true), false)
$$;

-- Submits many results, an array of {node_execution_id, lease_token, result_code, output, message};
-- one row per element, in their order. All or nothing: an error refuses the whole batch.
create or replace function wf.sp_worker_submit_results(
    p_worker_id text, p_worker_token text, p_results_json jsonb
) returns table (node_execution_id bigint, accepted boolean, instance_status text,
                 next_ready_count integer, reason text)
language plpgsql security definer set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan as $$
#variable_conflict use_column
declare
    v_items wf.submit_item[];
    v_bad   bigint;
begin
    perform wf.wf_worker_authenticate(p_worker_id, p_worker_token);
    if p_results_json is null or jsonb_typeof(p_results_json) <> 'array' then
        perform wf.wf_raise(20004, 'results_json must be an array');
    end if;
    select r.position into v_bad
      from jsonb_array_elements(p_results_json) with ordinality r(value, position)
     where not wf.wf_is_result(r.value)
     order by r.position limit 1;
    if v_bad is not null then
        perform wf.wf_raise(20004, format('result %s must be an object with the integers '
            'node_execution_id and result_code, and may have lease_token (an integer), output and '
            'message (a string)', v_bad));
    end if;
    select coalesce(array_agg(row(r.position, (r.value ->> 'node_execution_id')::bigint,
                         (r.value ->> 'lease_token')::bigint, (r.value ->> 'result_code')::integer,
                         r.value ->> 'message', r.value -> 'output')::wf.submit_item
                     order by r.position), '{}')
      into v_items
      from jsonb_array_elements(p_results_json) with ordinality r(value, position);
    perform wf.wf_check_submit(v_items);
    return query
    select i.node_execution_id, s.accepted, s.instance_status, s.next_ready_count, s.reason
      from wf.wf_submit(p_worker_id, v_items) s
      join unnest(v_items) i on i.position = s.item_position
     order by i.position;
end
$$;

-- Reports that a task failed: a submit with p_error_code if it is negative, else -1.
create or replace function wf.sp_worker_fail_task(
    p_node_execution_id bigint, p_worker_id text, p_worker_token text, p_error_code integer,
    p_error_message text, p_lease_token bigint default null
) returns table (accepted boolean, instance_status text, next_ready_count integer, reason text)
language sql security definer set search_path = pg_catalog, pg_temp as $$
    select s.accepted, s.instance_status, s.next_ready_count, s.reason
      from wf.sp_worker_submit_result(p_node_execution_id, p_worker_id, p_worker_token,
               case when p_error_code < 0 then p_error_code else -1 end, null, p_lease_token,
               p_error_message) s
$$;

-- Extends a lease. rows_updated 0 with CANCEL: the lease is gone and the work may stop.
-- Locks: the task's row only.
create or replace function wf.sp_worker_heartbeat(
    p_node_execution_id bigint, p_worker_id text, p_worker_token text,
    p_extend_seconds integer default 300, p_lease_token bigint default null
) returns table (rows_updated integer, desired_state text, command text)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    v_now  timestamptz;
    v_rows integer;
begin
    perform wf.wf_worker_authenticate(p_worker_id, p_worker_token);
    if p_extend_seconds is null or p_extend_seconds not between 1 and 86400 then
        perform wf.wf_raise(20004, 'extend_seconds must be between 1 and 86400');
    end if;
    v_now := wf.wf_now();
    update wf.task t
       set lease_until = greatest(t.lease_until, v_now + make_interval(secs => p_extend_seconds))
     where t.node_execution_id = p_node_execution_id and t.worker_id = p_worker_id
       and t.lease_token = coalesce(p_lease_token, t.lease_token);
    get diagnostics v_rows = row_count;
    update wf.worker_presence p set last_seen_at = v_now where p.worker_id = p_worker_id;
    return query
    select v_rows, w.desired_state,
           case when v_rows = 0 then 'CANCEL'
                when w.desired_state = 'STOPPING' then 'STOP'
                when w.desired_state = 'DRAINING' then 'DRAIN'
                else 'NONE' end
      from wf.worker w where w.worker_id = p_worker_id;
end
$$;

-- Gives a task back unharmed: READY at once, no attempt used (R28).
create or replace function wf.sp_worker_release_task(
    p_node_execution_id bigint, p_worker_id text, p_worker_token text,
    p_lease_token bigint default null
) returns table (rows_updated integer)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    v_rows integer;
begin
    perform wf.wf_worker_authenticate(p_worker_id, p_worker_token);
    update wf.task t
       set worker_id = null, lease_until = null, claimed_at = null, deadline_at = null,
           delivery_count = t.delivery_count - 1
     where t.node_execution_id = p_node_execution_id and t.worker_id = p_worker_id
       and t.lease_token = coalesce(p_lease_token, t.lease_token);
    get diagnostics v_rows = row_count;
    return query select v_rows;
end
$$;

-- Leases whose worker went silent. Twin: mssql/wf_reclaim_expired_leases.sql

-- Takes back up to p_limit leases that have ended (R20). A loss counts as a failed attempt when the
-- node's retry policy takes it; otherwise the same attempt is offered again, up to the action's
-- max_deliveries, and then, or at the first loss of an action that is not idempotent, the node fails
-- with 10014. Answers how many leases were taken back.
-- Locks: a task row with SKIP LOCKED; where an attempt ends, first its instance's gate exclusive,
-- also with SKIP LOCKED, so that no call ever waits here.
create or replace function wf.wf_reclaim_expired_leases(p_limit integer default 100)
returns integer
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_now   timestamptz := wf.wf_now();
    v_row   record;
    v_count integer := 0;
begin
    for v_row in
        select t.node_execution_id, t.workflow_instance_id,
               wf.wf_retry_takes(n.retry_json, t.attempt_no, 'lease')
               or t.delivery_count >= a.max_deliveries or not coalesce(r.idempotent, true) as is_lost
          from wf.task t
          join wf.workflow_action a on a.action_id = t.action_id
          join wf.workflow_node n on n.node_id = t.node_id
          left join wf.workflow_action_revision r
            on r.action_name = n.action_name and r.revision = n.action_revision
         where t.worker_id is not null and t.lease_until < v_now
         order by t.lease_until, t.node_execution_id
         limit least(greatest(p_limit, 0), 10000)
    loop
        if v_row.is_lost then
            -- In a savepoint: whatever one instance makes of its loss, the others are taken back.
            begin
                v_count := v_count + wf.wf_lose_task(v_row.node_execution_id,
                                                     v_row.workflow_instance_id, v_now);
            exception when others then
                raise warning 'instance % could not be told of a lost lease: %',
                    v_row.workflow_instance_id, sqlerrm;
            end;
            continue;
        end if;
        update wf.task t
           set worker_id = null, lease_until = null, deadline_at = null
         where t.node_execution_id = (
            select o.node_execution_id from wf.task o
             where o.node_execution_id = v_row.node_execution_id
               and o.worker_id is not null and o.lease_until < v_now
               for update skip locked);
        if found then
            v_count := v_count + 1;
        end if;
    end loop;
    return v_count;
end
$$;

-- Ends an attempt whose lease was lost (10014). Does nothing when another call holds the instance's
-- gate or the lease was extended meanwhile.
create or replace function wf.wf_lose_task(
    p_node_execution_id bigint, p_workflow_instance_id bigint, p_now timestamptz
) returns integer
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_task  wf.task;
    v_retry jsonb;
begin
    perform 1 from wf.workflow_instance i
      where i.workflow_instance_id = p_workflow_instance_id for update skip locked;
    if not found then
        return 0;
    end if;
    select t.* into v_task from wf.task t
     where t.node_execution_id = p_node_execution_id and t.lease_until < p_now for update;
    if not found then
        return 0;
    end if;
    select n.retry_json into v_retry from wf.workflow_node n where n.node_id = v_task.node_id;
    perform wf.wf_fail_attempt(v_task, v_retry, 'lease', 10014,
                               'the lease was lost after its last delivery', p_now);
    return 1;
end
$$;

-- Checks that the programs of a version can be run: known instructions, a stack that ends at one value,
-- jumps that go forward and stay inside (R10). Twin: mssql/wf_verify_programs.sql
--
-- The compiler's verify_spec finds the same and more; this is for graphs that came without it.

-- Whether a value is a reference instruction: ["var", name, owner, steps], ["ctx", root, steps],
-- ["out", steps], ["event", steps] or ["code"]. A step is a string, an integer or a reference.
create or replace function wf.wf_is_reference(p_value jsonb) returns boolean
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
declare
    v_pending jsonb[] := array[p_value];
    v_ref     jsonb;
    v_steps   jsonb;
    v_nested  jsonb[];
begin
    while cardinality(v_pending) > 0 loop
        v_ref := v_pending[1];
        v_pending := v_pending[2:];
        if jsonb_typeof(v_ref) <> 'array' or jsonb_typeof(v_ref -> 0) <> 'string' then
            return false;
        end if;
        continue when v_ref = '["code"]';
        if v_ref ->> 0 = 'var' then
            if jsonb_array_length(v_ref) <> 4 or jsonb_typeof(v_ref -> 1) <> 'string'
               or jsonb_typeof(v_ref -> 2) <> 'string' then
                return false;
            end if;
        elsif v_ref ->> 0 = 'ctx' then
            if jsonb_array_length(v_ref) <> 3 or jsonb_typeof(v_ref -> 1) <> 'string' then
                return false;
            end if;
        elsif v_ref ->> 0 not in ('out', 'event') or jsonb_array_length(v_ref) <> 2 then
            return false;
        end if;
        v_steps := v_ref -> -1;
        if jsonb_typeof(v_steps) <> 'array' or exists (
            select 1 from jsonb_array_elements(v_steps) s
             where jsonb_typeof(s.value) not in ('string', 'number', 'array')) then
            return false;
        end if;
        select array_agg(s.value) into v_nested
          from jsonb_array_elements(v_steps) s where jsonb_typeof(s.value) = 'array';
        v_pending := v_pending || v_nested;
    end loop;
    return true;
end
$$;

-- What is wrong with a program, or null.
create or replace function wf.wf_program_problem(p_program jsonb) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
declare
    v_step  jsonb;
    v_op    text;
    v_count integer;
    v_size  integer;
    v_depth integer := 0;
    v_at    integer := 0;
begin
    if jsonb_typeof(p_program) is distinct from 'array' or jsonb_array_length(p_program) = 0 then
        return 'a program is an array of instructions';
    end if;
    v_size := jsonb_array_length(p_program);
    for v_step in select s.value from jsonb_array_elements(p_program) s loop
        v_at := v_at + 1;
        if jsonb_typeof(v_step) <> 'array' or jsonb_typeof(v_step -> 0) is distinct from 'string' then
            return format('instruction %s is no array that begins with a name', v_at);
        end if;
        v_op := v_step ->> 0;
        if v_op in ('var', 'ctx', 'out', 'code', 'event') then
            if not wf.wf_is_reference(v_step) then
                return format('instruction %s is no reference', v_at);
            end if;
            v_depth := v_depth + 1;
        elsif v_op = 'defined' then
            if jsonb_array_length(v_step) <> 2 or not wf.wf_is_reference(v_step -> 1) then
                return format('instruction %s (defined) has no reference', v_at);
            end if;
            v_depth := v_depth + 1;
        elsif v_op = 'lit' and jsonb_array_length(v_step) = 2 then
            v_depth := v_depth + 1;
        elsif v_op in ('not', 'neg', 'len', 'bool') and jsonb_array_length(v_step) = 1 then
            if v_depth < 1 then
                return format('instruction %s (%s) has no operand', v_at, v_op);
            end if;
        elsif v_op in ('eq', 'ne', 'lt', 'le', 'gt', 'ge', 'in', 'add', 'sub', 'mul', 'div', 'mod')
              and jsonb_array_length(v_step) = 1 then
            if v_depth < 2 then
                return format('instruction %s (%s) has no two operands', v_at, v_op);
            end if;
            v_depth := v_depth - 1;
        elsif v_op in ('jf', 'jt', 'alt') and v_step ->> 1 ~ '^[0-9]{1,6}$' then
            v_count := (v_step ->> 1)::integer;
            if v_depth < 1 or v_count < 1 or v_at + v_count > v_size then
                return format('instruction %s (%s) jumps out of the program', v_at, v_op);
            end if;
            v_depth := v_depth - 1;
        elsif v_op in ('arr', 'cat') and v_step ->> 1 ~ '^[0-9]{1,6}$' then
            v_count := (v_step ->> 1)::integer;
            if v_depth < v_count then
                return format('instruction %s (%s) takes more than there is', v_at, v_op);
            end if;
            v_depth := v_depth - v_count + 1;
        elsif v_op = 'obj' and jsonb_typeof(v_step -> 1) = 'array' then
            v_count := jsonb_array_length(v_step -> 1);
            if v_depth < v_count then
                return format('instruction %s (obj) takes more than there is', v_at);
            end if;
            v_depth := v_depth - v_count + 1;
        else
            return format('instruction %s (%s) is not known', v_at, left(v_op, 40));
        end if;
    end loop;
    if v_depth <> 1 then
        return format('it leaves %s values', v_depth);
    end if;
    return null;
end
$$;

-- The first program of a version that cannot be run, as text for a refusal, or null.
create or replace function wf.wf_verify_programs(p_workflow_version_id bigint) returns text
language sql stable set search_path = pg_catalog, pg_temp as $$
    select format('the program of %s (%s): %s', p.node_key, p.place, x.problem)
      from (select b.node_key, 'set or collect ' || b.name as place, b.program_json
              from wf.variable_output_binding b
             where b.workflow_version_id = p_workflow_version_id
            union all
            select b.node_key, 'input ' || b.pointer, b.program_json
              from wf.workflow_input_binding b
             where b.workflow_version_id = p_workflow_version_id
            union all
            select d.owner_key, 'variable ' || d.name, d.program_json
              from wf.node_scope_default d
             where d.workflow_version_id = p_workflow_version_id and d.program_json is not null
            union all
            select c.node_key, 'collection', c.program_json
              from wf.collection_binding c
             where c.workflow_version_id = p_workflow_version_id
            union all
            select n.node_key, a.key, a.value
              from wf.workflow_node n
             cross join lateral jsonb_each(n.attributes_json) a
             where n.workflow_version_id = p_workflow_version_id
               and a.key in ('condition', 'subject', 'count', 'correlate')
            union all
            select n.node_key, 'fail', n.attributes_json -> 'fail' -> 'message'
              from wf.workflow_node n
             where n.workflow_version_id = p_workflow_version_id and n.attributes_json ? 'fail'
            union all
            select 'output', o.value ->> 'name', o.value -> 'program'
              from wf.workflow_version v
             cross join lateral jsonb_array_elements(v.outputs_json) o
             where v.workflow_version_id = p_workflow_version_id) p
     cross join lateral (select wf.wf_program_problem(p.program_json) as problem) x
     where x.problem is not null
     limit 1
$$;

-- Publishing a version: the last step of every deploy. Twin: mssql/wf_publish_workflow_version.sql

-- Which kinds of edge a node may have to its children, and how many of each.
create or replace view wf.edge_rule as
select r.node_type, r.branch_kind, r.max_count
  from (values ('SEQUENCE', 'SEQUENCE', null::integer), ('SEQUENCE', 'ON_ERROR', 1),
               ('SEQUENCE', 'FINALLY', 1), ('PARALLEL', 'PARALLEL', null), ('IF', 'THEN', 1),
               ('IF', 'ELSE', 1), ('SWITCH', 'CASE', null), ('SWITCH', 'DEFAULT', 1),
               ('REPEAT', 'BODY', 1), ('WHILE', 'BODY', 1), ('FOREACH', 'BODY', 1),
               ('WAIT_EVENT', 'TIMEOUT', 1)) r(node_type, branch_kind, max_count);

-- Refuses rows for a version that is published already (R3).
create or replace function wf.wf_refuse_published() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    if exists (select 1 from wf.workflow_version v
                where v.workflow_version_id = new.workflow_version_id
                  and v.published_at is not null) then
        perform wf.wf_raise(20003, 'the version is published; its rows never change');
    end if;
    return new;
end
$$;

-- Refuses a name that differs from another only in case (R19): on a case-insensitive SQL Server the
-- two would be one. Deploys follow one another, so none slips in between.
create or replace function wf.wf_refuse_folded_name() returns trigger
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_other text;
begin
    select d.name into v_other
      from wf.workflow_def d where lower(d.name) = lower(new.name) and d.name <> new.name;
    if found then
        perform wf.wf_raise(20010, format('workflow %s differs from workflow %s only in case',
                                          new.name, v_other));
    end if;
    return new;
end
$$;

create or replace trigger tr_workflow_def_name before insert on wf.workflow_def
    for each row execute function wf.wf_refuse_folded_name();
create or replace trigger tr_workflow_node_published before insert on wf.workflow_node
    for each row execute function wf.wf_refuse_published();
create or replace trigger tr_workflow_edge_published before insert on wf.workflow_edge
    for each row execute function wf.wf_refuse_published();
create or replace trigger tr_data_type_published before insert on wf.data_type
    for each row execute function wf.wf_refuse_published();
create or replace trigger tr_workflow_input_template_published before insert on wf.workflow_input_template
    for each row execute function wf.wf_refuse_published();
create or replace trigger tr_workflow_input_binding_published before insert on wf.workflow_input_binding
    for each row execute function wf.wf_refuse_published();
create or replace trigger tr_variable_output_binding_published before insert on wf.variable_output_binding
    for each row execute function wf.wf_refuse_published();
create or replace trigger tr_node_scope_default_published before insert on wf.node_scope_default
    for each row execute function wf.wf_refuse_published();
create or replace trigger tr_collection_binding_published before insert on wf.collection_binding
    for each row execute function wf.wf_refuse_published();
create or replace trigger tr_event_subscription_published before insert on wf.event_subscription
    for each row execute function wf.wf_refuse_published();
create or replace trigger tr_workflow_version_action_published before insert on wf.workflow_version_action
    for each row execute function wf.wf_refuse_published();

-- Source positions, source text and description are no part of a version's content (R11), so a
-- deploy of known content refreshes them. Errors: 20002 no such version.
create or replace function wf.wf_set_version_notes(
    p_name text, p_content_hash text, p_source_map jsonb, p_description text
) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    update wf.workflow_version v
       set source_map = p_source_map
      from wf.workflow_def d
     where d.name = p_name and v.workflow_def_id = d.workflow_def_id
       and v.content_hash = p_content_hash;
    if not found then
        perform wf.wf_raise(20002, format('workflow %s has no version %s',
                                          left(p_name, 200), left(p_content_hash, 64)));
    end if;
    update wf.workflow_def d set description = p_description
     where d.name = p_name and d.description is distinct from p_description;
end
$$;

-- Makes the version with this content visible: verifies its graph, fills the derived columns, takes
-- the next version number and activates it (p_activate). For a version that is published already it
-- only activates: that is how a deploy of known content rolls back.
--
-- Answers one row: workflow_version_id, version_no, was_new.
-- Locks: the workflow_def row, so that two deploys of one workflow follow one another.
-- Errors: 20002 no such version; 20006 unknown spec_format; 20007 the graph is refused; 20010 the
-- catalog's dispatch columns differ from the stored ones and p_update_actions is false (R24).
create or replace function wf.wf_publish_workflow_version(
    p_name text, p_content_hash text, p_activate boolean default true,
    p_update_actions boolean default false
) returns table (workflow_version_id bigint, version_no integer, was_new boolean)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    v_def_id  bigint;
    v_version wf.workflow_version;
    v_is_new  boolean;
begin
    select d.workflow_def_id into v_def_id
      from wf.workflow_def d where d.name = p_name for update;
    select v.* into v_version
      from wf.workflow_version v
     where v.workflow_def_id = v_def_id and v.content_hash = p_content_hash;
    if not found then
        perform wf.wf_raise(20002, format('workflow %s has no version %s',
                                          left(p_name, 200), left(p_content_hash, 64)));
    end if;
    perform wf.wf_publish_actions(v_version.workflow_version_id, p_update_actions);
    v_is_new := v_version.published_at is null;
    if v_is_new then
        if v_version.spec_format <> 1 then
            perform wf.wf_raise(20006, format('this runtime does not know spec_format %s',
                                              v_version.spec_format));
        end if;
        perform wf.wf_verify_graph(v_version.workflow_version_id);
        perform wf.wf_derive_version(v_version.workflow_version_id);
        update wf.workflow_version v
           set published_at = wf.wf_now(),
               version_no = 1 + coalesce((select max(o.version_no) from wf.workflow_version o
                                           where o.workflow_def_id = v_def_id), 0)
         where v.workflow_version_id = v_version.workflow_version_id
        returning v.* into v_version;
    end if;
    if p_activate and not v_version.is_active then
        update wf.workflow_version v set is_active = false
         where v.workflow_def_id = v_def_id and v.is_active;
        update wf.workflow_version v set is_active = true
         where v.workflow_version_id = v_version.workflow_version_id;
        insert into wf.audit_log (at, what, detail_json)
        values (wf.wf_now(), 'activate', jsonb_build_object(
            'workflow', p_name, 'version_no', v_version.version_no));
    end if;
    return query select v_version.workflow_version_id, v_version.version_no, v_is_new;
end
$$;

-- Compares the dispatch columns of the version's catalog with the live ones of each action.
-- A difference is refused with 20010, or taken over with a row in wf.audit_log for each action.
create or replace function wf.wf_publish_actions(p_workflow_version_id bigint, p_update boolean)
returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_row record;
begin
    for v_row in
        select c.action_name, to_jsonb(c) - '{workflow_version_id,revision}'::text[] as catalog_json,
               to_jsonb(a) - '{action_id,paused}'::text[] as stored_json
          from wf.workflow_version_action c
          join wf.workflow_action a on a.action_name = c.action_name
         where c.workflow_version_id = p_workflow_version_id
           and to_jsonb(c) - '{workflow_version_id,revision}'::text[]
               <> to_jsonb(a) - '{action_id,paused}'::text[]
         order by c.action_name
    loop
        if not p_update then
            perform wf.wf_raise(20010, format(
                'the catalog says of action %s: %s; this database has: %s', v_row.action_name,
                wf.wf_json_difference(v_row.catalog_json, v_row.stored_json),
                wf.wf_json_difference(v_row.stored_json, v_row.catalog_json)));
        end if;
        update wf.workflow_action a
           set capability = c.capability, max_per_worker = c.max_per_worker,
               exclusive_worker = c.exclusive_worker, affinity_key_field = c.affinity_key_field,
               prefer_previous_worker = c.prefer_previous_worker,
               prefer_continue_group = c.prefer_continue_group,
               require_previous_worker = c.require_previous_worker,
               max_concurrent = c.max_concurrent, rate_per_minute = c.rate_per_minute,
               max_deliveries = c.max_deliveries
          from wf.workflow_version_action c
         where c.workflow_version_id = p_workflow_version_id
           and c.action_name = v_row.action_name and a.action_name = v_row.action_name;
        insert into wf.audit_log (at, what, detail_json)
        values (wf.wf_now(), 'update action', jsonb_build_object(
            'action', v_row.action_name, 'from', v_row.stored_json, 'to', v_row.catalog_json));
    end loop;
end
$$;

-- The entries of p_one that p_other has not, or has otherwise, as text for a message.
create or replace function wf.wf_json_difference(p_one jsonb, p_other jsonb) returns text
language sql immutable set search_path = pg_catalog, pg_temp as $$
    select coalesce(string_agg(format('%s %s', e.key, e.value), ', ' order by e.key), 'nothing')
      from jsonb_each(p_one) e
     where p_other -> e.key is distinct from e.value
$$;

-- Verifies what the rows of a version must be for the engine to run them. Errors: 20007 with what
-- was found; the compiler's own check (verify_spec) finds the same and more.
create or replace function wf.wf_verify_graph(p_workflow_version_id bigint) returns void
language plpgsql set search_path = pg_catalog, pg_temp set enable_nestloop = off as $$
declare
    v_found text;
begin
    select case when count(*) = 0 then 'it has no root'
                else 'it has several roots: ' || string_agg(n.node_key, ', ' order by n.node_order)
           end
      into v_found
      from wf.workflow_node n
     where n.workflow_version_id = p_workflow_version_id
       and not exists (select 1 from wf.workflow_edge d
                        where d.workflow_version_id = n.workflow_version_id
                          and d.child_key = n.node_key)
    having count(*) <> 1;
    if v_found is not null then
        perform wf.wf_raise(20007, 'the graph is refused: ' || v_found);
    end if;
    select format('a %s node (%s) may not have an edge of kind %s', p.node_type, p.node_key,
                  d.branch_kind)
      into v_found
      from wf.workflow_edge d
      join wf.workflow_node p
        on p.workflow_version_id = d.workflow_version_id and p.node_key = d.parent_key
      left join wf.edge_rule r on r.node_type = p.node_type and r.branch_kind = d.branch_kind
     where d.workflow_version_id = p_workflow_version_id and r.node_type is null
     order by p.node_order limit 1;
    if v_found is null then
        select format('%s has %s edges of kind %s', d.parent_key, count(*), d.branch_kind)
          into v_found
          from wf.workflow_edge d
          join wf.workflow_node p
            on p.workflow_version_id = d.workflow_version_id and p.node_key = d.parent_key
          join wf.edge_rule r on r.node_type = p.node_type and r.branch_kind = d.branch_kind
         where d.workflow_version_id = p_workflow_version_id
         group by d.parent_key, d.branch_kind, r.max_count
        having count(*) > r.max_count
         order by d.parent_key limit 1;
    end if;
    if v_found is null then
        select format('the children of %s are not numbered from 0 without a gap', d.parent_key)
          into v_found
          from wf.workflow_edge d
         where d.workflow_version_id = p_workflow_version_id
         group by d.parent_key
        having max(d.child_order) <> count(*) - 1 or min(d.child_order) <> 0
         order by d.parent_key limit 1;
    end if;
    if v_found is null then
        select format('%s has the case value %s twice', d.parent_key, c.value)
          into v_found
          from wf.workflow_edge d
         cross join lateral jsonb_array_elements(d.case_value) c
         where d.workflow_version_id = p_workflow_version_id and d.branch_kind = 'CASE'
         group by d.parent_key, c.value
        having count(*) > 1
         order by d.parent_key limit 1;
    end if;
    if v_found is null then
        v_found := wf.wf_verify_reachable(p_workflow_version_id);
    end if;
    if v_found is null then
        v_found := wf.wf_verify_programs(p_workflow_version_id);
    end if;
    if v_found is not null then
        perform wf.wf_raise(20007, 'the graph is refused: ' || v_found);
    end if;
end
$$;

-- Sets depth and parent of every node that the root reaches and says which it does not reach (a
-- cycle beside the tree), or null. Every node has at most one parent, so the walk ends.
create or replace function wf.wf_verify_reachable(p_workflow_version_id bigint) returns text
language plpgsql set search_path = pg_catalog, pg_temp set enable_nestloop = off as $$
declare
    v_found text;
begin
    with recursive tree as (
        select n.node_id, n.node_key, n.node_type, 0 as depth, null::bigint as parent_node_id,
               null::text as parent_type, null::text as branch_kind, null::integer as child_order
          from wf.workflow_node n
         where n.workflow_version_id = p_workflow_version_id
           and not exists (select 1 from wf.workflow_edge d
                            where d.workflow_version_id = n.workflow_version_id
                              and d.child_key = n.node_key)
        union all
        select c.node_id, c.node_key, c.node_type, t.depth + 1, t.node_id, t.node_type,
               d.branch_kind, d.child_order
          from tree t
          join wf.workflow_edge d
            on d.workflow_version_id = p_workflow_version_id and d.parent_key = t.node_key
          join wf.workflow_node c
            on c.workflow_version_id = p_workflow_version_id and c.node_key = d.child_key
    )
    update wf.workflow_node n
       set depth = t.depth, parent_node_id = t.parent_node_id, parent_type = t.parent_type,
           edge_kind = t.branch_kind, child_order = t.child_order
      from tree t
     where n.node_id = t.node_id;
    select format('%s is not reached from the root', n.node_key) into v_found
      from wf.workflow_node n
     where n.workflow_version_id = p_workflow_version_id and n.depth is null
     order by n.node_order limit 1;
    return v_found;
end
$$;

-- Fills what the engine reads instead of working it out: links between nodes, what a node opens and
-- carries, and the bindings that the placeholders of templates stand for.
create or replace function wf.wf_derive_version(p_workflow_version_id bigint) returns void
language plpgsql set search_path = pg_catalog, pg_temp set enable_nestloop = off as $$
begin
    update wf.workflow_input_binding b
       set node_id = n.node_id, path = wf.wf_pointer_path(b.pointer)
      from wf.workflow_node n
     where b.workflow_version_id = p_workflow_version_id
       and n.workflow_version_id = b.workflow_version_id and n.node_key = b.node_key;
    update wf.variable_output_binding b set node_id = n.node_id
      from wf.workflow_node n
     where b.workflow_version_id = p_workflow_version_id
       and n.workflow_version_id = b.workflow_version_id and n.node_key = b.node_key;
    update wf.node_scope_default b set node_id = n.node_id
      from wf.workflow_node n
     where b.workflow_version_id = p_workflow_version_id
       and n.workflow_version_id = b.workflow_version_id and n.node_key = b.owner_key;
    update wf.collection_binding b set node_id = n.node_id
      from wf.workflow_node n
     where b.workflow_version_id = p_workflow_version_id
       and n.workflow_version_id = b.workflow_version_id and n.node_key = b.node_key;
    perform wf.wf_derive_template_bindings(p_workflow_version_id);

    with nodes as materialized (
        select n.* from wf.workflow_node n where n.workflow_version_id = p_workflow_version_id
    ), siblings as (
        select n.node_id, lead(n.node_id) over (partition by n.parent_node_id
                                                order by n.child_order) as next_node_id
          from nodes n
         where n.edge_kind = 'SEQUENCE'
    ), children as (
        select n.parent_node_id as node_id, count(*) as child_count,
               (array_agg(n.node_id order by n.child_order)
                    filter (where n.edge_kind in ('SEQUENCE', 'PARALLEL', 'BODY')))[1]
                   as first_child_id,
               max(n.node_id) filter (where n.edge_kind = 'ON_ERROR') as on_error_node_id,
               max(n.node_id) filter (where n.edge_kind = 'FINALLY') as finally_node_id,
               max(n.node_id) filter (where n.edge_kind = 'TIMEOUT') as timeout_node_id
          from nodes n
         where n.parent_node_id is not null
         group by n.parent_node_id
    ), scopes as (
        select d.node_id, bool_or(d.variable_kind = 'var' and d.program_json is not null)
                   as has_defaults
          from wf.node_scope_default d
         where d.workflow_version_id = p_workflow_version_id
         group by d.node_id
    ), inputs as (
        select distinct b.node_id from wf.workflow_input_binding b
         where b.workflow_version_id = p_workflow_version_id
    ), outputs as (
        select b.node_id, bool_or(b.binding_kind = 'var') as has_sets,
               bool_or(b.binding_kind = 'collect') as collects
          from wf.variable_output_binding b
         where b.workflow_version_id = p_workflow_version_id
         group by b.node_id
    )
    update wf.workflow_node n
       set action_id = a.action_id,
           child_count = coalesce(c.child_count, 0),
           first_child_id = c.first_child_id,
           next_node_id = s.next_node_id,
           is_loop_body = coalesce(o.edge_kind = 'BODY', false),
           opens_scope = o.parent_node_id is null or d.node_id is not null,
           has_scope_defaults = coalesce(d.has_defaults, false),
           has_input_bindings = i.node_id is not null,
           has_output_bindings = coalesce(b.has_sets, false),
           collect_node_id = case when b.collects then o.node_id
                                  when o.edge_kind = 'BODY' and p.collects then o.parent_node_id end,
           branch_limit = case o.node_type
               when 'PARALLEL' then (o.attributes_json ->> 'limit')::integer
               when 'FOREACH' then coalesce((o.attributes_json ->> 'parallel')::integer, 1) end,
           needed_count = case when o.node_type = 'PARALLEL'
               then (o.attributes_json ->> 'join')::integer end,
           on_error_node_id = c.on_error_node_id,
           finally_node_id = c.finally_node_id,
           timeout_node_id = c.timeout_node_id,
           priority = coalesce((o.attributes_json ->> 'priority')::integer, 0),
           lease_ms = (o.attributes_json ->> 'lease_ms')::bigint,
           delay_ms = coalesce((o.attributes_json ->> 'delay_ms')::bigint,
                               (o.attributes_json ->> 'sleep_ms')::bigint),
           timeout_ms = coalesce((o.attributes_json ->> 'timeout_ms')::bigint, r.timeout_ms),
           retry_json = o.attributes_json -> 'retry'
      from nodes o
      left join siblings s on s.node_id = o.node_id
      left join children c on c.node_id = o.node_id
      left join scopes d on d.node_id = o.node_id
      left join inputs i on i.node_id = o.node_id
      left join outputs b on b.node_id = o.node_id
      left join outputs p on p.node_id = o.parent_node_id
      left join wf.workflow_action a on a.action_name = o.action_name
      left join wf.workflow_action_revision r
        on r.action_name = o.action_name and r.revision = o.action_revision
     where n.node_id = o.node_id;

    -- The loop variables of a body stand in the attributes of its loop.
    update wf.workflow_node b
       set loop_item_name = p.attributes_json ->> 'item',
           loop_index_name = coalesce(p.attributes_json ->> 'index', p.attributes_json ->> 'counter')
      from wf.workflow_node p
     where b.workflow_version_id = p_workflow_version_id and b.edge_kind = 'BODY'
       and p.node_id = b.parent_node_id;

    perform wf.wf_derive_closing(p_workflow_version_id);

    update wf.workflow_version v
       set root_node_id = (select n.node_id from wf.workflow_node n
                            where n.workflow_version_id = v.workflow_version_id
                              and n.parent_node_id is null),
           has_deadlines = exists (select 1 from wf.workflow_node n
                                    where n.workflow_version_id = v.workflow_version_id
                                      and n.timeout_ms is not null),
           -- Where no expression is evaluated after a submit, none can fail late, and the submit
           -- needs no savepoint.
           may_fail_late = v.outputs_json <> '[]'
               or exists (select 1 from wf.workflow_node n
                           where n.workflow_version_id = v.workflow_version_id
                             and (n.has_input_bindings or n.has_output_bindings
                                  or n.has_scope_defaults or n.collect_node_id is not null
                                  or n.node_type not in ('ACTION', 'SEQUENCE', 'PARALLEL')
                                  or n.attributes_json ?| array['fail', 'keep_going']
                                  or n.needed_count is not null
                                  or n.on_error_node_id is not null
                                  or n.finally_node_id is not null or n.timeout_ms is not null))
     where v.workflow_version_id = p_workflow_version_id;
end
$$;

-- Which successes may close other work: those of a PARALLEL's branches when fewer than all are
-- needed and it does not keep going, and so every completion below such a branch (R1).
create or replace function wf.wf_derive_closing(p_workflow_version_id bigint) returns void
language plpgsql set search_path = pg_catalog, pg_temp set enable_nestloop = off as $$
declare
    v_frontier bigint[];
begin
    with children as (
        select c.node_id, coalesce(p.node_type = 'PARALLEL' and p.needed_count < p.child_count
                                   and not p.attributes_json ? 'keep_going', false) as decides
          from wf.workflow_node c
          left join wf.workflow_node p
            on p.workflow_version_id = p_workflow_version_id and p.node_id = c.parent_node_id
         where c.workflow_version_id = p_workflow_version_id
    )
    update wf.workflow_node n set success_may_close = c.decides, may_close = c.decides
      from children c where n.node_id = c.node_id;
    v_frontier := array(select n.node_id from wf.workflow_node n
                         where n.workflow_version_id = p_workflow_version_id and n.may_close);
    while cardinality(v_frontier) > 0 loop
        with below as (
            update wf.workflow_node n set may_close = true
             where n.parent_node_id = any (v_frontier)
               and n.workflow_version_id = p_workflow_version_id and not n.may_close
            returning n.node_id
        )
        select coalesce(array_agg(b.node_id), '{}') into v_frontier from below b;
    end loop;
end
$$;

-- The steps of a JSON pointer, unescaped; '' names the whole document.
create or replace function wf.wf_pointer_path(p_pointer text) returns text[]
language sql immutable set search_path = pg_catalog, pg_temp as $$
    select case when p_pointer = '' then '{}'::text[]
                else array(select replace(replace(s.step, '~1', '/'), '~0', '~')
                             from unnest(string_to_array(substr(p_pointer, 2), '/'))
                                  with ordinality s(step, position)
                            order by s.position) end
$$;

-- Makes a binding of every string of a template that holds a placeholder. Errors: 20007 naming the
-- node and the placeholder that is not understood.
create or replace function wf.wf_derive_template_bindings(p_workflow_version_id bigint) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_row     record;
    v_program record;
begin
    for v_row in
        select n.node_id, n.node_key, b.pointer, b.path, b.text_value
          from wf.workflow_input_template t
          join wf.workflow_node n
            on n.workflow_version_id = t.workflow_version_id and n.node_key = t.node_key
         cross join lateral wf.wf_template_bindings(t.template_json) b
         where t.workflow_version_id = p_workflow_version_id
           and t.template_json::text like '%${%'
         order by n.node_order, b.pointer
    loop
        select * into v_program
          from wf.wf_compile_template_string(v_row.text_value, p_workflow_version_id, v_row.node_id);
        if v_program.error_code is not null then
            perform wf.wf_raise(20007, format('the graph is refused: input of %s at "%s": %s',
                v_row.node_key, v_row.pointer, v_program.error_message));
        end if;
        insert into wf.workflow_input_binding (workflow_version_id, node_key, pointer, program_json,
                                               is_derived, path, node_id)
        values (p_workflow_version_id, v_row.node_key, v_row.pointer, v_program.program_json,
                true, v_row.path, v_row.node_id);
    end loop;
end
$$;

-- Deleting a workflow with all its versions. Twin: mssql/wf_delete_definition.sql

-- Deletes a workflow: its versions, subscriptions, schedules and bundles. Refused while instances of it
-- run, unless p_end_running cancels them, and while ended ones are there, unless p_delete_history
-- removes them. Events stay; their deliveries forget the workflow.
-- Locks: the workflow_def row, so that no deploy meets it; the gates of its instances exclusive,
-- ascending. Errors: 20002 unknown workflow; 20003 with how many instances stand in the way.
create or replace function wf.sp_delete_workflow_def(
    p_name text, p_end_running boolean default false, p_delete_history boolean default false
) returns table (cancelled_count integer, purged_count integer)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    v_def_id  bigint;
    v_id      bigint;
    v_running bigint[];
    v_ended   bigint;
begin
    select d.workflow_def_id into v_def_id from wf.workflow_def d where d.name = p_name for update;
    if not found then
        perform wf.wf_raise(20002, format('there is no workflow %s', left(p_name, 200)));
    end if;
    v_running := array(
        select i.workflow_instance_id from wf.workflow_instance i
         where i.workflow_def_id = v_def_id and i.status in ('CREATED', 'RUNNING', 'PAUSED')
         order by i.workflow_instance_id);
    if cardinality(v_running) > 0 and not coalesce(p_end_running, false) then
        perform wf.wf_raise(20003, format('%s instances of workflow %s have not ended',
                                          cardinality(v_running), p_name));
    end if;
    foreach v_id in array v_running loop
        perform wf.sp_cancel_workflow_instance(v_id, 'the workflow is deleted');
    end loop;
    select count(*) into v_ended
      from wf.workflow_instance i where i.workflow_def_id = v_def_id;
    if v_ended > 0 and not coalesce(p_delete_history, false) then
        perform wf.wf_raise(20003, format('%s ended instances of workflow %s are there', v_ended,
                                          p_name));
    end if;
    perform wf.wf_remove_instances(array(
        select i.workflow_instance_id from wf.workflow_instance i
         where i.workflow_def_id = v_def_id));
    perform wf.wf_remove_definition(v_def_id);
    insert into wf.audit_log (at, what, detail_json)
    values (wf.wf_now(), 'delete workflow', jsonb_build_object('workflow', p_name));
    return query select cardinality(v_running), v_ended::integer;
end
$$;

-- Removes the rows of a workflow that has no instances any more.
create or replace function wf.wf_remove_definition(p_workflow_def_id bigint) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
declare
    v_versions bigint[] := array(select v.workflow_version_id from wf.workflow_version v
                                  where v.workflow_def_id = p_workflow_def_id);
begin
    update wf.event_delivery d set workflow_def_id = null
     where d.workflow_def_id = p_workflow_def_id;
    delete from wf.foreach_bundle_entry b where b.workflow_def_id = p_workflow_def_id;
    delete from wf.schedule s where s.workflow_def_id = p_workflow_def_id;
    delete from wf.event_subscription s where s.workflow_version_id = any (v_versions);
    delete from wf.collection_binding b where b.workflow_version_id = any (v_versions);
    delete from wf.node_scope_default d where d.workflow_version_id = any (v_versions);
    delete from wf.variable_output_binding b where b.workflow_version_id = any (v_versions);
    delete from wf.workflow_input_binding b where b.workflow_version_id = any (v_versions);
    delete from wf.workflow_input_template t where t.workflow_version_id = any (v_versions);
    delete from wf.workflow_edge d where d.workflow_version_id = any (v_versions);
    delete from wf.workflow_node n where n.workflow_version_id = any (v_versions);
    -- A type's parent goes with it in one statement; the check of its key comes at the end of it.
    delete from wf.data_type t where t.workflow_version_id = any (v_versions);
    delete from wf.workflow_version_action a where a.workflow_version_id = any (v_versions);
    delete from wf.workflow_version v where v.workflow_version_id = any (v_versions);
    delete from wf.workflow_def d where d.workflow_def_id = p_workflow_def_id;
end
$$;

-- Rights: nothing in schema wf is executable by PUBLIC. Twin: mssql/99_permissions.sql
--
-- The roles of the runtime and their grants are not part of this file yet: the installing user owns
-- everything.
revoke all on schema wf from public;
revoke all on all routines in schema wf from public;
revoke all on all tables in schema wf from public;

insert into wf.schema_version (version) values (1);
