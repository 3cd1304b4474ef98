-- workflow: two_groups
-- content: 3f9ec0e50edd7974b9d080d164acdf90617055f639002934858003d4aca550ad
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
  (N'two_groups')
) as r(name)
where not exists(select 1 from wf.workflow_def as x where x.name = r.name);
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_version (workflow_def_id, content_hash, spec_format, outputs_json)
select d.workflow_def_id, r.content_hash, r.spec_format, r.outputs_json
from (values
  (N'3f9ec0e50edd7974b9d080d164acdf90617055f639002934858003d4aca550ad', 1, N'[{"order":0,"name":"left","program":[["var","left","two_groups",[]]]},{"order":1,"name":"right","program":[["var","right","two_groups",[]]]}]')
) as r(content_hash, spec_format, outputs_json)
join wf.workflow_def as d on d.name = N'two_groups'
where not exists(select 1 from wf.workflow_version as x where x.workflow_def_id = d.workflow_def_id and x.content_hash = r.content_hash);
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_action (action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select r.action_name, r.capability, r.max_per_worker, r.exclusive_worker, r.affinity_key_field, r.prefer_previous_worker, r.prefer_continue_group, r.require_previous_worker, r.max_concurrent, r.rate_per_minute, r.max_deliveries
from (values
  (N'count.left', N'left-hand', null, 0, null, 0, 0, 0, null, null, 5),
  (N'count.right', N'right-hand', null, 0, null, 0, 0, 0, null, null, 5)
) as r(action_name, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
where not exists(select 1 from wf.workflow_action as x where x.action_name = r.action_name)
order by r.action_name;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_action_revision (action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
select r.action_name, r.revision, r.description, r.version, r.input_schema_json, r.output_schema_json, r.result_codes_json, r.idempotent, r.timeout_ms, r.sensitive_json
from (values
  (N'count.left', N'388313e92df27571d5eb4f510802d0f75f4ec42a7e39f360b269aa0b5e549e5b', null, null, N'{"type":"object","properties":{"number":{"type":"integer"}},"required":["number"]}', N'{"type":"object","properties":{"number":{"type":"integer"}},"required":["number"]}', N'{}', 1, null, N'[]'),
  (N'count.right', N'3edad96e002f6f5f788396ae00d4c313c5b070b49e9156d7b82144c925d57961', null, null, N'{"type":"object","properties":{"number":{"type":"integer"}},"required":["number"]}', N'{"type":"object","properties":{"number":{"type":"integer"}},"required":["number"]}', N'{}', 1, null, N'[]')
) as r(action_name, revision, description, version, input_schema_json, output_schema_json, result_codes_json, idempotent, timeout_ms, sensitive_json)
where not exists(select 1 from wf.workflow_action_revision as x where x.action_name = r.action_name and x.revision = r.revision)
order by r.action_name;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_version_action (workflow_version_id, action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
select v.workflow_version_id, r.action_name, r.revision, r.capability, r.max_per_worker, r.exclusive_worker, r.affinity_key_field, r.prefer_previous_worker, r.prefer_continue_group, r.require_previous_worker, r.max_concurrent, r.rate_per_minute, r.max_deliveries
from (values
  (N'count.left', N'388313e92df27571d5eb4f510802d0f75f4ec42a7e39f360b269aa0b5e549e5b', N'left-hand', null, 0, null, 0, 0, 0, null, null, 5),
  (N'count.right', N'3edad96e002f6f5f788396ae00d4c313c5b070b49e9156d7b82144c925d57961', N'right-hand', null, 0, null, 0, 0, 0, null, null, 5)
) as r(action_name, revision, capability, max_per_worker, exclusive_worker, affinity_key_field, prefer_previous_worker, prefer_continue_group, require_previous_worker, max_concurrent, rate_per_minute, max_deliveries)
join wf.workflow_def as d on d.name = N'two_groups'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'3f9ec0e50edd7974b9d080d164acdf90617055f639002934858003d4aca550ad'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.data_type (workflow_version_id, type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
select v.workflow_version_id, r.type_id, r.parent_type_id, r.path_kind, r.name, r.base_type, r.is_required, r.is_nullable, r.enum_json
from (values
  (1, null, N'root', null, N'list', 1, 0, null),
  (2, 1, N'item', null, N'int', 1, 0, null),
  (3, null, N'root', null, N'list', 1, 0, null),
  (4, 3, N'item', null, N'int', 1, 0, null),
  (5, null, N'root', null, N'list', 1, 0, null),
  (6, 5, N'item', null, N'int', 1, 0, null)
) as r(type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
join wf.workflow_def as d on d.name = N'two_groups'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'3f9ec0e50edd7974b9d080d164acdf90617055f639002934858003d4aca550ad'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_node (workflow_version_id, node_key, node_type, is_generated, action_name, action_revision, attributes_json)
select v.workflow_version_id, r.node_key, r.node_type, r.is_generated, r.action_name, r.action_revision, r.attributes_json
from (values
  (N'two_groups', N'SEQUENCE', 0, null, null, N'{}'),
  (N'parallel_1', N'PARALLEL', 0, null, null, N'{}'),
  (N'group_left', N'SEQUENCE', 0, null, null, N'{}'),
  (N'group_left.foreach_1', N'FOREACH', 0, null, null, N'{"item":"number","parallel":0}'),
  (N'group_left.foreach_1.body', N'SEQUENCE', 1, null, null, N'{}'),
  (N'left', N'ACTION', 0, N'count.left', N'388313e92df27571d5eb4f510802d0f75f4ec42a7e39f360b269aa0b5e549e5b', N'{}'),
  (N'group_right', N'SEQUENCE', 0, null, null, N'{}'),
  (N'group_right.foreach_1', N'FOREACH', 0, null, null, N'{"item":"number","parallel":0}'),
  (N'group_right.foreach_1.body', N'SEQUENCE', 1, null, null, N'{}'),
  (N'right', N'ACTION', 0, N'count.right', N'3edad96e002f6f5f788396ae00d4c313c5b070b49e9156d7b82144c925d57961', N'{}')
) as r(node_key, node_type, is_generated, action_name, action_revision, attributes_json)
join wf.workflow_def as d on d.name = N'two_groups'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'3f9ec0e50edd7974b9d080d164acdf90617055f639002934858003d4aca550ad'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_edge (workflow_version_id, parent_key, child_key, branch_kind, child_order, case_value)
select v.workflow_version_id, r.parent_key, r.child_key, r.branch_kind, r.child_order, r.case_value
from (values
  (N'two_groups', N'parallel_1', N'SEQUENCE', 0, null),
  (N'parallel_1', N'group_left', N'PARALLEL', 0, null),
  (N'parallel_1', N'group_right', N'PARALLEL', 1, null),
  (N'group_left', N'group_left.foreach_1', N'SEQUENCE', 0, null),
  (N'group_left.foreach_1', N'group_left.foreach_1.body', N'BODY', 0, null),
  (N'group_left.foreach_1.body', N'left', N'SEQUENCE', 0, null),
  (N'group_right', N'group_right.foreach_1', N'SEQUENCE', 0, null),
  (N'group_right.foreach_1', N'group_right.foreach_1.body', N'BODY', 0, null),
  (N'group_right.foreach_1.body', N'right', N'SEQUENCE', 0, null)
) as r(parent_key, child_key, branch_kind, child_order, case_value)
join wf.workflow_def as d on d.name = N'two_groups'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'3f9ec0e50edd7974b9d080d164acdf90617055f639002934858003d4aca550ad'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_input_template (workflow_version_id, node_key, template_json)
select v.workflow_version_id, r.node_key, r.template_json
from (values
  (N'left', N'{"number":"${var.number}"}'),
  (N'right', N'{"number":"${var.number}"}')
) as r(node_key, template_json)
join wf.workflow_def as d on d.name = N'two_groups'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'3f9ec0e50edd7974b9d080d164acdf90617055f639002934858003d4aca550ad'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.variable_output_binding (workflow_version_id, node_key, binding_order, binding_kind, name, owner_key, program_json)
select v.workflow_version_id, r.node_key, r.binding_order, r.binding_kind, r.name, r.owner_key, r.program_json
from (values
  (N'group_left.foreach_1', 0, N'collect', N'left', N'two_groups', N'[["ctx","task",["left","output","number"]]]'),
  (N'group_right.foreach_1', 0, N'collect', N'right', N'two_groups', N'[["ctx","task",["right","output","number"]]]')
) as r(node_key, binding_order, binding_kind, name, owner_key, program_json)
join wf.workflow_def as d on d.name = N'two_groups'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'3f9ec0e50edd7974b9d080d164acdf90617055f639002934858003d4aca550ad'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.node_scope_default (workflow_version_id, owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
select v.workflow_version_id, r.owner_key, r.variable_order, r.name, r.variable_kind, r.type_id, r.is_required, r.program_json
from (values
  (N'two_groups', 0, N'numbers', N'input', 1, 0, N'[["lit",1],["lit",2],["lit",3],["arr",3]]'),
  (N'two_groups', 0, N'left', N'var', 3, 0, N'[["arr",0]]'),
  (N'two_groups', 1, N'right', N'var', 5, 0, N'[["arr",0]]'),
  (N'group_left.foreach_1.body', 0, N'number', N'loop', null, 0, null),
  (N'group_right.foreach_1.body', 0, N'number', N'loop', null, 0, null)
) as r(owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
join wf.workflow_def as d on d.name = N'two_groups'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'3f9ec0e50edd7974b9d080d164acdf90617055f639002934858003d4aca550ad'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.collection_binding (workflow_version_id, node_key, binding_kind, program_json)
select v.workflow_version_id, r.node_key, r.binding_kind, r.program_json
from (values
  (N'group_left.foreach_1', N'variable', N'[["var","numbers","two_groups",[]]]'),
  (N'group_right.foreach_1', N'variable', N'[["var","numbers","two_groups",[]]]')
) as r(node_key, binding_kind, program_json)
join wf.workflow_def as d on d.name = N'two_groups'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'3f9ec0e50edd7974b9d080d164acdf90617055f639002934858003d4aca550ad'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

declare @v_name nvarchar(120) = N'two_groups';
declare @v_content_hash nvarchar(64) = N'3f9ec0e50edd7974b9d080d164acdf90617055f639002934858003d4aca550ad';
declare @v_source_map nvarchar(max) = N'{"file":"two_groups.wf","nodes":{"two_groups":[2,10],"parallel_1":[13,3],"group_left":[14,14],"group_left.foreach_1":[15,7],"group_left.foreach_1.body":[15,46],"left":[16,16],"group_right":[20,14],"group_right.foreach_1":[21,7],"group_right.foreach_1.body":[21,46],"right":[22,16]}}';
declare @v_description nvarchar(max) = null;
exec wf.wf_set_version_notes @name = @v_name, @content_hash = @v_content_hash,
    @source_map = @v_source_map, @description = @v_description;
exec wf.wf_publish_workflow_version @name = @v_name, @content_hash = @v_content_hash,
    @activate = 1, @update_actions = 0;
commit transaction;
GO
