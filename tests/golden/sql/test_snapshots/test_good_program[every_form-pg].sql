-- workflow: every_form
-- content: e427b86fe7af883a283f0c5d4ca25eadd0e5da1a27c9e6a3850785b2314eba0d
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
  ('every_form')
) as r(name)
on conflict(name) do nothing;

insert into wf.workflow_version (workflow_def_id, content_hash, spec_format, outputs_json)
select d.workflow_def_id, r.content_hash, cast(r.spec_format as int), cast(r.outputs_json as jsonb)
from (values
  ('e427b86fe7af883a283f0c5d4ca25eadd0e5da1a27c9e6a3850785b2314eba0d', 1, '[{"order":0,"name":"total","program":[["var","total","every_form",[]]]},{"order":1,"name":"action","program":[["var","set","every_form",[]]]},{"order":2,"name":"set","program":[["var","lines","every_form",[]],["len"]]}]')
) as r(content_hash, spec_format, outputs_json)
join wf.workflow_def as d on d.name = 'every_form'
on conflict(workflow_def_id, content_hash) do nothing;

insert into wf.workflow_action (action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select r.action_name, r.capability, cast(r.max_per_worker as int), cast(r.exclusive_worker as boolean), r.affinity_key_field, cast(r.prefer_previous_worker as boolean), cast(r.prefer_continue_group as boolean), cast(r.require_previous_worker as boolean), cast(r.max_concurrent as int), cast(r.rate_per_minute as int), cast(r.max_deliveries as int)
from (values
  ('a.b', 'default', null, false, null, false, false, false, null, null, 5),
  ('sample.trim-fastq', 'default', null, false, null, false, false, false, null, null, 5),
  ('w.pack', 'default', null, false, null, false, false, false, null, null, 5)
) as r(action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
order by r.action_name
on conflict(action_name) do nothing;

insert into wf.workflow_action_revision (action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
select r.action_name, r.revision, r.description, r.version, cast(r.input_schema_json as jsonb), cast(r.output_schema_json as jsonb), cast(r.result_codes_json as jsonb), cast(r.idempotent as boolean), cast(r.timeout_ms as bigint), cast(r.sensitive_json as jsonb)
from (values
  ('a.b', '07ebceb65ce164e22ace30e6def84470d86cd41a86686b0ffc3dc458547a318b', null, null, null, null, '{}', true, null, '[]'),
  ('sample.trim-fastq', 'ca15bb2ef9847629c0cac25cf62abad7503151c582a5ddef27f6d03a06cb3b13', null, null, '{"type":"object","properties":{"set":{"type":"integer"},"in":{"type":"array","items":{"type":"integer"}},"text":{"type":"string"}},"required":["set","in","text"]}', null, '{"0":"ok","1":"short"}', true, null, '[]'),
  ('w.pack', '3fb09a2b46089fd8543de79da73f97ac93cf1e337da4ab37010513109ba7cd41', null, null, null, '{"type":"object","properties":{"parcel":{"type":"string"}},"required":["parcel"]}', '{}', true, null, '[]')
) as r(action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
order by r.action_name
on conflict(action_name, revision) do nothing;

insert into wf.workflow_version_action (workflow_version_id, action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select v.workflow_version_id, r.action_name, r.revision, r.capability, cast(r.max_per_worker as int), cast(r.exclusive_worker as boolean), r.affinity_key_field, cast(r.prefer_previous_worker as boolean), cast(r.prefer_continue_group as boolean), cast(r.require_previous_worker as boolean), cast(r.max_concurrent as int), cast(r.rate_per_minute as int), cast(r.max_deliveries as int)
from (values
  ('sample.trim-fastq', 'ca15bb2ef9847629c0cac25cf62abad7503151c582a5ddef27f6d03a06cb3b13', 'default', null, false, null, false, false, false, null, null, 5),
  ('a.b', '07ebceb65ce164e22ace30e6def84470d86cd41a86686b0ffc3dc458547a318b', 'default', null, false, null, false, false, false, null, null, 5),
  ('w.pack', '3fb09a2b46089fd8543de79da73f97ac93cf1e337da4ab37010513109ba7cd41', 'default', null, false, null, false, false, false, null, null, 5)
) as r(action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
join wf.workflow_def as d on d.name = 'every_form'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'e427b86fe7af883a283f0c5d4ca25eadd0e5da1a27c9e6a3850785b2314eba0d'
where v.published_at is null;

insert into wf.data_type (workflow_version_id, type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
select v.workflow_version_id, cast(r.type_id as int), cast(r.parent_type_id as int), r.path_kind, r.name, r.base_type, cast(r.is_required as boolean), cast(r.is_nullable as boolean), cast(r.enum_json as jsonb)
from (values
  (1, null, 'root', null, 'list', true, false, null),
  (2, 1, 'item', null, 'object', true, false, null),
  (3, 2, 'field', 'sku', 'string', true, false, null),
  (4, 2, 'field', 'qty', 'int', false, false, null),
  (5, 2, 'field', 'tags', 'list', true, false, null),
  (6, 5, 'item', null, 'list', true, false, null),
  (7, 6, 'item', null, 'string', true, false, null),
  (8, null, 'root', null, 'string', true, true, '["red","green"]'),
  (9, null, 'root', null, 'any', true, false, null),
  (10, null, 'root', null, 'bool', true, false, null),
  (11, null, 'root', null, 'number', true, false, null),
  (12, null, 'root', null, 'int', true, false, null),
  (13, null, 'root', null, 'object', true, false, null),
  (14, null, 'root', null, 'int', true, true, null),
  (15, null, 'root', null, 'int', true, false, null)
) as r(type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
join wf.workflow_def as d on d.name = 'every_form'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'e427b86fe7af883a283f0c5d4ca25eadd0e5da1a27c9e6a3850785b2314eba0d'
where v.published_at is null;

insert into wf.workflow_node (workflow_version_id, node_key, node_type, is_generated, action_name, action_revision, attributes_json)
select v.workflow_version_id, r.node_key, r.node_type, cast(r.is_generated as boolean), r.action_name, r.action_revision, cast(r.attributes_json as jsonb)
from (values
  ('every_form', 'SEQUENCE', false, null, null, '{"timeout_ms":86400000}'),
  ('reserve', 'ACTION', false, 'sample.trim-fastq', 'ca15bb2ef9847629c0cac25cf62abad7503151c582a5ddef27f6d03a06cb3b13', '{"priority":-5,"lease_ms":30000,"timeout_ms":5400000,"delay_ms":500,"retry":{"limit":5,"backoff_ms":2000,"factor_hundredths":150,"max_ms":60000,"jitter":true,"on":["any",-3,"lease"]},"dispatch":{"max_per_worker":2,"exclusive_worker":true,"affinity_key_field":"text","prefer_previous_worker":false}}'),
  ('sequence_1', 'SEQUENCE', false, null, null, '{"timeout_ms":300000}'),
  ('bare', 'ACTION', false, 'a.b', '07ebceb65ce164e22ace30e6def84470d86cd41a86686b0ffc3dc458547a318b', '{}'),
  ('sequence_1.on_error', 'SEQUENCE', true, null, null, '{}'),
  ('set_1', 'SEQUENCE', false, null, null, '{}'),
  ('sequence_1.finally', 'SEQUENCE', true, null, null, '{}'),
  ('set_2', 'SEQUENCE', false, null, null, '{}'),
  ('set', 'SEQUENCE', false, null, null, '{}'),
  ('both', 'PARALLEL', false, null, null, '{"limit":4,"join":1,"keep_going":true,"timeout_ms":3600000}'),
  ('left', 'SEQUENCE', false, null, null, '{}'),
  ('left.sleep_1', 'SEQUENCE', false, null, null, '{"sleep_ms":5000}'),
  ('right', 'SEQUENCE', false, null, null, '{}'),
  ('right.fail_1', 'SEQUENCE', false, null, null, '{"fail":{"code":-20,"message":[["lit","over "],["var","total","every_form",[]],["cat",2]]}}'),
  ('if_1', 'IF', false, null, null, '{"condition":[["ctx","task",["reserve","resultCode"]],["lit",0],["ne"]]}'),
  ('if_1.then', 'SEQUENCE', true, null, null, '{}'),
  ('set_3', 'SEQUENCE', false, null, null, '{}'),
  ('if_1.else', 'SEQUENCE', true, null, null, '{}'),
  ('if_2', 'IF', false, null, null, '{"condition":[["ctx","task",["bare","resultCode"]],["lit",0],["ne"]]}'),
  ('if_2.then', 'SEQUENCE', true, null, null, '{}'),
  ('set_4', 'SEQUENCE', false, null, null, '{}'),
  ('if_2.else', 'SEQUENCE', true, null, null, '{}'),
  ('fail_1', 'SEQUENCE', false, null, null, '{"fail":{"code":-1,"message":[["lit","result code -1"]]}}'),
  ('keyed', 'IF', false, null, null, '{"condition":[["defined",["var","total","every_form",[]]],["not"],["jf",13],["lit",1],["lit",2],["var","total","every_form",[]],["neg"],["mul"],["lit",3],["div"],["lit",4],["mod"],["add"],["lit",5],["ne"],["bool"],["jt",5],["lit","a"],["lit",null],["arr",1],["in"],["bool"]]}'),
  ('keyed.then', 'SEQUENCE', true, null, null, '{}'),
  ('switch_1', 'SWITCH', false, null, null, '{"subject":[["ctx","task",["reserve","resultCode"]]]}'),
  ('switch_1.case_0', 'SEQUENCE', true, null, null, '{}'),
  ('switch_1.case_1', 'SEQUENCE', true, null, null, '{}'),
  ('set_5', 'SEQUENCE', false, null, null, '{}'),
  ('switch_1.default', 'SEQUENCE', true, null, null, '{}'),
  ('by_value', 'SWITCH', false, null, null, '{"subject":[["var","total","every_form",[]],["lit",1],["add"]]}'),
  ('by_value.case_0', 'SEQUENCE', true, null, null, '{}'),
  ('by_value.default', 'SEQUENCE', true, null, null, '{}'),
  ('count', 'REPEAT', false, null, null, '{"count":[["lit",3]],"counter":"i","keep":2}'),
  ('count.body', 'SEQUENCE', true, null, null, '{}'),
  ('count.set_1', 'SEQUENCE', false, null, null, '{}'),
  ('repeat_1', 'REPEAT', false, null, null, '{"count":[["var","total","every_form",[]]]}'),
  ('repeat_1.body', 'SEQUENCE', true, null, null, '{}'),
  ('looping', 'WHILE', false, null, null, '{"condition":[["var","total","every_form",[]],["lit",3],["lt"]],"max":5,"keep":10}'),
  ('looping.body', 'SEQUENCE', true, null, null, '{}'),
  ('looping.set_1', 'SEQUENCE', false, null, null, '{}'),
  ('while_1', 'WHILE', false, null, null, '{"condition":[["ctx","task",["reserve","resultCode"]],["lit",0],["ne"]],"max":3}'),
  ('while_1.body', 'SEQUENCE', true, null, null, '{}'),
  ('each', 'FOREACH', false, null, null, '{"item":"item","index":"i","parallel":8,"batch":10,"tolerate":{"percent":5},"keep_going":true,"reuse":{"fingerprint":"740213013c874ece7fa21ac817b915efa13848800508d0ab7abead3023dbac1c","reads":[["var","i","each.body",[]],["var","on","every_form",["odd key"]]]}}'),
  ('each.body', 'SEQUENCE', true, null, null, '{}'),
  ('pack', 'ACTION', false, 'w.pack', '3fb09a2b46089fd8543de79da73f97ac93cf1e337da4ab37010513109ba7cd41', '{}'),
  ('foreach_1', 'FOREACH', false, null, null, '{"item":"x","parallel":0,"tolerate":{"count":1}}'),
  ('foreach_1.body', 'SEQUENCE', true, null, null, '{}'),
  ('delivered', 'WAIT_EVENT', false, null, null, '{"event_type":"courier.delivered","correlate":[["var","total","every_form",[]]],"timeout_ms":259200000}'),
  ('delivered.timeout', 'SEQUENCE', true, null, null, '{}'),
  ('delivered.set_1', 'SEQUENCE', false, null, null, '{}'),
  ('bare_wait', 'WAIT_EVENT', false, null, null, '{"event_type":"x"}')
) as r(node_key, node_type, is_generated, action_name, action_revision, attributes_json)
join wf.workflow_def as d on d.name = 'every_form'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'e427b86fe7af883a283f0c5d4ca25eadd0e5da1a27c9e6a3850785b2314eba0d'
where v.published_at is null;

insert into wf.workflow_edge (workflow_version_id, parent_key, child_key, branch_kind, child_order, case_value)
select v.workflow_version_id, r.parent_key, r.child_key, r.branch_kind, cast(r.child_order as int), cast(r.case_value as jsonb)
from (values
  ('every_form', 'reserve', 'SEQUENCE', 0, null),
  ('every_form', 'sequence_1', 'SEQUENCE', 1, null),
  ('every_form', 'set', 'SEQUENCE', 2, null),
  ('every_form', 'both', 'SEQUENCE', 3, null),
  ('every_form', 'if_1', 'SEQUENCE', 4, null),
  ('every_form', 'keyed', 'SEQUENCE', 5, null),
  ('every_form', 'switch_1', 'SEQUENCE', 6, null),
  ('every_form', 'by_value', 'SEQUENCE', 7, null),
  ('every_form', 'count', 'SEQUENCE', 8, null),
  ('every_form', 'repeat_1', 'SEQUENCE', 9, null),
  ('every_form', 'looping', 'SEQUENCE', 10, null),
  ('every_form', 'while_1', 'SEQUENCE', 11, null),
  ('every_form', 'each', 'SEQUENCE', 12, null),
  ('every_form', 'foreach_1', 'SEQUENCE', 13, null),
  ('every_form', 'delivered', 'SEQUENCE', 14, null),
  ('every_form', 'bare_wait', 'SEQUENCE', 15, null),
  ('sequence_1', 'bare', 'SEQUENCE', 0, null),
  ('sequence_1', 'sequence_1.on_error', 'ON_ERROR', 1, null),
  ('sequence_1', 'sequence_1.finally', 'FINALLY', 2, null),
  ('sequence_1.on_error', 'set_1', 'SEQUENCE', 0, null),
  ('sequence_1.finally', 'set_2', 'SEQUENCE', 0, null),
  ('both', 'left', 'PARALLEL', 0, null),
  ('both', 'right', 'PARALLEL', 1, null),
  ('left', 'left.sleep_1', 'SEQUENCE', 0, null),
  ('right', 'right.fail_1', 'SEQUENCE', 0, null),
  ('if_1', 'if_1.then', 'THEN', 0, null),
  ('if_1', 'if_1.else', 'ELSE', 1, null),
  ('if_1.then', 'set_3', 'SEQUENCE', 0, null),
  ('if_1.else', 'if_2', 'SEQUENCE', 0, null),
  ('if_2', 'if_2.then', 'THEN', 0, null),
  ('if_2', 'if_2.else', 'ELSE', 1, null),
  ('if_2.then', 'set_4', 'SEQUENCE', 0, null),
  ('if_2.else', 'fail_1', 'SEQUENCE', 0, null),
  ('keyed', 'keyed.then', 'THEN', 0, null),
  ('switch_1', 'switch_1.case_0', 'CASE', 0, '[0,1]'),
  ('switch_1', 'switch_1.case_1', 'CASE', 1, '[-2,"x"]'),
  ('switch_1', 'switch_1.default', 'DEFAULT', 2, null),
  ('switch_1.case_1', 'set_5', 'SEQUENCE', 0, null),
  ('by_value', 'by_value.case_0', 'CASE', 0, '[1]'),
  ('by_value', 'by_value.default', 'DEFAULT', 1, null),
  ('count', 'count.body', 'BODY', 0, null),
  ('count.body', 'count.set_1', 'SEQUENCE', 0, null),
  ('repeat_1', 'repeat_1.body', 'BODY', 0, null),
  ('looping', 'looping.body', 'BODY', 0, null),
  ('looping.body', 'looping.set_1', 'SEQUENCE', 0, null),
  ('while_1', 'while_1.body', 'BODY', 0, null),
  ('each', 'each.body', 'BODY', 0, null),
  ('each.body', 'pack', 'SEQUENCE', 0, null),
  ('foreach_1', 'foreach_1.body', 'BODY', 0, null),
  ('delivered', 'delivered.timeout', 'TIMEOUT', 0, null),
  ('delivered.timeout', 'delivered.set_1', 'SEQUENCE', 0, null)
) as r(parent_key, child_key, branch_kind, child_order, case_value)
join wf.workflow_def as d on d.name = 'every_form'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'e427b86fe7af883a283f0c5d4ca25eadd0e5da1a27c9e6a3850785b2314eba0d'
where v.published_at is null;

insert into wf.workflow_input_template (workflow_version_id, node_key, template_json)
select v.workflow_version_id, r.node_key, cast(r.template_json as jsonb)
from (values
  ('reserve', '{"set":1,"in":[1,2],"text":"Dear ${var.colour},\n  yours \"truly\" $${x} é\n"}'),
  ('bare', '{}'),
  ('pack', '{"label":null,"whole":"${var.item}"}')
) as r(node_key, template_json)
join wf.workflow_def as d on d.name = 'every_form'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'e427b86fe7af883a283f0c5d4ca25eadd0e5da1a27c9e6a3850785b2314eba0d'
where v.published_at is null;

insert into wf.workflow_input_binding (workflow_version_id, node_key, pointer, program_json)
select v.workflow_version_id, r.node_key, r.pointer, cast(r.program_json as jsonb)
from (values
  ('pack', '/label', '[["var","on","every_form",["odd key"]],["lit","-"],["var","i","each.body",[]],["cat",3]]')
) as r(node_key, pointer, program_json)
join wf.workflow_def as d on d.name = 'every_form'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'e427b86fe7af883a283f0c5d4ca25eadd0e5da1a27c9e6a3850785b2314eba0d'
where v.published_at is null;

insert into wf.variable_output_binding (workflow_version_id, node_key, binding_order, binding_kind, name, owner_key, program_json)
select v.workflow_version_id, r.node_key, cast(r.binding_order as int), r.binding_kind, r.name, r.owner_key, cast(r.program_json as jsonb)
from (values
  ('reserve', 0, 'var', 'total', 'every_form', '[["out",["a",0,"odd key",["var","total","every_form",[]]]],["alt",1],["code"]]'),
  ('set_1', 0, 'var', 'total', 'every_form', '[["lit",1]]'),
  ('set_2', 0, 'var', 'total', 'every_form', '[["lit",2]]'),
  ('set_3', 0, 'var', 'total', 'every_form', '[["lit",1]]'),
  ('set_4', 0, 'var', 'total', 'every_form', '[["ctx","workflow",[]],["len"]]'),
  ('set_5', 0, 'var', 'here', 'switch_1.case_1', '[["lit",1]]'),
  ('count.set_1', 0, 'var', 'total', 'every_form', '[["var","i","count.body",[]]]'),
  ('looping.set_1', 0, 'var', 'total', 'every_form', '[["var","total","every_form",[]],["lit",1],["add"]]'),
  ('each', 0, 'collect', 'packed', 'every_form', '[["ctx","task",["pack","output","parcel"]]]'),
  ('delivered', 0, 'var', 'at', 'every_form', '[["event",["payload","at"]]]'),
  ('delivered.set_1', 0, 'var', 'total', 'every_form', '[["lit",9]]')
) as r(node_key, binding_order, binding_kind, name, owner_key, program_json)
join wf.workflow_def as d on d.name = 'every_form'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'e427b86fe7af883a283f0c5d4ca25eadd0e5da1a27c9e6a3850785b2314eba0d'
where v.published_at is null;

insert into wf.node_scope_default (workflow_version_id, owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
select v.workflow_version_id, r.owner_key, cast(r.variable_order as int), r.name, r.variable_kind, cast(r.type_id as int), cast(r.is_required as boolean), cast(r.program_json as jsonb)
from (values
  ('every_form', 0, 'lines', 'input', 1, false, '[["lit","a"],["lit",1],["arr",0],["lit",-15.0],["obj",["sku","qty","tags","odd key"]],["arr",1]]'),
  ('every_form', 1, 'colour', 'input', 8, false, '[["lit",null]]'),
  ('every_form', 2, 'input', 'input', 9, true, null),
  ('every_form', 3, 'set', 'input', 10, false, '[["lit",true]]'),
  ('every_form', 4, 'in', 'input', 11, false, '[["lit",1000]]'),
  ('every_form', 0, 'total', 'var', 12, false, '[["lit",0]]'),
  ('every_form', 1, 'on', 'var', 13, false, '[["obj",[]]]'),
  ('every_form', 2, 'packed', 'set', null, false, null),
  ('every_form', 3, 'at', 'set', null, false, null),
  ('switch_1.case_1', 0, 'here', 'var', 14, false, null),
  ('count.body', 0, 'i', 'loop', null, false, null),
  ('each.body', 0, 'item', 'loop', null, false, null),
  ('each.body', 1, 'i', 'loop', null, false, null),
  ('each.body', 2, 'sum', 'var', 15, false, '[["lit",0]]'),
  ('foreach_1.body', 0, 'x', 'loop', null, false, null)
) as r(owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
join wf.workflow_def as d on d.name = 'every_form'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'e427b86fe7af883a283f0c5d4ca25eadd0e5da1a27c9e6a3850785b2314eba0d'
where v.published_at is null;

insert into wf.collection_binding (workflow_version_id, node_key, binding_kind, program_json)
select v.workflow_version_id, r.node_key, r.binding_kind, cast(r.program_json as jsonb)
from (values
  ('each', 'variable', '[["var","lines","every_form",[]]]'),
  ('foreach_1', 'program', '[["lit",1],["arr",1]]')
) as r(node_key, binding_kind, program_json)
join wf.workflow_def as d on d.name = 'every_form'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'e427b86fe7af883a283f0c5d4ca25eadd0e5da1a27c9e6a3850785b2314eba0d'
where v.published_at is null;

insert into wf.event_subscription (workflow_version_id, subscription_order, event_type, mode, filter_json, inputs_json)
select v.workflow_version_id, cast(r.subscription_order as int), r.event_type, r.mode, cast(r.filter_json as jsonb), cast(r.inputs_json as jsonb)
from (values
  (0, 'line.added', 'start_or_signal', '[{"path":["region","code"],"value":"eu"},{"path":["size"],"value":3},{"path":["live"],"value":true}]', '[{"name":"lines","program":[["event",["payload","lines"]]]},{"name":"input","program":[["event",["payload","input"]]]}]'),
  (1, 'line.gone', 'signal_wait', '[]', '[]'),
  (2, 'courier.delivered', 'signal_wait', '[]', '[]'),
  (3, 'x', 'signal_wait', '[]', '[]')
) as r(subscription_order, event_type, mode, filter_json, inputs_json)
join wf.workflow_def as d on d.name = 'every_form'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'e427b86fe7af883a283f0c5d4ca25eadd0e5da1a27c9e6a3850785b2314eba0d'
where v.published_at is null;

select wf.wf_set_version_notes(p_name => 'every_form', p_content_hash => 'e427b86fe7af883a283f0c5d4ca25eadd0e5da1a27c9e6a3850785b2314eba0d', p_source_map => cast('{"file":"every_form.wf","nodes":{"every_form":[7,10],"reserve":[28,10],"sequence_1":[44,3],"bare":[46,12],"sequence_1.on_error":[47,14],"set_1":[48,5],"sequence_1.finally":[49,13],"set_2":[50,5],"set":[52,12],"both":[53,12],"left":[54,14],"left.sleep_1":[54,21],"right":[55,14],"right.fail_1":[55,22],"if_1":[57,3],"if_1.then":[57,14],"set_3":[57,16],"if_1.else":[57,41],"if_2":[57,41],"if_2.then":[57,49],"set_4":[57,51],"if_2.else":[57,88],"fail_1":[57,90],"keyed":[58,6],"keyed.then":[58,93],"switch_1":[59,3],"switch_1.case_0":[61,21],"switch_1.case_1":[62,18],"set_5":[62,36],"switch_1.default":[63,13],"by_value":[65,10],"by_value.case_0":[65,43],"by_value.default":[65,54],"count":[66,10],"count.body":[66,31],"count.set_1":[66,33],"repeat_1":[67,3],"repeat_1.body":[67,20],"looping":[68,9],"looping.body":[68,46],"looping.set_1":[68,48],"while_1":[69,3],"while_1.body":[69,23],"each":[70,11],"each.body":[70,87],"pack":[72,12],"foreach_1":[75,3],"foreach_1.body":[75,40],"delivered":[76,14],"delivered.timeout":[79,16],"delivered.set_1":[79,18],"bare_wait":[82,14]}}' as jsonb), p_description => 'Every form.');

select p.workflow_version_id, p.version_no, p.was_new
from wf.wf_publish_workflow_version(p_name => 'every_form', p_content_hash => 'e427b86fe7af883a283f0c5d4ca25eadd0e5da1a27c9e6a3850785b2314eba0d', p_activate => true, p_update_actions => false) as p;

commit;
-- workflow: second
-- content: d8d4dc03f746503920b099b5d346df2ef0f0512f66536c05e08b948ec8fb41e6
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
  ('second')
) as r(name)
on conflict(name) do nothing;

insert into wf.workflow_version (workflow_def_id, content_hash, spec_format, outputs_json)
select d.workflow_def_id, r.content_hash, cast(r.spec_format as int), cast(r.outputs_json as jsonb)
from (values
  ('d8d4dc03f746503920b099b5d346df2ef0f0512f66536c05e08b948ec8fb41e6', 1, '[]')
) as r(content_hash, spec_format, outputs_json)
join wf.workflow_def as d on d.name = 'second'
on conflict(workflow_def_id, content_hash) do nothing;

insert into wf.workflow_node (workflow_version_id, node_key, node_type, is_generated, action_name, action_revision, attributes_json)
select v.workflow_version_id, r.node_key, r.node_type, cast(r.is_generated as boolean), r.action_name, r.action_revision, cast(r.attributes_json as jsonb)
from (values
  ('second', 'SEQUENCE', false, null, null, '{}')
) as r(node_key, node_type, is_generated, action_name, action_revision, attributes_json)
join wf.workflow_def as d on d.name = 'second'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = 'd8d4dc03f746503920b099b5d346df2ef0f0512f66536c05e08b948ec8fb41e6'
where v.published_at is null;

select wf.wf_set_version_notes(p_name => 'second', p_content_hash => 'd8d4dc03f746503920b099b5d346df2ef0f0512f66536c05e08b948ec8fb41e6', p_source_map => cast('{"file":"every_form.wf","nodes":{"second":[85,10]}}' as jsonb), p_description => null);

select p.workflow_version_id, p.version_no, p.was_new
from wf.wf_publish_workflow_version(p_name => 'second', p_content_hash => 'd8d4dc03f746503920b099b5d346df2ef0f0512f66536c05e08b948ec8fb41e6', p_activate => true, p_update_actions => false) as p;

commit;
