-- workflow: mc_two_groups
-- content: 59d69de0c6586d660a7e7ebaf27e5009831bcb78d64bf35f07fd5a10bb158d59
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
  ('mc_two_groups')
) as r(name)
on conflict(name) do nothing;

insert into wf.workflow_version (workflow_def_id, content_hash, spec_format, outputs_json)
select d.workflow_def_id, r.content_hash, cast(r.spec_format as int), cast(r.outputs_json as jsonb)
from (values
  ('59d69de0c6586d660a7e7ebaf27e5009831bcb78d64bf35f07fd5a10bb158d59', 1, '[{"order":0,"name":"left","program":[["var","left","mc_two_groups",[]]]},{"order":1,"name":"right","program":[["var","right","mc_two_groups",[]]]}]')
) as r(content_hash, spec_format, outputs_json)
join wf.workflow_def as d on d.name = 'mc_two_groups'
on conflict(workflow_def_id, content_hash) do nothing;

insert into wf.workflow_action (action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select r.action_name, r.capability, cast(r.max_per_worker as int), cast(r.exclusive_worker as boolean), r.affinity_key_field, cast(r.prefer_previous_worker as boolean), cast(r.prefer_continue_group as boolean), cast(r.require_previous_worker as boolean), cast(r.max_concurrent as int), cast(r.rate_per_minute as int), cast(r.max_deliveries as int)
from (values
  ('count.left', 'left-hand', null, false, null, false, false, false, null, null, 5),
  ('count.right', 'right-hand', null, false, null, false, false, false, null, null, 5)
) as r(action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
order by r.action_name
on conflict(action_name) do nothing;

insert into wf.workflow_action_revision (action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
select r.action_name, r.revision, r.description, r.version, cast(r.input_schema_json as jsonb), cast(r.output_schema_json as jsonb), cast(r.result_codes_json as jsonb), cast(r.idempotent as boolean), cast(r.timeout_ms as bigint), cast(r.sensitive_json as jsonb)
from (values
  ('count.left', '388313e92df27571d5eb4f510802d0f75f4ec42a7e39f360b269aa0b5e549e5b', null, null, '{"type":"object","properties":{"number":{"type":"integer"}},"required":["number"]}', '{"type":"object","properties":{"number":{"type":"integer"}},"required":["number"]}', '{}', true, null, '[]'),
  ('count.right', '3edad96e002f6f5f788396ae00d4c313c5b070b49e9156d7b82144c925d57961', null, null, '{"type":"object","properties":{"number":{"type":"integer"}},"required":["number"]}', '{"type":"object","properties":{"number":{"type":"integer"}},"required":["number"]}', '{}', true, null, '[]')
) as r(action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
order by r.action_name
on conflict(action_name, revision) do nothing;

insert into wf.workflow_version_action (workflow_version_id, action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select v.workflow_version_id, r.action_name, r.revision, r.capability, cast(r.max_per_worker as int), cast(r.exclusive_worker as boolean), r.affinity_key_field, cast(r.prefer_previous_worker as boolean), cast(r.prefer_continue_group as boolean), cast(r.require_previous_worker as boolean), cast(r.max_concurrent as int), cast(r.rate_per_minute as int), cast(r.max_deliveries as int)
from (values
  ('count.left', '388313e92df27571d5eb4f510802d0f75f4ec42a7e39f360b269aa0b5e549e5b', 'left-hand', null, false, null, false, false, false, null, null, 5),
  ('count.right', '3edad96e002f6f5f788396ae00d4c313c5b070b49e9156d7b82144c925d57961', 'right-hand', null, false, null, false, false, false, null, null, 5)
) as r(action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
join wf.workflow_def as d on d.name = 'mc_two_groups'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '59d69de0c6586d660a7e7ebaf27e5009831bcb78d64bf35f07fd5a10bb158d59'
where v.published_at is null;

insert into wf.data_type (workflow_version_id, type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
select v.workflow_version_id, cast(r.type_id as int), cast(r.parent_type_id as int), r.path_kind, r.name, r.base_type, cast(r.is_required as boolean), cast(r.is_nullable as boolean), cast(r.enum_json as jsonb)
from (values
  (1, null, 'root', null, 'list', true, false, null),
  (2, 1, 'item', null, 'int', true, false, null),
  (3, null, 'root', null, 'list', true, false, null),
  (4, 3, 'item', null, 'int', true, false, null),
  (5, null, 'root', null, 'list', true, false, null),
  (6, 5, 'item', null, 'int', true, false, null)
) as r(type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
join wf.workflow_def as d on d.name = 'mc_two_groups'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '59d69de0c6586d660a7e7ebaf27e5009831bcb78d64bf35f07fd5a10bb158d59'
where v.published_at is null;

insert into wf.workflow_node (workflow_version_id, node_key, node_type, is_generated, action_name, action_revision, attributes_json)
select v.workflow_version_id, r.node_key, r.node_type, cast(r.is_generated as boolean), r.action_name, r.action_revision, cast(r.attributes_json as jsonb)
from (values
  ('mc_two_groups', 'SEQUENCE', false, null, null, '{}'),
  ('parallel_1', 'PARALLEL', false, null, null, '{}'),
  ('group_left', 'SEQUENCE', false, null, null, '{}'),
  ('group_left.foreach_1', 'FOREACH', false, null, null, '{"item":"number","parallel":0}'),
  ('group_left.foreach_1.body', 'SEQUENCE', true, null, null, '{}'),
  ('left', 'ACTION', false, 'count.left', '388313e92df27571d5eb4f510802d0f75f4ec42a7e39f360b269aa0b5e549e5b', '{"priority":2,"dispatch":{"max_per_worker":1}}'),
  ('group_right', 'SEQUENCE', false, null, null, '{}'),
  ('group_right.foreach_1', 'FOREACH', false, null, null, '{"item":"number","parallel":1}'),
  ('group_right.foreach_1.body', 'SEQUENCE', true, null, null, '{}'),
  ('right', 'ACTION', false, 'count.right', '3edad96e002f6f5f788396ae00d4c313c5b070b49e9156d7b82144c925d57961', '{"retry":{"limit":2,"backoff_ms":1000,"factor_hundredths":100,"max_ms":3600000,"jitter":false,"on":[-5]},"dispatch":{"prefer_previous_worker":true}}')
) as r(node_key, node_type, is_generated, action_name, action_revision, attributes_json)
join wf.workflow_def as d on d.name = 'mc_two_groups'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '59d69de0c6586d660a7e7ebaf27e5009831bcb78d64bf35f07fd5a10bb158d59'
where v.published_at is null;

insert into wf.workflow_edge (workflow_version_id, parent_key, child_key, branch_kind, child_order, case_value)
select v.workflow_version_id, r.parent_key, r.child_key, r.branch_kind, cast(r.child_order as int), cast(r.case_value as jsonb)
from (values
  ('mc_two_groups', 'parallel_1', 'SEQUENCE', 0, null),
  ('parallel_1', 'group_left', 'PARALLEL', 0, null),
  ('parallel_1', 'group_right', 'PARALLEL', 1, null),
  ('group_left', 'group_left.foreach_1', 'SEQUENCE', 0, null),
  ('group_left.foreach_1', 'group_left.foreach_1.body', 'BODY', 0, null),
  ('group_left.foreach_1.body', 'left', 'SEQUENCE', 0, null),
  ('group_right', 'group_right.foreach_1', 'SEQUENCE', 0, null),
  ('group_right.foreach_1', 'group_right.foreach_1.body', 'BODY', 0, null),
  ('group_right.foreach_1.body', 'right', 'SEQUENCE', 0, null)
) as r(parent_key, child_key, branch_kind, child_order, case_value)
join wf.workflow_def as d on d.name = 'mc_two_groups'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '59d69de0c6586d660a7e7ebaf27e5009831bcb78d64bf35f07fd5a10bb158d59'
where v.published_at is null;

insert into wf.workflow_input_template (workflow_version_id, node_key, template_json)
select v.workflow_version_id, r.node_key, cast(r.template_json as jsonb)
from (values
  ('left', '{"number":"${var.number}"}'),
  ('right', '{"number":"${var.number}"}')
) as r(node_key, template_json)
join wf.workflow_def as d on d.name = 'mc_two_groups'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '59d69de0c6586d660a7e7ebaf27e5009831bcb78d64bf35f07fd5a10bb158d59'
where v.published_at is null;

insert into wf.variable_output_binding (workflow_version_id, node_key, binding_order, binding_kind, name, owner_key, program_json)
select v.workflow_version_id, r.node_key, cast(r.binding_order as int), r.binding_kind, r.name, r.owner_key, cast(r.program_json as jsonb)
from (values
  ('group_left.foreach_1', 0, 'collect', 'left', 'mc_two_groups', '[["ctx","task",["left","output","number"]]]'),
  ('group_right.foreach_1', 0, 'collect', 'right', 'mc_two_groups', '[["ctx","task",["right","output","number"]]]')
) as r(node_key, binding_order, binding_kind, name, owner_key, program_json)
join wf.workflow_def as d on d.name = 'mc_two_groups'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '59d69de0c6586d660a7e7ebaf27e5009831bcb78d64bf35f07fd5a10bb158d59'
where v.published_at is null;

insert into wf.node_scope_default (workflow_version_id, owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
select v.workflow_version_id, r.owner_key, cast(r.variable_order as int), r.name, r.variable_kind, cast(r.type_id as int), cast(r.is_required as boolean), cast(r.program_json as jsonb)
from (values
  ('mc_two_groups', 0, 'numbers', 'input', 1, false, '[["lit",1],["lit",2],["lit",3],["arr",3]]'),
  ('mc_two_groups', 0, 'left', 'var', 3, false, '[["arr",0]]'),
  ('mc_two_groups', 1, 'right', 'var', 5, false, '[["arr",0]]'),
  ('group_left.foreach_1.body', 0, 'number', 'loop', null, false, null),
  ('group_right.foreach_1.body', 0, 'number', 'loop', null, false, null)
) as r(owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
join wf.workflow_def as d on d.name = 'mc_two_groups'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '59d69de0c6586d660a7e7ebaf27e5009831bcb78d64bf35f07fd5a10bb158d59'
where v.published_at is null;

insert into wf.collection_binding (workflow_version_id, node_key, binding_kind, program_json)
select v.workflow_version_id, r.node_key, r.binding_kind, cast(r.program_json as jsonb)
from (values
  ('group_left.foreach_1', 'variable', '[["var","numbers","mc_two_groups",[]]]'),
  ('group_right.foreach_1', 'variable', '[["var","numbers","mc_two_groups",[]]]')
) as r(node_key, binding_kind, program_json)
join wf.workflow_def as d on d.name = 'mc_two_groups'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '59d69de0c6586d660a7e7ebaf27e5009831bcb78d64bf35f07fd5a10bb158d59'
where v.published_at is null;

select wf.wf_set_version_notes(p_name => 'mc_two_groups', p_content_hash => '59d69de0c6586d660a7e7ebaf27e5009831bcb78d64bf35f07fd5a10bb158d59', p_source_map => cast('{"file":"mc_two_groups.wf","nodes":{"mc_two_groups":[3,10],"parallel_1":[14,3],"group_left":[15,14],"group_left.foreach_1":[16,7],"group_left.foreach_1.body":[16,46],"left":[17,16],"group_right":[24,14],"group_right.foreach_1":[25,7],"group_right.foreach_1.body":[25,37],"right":[26,16]}}' as jsonb), p_description => null);

select p.workflow_version_id, p.version_no, p.was_new
from wf.wf_publish_workflow_version(p_name => 'mc_two_groups', p_content_hash => '59d69de0c6586d660a7e7ebaf27e5009831bcb78d64bf35f07fd5a10bb158d59', p_activate => true, p_update_actions => false) as p;

commit;
