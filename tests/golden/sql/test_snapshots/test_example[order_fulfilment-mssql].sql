-- workflow: order_fulfilment
-- content: 49d687a3079f10343ae85e587e961e5693b8cd8ed9b1fcc0881df219d0f8403c
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
  (N'49d687a3079f10343ae85e587e961e5693b8cd8ed9b1fcc0881df219d0f8403c', 1, N'[{"order":0,"name":"parcels","program":[["var","parcels","order_fulfilment",[]]]},{"order":1,"name":"attempts","program":[["var","attempts","order_fulfilment",[]]]},{"order":2,"name":"receipt","program":[["var","receipt","order_fulfilment",[]]]},{"order":3,"name":"tracking","program":[["var","tracking","order_fulfilment",[]]]},{"order":4,"name":"invoice","program":[["ctx","task",["invoice","output","number"]]]}]')
) as r(content_hash, spec_format, outputs_json)
join wf.workflow_def as d on d.name = N'order_fulfilment'
where not exists(select 1 from wf.workflow_version as x where x.workflow_def_id = d.workflow_def_id and x.content_hash = r.content_hash);
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_action (action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select r.action_name, r.capability, r.max_per_worker, r.exclusive_worker, r.affinity_key_field, r.prefer_previous_worker, r.prefer_continue_group, r.require_previous_worker, r.max_concurrent, r.rate_per_minute, r.max_deliveries
from (values
  (N'billing.invoice', N'billing', null, 0, null, 0, 0, 0, null, null, 5),
  (N'courier.book', N'shipping', null, 0, null, 0, 0, 0, null, null, 5),
  (N'inventory.reserve', N'stock', null, 0, null, 0, 0, 0, null, null, 5),
  (N'mail.send', N'mail', null, 0, null, 0, 0, 0, null, null, 5),
  (N'payment.charge', N'payment', null, 0, null, 0, 0, 0, null, null, 5),
  (N'warehouse.pack', N'stock', null, 0, null, 0, 0, 0, null, null, 5)
) as r(action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
where not exists(select 1 from wf.workflow_action as x where x.action_name = r.action_name)
order by r.action_name;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_action_revision (action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
select r.action_name, r.revision, r.description, r.version, r.input_schema_json, r.output_schema_json, r.result_codes_json, r.idempotent, r.timeout_ms, r.sensitive_json
from (values
  (N'billing.invoice', N'8dd79ca6e12edbc1297cc9baa2193b4a1bef10ac0a541bf4210d1e7a9a437dfb', N'Write the invoice, line by line.', null, N'{"type":"object","properties":{"order_id":{"type":"string"},"items":{"type":"array","items":{"type":"object","properties":{"sku":{"type":"string"},"qty":{"type":"integer"}},"required":["sku","qty"]}},"total_cents":{"type":"integer"},"receipt":{"type":"string"},"work_dir":{"type":"string"}},"required":["order_id","items","total_cents","receipt","work_dir"]}', N'{"type":"object","properties":{"number":{"type":"string"},"file":{"type":"string"}},"required":["number","file"]}', N'{}', 1, null, N'[]'),
  (N'courier.book', N'688fdf2c8d44016b79e61bfdb9110ce1841bb707f5c836e8b208c1b31660b54c', N'Write the way bill of all parcels and sum their weight; the van takes 30 kg.', null, N'{"type":"object","properties":{"order_id":{"type":"string"},"parcels":{"type":"array","items":{"type":"object","properties":{"label":{"type":"string"},"weight_grams":{"type":"integer"},"slip":{"type":"string"}},"required":["label","weight_grams","slip"]}},"express":{"type":"boolean"},"work_dir":{"type":"string"}},"required":["order_id","parcels","express","work_dir"]}', N'{"type":"object","properties":{"tracking":{"type":"string"},"weight_grams":{"type":"integer"}},"required":["tracking","weight_grams"]}', N'{"0":"ok","-1":"no_answer","-2":"too_heavy"}', 1, null, N'[]'),
  (N'inventory.reserve', N'b76ac6da77e44935754a52b606b4f028d713e25d7aeb0d68d1b1188ae5d67015', N'Look every item up in the price list, reserve it, and sum the price.', null, N'{"type":"object","properties":{"order_id":{"type":"string"},"items":{"type":"array","items":{"type":"object","properties":{"sku":{"type":"string"},"qty":{"type":"integer"}},"required":["sku","qty"]}},"work_dir":{"type":"string"}},"required":["order_id","items","work_dir"]}', N'{"type":"object","properties":{"total_cents":{"type":"integer"},"reservation":{"type":"string"},"missing":{"type":"array","items":{"type":"string"}}},"required":["total_cents","missing"]}', N'{"0":"ok","1":"short","2":"unknown_sku"}', 1, null, N'[]'),
  (N'mail.send', N'607087fce4c1b75751c29162a2ab3a3a62ceab14ebdb14ffff7ba7a5f01c5feb', N'Put a message into the outbox.', null, N'{"type":"object","properties":{"to":{"type":"string"},"subject":{"type":"string"},"lines":{"type":"array","items":{"type":"string"}},"work_dir":{"type":"string"}},"required":["to","subject","lines","work_dir"]}', N'{"type":"object","properties":{"file":{"type":"string"}},"required":["file"]}', N'{}', 1, null, N'[]'),
  (N'payment.charge', N'2d4f07d601c11ede94eae9be32343993b023c8b2696fc6b260acfee9c2e8a4cf', N'Charge one card; a declined card is an answer, not a failure.', null, N'{"type":"object","properties":{"order_id":{"type":"string"},"card":{"type":"object","properties":{"token":{"type":"string"},"limit_cents":{"type":"integer"}},"required":["token","limit_cents"]},"amount_cents":{"type":"integer"},"attempt":{"type":"integer"},"work_dir":{"type":"string"}},"required":["order_id","card","amount_cents","attempt","work_dir"]}', N'{"type":"object","properties":{"ok":{"type":"boolean"},"receipt":{"type":["string","null"]}},"required":["ok","receipt"]}', N'{}', 1, null, N'[]'),
  (N'warehouse.pack', N'26f48a2c0be992666bc6c71422cca04a40f8e03d6731d6d33c8c45f55e4e96f3', N'Write the packing slip of one parcel.', null, N'{"type":"object","properties":{"sku":{"type":"string"},"qty":{"type":"integer"},"label":{"type":"string"},"work_dir":{"type":"string"}},"required":["sku","qty","label","work_dir"]}', N'{"type":"object","properties":{"parcel":{"type":"object","properties":{"label":{"type":"string"},"weight_grams":{"type":"integer"},"slip":{"type":"string"}},"required":["label","weight_grams","slip"]}},"required":["parcel"]}', N'{}', 1, null, N'[]')
) as r(action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
where not exists(select 1 from wf.workflow_action_revision as x where x.action_name = r.action_name and x.revision = r.revision)
order by r.action_name;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_version_action (workflow_version_id, action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select v.workflow_version_id, r.action_name, r.revision, r.capability, r.max_per_worker, r.exclusive_worker, r.affinity_key_field, r.prefer_previous_worker, r.prefer_continue_group, r.require_previous_worker, r.max_concurrent, r.rate_per_minute, r.max_deliveries
from (values
  (N'inventory.reserve', N'b76ac6da77e44935754a52b606b4f028d713e25d7aeb0d68d1b1188ae5d67015', N'stock', null, 0, null, 0, 0, 0, null, null, 5),
  (N'mail.send', N'607087fce4c1b75751c29162a2ab3a3a62ceab14ebdb14ffff7ba7a5f01c5feb', N'mail', null, 0, null, 0, 0, 0, null, null, 5),
  (N'payment.charge', N'2d4f07d601c11ede94eae9be32343993b023c8b2696fc6b260acfee9c2e8a4cf', N'payment', null, 0, null, 0, 0, 0, null, null, 5),
  (N'warehouse.pack', N'26f48a2c0be992666bc6c71422cca04a40f8e03d6731d6d33c8c45f55e4e96f3', N'stock', null, 0, null, 0, 0, 0, null, null, 5),
  (N'courier.book', N'688fdf2c8d44016b79e61bfdb9110ce1841bb707f5c836e8b208c1b31660b54c', N'shipping', null, 0, null, 0, 0, 0, null, null, 5),
  (N'billing.invoice', N'8dd79ca6e12edbc1297cc9baa2193b4a1bef10ac0a541bf4210d1e7a9a437dfb', N'billing', null, 0, null, 0, 0, 0, null, null, 5)
) as r(action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
join wf.workflow_def as d on d.name = N'order_fulfilment'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'49d687a3079f10343ae85e587e961e5693b8cd8ed9b1fcc0881df219d0f8403c'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.data_type (workflow_version_id, type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
select v.workflow_version_id, r.type_id, r.parent_type_id, r.path_kind, r.name, r.base_type, r.is_required, r.is_nullable, r.enum_json
from (values
  (1, null, N'root', null, N'string', 1, 0, null),
  (2, null, N'root', null, N'string', 1, 0, null),
  (3, null, N'root', null, N'list', 1, 0, null),
  (4, 3, N'item', null, N'object', 1, 0, null),
  (5, 4, N'field', N'sku', N'string', 1, 0, null),
  (6, 4, N'field', N'qty', N'int', 1, 0, null),
  (7, null, N'root', null, N'list', 1, 0, null),
  (8, 7, N'item', null, N'object', 1, 0, null),
  (9, 8, N'field', N'token', N'string', 1, 0, null),
  (10, 8, N'field', N'limit_cents', N'int', 1, 0, null),
  (11, null, N'root', null, N'bool', 1, 0, null),
  (12, null, N'root', null, N'string', 1, 0, null),
  (13, null, N'root', null, N'int', 1, 0, null),
  (14, null, N'root', null, N'bool', 1, 0, null),
  (15, null, N'root', null, N'string', 1, 0, null),
  (16, null, N'root', null, N'string', 1, 0, null)
) as r(type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
join wf.workflow_def as d on d.name = N'order_fulfilment'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'49d687a3079f10343ae85e587e961e5693b8cd8ed9b1fcc0881df219d0f8403c'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_node (workflow_version_id, node_key, node_type, is_generated, action_name, action_revision, attributes_json)
select v.workflow_version_id, r.node_key, r.node_type, r.is_generated, r.action_name, r.action_revision, r.attributes_json
from (values
  (N'order_fulfilment', N'SEQUENCE', 0, null, null, N'{}'),
  (N'reserve', N'ACTION', 0, N'inventory.reserve', N'b76ac6da77e44935754a52b606b4f028d713e25d7aeb0d68d1b1188ae5d67015', N'{"priority":5}'),
  (N'switch_1', N'SWITCH', 0, null, null, N'{"subject":[["ctx","task",["reserve","resultCode"]]]}'),
  (N'switch_1.case_0', N'SEQUENCE', 1, null, null, N'{}'),
  (N'set_1', N'SEQUENCE', 0, null, null, N'{}'),
  (N'switch_1.case_1', N'SEQUENCE', 1, null, null, N'{}'),
  (N'tell', N'ACTION', 0, N'mail.send', N'607087fce4c1b75751c29162a2ab3a3a62ceab14ebdb14ffff7ba7a5f01c5feb', N'{}'),
  (N'fail_1', N'SEQUENCE', 0, null, null, N'{"fail":{"code":-20,"message":[["lit","order "],["var","order_id","order_fulfilment",[]],["lit"," cannot be filled"],["cat",3]]}}'),
  (N'while_1', N'WHILE', 0, null, null, N'{"condition":[["var","paid","order_fulfilment",[]],["not"],["jf",4],["var","attempts","order_fulfilment",[]],["lit",3],["lt"],["bool"],["jf",5],["var","attempts","order_fulfilment",[]],["var","cards","order_fulfilment",[]],["len"],["lt"],["bool"]],"max":10000}'),
  (N'while_1.body', N'SEQUENCE', 1, null, null, N'{}'),
  (N'charge', N'ACTION', 0, N'payment.charge', N'2d4f07d601c11ede94eae9be32343993b023c8b2696fc6b260acfee9c2e8a4cf', N'{"lease_ms":120000}'),
  (N'if_1', N'IF', 0, null, null, N'{"condition":[["var","paid","order_fulfilment",[]],["not"]]}'),
  (N'if_1.then', N'SEQUENCE', 1, null, null, N'{}'),
  (N'dun', N'ACTION', 0, N'mail.send', N'607087fce4c1b75751c29162a2ab3a3a62ceab14ebdb14ffff7ba7a5f01c5feb', N'{}'),
  (N'fail_2', N'SEQUENCE', 0, null, null, N'{"fail":{"code":-21,"message":[["lit","order "],["var","order_id","order_fulfilment",[]],["lit"," is not paid after "],["var","attempts","order_fulfilment",[]],["lit"," attempts"],["cat",5]]}}'),
  (N'foreach_1', N'FOREACH', 0, null, null, N'{"item":"item","index":"i","parallel":4}'),
  (N'foreach_1.body', N'SEQUENCE', 1, null, null, N'{}'),
  (N'pack', N'ACTION', 0, N'warehouse.pack', N'26f48a2c0be992666bc6c71422cca04a40f8e03d6731d6d33c8c45f55e4e96f3', N'{}'),
  (N'hand_over', N'PARALLEL', 0, null, null, N'{"limit":2}'),
  (N'ship', N'SEQUENCE', 0, null, null, N'{}'),
  (N'book', N'ACTION', 0, N'courier.book', N'688fdf2c8d44016b79e61bfdb9110ce1841bb707f5c836e8b208c1b31660b54c', N'{"timeout_ms":30000,"retry":{"limit":3,"backoff_ms":2000,"factor_hundredths":200,"max_ms":60000,"jitter":false,"on":[-1,"lease",10013]}}'),
  (N'ship.if_1', N'IF', 0, null, null, N'{"condition":[["var","express","order_fulfilment",[]],["jf",5],["var","parcels","order_fulfilment",[]],["len"],["lit",1],["gt"],["bool"]]}'),
  (N'ship.if_1.then', N'SEQUENCE', 1, null, null, N'{}'),
  (N'announce', N'ACTION', 0, N'mail.send', N'607087fce4c1b75751c29162a2ab3a3a62ceab14ebdb14ffff7ba7a5f01c5feb', N'{}'),
  (N'ship.on_error', N'SEQUENCE', 1, null, null, N'{}'),
  (N'ask', N'ACTION', 0, N'mail.send', N'607087fce4c1b75751c29162a2ab3a3a62ceab14ebdb14ffff7ba7a5f01c5feb', N'{}'),
  (N'ship.finally', N'SEQUENCE', 1, null, null, N'{}'),
  (N'free', N'ACTION', 0, N'mail.send', N'607087fce4c1b75751c29162a2ab3a3a62ceab14ebdb14ffff7ba7a5f01c5feb', N'{}'),
  (N'bill', N'SEQUENCE', 0, null, null, N'{}'),
  (N'invoice', N'ACTION', 0, N'billing.invoice', N'8dd79ca6e12edbc1297cc9baa2193b4a1bef10ac0a541bf4210d1e7a9a437dfb', N'{}')
) as r(node_key, node_type, is_generated, action_name, action_revision, attributes_json)
join wf.workflow_def as d on d.name = N'order_fulfilment'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'49d687a3079f10343ae85e587e961e5693b8cd8ed9b1fcc0881df219d0f8403c'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_edge (workflow_version_id, parent_key, child_key, branch_kind, child_order, case_value)
select v.workflow_version_id, r.parent_key, r.child_key, r.branch_kind, r.child_order, r.case_value
from (values
  (N'order_fulfilment', N'reserve', N'SEQUENCE', 0, null),
  (N'order_fulfilment', N'switch_1', N'SEQUENCE', 1, null),
  (N'order_fulfilment', N'while_1', N'SEQUENCE', 2, null),
  (N'order_fulfilment', N'if_1', N'SEQUENCE', 3, null),
  (N'order_fulfilment', N'foreach_1', N'SEQUENCE', 4, null),
  (N'order_fulfilment', N'hand_over', N'SEQUENCE', 5, null),
  (N'switch_1', N'switch_1.case_0', N'CASE', 0, N'[0]'),
  (N'switch_1', N'switch_1.case_1', N'CASE', 1, N'[1,2]'),
  (N'switch_1.case_0', N'set_1', N'SEQUENCE', 0, null),
  (N'switch_1.case_1', N'tell', N'SEQUENCE', 0, null),
  (N'switch_1.case_1', N'fail_1', N'SEQUENCE', 1, null),
  (N'while_1', N'while_1.body', N'BODY', 0, null),
  (N'while_1.body', N'charge', N'SEQUENCE', 0, null),
  (N'if_1', N'if_1.then', N'THEN', 0, null),
  (N'if_1.then', N'dun', N'SEQUENCE', 0, null),
  (N'if_1.then', N'fail_2', N'SEQUENCE', 1, null),
  (N'foreach_1', N'foreach_1.body', N'BODY', 0, null),
  (N'foreach_1.body', N'pack', N'SEQUENCE', 0, null),
  (N'hand_over', N'ship', N'PARALLEL', 0, null),
  (N'hand_over', N'bill', N'PARALLEL', 1, null),
  (N'ship', N'book', N'SEQUENCE', 0, null),
  (N'ship', N'ship.if_1', N'SEQUENCE', 1, null),
  (N'ship', N'ship.on_error', N'ON_ERROR', 2, null),
  (N'ship', N'ship.finally', N'FINALLY', 3, null),
  (N'ship.if_1', N'ship.if_1.then', N'THEN', 0, null),
  (N'ship.if_1.then', N'announce', N'SEQUENCE', 0, null),
  (N'ship.on_error', N'ask', N'SEQUENCE', 0, null),
  (N'ship.finally', N'free', N'SEQUENCE', 0, null),
  (N'bill', N'invoice', N'SEQUENCE', 0, null)
) as r(parent_key, child_key, branch_kind, child_order, case_value)
join wf.workflow_def as d on d.name = N'order_fulfilment'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'49d687a3079f10343ae85e587e961e5693b8cd8ed9b1fcc0881df219d0f8403c'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_input_template (workflow_version_id, node_key, template_json)
select v.workflow_version_id, r.node_key, r.template_json
from (values
  (N'reserve', N'{"order_id":"${var.order_id}","items":"${var.items}","work_dir":"${var.work_dir}"}'),
  (N'tell', N'{"to":"ops@example.com","subject":"Short on stock: ${var.order_id}","lines":"${ctx.task.reserve.output.missing}","work_dir":"${var.work_dir}"}'),
  (N'charge', N'{"order_id":"${var.order_id}","card":null,"amount_cents":"${var.total_cents}","attempt":null,"work_dir":"${var.work_dir}"}'),
  (N'dun', N'{"to":"${var.email}","subject":"We could not charge you for order ${var.order_id}","lines":["Cards tried: ${var.attempts}","Open amount in cents: ${var.total_cents}"],"work_dir":"${var.work_dir}"}'),
  (N'pack', N'{"sku":"${var.item.sku}","qty":"${var.item.qty}","label":"${var.order_id}-${var.i}","work_dir":"${var.work_dir}"}'),
  (N'book', N'{"order_id":"${var.order_id}","parcels":"${var.parcels}","express":"${var.express}","work_dir":"${var.work_dir}"}'),
  (N'announce', N'{"to":"courier@example.com","subject":"Express, ${ctx.task.book.output.weight_grams} g: ${var.tracking}","lines":[],"work_dir":"${var.work_dir}"}'),
  (N'ask', N'{"to":"ops@example.com","subject":"No courier for order ${var.order_id}","lines":["${ctx.error.message}"],"work_dir":"${var.work_dir}"}'),
  (N'free', N'{"to":"warehouse@example.com","subject":"The door is free: ${var.order_id}","lines":[],"work_dir":"${var.work_dir}"}'),
  (N'invoice', N'{"order_id":"${var.order_id}","items":"${var.items}","total_cents":"${var.total_cents}","receipt":"${var.receipt}","work_dir":"${var.work_dir}"}')
) as r(node_key, template_json)
join wf.workflow_def as d on d.name = N'order_fulfilment'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'49d687a3079f10343ae85e587e961e5693b8cd8ed9b1fcc0881df219d0f8403c'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_input_binding (workflow_version_id, node_key, pointer, program_json)
select v.workflow_version_id, r.node_key, r.pointer, r.program_json
from (values
  (N'charge', N'/card', N'[["var","cards","order_fulfilment",[["var","attempts","order_fulfilment",[]]]]]'),
  (N'charge', N'/attempt', N'[["var","attempts","order_fulfilment",[]],["lit",1],["add"]]')
) as r(node_key, pointer, program_json)
join wf.workflow_def as d on d.name = N'order_fulfilment'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'49d687a3079f10343ae85e587e961e5693b8cd8ed9b1fcc0881df219d0f8403c'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.variable_output_binding (workflow_version_id, node_key, binding_order, binding_kind, name, owner_key, program_json)
select v.workflow_version_id, r.node_key, r.binding_order, r.binding_kind, r.name, r.owner_key, r.program_json
from (values
  (N'set_1', 0, N'var', N'total_cents', N'order_fulfilment', N'[["ctx","task",["reserve","output","total_cents"]]]'),
  (N'charge', 0, N'var', N'paid', N'order_fulfilment', N'[["out",["ok"]]]'),
  (N'charge', 1, N'var', N'receipt', N'order_fulfilment', N'[["out",["receipt"]],["alt",1],["var","receipt","order_fulfilment",[]]]'),
  (N'charge', 2, N'var', N'attempts', N'order_fulfilment', N'[["var","attempts","order_fulfilment",[]],["lit",1],["add"]]'),
  (N'foreach_1', 0, N'collect', N'parcels', N'order_fulfilment', N'[["ctx","task",["pack","output","parcel"]]]'),
  (N'book', 0, N'var', N'tracking', N'order_fulfilment', N'[["out",["tracking"]]]')
) as r(node_key, binding_order, binding_kind, name, owner_key, program_json)
join wf.workflow_def as d on d.name = N'order_fulfilment'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'49d687a3079f10343ae85e587e961e5693b8cd8ed9b1fcc0881df219d0f8403c'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.node_scope_default (workflow_version_id, owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
select v.workflow_version_id, r.owner_key, r.variable_order, r.name, r.variable_kind, r.type_id, r.is_required, r.program_json
from (values
  (N'order_fulfilment', 0, N'order_id', N'input', 1, 1, null),
  (N'order_fulfilment', 1, N'email', N'input', 2, 1, null),
  (N'order_fulfilment', 2, N'items', N'input', 3, 1, null),
  (N'order_fulfilment', 3, N'cards', N'input', 7, 1, null),
  (N'order_fulfilment', 4, N'express', N'input', 11, 0, N'[["lit",false]]'),
  (N'order_fulfilment', 5, N'work_dir', N'input', 12, 0, N'[["lit","order_fulfilment"]]'),
  (N'order_fulfilment', 0, N'attempts', N'var', 13, 0, N'[["lit",0]]'),
  (N'order_fulfilment', 1, N'paid', N'var', 14, 0, N'[["lit",false]]'),
  (N'order_fulfilment', 2, N'receipt', N'var', 15, 0, N'[["lit","none"]]'),
  (N'order_fulfilment', 3, N'tracking', N'var', 16, 0, N'[["lit","to be booked"]]'),
  (N'order_fulfilment', 4, N'total_cents', N'set', null, 0, null),
  (N'order_fulfilment', 5, N'parcels', N'set', null, 0, null),
  (N'foreach_1.body', 0, N'item', N'loop', null, 0, null),
  (N'foreach_1.body', 1, N'i', N'loop', null, 0, null)
) as r(owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
join wf.workflow_def as d on d.name = N'order_fulfilment'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'49d687a3079f10343ae85e587e961e5693b8cd8ed9b1fcc0881df219d0f8403c'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.collection_binding (workflow_version_id, node_key, binding_kind, program_json)
select v.workflow_version_id, r.node_key, r.binding_kind, r.program_json
from (values
  (N'foreach_1', N'variable', N'[["var","items","order_fulfilment",[]]]')
) as r(node_key, binding_kind, program_json)
join wf.workflow_def as d on d.name = N'order_fulfilment'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'49d687a3079f10343ae85e587e961e5693b8cd8ed9b1fcc0881df219d0f8403c'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

declare @v_name nvarchar(120) = N'order_fulfilment';
declare @v_content_hash nvarchar(64) = N'49d687a3079f10343ae85e587e961e5693b8cd8ed9b1fcc0881df219d0f8403c';
declare @v_source_map nvarchar(max) = N'{"file":"order_fulfilment.wf","nodes":{"order_fulfilment":[2,10],"reserve":[28,10],"switch_1":[37,3],"switch_1.case_0":[38,13],"set_1":[39,7],"switch_1.case_1":[41,29],"tell":[42,14],"fail_1":[48,7],"while_1":[53,3],"while_1.body":[53,77],"charge":[54,12],"if_1":[67,3],"if_1.then":[67,19],"dun":[68,12],"fail_2":[74,5],"foreach_1":[77,3],"foreach_1.body":[77,43],"pack":[78,12],"hand_over":[87,12],"ship":[88,14],"book":[89,14],"ship.if_1":[99,7],"ship.if_1.then":[99,47],"announce":[100,16],"ship.on_error":[107,16],"ask":[108,14],"ship.finally":[114,15],"free":[115,14],"bill":[122,14],"invoice":[123,14]}}';
declare @v_description nvarchar(max) = N'Fulfil one order, from the shelf to the courier''s van.';
exec wf.wf_set_version_notes @name = @v_name, @content_hash = @v_content_hash,
    @source_map = @v_source_map, @description = @v_description;
exec wf.wf_publish_workflow_version @name = @v_name, @content_hash = @v_content_hash,
    @activate = 1, @update_actions = 0;
commit transaction;
GO
