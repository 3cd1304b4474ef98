-- workflow: w
-- content: 1bfe0cf7354b03a4df206aaedb14781a499e69a4b08959d015a8867c2308f36d
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
  ('w')
) as r(name)
on conflict(name) do nothing;

insert into wf.workflow_version (workflow_def_id, content_hash, spec_format, outputs_json)
select d.workflow_def_id, r.content_hash, cast(r.spec_format as int), cast(r.outputs_json as jsonb)
from (values
  ('1bfe0cf7354b03a4df206aaedb14781a499e69a4b08959d015a8867c2308f36d', 1, '[]')
) as r(content_hash, spec_format, outputs_json)
join wf.workflow_def as d on d.name = 'w'
on conflict(workflow_def_id, content_hash) do nothing;

insert into wf.data_type (workflow_version_id, type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
select v.workflow_version_id, cast(r.type_id as int), cast(r.parent_type_id as int), r.path_kind, r.name, r.base_type, cast(r.is_required as boolean), cast(r.is_nullable as boolean), cast(r.enum_json as jsonb)
from (values
  (1, null, 'root', null, 'list', true, false, null),
  (2, 1, 'item', null, 'int', true, false, null),
  (3, null, 'root', null, 'list', true, false, null),
  (4, 3, 'item', null, 'list', true, false, null),
  (5, 4, 'item', null, 'int', true, false, null),
  (6, null, 'root', null, 'list', true, false, null),
  (7, 6, 'item', null, 'string', true, false, null)
) as r(type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
join wf.workflow_def as d on d.name = 'w'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '1bfe0cf7354b03a4df206aaedb14781a499e69a4b08959d015a8867c2308f36d'
where v.published_at is null;

insert into wf.workflow_node (workflow_version_id, node_key, node_type, is_generated, action_name, action_revision, attributes_json)
select v.workflow_version_id, r.node_key, r.node_type, cast(r.is_generated as boolean), r.action_name, r.action_revision, cast(r.attributes_json as jsonb)
from (values
  ('w', 'SEQUENCE', false, null, null, '{}'),
  ('set_1', 'SEQUENCE', false, null, null, '{}')
) as r(node_key, node_type, is_generated, action_name, action_revision, attributes_json)
join wf.workflow_def as d on d.name = 'w'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '1bfe0cf7354b03a4df206aaedb14781a499e69a4b08959d015a8867c2308f36d'
where v.published_at is null;

insert into wf.workflow_edge (workflow_version_id, parent_key, child_key, branch_kind, child_order, case_value)
select v.workflow_version_id, r.parent_key, r.child_key, r.branch_kind, cast(r.child_order as int), cast(r.case_value as jsonb)
from (values
  ('w', 'set_1', 'SEQUENCE', 0, null)
) as r(parent_key, child_key, branch_kind, child_order, case_value)
join wf.workflow_def as d on d.name = 'w'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '1bfe0cf7354b03a4df206aaedb14781a499e69a4b08959d015a8867c2308f36d'
where v.published_at is null;

insert into wf.variable_output_binding (workflow_version_id, node_key, binding_order, binding_kind, name, owner_key, program_json)
select v.workflow_version_id, r.node_key, cast(r.binding_order as int), r.binding_kind, r.name, r.owner_key, cast(r.program_json as jsonb)
from (values
  ('set_1', 0, 'var', 'd', 'w', '[["var","c","w",[]]]')
) as r(node_key, binding_order, binding_kind, name, owner_key, program_json)
join wf.workflow_def as d on d.name = 'w'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '1bfe0cf7354b03a4df206aaedb14781a499e69a4b08959d015a8867c2308f36d'
where v.published_at is null;

insert into wf.node_scope_default (workflow_version_id, owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
select v.workflow_version_id, r.owner_key, cast(r.variable_order as int), r.name, r.variable_kind, cast(r.type_id as int), cast(r.is_required as boolean), cast(r.program_json as jsonb)
from (values
  ('w', 0, 'a', 'input', 1, false, '[["lit",1],["arr",1]]'),
  ('w', 1, 'b', 'input', 3, false, '[["arr",0]]'),
  ('w', 0, 'c', 'var', 6, false, '[["lit","x"],["arr",1]]'),
  ('w', 1, 'd', 'set', null, false, null)
) as r(owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
join wf.workflow_def as d on d.name = 'w'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '1bfe0cf7354b03a4df206aaedb14781a499e69a4b08959d015a8867c2308f36d'
where v.published_at is null;

select wf.wf_set_version_notes(p_name => 'w', p_content_hash => '1bfe0cf7354b03a4df206aaedb14781a499e69a4b08959d015a8867c2308f36d', p_source_map => cast('{"file":"list_type_before_equals.wf","nodes":{"w":[1,10],"set_1":[4,3]}}' as jsonb), p_description => null);

select p.workflow_version_id, p.version_no, p.was_new
from wf.wf_publish_workflow_version(p_name => 'w', p_content_hash => '1bfe0cf7354b03a4df206aaedb14781a499e69a4b08959d015a8867c2308f36d', p_activate => true, p_update_actions => false) as p;

commit;
