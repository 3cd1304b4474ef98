-- workflow: every_form
-- content: e427b86fe7af883a283f0c5d4ca25eadd0e5da1a27c9e6a3850785b2314eba0d
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
  (N'every_form')
) as r(name)
where not exists(select 1 from wf.workflow_def as x where x.name = r.name);
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_version (workflow_def_id, content_hash, spec_format, outputs_json)
select d.workflow_def_id, r.content_hash, r.spec_format, r.outputs_json
from (values
  (N'e427b86fe7af883a283f0c5d4ca25eadd0e5da1a27c9e6a3850785b2314eba0d', 1, N'[{"order":0,"name":"total","program":[["var","total","every_form",[]]]},{"order":1,"name":"action","program":[["var","set","every_form",[]]]},{"order":2,"name":"set","program":[["var","lines","every_form",[]],["len"]]}]')
) as r(content_hash, spec_format, outputs_json)
join wf.workflow_def as d on d.name = N'every_form'
where not exists(select 1 from wf.workflow_version as x where x.workflow_def_id = d.workflow_def_id and x.content_hash = r.content_hash);
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_action (action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select r.action_name, r.capability, r.max_per_worker, r.exclusive_worker, r.affinity_key_field, r.prefer_previous_worker, r.prefer_continue_group, r.require_previous_worker, r.max_concurrent, r.rate_per_minute, r.max_deliveries
from (values
  (N'a.b', N'default', null, 0, null, 0, 0, 0, null, null, 5),
  (N'sample.trim-fastq', N'default', null, 0, null, 0, 0, 0, null, null, 5),
  (N'w.pack', N'default', null, 0, null, 0, 0, 0, null, null, 5)
) as r(action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
where not exists(select 1 from wf.workflow_action as x where x.action_name = r.action_name)
order by r.action_name;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_action_revision (action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
select r.action_name, r.revision, r.description, r.version, r.input_schema_json, r.output_schema_json, r.result_codes_json, r.idempotent, r.timeout_ms, r.sensitive_json
from (values
  (N'a.b', N'07ebceb65ce164e22ace30e6def84470d86cd41a86686b0ffc3dc458547a318b', null, null, null, null, N'{}', 1, null, N'[]'),
  (N'sample.trim-fastq', N'ca15bb2ef9847629c0cac25cf62abad7503151c582a5ddef27f6d03a06cb3b13', null, null, N'{"type":"object","properties":{"set":{"type":"integer"},"in":{"type":"array","items":{"type":"integer"}},"text":{"type":"string"}},"required":["set","in","text"]}', null, N'{"0":"ok","1":"short"}', 1, null, N'[]'),
  (N'w.pack', N'3fb09a2b46089fd8543de79da73f97ac93cf1e337da4ab37010513109ba7cd41', null, null, null, N'{"type":"object","properties":{"parcel":{"type":"string"}},"required":["parcel"]}', N'{}', 1, null, N'[]')
) as r(action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
where not exists(select 1 from wf.workflow_action_revision as x where x.action_name = r.action_name and x.revision = r.revision)
order by r.action_name;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_version_action (workflow_version_id, action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select v.workflow_version_id, r.action_name, r.revision, r.capability, r.max_per_worker, r.exclusive_worker, r.affinity_key_field, r.prefer_previous_worker, r.prefer_continue_group, r.require_previous_worker, r.max_concurrent, r.rate_per_minute, r.max_deliveries
from (values
  (N'sample.trim-fastq', N'ca15bb2ef9847629c0cac25cf62abad7503151c582a5ddef27f6d03a06cb3b13', N'default', null, 0, null, 0, 0, 0, null, null, 5),
  (N'a.b', N'07ebceb65ce164e22ace30e6def84470d86cd41a86686b0ffc3dc458547a318b', N'default', null, 0, null, 0, 0, 0, null, null, 5),
  (N'w.pack', N'3fb09a2b46089fd8543de79da73f97ac93cf1e337da4ab37010513109ba7cd41', N'default', null, 0, null, 0, 0, 0, null, null, 5)
) as r(action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
join wf.workflow_def as d on d.name = N'every_form'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'e427b86fe7af883a283f0c5d4ca25eadd0e5da1a27c9e6a3850785b2314eba0d'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.data_type (workflow_version_id, type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
select v.workflow_version_id, r.type_id, r.parent_type_id, r.path_kind, r.name, r.base_type, r.is_required, r.is_nullable, r.enum_json
from (values
  (1, null, N'root', null, N'list', 1, 0, null),
  (2, 1, N'item', null, N'object', 1, 0, null),
  (3, 2, N'field', N'sku', N'string', 1, 0, null),
  (4, 2, N'field', N'qty', N'int', 0, 0, null),
  (5, 2, N'field', N'tags', N'list', 1, 0, null),
  (6, 5, N'item', null, N'list', 1, 0, null),
  (7, 6, N'item', null, N'string', 1, 0, null),
  (8, null, N'root', null, N'string', 1, 1, N'["red","green"]'),
  (9, null, N'root', null, N'any', 1, 0, null),
  (10, null, N'root', null, N'bool', 1, 0, null),
  (11, null, N'root', null, N'number', 1, 0, null),
  (12, null, N'root', null, N'int', 1, 0, null),
  (13, null, N'root', null, N'object', 1, 0, null),
  (14, null, N'root', null, N'int', 1, 1, null),
  (15, null, N'root', null, N'int', 1, 0, null)
) as r(type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
join wf.workflow_def as d on d.name = N'every_form'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'e427b86fe7af883a283f0c5d4ca25eadd0e5da1a27c9e6a3850785b2314eba0d'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_node (workflow_version_id, node_key, node_type, is_generated, action_name, action_revision, attributes_json)
select v.workflow_version_id, r.node_key, r.node_type, r.is_generated, r.action_name, r.action_revision, r.attributes_json
from (values
  (N'every_form', N'SEQUENCE', 0, null, null, N'{"timeout_ms":86400000}'),
  (N'reserve', N'ACTION', 0, N'sample.trim-fastq', N'ca15bb2ef9847629c0cac25cf62abad7503151c582a5ddef27f6d03a06cb3b13', N'{"priority":-5,"lease_ms":30000,"timeout_ms":5400000,"delay_ms":500,"retry":{"limit":5,"backoff_ms":2000,"factor_hundredths":150,"max_ms":60000,"jitter":true,"on":["any",-3,"lease"]},"dispatch":{"max_per_worker":2,"exclusive_worker":true,"affinity_key_field":"text","prefer_previous_worker":false}}'),
  (N'sequence_1', N'SEQUENCE', 0, null, null, N'{"timeout_ms":300000}'),
  (N'bare', N'ACTION', 0, N'a.b', N'07ebceb65ce164e22ace30e6def84470d86cd41a86686b0ffc3dc458547a318b', N'{}'),
  (N'sequence_1.on_error', N'SEQUENCE', 1, null, null, N'{}'),
  (N'set_1', N'SEQUENCE', 0, null, null, N'{}'),
  (N'sequence_1.finally', N'SEQUENCE', 1, null, null, N'{}'),
  (N'set_2', N'SEQUENCE', 0, null, null, N'{}'),
  (N'set', N'SEQUENCE', 0, null, null, N'{}'),
  (N'both', N'PARALLEL', 0, null, null, N'{"limit":4,"join":1,"keep_going":true,"timeout_ms":3600000}'),
  (N'left', N'SEQUENCE', 0, null, null, N'{}'),
  (N'left.sleep_1', N'SEQUENCE', 0, null, null, N'{"sleep_ms":5000}'),
  (N'right', N'SEQUENCE', 0, null, null, N'{}'),
  (N'right.fail_1', N'SEQUENCE', 0, null, null, N'{"fail":{"code":-20,"message":[["lit","over "],["var","total","every_form",[]],["cat",2]]}}'),
  (N'if_1', N'IF', 0, null, null, N'{"condition":[["ctx","task",["reserve","resultCode"]],["lit",0],["ne"]]}'),
  (N'if_1.then', N'SEQUENCE', 1, null, null, N'{}'),
  (N'set_3', N'SEQUENCE', 0, null, null, N'{}'),
  (N'if_1.else', N'SEQUENCE', 1, null, null, N'{}'),
  (N'if_2', N'IF', 0, null, null, N'{"condition":[["ctx","task",["bare","resultCode"]],["lit",0],["ne"]]}'),
  (N'if_2.then', N'SEQUENCE', 1, null, null, N'{}'),
  (N'set_4', N'SEQUENCE', 0, null, null, N'{}'),
  (N'if_2.else', N'SEQUENCE', 1, null, null, N'{}'),
  (N'fail_1', N'SEQUENCE', 0, null, null, N'{"fail":{"code":-1,"message":[["lit","result code -1"]]}}'),
  (N'keyed', N'IF', 0, null, null, N'{"condition":[["defined",["var","total","every_form",[]]],["not"],["jf",13],["lit",1],["lit",2],["var","total","every_form",[]],["neg"],["mul"],["lit",3],["div"],["lit",4],["mod"],["add"],["lit",5],["ne"],["bool"],["jt",5],["lit","a"],["lit",null],["arr",1],["in"],["bool"]]}'),
  (N'keyed.then', N'SEQUENCE', 1, null, null, N'{}'),
  (N'switch_1', N'SWITCH', 0, null, null, N'{"subject":[["ctx","task",["reserve","resultCode"]]]}'),
  (N'switch_1.case_0', N'SEQUENCE', 1, null, null, N'{}'),
  (N'switch_1.case_1', N'SEQUENCE', 1, null, null, N'{}'),
  (N'set_5', N'SEQUENCE', 0, null, null, N'{}'),
  (N'switch_1.default', N'SEQUENCE', 1, null, null, N'{}'),
  (N'by_value', N'SWITCH', 0, null, null, N'{"subject":[["var","total","every_form",[]],["lit",1],["add"]]}'),
  (N'by_value.case_0', N'SEQUENCE', 1, null, null, N'{}'),
  (N'by_value.default', N'SEQUENCE', 1, null, null, N'{}'),
  (N'count', N'REPEAT', 0, null, null, N'{"count":[["lit",3]],"counter":"i","keep":2}'),
  (N'count.body', N'SEQUENCE', 1, null, null, N'{}'),
  (N'count.set_1', N'SEQUENCE', 0, null, null, N'{}'),
  (N'repeat_1', N'REPEAT', 0, null, null, N'{"count":[["var","total","every_form",[]]]}'),
  (N'repeat_1.body', N'SEQUENCE', 1, null, null, N'{}'),
  (N'looping', N'WHILE', 0, null, null, N'{"condition":[["var","total","every_form",[]],["lit",3],["lt"]],"max":5,"keep":10}'),
  (N'looping.body', N'SEQUENCE', 1, null, null, N'{}'),
  (N'looping.set_1', N'SEQUENCE', 0, null, null, N'{}'),
  (N'while_1', N'WHILE', 0, null, null, N'{"condition":[["ctx","task",["reserve","resultCode"]],["lit",0],["ne"]],"max":3}'),
  (N'while_1.body', N'SEQUENCE', 1, null, null, N'{}'),
  (N'each', N'FOREACH', 0, null, null, N'{"item":"item","index":"i","parallel":8,"batch":10,"tolerate":{"percent":5},"keep_going":true,"reuse":{"fingerprint":"740213013c874ece7fa21ac817b915efa13848800508d0ab7abead3023dbac1c","reads":[["var","i","each.body",[]],["var","on","every_form",["odd key"]]]}}'),
  (N'each.body', N'SEQUENCE', 1, null, null, N'{}'),
  (N'pack', N'ACTION', 0, N'w.pack', N'3fb09a2b46089fd8543de79da73f97ac93cf1e337da4ab37010513109ba7cd41', N'{}'),
  (N'foreach_1', N'FOREACH', 0, null, null, N'{"item":"x","parallel":0,"tolerate":{"count":1}}'),
  (N'foreach_1.body', N'SEQUENCE', 1, null, null, N'{}'),
  (N'delivered', N'WAIT_EVENT', 0, null, null, N'{"event_type":"courier.delivered","correlate":[["var","total","every_form",[]]],"timeout_ms":259200000}'),
  (N'delivered.timeout', N'SEQUENCE', 1, null, null, N'{}'),
  (N'delivered.set_1', N'SEQUENCE', 0, null, null, N'{}'),
  (N'bare_wait', N'WAIT_EVENT', 0, null, null, N'{"event_type":"x"}')
) as r(node_key, node_type, is_generated, action_name, action_revision, attributes_json)
join wf.workflow_def as d on d.name = N'every_form'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'e427b86fe7af883a283f0c5d4ca25eadd0e5da1a27c9e6a3850785b2314eba0d'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_edge (workflow_version_id, parent_key, child_key, branch_kind, child_order, case_value)
select v.workflow_version_id, r.parent_key, r.child_key, r.branch_kind, r.child_order, r.case_value
from (values
  (N'every_form', N'reserve', N'SEQUENCE', 0, null),
  (N'every_form', N'sequence_1', N'SEQUENCE', 1, null),
  (N'every_form', N'set', N'SEQUENCE', 2, null),
  (N'every_form', N'both', N'SEQUENCE', 3, null),
  (N'every_form', N'if_1', N'SEQUENCE', 4, null),
  (N'every_form', N'keyed', N'SEQUENCE', 5, null),
  (N'every_form', N'switch_1', N'SEQUENCE', 6, null),
  (N'every_form', N'by_value', N'SEQUENCE', 7, null),
  (N'every_form', N'count', N'SEQUENCE', 8, null),
  (N'every_form', N'repeat_1', N'SEQUENCE', 9, null),
  (N'every_form', N'looping', N'SEQUENCE', 10, null),
  (N'every_form', N'while_1', N'SEQUENCE', 11, null),
  (N'every_form', N'each', N'SEQUENCE', 12, null),
  (N'every_form', N'foreach_1', N'SEQUENCE', 13, null),
  (N'every_form', N'delivered', N'SEQUENCE', 14, null),
  (N'every_form', N'bare_wait', N'SEQUENCE', 15, null),
  (N'sequence_1', N'bare', N'SEQUENCE', 0, null),
  (N'sequence_1', N'sequence_1.on_error', N'ON_ERROR', 1, null),
  (N'sequence_1', N'sequence_1.finally', N'FINALLY', 2, null),
  (N'sequence_1.on_error', N'set_1', N'SEQUENCE', 0, null),
  (N'sequence_1.finally', N'set_2', N'SEQUENCE', 0, null),
  (N'both', N'left', N'PARALLEL', 0, null),
  (N'both', N'right', N'PARALLEL', 1, null),
  (N'left', N'left.sleep_1', N'SEQUENCE', 0, null),
  (N'right', N'right.fail_1', N'SEQUENCE', 0, null),
  (N'if_1', N'if_1.then', N'THEN', 0, null),
  (N'if_1', N'if_1.else', N'ELSE', 1, null),
  (N'if_1.then', N'set_3', N'SEQUENCE', 0, null),
  (N'if_1.else', N'if_2', N'SEQUENCE', 0, null),
  (N'if_2', N'if_2.then', N'THEN', 0, null),
  (N'if_2', N'if_2.else', N'ELSE', 1, null),
  (N'if_2.then', N'set_4', N'SEQUENCE', 0, null),
  (N'if_2.else', N'fail_1', N'SEQUENCE', 0, null),
  (N'keyed', N'keyed.then', N'THEN', 0, null),
  (N'switch_1', N'switch_1.case_0', N'CASE', 0, N'[0,1]'),
  (N'switch_1', N'switch_1.case_1', N'CASE', 1, N'[-2,"x"]'),
  (N'switch_1', N'switch_1.default', N'DEFAULT', 2, null),
  (N'switch_1.case_1', N'set_5', N'SEQUENCE', 0, null),
  (N'by_value', N'by_value.case_0', N'CASE', 0, N'[1]'),
  (N'by_value', N'by_value.default', N'DEFAULT', 1, null),
  (N'count', N'count.body', N'BODY', 0, null),
  (N'count.body', N'count.set_1', N'SEQUENCE', 0, null),
  (N'repeat_1', N'repeat_1.body', N'BODY', 0, null),
  (N'looping', N'looping.body', N'BODY', 0, null),
  (N'looping.body', N'looping.set_1', N'SEQUENCE', 0, null),
  (N'while_1', N'while_1.body', N'BODY', 0, null),
  (N'each', N'each.body', N'BODY', 0, null),
  (N'each.body', N'pack', N'SEQUENCE', 0, null),
  (N'foreach_1', N'foreach_1.body', N'BODY', 0, null),
  (N'delivered', N'delivered.timeout', N'TIMEOUT', 0, null),
  (N'delivered.timeout', N'delivered.set_1', N'SEQUENCE', 0, null)
) as r(parent_key, child_key, branch_kind, child_order, case_value)
join wf.workflow_def as d on d.name = N'every_form'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'e427b86fe7af883a283f0c5d4ca25eadd0e5da1a27c9e6a3850785b2314eba0d'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_input_template (workflow_version_id, node_key, template_json)
select v.workflow_version_id, r.node_key, r.template_json
from (values
  (N'reserve', N'{"set":1,"in":[1,2],"text":"Dear ${var.colour},\n  yours \"truly\" $${x} \u00e9\n"}'),
  (N'bare', N'{}'),
  (N'pack', N'{"label":null,"whole":"${var.item}"}')
) as r(node_key, template_json)
join wf.workflow_def as d on d.name = N'every_form'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'e427b86fe7af883a283f0c5d4ca25eadd0e5da1a27c9e6a3850785b2314eba0d'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_input_binding (workflow_version_id, node_key, pointer, program_json)
select v.workflow_version_id, r.node_key, r.pointer, r.program_json
from (values
  (N'pack', N'/label', N'[["var","on","every_form",["odd key"]],["lit","-"],["var","i","each.body",[]],["cat",3]]')
) as r(node_key, pointer, program_json)
join wf.workflow_def as d on d.name = N'every_form'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'e427b86fe7af883a283f0c5d4ca25eadd0e5da1a27c9e6a3850785b2314eba0d'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.variable_output_binding (workflow_version_id, node_key, binding_order, binding_kind, name, owner_key, program_json)
select v.workflow_version_id, r.node_key, r.binding_order, r.binding_kind, r.name, r.owner_key, r.program_json
from (values
  (N'reserve', 0, N'var', N'total', N'every_form', N'[["out",["a",0,"odd key",["var","total","every_form",[]]]],["alt",1],["code"]]'),
  (N'set_1', 0, N'var', N'total', N'every_form', N'[["lit",1]]'),
  (N'set_2', 0, N'var', N'total', N'every_form', N'[["lit",2]]'),
  (N'set_3', 0, N'var', N'total', N'every_form', N'[["lit",1]]'),
  (N'set_4', 0, N'var', N'total', N'every_form', N'[["ctx","workflow",[]],["len"]]'),
  (N'set_5', 0, N'var', N'here', N'switch_1.case_1', N'[["lit",1]]'),
  (N'count.set_1', 0, N'var', N'total', N'every_form', N'[["var","i","count.body",[]]]'),
  (N'looping.set_1', 0, N'var', N'total', N'every_form', N'[["var","total","every_form",[]],["lit",1],["add"]]'),
  (N'each', 0, N'collect', N'packed', N'every_form', N'[["ctx","task",["pack","output","parcel"]]]'),
  (N'delivered', 0, N'var', N'at', N'every_form', N'[["event",["payload","at"]]]'),
  (N'delivered.set_1', 0, N'var', N'total', N'every_form', N'[["lit",9]]')
) as r(node_key, binding_order, binding_kind, name, owner_key, program_json)
join wf.workflow_def as d on d.name = N'every_form'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'e427b86fe7af883a283f0c5d4ca25eadd0e5da1a27c9e6a3850785b2314eba0d'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.node_scope_default (workflow_version_id, owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
select v.workflow_version_id, r.owner_key, r.variable_order, r.name, r.variable_kind, r.type_id, r.is_required, r.program_json
from (values
  (N'every_form', 0, N'lines', N'input', 1, 0, N'[["lit","a"],["lit",1],["arr",0],["lit",-15.0],["obj",["sku","qty","tags","odd key"]],["arr",1]]'),
  (N'every_form', 1, N'colour', N'input', 8, 0, N'[["lit",null]]'),
  (N'every_form', 2, N'input', N'input', 9, 1, null),
  (N'every_form', 3, N'set', N'input', 10, 0, N'[["lit",true]]'),
  (N'every_form', 4, N'in', N'input', 11, 0, N'[["lit",1000]]'),
  (N'every_form', 0, N'total', N'var', 12, 0, N'[["lit",0]]'),
  (N'every_form', 1, N'on', N'var', 13, 0, N'[["obj",[]]]'),
  (N'every_form', 2, N'packed', N'set', null, 0, null),
  (N'every_form', 3, N'at', N'set', null, 0, null),
  (N'switch_1.case_1', 0, N'here', N'var', 14, 0, null),
  (N'count.body', 0, N'i', N'loop', null, 0, null),
  (N'each.body', 0, N'item', N'loop', null, 0, null),
  (N'each.body', 1, N'i', N'loop', null, 0, null),
  (N'each.body', 2, N'sum', N'var', 15, 0, N'[["lit",0]]'),
  (N'foreach_1.body', 0, N'x', N'loop', null, 0, null)
) as r(owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
join wf.workflow_def as d on d.name = N'every_form'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'e427b86fe7af883a283f0c5d4ca25eadd0e5da1a27c9e6a3850785b2314eba0d'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.collection_binding (workflow_version_id, node_key, binding_kind, program_json)
select v.workflow_version_id, r.node_key, r.binding_kind, r.program_json
from (values
  (N'each', N'variable', N'[["var","lines","every_form",[]]]'),
  (N'foreach_1', N'program', N'[["lit",1],["arr",1]]')
) as r(node_key, binding_kind, program_json)
join wf.workflow_def as d on d.name = N'every_form'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'e427b86fe7af883a283f0c5d4ca25eadd0e5da1a27c9e6a3850785b2314eba0d'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.event_subscription (workflow_version_id, subscription_order, event_type, mode, filter_json, inputs_json)
select v.workflow_version_id, r.subscription_order, r.event_type, r.mode, r.filter_json, r.inputs_json
from (values
  (0, N'line.added', N'start_or_signal', N'[{"path":["region","code"],"value":"eu"},{"path":["size"],"value":3},{"path":["live"],"value":true}]', N'[{"name":"lines","program":[["event",["payload","lines"]]]},{"name":"input","program":[["event",["payload","input"]]]}]'),
  (1, N'line.gone', N'signal_wait', N'[]', N'[]'),
  (2, N'courier.delivered', N'signal_wait', N'[]', N'[]'),
  (3, N'x', N'signal_wait', N'[]', N'[]')
) as r(subscription_order, event_type, mode, filter_json, inputs_json)
join wf.workflow_def as d on d.name = N'every_form'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'e427b86fe7af883a283f0c5d4ca25eadd0e5da1a27c9e6a3850785b2314eba0d'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

declare @v_name nvarchar(120) = N'every_form';
declare @v_content_hash nvarchar(64) = N'e427b86fe7af883a283f0c5d4ca25eadd0e5da1a27c9e6a3850785b2314eba0d';
declare @v_source_map nvarchar(max) = N'{"file":"every_form.wf","nodes":{"every_form":[7,10],"reserve":[28,10],"sequence_1":[44,3],"bare":[46,12],"sequence_1.on_error":[47,14],"set_1":[48,5],"sequence_1.finally":[49,13],"set_2":[50,5],"set":[52,12],"both":[53,12],"left":[54,14],"left.sleep_1":[54,21],"right":[55,14],"right.fail_1":[55,22],"if_1":[57,3],"if_1.then":[57,14],"set_3":[57,16],"if_1.else":[57,41],"if_2":[57,41],"if_2.then":[57,49],"set_4":[57,51],"if_2.else":[57,88],"fail_1":[57,90],"keyed":[58,6],"keyed.then":[58,93],"switch_1":[59,3],"switch_1.case_0":[61,21],"switch_1.case_1":[62,18],"set_5":[62,36],"switch_1.default":[63,13],"by_value":[65,10],"by_value.case_0":[65,43],"by_value.default":[65,54],"count":[66,10],"count.body":[66,31],"count.set_1":[66,33],"repeat_1":[67,3],"repeat_1.body":[67,20],"looping":[68,9],"looping.body":[68,46],"looping.set_1":[68,48],"while_1":[69,3],"while_1.body":[69,23],"each":[70,11],"each.body":[70,87],"pack":[72,12],"foreach_1":[75,3],"foreach_1.body":[75,40],"delivered":[76,14],"delivered.timeout":[79,16],"delivered.set_1":[79,18],"bare_wait":[82,14]}}';
declare @v_description nvarchar(max) = N'Every form.';
exec wf.wf_set_version_notes @name = @v_name, @content_hash = @v_content_hash,
    @source_map = @v_source_map, @description = @v_description;
exec wf.wf_publish_workflow_version @name = @v_name, @content_hash = @v_content_hash,
    @activate = 1, @update_actions = 0;
commit transaction;
GO
-- workflow: second
-- content: d8d4dc03f746503920b099b5d346df2ef0f0512f66536c05e08b948ec8fb41e6
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
  (N'second')
) as r(name)
where not exists(select 1 from wf.workflow_def as x where x.name = r.name);
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_version (workflow_def_id, content_hash, spec_format, outputs_json)
select d.workflow_def_id, r.content_hash, r.spec_format, r.outputs_json
from (values
  (N'd8d4dc03f746503920b099b5d346df2ef0f0512f66536c05e08b948ec8fb41e6', 1, N'[]')
) as r(content_hash, spec_format, outputs_json)
join wf.workflow_def as d on d.name = N'second'
where not exists(select 1 from wf.workflow_version as x where x.workflow_def_id = d.workflow_def_id and x.content_hash = r.content_hash);
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_node (workflow_version_id, node_key, node_type, is_generated, action_name, action_revision, attributes_json)
select v.workflow_version_id, r.node_key, r.node_type, r.is_generated, r.action_name, r.action_revision, r.attributes_json
from (values
  (N'second', N'SEQUENCE', 0, null, null, N'{}')
) as r(node_key, node_type, is_generated, action_name, action_revision, attributes_json)
join wf.workflow_def as d on d.name = N'second'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'd8d4dc03f746503920b099b5d346df2ef0f0512f66536c05e08b948ec8fb41e6'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

declare @v_name nvarchar(120) = N'second';
declare @v_content_hash nvarchar(64) = N'd8d4dc03f746503920b099b5d346df2ef0f0512f66536c05e08b948ec8fb41e6';
declare @v_source_map nvarchar(max) = N'{"file":"every_form.wf","nodes":{"second":[85,10]}}';
declare @v_description nvarchar(max) = null;
exec wf.wf_set_version_notes @name = @v_name, @content_hash = @v_content_hash,
    @source_map = @v_source_map, @description = @v_description;
exec wf.wf_publish_workflow_version @name = @v_name, @content_hash = @v_content_hash,
    @activate = 1, @update_actions = 0;
commit transaction;
GO
