-- workflow: reuse
-- content: da12109ee5b5158282d4baccd85f47587749d115a1fd8b7d725704fe38bad6c7
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
  ('reuse')
) as r(name)
on conflict(name) do nothing;

insert into wf.workflow_version (workflow_def_id, content_hash, spec_format, outputs_json)
select d.workflow_def_id, r.content_hash, cast(r.spec_format as int), cast(r.outputs_json as jsonb)
from (values
  ('da12109ee5b5158282d4baccd85f47587749d115a1fd8b7d725704fe38bad6c7', 1, '[{"order":0,"name":"checked","program":[["var","checked","reuse",[]]]}]')
) as r(content_hash, spec_format, outputs_json)
join wf.workflow_def as d on d.name = 'reuse'
on conflict(workflow_def_id, content_hash) do nothing;

insert into wf.workflow_action (action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select r.action_name, r.capability, cast(r.max_per_worker as int), cast(r.exclusive_worker as boolean), r.affinity_key_field, cast(r.prefer_previous_worker as boolean), cast(r.prefer_continue_group as boolean), cast(r.require_previous_worker as boolean), cast(r.max_concurrent as int), cast(r.rate_per_minute as int), cast(r.max_deliveries as int)
from (values
  ('mail.send', 'default', null, false, null, false, false, false, null, null, 5),
  ('part.check', 'lab', null, false, null, false, false, false, null, null, 5)
) as r(action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
order by r.action_name
on conflict(action_name) do nothing;

insert into wf.workflow_action_revision (action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
select r.action_name, r.revision, r.description, r.version, cast(r.input_schema_json as jsonb), cast(r.output_schema_json as jsonb), cast(r.result_codes_json as jsonb), cast(r.idempotent as boolean), cast(r.timeout_ms as bigint), cast(r.sensitive_json as jsonb)
from (values
  ('mail.send', '7a703188bbf783f54ff48d4d1094248ce542769a8753cdd96c7fd6a149761102', null, null, '{"type":"object","properties":{"to":{"type":"string"},"subject":{"type":"string"},"details":{}},"required":["to"]}', null, '{}', true, null, '[]'),
  ('part.check', '8e7b72d408dc4c9a25e9007430c498eae719bdb5ca0519d908768ec96e1ce31c', null, null, null, '{"type":"object","properties":{"good":{"type":"boolean"},"score":{"type":"number"}},"required":["good"]}', '{"0":"fine","1":"poor","2":"bad"}', false, null, '[]')
) as r(action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
order by r.action_name
on conflict(action_name, revision) do nothing;

insert into wf.workflow_version_action (workflow_version_id, action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select v.workflow_version_id, r.action_name, r.revision, r.capability, cast(r.max_per_worker as int), cast(r.exclusive_worker as boolean), r.affinity_key_field, cast(r.prefer_previous_worker as boolean), cast(r.prefer_continue_group as boolean), cast(r.require_previous_worker as boolean), cast(r.max_concurrent as int), cast(r.rate_per_minute as int), cast(r.max_deliveries as int)
from (values
  ('part.check', '8e7b72d408dc4c9a25e9007430c498eae719bdb5ca0519d908768ec96e1ce31c', 'lab', null, false, null, false, false, false, null, null, 5),
  ('mail.send', '7a703188bbf783f54ff48d4d1094248ce542769a8753cdd96c7fd6a149761102', 'default', null, false, null, false, false, false, null, null, 5)
) as r(action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
join wf.workflow_def as d on d.name = 'reuse'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'da12109ee5b5158282d4baccd85f47587749d115a1fd8b7d725704fe38bad6c7'
where v.published_at is null;

insert into wf.data_type (workflow_version_id, type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
select v.workflow_version_id, cast(r.type_id as int), cast(r.parent_type_id as int), r.path_kind, r.name, r.base_type, cast(r.is_required as boolean), cast(r.is_nullable as boolean), cast(r.enum_json as jsonb)
from (values
  (1, null, 'root', null, 'list', true, false, null),
  (2, 1, 'item', null, 'object', true, false, null),
  (3, 2, 'field', 'id', 'string', true, false, null),
  (4, 2, 'field', 'rounds', 'list', true, false, null),
  (5, 4, 'item', null, 'int', true, false, null),
  (6, null, 'root', null, 'string', true, false, null),
  (7, null, 'root', null, 'string', true, true, null)
) as r(type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
join wf.workflow_def as d on d.name = 'reuse'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'da12109ee5b5158282d4baccd85f47587749d115a1fd8b7d725704fe38bad6c7'
where v.published_at is null;

insert into wf.workflow_node (workflow_version_id, node_key, node_type, is_generated, action_name, action_revision, attributes_json)
select v.workflow_version_id, r.node_key, r.node_type, cast(r.is_generated as boolean), r.action_name, r.action_revision, cast(r.attributes_json as jsonb)
from (values
  ('reuse', 'SEQUENCE', false, null, null, '{}'),
  ('foreach_1', 'FOREACH', false, null, null, '{"item":"order","index":"o","parallel":8,"reuse":{"fingerprint":"1c7dd1bd7c9d83cd84501453319b53661145d32a463da8b9c04a9b99fe293c30","reads":[["ctx","context",["note"]],["var","o","foreach_1.body",[]],["var","orders","reuse",[]],["var","region","reuse",[]]]}}'),
  ('foreach_1.body', 'SEQUENCE', true, null, null, '{}'),
  ('foreach_2', 'FOREACH', false, null, null, '{"item":"round","index":"r","parallel":1,"reuse":{"fingerprint":"56b663dc0b8dab17a996974aa705aabb452affa2d53f5d4c5c6c1a3f1fa92d07","reads":[["var","o","foreach_1.body",[]],["var","orders","reuse",[]],["var","r","foreach_2.body",[]],["var","region","reuse",[]]]}}'),
  ('foreach_2.body', 'SEQUENCE', true, null, null, '{}'),
  ('check', 'ACTION', false, 'part.check', '8e7b72d408dc4c9a25e9007430c498eae719bdb5ca0519d908768ec96e1ce31c', '{}'),
  ('foreach_3', 'FOREACH', false, null, null, '{"item":"ids","parallel":1,"batch":2,"reuse":{"fingerprint":"c515ecaf101e2ed17a679148143cf8af4cb9bfa9a08a9ae1d5efd708cfb0f3cf","reads":[]}}'),
  ('foreach_3.body', 'SEQUENCE', true, null, null, '{}'),
  ('tell', 'ACTION', false, 'mail.send', '7a703188bbf783f54ff48d4d1094248ce542769a8753cdd96c7fd6a149761102', '{}')
) as r(node_key, node_type, is_generated, action_name, action_revision, attributes_json)
join wf.workflow_def as d on d.name = 'reuse'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'da12109ee5b5158282d4baccd85f47587749d115a1fd8b7d725704fe38bad6c7'
where v.published_at is null;

insert into wf.workflow_edge (workflow_version_id, parent_key, child_key, branch_kind, child_order, case_value)
select v.workflow_version_id, r.parent_key, r.child_key, r.branch_kind, cast(r.child_order as int), cast(r.case_value as jsonb)
from (values
  ('reuse', 'foreach_1', 'SEQUENCE', 0, null),
  ('reuse', 'foreach_3', 'SEQUENCE', 1, null),
  ('foreach_1', 'foreach_1.body', 'BODY', 0, null),
  ('foreach_1.body', 'foreach_2', 'SEQUENCE', 0, null),
  ('foreach_2', 'foreach_2.body', 'BODY', 0, null),
  ('foreach_2.body', 'check', 'SEQUENCE', 0, null),
  ('foreach_3', 'foreach_3.body', 'BODY', 0, null),
  ('foreach_3.body', 'tell', 'SEQUENCE', 0, null)
) as r(parent_key, child_key, branch_kind, child_order, case_value)
join wf.workflow_def as d on d.name = 'reuse'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'da12109ee5b5158282d4baccd85f47587749d115a1fd8b7d725704fe38bad6c7'
where v.published_at is null;

insert into wf.workflow_input_template (workflow_version_id, node_key, template_json)
select v.workflow_version_id, r.node_key, cast(r.template_json as jsonb)
from (values
  ('check', '{"round":null,"order":"${var.order.id}","label":"${var.region}-${var.o}-${var.r}","first":null}'),
  ('tell', '{"to":"ops@example.com","details":"${var.ids}"}')
) as r(node_key, template_json)
join wf.workflow_def as d on d.name = 'reuse'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'da12109ee5b5158282d4baccd85f47587749d115a1fd8b7d725704fe38bad6c7'
where v.published_at is null;

insert into wf.workflow_input_binding (workflow_version_id, node_key, pointer, program_json)
select v.workflow_version_id, r.node_key, r.pointer, cast(r.program_json as jsonb)
from (values
  ('check', '/round', '[["var","round","foreach_2.body",[]],["lit",1],["add"]]'),
  ('check', '/first', '[["var","orders","reuse",[["var","o","foreach_1.body",[]],"rounds",0]]]')
) as r(node_key, pointer, program_json)
join wf.workflow_def as d on d.name = 'reuse'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'da12109ee5b5158282d4baccd85f47587749d115a1fd8b7d725704fe38bad6c7'
where v.published_at is null;

insert into wf.variable_output_binding (workflow_version_id, node_key, binding_order, binding_kind, name, owner_key, program_json)
select v.workflow_version_id, r.node_key, cast(r.binding_order as int), r.binding_kind, r.name, r.owner_key, cast(r.program_json as jsonb)
from (values
  ('foreach_1', 0, 'collect', 'checked', 'reuse', '[["var","good","foreach_1.body",[]],["ctx","context",["note"]],["alt",1],["var","note","foreach_1.body",[]],["arr",2]]'),
  ('foreach_2', 0, 'collect', 'good', 'foreach_1.body', '[["ctx","task",["check","output","good"]]]')
) as r(node_key, binding_order, binding_kind, name, owner_key, program_json)
join wf.workflow_def as d on d.name = 'reuse'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'da12109ee5b5158282d4baccd85f47587749d115a1fd8b7d725704fe38bad6c7'
where v.published_at is null;

insert into wf.node_scope_default (workflow_version_id, owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
select v.workflow_version_id, r.owner_key, cast(r.variable_order as int), r.name, r.variable_kind, cast(r.type_id as int), cast(r.is_required as boolean), cast(r.program_json as jsonb)
from (values
  ('reuse', 0, 'orders', 'input', 1, true, null),
  ('reuse', 1, 'region', 'input', 6, true, null),
  ('reuse', 0, 'checked', 'set', null, false, null),
  ('foreach_1.body', 0, 'order', 'loop', null, false, null),
  ('foreach_1.body', 1, 'o', 'loop', null, false, null),
  ('foreach_1.body', 2, 'note', 'var', 7, false, '[["lit",null]]'),
  ('foreach_1.body', 3, 'good', 'set', null, false, null),
  ('foreach_2.body', 0, 'round', 'loop', null, false, null),
  ('foreach_2.body', 1, 'r', 'loop', null, false, null),
  ('foreach_3.body', 0, 'ids', 'loop', null, false, null)
) as r(owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
join wf.workflow_def as d on d.name = 'reuse'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'da12109ee5b5158282d4baccd85f47587749d115a1fd8b7d725704fe38bad6c7'
where v.published_at is null;

insert into wf.collection_binding (workflow_version_id, node_key, binding_kind, program_json)
select v.workflow_version_id, r.node_key, r.binding_kind, cast(r.program_json as jsonb)
from (values
  ('foreach_1', 'variable', '[["var","orders","reuse",[]]]'),
  ('foreach_2', 'variable', '[["var","order","foreach_1.body",["rounds"]]]'),
  ('foreach_3', 'program', '[["lit","a"],["lit","b"],["lit","c"],["arr",3]]')
) as r(node_key, binding_kind, program_json)
join wf.workflow_def as d on d.name = 'reuse'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'da12109ee5b5158282d4baccd85f47587749d115a1fd8b7d725704fe38bad6c7'
where v.published_at is null;

select wf.wf_set_version_notes(p_name => 'reuse', p_content_hash => 'da12109ee5b5158282d4baccd85f47587749d115a1fd8b7d725704fe38bad6c7', p_source_map => cast('{"file":"reuse.wf","nodes":{"reuse":[2,10],"foreach_1":[6,3],"foreach_1.body":[6,51],"foreach_2":[8,5],"foreach_2.body":[8,48],"check":[9,14],"foreach_3":[19,3],"foreach_3.body":[19,48],"tell":[20,12]}}' as jsonb), p_description => null);

select p.workflow_version_id, p.version_no, p.was_new
from wf.wf_publish_workflow_version(p_name => 'reuse', p_content_hash => 'da12109ee5b5158282d4baccd85f47587749d115a1fd8b7d725704fe38bad6c7', p_activate => true, p_update_actions => false) as p;

commit;
