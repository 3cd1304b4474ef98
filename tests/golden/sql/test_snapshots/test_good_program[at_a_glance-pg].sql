-- workflow: order_fulfilment
-- content: b215056e79e9b6dce30fb394e6122cb563d680f169b1aa23cf557dcc5019053a
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
  ('b215056e79e9b6dce30fb394e6122cb563d680f169b1aa23cf557dcc5019053a', 1, '[{"order":0,"name":"parcels","program":[["var","parcels","order_fulfilment",[]]]},{"order":1,"name":"delivered_at","program":[["var","delivered_at","order_fulfilment",[]]]}]')
) as r(content_hash, spec_format, outputs_json)
join wf.workflow_def as d on d.name = 'order_fulfilment'
on conflict(workflow_def_id, content_hash) do nothing;

insert into wf.workflow_action (action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select r.action_name, r.capability, cast(r.max_per_worker as int), cast(r.exclusive_worker as boolean), r.affinity_key_field, cast(r.prefer_previous_worker as boolean), cast(r.prefer_continue_group as boolean), cast(r.require_previous_worker as boolean), cast(r.max_concurrent as int), cast(r.rate_per_minute as int), cast(r.max_deliveries as int)
from (values
  ('billing.invoice', 'default', null, false, null, false, false, false, null, null, 5),
  ('courier.book', 'default', null, false, null, false, false, false, null, null, 5),
  ('inventory.reserve', 'default', null, false, null, false, false, false, null, null, 5),
  ('mail.send', 'default', null, false, null, false, false, false, null, null, 5),
  ('payment.charge', 'default', null, false, null, false, false, false, null, null, 5),
  ('warehouse.pack', 'default', null, false, null, false, false, false, null, null, 5)
) as r(action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
order by r.action_name
on conflict(action_name) do nothing;

insert into wf.workflow_action_revision (action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
select r.action_name, r.revision, r.description, r.version, cast(r.input_schema_json as jsonb), cast(r.output_schema_json as jsonb), cast(r.result_codes_json as jsonb), cast(r.idempotent as boolean), cast(r.timeout_ms as bigint), cast(r.sensitive_json as jsonb)
from (values
  ('billing.invoice', '9f68eafe832dccf7e56f9b47c5636beca2c4fe153eb68368df20b7f817ba0638', null, null, '{"type":"object","properties":{"order_id":{"type":"string"}},"required":["order_id"]}', null, '{}', true, null, '[]'),
  ('courier.book', '9feebf3b605fdcb4311f7a6e163fee6771772880d2f902b752e5aeaa029f2272', null, null, '{"type":"object","properties":{"parcels":{}},"required":["parcels"]}', null, '{}', true, null, '[]'),
  ('inventory.reserve', '2c0e0759e6039fa671a00edf560974b1b24eebb2a43ae88949a8e44a2efa20d6', null, null, '{"type":"object","properties":{"order_id":{"type":"string"},"items":{"type":"array","items":{"type":"object","properties":{"sku":{"type":"string"},"qty":{"type":"integer"}},"required":["sku","qty"]}}},"required":["order_id","items"]}', '{"type":"object","properties":{"reservation_id":{"type":"string"}},"required":["reservation_id"]}', '{"0":"ok","1":"short","2":"late"}', true, null, '[]'),
  ('mail.send', 'd25d3e4e6495f3467ee044a1dc7658f43ece4db3f97b3e0b01333ea5598f9bde', null, null, '{"type":"object","properties":{"to":{"type":"string"},"subject":{"type":"string"}},"required":["to","subject"]}', null, '{}', true, null, '[]'),
  ('payment.charge', 'bb8f89a203d55a7862ce4a39a5840593c08f9aed2a1ff570c3cc73a97c81cf6b', null, null, '{"type":"object","properties":{"order_id":{"type":"string"}},"required":["order_id"]}', '{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}', '{}', true, null, '[]'),
  ('warehouse.pack', '1e9196fe443a405b43ced537ee777af792881a942dbc94e943aac8ced573d817', null, null, '{"type":"object","properties":{"sku":{"type":"string"},"qty":{"type":"integer"},"label":{"type":"string"}},"required":["sku","qty","label"]}', '{"type":"object","properties":{"parcel":{"type":"string"}},"required":["parcel"]}', '{}', true, null, '[]')
) as r(action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
order by r.action_name
on conflict(action_name, revision) do nothing;

insert into wf.workflow_version_action (workflow_version_id, action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select v.workflow_version_id, r.action_name, r.revision, r.capability, cast(r.max_per_worker as int), cast(r.exclusive_worker as boolean), r.affinity_key_field, cast(r.prefer_previous_worker as boolean), cast(r.prefer_continue_group as boolean), cast(r.require_previous_worker as boolean), cast(r.max_concurrent as int), cast(r.rate_per_minute as int), cast(r.max_deliveries as int)
from (values
  ('inventory.reserve', '2c0e0759e6039fa671a00edf560974b1b24eebb2a43ae88949a8e44a2efa20d6', 'default', null, false, null, false, false, false, null, null, 5),
  ('mail.send', 'd25d3e4e6495f3467ee044a1dc7658f43ece4db3f97b3e0b01333ea5598f9bde', 'default', null, false, null, false, false, false, null, null, 5),
  ('payment.charge', 'bb8f89a203d55a7862ce4a39a5840593c08f9aed2a1ff570c3cc73a97c81cf6b', 'default', null, false, null, false, false, false, null, null, 5),
  ('warehouse.pack', '1e9196fe443a405b43ced537ee777af792881a942dbc94e943aac8ced573d817', 'default', null, false, null, false, false, false, null, null, 5),
  ('courier.book', '9feebf3b605fdcb4311f7a6e163fee6771772880d2f902b752e5aeaa029f2272', 'default', null, false, null, false, false, false, null, null, 5),
  ('billing.invoice', '9f68eafe832dccf7e56f9b47c5636beca2c4fe153eb68368df20b7f817ba0638', 'default', null, false, null, false, false, false, null, null, 5)
) as r(action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
join wf.workflow_def as d on d.name = 'order_fulfilment'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'b215056e79e9b6dce30fb394e6122cb563d680f169b1aa23cf557dcc5019053a'
where v.published_at is null;

insert into wf.data_type (workflow_version_id, type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
select v.workflow_version_id, cast(r.type_id as int), cast(r.parent_type_id as int), r.path_kind, r.name, r.base_type, cast(r.is_required as boolean), cast(r.is_nullable as boolean), cast(r.enum_json as jsonb)
from (values
  (1, null, 'root', null, 'string', true, false, null),
  (2, null, 'root', null, 'list', true, false, null),
  (3, 2, 'item', null, 'object', true, false, null),
  (4, 3, 'field', 'sku', 'string', true, false, null),
  (5, 3, 'field', 'qty', 'int', true, false, null),
  (6, null, 'root', null, 'bool', true, false, null),
  (7, null, 'root', null, 'int', true, false, null),
  (8, null, 'root', null, 'bool', true, false, null)
) as r(type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
join wf.workflow_def as d on d.name = 'order_fulfilment'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'b215056e79e9b6dce30fb394e6122cb563d680f169b1aa23cf557dcc5019053a'
where v.published_at is null;

insert into wf.workflow_node (workflow_version_id, node_key, node_type, is_generated, action_name, action_revision, attributes_json)
select v.workflow_version_id, r.node_key, r.node_type, cast(r.is_generated as boolean), r.action_name, r.action_revision, cast(r.attributes_json as jsonb)
from (values
  ('order_fulfilment', 'SEQUENCE', false, null, null, '{}'),
  ('reserve', 'ACTION', false, 'inventory.reserve', '2c0e0759e6039fa671a00edf560974b1b24eebb2a43ae88949a8e44a2efa20d6', '{"timeout_ms":30000,"retry":{"limit":5,"backoff_ms":2000,"factor_hundredths":200,"max_ms":60000,"jitter":false,"on":["any"]}}'),
  ('switch_1', 'SWITCH', false, null, null, '{"subject":[["ctx","task",["reserve","resultCode"]]]}'),
  ('switch_1.case_0', 'SEQUENCE', true, null, null, '{}'),
  ('switch_1.case_1', 'SEQUENCE', true, null, null, '{}'),
  ('tell', 'ACTION', false, 'mail.send', 'd25d3e4e6495f3467ee044a1dc7658f43ece4db3f97b3e0b01333ea5598f9bde', '{}'),
  ('fail_1', 'SEQUENCE', false, null, null, '{"fail":{"code":-20,"message":[["lit","order "],["var","order_id","order_fulfilment",[]],["lit"," cannot be filled"],["cat",3]]}}'),
  ('while_1', 'WHILE', false, null, null, '{"condition":[["var","paid","order_fulfilment",[]],["not"],["jf",4],["var","attempts","order_fulfilment",[]],["lit",3],["lt"],["bool"]],"max":10000}'),
  ('while_1.body', 'SEQUENCE', true, null, null, '{}'),
  ('charge', 'ACTION', false, 'payment.charge', 'bb8f89a203d55a7862ce4a39a5840593c08f9aed2a1ff570c3cc73a97c81cf6b', '{}'),
  ('foreach_1', 'FOREACH', false, null, null, '{"item":"item","index":"i","parallel":8}'),
  ('foreach_1.body', 'SEQUENCE', true, null, null, '{}'),
  ('pack', 'ACTION', false, 'warehouse.pack', '1e9196fe443a405b43ced537ee777af792881a942dbc94e943aac8ced573d817', '{}'),
  ('parallel_1', 'PARALLEL', false, null, null, '{}'),
  ('ship', 'SEQUENCE', false, null, null, '{}'),
  ('book', 'ACTION', false, 'courier.book', '9feebf3b605fdcb4311f7a6e163fee6771772880d2f902b752e5aeaa029f2272', '{}'),
  ('bill', 'SEQUENCE', false, null, null, '{}'),
  ('invoice', 'ACTION', false, 'billing.invoice', '9f68eafe832dccf7e56f9b47c5636beca2c4fe153eb68368df20b7f817ba0638', '{}'),
  ('delivered', 'WAIT_EVENT', false, null, null, '{"event_type":"courier.delivered","correlate":[["var","order_id","order_fulfilment",[]]],"timeout_ms":259200000}'),
  ('delivered.timeout', 'SEQUENCE', true, null, null, '{}'),
  ('chase', 'ACTION', false, 'mail.send', 'd25d3e4e6495f3467ee044a1dc7658f43ece4db3f97b3e0b01333ea5598f9bde', '{}')
) as r(node_key, node_type, is_generated, action_name, action_revision, attributes_json)
join wf.workflow_def as d on d.name = 'order_fulfilment'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'b215056e79e9b6dce30fb394e6122cb563d680f169b1aa23cf557dcc5019053a'
where v.published_at is null;

insert into wf.workflow_edge (workflow_version_id, parent_key, child_key, branch_kind, child_order, case_value)
select v.workflow_version_id, r.parent_key, r.child_key, r.branch_kind, cast(r.child_order as int), cast(r.case_value as jsonb)
from (values
  ('order_fulfilment', 'reserve', 'SEQUENCE', 0, null),
  ('order_fulfilment', 'switch_1', 'SEQUENCE', 1, null),
  ('order_fulfilment', 'while_1', 'SEQUENCE', 2, null),
  ('order_fulfilment', 'foreach_1', 'SEQUENCE', 3, null),
  ('order_fulfilment', 'parallel_1', 'SEQUENCE', 4, null),
  ('order_fulfilment', 'delivered', 'SEQUENCE', 5, null),
  ('switch_1', 'switch_1.case_0', 'CASE', 0, '[0]'),
  ('switch_1', 'switch_1.case_1', 'CASE', 1, '[1,2]'),
  ('switch_1.case_1', 'tell', 'SEQUENCE', 0, null),
  ('switch_1.case_1', 'fail_1', 'SEQUENCE', 1, null),
  ('while_1', 'while_1.body', 'BODY', 0, null),
  ('while_1.body', 'charge', 'SEQUENCE', 0, null),
  ('foreach_1', 'foreach_1.body', 'BODY', 0, null),
  ('foreach_1.body', 'pack', 'SEQUENCE', 0, null),
  ('parallel_1', 'ship', 'PARALLEL', 0, null),
  ('parallel_1', 'bill', 'PARALLEL', 1, null),
  ('ship', 'book', 'SEQUENCE', 0, null),
  ('bill', 'invoice', 'SEQUENCE', 0, null),
  ('delivered', 'delivered.timeout', 'TIMEOUT', 0, null),
  ('delivered.timeout', 'chase', 'SEQUENCE', 0, null)
) as r(parent_key, child_key, branch_kind, child_order, case_value)
join wf.workflow_def as d on d.name = 'order_fulfilment'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'b215056e79e9b6dce30fb394e6122cb563d680f169b1aa23cf557dcc5019053a'
where v.published_at is null;

insert into wf.workflow_input_template (workflow_version_id, node_key, template_json)
select v.workflow_version_id, r.node_key, cast(r.template_json as jsonb)
from (values
  ('reserve', '{"order_id":"${var.order_id}","items":"${var.items}"}'),
  ('tell', '{"to":"ops@example.com","subject":"Short on stock: ${var.order_id}"}'),
  ('charge', '{"order_id":"${var.order_id}"}'),
  ('pack', '{"sku":"${var.item.sku}","qty":"${var.item.qty}","label":"${var.order_id}-${var.i}"}'),
  ('book', '{"parcels":"${var.parcels}"}'),
  ('invoice', '{"order_id":"${var.order_id}"}'),
  ('chase', '{"to":"ops@example.com","subject":"Late: ${var.order_id}"}')
) as r(node_key, template_json)
join wf.workflow_def as d on d.name = 'order_fulfilment'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'b215056e79e9b6dce30fb394e6122cb563d680f169b1aa23cf557dcc5019053a'
where v.published_at is null;

insert into wf.variable_output_binding (workflow_version_id, node_key, binding_order, binding_kind, name, owner_key, program_json)
select v.workflow_version_id, r.node_key, cast(r.binding_order as int), r.binding_kind, r.name, r.owner_key, cast(r.program_json as jsonb)
from (values
  ('reserve', 0, 'var', 'reservation', 'order_fulfilment', '[["out",["reservation_id"]]]'),
  ('charge', 0, 'var', 'paid', 'order_fulfilment', '[["out",["ok"]]]'),
  ('charge', 1, 'var', 'attempts', 'order_fulfilment', '[["var","attempts","order_fulfilment",[]],["lit",1],["add"]]'),
  ('foreach_1', 0, 'collect', 'parcels', 'order_fulfilment', '[["ctx","task",["pack","output","parcel"]]]'),
  ('delivered', 0, 'var', 'delivered_at', 'order_fulfilment', '[["event",["payload","at"]]]')
) as r(node_key, binding_order, binding_kind, name, owner_key, program_json)
join wf.workflow_def as d on d.name = 'order_fulfilment'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'b215056e79e9b6dce30fb394e6122cb563d680f169b1aa23cf557dcc5019053a'
where v.published_at is null;

insert into wf.node_scope_default (workflow_version_id, owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
select v.workflow_version_id, r.owner_key, cast(r.variable_order as int), r.name, r.variable_kind, cast(r.type_id as int), cast(r.is_required as boolean), cast(r.program_json as jsonb)
from (values
  ('order_fulfilment', 0, 'order_id', 'input', 1, true, null),
  ('order_fulfilment', 1, 'items', 'input', 2, true, null),
  ('order_fulfilment', 2, 'express', 'input', 6, false, '[["lit",false]]'),
  ('order_fulfilment', 0, 'attempts', 'var', 7, false, '[["lit",0]]'),
  ('order_fulfilment', 1, 'paid', 'var', 8, false, '[["lit",false]]'),
  ('order_fulfilment', 2, 'reservation', 'set', null, false, null),
  ('order_fulfilment', 3, 'parcels', 'set', null, false, null),
  ('order_fulfilment', 4, 'delivered_at', 'set', null, false, null),
  ('foreach_1.body', 0, 'item', 'loop', null, false, null),
  ('foreach_1.body', 1, 'i', 'loop', null, false, null)
) as r(owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
join wf.workflow_def as d on d.name = 'order_fulfilment'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'b215056e79e9b6dce30fb394e6122cb563d680f169b1aa23cf557dcc5019053a'
where v.published_at is null;

insert into wf.collection_binding (workflow_version_id, node_key, binding_kind, program_json)
select v.workflow_version_id, r.node_key, r.binding_kind, cast(r.program_json as jsonb)
from (values
  ('foreach_1', 'variable', '[["var","items","order_fulfilment",[]]]')
) as r(node_key, binding_kind, program_json)
join wf.workflow_def as d on d.name = 'order_fulfilment'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'b215056e79e9b6dce30fb394e6122cb563d680f169b1aa23cf557dcc5019053a'
where v.published_at is null;

insert into wf.event_subscription (workflow_version_id, subscription_order, event_type, mode, filter_json, inputs_json)
select v.workflow_version_id, cast(r.subscription_order as int), r.event_type, r.mode, cast(r.filter_json as jsonb), cast(r.inputs_json as jsonb)
from (values
  (0, 'order.created', 'start_instance', '[{"path":["region"],"value":"eu"}]', '[{"name":"order_id","program":[["event",["payload","order_id"]]]},{"name":"items","program":[["event",["payload","items"]]]},{"name":"express","program":[["event",["payload","express"]]]}]'),
  (1, 'courier.delivered', 'signal_wait', '[]', '[]')
) as r(subscription_order, event_type, mode, filter_json, inputs_json)
join wf.workflow_def as d on d.name = 'order_fulfilment'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'b215056e79e9b6dce30fb394e6122cb563d680f169b1aa23cf557dcc5019053a'
where v.published_at is null;

select wf.wf_set_version_notes(p_name => 'order_fulfilment', p_content_hash => 'b215056e79e9b6dce30fb394e6122cb563d680f169b1aa23cf557dcc5019053a', p_source_map => cast('{"file":"at_a_glance.wf","nodes":{"order_fulfilment":[2,10],"reserve":[16,10],"switch_1":[22,3],"switch_1.case_0":[23,13],"switch_1.case_1":[24,19],"tell":[25,14],"fail_1":[26,7],"while_1":[30,3],"while_1.body":[30,43],"charge":[31,12],"foreach_1":[37,3],"foreach_1.body":[37,43],"pack":[38,12],"parallel_1":[42,3],"ship":[43,14],"book":[43,28],"bill":[44,14],"invoice":[44,28],"delivered":[47,14],"delivered.timeout":[49,16],"chase":[49,25]}}' as jsonb), p_description => 'Fulfil one order.');

select p.workflow_version_id, p.version_no, p.was_new
from wf.wf_publish_workflow_version(p_name => 'order_fulfilment', p_content_hash => 'b215056e79e9b6dce30fb394e6122cb563d680f169b1aa23cf557dcc5019053a', p_activate => true, p_update_actions => false) as p;

commit;
