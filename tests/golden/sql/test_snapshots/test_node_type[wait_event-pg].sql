-- workflow: delivery
-- content: 55c1836bc620894ae4f6a3daa1672ce41626757edbfe6ba7ca3768a517f22a55
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
  ('delivery')
) as r(name)
on conflict(name) do nothing;

insert into wf.workflow_version (workflow_def_id, content_hash, spec_format, outputs_json)
select d.workflow_def_id, r.content_hash, cast(r.spec_format as int), cast(r.outputs_json as jsonb)
from (values
  ('55c1836bc620894ae4f6a3daa1672ce41626757edbfe6ba7ca3768a517f22a55', 1, '[]')
) as r(content_hash, spec_format, outputs_json)
join wf.workflow_def as d on d.name = 'delivery'
on conflict(workflow_def_id, content_hash) do nothing;

insert into wf.workflow_node (workflow_version_id, node_key, node_type, is_generated, action_name, action_revision, attributes_json)
select v.workflow_version_id, r.node_key, r.node_type, cast(r.is_generated as boolean), r.action_name, r.action_revision, cast(r.attributes_json as jsonb)
from (values
  ('delivery', 'SEQUENCE', false, null, null, '{}'),
  ('delivered', 'WAIT_EVENT', false, null, null, '{"event_type":"courier.delivered","correlate":[["var","order_id","delivery",[]]]}')
) as r(node_key, node_type, is_generated, action_name, action_revision, attributes_json)
join wf.workflow_def as d on d.name = 'delivery'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '55c1836bc620894ae4f6a3daa1672ce41626757edbfe6ba7ca3768a517f22a55'
where v.published_at is null;

insert into wf.workflow_edge (workflow_version_id, parent_key, child_key, branch_kind, child_order, case_value)
select v.workflow_version_id, r.parent_key, r.child_key, r.branch_kind, cast(r.child_order as int), cast(r.case_value as jsonb)
from (values
  ('delivery', 'delivered', 'SEQUENCE', 0, null)
) as r(parent_key, child_key, branch_kind, child_order, case_value)
join wf.workflow_def as d on d.name = 'delivery'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '55c1836bc620894ae4f6a3daa1672ce41626757edbfe6ba7ca3768a517f22a55'
where v.published_at is null;

insert into wf.event_subscription (workflow_version_id, subscription_order, event_type, mode, filter_json, inputs_json)
select v.workflow_version_id, cast(r.subscription_order as int), r.event_type, r.mode, cast(r.filter_json as jsonb), cast(r.inputs_json as jsonb)
from (values
  (0, 'courier.delivered', 'signal_wait', '[]', '[]')
) as r(subscription_order, event_type, mode, filter_json, inputs_json)
join wf.workflow_def as d on d.name = 'delivery'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '55c1836bc620894ae4f6a3daa1672ce41626757edbfe6ba7ca3768a517f22a55'
where v.published_at is null;

select wf.wf_set_version_notes(p_name => 'delivery', p_content_hash => '55c1836bc620894ae4f6a3daa1672ce41626757edbfe6ba7ca3768a517f22a55', p_source_map => cast('{"file":"delivery.wf","nodes":{"delivery":[1,3],"delivered":[2,3]}}' as jsonb), p_description => null);

select p.workflow_version_id, p.version_no, p.was_new
from wf.wf_publish_workflow_version(p_name => 'delivery', p_content_hash => '55c1836bc620894ae4f6a3daa1672ce41626757edbfe6ba7ca3768a517f22a55', p_activate => true, p_update_actions => false) as p;

commit;
