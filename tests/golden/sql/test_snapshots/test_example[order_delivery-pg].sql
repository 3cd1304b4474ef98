-- workflow: order_delivery
-- content: ff3293c47dc0795dae07ef1649faaa1f27828f067a8850a6e9d504c8a350a5ef
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
  ('order_delivery')
) as r(name)
on conflict(name) do nothing;

insert into wf.workflow_version (workflow_def_id, content_hash, spec_format, outputs_json)
select d.workflow_def_id, r.content_hash, cast(r.spec_format as int), cast(r.outputs_json as jsonb)
from (values
  ('ff3293c47dc0795dae07ef1649faaa1f27828f067a8850a6e9d504c8a350a5ef', 1, '[{"order":0,"name":"delivered_at","program":[["var","delivered_at","order_delivery",[]]]},{"order":1,"name":"protocol","program":[["ctx","task",["confirm","output","file"]]]},{"order":2,"name":"complete","program":[["ctx","task",["confirm","output","complete"]]]}]')
) as r(content_hash, spec_format, outputs_json)
join wf.workflow_def as d on d.name = 'order_delivery'
on conflict(workflow_def_id, content_hash) do nothing;

insert into wf.workflow_action (action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select r.action_name, r.capability, cast(r.max_per_worker as int), cast(r.exclusive_worker as boolean), r.affinity_key_field, cast(r.prefer_previous_worker as boolean), cast(r.prefer_continue_group as boolean), cast(r.require_previous_worker as boolean), cast(r.max_concurrent as int), cast(r.rate_per_minute as int), cast(r.max_deliveries as int)
from (values
  ('courier.chase', 'shipping', null, false, null, false, false, false, null, null, 5),
  ('customer.notify', 'mail', null, false, null, false, false, false, null, null, 5),
  ('delivery.confirm', 'shipping', null, false, null, false, false, false, null, null, 5)
) as r(action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
order by r.action_name
on conflict(action_name) do nothing;

insert into wf.workflow_action_revision (action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
select r.action_name, r.revision, r.description, r.version, cast(r.input_schema_json as jsonb), cast(r.output_schema_json as jsonb), cast(r.result_codes_json as jsonb), cast(r.idempotent as boolean), cast(r.timeout_ms as bigint), cast(r.sensitive_json as jsonb)
from (values
  ('courier.chase', 'dbd85799cb9044bcad8c3d61a7a34699e024b56b544f238b7ca692249001962d', 'Ask the courier in writing where an order is.', null, '{"type":"object","properties":{"order_id":{"type":"string"},"tracking":{"type":"string"},"days":{"type":"integer"},"work_dir":{"type":"string"}},"required":["order_id","tracking","days","work_dir"]}', '{"type":"object","properties":{"file":{"type":"string"}},"required":["file"]}', '{}', true, null, '[]'),
  ('customer.notify', 'cd1496e19249c5c8324060bd3e1d27c8a33b379a4b6fe0210498abebd43b6361', 'Put a message to the customer into the outbox.', null, '{"type":"object","properties":{"to":{"type":"string"},"subject":{"type":"string"},"body":{"type":"string"},"work_dir":{"type":"string"}},"required":["to","subject","body","work_dir"]}', '{"type":"object","properties":{"file":{"type":"string"}},"required":["file"]}', '{}', true, null, '[]'),
  ('delivery.confirm', '3cd030bbde01dbab8fb21edfbc8b494caea871ec48fd5b8266b919b24b33cf7c', 'Compare what was handed over with what was sent, and write the protocol.', null, '{"type":"object","properties":{"order_id":{"type":"string"},"tracking":{"type":"string"},"expected":{"type":"array","items":{"type":"string"}},"handed_over":{"type":"array","items":{"type":"string"}},"delivered_at":{"type":"string"},"signed_by":{"type":"string"},"work_dir":{"type":"string"}},"required":["order_id","tracking","expected","handed_over","delivered_at","signed_by","work_dir"]}', '{"type":"object","properties":{"complete":{"type":"boolean"},"missing_count":{"type":"integer"},"file":{"type":"string"}},"required":["complete","missing_count","file"]}', '{"0":"complete","1":"incomplete"}', true, null, '[]')
) as r(action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
order by r.action_name
on conflict(action_name, revision) do nothing;

insert into wf.workflow_version_action (workflow_version_id, action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select v.workflow_version_id, r.action_name, r.revision, r.capability, cast(r.max_per_worker as int), cast(r.exclusive_worker as boolean), r.affinity_key_field, cast(r.prefer_previous_worker as boolean), cast(r.prefer_continue_group as boolean), cast(r.require_previous_worker as boolean), cast(r.max_concurrent as int), cast(r.rate_per_minute as int), cast(r.max_deliveries as int)
from (values
  ('courier.chase', 'dbd85799cb9044bcad8c3d61a7a34699e024b56b544f238b7ca692249001962d', 'shipping', null, false, null, false, false, false, null, null, 5),
  ('delivery.confirm', '3cd030bbde01dbab8fb21edfbc8b494caea871ec48fd5b8266b919b24b33cf7c', 'shipping', null, false, null, false, false, false, null, null, 5),
  ('customer.notify', 'cd1496e19249c5c8324060bd3e1d27c8a33b379a4b6fe0210498abebd43b6361', 'mail', null, false, null, false, false, false, null, null, 5)
) as r(action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
join wf.workflow_def as d on d.name = 'order_delivery'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'ff3293c47dc0795dae07ef1649faaa1f27828f067a8850a6e9d504c8a350a5ef'
where v.published_at is null;

insert into wf.data_type (workflow_version_id, type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
select v.workflow_version_id, cast(r.type_id as int), cast(r.parent_type_id as int), r.path_kind, r.name, r.base_type, cast(r.is_required as boolean), cast(r.is_nullable as boolean), cast(r.enum_json as jsonb)
from (values
  (1, null, 'root', null, 'string', true, false, null),
  (2, null, 'root', null, 'string', true, false, null),
  (3, null, 'root', null, 'string', true, false, null),
  (4, null, 'root', null, 'list', true, false, null),
  (5, 4, 'item', null, 'string', true, false, null),
  (6, null, 'root', null, 'string', true, false, null),
  (7, null, 'root', null, 'bool', true, false, null),
  (8, null, 'root', null, 'int', true, false, null),
  (9, null, 'root', null, 'string', true, false, null),
  (10, null, 'root', null, 'string', true, false, null),
  (11, null, 'root', null, 'list', true, false, null),
  (12, 11, 'item', null, 'string', true, false, null)
) as r(type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
join wf.workflow_def as d on d.name = 'order_delivery'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'ff3293c47dc0795dae07ef1649faaa1f27828f067a8850a6e9d504c8a350a5ef'
where v.published_at is null;

insert into wf.workflow_node (workflow_version_id, node_key, node_type, is_generated, action_name, action_revision, attributes_json)
select v.workflow_version_id, r.node_key, r.node_type, cast(r.is_generated as boolean), r.action_name, r.action_revision, cast(r.attributes_json as jsonb)
from (values
  ('order_delivery', 'SEQUENCE', false, null, null, '{}'),
  ('while_1', 'WHILE', false, null, null, '{"condition":[["var","arrived","order_delivery",[]],["not"],["jf",4],["var","asked","order_delivery",[]],["lit",3],["lt"],["bool"]],"max":10000}'),
  ('while_1.body', 'SEQUENCE', true, null, null, '{}'),
  ('delivered', 'WAIT_EVENT', false, null, null, '{"event_type":"courier.delivered","correlate":[["var","order_id","order_delivery",[]]],"timeout_ms":259200000}'),
  ('delivered.timeout', 'SEQUENCE', true, null, null, '{}'),
  ('chase', 'ACTION', false, 'courier.chase', 'dbd85799cb9044bcad8c3d61a7a34699e024b56b544f238b7ca692249001962d', '{}'),
  ('if_1', 'IF', false, null, null, '{"condition":[["var","arrived","order_delivery",[]],["not"]]}'),
  ('if_1.then', 'SEQUENCE', true, null, null, '{}'),
  ('fail_1', 'SEQUENCE', false, null, null, '{"fail":{"code":-40,"message":[["lit","order "],["var","order_id","order_delivery",[]],["lit"," is lost: the courier was asked "],["var","asked","order_delivery",[]],["lit"," times"],["cat",5]]}}'),
  ('confirm', 'ACTION', false, 'delivery.confirm', '3cd030bbde01dbab8fb21edfbc8b494caea871ec48fd5b8266b919b24b33cf7c', '{}'),
  ('switch_1', 'SWITCH', false, null, null, '{"subject":[["ctx","task",["confirm","resultCode"]]]}'),
  ('switch_1.case_0', 'SEQUENCE', true, null, null, '{}'),
  ('thank', 'ACTION', false, 'customer.notify', 'cd1496e19249c5c8324060bd3e1d27c8a33b379a4b6fe0210498abebd43b6361', '{}'),
  ('switch_1.case_1', 'SEQUENCE', true, null, null, '{}'),
  ('apologise', 'ACTION', false, 'customer.notify', 'cd1496e19249c5c8324060bd3e1d27c8a33b379a4b6fe0210498abebd43b6361', '{}')
) as r(node_key, node_type, is_generated, action_name, action_revision, attributes_json)
join wf.workflow_def as d on d.name = 'order_delivery'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'ff3293c47dc0795dae07ef1649faaa1f27828f067a8850a6e9d504c8a350a5ef'
where v.published_at is null;

insert into wf.workflow_edge (workflow_version_id, parent_key, child_key, branch_kind, child_order, case_value)
select v.workflow_version_id, r.parent_key, r.child_key, r.branch_kind, cast(r.child_order as int), cast(r.case_value as jsonb)
from (values
  ('order_delivery', 'while_1', 'SEQUENCE', 0, null),
  ('order_delivery', 'if_1', 'SEQUENCE', 1, null),
  ('order_delivery', 'confirm', 'SEQUENCE', 2, null),
  ('order_delivery', 'switch_1', 'SEQUENCE', 3, null),
  ('while_1', 'while_1.body', 'BODY', 0, null),
  ('while_1.body', 'delivered', 'SEQUENCE', 0, null),
  ('delivered', 'delivered.timeout', 'TIMEOUT', 0, null),
  ('delivered.timeout', 'chase', 'SEQUENCE', 0, null),
  ('if_1', 'if_1.then', 'THEN', 0, null),
  ('if_1.then', 'fail_1', 'SEQUENCE', 0, null),
  ('switch_1', 'switch_1.case_0', 'CASE', 0, '[0]'),
  ('switch_1', 'switch_1.case_1', 'CASE', 1, '[1]'),
  ('switch_1.case_0', 'thank', 'SEQUENCE', 0, null),
  ('switch_1.case_1', 'apologise', 'SEQUENCE', 0, null)
) as r(parent_key, child_key, branch_kind, child_order, case_value)
join wf.workflow_def as d on d.name = 'order_delivery'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'ff3293c47dc0795dae07ef1649faaa1f27828f067a8850a6e9d504c8a350a5ef'
where v.published_at is null;

insert into wf.workflow_input_template (workflow_version_id, node_key, template_json)
select v.workflow_version_id, r.node_key, cast(r.template_json as jsonb)
from (values
  ('chase', '{"order_id":"${var.order_id}","tracking":"${var.tracking}","days":null,"work_dir":"${var.work_dir}"}'),
  ('confirm', '{"order_id":"${var.order_id}","tracking":"${var.tracking}","expected":"${var.parcels}","handed_over":"${var.handed_over}","delivered_at":"${var.delivered_at}","signed_by":"${var.signed_by}","work_dir":"${var.work_dir}"}'),
  ('thank', '{"to":"${var.email}","subject":"Your order ${var.order_id} has arrived","body":"Signed for by ${var.signed_by} at ${var.delivered_at}.","work_dir":"${var.work_dir}"}'),
  ('apologise', '{"to":"${var.email}","subject":"Part of your order ${var.order_id} is still on its way","body":"Parcels missing: ${ctx.task.confirm.output.missing_count}.","work_dir":"${var.work_dir}"}')
) as r(node_key, template_json)
join wf.workflow_def as d on d.name = 'order_delivery'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'ff3293c47dc0795dae07ef1649faaa1f27828f067a8850a6e9d504c8a350a5ef'
where v.published_at is null;

insert into wf.workflow_input_binding (workflow_version_id, node_key, pointer, program_json)
select v.workflow_version_id, r.node_key, r.pointer, cast(r.program_json as jsonb)
from (values
  ('chase', '/days', '[["lit",3],["var","asked","order_delivery",[]],["lit",1],["add"],["mul"]]')
) as r(node_key, pointer, program_json)
join wf.workflow_def as d on d.name = 'order_delivery'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'ff3293c47dc0795dae07ef1649faaa1f27828f067a8850a6e9d504c8a350a5ef'
where v.published_at is null;

insert into wf.variable_output_binding (workflow_version_id, node_key, binding_order, binding_kind, name, owner_key, program_json)
select v.workflow_version_id, r.node_key, cast(r.binding_order as int), r.binding_kind, r.name, r.owner_key, cast(r.program_json as jsonb)
from (values
  ('delivered', 0, 'var', 'arrived', 'order_delivery', '[["lit",true]]'),
  ('delivered', 1, 'var', 'delivered_at', 'order_delivery', '[["event",["payload","at"]]]'),
  ('delivered', 2, 'var', 'signed_by', 'order_delivery', '[["event",["payload","signed_by"]],["alt",1],["lit","nobody"]]'),
  ('delivered', 3, 'var', 'handed_over', 'order_delivery', '[["event",["payload","parcels"]]]'),
  ('chase', 0, 'var', 'asked', 'order_delivery', '[["var","asked","order_delivery",[]],["lit",1],["add"]]')
) as r(node_key, binding_order, binding_kind, name, owner_key, program_json)
join wf.workflow_def as d on d.name = 'order_delivery'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'ff3293c47dc0795dae07ef1649faaa1f27828f067a8850a6e9d504c8a350a5ef'
where v.published_at is null;

insert into wf.node_scope_default (workflow_version_id, owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
select v.workflow_version_id, r.owner_key, cast(r.variable_order as int), r.name, r.variable_kind, cast(r.type_id as int), cast(r.is_required as boolean), cast(r.program_json as jsonb)
from (values
  ('order_delivery', 0, 'order_id', 'input', 1, true, null),
  ('order_delivery', 1, 'email', 'input', 2, true, null),
  ('order_delivery', 2, 'tracking', 'input', 3, true, null),
  ('order_delivery', 3, 'parcels', 'input', 4, true, null),
  ('order_delivery', 4, 'work_dir', 'input', 6, false, '[["lit","order_delivery"]]'),
  ('order_delivery', 0, 'arrived', 'var', 7, false, '[["lit",false]]'),
  ('order_delivery', 1, 'asked', 'var', 8, false, '[["lit",0]]'),
  ('order_delivery', 2, 'delivered_at', 'var', 9, false, '[["lit",""]]'),
  ('order_delivery', 3, 'signed_by', 'var', 10, false, '[["lit","nobody"]]'),
  ('order_delivery', 4, 'handed_over', 'var', 11, false, '[["arr",0]]')
) as r(owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
join wf.workflow_def as d on d.name = 'order_delivery'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'ff3293c47dc0795dae07ef1649faaa1f27828f067a8850a6e9d504c8a350a5ef'
where v.published_at is null;

insert into wf.event_subscription (workflow_version_id, subscription_order, event_type, mode, filter_json, inputs_json)
select v.workflow_version_id, cast(r.subscription_order as int), r.event_type, r.mode, cast(r.filter_json as jsonb), cast(r.inputs_json as jsonb)
from (values
  (0, 'courier.delivered', 'signal_wait', '[]', '[]')
) as r(subscription_order, event_type, mode, filter_json, inputs_json)
join wf.workflow_def as d on d.name = 'order_delivery'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'ff3293c47dc0795dae07ef1649faaa1f27828f067a8850a6e9d504c8a350a5ef'
where v.published_at is null;

select wf.wf_set_version_notes(p_name => 'order_delivery', p_content_hash => 'ff3293c47dc0795dae07ef1649faaa1f27828f067a8850a6e9d504c8a350a5ef', p_source_map => cast('{"file":"order_delivery.wf","nodes":{"order_delivery":[4,10],"while_1":[26,3],"while_1.body":[26,43],"delivered":[27,16],"delivered.timeout":[30,18],"chase":[31,16],"if_1":[46,3],"if_1.then":[46,22],"fail_1":[47,5],"confirm":[50,10],"switch_1":[60,3],"switch_1.case_0":[61,19],"thank":[62,14],"switch_1.case_1":[69,21],"apologise":[70,14]}}' as jsonb), p_description => 'Close an order when its parcels have arrived.');

select p.workflow_version_id, p.version_no, p.was_new
from wf.wf_publish_workflow_version(p_name => 'order_delivery', p_content_hash => 'ff3293c47dc0795dae07ef1649faaa1f27828f067a8850a6e9d504c8a350a5ef', p_activate => true, p_update_actions => false) as p;

commit;
