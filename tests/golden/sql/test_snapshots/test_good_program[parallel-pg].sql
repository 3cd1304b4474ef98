-- workflow: branches
-- content: bd26a63f62506cc34db73cbbd1ffd0a826ec8e063760facfb55ff04174f02fb8
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
  ('branches')
) as r(name)
on conflict(name) do nothing;

insert into wf.workflow_version (workflow_def_id, content_hash, spec_format, outputs_json)
select d.workflow_def_id, r.content_hash, cast(r.spec_format as int), cast(r.outputs_json as jsonb)
from (values
  ('bd26a63f62506cc34db73cbbd1ffd0a826ec8e063760facfb55ff04174f02fb8', 1, '[]')
) as r(content_hash, spec_format, outputs_json)
join wf.workflow_def as d on d.name = 'branches'
on conflict(workflow_def_id, content_hash) do nothing;

insert into wf.workflow_action (action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select r.action_name, r.capability, cast(r.max_per_worker as int), cast(r.exclusive_worker as boolean), r.affinity_key_field, cast(r.prefer_previous_worker as boolean), cast(r.prefer_continue_group as boolean), cast(r.require_previous_worker as boolean), cast(r.max_concurrent as int), cast(r.rate_per_minute as int), cast(r.max_deliveries as int)
from (values
  ('part.check', 'lab', null, false, null, false, false, false, null, null, 5)
) as r(action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
order by r.action_name
on conflict(action_name) do nothing;

insert into wf.workflow_action_revision (action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
select r.action_name, r.revision, r.description, r.version, cast(r.input_schema_json as jsonb), cast(r.output_schema_json as jsonb), cast(r.result_codes_json as jsonb), cast(r.idempotent as boolean), cast(r.timeout_ms as bigint), cast(r.sensitive_json as jsonb)
from (values
  ('part.check', '8e7b72d408dc4c9a25e9007430c498eae719bdb5ca0519d908768ec96e1ce31c', null, null, null, '{"type":"object","properties":{"good":{"type":"boolean"},"score":{"type":"number"}},"required":["good"]}', '{"0":"fine","1":"poor","2":"bad"}', false, null, '[]')
) as r(action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
order by r.action_name
on conflict(action_name, revision) do nothing;

insert into wf.workflow_version_action (workflow_version_id, action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select v.workflow_version_id, r.action_name, r.revision, r.capability, cast(r.max_per_worker as int), cast(r.exclusive_worker as boolean), r.affinity_key_field, cast(r.prefer_previous_worker as boolean), cast(r.prefer_continue_group as boolean), cast(r.require_previous_worker as boolean), cast(r.max_concurrent as int), cast(r.rate_per_minute as int), cast(r.max_deliveries as int)
from (values
  ('part.check', '8e7b72d408dc4c9a25e9007430c498eae719bdb5ca0519d908768ec96e1ce31c', 'lab', null, false, null, false, false, false, null, null, 5)
) as r(action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
join wf.workflow_def as d on d.name = 'branches'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'bd26a63f62506cc34db73cbbd1ffd0a826ec8e063760facfb55ff04174f02fb8'
where v.published_at is null;

insert into wf.data_type (workflow_version_id, type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
select v.workflow_version_id, cast(r.type_id as int), cast(r.parent_type_id as int), r.path_kind, r.name, r.base_type, cast(r.is_required as boolean), cast(r.is_nullable as boolean), cast(r.enum_json as jsonb)
from (values
  (1, null, 'root', null, 'list', true, false, null),
  (2, 1, 'item', null, 'int', true, false, null)
) as r(type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
join wf.workflow_def as d on d.name = 'branches'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'bd26a63f62506cc34db73cbbd1ffd0a826ec8e063760facfb55ff04174f02fb8'
where v.published_at is null;

insert into wf.workflow_node (workflow_version_id, node_key, node_type, is_generated, action_name, action_revision, attributes_json)
select v.workflow_version_id, r.node_key, r.node_type, cast(r.is_generated as boolean), r.action_name, r.action_revision, cast(r.attributes_json as jsonb)
from (values
  ('branches', 'SEQUENCE', false, null, null, '{}'),
  ('both', 'PARALLEL', false, null, null, '{"limit":2}'),
  ('left', 'SEQUENCE', false, null, null, '{}'),
  ('left.set_1', 'SEQUENCE', false, null, null, '{}'),
  ('right', 'ACTION', false, 'part.check', '8e7b72d408dc4c9a25e9007430c498eae719bdb5ca0519d908768ec96e1ce31c', '{}'),
  ('both.foreach_1', 'FOREACH', false, null, null, '{"item":"x","parallel":1}'),
  ('both.foreach_1.body', 'SEQUENCE', true, null, null, '{}'),
  ('both.set_1', 'SEQUENCE', false, null, null, '{}'),
  ('both.if_1', 'IF', false, null, null, '{"condition":[["var","list","branches",[]],["len"],["lit",3],["gt"]]}'),
  ('both.if_1.then', 'SEQUENCE', true, null, null, '{}'),
  ('both.set_2', 'SEQUENCE', false, null, null, '{}')
) as r(node_key, node_type, is_generated, action_name, action_revision, attributes_json)
join wf.workflow_def as d on d.name = 'branches'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'bd26a63f62506cc34db73cbbd1ffd0a826ec8e063760facfb55ff04174f02fb8'
where v.published_at is null;

insert into wf.workflow_edge (workflow_version_id, parent_key, child_key, branch_kind, child_order, case_value)
select v.workflow_version_id, r.parent_key, r.child_key, r.branch_kind, cast(r.child_order as int), cast(r.case_value as jsonb)
from (values
  ('branches', 'both', 'SEQUENCE', 0, null),
  ('both', 'left', 'PARALLEL', 0, null),
  ('both', 'right', 'PARALLEL', 1, null),
  ('both', 'both.foreach_1', 'PARALLEL', 2, null),
  ('both', 'both.if_1', 'PARALLEL', 3, null),
  ('left', 'left.set_1', 'SEQUENCE', 0, null),
  ('both.foreach_1', 'both.foreach_1.body', 'BODY', 0, null),
  ('both.foreach_1.body', 'both.set_1', 'SEQUENCE', 0, null),
  ('both.if_1', 'both.if_1.then', 'THEN', 0, null),
  ('both.if_1.then', 'both.set_2', 'SEQUENCE', 0, null)
) as r(parent_key, child_key, branch_kind, child_order, case_value)
join wf.workflow_def as d on d.name = 'branches'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'bd26a63f62506cc34db73cbbd1ffd0a826ec8e063760facfb55ff04174f02fb8'
where v.published_at is null;

insert into wf.workflow_input_template (workflow_version_id, node_key, template_json)
select v.workflow_version_id, r.node_key, cast(r.template_json as jsonb)
from (values
  ('right', '{"n":1}')
) as r(node_key, template_json)
join wf.workflow_def as d on d.name = 'branches'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'bd26a63f62506cc34db73cbbd1ffd0a826ec8e063760facfb55ff04174f02fb8'
where v.published_at is null;

insert into wf.variable_output_binding (workflow_version_id, node_key, binding_order, binding_kind, name, owner_key, program_json)
select v.workflow_version_id, r.node_key, cast(r.binding_order as int), r.binding_kind, r.name, r.owner_key, cast(r.program_json as jsonb)
from (values
  ('left.set_1', 0, 'var', 'a', 'left', '[["lit",1]]'),
  ('right', 0, 'var', 'a', 'right', '[["out",["good"]]]'),
  ('both.foreach_1', 0, 'collect', 'bs', 'both.foreach_1', '[["var","b","both.foreach_1.body",[]]]'),
  ('both.set_1', 0, 'var', 'b', 'both.foreach_1.body', '[["var","x","both.foreach_1.body",[]]]'),
  ('both.set_2', 0, 'var', 'a', 'both.if_1', '[["lit",2]]')
) as r(node_key, binding_order, binding_kind, name, owner_key, program_json)
join wf.workflow_def as d on d.name = 'branches'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'bd26a63f62506cc34db73cbbd1ffd0a826ec8e063760facfb55ff04174f02fb8'
where v.published_at is null;

insert into wf.node_scope_default (workflow_version_id, owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
select v.workflow_version_id, r.owner_key, cast(r.variable_order as int), r.name, r.variable_kind, cast(r.type_id as int), cast(r.is_required as boolean), cast(r.program_json as jsonb)
from (values
  ('branches', 0, 'list', 'input', 1, true, null),
  ('left', 0, 'a', 'set', null, false, null),
  ('right', 0, 'a', 'set', null, false, null),
  ('both.foreach_1', 0, 'bs', 'set', null, false, null),
  ('both.foreach_1.body', 0, 'x', 'loop', null, false, null),
  ('both.foreach_1.body', 1, 'b', 'set', null, false, null),
  ('both.if_1', 0, 'a', 'set', null, false, null)
) as r(owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
join wf.workflow_def as d on d.name = 'branches'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'bd26a63f62506cc34db73cbbd1ffd0a826ec8e063760facfb55ff04174f02fb8'
where v.published_at is null;

insert into wf.collection_binding (workflow_version_id, node_key, binding_kind, program_json)
select v.workflow_version_id, r.node_key, r.binding_kind, cast(r.program_json as jsonb)
from (values
  ('both.foreach_1', 'variable', '[["var","list","branches",[]]]')
) as r(node_key, binding_kind, program_json)
join wf.workflow_def as d on d.name = 'branches'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'bd26a63f62506cc34db73cbbd1ffd0a826ec8e063760facfb55ff04174f02fb8'
where v.published_at is null;

select wf.wf_set_version_notes(p_name => 'branches', p_content_hash => 'bd26a63f62506cc34db73cbbd1ffd0a826ec8e063760facfb55ff04174f02fb8', p_source_map => cast('{"file":"parallel.wf","nodes":{"branches":[2,10],"both":[4,12],"left":[5,14],"left.set_1":[5,21],"right":[6,12],"both.foreach_1":[7,5],"both.foreach_1.body":[7,27],"both.set_1":[7,29],"both.if_1":[8,5],"both.if_1.then":[8,26],"both.set_2":[8,28]}}' as jsonb), p_description => null);

select p.workflow_version_id, p.version_no, p.was_new
from wf.wf_publish_workflow_version(p_name => 'branches', p_content_hash => 'bd26a63f62506cc34db73cbbd1ffd0a826ec8e063760facfb55ff04174f02fb8', p_activate => true, p_update_actions => false) as p;

commit;
