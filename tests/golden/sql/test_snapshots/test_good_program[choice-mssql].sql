-- workflow: choice
-- content: 18e5910d92e476f8c40dbfcf1c691ef63458dbceec5a08b696469642ac0a8b2e
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
  (N'choice')
) as r(name)
where not exists(select 1 from wf.workflow_def as x where x.name = r.name);
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_version (workflow_def_id, content_hash, spec_format, outputs_json)
select d.workflow_def_id, r.content_hash, r.spec_format, r.outputs_json
from (values
  (N'18e5910d92e476f8c40dbfcf1c691ef63458dbceec5a08b696469642ac0a8b2e', 1, N'[]')
) as r(content_hash, spec_format, outputs_json)
join wf.workflow_def as d on d.name = N'choice'
where not exists(select 1 from wf.workflow_version as x where x.workflow_def_id = d.workflow_def_id and x.content_hash = r.content_hash);
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_action (action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select r.action_name, r.capability, r.max_per_worker, r.exclusive_worker, r.affinity_key_field, r.prefer_previous_worker, r.prefer_continue_group, r.require_previous_worker, r.max_concurrent, r.rate_per_minute, r.max_deliveries
from (values
  (N'part.check', N'lab', null, 0, null, 0, 0, 0, null, null, 5)
) as r(action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
where not exists(select 1 from wf.workflow_action as x where x.action_name = r.action_name)
order by r.action_name;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_action_revision (action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
select r.action_name, r.revision, r.description, r.version, r.input_schema_json, r.output_schema_json, r.result_codes_json, r.idempotent, r.timeout_ms, r.sensitive_json
from (values
  (N'part.check', N'8e7b72d408dc4c9a25e9007430c498eae719bdb5ca0519d908768ec96e1ce31c', null, null, null, N'{"type":"object","properties":{"good":{"type":"boolean"},"score":{"type":"number"}},"required":["good"]}', N'{"0":"fine","1":"poor","2":"bad"}', 0, null, N'[]')
) as r(action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
where not exists(select 1 from wf.workflow_action_revision as x where x.action_name = r.action_name and x.revision = r.revision)
order by r.action_name;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_version_action (workflow_version_id, action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select v.workflow_version_id, r.action_name, r.revision, r.capability, r.max_per_worker, r.exclusive_worker, r.affinity_key_field, r.prefer_previous_worker, r.prefer_continue_group, r.require_previous_worker, r.max_concurrent, r.rate_per_minute, r.max_deliveries
from (values
  (N'part.check', N'8e7b72d408dc4c9a25e9007430c498eae719bdb5ca0519d908768ec96e1ce31c', N'lab', null, 0, null, 0, 0, 0, null, null, 5)
) as r(action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
join wf.workflow_def as d on d.name = N'choice'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'18e5910d92e476f8c40dbfcf1c691ef63458dbceec5a08b696469642ac0a8b2e'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.data_type (workflow_version_id, type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
select v.workflow_version_id, r.type_id, r.parent_type_id, r.path_kind, r.name, r.base_type, r.is_required, r.is_nullable, r.enum_json
from (values
  (1, null, N'root', null, N'string', 1, 0, N'["small","large"]')
) as r(type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
join wf.workflow_def as d on d.name = N'choice'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'18e5910d92e476f8c40dbfcf1c691ef63458dbceec5a08b696469642ac0a8b2e'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_node (workflow_version_id, node_key, node_type, is_generated, action_name, action_revision, attributes_json)
select v.workflow_version_id, r.node_key, r.node_type, r.is_generated, r.action_name, r.action_revision, r.attributes_json
from (values
  (N'choice', N'SEQUENCE', 0, null, null, N'{}'),
  (N'check', N'ACTION', 0, N'part.check', N'8e7b72d408dc4c9a25e9007430c498eae719bdb5ca0519d908768ec96e1ce31c', N'{}'),
  (N'if_1', N'IF', 0, null, null, N'{"condition":[["ctx","task",["check","resultCode"]],["lit",0],["ne"]]}'),
  (N'if_1.then', N'SEQUENCE', 1, null, null, N'{}'),
  (N'set_1', N'SEQUENCE', 0, null, null, N'{}'),
  (N'if_1.else', N'SEQUENCE', 1, null, null, N'{}'),
  (N'if_2', N'IF', 0, null, null, N'{"condition":[["var","kind","choice",[]],["lit","large"],["eq"],["jf",5],["ctx","context",["checked"]],["alt",1],["lit",false],["not"],["bool"]]}'),
  (N'if_2.then', N'SEQUENCE', 1, null, null, N'{}'),
  (N'set_2', N'SEQUENCE', 0, null, null, N'{}'),
  (N'if_2.else', N'SEQUENCE', 1, null, null, N'{}'),
  (N'set_3', N'SEQUENCE', 0, null, null, N'{}'),
  (N'switch_1', N'SWITCH', 0, null, null, N'{"subject":[["ctx","task",["check","resultCode"]]]}'),
  (N'switch_1.case_0', N'SEQUENCE', 1, null, null, N'{}'),
  (N'switch_1.case_1', N'SEQUENCE', 1, null, null, N'{}'),
  (N'set_4', N'SEQUENCE', 0, null, null, N'{}'),
  (N'switch_1.default', N'SEQUENCE', 1, null, null, N'{}'),
  (N'fail_1', N'SEQUENCE', 0, null, null, N'{"fail":{"code":-1,"message":[["lit","unknown"]]}}'),
  (N'by_kind', N'SWITCH', 0, null, null, N'{"subject":[["var","kind","choice",[]]]}'),
  (N'by_kind.case_0', N'SEQUENCE', 1, null, null, N'{}'),
  (N'by_kind.set_1', N'SEQUENCE', 0, null, null, N'{}'),
  (N'by_kind.case_1', N'SEQUENCE', 1, null, null, N'{}'),
  (N'by_kind.set_2', N'SEQUENCE', 0, null, null, N'{}')
) as r(node_key, node_type, is_generated, action_name, action_revision, attributes_json)
join wf.workflow_def as d on d.name = N'choice'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'18e5910d92e476f8c40dbfcf1c691ef63458dbceec5a08b696469642ac0a8b2e'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_edge (workflow_version_id, parent_key, child_key, branch_kind, child_order, case_value)
select v.workflow_version_id, r.parent_key, r.child_key, r.branch_kind, r.child_order, r.case_value
from (values
  (N'choice', N'check', N'SEQUENCE', 0, null),
  (N'choice', N'if_1', N'SEQUENCE', 1, null),
  (N'choice', N'switch_1', N'SEQUENCE', 2, null),
  (N'choice', N'by_kind', N'SEQUENCE', 3, null),
  (N'if_1', N'if_1.then', N'THEN', 0, null),
  (N'if_1', N'if_1.else', N'ELSE', 1, null),
  (N'if_1.then', N'set_1', N'SEQUENCE', 0, null),
  (N'if_1.else', N'if_2', N'SEQUENCE', 0, null),
  (N'if_2', N'if_2.then', N'THEN', 0, null),
  (N'if_2', N'if_2.else', N'ELSE', 1, null),
  (N'if_2.then', N'set_2', N'SEQUENCE', 0, null),
  (N'if_2.else', N'set_3', N'SEQUENCE', 0, null),
  (N'switch_1', N'switch_1.case_0', N'CASE', 0, N'[0]'),
  (N'switch_1', N'switch_1.case_1', N'CASE', 1, N'[1,2]'),
  (N'switch_1', N'switch_1.default', N'DEFAULT', 2, null),
  (N'switch_1.case_1', N'set_4', N'SEQUENCE', 0, null),
  (N'switch_1.default', N'fail_1', N'SEQUENCE', 0, null),
  (N'by_kind', N'by_kind.case_0', N'CASE', 0, N'["small"]'),
  (N'by_kind', N'by_kind.case_1', N'CASE', 1, N'["large","huge"]'),
  (N'by_kind.case_0', N'by_kind.set_1', N'SEQUENCE', 0, null),
  (N'by_kind.case_1', N'by_kind.set_2', N'SEQUENCE', 0, null)
) as r(parent_key, child_key, branch_kind, child_order, case_value)
join wf.workflow_def as d on d.name = N'choice'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'18e5910d92e476f8c40dbfcf1c691ef63458dbceec5a08b696469642ac0a8b2e'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_input_template (workflow_version_id, node_key, template_json)
select v.workflow_version_id, r.node_key, r.template_json
from (values
  (N'check', N'{"kind":"${var.kind}"}')
) as r(node_key, template_json)
join wf.workflow_def as d on d.name = N'choice'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'18e5910d92e476f8c40dbfcf1c691ef63458dbceec5a08b696469642ac0a8b2e'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.variable_output_binding (workflow_version_id, node_key, binding_order, binding_kind, name, owner_key, program_json)
select v.workflow_version_id, r.node_key, r.binding_order, r.binding_kind, r.name, r.owner_key, r.program_json
from (values
  (N'set_1', 0, N'var', N'poor', N'choice', N'[["lit",true]]'),
  (N'set_2', 0, N'var', N'poor', N'choice', N'[["lit",false]]'),
  (N'set_3', 0, N'var', N'poor', N'choice', N'[["lit",null]]'),
  (N'set_4', 0, N'var', N'again', N'choice', N'[["lit",true]]'),
  (N'by_kind.set_1', 0, N'var', N'size', N'choice', N'[["lit",1]]'),
  (N'by_kind.set_2', 0, N'var', N'size', N'choice', N'[["lit",2]]')
) as r(node_key, binding_order, binding_kind, name, owner_key, program_json)
join wf.workflow_def as d on d.name = N'choice'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'18e5910d92e476f8c40dbfcf1c691ef63458dbceec5a08b696469642ac0a8b2e'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.node_scope_default (workflow_version_id, owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
select v.workflow_version_id, r.owner_key, r.variable_order, r.name, r.variable_kind, r.type_id, r.is_required, r.program_json
from (values
  (N'choice', 0, N'kind', N'input', 1, 0, N'[["lit","small"]]'),
  (N'choice', 0, N'poor', N'set', null, 0, null),
  (N'choice', 1, N'again', N'set', null, 0, null),
  (N'choice', 2, N'size', N'set', null, 0, null)
) as r(owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
join wf.workflow_def as d on d.name = N'choice'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'18e5910d92e476f8c40dbfcf1c691ef63458dbceec5a08b696469642ac0a8b2e'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

declare @v_name nvarchar(120) = N'choice';
declare @v_content_hash nvarchar(64) = N'18e5910d92e476f8c40dbfcf1c691ef63458dbceec5a08b696469642ac0a8b2e';
declare @v_source_map nvarchar(max) = N'{"file":"choice.wf","nodes":{"choice":[2,10],"check":[4,10],"if_1":[5,3],"if_1.then":[5,12],"set_1":[5,14],"if_1.else":[5,37],"if_2":[5,37],"if_2.then":[5,99],"set_2":[5,101],"if_2.else":[5,125],"set_3":[5,127],"switch_1":[6,3],"switch_1.case_0":[7,15],"switch_1.case_1":[8,18],"set_4":[8,20],"switch_1.default":[9,13],"fail_1":[9,15],"by_kind":[11,10],"by_kind.case_0":[11,43],"by_kind.set_1":[11,45],"by_kind.case_1":[11,81],"by_kind.set_2":[11,83]}}';
declare @v_description nvarchar(max) = null;
exec wf.wf_set_version_notes @name = @v_name, @content_hash = @v_content_hash,
    @source_map = @v_source_map, @description = @v_description;
exec wf.wf_publish_workflow_version @name = @v_name, @content_hash = @v_content_hash,
    @activate = 1, @update_actions = 0;
commit transaction;
GO
