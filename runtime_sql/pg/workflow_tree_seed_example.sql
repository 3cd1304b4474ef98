-- workflow: tree_demo
-- content: 604b71973852473a213dbcaa58270622225fa12136c40f2a3bcd583108eb1376
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
  ('tree_demo')
) as r(name)
on conflict(name) do nothing;

insert into wf.workflow_version (workflow_def_id, content_hash, spec_format, outputs_json)
select d.workflow_def_id, r.content_hash, cast(r.spec_format as int), cast(r.outputs_json as jsonb)
from (values
  ('604b71973852473a213dbcaa58270622225fa12136c40f2a3bcd583108eb1376', 1, '[{"order":0,"name":"report","program":[["ctx","task",["report","output","report"]]]},{"order":1,"name":"cold","program":[["var","cold","tree_demo",[]]]}]')
) as r(content_hash, spec_format, outputs_json)
join wf.workflow_def as d on d.name = 'tree_demo'
on conflict(workflow_def_id, content_hash) do nothing;

insert into wf.workflow_action (action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select r.action_name, r.capability, cast(r.max_per_worker as int), cast(r.exclusive_worker as boolean), r.affinity_key_field, cast(r.prefer_previous_worker as boolean), cast(r.prefer_continue_group as boolean), cast(r.require_previous_worker as boolean), cast(r.max_concurrent as int), cast(r.rate_per_minute as int), cast(r.max_deliveries as int)
from (values
  ('house.report', 'default', null, false, null, false, false, false, null, null, 5),
  ('sensor.read', 'default', null, false, null, false, false, false, null, null, 5),
  ('sensor.reset', 'default', null, false, null, false, false, false, null, null, 5)
) as r(action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
order by r.action_name
on conflict(action_name) do nothing;

insert into wf.workflow_action_revision (action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
select r.action_name, r.revision, r.description, r.version, cast(r.input_schema_json as jsonb), cast(r.output_schema_json as jsonb), cast(r.result_codes_json as jsonb), cast(r.idempotent as boolean), cast(r.timeout_ms as bigint), cast(r.sensitive_json as jsonb)
from (values
  ('house.report', '7a3b9f87f432ec2f2035dbc34f1c59311fcc4decc258303e0bef9f62a273e55f', null, null, '{"type":"object","properties":{"warmest":{"type":["number","null"]},"places":{"type":"integer"}},"required":["warmest","places"]}', '{"type":"object","properties":{"report":{"type":"string"}},"required":["report"]}', '{}', true, null, '[]'),
  ('sensor.read', 'f2182e62bec1139b3e687b89e2169de99d256e330a4b31fa3b927b9aa20c9549', null, null, '{"type":"object","properties":{"place":{"type":"string"}},"required":["place"]}', '{"type":"object","properties":{"celsius":{"type":"number"}},"required":["celsius"]}', '{"0":"fine","1":"frozen"}', true, null, '[]'),
  ('sensor.reset', '608da7548237360ca891b561025b6acf4415f8de741456a7d9ff76ce94f85a6d', null, null, '{"type":"object","properties":{"place":{"type":"string"}},"required":["place"]}', '{"type":"object","properties":{}}', '{}', true, null, '[]')
) as r(action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
order by r.action_name
on conflict(action_name, revision) do nothing;

insert into wf.workflow_version_action (workflow_version_id, action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select v.workflow_version_id, r.action_name, r.revision, r.capability, cast(r.max_per_worker as int), cast(r.exclusive_worker as boolean), r.affinity_key_field, cast(r.prefer_previous_worker as boolean), cast(r.prefer_continue_group as boolean), cast(r.require_previous_worker as boolean), cast(r.max_concurrent as int), cast(r.rate_per_minute as int), cast(r.max_deliveries as int)
from (values
  ('sensor.read', 'f2182e62bec1139b3e687b89e2169de99d256e330a4b31fa3b927b9aa20c9549', 'default', null, false, null, false, false, false, null, null, 5),
  ('sensor.reset', '608da7548237360ca891b561025b6acf4415f8de741456a7d9ff76ce94f85a6d', 'default', null, false, null, false, false, false, null, null, 5),
  ('house.report', '7a3b9f87f432ec2f2035dbc34f1c59311fcc4decc258303e0bef9f62a273e55f', 'default', null, false, null, false, false, false, null, null, 5)
) as r(action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
join wf.workflow_def as d on d.name = 'tree_demo'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '604b71973852473a213dbcaa58270622225fa12136c40f2a3bcd583108eb1376'
where v.published_at is null;

insert into wf.data_type (workflow_version_id, type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
select v.workflow_version_id, cast(r.type_id as int), cast(r.parent_type_id as int), r.path_kind, r.name, r.base_type, cast(r.is_required as boolean), cast(r.is_nullable as boolean), cast(r.enum_json as jsonb)
from (values
  (1, null, 'root', null, 'list', true, false, null),
  (2, 1, 'item', null, 'list', true, false, null),
  (3, 2, 'item', null, 'string', true, false, null),
  (4, null, 'root', null, 'list', true, false, null),
  (5, 4, 'item', null, 'list', true, false, null),
  (6, 5, 'item', null, 'number', true, false, null),
  (7, null, 'root', null, 'int', true, false, null),
  (8, null, 'root', null, 'int', true, false, null)
) as r(type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
join wf.workflow_def as d on d.name = 'tree_demo'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '604b71973852473a213dbcaa58270622225fa12136c40f2a3bcd583108eb1376'
where v.published_at is null;

insert into wf.workflow_node (workflow_version_id, node_key, node_type, is_generated, action_name, action_revision, attributes_json)
select v.workflow_version_id, r.node_key, r.node_type, cast(r.is_generated as boolean), r.action_name, r.action_revision, cast(r.attributes_json as jsonb)
from (values
  ('tree_demo', 'SEQUENCE', false, null, null, '{}'),
  ('parallel_1', 'PARALLEL', false, null, null, '{}'),
  ('inside', 'SEQUENCE', false, null, null, '{}'),
  ('inside.foreach_1', 'FOREACH', false, null, null, '{"item":"floor","parallel":2}'),
  ('inside.foreach_1.body', 'SEQUENCE', true, null, null, '{}'),
  ('inside.foreach_2', 'FOREACH', false, null, null, '{"item":"place","parallel":0}'),
  ('inside.foreach_2.body', 'SEQUENCE', true, null, null, '{}'),
  ('read', 'ACTION', false, 'sensor.read', 'f2182e62bec1139b3e687b89e2169de99d256e330a4b31fa3b927b9aa20c9549', '{}'),
  ('outside', 'SEQUENCE', false, null, null, '{}'),
  ('garden', 'ACTION', false, 'sensor.read', 'f2182e62bec1139b3e687b89e2169de99d256e330a4b31fa3b927b9aa20c9549', '{}'),
  ('outside.switch_1', 'SWITCH', false, null, null, '{"subject":[["ctx","task",["garden","resultCode"]]]}'),
  ('outside.switch_1.case_0', 'SEQUENCE', true, null, null, '{}'),
  ('reset', 'ACTION', false, 'sensor.reset', '608da7548237360ca891b561025b6acf4415f8de741456a7d9ff76ce94f85a6d', '{}'),
  ('outside.switch_1.default', 'SEQUENCE', true, null, null, '{}'),
  ('outside.sleep_1', 'SEQUENCE', false, null, null, '{"sleep_ms":60000}'),
  ('foreach_1', 'FOREACH', false, null, null, '{"item":"floor_readings","parallel":1}'),
  ('foreach_1.body', 'SEQUENCE', true, null, null, '{}'),
  ('foreach_2', 'FOREACH', false, null, null, '{"item":"reading","parallel":1}'),
  ('foreach_2.body', 'SEQUENCE', true, null, null, '{}'),
  ('set_1', 'SEQUENCE', false, null, null, '{}'),
  ('if_1', 'IF', false, null, null, '{"condition":[["var","reading","foreach_2.body",[]],["lit",15],["lt"]]}'),
  ('if_1.then', 'SEQUENCE', true, null, null, '{}'),
  ('set_2', 'SEQUENCE', false, null, null, '{}'),
  ('report', 'ACTION', false, 'house.report', '7a3b9f87f432ec2f2035dbc34f1c59311fcc4decc258303e0bef9f62a273e55f', '{}')
) as r(node_key, node_type, is_generated, action_name, action_revision, attributes_json)
join wf.workflow_def as d on d.name = 'tree_demo'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '604b71973852473a213dbcaa58270622225fa12136c40f2a3bcd583108eb1376'
where v.published_at is null;

insert into wf.workflow_edge (workflow_version_id, parent_key, child_key, branch_kind, child_order, case_value)
select v.workflow_version_id, r.parent_key, r.child_key, r.branch_kind, cast(r.child_order as int), cast(r.case_value as jsonb)
from (values
  ('tree_demo', 'parallel_1', 'SEQUENCE', 0, null),
  ('tree_demo', 'foreach_1', 'SEQUENCE', 1, null),
  ('tree_demo', 'report', 'SEQUENCE', 2, null),
  ('parallel_1', 'inside', 'PARALLEL', 0, null),
  ('parallel_1', 'outside', 'PARALLEL', 1, null),
  ('inside', 'inside.foreach_1', 'SEQUENCE', 0, null),
  ('inside.foreach_1', 'inside.foreach_1.body', 'BODY', 0, null),
  ('inside.foreach_1.body', 'inside.foreach_2', 'SEQUENCE', 0, null),
  ('inside.foreach_2', 'inside.foreach_2.body', 'BODY', 0, null),
  ('inside.foreach_2.body', 'read', 'SEQUENCE', 0, null),
  ('outside', 'garden', 'SEQUENCE', 0, null),
  ('outside', 'outside.switch_1', 'SEQUENCE', 1, null),
  ('outside.switch_1', 'outside.switch_1.case_0', 'CASE', 0, '[1]'),
  ('outside.switch_1', 'outside.switch_1.default', 'DEFAULT', 1, null),
  ('outside.switch_1.case_0', 'reset', 'SEQUENCE', 0, null),
  ('outside.switch_1.default', 'outside.sleep_1', 'SEQUENCE', 0, null),
  ('foreach_1', 'foreach_1.body', 'BODY', 0, null),
  ('foreach_1.body', 'foreach_2', 'SEQUENCE', 0, null),
  ('foreach_2', 'foreach_2.body', 'BODY', 0, null),
  ('foreach_2.body', 'set_1', 'SEQUENCE', 0, null),
  ('foreach_2.body', 'if_1', 'SEQUENCE', 1, null),
  ('if_1', 'if_1.then', 'THEN', 0, null),
  ('if_1.then', 'set_2', 'SEQUENCE', 0, null)
) as r(parent_key, child_key, branch_kind, child_order, case_value)
join wf.workflow_def as d on d.name = 'tree_demo'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '604b71973852473a213dbcaa58270622225fa12136c40f2a3bcd583108eb1376'
where v.published_at is null;

insert into wf.workflow_input_template (workflow_version_id, node_key, template_json)
select v.workflow_version_id, r.node_key, cast(r.template_json as jsonb)
from (values
  ('read', '{"place":"${var.place}"}'),
  ('garden', '{"place":"garden"}'),
  ('reset', '{"place":"garden"}'),
  ('report', '{"warmest":"${ctx.task.garden.output.celsius}","places":"${var.places}"}')
) as r(node_key, template_json)
join wf.workflow_def as d on d.name = 'tree_demo'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '604b71973852473a213dbcaa58270622225fa12136c40f2a3bcd583108eb1376'
where v.published_at is null;

insert into wf.variable_output_binding (workflow_version_id, node_key, binding_order, binding_kind, name, owner_key, program_json)
select v.workflow_version_id, r.node_key, cast(r.binding_order as int), r.binding_kind, r.name, r.owner_key, cast(r.program_json as jsonb)
from (values
  ('inside.foreach_1', 0, 'collect', 'readings', 'tree_demo', '[["var","temperatures","inside.foreach_1.body",[]]]'),
  ('inside.foreach_2', 0, 'collect', 'temperatures', 'inside.foreach_1.body', '[["ctx","task",["read","output","celsius"]]]'),
  ('set_1', 0, 'var', 'places', 'tree_demo', '[["var","places","tree_demo",[]],["lit",1],["add"]]'),
  ('set_2', 0, 'var', 'cold', 'tree_demo', '[["var","cold","tree_demo",[]],["lit",1],["add"]]')
) as r(node_key, binding_order, binding_kind, name, owner_key, program_json)
join wf.workflow_def as d on d.name = 'tree_demo'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '604b71973852473a213dbcaa58270622225fa12136c40f2a3bcd583108eb1376'
where v.published_at is null;

insert into wf.node_scope_default (workflow_version_id, owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
select v.workflow_version_id, r.owner_key, cast(r.variable_order as int), r.name, r.variable_kind, cast(r.type_id as int), cast(r.is_required as boolean), cast(r.program_json as jsonb)
from (values
  ('tree_demo', 0, 'floors', 'input', 1, true, null),
  ('tree_demo', 0, 'readings', 'var', 4, false, '[["arr",0]]'),
  ('tree_demo', 1, 'places', 'var', 7, false, '[["lit",0]]'),
  ('tree_demo', 2, 'cold', 'var', 8, false, '[["lit",0]]'),
  ('inside.foreach_1.body', 0, 'floor', 'loop', null, false, null),
  ('inside.foreach_1.body', 1, 'temperatures', 'set', null, false, null),
  ('inside.foreach_2.body', 0, 'place', 'loop', null, false, null),
  ('foreach_1.body', 0, 'floor_readings', 'loop', null, false, null),
  ('foreach_2.body', 0, 'reading', 'loop', null, false, null)
) as r(owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
join wf.workflow_def as d on d.name = 'tree_demo'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '604b71973852473a213dbcaa58270622225fa12136c40f2a3bcd583108eb1376'
where v.published_at is null;

insert into wf.collection_binding (workflow_version_id, node_key, binding_kind, program_json)
select v.workflow_version_id, r.node_key, r.binding_kind, cast(r.program_json as jsonb)
from (values
  ('inside.foreach_1', 'variable', '[["var","floors","tree_demo",[]]]'),
  ('inside.foreach_2', 'variable', '[["var","floor","inside.foreach_1.body",[]]]'),
  ('foreach_1', 'variable', '[["var","readings","tree_demo",[]]]'),
  ('foreach_2', 'variable', '[["var","floor_readings","foreach_1.body",[]]]')
) as r(node_key, binding_kind, program_json)
join wf.workflow_def as d on d.name = 'tree_demo'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '604b71973852473a213dbcaa58270622225fa12136c40f2a3bcd583108eb1376'
where v.published_at is null;

select wf.wf_set_version_notes(p_name => 'tree_demo', p_content_hash => '604b71973852473a213dbcaa58270622225fa12136c40f2a3bcd583108eb1376', p_source_map => cast('{"file":"tree_demo.wf","nodes":{"tree_demo":[2,10],"parallel_1":[16,3],"inside":[17,14],"inside.foreach_1":[18,7],"inside.foreach_1.body":[18,46],"inside.foreach_2":[19,9],"inside.foreach_2.body":[19,45],"read":[20,18],"outside":[26,14],"garden":[27,14],"outside.switch_1":[28,7],"outside.switch_1.case_0":[29,21],"reset":[30,18],"outside.switch_1.default":[32,17],"outside.sleep_1":[33,11],"foreach_1":[38,3],"foreach_1.body":[38,42],"foreach_2":[39,5],"foreach_2.body":[39,43],"set_1":[40,7],"if_1":[41,7],"if_1.then":[41,27],"set_2":[42,9],"report":[46,10]}}' as jsonb), p_description => 'Read the sensors of a house, floor by floor, all at once.');

select p.workflow_version_id, p.version_no, p.was_new
from wf.wf_publish_workflow_version(p_name => 'tree_demo', p_content_hash => '604b71973852473a213dbcaa58270622225fa12136c40f2a3bcd583108eb1376', p_activate => true, p_update_actions => false) as p;

commit;
