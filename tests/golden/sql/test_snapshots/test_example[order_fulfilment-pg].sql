-- workflow: order_fulfilment
-- content: 49d687a3079f10343ae85e587e961e5693b8cd8ed9b1fcc0881df219d0f8403c
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
  ('order_fulfilment')
) as r(name)
on conflict(name) do nothing;

insert into wf.workflow_version (workflow_def_id, content_hash, spec_format, outputs_json)
select d.workflow_def_id, r.content_hash, cast(r.spec_format as int), cast(r.outputs_json as jsonb)
from (values
  ('49d687a3079f10343ae85e587e961e5693b8cd8ed9b1fcc0881df219d0f8403c', 1, '[{"order":0,"name":"parcels","program":[["var","parcels","order_fulfilment",[]]]},{"order":1,"name":"attempts","program":[["var","attempts","order_fulfilment",[]]]},{"order":2,"name":"receipt","program":[["var","receipt","order_fulfilment",[]]]},{"order":3,"name":"tracking","program":[["var","tracking","order_fulfilment",[]]]},{"order":4,"name":"invoice","program":[["ctx","task",["invoice","output","number"]]]}]')
) as r(content_hash, spec_format, outputs_json)
join wf.workflow_def as d on d.name = 'order_fulfilment'
on conflict(workflow_def_id, content_hash) do nothing;

insert into wf.workflow_action (action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select r.action_name, r.capability, cast(r.max_per_worker as int), cast(r.exclusive_worker as boolean), r.affinity_key_field, cast(r.prefer_previous_worker as boolean), cast(r.prefer_continue_group as boolean), cast(r.require_previous_worker as boolean), cast(r.max_concurrent as int), cast(r.rate_per_minute as int), cast(r.max_deliveries as int)
from (values
  ('billing.invoice', 'billing', null, false, null, false, false, false, null, null, 5),
  ('courier.book', 'shipping', null, false, null, false, false, false, null, null, 5),
  ('inventory.reserve', 'stock', null, false, null, false, false, false, null, null, 5),
  ('mail.send', 'mail', null, false, null, false, false, false, null, null, 5),
  ('payment.charge', 'payment', null, false, null, false, false, false, null, null, 5),
  ('warehouse.pack', 'stock', null, false, null, false, false, false, null, null, 5)
) as r(action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
order by r.action_name
on conflict(action_name) do nothing;

insert into wf.workflow_action_revision (action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
select r.action_name, r.revision, r.description, r.version, cast(r.input_schema_json as jsonb), cast(r.output_schema_json as jsonb), cast(r.result_codes_json as jsonb), cast(r.idempotent as boolean), cast(r.timeout_ms as bigint), cast(r.sensitive_json as jsonb)
from (values
  ('billing.invoice', '8dd79ca6e12edbc1297cc9baa2193b4a1bef10ac0a541bf4210d1e7a9a437dfb', 'Write the invoice, line by line.', null, '{"type":"object","properties":{"order_id":{"type":"string"},"items":{"type":"array","items":{"type":"object","properties":{"sku":{"type":"string"},"qty":{"type":"integer"}},"required":["sku","qty"]}},"total_cents":{"type":"integer"},"receipt":{"type":"string"},"work_dir":{"type":"string"}},"required":["order_id","items","total_cents","receipt","work_dir"]}', '{"type":"object","properties":{"number":{"type":"string"},"file":{"type":"string"}},"required":["number","file"]}', '{}', true, null, '[]'),
  ('courier.book', '688fdf2c8d44016b79e61bfdb9110ce1841bb707f5c836e8b208c1b31660b54c', 'Write the way bill of all parcels and sum their weight; the van takes 30 kg.', null, '{"type":"object","properties":{"order_id":{"type":"string"},"parcels":{"type":"array","items":{"type":"object","properties":{"label":{"type":"string"},"weight_grams":{"type":"integer"},"slip":{"type":"string"}},"required":["label","weight_grams","slip"]}},"express":{"type":"boolean"},"work_dir":{"type":"string"}},"required":["order_id","parcels","express","work_dir"]}', '{"type":"object","properties":{"tracking":{"type":"string"},"weight_grams":{"type":"integer"}},"required":["tracking","weight_grams"]}', '{"0":"ok","-1":"no_answer","-2":"too_heavy"}', true, null, '[]'),
  ('inventory.reserve', 'b76ac6da77e44935754a52b606b4f028d713e25d7aeb0d68d1b1188ae5d67015', 'Look every item up in the price list, reserve it, and sum the price.', null, '{"type":"object","properties":{"order_id":{"type":"string"},"items":{"type":"array","items":{"type":"object","properties":{"sku":{"type":"string"},"qty":{"type":"integer"}},"required":["sku","qty"]}},"work_dir":{"type":"string"}},"required":["order_id","items","work_dir"]}', '{"type":"object","properties":{"total_cents":{"type":"integer"},"reservation":{"type":"string"},"missing":{"type":"array","items":{"type":"string"}}},"required":["total_cents","missing"]}', '{"0":"ok","1":"short","2":"unknown_sku"}', true, null, '[]'),
  ('mail.send', '607087fce4c1b75751c29162a2ab3a3a62ceab14ebdb14ffff7ba7a5f01c5feb', 'Put a message into the outbox.', null, '{"type":"object","properties":{"to":{"type":"string"},"subject":{"type":"string"},"lines":{"type":"array","items":{"type":"string"}},"work_dir":{"type":"string"}},"required":["to","subject","lines","work_dir"]}', '{"type":"object","properties":{"file":{"type":"string"}},"required":["file"]}', '{}', true, null, '[]'),
  ('payment.charge', '2d4f07d601c11ede94eae9be32343993b023c8b2696fc6b260acfee9c2e8a4cf', 'Charge one card; a declined card is an answer, not a failure.', null, '{"type":"object","properties":{"order_id":{"type":"string"},"card":{"type":"object","properties":{"token":{"type":"string"},"limit_cents":{"type":"integer"}},"required":["token","limit_cents"]},"amount_cents":{"type":"integer"},"attempt":{"type":"integer"},"work_dir":{"type":"string"}},"required":["order_id","card","amount_cents","attempt","work_dir"]}', '{"type":"object","properties":{"ok":{"type":"boolean"},"receipt":{"type":["string","null"]}},"required":["ok","receipt"]}', '{}', true, null, '[]'),
  ('warehouse.pack', '26f48a2c0be992666bc6c71422cca04a40f8e03d6731d6d33c8c45f55e4e96f3', 'Write the packing slip of one parcel.', null, '{"type":"object","properties":{"sku":{"type":"string"},"qty":{"type":"integer"},"label":{"type":"string"},"work_dir":{"type":"string"}},"required":["sku","qty","label","work_dir"]}', '{"type":"object","properties":{"parcel":{"type":"object","properties":{"label":{"type":"string"},"weight_grams":{"type":"integer"},"slip":{"type":"string"}},"required":["label","weight_grams","slip"]}},"required":["parcel"]}', '{}', true, null, '[]')
) as r(action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
order by r.action_name
on conflict(action_name, revision) do nothing;

insert into wf.workflow_version_action (workflow_version_id, action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select v.workflow_version_id, r.action_name, r.revision, r.capability, cast(r.max_per_worker as int), cast(r.exclusive_worker as boolean), r.affinity_key_field, cast(r.prefer_previous_worker as boolean), cast(r.prefer_continue_group as boolean), cast(r.require_previous_worker as boolean), cast(r.max_concurrent as int), cast(r.rate_per_minute as int), cast(r.max_deliveries as int)
from (values
  ('inventory.reserve', 'b76ac6da77e44935754a52b606b4f028d713e25d7aeb0d68d1b1188ae5d67015', 'stock', null, false, null, false, false, false, null, null, 5),
  ('mail.send', '607087fce4c1b75751c29162a2ab3a3a62ceab14ebdb14ffff7ba7a5f01c5feb', 'mail', null, false, null, false, false, false, null, null, 5),
  ('payment.charge', '2d4f07d601c11ede94eae9be32343993b023c8b2696fc6b260acfee9c2e8a4cf', 'payment', null, false, null, false, false, false, null, null, 5),
  ('warehouse.pack', '26f48a2c0be992666bc6c71422cca04a40f8e03d6731d6d33c8c45f55e4e96f3', 'stock', null, false, null, false, false, false, null, null, 5),
  ('courier.book', '688fdf2c8d44016b79e61bfdb9110ce1841bb707f5c836e8b208c1b31660b54c', 'shipping', null, false, null, false, false, false, null, null, 5),
  ('billing.invoice', '8dd79ca6e12edbc1297cc9baa2193b4a1bef10ac0a541bf4210d1e7a9a437dfb', 'billing', null, false, null, false, false, false, null, null, 5)
) as r(action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
join wf.workflow_def as d on d.name = 'order_fulfilment'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '49d687a3079f10343ae85e587e961e5693b8cd8ed9b1fcc0881df219d0f8403c'
where v.published_at is null;

insert into wf.data_type (workflow_version_id, type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
select v.workflow_version_id, cast(r.type_id as int), cast(r.parent_type_id as int), r.path_kind, r.name, r.base_type, cast(r.is_required as boolean), cast(r.is_nullable as boolean), cast(r.enum_json as jsonb)
from (values
  (1, null, 'root', null, 'string', true, false, null),
  (2, null, 'root', null, 'string', true, false, null),
  (3, null, 'root', null, 'list', true, false, null),
  (4, 3, 'item', null, 'object', true, false, null),
  (5, 4, 'field', 'sku', 'string', true, false, null),
  (6, 4, 'field', 'qty', 'int', true, false, null),
  (7, null, 'root', null, 'list', true, false, null),
  (8, 7, 'item', null, 'object', true, false, null),
  (9, 8, 'field', 'token', 'string', true, false, null),
  (10, 8, 'field', 'limit_cents', 'int', true, false, null),
  (11, null, 'root', null, 'bool', true, false, null),
  (12, null, 'root', null, 'string', true, false, null),
  (13, null, 'root', null, 'int', true, false, null),
  (14, null, 'root', null, 'bool', true, false, null),
  (15, null, 'root', null, 'string', true, false, null),
  (16, null, 'root', null, 'string', true, false, null)
) as r(type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
join wf.workflow_def as d on d.name = 'order_fulfilment'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '49d687a3079f10343ae85e587e961e5693b8cd8ed9b1fcc0881df219d0f8403c'
where v.published_at is null;

insert into wf.workflow_node (workflow_version_id, node_key, node_type, is_generated, action_name, action_revision, attributes_json)
select v.workflow_version_id, r.node_key, r.node_type, cast(r.is_generated as boolean), r.action_name, r.action_revision, cast(r.attributes_json as jsonb)
from (values
  ('order_fulfilment', 'SEQUENCE', false, null, null, '{}'),
  ('reserve', 'ACTION', false, 'inventory.reserve', 'b76ac6da77e44935754a52b606b4f028d713e25d7aeb0d68d1b1188ae5d67015', '{"priority":5}'),
  ('switch_1', 'SWITCH', false, null, null, '{"subject":[["ctx","task",["reserve","resultCode"]]]}'),
  ('switch_1.case_0', 'SEQUENCE', true, null, null, '{}'),
  ('set_1', 'SEQUENCE', false, null, null, '{}'),
  ('switch_1.case_1', 'SEQUENCE', true, null, null, '{}'),
  ('tell', 'ACTION', false, 'mail.send', '607087fce4c1b75751c29162a2ab3a3a62ceab14ebdb14ffff7ba7a5f01c5feb', '{}'),
  ('fail_1', 'SEQUENCE', false, null, null, '{"fail":{"code":-20,"message":[["lit","order "],["var","order_id","order_fulfilment",[]],["lit"," cannot be filled"],["cat",3]]}}'),
  ('while_1', 'WHILE', false, null, null, '{"condition":[["var","paid","order_fulfilment",[]],["not"],["jf",4],["var","attempts","order_fulfilment",[]],["lit",3],["lt"],["bool"],["jf",5],["var","attempts","order_fulfilment",[]],["var","cards","order_fulfilment",[]],["len"],["lt"],["bool"]],"max":10000}'),
  ('while_1.body', 'SEQUENCE', true, null, null, '{}'),
  ('charge', 'ACTION', false, 'payment.charge', '2d4f07d601c11ede94eae9be32343993b023c8b2696fc6b260acfee9c2e8a4cf', '{"lease_ms":120000}'),
  ('if_1', 'IF', false, null, null, '{"condition":[["var","paid","order_fulfilment",[]],["not"]]}'),
  ('if_1.then', 'SEQUENCE', true, null, null, '{}'),
  ('dun', 'ACTION', false, 'mail.send', '607087fce4c1b75751c29162a2ab3a3a62ceab14ebdb14ffff7ba7a5f01c5feb', '{}'),
  ('fail_2', 'SEQUENCE', false, null, null, '{"fail":{"code":-21,"message":[["lit","order "],["var","order_id","order_fulfilment",[]],["lit"," is not paid after "],["var","attempts","order_fulfilment",[]],["lit"," attempts"],["cat",5]]}}'),
  ('foreach_1', 'FOREACH', false, null, null, '{"item":"item","index":"i","parallel":4}'),
  ('foreach_1.body', 'SEQUENCE', true, null, null, '{}'),
  ('pack', 'ACTION', false, 'warehouse.pack', '26f48a2c0be992666bc6c71422cca04a40f8e03d6731d6d33c8c45f55e4e96f3', '{}'),
  ('hand_over', 'PARALLEL', false, null, null, '{"limit":2}'),
  ('ship', 'SEQUENCE', false, null, null, '{}'),
  ('book', 'ACTION', false, 'courier.book', '688fdf2c8d44016b79e61bfdb9110ce1841bb707f5c836e8b208c1b31660b54c', '{"timeout_ms":30000,"retry":{"limit":3,"backoff_ms":2000,"factor_hundredths":200,"max_ms":60000,"jitter":false,"on":[-1,"lease",10013]}}'),
  ('ship.if_1', 'IF', false, null, null, '{"condition":[["var","express","order_fulfilment",[]],["jf",5],["var","parcels","order_fulfilment",[]],["len"],["lit",1],["gt"],["bool"]]}'),
  ('ship.if_1.then', 'SEQUENCE', true, null, null, '{}'),
  ('announce', 'ACTION', false, 'mail.send', '607087fce4c1b75751c29162a2ab3a3a62ceab14ebdb14ffff7ba7a5f01c5feb', '{}'),
  ('ship.on_error', 'SEQUENCE', true, null, null, '{}'),
  ('ask', 'ACTION', false, 'mail.send', '607087fce4c1b75751c29162a2ab3a3a62ceab14ebdb14ffff7ba7a5f01c5feb', '{}'),
  ('ship.finally', 'SEQUENCE', true, null, null, '{}'),
  ('free', 'ACTION', false, 'mail.send', '607087fce4c1b75751c29162a2ab3a3a62ceab14ebdb14ffff7ba7a5f01c5feb', '{}'),
  ('bill', 'SEQUENCE', false, null, null, '{}'),
  ('invoice', 'ACTION', false, 'billing.invoice', '8dd79ca6e12edbc1297cc9baa2193b4a1bef10ac0a541bf4210d1e7a9a437dfb', '{}')
) as r(node_key, node_type, is_generated, action_name, action_revision, attributes_json)
join wf.workflow_def as d on d.name = 'order_fulfilment'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '49d687a3079f10343ae85e587e961e5693b8cd8ed9b1fcc0881df219d0f8403c'
where v.published_at is null;

insert into wf.workflow_edge (workflow_version_id, parent_key, child_key, branch_kind, child_order, case_value)
select v.workflow_version_id, r.parent_key, r.child_key, r.branch_kind, cast(r.child_order as int), cast(r.case_value as jsonb)
from (values
  ('order_fulfilment', 'reserve', 'SEQUENCE', 0, null),
  ('order_fulfilment', 'switch_1', 'SEQUENCE', 1, null),
  ('order_fulfilment', 'while_1', 'SEQUENCE', 2, null),
  ('order_fulfilment', 'if_1', 'SEQUENCE', 3, null),
  ('order_fulfilment', 'foreach_1', 'SEQUENCE', 4, null),
  ('order_fulfilment', 'hand_over', 'SEQUENCE', 5, null),
  ('switch_1', 'switch_1.case_0', 'CASE', 0, '[0]'),
  ('switch_1', 'switch_1.case_1', 'CASE', 1, '[1,2]'),
  ('switch_1.case_0', 'set_1', 'SEQUENCE', 0, null),
  ('switch_1.case_1', 'tell', 'SEQUENCE', 0, null),
  ('switch_1.case_1', 'fail_1', 'SEQUENCE', 1, null),
  ('while_1', 'while_1.body', 'BODY', 0, null),
  ('while_1.body', 'charge', 'SEQUENCE', 0, null),
  ('if_1', 'if_1.then', 'THEN', 0, null),
  ('if_1.then', 'dun', 'SEQUENCE', 0, null),
  ('if_1.then', 'fail_2', 'SEQUENCE', 1, null),
  ('foreach_1', 'foreach_1.body', 'BODY', 0, null),
  ('foreach_1.body', 'pack', 'SEQUENCE', 0, null),
  ('hand_over', 'ship', 'PARALLEL', 0, null),
  ('hand_over', 'bill', 'PARALLEL', 1, null),
  ('ship', 'book', 'SEQUENCE', 0, null),
  ('ship', 'ship.if_1', 'SEQUENCE', 1, null),
  ('ship', 'ship.on_error', 'ON_ERROR', 2, null),
  ('ship', 'ship.finally', 'FINALLY', 3, null),
  ('ship.if_1', 'ship.if_1.then', 'THEN', 0, null),
  ('ship.if_1.then', 'announce', 'SEQUENCE', 0, null),
  ('ship.on_error', 'ask', 'SEQUENCE', 0, null),
  ('ship.finally', 'free', 'SEQUENCE', 0, null),
  ('bill', 'invoice', 'SEQUENCE', 0, null)
) as r(parent_key, child_key, branch_kind, child_order, case_value)
join wf.workflow_def as d on d.name = 'order_fulfilment'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '49d687a3079f10343ae85e587e961e5693b8cd8ed9b1fcc0881df219d0f8403c'
where v.published_at is null;

insert into wf.workflow_input_template (workflow_version_id, node_key, template_json)
select v.workflow_version_id, r.node_key, cast(r.template_json as jsonb)
from (values
  ('reserve', '{"order_id":"${var.order_id}","items":"${var.items}","work_dir":"${var.work_dir}"}'),
  ('tell', '{"to":"ops@example.com","subject":"Short on stock: ${var.order_id}","lines":"${ctx.task.reserve.output.missing}","work_dir":"${var.work_dir}"}'),
  ('charge', '{"order_id":"${var.order_id}","card":null,"amount_cents":"${var.total_cents}","attempt":null,"work_dir":"${var.work_dir}"}'),
  ('dun', '{"to":"${var.email}","subject":"We could not charge you for order ${var.order_id}","lines":["Cards tried: ${var.attempts}","Open amount in cents: ${var.total_cents}"],"work_dir":"${var.work_dir}"}'),
  ('pack', '{"sku":"${var.item.sku}","qty":"${var.item.qty}","label":"${var.order_id}-${var.i}","work_dir":"${var.work_dir}"}'),
  ('book', '{"order_id":"${var.order_id}","parcels":"${var.parcels}","express":"${var.express}","work_dir":"${var.work_dir}"}'),
  ('announce', '{"to":"courier@example.com","subject":"Express, ${ctx.task.book.output.weight_grams} g: ${var.tracking}","lines":[],"work_dir":"${var.work_dir}"}'),
  ('ask', '{"to":"ops@example.com","subject":"No courier for order ${var.order_id}","lines":["${ctx.error.message}"],"work_dir":"${var.work_dir}"}'),
  ('free', '{"to":"warehouse@example.com","subject":"The door is free: ${var.order_id}","lines":[],"work_dir":"${var.work_dir}"}'),
  ('invoice', '{"order_id":"${var.order_id}","items":"${var.items}","total_cents":"${var.total_cents}","receipt":"${var.receipt}","work_dir":"${var.work_dir}"}')
) as r(node_key, template_json)
join wf.workflow_def as d on d.name = 'order_fulfilment'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '49d687a3079f10343ae85e587e961e5693b8cd8ed9b1fcc0881df219d0f8403c'
where v.published_at is null;

insert into wf.workflow_input_binding (workflow_version_id, node_key, pointer, program_json)
select v.workflow_version_id, r.node_key, r.pointer, cast(r.program_json as jsonb)
from (values
  ('charge', '/card', '[["var","cards","order_fulfilment",[["var","attempts","order_fulfilment",[]]]]]'),
  ('charge', '/attempt', '[["var","attempts","order_fulfilment",[]],["lit",1],["add"]]')
) as r(node_key, pointer, program_json)
join wf.workflow_def as d on d.name = 'order_fulfilment'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '49d687a3079f10343ae85e587e961e5693b8cd8ed9b1fcc0881df219d0f8403c'
where v.published_at is null;

insert into wf.variable_output_binding (workflow_version_id, node_key, binding_order, binding_kind, name, owner_key, program_json)
select v.workflow_version_id, r.node_key, cast(r.binding_order as int), r.binding_kind, r.name, r.owner_key, cast(r.program_json as jsonb)
from (values
  ('set_1', 0, 'var', 'total_cents', 'order_fulfilment', '[["ctx","task",["reserve","output","total_cents"]]]'),
  ('charge', 0, 'var', 'paid', 'order_fulfilment', '[["out",["ok"]]]'),
  ('charge', 1, 'var', 'receipt', 'order_fulfilment', '[["out",["receipt"]],["alt",1],["var","receipt","order_fulfilment",[]]]'),
  ('charge', 2, 'var', 'attempts', 'order_fulfilment', '[["var","attempts","order_fulfilment",[]],["lit",1],["add"]]'),
  ('foreach_1', 0, 'collect', 'parcels', 'order_fulfilment', '[["ctx","task",["pack","output","parcel"]]]'),
  ('book', 0, 'var', 'tracking', 'order_fulfilment', '[["out",["tracking"]]]')
) as r(node_key, binding_order, binding_kind, name, owner_key, program_json)
join wf.workflow_def as d on d.name = 'order_fulfilment'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '49d687a3079f10343ae85e587e961e5693b8cd8ed9b1fcc0881df219d0f8403c'
where v.published_at is null;

insert into wf.node_scope_default (workflow_version_id, owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
select v.workflow_version_id, r.owner_key, cast(r.variable_order as int), r.name, r.variable_kind, cast(r.type_id as int), cast(r.is_required as boolean), cast(r.program_json as jsonb)
from (values
  ('order_fulfilment', 0, 'order_id', 'input', 1, true, null),
  ('order_fulfilment', 1, 'email', 'input', 2, true, null),
  ('order_fulfilment', 2, 'items', 'input', 3, true, null),
  ('order_fulfilment', 3, 'cards', 'input', 7, true, null),
  ('order_fulfilment', 4, 'express', 'input', 11, false, '[["lit",false]]'),
  ('order_fulfilment', 5, 'work_dir', 'input', 12, false, '[["lit","order_fulfilment"]]'),
  ('order_fulfilment', 0, 'attempts', 'var', 13, false, '[["lit",0]]'),
  ('order_fulfilment', 1, 'paid', 'var', 14, false, '[["lit",false]]'),
  ('order_fulfilment', 2, 'receipt', 'var', 15, false, '[["lit","none"]]'),
  ('order_fulfilment', 3, 'tracking', 'var', 16, false, '[["lit","to be booked"]]'),
  ('order_fulfilment', 4, 'total_cents', 'set', null, false, null),
  ('order_fulfilment', 5, 'parcels', 'set', null, false, null),
  ('foreach_1.body', 0, 'item', 'loop', null, false, null),
  ('foreach_1.body', 1, 'i', 'loop', null, false, null)
) as r(owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
join wf.workflow_def as d on d.name = 'order_fulfilment'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '49d687a3079f10343ae85e587e961e5693b8cd8ed9b1fcc0881df219d0f8403c'
where v.published_at is null;

insert into wf.collection_binding (workflow_version_id, node_key, binding_kind, program_json)
select v.workflow_version_id, r.node_key, r.binding_kind, cast(r.program_json as jsonb)
from (values
  ('foreach_1', 'variable', '[["var","items","order_fulfilment",[]]]')
) as r(node_key, binding_kind, program_json)
join wf.workflow_def as d on d.name = 'order_fulfilment'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '49d687a3079f10343ae85e587e961e5693b8cd8ed9b1fcc0881df219d0f8403c'
where v.published_at is null;

select wf.wf_set_version_notes(p_name => 'order_fulfilment', p_content_hash => '49d687a3079f10343ae85e587e961e5693b8cd8ed9b1fcc0881df219d0f8403c', p_source_map => cast('{"file":"order_fulfilment.wf","nodes":{"order_fulfilment":[2,10],"reserve":[28,10],"switch_1":[37,3],"switch_1.case_0":[38,13],"set_1":[39,7],"switch_1.case_1":[41,29],"tell":[42,14],"fail_1":[48,7],"while_1":[53,3],"while_1.body":[53,77],"charge":[54,12],"if_1":[67,3],"if_1.then":[67,19],"dun":[68,12],"fail_2":[74,5],"foreach_1":[77,3],"foreach_1.body":[77,43],"pack":[78,12],"hand_over":[87,12],"ship":[88,14],"book":[89,14],"ship.if_1":[99,7],"ship.if_1.then":[99,47],"announce":[100,16],"ship.on_error":[107,16],"ask":[108,14],"ship.finally":[114,15],"free":[115,14],"bill":[122,14],"invoice":[123,14]}}' as jsonb), p_description => 'Fulfil one order, from the shelf to the courier''s van.');

select p.workflow_version_id, p.version_no, p.was_new
from wf.wf_publish_workflow_version(p_name => 'order_fulfilment', p_content_hash => '49d687a3079f10343ae85e587e961e5693b8cd8ed9b1fcc0881df219d0f8403c', p_activate => true, p_update_actions => false) as p;

commit;
