-- workflow: one_action
-- content: 5c0187214719143692fe83da3886384b76c4b28b8a69c9190bc44ebc730f7a9b
-- dialect: postgresql
-- spec_format: 1

begin isolation level read committed;
set local standard_conforming_strings = on;
set local client_encoding = 'UTF8';
select wf.wf_require_runtime(p_version => 2);
select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('wf.deploy', 0));

insert into wf.workflow_def (name)
select r.name
from (values
  ('one_action')
) as r(name)
on conflict(name) do nothing;

insert into wf.workflow_version (workflow_def_id, content_hash, spec_format, outputs_json)
select d.workflow_def_id, r.content_hash, cast(r.spec_format as int), cast(r.outputs_json as jsonb)
from (values
  ('5c0187214719143692fe83da3886384b76c4b28b8a69c9190bc44ebc730f7a9b', 1, '[{"order":0,"name":"reserved","program":[["var","reserved","one_action",[]]]}]')
) as r(content_hash, spec_format, outputs_json)
join wf.workflow_def as d on d.name = 'one_action'
on conflict(workflow_def_id, content_hash) do nothing;

insert into wf.workflow_action (action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select r.action_name, r.capability, cast(r.max_per_worker as int), cast(r.exclusive_worker as boolean), r.affinity_key_field, cast(r.prefer_previous_worker as boolean), cast(r.prefer_continue_group as boolean), cast(r.require_previous_worker as boolean), cast(r.max_concurrent as int), cast(r.rate_per_minute as int), cast(r.max_deliveries as int)
from (values
  ('stock.reserve', 'stock', 2, true, null, false, false, false, null, null, 5)
) as r(action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
order by r.action_name
on conflict(action_name) do nothing;

insert into wf.workflow_action_revision (action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
select r.action_name, r.revision, r.description, r.version, cast(r.input_schema_json as jsonb), cast(r.output_schema_json as jsonb), cast(r.result_codes_json as jsonb), cast(r.idempotent as boolean), cast(r.timeout_ms as bigint), cast(r.sensitive_json as jsonb)
from (values
  ('stock.reserve', '5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f', 'reserves stock', '2', '{"type":"object"}', null, '{"0":"OK"}', true, 30000, '["/card"]')
) as r(action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
order by r.action_name
on conflict(action_name, revision) do nothing;

insert into wf.workflow_version_action (workflow_version_id, action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select v.workflow_version_id, r.action_name, r.revision, r.capability, cast(r.max_per_worker as int), cast(r.exclusive_worker as boolean), r.affinity_key_field, cast(r.prefer_previous_worker as boolean), cast(r.prefer_continue_group as boolean), cast(r.require_previous_worker as boolean), cast(r.max_concurrent as int), cast(r.rate_per_minute as int), cast(r.max_deliveries as int)
from (values
  ('stock.reserve', '5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f', 'stock', 2, true, null, false, false, false, null, null, 5)
) as r(action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
join wf.workflow_def as d on d.name = 'one_action'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '5c0187214719143692fe83da3886384b76c4b28b8a69c9190bc44ebc730f7a9b'
where v.published_at is null;

insert into wf.data_type (workflow_version_id, type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
select v.workflow_version_id, cast(r.type_id as int), cast(r.parent_type_id as int), r.path_kind, r.name, r.base_type, cast(r.is_required as boolean), cast(r.is_nullable as boolean), cast(r.enum_json as jsonb)
from (values
  (0, null, 'root', null, 'string', true, false, '["a","b"]')
) as r(type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
join wf.workflow_def as d on d.name = 'one_action'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '5c0187214719143692fe83da3886384b76c4b28b8a69c9190bc44ebc730f7a9b'
where v.published_at is null;

insert into wf.workflow_node (workflow_version_id, node_key, node_type, is_generated, action_name, action_revision, attributes_json)
select v.workflow_version_id, r.node_key, r.node_type, cast(r.is_generated as boolean), r.action_name, r.action_revision, cast(r.attributes_json as jsonb)
from (values
  ('one_action', 'SEQUENCE', false, null, null, '{}'),
  ('reserve', 'ACTION', false, 'stock.reserve', '5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f5f', '{"priority":5,"lease_ms":60000}')
) as r(node_key, node_type, is_generated, action_name, action_revision, attributes_json)
join wf.workflow_def as d on d.name = 'one_action'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '5c0187214719143692fe83da3886384b76c4b28b8a69c9190bc44ebc730f7a9b'
where v.published_at is null;

insert into wf.workflow_edge (workflow_version_id, parent_key, child_key, branch_kind, child_order, case_value)
select v.workflow_version_id, r.parent_key, r.child_key, r.branch_kind, cast(r.child_order as int), cast(r.case_value as jsonb)
from (values
  ('one_action', 'reserve', 'SEQUENCE', 0, null)
) as r(parent_key, child_key, branch_kind, child_order, case_value)
join wf.workflow_def as d on d.name = 'one_action'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '5c0187214719143692fe83da3886384b76c4b28b8a69c9190bc44ebc730f7a9b'
where v.published_at is null;

insert into wf.workflow_input_template (workflow_version_id, node_key, template_json)
select v.workflow_version_id, r.node_key, cast(r.template_json as jsonb)
from (values
  ('reserve', '{"id":"${ctx.instance_id}"}')
) as r(node_key, template_json)
join wf.workflow_def as d on d.name = 'one_action'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '5c0187214719143692fe83da3886384b76c4b28b8a69c9190bc44ebc730f7a9b'
where v.published_at is null;

insert into wf.workflow_input_binding (workflow_version_id, node_key, pointer, program_json)
select v.workflow_version_id, r.node_key, r.pointer, cast(r.program_json as jsonb)
from (values
  ('reserve', '/n', '[["lit",1],["lit",2],["add"]]')
) as r(node_key, pointer, program_json)
join wf.workflow_def as d on d.name = 'one_action'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '5c0187214719143692fe83da3886384b76c4b28b8a69c9190bc44ebc730f7a9b'
where v.published_at is null;

insert into wf.variable_output_binding (workflow_version_id, node_key, binding_order, binding_kind, name, owner_key, program_json)
select v.workflow_version_id, r.node_key, cast(r.binding_order as int), r.binding_kind, r.name, r.owner_key, cast(r.program_json as jsonb)
from (values
  ('reserve', 0, 'var', 'reserved', 'one_action', '[["out",["quantity"]]]')
) as r(node_key, binding_order, binding_kind, name, owner_key, program_json)
join wf.workflow_def as d on d.name = 'one_action'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '5c0187214719143692fe83da3886384b76c4b28b8a69c9190bc44ebc730f7a9b'
where v.published_at is null;

insert into wf.node_scope_default (workflow_version_id, owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
select v.workflow_version_id, r.owner_key, cast(r.variable_order as int), r.name, r.variable_kind, cast(r.type_id as int), cast(r.is_required as boolean), cast(r.program_json as jsonb)
from (values
  ('one_action', 0, 'order_id', 'input', 0, true, null),
  ('one_action', 0, 'reserved', 'var', null, false, '[["lit",1.50]]')
) as r(owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
join wf.workflow_def as d on d.name = 'one_action'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '5c0187214719143692fe83da3886384b76c4b28b8a69c9190bc44ebc730f7a9b'
where v.published_at is null;

select wf.wf_set_version_notes(p_name => 'one_action', p_content_hash => '5c0187214719143692fe83da3886384b76c4b28b8a69c9190bc44ebc730f7a9b', p_source_map => cast('{"file":"one_action.wf","nodes":{"one_action":[1,3],"reserve":[2,3]}}' as jsonb), p_description => 'reserves what was ordered');

select p.workflow_version_id, p.version_no, p.was_new
from wf.wf_publish_workflow_version(p_name => 'one_action', p_content_hash => '5c0187214719143692fe83da3886384b76c4b28b8a69c9190bc44ebc730f7a9b', p_activate => true, p_update_actions => false) as p;

commit;
