-- Definition tables: what an author deploys. Twin: mssql/01_definition_tables.sql
--
-- A deploy script inserts these rows and ends in wf.wf_publish_workflow_version, which checks the
-- graph, fills the derived columns of wf.workflow_node and makes the version visible, all in the
-- script's one transaction. Rows name each other by key, never by id, so that a script reads the
-- same in every database. Rows of a published version never change (trigger below); publishing is
-- what sets workflow_version.published_at.

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
    constraint ck_workflow_action_max_concurrent check (max_concurrent > 0),
    constraint ck_workflow_action_rate_per_minute check (rate_per_minute > 0),
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
    has_plain_inputs     boolean,
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
-- string of the template that holds a placeholder; a deploy never inserts them. variable_name and
-- variable_owner are derived, too: what a binding names that is one variable and nothing else.
create table wf.workflow_input_binding (
    workflow_version_id  bigint    not null,
    node_key             text      not null,
    pointer              text      not null,
    program_json         jsonb     not null,
    is_derived           boolean   not null default false,
    path                 text[],
    node_id              bigint,
    variable_name        text,
    variable_owner       text,
    constraint pk_workflow_input_binding primary key (workflow_version_id, node_key, pointer),
    constraint fk_workflow_input_binding_node foreign key (workflow_version_id, node_key)
        references wf.workflow_node (workflow_version_id, node_key)
);
create index ix_workflow_input_binding_node on wf.workflow_input_binding (node_id);

-- `set` (var) and `collect`: written when the node, or an iteration of the FOREACH, succeeds. type_id
-- is derived: the type of the variable where it was declared with one that not every value fits (R5).
create table wf.variable_output_binding (
    workflow_version_id  bigint    not null,
    node_key             text      not null,
    binding_order        integer   not null,
    binding_kind         text      not null,
    name                 text      not null,
    owner_key            text      not null,
    program_json         jsonb     not null,
    node_id              bigint,
    type_id              integer,
    constraint pk_variable_output_binding primary key (workflow_version_id, node_key, binding_order),
    constraint fk_variable_output_binding_node foreign key (workflow_version_id, node_key)
        references wf.workflow_node (workflow_version_id, node_key),
    constraint ck_variable_output_binding_kind check (binding_kind in ('var', 'collect'))
);
create index ix_variable_output_binding_node on wf.variable_output_binding (node_id);

-- The variables of the scope that node owner_key opens: the inputs of the workflow (owner: the
-- root), declared variables, loop variables, and names that only a `set` brings into being (R16).
-- is_constant is derived: the initialiser is one literal that fits the variable's type.
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
    is_constant          boolean   not null default false,
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
