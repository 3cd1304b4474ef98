-- workflow: order_delivery
-- content: ff3293c47dc0795dae07ef1649faaa1f27828f067a8850a6e9d504c8a350a5ef
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
  (N'order_delivery')
) as r(name)
where not exists(select 1 from wf.workflow_def as x where x.name = r.name);
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_version (workflow_def_id, content_hash, spec_format, outputs_json)
select d.workflow_def_id, r.content_hash, r.spec_format, r.outputs_json
from (values
  (N'ff3293c47dc0795dae07ef1649faaa1f27828f067a8850a6e9d504c8a350a5ef', 1, N'[{"order":0,"name":"delivered_at","program":[["var","delivered_at","order_delivery",[]]]},{"order":1,"name":"protocol","program":[["ctx","task",["confirm","output","file"]]]},{"order":2,"name":"complete","program":[["ctx","task",["confirm","output","complete"]]]}]')
) as r(content_hash, spec_format, outputs_json)
join wf.workflow_def as d on d.name = N'order_delivery'
where not exists(select 1 from wf.workflow_version as x where x.workflow_def_id = d.workflow_def_id and x.content_hash = r.content_hash);
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_action (action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select r.action_name, r.capability, r.max_per_worker, r.exclusive_worker, r.affinity_key_field, r.prefer_previous_worker, r.prefer_continue_group, r.require_previous_worker, r.max_concurrent, r.rate_per_minute, r.max_deliveries
from (values
  (N'courier.chase', N'shipping', null, 0, null, 0, 0, 0, null, null, 5),
  (N'customer.notify', N'mail', null, 0, null, 0, 0, 0, null, null, 5),
  (N'delivery.confirm', N'shipping', null, 0, null, 0, 0, 0, null, null, 5)
) as r(action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
where not exists(select 1 from wf.workflow_action as x where x.action_name = r.action_name)
order by r.action_name;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_action_revision (action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
select r.action_name, r.revision, r.description, r.version, r.input_schema_json, r.output_schema_json, r.result_codes_json, r.idempotent, r.timeout_ms, r.sensitive_json
from (values
  (N'courier.chase', N'dbd85799cb9044bcad8c3d61a7a34699e024b56b544f238b7ca692249001962d', N'Ask the courier in writing where an order is.', null, N'{"type":"object","properties":{"order_id":{"type":"string"},"tracking":{"type":"string"},"days":{"type":"integer"},"work_dir":{"type":"string"}},"required":["order_id","tracking","days","work_dir"]}', N'{"type":"object","properties":{"file":{"type":"string"}},"required":["file"]}', N'{}', 1, null, N'[]'),
  (N'customer.notify', N'cd1496e19249c5c8324060bd3e1d27c8a33b379a4b6fe0210498abebd43b6361', N'Put a message to the customer into the outbox.', null, N'{"type":"object","properties":{"to":{"type":"string"},"subject":{"type":"string"},"body":{"type":"string"},"work_dir":{"type":"string"}},"required":["to","subject","body","work_dir"]}', N'{"type":"object","properties":{"file":{"type":"string"}},"required":["file"]}', N'{}', 1, null, N'[]'),
  (N'delivery.confirm', N'3cd030bbde01dbab8fb21edfbc8b494caea871ec48fd5b8266b919b24b33cf7c', N'Compare what was handed over with what was sent, and write the protocol.', null, N'{"type":"object","properties":{"order_id":{"type":"string"},"tracking":{"type":"string"},"expected":{"type":"array","items":{"type":"string"}},"handed_over":{"type":"array","items":{"type":"string"}},"delivered_at":{"type":"string"},"signed_by":{"type":"string"},"work_dir":{"type":"string"}},"required":["order_id","tracking","expected","handed_over","delivered_at","signed_by","work_dir"]}', N'{"type":"object","properties":{"complete":{"type":"boolean"},"missing_count":{"type":"integer"},"file":{"type":"string"}},"required":["complete","missing_count","file"]}', N'{"0":"complete","1":"incomplete"}', 1, null, N'[]')
) as r(action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
where not exists(select 1 from wf.workflow_action_revision as x where x.action_name = r.action_name and x.revision = r.revision)
order by r.action_name;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_version_action (workflow_version_id, action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select v.workflow_version_id, r.action_name, r.revision, r.capability, r.max_per_worker, r.exclusive_worker, r.affinity_key_field, r.prefer_previous_worker, r.prefer_continue_group, r.require_previous_worker, r.max_concurrent, r.rate_per_minute, r.max_deliveries
from (values
  (N'courier.chase', N'dbd85799cb9044bcad8c3d61a7a34699e024b56b544f238b7ca692249001962d', N'shipping', null, 0, null, 0, 0, 0, null, null, 5),
  (N'delivery.confirm', N'3cd030bbde01dbab8fb21edfbc8b494caea871ec48fd5b8266b919b24b33cf7c', N'shipping', null, 0, null, 0, 0, 0, null, null, 5),
  (N'customer.notify', N'cd1496e19249c5c8324060bd3e1d27c8a33b379a4b6fe0210498abebd43b6361', N'mail', null, 0, null, 0, 0, 0, null, null, 5)
) as r(action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
join wf.workflow_def as d on d.name = N'order_delivery'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'ff3293c47dc0795dae07ef1649faaa1f27828f067a8850a6e9d504c8a350a5ef'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.data_type (workflow_version_id, type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
select v.workflow_version_id, r.type_id, r.parent_type_id, r.path_kind, r.name, r.base_type, r.is_required, r.is_nullable, r.enum_json
from (values
  (1, null, N'root', null, N'string', 1, 0, null),
  (2, null, N'root', null, N'string', 1, 0, null),
  (3, null, N'root', null, N'string', 1, 0, null),
  (4, null, N'root', null, N'list', 1, 0, null),
  (5, 4, N'item', null, N'string', 1, 0, null),
  (6, null, N'root', null, N'string', 1, 0, null),
  (7, null, N'root', null, N'bool', 1, 0, null),
  (8, null, N'root', null, N'int', 1, 0, null),
  (9, null, N'root', null, N'string', 1, 0, null),
  (10, null, N'root', null, N'string', 1, 0, null),
  (11, null, N'root', null, N'list', 1, 0, null),
  (12, 11, N'item', null, N'string', 1, 0, null)
) as r(type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
join wf.workflow_def as d on d.name = N'order_delivery'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'ff3293c47dc0795dae07ef1649faaa1f27828f067a8850a6e9d504c8a350a5ef'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_node (workflow_version_id, node_key, node_type, is_generated, action_name, action_revision, attributes_json)
select v.workflow_version_id, r.node_key, r.node_type, r.is_generated, r.action_name, r.action_revision, r.attributes_json
from (values
  (N'order_delivery', N'SEQUENCE', 0, null, null, N'{}'),
  (N'while_1', N'WHILE', 0, null, null, N'{"condition":[["var","arrived","order_delivery",[]],["not"],["jf",4],["var","asked","order_delivery",[]],["lit",3],["lt"],["bool"]],"max":10000}'),
  (N'while_1.body', N'SEQUENCE', 1, null, null, N'{}'),
  (N'delivered', N'WAIT_EVENT', 0, null, null, N'{"event_type":"courier.delivered","correlate":[["var","order_id","order_delivery",[]]],"timeout_ms":259200000}'),
  (N'delivered.timeout', N'SEQUENCE', 1, null, null, N'{}'),
  (N'chase', N'ACTION', 0, N'courier.chase', N'dbd85799cb9044bcad8c3d61a7a34699e024b56b544f238b7ca692249001962d', N'{}'),
  (N'if_1', N'IF', 0, null, null, N'{"condition":[["var","arrived","order_delivery",[]],["not"]]}'),
  (N'if_1.then', N'SEQUENCE', 1, null, null, N'{}'),
  (N'fail_1', N'SEQUENCE', 0, null, null, N'{"fail":{"code":-40,"message":[["lit","order "],["var","order_id","order_delivery",[]],["lit"," is lost: the courier was asked "],["var","asked","order_delivery",[]],["lit"," times"],["cat",5]]}}'),
  (N'confirm', N'ACTION', 0, N'delivery.confirm', N'3cd030bbde01dbab8fb21edfbc8b494caea871ec48fd5b8266b919b24b33cf7c', N'{}'),
  (N'switch_1', N'SWITCH', 0, null, null, N'{"subject":[["ctx","task",["confirm","resultCode"]]]}'),
  (N'switch_1.case_0', N'SEQUENCE', 1, null, null, N'{}'),
  (N'thank', N'ACTION', 0, N'customer.notify', N'cd1496e19249c5c8324060bd3e1d27c8a33b379a4b6fe0210498abebd43b6361', N'{}'),
  (N'switch_1.case_1', N'SEQUENCE', 1, null, null, N'{}'),
  (N'apologise', N'ACTION', 0, N'customer.notify', N'cd1496e19249c5c8324060bd3e1d27c8a33b379a4b6fe0210498abebd43b6361', N'{}')
) as r(node_key, node_type, is_generated, action_name, action_revision, attributes_json)
join wf.workflow_def as d on d.name = N'order_delivery'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'ff3293c47dc0795dae07ef1649faaa1f27828f067a8850a6e9d504c8a350a5ef'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_edge (workflow_version_id, parent_key, child_key, branch_kind, child_order, case_value)
select v.workflow_version_id, r.parent_key, r.child_key, r.branch_kind, r.child_order, r.case_value
from (values
  (N'order_delivery', N'while_1', N'SEQUENCE', 0, null),
  (N'order_delivery', N'if_1', N'SEQUENCE', 1, null),
  (N'order_delivery', N'confirm', N'SEQUENCE', 2, null),
  (N'order_delivery', N'switch_1', N'SEQUENCE', 3, null),
  (N'while_1', N'while_1.body', N'BODY', 0, null),
  (N'while_1.body', N'delivered', N'SEQUENCE', 0, null),
  (N'delivered', N'delivered.timeout', N'TIMEOUT', 0, null),
  (N'delivered.timeout', N'chase', N'SEQUENCE', 0, null),
  (N'if_1', N'if_1.then', N'THEN', 0, null),
  (N'if_1.then', N'fail_1', N'SEQUENCE', 0, null),
  (N'switch_1', N'switch_1.case_0', N'CASE', 0, N'[0]'),
  (N'switch_1', N'switch_1.case_1', N'CASE', 1, N'[1]'),
  (N'switch_1.case_0', N'thank', N'SEQUENCE', 0, null),
  (N'switch_1.case_1', N'apologise', N'SEQUENCE', 0, null)
) as r(parent_key, child_key, branch_kind, child_order, case_value)
join wf.workflow_def as d on d.name = N'order_delivery'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'ff3293c47dc0795dae07ef1649faaa1f27828f067a8850a6e9d504c8a350a5ef'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_input_template (workflow_version_id, node_key, template_json)
select v.workflow_version_id, r.node_key, r.template_json
from (values
  (N'chase', N'{"order_id":"${var.order_id}","tracking":"${var.tracking}","days":null,"work_dir":"${var.work_dir}"}'),
  (N'confirm', N'{"order_id":"${var.order_id}","tracking":"${var.tracking}","expected":"${var.parcels}","handed_over":"${var.handed_over}","delivered_at":"${var.delivered_at}","signed_by":"${var.signed_by}","work_dir":"${var.work_dir}"}'),
  (N'thank', N'{"to":"${var.email}","subject":"Your order ${var.order_id} has arrived","body":"Signed for by ${var.signed_by} at ${var.delivered_at}.","work_dir":"${var.work_dir}"}'),
  (N'apologise', N'{"to":"${var.email}","subject":"Part of your order ${var.order_id} is still on its way","body":"Parcels missing: ${ctx.task.confirm.output.missing_count}.","work_dir":"${var.work_dir}"}')
) as r(node_key, template_json)
join wf.workflow_def as d on d.name = N'order_delivery'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'ff3293c47dc0795dae07ef1649faaa1f27828f067a8850a6e9d504c8a350a5ef'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_input_binding (workflow_version_id, node_key, pointer, program_json)
select v.workflow_version_id, r.node_key, r.pointer, r.program_json
from (values
  (N'chase', N'/days', N'[["lit",3],["var","asked","order_delivery",[]],["lit",1],["add"],["mul"]]')
) as r(node_key, pointer, program_json)
join wf.workflow_def as d on d.name = N'order_delivery'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'ff3293c47dc0795dae07ef1649faaa1f27828f067a8850a6e9d504c8a350a5ef'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.variable_output_binding (workflow_version_id, node_key, binding_order, binding_kind, name, owner_key, program_json)
select v.workflow_version_id, r.node_key, r.binding_order, r.binding_kind, r.name, r.owner_key, r.program_json
from (values
  (N'delivered', 0, N'var', N'arrived', N'order_delivery', N'[["lit",true]]'),
  (N'delivered', 1, N'var', N'delivered_at', N'order_delivery', N'[["event",["payload","at"]]]'),
  (N'delivered', 2, N'var', N'signed_by', N'order_delivery', N'[["event",["payload","signed_by"]],["alt",1],["lit","nobody"]]'),
  (N'delivered', 3, N'var', N'handed_over', N'order_delivery', N'[["event",["payload","parcels"]]]'),
  (N'chase', 0, N'var', N'asked', N'order_delivery', N'[["var","asked","order_delivery",[]],["lit",1],["add"]]')
) as r(node_key, binding_order, binding_kind, name, owner_key, program_json)
join wf.workflow_def as d on d.name = N'order_delivery'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'ff3293c47dc0795dae07ef1649faaa1f27828f067a8850a6e9d504c8a350a5ef'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.node_scope_default (workflow_version_id, owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
select v.workflow_version_id, r.owner_key, r.variable_order, r.name, r.variable_kind, r.type_id, r.is_required, r.program_json
from (values
  (N'order_delivery', 0, N'order_id', N'input', 1, 1, null),
  (N'order_delivery', 1, N'email', N'input', 2, 1, null),
  (N'order_delivery', 2, N'tracking', N'input', 3, 1, null),
  (N'order_delivery', 3, N'parcels', N'input', 4, 1, null),
  (N'order_delivery', 4, N'work_dir', N'input', 6, 0, N'[["lit","order_delivery"]]'),
  (N'order_delivery', 0, N'arrived', N'var', 7, 0, N'[["lit",false]]'),
  (N'order_delivery', 1, N'asked', N'var', 8, 0, N'[["lit",0]]'),
  (N'order_delivery', 2, N'delivered_at', N'var', 9, 0, N'[["lit",""]]'),
  (N'order_delivery', 3, N'signed_by', N'var', 10, 0, N'[["lit","nobody"]]'),
  (N'order_delivery', 4, N'handed_over', N'var', 11, 0, N'[["arr",0]]')
) as r(owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
join wf.workflow_def as d on d.name = N'order_delivery'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'ff3293c47dc0795dae07ef1649faaa1f27828f067a8850a6e9d504c8a350a5ef'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.event_subscription (workflow_version_id, subscription_order, event_type, mode, filter_json, inputs_json)
select v.workflow_version_id, r.subscription_order, r.event_type, r.mode, r.filter_json, r.inputs_json
from (values
  (0, N'courier.delivered', N'signal_wait', N'[]', N'[]')
) as r(subscription_order, event_type, mode, filter_json, inputs_json)
join wf.workflow_def as d on d.name = N'order_delivery'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'ff3293c47dc0795dae07ef1649faaa1f27828f067a8850a6e9d504c8a350a5ef'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

declare @v_name nvarchar(120) = N'order_delivery';
declare @v_content_hash nvarchar(64) = N'ff3293c47dc0795dae07ef1649faaa1f27828f067a8850a6e9d504c8a350a5ef';
declare @v_source_map nvarchar(max) = N'{"file":"order_delivery.wf","nodes":{"order_delivery":[4,10],"while_1":[26,3],"while_1.body":[26,43],"delivered":[27,16],"delivered.timeout":[30,18],"chase":[31,16],"if_1":[46,3],"if_1.then":[46,22],"fail_1":[47,5],"confirm":[50,10],"switch_1":[60,3],"switch_1.case_0":[61,19],"thank":[62,14],"switch_1.case_1":[69,21],"apologise":[70,14]}}';
declare @v_description nvarchar(max) = N'Close an order when its parcels have arrived.';
exec wf.wf_set_version_notes @name = @v_name, @content_hash = @v_content_hash,
    @source_map = @v_source_map, @description = @v_description;
exec wf.wf_publish_workflow_version @name = @v_name, @content_hash = @v_content_hash,
    @activate = 1, @update_actions = 0;
commit transaction;
GO
