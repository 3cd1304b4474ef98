-- workflow: attributes
-- content: 0b8a6cf407e48f8ab2ad27d1dae8cc205b648dc67d38db1c6a8826673d54e541
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
  ('attributes')
) as r(name)
on conflict(name) do nothing;

insert into wf.workflow_version (workflow_def_id, content_hash, spec_format, outputs_json)
select d.workflow_def_id, r.content_hash, cast(r.spec_format as int), cast(r.outputs_json as jsonb)
from (values
  ('0b8a6cf407e48f8ab2ad27d1dae8cc205b648dc67d38db1c6a8826673d54e541', 1, '[{"order":0,"name":"done","program":[["var","done","attributes",[]]]},{"order":1,"name":"sent","program":[["var","sent","attributes",[]]]}]')
) as r(content_hash, spec_format, outputs_json)
join wf.workflow_def as d on d.name = 'attributes'
on conflict(workflow_def_id, content_hash) do nothing;

insert into wf.workflow_action (action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select r.action_name, r.capability, cast(r.max_per_worker as int), cast(r.exclusive_worker as boolean), r.affinity_key_field, cast(r.prefer_previous_worker as boolean), cast(r.prefer_continue_group as boolean), cast(r.require_previous_worker as boolean), cast(r.max_concurrent as int), cast(r.rate_per_minute as int), cast(r.max_deliveries as int)
from (values
  ('parcel.send', 'default', null, false, null, false, false, false, null, null, 5),
  ('parcel.weigh', 'warehouse', 4, false, null, true, false, false, null, null, 5)
) as r(action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
order by r.action_name
on conflict(action_name) do nothing;

insert into wf.workflow_action_revision (action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
select r.action_name, r.revision, r.description, r.version, cast(r.input_schema_json as jsonb), cast(r.output_schema_json as jsonb), cast(r.result_codes_json as jsonb), cast(r.idempotent as boolean), cast(r.timeout_ms as bigint), cast(r.sensitive_json as jsonb)
from (values
  ('parcel.send', 'e7350ea230af9c0f3b81fd14c98f99c83a51f0ca4393f5bb05bd4ffc058ec1fc', null, null, '{"type":"object","properties":{"to":{"type":"string"},"note":{"type":"string"}},"required":["to"]}', null, '{}', true, null, '["/input/to","/output/trace"]'),
  ('parcel.weigh', '60ff631018ee9a316432f32c5585798e65d53021978c875e0fdbd94f4d8adf52', null, null, '{"type":"object","properties":{"parcels":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}},"required":["parcels"]}', '{"type":"object","properties":{"total":{"type":"integer"}},"required":["total"]}', '{"0":"ok","-3":"overload"}', false, 60000, '[]')
) as r(action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
order by r.action_name
on conflict(action_name, revision) do nothing;

insert into wf.workflow_version_action (workflow_version_id, action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select v.workflow_version_id, r.action_name, r.revision, r.capability, cast(r.max_per_worker as int), cast(r.exclusive_worker as boolean), r.affinity_key_field, cast(r.prefer_previous_worker as boolean), cast(r.prefer_continue_group as boolean), cast(r.require_previous_worker as boolean), cast(r.max_concurrent as int), cast(r.rate_per_minute as int), cast(r.max_deliveries as int)
from (values
  ('parcel.weigh', '60ff631018ee9a316432f32c5585798e65d53021978c875e0fdbd94f4d8adf52', 'warehouse', 4, false, null, true, false, false, null, null, 5),
  ('parcel.send', 'e7350ea230af9c0f3b81fd14c98f99c83a51f0ca4393f5bb05bd4ffc058ec1fc', 'default', null, false, null, false, false, false, null, null, 5)
) as r(action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
join wf.workflow_def as d on d.name = 'attributes'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '0b8a6cf407e48f8ab2ad27d1dae8cc205b648dc67d38db1c6a8826673d54e541'
where v.published_at is null;

insert into wf.data_type (workflow_version_id, type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
select v.workflow_version_id, cast(r.type_id as int), cast(r.parent_type_id as int), r.path_kind, r.name, r.base_type, cast(r.is_required as boolean), cast(r.is_nullable as boolean), cast(r.enum_json as jsonb)
from (values
  (1, null, 'root', null, 'list', true, false, null),
  (2, 1, 'item', null, 'object', true, false, null),
  (3, 2, 'field', 'name', 'string', true, false, null),
  (4, 2, 'field', 'size', 'string', true, false, '["small","large"]'),
  (5, 2, 'field', 'note', 'string', false, true, null),
  (6, null, 'root', null, 'string', true, false, null),
  (7, null, 'root', null, 'int', true, false, null)
) as r(type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
join wf.workflow_def as d on d.name = 'attributes'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '0b8a6cf407e48f8ab2ad27d1dae8cc205b648dc67d38db1c6a8826673d54e541'
where v.published_at is null;

insert into wf.workflow_node (workflow_version_id, node_key, node_type, is_generated, action_name, action_revision, attributes_json)
select v.workflow_version_id, r.node_key, r.node_type, cast(r.is_generated as boolean), r.action_name, r.action_revision, cast(r.attributes_json as jsonb)
from (values
  ('attributes', 'SEQUENCE', false, null, null, '{"timeout_ms":172800000}'),
  ('guarded', 'SEQUENCE', false, null, null, '{"timeout_ms":3600000}'),
  ('weigh', 'ACTION', false, 'parcel.weigh', '60ff631018ee9a316432f32c5585798e65d53021978c875e0fdbd94f4d8adf52', '{"timeout_ms":30000,"delay_ms":500,"retry":{"limit":5,"backoff_ms":2000,"factor_hundredths":150,"max_ms":60000,"jitter":true,"on":["lease",-3,10013]},"dispatch":{"max_per_worker":2,"exclusive_worker":true}}'),
  ('guarded.on_error', 'SEQUENCE', true, null, null, '{}'),
  ('guarded.set_1', 'SEQUENCE', false, null, null, '{}'),
  ('guarded.set_2', 'SEQUENCE', false, null, null, '{}'),
  ('guarded.finally', 'SEQUENCE', true, null, null, '{}'),
  ('guarded.sleep_1', 'SEQUENCE', false, null, null, '{"sleep_ms":1000}'),
  ('race', 'PARALLEL', false, null, null, '{"join":1,"keep_going":true,"timeout_ms":600000}'),
  ('fast', 'ACTION', false, 'parcel.send', 'e7350ea230af9c0f3b81fd14c98f99c83a51f0ca4393f5bb05bd4ffc058ec1fc', '{"retry":{"limit":2,"backoff_ms":5000,"factor_hundredths":100,"max_ms":3600000,"jitter":true,"on":["any"]}}'),
  ('slow', 'ACTION', false, 'parcel.send', 'e7350ea230af9c0f3b81fd14c98f99c83a51f0ca4393f5bb05bd4ffc058ec1fc', '{"retry":{"limit":2,"backoff_ms":5000,"factor_hundredths":100,"max_ms":3600000,"jitter":true,"on":["any"]},"dispatch":{"max_concurrent":5,"rate_per_minute":60,"max_deliveries":3,"idempotent":false}}'),
  ('foreach_1', 'FOREACH', false, null, null, '{"item":"box","parallel":4,"batch":10,"tolerate":{"percent":5},"keep_going":true,"timeout_ms":86400000}'),
  ('foreach_1.body', 'SEQUENCE', true, null, null, '{}'),
  ('pack', 'ACTION', false, 'parcel.weigh', '60ff631018ee9a316432f32c5585798e65d53021978c875e0fdbd94f4d8adf52', '{"timeout_ms":60000}'),
  ('foreach_2', 'FOREACH', false, null, null, '{"item":"box","parallel":1,"tolerate":{"count":2},"reuse":{"fingerprint":"53bc2c585d4be676bba4980c1c61e87753a76522e260b2125b2ecc7035341330","reads":[]}}'),
  ('foreach_2.body', 'SEQUENCE', true, null, null, '{}'),
  ('again', 'ACTION', false, 'parcel.send', 'e7350ea230af9c0f3b81fd14c98f99c83a51f0ca4393f5bb05bd4ffc058ec1fc', '{"retry":{"limit":2,"backoff_ms":5000,"factor_hundredths":100,"max_ms":3600000,"jitter":true,"on":["any"]}}'),
  ('repeat_1', 'REPEAT', false, null, null, '{"count":[["lit",3]],"keep":2,"timeout_ms":60000}'),
  ('repeat_1.body', 'SEQUENCE', true, null, null, '{}'),
  ('sleep_1', 'SEQUENCE', false, null, null, '{"sleep_ms":1000}'),
  ('while_1', 'WHILE', false, null, null, '{"condition":[["ctx","task",["poll","resultCode"]],["alt",1],["lit",1],["lit",0],["ne"]],"max":100,"keep":5}'),
  ('while_1.body', 'SEQUENCE', true, null, null, '{}'),
  ('poll', 'ACTION', false, 'parcel.send', 'e7350ea230af9c0f3b81fd14c98f99c83a51f0ca4393f5bb05bd4ffc058ec1fc', '{"retry":{"limit":2,"backoff_ms":5000,"factor_hundredths":100,"max_ms":3600000,"jitter":true,"on":["any"]}}'),
  ('sleep_2', 'SEQUENCE', false, null, null, '{"sleep_ms":30000}'),
  ('late', 'WAIT_EVENT', false, null, null, '{"event_type":"parcels.late","correlate":[["var","region","attributes",[]]],"timeout_ms":86400000}'),
  ('late.timeout', 'SEQUENCE', true, null, null, '{}'),
  ('late.fail_1', 'SEQUENCE', false, null, null, '{"fail":{"code":-4,"message":[["lit","nothing came to "],["var","region","attributes",[]],["cat",2]]}}')
) as r(node_key, node_type, is_generated, action_name, action_revision, attributes_json)
join wf.workflow_def as d on d.name = 'attributes'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '0b8a6cf407e48f8ab2ad27d1dae8cc205b648dc67d38db1c6a8826673d54e541'
where v.published_at is null;

insert into wf.workflow_edge (workflow_version_id, parent_key, child_key, branch_kind, child_order, case_value)
select v.workflow_version_id, r.parent_key, r.child_key, r.branch_kind, cast(r.child_order as int), cast(r.case_value as jsonb)
from (values
  ('attributes', 'guarded', 'SEQUENCE', 0, null),
  ('attributes', 'race', 'SEQUENCE', 1, null),
  ('attributes', 'foreach_1', 'SEQUENCE', 2, null),
  ('attributes', 'foreach_2', 'SEQUENCE', 3, null),
  ('attributes', 'repeat_1', 'SEQUENCE', 4, null),
  ('attributes', 'while_1', 'SEQUENCE', 5, null),
  ('attributes', 'late', 'SEQUENCE', 6, null),
  ('guarded', 'weigh', 'SEQUENCE', 0, null),
  ('guarded', 'guarded.on_error', 'ON_ERROR', 1, null),
  ('guarded', 'guarded.finally', 'FINALLY', 2, null),
  ('guarded.on_error', 'guarded.set_1', 'SEQUENCE', 0, null),
  ('guarded.on_error', 'guarded.set_2', 'SEQUENCE', 1, null),
  ('guarded.finally', 'guarded.sleep_1', 'SEQUENCE', 0, null),
  ('race', 'fast', 'PARALLEL', 0, null),
  ('race', 'slow', 'PARALLEL', 1, null),
  ('foreach_1', 'foreach_1.body', 'BODY', 0, null),
  ('foreach_1.body', 'pack', 'SEQUENCE', 0, null),
  ('foreach_2', 'foreach_2.body', 'BODY', 0, null),
  ('foreach_2.body', 'again', 'SEQUENCE', 0, null),
  ('repeat_1', 'repeat_1.body', 'BODY', 0, null),
  ('repeat_1.body', 'sleep_1', 'SEQUENCE', 0, null),
  ('while_1', 'while_1.body', 'BODY', 0, null),
  ('while_1.body', 'poll', 'SEQUENCE', 0, null),
  ('while_1.body', 'sleep_2', 'SEQUENCE', 1, null),
  ('late', 'late.timeout', 'TIMEOUT', 0, null),
  ('late.timeout', 'late.fail_1', 'SEQUENCE', 0, null)
) as r(parent_key, child_key, branch_kind, child_order, case_value)
join wf.workflow_def as d on d.name = 'attributes'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '0b8a6cf407e48f8ab2ad27d1dae8cc205b648dc67d38db1c6a8826673d54e541'
where v.published_at is null;

insert into wf.workflow_input_template (workflow_version_id, node_key, template_json)
select v.workflow_version_id, r.node_key, cast(r.template_json as jsonb)
from (values
  ('weigh', '{"parcels":"${var.parcels}"}'),
  ('fast', '{"to":"${var.region}"}'),
  ('slow', '{"to":"${var.region}","note":null}'),
  ('pack', '{"parcels":"${var.box}"}'),
  ('again', '{"to":"${var.box.name}"}'),
  ('poll', '{"to":"${var.region}"}')
) as r(node_key, template_json)
join wf.workflow_def as d on d.name = 'attributes'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '0b8a6cf407e48f8ab2ad27d1dae8cc205b648dc67d38db1c6a8826673d54e541'
where v.published_at is null;

insert into wf.workflow_input_binding (workflow_version_id, node_key, pointer, program_json)
select v.workflow_version_id, r.node_key, r.pointer, cast(r.program_json as jsonb)
from (values
  ('slow', '/note', '[["var","reason","attributes",[]],["alt",1],["lit","fine"]]')
) as r(node_key, pointer, program_json)
join wf.workflow_def as d on d.name = 'attributes'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '0b8a6cf407e48f8ab2ad27d1dae8cc205b648dc67d38db1c6a8826673d54e541'
where v.published_at is null;

insert into wf.variable_output_binding (workflow_version_id, node_key, binding_order, binding_kind, name, owner_key, program_json)
select v.workflow_version_id, r.node_key, cast(r.binding_order as int), r.binding_kind, r.name, r.owner_key, cast(r.program_json as jsonb)
from (values
  ('weigh', 0, 'var', 'done', 'attributes', '[["out",["total"]]]'),
  ('guarded.set_1', 0, 'var', 'done', 'attributes', '[["lit",0]]'),
  ('guarded.set_2', 0, 'var', 'reason', 'attributes', '[["ctx","error",["message"]]]'),
  ('foreach_1', 0, 'collect', 'sent', 'attributes', '[["ctx","task",["pack","output","total"]]]'),
  ('late', 0, 'var', 'done', 'attributes', '[["event",["payload","count"]]]')
) as r(node_key, binding_order, binding_kind, name, owner_key, program_json)
join wf.workflow_def as d on d.name = 'attributes'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '0b8a6cf407e48f8ab2ad27d1dae8cc205b648dc67d38db1c6a8826673d54e541'
where v.published_at is null;

insert into wf.node_scope_default (workflow_version_id, owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
select v.workflow_version_id, r.owner_key, cast(r.variable_order as int), r.name, r.variable_kind, cast(r.type_id as int), cast(r.is_required as boolean), cast(r.program_json as jsonb)
from (values
  ('attributes', 0, 'parcels', 'input', 1, true, null),
  ('attributes', 1, 'region', 'input', 6, false, '[["lit","eu"]]'),
  ('attributes', 0, 'done', 'var', 7, false, null),
  ('attributes', 1, 'reason', 'set', null, false, null),
  ('attributes', 2, 'sent', 'set', null, false, null),
  ('foreach_1.body', 0, 'box', 'loop', null, false, null),
  ('foreach_2.body', 0, 'box', 'loop', null, false, null)
) as r(owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
join wf.workflow_def as d on d.name = 'attributes'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '0b8a6cf407e48f8ab2ad27d1dae8cc205b648dc67d38db1c6a8826673d54e541'
where v.published_at is null;

insert into wf.collection_binding (workflow_version_id, node_key, binding_kind, program_json)
select v.workflow_version_id, r.node_key, r.binding_kind, cast(r.program_json as jsonb)
from (values
  ('foreach_1', 'variable', '[["var","parcels","attributes",[]]]'),
  ('foreach_2', 'variable', '[["var","parcels","attributes",[]]]')
) as r(node_key, binding_kind, program_json)
join wf.workflow_def as d on d.name = 'attributes'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '0b8a6cf407e48f8ab2ad27d1dae8cc205b648dc67d38db1c6a8826673d54e541'
where v.published_at is null;

insert into wf.event_subscription (workflow_version_id, subscription_order, event_type, mode, filter_json, inputs_json)
select v.workflow_version_id, cast(r.subscription_order as int), r.event_type, r.mode, cast(r.filter_json as jsonb), cast(r.inputs_json as jsonb)
from (values
  (0, 'parcels.ready', 'start_instance', '[{"path":["region"],"value":"eu"},{"path":["size","count"],"value":3}]', '[{"name":"parcels","program":[["event",["payload","parcels"]]]}]'),
  (1, 'parcels.late', 'signal_wait', '[{"path":["urgent"],"value":true}]', '[]')
) as r(subscription_order, event_type, mode, filter_json, inputs_json)
join wf.workflow_def as d on d.name = 'attributes'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = '0b8a6cf407e48f8ab2ad27d1dae8cc205b648dc67d38db1c6a8826673d54e541'
where v.published_at is null;

select wf.wf_set_version_notes(p_name => 'attributes', p_content_hash => '0b8a6cf407e48f8ab2ad27d1dae8cc205b648dc67d38db1c6a8826673d54e541', p_source_map => cast('{"file":"attributes.wf","nodes":{"attributes":[3,10],"guarded":[11,12],"weigh":[13,12],"guarded.on_error":[21,14],"guarded.set_1":[22,5],"guarded.set_2":[23,5],"guarded.finally":[24,13],"guarded.sleep_1":[25,5],"race":[28,12],"fast":[29,12],"slow":[30,12],"foreach_1":[38,3],"foreach_1.body":[38,84],"pack":[39,12],"foreach_2":[42,3],"foreach_2.body":[42,47],"again":[43,12],"repeat_1":[46,3],"repeat_1.body":[46,30],"sleep_1":[47,5],"while_1":[49,3],"while_1.body":[49,61],"poll":[50,12],"sleep_2":[51,5],"late":[54,14],"late.timeout":[56,16],"late.fail_1":[57,7]}}' as jsonb), p_description => null);

select p.workflow_version_id, p.version_no, p.was_new
from wf.wf_publish_workflow_version(p_name => 'attributes', p_content_hash => '0b8a6cf407e48f8ab2ad27d1dae8cc205b648dc67d38db1c6a8826673d54e541', p_activate => true, p_update_actions => false) as p;

commit;
