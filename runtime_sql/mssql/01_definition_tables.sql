-- Definition tables: what an author deploys. Twin: pg/01_definition_tables.sql
--
-- The twin's header says how these rows come to be. What differs here: text that is a key or is
-- compared has a BIN2 collation (a default collation ignores case), JSON is nvarchar(max) with a
-- check, a unique constraint over a column that may be null is a filtered index (SQL Server takes
-- two nulls for equal), and defaults are named, so that two installations have one catalogue.

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

if schema_id(N'wf') is null exec(N'create schema wf');
GO

-- The row `now` moves wf.wf_now(), the only clock of the engine, in tests.
create table wf.wf_setting (
    name   nvarchar(200) collate Latin1_General_100_BIN2 not null,
    value  nvarchar(max) collate Latin1_General_100_BIN2 not null,
    constraint pk_wf_setting primary key (name)
);

-- name_folded: two names that differ only in case are refused (R19), by a trigger.
create table wf.workflow_def (
    workflow_def_id  bigint identity(1, 1) not null,
    name             nvarchar(120) collate Latin1_General_100_BIN2 not null,
    description      nvarchar(max) collate Latin1_General_100_BIN2 null,
    created_at       datetime2(3) not null
        constraint df_workflow_def_created_at default sysutcdatetime(),
    name_folded      as lower(name) persisted,
    constraint pk_workflow_def primary key (workflow_def_id),
    constraint uq_workflow_def_name unique (name),
    constraint ck_workflow_def_name check
        (name like N'[A-Za-z_]%' and name not like N'%[^A-Za-z0-9_]%')
);
create index ix_workflow_def_name_folded on wf.workflow_def (name_folded);

create table wf.workflow_version (
    workflow_version_id  bigint identity(1, 1) not null,
    workflow_def_id      bigint not null,
    version_no           int null,
    content_hash         nvarchar(64) collate Latin1_General_100_BIN2 not null,
    spec_format          int not null,
    is_active            bit not null constraint df_workflow_version_is_active default 0,
    published_at         datetime2(3) null,
    root_node_id         bigint null,
    may_fail_late        bit not null constraint df_workflow_version_may_fail_late default 1,
    has_deadlines        bit not null constraint df_workflow_version_has_deadlines default 0,
    outputs_json         nvarchar(max) collate Latin1_General_100_BIN2 not null
        constraint df_workflow_version_outputs_json default N'[]',
    source_map           nvarchar(max) collate Latin1_General_100_BIN2 null,
    source_text          nvarchar(max) collate Latin1_General_100_BIN2 null,
    labels               nvarchar(max) collate Latin1_General_100_BIN2 null,
    deprecated_at        datetime2(3) null,
    constraint pk_workflow_version primary key (workflow_version_id),
    constraint fk_workflow_version_def foreign key (workflow_def_id)
        references wf.workflow_def (workflow_def_id),
    constraint uq_workflow_version_hash unique (workflow_def_id, content_hash),
    constraint ck_workflow_version_hash check
        (len(content_hash) = 64 and content_hash not like N'%[^0-9a-f]%'),
    constraint ck_workflow_version_active check (is_active = 0 or published_at is not null),
    constraint ck_workflow_version_outputs_json check (isjson(outputs_json) = 1),
    constraint ck_workflow_version_source_map check (isjson(source_map) = 1),
    constraint ck_workflow_version_labels check (isjson(labels) = 1)
);
create unique index uq_workflow_version_no on wf.workflow_version (workflow_def_id, version_no)
    where version_no is not null;
create unique index uq_workflow_version_active on wf.workflow_version (workflow_def_id)
    where is_active = 1;

-- The action as its name is known to dispatch: live, shared by all versions (R24).
create table wf.workflow_action (
    action_id                bigint identity(1, 1) not null,
    action_name              nvarchar(200) collate Latin1_General_100_BIN2 not null,
    capability               nvarchar(200) collate Latin1_General_100_BIN2 not null,
    max_per_worker           int null,
    exclusive_worker         bit not null constraint df_workflow_action_exclusive_worker default 0,
    affinity_key_field       nvarchar(200) collate Latin1_General_100_BIN2 null,
    prefer_previous_worker   bit not null
        constraint df_workflow_action_prefer_previous_worker default 0,
    prefer_continue_group    bit not null
        constraint df_workflow_action_prefer_continue_group default 0,
    require_previous_worker  bit not null
        constraint df_workflow_action_require_previous_worker default 0,
    max_concurrent           int null,
    rate_per_minute          int null,
    max_deliveries           int not null constraint df_workflow_action_max_deliveries default 5,
    paused                   bit not null constraint df_workflow_action_paused default 0,
    constraint pk_workflow_action primary key (action_id),
    constraint uq_workflow_action_name unique (action_name),
    constraint ck_workflow_action_name check (len(action_name) >= 1),
    constraint ck_workflow_action_max_per_worker check (max_per_worker > 0),
    constraint ck_workflow_action_max_concurrent check (max_concurrent > 0),
    constraint ck_workflow_action_rate_per_minute check (rate_per_minute > 0),
    constraint ck_workflow_action_max_deliveries check (max_deliveries > 0)
);
create index ix_workflow_action_capability on wf.workflow_action (capability);

-- What a version freezes of an action: schemas, codes, retry behaviour. Never changes.
create table wf.workflow_action_revision (
    action_name         nvarchar(200) collate Latin1_General_100_BIN2 not null,
    revision            nvarchar(64) collate Latin1_General_100_BIN2 not null,
    description         nvarchar(max) collate Latin1_General_100_BIN2 null,
    version             nvarchar(max) collate Latin1_General_100_BIN2 null,
    input_schema_json   nvarchar(max) collate Latin1_General_100_BIN2 null,
    output_schema_json  nvarchar(max) collate Latin1_General_100_BIN2 null,
    result_codes_json   nvarchar(max) collate Latin1_General_100_BIN2 not null
        constraint df_workflow_action_revision_result_codes_json default N'{}',
    idempotent          bit not null constraint df_workflow_action_revision_idempotent default 1,
    timeout_ms          bigint null,
    sensitive_json      nvarchar(max) collate Latin1_General_100_BIN2 not null
        constraint df_workflow_action_revision_sensitive_json default N'[]',
    constraint pk_workflow_action_revision primary key (action_name, revision),
    constraint fk_workflow_action_revision_action foreign key (action_name)
        references wf.workflow_action (action_name),
    constraint ck_workflow_action_revision_hash check
        (len(revision) = 64 and revision not like N'%[^0-9a-f]%'),
    constraint ck_workflow_action_revision_input_schema_json check (isjson(input_schema_json) = 1),
    constraint ck_workflow_action_revision_output_schema_json
        check (isjson(output_schema_json) = 1),
    constraint ck_workflow_action_revision_result_codes_json check (isjson(result_codes_json) = 1),
    constraint ck_workflow_action_revision_sensitive_json check (isjson(sensitive_json) = 1)
);

-- The dispatch columns as the catalog of this version had them; publishing compares them with
-- wf.workflow_action and refuses a difference (20010) unless it is told to take them over.
create table wf.workflow_version_action (
    workflow_version_id      bigint not null,
    action_name              nvarchar(200) collate Latin1_General_100_BIN2 not null,
    revision                 nvarchar(64) collate Latin1_General_100_BIN2 not null,
    capability               nvarchar(200) collate Latin1_General_100_BIN2 not null,
    max_per_worker           int null,
    exclusive_worker         bit not null,
    affinity_key_field       nvarchar(200) collate Latin1_General_100_BIN2 null,
    prefer_previous_worker   bit not null,
    prefer_continue_group    bit not null,
    require_previous_worker  bit not null,
    max_concurrent           int null,
    rate_per_minute          int null,
    max_deliveries           int not null,
    constraint pk_workflow_version_action primary key (workflow_version_id, action_name),
    constraint fk_workflow_version_action_version foreign key (workflow_version_id)
        references wf.workflow_version (workflow_version_id),
    constraint fk_workflow_version_action_revision foreign key (action_name, revision)
        references wf.workflow_action_revision (action_name, revision)
);
create index ix_workflow_version_action_revision
    on wf.workflow_version_action (action_name, revision);

-- The type table (R5): a root row per type; fields and the item of a list hang below it.
create table wf.data_type (
    workflow_version_id  bigint not null,
    type_id              int not null,
    parent_type_id       int null,
    path_kind            nvarchar(20) collate Latin1_General_100_BIN2 not null,
    name                 nvarchar(max) collate Latin1_General_100_BIN2 null,
    base_type            nvarchar(20) collate Latin1_General_100_BIN2 not null,
    is_required          bit not null,
    is_nullable          bit not null,
    enum_json            nvarchar(max) collate Latin1_General_100_BIN2 null,
    constraint pk_data_type primary key (workflow_version_id, type_id),
    constraint fk_data_type_version foreign key (workflow_version_id)
        references wf.workflow_version (workflow_version_id),
    constraint fk_data_type_parent foreign key (workflow_version_id, parent_type_id)
        references wf.data_type (workflow_version_id, type_id),
    constraint ck_data_type_path_kind check (path_kind in (N'root', N'field', N'item')),
    constraint ck_data_type_parent check
        ((path_kind = N'root' and parent_type_id is null)
        or (path_kind <> N'root' and parent_type_id is not null)),
    constraint ck_data_type_base check
        (base_type in (N'string', N'int', N'number', N'bool', N'any', N'object', N'list')),
    constraint ck_data_type_enum_json check (isjson(enum_json) = 1)
);
create index ix_data_type_parent on wf.data_type (workflow_version_id, parent_type_id);

-- One row per node. The columns from action_id on are derived: publishing fills them from the edges
-- and attributes, so that the engine reads one row and needs no join to know what comes next.
create table wf.workflow_node (
    node_id              bigint identity(1, 1) not null,
    workflow_version_id  bigint not null,
    node_key             nvarchar(200) collate Latin1_General_100_BIN2 not null,
    node_type            nvarchar(20) collate Latin1_General_100_BIN2 not null,
    is_generated         bit not null,
    action_name          nvarchar(200) collate Latin1_General_100_BIN2 null,
    action_revision      nvarchar(64) collate Latin1_General_100_BIN2 null,
    attributes_json      nvarchar(max) collate Latin1_General_100_BIN2 not null
        constraint df_workflow_node_attributes_json default N'{}',
    action_id            bigint null,
    parent_node_id       bigint null,
    parent_type          nvarchar(20) collate Latin1_General_100_BIN2 null,
    edge_kind            nvarchar(20) collate Latin1_General_100_BIN2 null,
    child_order          int null,
    child_count          int null,
    first_child_id       bigint null,
    next_node_id         bigint null,
    depth                int null,
    opens_scope          bit null,
    is_loop_body         bit null,
    counter_node_id      bigint null,
    may_close            bit null,
    has_scope_defaults   bit null,
    has_input_bindings   bit null,
    has_plain_inputs     bit null,
    has_output_bindings  bit null,
    collect_node_id      bigint null,
    loop_item_name       nvarchar(200) collate Latin1_General_100_BIN2 null,
    loop_index_name      nvarchar(200) collate Latin1_General_100_BIN2 null,
    branch_limit         int null,
    needed_count         int null,
    success_may_close    bit null,
    on_error_node_id     bigint null,
    finally_node_id      bigint null,
    timeout_node_id      bigint null,
    priority             int null,
    lease_ms             bigint null,
    delay_ms             bigint null,
    timeout_ms           bigint null,
    retry_json           nvarchar(max) collate Latin1_General_100_BIN2 null,
    constraint pk_workflow_node primary key (node_id),
    constraint uq_workflow_node_key unique (workflow_version_id, node_key),
    constraint fk_workflow_node_version foreign key (workflow_version_id)
        references wf.workflow_version (workflow_version_id),
    constraint fk_workflow_node_revision foreign key (action_name, action_revision)
        references wf.workflow_action_revision (action_name, revision),
    constraint ck_workflow_node_type check
        (node_type in (N'ACTION', N'SEQUENCE', N'PARALLEL', N'IF', N'SWITCH', N'REPEAT', N'WHILE',
        N'FOREACH', N'WAIT_EVENT')),
    constraint ck_workflow_node_key check (len(node_key) >= 1),
    constraint ck_workflow_node_action check
        ((node_type = N'ACTION' and action_name is not null)
        or (node_type <> N'ACTION' and action_name is null)),
    constraint ck_workflow_node_attributes_json check (isjson(attributes_json) = 1)
);
create index ix_workflow_node_parent on wf.workflow_node (parent_node_id);
create index ix_workflow_node_action on wf.workflow_node (action_name, action_revision);

create table wf.workflow_edge (
    workflow_version_id  bigint not null,
    parent_key           nvarchar(200) collate Latin1_General_100_BIN2 not null,
    child_key            nvarchar(200) collate Latin1_General_100_BIN2 not null,
    branch_kind          nvarchar(20) collate Latin1_General_100_BIN2 not null,
    child_order          int not null,
    case_value           nvarchar(max) collate Latin1_General_100_BIN2 null,
    constraint pk_workflow_edge primary key (workflow_version_id, parent_key, child_order),
    constraint uq_workflow_edge_child unique (workflow_version_id, child_key),
    constraint fk_workflow_edge_parent foreign key (workflow_version_id, parent_key)
        references wf.workflow_node (workflow_version_id, node_key),
    constraint fk_workflow_edge_child foreign key (workflow_version_id, child_key)
        references wf.workflow_node (workflow_version_id, node_key),
    constraint ck_workflow_edge_kind check
        (branch_kind in (N'SEQUENCE', N'PARALLEL', N'THEN', N'ELSE', N'CASE', N'DEFAULT', N'BODY',
        N'ON_ERROR', N'FINALLY', N'TIMEOUT')),
    constraint ck_workflow_edge_order check (child_order >= 0),
    constraint ck_workflow_edge_case check
        ((branch_kind = N'CASE' and case_value is not null)
        or (branch_kind <> N'CASE' and case_value is null)),
    constraint ck_workflow_edge_case_value check (isjson(case_value) = 1)
);

create table wf.workflow_input_template (
    workflow_version_id  bigint not null,
    node_key             nvarchar(200) collate Latin1_General_100_BIN2 not null,
    template_json        nvarchar(max) collate Latin1_General_100_BIN2 not null,
    constraint pk_workflow_input_template primary key (workflow_version_id, node_key),
    constraint fk_workflow_input_template_node foreign key (workflow_version_id, node_key)
        references wf.workflow_node (workflow_version_id, node_key),
    constraint ck_workflow_input_template_template_json
        check (isjson(N'[' + template_json + N']') = 1)
);

-- What fills a place of a template. Rows with is_derived were made by publishing, one for each
-- string of the template that holds a placeholder; a deploy never inserts them. A pointer has at
-- most 600 characters here (an index entry, 1 700 bytes); path is a JSON array (the twin: text[]).
create table wf.workflow_input_binding (
    workflow_version_id  bigint not null,
    node_key             nvarchar(200) collate Latin1_General_100_BIN2 not null,
    pointer              nvarchar(600) collate Latin1_General_100_BIN2 not null,
    program_json         nvarchar(max) collate Latin1_General_100_BIN2 not null,
    is_derived           bit not null constraint df_workflow_input_binding_is_derived default 0,
    path                 nvarchar(max) collate Latin1_General_100_BIN2 null,
    node_id              bigint null,
    variable_name        nvarchar(200) collate Latin1_General_100_BIN2 null,
    variable_owner       nvarchar(200) collate Latin1_General_100_BIN2 null,
    constraint pk_workflow_input_binding primary key nonclustered
        (workflow_version_id, node_key, pointer),
    constraint fk_workflow_input_binding_node foreign key (workflow_version_id, node_key)
        references wf.workflow_node (workflow_version_id, node_key),
    constraint ck_workflow_input_binding_program_json check (isjson(program_json) = 1),
    constraint ck_workflow_input_binding_path check (isjson(path) = 1)
);
create index ix_workflow_input_binding_node on wf.workflow_input_binding (node_id);

-- `set` (var) and `collect`: written when the node, or an iteration of the FOREACH, succeeds.
create table wf.variable_output_binding (
    workflow_version_id  bigint not null,
    node_key             nvarchar(200) collate Latin1_General_100_BIN2 not null,
    binding_order        int not null,
    binding_kind         nvarchar(20) collate Latin1_General_100_BIN2 not null,
    name                 nvarchar(200) collate Latin1_General_100_BIN2 not null,
    owner_key            nvarchar(200) collate Latin1_General_100_BIN2 not null,
    program_json         nvarchar(max) collate Latin1_General_100_BIN2 not null,
    node_id              bigint null,
    type_id              int null,
    constraint pk_variable_output_binding primary key
        (workflow_version_id, node_key, binding_order),
    constraint fk_variable_output_binding_node foreign key (workflow_version_id, node_key)
        references wf.workflow_node (workflow_version_id, node_key),
    constraint ck_variable_output_binding_kind check (binding_kind in (N'var', N'collect')),
    constraint ck_variable_output_binding_program_json check (isjson(program_json) = 1)
);
create index ix_variable_output_binding_node on wf.variable_output_binding (node_id);

-- The variables of the scope that node owner_key opens: the inputs of the workflow (owner: the
-- root), declared variables, loop variables, and names that only a `set` brings into being (R16).
create table wf.node_scope_default (
    workflow_version_id  bigint not null,
    owner_key            nvarchar(200) collate Latin1_General_100_BIN2 not null,
    variable_order       int not null,
    name                 nvarchar(200) collate Latin1_General_100_BIN2 not null,
    variable_kind        nvarchar(20) collate Latin1_General_100_BIN2 not null,
    type_id              int null,
    is_required          bit not null constraint df_node_scope_default_is_required default 0,
    program_json         nvarchar(max) collate Latin1_General_100_BIN2 null,
    node_id              bigint null,
    is_constant          bit not null constraint df_node_scope_default_is_constant default 0,
    constraint pk_node_scope_default primary key (workflow_version_id, owner_key, name),
    constraint uq_node_scope_default_order
        unique (workflow_version_id, owner_key, variable_kind, variable_order),
    constraint fk_node_scope_default_owner foreign key (workflow_version_id, owner_key)
        references wf.workflow_node (workflow_version_id, node_key),
    constraint fk_node_scope_default_type foreign key (workflow_version_id, type_id)
        references wf.data_type (workflow_version_id, type_id),
    constraint ck_node_scope_default_kind check
        (variable_kind in (N'input', N'var', N'loop', N'set')),
    constraint ck_node_scope_default_program_json check (isjson(program_json) = 1)
);
create index ix_node_scope_default_type on wf.node_scope_default (workflow_version_id, type_id);
create index ix_node_scope_default_node on wf.node_scope_default (node_id);

create table wf.collection_binding (
    workflow_version_id  bigint not null,
    node_key             nvarchar(200) collate Latin1_General_100_BIN2 not null,
    binding_kind         nvarchar(20) collate Latin1_General_100_BIN2 not null,
    program_json         nvarchar(max) collate Latin1_General_100_BIN2 not null,
    node_id              bigint null,
    constraint pk_collection_binding primary key (workflow_version_id, node_key),
    constraint fk_collection_binding_node foreign key (workflow_version_id, node_key)
        references wf.workflow_node (workflow_version_id, node_key),
    constraint ck_collection_binding_kind check
        (binding_kind in (N'variable', N'context', N'task_output', N'program')),
    constraint ck_collection_binding_program_json check (isjson(program_json) = 1)
);
create index ix_collection_binding_node on wf.collection_binding (node_id);

-- Subscriptions of a version. Those that start instances act only while the version is active.
create table wf.event_subscription (
    workflow_version_id  bigint not null,
    subscription_order   int not null,
    event_type           nvarchar(200) collate Latin1_General_100_BIN2 not null,
    mode                 nvarchar(20) collate Latin1_General_100_BIN2 not null,
    filter_json          nvarchar(max) collate Latin1_General_100_BIN2 not null
        constraint df_event_subscription_filter_json default N'[]',
    inputs_json          nvarchar(max) collate Latin1_General_100_BIN2 not null
        constraint df_event_subscription_inputs_json default N'[]',
    enabled              bit not null constraint df_event_subscription_enabled default 1,
    constraint pk_event_subscription primary key (workflow_version_id, subscription_order),
    constraint fk_event_subscription_version foreign key (workflow_version_id)
        references wf.workflow_version (workflow_version_id),
    constraint ck_event_subscription_mode check
        (mode in (N'start_instance', N'signal_wait', N'start_or_signal')),
    constraint ck_event_subscription_filter_json check (isjson(filter_json) = 1),
    constraint ck_event_subscription_inputs_json check (isjson(inputs_json) = 1)
);
create index ix_event_subscription_type on wf.event_subscription (event_type);

-- Reserved for timed starts: cron text, zone, what to do when runs overlap or were missed.
create table wf.schedule (
    schedule_id       bigint identity(1, 1) not null,
    workflow_def_id   bigint not null,
    cron              nvarchar(max) collate Latin1_General_100_BIN2 not null,
    time_zone         nvarchar(200) collate Latin1_General_100_BIN2 not null
        constraint df_schedule_time_zone default N'UTC',
    overlap_policy    nvarchar(20) collate Latin1_General_100_BIN2 not null
        constraint df_schedule_overlap_policy default N'skip',
    catch_up_seconds  int not null constraint df_schedule_catch_up_seconds default 0,
    context_json      nvarchar(max) collate Latin1_General_100_BIN2 not null
        constraint df_schedule_context_json default N'{}',
    enabled           bit not null constraint df_schedule_enabled default 1,
    next_due_at       datetime2(3) null,
    constraint pk_schedule primary key (schedule_id),
    constraint fk_schedule_def foreign key (workflow_def_id)
        references wf.workflow_def (workflow_def_id),
    constraint ck_schedule_overlap check (overlap_policy in (N'skip', N'allow', N'queue')),
    constraint ck_schedule_context_json check (isjson(context_json) = 1)
);
create index ix_schedule_def on wf.schedule (workflow_def_id);
GO
