-- workflow: tree_demo
-- content: 604b71973852473a213dbcaa58270622225fa12136c40f2a3bcd583108eb1376
-- dialect: mssql
-- spec_format: 1

set quoted_identifier, ansi_nulls, ansi_padding, ansi_warnings, arithabort,
    concat_null_yields_null on;
set numeric_roundabort off;
set xact_abort on;
set nocount on;
GO

if @@trancount > 0 throw 70003, N'run the deploy script outside a transaction', 1;
set transaction isolation level read committed;
begin transaction;
exec wf.wf_require_runtime @version = 2;
declare @v_lock int;
exec @v_lock = sys.sp_getapplock @Resource = N'wf.deploy', @LockMode = N'Exclusive',
    @LockOwner = N'Transaction', @LockTimeout = 60000;
if @v_lock < 0 throw 70009, N'another deploy is running', 1;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_def (name)
select r.name
from (values
  (N'tree_demo')
) as r(name)
where not exists(select 1 from wf.workflow_def as x where x.name = r.name);
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_version (workflow_def_id, content_hash, spec_format, outputs_json)
select d.workflow_def_id, r.content_hash, r.spec_format, r.outputs_json
from (values
  (N'604b71973852473a213dbcaa58270622225fa12136c40f2a3bcd583108eb1376', 1, N'[{"order":0,"name":"report","program":[["ctx","task",["report","output","report"]]]},{"order":1,"name":"cold","program":[["var","cold","tree_demo",[]]]}]')
) as r(content_hash, spec_format, outputs_json)
join wf.workflow_def as d on d.name = N'tree_demo'
where not exists(select 1 from wf.workflow_version as x where x.workflow_def_id = d.workflow_def_id and x.content_hash = r.content_hash);
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_action (action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select r.action_name, r.capability, r.max_per_worker, r.exclusive_worker, r.affinity_key_field, r.prefer_previous_worker, r.prefer_continue_group, r.require_previous_worker, r.max_concurrent, r.rate_per_minute, r.max_deliveries
from (values
  (N'house.report', N'default', null, 0, null, 0, 0, 0, null, null, 5),
  (N'sensor.read', N'default', null, 0, null, 0, 0, 0, null, null, 5),
  (N'sensor.reset', N'default', null, 0, null, 0, 0, 0, null, null, 5)
) as r(action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
where not exists(select 1 from wf.workflow_action as x where x.action_name = r.action_name)
order by r.action_name;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_action_revision (action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
select r.action_name, r.revision, r.description, r.version, r.input_schema_json, r.output_schema_json, r.result_codes_json, r.idempotent, r.timeout_ms, r.sensitive_json
from (values
  (N'house.report', N'7a3b9f87f432ec2f2035dbc34f1c59311fcc4decc258303e0bef9f62a273e55f', null, null, N'{"type":"object","properties":{"warmest":{"type":["number","null"]},"places":{"type":"integer"}},"required":["warmest","places"]}', N'{"type":"object","properties":{"report":{"type":"string"}},"required":["report"]}', N'{}', 1, null, N'[]'),
  (N'sensor.read', N'f2182e62bec1139b3e687b89e2169de99d256e330a4b31fa3b927b9aa20c9549', null, null, N'{"type":"object","properties":{"place":{"type":"string"}},"required":["place"]}', N'{"type":"object","properties":{"celsius":{"type":"number"}},"required":["celsius"]}', N'{"0":"fine","1":"frozen"}', 1, null, N'[]'),
  (N'sensor.reset', N'608da7548237360ca891b561025b6acf4415f8de741456a7d9ff76ce94f85a6d', null, null, N'{"type":"object","properties":{"place":{"type":"string"}},"required":["place"]}', N'{"type":"object","properties":{}}', N'{}', 1, null, N'[]')
) as r(action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
where not exists(select 1 from wf.workflow_action_revision as x where x.action_name = r.action_name and x.revision = r.revision)
order by r.action_name;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_version_action (workflow_version_id, action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select v.workflow_version_id, r.action_name, r.revision, r.capability, r.max_per_worker, r.exclusive_worker, r.affinity_key_field, r.prefer_previous_worker, r.prefer_continue_group, r.require_previous_worker, r.max_concurrent, r.rate_per_minute, r.max_deliveries
from (values
  (N'sensor.read', N'f2182e62bec1139b3e687b89e2169de99d256e330a4b31fa3b927b9aa20c9549', N'default', null, 0, null, 0, 0, 0, null, null, 5),
  (N'sensor.reset', N'608da7548237360ca891b561025b6acf4415f8de741456a7d9ff76ce94f85a6d', N'default', null, 0, null, 0, 0, 0, null, null, 5),
  (N'house.report', N'7a3b9f87f432ec2f2035dbc34f1c59311fcc4decc258303e0bef9f62a273e55f', N'default', null, 0, null, 0, 0, 0, null, null, 5)
) as r(action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
join wf.workflow_def as d on d.name = N'tree_demo'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'604b71973852473a213dbcaa58270622225fa12136c40f2a3bcd583108eb1376'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.data_type (workflow_version_id, type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
select v.workflow_version_id, r.type_id, r.parent_type_id, r.path_kind, r.name, r.base_type, r.is_required, r.is_nullable, r.enum_json
from (values
  (1, null, N'root', null, N'list', 1, 0, null),
  (2, 1, N'item', null, N'list', 1, 0, null),
  (3, 2, N'item', null, N'string', 1, 0, null),
  (4, null, N'root', null, N'list', 1, 0, null),
  (5, 4, N'item', null, N'list', 1, 0, null),
  (6, 5, N'item', null, N'number', 1, 0, null),
  (7, null, N'root', null, N'int', 1, 0, null),
  (8, null, N'root', null, N'int', 1, 0, null)
) as r(type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
join wf.workflow_def as d on d.name = N'tree_demo'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'604b71973852473a213dbcaa58270622225fa12136c40f2a3bcd583108eb1376'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_node (workflow_version_id, node_key, node_type, is_generated, action_name, action_revision, attributes_json)
select v.workflow_version_id, r.node_key, r.node_type, r.is_generated, r.action_name, r.action_revision, r.attributes_json
from (values
  (N'tree_demo', N'SEQUENCE', 0, null, null, N'{}'),
  (N'parallel_1', N'PARALLEL', 0, null, null, N'{}'),
  (N'inside', N'SEQUENCE', 0, null, null, N'{}'),
  (N'inside.foreach_1', N'FOREACH', 0, null, null, N'{"item":"floor","parallel":2}'),
  (N'inside.foreach_1.body', N'SEQUENCE', 1, null, null, N'{}'),
  (N'inside.foreach_2', N'FOREACH', 0, null, null, N'{"item":"place","parallel":0}'),
  (N'inside.foreach_2.body', N'SEQUENCE', 1, null, null, N'{}'),
  (N'read', N'ACTION', 0, N'sensor.read', N'f2182e62bec1139b3e687b89e2169de99d256e330a4b31fa3b927b9aa20c9549', N'{}'),
  (N'outside', N'SEQUENCE', 0, null, null, N'{}'),
  (N'garden', N'ACTION', 0, N'sensor.read', N'f2182e62bec1139b3e687b89e2169de99d256e330a4b31fa3b927b9aa20c9549', N'{}'),
  (N'outside.switch_1', N'SWITCH', 0, null, null, N'{"subject":[["ctx","task",["garden","resultCode"]]]}'),
  (N'outside.switch_1.case_0', N'SEQUENCE', 1, null, null, N'{}'),
  (N'reset', N'ACTION', 0, N'sensor.reset', N'608da7548237360ca891b561025b6acf4415f8de741456a7d9ff76ce94f85a6d', N'{}'),
  (N'outside.switch_1.default', N'SEQUENCE', 1, null, null, N'{}'),
  (N'outside.sleep_1', N'SEQUENCE', 0, null, null, N'{"sleep_ms":60000}'),
  (N'foreach_1', N'FOREACH', 0, null, null, N'{"item":"floor_readings","parallel":1}'),
  (N'foreach_1.body', N'SEQUENCE', 1, null, null, N'{}'),
  (N'foreach_2', N'FOREACH', 0, null, null, N'{"item":"reading","parallel":1}'),
  (N'foreach_2.body', N'SEQUENCE', 1, null, null, N'{}'),
  (N'set_1', N'SEQUENCE', 0, null, null, N'{}'),
  (N'if_1', N'IF', 0, null, null, N'{"condition":[["var","reading","foreach_2.body",[]],["lit",15],["lt"]]}'),
  (N'if_1.then', N'SEQUENCE', 1, null, null, N'{}'),
  (N'set_2', N'SEQUENCE', 0, null, null, N'{}'),
  (N'report', N'ACTION', 0, N'house.report', N'7a3b9f87f432ec2f2035dbc34f1c59311fcc4decc258303e0bef9f62a273e55f', N'{}')
) as r(node_key, node_type, is_generated, action_name, action_revision, attributes_json)
join wf.workflow_def as d on d.name = N'tree_demo'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'604b71973852473a213dbcaa58270622225fa12136c40f2a3bcd583108eb1376'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_edge (workflow_version_id, parent_key, child_key, branch_kind, child_order, case_value)
select v.workflow_version_id, r.parent_key, r.child_key, r.branch_kind, r.child_order, r.case_value
from (values
  (N'tree_demo', N'parallel_1', N'SEQUENCE', 0, null),
  (N'tree_demo', N'foreach_1', N'SEQUENCE', 1, null),
  (N'tree_demo', N'report', N'SEQUENCE', 2, null),
  (N'parallel_1', N'inside', N'PARALLEL', 0, null),
  (N'parallel_1', N'outside', N'PARALLEL', 1, null),
  (N'inside', N'inside.foreach_1', N'SEQUENCE', 0, null),
  (N'inside.foreach_1', N'inside.foreach_1.body', N'BODY', 0, null),
  (N'inside.foreach_1.body', N'inside.foreach_2', N'SEQUENCE', 0, null),
  (N'inside.foreach_2', N'inside.foreach_2.body', N'BODY', 0, null),
  (N'inside.foreach_2.body', N'read', N'SEQUENCE', 0, null),
  (N'outside', N'garden', N'SEQUENCE', 0, null),
  (N'outside', N'outside.switch_1', N'SEQUENCE', 1, null),
  (N'outside.switch_1', N'outside.switch_1.case_0', N'CASE', 0, N'[1]'),
  (N'outside.switch_1', N'outside.switch_1.default', N'DEFAULT', 1, null),
  (N'outside.switch_1.case_0', N'reset', N'SEQUENCE', 0, null),
  (N'outside.switch_1.default', N'outside.sleep_1', N'SEQUENCE', 0, null),
  (N'foreach_1', N'foreach_1.body', N'BODY', 0, null),
  (N'foreach_1.body', N'foreach_2', N'SEQUENCE', 0, null),
  (N'foreach_2', N'foreach_2.body', N'BODY', 0, null),
  (N'foreach_2.body', N'set_1', N'SEQUENCE', 0, null),
  (N'foreach_2.body', N'if_1', N'SEQUENCE', 1, null),
  (N'if_1', N'if_1.then', N'THEN', 0, null),
  (N'if_1.then', N'set_2', N'SEQUENCE', 0, null)
) as r(parent_key, child_key, branch_kind, child_order, case_value)
join wf.workflow_def as d on d.name = N'tree_demo'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'604b71973852473a213dbcaa58270622225fa12136c40f2a3bcd583108eb1376'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_input_template (workflow_version_id, node_key, template_json)
select v.workflow_version_id, r.node_key, r.template_json
from (values
  (N'read', N'{"place":"${var.place}"}'),
  (N'garden', N'{"place":"garden"}'),
  (N'reset', N'{"place":"garden"}'),
  (N'report', N'{"warmest":"${ctx.task.garden.output.celsius}","places":"${var.places}"}')
) as r(node_key, template_json)
join wf.workflow_def as d on d.name = N'tree_demo'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'604b71973852473a213dbcaa58270622225fa12136c40f2a3bcd583108eb1376'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.variable_output_binding (workflow_version_id, node_key, binding_order, binding_kind, name, owner_key, program_json)
select v.workflow_version_id, r.node_key, r.binding_order, r.binding_kind, r.name, r.owner_key, r.program_json
from (values
  (N'inside.foreach_1', 0, N'collect', N'readings', N'tree_demo', N'[["var","temperatures","inside.foreach_1.body",[]]]'),
  (N'inside.foreach_2', 0, N'collect', N'temperatures', N'inside.foreach_1.body', N'[["ctx","task",["read","output","celsius"]]]'),
  (N'set_1', 0, N'var', N'places', N'tree_demo', N'[["var","places","tree_demo",[]],["lit",1],["add"]]'),
  (N'set_2', 0, N'var', N'cold', N'tree_demo', N'[["var","cold","tree_demo",[]],["lit",1],["add"]]')
) as r(node_key, binding_order, binding_kind, name, owner_key, program_json)
join wf.workflow_def as d on d.name = N'tree_demo'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'604b71973852473a213dbcaa58270622225fa12136c40f2a3bcd583108eb1376'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.node_scope_default (workflow_version_id, owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
select v.workflow_version_id, r.owner_key, r.variable_order, r.name, r.variable_kind, r.type_id, r.is_required, r.program_json
from (values
  (N'tree_demo', 0, N'floors', N'input', 1, 1, null),
  (N'tree_demo', 0, N'readings', N'var', 4, 0, N'[["arr",0]]'),
  (N'tree_demo', 1, N'places', N'var', 7, 0, N'[["lit",0]]'),
  (N'tree_demo', 2, N'cold', N'var', 8, 0, N'[["lit",0]]'),
  (N'inside.foreach_1.body', 0, N'floor', N'loop', null, 0, null),
  (N'inside.foreach_1.body', 1, N'temperatures', N'set', null, 0, null),
  (N'inside.foreach_2.body', 0, N'place', N'loop', null, 0, null),
  (N'foreach_1.body', 0, N'floor_readings', N'loop', null, 0, null),
  (N'foreach_2.body', 0, N'reading', N'loop', null, 0, null)
) as r(owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
join wf.workflow_def as d on d.name = N'tree_demo'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'604b71973852473a213dbcaa58270622225fa12136c40f2a3bcd583108eb1376'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.collection_binding (workflow_version_id, node_key, binding_kind, program_json)
select v.workflow_version_id, r.node_key, r.binding_kind, r.program_json
from (values
  (N'inside.foreach_1', N'variable', N'[["var","floors","tree_demo",[]]]'),
  (N'inside.foreach_2', N'variable', N'[["var","floor","inside.foreach_1.body",[]]]'),
  (N'foreach_1', N'variable', N'[["var","readings","tree_demo",[]]]'),
  (N'foreach_2', N'variable', N'[["var","floor_readings","foreach_1.body",[]]]')
) as r(node_key, binding_kind, program_json)
join wf.workflow_def as d on d.name = N'tree_demo'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'604b71973852473a213dbcaa58270622225fa12136c40f2a3bcd583108eb1376'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

declare @v_name nvarchar(120) = N'tree_demo';
declare @v_content_hash nvarchar(64) = N'604b71973852473a213dbcaa58270622225fa12136c40f2a3bcd583108eb1376';
declare @v_source_map nvarchar(max) = N'{"file":"tree_demo.wf","nodes":{"tree_demo":[2,10],"parallel_1":[16,3],"inside":[17,14],"inside.foreach_1":[18,7],"inside.foreach_1.body":[18,46],"inside.foreach_2":[19,9],"inside.foreach_2.body":[19,45],"read":[20,18],"outside":[26,14],"garden":[27,14],"outside.switch_1":[28,7],"outside.switch_1.case_0":[29,21],"reset":[30,18],"outside.switch_1.default":[32,17],"outside.sleep_1":[33,11],"foreach_1":[38,3],"foreach_1.body":[38,42],"foreach_2":[39,5],"foreach_2.body":[39,43],"set_1":[40,7],"if_1":[41,7],"if_1.then":[41,27],"set_2":[42,9],"report":[46,10]}}';
declare @v_description nvarchar(max) = N'Read the sensors of a house, floor by floor, all at once.';
exec wf.wf_set_version_notes @name = @v_name, @content_hash = @v_content_hash,
    @source_map = @v_source_map, @description = @v_description;
exec wf.wf_publish_workflow_version @name = @v_name, @content_hash = @v_content_hash,
    @activate = 1, @update_actions = 0;
commit transaction;
GO
