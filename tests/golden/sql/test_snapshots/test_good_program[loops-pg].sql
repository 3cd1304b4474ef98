-- workflow: loops
-- content: 441ea10d10d12be60ea92948d088406b715a5c39cf644547e8276d1df7b33ea0
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
  ('loops')
) as r(name)
on conflict(name) do nothing;

insert into wf.workflow_version (workflow_def_id, content_hash, spec_format, outputs_json)
select d.workflow_def_id, r.content_hash, cast(r.spec_format as int), cast(r.outputs_json as jsonb)
from (values
  ('441ea10d10d12be60ea92948d088406b715a5c39cf644547e8276d1df7b33ea0', 1, '[{"order":0,"name":"sums","program":[["var","sums","loops",[]]]},{"order":1,"name":"last","program":[["ctx","task",["check","output","score"]],["alt",1],["lit",0]]}]')
) as r(content_hash, spec_format, outputs_json)
join wf.workflow_def as d on d.name = 'loops'
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
join wf.workflow_def as d on d.name = 'loops'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '441ea10d10d12be60ea92948d088406b715a5c39cf644547e8276d1df7b33ea0'
where v.published_at is null;

insert into wf.data_type (workflow_version_id, type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
select v.workflow_version_id, cast(r.type_id as int), cast(r.parent_type_id as int), r.path_kind, r.name, r.base_type, cast(r.is_required as boolean), cast(r.is_nullable as boolean), cast(r.enum_json as jsonb)
from (values
  (1, null, 'root', null, 'list', true, false, null),
  (2, 1, 'item', null, 'list', true, false, null),
  (3, 2, 'item', null, 'int', true, false, null),
  (4, null, 'root', null, 'bool', true, false, null)
) as r(type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
join wf.workflow_def as d on d.name = 'loops'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '441ea10d10d12be60ea92948d088406b715a5c39cf644547e8276d1df7b33ea0'
where v.published_at is null;

insert into wf.workflow_node (workflow_version_id, node_key, node_type, is_generated, action_name, action_revision, attributes_json)
select v.workflow_version_id, r.node_key, r.node_type, cast(r.is_generated as boolean), r.action_name, r.action_revision, cast(r.attributes_json as jsonb)
from (values
  ('loops', 'SEQUENCE', false, null, null, '{}'),
  ('three', 'REPEAT', false, null, null, '{"count":[["lit",3]],"counter":"i"}'),
  ('three.body', 'SEQUENCE', true, null, null, '{}'),
  ('three.set_1', 'SEQUENCE', false, null, null, '{}'),
  ('while_1', 'WHILE', false, null, null, '{"condition":[["var","good","loops",[]],["not"]],"max":5}'),
  ('while_1.body', 'SEQUENCE', true, null, null, '{}'),
  ('check', 'ACTION', false, 'part.check', '8e7b72d408dc4c9a25e9007430c498eae719bdb5ca0519d908768ec96e1ce31c', '{}'),
  ('foreach_1', 'FOREACH', false, null, null, '{"item":"row","index":"r","parallel":4}'),
  ('foreach_1.body', 'SEQUENCE', true, null, null, '{}'),
  ('foreach_2', 'FOREACH', false, null, null, '{"item":"cell","parallel":1}'),
  ('foreach_2.body', 'SEQUENCE', true, null, null, '{}'),
  ('set_1', 'SEQUENCE', false, null, null, '{}'),
  ('foreach_3', 'FOREACH', false, null, null, '{"item":"x","parallel":0}'),
  ('foreach_3.body', 'SEQUENCE', true, null, null, '{}'),
  ('set_2', 'SEQUENCE', false, null, null, '{}'),
  ('foreach_4', 'FOREACH', false, null, null, '{"item":"x","parallel":1}'),
  ('foreach_4.body', 'SEQUENCE', true, null, null, '{}'),
  ('set_3', 'SEQUENCE', false, null, null, '{}')
) as r(node_key, node_type, is_generated, action_name, action_revision, attributes_json)
join wf.workflow_def as d on d.name = 'loops'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '441ea10d10d12be60ea92948d088406b715a5c39cf644547e8276d1df7b33ea0'
where v.published_at is null;

insert into wf.workflow_edge (workflow_version_id, parent_key, child_key, branch_kind, child_order, case_value)
select v.workflow_version_id, r.parent_key, r.child_key, r.branch_kind, cast(r.child_order as int), cast(r.case_value as jsonb)
from (values
  ('loops', 'three', 'SEQUENCE', 0, null),
  ('loops', 'while_1', 'SEQUENCE', 1, null),
  ('loops', 'foreach_1', 'SEQUENCE', 2, null),
  ('loops', 'foreach_3', 'SEQUENCE', 3, null),
  ('loops', 'foreach_4', 'SEQUENCE', 4, null),
  ('three', 'three.body', 'BODY', 0, null),
  ('three.body', 'three.set_1', 'SEQUENCE', 0, null),
  ('while_1', 'while_1.body', 'BODY', 0, null),
  ('while_1.body', 'check', 'SEQUENCE', 0, null),
  ('foreach_1', 'foreach_1.body', 'BODY', 0, null),
  ('foreach_1.body', 'foreach_2', 'SEQUENCE', 0, null),
  ('foreach_2', 'foreach_2.body', 'BODY', 0, null),
  ('foreach_2.body', 'set_1', 'SEQUENCE', 0, null),
  ('foreach_3', 'foreach_3.body', 'BODY', 0, null),
  ('foreach_3.body', 'set_2', 'SEQUENCE', 0, null),
  ('foreach_4', 'foreach_4.body', 'BODY', 0, null),
  ('foreach_4.body', 'set_3', 'SEQUENCE', 0, null)
) as r(parent_key, child_key, branch_kind, child_order, case_value)
join wf.workflow_def as d on d.name = 'loops'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '441ea10d10d12be60ea92948d088406b715a5c39cf644547e8276d1df7b33ea0'
where v.published_at is null;

insert into wf.workflow_input_template (workflow_version_id, node_key, template_json)
select v.workflow_version_id, r.node_key, cast(r.template_json as jsonb)
from (values
  ('check', '{"round":"${ctx.iterationNo}"}')
) as r(node_key, template_json)
join wf.workflow_def as d on d.name = 'loops'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '441ea10d10d12be60ea92948d088406b715a5c39cf644547e8276d1df7b33ea0'
where v.published_at is null;

insert into wf.variable_output_binding (workflow_version_id, node_key, binding_order, binding_kind, name, owner_key, program_json)
select v.workflow_version_id, r.node_key, cast(r.binding_order as int), r.binding_kind, r.name, r.owner_key, cast(r.program_json as jsonb)
from (values
  ('three.set_1', 0, 'var', 'at', 'three.body', '[["var","i","three.body",[]]]'),
  ('check', 0, 'var', 'good', 'loops', '[["out",["good"]]]'),
  ('foreach_1', 0, 'collect', 'sums', 'loops', '[["var","r","foreach_1.body",[]],["var","doubled","foreach_1.body",[]],["obj",["row","cells"]]]'),
  ('foreach_2', 0, 'collect', 'doubled', 'foreach_1.body', '[["var","twice","foreach_2.body",[]]]'),
  ('set_1', 0, 'var', 'twice', 'foreach_2.body', '[["lit",2],["var","cell","foreach_2.body",[]],["mul"]]'),
  ('set_2', 0, 'var', 'y', 'foreach_3.body', '[["var","x","foreach_3.body",[]]]'),
  ('set_3', 0, 'var', 'y', 'foreach_4.body', '[["ctx","item",[]]]')
) as r(node_key, binding_order, binding_kind, name, owner_key, program_json)
join wf.workflow_def as d on d.name = 'loops'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '441ea10d10d12be60ea92948d088406b715a5c39cf644547e8276d1df7b33ea0'
where v.published_at is null;

insert into wf.node_scope_default (workflow_version_id, owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
select v.workflow_version_id, r.owner_key, cast(r.variable_order as int), r.name, r.variable_kind, cast(r.type_id as int), cast(r.is_required as boolean), cast(r.program_json as jsonb)
from (values
  ('loops', 0, 'rows', 'input', 1, true, null),
  ('loops', 0, 'good', 'var', 4, false, '[["lit",false]]'),
  ('loops', 1, 'sums', 'set', null, false, null),
  ('three.body', 0, 'i', 'loop', null, false, null),
  ('three.body', 1, 'at', 'set', null, false, null),
  ('foreach_1.body', 0, 'row', 'loop', null, false, null),
  ('foreach_1.body', 1, 'r', 'loop', null, false, null),
  ('foreach_1.body', 2, 'doubled', 'set', null, false, null),
  ('foreach_2.body', 0, 'cell', 'loop', null, false, null),
  ('foreach_2.body', 1, 'twice', 'set', null, false, null),
  ('foreach_3.body', 0, 'x', 'loop', null, false, null),
  ('foreach_3.body', 1, 'y', 'set', null, false, null),
  ('foreach_4.body', 0, 'x', 'loop', null, false, null),
  ('foreach_4.body', 1, 'y', 'set', null, false, null)
) as r(owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
join wf.workflow_def as d on d.name = 'loops'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '441ea10d10d12be60ea92948d088406b715a5c39cf644547e8276d1df7b33ea0'
where v.published_at is null;

insert into wf.collection_binding (workflow_version_id, node_key, binding_kind, program_json)
select v.workflow_version_id, r.node_key, r.binding_kind, cast(r.program_json as jsonb)
from (values
  ('foreach_1', 'variable', '[["var","rows","loops",[]]]'),
  ('foreach_2', 'variable', '[["var","row","foreach_1.body",[]]]'),
  ('foreach_3', 'program', '[["ctx","context",["more"]],["alt",1],["arr",0]]'),
  ('foreach_4', 'context', '[["ctx","context",["list"]]]')
) as r(node_key, binding_kind, program_json)
join wf.workflow_def as d on d.name = 'loops'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '441ea10d10d12be60ea92948d088406b715a5c39cf644547e8276d1df7b33ea0'
where v.published_at is null;

select wf.wf_set_version_notes(p_name => 'loops', p_content_hash => '441ea10d10d12be60ea92948d088406b715a5c39cf644547e8276d1df7b33ea0', p_source_map => cast('{"file":"loops.wf","nodes":{"loops":[2,10],"three":[6,10],"three.body":[6,24],"three.set_1":[6,26],"while_1":[7,3],"while_1.body":[7,28],"check":[8,12],"foreach_1":[10,3],"foreach_1.body":[10,41],"foreach_2":[11,5],"foreach_2.body":[11,29],"set_1":[12,7],"foreach_3":[17,3],"foreach_3.body":[17,48],"set_2":[17,50],"foreach_4":[18,3],"foreach_4.body":[18,33],"set_3":[18,35]}}' as jsonb), p_description => null);

select p.workflow_version_id, p.version_no, p.was_new
from wf.wf_publish_workflow_version(p_name => 'loops', p_content_hash => '441ea10d10d12be60ea92948d088406b715a5c39cf644547e8276d1df7b33ea0', p_activate => true, p_update_actions => false) as p;

commit;
