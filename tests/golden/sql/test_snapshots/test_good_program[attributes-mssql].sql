-- workflow: attributes
-- content: 0b8a6cf407e48f8ab2ad27d1dae8cc205b648dc67d38db1c6a8826673d54e541
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
  (N'attributes')
) as r(name)
where not exists(select 1 from wf.workflow_def as x where x.name = r.name);
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_version (workflow_def_id, content_hash, spec_format, outputs_json)
select d.workflow_def_id, r.content_hash, r.spec_format, r.outputs_json
from (values
  (N'0b8a6cf407e48f8ab2ad27d1dae8cc205b648dc67d38db1c6a8826673d54e541', 1, N'[{"order":0,"name":"done","program":[["var","done","attributes",[]]]},{"order":1,"name":"sent","program":[["var","sent","attributes",[]]]}]')
) as r(content_hash, spec_format, outputs_json)
join wf.workflow_def as d on d.name = N'attributes'
where not exists(select 1 from wf.workflow_version as x where x.workflow_def_id = d.workflow_def_id and x.content_hash = r.content_hash);
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_action (action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select r.action_name, r.capability, r.max_per_worker, r.exclusive_worker, r.affinity_key_field, r.prefer_previous_worker, r.prefer_continue_group, r.require_previous_worker, r.max_concurrent, r.rate_per_minute, r.max_deliveries
from (values
  (N'parcel.send', N'default', null, 0, null, 0, 0, 0, null, null, 5),
  (N'parcel.weigh', N'warehouse', 4, 0, null, 1, 0, 0, null, null, 5)
) as r(action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
where not exists(select 1 from wf.workflow_action as x where x.action_name = r.action_name)
order by r.action_name;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_action_revision (action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
select r.action_name, r.revision, r.description, r.version, r.input_schema_json, r.output_schema_json, r.result_codes_json, r.idempotent, r.timeout_ms, r.sensitive_json
from (values
  (N'parcel.send', N'e7350ea230af9c0f3b81fd14c98f99c83a51f0ca4393f5bb05bd4ffc058ec1fc', null, null, N'{"type":"object","properties":{"to":{"type":"string"},"note":{"type":"string"}},"required":["to"]}', null, N'{}', 1, null, N'["/input/to","/output/trace"]'),
  (N'parcel.weigh', N'60ff631018ee9a316432f32c5585798e65d53021978c875e0fdbd94f4d8adf52', null, null, N'{"type":"object","properties":{"parcels":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}},"required":["parcels"]}', N'{"type":"object","properties":{"total":{"type":"integer"}},"required":["total"]}', N'{"0":"ok","-3":"overload"}', 0, 60000, N'[]')
) as r(action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
where not exists(select 1 from wf.workflow_action_revision as x where x.action_name = r.action_name and x.revision = r.revision)
order by r.action_name;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_version_action (workflow_version_id, action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select v.workflow_version_id, r.action_name, r.revision, r.capability, r.max_per_worker, r.exclusive_worker, r.affinity_key_field, r.prefer_previous_worker, r.prefer_continue_group, r.require_previous_worker, r.max_concurrent, r.rate_per_minute, r.max_deliveries
from (values
  (N'parcel.weigh', N'60ff631018ee9a316432f32c5585798e65d53021978c875e0fdbd94f4d8adf52', N'warehouse', 4, 0, null, 1, 0, 0, null, null, 5),
  (N'parcel.send', N'e7350ea230af9c0f3b81fd14c98f99c83a51f0ca4393f5bb05bd4ffc058ec1fc', N'default', null, 0, null, 0, 0, 0, null, null, 5)
) as r(action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
join wf.workflow_def as d on d.name = N'attributes'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'0b8a6cf407e48f8ab2ad27d1dae8cc205b648dc67d38db1c6a8826673d54e541'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.data_type (workflow_version_id, type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
select v.workflow_version_id, r.type_id, r.parent_type_id, r.path_kind, r.name, r.base_type, r.is_required, r.is_nullable, r.enum_json
from (values
  (1, null, N'root', null, N'list', 1, 0, null),
  (2, 1, N'item', null, N'object', 1, 0, null),
  (3, 2, N'field', N'name', N'string', 1, 0, null),
  (4, 2, N'field', N'size', N'string', 1, 0, N'["small","large"]'),
  (5, 2, N'field', N'note', N'string', 0, 1, null),
  (6, null, N'root', null, N'string', 1, 0, null),
  (7, null, N'root', null, N'int', 1, 0, null)
) as r(type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
join wf.workflow_def as d on d.name = N'attributes'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'0b8a6cf407e48f8ab2ad27d1dae8cc205b648dc67d38db1c6a8826673d54e541'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_node (workflow_version_id, node_key, node_type, is_generated, action_name, action_revision, attributes_json)
select v.workflow_version_id, r.node_key, r.node_type, r.is_generated, r.action_name, r.action_revision, r.attributes_json
from (values
  (N'attributes', N'SEQUENCE', 0, null, null, N'{"timeout_ms":172800000}'),
  (N'guarded', N'SEQUENCE', 0, null, null, N'{"timeout_ms":3600000}'),
  (N'weigh', N'ACTION', 0, N'parcel.weigh', N'60ff631018ee9a316432f32c5585798e65d53021978c875e0fdbd94f4d8adf52', N'{"timeout_ms":30000,"delay_ms":500,"retry":{"limit":5,"backoff_ms":2000,"factor_hundredths":150,"max_ms":60000,"jitter":true,"on":["lease",-3,10013]},"dispatch":{"max_per_worker":2,"exclusive_worker":true}}'),
  (N'guarded.on_error', N'SEQUENCE', 1, null, null, N'{}'),
  (N'guarded.set_1', N'SEQUENCE', 0, null, null, N'{}'),
  (N'guarded.set_2', N'SEQUENCE', 0, null, null, N'{}'),
  (N'guarded.finally', N'SEQUENCE', 1, null, null, N'{}'),
  (N'guarded.sleep_1', N'SEQUENCE', 0, null, null, N'{"sleep_ms":1000}'),
  (N'race', N'PARALLEL', 0, null, null, N'{"join":1,"keep_going":true,"timeout_ms":600000}'),
  (N'fast', N'ACTION', 0, N'parcel.send', N'e7350ea230af9c0f3b81fd14c98f99c83a51f0ca4393f5bb05bd4ffc058ec1fc', N'{"retry":{"limit":2,"backoff_ms":5000,"factor_hundredths":100,"max_ms":3600000,"jitter":true,"on":["any"]}}'),
  (N'slow', N'ACTION', 0, N'parcel.send', N'e7350ea230af9c0f3b81fd14c98f99c83a51f0ca4393f5bb05bd4ffc058ec1fc', N'{"retry":{"limit":2,"backoff_ms":5000,"factor_hundredths":100,"max_ms":3600000,"jitter":true,"on":["any"]},"dispatch":{"max_concurrent":5,"rate_per_minute":60,"max_deliveries":3,"idempotent":false}}'),
  (N'foreach_1', N'FOREACH', 0, null, null, N'{"item":"box","parallel":4,"batch":10,"tolerate":{"percent":5},"keep_going":true,"timeout_ms":86400000}'),
  (N'foreach_1.body', N'SEQUENCE', 1, null, null, N'{}'),
  (N'pack', N'ACTION', 0, N'parcel.weigh', N'60ff631018ee9a316432f32c5585798e65d53021978c875e0fdbd94f4d8adf52', N'{"timeout_ms":60000}'),
  (N'foreach_2', N'FOREACH', 0, null, null, N'{"item":"box","parallel":1,"tolerate":{"count":2},"reuse":{"fingerprint":"53bc2c585d4be676bba4980c1c61e87753a76522e260b2125b2ecc7035341330","reads":[]}}'),
  (N'foreach_2.body', N'SEQUENCE', 1, null, null, N'{}'),
  (N'again', N'ACTION', 0, N'parcel.send', N'e7350ea230af9c0f3b81fd14c98f99c83a51f0ca4393f5bb05bd4ffc058ec1fc', N'{"retry":{"limit":2,"backoff_ms":5000,"factor_hundredths":100,"max_ms":3600000,"jitter":true,"on":["any"]}}'),
  (N'repeat_1', N'REPEAT', 0, null, null, N'{"count":[["lit",3]],"keep":2,"timeout_ms":60000}'),
  (N'repeat_1.body', N'SEQUENCE', 1, null, null, N'{}'),
  (N'sleep_1', N'SEQUENCE', 0, null, null, N'{"sleep_ms":1000}'),
  (N'while_1', N'WHILE', 0, null, null, N'{"condition":[["ctx","task",["poll","resultCode"]],["alt",1],["lit",1],["lit",0],["ne"]],"max":100,"keep":5}'),
  (N'while_1.body', N'SEQUENCE', 1, null, null, N'{}'),
  (N'poll', N'ACTION', 0, N'parcel.send', N'e7350ea230af9c0f3b81fd14c98f99c83a51f0ca4393f5bb05bd4ffc058ec1fc', N'{"retry":{"limit":2,"backoff_ms":5000,"factor_hundredths":100,"max_ms":3600000,"jitter":true,"on":["any"]}}'),
  (N'sleep_2', N'SEQUENCE', 0, null, null, N'{"sleep_ms":30000}'),
  (N'late', N'WAIT_EVENT', 0, null, null, N'{"event_type":"parcels.late","correlate":[["var","region","attributes",[]]],"timeout_ms":86400000}'),
  (N'late.timeout', N'SEQUENCE', 1, null, null, N'{}'),
  (N'late.fail_1', N'SEQUENCE', 0, null, null, N'{"fail":{"code":-4,"message":[["lit","nothing came to "],["var","region","attributes",[]],["cat",2]]}}')
) as r(node_key, node_type, is_generated, action_name, action_revision, attributes_json)
join wf.workflow_def as d on d.name = N'attributes'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'0b8a6cf407e48f8ab2ad27d1dae8cc205b648dc67d38db1c6a8826673d54e541'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_edge (workflow_version_id, parent_key, child_key, branch_kind, child_order, case_value)
select v.workflow_version_id, r.parent_key, r.child_key, r.branch_kind, r.child_order, r.case_value
from (values
  (N'attributes', N'guarded', N'SEQUENCE', 0, null),
  (N'attributes', N'race', N'SEQUENCE', 1, null),
  (N'attributes', N'foreach_1', N'SEQUENCE', 2, null),
  (N'attributes', N'foreach_2', N'SEQUENCE', 3, null),
  (N'attributes', N'repeat_1', N'SEQUENCE', 4, null),
  (N'attributes', N'while_1', N'SEQUENCE', 5, null),
  (N'attributes', N'late', N'SEQUENCE', 6, null),
  (N'guarded', N'weigh', N'SEQUENCE', 0, null),
  (N'guarded', N'guarded.on_error', N'ON_ERROR', 1, null),
  (N'guarded', N'guarded.finally', N'FINALLY', 2, null),
  (N'guarded.on_error', N'guarded.set_1', N'SEQUENCE', 0, null),
  (N'guarded.on_error', N'guarded.set_2', N'SEQUENCE', 1, null),
  (N'guarded.finally', N'guarded.sleep_1', N'SEQUENCE', 0, null),
  (N'race', N'fast', N'PARALLEL', 0, null),
  (N'race', N'slow', N'PARALLEL', 1, null),
  (N'foreach_1', N'foreach_1.body', N'BODY', 0, null),
  (N'foreach_1.body', N'pack', N'SEQUENCE', 0, null),
  (N'foreach_2', N'foreach_2.body', N'BODY', 0, null),
  (N'foreach_2.body', N'again', N'SEQUENCE', 0, null),
  (N'repeat_1', N'repeat_1.body', N'BODY', 0, null),
  (N'repeat_1.body', N'sleep_1', N'SEQUENCE', 0, null),
  (N'while_1', N'while_1.body', N'BODY', 0, null),
  (N'while_1.body', N'poll', N'SEQUENCE', 0, null),
  (N'while_1.body', N'sleep_2', N'SEQUENCE', 1, null),
  (N'late', N'late.timeout', N'TIMEOUT', 0, null),
  (N'late.timeout', N'late.fail_1', N'SEQUENCE', 0, null)
) as r(parent_key, child_key, branch_kind, child_order, case_value)
join wf.workflow_def as d on d.name = N'attributes'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'0b8a6cf407e48f8ab2ad27d1dae8cc205b648dc67d38db1c6a8826673d54e541'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_input_template (workflow_version_id, node_key, template_json)
select v.workflow_version_id, r.node_key, r.template_json
from (values
  (N'weigh', N'{"parcels":"${var.parcels}"}'),
  (N'fast', N'{"to":"${var.region}"}'),
  (N'slow', N'{"to":"${var.region}","note":null}'),
  (N'pack', N'{"parcels":"${var.box}"}'),
  (N'again', N'{"to":"${var.box.name}"}'),
  (N'poll', N'{"to":"${var.region}"}')
) as r(node_key, template_json)
join wf.workflow_def as d on d.name = N'attributes'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'0b8a6cf407e48f8ab2ad27d1dae8cc205b648dc67d38db1c6a8826673d54e541'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_input_binding (workflow_version_id, node_key, pointer, program_json)
select v.workflow_version_id, r.node_key, r.pointer, r.program_json
from (values
  (N'slow', N'/note', N'[["var","reason","attributes",[]],["alt",1],["lit","fine"]]')
) as r(node_key, pointer, program_json)
join wf.workflow_def as d on d.name = N'attributes'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'0b8a6cf407e48f8ab2ad27d1dae8cc205b648dc67d38db1c6a8826673d54e541'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.variable_output_binding (workflow_version_id, node_key, binding_order, binding_kind, name, owner_key, program_json)
select v.workflow_version_id, r.node_key, r.binding_order, r.binding_kind, r.name, r.owner_key, r.program_json
from (values
  (N'weigh', 0, N'var', N'done', N'attributes', N'[["out",["total"]]]'),
  (N'guarded.set_1', 0, N'var', N'done', N'attributes', N'[["lit",0]]'),
  (N'guarded.set_2', 0, N'var', N'reason', N'attributes', N'[["ctx","error",["message"]]]'),
  (N'foreach_1', 0, N'collect', N'sent', N'attributes', N'[["ctx","task",["pack","output","total"]]]'),
  (N'late', 0, N'var', N'done', N'attributes', N'[["event",["payload","count"]]]')
) as r(node_key, binding_order, binding_kind, name, owner_key, program_json)
join wf.workflow_def as d on d.name = N'attributes'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'0b8a6cf407e48f8ab2ad27d1dae8cc205b648dc67d38db1c6a8826673d54e541'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.node_scope_default (workflow_version_id, owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
select v.workflow_version_id, r.owner_key, r.variable_order, r.name, r.variable_kind, r.type_id, r.is_required, r.program_json
from (values
  (N'attributes', 0, N'parcels', N'input', 1, 1, null),
  (N'attributes', 1, N'region', N'input', 6, 0, N'[["lit","eu"]]'),
  (N'attributes', 0, N'done', N'var', 7, 0, null),
  (N'attributes', 1, N'reason', N'set', null, 0, null),
  (N'attributes', 2, N'sent', N'set', null, 0, null),
  (N'foreach_1.body', 0, N'box', N'loop', null, 0, null),
  (N'foreach_2.body', 0, N'box', N'loop', null, 0, null)
) as r(owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
join wf.workflow_def as d on d.name = N'attributes'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'0b8a6cf407e48f8ab2ad27d1dae8cc205b648dc67d38db1c6a8826673d54e541'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.collection_binding (workflow_version_id, node_key, binding_kind, program_json)
select v.workflow_version_id, r.node_key, r.binding_kind, r.program_json
from (values
  (N'foreach_1', N'variable', N'[["var","parcels","attributes",[]]]'),
  (N'foreach_2', N'variable', N'[["var","parcels","attributes",[]]]')
) as r(node_key, binding_kind, program_json)
join wf.workflow_def as d on d.name = N'attributes'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'0b8a6cf407e48f8ab2ad27d1dae8cc205b648dc67d38db1c6a8826673d54e541'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.event_subscription (workflow_version_id, subscription_order, event_type, mode, filter_json, inputs_json)
select v.workflow_version_id, r.subscription_order, r.event_type, r.mode, r.filter_json, r.inputs_json
from (values
  (0, N'parcels.ready', N'start_instance', N'[{"path":["region"],"value":"eu"},{"path":["size","count"],"value":3}]', N'[{"name":"parcels","program":[["event",["payload","parcels"]]]}]'),
  (1, N'parcels.late', N'signal_wait', N'[{"path":["urgent"],"value":true}]', N'[]')
) as r(subscription_order, event_type, mode, filter_json, inputs_json)
join wf.workflow_def as d on d.name = N'attributes'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'0b8a6cf407e48f8ab2ad27d1dae8cc205b648dc67d38db1c6a8826673d54e541'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

declare @v_name nvarchar(120) = N'attributes';
declare @v_content_hash nvarchar(64) = N'0b8a6cf407e48f8ab2ad27d1dae8cc205b648dc67d38db1c6a8826673d54e541';
declare @v_source_map nvarchar(max) = N'{"file":"attributes.wf","nodes":{"attributes":[3,10],"guarded":[11,12],"weigh":[13,12],"guarded.on_error":[21,14],"guarded.set_1":[22,5],"guarded.set_2":[23,5],"guarded.finally":[24,13],"guarded.sleep_1":[25,5],"race":[28,12],"fast":[29,12],"slow":[30,12],"foreach_1":[38,3],"foreach_1.body":[38,84],"pack":[39,12],"foreach_2":[42,3],"foreach_2.body":[42,47],"again":[43,12],"repeat_1":[46,3],"repeat_1.body":[46,30],"sleep_1":[47,5],"while_1":[49,3],"while_1.body":[49,61],"poll":[50,12],"sleep_2":[51,5],"late":[54,14],"late.timeout":[56,16],"late.fail_1":[57,7]}}';
declare @v_description nvarchar(max) = null;
exec wf.wf_set_version_notes @name = @v_name, @content_hash = @v_content_hash,
    @source_map = @v_source_map, @description = @v_description;
exec wf.wf_publish_workflow_version @name = @v_name, @content_hash = @v_content_hash,
    @activate = 1, @update_actions = 0;
commit transaction;
GO
