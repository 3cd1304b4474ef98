-- workflow: scopes
-- content: 601a2b7ff70e3b0c04ec628a3434118de34bbdb53f1daa580e61b97f9d2277a5
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
  ('scopes')
) as r(name)
on conflict(name) do nothing;

insert into wf.workflow_version (workflow_def_id, content_hash, spec_format, outputs_json)
select d.workflow_def_id, r.content_hash, cast(r.spec_format as int), cast(r.outputs_json as jsonb)
from (values
  ('601a2b7ff70e3b0c04ec628a3434118de34bbdb53f1daa580e61b97f9d2277a5', 1, '[]')
) as r(content_hash, spec_format, outputs_json)
join wf.workflow_def as d on d.name = 'scopes'
on conflict(workflow_def_id, content_hash) do nothing;

insert into wf.data_type (workflow_version_id, type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
select v.workflow_version_id, cast(r.type_id as int), cast(r.parent_type_id as int), r.path_kind, r.name, r.base_type, cast(r.is_required as boolean), cast(r.is_nullable as boolean), cast(r.enum_json as jsonb)
from (values
  (1, null, 'root', null, 'int', true, false, null),
  (2, null, 'root', null, 'int', true, false, null),
  (3, null, 'root', null, 'any', true, false, null)
) as r(type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
join wf.workflow_def as d on d.name = 'scopes'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '601a2b7ff70e3b0c04ec628a3434118de34bbdb53f1daa580e61b97f9d2277a5'
where v.published_at is null;

insert into wf.workflow_node (workflow_version_id, node_key, node_type, is_generated, action_name, action_revision, attributes_json)
select v.workflow_version_id, r.node_key, r.node_type, cast(r.is_generated as boolean), r.action_name, r.action_revision, cast(r.attributes_json as jsonb)
from (values
  ('scopes', 'SEQUENCE', false, null, null, '{}'),
  ('outer', 'SEQUENCE', false, null, null, '{}'),
  ('outer.sequence_1', 'SEQUENCE', false, null, null, '{}'),
  ('outer.set_1', 'SEQUENCE', false, null, null, '{}'),
  ('outer.set_2', 'SEQUENCE', false, null, null, '{}'),
  ('if_1', 'IF', false, null, null, '{"condition":[["var","found","scopes",[]]]}'),
  ('if_1.then', 'SEQUENCE', true, null, null, '{}'),
  ('fail_1', 'SEQUENCE', false, null, null, '{"fail":{"code":-3,"message":[["lit","n is "],["var","n","scopes",[]],["cat",2]]}}')
) as r(node_key, node_type, is_generated, action_name, action_revision, attributes_json)
join wf.workflow_def as d on d.name = 'scopes'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '601a2b7ff70e3b0c04ec628a3434118de34bbdb53f1daa580e61b97f9d2277a5'
where v.published_at is null;

insert into wf.workflow_edge (workflow_version_id, parent_key, child_key, branch_kind, child_order, case_value)
select v.workflow_version_id, r.parent_key, r.child_key, r.branch_kind, cast(r.child_order as int), cast(r.case_value as jsonb)
from (values
  ('scopes', 'outer', 'SEQUENCE', 0, null),
  ('scopes', 'if_1', 'SEQUENCE', 1, null),
  ('outer', 'outer.sequence_1', 'SEQUENCE', 0, null),
  ('outer', 'outer.set_2', 'SEQUENCE', 1, null),
  ('outer.sequence_1', 'outer.set_1', 'SEQUENCE', 0, null),
  ('if_1', 'if_1.then', 'THEN', 0, null),
  ('if_1.then', 'fail_1', 'SEQUENCE', 0, null)
) as r(parent_key, child_key, branch_kind, child_order, case_value)
join wf.workflow_def as d on d.name = 'scopes'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '601a2b7ff70e3b0c04ec628a3434118de34bbdb53f1daa580e61b97f9d2277a5'
where v.published_at is null;

insert into wf.variable_output_binding (workflow_version_id, node_key, binding_order, binding_kind, name, owner_key, program_json)
select v.workflow_version_id, r.node_key, cast(r.binding_order as int), r.binding_kind, r.name, r.owner_key, cast(r.program_json as jsonb)
from (values
  ('outer.set_1', 0, 'var', 'n', 'outer', '[["var","n","outer",[]],["var","m","outer.sequence_1",[]],["len"],["mul"]]'),
  ('outer.set_2', 0, 'var', 'found', 'scopes', '[["defined",["ctx","context",["extra"]]]]')
) as r(node_key, binding_order, binding_kind, name, owner_key, program_json)
join wf.workflow_def as d on d.name = 'scopes'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '601a2b7ff70e3b0c04ec628a3434118de34bbdb53f1daa580e61b97f9d2277a5'
where v.published_at is null;

insert into wf.node_scope_default (workflow_version_id, owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
select v.workflow_version_id, r.owner_key, cast(r.variable_order as int), r.name, r.variable_kind, cast(r.type_id as int), cast(r.is_required as boolean), cast(r.program_json as jsonb)
from (values
  ('scopes', 0, 'n', 'var', 1, false, '[["lit",1]]'),
  ('scopes', 1, 'found', 'set', null, false, null),
  ('outer', 0, 'n', 'var', 2, false, '[["var","n","scopes",[]],["lit",1],["add"]]'),
  ('outer.sequence_1', 0, 'm', 'var', 3, false, '[["var","n","outer",[]],["arr",1]]')
) as r(owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
join wf.workflow_def as d on d.name = 'scopes'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '601a2b7ff70e3b0c04ec628a3434118de34bbdb53f1daa580e61b97f9d2277a5'
where v.published_at is null;

select wf.wf_set_version_notes(p_name => 'scopes', p_content_hash => '601a2b7ff70e3b0c04ec628a3434118de34bbdb53f1daa580e61b97f9d2277a5', p_source_map => cast('{"file":"sequence.wf","nodes":{"scopes":[2,10],"outer":[4,12],"outer.sequence_1":[6,5],"outer.set_1":[6,38],"outer.set_2":[7,5],"if_1":[9,3],"if_1.then":[9,16],"fail_1":[9,18]}}' as jsonb), p_description => null);

select p.workflow_version_id, p.version_no, p.was_new
from wf.wf_publish_workflow_version(p_name => 'scopes', p_content_hash => '601a2b7ff70e3b0c04ec628a3434118de34bbdb53f1daa580e61b97f9d2277a5', p_activate => true, p_update_actions => false) as p;

commit;
