-- The deploy script of this workflow as version 1 wrote it. Never edit it.
-- workflow w {
--   var n : int = 0
--   action a = t.do()
--   parallel { action b = t.do(n: 1) action c = t.do(n: var.n) }
--   action d = t.do(sum: var.n + 1, text: "n is ${var.n}") { set n = var.n + 1 }
--   action e = t.do(n: var.n)
-- }
-- workflow: w
-- content: 724fb1d8925350e8326f25ae12e8622e097dee01c7680c17fa17d201f1b348e8
-- dialect: postgresql
-- spec_format: 1

begin isolation level read committed;
set local standard_conforming_strings = on;
set local client_encoding = 'UTF8';
select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('wf.deploy', 0));

insert into wf.workflow_def (name)
select r.name
from (values
  ('w')
) as r(name)
on conflict(name) do nothing;

insert into wf.workflow_version (workflow_def_id, content_hash, spec_format, outputs_json)
select d.workflow_def_id, r.content_hash, cast(r.spec_format as int), cast(r.outputs_json as jsonb)
from (values
  ('724fb1d8925350e8326f25ae12e8622e097dee01c7680c17fa17d201f1b348e8', 1, '[]')
) as r(content_hash, spec_format, outputs_json)
join wf.workflow_def as d on d.name = 'w'
on conflict(workflow_def_id, content_hash) do nothing;

insert into wf.workflow_action (action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select r.action_name, r.capability, cast(r.max_per_worker as int), cast(r.exclusive_worker as boolean), r.affinity_key_field, cast(r.prefer_previous_worker as boolean), cast(r.prefer_continue_group as boolean), cast(r.require_previous_worker as boolean), cast(r.max_concurrent as int), cast(r.rate_per_minute as int), cast(r.max_deliveries as int)
from (values
  ('t.do', 't', null, false, null, false, false, false, null, null, 5)
) as r(action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
order by r.action_name
on conflict(action_name) do nothing;

insert into wf.workflow_action_revision (action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
select r.action_name, r.revision, r.description, r.version, cast(r.input_schema_json as jsonb), cast(r.output_schema_json as jsonb), cast(r.result_codes_json as jsonb), cast(r.idempotent as boolean), cast(r.timeout_ms as bigint), cast(r.sensitive_json as jsonb)
from (values
  ('t.do', '5517ddf726243b952a23d97f0e3f4c0306af1edefbb3410623f810893d9a80a5', null, null, null, null, '{"0":"ok","1":"short","2":"long"}', true, null, '[]')
) as r(action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
order by r.action_name
on conflict(action_name, revision) do nothing;

insert into wf.workflow_version_action (workflow_version_id, action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select v.workflow_version_id, r.action_name, r.revision, r.capability, cast(r.max_per_worker as int), cast(r.exclusive_worker as boolean), r.affinity_key_field, cast(r.prefer_previous_worker as boolean), cast(r.prefer_continue_group as boolean), cast(r.require_previous_worker as boolean), cast(r.max_concurrent as int), cast(r.rate_per_minute as int), cast(r.max_deliveries as int)
from (values
  ('t.do', '5517ddf726243b952a23d97f0e3f4c0306af1edefbb3410623f810893d9a80a5', 't', null, false, null, false, false, false, null, null, 5)
) as r(action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
join wf.workflow_def as d on d.name = 'w'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '724fb1d8925350e8326f25ae12e8622e097dee01c7680c17fa17d201f1b348e8'
where v.published_at is null;

insert into wf.data_type (workflow_version_id, type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
select v.workflow_version_id, cast(r.type_id as int), cast(r.parent_type_id as int), r.path_kind, r.name, r.base_type, cast(r.is_required as boolean), cast(r.is_nullable as boolean), cast(r.enum_json as jsonb)
from (values
  (1, null, 'root', null, 'int', true, false, null)
) as r(type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
join wf.workflow_def as d on d.name = 'w'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '724fb1d8925350e8326f25ae12e8622e097dee01c7680c17fa17d201f1b348e8'
where v.published_at is null;

insert into wf.workflow_node (workflow_version_id, node_key, node_order, node_type, is_generated, action_name, action_revision, attributes_json)
select v.workflow_version_id, r.node_key, cast(r.node_order as int), r.node_type, cast(r.is_generated as boolean), r.action_name, r.action_revision, cast(r.attributes_json as jsonb)
from (values
  ('w', 0, 'SEQUENCE', false, null, null, '{}'),
  ('a', 1, 'ACTION', false, 't.do', '5517ddf726243b952a23d97f0e3f4c0306af1edefbb3410623f810893d9a80a5', '{}'),
  ('parallel_1', 2, 'PARALLEL', false, null, null, '{}'),
  ('b', 3, 'ACTION', false, 't.do', '5517ddf726243b952a23d97f0e3f4c0306af1edefbb3410623f810893d9a80a5', '{}'),
  ('c', 4, 'ACTION', false, 't.do', '5517ddf726243b952a23d97f0e3f4c0306af1edefbb3410623f810893d9a80a5', '{}'),
  ('d', 5, 'ACTION', false, 't.do', '5517ddf726243b952a23d97f0e3f4c0306af1edefbb3410623f810893d9a80a5', '{}'),
  ('e', 6, 'ACTION', false, 't.do', '5517ddf726243b952a23d97f0e3f4c0306af1edefbb3410623f810893d9a80a5', '{}')
) as r(node_key, node_order, node_type, is_generated, action_name, action_revision, attributes_json)
join wf.workflow_def as d on d.name = 'w'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '724fb1d8925350e8326f25ae12e8622e097dee01c7680c17fa17d201f1b348e8'
where v.published_at is null
order by r.node_order;

insert into wf.workflow_edge (workflow_version_id, parent_key, child_key, branch_kind, child_order, case_value)
select v.workflow_version_id, r.parent_key, r.child_key, r.branch_kind, cast(r.child_order as int), cast(r.case_value as jsonb)
from (values
  ('w', 'a', 'SEQUENCE', 0, null),
  ('w', 'parallel_1', 'SEQUENCE', 1, null),
  ('w', 'd', 'SEQUENCE', 2, null),
  ('w', 'e', 'SEQUENCE', 3, null),
  ('parallel_1', 'b', 'PARALLEL', 0, null),
  ('parallel_1', 'c', 'PARALLEL', 1, null)
) as r(parent_key, child_key, branch_kind, child_order, case_value)
join wf.workflow_def as d on d.name = 'w'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '724fb1d8925350e8326f25ae12e8622e097dee01c7680c17fa17d201f1b348e8'
where v.published_at is null;

insert into wf.workflow_input_template (workflow_version_id, node_key, template_json)
select v.workflow_version_id, r.node_key, cast(r.template_json as jsonb)
from (values
  ('a', '{}'),
  ('b', '{"n":1}'),
  ('c', '{"n":"${var.n}"}'),
  ('d', '{"sum":null,"text":"n is ${var.n}"}'),
  ('e', '{"n":"${var.n}"}')
) as r(node_key, template_json)
join wf.workflow_def as d on d.name = 'w'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '724fb1d8925350e8326f25ae12e8622e097dee01c7680c17fa17d201f1b348e8'
where v.published_at is null;

insert into wf.workflow_input_binding (workflow_version_id, node_key, pointer, program_json)
select v.workflow_version_id, r.node_key, r.pointer, cast(r.program_json as jsonb)
from (values
  ('d', '/sum', '[["var","n","w",[]],["lit",1],["add"]]')
) as r(node_key, pointer, program_json)
join wf.workflow_def as d on d.name = 'w'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '724fb1d8925350e8326f25ae12e8622e097dee01c7680c17fa17d201f1b348e8'
where v.published_at is null;

insert into wf.variable_output_binding (workflow_version_id, node_key, binding_order, binding_kind, name, owner_key, program_json)
select v.workflow_version_id, r.node_key, cast(r.binding_order as int), r.binding_kind, r.name, r.owner_key, cast(r.program_json as jsonb)
from (values
  ('d', 0, 'var', 'n', 'w', '[["var","n","w",[]],["lit",1],["add"]]')
) as r(node_key, binding_order, binding_kind, name, owner_key, program_json)
join wf.workflow_def as d on d.name = 'w'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '724fb1d8925350e8326f25ae12e8622e097dee01c7680c17fa17d201f1b348e8'
where v.published_at is null;

insert into wf.node_scope_default (workflow_version_id, owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
select v.workflow_version_id, r.owner_key, cast(r.variable_order as int), r.name, r.variable_kind, cast(r.type_id as int), cast(r.is_required as boolean), cast(r.program_json as jsonb)
from (values
  ('w', 0, 'n', 'var', 1, false, '[["lit",0]]')
) as r(owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
join wf.workflow_def as d on d.name = 'w'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '724fb1d8925350e8326f25ae12e8622e097dee01c7680c17fa17d201f1b348e8'
where v.published_at is null;

select wf.wf_set_version_notes(p_name => 'w', p_content_hash => '724fb1d8925350e8326f25ae12e8622e097dee01c7680c17fa17d201f1b348e8', p_source_map => cast('{"file":"w.wf","nodes":{"w":[1,10],"a":[3,10],"parallel_1":[4,3],"b":[4,21],"c":[4,43],"d":[5,10],"e":[6,10]}}' as jsonb), p_description => null);

select p.workflow_version_id, p.version_no, p.was_new
from wf.wf_publish_workflow_version(p_name => 'w', p_content_hash => '724fb1d8925350e8326f25ae12e8622e097dee01c7680c17fa17d201f1b348e8', p_activate => true, p_update_actions => false) as p;

commit;
