-- workflow: waits
-- content: e5838324fd648af8dedffdf13dd35d905277a542bbc335a08b8f875e46a8646e
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
  ('waits')
) as r(name)
on conflict(name) do nothing;

insert into wf.workflow_version (workflow_def_id, content_hash, spec_format, outputs_json)
select d.workflow_def_id, r.content_hash, cast(r.spec_format as int), cast(r.outputs_json as jsonb)
from (values
  ('e5838324fd648af8dedffdf13dd35d905277a542bbc335a08b8f875e46a8646e', 1, '[]')
) as r(content_hash, spec_format, outputs_json)
join wf.workflow_def as d on d.name = 'waits'
on conflict(workflow_def_id, content_hash) do nothing;

insert into wf.data_type (workflow_version_id, type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
select v.workflow_version_id, cast(r.type_id as int), cast(r.parent_type_id as int), r.path_kind, r.name, r.base_type, cast(r.is_required as boolean), cast(r.is_nullable as boolean), cast(r.enum_json as jsonb)
from (values
  (1, null, 'root', null, 'string', true, false, null)
) as r(type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
join wf.workflow_def as d on d.name = 'waits'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'e5838324fd648af8dedffdf13dd35d905277a542bbc335a08b8f875e46a8646e'
where v.published_at is null;

insert into wf.workflow_node (workflow_version_id, node_key, node_type, is_generated, action_name, action_revision, attributes_json)
select v.workflow_version_id, r.node_key, r.node_type, cast(r.is_generated as boolean), r.action_name, r.action_revision, cast(r.attributes_json as jsonb)
from (values
  ('waits', 'SEQUENCE', false, null, null, '{}'),
  ('paid', 'WAIT_EVENT', false, null, null, '{"event_type":"payment.received","correlate":[["var","order_id","waits",[]]]}'),
  ('any_news', 'WAIT_EVENT', false, null, null, '{"event_type":"news"}'),
  ('paid_again', 'WAIT_EVENT', false, null, null, '{"event_type":"payment.received"}')
) as r(node_key, node_type, is_generated, action_name, action_revision, attributes_json)
join wf.workflow_def as d on d.name = 'waits'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'e5838324fd648af8dedffdf13dd35d905277a542bbc335a08b8f875e46a8646e'
where v.published_at is null;

insert into wf.workflow_edge (workflow_version_id, parent_key, child_key, branch_kind, child_order, case_value)
select v.workflow_version_id, r.parent_key, r.child_key, r.branch_kind, cast(r.child_order as int), cast(r.case_value as jsonb)
from (values
  ('waits', 'paid', 'SEQUENCE', 0, null),
  ('waits', 'any_news', 'SEQUENCE', 1, null),
  ('waits', 'paid_again', 'SEQUENCE', 2, null)
) as r(parent_key, child_key, branch_kind, child_order, case_value)
join wf.workflow_def as d on d.name = 'waits'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'e5838324fd648af8dedffdf13dd35d905277a542bbc335a08b8f875e46a8646e'
where v.published_at is null;

insert into wf.variable_output_binding (workflow_version_id, node_key, binding_order, binding_kind, name, owner_key, program_json)
select v.workflow_version_id, r.node_key, cast(r.binding_order as int), r.binding_kind, r.name, r.owner_key, cast(r.program_json as jsonb)
from (values
  ('paid', 0, 'var', 'amount', 'waits', '[["event",["payload","amount"]]]'),
  ('paid', 1, 'var', 'by', 'waits', '[["event",["source"]]]'),
  ('paid_again', 0, 'var', 'amount', 'waits', '[["out",["amount"]]]')
) as r(node_key, binding_order, binding_kind, name, owner_key, program_json)
join wf.workflow_def as d on d.name = 'waits'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'e5838324fd648af8dedffdf13dd35d905277a542bbc335a08b8f875e46a8646e'
where v.published_at is null;

insert into wf.node_scope_default (workflow_version_id, owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
select v.workflow_version_id, r.owner_key, cast(r.variable_order as int), r.name, r.variable_kind, cast(r.type_id as int), cast(r.is_required as boolean), cast(r.program_json as jsonb)
from (values
  ('waits', 0, 'order_id', 'input', 1, true, null),
  ('waits', 0, 'amount', 'set', null, false, null),
  ('waits', 1, 'by', 'set', null, false, null)
) as r(owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
join wf.workflow_def as d on d.name = 'waits'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'e5838324fd648af8dedffdf13dd35d905277a542bbc335a08b8f875e46a8646e'
where v.published_at is null;

insert into wf.event_subscription (workflow_version_id, subscription_order, event_type, mode, filter_json, inputs_json)
select v.workflow_version_id, cast(r.subscription_order as int), r.event_type, r.mode, cast(r.filter_json as jsonb), cast(r.inputs_json as jsonb)
from (values
  (0, 'payment.received', 'signal_wait', '[]', '[]'),
  (1, 'news', 'signal_wait', '[]', '[]')
) as r(subscription_order, event_type, mode, filter_json, inputs_json)
join wf.workflow_def as d on d.name = 'waits'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'e5838324fd648af8dedffdf13dd35d905277a542bbc335a08b8f875e46a8646e'
where v.published_at is null;

select wf.wf_set_version_notes(p_name => 'waits', p_content_hash => 'e5838324fd648af8dedffdf13dd35d905277a542bbc335a08b8f875e46a8646e', p_source_map => cast('{"file":"wait_event.wf","nodes":{"waits":[2,10],"paid":[4,14],"any_news":[9,14],"paid_again":[10,14]}}' as jsonb), p_description => null);

select p.workflow_version_id, p.version_no, p.was_new
from wf.wf_publish_workflow_version(p_name => 'waits', p_content_hash => 'e5838324fd648af8dedffdf13dd35d905277a542bbc335a08b8f875e46a8646e', p_activate => true, p_update_actions => false) as p;

commit;
