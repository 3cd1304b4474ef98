-- workflow: first
-- content: fb2d127e8dd97afc3240bb688eaf22bfbc300a675027a69649ea1346f8c3b9bb
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
  ('first')
) as r(name)
on conflict(name) do nothing;

insert into wf.workflow_version (workflow_def_id, content_hash, spec_format, outputs_json)
select d.workflow_def_id, r.content_hash, cast(r.spec_format as int), cast(r.outputs_json as jsonb)
from (values
  ('fb2d127e8dd97afc3240bb688eaf22bfbc300a675027a69649ea1346f8c3b9bb', 1, '[{"order":0,"name":"n","program":[["var","parts","first",[]],["len"]]},{"order":1,"name":"rate","program":[["var","rate","first",[]],["var","best","first",[]],["var","extra","first",[]],["arr",3]]}]')
) as r(content_hash, spec_format, outputs_json)
join wf.workflow_def as d on d.name = 'first'
on conflict(workflow_def_id, content_hash) do nothing;

insert into wf.data_type (workflow_version_id, type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
select v.workflow_version_id, cast(r.type_id as int), cast(r.parent_type_id as int), r.path_kind, r.name, r.base_type, cast(r.is_required as boolean), cast(r.is_nullable as boolean), cast(r.enum_json as jsonb)
from (values
  (1, null, 'root', null, 'list', true, false, null),
  (2, 1, 'item', null, 'object', true, false, null),
  (3, 2, 'field', 'sku', 'string', true, false, null),
  (4, 2, 'field', 'size', 'string', true, true, '["s","m","l"]'),
  (5, 2, 'field', 'tags', 'list', false, false, null),
  (6, 5, 'item', null, 'string', true, false, null),
  (7, null, 'root', null, 'object', true, true, null),
  (8, 7, 'field', 'sku', 'string', true, false, null),
  (9, 7, 'field', 'size', 'string', true, true, '["s","m","l"]'),
  (10, 7, 'field', 'tags', 'list', false, false, null),
  (11, 10, 'item', null, 'string', true, false, null),
  (12, null, 'root', null, 'object', true, false, null),
  (13, null, 'root', null, 'number', true, false, null)
) as r(type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
join wf.workflow_def as d on d.name = 'first'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'fb2d127e8dd97afc3240bb688eaf22bfbc300a675027a69649ea1346f8c3b9bb'
where v.published_at is null;

insert into wf.workflow_node (workflow_version_id, node_key, node_type, is_generated, action_name, action_revision, attributes_json)
select v.workflow_version_id, r.node_key, r.node_type, cast(r.is_generated as boolean), r.action_name, r.action_revision, cast(r.attributes_json as jsonb)
from (values
  ('first', 'SEQUENCE', false, null, null, '{}'),
  ('set_1', 'SEQUENCE', false, null, null, '{}')
) as r(node_key, node_type, is_generated, action_name, action_revision, attributes_json)
join wf.workflow_def as d on d.name = 'first'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'fb2d127e8dd97afc3240bb688eaf22bfbc300a675027a69649ea1346f8c3b9bb'
where v.published_at is null;

insert into wf.workflow_edge (workflow_version_id, parent_key, child_key, branch_kind, child_order, case_value)
select v.workflow_version_id, r.parent_key, r.child_key, r.branch_kind, cast(r.child_order as int), cast(r.case_value as jsonb)
from (values
  ('first', 'set_1', 'SEQUENCE', 0, null)
) as r(parent_key, child_key, branch_kind, child_order, case_value)
join wf.workflow_def as d on d.name = 'first'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'fb2d127e8dd97afc3240bb688eaf22bfbc300a675027a69649ea1346f8c3b9bb'
where v.published_at is null;

insert into wf.variable_output_binding (workflow_version_id, node_key, binding_order, binding_kind, name, owner_key, program_json)
select v.workflow_version_id, r.node_key, cast(r.binding_order as int), r.binding_kind, r.name, r.owner_key, cast(r.program_json as jsonb)
from (values
  ('set_1', 0, 'var', 'unused_name', 'first', '[["var","parts","first",[]]]')
) as r(node_key, binding_order, binding_kind, name, owner_key, program_json)
join wf.workflow_def as d on d.name = 'first'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'fb2d127e8dd97afc3240bb688eaf22bfbc300a675027a69649ea1346f8c3b9bb'
where v.published_at is null;

insert into wf.node_scope_default (workflow_version_id, owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
select v.workflow_version_id, r.owner_key, cast(r.variable_order as int), r.name, r.variable_kind, cast(r.type_id as int), cast(r.is_required as boolean), cast(r.program_json as jsonb)
from (values
  ('first', 0, 'parts', 'input', 1, true, null),
  ('first', 1, 'best', 'input', 7, true, null),
  ('first', 2, 'extra', 'input', 12, false, '[["obj",[]]]'),
  ('first', 3, 'rate', 'input', 13, false, '[["lit",0.10]]'),
  ('first', 0, 'unused_name', 'set', null, false, null)
) as r(owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
join wf.workflow_def as d on d.name = 'first'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'fb2d127e8dd97afc3240bb688eaf22bfbc300a675027a69649ea1346f8c3b9bb'
where v.published_at is null;

select wf.wf_set_version_notes(p_name => 'first', p_content_hash => 'fb2d127e8dd97afc3240bb688eaf22bfbc300a675027a69649ea1346f8c3b9bb', p_source_map => cast('{"file":"types.wf","nodes":{"first":[4,10],"set_1":[8,3]}}' as jsonb), p_description => null);

select p.workflow_version_id, p.version_no, p.was_new
from wf.wf_publish_workflow_version(p_name => 'first', p_content_hash => 'fb2d127e8dd97afc3240bb688eaf22bfbc300a675027a69649ea1346f8c3b9bb', p_activate => true, p_update_actions => false) as p;

commit;
-- workflow: second
-- content: 7472c80aac264536859068ed4f0cc587fdaf55e134c235a4ad93bc2dcf7c8b74
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
  ('second')
) as r(name)
on conflict(name) do nothing;

insert into wf.workflow_version (workflow_def_id, content_hash, spec_format, outputs_json)
select d.workflow_def_id, r.content_hash, cast(r.spec_format as int), cast(r.outputs_json as jsonb)
from (values
  ('7472c80aac264536859068ed4f0cc587fdaf55e134c235a4ad93bc2dcf7c8b74', 1, '[{"order":0,"name":"size","program":[["var","part","second",["size"]]]}]')
) as r(content_hash, spec_format, outputs_json)
join wf.workflow_def as d on d.name = 'second'
on conflict(workflow_def_id, content_hash) do nothing;

insert into wf.data_type (workflow_version_id, type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
select v.workflow_version_id, cast(r.type_id as int), cast(r.parent_type_id as int), r.path_kind, r.name, r.base_type, cast(r.is_required as boolean), cast(r.is_nullable as boolean), cast(r.enum_json as jsonb)
from (values
  (1, null, 'root', null, 'object', true, false, null),
  (2, 1, 'field', 'sku', 'string', true, false, null),
  (3, 1, 'field', 'size', 'string', true, true, '["s","m","l"]'),
  (4, 1, 'field', 'tags', 'list', false, false, null),
  (5, 4, 'item', null, 'string', true, false, null)
) as r(type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
join wf.workflow_def as d on d.name = 'second'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '7472c80aac264536859068ed4f0cc587fdaf55e134c235a4ad93bc2dcf7c8b74'
where v.published_at is null;

insert into wf.workflow_node (workflow_version_id, node_key, node_type, is_generated, action_name, action_revision, attributes_json)
select v.workflow_version_id, r.node_key, r.node_type, cast(r.is_generated as boolean), r.action_name, r.action_revision, cast(r.attributes_json as jsonb)
from (values
  ('second', 'SEQUENCE', false, null, null, '{}'),
  ('set_1', 'SEQUENCE', false, null, null, '{}')
) as r(node_key, node_type, is_generated, action_name, action_revision, attributes_json)
join wf.workflow_def as d on d.name = 'second'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '7472c80aac264536859068ed4f0cc587fdaf55e134c235a4ad93bc2dcf7c8b74'
where v.published_at is null;

insert into wf.workflow_edge (workflow_version_id, parent_key, child_key, branch_kind, child_order, case_value)
select v.workflow_version_id, r.parent_key, r.child_key, r.branch_kind, cast(r.child_order as int), cast(r.case_value as jsonb)
from (values
  ('second', 'set_1', 'SEQUENCE', 0, null)
) as r(parent_key, child_key, branch_kind, child_order, case_value)
join wf.workflow_def as d on d.name = 'second'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '7472c80aac264536859068ed4f0cc587fdaf55e134c235a4ad93bc2dcf7c8b74'
where v.published_at is null;

insert into wf.variable_output_binding (workflow_version_id, node_key, binding_order, binding_kind, name, owner_key, program_json)
select v.workflow_version_id, r.node_key, cast(r.binding_order as int), r.binding_kind, r.name, r.owner_key, cast(r.program_json as jsonb)
from (values
  ('set_1', 0, 'var', 'seen', 'second', '[["var","part","second",["sku"]]]')
) as r(node_key, binding_order, binding_kind, name, owner_key, program_json)
join wf.workflow_def as d on d.name = 'second'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '7472c80aac264536859068ed4f0cc587fdaf55e134c235a4ad93bc2dcf7c8b74'
where v.published_at is null;

insert into wf.node_scope_default (workflow_version_id, owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
select v.workflow_version_id, r.owner_key, cast(r.variable_order as int), r.name, r.variable_kind, cast(r.type_id as int), cast(r.is_required as boolean), cast(r.program_json as jsonb)
from (values
  ('second', 0, 'part', 'input', 1, true, null),
  ('second', 0, 'seen', 'set', null, false, null)
) as r(owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
join wf.workflow_def as d on d.name = 'second'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '7472c80aac264536859068ed4f0cc587fdaf55e134c235a4ad93bc2dcf7c8b74'
where v.published_at is null;

select wf.wf_set_version_notes(p_name => 'second', p_content_hash => '7472c80aac264536859068ed4f0cc587fdaf55e134c235a4ad93bc2dcf7c8b74', p_source_map => cast('{"file":"types.wf","nodes":{"second":[10,10],"set_1":[13,3]}}' as jsonb), p_description => null);

select p.workflow_version_id, p.version_no, p.was_new
from wf.wf_publish_workflow_version(p_name => 'second', p_content_hash => '7472c80aac264536859068ed4f0cc587fdaf55e134c235a4ad93bc2dcf7c8b74', p_activate => true, p_update_actions => false) as p;

commit;
