-- workflow: loops
-- content: 441ea10d10d12be60ea92948d088406b715a5c39cf644547e8276d1df7b33ea0
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
  (N'loops')
) as r(name)
where not exists(select 1 from wf.workflow_def as x where x.name = r.name);
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_version (workflow_def_id, content_hash, spec_format, outputs_json)
select d.workflow_def_id, r.content_hash, r.spec_format, r.outputs_json
from (values
  (N'441ea10d10d12be60ea92948d088406b715a5c39cf644547e8276d1df7b33ea0', 1, N'[{"order":0,"name":"sums","program":[["var","sums","loops",[]]]},{"order":1,"name":"last","program":[["ctx","task",["check","output","score"]],["alt",1],["lit",0]]}]')
) as r(content_hash, spec_format, outputs_json)
join wf.workflow_def as d on d.name = N'loops'
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
join wf.workflow_def as d on d.name = N'loops'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'441ea10d10d12be60ea92948d088406b715a5c39cf644547e8276d1df7b33ea0'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.data_type (workflow_version_id, type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
select v.workflow_version_id, r.type_id, r.parent_type_id, r.path_kind, r.name, r.base_type, r.is_required, r.is_nullable, r.enum_json
from (values
  (1, null, N'root', null, N'list', 1, 0, null),
  (2, 1, N'item', null, N'list', 1, 0, null),
  (3, 2, N'item', null, N'int', 1, 0, null),
  (4, null, N'root', null, N'bool', 1, 0, null)
) as r(type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
join wf.workflow_def as d on d.name = N'loops'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'441ea10d10d12be60ea92948d088406b715a5c39cf644547e8276d1df7b33ea0'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_node (workflow_version_id, node_key, node_type, is_generated, action_name, action_revision, attributes_json)
select v.workflow_version_id, r.node_key, r.node_type, r.is_generated, r.action_name, r.action_revision, r.attributes_json
from (values
  (N'loops', N'SEQUENCE', 0, null, null, N'{}'),
  (N'three', N'REPEAT', 0, null, null, N'{"count":[["lit",3]],"counter":"i"}'),
  (N'three.body', N'SEQUENCE', 1, null, null, N'{}'),
  (N'three.set_1', N'SEQUENCE', 0, null, null, N'{}'),
  (N'while_1', N'WHILE', 0, null, null, N'{"condition":[["var","good","loops",[]],["not"]],"max":5}'),
  (N'while_1.body', N'SEQUENCE', 1, null, null, N'{}'),
  (N'check', N'ACTION', 0, N'part.check', N'8e7b72d408dc4c9a25e9007430c498eae719bdb5ca0519d908768ec96e1ce31c', N'{}'),
  (N'foreach_1', N'FOREACH', 0, null, null, N'{"item":"row","index":"r","parallel":4}'),
  (N'foreach_1.body', N'SEQUENCE', 1, null, null, N'{}'),
  (N'foreach_2', N'FOREACH', 0, null, null, N'{"item":"cell","parallel":1}'),
  (N'foreach_2.body', N'SEQUENCE', 1, null, null, N'{}'),
  (N'set_1', N'SEQUENCE', 0, null, null, N'{}'),
  (N'foreach_3', N'FOREACH', 0, null, null, N'{"item":"x","parallel":0}'),
  (N'foreach_3.body', N'SEQUENCE', 1, null, null, N'{}'),
  (N'set_2', N'SEQUENCE', 0, null, null, N'{}'),
  (N'foreach_4', N'FOREACH', 0, null, null, N'{"item":"x","parallel":1}'),
  (N'foreach_4.body', N'SEQUENCE', 1, null, null, N'{}'),
  (N'set_3', N'SEQUENCE', 0, null, null, N'{}')
) as r(node_key, node_type, is_generated, action_name, action_revision, attributes_json)
join wf.workflow_def as d on d.name = N'loops'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'441ea10d10d12be60ea92948d088406b715a5c39cf644547e8276d1df7b33ea0'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_edge (workflow_version_id, parent_key, child_key, branch_kind, child_order, case_value)
select v.workflow_version_id, r.parent_key, r.child_key, r.branch_kind, r.child_order, r.case_value
from (values
  (N'loops', N'three', N'SEQUENCE', 0, null),
  (N'loops', N'while_1', N'SEQUENCE', 1, null),
  (N'loops', N'foreach_1', N'SEQUENCE', 2, null),
  (N'loops', N'foreach_3', N'SEQUENCE', 3, null),
  (N'loops', N'foreach_4', N'SEQUENCE', 4, null),
  (N'three', N'three.body', N'BODY', 0, null),
  (N'three.body', N'three.set_1', N'SEQUENCE', 0, null),
  (N'while_1', N'while_1.body', N'BODY', 0, null),
  (N'while_1.body', N'check', N'SEQUENCE', 0, null),
  (N'foreach_1', N'foreach_1.body', N'BODY', 0, null),
  (N'foreach_1.body', N'foreach_2', N'SEQUENCE', 0, null),
  (N'foreach_2', N'foreach_2.body', N'BODY', 0, null),
  (N'foreach_2.body', N'set_1', N'SEQUENCE', 0, null),
  (N'foreach_3', N'foreach_3.body', N'BODY', 0, null),
  (N'foreach_3.body', N'set_2', N'SEQUENCE', 0, null),
  (N'foreach_4', N'foreach_4.body', N'BODY', 0, null),
  (N'foreach_4.body', N'set_3', N'SEQUENCE', 0, null)
) as r(parent_key, child_key, branch_kind, child_order, case_value)
join wf.workflow_def as d on d.name = N'loops'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'441ea10d10d12be60ea92948d088406b715a5c39cf644547e8276d1df7b33ea0'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_input_template (workflow_version_id, node_key, template_json)
select v.workflow_version_id, r.node_key, r.template_json
from (values
  (N'check', N'{"round":"${ctx.iterationNo}"}')
) as r(node_key, template_json)
join wf.workflow_def as d on d.name = N'loops'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'441ea10d10d12be60ea92948d088406b715a5c39cf644547e8276d1df7b33ea0'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.variable_output_binding (workflow_version_id, node_key, binding_order, binding_kind, name, owner_key, program_json)
select v.workflow_version_id, r.node_key, r.binding_order, r.binding_kind, r.name, r.owner_key, r.program_json
from (values
  (N'three.set_1', 0, N'var', N'at', N'three.body', N'[["var","i","three.body",[]]]'),
  (N'check', 0, N'var', N'good', N'loops', N'[["out",["good"]]]'),
  (N'foreach_1', 0, N'collect', N'sums', N'loops', N'[["var","r","foreach_1.body",[]],["var","doubled","foreach_1.body",[]],["obj",["row","cells"]]]'),
  (N'foreach_2', 0, N'collect', N'doubled', N'foreach_1.body', N'[["var","twice","foreach_2.body",[]]]'),
  (N'set_1', 0, N'var', N'twice', N'foreach_2.body', N'[["lit",2],["var","cell","foreach_2.body",[]],["mul"]]'),
  (N'set_2', 0, N'var', N'y', N'foreach_3.body', N'[["var","x","foreach_3.body",[]]]'),
  (N'set_3', 0, N'var', N'y', N'foreach_4.body', N'[["ctx","item",[]]]')
) as r(node_key, binding_order, binding_kind, name, owner_key, program_json)
join wf.workflow_def as d on d.name = N'loops'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'441ea10d10d12be60ea92948d088406b715a5c39cf644547e8276d1df7b33ea0'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.node_scope_default (workflow_version_id, owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
select v.workflow_version_id, r.owner_key, r.variable_order, r.name, r.variable_kind, r.type_id, r.is_required, r.program_json
from (values
  (N'loops', 0, N'rows', N'input', 1, 1, null),
  (N'loops', 0, N'good', N'var', 4, 0, N'[["lit",false]]'),
  (N'loops', 1, N'sums', N'set', null, 0, null),
  (N'three.body', 0, N'i', N'loop', null, 0, null),
  (N'three.body', 1, N'at', N'set', null, 0, null),
  (N'foreach_1.body', 0, N'row', N'loop', null, 0, null),
  (N'foreach_1.body', 1, N'r', N'loop', null, 0, null),
  (N'foreach_1.body', 2, N'doubled', N'set', null, 0, null),
  (N'foreach_2.body', 0, N'cell', N'loop', null, 0, null),
  (N'foreach_2.body', 1, N'twice', N'set', null, 0, null),
  (N'foreach_3.body', 0, N'x', N'loop', null, 0, null),
  (N'foreach_3.body', 1, N'y', N'set', null, 0, null),
  (N'foreach_4.body', 0, N'x', N'loop', null, 0, null),
  (N'foreach_4.body', 1, N'y', N'set', null, 0, null)
) as r(owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
join wf.workflow_def as d on d.name = N'loops'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'441ea10d10d12be60ea92948d088406b715a5c39cf644547e8276d1df7b33ea0'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.collection_binding (workflow_version_id, node_key, binding_kind, program_json)
select v.workflow_version_id, r.node_key, r.binding_kind, r.program_json
from (values
  (N'foreach_1', N'variable', N'[["var","rows","loops",[]]]'),
  (N'foreach_2', N'variable', N'[["var","row","foreach_1.body",[]]]'),
  (N'foreach_3', N'program', N'[["ctx","context",["more"]],["alt",1],["arr",0]]'),
  (N'foreach_4', N'context', N'[["ctx","context",["list"]]]')
) as r(node_key, binding_kind, program_json)
join wf.workflow_def as d on d.name = N'loops'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'441ea10d10d12be60ea92948d088406b715a5c39cf644547e8276d1df7b33ea0'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

declare @v_name nvarchar(120) = N'loops';
declare @v_content_hash nvarchar(64) = N'441ea10d10d12be60ea92948d088406b715a5c39cf644547e8276d1df7b33ea0';
declare @v_source_map nvarchar(max) = N'{"file":"loops.wf","nodes":{"loops":[2,10],"three":[6,10],"three.body":[6,24],"three.set_1":[6,26],"while_1":[7,3],"while_1.body":[7,28],"check":[8,12],"foreach_1":[10,3],"foreach_1.body":[10,41],"foreach_2":[11,5],"foreach_2.body":[11,29],"set_1":[12,7],"foreach_3":[17,3],"foreach_3.body":[17,48],"set_2":[17,50],"foreach_4":[18,3],"foreach_4.body":[18,33],"set_3":[18,35]}}';
declare @v_description nvarchar(max) = null;
exec wf.wf_set_version_notes @name = @v_name, @content_hash = @v_content_hash,
    @source_map = @v_source_map, @description = @v_description;
exec wf.wf_publish_workflow_version @name = @v_name, @content_hash = @v_content_hash,
    @activate = 1, @update_actions = 0;
commit transaction;
GO
