-- workflow: choice
-- content: 18e5910d92e476f8c40dbfcf1c691ef63458dbceec5a08b696469642ac0a8b2e
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
  ('choice')
) as r(name)
on conflict(name) do nothing;

insert into wf.workflow_version (workflow_def_id, content_hash, spec_format, outputs_json)
select d.workflow_def_id, r.content_hash, cast(r.spec_format as int), cast(r.outputs_json as jsonb)
from (values
  ('18e5910d92e476f8c40dbfcf1c691ef63458dbceec5a08b696469642ac0a8b2e', 1, '[]')
) as r(content_hash, spec_format, outputs_json)
join wf.workflow_def as d on d.name = 'choice'
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
join wf.workflow_def as d on d.name = 'choice'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '18e5910d92e476f8c40dbfcf1c691ef63458dbceec5a08b696469642ac0a8b2e'
where v.published_at is null;

insert into wf.data_type (workflow_version_id, type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
select v.workflow_version_id, cast(r.type_id as int), cast(r.parent_type_id as int), r.path_kind, r.name, r.base_type, cast(r.is_required as boolean), cast(r.is_nullable as boolean), cast(r.enum_json as jsonb)
from (values
  (1, null, 'root', null, 'string', true, false, '["small","large"]')
) as r(type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
join wf.workflow_def as d on d.name = 'choice'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '18e5910d92e476f8c40dbfcf1c691ef63458dbceec5a08b696469642ac0a8b2e'
where v.published_at is null;

insert into wf.workflow_node (workflow_version_id, node_key, node_type, is_generated, action_name, action_revision, attributes_json)
select v.workflow_version_id, r.node_key, r.node_type, cast(r.is_generated as boolean), r.action_name, r.action_revision, cast(r.attributes_json as jsonb)
from (values
  ('choice', 'SEQUENCE', false, null, null, '{}'),
  ('check', 'ACTION', false, 'part.check', '8e7b72d408dc4c9a25e9007430c498eae719bdb5ca0519d908768ec96e1ce31c', '{}'),
  ('if_1', 'IF', false, null, null, '{"condition":[["ctx","task",["check","resultCode"]],["lit",0],["ne"]]}'),
  ('if_1.then', 'SEQUENCE', true, null, null, '{}'),
  ('set_1', 'SEQUENCE', false, null, null, '{}'),
  ('if_1.else', 'SEQUENCE', true, null, null, '{}'),
  ('if_2', 'IF', false, null, null, '{"condition":[["var","kind","choice",[]],["lit","large"],["eq"],["jf",5],["ctx","context",["checked"]],["alt",1],["lit",false],["not"],["bool"]]}'),
  ('if_2.then', 'SEQUENCE', true, null, null, '{}'),
  ('set_2', 'SEQUENCE', false, null, null, '{}'),
  ('if_2.else', 'SEQUENCE', true, null, null, '{}'),
  ('set_3', 'SEQUENCE', false, null, null, '{}'),
  ('switch_1', 'SWITCH', false, null, null, '{"subject":[["ctx","task",["check","resultCode"]]]}'),
  ('switch_1.case_0', 'SEQUENCE', true, null, null, '{}'),
  ('switch_1.case_1', 'SEQUENCE', true, null, null, '{}'),
  ('set_4', 'SEQUENCE', false, null, null, '{}'),
  ('switch_1.default', 'SEQUENCE', true, null, null, '{}'),
  ('fail_1', 'SEQUENCE', false, null, null, '{"fail":{"code":-1,"message":[["lit","unknown"]]}}'),
  ('by_kind', 'SWITCH', false, null, null, '{"subject":[["var","kind","choice",[]]]}'),
  ('by_kind.case_0', 'SEQUENCE', true, null, null, '{}'),
  ('by_kind.set_1', 'SEQUENCE', false, null, null, '{}'),
  ('by_kind.case_1', 'SEQUENCE', true, null, null, '{}'),
  ('by_kind.set_2', 'SEQUENCE', false, null, null, '{}')
) as r(node_key, node_type, is_generated, action_name, action_revision, attributes_json)
join wf.workflow_def as d on d.name = 'choice'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '18e5910d92e476f8c40dbfcf1c691ef63458dbceec5a08b696469642ac0a8b2e'
where v.published_at is null;

insert into wf.workflow_edge (workflow_version_id, parent_key, child_key, branch_kind, child_order, case_value)
select v.workflow_version_id, r.parent_key, r.child_key, r.branch_kind, cast(r.child_order as int), cast(r.case_value as jsonb)
from (values
  ('choice', 'check', 'SEQUENCE', 0, null),
  ('choice', 'if_1', 'SEQUENCE', 1, null),
  ('choice', 'switch_1', 'SEQUENCE', 2, null),
  ('choice', 'by_kind', 'SEQUENCE', 3, null),
  ('if_1', 'if_1.then', 'THEN', 0, null),
  ('if_1', 'if_1.else', 'ELSE', 1, null),
  ('if_1.then', 'set_1', 'SEQUENCE', 0, null),
  ('if_1.else', 'if_2', 'SEQUENCE', 0, null),
  ('if_2', 'if_2.then', 'THEN', 0, null),
  ('if_2', 'if_2.else', 'ELSE', 1, null),
  ('if_2.then', 'set_2', 'SEQUENCE', 0, null),
  ('if_2.else', 'set_3', 'SEQUENCE', 0, null),
  ('switch_1', 'switch_1.case_0', 'CASE', 0, '[0]'),
  ('switch_1', 'switch_1.case_1', 'CASE', 1, '[1,2]'),
  ('switch_1', 'switch_1.default', 'DEFAULT', 2, null),
  ('switch_1.case_1', 'set_4', 'SEQUENCE', 0, null),
  ('switch_1.default', 'fail_1', 'SEQUENCE', 0, null),
  ('by_kind', 'by_kind.case_0', 'CASE', 0, '["small"]'),
  ('by_kind', 'by_kind.case_1', 'CASE', 1, '["large","huge"]'),
  ('by_kind.case_0', 'by_kind.set_1', 'SEQUENCE', 0, null),
  ('by_kind.case_1', 'by_kind.set_2', 'SEQUENCE', 0, null)
) as r(parent_key, child_key, branch_kind, child_order, case_value)
join wf.workflow_def as d on d.name = 'choice'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '18e5910d92e476f8c40dbfcf1c691ef63458dbceec5a08b696469642ac0a8b2e'
where v.published_at is null;

insert into wf.workflow_input_template (workflow_version_id, node_key, template_json)
select v.workflow_version_id, r.node_key, cast(r.template_json as jsonb)
from (values
  ('check', '{"kind":"${var.kind}"}')
) as r(node_key, template_json)
join wf.workflow_def as d on d.name = 'choice'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '18e5910d92e476f8c40dbfcf1c691ef63458dbceec5a08b696469642ac0a8b2e'
where v.published_at is null;

insert into wf.variable_output_binding (workflow_version_id, node_key, binding_order, binding_kind, name, owner_key, program_json)
select v.workflow_version_id, r.node_key, cast(r.binding_order as int), r.binding_kind, r.name, r.owner_key, cast(r.program_json as jsonb)
from (values
  ('set_1', 0, 'var', 'poor', 'choice', '[["lit",true]]'),
  ('set_2', 0, 'var', 'poor', 'choice', '[["lit",false]]'),
  ('set_3', 0, 'var', 'poor', 'choice', '[["lit",null]]'),
  ('set_4', 0, 'var', 'again', 'choice', '[["lit",true]]'),
  ('by_kind.set_1', 0, 'var', 'size', 'choice', '[["lit",1]]'),
  ('by_kind.set_2', 0, 'var', 'size', 'choice', '[["lit",2]]')
) as r(node_key, binding_order, binding_kind, name, owner_key, program_json)
join wf.workflow_def as d on d.name = 'choice'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '18e5910d92e476f8c40dbfcf1c691ef63458dbceec5a08b696469642ac0a8b2e'
where v.published_at is null;

insert into wf.node_scope_default (workflow_version_id, owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
select v.workflow_version_id, r.owner_key, cast(r.variable_order as int), r.name, r.variable_kind, cast(r.type_id as int), cast(r.is_required as boolean), cast(r.program_json as jsonb)
from (values
  ('choice', 0, 'kind', 'input', 1, false, '[["lit","small"]]'),
  ('choice', 0, 'poor', 'set', null, false, null),
  ('choice', 1, 'again', 'set', null, false, null),
  ('choice', 2, 'size', 'set', null, false, null)
) as r(owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
join wf.workflow_def as d on d.name = 'choice'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '18e5910d92e476f8c40dbfcf1c691ef63458dbceec5a08b696469642ac0a8b2e'
where v.published_at is null;

select wf.wf_set_version_notes(p_name => 'choice', p_content_hash => '18e5910d92e476f8c40dbfcf1c691ef63458dbceec5a08b696469642ac0a8b2e', p_source_map => cast('{"file":"choice.wf","nodes":{"choice":[2,10],"check":[4,10],"if_1":[5,3],"if_1.then":[5,12],"set_1":[5,14],"if_1.else":[5,37],"if_2":[5,37],"if_2.then":[5,99],"set_2":[5,101],"if_2.else":[5,125],"set_3":[5,127],"switch_1":[6,3],"switch_1.case_0":[7,15],"switch_1.case_1":[8,18],"set_4":[8,20],"switch_1.default":[9,13],"fail_1":[9,15],"by_kind":[11,10],"by_kind.case_0":[11,43],"by_kind.set_1":[11,45],"by_kind.case_1":[11,81],"by_kind.set_2":[11,83]}}' as jsonb), p_description => null);

select p.workflow_version_id, p.version_no, p.was_new
from wf.wf_publish_workflow_version(p_name => 'choice', p_content_hash => '18e5910d92e476f8c40dbfcf1c691ef63458dbceec5a08b696469642ac0a8b2e', p_activate => true, p_update_actions => false) as p;

commit;
