-- workflow: order_fulfilment
-- content: b215056e79e9b6dce30fb394e6122cb563d680f169b1aa23cf557dcc5019053a
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
  (N'order_fulfilment')
) as r(name)
where not exists(select 1 from wf.workflow_def as x where x.name = r.name);
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_version (workflow_def_id, content_hash, spec_format, outputs_json)
select d.workflow_def_id, r.content_hash, r.spec_format, r.outputs_json
from (values
  (N'b215056e79e9b6dce30fb394e6122cb563d680f169b1aa23cf557dcc5019053a', 1, N'[{"order":0,"name":"parcels","program":[["var","parcels","order_fulfilment",[]]]},{"order":1,"name":"delivered_at","program":[["var","delivered_at","order_fulfilment",[]]]}]')
) as r(content_hash, spec_format, outputs_json)
join wf.workflow_def as d on d.name = N'order_fulfilment'
where not exists(select 1 from wf.workflow_version as x where x.workflow_def_id = d.workflow_def_id and x.content_hash = r.content_hash);
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_action (action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select r.action_name, r.capability, r.max_per_worker, r.exclusive_worker, r.affinity_key_field, r.prefer_previous_worker, r.prefer_continue_group, r.require_previous_worker, r.max_concurrent, r.rate_per_minute, r.max_deliveries
from (values
  (N'billing.invoice', N'default', null, 0, null, 0, 0, 0, null, null, 5),
  (N'courier.book', N'default', null, 0, null, 0, 0, 0, null, null, 5),
  (N'inventory.reserve', N'default', null, 0, null, 0, 0, 0, null, null, 5),
  (N'mail.send', N'default', null, 0, null, 0, 0, 0, null, null, 5),
  (N'payment.charge', N'default', null, 0, null, 0, 0, 0, null, null, 5),
  (N'warehouse.pack', N'default', null, 0, null, 0, 0, 0, null, null, 5)
) as r(action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
where not exists(select 1 from wf.workflow_action as x where x.action_name = r.action_name)
order by r.action_name;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_action_revision (action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
select r.action_name, r.revision, r.description, r.version, r.input_schema_json, r.output_schema_json, r.result_codes_json, r.idempotent, r.timeout_ms, r.sensitive_json
from (values
  (N'billing.invoice', N'9f68eafe832dccf7e56f9b47c5636beca2c4fe153eb68368df20b7f817ba0638', null, null, N'{"type":"object","properties":{"order_id":{"type":"string"}},"required":["order_id"]}', null, N'{}', 1, null, N'[]'),
  (N'courier.book', N'9feebf3b605fdcb4311f7a6e163fee6771772880d2f902b752e5aeaa029f2272', null, null, N'{"type":"object","properties":{"parcels":{}},"required":["parcels"]}', null, N'{}', 1, null, N'[]'),
  (N'inventory.reserve', N'2c0e0759e6039fa671a00edf560974b1b24eebb2a43ae88949a8e44a2efa20d6', null, null, N'{"type":"object","properties":{"order_id":{"type":"string"},"items":{"type":"array","items":{"type":"object","properties":{"sku":{"type":"string"},"qty":{"type":"integer"}},"required":["sku","qty"]}}},"required":["order_id","items"]}', N'{"type":"object","properties":{"reservation_id":{"type":"string"}},"required":["reservation_id"]}', N'{"0":"ok","1":"short","2":"late"}', 1, null, N'[]'),
  (N'mail.send', N'd25d3e4e6495f3467ee044a1dc7658f43ece4db3f97b3e0b01333ea5598f9bde', null, null, N'{"type":"object","properties":{"to":{"type":"string"},"subject":{"type":"string"}},"required":["to","subject"]}', null, N'{}', 1, null, N'[]'),
  (N'payment.charge', N'bb8f89a203d55a7862ce4a39a5840593c08f9aed2a1ff570c3cc73a97c81cf6b', null, null, N'{"type":"object","properties":{"order_id":{"type":"string"}},"required":["order_id"]}', N'{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}', N'{}', 1, null, N'[]'),
  (N'warehouse.pack', N'1e9196fe443a405b43ced537ee777af792881a942dbc94e943aac8ced573d817', null, null, N'{"type":"object","properties":{"sku":{"type":"string"},"qty":{"type":"integer"},"label":{"type":"string"}},"required":["sku","qty","label"]}', N'{"type":"object","properties":{"parcel":{"type":"string"}},"required":["parcel"]}', N'{}', 1, null, N'[]')
) as r(action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
where not exists(select 1 from wf.workflow_action_revision as x where x.action_name = r.action_name and x.revision = r.revision)
order by r.action_name;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_version_action (workflow_version_id, action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select v.workflow_version_id, r.action_name, r.revision, r.capability, r.max_per_worker, r.exclusive_worker, r.affinity_key_field, r.prefer_previous_worker, r.prefer_continue_group, r.require_previous_worker, r.max_concurrent, r.rate_per_minute, r.max_deliveries
from (values
  (N'inventory.reserve', N'2c0e0759e6039fa671a00edf560974b1b24eebb2a43ae88949a8e44a2efa20d6', N'default', null, 0, null, 0, 0, 0, null, null, 5),
  (N'mail.send', N'd25d3e4e6495f3467ee044a1dc7658f43ece4db3f97b3e0b01333ea5598f9bde', N'default', null, 0, null, 0, 0, 0, null, null, 5),
  (N'payment.charge', N'bb8f89a203d55a7862ce4a39a5840593c08f9aed2a1ff570c3cc73a97c81cf6b', N'default', null, 0, null, 0, 0, 0, null, null, 5),
  (N'warehouse.pack', N'1e9196fe443a405b43ced537ee777af792881a942dbc94e943aac8ced573d817', N'default', null, 0, null, 0, 0, 0, null, null, 5),
  (N'courier.book', N'9feebf3b605fdcb4311f7a6e163fee6771772880d2f902b752e5aeaa029f2272', N'default', null, 0, null, 0, 0, 0, null, null, 5),
  (N'billing.invoice', N'9f68eafe832dccf7e56f9b47c5636beca2c4fe153eb68368df20b7f817ba0638', N'default', null, 0, null, 0, 0, 0, null, null, 5)
) as r(action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
join wf.workflow_def as d on d.name = N'order_fulfilment'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'b215056e79e9b6dce30fb394e6122cb563d680f169b1aa23cf557dcc5019053a'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.data_type (workflow_version_id, type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
select v.workflow_version_id, r.type_id, r.parent_type_id, r.path_kind, r.name, r.base_type, r.is_required, r.is_nullable, r.enum_json
from (values
  (1, null, N'root', null, N'string', 1, 0, null),
  (2, null, N'root', null, N'list', 1, 0, null),
  (3, 2, N'item', null, N'object', 1, 0, null),
  (4, 3, N'field', N'sku', N'string', 1, 0, null),
  (5, 3, N'field', N'qty', N'int', 1, 0, null),
  (6, null, N'root', null, N'bool', 1, 0, null),
  (7, null, N'root', null, N'int', 1, 0, null),
  (8, null, N'root', null, N'bool', 1, 0, null)
) as r(type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
join wf.workflow_def as d on d.name = N'order_fulfilment'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'b215056e79e9b6dce30fb394e6122cb563d680f169b1aa23cf557dcc5019053a'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_node (workflow_version_id, node_key, node_type, is_generated, action_name, action_revision, attributes_json)
select v.workflow_version_id, r.node_key, r.node_type, r.is_generated, r.action_name, r.action_revision, r.attributes_json
from (values
  (N'order_fulfilment', N'SEQUENCE', 0, null, null, N'{}'),
  (N'reserve', N'ACTION', 0, N'inventory.reserve', N'2c0e0759e6039fa671a00edf560974b1b24eebb2a43ae88949a8e44a2efa20d6', N'{"timeout_ms":30000,"retry":{"limit":5,"backoff_ms":2000,"factor_hundredths":200,"max_ms":60000,"jitter":false,"on":["any"]}}'),
  (N'switch_1', N'SWITCH', 0, null, null, N'{"subject":[["ctx","task",["reserve","resultCode"]]]}'),
  (N'switch_1.case_0', N'SEQUENCE', 1, null, null, N'{}'),
  (N'switch_1.case_1', N'SEQUENCE', 1, null, null, N'{}'),
  (N'tell', N'ACTION', 0, N'mail.send', N'd25d3e4e6495f3467ee044a1dc7658f43ece4db3f97b3e0b01333ea5598f9bde', N'{}'),
  (N'fail_1', N'SEQUENCE', 0, null, null, N'{"fail":{"code":-20,"message":[["lit","order "],["var","order_id","order_fulfilment",[]],["lit"," cannot be filled"],["cat",3]]}}'),
  (N'while_1', N'WHILE', 0, null, null, N'{"condition":[["var","paid","order_fulfilment",[]],["not"],["jf",4],["var","attempts","order_fulfilment",[]],["lit",3],["lt"],["bool"]],"max":10000}'),
  (N'while_1.body', N'SEQUENCE', 1, null, null, N'{}'),
  (N'charge', N'ACTION', 0, N'payment.charge', N'bb8f89a203d55a7862ce4a39a5840593c08f9aed2a1ff570c3cc73a97c81cf6b', N'{}'),
  (N'foreach_1', N'FOREACH', 0, null, null, N'{"item":"item","index":"i","parallel":8}'),
  (N'foreach_1.body', N'SEQUENCE', 1, null, null, N'{}'),
  (N'pack', N'ACTION', 0, N'warehouse.pack', N'1e9196fe443a405b43ced537ee777af792881a942dbc94e943aac8ced573d817', N'{}'),
  (N'parallel_1', N'PARALLEL', 0, null, null, N'{}'),
  (N'ship', N'SEQUENCE', 0, null, null, N'{}'),
  (N'book', N'ACTION', 0, N'courier.book', N'9feebf3b605fdcb4311f7a6e163fee6771772880d2f902b752e5aeaa029f2272', N'{}'),
  (N'bill', N'SEQUENCE', 0, null, null, N'{}'),
  (N'invoice', N'ACTION', 0, N'billing.invoice', N'9f68eafe832dccf7e56f9b47c5636beca2c4fe153eb68368df20b7f817ba0638', N'{}'),
  (N'delivered', N'WAIT_EVENT', 0, null, null, N'{"event_type":"courier.delivered","correlate":[["var","order_id","order_fulfilment",[]]],"timeout_ms":259200000}'),
  (N'delivered.timeout', N'SEQUENCE', 1, null, null, N'{}'),
  (N'chase', N'ACTION', 0, N'mail.send', N'd25d3e4e6495f3467ee044a1dc7658f43ece4db3f97b3e0b01333ea5598f9bde', N'{}')
) as r(node_key, node_type, is_generated, action_name, action_revision, attributes_json)
join wf.workflow_def as d on d.name = N'order_fulfilment'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'b215056e79e9b6dce30fb394e6122cb563d680f169b1aa23cf557dcc5019053a'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_edge (workflow_version_id, parent_key, child_key, branch_kind, child_order, case_value)
select v.workflow_version_id, r.parent_key, r.child_key, r.branch_kind, r.child_order, r.case_value
from (values
  (N'order_fulfilment', N'reserve', N'SEQUENCE', 0, null),
  (N'order_fulfilment', N'switch_1', N'SEQUENCE', 1, null),
  (N'order_fulfilment', N'while_1', N'SEQUENCE', 2, null),
  (N'order_fulfilment', N'foreach_1', N'SEQUENCE', 3, null),
  (N'order_fulfilment', N'parallel_1', N'SEQUENCE', 4, null),
  (N'order_fulfilment', N'delivered', N'SEQUENCE', 5, null),
  (N'switch_1', N'switch_1.case_0', N'CASE', 0, N'[0]'),
  (N'switch_1', N'switch_1.case_1', N'CASE', 1, N'[1,2]'),
  (N'switch_1.case_1', N'tell', N'SEQUENCE', 0, null),
  (N'switch_1.case_1', N'fail_1', N'SEQUENCE', 1, null),
  (N'while_1', N'while_1.body', N'BODY', 0, null),
  (N'while_1.body', N'charge', N'SEQUENCE', 0, null),
  (N'foreach_1', N'foreach_1.body', N'BODY', 0, null),
  (N'foreach_1.body', N'pack', N'SEQUENCE', 0, null),
  (N'parallel_1', N'ship', N'PARALLEL', 0, null),
  (N'parallel_1', N'bill', N'PARALLEL', 1, null),
  (N'ship', N'book', N'SEQUENCE', 0, null),
  (N'bill', N'invoice', N'SEQUENCE', 0, null),
  (N'delivered', N'delivered.timeout', N'TIMEOUT', 0, null),
  (N'delivered.timeout', N'chase', N'SEQUENCE', 0, null)
) as r(parent_key, child_key, branch_kind, child_order, case_value)
join wf.workflow_def as d on d.name = N'order_fulfilment'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'b215056e79e9b6dce30fb394e6122cb563d680f169b1aa23cf557dcc5019053a'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_input_template (workflow_version_id, node_key, template_json)
select v.workflow_version_id, r.node_key, r.template_json
from (values
  (N'reserve', N'{"order_id":"${var.order_id}","items":"${var.items}"}'),
  (N'tell', N'{"to":"ops@example.com","subject":"Short on stock: ${var.order_id}"}'),
  (N'charge', N'{"order_id":"${var.order_id}"}'),
  (N'pack', N'{"sku":"${var.item.sku}","qty":"${var.item.qty}","label":"${var.order_id}-${var.i}"}'),
  (N'book', N'{"parcels":"${var.parcels}"}'),
  (N'invoice', N'{"order_id":"${var.order_id}"}'),
  (N'chase', N'{"to":"ops@example.com","subject":"Late: ${var.order_id}"}')
) as r(node_key, template_json)
join wf.workflow_def as d on d.name = N'order_fulfilment'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'b215056e79e9b6dce30fb394e6122cb563d680f169b1aa23cf557dcc5019053a'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.variable_output_binding (workflow_version_id, node_key, binding_order, binding_kind, name, owner_key, program_json)
select v.workflow_version_id, r.node_key, r.binding_order, r.binding_kind, r.name, r.owner_key, r.program_json
from (values
  (N'reserve', 0, N'var', N'reservation', N'order_fulfilment', N'[["out",["reservation_id"]]]'),
  (N'charge', 0, N'var', N'paid', N'order_fulfilment', N'[["out",["ok"]]]'),
  (N'charge', 1, N'var', N'attempts', N'order_fulfilment', N'[["var","attempts","order_fulfilment",[]],["lit",1],["add"]]'),
  (N'foreach_1', 0, N'collect', N'parcels', N'order_fulfilment', N'[["ctx","task",["pack","output","parcel"]]]'),
  (N'delivered', 0, N'var', N'delivered_at', N'order_fulfilment', N'[["event",["payload","at"]]]')
) as r(node_key, binding_order, binding_kind, name, owner_key, program_json)
join wf.workflow_def as d on d.name = N'order_fulfilment'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'b215056e79e9b6dce30fb394e6122cb563d680f169b1aa23cf557dcc5019053a'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.node_scope_default (workflow_version_id, owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
select v.workflow_version_id, r.owner_key, r.variable_order, r.name, r.variable_kind, r.type_id, r.is_required, r.program_json
from (values
  (N'order_fulfilment', 0, N'order_id', N'input', 1, 1, null),
  (N'order_fulfilment', 1, N'items', N'input', 2, 1, null),
  (N'order_fulfilment', 2, N'express', N'input', 6, 0, N'[["lit",false]]'),
  (N'order_fulfilment', 0, N'attempts', N'var', 7, 0, N'[["lit",0]]'),
  (N'order_fulfilment', 1, N'paid', N'var', 8, 0, N'[["lit",false]]'),
  (N'order_fulfilment', 2, N'reservation', N'set', null, 0, null),
  (N'order_fulfilment', 3, N'parcels', N'set', null, 0, null),
  (N'order_fulfilment', 4, N'delivered_at', N'set', null, 0, null),
  (N'foreach_1.body', 0, N'item', N'loop', null, 0, null),
  (N'foreach_1.body', 1, N'i', N'loop', null, 0, null)
) as r(owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
join wf.workflow_def as d on d.name = N'order_fulfilment'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'b215056e79e9b6dce30fb394e6122cb563d680f169b1aa23cf557dcc5019053a'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.collection_binding (workflow_version_id, node_key, binding_kind, program_json)
select v.workflow_version_id, r.node_key, r.binding_kind, r.program_json
from (values
  (N'foreach_1', N'variable', N'[["var","items","order_fulfilment",[]]]')
) as r(node_key, binding_kind, program_json)
join wf.workflow_def as d on d.name = N'order_fulfilment'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'b215056e79e9b6dce30fb394e6122cb563d680f169b1aa23cf557dcc5019053a'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.event_subscription (workflow_version_id, subscription_order, event_type, mode, filter_json, inputs_json)
select v.workflow_version_id, r.subscription_order, r.event_type, r.mode, r.filter_json, r.inputs_json
from (values
  (0, N'order.created', N'start_instance', N'[{"path":["region"],"value":"eu"}]', N'[{"name":"order_id","program":[["event",["payload","order_id"]]]},{"name":"items","program":[["event",["payload","items"]]]},{"name":"express","program":[["event",["payload","express"]]]}]'),
  (1, N'courier.delivered', N'signal_wait', N'[]', N'[]')
) as r(subscription_order, event_type, mode, filter_json, inputs_json)
join wf.workflow_def as d on d.name = N'order_fulfilment'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'b215056e79e9b6dce30fb394e6122cb563d680f169b1aa23cf557dcc5019053a'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

declare @v_name nvarchar(120) = N'order_fulfilment';
declare @v_content_hash nvarchar(64) = N'b215056e79e9b6dce30fb394e6122cb563d680f169b1aa23cf557dcc5019053a';
declare @v_source_map nvarchar(max) = N'{"file":"at_a_glance.wf","nodes":{"order_fulfilment":[2,10],"reserve":[16,10],"switch_1":[22,3],"switch_1.case_0":[23,13],"switch_1.case_1":[24,19],"tell":[25,14],"fail_1":[26,7],"while_1":[30,3],"while_1.body":[30,43],"charge":[31,12],"foreach_1":[37,3],"foreach_1.body":[37,43],"pack":[38,12],"parallel_1":[42,3],"ship":[43,14],"book":[43,28],"bill":[44,14],"invoice":[44,28],"delivered":[47,14],"delivered.timeout":[49,16],"chase":[49,25]}}';
declare @v_description nvarchar(max) = N'Fulfil one order.';
exec wf.wf_set_version_notes @name = @v_name, @content_hash = @v_content_hash,
    @source_map = @v_source_map, @description = @v_description;
exec wf.wf_publish_workflow_version @name = @v_name, @content_hash = @v_content_hash,
    @activate = 1, @update_actions = 0;
commit transaction;
GO
