-- workflow: branches
-- content: bd26a63f62506cc34db73cbbd1ffd0a826ec8e063760facfb55ff04174f02fb8
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
  (N'branches')
) as r(name)
where not exists(select 1 from wf.workflow_def as x where x.name = r.name);
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_version (workflow_def_id, content_hash, spec_format, outputs_json)
select d.workflow_def_id, r.content_hash, r.spec_format, r.outputs_json
from (values
  (N'bd26a63f62506cc34db73cbbd1ffd0a826ec8e063760facfb55ff04174f02fb8', 1, N'[]')
) as r(content_hash, spec_format, outputs_json)
join wf.workflow_def as d on d.name = N'branches'
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
join wf.workflow_def as d on d.name = N'branches'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'bd26a63f62506cc34db73cbbd1ffd0a826ec8e063760facfb55ff04174f02fb8'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.data_type (workflow_version_id, type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
select v.workflow_version_id, r.type_id, r.parent_type_id, r.path_kind, r.name, r.base_type, r.is_required, r.is_nullable, r.enum_json
from (values
  (1, null, N'root', null, N'list', 1, 0, null),
  (2, 1, N'item', null, N'int', 1, 0, null)
) as r(type_id, parent_type_id, path_kind, name, base_type, is_required, is_nullable, enum_json)
join wf.workflow_def as d on d.name = N'branches'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'bd26a63f62506cc34db73cbbd1ffd0a826ec8e063760facfb55ff04174f02fb8'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_node (workflow_version_id, node_key, node_type, is_generated, action_name, action_revision, attributes_json)
select v.workflow_version_id, r.node_key, r.node_type, r.is_generated, r.action_name, r.action_revision, r.attributes_json
from (values
  (N'branches', N'SEQUENCE', 0, null, null, N'{}'),
  (N'both', N'PARALLEL', 0, null, null, N'{"limit":2}'),
  (N'left', N'SEQUENCE', 0, null, null, N'{}'),
  (N'left.set_1', N'SEQUENCE', 0, null, null, N'{}'),
  (N'right', N'ACTION', 0, N'part.check', N'8e7b72d408dc4c9a25e9007430c498eae719bdb5ca0519d908768ec96e1ce31c', N'{}'),
  (N'both.foreach_1', N'FOREACH', 0, null, null, N'{"item":"x","parallel":1}'),
  (N'both.foreach_1.body', N'SEQUENCE', 1, null, null, N'{}'),
  (N'both.set_1', N'SEQUENCE', 0, null, null, N'{}'),
  (N'both.if_1', N'IF', 0, null, null, N'{"condition":[["var","list","branches",[]],["len"],["lit",3],["gt"]]}'),
  (N'both.if_1.then', N'SEQUENCE', 1, null, null, N'{}'),
  (N'both.set_2', N'SEQUENCE', 0, null, null, N'{}')
) as r(node_key, node_type, is_generated, action_name, action_revision, attributes_json)
join wf.workflow_def as d on d.name = N'branches'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'bd26a63f62506cc34db73cbbd1ffd0a826ec8e063760facfb55ff04174f02fb8'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_edge (workflow_version_id, parent_key, child_key, branch_kind, child_order, case_value)
select v.workflow_version_id, r.parent_key, r.child_key, r.branch_kind, r.child_order, r.case_value
from (values
  (N'branches', N'both', N'SEQUENCE', 0, null),
  (N'both', N'left', N'PARALLEL', 0, null),
  (N'both', N'right', N'PARALLEL', 1, null),
  (N'both', N'both.foreach_1', N'PARALLEL', 2, null),
  (N'both', N'both.if_1', N'PARALLEL', 3, null),
  (N'left', N'left.set_1', N'SEQUENCE', 0, null),
  (N'both.foreach_1', N'both.foreach_1.body', N'BODY', 0, null),
  (N'both.foreach_1.body', N'both.set_1', N'SEQUENCE', 0, null),
  (N'both.if_1', N'both.if_1.then', N'THEN', 0, null),
  (N'both.if_1.then', N'both.set_2', N'SEQUENCE', 0, null)
) as r(parent_key, child_key, branch_kind, child_order, case_value)
join wf.workflow_def as d on d.name = N'branches'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'bd26a63f62506cc34db73cbbd1ffd0a826ec8e063760facfb55ff04174f02fb8'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.workflow_input_template (workflow_version_id, node_key, template_json)
select v.workflow_version_id, r.node_key, r.template_json
from (values
  (N'right', N'{"n":1}')
) as r(node_key, template_json)
join wf.workflow_def as d on d.name = N'branches'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'bd26a63f62506cc34db73cbbd1ffd0a826ec8e063760facfb55ff04174f02fb8'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.variable_output_binding (workflow_version_id, node_key, binding_order, binding_kind, name, owner_key, program_json)
select v.workflow_version_id, r.node_key, r.binding_order, r.binding_kind, r.name, r.owner_key, r.program_json
from (values
  (N'left.set_1', 0, N'var', N'a', N'left', N'[["lit",1]]'),
  (N'right', 0, N'var', N'a', N'right', N'[["out",["good"]]]'),
  (N'both.foreach_1', 0, N'collect', N'bs', N'both.foreach_1', N'[["var","b","both.foreach_1.body",[]]]'),
  (N'both.set_1', 0, N'var', N'b', N'both.foreach_1.body', N'[["var","x","both.foreach_1.body",[]]]'),
  (N'both.set_2', 0, N'var', N'a', N'both.if_1', N'[["lit",2]]')
) as r(node_key, binding_order, binding_kind, name, owner_key, program_json)
join wf.workflow_def as d on d.name = N'branches'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'bd26a63f62506cc34db73cbbd1ffd0a826ec8e063760facfb55ff04174f02fb8'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.node_scope_default (workflow_version_id, owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
select v.workflow_version_id, r.owner_key, r.variable_order, r.name, r.variable_kind, r.type_id, r.is_required, r.program_json
from (values
  (N'branches', 0, N'list', N'input', 1, 1, null),
  (N'left', 0, N'a', N'set', null, 0, null),
  (N'right', 0, N'a', N'set', null, 0, null),
  (N'both.foreach_1', 0, N'bs', N'set', null, 0, null),
  (N'both.foreach_1.body', 0, N'x', N'loop', null, 0, null),
  (N'both.foreach_1.body', 1, N'b', N'set', null, 0, null),
  (N'both.if_1', 0, N'a', N'set', null, 0, null)
) as r(owner_key, variable_order, name, variable_kind, type_id, is_required, program_json)
join wf.workflow_def as d on d.name = N'branches'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'bd26a63f62506cc34db73cbbd1ffd0a826ec8e063760facfb55ff04174f02fb8'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

insert into wf.collection_binding (workflow_version_id, node_key, binding_kind, program_json)
select v.workflow_version_id, r.node_key, r.binding_kind, r.program_json
from (values
  (N'both.foreach_1', N'variable', N'[["var","list","branches",[]]]')
) as r(node_key, binding_kind, program_json)
join wf.workflow_def as d on d.name = N'branches'
join wf.workflow_version as v on v.workflow_def_id = d.workflow_def_id and v.content_hash = N'bd26a63f62506cc34db73cbbd1ffd0a826ec8e063760facfb55ff04174f02fb8'
where v.published_at is null;
GO

if xact_state() <> 1 throw 70003, N'the deploy failed before this batch', 1;

declare @v_name nvarchar(120) = N'branches';
declare @v_content_hash nvarchar(64) = N'bd26a63f62506cc34db73cbbd1ffd0a826ec8e063760facfb55ff04174f02fb8';
declare @v_source_map nvarchar(max) = N'{"file":"parallel.wf","nodes":{"branches":[2,10],"both":[4,12],"left":[5,14],"left.set_1":[5,21],"right":[6,12],"both.foreach_1":[7,5],"both.foreach_1.body":[7,27],"both.set_1":[7,29],"both.if_1":[8,5],"both.if_1.then":[8,26],"both.set_2":[8,28]}}';
declare @v_description nvarchar(max) = null;
exec wf.wf_set_version_notes @name = @v_name, @content_hash = @v_content_hash,
    @source_map = @v_source_map, @description = @v_description;
exec wf.wf_publish_workflow_version @name = @v_name, @content_hash = @v_content_hash,
    @activate = 1, @update_actions = 0;
commit transaction;
GO
